/* SPDX-License-Identifier: BSD-3-Clause */
#include "telem/histogram.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "fine_histogram.h"

/* Either histogram. */
union any {
    struct nj_histogram coarse;
    struct fine_histogram fine;
};

/* The functions of one precision, and the bounds of its header. */
struct precision {
    const char *name;
    unsigned part_bits, first_bits, last_bits, n_buckets;
    nj_ns least_error; /* of short durations */
    void (*add)(union any *h, nj_ns value);
    void (*merge)(union any *to, const union any *h);
    uint64_t (*count)(const union any *h);
    nj_ns (*quantile)(const union any *h, double share);
    nj_ns (*sum)(const union any *h);
    nj_ns (*max)(const union any *h);
    uint64_t (*bucket)(const union any *h, unsigned i);
};

#define FUNCTIONS(member, prefix)                                                                  \
    static void member##_add(union any *h, nj_ns value)                                            \
    {                                                                                              \
        prefix##_add(&h->member, value);                                                           \
    }                                                                                              \
    static void member##_merge(union any *to, const union any *h)                                  \
    {                                                                                              \
        prefix##_merge(&to->member, &h->member);                                                   \
    }                                                                                              \
    static uint64_t member##_count(const union any *h)                                             \
    {                                                                                              \
        return prefix##_count(&h->member);                                                         \
    }                                                                                              \
    static nj_ns member##_quantile(const union any *h, double share)                               \
    {                                                                                              \
        return prefix##_quantile(&h->member, share);                                               \
    }                                                                                              \
    static nj_ns member##_sum(const union any *h)                                                  \
    {                                                                                              \
        return h->member.sum_ns;                                                                   \
    }                                                                                              \
    static nj_ns member##_max(const union any *h)                                                  \
    {                                                                                              \
        return h->member.max_ns;                                                                   \
    }                                                                                              \
    static uint64_t member##_bucket(const union any *h, unsigned i)                                \
    {                                                                                              \
        return h->member.n[i];                                                                     \
    }
FUNCTIONS(coarse, nj_histogram)
FUNCTIONS(fine, fine_histogram)

static const struct precision precisions[] = {
    {"coarse", 3, 10, 46, NJ_HISTOGRAM_BUCKETS, 127, coarse_add, coarse_merge, coarse_count,
     coarse_quantile, coarse_sum, coarse_max, coarse_bucket},
    {"fine", 7, 7, 42, FINE_HISTOGRAM_BUCKETS, 0, fine_add, fine_merge, fine_count, fine_quantile,
     fine_sum, fine_max, fine_bucket},
};

static union any h;

static void clear(void)
{
    memset(&h, 0, sizeof h);
}

/* Run the rest of a test once for each precision, with an empty histogram. */
#define EACH(p)                                                                                    \
    for (const struct precision *p = precisions;                                                   \
         p < precisions + sizeof precisions / sizeof *precisions && (clear(), true); p++)

/* How far above `value` a quantile may be. */
static nj_ns room(const struct precision *p, nj_ns value)
{
    return value < 1ull << p->first_bits ? p->least_error : value >> p->part_bits;
}

/* The header's bounds for a single value, with a larger one beside it, so that the maximum does not
 * hide an error. */
static void check_bound(const struct precision *p, nj_ns value)
{
    clear();
    p->add(&h, value);
    p->add(&h, UINT64_MAX);
    nj_ns at = p->quantile(&h, 0.5);
    cr_assert(at >= value && at - value <= room(p, value), "%s: %" PRIu64 " is shown as %" PRIu64,
              p->name, value, at);
}

Test(histogram, every_edge_is_known_to_the_precision)
{
    EACH(p)
    {
        for (nj_ns v = 0; v < 70000; v++)
            check_bound(p, v);
        for (unsigned bits = 16; bits < p->last_bits; bits++)
            for (nj_ns part = 1ull << p->part_bits; part < 2ull << p->part_bits; part++) {
                nj_ns edge = part << (bits - p->part_bits);
                check_bound(p, edge - 1);
                check_bound(p, edge);
                check_bound(p, edge + 1);
            }
        check_bound(p, (1ull << p->last_bits) - 1);
    }
}

/* The bound is the best one: the first value of a bucket is shown as its last one. */
Test(histogram, values_of_one_bucket_are_one)
{
    EACH(p)
    {
        nj_ns first = 1 << 20, next = first + (first >> p->part_bits);
        p->add(&h, first);
        p->add(&h, next - 1);
        p->add(&h, next);
        cr_assert_eq(p->quantile(&h, 1.0 / 3), next - 1, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 2.0 / 3), next - 1, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 1), next, "%s", p->name);
    }
}

/* ... and no two buckets are one: each has a value that only it has. */
Test(histogram, every_bucket_is_used_in_order)
{
    EACH(p)
    {
        unsigned i = 0;
        for (nj_ns v = 0; i < p->n_buckets - 1; i++) {
            p->add(&h, v);
            cr_assert_eq(p->bucket(&h, i), 1, "%s: %u", p->name, i);
            v += 1ull << (v < 1ull << p->first_bits
                              ? p->first_bits - p->part_bits
                              : 63u - (unsigned)__builtin_clzll(v) - p->part_bits);
        }
        p->add(&h, 1ull << p->last_bits);
        cr_assert_eq(p->bucket(&h, i), 1, "%s", p->name);
        cr_assert_eq(p->count(&h), p->n_buckets, "%s", p->name);
    }
}

Test(histogram, fine_buckets_follow_each_other)
{
    for (unsigned i = 1; i < FINE_HISTOGRAM_BUCKETS; i++)
        cr_assert_gt(fine_histogram_bucket_max(i), fine_histogram_bucket_max(i - 1), "%u", i);
    cr_assert_eq(fine_histogram_bucket_max(FINE_HISTOGRAM_BUCKETS - 1), NJ_NEVER);
    cr_assert_eq(fine_histogram_bucket_max(FINE_HISTOGRAM_BUCKETS - 2), (1ull << 42) - 1);
}

Test(histogram, none_is_zero)
{
    EACH(p)
    {
        cr_assert_eq(p->count(&h), 0);
        cr_assert_eq(p->quantile(&h, 0.5), 0);
        cr_assert_eq(p->quantile(&h, 1), 0);
    }
}

Test(histogram, extremes_are_kept)
{
    EACH(p)
    {
        p->add(&h, 0);
        cr_assert_eq(p->quantile(&h, 1), 0, "%s", p->name);
        p->add(&h, 1ull << p->last_bits);
        p->add(&h, 1ull << 50); /* 13 days: beyond the buckets */
        cr_assert_eq(p->count(&h), 3, "%s", p->name);
        cr_assert_eq(p->sum(&h), (1ull << p->last_bits) + (1ull << 50), "%s", p->name);
        cr_assert_eq(p->max(&h), 1ull << 50, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 1), 1ull << 50, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 0.000001), p->least_error, "%s", p->name);
    }
}

/* A share of few is rounded up to a whole one, and a product that is a whole number but for the
 * last bit is that number. */
Test(histogram, shares_are_rounded_up)
{
    EACH(p)
    {
        nj_ns width = (1ull << 20) >> p->part_bits;
        for (nj_ns i = 1; i <= 100; i++)
            p->add(&h, 1ull << 20 << (i > 7) << (i > 99));
        cr_assert_eq(p->quantile(&h, 0.07), (1ull << 20) + width - 1, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 0.071), (1ull << 21) + 2 * width - 1, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 0.99), (1ull << 21) + 2 * width - 1, "%s", p->name);
        cr_assert_eq(p->quantile(&h, 0.991), 1ull << 22, "%s", p->name);
    }
}

static int by_value(const void *a, const void *b)
{
    nj_ns x = *(const nj_ns *)a, y = *(const nj_ns *)b;
    return x < y ? -1 : x > y;
}

Test(histogram, percentiles_of_random_values)
{
    enum { N = 20000 };
    static nj_ns value[N];
    uint64_t seed = 0x5eed0005, sum = 0;
    struct nj_prng rng;

    nj_prng_init(&rng, seed);
    for (unsigned i = 0; i < N; i++) {
        value[i] = nj_prng_next(&rng) >> (22 + nj_prng_next(&rng) % 42);
        sum += value[i];
    }
    qsort(value, N, sizeof value[0], by_value);
    EACH(p)
    {
        for (unsigned i = 0; i < N; i++)
            p->add(&h, value[i * 7919u % N]);
        cr_assert_eq(p->count(&h), N, "%s", p->name);
        cr_assert_eq(p->sum(&h), sum, "%s", p->name);
        cr_assert_eq(p->max(&h), value[N - 1], "%s", p->name);
        for (unsigned k = 1; k <= 1000; k++) {
            nj_ns is = value[N / 1000 * k - 1], at = p->quantile(&h, k / 1000.0);
            cr_assert(at >= is && at - is <= room(p, is),
                      "%s, seed %" PRIu64 ", share %u/1000: %" PRIu64 " is shown as %" PRIu64,
                      p->name, seed, k, is, at);
        }
        cr_assert_eq(p->quantile(&h, 1), value[N - 1], "%s", p->name);
    }
}

Test(histogram, a_sum_is_as_if_all_had_come_to_one)
{
    static union any part[2], sum;

    EACH(p)
    {
        memset(part, 0, sizeof part);
        memset(&sum, 0, sizeof sum);
        for (nj_ns v = 1; v < 1ull << 50; v = v * 3 + 1) {
            p->add(&h, v);
            p->add(&part[v % 2], v);
        }
        p->merge(&sum, &part[0]);
        p->merge(&sum, &part[1]);
        cr_assert_eq(p->count(&sum), p->count(&h), "%s", p->name);
        cr_assert_eq(memcmp(&sum, &h, sizeof h), 0, "%s", p->name);
    }
}

Test(histogram, fine_knows_the_minimum)
{
    static struct fine_histogram low, high, none, sum;

    fine_histogram_add(&high, 900);
    fine_histogram_add(&high, 700);
    fine_histogram_add(&high, 800);
    cr_assert_eq(high.min_ns, 700);
    fine_histogram_add(&low, 5);
    fine_histogram_merge(&sum, &none);
    cr_assert_eq(sum.min_ns, 0);
    fine_histogram_merge(&sum, &high);
    cr_assert_eq(sum.min_ns, 700);
    fine_histogram_merge(&sum, &low);
    fine_histogram_merge(&sum, &high);
    cr_assert_eq(sum.min_ns, 5);
}

/* A power of two is the first value of a bucket: it is not below itself. */
Test(histogram, values_below_powers_of_two)
{
    static struct nj_histogram some;

    for (unsigned bits = NJ_HISTOGRAM_BITS_MIN; bits <= NJ_HISTOGRAM_BITS_MAX; bits++) {
        nj_histogram_add(&some, (1ull << bits) - 1);
        nj_histogram_add(&some, 1ull << bits);
    }
    for (unsigned bits = NJ_HISTOGRAM_BITS_MIN; bits <= NJ_HISTOGRAM_BITS_MAX; bits++)
        cr_assert_eq(nj_histogram_count_below(&some, bits), 2 * (bits - NJ_HISTOGRAM_BITS_MIN) + 1,
                     "%u", bits);
}
