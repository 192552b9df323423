/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim.h"
#include "wire/emit.h"

static void send_frame(void *ctx, struct rte_mbuf *m)
{
    struct sim *sim = ctx;
    nj_sim_link_send(sim, SIM_CLIENT, m, sim->now);
    rte_pktmbuf_free(m);
}

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct sim *sim = ctx;
    nj_ipv4_prepend(m, ip, IPPROTO_TCP, sim->client.ip_ident++);
    nj_neigh_output(&sim->client.neigh, m, &ip->dst, NJ_NEIGH_OWN, now);
}

static uint32_t room(void *ctx)
{
    (void)ctx;
    return NJ_BURST_MAX;
}

void nj_sim_client_init(struct sim *sim, const struct sim_pools *pools)
{
    struct sim_client *c = &sim->client;

    *c = (struct sim_client){.rx_pool = pools->client_rx, .rx.n_max = SIM_QUEUE_MAX};
    nj_prng_init(&c->prng, sim->seed ^ 0xc11e47);
    nj_prng_init(&c->again_prng, sim->seed ^ 0xa6a1);
    c->iface = nj_sim_iface[SIM_CLIENT];
    for (; c->iface.n_addrs < sim->mix.n_addrs; c->iface.n_addrs++) {
        struct nj_iface_addr *a = &c->iface.addr[c->iface.n_addrs];
        *a = c->iface.addr[0];
        a->ip.b[15] += c->iface.n_addrs;
    }
    nj_neigh_init(&c->neigh, &c->iface, pools->client_tx, &c->counters, send_frame, sim);
    struct nj_tcp_config config = {
        .mp = pools->client_tx,
        .counters = &c->counters,
        .isn_key.b = {1},
        .seed = sim->seed + 99,
        .conns_max = 64 + 2 * sim->mix.n_conns,
        .half_open_max = 8,
        .mtu = sim->mix.client_mtu,
        .time_wait = sim->mix.time_wait,
        .emit = emit,
        .room = room,
        .ctx = sim,
    };
    NJ_CHECK(nj_tcp_init(&c->tcp, &config, sim->now));
    c->n_conns = sim->mix.n_conns;
    c->conn = calloc(c->n_conns, sizeof *c->conn);
    NJ_CHECK(c->conn);
    for (uint32_t i = 0; i < c->n_conns; i++)
        sim->mix.plan(&c->conn[i], sim, i);
}

void nj_sim_client_fini(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->client.n_conns; i++)
        nj_sim_conn_fini(&sim->client.conn[i]);
    free(sim->client.conn);
    nj_tcp_fini(&sim->client.tcp);
    nj_neigh_fini(&sim->client.neigh);
}

void nj_sim_client_receive(struct sim *sim, const struct sim_frame *f)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(sim->client.rx_pool);

    if (!m) {
        sim->link.stats.no_mbuf++;
        return;
    }
    memcpy(rte_pktmbuf_append(m, (uint16_t)f->n_bytes), f->bytes, f->n_bytes);
    if (!nj_sim_queue_push(&sim->client.rx, m))
        rte_pktmbuf_free(m);
}

nj_ns nj_sim_client_next(const struct sim *sim)
{
    const struct sim_client *c = &sim->client;
    nj_ns next = nj_tcp_next_deadline(&c->tcp), soonest = c->stepped_at + SIM_STEP_GAP;

    if (c->rx.n > 0)
        return soonest;
    next = c->neigh.tick_at < next ? c->neigh.tick_at : next;
    for (uint32_t i = 0; i < c->n_conns; i++) {
        nj_ns at = nj_sim_conn_next(&c->conn[i]);
        next = at < next ? at : next;
    }
    return next > soonest ? next : soonest;
}

static void take(struct sim *sim, struct rte_mbuf *m)
{
    struct sim_client *c = &sim->client;
    struct nj_packet p;

    nj_packet_parse(&c->iface, m, &p);
    if (p.kind == NJ_PACKET_TCP) {
        uint32_t hash = nj_flow_hash(&c->tcp.flows, &p.tcp.tuple);
        nj_tcp_input(&c->tcp, nj_flow_find(&c->tcp.flows, hash, &p.tcp.tuple), m, &p.tcp, sim->now);
        return;
    }
    if (p.kind == NJ_PACKET_ARP)
        nj_neigh_arp_input(&c->neigh, &p, true, sim->now);
    else if (p.kind == NJ_PACKET_DROP)
        nj_count(&c->counters, p.drop);
    rte_pktmbuf_free(m);
}

void nj_sim_client_step(struct sim *sim)
{
    struct sim_client *c = &sim->client;
    struct rte_mbuf *m[NJ_BURST_MAX];
    struct nj_tcb *t;
    uint8_t events;

    c->stepped_at = sim->now;
    uint32_t n = nj_sim_queue_take(&c->rx, m, NJ_BURST_MAX);
    for (uint32_t i = 0; i < n; i++)
        take(sim, m[i]);
    nj_tcp_tick(&c->tcp, sim->now);
    nj_neigh_tick(&c->neigh, sim->now);
    for (uint32_t i = 0; i < c->n_conns; i++)
        if (nj_sim_conn_next(&c->conn[i]) <= sim->now)
            nj_sim_conn_alarm(&c->conn[i]);
    while ((t = nj_tcp_next_ready(&c->tcp.ready, &events)))
        nj_sim_conn_turn(t->user, events);
    nj_tcp_output_pending(&c->tcp, sim->now);
}

bool nj_sim_client_done(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->client.n_conns; i++)
        if (sim->client.conn[i].state != SIM_OVER)
            return false;
    return true;
}
