/* SPDX-License-Identifier: BSD-3-Clause */
/* RTT estimation and RTO (RFC 6298), in numbers; sentences 67, 69, 70. */
#include <criterion/criterion.h>

#include "tcp/tcp_internal.h"

static struct nj_tcb fresh(struct nj_xfer *x)
{
    return (struct nj_tcb){.x = x};
}

Test(tcp_rtt, first_and_further_samples)
{
    struct nj_xfer x = {.rto = NJ_TCP_RTO_INITIAL};
    struct nj_tcb t = fresh(&x);
    nj__tcp_rtt_sample(&t, 400 * NJ_MS); /* 2.2 */
    cr_expect_eq(t.srtt_us * NJ_US, 400 * NJ_MS);
    cr_expect_eq(t.rttvar_us * NJ_US, 200 * NJ_MS);
    cr_expect_eq(x.rto, 1200 * NJ_MS);
    nj__tcp_rtt_sample(&t, 800 * NJ_MS); /* 2.3: the variance first */
    cr_expect_eq(t.rttvar_us * NJ_US, 250 * NJ_MS);
    cr_expect_eq(t.srtt_us * NJ_US, 450 * NJ_MS);
    nj__tcp_rtt_sample(&t, 50 * NJ_MS);
    cr_expect_eq(t.rttvar_us * NJ_US, 287500 * NJ_US);
    cr_expect_eq(t.srtt_us * NJ_US, 400 * NJ_MS);
    cr_expect_eq(x.rto, 1550 * NJ_MS);
}

Test(tcp_rtt, bounds)
{
    struct nj_xfer x = {0};
    struct nj_tcb t = fresh(&x);
    nj__tcp_rtt_sample(&t, 0);
    cr_expect_geq(t.srtt_us * NJ_US, 1, "0 means: no sample yet");
    for (unsigned i = 0; i < 100; i++)
        nj__tcp_rtt_sample(&t, 10 * NJ_US);
    cr_expect(x.rto >= NJ_TCP_RTO_VAR_MIN && x.rto < NJ_TCP_RTO_VAR_MIN + NJ_MS);
    nj__tcp_rtt_sample(&t, 1000 * NJ_SEC);
    cr_expect_eq(x.rto, NJ_TCP_RTO_MAX);
    for (unsigned i = 0; i < 1000; i++) {
        nj__tcp_rtt_sample(&t, i % 2 * NJ_SEC);
        cr_assert(t.srtt_us * NJ_US <= 1000 * NJ_SEC && t.rttvar_us * NJ_US <= 1000 * NJ_SEC,
                  "below zero");
    }
}

/* RFC 6298 2.4: the floor is on the variance, so the time-out exceeds any round trip by 200 ms. */
Test(tcp_rtt, floor_of_a_steady_round_trip)
{
    for (nj_ns rtt = NJ_MS; rtt < 2 * NJ_SEC; rtt *= 2) {
        struct nj_xfer x = {0};
        struct nj_tcb t = fresh(&x);
        for (unsigned i = 0; i < 100; i++)
            nj__tcp_rtt_sample(&t, rtt);
        cr_expect(x.rto >= rtt + 200 * NJ_MS && x.rto <= rtt + 201 * NJ_MS, "%lu us of %lu",
                  (unsigned long)(x.rto / NJ_US), (unsigned long)(rtt / NJ_US));
    }
}

Test(tcp_rtt, back_off)
{
    struct nj_xfer x = {.rto = 200 * NJ_MS};
    struct nj_tcb t = fresh(&x);
    for (nj_ns want = 400 * NJ_MS; want < 60 * NJ_SEC; want *= 2) {
        nj__tcp_rto_back_off(&t);
        cr_assert_eq(x.rto, want);
    }
    for (unsigned i = 0; i < 500; i++)
        nj__tcp_rto_back_off(&t);
    cr_expect_eq(x.rto, NJ_TCP_RTO_MAX);
    cr_expect_eq(x.n_backoffs, UINT8_MAX);
}

Test(tcp_rtt, persist_leaves_the_rto)
{
    struct nj_xfer x = {.rto = 300 * NJ_MS};
    struct nj_tcb t = fresh(&x);
    cr_expect_eq(nj__tcp_persist_back_off(&t), 600 * NJ_MS);
    cr_expect_eq(nj__tcp_persist_back_off(&t), 1200 * NJ_MS);
    for (unsigned i = 0; i < 500; i++)
        cr_assert_leq(nj__tcp_persist_back_off(&t), NJ_TCP_RTO_MAX);
    cr_expect_eq(nj__tcp_persist_back_off(&t), NJ_TCP_RTO_MAX);
    cr_expect_eq(x.rto, 300 * NJ_MS);
}

Test(tcp_rtt, after_the_handshake)
{
    struct nj_xfer x = {.rto = NJ_TCP_RTO_INITIAL, .syn_at = 5 * NJ_SEC};
    struct nj_tcb t = fresh(&x);
    nj__tcp_rto_handshake_done(&t, 5100 * NJ_MS);
    cr_expect_eq(t.srtt_us * NJ_US, 100 * NJ_MS);
    x = (struct nj_xfer){.rto = 8 * NJ_SEC, .n_backoffs = 3};
    t = fresh(&x);
    nj__tcp_rto_handshake_done(&t, NJ_SEC);
    cr_expect_eq(x.rto, NJ_TCP_RTO_SYN_LOST); /* 5.7 */
    cr_expect_eq(x.n_backoffs, 0);
}
