/* SPDX-License-Identifier: BSD-3-Clause */
/* The mbuf pool of all other tests. */
#include <criterion/criterion.h>

#include "support/mbuf_env.h"

Test(mbuf_env, takes_and_gives_back)
{
    struct rte_mempool *pool = nj_test_pool(4);
    struct rte_mbuf *m[5];

    cr_assert(nj_test_pool_full(pool));
    for (int i = 0; i < 5; i++)
        m[i] = nj_test_mbuf(pool, "hello", 5);
    cr_expect_null(m[4]);
    cr_expect_not(nj_test_pool_full(pool));
    cr_expect_eq(rte_pktmbuf_pkt_len(m[0]), 5);
    cr_expect_eq(rte_pktmbuf_headroom(m[0]), RTE_PKTMBUF_HEADROOM);
    cr_expect_eq((uintptr_t)m[0] % RTE_CACHE_LINE_SIZE, 0);
    cr_expect_eq((char *)m[0]->buf_addr - (char *)rte_mbuf_to_priv(m[0]), NJ_TEST_PRIV_BYTES);
    cr_expect_arr_eq(rte_pktmbuf_mtod(m[0], char *), "hello", 5);
    for (int i = 0; i < 4; i++)
        rte_pktmbuf_free(m[i]);
    cr_expect(nj_test_pool_full(pool));
    nj_test_pool_free(pool);
}

Test(mbuf_env, clones_and_chains)
{
    struct rte_mempool *pool = nj_test_pool(8);
    struct rte_mbuf *head = nj_test_mbuf(pool, "ab", 2), *tail = nj_test_mbuf(pool, "cd", 2);

    cr_assert_eq(rte_pktmbuf_chain(head, tail), 0);
    struct rte_mbuf *clone = rte_pktmbuf_clone(head, pool);
    cr_assert_not_null(clone);
    rte_pktmbuf_free(head);
    cr_expect_not(nj_test_pool_full(pool));
    cr_expect_eq(rte_pktmbuf_pkt_len(clone), 4);
    rte_pktmbuf_free(clone);
    cr_expect(nj_test_pool_full(pool));
}

Test(mbuf_env, eal_starts_once)
{
    nj_test_eal();
    nj_test_eal();
    struct rte_mempool *pool = nj_test_pool(2);
    cr_expect(nj_test_pool_full(pool));
}
