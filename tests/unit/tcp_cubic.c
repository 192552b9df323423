/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUBIC against the formulas of RFC 9438 in floating point; sentences 78 - 83.
 *
 * The model counts windows in segments and time in seconds, as the RFC does, and shares no code
 * with the integer arithmetic.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>

#include "base/prng.h"
#include "tcp/cc/cubic_math.h"
#include "tcp/cc/hystart.h"

#define MSS   1000u
#define C     0.4
#define BETA  0.7
#define ALPHA (3 * (1 - BETA) / (1 + BETA))

static struct nj_xfer xfer;

/* In congestion avoidance after a loss at `peak` segments, all of them in flight. */
static struct nj_tcb after_loss(uint32_t peak)
{
    xfer = (struct nj_xfer){0};
    struct nj_tcb t = {.x = &xfer, .snd_mss = MSS, .srtt_us = 50000, .cwnd = peak * MSS};
    t.snd_nxt = peak * MSS;
    t.ssthresh = NJ_CC_SSTHRESH_NONE;
    nj_cc_cubic.lost(&t, 0);
    t.cwnd = t.ssthresh;
    return t;
}

static void ack(struct nj_tcb *t, nj_ns now, uint32_t n_bytes, bool limited)
{
    struct nj_cc_ack a = {.now = now, .n_bytes = n_bytes, .limited = limited};
    nj_cc_cubic.acked(t, &a);
}

/* Full windows, acknowledged two segments at a time, for `duration`. Returns the time. */
static nj_ns ack_clock(struct nj_tcb *t, nj_ns now, nj_ns duration)
{
    nj_ns end = now + duration;
    while (now < end) {
        now += t->srtt_us * NJ_US * 2 * t->snd_mss / t->cwnd;
        ack(t, now, 2u * t->snd_mss, true);
    }
    return now;
}

/* --- arithmetic ------------------------------------------------------------------------------ */

Test(tcp_cubic, cube_root_is_exact)
{
    cr_assert_eq(nj__cube_root(0), 0);
    for (uint64_t r = 1; r <= 2642245; r++) {
        cr_assert_eq(nj__cube_root(r * r * r), r);
        cr_assert_eq(nj__cube_root(r * r * r - 1), r - 1);
    }
    cr_assert_eq(nj__cube_root(UINT64_MAX), 2642245);
}

/* RFC 9438 4.2 figure 2: K = cbrt((W_max - cwnd_epoch) / C), rounded down to a millisecond. */
Test(tcp_cubic, time_to_the_plateau)
{
    cr_expect_eq(nj__cubic_k_ms(0, MSS), 0);
    cr_expect_eq(nj__cubic_k_ms(30 * MSS, MSS), 4217); /* cbrt(75) = 4.21716 */
    cr_expect_eq(nj__cubic_k_ms(400 * MSS, MSS), 10000);
    for (uint32_t d = 1; d <= 1u << 30; d += 1 + d / 50)
        for (uint32_t mss = 216; mss < 9000; mss += 500) {
            double k = 1000 * cbrt((double)d / mss / C);
            cr_assert(fabs(nj__cubic_k_ms(d, mss) - k) <= 1, "%u %u", d, mss);
        }
}

/* Figure 1, before the plateau and after it. */
Test(tcp_cubic, curve)
{
    cr_expect_eq(nj__cubic_window(100 * MSS, 4217, 4217, MSS), 100 * MSS);
    cr_expect_eq(nj__cubic_window(100 * MSS, 4217, 5217, MSS), 100 * MSS + 400);
    cr_expect_eq(nj__cubic_window(100 * MSS, 4217, 2217, MSS), 100 * MSS - 3200);
    cr_expect_eq(nj__cubic_window(100 * MSS, 1000000, 0, MSS), 0);
    for (uint32_t origin = MSS; origin <= NJ_CC_CWND_MAX / 2; origin *= 3)
        for (uint32_t k = 0; k < 30000; k += 2777)
            for (uint64_t t = 0; t < 40000; t += 333) {
                double s = ((double)t - k) / 1000, w = origin + C * s * s * s * MSS;
                w = fmin(fmax(w, 0), NJ_CC_CWND_MAX);
                double got = nj__cubic_window(origin, k, t, MSS);
                cr_assert(fabs(got - w) < 2, "%u %u %lu: %f %f", origin, k, (unsigned long)t, got,
                          w);
            }
    for (uint64_t t = 1; t < (uint64_t)1 << 62;
         t *= 2) /* the largest value means an unlimited time */
        cr_assert_leq(nj__cubic_window(NJ_CC_CWND_MAX, 1, t, 65535), NJ_CC_CWND_MAX);
    cr_expect_eq(nj__cubic_window(MSS, 0, (uint64_t)1 << 62, 216), NJ_CC_CWND_MAX);
}

/* --- one event at a time --------------------------------------------------------------------- */

/* Sentences 82, 83; RFC 9438 4.6: ssthresh = 0.7 flight, and not below two segments. */
Test(tcp_cubic, multiplicative_decrease)
{
    struct nj_tcb t = after_loss(100);
    cr_expect_eq(t.ssthresh, 70 * MSS);
    cr_expect_eq(t.w_max, 100 * MSS);
    t.snd_una = t.snd_nxt - MSS;
    nj_cc_cubic.lost(&t, 0);
    cr_expect_eq(t.ssthresh, 2 * MSS);
    t.cwnd = NJ_CC_CWND_MAX;
    t.snd_nxt = t.snd_una + NJ_CC_CWND_MAX;
    nj_cc_cubic.lost(&t, 0);
    cr_expect_eq(t.ssthresh, 751619276); /* 0.7 * 2^30 */
}

/* Sentence 83; RFC 9438 4.7: below the last W_max the new one is 0.85 cwnd. */
Test(tcp_cubic, fast_convergence)
{
    struct nj_tcb t = after_loss(100);
    t.cwnd = 90 * MSS;
    nj_cc_cubic.lost(&t, 0);
    cr_expect_eq(t.w_max, 76500); /* 90 * (1 + 0.7) / 2 */
    t.cwnd = 80 * MSS;
    nj_cc_cubic.lost(&t, 0);
    cr_expect_eq(t.w_max, 80 * MSS);
    t.cwnd = 80 * MSS;
    nj_cc_cubic.lost(&t, 0);
    cr_expect_eq(t.w_max, 80 * MSS, "at the peak, not below it");
}

/* RFC 9438 4.4, 4.5: through the plateau at K = 4.217 s, concave before and convex after. The
 * window is W_cubic one round trip ahead; at 50 ms it is above the Reno-friendly one. */
Test(tcp_cubic, follows_the_curve)
{
    struct nj_tcb t = after_loss(1000); /* K = cbrt(300 / 0.4) = 9.086 s */
    nj_ns now = 0, start;
    ack(&t, now, MSS, true);
    start = now;
    double k = cbrt(300 / C);
    for (uint32_t i = 0; i < 100; i++) {
        now = ack_clock(&t, now, 200 * NJ_MS);
        double s = (double)(now - start) / NJ_SEC + 0.05 - k, want = 1000 + C * s * s * s;
        double got = (double)t.cwnd / MSS;
        /* cwnd follows the curve half a round trip behind. */
        double slope = 3 * C * s * s;
        cr_assert(got <= want + 0.01 && got >= want - slope * 0.1 - 0.6, "at %f s: %f, not %f",
                  s + k, got, want);
    }
    cr_expect_gt(t.cwnd, 1400 * MSS);
}

/* RFC 9438 4.2: the target is at most 1.5 windows per round trip. */
Test(tcp_cubic, target_is_bounded)
{
    struct nj_tcb t = after_loss(20);
    ack(&t, NJ_SEC, MSS, true);
    for (uint32_t i = 0; i < 10; i++) { /* limited and acknowledged at one-minute intervals */
        uint32_t cwnd = t.cwnd;
        ack(&t, NJ_SEC + i * 60 * NJ_SEC, cwnd, true);
        cr_assert_leq(t.cwnd, cwnd + cwnd / 2 + 1);
    }
    uint32_t cwnd = t.cwnd;
    ack(&t, 700 * NJ_SEC, cwnd, true);
    cr_expect_eq(t.cwnd, cwnd + cwnd / 2);
    cwnd = t.cwnd;
    ack(&t, 800 * NJ_SEC, UINT32_MAX, true);
    cr_expect_eq(t.cwnd, cwnd + cwnd / 2, "more than a window counts as one");
}

/* Sentence 83; RFC 9438 4.3. At a round trip of 1 ms the curve has hardly begun: Reno's 9/17 of a
 * segment per window until the window of the loss is reached, then a whole one. */
Test(tcp_cubic, reno_friendly)
{
    struct nj_tcb t = after_loss(20);
    nj_ns now = NJ_SEC;
    t.srtt_us = 1000;
    cr_assert_eq(t.cwnd, 14 * MSS);
    double w_est = 14;
    for (uint32_t i = 0; i < 30; i++) {
        now += NJ_MS;
        w_est += w_est < 20 ? ALPHA : 1;
        ack(&t, now, t.cwnd, true);
        cr_assert(fabs((double)t.cwnd - w_est * MSS) < 2, "%u: %u, not %f", i, t.cwnd, w_est);
    }
    cr_expect_geq(t.cwnd, 37 * MSS); /* 12 windows to 20.35, then 18 more */
}

/* Sentence 82; RFC 9438 4.8: after a time-out the plateau is where slow start ended. */
Test(tcp_cubic, time_out)
{
    struct nj_tcb t = after_loss(100);
    t.snd_nxt = t.snd_una + 70 * MSS;
    nj_cc_cubic.timed_out(&t, 0);
    cr_expect_eq(t.ssthresh, 49 * MSS);
    t.cwnd = MSS;
    ack(&t, NJ_MS, 5 * MSS, true);
    cr_expect_eq(t.cwnd, 2 * MSS, "RFC 3465 2.3: L = 1");
    while (t.cwnd < t.ssthresh)
        ack(&t, NJ_MS, MSS, true);
    cr_expect_eq(t.cwnd, 49 * MSS);
    nj_ns now = NJ_SEC;
    ack(&t, now, MSS, true);
    cr_expect_eq(t.w_max, 49 * MSS);
    now = ack_clock(&t, now, 10 * NJ_SEC); /* K = 0: 49 + 0.4 * 10.05^3 = 455 segments */
    cr_expect(t.cwnd > 445 * MSS && t.cwnd <= 456 * MSS, "%u", t.cwnd);
}

/* RFC 9438 4.10: after slow start without a loss the curve starts at the current cwnd. */
Test(tcp_cubic, first_avoidance_without_a_loss)
{
    struct nj_tcb t = after_loss(1);
    nj_cc_cubic.opened(&t);
    cr_expect_eq(t.cwnd, 10 * MSS);
    cr_expect_eq(t.w_max, 0);
    t.cwnd = t.ssthresh = 100 * MSS;
    ack(&t, NJ_SEC, MSS, true);
    cr_expect_eq(t.w_max, 100 * MSS);
    ack_clock(&t, NJ_SEC, 5 * NJ_SEC); /* 100 + 0.4 * 5.05^3 = 151.5; Reno: 100 + 100 * 1 */
    cr_expect_geq(t.cwnd, 150 * MSS);
}

/* Sentence 80; RFC 9438 4.2, 5.8: time in which the window was not used is no part of t. */
Test(tcp_cubic, unused_window_stops_the_clock)
{
    struct nj_tcb t = after_loss(1000), u;
    static struct nj_xfer other;
    nj_ns now = ack_clock(&t, NJ_SEC, 3 * NJ_SEC), later = now;

    other = xfer;
    u = t;
    u.x = &other;
    uint32_t cwnd = u.cwnd;
    for (uint32_t i = 0; i < 100; i++) /* a hundred seconds, application-limited */
        ack(&u, later += NJ_SEC, MSS, false);
    cr_expect_eq(u.cwnd, cwnd);
    ack_clock(&t, now, 3 * NJ_SEC);
    ack_clock(&u, later, 3 * NJ_SEC);
    cr_expect_eq(t.cwnd, u.cwnd);

    nj_cc_cubic.idle(&u, later, NJ_SEC); /* an idle time that does not change the window */
    cr_expect_eq(u.cwnd, 10 * MSS);
}

/* Sentence 84; RFC 9438 4.9.2: undo restores the state before the loss, also after a new epoch has
 * begun. */
Test(tcp_cubic, undo)
{
    for (unsigned rto = 0; rto < 2; rto++)
        for (unsigned late = 0; late < 2; late++) {
            struct nj_tcb t = after_loss(1000), u;
            static struct nj_xfer other;
            nj_ns now = ack_clock(&t, NJ_SEC, 5 * NJ_SEC);
            other = xfer;
            u = t;
            u.x = &other;
            u.snd_nxt = u.snd_una + u.cwnd;
            (rto ? nj_cc_cubic.timed_out : nj_cc_cubic.lost)(&u, now);
            cr_expect_neq(u.w_max, t.w_max);
            if (late) {
                u.cwnd = u.ssthresh;
                ack_clock(&u, now, NJ_SEC);
            }
            nj_cc_cubic.undone(&u);
            u.cwnd = t.cwnd;
            u.ssthresh = t.ssthresh;
            cr_expect_eq(u.w_max, t.w_max);
            ack_clock(&t, now, 10 * NJ_SEC);
            ack_clock(&u, now + 2 * NJ_SEC, 10 * NJ_SEC);
            /* The interval before the first ACK, a few hundred microseconds, is forgotten. */
            cr_expect(abs((int)(t.cwnd - u.cwnd)) < (int)(MSS / 2), "%u %u", t.cwnd, u.cwnd);
            cr_expect_gt(t.cwnd, 1000 * MSS);
        }
}

/* Undo without a congestion event changes nothing, not even w_max. */
Test(tcp_cubic, undo_without_memory)
{
    struct nj_tcb t = after_loss(100);
    memset(t.x->cc, 0, sizeof t.x->cc);
    nj_cc_cubic.undone(&t);
    cr_expect_eq(t.w_max, 100 * MSS);
}

/* Sentence 81; RFC 5681 4.1 */
Test(tcp_cubic, idle_restart)
{
    struct nj_tcb t = after_loss(100);
    t.cwnd = 100 * MSS;
    memset(t.x->cc, 0, sizeof t.x->cc); /* the connection was idle long enough */
    nj_cc_cubic.idle(&t, 100 * NJ_SEC, 90 * NJ_SEC);
    cr_expect_eq(t.cwnd, 10 * MSS);
    cr_expect_eq(t.ssthresh, 75 * MSS);
    cr_expect_eq(t.w_max, 100 * MSS);
    while (t.cwnd < t.ssthresh)
        ack(&t, 100 * NJ_SEC, 2 * MSS, true);
    /* From there the curve leads to the old plateau: K = cbrt((100 - 75) / 0.4) = 3.97 s. With
     * round trips of 0.4 s Reno would have come to 80 by then. */
    t.srtt_us = 400000;
    ack_clock(&t, 100 * NJ_SEC, 4 * NJ_SEC);
    cr_expect(t.cwnd > 99 * MSS && t.cwnd < 101 * MSS, "%u", t.cwnd);
}

/* The window does not exceed 2^30, for any number of acknowledged bytes and of days. */
Test(tcp_cubic, ceiling_and_days)
{
    struct nj_tcb t = after_loss(100);
    nj_ns now = NJ_SEC;
    for (uint32_t i = 0; i < 10000; i++) {
        now += 3600 * NJ_SEC;
        ack(&t, now, UINT32_MAX, true);
        cr_assert_leq(t.cwnd, NJ_CC_CWND_MAX);
    }
    cr_expect_eq(t.cwnd, NJ_CC_CWND_MAX);
    t.snd_nxt = t.snd_una + t.cwnd;
    nj_cc_cubic.lost(&t, now);
    t.cwnd = t.ssthresh;
    cr_expect_eq(t.ssthresh, 751619276);
    ack(&t, now, MSS, true);
    cr_assert_leq(t.cwnd, 751619276 + MSS);
    t.srtt_us = 1000000000;
    ack(&t, now + 1, t.cwnd, true);
    cr_expect_leq(t.cwnd, NJ_CC_CWND_MAX);
}

/* --- long random runs ------------------------------------------------------------------------ */

struct model {
    double cwnd, ssthresh, w_max, cwnd_prior, origin, k, w_est, t;
    bool epoch;
    double last; /* when an ACK came last */
};

static double model_curve(const struct model *m, double t)
{
    return m->origin + C * pow(t - m->k, 3);
}

static void model_ack(struct model *m, double now, double n, bool limited, double rtt)
{
    if (m->cwnd < m->ssthresh) {
        m->epoch = false;
        if (limited)
            m->cwnd = fmin(m->cwnd + fmin(n, 2), m->ssthresh);
        return;
    }
    if (!m->epoch) {
        m->epoch = true;
        m->t = 0;
        m->origin = fmax(m->w_max, m->cwnd);
        m->k = cbrt((m->origin - m->cwnd) / C);
        m->w_est = m->cwnd;
        m->last = now;
    }
    m->t += limited ? now - m->last : 0;
    m->last = now;
    if (!limited)
        return;
    n = fmin(n, m->cwnd);
    m->w_est += (m->w_est < m->cwnd_prior ? ALPHA : 1) * n / m->cwnd;
    if (model_curve(m, m->t) < m->w_est) {
        m->cwnd = fmax(m->cwnd, m->w_est);
        return;
    }
    double target = fmin(fmax(model_curve(m, m->t + rtt), m->cwnd), 1.5 * m->cwnd);
    m->cwnd += (target - m->cwnd) * n / m->cwnd;
}

static void model_loss(struct model *m)
{
    m->w_max = m->cwnd < m->w_max ? m->cwnd * (1 + BETA) / 2 : m->cwnd;
    m->cwnd_prior = m->cwnd;
    m->ssthresh = fmax(m->cwnd * BETA, 2);
    m->epoch = false;
}

Test(tcp_cubic, agrees_with_floating_point)
{
    const uint64_t seed = 0xc0b1c;
    struct nj_prng r;
    double worst = 0;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (uint32_t run = 0; run < 100; run++) {
        uint32_t peak = 10 + nj_prng_below(&r, run % 2 ? 100 : 5000);
        struct nj_tcb t = after_loss(peak);
        struct model m = {.cwnd = peak, .ssthresh = 1e9};
        nj_ns now = NJ_SEC;
        t.srtt_us = (1 + nj_prng_below(&r, 200)) * 1000;
        model_loss(&m);
        m.cwnd = m.ssthresh;
        for (uint32_t i = 0; i < 20000; i++) {
            uint32_t n = 1 + nj_prng_below(&r, 4 * MSS), dice = nj_prng_below(&r, 5000);
            bool limited = nj_prng_below(&r, 20) != 0;
            now += t.srtt_us * NJ_US * n / t.cwnd;
            ack(&t, now, n, limited);
            model_ack(&m, (double)now / NJ_SEC, (double)n / MSS, limited, (double)t.srtt_us * 1e-6);
            if (dice < 2) {
                t.snd_nxt = t.snd_una + t.cwnd;
                (dice ? nj_cc_cubic.lost : nj_cc_cubic.timed_out)(&t, now);
                model_loss(&m);
                m.cwnd = m.ssthresh;
                t.cwnd = t.ssthresh;
                if (!dice)
                    m.w_max = m.cwnd; /* K = 0 from here */
            }
            double off = fabs((double)t.cwnd / MSS / m.cwnd - 1);
            worst = fmax(worst, off);
            cr_assert_lt(off, 0.01, "run %u, ACK %u: %u, not %f", run, i, t.cwnd, m.cwnd * MSS);
        }
    }
    fprintf(stderr, "at most %.4f %% off\n", 100 * worst);
}

/* Random calls, with zeroed private state in between: the bounds hold. */
Test(tcp_cubic, bounds_hold_whatever_happens)
{
    const uint64_t seed = 0xb0b;
    struct nj_prng r;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    struct nj_tcb t = after_loss(50);
    nj_ns now = NJ_SEC;
    for (uint32_t i = 0; i < 2000000; i++) {
        now += nj_prng_below(&r, 1000) ? nj_prng_below(&r, 1000000) : nj_prng_next(&r) >> 12;
        t.snd_mss = (uint16_t)(216 + nj_prng_below(&r, 65535 - 216));
        t.snd_nxt = t.snd_una + nj_prng_below(&r, t.cwnd + 1);
        switch (nj_prng_below(&r, 2000)) {
        case 0:
            nj_cc_cubic.lost(&t, now);
            t.cwnd = t.ssthresh;
            break;
        case 1:
            nj_cc_cubic.timed_out(&t, now);
            t.cwnd = t.snd_mss;
            break;
        case 2:
            nj_cc_cubic.undone(&t);
            break;
        case 3:
            nj_cc_cubic.idle(&t, now, NJ_SEC);
            break;
        case 4:
            memset(t.x->cc, 0, sizeof t.x->cc);
            break;
        case 5:
            nj_cc_cubic.opened(&t);
            break;
        default:
            t.snd_una += nj_prng_below(&r, t.snd_nxt - t.snd_una + 1);
            ack(&t, now, nj_prng_below(&r, 1u << nj_prng_below(&r, 31)), nj_prng_below(&r, 8));
        }
        cr_assert(t.cwnd >= 216 && t.cwnd <= NJ_CC_CWND_MAX, "%u", t.cwnd);
        cr_assert(t.ssthresh >= 2 * 216 && t.ssthresh <= NJ_CC_CWND_MAX, "%u", t.ssthresh);
        cr_assert_leq(t.w_max, NJ_CC_CWND_MAX);
    }
}
