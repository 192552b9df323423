/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings between shards, with a port of two ethdev rings, which receives what it sends. */
#include <criterion/criterion.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "base/assert.h"
#include "dpdk/packet_capture.h"
#include "dpdk/shard_rings.h"
#include "support/mbuf_env.h"

#define WIRE_SLOTS 64u /* of which a ring holds one less */

struct world {
    struct nj_dpdk_port port;
    struct nj_shard_rings rings;
    struct nj_shard_endpoint end[4];
    struct nj_shard_ops view[4];
    struct nj_wakeup waker[4];
    struct rte_ring *wire;
    struct rte_mempool *mp;
};

/* One queue pair: shard 0 uses it, the others send through shard 0. */
static struct world *world_new(uint32_t n_shards)
{
    struct rte_eth_conf conf = {0};
    struct world *w = aligned_alloc(NJ_CACHE_LINE, sizeof *w);

    memset(w, 0, sizeof *w);
    nj_test_eal();
    w->mp = nj_test_pool(8192);
    w->wire = rte_ring_create("wire", WIRE_SLOTS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    cr_assert(w->wire);
    int id = rte_eth_from_rings("loop", &w->wire, 1, &w->wire, 1, 0);
    cr_assert_geq(id, 0);
    w->port = (struct nj_dpdk_port){.id = (uint16_t)id, .n_rxq = 1, .n_txq = 1};
    cr_assert_eq(rte_eth_dev_configure(w->port.id, 1, 1, &conf), 0);
    cr_assert_eq(rte_eth_rx_queue_setup(w->port.id, 0, 64, 0, NULL, w->mp), 0);
    cr_assert_eq(rte_eth_tx_queue_setup(w->port.id, 0, 64, 0, NULL), 0);
    cr_assert_eq(rte_eth_dev_start(w->port.id), 0);
    cr_assert(nj_shard_rings_open(&w->rings, &w->port, n_shards));
    for (uint32_t i = 0; i < n_shards; i++) {
        cr_assert(nj_wakeup_open(&w->waker[i]));
        nj_shard_rings_bind_ops(&w->rings, &w->end[i], i, &w->waker[i], &w->view[i]);
    }
    return w;
}

static void world_free(struct world *w)
{
    void *m;
    for (uint32_t i = 0; i < w->rings.n_shards; i++)
        nj_wakeup_close(&w->waker[i]);
    nj_shard_rings_close(&w->rings);
    rte_eth_dev_stop(w->port.id);
    rte_eth_dev_close(w->port.id);
    while (rte_ring_dequeue(w->wire, &m) == 0)
        rte_pktmbuf_free(m);
    rte_ring_free(w->wire);
    cr_expect(nj_test_pool_full(w->mp));
    free(w);
}

static struct rte_mbuf *numbered(struct world *w, uint32_t n)
{
    return nj_test_mbuf(w->mp, &n, sizeof n);
}

static uint32_t number(const struct rte_mbuf *m)
{
    return *rte_pktmbuf_mtod(m, const uint32_t *);
}

Test(dpdk_shard_rings, steering_keeps_the_order)
{
    struct world *w = world_new(3);
    struct rte_mbuf *m[NJ_BURST_MAX];
    uint32_t next[2] = {0, 0}, got, total = 0;

    for (uint32_t i = 0; i < 100; i++) {
        cr_assert(w->view[0].forward(w->view[0].ctx, 2, numbered(w, i)));
        cr_assert(w->view[1].forward(w->view[1].ctx, 2, numbered(w, 1000 + i)));
    }
    while ((got = w->view[2].rx_steered(w->view[2].ctx, m, NJ_BURST_MAX)) > 0) {
        for (uint32_t i = 0; i < got; i++) {
            uint32_t from = number(m[i]) / 1000;
            cr_assert_eq(number(m[i]) % 1000, next[from]++);
            rte_pktmbuf_free(m[i]);
        }
        total += got;
        if (total == 2 * NJ_BURST_MAX)
            cr_expect(next[0] > 0 && next[1] > 0, "each ring gets its turn");
    }
    cr_expect_eq(total, 200);
    cr_expect_eq(w->view[1].rx_steered(w->view[1].ctx, m, NJ_BURST_MAX), 0);
    world_free(w);
}

Test(dpdk_shard_rings, full_ring_refuses)
{
    struct world *w = world_new(2);
    struct rte_mbuf *last = numbered(w, 9999);
    uint32_t n = 0;

    while (w->view[0].forward(w->view[0].ctx, 1, last)) {
        n++;
        last = numbered(w, n);
        cr_assert(last && n < 4000);
    }
    cr_expect_geq(n, 1000);
    rte_pktmbuf_free(last); /* it stayed ours */
    struct rte_mbuf *arp = numbered(w, 5);
    w->view[0].replicate(w->view[0].ctx, arp); /* misses it, and no mbuf leaks */
    rte_pktmbuf_free(arp);
    world_free(w); /* frees the mbufs in the rings */
}

Test(dpdk_shard_rings, share_copies_to_all_others)
{
    struct world *w = world_new(4);
    struct rte_mbuf *m[NJ_BURST_MAX], *arp = numbered(w, 77);

    w->view[1].replicate(w->view[1].ctx, arp);
    rte_pktmbuf_free(arp);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t got = w->view[i].rx_steered(w->view[i].ctx, m, NJ_BURST_MAX);
        cr_expect_eq(got, i != 1);
        if (got) {
            cr_expect_eq(number(m[0]), 77);
            rte_pktmbuf_free(m[0]);
        }
    }
    world_free(w);
}

/* Shards 1 and 2 have no transmit queue: shard 0 sends for them, in order and without loss, also
 * while the device accepts only some packets. */
Test(dpdk_shard_rings, sends_through_a_proxy)
{
    struct world *w = world_new(3);
    struct rte_mbuf *m[NJ_BURST_MAX];
    uint32_t sent[2] = {0, 0}, next[2] = {0, 0};

    for (int round = 0; round < 2000; round++) {
        for (uint32_t s = 0; s < 2 && round < 300; s++) {
            for (uint32_t i = 0; i < 8; i++)
                m[i] = numbered(w, s * 100000 + sent[s] + i);
            uint32_t taken = w->view[1 + s].tx(w->view[1 + s].ctx, m, 8);
            sent[s] += taken;
            for (uint32_t i = taken; i < 8; i++)
                rte_pktmbuf_free(m[i]);
        }
        /* shard 0 polls with room for few, so the wire is full most of the time */
        uint32_t got = w->view[0].rx(w->view[0].ctx, m, 1 + round % 20);
        for (uint32_t i = 0; i < got; i++) {
            uint32_t s = number(m[i]) / 100000;
            cr_assert_eq(number(m[i]) % 100000, next[s]++);
            rte_pktmbuf_free(m[i]);
        }
    }
    cr_expect_gt(sent[0], 1000);
    cr_expect_eq(next[0], sent[0]);
    cr_expect_eq(next[1], sent[1]);
    cr_expect_eq(w->view[1].rx(w->view[1].ctx, m, 8), 0, "it has no receive queue");
    world_free(w);
}

/* Packets that shard 0 holds for others are freed at the end. */
Test(dpdk_shard_rings, held_packets_are_freed_at_the_end)
{
    struct world *w = world_new(2);
    struct rte_mbuf *m[NJ_BURST_MAX];

    for (uint32_t n = 0; n < 10; n++) {
        for (uint32_t i = 0; i < 10; i++)
            m[i] = numbered(w, i);
        cr_assert_eq(w->view[1].tx(w->view[1].ctx, m, 10), 10);
    }
    for (int i = 0; i < 10; i++)
        w->view[0].rx(w->view[0].ctx, m, 0); /* the wire fills up */
    cr_expect_gt(w->end[0].n_held, 0);
    world_free(w);
}

/* A shard that hands packets to a sleeping shard wakes it after its own step. */
Test(dpdk_shard_rings, receivers_are_woken)
{
    struct world *w = world_new(4);
    struct rte_mbuf *m = numbered(w, 1), *arp = numbered(w, 2);

    for (uint32_t i = 0; i < 4; i++)
        nj_wakeup_arm(&w->waker[i]);
    cr_assert(w->view[1].forward(w->view[1].ctx, 3, m));
    cr_expect(nj_wakeup_is_armed(&w->waker[3]), "once for a step, not for each packet");
    nj_shard_rings_wake_receivers(&w->end[1]);
    cr_expect_not(nj_wakeup_is_armed(&w->waker[3]));
    cr_expect(nj_wakeup_is_armed(&w->waker[0]) && nj_wakeup_is_armed(&w->waker[2]));

    m = numbered(w, 3);
    cr_assert_eq(w->view[2].tx(w->view[2].ctx, &m, 1), 1);
    nj_shard_rings_wake_receivers(&w->end[2]);
    cr_expect_not(nj_wakeup_is_armed(&w->waker[0]), "it sends for the other shards");
    cr_expect(nj_wakeup_is_armed(&w->waker[1]));

    nj_wakeup_arm(&w->waker[0]);
    nj_wakeup_arm(&w->waker[3]);
    w->view[2].replicate(w->view[2].ctx, arp);
    rte_pktmbuf_free(arp);
    nj_shard_rings_wake_receivers(&w->end[2]);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(nj_wakeup_is_armed(&w->waker[i]), i == 2);
    world_free(w);
}

/* A device that takes a part of a burst: only that was sent. What comes back is received. */
Test(dpdk_shard_rings, capture)
{
    struct world *w = world_new(1);
    struct nj_record_ring ring;
    struct nj_capture capture = {.ring = &ring};
    struct nj_capture_command on = {.end = &w->end[0], .capture = &capture},
                              off = {.end = &w->end[0]};
    const struct nj_shard_ops *ops = &w->view[0];
    struct rte_mbuf *m[NJ_BURST_MAX];
    const struct nj_captured *p;
    uint32_t sent = 0, got = 0, n, n_bytes;

    cr_assert(nj_record_ring_open(&ring, 1 << 16));
    nj_capture_begin(&on);
    nj_capture_begin(&off);
    cr_assert(on.command.run(&on.command, NULL, 0));
    do {
        for (uint32_t i = 0; i < NJ_BURST_MAX; i++)
            m[i] = numbered(w, sent + i);
        n = ops->tx(ops->ctx, m, NJ_BURST_MAX);
        rte_pktmbuf_free_bulk(m + n, NJ_BURST_MAX - n);
        sent += n;
    } while (n == NJ_BURST_MAX);
    cr_expect_eq(sent, WIRE_SLOTS - 1);
    for (uint32_t i = 0; i < sent; i++) {
        cr_assert((p = nj_record_ring_peek(&ring, &n_bytes)));
        cr_expect(p->is_sent && p->n_kept == sizeof i && memcmp(p->data, &i, sizeof i) == 0);
        nj_record_ring_take(&ring);
    }
    cr_expect_null(nj_record_ring_peek(&ring, &n_bytes), "what it did not take");
    while ((n = ops->rx(ops->ctx, m, NJ_BURST_MAX)) > 0) {
        rte_pktmbuf_free_bulk(m, n);
        for (uint32_t last = got + n; got < last; got++) {
            cr_assert((p = nj_record_ring_peek(&ring, &n_bytes)));
            cr_expect(!p->is_sent && memcmp(p->data, &got, sizeof got) == 0);
            nj_record_ring_take(&ring);
        }
    }
    cr_expect_eq(got, sent);
    cr_assert(off.command.run(&off.command, NULL, 0));
    m[0] = numbered(w, 0);
    cr_expect_eq(ops->tx(ops->ctx, m, 1), 1);
    cr_expect_null(nj_record_ring_peek(&ring, &n_bytes));
    cr_expect_eq(ring.n_lost, 0);
    nj_record_ring_close(&ring);
    world_free(w);
}
