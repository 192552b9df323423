/* SPDX-License-Identifier: BSD-3-Clause */
/* Durations in buckets that grow by 1/128, as HDR histograms have them: each is known to 0.8 %,
 * below 128 ns to the nanosecond, up to 2^42 ns (73 minutes). One writer, read by anyone.
 * lib/telem/histogram.h is the coarse one, which servers can afford per shard. */
#ifndef NJ_PERF_LOAD_LATENCY_H
#define NJ_PERF_LOAD_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/types.h"

#define LATENCY_PART_BITS 7u
#define LATENCY_PARTS     (1u << LATENCY_PART_BITS)
#define LATENCY_LAST_BITS 42u
/* 128 of a nanosecond each, 128 for each doubling above, and one for what is longer. */
#define LATENCY_BUCKETS                                                                            \
    (LATENCY_PARTS + LATENCY_PARTS * (LATENCY_LAST_BITS - LATENCY_PART_BITS) + 1)

struct latency {
    _Atomic uint64_t n[LATENCY_BUCKETS];
    _Atomic uint64_t sum_ns, min_ns, max_ns; /* min_ns: 0 as long as there are none */
};

void latency_add(struct latency *l, nj_ns value);
/* `to`, which nobody else uses, becomes both together. */
void latency_sum(struct latency *to, const struct latency *l);
uint64_t latency_count(const struct latency *l);
/* The least value of which is known that this share of all do not exceed it, 0 < share <= 1: never
 * less than the true one, at most 0.8 % more. 0 when there are none. */
nj_ns latency_at(const struct latency *l, double share);
double latency_mean(const struct latency *l);
/* The longest that falls into this bucket. */
nj_ns latency_bucket_end(unsigned bucket);

#endif
