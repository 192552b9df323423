/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/prng.h"

static struct latency l;

/* With a larger one beside it, so that the maximum does not help. */
static void check(nj_ns value)
{
    l = (struct latency){0};
    latency_add(&l, value);
    latency_add(&l, NJ_NEVER);
    nj_ns at = latency_at(&l, 0.5);
    cr_assert(at >= value && at - value <= value / 128, "%" PRIu64 " is shown as %" PRIu64, value,
              at);
}

Test(load_latency, every_edge_is_known_to_a_128th)
{
    for (nj_ns v = 0; v < 70000; v++)
        check(v);
    for (unsigned bits = 16; bits < LATENCY_LAST_BITS; bits++)
        for (nj_ns part = 128; part < 256; part++) {
            nj_ns edge = part << (bits - 7);
            check(edge - 1);
            check(edge);
            check(edge + 1);
        }
    check((1ull << LATENCY_LAST_BITS) - 1);
}

Test(load_latency, buckets_follow_each_other)
{
    for (unsigned i = 1; i < LATENCY_BUCKETS; i++)
        cr_assert_gt(latency_bucket_end(i), latency_bucket_end(i - 1), "%u", i);
    cr_assert_eq(latency_bucket_end(LATENCY_BUCKETS - 1), NJ_NEVER);
    cr_assert_eq(latency_bucket_end(LATENCY_BUCKETS - 2), (1ull << LATENCY_LAST_BITS) - 1);
}

Test(load_latency, none_is_zero)
{
    l = (struct latency){0};
    cr_assert_eq(latency_count(&l), 0);
    cr_assert_eq(latency_at(&l, 0.5), 0);
    cr_assert_eq(latency_mean(&l), 0);
}

static int by_value(const void *a, const void *b)
{
    nj_ns x = *(const nj_ns *)a, y = *(const nj_ns *)b;
    return (x > y) - (x < y);
}

Test(load_latency, quantiles_of_many_and_of_their_sum)
{
    enum { N = 20000 };
    static nj_ns value[N];
    static struct latency half[2], both;
    struct nj_prng p;
    uint64_t seed = 17, sum = 0;

    nj_prng_init(&p, seed);
    for (unsigned i = 0; i < N; i++) {
        value[i] = 1 + (nj_prng_next(&p) >> (24 + nj_prng_below(&p, 36)));
        latency_add(&half[i % 2], value[i]);
        sum += value[i];
    }
    latency_sum(&both, &half[0]);
    latency_sum(&both, &half[1]);
    qsort(value, N, sizeof *value, by_value);
    cr_expect_eq(latency_count(&both), N);
    cr_expect_eq(both.min_ns, value[0]);
    cr_expect_eq(latency_at(&both, 1), value[N - 1]);
    cr_expect_float_eq(latency_mean(&both), (double)sum / N, 1e-3 * (double)sum / N);
    static const double shares[] = {.01, .07, .5, .9, .99, .999, .9999};
    for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
        nj_ns exact = value[(unsigned)(shares[i] * N + 1e-6) - 1];
        nj_ns at = latency_at(&both, shares[i]);
        cr_expect(at >= exact && at - exact <= exact / 128,
                  "seed %" PRIu64 ", %g: %" PRIu64 " for %" PRIu64, seed, shares[i], at, exact);
    }
}
