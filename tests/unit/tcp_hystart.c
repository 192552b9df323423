/* SPDX-License-Identifier: BSD-3-Clause */
/* HyStart++: RFC 9406 4.2, with the constants of 4.3. */
#include <criterion/criterion.h>

#include "tcp/cc/hystart.h"

#define MSS 1000u

static struct nj_xfer xfer;
static struct nj_hystart hystart;

static struct nj_tcb fresh(void)
{
    xfer = (struct nj_xfer){0};
    hystart = (struct nj_hystart){0};
    struct nj_tcb t = {.x = &xfer, .snd_mss = MSS, .snd_una = UINT32_MAX - 30000};
    nj_cc_init_state(&t);
    t.snd_nxt = t.snd_una + t.cwnd;
    return t;
}

/* `n` segments are acknowledged one by one with this delay, and the window is filled after each. */
static void acks(struct nj_tcb *t, uint32_t n, uint32_t rtt_us)
{
    for (uint32_t i = 0; i < n; i++) {
        struct nj_cc_ack a = {.n_bytes = MSS, .rtt_us = rtt_us, .limited = true};
        t->snd_una += MSS;
        nj__slow_start(t, &hystart, &a, false);
        t->snd_nxt = t->snd_una + t->cwnd;
    }
}

/* A whole round: it ends when all data in flight at its begin is acknowledged. Returns the number
 * of acknowledgments. */
static uint32_t round_trip(struct nj_tcb *t, uint32_t rtt_us)
{
    uint32_t end = hystart.running ? hystart.round_end : t->snd_nxt;
    uint32_t n = (end - t->snd_una + MSS - 1) / MSS;
    acks(t, n, rtt_us);
    return n;
}

/* Each segment that is acknowledged lets two out while the delay stays. The ACK that ends a round
 * finds the rest of the window in flight: 10, then 18 = 19 - 1, then 36 = 37 - 1. */
Test(tcp_hystart, doubles)
{
    struct nj_tcb t = fresh();
    cr_expect_eq(round_trip(&t, 50000), 10);
    cr_expect_eq(t.cwnd, 20 * MSS);
    cr_expect_eq(round_trip(&t, 50000), 18);
    cr_expect_eq(t.cwnd, 38 * MSS);
    cr_expect_eq(round_trip(&t, 50000), 36);
    cr_expect_eq(t.cwnd, 74 * MSS);
    cr_expect_eq(t.ssthresh, NJ_CC_SSTHRESH_NONE);
}

/* RttThresh = clamp(4 ms, lastRoundMinRTT / 8, 16 ms): the least growth that ends a round. */
Test(tcp_hystart, threshold)
{
    static const struct {
        uint32_t before_us, thresh_us;
    } want[] = {{100, 4000},    {20000, 4000},   {32000, 4000},   {40000, 5000},
                {80000, 10000}, {128000, 16000}, {400000, 16000}, {3000000, 16000}};
    for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++) {
        for (uint32_t less = 0; less <= 1; less++) {
            struct nj_tcb t = fresh();
            round_trip(&t, want[i].before_us);
            round_trip(&t, want[i].before_us + want[i].thresh_us - less);
            cr_expect_eq(hystart.in_css, !less, "%u us", want[i].before_us);
        }
    }
}

/* With less than N_RTT_SAMPLE samples there is no decision. An ACK without a sample does not count.
 */
Test(tcp_hystart, needs_eight_samples)
{
    struct nj_tcb t = fresh();
    round_trip(&t, 20000);
    acks(&t, 7, 40000);
    cr_expect_not(hystart.in_css);
    acks(&t, 1, 40000);
    cr_expect(hystart.in_css);
    t = fresh();
    round_trip(&t, 20000);
    round_trip(&t, 0);
    cr_expect_not(hystart.in_css);
    round_trip(&t, 40000);
    cr_expect_not(hystart.in_css, "the last round had no minimum");
}

/* In conservative slow start the window grows by a quarter of the acknowledged bytes. After five
 * rounds, the one in which it began included, ssthresh is set to the window. */
Test(tcp_hystart, conservative_slow_start_ends)
{
    struct nj_tcb t = fresh();
    round_trip(&t, 20000);
    round_trip(&t, 20000);
    cr_expect_eq(t.cwnd, 38 * MSS);
    cr_expect_eq(round_trip(&t, 25000), 36); /* the eighth begins it: 8 + 28 / 4 */
    cr_expect_eq(t.cwnd, 53 * MSS);
    for (uint32_t round = 2; round <= 5; round++) {
        uint32_t cwnd = t.cwnd;
        cr_expect_eq(t.ssthresh, NJ_CC_SSTHRESH_NONE);
        uint32_t n = round_trip(&t, 25000);
        cr_expect_eq(t.cwnd, cwnd + n * MSS / 4);
    }
    cr_expect_eq(t.ssthresh, t.cwnd);
}

/* The delay falls below its value at the begin of conservative slow start: it was jitter. */
Test(tcp_hystart, resumes)
{
    struct nj_tcb t = fresh();
    round_trip(&t, 20000);
    round_trip(&t, 25000);
    cr_expect(hystart.in_css);
    round_trip(&t, 25000);
    cr_expect(hystart.in_css, "not lower, the same");
    round_trip(&t, 24999);
    cr_expect_not(hystart.in_css);
    uint32_t cwnd = t.cwnd, n = round_trip(&t, 24999);
    cr_expect_eq(t.cwnd, cwnd + n * MSS, "doubles again");
    cr_expect_eq(t.ssthresh, NJ_CC_SSTHRESH_NONE);
}

/* L = 8 in slow start, and a quarter of it in the conservative one. */
Test(tcp_hystart, growth_per_acknowledgment_is_bounded)
{
    struct nj_tcb t = fresh();
    struct nj_cc_ack a = {.n_bytes = 100 * MSS, .limited = true};
    nj__slow_start(&t, &hystart, &a, false);
    cr_expect_eq(t.cwnd, 18 * MSS);
    hystart.in_css = true;
    nj__slow_start(&t, &hystart, &a, false);
    cr_expect_eq(t.cwnd, 20 * MSS);
}

/* A later slow start ignores the delay: its end is ssthresh. */
Test(tcp_hystart, only_in_the_first_slow_start)
{
    struct nj_tcb t = fresh();
    t.ssthresh = 1000 * MSS;
    for (uint32_t i = 0; i < 5; i++)
        round_trip(&t, 20000 << i);
    cr_expect_not(hystart.in_css);
    cr_expect_eq(t.ssthresh, 1000 * MSS);
}

/* An application-limited round is no evidence. */
Test(tcp_hystart, unused_window)
{
    struct nj_tcb t = fresh();
    round_trip(&t, 20000);
    uint32_t cwnd = t.cwnd;
    struct nj_cc_ack a = {.n_bytes = MSS, .rtt_us = 20000};
    nj__slow_start(&t, &hystart, &a, false);
    cr_expect_eq(t.cwnd, cwnd);
    acks(&t, 10, 40000);
    cr_expect_not(hystart.in_css, "rounds begin anew");
}

/* One ACK every `gap_us`; stops when conservative slow start begins. Returns when that was. */
static uint32_t train(struct nj_tcb *t, uint32_t n, uint32_t gap_us, uint32_t from_us)
{
    nj_ns now = NJ_SEC + from_us * NJ_US;

    for (uint32_t i = 0; i < n && !hystart.in_css; i++, now += gap_us * NJ_US) {
        struct nj_cc_ack a = {.now = now, .n_bytes = MSS, .rtt_us = t->min_rtt_us, .limited = true};
        t->snd_una += MSS;
        nj__slow_start(t, &hystart, &a, false);
        t->snd_nxt = t->snd_una + t->cwnd;
    }
    return (uint32_t)((now - NJ_SEC) / NJ_US);
}

/* ADR 8: a window whose ACK train takes more than half a round trip is not doubled, before any
 * delay shows. A shorter round trip does not revert that. */
Test(tcp_hystart, train_of_acks)
{
    struct nj_tcb t = fresh();
    t.min_rtt_us = 100000;
    t.cwnd = 200 * MSS;
    t.snd_nxt = t.snd_una + t.cwnd;
    uint32_t us = train(&t, 199, 500, 0);
    cr_expect(hystart.in_css);
    cr_expect(us > 50000 && us <= 51000, "%u us", us);
    t.min_rtt_us = 90000;
    hystart.cur_min_us = 90000;
    acks(&t, 20, 90000);
    cr_expect(hystart.in_css);

    t = fresh(); /* two trains of 30 ms with 40 ms between */
    t.min_rtt_us = 100000;
    t.cwnd = 200 * MSS;
    t.snd_nxt = t.snd_una + t.cwnd;
    train(&t, 61, 500, 0);
    cr_expect_not(hystart.in_css);
    train(&t, 61, 500, 70000);
    cr_expect(hystart.in_css);

    static const struct { /* none of these is one */
        uint32_t cwnd, n, gap_us;
    } table[] = {{200, 99, 500}, {200, 40, 2500}, {8, 7, 600}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        t = fresh();
        t.min_rtt_us = i == 2 ? 5000 : 100000;
        t.cwnd = table[i].cwnd * MSS;
        t.snd_nxt = t.snd_una + t.cwnd;
        train(&t, table[i].n, table[i].gap_us, 0);
        cr_expect_not(hystart.in_css, "row %zu", i);
    }
}

/* On a short path the pause between two windows is shorter than the gap limit of a long path. It
 * must not count as part of a train. */
Test(tcp_hystart, silence_on_a_short_path)
{
    enum { SEG_NS = 800 }; /* of 1000 bytes at 10 Gbit/s */
    for (uint32_t rtt_us = 200; rtt_us <= 3200; rtt_us *= 2) {
        struct nj_tcb t = fresh();
        nj_ns now = NJ_SEC;
        t.min_rtt_us = rtt_us;
        for (; t.ssthresh >= NJ_CC_SSTHRESH_NONE && !hystart.in_css; now += rtt_us * NJ_US) {
            uint32_t n = (t.snd_nxt - t.snd_una) / MSS;
            cr_assert_lt(n * SEG_NS, rtt_us * NJ_US, "it does not end with the path full");
            for (uint32_t i = 0; i < n && !hystart.in_css; i++) {
                struct nj_cc_ack a = {.now = now + i * (nj_ns)SEG_NS,
                                      .n_bytes = MSS,
                                      .rtt_us = rtt_us,
                                      .limited = true};
                t.snd_una += MSS;
                nj__slow_start(&t, &hystart, &a, false);
            }
            t.snd_nxt = t.snd_una + t.cwnd;
        }
        uint32_t half = rtt_us * (uint32_t)NJ_US / SEG_NS / 2;
        cr_expect_geq(t.cwnd / MSS, half, "RTT %u us: %u segments", rtt_us, t.cwnd / MSS);
    }
}
