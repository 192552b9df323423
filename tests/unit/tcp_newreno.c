/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of NewReno: RFC 5681, RFC 6582, RFC 6928; sentences 78 - 82. */
#include <criterion/criterion.h>

#include "tcp/cc/congestion.h"

#define MSS 1000u

static struct nj_xfer xfer;

static struct nj_tcb fresh(uint32_t flight)
{
    xfer = (struct nj_xfer){0};
    struct nj_tcb t = {.x = &xfer, .snd_mss = MSS, .snd_una = UINT32_MAX - 500};
    t.snd_nxt = t.snd_una + flight;
    nj_cc_newreno.opened(&t);
    return t;
}

static void ack(struct nj_tcb *t, uint32_t n_bytes, bool limited)
{
    nj_cc_newreno.acked(t, &(struct nj_cc_ack){.n_bytes = n_bytes, .limited = limited});
}

Test(tcp_newreno, initial_window)
{
    struct nj_tcb t = fresh(0);
    cr_expect_eq(t.cwnd, 10 * MSS);
    cr_expect_gt(t.ssthresh, 1u << 24);
}

/* Sentence 78; RFC 6928 2: min(10 MSS, max(2 MSS, 14600)). */
Test(tcp_newreno, initial_window_of_any_mss)
{
    static const uint32_t want[][2] = {{536, 5360},   {1000, 10000}, {1448, 14480},
                                       {1460, 14600}, {1461, 14600}, {8960, 17920}};
    for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct nj_tcb t = fresh(0);
        t.snd_mss = (uint16_t)want[i][0];
        nj_cc_newreno.opened(&t);
        cr_expect_eq(t.cwnd, want[i][1]);
        cr_expect_eq(t.ssthresh, NJ_CC_SSTHRESH_NONE);
    }
}

/* Sentences 79, 80; RFC 3465 2.2, 2.3: growth by acknowledged bytes, up to L. */
Test(tcp_newreno, bytes_are_counted_in_slow_start)
{
    struct nj_tcb t = fresh(0);
    nj_cc_newreno.opened(&t);
    ack(&t, 1, true);
    cr_expect_eq(t.cwnd, 10 * MSS + 1);
    ack(&t, 100 * MSS, true);
    cr_expect_eq(t.cwnd, 18 * MSS + 1, "RFC 9406 4.3: L = 8 in the first");
    ack(&t, MSS, false);
    cr_expect_eq(t.cwnd, 18 * MSS + 1, "not limited by the window");
    t.ssthresh = 22 * MSS;
    ack(&t, 100 * MSS, true);
    cr_expect_eq(t.cwnd, 20 * MSS + 1, "RFC 3465 2.3: L = 2");
    ack(&t, 100 * MSS, true);
    cr_expect_eq(t.cwnd, 22 * MSS, "and not beyond ssthresh");
}

/* Sentence 82; RFC 5681 equation (4), RFC 3465 2.3: L = 1 after a time-out. */
Test(tcp_newreno, loss_and_time_out)
{
    struct nj_tcb t = fresh(20 * MSS);
    nj_cc_newreno.lost(&t, 0);
    cr_expect_eq(t.ssthresh, 5 * MSS,
                 "segments that limited transmit sent beyond cwnd do not count");
    t.cwnd = 30 * MSS;
    nj_cc_newreno.lost(&t, 0);
    cr_expect_eq(t.ssthresh, 10 * MSS);
    t.snd_nxt = t.snd_una + 3 * MSS;
    nj_cc_newreno.timed_out(&t, 0);
    cr_expect_eq(t.ssthresh, 2 * MSS);
    t.ssthresh = 10 * MSS;
    t.cwnd = MSS;
    ack(&t, 5 * MSS, true);
    cr_expect_eq(t.cwnd, 2 * MSS);
    nj_cc_newreno.undone(&t);
    ack(&t, 5 * MSS, true);
    cr_expect_eq(t.cwnd, 4 * MSS);
}

/* RFC 5681 3.1 with RFC 3465 2.1: cwnd grows by one segment per window, for any number of ACKs. */
Test(tcp_newreno, avoidance_counts_bytes)
{
    struct nj_tcb t = fresh(0);
    t.cwnd = t.ssthresh = 10 * MSS;
    for (uint32_t i = 0; i < 99; i++)
        ack(&t, MSS / 10, true);
    cr_expect_eq(t.cwnd, 10 * MSS);
    ack(&t, MSS / 10, true);
    cr_expect_eq(t.cwnd, 11 * MSS);
    memset(t.x->cc, 0, sizeof t.x->cc); /* as after an idle time */
    ack(&t, 11 * MSS, true);
    cr_expect_eq(t.cwnd, 12 * MSS);
    ack(&t, UINT32_MAX, true);
    cr_expect_eq(t.cwnd, 13 * MSS, "one per acknowledgment at most");
}

/* Sentence 81; RFC 5681 4.1: cwnd is the restart window, ssthresh keeps its value. */
Test(tcp_newreno, idle_restart)
{
    struct nj_tcb t = fresh(0);
    t.cwnd = 100 * MSS;
    t.ssthresh = 20 * MSS;
    nj_cc_newreno.idle(&t, 2 * NJ_SEC, NJ_SEC);
    cr_expect_eq(t.cwnd, 10 * MSS);
    cr_expect_eq(t.ssthresh, 75 * MSS);
    t.cwnd = 4 * MSS;
    nj_cc_newreno.idle(&t, 4 * NJ_SEC, NJ_SEC);
    cr_expect_eq(t.cwnd, 4 * MSS, "never upwards");
    cr_expect_eq(t.ssthresh, 75 * MSS);
}

Test(tcp_newreno, window_has_a_ceiling)
{
    struct nj_tcb t = fresh(0);
    nj_cc_newreno.opened(&t);
    for (uint32_t i = 0; i < 300000; i++)
        ack(&t, 8 * MSS, true);
    cr_expect_eq(t.cwnd, NJ_CC_CWND_MAX);
    for (uint32_t i = 0; i < 1000; i++)
        ack(&t, NJ_CC_CWND_MAX, true);
    cr_expect_eq(t.cwnd, NJ_CC_CWND_MAX);
}
