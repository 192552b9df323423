/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of one shard. Only the shard's lcore writes them. Any thread may read them and gets a
 * recent value of each. Their numbers are in counters_packet.h, counters_tcp.h, counters_conn.h and
 * counters_http.h; counters.h has all of them, and their names.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

/* The number of a counter, NJ_C_<name>. A list of counters has room for NJ_COUNTERS_LIST. */
typedef uint32_t nj_counter;
#define NJ_COUNTERS_LIST   96u
#define NJ_COUNTERS_PACKET (0 * NJ_COUNTERS_LIST)
#define NJ_COUNTERS_TCP    (1 * NJ_COUNTERS_LIST)
#define NJ_COUNTERS_CONN   (2 * NJ_COUNTERS_LIST)
#define NJ_COUNTERS_HTTP   (3 * NJ_COUNTERS_LIST)
#define NJ_COUNTERS_MAX    (4 * NJ_COUNTERS_LIST) /* above all numbers */

/* counters.def says what they are. */
enum nj_counter_kind {
    NJ_KIND_RX_IN,
    NJ_KIND_RX_OUT,
    NJ_KIND_RX_DROP,
    NJ_KIND_TX_IN,
    NJ_KIND_TX_OUT,
    NJ_KIND_TX_DROP,
    NJ_KIND_EVENT,
    NJ_KIND_GAUGE,
};

struct nj_counters {
    uint64_t n[NJ_COUNTERS_MAX];
} NJ_CACHE_ALIGNED;

/* Owning lcore only. A plain load and store: one writer needs no locked add. */
static inline void nj_count_n(struct nj_counters *c, nj_counter which, uint64_t n)
{
    __atomic_store_n(&c->n[which], __atomic_load_n(&c->n[which], __ATOMIC_RELAXED) + n,
                     __ATOMIC_RELAXED);
}

static inline void nj_count(struct nj_counters *c, nj_counter which)
{
    nj_count_n(c, which, 1);
}

/* Owning lcore only; for counters of kind GAUGE. */
static inline void nj_gauge_set(struct nj_counters *c, nj_counter which, uint64_t n)
{
    __atomic_store_n(&c->n[which], n, __ATOMIC_RELAXED);
}

/* Any thread. */
static inline uint64_t nj_counter_read(const struct nj_counters *c, nj_counter which)
{
    return __atomic_load_n(&c->n[which], __ATOMIC_RELAXED);
}

/* Sum of all counters of one kind. Any thread; exact only while the shard does not run. */
uint64_t nj_counters_sum_of_kind(const struct nj_counters *c, enum nj_counter_kind kind);
