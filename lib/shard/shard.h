/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One shard: everything between the receive queue and the transmit queue of one lcore. No other
 * lcore writes to it.
 *
 * Time is an argument, and the environment a struct nj_shard_ops, so the same shard runs under
 * DPDK, in the simulator and under fuzzers.
 *
 * The datapath is shard_step.c. All calls belong to the owning lcore unless stated otherwise.
 */
#ifndef NJ_SHARD_SHARD_H
#define NJ_SHARD_SHARD_H

#include "base/limits.h"
#include "base/pool.h"
#include "base/event_rate_limit.h"
#include "base/types.h"
#include "conn/abuse_reason_counts.h"
#include "conn/conn_fair_eviction.h"
#include "conn/handler_tasks.h"
#include "h2/h2.h"
#include "http/files/file_server.h"
#include "http/transaction.h"
#include "net/rss_flow_owner.h"
#include "net/ip4_reassembly.h"
#include "net/nd_host.h"
#include "net/neighbours.h"
#include "shape/shaper.h"
#include "shard/pool_gauges.h"
#include "shard/shard_env_ops.h"
#include "tcp/tcp.h"
#include "telem/counters.h"
#include "telem/histogram.h"
#include "telem/stage_cycles.h"
#include "wire/emit.h"

/* Packets made in a step and not yet taken by the device. TCP data leaves the last NJ_TXQ_RESERVE
 * entries to ACKs, ARP and ICMP. */
#define NJ_TXQ_MAX     512u
#define NJ_TXQ_RESERVE 64u

/* Cache of packet headers, valid while connections are served, since no routes or neighbours change
 * meanwhile. The second segment in a row between the same hosts fills it, and the following ones
 * copy it. */
struct nj_tx_head_cache {
    enum {
        NJ_TX_HEAD_OFF, /* connections are not being served */
        NJ_TX_HEAD_EMPTY,
        NJ_TX_HEAD_SEEN,   /* one segment between the hosts of `ip` was sent */
        NJ_TX_HEAD_CACHED, /* two were sent, and `head` holds their headers */
    } state;
    struct nj_ip_meta ip;
    struct nj_l2l3_cache head;
};

struct nj_shard_config {
    uint32_t index, n_shards; /* among the shards of the device */
    uint32_t number;          /* among all shards of the process, for logs */
    enum nj_steer_mode steering;
    uint32_t reta_size;
    struct nj_rss_key rss_key; /* the same for all shards */
    struct nj_iface iface;
    struct nj_shard_ops ops;
    struct rte_mempool *tx_pool;        /* this shard's own; see nj_tcp_config.mp */
    struct rte_ip_frag_tbl *frag_table; /* see nj_ip4_reasm_init() */
    struct nj_tx_offload tx;            /* offloads of the device */
    uint16_t listen_port;
    struct nj_tls_current_context *tls; /* the same for all shards; NULL: no TLS */
    uint16_t tls_port;                  /* beside listen_port, without TLS */
    uint32_t conns_max, half_open_max;
    uint32_t held_max; /* see nj_tcp_config */
    nj_ns time_wait;
    bool newreno, ecn;     /* congestion control; see nj_tcp_config */
    nj_ns preface_timeout; /* from the handshake to the whole preface; 0: 10 s */
    nj_ns idle_timeout;    /* without an open stream; 0: 75 s */
    struct nj_hash_key flow_key, isn_key;
    struct nj_hash_key ndp_key; /* the same for all shards, see nj_nd_host_config */
    bool slaac;                 /* take IPv6 addresses from routers */
    bool no_dad;                /* another process of this host has checked the addresses */
    bool frames_reach_both;     /* while a process shares the port, each frame arrives at both */
    uint64_t seed;
    int64_t wall_s_at_zero;
    const struct nj_routes *routes; /* NULL: none, only files */
    bool no_files;                  /* requests outside routes are answered with 404 */
    uint32_t fibers_max;            /* handlers that can wait at once; 0: 256 */
    uint32_t handlers_queue_max;    /* requests queued for a fiber; 0: NJ_HANDLERS_QUEUE_MAX */
    uint32_t round_tasks; /* tasks of a connection that begin in a step; 0: NJ_ROUND_TASKS */
    enum nj_run strategy;

    const struct nj_file_server_options *site; /* NULL: the defaults */
    struct nj_shape_shared *shape;             /* the same for all shards; NULL: no limits */
    const struct nj_policy *policy;            /* NULL: nj_policy_none. See nj_shard_set_policy() */
    struct nj_hash_key client_key;             /* the same for all shards: keys of clients */
    struct nj_access_ops access;               /* take NULL: no access log */
    uint32_t header_bytes_max, header_fields_max; /* above: 431; 0: nj_h2_limits_default */
    nj_ns header_timeout; /* from the first byte of a header block to its last; 0: 10 s */
    nj_ns body_timeout;   /* longest time without progress of a request body; 0: 60 s */
    nj_ns send_timeout;   /* longest time without progress of a response that has credit, or of its
                             file; 0: 60 s */
    uint64_t min_rate;    /* bytes per second that a peer must acknowledge on the average of
                             send_timeout; time paced by our limits does not count; 0: no minimum */
    /* Bytes per second of a request body that a peer must send on the average of body_timeout,
     * while the server waits for it and no response has begun. 0: no minimum. */
    uint64_t min_upload_rate;
    nj_ns
        body_deadline; /* from a request to the end of its body, until a response begins; 0: none */
    uint64_t body_max; /* longest request body, above: 413; 0: the limit of the route */
};

/* The event that a connection waits for. Each has its own timeout. */
enum nj_conn_wait {
    NJ_CONN_WAIT_PREFACE, /* the first bytes of the peer */
    NJ_CONN_WAIT_IDLE,    /* a request */
    NJ_CONN_WAIT_ACK,     /* a request; the ACK of the last response is expected and not reported */
    NJ_CONN_WAIT_FRAME,   /* the end of a frame or header block, without open streams */
    NJ_CONN_WAIT_PROGRESS, /* progress: the peer reads responses or sends requests */
    NJ_CONN_WAIT_FIN,      /* the peer's FIN; all else is acknowledged */
    NJ_N_CONN_WAITS
};

/*
 * Which process handles a packet of no connection while two processes share a port, during an
 * upgrade (docs/adr/0024-two-processes-share-a-port.md). Packets of its own connections each
 * process handles itself.
 */
enum nj_port_role {
    NJ_PORT_ALONE,  /* no other process uses the port */
    NJ_PORT_KEEPS,  /* this one */
    NJ_PORT_TAKES,  /* this one, if the other process has passed the packet on */
    NJ_PORT_YIELDS, /* the other one */
};

struct nj_shard {
    struct nj_counters counters; /* first: aligned; other threads read it */
    struct nj_shard_config cfg;
    struct nj_abuse abuse; /* other threads read it */
    struct nj_steer steer;
    struct nj_neigh neigh;
    struct nj_nd_host ndp;
    struct nj_ip4_reasm frags;
    struct nj_tcp tcp;
    struct nj_h2_context *h2;
    struct nj_handlers handlers;

    struct nj_pool conns;         /* struct nj_conn */
    struct nj_shard_tls *tls;     /* NULL: no TLS */
    struct nj_conn_shares shares; /* connections per client */
    struct nj_pool
        active_conns; /* struct nj_conn_active, for connections that have received bytes */
    struct nj_list waits_for[NJ_N_CONN_WAITS];
    struct nj_list unacked;    /* connections with a non-empty send queue, least recent ACK first */
    struct nj_list tx_waiting; /* connections that wait for mbufs to send, in turn */
    struct nj_held_shares held_mbufs;  /* received mbufs that connections hold, by client */
    struct nj_held_shares held_memory; /* KiB of buffers of HTTP/2 */
    struct nj_held_shares held_output; /* mbufs of send queues, while they are short */

    nj_ns now; /* time of the current step, for callbacks without an argument for it */
    uint32_t n_tx_mbufs_left;   /* mbufs left in the pool, while connections are served */
    uint32_t n_tx_reserve;      /* of the pool: see NJ_TX_POOL_RESERVE */
    struct nj_conn *processing; /* connection whose input is being read; its output comes next */
    bool tx_short;              /* less than the reserve is left */
    bool draining;
    nj_ns goaway_at;           /* draining: time of the final GOAWAY */
    nj_ns goaway_wait_ends_at; /* from then on also to peers that have not acknowledged a PING */
    enum nj_port_role role;
    uint32_t (*rx_alone)(void *ctx, struct rte_mbuf **m, uint32_t n); /* ops.rx of the config */
    uint16_t ip_ident;
    struct nj_tx_head_cache tx_head;
    struct nj_ratelimit echo_rate, problem_rate, replicate_rate;

    struct nj_pool_gauge pool_gauge[NJ_SHARD_POOLS];

    struct nj_txns txns;
    struct nj_list txns_watched;        /* in the order of their next check */
    nj_ns timeouts_at;                  /* nobody looks at waits_for and txns_watched before */
    struct nj_shape_shared *own_shared; /* when the configuration has none */
    uint32_t n_active_conns;
    uint32_t recheck_at; /* next connection to check against a new policy; UINT32_MAX: none */
    _Atomic(const struct nj_policy *) policy_wanted;
    _Atomic uint64_t policy_version;
    struct nj_stages stages;
    /* Of TLS handshakes: cycles of the lcore per step with any, CPU time of a worker per flight. */
    struct nj_histogram tls_step_cycles, tls_task_ns;

    uint32_t txq_head, n_txq;
    struct rte_mbuf *txq[NJ_TXQ_MAX];
};

/* Returns false when memory is refused; everything is released then. */
bool nj_shard_init(struct nj_shard *s, const struct nj_shard_config *config, nj_ns now);
/* Aborts connections without sending RST (for RST call nj_shard_abort() and step once first) and
 * cancels handlers that wait. Has to be called by the thread that stepped, as fibers belong to it.
 * Precedes nj_shard_fini(), which any thread may call. */
void nj_shard_end_conns_and_handlers(struct nj_shard *s);
/* After nj_shard_end_conns_and_handlers(): the number of handlers that did not return, and the
 * route of one of them. Their stacks are leaked, and after nj_shard_fini() the objects they refer
 * to. Their code must stay loaded. */
uint32_t nj_shard_stuck_fibers(const struct nj_shard *s, const char **route);
/* Waits for file jobs and for handlers that run on workers. */
void nj_shard_fini(struct nj_shard *s);

/* One step of the datapath. Returns the amount of work; 0: an idle step. */
uint32_t nj_shard_step(struct nj_shard *s, nj_ns now);

/*
 * A user of TCP other than the server: the first member of the object at tcb->user.
 *
 * `on_events` is called once per step and connection with NJ_TCP_EV_*, within nj_shard_step(), and
 * may call tcp.h. NJ_TCP_EV_DEAD may come with other events and has to be checked first: the
 * connection must be released then. It may be released earlier; no further events are delivered
 * then.
 */
struct nj_conn_user {
    void (*on_events)(struct nj_shard *s, struct nj_tcb *tcb, uint8_t events, nj_ns now);
};

/* Without new packets nothing is due before this time. 0: step again at once. */
nj_ns nj_shard_next_at(const struct nj_shard *s);

/* Stores the gauges that other threads read. */
void nj_shard_publish(struct nj_shard *s);

/* Replaces the policy. The lcore adopts it in its next step, for responses in progress as well. Any
 * thread, one call at a time. The previous policy may be freed when nj_shard_policy_version() of
 * every shard returns the new version. */
void nj_shard_set_policy(struct nj_shard *s, const struct nj_policy *policy);
uint64_t nj_shard_policy_version(const struct nj_shard *s);

/* Starts a graceful shutdown: no new connections; open ones get GOAWAY and finish their streams. */
void nj_shard_drain(struct nj_shard *s, nj_ns now);
/* Changes the role in sharing the port. YIELDS also sends GOAWAY on all connections; handshakes
 * that have begun are completed, and such connections get GOAWAY after their preface. Another role
 * ends that. */
void nj_shard_set_port_role(struct nj_shard *s, enum nj_port_role role, nj_ns now);
/* Resets all remaining connections. */
void nj_shard_abort(struct nj_shard *s, nj_ns now);
/* Are connections, file jobs or packets unfinished, or with YIELDS handshakes? A connection whose
 * peer has acknowledged everything and only has not closed does not count. */
bool nj_shard_has_unfinished_work(const struct nj_shard *s);

#endif
