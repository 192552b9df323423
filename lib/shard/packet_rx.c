/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive path: parses a burst, forwards packets of other shards, and delivers the others to ARP,
 * neighbour discovery, ICMP and TCP. Works in passes over the burst, with prefetches between them.
 */
#include <rte_mbuf.h>

#include "shard/shard_internal.h"
#include "telem/counters_packet.h"

/* Packets to prefetch ahead: parsing one takes about as long as a cache miss. */
#define PREFETCH_AHEAD 4u

/* Neighbour packets replicated to the other shards per second: above what a link needs, and a bound
 * for floods. */
#define REPLICAS_PER_S 1000u

struct rx_batch {
    uint32_t n;
    struct rte_mbuf *m[NJ_RX_BATCH_MAX];
    struct nj_packet p[NJ_RX_BATCH_MAX];
    uint32_t flow_hash[NJ_RX_BATCH_MAX];
};

static void drop(struct nj_shard *s, struct rte_mbuf *m, nj_counter why)
{
    nj_count(&s->counters, why);
    rte_pktmbuf_free(m);
}

static uint32_t owner_of(const struct nj_shard *s, const struct nj_tuple *t, uint32_t flow_hash)
{
    if (s->steer.mode == NJ_STEER_NONE)
        return s->steer.self;
    if (s->steer.mode == NJ_STEER_ON_MISS && nj_flow_find(&s->tcp.flows, flow_hash, t))
        return s->steer.self;
    return nj_steer_owner(&s->steer, t);
}

/* Gives the packet to the shard that owns its flow. The flags spare the owner a second check of the
 * checksums. */
static void forward_to_owner(struct nj_shard *s, struct rte_mbuf *m, enum nj_packet_kind kind,
                             uint32_t owner)
{
    /* RSS cannot hash the flow that an ICMP error quotes. */
    if (s->steer.mode == NJ_STEER_ON_MISS && kind == NJ_PACKET_TCP)
        nj_count(&s->counters, NJ_C_steer_misplaced);
    m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    if (s->cfg.ops.forward(s->cfg.ops.ctx, owner, m))
        nj_count(&s->counters, NJ_C_rx_steered_out);
    else
        drop(s, m, NJ_C_drop_steer_full);
}

/* The connection that a packet belongs to or quotes; NULL: none. */
static const struct nj_tuple *tuple_of(const struct nj_packet *p)
{
    return p->kind == NJ_PACKET_TCP          ? &p->tcp.tuple
           : p->kind == NJ_PACKET_ICMP_ERROR ? &p->icmp_error.tuple
                                             : NULL;
}

/* Flow and owner of the previous packet of a burst. Bulk data comes in runs of one flow; one lookup
 * per run saves the hash of the flow table and, for the owner, the RSS hash. */
struct flow_owner {
    struct nj_tuple tuple;
    uint32_t flow_hash, owner;
    bool known;
};

static void find_owner(struct nj_shard *s, struct flow_owner *b, const struct nj_tuple *t,
                       bool steered)
{
    if (b->known && nj_tuple_eq(&b->tuple, t)) {
        nj_count(&s->counters, NJ_C_rx_same_flow);
        return;
    }
    b->known = true;
    b->tuple = *t;
    b->flow_hash = nj_flow_hash(&s->tcp.flows, t);
    b->owner = steered ? s->steer.self : owner_of(s, t, b->flow_hash);
    nj_flow_prefetch(&s->tcp.flows, b->flow_hash);
}

/* First pass over a burst: parses packets and prefetches buckets of the flow table. Drops packets
 * that are not for this host, and forwards those of other shards. Fragments carry no ports, so the
 * shard that receives them reassembles them before it looks up the owner. */
static void parse_burst(struct nj_shard *s, struct rx_batch *in, struct rte_mbuf **m, uint32_t n,
                        bool steered, nj_ns now)
{
    struct flow_owner b = {.known = false};

    for (uint32_t i = 0; i < n; i++) {
        if (i + PREFETCH_AHEAD < n)
            rte_prefetch0(rte_pktmbuf_mtod(m[i + PREFETCH_AHEAD], void *));
        struct nj_packet *p = &in->p[in->n];
        nj_packet_parse(&s->cfg.iface, m[i], p);
        if (nj_unlikely(p->kind == NJ_PACKET_FRAGMENT)) {
            m[i] = nj_ip4_reasm_input(&s->frags, m[i], p, now);
            if (!m[i])
                continue;
            nj_packet_parse(&s->cfg.iface, m[i], p);
        }
        if (nj_unlikely(p->kind <= NJ_PACKET_PARAM_PROBLEM)) {
            if (p->kind == NJ_PACKET_PARAM_PROBLEM)
                nj__net_icmp6_problem(s, m[i], p, s->now);
            drop(s, m[i], p->drop);
            continue;
        }
        const struct nj_tuple *tuple = tuple_of(p);
        if (nj_likely(tuple)) {
            find_owner(s, &b, tuple, steered);
            if (b.owner != s->steer.self) {
                forward_to_owner(s, m[i], p->kind, b.owner);
                continue;
            }
            in->flow_hash[in->n] = b.flow_hash;
        }
        in->m[in->n++] = m[i];
    }
}

/* Between the passes: prefetches connections. Each level of pointers is followed for the whole
 * burst before the next one. The entry in a flow's own bucket is nearly always the right one;
 * otherwise the prefetch is wasted. */
static void prefetch_flows(const struct nj_shard *s, const struct rx_batch *in)
{
    const struct nj_flow_table *f = &s->tcp.flows;
    const struct nj_flow *flow[NJ_RX_BATCH_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < in->n; i++) {
        if (in->p[i].kind != NJ_PACKET_TCP || (i > 0 && in->flow_hash[i] == in->flow_hash[i - 1]))
            continue;
        flow[n] = nj_flow_at(f, in->flow_hash[i] & f->mask);
        if (flow[n])
            nj_tcp_prefetch_block(flow[n++]);
    }
    for (uint32_t i = 0; i < n; i++)
        nj_tcp_prefetch_tcb_refs(flow[i]);
    for (uint32_t i = 0; i < n; i++)
        nj_tcp_prefetch_unacked(flow[i]);
}

/* Replicates a neighbour packet to the other shards. */
static void replicate(struct nj_shard *s, const struct rte_mbuf *m, nj_ns now)
{
    if (s->steer.n_shards == 1)
        return;
    if (nj_ratelimit_ok(&s->replicate_rate, REPLICAS_PER_S, now))
        s->cfg.ops.replicate(s->cfg.ops.ctx, m);
}

static void input_neighbour(struct nj_shard *s, struct rte_mbuf *m, const struct nj_packet *p,
                            bool steered, nj_ns now)
{
    bool arp = p->kind == NJ_PACKET_ARP;
    bool answer = !steered && !nj__port_peer_answers(s, m);
    bool news =
        arp ? nj_neigh_arp_input(&s->neigh, p, answer, now)
            : nj_nd_host_input(&s->ndp, p, rte_pktmbuf_mtod_offset(m, const uint8_t *, p->nd.off),
                               answer, now);
    if (news && !steered)
        replicate(s, m, now);
    nj_count(&s->counters, arp ? NJ_C_rx_arp : NJ_C_rx_nd);
    rte_pktmbuf_free(m);
}

/* An ICMP error that quotes a segment of this host. TCP checks whether it is plausible. */
static void input_icmp_error(struct nj_shard *s, struct rte_mbuf *m, const struct nj_packet *p,
                             uint32_t flow_hash)
{
    struct nj_flow *f = nj_flow_find(&s->tcp.flows, flow_hash, &p->icmp_error.tuple);
    struct nj_tcb *t = nj_flow_tcb(f);
    bool believed = t && nj_tcp_icmp(&s->tcp, t, &p->icmp_error);
    nj_counter counted = believed ? NJ_C_rx_icmp_error : NJ_C_drop_icmp_error;

    if (!f)
        (void)nj__port_is_for_peer(s, m, &counted);
    nj_count(&s->counters, counted);
    rte_pktmbuf_free(m);
}

/* Second pass. The flow is looked up again for each segment of a run, because the previous segment
 * may have created or ended it. The lookup reads one entry and one TCB, both in the cache; checking
 * a remembered TCB would cost the same. */
static void input_packet(struct nj_shard *s, struct rx_batch *in, uint32_t i, bool steered,
                         nj_ns now)
{
    struct nj_packet *p = &in->p[i];

    switch (p->kind) {
    case NJ_PACKET_TCP: {
        struct nj_flow *f = nj_flow_find(&s->tcp.flows, in->flow_hash[i], &p->tcp.tuple);
        nj_tcp_input(&s->tcp, f, in->m[i], &p->tcp, now);
        break;
    }
    case NJ_PACKET_ARP:
    case NJ_PACKET_ND:
        input_neighbour(s, in->m[i], p, steered, now);
        break;
    case NJ_PACKET_ICMP_ERROR:
        input_icmp_error(s, in->m[i], p, in->flow_hash[i]);
        break;
    case NJ_PACKET_ICMP_ECHO:
        if (nj__port_peer_answers(s, in->m[i]))
            nj_count(&s->counters, NJ_C_drop_peer);
        else
            nj__net_icmp_echo(s, in->m[i], p, now);
        rte_pktmbuf_free(in->m[i]);
        break;
    case NJ_PACKET_DROP:
    case NJ_PACKET_PARAM_PROBLEM:
    case NJ_PACKET_FRAGMENT:
        break; /* handled in the first pass */
    }
}

uint32_t nj__net_rx_burst(struct nj_shard *s, nj_ns now)
{
    struct rte_mbuf *m[NJ_BURST_MAX];
    struct rx_batch in; /* 8 KiB: not zeroed in each step */
    const struct nj_shard_ops *ops = &s->cfg.ops;
    uint64_t n_bytes = 0;

    in.n = 0;
    /* Packets from other shards are processed first: an ARP reply that another shard replicates is
     * in the ring before the packets that depend on it are in our queue. For the same reason the
     * queue is polled before the ring. */
    uint32_t n_rx = ops->rx(ops->ctx, m, NJ_BURST_MAX);
    uint32_t n_steered = 0;
    if (s->steer.n_shards > 1) {
        struct rte_mbuf *from_others[NJ_BURST_MAX];
        n_steered = ops->rx_steered(ops->ctx, from_others, NJ_BURST_MAX);
        parse_burst(s, &in, from_others, n_steered, true, now);
    }
    uint32_t n_first = in.n;
    for (uint32_t i = 0; i < n_rx; i++)
        n_bytes += m[i]->pkt_len;
    parse_burst(s, &in, m, n_rx, false, now);
    if (in.n > 1)
        prefetch_flows(s, &in);
    nj_stage(&s->stages, NJ_STAGE_TCP);
    for (uint32_t i = 0; i < in.n; i++)
        input_packet(s, &in, i, i < n_first, now);

    nj_count_n(&s->counters, NJ_C_rx_packets, n_rx);
    nj_count_n(&s->counters, NJ_C_rx_bytes, n_bytes);
    nj_count_n(&s->counters, NJ_C_rx_steered_in, n_steered);
    return n_rx + n_steered;
}
