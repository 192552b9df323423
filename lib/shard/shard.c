/* SPDX-License-Identifier: BSD-3-Clause */
/* Life cycle of a shard: creation, gauges, shutdown. The datapath is shard_step.c. */
#include "shard/shard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "shard/shard_internal.h"
#include "tcp/cc/congestion.h"
#include "telem/counters_conn.h"
#include "telem/counters_packet.h"
#include "telem/counters_tcp.h"

static enum nj_tcp_accept accept_filter(void *shard, const struct nj_addr *remote)
{
    struct nj_shard *s = shard;
    return nj_conns_accept_filter(&s->conns, remote);
}

static bool request_room(void *shard, const struct nj_addr *remote, bool proven)
{
    struct nj_shard *s = shard;
    return nj_conns_request_room(&s->conns, remote, proven);
}

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
        .accept_filter = accept_filter,
        .can_evict_for = request_room,
        .is_for_peer_process = nj__port_is_for_peer,
        .emit = nj__net_enqueue_tcp_segment,
        .room = nj__net_tx_room,
        .ctx = s,
    };
    bool ok = nj_tcp_init(&s->tcp, &c, now);
    for (uint32_t i = 0; ok && i < s->cfg.listeners.n; i++)
        ok = nj_tcp_listen(&s->tcp, &s->cfg.listeners.at[i]);
    explicit_bzero(&c, sizeof c); /* it holds keys */
    return ok;
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

    if (!s->cfg.conns.ops.log)
        return;
    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &ip->b[12] : ip->b, addr, sizeof addr);
    if (mac)
        rte_ether_format_addr(where, sizeof where, mac);
    snprintf(line, sizeof line,
             "address %s: another host on the link uses it, too (MAC address %s); "
             "give one of the two another address",
             addr, where);
    s->cfg.conns.ops.log(s->cfg.conns.ops.log_ctx, line);
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

bool nj_shard_init(struct nj_shard *s, const struct nj_shard_config *config, nj_ns now)
{
    memset(s, 0, sizeof *s);
    s->cfg = *config;
    s->stages.cycles = config->conns.ops.cycles;
    s->rx_alone = config->ops.rx;
    s->now = now;
    s->conns.tcp = &s->tcp;
    s->conns.counters = &s->counters;
    s->conns.stages = &s->stages;
    nj_steer_init(&s->steer, &config->rss_key, config->steering, config->index, config->n_shards,
                  config->reta_size);
    init_neigh(s, now);
    nj_ip4_reasm_init(&s->frags, config->frag_table, &s->counters);
    if (init_tcp(s, now) && nj_conns_init(&s->conns, &s->cfg.conns, now)) {
        if (config->index == 0)
            nj_neigh_send_gratuitous_arp(&s->neigh);
        return true;
    }
    nj_shard_fini(s);
    return false;
}

void nj_shard_fini(struct nj_shard *s)
{
    nj_conns_fini(&s->conns);
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
    nj_gauge_set(c, NJ_C_tx_queued, s->n_txq);
    nj_gauge_set(c, NJ_C_tx_mbufs_ready, s->tcp.n_mbuf_cache);
    nj_conns_publish(&s->conns);
    nj__pools_publish(s);
}

bool nj_shard_has_unfinished_work(const struct nj_shard *s)
{
    return nj_tcp_conns_less_fin2_orphans(&s->tcp) > 0 || s->n_txq > 0 ||
           nj_conns_have_unfinished_work(&s->conns) ||
           (s->role == NJ_PORT_YIELDS && nj_tcp_expects_handshakes(&s->tcp, s->now));
}
