/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of one shard. Only the shard's lcore writes them. Any thread may read them and gets a
 * recent value of each.
 */
#ifndef NJ_TELEM_COUNTERS_H
#define NJ_TELEM_COUNTERS_H

#include <stdint.h>

#include "base/compiler.h"

enum nj_counter {
#define NJ_COUNTER(kind, name, what) NJ_C_##name,
#include "telem/counters.def"
#undef NJ_COUNTER
    NJ_N_COUNTERS
};

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

struct nj_counter_info {
    const char *name, *what;
    enum nj_counter_kind kind;
};

/* One entry per counter, in the order of the enum. */
extern const struct nj_counter_info nj_counter_info[NJ_N_COUNTERS];

struct nj_counters {
    uint64_t n[NJ_N_COUNTERS];
} NJ_CACHE_ALIGNED;

/* Owning lcore only. A plain load and store: one writer needs no locked add. */
static inline void nj_count_n(struct nj_counters *c, enum nj_counter which, uint64_t n)
{
    __atomic_store_n(&c->n[which], __atomic_load_n(&c->n[which], __ATOMIC_RELAXED) + n,
                     __ATOMIC_RELAXED);
}

static inline void nj_count(struct nj_counters *c, enum nj_counter which)
{
    nj_count_n(c, which, 1);
}

/* Owning lcore only; for counters of kind GAUGE. */
static inline void nj_gauge_set(struct nj_counters *c, enum nj_counter which, uint64_t n)
{
    __atomic_store_n(&c->n[which], n, __ATOMIC_RELAXED);
}

/* Any thread. */
static inline uint64_t nj_counter_read(const struct nj_counters *c, enum nj_counter which)
{
    return __atomic_load_n(&c->n[which], __ATOMIC_RELAXED);
}

/* Sum of all counters of one kind. Any thread; exact only while the shard does not run. */
uint64_t nj_counters_sum_of_kind(const struct nj_counters *c, enum nj_counter_kind kind);

#endif
