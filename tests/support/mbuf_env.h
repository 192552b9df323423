/* SPDX-License-Identifier: BSD-3-Clause */
/* * Mbufs for unit tests, without the EAL.
 *
 * Starting the EAL costs 130 ms in each test process, because Debian's loads every driver it finds.
 * A mempool needs no driver: this one is built by hand, on malloc(). Every mbuf is an allocation of
 * its own and is poisoned while it is in the pool, so AddressSanitizer sees a write past its end
 * and any use after it was freed.
 *
 * Tests of functions that need the EAL (rte_ring_create(), rte_malloc(), devices) call
 * nj_test_eal() first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Private area of each mbuf. */
#define NJ_TEST_PRIV_BYTES 64u

/* A pool of `n` mbufs with RTE_MBUF_DEFAULT_BUF_SIZE of data room, without a cache. Any thread may
 * take and put. Aborts without memory. Valid until the process ends or it is freed. */
struct rte_mempool *nj_test_pool(unsigned n);

/* Free `pool` and its mbufs, all of which must be back. Not required at the end of a test. */
void nj_test_pool_free(struct rte_mempool *pool);

/* Whether every mbuf was returned. To be checked at the end of a test. */
bool nj_test_pool_full(const struct rte_mempool *pool);

/* An mbuf of one segment with a copy of `n` bytes, or NULL when the pool is empty. Aborts when they
 * do not fit in the data room after the usual headroom. */
struct rte_mbuf *nj_test_mbuf(struct rte_mempool *pool, const void *bytes, size_t n);

/* Start the EAL of this process: one lcore, 64 MB without huge pages, no devices. Once only, more
 * calls do nothing. Aborts when it does not start. */
void nj_test_eal(void);
