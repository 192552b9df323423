/* SPDX-License-Identifier: BSD-3-Clause */
/* Received bytes by time, in ./dev bench downloads: the largest sum of any 100 ms, to the
 * nanosecond. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/prng.h"
#include "meter.h"

#define N_MANY 3000u

static struct nj_meter meter;

static void start(nj_ns hold)
{
    cr_assert(nj_meter_init(&meter, 0, 10 * NJ_MS));
    nj_meter_window(&meter, 0, hold);
}

static void add(uint64_t n_bytes, nj_ns at)
{
    nj_meter_add(&meter, &n_bytes, 1, at);
}

Test(perf_meter, a_window_holds_one_of_two_that_are_100_ms_apart)
{
    start(NJ_SEC);
    add(5, 0);
    add(7, 100 * NJ_MS);
    cr_expect_eq(meter.in_span_max, 7);
    add(7, 200 * NJ_MS - 1);
    cr_expect_eq(meter.in_span_max, 14);
    cr_expect_eq(meter.in_span_max_at, 200 * NJ_MS - 1);
    nj_meter_free(&meter);
}

Test(perf_meter, what_comes_outside_of_the_window_is_in_the_series_only)
{
    cr_assert(nj_meter_init(&meter, 0, 10 * NJ_MS));
    add(3, 5 * NJ_MS);
    nj_meter_window(&meter, 20 * NJ_MS, 20 * NJ_MS);
    add(4, 20 * NJ_MS);
    add(5, 40 * NJ_MS - 1);
    add(6, 40 * NJ_MS);
    cr_expect_eq(meter.window_bytes, 9);
    cr_expect_eq(meter.in_span_max, 9);
    cr_expect_eq(meter.n_bins, 5);
    const uint64_t expected[] = {3, 0, 4, 5, 6};
    for (uint32_t i = 0; i < 5; i++)
        cr_expect_eq(meter.bins[i][0], expected[i], "bin %u", i);
    nj_meter_free(&meter);
}

Test(perf_meter, groups_are_apart_in_the_series)
{
    const uint64_t both[] = {1, 10};

    start(NJ_SEC);
    nj_meter_add(&meter, both, 2, NJ_MS);
    cr_expect_eq(meter.bins[0][0], 1);
    cr_expect_eq(meter.bins[0][1], 10);
    cr_expect_eq(meter.window_bytes, 11);
    nj_meter_free(&meter);
}

Test(perf_meter, the_largest_sum_is_what_counting_all_gives)
{
    static struct nj_meter_event all[N_MANY];
    struct nj_prng prng;
    uint64_t most = 0;
    nj_ns now = 0;

    nj_prng_init(&prng, 42);
    start(1000 * NJ_SEC);
    for (uint32_t i = 0; i < N_MANY; i++) {
        now += nj_prng_next(&prng) % (4 * NJ_MS);
        all[i] = (struct nj_meter_event){now, nj_prng_next(&prng) % 3000};
        add(all[i].n_bytes, now);
        uint64_t sum = 0;
        for (uint32_t j = i + 1; j-- > 0 && all[j].at + 100 * NJ_MS > now;)
            sum += all[j].n_bytes;
        most = sum > most ? sum : most;
        cr_assert_eq(meter.in_span_max, most, "seed 42, arrival %u", i);
    }
    nj_meter_free(&meter);
}

Test(perf_meter, more_arrivals_than_it_keeps_are_never_too_few_bytes)
{
    start(NJ_SEC);
    for (uint32_t i = 0; i < NJ_METER_EVENTS + 10; i++)
        add(1, i);
    cr_expect_eq(meter.in_span_max, NJ_METER_EVENTS + 10);
    cr_expect_eq(meter.tail - meter.head, NJ_METER_EVENTS);
    nj_meter_free(&meter);
}
