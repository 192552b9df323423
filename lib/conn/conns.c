/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the connections of a shard, and their parts of its step. The turn of one connection is
 * conn_turn.c; conn_life.c begins and ends it. */
#include "conn/conns.h"

#include <string.h>

#include <rte_prefetch.h>

#include "base/limits.h"
#include "conn/conn.h"
#include "conn/conn_life.h"
#include "conn/conn_proxy.h"
#include "conn/conn_timeouts.h"
#include "conn/conn_tls.h"
#include "conn/request_timeouts.h"
#include "conn/request_trace.h"
#include "conn/send_room.h"
#include "conn/session.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

#define PREFACE_TIMEOUT (10 * NJ_SEC)
#define IDLE_TIMEOUT    (75 * NJ_SEC)

#define PREFETCH_AHEAD 16u   /* connections */
#define FILE_RETRY_NS  NJ_MS /* interval for retrying jobs that wait for memory */

/* --- life ---------------------------------------------------------------------------------- */

/* Memory of all sessions: 32 KiB for each of 65,536 connections. */
#define SESSION_BYTES_MAX ((size_t)2 << 30)

static bool init_sessions(struct nj_conns *cs)
{
    const struct nj_h1_limits h1_limits = {cs->cfg->http->header_bytes_max,
                                           cs->cfg->http->header_fields_max};
    struct nj_h2_limits limits = nj_h2_limits_default;

    nj_alloc_init(&cs->session_memory, SESSION_BYTES_MAX);
    limits.hash_key = cs->tcp->cfg.flow_key;
    limits.window_bytes = NJ_H2_ROUTES_WINDOW_BYTES;
    limits.header_bytes_max = cs->cfg->http->header_bytes_max;
    limits.header_fields_max = cs->cfg->http->header_fields_max;
    cs->h2 = nj_h2_context_new(cs->cfg->routes ? &nj__conn_h2_route_events : &nj__conn_h2_events,
                               &limits, &cs->session_memory, cs->counters);
    explicit_bzero(&limits, sizeof limits); /* it holds a key */
    cs->h1 = nj_h1_context_new(cs->cfg->routes ? &nj__conn_h1_route_events : &nj__conn_h1_events,
                               &h1_limits, &cs->session_memory, cs->counters);
    return cs->h2 && cs->h1;
}

/* One per possible stream while these are few, plus the part that one client has to leave to
 * others. */
static uint32_t txns_max(uint32_t conns_max)
{
    uint64_t streams = (uint64_t)conns_max * nj_h2_limits_default.concurrent_streams_max;
    streams += streams / NJ_CLIENT_SHARE_FACTOR;
    return streams < NJ_TXNS_MAX ? (uint32_t)streams : NJ_TXNS_MAX;
}

/* Few connections may carry many downloads, so streams count as well as connections. */
static uint32_t site_open_max(uint32_t conns_max)
{
    uint32_t txns = txns_max(conns_max), n = txns < NJ_SITE_OPEN_MAX ? txns : NJ_SITE_OPEN_MAX;
    return conns_max > n ? conns_max : n;
}

static bool init_txns(struct nj_conns *cs)
{
    struct nj_txns *set = &cs->txns;

    set->events = &nj__txn_events;
    set->ctx = cs;
    set->now = &cs->now;
    set->counters = cs->counters;
    set->wall_s_at_zero = cs->cfg->wall_s_at_zero;
    set->shard_number = cs->cfg->number;
    set->access = cs->cfg->access;
    set->client_key = cs->cfg->client_key;
    set->options = cs->cfg->http;
    return nj_txns_init(set, txns_max(cs->tcp->cfg.conns_max));
}

static bool init_site(struct nj_conns *cs)
{
    struct nj_file_server_config c = {
        .txns = &cs->txns,
        .files = &cs->cfg->ops.files,
        .hash_key = cs->tcp->cfg.flow_key,
        .exchanges_max = site_open_max(cs->tcp->cfg.conns_max),
        .options = &cs->cfg->http->files,
    };
    cs->site = nj_file_server_new(&c);
    explicit_bzero(&c, sizeof c); /* it holds a key */
    return cs->site != NULL;
}

static void set_defaults(struct nj_conns_config *c)
{
    c->preface_timeout = c->preface_timeout ? c->preface_timeout : PREFACE_TIMEOUT;
    c->idle_timeout = c->idle_timeout ? c->idle_timeout : IDLE_TIMEOUT;
    c->http = c->http ? c->http : &nj_http_options_default;
}

bool nj_conns_init(struct nj_conns *cs, struct nj_conns_config *config, nj_ns now)
{
    uint32_t conns_max = cs->tcp->cfg.conns_max;

    set_defaults(config);
    cs->cfg = config;
    cs->now = now;
    for (uint32_t i = 0; i < NJ_N_CONN_WAITS; i++)
        nj_list_init(&cs->waits_for[i]);
    nj_list_init(&cs->txns_watched);
    nj_list_init(&cs->unacked);
    nj_list_init(&cs->tx_waiting);
    nj_list_init(&cs->admission.waiting_clients);
    cs->n_tx_reserve = nj__tx_mbufs_reserve(cs->tcp->cfg.mp);
    return nj_pool_init(&cs->pool, sizeof(struct nj_conn), conns_max) &&
           nj_pool_init(&cs->active_pool, sizeof(struct nj_conn_active), conns_max) &&
           nj__conn_proxy_init(cs) && nj__tls_init(cs) && init_txns(cs) && init_sessions(cs) &&
           init_site(cs) && nj__handlers_init(cs, now) && nj__policy_init(cs, now) &&
           nj__conn_shares_init(cs) && nj_held_shares_init(&cs->held_mbufs) &&
           nj_held_shares_init(&cs->held_memory) && nj_held_shares_init(&cs->held_output);
}

void nj_conns_end(struct nj_conns *cs)
{
    if (cs->pool.mem) {
        nj_tcp_abort_all(cs->tcp, cs->now);
        nj_conns_process(cs, cs->now);
    }
    nj__handlers_cancel_waiting(cs);
    cs->trace = NULL; /* its owner may release it */
}

void nj_conns_fini(struct nj_conns *cs)
{
    nj_conns_end(cs);
    nj__handlers_fini(cs);
    while (cs->site && nj_file_server_jobs_in_flight(cs->site) > 0)
        nj_conns_complete_file_jobs(cs, cs->now); /* workers will return them */
    nj__tls_fini(cs);
    nj__conn_proxy_fini(cs);
    if (cs->site)
        nj_file_server_free(cs->site);
    if (cs->h2)
        nj_h2_context_free(cs->h2);
    if (cs->h1)
        nj_h1_context_free(cs->h1);
    nj_alloc_fini(&cs->session_memory);
    nj_pool_fini(&cs->pool);
    nj__conn_shares_fini(cs);
    nj_held_shares_fini(&cs->held_mbufs);
    nj_held_shares_fini(&cs->held_memory);
    nj_held_shares_fini(&cs->held_output);
    nj_pool_fini(&cs->active_pool);
    nj__policy_fini(cs);
    nj_txns_fini(&cs->txns);
}

void nj_conns_publish(struct nj_conns *cs)
{
    struct nj_counters *c = cs->counters;

    nj_gauge_set(c, NJ_C_tls_handshakes_open, nj__tls_n_handshakes(cs));
    nj_gauge_set(c, NJ_C_h2_connections, nj_h2_context_n_conns(cs->h2));
    nj_gauge_set(c, NJ_C_h1_connections, nj_h1_context_n_conns(cs->h1));
    nj_gauge_set(c, NJ_C_h2_bytes, nj_h2_context_bytes_used(cs->h2));
    nj_gauge_set(c, NJ_C_rx_held, cs->held_mbufs.n_held);
    nj_gauge_set(c, NJ_C_file_jobs, nj_file_server_jobs_in_flight(cs->site));
    nj_shape_publish(cs->txns.shape);
    nj__handlers_publish(cs);
}

bool nj_conns_have_unfinished_work(const struct nj_conns *cs)
{
    return nj_file_server_jobs_in_flight(cs->site) > 0 || nj__tls_n_handshakes(cs) > 0 ||
           nj__handlers_busy(cs);
}

/* --- events of TCP ------------------------------------------------------------------------- */

/* A newly opened connection becomes the server's. Returns false if it was refused. */
static bool admit_conn(struct nj_conns *cs, struct nj_tcb *tcb, nj_ns now)
{
    struct nj_conn *c = nj__conn_new(cs, tcb, now);

    if (!c) /* all are in use (as many as there are TCBs) */
        return true;
    c->user.on_events = nj__conn_process;
    if (!nj__policy_admit_conn(c) || !nj__conn_proxy_admit(c)) {
        nj__conn_reset(c, now);
        return false;
    }
    if (nj_likely(c->user.on_events == nj__conn_process)) /* else its client is not known yet */
        nj__conn_shares_request_room(c);
    return true;
}

/* Delivers events to the user of the connection. */
static void dispatch_events(struct nj_conns *cs, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    if (!tcb->user && !(events & NJ_TCP_EV_DEAD) && !admit_conn(cs, tcb, now))
        return;
    const struct nj_conn_user *user = tcb->user;
    if (user)
        user->on_events(cs, tcb, events, now);
    else /* it ended before it was used, or is one too many */
        nj_tcp_release(cs->tcp, tcb, now);
}

/* Like nj_tcp_prefetch_tcb_refs(), for the data above TCP of the next few connections of the batch.
 */
static void prefetch(const struct nj_conns *cs, const struct nj_list *batch)
{
    const struct nj_conn *conn[PREFETCH_AHEAD];
    uint32_t n = 0, n_seen = 0;

    for (const struct nj_list *at = batch->next; at != batch && n_seen++ < PREFETCH_AHEAD;
         at = at->next) {
        const struct nj_conn_user *user = nj_tcp_ready_node_tcb(at)->user;
        if (!user || user->on_events != nj__conn_process)
            continue;
        conn[n] = nj_container_of(user, const struct nj_conn, user);
        const struct nj_conn_active *active = conn[n++]->active;
        if (!active)
            continue;
        rte_prefetch0(active);
        rte_prefetch0((const uint8_t *)active + NJ_CACHE_LINE);
    }
    for (uint32_t i = 0; i < n; i++)
        nj__session_prefetch(conn[i]);
    if (nj_unlikely(cs->tls))
        nj__conn_tls_prefetch(conn, n);
}

uint32_t nj_conns_process(struct nj_conns *cs, nj_ns now)
{
    struct nj_list batch;
    struct nj_tcb *t;
    uint8_t events;
    uint32_t n_processed = 0;

    if (nj_unlikely(cs->tls))
        nj__tls_collect_handshakes(cs);
    nj_list_init(&batch);
    nj__pressure_wake_waiting(cs);
    nj_tcp_take_ready_batch(cs->tcp, &batch);
    if (!nj_list_empty(&batch))
        cs->n_tx_mbufs_left = nj__tx_mbufs_left(cs);
    for (;;) {
        if (n_processed % PREFETCH_AHEAD == 0 && batch.next != batch.prev) /* two or above */
            prefetch(cs, &batch);
        t = nj_tcp_next_ready(&batch, &events);
        if (!t)
            break;
        cs->tx_short = cs->n_tx_mbufs_left < cs->n_tx_reserve;
        dispatch_events(cs, t, events, now);
        n_processed++;
    }
    if (cs->n_tx_mbufs_left < cs->n_tx_reserve)
        cs->n_tx_mbufs_left =
            nj__tx_mbufs_left(cs); /* without a batch it is that of another step */
    if (cs->n_tx_mbufs_left < cs->n_tx_reserve)
        nj__pressure_reset_unacking(cs, now);
    nj__handlers_wake_workers(cs);
    if (nj_unlikely(cs->tls))
        nj__tls_wake_workers(cs);
    return n_processed;
}

/* --- timers and results of workers --------------------------------------------------------- */

/* When is the first connection or request due? */
static nj_ns first_due_at(const struct nj_conns *cs)
{
    return nj_min_u64(nj__conn_timeouts_first_at(cs), nj__request_checks_first_at(cs));
}

static uint32_t run_timeouts(struct nj_conns *cs, nj_ns now)
{
    struct nj_conn *c;

    if (nj_likely(now < cs->timeouts_at))
        return 0;
    uint32_t n = nj__check_requests(cs, now);
    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++) {
        uint32_t n_seen = 0;
        while ((c = nj__conn_next_expired(cs, i, &n_seen, now)))
            nj__conn_expire(c, now);
        n += n_seen;
    }
    cs->timeouts_at = first_due_at(cs);
    if (nj_unlikely(cs->trace))
        cs->timeouts_at = nj_min_u64(cs->timeouts_at, nj__trace_sample(cs, now));
    return n;
}

/* Evicts one connection per request. */
static uint32_t evict_conns(struct nj_conns *cs, nj_ns now)
{
    struct nj_conn *c;
    uint32_t n = 0;

    if (nj_likely(cs->shares.n_to_evict == 0))
        return 0;
    bool gently = !nj_tcp_is_nearly_full(cs->tcp);

    for (; (c = nj__conn_shares_next_victim(cs, gently)); n++) {
        nj__abuse_record(cs, NJ_C_conn_evicted, nj__conn_remote(c));
        if (gently && c->state != NJ_CONN_LINGER)
            nj__conn_close(c, now);
        else
            nj__conn_reset(c, now);
    }
    return n;
}

uint32_t nj_conns_tick(struct nj_conns *cs, nj_ns now)
{
    uint32_t n = nj__pressure_reset_holders(cs, now);

    n += run_timeouts(cs, now);
    n += nj__conn_shares_count(cs);
    n += evict_conns(cs, now);
    return n + nj__drain_tick(cs, now);
}

/* A connection that was due behind the first of its list may have become the first: see
 * end_ack_wait() in conn_timeouts.c. */
nj_ns nj_conns_next_at(const struct nj_conns *cs)
{
    nj_ns timeouts = nj_max_u64(first_due_at(cs), cs->timeouts_at);
    nj_ns next = nj_min_u64(timeouts, nj__pressure_next_at(cs));

    if (cs->trace)
        next = nj_min_u64(next, nj__trace_next_at(cs->trace));
    if (nj__conn_shares_has_work(cs))
        return 0;
    return cs->draining ? nj_min_u64(cs->goaway_at, next) : next;
}

uint32_t nj_conns_complete_file_jobs(struct nj_conns *cs, nj_ns now)
{
    struct nj_file_job *job[NJ_BURST_MAX];
    const struct nj_file_ops *files = &cs->cfg->ops.files;
    uint32_t n = files->poll ? files->poll(files->ctx, job, NJ_BURST_MAX) : 0;

    for (uint32_t i = 0; i < n; i++)
        nj_file_server_job_done(cs->site, job[i], now);
    if (files->poll)
        nj_file_server_retry_reads(cs->site);
    return n;
}

/* Workers wake the lcore when they finish, so no time is due. Only released memory is not reported
 * and has to be polled. */
nj_ns nj_conns_file_jobs_next_at(const struct nj_conns *cs)
{
    const struct nj_file_ops *files = &cs->cfg->ops.files;
    bool kept = files->needs_polling && files->needs_polling(files->ctx);
    return kept || (cs->site && nj_file_server_has_refused_reads(cs->site))
               ? cs->now + FILE_RETRY_NS
               : NJ_NEVER;
}

uint32_t nj_conns_run_handlers(struct nj_conns *cs, nj_ns now)
{
    if (!cs->handlers.exchanges)
        return 0;
    uint32_t n = nj__handlers_run_due(cs, now);
    if (cs->handlers.ewyk)
        n += nj__admission_serve_queue(cs, now);
    return n + nj__handlers_deliver_responses(cs, now);
}

nj_ns nj_conns_handlers_next_at(const struct nj_conns *cs)
{
    return nj_min_u64(nj__handlers_next_at(cs), nj__admission_next_at(cs));
}
