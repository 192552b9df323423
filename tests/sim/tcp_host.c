/* SPDX-License-Identifier: BSD-3-Clause */
/* A host of the simulator of TCP: a small substitute for lib/shard and lib/dpdk. */
#include <netinet/in.h>

#include "base/assert.h"
#include "tcp_sim.h"
#include "telem/counters.h"
#include "wire/emit.h"

#define CONNS_MAX     64u
#define HALF_OPEN_MAX 16u

/* Minimum time before a step without effect is repeated, even if TCP requests it. */
#define VAIN_GAP_MAX (1 * NJ_MS)

static void address(struct tsim_host *h, const struct tsim_mix *mix)
{
    static const struct nj_addr v6 = {{0x20, 0x01, 0x0d, 0xb8}};
    struct nj_iface *i = &h->iface;

    h->ip = mix->v6 ? v6 : nj_addr_from_v4(RTE_BE32(10u << 24));
    h->ip.b[15] = (uint8_t)(h->index + 1);
    *i = (struct nj_iface){.mtu = mix->host[h->index].mtu, .ip6 = mix->v6, .n_addrs = 1};
    i->mac.addr_bytes[0] = 2;
    i->mac.addr_bytes[5] = (uint8_t)(h->index + 1);
    i->addr[0] = (struct nj_iface_addr){.ip = h->ip, .prefix_bits = mix->v6 ? 64 : 24};
}

static void leaves(struct tsim_host *h, uint8_t *frame, uint32_t n_bytes)
{
    struct tsim *sim = h->sim;
    struct sim_raw r;

    if (!nj_sim_raw_parse(frame, n_bytes, &r)) {
        nj_tsim_fail(sim, "host %u sends a packet that is no TCP segment", h->index);
        return;
    }
    h->n_resets += !!(r.flags & NJ_TCP_RST);
    /* After a time-out SACKed data may be retransmitted: it may have been discarded (RFC 2018
     * 8). */
    if (nj_counter_read(&h->counters, NJ_C_tcp_rto) != h->rto_seen)
        for (uint32_t i = 0; i < sim->n_flows; i++)
            sim->flow[i].track[h->index].n_sacked = 0;
    struct tsim_flow *f = nj_tsim_find(sim, h->index, r.sport, r.dport);
    bool fresh = f && nj_tsim_track_sent(f, h->index, frame, &r);
    h->rto_seen = nj_counter_read(&h->counters, NJ_C_tcp_rto);
    nj_tsim_middle(sim, h->index, frame, n_bytes, fresh);
}

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct tsim_host *h = ctx;
    struct tsim_host *peer = &h->sim->host[!h->index];
    uint8_t frame[SIM_FRAME_MAX];

    NJ_CHECK(now == h->sim->now);
    h->n_emitted++;
    nj_ip_prepend(m, ip, IPPROTO_TCP, h->ip_ident++);
    if (m->pkt_len > h->iface.mtu)
        nj_tsim_fail(h->sim, "host %u sends a packet of %u bytes, its MTU is %u", h->index,
                     m->pkt_len, h->iface.mtu);
    bool to_peer = nj_addr_eq(&ip->dst, &peer->ip);
    if (to_peer && !h->sim->record.failed) {
        nj_eth_prepend(m, &peer->iface.mac, &h->iface.mac,
                       h->sim->mix.v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
        nj_sim_flatten(m, frame);
        leaves(h, frame, m->pkt_len);
    }
    rte_pktmbuf_free(m); /* otherwise the destination address was forged */
}

static uint32_t room(void *ctx)
{
    const struct tsim_host *h = ctx;
    return h->device_full ? 0 : NJ_BURST_MAX;
}

void nj_tsim_host_init(struct tsim *sim, unsigned index)
{
    struct tsim_host *h = &sim->host[index];
    const struct tsim_host_mix *mix = &sim->mix.host[index];

    h->sim = sim;
    h->index = index;
    h->rx.n_max = SIM_QUEUE_MAX;
    h->rx_pool = sim->env->rx[index];
    h->tx_pool = mix->tight ? sim->env->tight_tx[index] : sim->env->tx[index];
    h->gap = mix->step_gap;
    nj_prng_init(&h->prng, sim->seed ^ (0x40575u + index));
    address(h, &sim->mix);
    struct nj_tcp_config c = {
        .mp = h->tx_pool,
        .counters = &h->counters,
        .flow_key.b = {(uint8_t)index, 1},
        .isn_key.b = {(uint8_t)index, 2},
        .seed = sim->seed + index,
        .conns_max = CONNS_MAX,
        .half_open_max = HALF_OPEN_MAX,
        .held_max = mix->held_max,
        .mtu = mix->mtu,
        .time_wait = sim->mix.time_wait,
        .emit = emit,
        .room = room,
        .ctx = h,
    };
    memcpy(c.isn_key.b + 8, &sim->seed, sizeof sim->seed);
    nj_tsim_configure(&c, sim->mix.newreno, sim->mix.ecn);
    NJ_CHECK(nj_tcp_init(&h->tcp, &c, sim->now));
    if (index == 1)
        NJ_CHECK(nj_tcp_listen(&h->tcp, &(struct nj_listener){.port = TSIM_LISTEN_PORT}));
}

void nj_tsim_host_fini(struct tsim_host *h)
{
    nj_tcp_fini(&h->tcp);
    for (unsigned k = 0; k < NJ_COUNTERS_MAX; k++)
        h->sim->counter[k] += nj_counter_read(&h->counters, (nj_counter)k);
}

static struct rte_mbuf *received(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(h->rx_pool);

    if (m)
        memcpy(rte_pktmbuf_append(m, (uint16_t)n_bytes), bytes, n_bytes);
    else
        h->sim->channel.stats.no_mbuf++;
    return m;
}

void nj_tsim_host_receive(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes)
{
    struct rte_mbuf *m = received(h, bytes, n_bytes);

    if (m && !nj_sim_queue_push(&h->rx, m)) {
        h->sim->channel.stats.no_mbuf++;
        rte_pktmbuf_free(m);
    }
}

/* Handles other packets: ICMP of a router, or damaged frames. */
static void other(struct tsim_host *h, const struct nj_packet *p)
{
    bool dropped = p->kind == NJ_PACKET_DROP || p->kind == NJ_PACKET_PARAM_PROBLEM;

    if (p->kind == NJ_PACKET_ICMP_ERROR) {
        bool taken = nj_tsim_icmp(&h->tcp, &p->icmp_error);
        nj_count(&h->counters, taken ? NJ_C_rx_icmp_error : NJ_C_drop_icmp_error);
        return;
    }
    nj_tsim_log(h->sim, "host %u: malformed, %s", h->index,
                dropped ? nj_counter_info[p->drop].name : "something else");
    h->n_malformed++;
    nj_count(&h->counters, dropped ? p->drop : NJ_C_rx_icmp);
}

static void feed(struct tsim_host *h, struct rte_mbuf *m, bool forged)
{
    struct tsim *sim = h->sim;
    struct nj_packet p;
    struct sim_raw r;

    h->n_received++;
    nj_packet_parse(&h->iface, m, &p);
    if (p.kind != NJ_PACKET_TCP) {
        other(h, &p);
        rte_pktmbuf_free(m);
        return;
    }
    const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
    struct tsim_flow *f = nj_tsim_find(sim, h->index, p.tcp.tuple.lport, p.tcp.tuple.rport);
    if (f && !forged && nj_sim_raw_parse(frame, m->pkt_len, &r))
        nj_tsim_track_came(f, h->index, frame, &r);
    nj_tsim_input(&h->tcp, m, &p.tcp, sim->now);
}

void nj_tsim_host_inject(struct tsim_host *h, const uint8_t *bytes, uint32_t n_bytes)
{
    struct rte_mbuf *m = received(h, bytes, n_bytes);

    nj_sim_record_frame(&h->sim->record, h->sim->now, !h->index, bytes, n_bytes, "forged");
    h->sim->n_forged++;
    if (m)
        feed(h, m, true);
}

nj_ns nj_tsim_host_next(const struct tsim_host *h)
{
    const struct tsim *sim = h->sim;
    nj_ns next = nj_tcp_next_deadline(&h->tcp), soonest = h->stepped_at + h->gap;

    if (h->rx.n > 0)
        return h->stepped_at + sim->mix.host[h->index].step_gap;
    for (uint32_t i = 0; i < sim->n_flows; i++) {
        nj_ns at = nj_tsim_side_next(&sim->flow[i].side[h->index]);
        next = at < next ? at : next;
    }
    return next > soonest ? next : soonest;
}

static void users_turn(struct tsim_host *h)
{
    struct tsim *sim = h->sim;
    struct nj_list batch;
    struct nj_tcb *t;
    uint8_t events;

    for (uint32_t i = 0; i < sim->n_flows; i++)
        if (nj_tsim_side_next(&sim->flow[i].side[h->index]) <= sim->now)
            nj_tsim_side_alarm(&sim->flow[i].side[h->index]);
    nj_list_init(&batch);
    nj_tcp_take_ready_batch(&h->tcp, &batch);
    while ((t = nj_tcp_next_ready(&batch, &events)))
        nj_tsim_turn(sim, h->index, t, events);
}

void nj_tsim_host_step(struct tsim_host *h)
{
    struct tsim *sim = h->sim;
    const struct tsim_host_mix *mix = &sim->mix.host[h->index];
    struct rte_mbuf *m[NJ_BURST_MAX];
    uint64_t n_before = h->n_emitted;

    h->stepped_at = sim->now;
    h->device_full = !sim->calm && nj_sim_chance(&h->prng, mix->tx_short);
    uint32_t n = nj_sim_queue_take(&h->rx, m, NJ_BURST_MAX);
    for (uint32_t i = 0; i < n; i++)
        feed(h, m[i], false);
    nj_tcp_tick(&h->tcp, sim->now);
    users_turn(h);
    nj_tcp_output_pending(&h->tcp, sim->now);
    nj_tsim_check_step(h);
    bool vain = n == 0 && h->n_emitted == n_before && nj_tsim_host_next(h) <= sim->now + h->gap;
    h->gap = !vain ? mix->step_gap : 2 * h->gap < VAIN_GAP_MAX ? 2 * h->gap : VAIN_GAP_MAX;
}

bool nj_tsim_host_quiet(const struct tsim_host *h)
{
    return h->rx.n == 0 && nj_tcp_conns(&h->tcp) == 0 && nj_tsim_time_waits(&h->tcp) == 0;
}
