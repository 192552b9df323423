/* SPDX-License-Identifier: BSD-3-Clause */
/* Log-linear histograms of durations. Contract: histogram.h. */
#include "telem/histogram.h"

#include "base/assert.h"
#include "base/relaxed_atomics.h"

enum {
    PART_BITS = 3,   /* 2^PART_BITS buckets per power of two */
    FIRST_BITS = 10, /* below 2^FIRST_BITS ns all buckets have the same width */
    LAST_BITS = 46,  /* one bucket for durations from 2^LAST_BITS ns on */
    PARTS = 1 << PART_BITS,
};
_Static_assert(FIRST_BITS == NJ_HISTOGRAM_BITS_MIN && LAST_BITS == NJ_HISTOGRAM_BITS_MAX,
               "see histogram.h");
_Static_assert(NJ_HISTOGRAM_BUCKETS == PARTS * (1 + LAST_BITS - FIRST_BITS) + 1, "see histogram.h");

static inline unsigned bucket_of(nj_ns value)
{
    if (value < 1ull << FIRST_BITS)
        return (unsigned)(value >> (FIRST_BITS - PART_BITS));
    if (value >= 1ull << LAST_BITS)
        return NJ_HISTOGRAM_BUCKETS - 1;
    unsigned bits = 63u - (unsigned)__builtin_clzll(value);
    unsigned part = (unsigned)(value >> (bits - PART_BITS)) & (PARTS - 1);
    return PARTS + (bits - FIRST_BITS) * PARTS + part;
}

/* Lower bound of a bucket. */
static nj_ns bucket_min(unsigned bucket)
{
    if (bucket < PARTS)
        return (nj_ns)bucket << (FIRST_BITS - PART_BITS);
    unsigned bits = FIRST_BITS + (bucket - PARTS) / PARTS;
    return (nj_ns)(PARTS + bucket % PARTS) << (bits - PART_BITS);
}

/* Upper bound; the last bucket has none. */
static nj_ns bucket_max(unsigned bucket)
{
    return bucket >= NJ_HISTOGRAM_BUCKETS - 1 ? NJ_NEVER : bucket_min(bucket + 1) - 1;
}

void nj_histogram_add(struct nj_histogram *h, nj_ns value)
{
    /* a single writer needs no locked instruction */
    nj_add_single_writer(&h->n[bucket_of(value)], 1);
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
    uint64_t sum = 0;
    for (unsigned i = 0; i < NJ_HISTOGRAM_BUCKETS; i++)
        sum += nj_load_relaxed(&h->n[i]);
    return sum;
}

uint64_t nj_histogram_count_below(const struct nj_histogram *h, unsigned bits)
{
    uint64_t sum = 0;

    NJ_ASSERT(bits >= FIRST_BITS && bits <= LAST_BITS);
    for (unsigned i = 0; i < PARTS * (1 + bits - FIRST_BITS); i++)
        sum += nj_load_relaxed(&h->n[i]);
    return sum;
}

nj_ns nj_histogram_quantile(const struct nj_histogram *h, double share)
{
    uint64_t sum = nj_histogram_count(h);
    nj_ns max = nj_load_relaxed(&h->max_ns);
    uint64_t seen = 0;
    unsigned i = 0;

    if (sum == 0)
        return 0;
    for (uint64_t rank = nj_percentile_rank(share, sum); i < NJ_HISTOGRAM_BUCKETS - 1; i++) {
        seen += nj_load_relaxed(&h->n[i]);
        if (seen >= rank)
            break;
    }
    /* The last bucket is bounded only by the maximum. A maximum below the bucket has not been
     * updated yet by the writer. */
    nj_ns lowest = bucket_min(i), highest = bucket_max(i);
    return max < lowest ? lowest : max < highest ? max : highest;
}
