/* SPDX-License-Identifier: BSD-3-Clause */
/* NewReno's arithmetic: RFC 5681, RFC 6582, RFC 6928; sentences 78 - 82. */
#include <criterion/criterion.h>

#include "tcp/cc.h"

#define MSS 1000u

static struct nj_xfer xfer;

static struct nj_tcb fresh(uint32_t flight)
{
    xfer = (struct nj_xfer){0};
    struct nj_tcb t = {.x = &xfer, .snd_mss = MSS, .snd_una = UINT32_MAX - 500};
    t.snd_nxt = t.x->snd_max = t.snd_una + flight;
    nj_cc_newreno.init(&t);
    return t;
}

Test(tcp_cc_newreno, initial_window)
{
    struct nj_tcb t = fresh(0);
    cr_expect_eq(t.cwnd, 10 * MSS);
    cr_expect_gt(t.ssthresh, 1u << 24);
}

Test(tcp_cc_newreno, slow_start_then_avoidance)
{
    struct nj_tcb t = fresh(0);
    t.ssthresh = 14 * MSS;
    nj_cc_newreno.on_ack(&t, 1, true);
    cr_expect_eq(t.cwnd, 10 * MSS + 1);
    nj_cc_newreno.on_ack(&t, 9 * MSS, true);
    cr_expect_eq(t.cwnd, 12 * MSS + 1); /* RFC 3465: two at most */
    nj_cc_newreno.on_ack(&t, 2 * MSS, true);
    uint32_t cwnd = t.cwnd;
    uint32_t n = 0;
    for (; t.cwnd == cwnd; n += MSS) /* one segment per window from here on */
        nj_cc_newreno.on_ack(&t, MSS, true);
    cr_expect(n >= cwnd && n < cwnd + MSS, "%u", n);
    cr_expect_eq(t.cwnd, cwnd + MSS);
    nj_cc_newreno.on_ack(&t, 100 * MSS, false);
    cr_expect_eq(t.cwnd, cwnd + MSS, "not limited by the window");
}

Test(tcp_cc_newreno, recovery)
{
    struct nj_tcb t = fresh(20 * MSS);
    nj_cc_newreno.on_recovery_begin(&t);
    cr_expect_eq(t.ssthresh, 10 * MSS);
    cr_expect_eq(t.cwnd, 13 * MSS);
    nj_cc_newreno.on_dupack(&t);
    cr_expect_eq(t.cwnd, 14 * MSS);
    nj_cc_newreno.on_partial_ack(&t, 5 * MSS);
    cr_expect_eq(t.cwnd, 10 * MSS);
    nj_cc_newreno.on_partial_ack(&t, 100 * MSS);
    cr_expect_geq(t.cwnd, MSS);
    t.snd_una = t.x->snd_max - 2 * MSS;
    nj_cc_newreno.on_recovery_end(&t);
    cr_expect_eq(t.cwnd, 3 * MSS); /* min(ssthresh, flight + one) */
}

Test(tcp_cc_newreno, floors_and_ceilings)
{
    struct nj_tcb t = fresh(MSS);
    nj_cc_newreno.on_rto(&t, true);
    cr_expect_eq(t.cwnd, MSS);
    cr_expect_eq(t.ssthresh, 2 * MSS);
    t.x->snd_max = t.snd_una + 50 * MSS;
    nj_cc_newreno.on_rto(&t, false);
    cr_expect_eq(t.ssthresh, 2 * MSS, "once per loss");
    t = fresh(0);
    for (unsigned i = 0; i < 1000000; i++)
        nj_cc_newreno.on_ack(&t, 2 * MSS, true);
    cr_expect_eq(t.cwnd, 1u << 30);
    nj_cc_newreno.on_dupack(&t);
    cr_expect_eq(t.cwnd, 1u << 30);
    nj_cc_newreno.on_idle(&t);
    cr_expect_eq(t.cwnd, 10 * MSS);
}
