/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of one shard: a machine between TCP, whose events it takes, and HTTP/2, HTTP/1
 * and the transactions above, whose responses it sends.
 *
 * Time is an argument, and the environment a struct nj_conns_ops. TCP, counters and stages belong
 * to the caller. All calls belong to the shard's lcore unless stated otherwise.
 */
#pragma once

#include "base/command_ring.h"
#include "base/held_shares.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/size_class_alloc.h"
#include "base/types.h"
#include "conn/abuse_reason_counts.h"
#include "conn/conn_fair_eviction.h"
#include "conn/fiber_admission.h"
#include "conn/handler_tasks.h"
#include "h1/h1.h"
#include "h2/h2.h"
#include "http/files/file_server.h"
#include "http/http_options.h"
#include "http/transaction.h"
#include "sched/worker_ops.h"
#include "shape/shaper.h"
#include "tcp/tcp.h"
#include "telem/count.h"
#include "telem/histogram.h"
#include "telem/stage_cycles.h"

/* What connections need from their environment. The lcore calls these functions; none blocks. */
struct nj_conns_ops {
    struct nj_file_ops files;
    /* Worker threads for blocking handlers. submit NULL: there are none. */
    struct nj_worker_ops workers;
    /* Worker threads for handshakes of TLS. */
    struct nj_worker_ops tls_workers;
    /* For handlers that wait for descriptors, or for events of other threads. May be zeroed. */
    struct nj_wait_ops waits;
    /* Time within a step, to measure handlers. NULL: not measured. */
    nj_ns (*clock)(void *clock_ctx);
    void *clock_ctx;
    /* Time stamp counter, to measure stages of a step (telem/stage_cycles.h). NULL: not measured.
     */
    uint64_t (*cycles)(void);
    /* Writes a line to the log. May be NULL. */
    void (*log)(void *log_ctx, const char *line);
    void *log_ctx;
};

struct nj_conns_config {
    uint32_t number; /* of the shard, among all of the process, for logs */
    struct nj_conns_ops ops;
    struct nj_tls_current_context *tls; /* the same for all shards; NULL: no TLS */
    nj_ns preface_timeout;              /* from the handshake to the whole preface; 0: 10 s */
    nj_ns idle_timeout;                 /* without an open stream; 0: 75 s */
    int64_t wall_s_at_zero;
    const struct nj_routes *routes; /* NULL: none, only files */
    uint32_t fibers_max;            /* handlers that can wait at once; 0: 256 */
    uint32_t handlers_queue_max;    /* requests queued for a fiber; 0: NJ_HANDLERS_QUEUE_MAX */
    uint32_t round_tasks; /* tasks of a connection that begin in a step; 0: NJ_ROUND_TASKS */
    enum nj_run strategy;

    const struct nj_http_options *http; /* NULL: the defaults */
    struct nj_shape_shared *shape;      /* the same for all shards; NULL: no limits */
    const struct nj_policy *policy;     /* NULL: nj_policy_none. See nj_conns_set_policy() */
    struct nj_hash_key client_key;      /* the same for all shards: keys of clients */
    struct nj_access_ops access;        /* take NULL: no access log */
};

/* The event that a connection waits for. Each has its own timeout. */
enum nj_conn_wait {
    NJ_CONN_WAIT_PREFACE, /* the first bytes of the peer */
    NJ_CONN_WAIT_IDLE,    /* a request */
    NJ_CONN_WAIT_ACK,     /* a request; the ACK of the last response is expected and not reported */
    NJ_CONN_WAIT_FRAME,   /* the end of a frame or header block, without open streams */
    NJ_CONN_WAIT_PROGRESS, /* progress: the peer reads responses or sends requests */
    NJ_CONN_WAIT_FIN,      /* the peer's FIN; all else is acknowledged */
    NJ_CONN_WAIT_LATE_FIN, /* the same, of a peer that still sent something */
    NJ_N_CONN_WAITS
};

struct nj_conns_tls;

/* A client that a proxy has named for a whole connection. */
struct nj_conn_source {
    struct nj_addr addr;
    uint16_t port;
};

struct nj_conns {
    struct nj_conns_config *cfg;
    struct nj_tcp *tcp;
    struct nj_counters *counters;
    struct nj_stages *stages;
    nj_ns now; /* time of the current step, for callbacks without an argument for it */
    struct nj_conn *processing; /* connection whose input is being read; its output comes next */
    uint32_t n_tx_mbufs_left;   /* mbufs left in the pool, while connections are served */
    uint32_t n_tx_reserve;      /* of the pool: see NJ_TX_POOL_RESERVE */
    bool tx_short;              /* less than the reserve is left */
    bool draining;
    bool yields; /* draining: another process accepts connections in our place */

    struct nj_pool pool;        /* struct nj_conn */
    struct nj_pool active_pool; /* struct nj_conn_active: connections that have received bytes */
    uint32_t n_spoke; /* connections that have received bytes, since the start; modulo 2^32 */
    struct nj_alloc session_memory;
    struct nj_h2_context *h2;
    struct nj_h1_context *h1;
    struct nj_conns_tls *tls;       /* NULL: no TLS */
    struct nj_conn_source *proxied; /* by the index of struct nj_conn; NULL: no PROXY headers */
    struct nj_conn_shares shares;   /* connections per client */

    struct nj_list waits_for[NJ_N_CONN_WAITS];
    struct nj_list txns_watched; /* in the order of their next check */
    nj_ns timeouts_at;           /* nobody looks at waits_for and txns_watched before */

    struct nj_list unacked;    /* connections with a non-empty send queue, least recent ACK first */
    struct nj_list tx_waiting; /* connections that wait for mbufs to send, in turn */
    struct nj_held_shares held_mbufs;  /* received mbufs that connections hold, by client */
    struct nj_held_shares held_memory; /* KiB of buffers of sessions */
    struct nj_held_shares held_output; /* mbufs of send queues, while they are short */

    nj_ns goaway_at;           /* draining: time of the final GOAWAY */
    nj_ns goaway_wait_ends_at; /* from then on also to peers that have not acknowledged a PING */

    struct nj_txns txns;
    struct nj_file_server *site;
    struct nj_handlers handlers;
    struct nj_admission admission;      /* of handlers to fibers */
    struct nj_shape_shared *own_shared; /* when the configuration has none */
    /* Next connection, and next request, to check against a new policy; UINT32_MAX: none. */
    uint32_t recheck_at, recheck_txn_at;
    _Atomic(const struct nj_policy *) policy_wanted;
    _Atomic uint64_t policy_version;
    struct nj_command_ring commands; /* of management; their target is this struct */
    struct nj_trace *trace;          /* request_trace.h; NULL: none */

    struct nj_abuse abuse; /* other threads read it */
    /* Of TLS handshakes: cycles of the lcore per step with any, CPU time of a worker per flight,
     * and the time from the first bytes of the client to the end of those that succeed. */
    struct nj_histogram tls_step_cycles, tls_task_ns, tls_handshake_ns;
};

/*
 * The user of a connection of TCP: the first member of the object at tcb->user. The server's
 * connections are one; a client that shares the shard's TCP is another.
 *
 * `on_events` is called once per step and connection with NJ_TCP_EV_*, within nj_conns_process(),
 * and may call tcp.h. NJ_TCP_EV_DEAD may come with other events and has to be checked first: the
 * connection must be released then. It may be released earlier; no further events are delivered
 * then.
 */
struct nj_conn_user {
    void (*on_events)(struct nj_conns *cs, struct nj_tcb *tcb, uint8_t events, nj_ns now);
};

/* *cs is zeroed, which nj_conns_fini() accepts, too. Its `tcp`, `counters` and `stages` are set,
 * and TCP has been initialised and listens. `config` stays where it is until nj_conns_fini(), and
 * its timeouts of 0 are replaced by their defaults. Returns false when memory is refused;
 * nj_conns_fini() releases the rest. */
bool nj_conns_init(struct nj_conns *cs, struct nj_conns_config *config, nj_ns now);
/* Aborts connections without sending RST (for RST call nj_tcp_abort_all() and step once first) and
 * cancels handlers that wait. Has to be called by the thread that called nj_conns_process(), as
 * fibers belong to it. Precedes nj_conns_fini(), which any thread may call. */
void nj_conns_end(struct nj_conns *cs);
/* After nj_conns_end(): the number of handlers that did not return, and the route of one of them.
 * Their stacks are leaked, and after nj_conns_fini() the objects they refer to. Their code must
 * stay loaded. */
uint32_t nj_conns_stuck_fibers(const struct nj_conns *cs, const char **route);
/* Waits for file jobs and for handlers and handshakes that run on workers. */
void nj_conns_fini(struct nj_conns *cs);

/* A step begins: before any packet of it is given to TCP. */
static inline void nj_conns_begin_step(struct nj_conns *cs, nj_ns now)
{
    cs->now = now;
}

/*
 * The parts of a step, in this order. Each returns the amount of work.
 *
 * Timeouts of connections and requests, resets and evictions while mbufs, memory or connections are
 * short, and GOAWAYs that are due; then results of file jobs; then handlers that waited, requests
 * that wait for a fiber, tasks that workers finished, and responses of all of them; then a new
 * policy, commands of management, and responses that have credit.
 */
uint32_t nj_conns_tick(struct nj_conns *cs, nj_ns now);
uint32_t nj_conns_complete_file_jobs(struct nj_conns *cs, nj_ns now);
uint32_t nj_conns_run_handlers(struct nj_conns *cs, nj_ns now);
uint32_t nj_conns_adopt_policy_and_run_shaper(struct nj_conns *cs, nj_ns now);
/* Gives each connection with events a turn: input, requests, output. Returns how many. */
uint32_t nj_conns_process(struct nj_conns *cs, nj_ns now);

/* Nothing of that part is due before this time. 0: at once. */
nj_ns nj_conns_next_at(const struct nj_conns *cs);
nj_ns nj_conns_file_jobs_next_at(const struct nj_conns *cs);
nj_ns nj_conns_handlers_next_at(const struct nj_conns *cs);
nj_ns nj_conns_policy_next_at(const struct nj_conns *cs);

/* For struct nj_tcp_config: may this peer connect? */
enum nj_tcp_accept nj_conns_accept_filter(struct nj_conns *cs, const struct nj_addr *remote);
/* For struct nj_tcp_config: may a connection be evicted in favour of this peer? If `proven`, one is
 * evicted in this step. */
bool nj_conns_request_room(struct nj_conns *cs, const struct nj_addr *remote, bool proven);

/* Stores the gauges that other threads read. */
void nj_conns_publish(struct nj_conns *cs);
/* Are file jobs, handshakes or handlers unfinished? */
bool nj_conns_have_unfinished_work(const struct nj_conns *cs);

/* Replaces the policy. The lcore adopts it in its next step, for responses in progress as well. Any
 * thread, one call at a time. The previous policy may be freed when nj_conns_policy_version() of
 * all shards returns the new version. */
void nj_conns_set_policy(struct nj_conns *cs, const struct nj_policy *policy);
uint64_t nj_conns_policy_version(const struct nj_conns *cs);

/* Starts a graceful shutdown: no new connections; open ones get GOAWAY and finish their streams. */
void nj_conns_drain(struct nj_conns *cs, nj_ns now);
/* Another process accepts connections in our place: sends GOAWAY on all; or no longer. */
void nj_conns_yield(struct nj_conns *cs, bool yields, nj_ns now);
