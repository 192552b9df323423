/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of mbufs on malloc(), for processes without an EAL: rte_mempool_create() needs memzones,
 * which need the EAL. Mbufs are allocated when they are first taken, each for itself, so sanitizers
 * and valgrind see accesses beyond their ends. */
#pragma once

#include <stdbool.h>

#include <rte_mempool.h>

/* A pool of up to `n` mbufs with RTE_MBUF_DEFAULT_BUF_SIZE bytes of data room, without a cache. Any
 * thread may take and put. NULL: no memory, or DPDK has no room for its operations. */
struct rte_mempool *nj__mbuf_pool_new(unsigned n);
/* Frees the pool. All mbufs must be back. NULL is valid. */
void nj__mbuf_pool_free(struct rte_mempool *pool);
