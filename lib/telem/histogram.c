/* SPDX-License-Identifier: BSD-3-Clause */
/* A log-linear histogram of durations, 8 buckets per power of two. Contract: histogram.h. */
#include "telem/histogram.h"

#include "base/atomics.h"

#define FIRST_BITS           10u /* below 2^10 ns all buckets have the same width */
#define SUB_BUCKET_BITS      3u  /* eight per power of two */
#define BUCKETS_PER_DOUBLING (1u << SUB_BUCKET_BITS)
#define LAST_BITS            46u

_Static_assert(NJ_HISTOGRAM_BUCKETS ==
                   BUCKETS_PER_DOUBLING + BUCKETS_PER_DOUBLING * (LAST_BITS - FIRST_BITS) + 1,
               "see histogram.h");

static unsigned bucket_of(nj_ns value)
{
    if (value < 1ull << FIRST_BITS)
        return (unsigned)(value >> (FIRST_BITS - SUB_BUCKET_BITS));
    if (value >= 1ull << LAST_BITS)
        return NJ_HISTOGRAM_BUCKETS - 1;
    unsigned bits = 63u - (unsigned)__builtin_clzll(value);
    unsigned part = (unsigned)(value >> (bits - SUB_BUCKET_BITS)) & (BUCKETS_PER_DOUBLING - 1);
    return BUCKETS_PER_DOUBLING + (bits - FIRST_BITS) * BUCKETS_PER_DOUBLING + part;
}

/* Lower bound of a bucket. */
static nj_ns bucket_min(unsigned bucket)
{
    if (bucket < BUCKETS_PER_DOUBLING)
        return (nj_ns)bucket << (FIRST_BITS - SUB_BUCKET_BITS);
    unsigned bits = FIRST_BITS + (bucket - BUCKETS_PER_DOUBLING) / BUCKETS_PER_DOUBLING;
    return (nj_ns)(BUCKETS_PER_DOUBLING + bucket % BUCKETS_PER_DOUBLING)
           << (bits - SUB_BUCKET_BITS);
}

void nj_histogram_add(struct nj_histogram *h, nj_ns value)
{
    _Atomic uint64_t *n = &h->n[bucket_of(value)];

    /* a single writer needs no locked instruction */
    nj_add_single_writer(n, 1);
    nj_add_single_writer(&h->sum_ns, value);
    if (value > nj_load_relaxed(&h->max_ns))
        nj_store_relaxed(&h->max_ns, value);
}

void nj_histogram_merge(struct nj_histogram *to, const struct nj_histogram *h)
{
    for (unsigned i = 0; i < NJ_HISTOGRAM_BUCKETS; i++)
        nj_add_single_writer(&to->n[i], nj_load_relaxed(&h->n[i]));
    nj_add_single_writer(&to->sum_ns, nj_load_relaxed(&h->sum_ns));
    if (nj_load_relaxed(&h->max_ns) > nj_load_relaxed(&to->max_ns))
        nj_store_relaxed(&to->max_ns, nj_load_relaxed(&h->max_ns));
}

uint64_t nj_histogram_count(const struct nj_histogram *h)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < NJ_HISTOGRAM_BUCKETS; i++)
        n += nj_load_relaxed(&h->n[i]);
    return n;
}

nj_ns nj_histogram_quantile(const struct nj_histogram *h, double share)
{
    uint64_t n = nj_histogram_count(h);
    uint64_t max = nj_load_relaxed(&h->max_ns), seen = 0;
    unsigned i = 0;

    if (n == 0)
        return 0;
    for (uint64_t rank = nj_percentile_rank(share, n); i < NJ_HISTOGRAM_BUCKETS - 1; i++) {
        seen += nj_load_relaxed(&h->n[i]);
        if (seen >= rank)
            break;
    }
    /* The last bucket is bounded only by the maximum. A maximum below the bucket has not been
     * updated yet by the writer. */
    nj_ns highest = i == NJ_HISTOGRAM_BUCKETS - 1 ? UINT64_MAX : bucket_min(i + 1) - 1;
    return max < bucket_min(i) ? bucket_min(i) : max < highest ? max : highest;
}
