/* SPDX-License-Identifier: BSD-3-Clause */
/* The mbuf cache: it hands out no mbuf twice, makes the last mbufs of the pool usable, and returns
 * all of them. */
#include <criterion/criterion.h>

#include "support/mbuf_env.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

#define MBUFS_MAX 100u

struct shelf {
    struct nj_tcp tcp;
    struct nj_counters counters;
    struct rte_mempool *pool;
    struct rte_mbuf *taken[MBUFS_MAX + 1];
    uint32_t n_taken;
};

static void init(struct shelf *s, unsigned n_mbufs)
{
    memset(s, 0, sizeof *s);
    s->pool = nj_test_pool(n_mbufs);
    s->tcp.cfg.mp = s->pool;
    s->tcp.cfg.counters = &s->counters;
}

static void take(struct shelf *s, uint32_t n)
{
    while (n-- > 0 && (s->taken[s->n_taken] = nj__mbuf_get(&s->tcp)))
        s->n_taken++;
}

static void fini(struct shelf *s)
{
    while (s->n_taken > 0)
        rte_pktmbuf_free(s->taken[--s->n_taken]);
    nj__mbuf_cache_drain(&s->tcp);
    cr_expect(nj_test_pool_full(s->pool));
    nj_test_pool_free(s->pool);
}

Test(tcp_mbuf_cache, as_good_as_new)
{
    struct shelf s;
    init(&s, MBUFS_MAX);
    for (unsigned round = 0; round < 2; round++) {
        take(&s, 50);
        cr_assert_eq(s.n_taken, 50);
        for (uint32_t i = 0; i < s.n_taken; i++) {
            struct rte_mbuf *m = s.taken[i];
            cr_expect_eq(rte_pktmbuf_headroom(m), RTE_PKTMBUF_HEADROOM);
            cr_expect_eq(m->data_len + m->pkt_len + m->nb_segs + rte_mbuf_refcnt_read(m), 2);
            cr_expect_eq(m->ol_flags, 0);
            cr_expect_null(m->next);
            m->data_len = (uint16_t)(i + 1); /* seen again if it is given out twice */
            m->ol_flags = RTE_MBUF_F_TX_TCP_CKSUM;
        }
        while (s.n_taken > 0)
            rte_pktmbuf_free(s.taken[--s.n_taken]);
    }
    fini(&s);
}

/* The pool is no multiple of the bulk size: the last mbufs are allocated one by one. Only failures
 * are counted. */
Test(tcp_mbuf_cache, to_the_last_one)
{
    struct shelf s;
    init(&s, 2 * NJ_TCP_MBUF_CACHE_MAX + 5);
    take(&s, 2 * NJ_TCP_MBUF_CACHE_MAX + 2);
    cr_expect_eq(s.n_taken, 2 * NJ_TCP_MBUF_CACHE_MAX + 2);
    cr_expect_eq(rte_mempool_avail_count(s.pool), 3);
    take(&s, 3);
    cr_expect_eq(s.n_taken, 2 * NJ_TCP_MBUF_CACHE_MAX + 5);
    cr_expect_eq(nj_counter_read(&s.counters, NJ_C_mbuf_none), 0);
    take(&s, 1);
    cr_expect_eq(s.n_taken, 2 * NJ_TCP_MBUF_CACHE_MAX + 5);
    cr_expect_eq(nj_counter_read(&s.counters, NJ_C_mbuf_none), 1);
    rte_pktmbuf_free(s.taken[--s.n_taken]);
    take(&s, 1);
    cr_expect_eq(s.n_taken, 2 * NJ_TCP_MBUF_CACHE_MAX + 5);
    fini(&s);
}

/* The number that is available limits a burst. */
Test(tcp_mbuf_cache, stock)
{
    struct shelf s;
    init(&s, NJ_TCP_MBUF_CACHE_MAX + 9);
    cr_expect_eq(nj__mbuf_cache_fill(&s.tcp), NJ_TCP_MBUF_CACHE_MAX);
    take(&s, 8);
    cr_expect_eq(nj__mbuf_cache_fill(&s.tcp), NJ_TCP_MBUF_CACHE_MAX);
    take(&s, 3);
    cr_expect_eq(nj__mbuf_cache_fill(&s.tcp), NJ_TCP_MBUF_CACHE_MAX - 3, "there is but one more");
    take(&s, NJ_TCP_MBUF_CACHE_MAX - 3);
    cr_expect_eq(nj__mbuf_cache_fill(&s.tcp), 1);
    take(&s, 1);
    cr_expect_eq(nj__mbuf_cache_fill(&s.tcp), 0);
    fini(&s);
}
