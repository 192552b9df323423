/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves packets between a shard, its port and the other shards, through single-producer single-
 * consumer rings (rte_ring.h). It implements the packet functions of struct nj_shard_ops.
 */
#include "dpdk/shard_rings.h"

#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "dpdk/packet_capture.h"
#include "dpdk/peer_channel.h"

static struct rte_ring *make_ring(const struct nj_dpdk_port *port, const char *kind, uint32_t a,
                                  uint32_t b)
{
    char name[RTE_RING_NAMESIZE + 32];
    snprintf(name, sizeof name, "nj_%s%u_%u_%u", kind, port->id, a, b);
    return rte_ring_create(name, NJ_SHARD_RING_SIZE, (int)SOCKET_ID_ANY,
                           RING_F_SP_ENQ | RING_F_SC_DEQ);
}

bool nj_shard_rings_open(struct nj_shard_rings *f, const struct nj_dpdk_port *port,
                         uint32_t n_shards)
{
    memset(f, 0, sizeof *f);
    f->n_shards = n_shards;
    f->port = port;
    f->peer_fd = -1;
    for (uint32_t i = 0; i < n_shards; i++) {
        for (uint32_t j = 0; j < n_shards; j++)
            if (i != j && !(f->steer[i][j] = make_ring(port, "steer", i, j)))
                return false;
        if (i >= port->n_txq && !(f->tx[i] = make_ring(port, "tx", i, i % port->n_txq)))
            return false;
    }
    return true;
}

static void close_ring(struct rte_ring *r)
{
    void *m;
    while (r && rte_ring_sc_dequeue(r, &m) == 0)
        rte_pktmbuf_free(m);
    rte_ring_free(r);
}

void nj_shard_rings_close(struct nj_shard_rings *f)
{
    for (uint32_t i = 0; i < f->n_shards; i++) {
        for (uint32_t j = 0; j < f->n_shards; j++)
            close_ring(f->steer[i][j]);
        close_ring(f->tx[i]);
        if (f->end[i])
            rte_pktmbuf_free_bulk(f->end[i]->held, f->end[i]->n_held);
    }
    memset(f, 0, sizeof *f);
}

/* Passes packets to the device. With checksum offload rte_eth_tx_prepare() checks and completes
 * them first. It should refuse none; a refused packet would block the queue, so it is sent
 * unprepared. */
static uint32_t send_burst(struct nj_shard_endpoint *e, struct rte_mbuf **m, uint32_t n)
{
    const struct nj_dpdk_port *p = e->rings->port;
    uint16_t queue = (uint16_t)e->shard;

    if (p->tx.tcp_csum) {
        uint32_t n_ready = rte_eth_tx_prepare(p->id, queue, m, (uint16_t)n);
        n = n_ready < n ? n_ready + 1 : n;
    }
    if (nj_unlikely(e->capture))
        return nj__capture_send(e->capture, p->id, queue, m, n);
    return rte_eth_tx_burst(p->id, queue, m, (uint16_t)n);
}

/* Sends packets of shards without a transmit queue. Packets that the device does not take are held
 * and sent first the next time. */
static void tx_for_others(struct nj_shard_endpoint *e)
{
    const struct nj_shard_rings *f = e->rings;
    const struct nj_dpdk_port *p = f->port;

    for (uint32_t from = e->shard + p->n_txq; from < f->n_shards; from += p->n_txq) {
        e->n_held += rte_ring_sc_dequeue_burst(f->tx[from], (void **)&e->held[e->n_held],
                                               NJ_BURST_MAX - e->n_held, NULL);
        uint32_t sent = e->n_held ? send_burst(e, e->held, e->n_held) : 0;
        e->n_held -= sent;
        memmove(e->held, e->held + sent, e->n_held * sizeof *e->held);
    }
}

bool nj_shard_rings_has_tx(const struct nj_shard_endpoint *e)
{
    const struct nj_shard_rings *f = e->rings;
    uint32_t n_txq = f->port->n_txq;
    bool pending = e->n_held > 0;

    for (uint32_t from = e->shard + n_txq; e->shard < n_txq && from < f->n_shards; from += n_txq)
        pending = pending || !rte_ring_empty(f->tx[from]);
    return pending;
}

void nj__shard_rings_wake_receivers(struct nj_shard_endpoint *e)
{
    for (; e->to_wake; e->to_wake &= e->to_wake - 1) {
        struct nj_wakeup *w = e->rings->waker[__builtin_ctzll(e->to_wake)];
        if (w)
            nj_wakeup_signal(w);
    }
}

static void mark_to_wake(struct nj_shard_endpoint *e, uint32_t shard)
{
    e->to_wake |= UINT64_C(1) << shard;
}

/* A driver with fixed buffer sizes (net_e1000_em: 8 KiB) returns a jumbo frame in two mbufs. A
 * frame that does not fit the first mbuf exceeds the MTU; nj_packet_parse() drops it. */
static void join_segments(struct rte_mbuf **m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (nj_unlikely(m[i]->nb_segs > 1))
            (void)rte_pktmbuf_linearize(m[i]);
}

static uint32_t rx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct nj_shard_endpoint *e = ctx;
    const struct nj_dpdk_port *p = e->rings->port;
    uint32_t got = 0;

    if (e->shard < p->n_txq) /* rx is called once per step */
        tx_for_others(e);
    if (p->bond && e->shard == 0) /* LACP runs inside these calls, which must come every 100 ms */
        (void)rte_eth_tx_burst(p->id, 0, NULL, 0);
    if (e->shard < p->n_rxq)
        got = rte_eth_rx_burst(p->id, (uint16_t)e->shard, m, (uint16_t)n);
    if (p->mtu > RTE_ETHER_MTU)
        join_segments(m, got);
    if (nj_unlikely(e->capture) && got > 0)
        nj__capture_received(e->capture, m, got);
    return got;
}

static uint32_t rx_shared(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct nj_shard_endpoint *e = ctx;
    const struct nj_shard_rings *f = e->rings;
    uint32_t got = rx(ctx, m, n / 2);

    /* The kernel distributes the frames of a tap over the queues of both processes, so each
     * receives the messages of half of the neighbours. */
    for (uint32_t i = 0; i < got && !f->port->frames_reach_both; i++)
        if (nj_peer_channel_is_neighbour_frame(m[i]))
            (void)nj_peer_channel_send(f->peer_fd, m[i]);
    return got + nj_peer_channel_receive(f->peer_fd, f->port->rx_pool[e->shard % f->port->n_rxq],
                                         m + got, n - got);
}

static bool pass_on(void *ctx, const struct rte_mbuf *m)
{
    const struct nj_shard_endpoint *e = ctx;

    return nj_peer_channel_send(e->rings->peer_fd, m);
}

static uint32_t rx_steered(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct nj_shard_endpoint *e = ctx;
    struct nj_shard_rings *f = e->rings;
    uint32_t got = 0;

    for (uint32_t i = 0; i < f->n_shards && got < n; i++) {
        uint32_t from = (e->next_from + i) % f->n_shards;
        if (from != e->shard)
            got += rte_ring_sc_dequeue_burst(f->steer[from][e->shard], (void **)&m[got], n - got,
                                             NULL);
    }
    e->next_from = (e->next_from + 1) % f->n_shards;
    return got;
}

static uint32_t tx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct nj_shard_endpoint *e = ctx;
    const struct nj_dpdk_port *p = e->rings->port;

    if (e->shard < p->n_txq)
        return send_burst(e, m, n);
    mark_to_wake(e, e->shard % p->n_txq);
    return rte_ring_sp_enqueue_burst(e->rings->tx[e->shard], (void *const *)m, n, NULL);
}

static bool forward(void *ctx, uint32_t shard, struct rte_mbuf *m)
{
    struct nj_shard_endpoint *e = ctx;

    mark_to_wake(e, shard);
    return rte_ring_sp_enqueue(e->rings->steer[e->shard][shard], m) == 0;
}

static void replicate(void *ctx, const struct rte_mbuf *m)
{
    struct nj_shard_endpoint *e = ctx;
    struct nj_shard_rings *f = e->rings;

    for (uint32_t to = 0; to < f->n_shards; to++) {
        if (to == e->shard)
            continue;
        struct rte_mbuf *copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
        if (copy && rte_ring_sp_enqueue(f->steer[e->shard][to], copy) != 0)
            rte_pktmbuf_free(copy);
        mark_to_wake(e, to);
    }
}

void nj_shard_rings_bind_ops(struct nj_shard_rings *f, struct nj_shard_endpoint *end,
                             uint32_t shard, struct nj_wakeup *waker, struct nj_shard_ops *port)
{
    *end = (struct nj_shard_endpoint){.rings = f, .shard = shard};
    f->end[shard] = end;
    f->waker[shard] = waker;
    port->ctx = end;
    port->rx = rx;
    port->rx_shared = rx_shared;
    port->pass_on = pass_on;
    port->rx_steered = rx_steered;
    port->tx = tx;
    port->forward = forward;
    port->replicate = replicate;
}
