/* SPDX-License-Identifier: BSD-3-Clause */
/* RACK-TLP (RFC 8985): time-based loss detection and tail loss probes. The round trip is 100 ms, so
 * a quarter is 25. */
#include "support/tcp_flight.h"
#include "telem/counters.h"

/* Sentences 72, 74; RFC 8985 6.2 step 4: three segments SACKed leave no room for reordering. */
Test(tcp_rack, three_sacks)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 10, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 2));
    ACKED(&w, 0, SEGS(1, 3));
    NOTHING(&w);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    NOTHING(&w);
    cr_expect_eq(w.tcb->ssthresh, 7 * MSS);
    for (uint32_t i = 5; i <= 10; i++)
        ACKED(&w, 0, SEGS(1, i));
    nj_dsl_run(&w, 90 * MS);
    NOTHING(&w); /* all other segments have arrived */
    ACKED(&w, 10);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_OPEN);
    cr_expect_eq(w.tcb->cwnd, 7 * MSS);
    nj_dsl_fini(&w);
}

/* RFC 2883 5: D-SACKs before the first retransmission do not count towards undo. The window is
 * closed, so that nothing is retransmitted. */
Test(tcp_rack, duplicates_before_the_first_retransmission)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 10, 0);
    nj_dsl_run(&w, 100 * MS);
    for (uint32_t i = 0; i < 5; i++)
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_wnd = true,
             .sack = {{1 + MSS, 1 + 4 * MSS}, {1 + MSS, 1 + 4 * MSS}});
    cr_expect_eq(w.tcb->x->ca, NJ_CA_RECOVERY);
    cr_expect_eq(w.tcb->x->undo_bytes, 0);
    ACKED(&w, 0, SEGS(1, 4));
    cr_expect_eq(w.tcb->x->ca, NJ_CA_RECOVERY);
    cr_expect_eq(w.tcb->ssthresh, 7 * MSS);
    w.n_out = w.next_out = 0;
    nj_dsl_fini(&w);
}

/* Sentence 74: two holes; only these are retransmitted. */
Test(tcp_rack, two_holes)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 10, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 2, SEGS(3, 5));
    ACKED(&w, 2, SEGS(8, 10), SEGS(3, 5));
    expect_full(&w, 2, 1);
    expect_full(&w, 5, 1);
    NOTHING(&w); /* RFC 9937 6.2: no more bytes than have arrived */
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 6, SEGS(8, 10));
    expect_full(&w, 6, 2);
    nj_dsl_run(&w, 100 * MS);
    NOTHING(&w);
    ACKED(&w, 10);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* Sentences 72, 77; RFC 8985 6.2 step 5: with fewer, a quarter of a round trip decides. */
Test(tcp_rack, timer)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 3, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 2));
    nj_dsl_run(&w, 24 * MS);
    NOTHING(&w);
    nj_dsl_run(&w, 3 * MS);
    expect_full(&w, 0, 1);
    NOTHING(&w);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_RECOVERY);
    nj_dsl_fini(&w);
}

/* Sentence 77: reordering without retransmission; from then on three SACKs do not prove a loss. */
Test(tcp_rack, reordering)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 10, 10);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 2));
    nj_dsl_run(&w, 20 * MS);
    ACKED(&w, 2);
    cr_expect(w.tcb->x->reordering);
    uint32_t cwnd = w.tcb->cwnd;
    w.next_out = w.n_out;
    for (uint32_t i = 4; i <= 8; i++)
        ACKED(&w, 2, SEGS(3, i));
    nj_dsl_run(&w, 5 * MS);
    ACKED(&w, 8);
    struct dsl_out *o;
    while ((o = nj_dsl_take(&w)))
        cr_expect_geq(o->rel_seq, AT(10));
    cr_expect_geq(w.tcb->cwnd, cwnd);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_retransmit), 0);
    nj_dsl_fini(&w);
}

/* RFC 8985 6.2 step 1: a larger minimum RTT is accepted after five minutes. */
Test(tcp_rack, least_round_trip_expires)
{
    struct world w;
    open_flight(&w, NULL);
    w.tcb->cwnd = 20 * MSS;
    cr_expect_eq(w.tcb->min_rtt_us, 100000);
    for (uint32_t i = 0; i < 40; i++) {
        WRITE(&w, MSS);
        w.next_out = w.n_out;
        nj_dsl_run(&w, 150 * MS);
        ACKED(&w, i + 1);
        if (i < 29) /* rounds of 10.15 s */
            cr_expect_eq(w.tcb->min_rtt_us, 100000, "round %u", i);
        else if (i > 30)
            cr_expect_eq(w.tcb->min_rtt_us, 150000, "round %u", i);
        w.next_out = w.n_out;
        nj_dsl_run(&w, 10 * SEC);
    }
    nj_dsl_fini(&w);
}

/* Sentence 77; RFC 8985 6.2 step 4: each round with a D-SACK adds a quarter of the RTT to the
 * reordering window, up to one RTT. After 16 recoveries without a D-SACK the window is a quarter of
 * the RTT again. */
Test(tcp_rack, window_grows_with_duplicates)
{
    struct world w;
    open_flight(&w, NULL);
    for (uint32_t round = 0; round < 6; round++) {
        uint32_t n = round * 4;
        nj_ns quarters = round < 4 ? round + 1 : 4;
        w.tcb->x->reordering = true;
        w.tcb->cwnd = 20 * MSS;
        w.tcb->srtt_us = w.tcb->min_rtt_us = 100000;
        WRITE(&w, 4 * MSS);
        expect_full(&w, n, 4);
        nj_dsl_run(&w, 100 * MS);
        ACKED(&w, n, SEGS(n + 1, n + 4));
        nj_dsl_run(&w, quarters * 25 * MS - 2 * MS);
        NOTHING(&w);
        nj_dsl_run(&w, 4 * MS);
        expect_full(&w, n, 1);
        ACKED(&w, n + 4, SEGS(n, n + 1)); /* both copies have come */
        NOTHING(&w);
    }
    for (uint32_t i = 0; i < 16; i++) {
        cr_expect_neq(w.tcb->x->reo_mult, 1);
        nj__rack_recovery_ended(w.tcb->x);
    }
    cr_expect_eq(w.tcb->x->reo_mult, 1);
    nj_dsl_fini(&w);
}

/* Sentence 75; RFC 8985 6.2: a lost retransmission, detected by the delivery of later data. */
Test(tcp_rack, lost_retransmission)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 10, 20);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    for (uint32_t i = 5; i <= 10; i++)
        ACKED(&w, 0, SEGS(1, i));
    uint32_t n_new = w.n_out - w.next_out;
    cr_expect_gt(n_new, 0);
    expect_full(&w, 10, n_new);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 11));
    expect_full(&w, 0, 1);
    nj_dsl_run(&w, 50 * MS);
    ACKED(&w, 10 + n_new);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_rto), 0);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), 1);
    nj_dsl_fini(&w);
}

/* Sentence 75: a lost retransmission without later data is detected by the time-out. */
Test(tcp_rack, lost_retransmission_of_the_last_one)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 4, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    nj_ns sent_at = w.now;
    while (w.next_out == w.n_out)
        nj_dsl_run(&w, 1 * MS);
    expect_full(&w, 0, 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_rto), 1);
    cr_expect_leq(w.now - sent_at, 310 * MS);
    ACKED(&w, 4);
    cr_expect_eq(w.tcb->x->sndq.n_bytes, 0);
    nj_dsl_fini(&w);
}

/* An ACK that comes too early for the retransmission acknowledges the original segment, and does
 * not update RACK (step 2). */
Test(tcp_rack, answer_to_the_first_copy)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 5, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    nj_ns at = w.tcb->x->rack_at;
    nj_dsl_run(&w, 10 * MS);
    ACKED(&w, 4); /* 10 ms after the copy */
    cr_expect_eq(w.tcb->x->rack_at, at);
    nj_dsl_run(&w, 30 * MS);
    NOTHING(&w); /* segment 4 was sent with the first copies: it is not overtaken */
    nj_dsl_fini(&w);
}

/* --- tail loss probes ------------------------------------------------------------------------ */

/* Sentence 76; RFC 8985 7.2: two round trips, and the time of a delayed ACK for a single segment.
 */
Test(tcp_rack, probe_times)
{
    for (uint32_t n = 1; n <= 3; n++) {
        struct world w;
        open_flight(&w, NULL);
        w.tcb->x->rto = 1 * SEC; /* out of the way */
        fly(&w, n, 0);
        nj_ns wait = n == 1 ? 240 * MS : 150 * MS; /* half of it: the samples have a wide spread */
        nj_dsl_run(&w, wait - 2 * MS);
        NOTHING(&w);
        nj_dsl_run(&w, 4 * MS);
        expect_full(&w, n - 1, 1); /* the last one */
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_tlp), 1);
        nj_dsl_run(&w, 990 * MS);
        NOTHING(&w); /* one probe; then the time-out, which counts from it (7.3) */
        nj_dsl_run(&w, 20 * MS);
        expect_full(&w, 0, 1);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_rto), 1);
        nj_dsl_fini(&w);
    }
}

/* ADR 6: of several segments one is acknowledged at once, so the probe waits for the spread of the
 * round trips: four times their variation, between an eighth (and two ticks) and a half. */
Test(tcp_rack, probe_waits_for_the_spread)
{
    static const struct {
        uint32_t srtt_us, rttvar_us, n;
        nj_ns wait;
    } table[] = {
        {100000, 5000, 3, 120 * MS}, {100000, 100, 3, 114500 * NJ_US}, {100000, 40000, 3, 150 * MS},
        {1000, 0, 3, 2 * MS},        {100000, 5000, 1, 160 * MS},      {100000, 40000, 1, 240 * MS},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct world w;
        open_flight(&w, NULL);
        fly(&w, table[i].n, 0);
        w.tcb->srtt_us = table[i].srtt_us;
        w.tcb->rttvar_us = table[i].rttvar_us;
        w.tcb->x->rexmit_at = NJ_NEVER;
        nj__tlp_schedule(w.tcb, w.now);
        cr_expect_eq(w.tcb->x->pto_at - w.now, table[i].wait, "row %zu: %" PRIu64, i,
                     w.tcb->x->pto_at - w.now);
        nj_dsl_fini(&w);
    }
}

/* The PTO of a lone last segment counts from its sending, not from the ACK of earlier ones. */
Test(tcp_rack, probe_counts_from_the_last_segment)
{
    struct world w;
    open_flight(&w, NULL);
    w.tcb->srtt_us = 100000;
    w.tcb->rttvar_us = 5000;
    fly(&w, 2, 0);
    nj_ns sent = w.now;
    nj_dsl_run(&w, 60 * MS);
    w.tcb->srtt_us = 100000;
    w.tcb->rttvar_us = 5000;
    ACKED(&w, 1);
    nj_ns wait = nj__srtt(w.tcb) + 4 * (nj_ns)w.tcb->rttvar_us * NJ_US + 40 * MS;
    cr_expect_eq(w.tcb->x->pto_at - sent, wait, "%" PRIu64, w.tcb->x->pto_at - sent);
    w.tcb->srtt_us = 10000; /* it is late already: a moment */
    nj__tlp_schedule(w.tcb, w.now);
    cr_expect_eq(w.tcb->x->pto_at, w.now + 2 * MS);
    nj_dsl_fini(&w);
}

/* RFC 8985 7.3: the probe is new data if the peer's window allows it; it may exceed cwnd. */
Test(tcp_rack, probe_with_new_data)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 4, 2);
    nj_dsl_run(&w, 210 * MS);
    expect_full(&w, 4, 1);
    NOTHING(&w);
    nj_dsl_run(&w, 50 * MS);
    uint32_t cwnd = w.tcb->cwnd;
    ACKED(&w, 5);
    cr_expect_geq(w.tcb->cwnd, cwnd); /* nothing was lost */
    nj_dsl_fini(&w);

    open_flight(&w, NULL);
    w.tcb->cwnd = 4 * MSS;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 4 * MSS);
    WRITE(&w, 6 * MSS);
    expect_full(&w, 0, 4);
    nj_dsl_run(&w, 210 * MS);
    expect_full(&w, 3, 1); /* no room for more */
    nj_dsl_fini(&w);
}

/* Sentence 76; RFC 8985 7.4.2: reaction to the ACK of a probe. */
Test(tcp_rack, probe_repairs)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 4, 0);
    nj_dsl_run(&w, 210 * MS);
    expect_full(&w, 3, 1);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 4);
    cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE, "it may be that both copies arrived");
    WRITE(&w, MSS);
    expect_full(&w, 4, 1);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 5); /* without a word of a duplicate: one was lost */
    cr_expect_lt(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_OPEN);
    nj_dsl_fini(&w);

    for (unsigned how = 0; how < 2; how++) { /* both copies arrived */
        open_flight(&w, NULL);
        fly(&w, 4, 0);
        nj_dsl_run(&w, 210 * MS);
        expect_full(&w, 3, 1);
        ACKED(&w, 4);
        if (how)
            ACKED(&w, 4, SEGS(3, 4));
        else
            ACKED(&w, 4);
        WRITE(&w, MSS);
        expect_full(&w, 4, 1);
        ACKED(&w, 5);
        cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE, "case %u", how);
        nj_dsl_fini(&w);
    }
}

/* RFC 8985 7.2: no probe without SACK, with a known hole, or at a closed window. */
Test(tcp_rack, no_probe)
{
    struct world w;
    open_flight_with(&w, NULL, &(struct dsl_seg){0});
    fly(&w, 4, 0);
    nj_dsl_run(&w, 295 * MS);
    NOTHING(&w);
    nj_dsl_fini(&w);

    open_flight(&w, NULL);
    fly(&w, 8, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    cr_expect_eq(w.tcb->x->pto_at, NJ_NEVER);
    nj_dsl_fini(&w);

    open_flight(&w, NULL);
    fly(&w, 4, 0);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(2), .no_wnd = true);
    nj_dsl_run(&w, 400 * MS);
    EXPECT(&w, .flags = A, .seq = AT(2), .ack = 1, .len = 1); /* of the window */
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_tlp), 0);
    nj_dsl_fini(&w);
}

/* The probe is lost, too: the time-out retransmits from the start. */
Test(tcp_rack, lost_probe)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 3, 0);
    nj_dsl_run(&w, 205 * MS);
    expect_full(&w, 2, 1);
    nj_dsl_run(&w, 310 * MS);
    expect_full(&w, 0, 1);
    cr_expect_eq(w.tcb->cwnd, MSS);
    ACKED(&w, 1);
    expect_full(&w, 1, 2);
    ACKED(&w, 3);
    cr_expect_eq(w.tcb->x->sndq.n_bytes, 0);
    nj_dsl_fini(&w);
}
