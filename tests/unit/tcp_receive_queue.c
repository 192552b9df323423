/* SPDX-License-Identifier: BSD-3-Clause */
/* The reassembly list against an array of bytes (RFC 9293 3.10.7.4). The first copy of a byte is
 * kept. */
#include <criterion/criterion.h>

#include <stdio.h>

#include <rte_mbuf.h>

#include "base/prng.h"
#include "support/mbuf_env.h"
#include "tcp/tcp_internal.h"

#define SPAN 4000u

struct queue {
    struct nj_tcp tcp;
    struct nj_tcb tcb;
    struct nj_xfer xfer;
    struct rte_mempool *pool;
    uint32_t base;        /* sequence number of byte 0 */
    int16_t byte[SPAN];   /* the first copy, or -1 */
    uint32_t n_delivered; /* bytes that left in order */
};

/* Insert as step 7 does, with bytes of this copy. The queue keeps all that is new in the segment,
 * or nothing. */
static void insert(struct queue *q, uint32_t off, uint32_t n, uint8_t copy)
{
    uint8_t data[300];
    memset(data, copy, n);
    struct rte_mbuf *m = nj_test_mbuf(q->pool, data, n);
    cr_assert_not_null(m);
    uint32_t held = q->tcb.x->reasm_bytes;
    struct nj_seg seg = {.seq = q->base + off, .payload_bytes = n};
    if (!nj__reasm_insert(&q->tcp, &q->tcb, m, &seg)) {
        cr_assert_eq(q->tcb.x->reasm_bytes, held);
        rte_pktmbuf_free(m);
        return;
    }
    uint32_t n_new = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_new += q->byte[off + i] < 0;
        if (q->byte[off + i] < 0)
            q->byte[off + i] = copy;
    }
    cr_assert_gt(n_new, 0, "accepted bytes that it holds");
    cr_assert_eq(q->tcb.x->reasm_bytes - held, n_new);
}

static void check_list(const struct queue *q)
{
    uint32_t n_bytes = 0, n_mbufs = 0, at = q->tcb.rcv_nxt - q->base;
    for (const struct rte_mbuf *m = q->tcb.x->reasm; m; m = m->next) {
        uint32_t off = m->hash.usr - q->base;
        cr_assert_geq(off, at, "overlap or disorder");
        at = off + m->data_len;
        for (uint32_t i = 0; i < m->data_len; i++)
            cr_assert_eq(rte_pktmbuf_mtod(m, uint8_t *)[i], q->byte[off + i]);
        n_bytes += m->data_len;
        n_mbufs++;
    }
    for (const struct rte_mbuf *m = q->tcb.x->rcvq.head; m; m = m->next)
        n_mbufs++;
    cr_assert_eq(n_bytes, q->tcb.x->reasm_bytes);
    cr_assert_eq(n_mbufs, q->tcb.x->rcvq.n_mbufs);
    cr_assert_leq(n_mbufs, NJ_RECV_MBUFS_MAX);
    cr_assert_eq(n_mbufs, q->tcp.n_held);
    cr_assert_eq(nj__rcv_highest_end_seq(&q->tcb) - q->base,
                 q->tcb.x->reasm ? at : q->tcb.rcv_nxt - q->base);
}

/* The byte at rcv_nxt arrives, in a segment of `n`. */
static void fill_hole(struct queue *q, uint32_t n, uint8_t copy)
{
    uint8_t data[300];
    uint32_t off = q->tcb.rcv_nxt - q->base;
    memset(data, copy, n);
    nj__rcvq_append(&q->tcp, &q->tcb, nj_test_mbuf(q->pool, data, n), 0, n);
    q->tcb.rcv_nxt += n;
    for (uint32_t i = 0; i < n; i++)
        q->byte[off + i] = copy; /* bytes in order are never compared again */
    nj__reasm_move_ready(&q->tcp, &q->tcb);
    uint32_t end = off;
    while (end < SPAN && q->byte[end] >= 0)
        end++;
    cr_assert_eq(q->tcb.rcv_nxt - q->base, end,
                 "the queue pulls the bytes in order, and no others");
}

/* Some of what can be read, in pieces that stay in the queue. */
static void look_at(struct queue *q, uint32_t n)
{
    struct nj_tcp_piece piece[NJ_RECV_MBUFS_MAX];
    uint32_t n_all = nj_tcp_recv_bytes(&q->tcb), off = q->n_delivered;

    n = nj_min_u32(n, n_all);
    uint32_t n_pieces = nj_tcp_recv_pieces(&q->tcb, n, piece, NJ_RECV_MBUFS_MAX);
    for (uint32_t k = 0; k < n_pieces; k++)
        for (uint32_t i = 0; i < piece[k].n_bytes; i++)
            cr_assert_eq(piece[k].p[i], q->byte[off++]);
    cr_assert_eq(off - q->n_delivered, n);
    cr_assert_eq(nj_tcp_recv_pieces(&q->tcb, n_all + 1, piece, NJ_RECV_MBUFS_MAX), 0);
    cr_assert(n_pieces < 2 || nj_tcp_recv_pieces(&q->tcb, n, piece, n_pieces - 1) == 0);
    cr_assert_eq(nj_tcp_recv_bytes(&q->tcb), n_all);
}

static void read_all(struct queue *q)
{
    const uint8_t *data;
    uint32_t n;

    look_at(q, 1 + q->tcb.rcv_nxt % 1500);
    while ((n = nj_tcp_recv_peek(&q->tcb, &data)) > 0) {
        for (uint32_t i = 0; i < n; i++)
            cr_assert_eq(data[i], q->byte[q->n_delivered + i]);
        q->n_delivered += n;
        nj_tcp_recv_take(&q->tcp, &q->tcb, n);
    }
    cr_assert_eq(q->n_delivered, q->tcb.rcv_nxt - q->base);
}

Test(tcp_receive_queue, agrees_with_an_array)
{
    const uint64_t seed = 0x4ea5;
    static struct queue q;
    struct nj_prng r;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    nj_list_init(&q.tcp.pending);
    q.pool = nj_test_pool(300);
    for (unsigned run = 0; run < 300; run++) {
        memset(&q.tcb, 0, sizeof q.tcb);
        memset(&q.xfer, 0, sizeof q.xfer);
        q.tcb.x = &q.xfer;
        q.tcp.n_held = 0;
        memset(q.byte, 0xff, sizeof q.byte);
        nj_list_init(&q.tcb.x->pending);
        q.base = run % 2 ? UINT32_MAX - nj_prng_below(&r, SPAN) : nj_prng_below(&r, UINT32_MAX);
        q.tcb.rcv_nxt = q.base;
        q.n_delivered = 0;
        uint32_t len_max = 1 + nj_prng_below(&r, 299), at;
        for (unsigned i = 0; i < 200 && (at = q.tcb.rcv_nxt - q.base) < SPAN - 700; i++) {
            uint32_t off = at + 1 + nj_prng_below(&r, 600 < SPAN - at - 301 ? 600 : 100);
            if (off + 300 < SPAN)
                insert(&q, off, 1 + nj_prng_below(&r, len_max), (uint8_t)nj_prng_next(&r));
            check_list(&q);
            if (nj_prng_below(&r, 20) == 0)
                fill_hole(&q, 1 + nj_prng_below(&r, len_max), (uint8_t)nj_prng_next(&r));
            check_list(&q);
            if (nj_prng_below(&r, 10) == 0)
                read_all(&q);
        }
        nj__mbuf_queue_free(&q.tcb.x->rcvq);
        nj__reasm_free(&q.tcb);
        cr_assert(nj_test_pool_full(q.pool));
    }
}

/* A segment that covers held pieces is kept from its first new byte to its last. It needs no more
 * mbufs than they did, so it is kept also while mbufs are short. */
Test(tcp_receive_queue, covers_what_is_held)
{
    static struct queue q;
    q.tcb.x = &q.xfer;
    q.pool = nj_test_pool(8);
    memset(q.byte, 0xff, sizeof q.byte);
    insert(&q, 30, 100, 3);
    insert(&q, 150, 100, 6);
    insert(&q, 250, 50, 7);
    q.tcp.cfg.held_max = 3; /* no more mbufs for this connection */
    insert(&q, 400, 100, 9);
    cr_expect_eq(q.byte[400], -1, "not refused");
    insert(&q, 20, 260, 4);
    check_list(&q);
    cr_expect_eq(q.tcb.x->reasm_bytes, 280);
    cr_expect_eq(q.tcb.x->rcvq.n_mbufs, 2);
    nj__reasm_free(&q.tcb);
    cr_expect(nj_test_pool_full(q.pool));
}

/* A shared mbuf is never written to: the segment is kept up to the first held piece. */
Test(tcp_receive_queue, shared_mbuf_is_not_written_to)
{
    static struct queue q;
    uint8_t data[300];
    struct nj_seg seg = {.seq = 10, .payload_bytes = sizeof data};

    q.tcb.x = &q.xfer;
    q.pool = nj_test_pool(8);
    memset(q.byte, 0xff, sizeof q.byte);
    insert(&q, 100, 100, 3);
    memset(data, 5, sizeof data);
    struct rte_mbuf *m = nj_test_mbuf(q.pool, data, sizeof data);
    const uint8_t *bytes = rte_pktmbuf_mtod(m, uint8_t *);
    rte_mbuf_refcnt_set(m, 2);
    cr_expect(nj__reasm_insert(&q.tcp, &q.tcb, m, &seg));
    cr_expect_eq(q.tcb.x->reasm_bytes, 190);
    cr_expect_arr_eq(bytes, data, sizeof data);
    rte_mbuf_refcnt_set(m, 1);
    nj__reasm_free(&q.tcb);
    cr_expect(nj_test_pool_full(q.pool));
}

Test(tcp_receive_queue, drop_last)
{
    static struct queue q;
    q.tcb.x = &q.xfer;
    q.pool = nj_test_pool(8);
    memset(q.byte, 0xff, sizeof q.byte);
    cr_expect_not(nj__reasm_drop_last(&q.tcp, &q.tcb));
    insert(&q, 30, 10, 3);
    insert(&q, 10, 10, 1);
    cr_expect(nj__reasm_drop_last(&q.tcp, &q.tcb));
    cr_expect_eq(nj__rcv_highest_end_seq(&q.tcb), 20);
    check_list(&q);
    cr_expect(nj__reasm_drop_last(&q.tcp, &q.tcb));
    cr_expect_eq(q.tcb.x->reasm_bytes, 0);
    cr_expect(nj_test_pool_full(q.pool));
}

/* Out-of-order data never uses the last 1/8 of held_max, however many connections there are. So
 * peers that leave holes open do not block other connections. */
Test(tcp_receive_queue, holes_leave_an_eighth)
{
    enum { N_CONNS = 64, HELD_MAX = 1000 };
    static struct nj_tcb tcb[N_CONNS];
    static struct nj_xfer xfer[N_CONNS];
    static struct nj_tcp tcp;
    struct rte_mempool *pool = nj_test_pool(HELD_MAX);

    tcp.cfg.held_max = HELD_MAX;
    for (uint32_t i = 0; i < N_CONNS; i++)
        tcb[i].x = &xfer[i];
    for (uint32_t round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < N_CONNS; i++) {
            struct nj_seg seg = {.seq = 2 * round + 1, .payload_bytes = 1};
            struct rte_mbuf *m = nj_test_mbuf(pool, "x", 1);
            if (!nj__reasm_insert(&tcp, &tcb[i], m, &seg))
                rte_pktmbuf_free(m);
        }
    }
    cr_expect_gt(tcp.n_held, HELD_MAX / 3);
    cr_expect_leq(tcp.n_held, HELD_MAX / 8 * 7 + 1);
    for (uint32_t i = 0; i < N_CONNS; i++)
        nj__reasm_free(&tcb[i]);
    cr_expect(nj_test_pool_full(pool));
}

/* Dynamic thresholds: many hoarding connections leave mbufs for the next one; a few may hold many.
 */
Test(tcp_receive_queue, hoarders_share_a_bound)
{
    enum { N_CONNS = 64, HELD_MAX = 1000 };
    static struct nj_tcb tcb[N_CONNS + 1];
    static struct nj_xfer xfer[N_CONNS + 1];
    static struct nj_tcp tcp;
    struct rte_mempool *pool = nj_test_pool(HELD_MAX + 64);

    tcp.cfg.held_max = HELD_MAX;
    for (uint32_t i = 0; i <= N_CONNS; i++)
        tcb[i].x = &xfer[i];
    for (uint32_t round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < N_CONNS; i++) {
            struct nj_seg seg = {.seq = 2 * round + 1, .payload_bytes = 1};
            struct rte_mbuf *m = nj_test_mbuf(pool, "x", 1);
            if (!nj__reasm_insert(&tcp, &tcb[i], m, &seg))
                rte_pktmbuf_free(m);
            if (i == 0 && round == 200)
                cr_expect_lt(tcb[0].x->rcvq.n_mbufs, 200,
                             "one of many connections has a smaller share than one alone");
        }
    }
    cr_expect_lt(tcp.n_held, HELD_MAX - 10);
    cr_expect(nj__rcv_may_hold(&tcp, &tcb[N_CONNS]), "a newcomer finds room");
    for (uint32_t i = 0; i < N_CONNS; i++) {
        cr_expect_geq(tcb[i].x->rcvq.n_mbufs, 3, "each connection holds some");
        tcp.n_held -= tcb[i].x->rcvq.n_mbufs;
        nj__reasm_free(&tcb[i]);
    }
    for (uint32_t n = 0; n < 199; n++) { /* alone: a fifth of the bound, n < (max - n) / 4 */
        struct nj_seg seg = {.seq = 2 * n + 1, .payload_bytes = 1};
        cr_assert(nj__reasm_insert(&tcp, &tcb[N_CONNS], nj_test_mbuf(pool, "x", 1), &seg));
    }
    nj__reasm_free(&tcb[N_CONNS]);
    cr_expect(nj_test_pool_full(pool));
}

/* While others hold more than half of the mbufs, a connection may hold a few out of order: the
 * first 16, and none while nearly all are held. */
Test(tcp_receive_queue, a_few_out_of_order_while_mbufs_are_short)
{
    static struct queue q;
    static const uint8_t data[2000];

    q.tcb.x = &q.xfer;
    q.pool = nj_test_pool(32);
    q.tcp.cfg.held_max = 1000;
    q.tcp.n_held = 600;
    for (uint32_t i = 0; i < 18; i++) {
        struct nj_seg seg = {.seq = 10 + i * 3000, .payload_bytes = sizeof data};
        struct rte_mbuf *m = nj_test_mbuf(q.pool, data, sizeof data);
        bool kept = nj__reasm_insert(&q.tcp, &q.tcb, m, &seg);
        cr_expect_eq(kept, i < 16, "segment %u", i);
        if (!kept)
            rte_pktmbuf_free(m);
    }
    nj__reasm_free(&q.tcb);
    q.xfer.rcvq.n_mbufs = 0;
    q.tcp.n_held = 900;
    struct nj_seg seg = {.seq = 10, .payload_bytes = sizeof data};
    struct rte_mbuf *m = nj_test_mbuf(q.pool, data, sizeof data);
    cr_expect(!nj__reasm_insert(&q.tcp, &q.tcb, m, &seg));
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(q.pool));
}
