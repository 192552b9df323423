/* SPDX-License-Identifier: BSD-3-Clause */
/* Durations in buckets that grow by an eighth: each is known to 12.5 %, from 1 us to 19 hours.
 * One writer, read by anyone. */
#ifndef NJ_TELEM_HISTOGRAM_H
#define NJ_TELEM_HISTOGRAM_H

#include <stdint.h>

#include "base/types.h"

#define NJ_HISTOGRAM_BUCKETS 296u

struct nj_histogram {
    _Atomic uint64_t n[NJ_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum_ns, max_ns;
};

void nj_histogram_add(struct nj_histogram *h, nj_ns value);
/* Any thread. `to` is not shared. */
void nj_histogram_sum(struct nj_histogram *to, const struct nj_histogram *h);
uint64_t nj_histogram_count(const struct nj_histogram *h);
/* The value below which this share of them lies, 0 < share <= 1; 0 when there are none. */
nj_ns nj_histogram_at(const struct nj_histogram *h, double share);

#endif
