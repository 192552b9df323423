/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram of durations whose buckets grow with the duration. The error is an eighth: at most
 * 12.5 % from 1 us to 19 hours (2^10 to 2^46 ns), below that 127 ns. 2.4 KB: the server has several
 * per shard. One writer; any thread may read. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/types.h"

/* Eight below 2^10 ns, eight for each of 36 powers of two, and one for longer durations. */
#define NJ_HISTOGRAM_BUCKETS  297u
/* The powers of two at which a bucket begins, in ns. */
#define NJ_HISTOGRAM_BITS_MIN 10u
#define NJ_HISTOGRAM_BITS_MAX 46u

/* `n` is first: nj_histogram_add() then needs no instruction to find it. */
struct nj_histogram {
    _Atomic uint64_t n[NJ_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum_ns, max_ns; /* of all values */
};

/* share * n, rounded up; 0.07 * 100, which is slightly more than 7 in floating point, must be 7. */
static inline uint64_t nj_percentile_rank(double share, uint64_t n)
{
    double exact = share * (double)n * (1 - 1e-12);
    uint64_t rank = (uint64_t)exact;

    if ((double)rank < exact)
        rank++;
    return rank < 1 ? 1 : rank > n ? n : rank;
}

void nj_histogram_add(struct nj_histogram *h, nj_ns value);
/* Add `h` to `to`. Any thread; `to` is private to the caller. */
void nj_histogram_merge(struct nj_histogram *to, const struct nj_histogram *h);
uint64_t nj_histogram_count(const struct nj_histogram *h);
/* The number of values below 2^bits ns, NJ_HISTOGRAM_BITS_MIN <= bits <= NJ_HISTOGRAM_BITS_MAX. */
uint64_t nj_histogram_count_below(const struct nj_histogram *h, unsigned bits);
/* The quantile `share`, 0 < share <= 1; 0 if the histogram is empty. The result is never below the
 * true value, above it by at most the error stated above, and never above the maximum. For share 1,
 * and for values beyond the range stated above, it is the maximum. */
nj_ns nj_histogram_quantile(const struct nj_histogram *h, double share);
