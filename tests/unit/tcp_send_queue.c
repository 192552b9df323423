/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queue against a plain array: the same bytes from every start of a segment, and every
 * reference released. */
#include <criterion/criterion.h>

#include <stdio.h>

#include <rte_mbuf.h>

#include "base/prng.h"
#include "support/mbuf_env.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"
#include "wire/csum.h"

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
    nj__mbuf_cache_drain(&q->tcp);
    cr_expect(nj_test_pool_full(q->pool));
    free(q->stream);
}

static void queue_some(struct queue *q, struct nj_prng *r, uint32_t n)
{
    uint8_t *bytes = q->stream + q->n_queued;
    bool ok;

    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)nj_prng_next(r);
    if (nj_prng_below(r, 2) == 0)
        ok = nj_tcp_send_copy(&q->tcp, &q->tcb, bytes, n);
    else
        ok = nj_tcp_send_refer(&q->tcp, &q->tcb, &(struct nj_slice){bytes, n, &q->ref});
    if (ok)
        q->n_queued += n;
}

static void ack(struct queue *q, uint32_t n)
{
    nj__sndq_drop_acked(&q->tcb, n);
    q->tcb.snd_una += n;
    q->n_acked += n;
}

static void fill(struct queue *q, uint32_t off, uint32_t n)
{
    struct rte_mbuf *m = nj_test_mbuf(q->pool, "", 0);
    if (!m)
        return;
    bool summed = (off + n) % 3 != 0;
    uint64_t sum = nj__sndq_copy(&q->tcb, q->tcb.snd_una + off, n, m, summed);
    cr_assert_eq(m->pkt_len, n);
    cr_assert_eq(nj__csum_fold(sum), summed ? nj__csum_fold(nj__csum_add_mbuf(0, m)) : 0);
    cr_assert(memcmp(rte_pktmbuf_mtod(m, void *), q->stream + q->n_acked + off, n) == 0,
              "%u bytes at %u differ", n, off);
    rte_pktmbuf_free(m);
}

/* A TSO packet that the device reads late: its bytes stay valid until then, also when the queue
 * changes. */
struct held {
    struct rte_mbuf *m;
    uint32_t at, n; /* of the stream */
};

static void hold(struct queue *q, struct held *h, uint32_t off, uint32_t n)
{
    uint32_t n_mbufs = 0, n_bytes = 0;

    if (!(h->m = nj_test_mbuf(q->pool, "", 0)))
        return;
    if (!nj__sndq_chain(&q->tcp, &q->tcb, q->tcb.snd_una + off, n, h->m)) {
        rte_pktmbuf_free(h->m);
        h->m = NULL;
        return;
    }
    for (const struct rte_mbuf *m = h->m; m; m = m->next, n_mbufs++)
        n_bytes += m->data_len;
    cr_assert(n_bytes == n && h->m->pkt_len == n && h->m->nb_segs == n_mbufs);
    cr_assert_leq(n_mbufs, q->tcp.cfg.tx.tso_mbufs_max);
    h->at = q->n_acked + off;
    h->n = n;
}

static uint32_t let_go(struct queue *q, struct held *h)
{
    uint32_t n_referred = 0;
    const uint8_t *want = q->stream + h->at;

    for (const struct rte_mbuf *m = h->m; m; m = m->next) {
        cr_assert(memcmp(rte_pktmbuf_mtod(m, void *), want, m->data_len) == 0,
                  "bytes from %u on differ", (unsigned)(want - q->stream));
        want += m->data_len;
        n_referred += !!RTE_MBUF_CLONED(m);
    }
    rte_pktmbuf_free(h->m);
    h->m = NULL;
    return n_referred;
}

#define HELD 16u

static void run_chains(uint64_t seed, unsigned n_mbufs, uint32_t piece_max, uint16_t mbufs_max)
{
    struct held held[HELD] = {{.n = 0}};
    struct queue q;
    struct nj_prng r;
    uint32_t n_referred = 0, n_max = (mbufs_max - 1u) * RTE_MBUF_DEFAULT_DATAROOM;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    init(&q, n_mbufs);
    q.tcp.cfg.tx.tso_mbufs_max = mbufs_max;
    for (unsigned step = 0; step < 6000 && q.n_queued < STREAM_MAX - 20000; step++) {
        uint32_t n = 1 + nj_prng_below(&r, piece_max);
        struct held *h = &held[nj_prng_below(&r, HELD)];
        if (n <= nj_tcp_send_room(&q.tcb))
            queue_some(&q, &r, n);
        n_referred += let_go(&q, h);
        uint32_t n_held = q.tcb.x->sndq.n_bytes;
        if (n_held > 0) {
            uint32_t off = nj_prng_below(&r, n_held), left = n_held - off;
            n = 1 + nj_prng_below(&r, left < n_max ? left : n_max);
            hold(&q, h, off, n);
            if (nj_prng_below(&r, 3) == 0)
                ack(&q, 1 + nj_prng_below(&r, n_held));
        }
    }
    for (unsigned i = 0; i < HELD; i++)
        n_referred += let_go(&q, &held[i]);
    cr_expect_gt(q.n_queued, 3000, "%u", q.n_queued);
    cr_expect(n_referred > 20 || piece_max < 100, "%u references", n_referred);
    fini(&q);
}

Test(tcp_send_queue, chains_stay_as_they_were)
{
    run_chains(1, 2000, 9000, 40);
    run_chains(2, 2000, 3000, 8);
    run_chains(3, 60, 9000, 33); /* the pool is empty now and then */
    run_chains(4, 2000, 90, 40);
    run_chains(5, 2000, 2500, 3);
}

static void run(uint64_t seed, unsigned n_mbufs, uint32_t piece_max)
{
    struct queue q;
    struct nj_prng r;
    uint32_t next = 0; /* the position of a sender that sends in order */

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

Test(tcp_send_queue, agrees_with_an_array)
{
    run(1, 400, 9000);
    run(2, 400, 100);
    run(3, 20, 9000); /* the pool is empty now and then */
    run(4, 3000, 3);
}

Test(tcp_send_queue, small_copies_share_an_mbuf)
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

Test(tcp_send_queue, refused_whole_when_the_pool_is_empty)
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

/* Old data is sent between new data, hole after hole, and some of it twice. The bytes are the same
 * for every position of the two cursors. */
Test(tcp_send_queue, old_and_new_in_turn)
{
    enum { N = 2000, LEN = 1000 };
    struct queue q;
    struct nj_tcb *t = &q.tcb;

    init(&q, N + 40);
    for (uint32_t i = 0; i < N; i++) {
        memset(q.stream + i * LEN, (int)(i % 251), LEN);
        struct nj_slice s = {.data = q.stream + i * LEN, .n_bytes = LEN, .ref = &q.ref};
        cr_assert(nj_tcp_send_refer(&q.tcp, t, &s));
    }
    for (uint32_t i = 0; i < 2 * N; i++) {
        uint32_t n = i % 2 ? N / 2 + i / 4 : i / 8 * 2; /* new: the second half; old: every second
                                                         * one */
        struct rte_mbuf *m = nj_test_mbuf(q.pool, "", 0);
        cr_assert_not_null(m);
        nj__sndq_copy(t, t->snd_una + n * LEN, LEN, m, false);
        cr_assert_eq(memcmp(rte_pktmbuf_mtod(m, void *), q.stream + n * LEN, LEN), 0);
        rte_pktmbuf_free(m);
    }
    fini(&q);
}
