/* SPDX-License-Identifier: BSD-3-Clause */
#include "telem/histogram.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/prng.h"

static struct nj_histogram h;

static void clear(void)
{
    h = (struct nj_histogram){0};
}

/* What the header promises of a value alone, with a larger one beside it so that the maximum does
 * not help. */
static void check_bound(nj_ns value)
{
    clear();
    nj_histogram_add(&h, value);
    nj_histogram_add(&h, UINT64_MAX);
    nj_ns at = nj_histogram_quantile(&h, 0.5);
    nj_ns room = value < 1024 ? 127 : value / 8;
    cr_assert(at >= value && at - value <= room, "%" PRIu64 " is shown as %" PRIu64, value, at);
}

Test(histogram, every_edge_is_known_to_an_eighth)
{
    for (nj_ns v = 0; v < 3000; v++)
        check_bound(v);
    for (unsigned bits = 10; bits < 46; bits++)
        for (nj_ns part = 8; part < 16; part++) {
            nj_ns edge = part << (bits - 3);
            check_bound(edge - 1);
            check_bound(edge);
            check_bound(edge + 1);
        }
    check_bound((1ull << 46) - 1);
}

/* The bound is the best one: the first value of a bucket is shown as its last one. */
Test(histogram, values_of_one_bucket_are_one)
{
    nj_histogram_add(&h, 1024);
    nj_histogram_add(&h, 1151);
    nj_histogram_add(&h, 1152);
    cr_assert_eq(nj_histogram_quantile(&h, 1.0 / 3), 1151);
    cr_assert_eq(nj_histogram_quantile(&h, 2.0 / 3), 1151);
    cr_assert_eq(nj_histogram_quantile(&h, 1), 1152);
}

Test(histogram, none_is_zero)
{
    cr_assert_eq(nj_histogram_count(&h), 0);
    cr_assert_eq(nj_histogram_quantile(&h, 0.5), 0);
    cr_assert_eq(nj_histogram_quantile(&h, 1), 0);
}

Test(histogram, extremes_are_kept)
{
    nj_histogram_add(&h, 0);
    cr_assert_eq(nj_histogram_quantile(&h, 1), 0);
    nj_histogram_add(&h, 1ull << 46);
    nj_histogram_add(&h, 1ull << 50); /* 13 days: beyond the buckets */
    cr_assert_eq(nj_histogram_count(&h), 3);
    cr_assert_eq(h.sum_ns, (1ull << 46) + (1ull << 50));
    cr_assert_eq(h.max_ns, 1ull << 50);
    cr_assert_eq(nj_histogram_quantile(&h, 1), 1ull << 50);
    cr_assert_eq(nj_histogram_quantile(&h, 0.000001), 127);
}

/* A share of few is rounded up to a whole one, and a product that is a whole number but for the
 * last bit is that number. */
Test(histogram, shares_are_rounded_up)
{
    for (nj_ns i = 1; i <= 100; i++)
        nj_histogram_add(&h, 1ull << 20 << (i > 7) << (i > 99));
    cr_assert_eq(nj_histogram_quantile(&h, 0.07), (9ull << 17) - 1);
    cr_assert_eq(nj_histogram_quantile(&h, 0.071), (9ull << 18) - 1);
    cr_assert_eq(nj_histogram_quantile(&h, 0.99), (9ull << 18) - 1);
    cr_assert_eq(nj_histogram_quantile(&h, 0.991), 1ull << 22);
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
        value[i] = nj_prng_next(&rng) >> (18 + nj_prng_next(&rng) % 46);
        sum += value[i];
        nj_histogram_add(&h, value[i]);
    }
    qsort(value, N, sizeof value[0], by_value);
    cr_assert_eq(nj_histogram_count(&h), N);
    cr_assert_eq(h.sum_ns, sum);
    cr_assert_eq(h.max_ns, value[N - 1]);
    for (unsigned k = 1; k <= 1000; k++) {
        nj_ns is = value[N / 1000 * k - 1], at = nj_histogram_quantile(&h, k / 1000.0);
        nj_ns room = is < 1024 ? 127 : is / 8;
        cr_assert(at >= is && at - is <= room,
                  "seed %" PRIu64 ", share %u/1000: %" PRIu64 " is shown as %" PRIu64, seed, k, is,
                  at);
    }
    cr_assert_eq(nj_histogram_quantile(&h, 1), value[N - 1]);
}

Test(histogram, a_sum_is_as_if_all_had_come_to_one)
{
    static struct nj_histogram one, two, sum;

    for (nj_ns v = 1; v < 1ull << 50; v = v * 3 + 1) {
        nj_histogram_add(&h, v);
        nj_histogram_add(v % 2 ? &one : &two, v);
    }
    nj_histogram_merge(&sum, &one);
    nj_histogram_merge(&sum, &two);
    cr_assert_eq(nj_histogram_count(&sum), nj_histogram_count(&h));
    cr_assert_eq(sum.sum_ns, h.sum_ns);
    cr_assert_eq(sum.max_ns, h.max_ns);
    for (unsigned i = 0; i < NJ_HISTOGRAM_BUCKETS; i++)
        cr_assert_eq(sum.n[i], h.n[i], "bucket %u", i);
}
