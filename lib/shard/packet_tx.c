/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit path: IP header, next hop, transmit queue. Each packet is sent or counted as dropped. */
#include <netinet/in.h>

#include <rte_mbuf.h>

#include "shard/shard_internal.h"
#include "telem/counters_packet.h"
#include "wire/emit.h"
#include "wire/icmp6.h"

#define ECHO_PER_S    1000u
#define PROBLEM_PER_S 100u /* RFC 4443 2.4 f */

void nj__net_enqueue(void *shard, struct rte_mbuf *m)
{
    struct nj_shard *s = shard;

    if (s->n_txq == NJ_TXQ_MAX)
        nj__net_tx_burst(s);
    if (s->n_txq == NJ_TXQ_MAX) {
        nj_count(&s->counters, NJ_C_drop_tx_full);
        rte_pktmbuf_free(m);
        return;
    }
    s->txq[(s->txq_head + s->n_txq++) % NJ_TXQ_MAX] = m;
}

uint32_t nj__net_tx_room(void *shard)
{
    struct nj_shard *s = shard;

    if (s->n_txq >= NJ_BURST_MAX)
        nj__net_tx_burst(s); /* full bursts need not wait for the end of the step */
    uint32_t usable = NJ_TXQ_MAX - NJ_TXQ_RESERVE;
    return s->n_txq < usable ? usable - s->n_txq : 0;
}

/* Sends the IP packet `m` to its next hop. */
static void route_packet(struct nj_shard *s, struct rte_mbuf *m, const struct nj_addr *dst,
                         enum nj_neigh_reason why, nj_ns now)
{
    const struct nj_addr *hop = nj_ip_next_hop(&s->cfg.iface, dst);

    nj_count(&s->counters, NJ_C_tx_made);
    if (!hop) {
        nj_count(&s->counters, NJ_C_drop_tx_no_route);
        rte_pktmbuf_free(m);
        return;
    }
    nj_neigh_output(&s->neigh, m, hop, hop == dst || why != NJ_NEIGH_REPLY ? why : NJ_NEIGH_OWN,
                    now);
}

static void output_ip(struct nj_shard *s, struct rte_mbuf *m, const struct nj_ip_meta *ip,
                      uint8_t protocol, enum nj_neigh_reason why, nj_ns now)
{
    nj_ip_prepend(m, ip, protocol, s->ip_ident++);
    route_packet(s, m, &ip->dst, why, now);
}

/* ---- segments ---- */

static bool same_hosts(const struct nj_tx_head_cache *w, const struct nj_ip_meta *ip)
{
    return w->state >= NJ_TX_HEAD_SEEN && nj_addr_eq(&w->ip.dst, &ip->dst) &&
           nj_addr_eq(&w->ip.src, &ip->src) && w->ip.ecn == ip->ecn;
}

/* Copies the headers of `m`, a segment of `n_bytes` that was just sent. It is the last one in the
 * queue, unless it waits for its neighbour or was dropped. */
static void cache_head(struct nj_shard *s, const struct rte_mbuf *m, uint32_t n_bytes)
{
    struct nj_tx_head_cache *w = &s->tx_head;

    if (s->n_txq == 0 || s->txq[(s->txq_head + s->n_txq - 1) % NJ_TXQ_MAX] != m)
        return;
    nj_l2l3_cache_save(&w->head, m, n_bytes, nj_addr_is_v4(&w->ip.dst));
    w->state = NJ_TX_HEAD_CACHED;
}

static enum nj_neigh_reason neigh_reason(const struct nj_ip_meta *ip)
{
    static const uint8_t why[] = {[NJ_REACH_UNKNOWN] = NJ_NEIGH_OWN,
                                  [NJ_REACH_CONFIRMED] = NJ_NEIGH_CONFIRMED,
                                  [NJ_REACH_SUSPECT] = NJ_NEIGH_SUSPECT};
    return ip->unverified ? NJ_NEIGH_REPLY : (enum nj_neigh_reason)why[ip->reach];
}

/* Looks up next hop and neighbour. Later segments between the same hosts may copy the headers.
 * Unproven replies are limited like all replies to unknown hosts, so they neither use nor fill the
 * cache. */
static __attribute__((noinline)) void output_uncached(struct nj_shard *s, struct rte_mbuf *m,
                                                      const struct nj_ip_meta *ip, nj_ns now)
{
    struct nj_tx_head_cache *w = &s->tx_head;
    uint32_t n_bytes = rte_pktmbuf_pkt_len(m);

    output_ip(s, m, ip, IPPROTO_TCP, neigh_reason(ip), now);
    if (ip->unverified || w->state == NJ_TX_HEAD_OFF)
        return;
    if (same_hosts(w, ip)) {
        cache_head(s, m, n_bytes);
    } else {
        w->ip = *ip;
        w->state = NJ_TX_HEAD_SEEN;
    }
}

void nj__net_enqueue_tcp_segment(void *shard, struct rte_mbuf *m, const struct nj_ip_meta *ip,
                                 nj_ns now)
{
    struct nj_shard *s = shard;

    if (s->tx_head.state != NJ_TX_HEAD_CACHED || ip->unverified || !same_hosts(&s->tx_head, ip)) {
        output_uncached(s, m, ip, now);
        return;
    }
    nj_l2l3_cache_prepend(m, &s->tx_head.head, s->ip_ident++);
    nj_count(&s->counters, NJ_C_tx_made);
    nj__net_enqueue(s, m);
}

uint32_t nj__net_tcp_output_all(struct nj_shard *s, nj_ns now)
{
    s->tx_head.state = NJ_TX_HEAD_EMPTY;
    uint32_t n_served = nj_tcp_output_pending(&s->tcp, now);
    s->tx_head.state = NJ_TX_HEAD_OFF;
    return n_served;
}

/* ---- ICMP replies ---- */

/* RFC 1122 3.2.2.6, RFC 4443 4.2: an echo server, rate-limited so that floods do not use up the
 * CPU. */
void nj__net_icmp_echo(struct nj_shard *s, const struct rte_mbuf *m, const struct nj_packet *p,
                       nj_ns now)
{
    if (!nj_ratelimit_ok(&s->echo_rate, ECHO_PER_S, now)) {
        nj_count(&s->counters, NJ_C_drop_icmp_limit);
        return;
    }
    nj_count(&s->counters, NJ_C_rx_icmp);
    struct rte_mbuf *reply = rte_pktmbuf_alloc(s->cfg.tx_pool);
    if (!reply || p->icmp.n_bytes > rte_pktmbuf_tailroom(reply)) {
        nj_count(&s->counters, NJ_C_mbuf_none);
        rte_pktmbuf_free(reply);
        return;
    }
    const uint8_t *request = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->icmp.off);
    bool v4 = nj_addr_is_v4(&p->ip_dst);
    if (v4)
        nj_icmp_echo_reply_build(reply, request, p->icmp.n_bytes);
    else
        nj_icmp6_echo_reply_build(reply, &p->ip_dst, &p->ip_src, request, p->icmp.n_bytes);
    output_ip(s, reply, &(struct nj_ip_meta){.src = p->ip_dst, .dst = p->ip_src},
              v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, NJ_NEIGH_REPLY, now);
}

/* RFC 4443 3.4. The answer to a packet for a multicast address has a unicast source address. */
void nj__net_icmp6_problem(struct nj_shard *s, const struct rte_mbuf *m, const struct nj_packet *p,
                           nj_ns now)
{
    const struct nj_addr *from = nj_iface_has_addr(&s->cfg.iface, &p->ip_dst)
                                     ? &p->ip_dst
                                     : nj_iface_source_for(&s->cfg.iface, &p->ip_src);

    if (!from || !nj_ratelimit_ok(&s->problem_rate, PROBLEM_PER_S, now))
        return;
    struct rte_mbuf *e = nj_neigh_alloc_mbuf(&s->neigh);
    if (!e)
        return;
    nj_icmp6_param_problem_build(e, from, &p->ip_src, p->problem.code, p->problem.pointer,
                                 rte_pktmbuf_mtod_offset(m, const uint8_t *, p->problem.off),
                                 p->problem.n_bytes);
    nj_count(&s->counters, NJ_C_icmp_problem_out);
    route_packet(s, e, &p->ip_src, NJ_NEIGH_REPLY, now);
}

uint32_t nj__net_tx_burst(struct nj_shard *s)
{
    const struct nj_shard_ops *ops = &s->cfg.ops;
    enum nj_stage was = nj_stage(&s->stages, NJ_STAGE_TX);
    uint32_t total = 0;
    uint64_t n_bytes = 0;

    while (s->n_txq > 0) {
        uint32_t run = NJ_TXQ_MAX - s->txq_head; /* up to the wrap */
        uint32_t n = s->n_txq < run ? s->n_txq : run;
        n = n < NJ_BURST_MAX ? n : NJ_BURST_MAX;
        uint32_t bytes[NJ_BURST_MAX];
        for (uint32_t i = 0; i < n; i++) /* afterwards the device owns the mbufs */
            bytes[i] = s->txq[s->txq_head + i]->pkt_len;
        uint32_t taken = ops->tx(ops->ctx, &s->txq[s->txq_head], n);
        for (uint32_t i = 0; i < taken; i++)
            n_bytes += bytes[i];
        s->txq_head = (s->txq_head + taken) % NJ_TXQ_MAX;
        s->n_txq -= taken;
        total += taken;
        if (taken < n)
            break; /* the device is full: the others go first next time */
    }
    nj_count_n(&s->counters, NJ_C_tx_packets, total);
    nj_count_n(&s->counters, NJ_C_tx_bytes, n_bytes);
    nj_stage(&s->stages, was);
    return total;
}
