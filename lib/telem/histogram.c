/* SPDX-License-Identifier: BSD-3-Clause */
/* Log-linear histograms of durations. The static functions are for every precision; their callers
 * at the end pass a constant shape, so that the compiler makes code of one precision from them.
 * Contract: histogram.h. */
#include "telem/histogram.h"

#include "base/relaxed_atomics.h"

struct shape {
    uint8_t part_bits;  /* 2^part_bits buckets per power of two */
    uint8_t first_bits; /* below 2^first_bits ns all buckets have the same width */
    uint8_t last_bits;  /* one bucket for durations from 2^last_bits ns on */
    bool has_min;
};

#define BUCKETS(part_bits, first_bits, last_bits)                                                  \
    ((1u << (part_bits)) * (1 + (last_bits) - (first_bits)) + 1)

static const struct shape COARSE = {3, 10, 46, false}, FINE = {7, 7, 42, true};
_Static_assert(NJ_HISTOGRAM_BUCKETS == BUCKETS(3, 10, 46), "see histogram.h");
_Static_assert(NJ_HISTOGRAM_FINE_BUCKETS == BUCKETS(7, 7, 42), "see histogram.h");

static inline unsigned n_buckets(struct shape s)
{
    return BUCKETS(s.part_bits, s.first_bits, s.last_bits);
}

static inline unsigned bucket_of(struct shape s, nj_ns value)
{
    unsigned parts = 1u << s.part_bits;

    if (value < 1ull << s.first_bits)
        return (unsigned)(value >> (s.first_bits - s.part_bits));
    if (value >= 1ull << s.last_bits)
        return n_buckets(s) - 1;
    unsigned bits = 63u - (unsigned)__builtin_clzll(value);
    unsigned part = (unsigned)(value >> (bits - s.part_bits)) & (parts - 1);
    return parts + (bits - s.first_bits) * parts + part;
}

/* Lower bound of a bucket. */
static inline nj_ns bucket_min(struct shape s, unsigned bucket)
{
    unsigned parts = 1u << s.part_bits;

    if (bucket < parts)
        return (nj_ns)bucket << (s.first_bits - s.part_bits);
    unsigned bits = s.first_bits + (bucket - parts) / parts;
    return (nj_ns)(parts + bucket % parts) << (bits - s.part_bits);
}

/* Upper bound; the last bucket has none. */
static inline nj_ns bucket_max(struct shape s, unsigned bucket)
{
    return bucket >= n_buckets(s) - 1 ? NJ_NEVER : bucket_min(s, bucket + 1) - 1;
}

static inline void take_min(struct nj_histogram_totals *all, nj_ns value)
{
    nj_ns min = nj_load_relaxed(&all->min_ns);
    if (value < min || min == 0)
        nj_store_relaxed(&all->min_ns, value);
}

static inline void add(struct shape s, struct nj_histogram_totals *all, _Atomic uint64_t *n,
                       nj_ns value)
{
    /* a single writer needs no locked instruction */
    nj_add_single_writer(&n[bucket_of(s, value)], 1);
    nj_add_single_writer(&all->sum_ns, value);
    if (s.has_min)
        take_min(all, value);
    if (value > nj_load_relaxed(&all->max_ns))
        nj_store_relaxed(&all->max_ns, value);
}

static inline void merge_totals(struct nj_histogram_totals *to,
                                const struct nj_histogram_totals *all)
{
    nj_ns min = nj_load_relaxed(&all->min_ns);

    nj_add_single_writer(&to->sum_ns, nj_load_relaxed(&all->sum_ns));
    if (min > 0)
        take_min(to, min);
    if (nj_load_relaxed(&all->max_ns) > nj_load_relaxed(&to->max_ns))
        nj_store_relaxed(&to->max_ns, nj_load_relaxed(&all->max_ns));
}

static inline void merge_buckets(struct shape s, _Atomic uint64_t *to, const _Atomic uint64_t *n)
{
    for (unsigned i = 0; i < n_buckets(s); i++)
        nj_add_single_writer(&to[i], nj_load_relaxed(&n[i]));
}

static inline uint64_t count(struct shape s, const _Atomic uint64_t *n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n_buckets(s); i++)
        sum += nj_load_relaxed(&n[i]);
    return sum;
}

static inline nj_ns quantile(struct shape s, const struct nj_histogram_totals *all,
                             const _Atomic uint64_t *n, double share)
{
    uint64_t sum = count(s, n);
    nj_ns max = nj_load_relaxed(&all->max_ns);
    uint64_t seen = 0;
    unsigned i = 0;

    if (sum == 0)
        return 0;
    for (uint64_t rank = nj_percentile_rank(share, sum); i < n_buckets(s) - 1; i++) {
        seen += nj_load_relaxed(&n[i]);
        if (seen >= rank)
            break;
    }
    /* The last bucket is bounded only by the maximum. A maximum below the bucket has not been
     * updated yet by the writer. */
    nj_ns lowest = bucket_min(s, i), highest = bucket_max(s, i);
    return max < lowest ? lowest : max < highest ? max : highest;
}

void nj_histogram_add(struct nj_histogram *h, nj_ns value)
{
    add(COARSE, &h->all, h->n, value);
}

void nj_histogram_merge(struct nj_histogram *to, const struct nj_histogram *h)
{
    merge_buckets(COARSE, to->n, h->n);
    merge_totals(&to->all, &h->all);
}

uint64_t nj_histogram_count(const struct nj_histogram *h)
{
    return count(COARSE, h->n);
}

nj_ns nj_histogram_quantile(const struct nj_histogram *h, double share)
{
    return quantile(COARSE, &h->all, h->n, share);
}

void nj_histogram_fine_add(struct nj_histogram_fine *h, nj_ns value)
{
    add(FINE, &h->all, h->n, value);
}

void nj_histogram_fine_merge(struct nj_histogram_fine *to, const struct nj_histogram_fine *h)
{
    merge_buckets(FINE, to->n, h->n);
    merge_totals(&to->all, &h->all);
}

uint64_t nj_histogram_fine_count(const struct nj_histogram_fine *h)
{
    return count(FINE, h->n);
}

nj_ns nj_histogram_fine_quantile(const struct nj_histogram_fine *h, double share)
{
    return quantile(FINE, &h->all, h->n, share);
}

nj_ns nj_histogram_fine_bucket_max(unsigned bucket)
{
    return bucket_max(FINE, bucket);
}
