/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariants at the end of a run: every packet is counted, and everything is released. */
#include "base/assert.h"
#include "sim.h"
#include "support/mbuf_env.h"
#include "telem/counters.h"

static uint64_t waiting_for_arp(const struct nj_neigh *n)
{
    uint64_t waiting = 0;
    for (uint32_t i = 0; i < NJ_NEIGH_MAX; i++)
        if (n->entry[i].state != NJ_NEIGH_FREE)
            waiting += n->entry[i].n_pending;
    return waiting;
}

void nj_sim_check_sums(struct sim *sim, const struct nj_shard *s)
{
    const struct nj_counters *c = &s->counters;
    uint64_t rx_in = nj_counters_sum_of_kind(c, NJ_KIND_RX_IN);
    uint64_t rx_done =
        nj_counters_sum_of_kind(c, NJ_KIND_RX_OUT) + nj_counters_sum_of_kind(c, NJ_KIND_RX_DROP);
    uint64_t tx_in = nj_counters_sum_of_kind(c, NJ_KIND_TX_IN);
    uint64_t tx_done =
        nj_counters_sum_of_kind(c, NJ_KIND_TX_OUT) + nj_counters_sum_of_kind(c, NJ_KIND_TX_DROP);
    uint64_t tx_waits = s->n_txq + waiting_for_arp(&s->neigh);

    if (rx_in != rx_done)
        nj_sim_fail(sim, "shard %u: %lu packets came, %lu are accounted for", s->cfg.index,
                    (unsigned long)rx_in, (unsigned long)rx_done);
    if (tx_in != tx_done + tx_waits)
        nj_sim_fail(sim, "shard %u: %lu packets made, %lu sent or dropped, %lu wait", s->cfg.index,
                    (unsigned long)tx_in, (unsigned long)tx_done, (unsigned long)tx_waits);
}

/* Only the link creates malformed packets. */
static void check_malformed(struct sim *sim, const struct nj_counters *c, const char *who)
{
    static const nj_counter malformed[] = {
        NJ_C_drop_eth_short,   NJ_C_drop_eth_dst,      NJ_C_drop_eth_type,    NJ_C_drop_arp_bad,
        NJ_C_drop_ip_header,   NJ_C_drop_ip_checksum,  NJ_C_drop_ip_dst,      NJ_C_drop_ip_src,
        NJ_C_drop_ip_fragment, NJ_C_drop_ip_protocol,  NJ_C_drop_icmp_bad,    NJ_C_drop_icmp_type,
        NJ_C_drop_tcp_header,  NJ_C_drop_tcp_checksum, NJ_C_drop_tcp_options,
    };
    uint64_t n = 0;

    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        n += nj_counter_read(c, malformed[i]);
    if (n > sim->link.stats.corrupted)
        nj_sim_fail(sim, "%s: %lu malformed packets, %lu were damaged", who, (unsigned long)n,
                    (unsigned long)sim->link.stats.corrupted);
}

static void check_shard(struct sim *sim, struct nj_shard *s)
{
    uint32_t i = s->cfg.index;

    check_malformed(sim, &s->counters, "server");
    if (s->conns.pool.n_used != 0 || s->tcp.tcbs.n_used != 0)
        nj_sim_fail(sim, "shard %u: %u connections and %u control blocks are left", i,
                    s->conns.pool.n_used, s->tcp.tcbs.n_used);
    if (nj_h2_context_n_conns(s->conns.h2) != 0 || nj_h2_context_bytes_used(s->conns.h2) != 0)
        nj_sim_fail(sim, "shard %u: HTTP/2 holds %u sessions, %zu bytes", i,
                    nj_h2_context_n_conns(s->conns.h2), nj_h2_context_bytes_used(s->conns.h2));
    if (nj_h1_context_n_conns(s->conns.h1) != 0)
        nj_sim_fail(sim, "shard %u: HTTP/1 holds %u connections", i,
                    nj_h1_context_n_conns(s->conns.h1));
    if (s->tcp.syns.n_used != 0 || s->tcp.time_waits.n_used != 0)
        nj_sim_fail(sim, "shard %u: %u half-open and %u waiting connections are left", i,
                    s->tcp.syns.n_used, s->tcp.time_waits.n_used);
    if (s->tcp.n_half_open != 0 || s->conns.active_pool.n_used != 0 || s->tcp.wheel.n_timers != 0)
        nj_sim_fail(sim, "shard %u: %u half-open, %u that spoke, %u timers are left", i,
                    s->tcp.n_half_open, s->conns.active_pool.n_used, s->tcp.wheel.n_timers);
}

/* No request is open, so no credit is held or awaited. */
static void check_requests(struct sim *sim, struct nj_shard *s)
{
    nj_shard_publish(s); /* the last response may have ended after the last run */
    if (s->conns.txns.pool.n_used != 0 || !nj_list_empty(&s->conns.txns_watched))
        nj_sim_fail(sim, "shard %u: records of %u requests are left", s->cfg.index,
                    s->conns.txns.pool.n_used);
    if (nj_counter_read(&s->counters, NJ_C_shape_responses) != 0 ||
        nj_counter_read(&s->counters, NJ_C_shape_waiting) != 0)
        nj_sim_fail(sim, "shard %u: responses are paced, and there are none", s->cfg.index);
}

/* All clients of TLS and HTTP/1 obey the protocols. */
static void check_peers(struct sim *sim, const struct nj_counters *c)
{
    static const nj_counter wrong[] = {
        NJ_C_tls_failed_version,
        NJ_C_tls_failed_negotiation,
        NJ_C_tls_failed_alpn,
        NJ_C_tls_failed_alert,
        NJ_C_tls_failed_message,
        NJ_C_tls_bad_record,
        NJ_C_h1_line_end,
        NJ_C_h1_request_line,
        NJ_C_h1_target,
        NJ_C_h1_version,
        NJ_C_h1_field_name,
        NJ_C_h1_field_value,
        NJ_C_h1_host,
        NJ_C_h1_length,
        NJ_C_h1_length_conflict,
        NJ_C_h1_coding,
        NJ_C_h1_chunk,
        NJ_C_h1_head_full,
        NJ_C_h1_target_long,
        NJ_C_conn_http1,
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (nj_counter_read(c, wrong[i]) > 0)
            nj_sim_fail(sim, "%lu of %s, and no client makes mistakes",
                        (unsigned long)nj_counter_read(c, wrong[i]),
                        nj_counter_info[wrong[i]].name);
}

void nj_sim_check_quiet(struct sim *sim)
{
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        check_peers(sim, &sim->server.lane[i].shard->counters);
        check_shard(sim, sim->server.lane[i].shard);
        check_requests(sim, sim->server.lane[i].shard);
    }
    check_malformed(sim, &sim->client.counters, "client");
    if (sim->client.tcp.tcbs.n_used != 0)
        nj_sim_fail(sim, "client: %u control blocks are left", sim->client.tcp.tcbs.n_used);
}

static void check_pool(struct sim *sim, const struct rte_mempool *mp, const char *name)
{
    if (!nj_test_pool_full(mp))
        nj_sim_fail(sim, "%u mbufs of the %s pool are missing",
                    mp->size - rte_mempool_avail_count(mp), name);
}

void nj_sim_check_freed(struct sim *sim, const struct sim_pools *pools)
{
    check_pool(sim, pools->server_rx, "server's receive");
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        check_pool(sim, pools->server_tx[i], "server's transmit");
        check_pool(sim, pools->server_tx_tight[i], "server's tight transmit");
    }
    check_pool(sim, pools->client_rx, "client's receive");
    check_pool(sim, pools->client_tx, "client's transmit");
    if (sim->n_files_left != 0)
        nj_sim_fail(sim, "%u files and chunks are still referred to", sim->n_files_left);
}
