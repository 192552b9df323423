/* SPDX-License-Identifier: BSD-3-Clause */
/* Life cycle of a shard: creation, gauges, shutdown. The datapath is shard_step.c. */
#include "shard/shard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "conn/conn_tls.h"
#include "shard/shard_conn_internal.h"
#include "tcp/cc/congestion.h"

#define PREFACE_TIMEOUT (10 * NJ_SEC)
#define IDLE_TIMEOUT    (75 * NJ_SEC)
#define HEADER_TIMEOUT  (10 * NJ_SEC)
#define BODY_TIMEOUT    (60 * NJ_SEC)
#define SEND_TIMEOUT    (60 * NJ_SEC)

static bool init_tcp(struct nj_shard *s, nj_ns now)
{
    struct nj_tcp_config c = {
        .mp = s->cfg.tx_pool,
        .counters = &s->counters,
        .flow_key = s->cfg.flow_key,
        .isn_key = s->cfg.isn_key,
        .seed = s->cfg.seed,
        .conns_max = s->cfg.conns_max,
        .half_open_max = s->cfg.half_open_max,
        .held_max = s->cfg.held_max,
        .mtu = s->cfg.iface.mtu,
        .tx = s->cfg.tx,
        .time_wait = s->cfg.time_wait,
        .cc = s->cfg.newreno ? &nj_cc_newreno : &nj_cc_cubic,
        .ecn = s->cfg.ecn,
        .accept_filter = nj__policy_accept_filter,
        .can_evict_for = nj__conn_shares_request_room,
        .is_for_peer_process = nj__port_is_for_peer,
        .emit = nj__net_enqueue_tcp_segment,
        .room = nj__net_tx_room,
        .ctx = s,
    };
    bool ok = nj_tcp_init(&s->tcp, &c, now) && nj_tcp_listen(&s->tcp, s->cfg.listen_port);
    explicit_bzero(&c, sizeof c); /* it holds keys */
    return ok;
}

static bool init_h2(struct nj_shard *s)
{
    struct nj_h2_limits limits = nj_h2_limits_default;

    limits.hash_key = s->cfg.flow_key;
    limits.window_bytes = NJ_H2_ROUTES_WINDOW_BYTES;
    if (s->cfg.header_bytes_max)
        limits.header_bytes_max = s->cfg.header_bytes_max;
    if (s->cfg.header_fields_max)
        limits.header_fields_max = s->cfg.header_fields_max;
    s->h2 = nj_h2_context_new(s->cfg.routes ? &nj__conn_h2_route_events : &nj__conn_h2_events,
                              &limits, &s->counters);
    explicit_bzero(&limits, sizeof limits); /* it holds a key */
    return s->h2 != NULL;
}

/* One per possible stream while these are few, plus the part that one client has to leave to
 * others. */
static uint32_t txns_max(const struct nj_shard_config *c)
{
    uint64_t streams = (uint64_t)c->conns_max * nj_h2_limits_default.concurrent_streams_max;
    streams += streams / NJ_CLIENT_SHARE_FACTOR;
    return streams < NJ_TXNS_MAX ? (uint32_t)streams : NJ_TXNS_MAX;
}

/* Few connections may carry many downloads, so streams count as well as connections. */
static uint32_t site_open_max(const struct nj_shard_config *c)
{
    uint32_t txns = txns_max(c), n = txns < NJ_SITE_OPEN_MAX ? txns : NJ_SITE_OPEN_MAX;
    return c->conns_max > n ? c->conns_max : n;
}

static bool init_txns(struct nj_shard *s)
{
    struct nj_txns *set = &s->txns;

    set->events = &nj__txn_events;
    set->shard = s;
    set->now = &s->now;
    set->counters = &s->counters;
    set->wall_s_at_zero = s->cfg.wall_s_at_zero;
    set->shard_number = s->cfg.number;
    set->access = s->cfg.access;
    set->client_key = s->cfg.client_key;
    set->body_max = s->cfg.body_max;
    set->no_files = s->cfg.no_files;
    return nj_txns_init(set, txns_max(&s->cfg));
}

static bool init_site(struct nj_shard *s)
{
    struct nj_file_server_config c = {
        .txns = &s->txns,
        .files = &s->cfg.ops.files,
        .hash_key = s->cfg.flow_key,
        .exchanges_max = site_open_max(&s->cfg),
        .options = s->cfg.site,
    };
    s->txns.site = nj_file_server_new(&c);
    explicit_bzero(&c, sizeof c); /* it holds a key */
    return s->txns.site != NULL;
}

static void neighbour_lost(void *shard, const struct nj_addr *ip, bool is_silent, nj_ns now)
{
    struct nj_shard *s = shard;
    nj_nd_host_replace_lost_router(&s->ndp, ip, is_silent, now);
}

static void log_address_conflict(void *shard, const struct nj_addr *ip,
                                 const struct rte_ether_addr *mac)
{
    const struct nj_shard *s = shard;
    char line[160], addr[INET6_ADDRSTRLEN], where[RTE_ETHER_ADDR_FMT_SIZE] = "unknown";
    bool v4 = nj_addr_is_v4(ip);

    if (!s->cfg.ops.log)
        return;
    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &ip->b[12] : ip->b, addr, sizeof addr);
    if (mac)
        rte_ether_format_addr(where, sizeof where, mac);
    snprintf(line, sizeof line,
             "address %s: another host on the link uses it, too (MAC address %s); "
             "give one of the two another address",
             addr, where);
    s->cfg.ops.log(s->cfg.ops.log_ctx, line);
}

static void init_neigh(struct nj_shard *s, nj_ns now)
{
    struct nj_nd_host_config c = {
        .sends_unsolicited = s->cfg.index == 0,
        .slaac = s->cfg.slaac,
        .no_dad = s->cfg.no_dad,
        .key = s->cfg.ndp_key,
    };
    nj_neigh_init(&s->neigh, &s->cfg.iface, s->cfg.tx_pool, &s->counters, nj__net_enqueue, s);
    s->neigh.lost = neighbour_lost;
    s->neigh.conflict = log_address_conflict;
    nj_nd_host_init(&s->ndp, &c, &s->cfg.iface, &s->neigh, now);
    explicit_bzero(&c, sizeof c); /* it holds a key */
}

static void default_timeouts(struct nj_shard_config *c)
{
    c->preface_timeout = c->preface_timeout ? c->preface_timeout : PREFACE_TIMEOUT;
    c->idle_timeout = c->idle_timeout ? c->idle_timeout : IDLE_TIMEOUT;
    c->header_timeout = c->header_timeout ? c->header_timeout : HEADER_TIMEOUT;
    c->body_timeout = c->body_timeout ? c->body_timeout : BODY_TIMEOUT;
    c->send_timeout = c->send_timeout ? c->send_timeout : SEND_TIMEOUT;
}

bool nj_shard_init(struct nj_shard *s, const struct nj_shard_config *config, nj_ns now)
{
    memset(s, 0, sizeof *s);
    s->cfg = *config;
    default_timeouts(&s->cfg);
    s->stages.cycles = config->ops.cycles;
    s->rx_alone = config->ops.rx;
    s->now = now;
    for (uint32_t i = 0; i < NJ_N_CONN_WAITS; i++)
        nj_list_init(&s->waits_for[i]);
    nj_list_init(&s->txns_watched);
    nj_list_init(&s->unacked);
    nj_list_init(&s->tx_waiting);
    s->n_tx_reserve = nj__pressure_tx_reserve(config->tx_pool);
    nj_steer_init(&s->steer, &config->rss_key, config->steering, config->index, config->n_shards,
                  config->reta_size);
    init_neigh(s, now);
    nj_ip4_reasm_init(&s->frags, config->frag_table, &s->counters);
    if (init_tcp(s, now) && nj_pool_init(&s->conns, nj__conn_bytes(), config->conns_max) &&
        nj_pool_init(&s->active_conns, nj__conn_active_bytes(), config->conns_max) &&
        nj__tls_init(s) && init_txns(s) && init_h2(s) && init_site(s) &&
        nj__handlers_init(s, now) && nj__policy_init(s, now) && nj__conn_shares_init(s) &&
        nj_held_shares_init(&s->held_mbufs) && nj_held_shares_init(&s->held_memory) &&
        nj_held_shares_init(&s->held_output)) {
        if (config->index == 0)
            nj_neigh_send_gratuitous_arp(&s->neigh);
        return true;
    }
    nj_shard_fini(s);
    return false;
}

void nj_shard_end_conns_and_handlers(struct nj_shard *s)
{
    if (s->conns.mem) {
        nj_tcp_abort_all(&s->tcp, s->now);
        nj__conns_process(s, s->now);
    }
    nj__handlers_cancel_waiting(s);
}

void nj_shard_fini(struct nj_shard *s)
{
    nj_shard_end_conns_and_handlers(s);
    nj__handlers_fini(s);
    while (s->txns.site && nj_file_server_jobs_in_flight(s->txns.site) > 0)
        nj__files_complete_jobs(s, s->now); /* workers will return them */
    nj__tls_fini(s);
    if (s->txns.site)
        nj_file_server_free(s->txns.site);
    if (s->h2)
        nj_h2_context_free(s->h2);
    nj_pool_fini(&s->conns);
    nj__conn_shares_fini(s);
    nj_held_shares_fini(&s->held_mbufs);
    nj_held_shares_fini(&s->held_memory);
    nj_held_shares_fini(&s->held_output);
    nj_pool_fini(&s->active_conns);
    nj__policy_fini(s);
    nj_txns_fini(&s->txns);
    nj_tcp_fini(&s->tcp);
    nj_neigh_fini(&s->neigh);
    for (; s->n_txq > 0; s->n_txq--) {
        rte_pktmbuf_free(s->txq[s->txq_head]);
        s->txq_head = (s->txq_head + 1) % NJ_TXQ_MAX;
        nj_count(&s->counters, NJ_C_drop_tx_down);
    }
}

void nj_shard_publish(struct nj_shard *s)
{
    struct nj_counters *c = &s->counters;

    nj_gauge_set(c, NJ_C_connections, nj_tcp_conns(&s->tcp));
    nj_gauge_set(c, NJ_C_time_wait, s->tcp.n_time_wait);
    nj_gauge_set(c, NJ_C_tls_handshakes_open, nj__tls_n_handshakes(s));
    nj_gauge_set(c, NJ_C_h2_connections, nj_h2_context_n_conns(s->h2));
    nj_gauge_set(c, NJ_C_h2_bytes, nj_h2_context_bytes_used(s->h2));
    nj_gauge_set(c, NJ_C_file_jobs, nj_file_server_jobs_in_flight(s->txns.site));
    nj_gauge_set(c, NJ_C_tx_queued, s->n_txq);
    nj_gauge_set(c, NJ_C_tx_mbufs_ready, s->tcp.n_mbuf_cache);
    nj_shape_publish(s->txns.shape);
    nj__handlers_publish(s);
    nj__pools_publish(s);
}

void nj_shard_abort(struct nj_shard *s, nj_ns now)
{
    nj_tcp_abort_all(&s->tcp, now);
}

bool nj_shard_has_unfinished_work(const struct nj_shard *s)
{
    return nj_tcp_conns_less_fin2_orphans(&s->tcp) > 0 ||
           nj_file_server_jobs_in_flight(s->txns.site) > 0 || s->n_txq > 0 ||
           nj__tls_n_handshakes(s) > 0 || nj__handlers_busy(s) ||
           (s->role == NJ_PORT_YIELDS && nj_tcp_expects_handshakes(&s->tcp, s->now));
}
