/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lcore's world: everything between its receive queue and its transmit queue, and nothing that
 * another lcore writes to. It takes time as an argument and the outside as a struct nj_port, so
 * the same shard runs under DPDK, under the simulator and under fuzzers.
 *
 * The datapath is shard_step.c. All calls belong to the owning lcore, unless they say otherwise.
 */
#ifndef NJ_SHARD_SHARD_H
#define NJ_SHARD_SHARD_H

#include "base/limits.h"
#include "base/pool.h"
#include "base/rate.h"
#include "base/types.h"
#include "conn/abuse_counts.h"
#include "conn/conn_shares.h"
#include "h2/h2.h"
#include "http/files/file_server.h"
#include "http/transaction.h"
#include "net/flow_steering.h"
#include "net/ip4_reassembly.h"
#include "net/nd_host.h"
#include "net/neighbours.h"
#include "shape/shaper.h"
#include "shard/handler_tasks.h"
#include "shard/pool_telemetry.h"
#include "shard/shard_ops.h"
#include "tcp/tcp.h"
#include "telem/counters.h"
#include "telem/stages.h"
#include "wire/emit.h"

/* Packets made in a step and not yet taken by the device. TCP data stops short of the last
 * NJ_TXQ_RESERVE places, which are for ACKs, ARP and ICMP. */
#define NJ_TXQ_MAX     512u
#define NJ_TXQ_RESERVE 64u

/* The way that segments take while connections are served, when nobody learns of routes and
 * neighbours. The second one in a row between the same hosts leaves its head behind, and those that
 * follow copy it. */
struct nj_way {
    enum {
        NJ_WAY_SHUT, /* connections are not served now */
        NJ_WAY_OPEN,
        NJ_WAY_TAKEN, /* by one segment between the hosts of `ip` */
        NJ_WAY_KEPT,  /* by two, and this is their head */
    } state;
    struct nj_ip_meta ip;
    struct nj_head head;
};

struct nj_shard_config {
    uint32_t index, n_shards; /* among the shards of the port */
    uint32_t number;          /* among all of the process, for records */
    enum nj_steering steering;
    uint32_t reta_size;
    struct nj_rss_key rss_key; /* the same for all shards */
    struct nj_iface iface;
    struct nj_port port;
    struct rte_mempool *tx_pool;        /* this shard's own; see nj_tcp_config.mp */
    struct rte_ip_frag_tbl *frag_table; /* see nj_frags_init() */
    struct nj_tx_offload tx;            /* what the port's device does */
    uint16_t listen_port;
    uint32_t conns_max, half_open_max;
    uint32_t held_max; /* see nj_tcp_config */
    nj_ns time_wait;
    bool newreno, ecn;     /* congestion control; see nj_tcp_config */
    nj_ns preface_timeout; /* a new connection may be silent for so long; 0: 10 s */
    nj_ns idle_timeout;    /* one without an open stream; 0: 75 s */
    struct nj_hash_key flow_key, isn_key;
    struct nj_hash_key ndp_key; /* the same for all shards, see nj_ndp_config */
    bool slaac;                 /* take IPv6 addresses from routers */
    uint64_t seed;
    int64_t wall_s_at_zero;
    const struct nj_routes *routes; /* NULL: none, only the site */
    bool no_site;                   /* what is no route's is answered with 404 */
    uint32_t fibers_max;            /* handlers that can wait at once; 0: 256 */
    uint32_t handlers_queue_max;    /* requests that wait for a stack; 0: NJ_HANDLERS_QUEUE_MAX */
    uint32_t round_tasks;           /* of a connection that begin in a step; 0: NJ_ROUND_TASKS */
    enum nj_run strategy;

    const struct nj_site_options *site; /* NULL: the defaults */
    struct nj_shape_shared *shape;      /* the same for all shards; NULL: nothing is limited */
    const struct nj_policy *policy;     /* NULL: nj_policy_none. See nj_shard_set_policy() */
    struct nj_hash_key client_key;      /* the same for all shards: keys of clients */
    struct nj_access_port access;       /* take NULL: no access log */
    uint32_t header_bytes_max, header_fields_max; /* beyond: 431; 0: nj_h2_limits_default */
    nj_ns header_timeout; /* from the first byte of a header block to its last; 0: 10 s */
    nj_ns body_timeout;   /* a request body may make no progress for so long; 0: 60 s */
    nj_ns send_timeout;   /* neither may a response that has credit, nor its file; 0: 60 s */
    uint64_t min_rate;    /* bytes per second that a peer takes on the average of send_timeout,
                           * what our own limits hold back not counted; 0: any */
    /* Bytes per second of a request's body that a peer sends on the average of body_timeout, while
     * we wait for it and nothing is answered; 0: any */
    uint64_t min_upload_rate;
    nj_ns body_deadline; /* from a request to the end of its body, while nothing is answered; 0: any
                          */
    uint64_t body_max;   /* a longer request body: 413; 0: what the route says */
};

/* What a connection of the server waits for, and each has a time-out of its own. */
enum nj_silent {
    NJ_SILENT_NEW,     /* for the first bytes of its peer */
    NJ_SILENT_IDLE,    /* for a request */
    NJ_SILENT_QUIET,   /* for a request, and for the ACK of what was answered, unheard */
    NJ_SILENT_BEGUN,   /* for the rest of a frame or of a header block, without any request */
    NJ_SILENT_STALLED, /* for the peer to take or send what it began */
    NJ_SILENT_DONE,    /* for the peer's FIN, all else is acknowledged */
    NJ_N_SILENT
};

struct nj_shard {
    struct nj_counters counters; /* first: aligned, read by other threads */
    struct nj_shard_config cfg;
    struct nj_abuse abuse; /* read by other threads, too */
    struct nj_steer steer;
    struct nj_neigh neigh;
    struct nj_ndp ndp;
    struct nj_frags frags;
    struct nj_tcp tcp;
    struct nj_h2_core *h2;
    struct nj_handlers handlers;

    struct nj_pool conns;    /* struct nj_conn */
    struct nj_shares shares; /* who has how many of these */
    struct nj_pool talks;    /* struct nj_talk, for those that have said something */
    struct nj_list silent[NJ_N_SILENT];
    struct nj_list owing;  /* connections with bytes in the send queue, the longest without an ACK
                              that we heard of first */
    struct nj_list unread; /* ... whose input waits until they take some, longest first */

    nj_ns now;              /* of the step that runs; for callbacks that have no argument for it */
    uint32_t n_tx_left;     /* mbufs in the pool, while connections are served */
    struct nj_conn *eating; /* it is read from, and its output comes next */
    bool pool_low;          /* too few mbufs left to take more output from HTTP/2 in this step */
    bool draining;
    nj_ns goaway_at; /* draining: when the final GOAWAY goes out */
    uint16_t ip_ident;
    struct nj_way way;
    struct nj_rate echo_rate, problem_rate, share_rate;

    struct nj_pool_gauge pool_gauge[NJ_SHARD_POOLS];

    struct nj_txns txns;
    struct nj_list txns_watched;        /* in the order in which they are to be looked at */
    struct nj_shape_shared *own_shared; /* when the configuration has none */
    uint32_t n_talks;
    uint32_t check_at; /* the next connection to ask whether it is still welcome; see policy.c */
    _Atomic(const struct nj_policy *) policy_wanted;
    _Atomic uint64_t policy_version;
    struct nj_stages stages;

    uint32_t txq_head, n_txq;
    struct rte_mbuf *txq[NJ_TXQ_MAX];
};

/* False when memory is refused; nothing is left behind then. */
bool nj_shard_init(struct nj_shard *s, const struct nj_shard_config *config, nj_ns now);
/* Connections end without a word; call nj_shard_abort() and step once to reset them. Handlers that
 * wait are told, and come to their end: fibers are the thread's, so it has to be the one that
 * stepped. To be called before nj_shard_fini(), which any thread may call. */
void nj_shard_leave(struct nj_shard *s);
/* After that: handlers that did not listen, and the name of a route of theirs. Their stacks are
 * left behind, and with nj_shard_fini() what they refer to; what their code refers to has to stay.
 */
uint32_t nj_shard_stuck(const struct nj_shard *s, const char **route);
/* Waits for file jobs and for handlers on workers that are out. */
void nj_shard_fini(struct nj_shard *s);

/* One breath. Returns how much was done; 0 = an idle step. */
uint32_t nj_shard_step(struct nj_shard *s, nj_ns now);

/*
 * Somebody who uses TCP itself, in place of the server: the first member of what tcb->user points
 * at. `news` is called once per step and connection with NJ_TCP_EV_*, within nj_shard_step(); the
 * calls of tcp.h are its to make. Look for NJ_TCP_EV_DEAD first, which may come with others: then
 * the connection has to be released. It may be earlier, and nothing more is heard of it then.
 */
struct nj_conn_user {
    void (*news)(struct nj_shard *s, struct nj_tcb *tcb, uint8_t events, nj_ns now);
};

/* Without new packets, nothing happens before this time: 0 = step again at once. */
nj_ns nj_shard_next(const struct nj_shard *s);

/* Write the gauges where other threads read them. */
void nj_shard_publish(struct nj_shard *s);

/* Another policy, in place of the one of the configuration: the lcore adopts it with its next step,
 * also for what is under way. Any thread, one at a time. The one before may be freed when
 * nj_shard_policy_version() of every shard tells the new version. */
void nj_shard_set_policy(struct nj_shard *s, const struct nj_policy *policy);
uint64_t nj_shard_policy_version(const struct nj_shard *s);

/* Begin to stop: no new connections, GOAWAY on the open ones, their streams are finished. */
void nj_shard_drain(struct nj_shard *s, nj_ns now);
/* Reset what is left. */
void nj_shard_abort(struct nj_shard *s, nj_ns now);
/* Connections, file jobs or packets are still on their way. Not so where a peer has acknowledged
 * all that we said, and just does not close. */
bool nj_shard_busy(const struct nj_shard *s);

#endif
