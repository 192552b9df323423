/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of loss recovery: PRR (RFC 9937), time-outs (RFC 5681), undo of spurious recovery (RFC
 * 3522, RFC 5682, RFC 2883) and ECN. */
#include "support/tcp_flight.h"
#include "telem/counters.h"

/* --- PRR, RFC 9937 6.2 -------------------------------------------------------------------------
 */

/* A model of RFC 9937 6.2 in the RFC's variables. */
struct prr {
    uint32_t delivered, out, recover_fs, ssthresh;
};

static uint32_t prr_sndcnt(const struct prr *p, uint32_t pipe, uint32_t delivered_now, bool grows)
{
    uint32_t limit;

    if (pipe > p->ssthresh) {
        uint64_t due = ((uint64_t)p->delivered * p->ssthresh + p->recover_fs - 1) / p->recover_fs;
        return due > p->out ? (uint32_t)due - p->out : 0;
    }
    limit = p->delivered > p->out ? p->delivered - p->out : 0;
    if (grows)
        limit = (limit > delivered_now ? limit : delivered_now) + MSS;
    return limit < p->ssthresh - pipe ? limit : p->ssthresh - pipe;
}

/* RFC 9937 6.2: twenty in flight, the first is lost, cwnd is halved. One segment is sent per two
 * deliveries, and one per delivery when ten are left. */
Test(tcp_recovery_state, prr_in_numbers)
{
    static const uint8_t sent[] = {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1};
    struct world w;
    open_flight(&w, &nj_cc_newreno);
    fly(&w, 20, 40);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    NOTHING(&w);
    cr_expect_eq(w.tcb->ssthresh, 10 * MSS);
    uint32_t next = 20;
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(sent); i++) {
        ACKED(&w, 0, SEGS(1, 5 + i));
        cr_expect_eq(w.n_out - w.next_out, sent[i], "after %u more, %u were sent", i + 1,
                     w.n_out - w.next_out);
        expect_full(&w, next, w.n_out - w.next_out);
        next += sent[i];
    }
    cr_expect_eq(nj__pipe(w.tcb), 10 * MSS);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 20);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_OPEN);
    cr_expect_eq(w.tcb->cwnd, 10 * MSS);
    nj_dsl_fini(&w);
}

/* The same against the formula, with losses, with ACKs of several segments at once, and with CUBIC.
 */
Test(tcp_recovery_state, prr_agrees_with_the_formula)
{
    for (uint32_t step = 1; step <= 6; step++) {
        struct world w;
        open_flight(&w, step % 2 ? NULL : &nj_cc_newreno);
        fly(&w, 30, 34);
        nj_dsl_run(&w, 100 * MS);
        ACKED(&w, 0, SEGS(5, 8)); /* five are lost */
        const struct nj_xfer *x = w.tcb->x;
        struct prr p = {.recover_fs = 30 * MSS, .ssthresh = w.tcb->ssthresh};
        p.delivered = 3 * MSS;
        p.out = (w.n_out - w.next_out) * MSS;
        cr_expect_geq(p.out, MSS, "the first segment is sent in spite of the window");
        for (uint32_t end = 8 + step; end <= 30 && x->ca == NJ_CA_RECOVERY; end += step) {
            uint32_t pipe = x->n_flight - step * MSS, n = w.n_out;
            p.delivered += step * MSS;
            uint32_t most = prr_sndcnt(&p, pipe, step * MSS, false);
            ACKED(&w, 0, SEGS(5, end));
            uint32_t out = (w.n_out - n) * MSS;
            cr_expect_leq(out, most, "step %u at %u: %u, not %u", step, end, out, most);
            cr_expect_gt(out + MSS, most, "step %u at %u: %u, not %u", step, end, out, most);
            p.out += out;
        }
        nj_dsl_fini(&w);
    }
}

/* Recovery ends when the data in flight at its begin is acknowledged. A hole in later data starts
 * another recovery. */
Test(tcp_recovery_state, one_reduction_per_flight)
{
    struct world w;
    open_flight(&w, &nj_cc_newreno);
    fly(&w, 20, 40);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    ACKED(&w, 0, SEGS(1, 6), SEGS(9, 20)); /* three more are missing */
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), 1);
    uint32_t ssthresh = w.tcb->ssthresh, high = w.tcb->x->high_seq - w.iss;
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 20);
    cr_expect_eq(high, AT(20));
    cr_expect_eq(w.tcb->x->ca, NJ_CA_OPEN);
    cr_expect_eq(w.tcb->ssthresh, ssthresh);
    nj_dsl_fini(&w);
}

/* --- time-outs ------------------------------------------------------------------------------- */

/* Sentence 82; RFC 5681 3.1: the second of a row finds ssthresh as the first left it. */
Test(tcp_recovery_state, time_outs_in_a_row)
{
    struct world w;
    open_flight(&w, &nj_cc_newreno);
    fly(&w, 20, 0);
    nj_dsl_run(&w, 3 * SEC);
    cr_expect_gt(nj_dsl_count(&w, NJ_C_tcp_rto), 2);
    cr_expect_eq(w.tcb->ssthresh, 10 * MSS);
    cr_expect_eq(w.tcb->cwnd, w.tcb->snd_mss);
    nj_dsl_fini(&w);
}

/* A time-out within recovery: the window has already been reduced, and all segments are sent again.
 */
Test(tcp_recovery_state, time_out_in_recovery)
{
    struct world w;
    open_flight(&w, &nj_cc_newreno);
    fly(&w, 20, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    nj_dsl_run(&w, 400 * MS);
    expect_full(&w, 0, 1);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_LOSS);
    cr_expect_eq(w.tcb->ssthresh, 10 * MSS);
    ACKED(&w, 4);
    expect_full(&w, 4, 2);
    NOTHING(&w);
    ACKED(&w, 20);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_OPEN);
    nj_dsl_fini(&w);
}

/* Sentence 74: segments stay SACKed through a time-out, unless the peer's SACKs are proved wrong.
 */
Test(tcp_recovery_state, time_out_keeps_what_was_sacked)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 6, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(3, 5)); /* and the segments that RACK sends now are lost */
    nj_dsl_run(&w, 310 * MS);
    cr_expect_geq(nj_dsl_count(&w, NJ_C_tcp_rto), 1);
    w.next_out = w.n_out;
    ACKED(&w, 1, SEGS(3, 5));
    expect_full(&w, 1, 2);
    ACKED(&w, 5);
    expect_full(&w, 5, 1);
    ACKED(&w, 6);
    nj_dsl_fini(&w);
}

/* --- undo of spurious recovery, sentence 84 -------------------------------------------------- */

/* A flight of ten segments, and a path that takes 500 ms once. */
static void delay_spike(struct world *w, const struct dsl_seg *syn, uint32_t more)
{
    open_flight_with(w, &(struct dsl_options){.cc = &nj_cc_newreno}, syn);
    fly(w, 10, more);
    nj_dsl_run(w, 320 * MS);
    w->tcb->x->pto_at = NJ_NEVER;
    struct dsl_out *o;
    while ((o = nj_dsl_take(w)))
        cr_expect_eq(o->rel_seq, syn->sack_ok && o->rel_seq > 1 ? AT(9) : AT(0));
}

/* Sentence 84; RFC 3522 3: the ACK echoes the timestamp of the first copy. */
Test(tcp_recovery_state, time_out_undone_by_timestamp)
{
    struct world w;
    open_flight_with(&w, &(struct dsl_options){.cc = &nj_cc_newreno},
                     &(struct dsl_seg){.ts = true});
    fly(&w, 10, 0);
    uint32_t first = w.last_tsval;
    nj_dsl_run(&w, 320 * MS);
    expect_full(&w, 0, 1);
    cr_expect_eq(w.tcb->cwnd, MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1), .tsecr = first);
    NOTHING(&w); /* nothing was lost */
    cr_expect_geq(w.tcb->cwnd, 10 * MSS);
    cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 1);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(10), .tsecr = first);
    NOTHING(&w);
    nj_dsl_fini(&w);

    /* The echoed timestamp of the second copy shows that the first was lost. */
    open_flight_with(&w, &(struct dsl_options){.cc = &nj_cc_newreno},
                     &(struct dsl_seg){.ts = true});
    fly(&w, 10, 0);
    nj_dsl_run(&w, 320 * MS);
    expect_full(&w, 0, 1);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1));
    expect_full(&w, 1, 2);
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 0);
    nj_dsl_fini(&w);
}

/* Sentence 84; RFC 2883 5: all retransmissions were reported as duplicates, also after recovery. */
Test(tcp_recovery_state, recovery_undone_by_dsack)
{
    for (unsigned late = 0; late < 2; late++) {
        struct world w;
        open_flight(&w, &nj_cc_newreno);
        fly(&w, 10, 0);
        nj_dsl_run(&w, 100 * MS);
        ACKED(&w, 0, SEGS(2, 5)); /* the first two are late */
        if (w.n_out - w.next_out == 1)
            ACKED(&w, 0, SEGS(2, 8));
        expect_full(&w, 0, 2);
        nj_dsl_run(&w, 20 * MS);
        ACKED(&w, late ? 10 : 8); /* there they are */
        cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
        nj_dsl_run(&w, 80 * MS);
        ACKED(&w, late ? 10 : 8, SEGS(0, 1));
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 0, "one of two");
        ACKED(&w, late ? 10 : 8, SEGS(1, 2));
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 1);
        cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE);
        cr_expect_geq(w.tcb->cwnd, 10 * MSS);
        nj_dsl_fini(&w);
    }
}

/* A D-SACK of data that was never retransmitted, or not sent yet, is no evidence. */
Test(tcp_recovery_state, forged_dsacks)
{
    struct world w;
    open_flight(&w, &nj_cc_newreno);
    fly(&w, 10, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    expect_full(&w, 0, 1);
    ACKED(&w, 4, {AT(3), AT(3) + 10});
    ACKED(&w, 4, {AT(3) + 500, AT(3)});
    SEND(&w, .flags = A, .seq = 1, .ack = AT(4), .sack = {{AT(0) - 1000000, AT(0)}});
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 0);
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
    nj_dsl_fini(&w);
}

/* Sentence 84; RFC 5682 2.1, without SACK: after the first ACK two new segments are sent. The
 * second ACK acknowledges segments that were sent only once, which proves that the time-out was
 * spurious. */
Test(tcp_recovery_state, frto)
{
    struct world w;
    delay_spike(&w, &(struct dsl_seg){0}, 10);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1));
    expect_full(&w, 10, 2);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(2));
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 1);
    cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE);
    cr_expect_geq(w.tcb->cwnd, 10 * MSS);
    struct dsl_out *o;
    while ((o = nj_dsl_take(&w)))
        cr_expect_geq(o->rel_seq, AT(12));
    nj_dsl_fini(&w);
}

/* RFC 5682 2.1 step 3a: a repeated ACK instead: the losses are real, and they go again. */
Test(tcp_recovery_state, frto_finds_losses)
{
    struct world w;
    delay_spike(&w, &(struct dsl_seg){0}, 10);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1));
    expect_full(&w, 10, 2);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1));
    expect_full(&w, 1, 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 0);
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
    nj_dsl_run(&w, 50 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(12));
    nj_dsl_fini(&w);
}

/* RFC 5682 2.1 step 2: one ACK acknowledges all sent data, or there is no new data. */
Test(tcp_recovery_state, frto_without_new_data)
{
    struct world w;
    delay_spike(&w, &(struct dsl_seg){0}, 0);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1));
    expect_full(&w, 1, 2);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), 0);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(10));
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
    nj_dsl_fini(&w);
}

/* Sentence 84; RFC 5682 3: a SACK of a segment that was sent only once proves that the time-out was
 * spurious. A SACK of a retransmission does not. */
Test(tcp_recovery_state, frto_with_sack)
{
    for (unsigned copy = 0; copy < 2; copy++) {
        struct world w;
        delay_spike(&w, &(struct dsl_seg){.sack_ok = true}, 0);
        while (nj_dsl_count(&w, NJ_C_tcp_rto) == 0)
            nj_dsl_run(&w, 1 * MS);
        expect_full(&w, 0, 1);
        NOTHING(&w);
        if (copy)
            ACKED(&w, 1);
        else
            ACKED(&w, 0, SEGS(2, 3));
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_undo), !copy);
        cr_expect_eq(w.tcb->ssthresh == NJ_CC_SSTHRESH_NONE, !copy);
        nj_dsl_fini(&w);
    }
}

/* --- explicit congestion notification, sentence 93 ------------------------------------------- */

#define E   NJ_TCP_ECE
#define CWR NJ_TCP_CWR

static void open_ecn(struct world *w)
{
    open_flight(w, &nj_cc_newreno);
    w->tcb->ecn_on = true;
}

/* Sentence 93; RFC 3168 6.1.2: one reduction per round trip, reported by CWR in the next new
 * segment. */
Test(tcp_recovery_state, ecn_echo)
{
    struct world w;
    open_ecn(&w);
    fly(&w, 10, 20);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A | E, .seq = 1, .ack = AT(1));
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
    for (uint32_t i = 2; i < 10; i++)
        SEND(&w, .flags = A | E, .seq = 1, .ack = AT(i));
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS, "the others are of the same round trip");
    uint32_t n_told = 0;
    for (struct dsl_out *o; (o = nj_dsl_take(&w));) {
        bool told = o->seg.flags & CWR;
        cr_expect_eq(told, o->rel_seq == AT(10), "CWR is on the first new segment");
        cr_expect_eq(o->seg.ecn, NJ_ECN_ECT_0);
        n_told += told;
    }
    cr_expect_eq(n_told, 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_retransmit), 0);
    nj_dsl_run(&w, 100 * MS);
    uint32_t end = w.tcb->snd_nxt - w.iss;
    SEND(&w, .flags = A, .seq = 1, .ack = end);
    cr_expect_eq(w.tcb->x->ca, NJ_CA_OPEN);
    nj_dsl_run(&w, 100 * MS);
    uint32_t cwnd = w.tcb->cwnd;
    WRITE(&w, 20 * MSS);
    SEND(&w, .flags = A | E, .seq = 1, .ack = w.tcb->snd_nxt - w.iss); /* the next one counts */
    cr_expect_lt(w.tcb->ssthresh, cwnd);
    nj_dsl_fini(&w);
}

/* Sentence 93; RFC 3168 6.1.5: retransmissions are not ECT and carry no CWR. */
Test(tcp_recovery_state, ecn_and_losses)
{
    struct world w;
    open_ecn(&w);
    fly(&w, 10, 20);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(1, 4));
    struct dsl_out *o = EXPECT(&w, .flags = A, .seq = AT(0), .ack = 1, .len = MSS);
    cr_expect_eq(o->seg.ecn, 0);
    SEND(&w, .flags = A | E, .seq = 1, .ack = AT(0), .sack = {SEGS(1, 8)});
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS, "it is the same flight");
    o = EXPECT(&w, .flags = A | CWR, .seq = AT(10), .ack = 1, .len = MSS);
    cr_expect_eq(o->seg.ecn, NJ_ECN_ECT_0);
    nj_dsl_fini(&w);
}

/* Without negotiation ECE has no effect. */
Test(tcp_recovery_state, ecn_that_was_not_agreed)
{
    struct world w;
    open_flight(&w, &nj_cc_newreno);
    fly(&w, 10, 0);
    SEND(&w, .flags = A | E, .seq = 1, .ack = AT(5));
    cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE);
    nj_dsl_fini(&w);
}
