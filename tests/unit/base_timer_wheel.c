/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing wheel against a naive list of deadlines. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "base/timer_wheel.h"

#define N    200u
#define TICK ((nj_ns)1 << NJ_WHEEL_TICK_BITS)

struct model {
    struct nj_wheel wheel;
    struct nj_timer timer[N];
    nj_ns due[N]; /* NJ_NEVER: not armed */
    nj_ns now;
    struct nj_prng prng;
    unsigned n_fired;
};

static nj_ns random_delay(struct nj_prng *p)
{
    /* All levels, their edges, the past, and beyond the last level. */
    static const nj_ns scale[] = {0,
                                  1,
                                  TICK,
                                  255 * TICK,
                                  257 * TICK,
                                  65535 * TICK,
                                  65537 * TICK,
                                  16777215 * TICK,
                                  20000000 * TICK};
    nj_ns max = scale[nj_prng_below(p, NJ_ARRAY_LEN(scale))];
    return nj_prng_below(p, 4) ? nj_prng_next(p) % (max + 1) : max;
}

static void arm(struct model *m, unsigned i, nj_ns deadline)
{
    nj_timer_arm(&m->wheel, &m->timer[i], deadline);
    m->due[i] = deadline;
}

static void on_fire(void *ctx, struct nj_timer *t)
{
    struct model *m = ctx;
    unsigned i = (unsigned)(t - m->timer);

    cr_assert_not(nj_timer_armed(t));
    cr_assert_neq(m->due[i], NJ_NEVER, "timer %u is not armed", i);
    cr_assert_leq(m->due[i], m->wheel.tick << NJ_WHEEL_TICK_BITS, "timer %u fires early", i);
    m->due[i] = NJ_NEVER;
    m->n_fired++;
    unsigned other = nj_prng_below(&m->prng, N);
    switch (nj_prng_below(&m->prng, 6)) { /* a callback may do anything */
    case 0:
        arm(m, i, m->now + random_delay(&m->prng));
        break;
    case 1:
        nj_timer_disarm(&m->wheel, &m->timer[other]);
        m->due[other] = NJ_NEVER;
        break;
    case 2:
        arm(m, other, m->now + TICK + random_delay(&m->prng));
        break;
    default:
        break;
    }
}

static void check(const struct model *m)
{
    nj_ns next = nj_wheel_next_due(&m->wheel);
    uint32_t n_armed = 0;

    for (unsigned i = 0; i < N; i++) {
        cr_assert_eq(m->due[i] != NJ_NEVER, nj_timer_armed(&m->timer[i]), "timer %u", i);
        if (m->due[i] == NJ_NEVER)
            continue;
        n_armed++;
        cr_assert_gt(m->due[i] + TICK, m->now, "timer %u is late", i);
        /* A timer that is already due fires with the next tick. */
        cr_assert(next < m->due[i] + TICK || next <= m->now + TICK, "next() is too late for %u", i);
    }
    cr_assert_eq(m->wheel.n_timers, n_armed);
    cr_assert_eq(next == NJ_NEVER, n_armed == 0);
}

static void run(uint64_t seed, unsigned n_steps)
{
    static struct model m;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&m.prng, seed);
    m.now = nj_prng_next(&m.prng) >> 12;
    nj_wheel_init(&m.wheel, m.now);
    m.n_fired = 0;
    for (unsigned i = 0; i < N; i++) {
        nj_timer_init(&m.timer[i]);
        m.due[i] = NJ_NEVER;
    }
    for (unsigned s = 0; s < n_steps; s++) {
        for (unsigned k = nj_prng_below(&m.prng, 6); k > 0; k--) {
            unsigned i = nj_prng_below(&m.prng, N);
            if (nj_prng_below(&m.prng, 3)) {
                arm(&m, i, m.now + random_delay(&m.prng));
            } else {
                nj_timer_disarm(&m.wheel, &m.timer[i]);
                m.due[i] = NJ_NEVER;
            }
        }
        check(&m);
        nj_ns step = random_delay(&m.prng), next = nj_wheel_next_due(&m.wheel);
        if (nj_prng_below(&m.prng, 2) && next != NJ_NEVER && next > m.now)
            step = next - m.now;
        if (step > 70000 * TICK && nj_prng_below(&m.prng, 50))
            step %= 300 * TICK;
        m.now += step;
        nj_wheel_advance(&m.wheel, m.now, on_fire, &m);
        check(&m);
    }
    cr_expect_gt(m.n_fired, n_steps / 4);
}

Test(base_timer_wheel, agrees_with_a_list)
{
    run(1, 1200);
    run(0xfeed, 1200);
    run(0x77777, 1200);
}

static void count(void *ctx, struct nj_timer *t)
{
    (void)t;
    (*(unsigned *)ctx)++;
}

Test(base_timer_wheel, moving_a_deadline_later_leaves_the_node)
{
    struct nj_wheel w;
    struct nj_timer t;
    unsigned n = 0;

    nj_wheel_init(&w, 0);
    nj_timer_init(&t);
    nj_timer_arm(&w, &t, 10 * TICK);
    uint64_t filed = t.slot_tick;
    for (nj_ns d = 11; d < 1000; d++)
        nj_timer_arm(&w, &t, d * TICK);
    cr_expect_eq(t.slot_tick, filed);
    cr_expect_eq(w.n_timers, 1);
    nj_wheel_advance(&w, 998 * TICK, count, &n);
    cr_expect_eq(n, 0);
    nj_wheel_advance(&w, 999 * TICK, count, &n);
    cr_expect_eq(n, 1);
    cr_expect_eq(nj_wheel_next_due(&w), NJ_NEVER);
}

Test(base_timer_wheel, moving_a_deadline_earlier_is_obeyed)
{
    struct nj_wheel w;
    struct nj_timer t;
    unsigned n = 0;

    nj_wheel_init(&w, 0);
    nj_timer_init(&t);
    nj_timer_arm(&w, &t, 100000 * TICK);
    nj_timer_arm(&w, &t, 5 * TICK);
    nj_wheel_advance(&w, 5 * TICK, count, &n);
    cr_expect_eq(n, 1);
}

Test(base_timer_wheel, disarm_twice)
{
    struct nj_wheel w;
    struct nj_timer t;

    nj_wheel_init(&w, 0);
    nj_timer_init(&t);
    nj_timer_disarm(&w, &t);
    nj_timer_arm(&w, &t, 5);
    nj_timer_disarm(&w, &t);
    nj_timer_disarm(&w, &t);
    cr_expect_eq(w.n_timers, 0);
}
