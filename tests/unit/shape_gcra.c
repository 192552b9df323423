/* SPDX-License-Identifier: BSD-3-Clause */
/* GCRA between lcores: never more than the burst plus the rate. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/prng.h"
#include "shape/gcra.h"

#define START (5 * NJ_SEC)

/* Takes leases of `n` as fast as possible for `span`; returns the bytes sent. */
static uint64_t drain(struct nj_gcra *g, uint64_t rate, uint64_t burst, uint64_t n, nj_ns *now,
                      nj_ns span)
{
    nj_ns end = *now + span;
    uint64_t sum = 0;
    for (;;) {
        nj_ns due = nj_gcra_reserve_bytes(g, rate, burst, n, *now);
        if (due > end) {
            nj_gcra_return(g, rate, n);
            *now = end;
            return sum;
        }
        if (due > *now)
            *now = due;
        sum += n;
    }
}

Test(shape_gcra, no_rate_is_no_limit)
{
    struct nj_gcra g = {0};
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 0, 0, UINT64_MAX, START), START);
    nj_gcra_return(&g, 0, UINT64_MAX);
    cr_expect_eq(g.tat, 0);
}

Test(shape_gcra, first_the_burst_then_the_rate)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 500, now), now, "the burst at once");
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 100, now), now + 100 * NJ_MS);
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 100, now), now + 200 * NJ_MS, "in turn");
}

Test(shape_gcra, a_long_pause_is_worth_one_burst)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    (void)drain(&g, 1000, 500, 100, &now, NJ_SEC);
    now += 3600 * NJ_SEC;
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 500, now), now);
    cr_expect_gt(nj_gcra_reserve_bytes(&g, 1000, 500, 1, now), now);
}

/* From one byte per second to 100 Gbit/s: the rate is reached and never exceeded. */
Test(shape_gcra, every_rate_is_kept_and_reached)
{
    static const uint64_t rates[] = {1,         7,           20480,        1000003,
                                     20u << 20, 1250000000u, 12500000000u, 12499999999u};
    for (unsigned i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        uint64_t rate = rates[i];
        uint64_t n = rate / 1000 > 2920 ? rate / 1000 : 2920;
        struct nj_gcra g = {0};
        nj_ns now = START;
        (void)drain(&g, rate, 2 * n, n, &now, 0); /* the burst */
        uint64_t n_leases = 10000;
        nj_ns span = (nj_ns)((unsigned __int128)n * n_leases * NJ_SEC / rate);
        uint64_t sum = drain(&g, rate, 2 * n, n, &now, span);
        cr_expect_leq(sum, n * n_leases, "rate %lu", (unsigned long)rate);
        cr_expect_geq(sum, n * n_leases / 1000 * 999, "rate %lu", (unsigned long)rate);
    }
}

Test(shape_gcra, rounding_never_adds)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    uint64_t rate = 12499999999u; /* a byte is 1.28 units */
    (void)drain(&g, rate, 1500, 1, &now, 0);
    uint64_t sum = drain(&g, rate, 1500, 1, &now, NJ_MS);
    cr_expect_leq(sum, rate / 1000);
}

Test(shape_gcra, what_comes_back_can_be_had_again)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    (void)nj_gcra_reserve_bytes(&g, 1000, 500, 500, now);
    nj_gcra_return(&g, 1000, 200);
    nj_gcra_return(&g, 1000, 100);
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 300, now), now);
    cr_expect_gt(nj_gcra_reserve_bytes(&g, 1000, 500, 1, now), now);
}

Test(shape_gcra, what_comes_back_late_is_no_more_than_the_burst)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    (void)nj_gcra_reserve_bytes(&g, 1000, 500, 500, now);
    now += 60 * NJ_SEC;
    nj_gcra_return(&g, 1000, 500);
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 500, now), now);
    cr_expect_gt(nj_gcra_reserve_bytes(&g, 1000, 500, 1, now), now);
    nj_gcra_return(&g, 1, 1u << 30); /* worth more than the elapsed time */
    cr_expect_eq(nj_gcra_reserve_bytes(&g, 1000, 500, 500, now), now);
    cr_expect_gt(nj_gcra_reserve_bytes(&g, 1000, 500, 1, now), now);
}

Test(shape_gcra, a_faster_rate_forgives_the_slow_past)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    (void)drain(&g, 1, 5840, 2920, &now, 0); /* 5,840 s ahead */
    nj_gcra_clamp(&g, 1u << 20, 65536, now);
    nj_ns due = nj_gcra_reserve_bytes(&g, 1u << 20, 65536, 2920, now);
    cr_expect_gt(due, now, "it is no gift");
    cr_expect_leq(due, now + 3 * NJ_MS);
}

Test(shape_gcra, a_slower_rate_begins_with_one_burst)
{
    struct nj_gcra g = {0};
    nj_ns now = START;
    (void)drain(&g, 1u << 30, 1u << 25, 65536, &now, 0);
    nj_gcra_clamp(&g, 1000, 5840, now);
    cr_expect_leq(drain(&g, 1000, 5840, 10, &now, 0), 5840);
}

Test(shape_gcra, years_do_not_go_around)
{
    struct nj_gcra g = {0};
    cr_expect_gt(nj_gcra_reserve_bytes(&g, 1, 1, UINT64_MAX, START), START + 3600 * NJ_SEC);
    cr_expect_gt(nj_gcra_reserve_bytes(&g, 1, 1, UINT64_MAX, START), START + 3600 * NJ_SEC);
}

/* For any sequence of leases, waits and returns: no interval sees more than burst + rate * length,
 * counted when a lease is due. */
Test(shape_gcra, any_window_holds_a_burst_and_the_rate)
{
    enum { N = 400 };
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct nj_prng r;
        nj_prng_init(&r, seed);
        uint64_t rate = 1000 + nj_prng_next(&r) % 1000000, burst = 6000 + nj_prng_below(&r, 50000);
        struct nj_gcra g = {0};
        nj_ns now = START, at[N];
        uint64_t bytes[N];
        for (unsigned i = 0; i < N; i++) {
            bytes[i] = 1 + nj_prng_below(&r, (uint32_t)burst);
            at[i] = nj_gcra_reserve_bytes(&g, rate, burst, bytes[i], now);
            if (nj_prng_below(&r, 4) == 0) { /* returned unused */
                nj_gcra_return(&g, rate, bytes[i]);
                bytes[i] = 0;
            } else if (at[i] > now) {
                now = at[i];
            }
            now += nj_prng_below(&r, 3) ? 0 : nj_prng_next(&r) % (100 * NJ_MS);
        }
        for (unsigned i = 0; i < N; i++) {
            uint64_t sum = 0;
            for (unsigned j = i; j < N; j++) {
                sum += bytes[j];
                uint64_t most = burst + (at[j] - at[i]) * rate / NJ_SEC + 1;
                cr_assert(at[j] < at[i] || sum <= most, "seed %lu: %u to %u: %lu of %lu",
                          (unsigned long)seed, i, j, (unsigned long)sum, (unsigned long)most);
            }
        }
    }
}
