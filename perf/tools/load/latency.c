/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency.h"

#include "telem/histogram.h"

static uint64_t get(const _Atomic uint64_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static void set(_Atomic uint64_t *p, uint64_t value)
{
    atomic_store_explicit(p, value, memory_order_relaxed);
}

static unsigned bucket_of(nj_ns value)
{
    if (value < LATENCY_PARTS)
        return (unsigned)value;
    if (value >= 1ull << LATENCY_LAST_BITS)
        return LATENCY_BUCKETS - 1;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - LATENCY_PART_BITS;
    return shift * LATENCY_PARTS + (unsigned)(value >> shift);
}

nj_ns latency_bucket_end(unsigned bucket)
{
    if (bucket < LATENCY_PARTS)
        return bucket;
    if (bucket >= LATENCY_BUCKETS - 1)
        return NJ_NEVER;
    unsigned shift = bucket / LATENCY_PARTS - 1;
    return (((nj_ns)(bucket - shift * LATENCY_PARTS) + 1) << shift) - 1;
}

void latency_add(struct latency *l, nj_ns value)
{
    _Atomic uint64_t *n = &l->n[bucket_of(value)];
    uint64_t least = get(&l->min_ns);

    set(n, get(n) + 1);
    set(&l->sum_ns, get(&l->sum_ns) + value);
    if (value < least || least == 0)
        set(&l->min_ns, value);
    if (value > get(&l->max_ns))
        set(&l->max_ns, value);
}

void latency_sum(struct latency *to, const struct latency *l)
{
    uint64_t least = get(&l->min_ns);

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        set(&to->n[i], get(&to->n[i]) + get(&l->n[i]));
    set(&to->sum_ns, get(&to->sum_ns) + get(&l->sum_ns));
    if (least > 0 && (least < get(&to->min_ns) || get(&to->min_ns) == 0))
        set(&to->min_ns, least);
    if (get(&l->max_ns) > get(&to->max_ns))
        set(&to->max_ns, get(&l->max_ns));
}

uint64_t latency_count(const struct latency *l)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        n += get(&l->n[i]);
    return n;
}

double latency_mean(const struct latency *l)
{
    uint64_t n = latency_count(l);
    return n ? (double)get(&l->sum_ns) / (double)n : 0;
}

nj_ns latency_at(const struct latency *l, double share)
{
    uint64_t n = latency_count(l), max = get(&l->max_ns), seen = 0;
    uint64_t rank = nj_percentile_rank(share, n);

    if (n == 0)
        return 0;
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        seen += get(&l->n[i]);
        if (seen >= rank)
            return latency_bucket_end(i) < max ? latency_bucket_end(i) : max;
    }
    return max;
}
