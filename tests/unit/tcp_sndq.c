/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queue against a plain array: the same bytes, wherever a segment begins; every reference
 * given back. */
#include <criterion/criterion.h>

#include <stdio.h>

#include <rte_mbuf.h>

#include "base/prng.h"
#include "support/mbuf_env.h"
#include "tcp/tcp_internal.h"

#define STREAM_MAX (4u * 1024 * 1024)

struct queue {
    struct nj_tcp tcp;
    struct nj_counters counters;
    struct nj_tcb tcb;
    struct nj_xfer xfer;
    struct rte_mempool *pool;
    struct nj_ref ref; /* of everything that is queued by reference */
    uint8_t *stream;   /* every byte that was ever queued */
    uint32_t n_queued, n_acked;
};

static void never(struct nj_ref *r)
{
    (void)r;
    cr_assert(false, "the test's own reference is gone");
}

static void init(struct queue *q, unsigned n_mbufs)
{
    memset(q, 0, sizeof *q);
    q->pool = nj_test_pool(n_mbufs);
    q->tcp.cfg.mp = q->pool;
    q->tcp.cfg.counters = &q->counters;
    nj_list_init(&q->tcp.pending);
    q->tcb.x = &q->xfer;
    q->xfer.tcb = &q->tcb;
    nj_list_init(&q->xfer.pending);
    q->tcb.state = NJ_TCP_ESTABLISHED;
    q->tcb.snd_una = UINT32_MAX - 30000; /* wraps on the way */
    nj_ref_init(&q->ref, never);
    q->stream = malloc(STREAM_MAX);
}

static void fini(struct queue *q)
{
    nj__mbuf_queue_free(&q->tcb.x->sndq);
    cr_expect_eq(q->ref.n, 1, "references left: %u", q->ref.n - 1);
    cr_expect(nj_test_pool_full(q->pool));
    free(q->stream);
}

static void queue_some(struct queue *q, struct nj_prng *r, uint32_t n)
{
    uint8_t *bytes = q->stream + q->n_queued;
    bool ok;

    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)nj_prng_next(r);
    if (nj_prng_below(r, 2))
        ok = nj_tcp_send_copy(&q->tcp, &q->tcb, bytes, n);
    else
        ok = nj_tcp_send_refer(&q->tcp, &q->tcb, &(struct nj_slice){bytes, n, &q->ref});
    if (ok)
        q->n_queued += n;
}

static void ack(struct queue *q, uint32_t n)
{
    nj__sndq_acked(&q->tcb, n);
    q->tcb.snd_una += n;
    q->n_acked += n;
}

static void fill(struct queue *q, uint32_t off, uint32_t n)
{
    struct rte_mbuf *m = nj_test_mbuf(q->pool, "", 0);
    if (!m)
        return;
    nj__sndq_fill(&q->tcb, q->tcb.snd_una + off, n, m);
    cr_assert_eq(m->pkt_len, n);
    cr_assert(memcmp(rte_pktmbuf_mtod(m, void *), q->stream + q->n_acked + off, n) == 0,
              "%u bytes at %u differ", n, off);
    rte_pktmbuf_free(m);
}

static void run(uint64_t seed, unsigned n_mbufs, uint32_t piece_max)
{
    struct queue q;
    struct nj_prng r;
    uint32_t next = 0; /* where a sender that goes forward stands */

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    init(&q, n_mbufs);
    for (unsigned step = 0; step < 6000 && q.n_queued < STREAM_MAX - 20000; step++) {
        uint32_t held = q.tcb.x->sndq.n_bytes;
        cr_assert_eq(held, q.n_queued - q.n_acked);
        uint32_t room = nj_tcp_send_room(&q.tcb), n = 1 + nj_prng_below(&r, piece_max);
        cr_assert_leq(room, NJ_SENDQ_BYTES_MAX);
        if (n <= room && nj_prng_below(&r, 2))
            queue_some(&q, &r, n);
        if (held && nj_prng_below(&r, 3) == 0) {
            uint32_t part = nj_prng_below(&r, 5) ? nj_prng_below(&r, held) + 1 : held;
            ack(&q, part);
            next = next > part ? next - part : 0;
        }
        held = q.tcb.x->sndq.n_bytes;
        for (unsigned k = 0; k < 3 && next < held; k++) {
            uint32_t left = held - next, part = left < 1460 ? left : 1460;
            fill(&q, next, part);
            next += part;
        }
        if (held && nj_prng_below(&r, 4) == 0) { /* a retransmission */
            uint32_t off = nj_prng_below(&r, held), left = held - off;
            fill(&q, off, nj_prng_below(&r, (left < 1460 ? left : 1460) + 1));
        }
    }
    cr_expect_gt(q.n_queued, 3000, "%u", q.n_queued);
    fini(&q);
}

Test(tcp_sndq, agrees_with_an_array)
{
    run(1, 400, 9000);
    run(2, 400, 100);
    run(3, 20, 9000); /* the pool is empty now and then */
    run(4, 3000, 3);
}

Test(tcp_sndq, small_copies_share_an_mbuf)
{
    struct queue q;
    struct nj_prng r;
    nj_prng_init(&r, 5);
    init(&q, 8);
    for (unsigned i = 0; i < 100; i++)
        cr_assert(nj_tcp_send_copy(&q.tcp, &q.tcb, (const uint8_t *)"0123456789", 10));
    cr_expect_eq(q.tcb.x->sndq.n_mbufs, 1);
    fini(&q);
}

Test(tcp_sndq, refused_whole_when_the_pool_is_empty)
{
    static const uint8_t text[10000];
    struct queue q;
    init(&q, 4);
    cr_expect_not(nj_tcp_send_copy(&q.tcp, &q.tcb, text, sizeof text));
    cr_expect_eq(q.tcb.x->sndq.n_bytes, 0);
    cr_expect(nj_test_pool_full(q.pool));
    cr_expect(nj_tcp_send_copy(&q.tcp, &q.tcb, text, 8000));
    cr_expect_not(nj_tcp_send_refer(&q.tcp, &q.tcb, &(struct nj_slice){text, 5, &q.ref}));
    cr_expect_eq(nj_counter_read(&q.counters, NJ_C_mbuf_none), 2);
    fini(&q);
}
