/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram of durations whose buckets grow with the duration. The error is a 128th: at most 0.8
 * % up to 73 minutes (2^42 ns), below 256 ns none. 37 KB. One writer; any thread may read. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/types.h"

/* 128 below 2^7 ns, 128 for each of 35 powers of two, and one for longer durations. */
#define FINE_HISTOGRAM_BUCKETS 4609u

struct fine_histogram {
    _Atomic uint64_t n[FINE_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum_ns, max_ns;
    _Atomic uint64_t min_ns; /* 0: it is empty */
};

/* The contracts are those of telem/histogram.h. */
void fine_histogram_add(struct fine_histogram *h, nj_ns value);
void fine_histogram_merge(struct fine_histogram *to, const struct fine_histogram *h);
uint64_t fine_histogram_count(const struct fine_histogram *h);
nj_ns fine_histogram_quantile(const struct fine_histogram *h, double share);
/* The longest duration of a bucket; NJ_NEVER for the last one. */
nj_ns fine_histogram_bucket_max(unsigned bucket);
