/* SPDX-License-Identifier: BSD-3-Clause */
/* Path MTU discovery by ICMP (RFC 1191, RFC 8201, RFC 5927), and by probes (RFC 4821, RFC 8899). */
#include "support/tcp_flight.h"
#include "telem/counters.h"

#define FULL 1460u

/* The MTU for a payload, by the address family of the test run. */
static uint16_t mtu_of(const struct world *w, uint32_t payload)
{
    return (uint16_t)(payload + (w->v6 ? 60 : 40));
}

static bool tell(struct world *w, enum nj_icmp_error_kind error_kind, uint32_t rel_seq,
                 uint32_t mtu)
{
    struct nj_icmp_error e = {
        .error_kind = error_kind, .tuple = w->tuple, .seq = w->iss + rel_seq, .mtu = mtu};
    bool known = nj_tcp_icmp(&w->tcp, nj_dsl_find(w), &e);
    nj_dsl_step(w);
    return known;
}

static void open_full(struct world *w)
{
    nj_dsl_init(w, NULL);
    nj_dsl_open_with(w, &(struct dsl_seg){.mss = FULL, .sack_ok = true});
}

/* Sentences 91, 94; RFC 1191 3, RFC 8201 4: segments get shorter, cwnd is unchanged. */
Test(tcp_pmtu, too_big)
{
    struct world w;
    open_full(&w);
    WRITE(&w, 3 * FULL);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT(&w, .flags = A, .seq = 1 + i * FULL, .ack = 1, .len = FULL);
    uint32_t cwnd = w.tcb->cwnd;
    cr_expect(tell(&w, NJ_ICMP_TOO_BIG, 1, mtu_of(&w, 1300)));
    for (uint32_t at = 0; at < 3 * FULL; at += 1300)
        EXPECT(&w, .flags = A, .seq = 1 + at, .ack = 1,
               .len = 3 * FULL - at < 1300 ? 3 * FULL - at : 1300);
    NOTHING(&w);
    cr_expect_eq(w.tcb->cwnd, cwnd);
    cr_expect_eq(w.tcb->ssthresh, NJ_CC_SSTHRESH_NONE, "it was not congestion");
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_mtu_shrunk), 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 3 * FULL);
    WRITE(&w, 1400);
    EXPECT(&w, .flags = A, .seq = 1 + 3 * FULL, .ack = 1, .len = 1300);
    EXPECT(&w, .flags = A, .seq = 1301 + 3 * FULL, .ack = 1, .len = 100);
    nj_dsl_fini(&w);
}

/* Sentence 94; RFC 5927 4.1: the ICMP message must quote data in flight. */
Test(tcp_pmtu, too_big_forged)
{
    struct world w;
    open_full(&w);
    cr_expect_not(tell(&w, NJ_ICMP_TOO_BIG, 1, mtu_of(&w, 1300)), "nothing is in flight");
    WRITE(&w, 3 * FULL);
    w.next_out = w.n_out;
    cr_expect_not(tell(&w, NJ_ICMP_TOO_BIG, 0, mtu_of(&w, 1300)));
    cr_expect_not(tell(&w, NJ_ICMP_TOO_BIG, 1 + 3 * FULL, mtu_of(&w, 1300)));
    cr_expect_not(tell(&w, NJ_ICMP_TOO_BIG, 0x80000000u, mtu_of(&w, 1300)));
    NOTHING(&w);
    cr_expect_eq(w.tcb->snd_mss, FULL);
    /* The MTU is larger than our segments, or smaller than that of any link. */
    tell(&w, NJ_ICMP_TOO_BIG, 1, mtu_of(&w, FULL + 1));
    tell(&w, NJ_ICMP_TOO_BIG, 1, w.v6 ? 1279 : 67);
    NOTHING(&w);
    cr_expect_eq(w.tcb->snd_mss, FULL);
    nj_dsl_fini(&w);
}

/* Sentence 94; RFC 5927 7.2: after such segments were acknowledged, the claim waits for a time-out
 * to confirm it. An ACK of such a segment refutes it. */
Test(tcp_pmtu, too_big_although_it_fits)
{
    struct world w;
    open_full(&w);
    WRITE(&w, FULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + FULL);
    WRITE(&w, 2 * FULL);
    w.next_out = w.n_out;
    cr_expect(tell(&w, NJ_ICMP_TOO_BIG, 1 + FULL, mtu_of(&w, 1300)));
    cr_expect_eq(w.tcb->snd_mss, FULL);
    while (nj_dsl_count(&w, NJ_C_tcp_rto) == 0)
        nj_dsl_run(&w, 1 * MS);
    cr_expect_eq(w.tcb->snd_mss, 1300);
    nj_dsl_fini(&w);
}

/* RFC 1191 5, 7.1: for a router that reports no MTU, the next plateau is used. */
Test(tcp_pmtu, too_big_without_a_number)
{
    struct world w;
    open_full(&w);
    WRITE(&w, FULL);
    w.next_out = w.n_out;
    tell(&w, NJ_ICMP_TOO_BIG, 1, 0);
    uint32_t plateau = w.v6 ? 1492 - 60 : 1492 - 40;
    cr_expect_eq(w.tcb->snd_mss, plateau);
    w.next_out = w.n_out;
    tell(&w, NJ_ICMP_TOO_BIG, 1, 0);
    cr_expect_eq(w.tcb->snd_mss, w.v6 ? plateau : 1006 - 40, "IPv6 carries 1280 everywhere");
    nj_dsl_fini(&w);
}

/* Sentence 95: a black hole for full segments. Two time-outs reduce the segment size, then once
 * more. */
Test(tcp_pmtu, black_hole)
{
    struct world w;
    open_full(&w);
    WRITE(&w, 2 * FULL);
    uint32_t through = w.v6 ? 1220 : 536, una = 1;
    for (unsigned i = 0; i < 200 && una < 1 + 2 * FULL; i++) {
        nj_dsl_run(&w, 500 * MS);
        for (struct dsl_out *o; (o = nj_dsl_take(&w));)
            if (o->seg.payload_bytes <= through && o->rel_seq == una)
                una += o->seg.payload_bytes;
        SEND(&w, .flags = A, .seq = 1, .ack = una);
    }
    cr_expect_eq(una, 1 + 2 * FULL);
    cr_expect_eq(w.tcb->snd_mss, through);
    cr_expect_geq(nj_dsl_count(&w, NJ_C_tcp_rto), NJ_TCP_BLACK_HOLE_RTOS);
    nj_dsl_fini(&w);

    /* Full segments have got through: it is rather the network than their size. */
    open_full(&w);
    WRITE(&w, FULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + FULL);
    WRITE(&w, FULL);
    while (nj_dsl_count(&w, NJ_C_tcp_rto) < 2 * NJ_TCP_BLACK_HOLE_RTOS)
        nj_dsl_run(&w, 10 * MS);
    cr_expect_eq(w.tcb->snd_mss, FULL);
    nj_dsl_run(&w, 10 * SEC);
    cr_expect_lt(w.tcb->snd_mss, FULL);
    nj_dsl_fini(&w);
}

/* `carry` plays the path: it carries segments of up to `most` bytes of payload. The peer
 * acknowledges each one, 20 ms of round trip later, with SACK. With 0 the path carries nothing. */
static unsigned n_too_long; /* segments that it did not carry */

static uint32_t carry(struct world *w, uint32_t una, uint32_t most, nj_ns duration, uint32_t feed)
{
    nj_ns end = w->now + duration;
    static uint8_t got[4u << 20];
    uint32_t top = una;

    memset(got, 0, sizeof got);
    while (w->now < end) {
        if (feed && w->n_written < feed && nj_tcp_send_room(w->tcb) > 30000)
            nj_dsl_write(w, 30000);
        nj_dsl_step(w);
        w->now += 10 * MS;
        for (struct dsl_out *o; (o = nj_dsl_take(w));) {
            n_too_long += o->seg.payload_bytes > most;
            if (o->seg.payload_bytes == 0 || o->seg.payload_bytes > most)
                continue;
            memset(got + o->rel_seq, 1, o->seg.payload_bytes);
            uint32_t to = o->rel_seq + o->seg.payload_bytes, from = o->rel_seq;
            top = to > top ? to : top;
            while (got[una])
                una++;
            while (from > una && got[from - 1])
                from--;
            while (got[to])
                to++;
            if (o->rel_seq < una)
                FEED(w, .flags = A, .seq = 1, .ack = una);
            else
                FEED(w, .flags = A, .seq = 1, .ack = una, .sack = {{from, to}});
        }
        w->n_out = w->next_out = 0;
        w->now += 10 * MS;
    }
    return una;
}

/* An outage, not a black hole: the segments that were shortened grow again when the path answers,
 * and no window shrinks for it. RFC 4821 7, RFC 8899 5. */
Test(tcp_pmtu, length_comes_back_after_an_outage)
{
    for (unsigned proven = 0; proven < 2; proven++) {
        struct world w;
        open_full(&w);
        uint32_t una = 1;
        if (proven)
            una = carry(&w, 1, FULL, 1 * SEC, 100000);
        nj_dsl_write(&w, 10000);
        carry(&w, una, 0, 12 * SEC, 0);
        cr_expect_leq(w.tcb->snd_mss, 1240);
        carry(&w, w.tcb->snd_una - w.iss, FULL, 4 * SEC, 1000000);
        cr_expect_eq(w.tcb->snd_mss, FULL, "%u bytes per segment, and no more", w.tcb->snd_mss);
        cr_expect_eq(w.tcb->mss_acked, FULL);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_mtu_raised), 1);
        nj_dsl_fini(&w);
    }
}

/* A path of 1,300 bytes without ICMP: the result is 1,240 after a few lost probes. None counts as
 * congestion, and at most three are sent in ten minutes. */
Test(tcp_pmtu, probes_that_get_lost)
{
    struct world w;
    open_full(&w);
    nj_dsl_write(&w, 10000);
    uint32_t una = carry(&w, 1, 1300, 10 * SEC, 0);
    cr_expect_leq(w.tcb->snd_mss, 1240);
    w.tcb->snd_mss = 536; /* as after an outage on that path */
    uint64_t n_fast = nj_dsl_count(&w, NJ_C_tcp_fast_retransmit);
    carry(&w, una, 1300, 20 * SEC, 3000000);
    cr_expect_eq(w.tcb->snd_mss, w.v6 ? 1220 : 1240);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_mtu_raised), 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), n_fast);
    cr_expect_eq(w.tcb->snd_una - w.iss, 1 + w.n_written, "the stream stopped");
    nj_dsl_fini(&w);
}

/* A path that has become smaller for good. The connection falls idle, so that a probe is due, and
 * both ends close: a FIN alone is no data to probe with. */
Test(tcp_pmtu, no_probe_with_a_fin_alone)
{
    struct world w;
    open_full(&w);
    nj_dsl_write(&w, 10000);
    uint32_t una = carry(&w, 1, 1300, 10 * SEC, 0);
    una = carry(&w, una, 1300, 20 * SEC, 100000);
    una = carry(&w, una, 1300, 5 * SEC, 0);
    cr_assert_lt(w.tcb->snd_mss, w.tcb->mss_max);
    cr_assert_null(w.tcb->x, "it is not idle");
    SEND(&w, .flags = FA, .seq = 1, .ack = una);
    EXPECT(&w, .flags = A, .seq = una, .ack = 2);
    CLOSE(&w);
    EXPECT(&w, .flags = FA, .seq = una, .ack = 2);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* RFC 8899 5.1.2, RFC 4821 7.4: three probes in ten minutes, also if the connection is idle before
 * each request; then probing resumes. */
Test(tcp_pmtu, lost_probes_are_remembered)
{
    struct world w;
    open_full(&w);
    nj_dsl_write(&w, 10000);
    uint32_t una = carry(&w, 1, 1300, 10 * SEC, 0);
    una = carry(&w, una, 1300, 2 * SEC, 0);
    cr_assert_lt(w.tcb->snd_mss, FULL);
    n_too_long = 0;
    nj_ns begun = w.now;
    while (w.now - begun < 590 * SEC) {
        una = carry(&w, una, 1300, 5 * SEC, 0);
        cr_assert_null(w.tcb->x, "it is not idle");
        una = carry(&w, una, 1300, 1 * SEC, w.n_written + 30000);
    }
    cr_expect_eq(n_too_long, NJ_TCP_MTU_PROBES_MAX, "%u probes were lost", n_too_long);
    while (w.now - begun < 640 * SEC) {
        una = carry(&w, una, FULL, 5 * SEC, 0);
        una = carry(&w, una, FULL, 1 * SEC, w.n_written + 30000);
    }
    cr_expect_eq(w.tcb->snd_mss, FULL);
    nj_dsl_fini(&w);
}

/* An idle connection continues with a probe, and no segment arrives any more. The connection ends
 * after the time of RFC 9293 3.8.3, counted from that probe. */
Test(tcp_pmtu, a_probe_begins_a_flight)
{
    struct world w;
    open_full(&w);
    nj_dsl_write(&w, 10000);
    uint32_t una = carry(&w, 1, 1300, 10 * SEC, 0);
    una = carry(&w, una, 1300, 5 * SEC, 0);
    cr_assert_null(w.tcb->x, "it is not idle");
    n_too_long = 0;
    carry(&w, una, 0, NJ_TCP_R2 - 1 * SEC, w.n_written + 30000);
    cr_expect_gt(n_too_long, 1, "no probe with segments behind it");
    cr_expect_not(w.dead, "it was given up");
    nj_dsl_run(&w, 100 * SEC);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* One longer segment; how long depends on how many such were lost. */
static void expect_probe(struct world *w, uint32_t rel_seq)
{
    const struct dsl_out *o = nj_dsl_take(w);

    cr_assert(o, "nothing was sent");
    cr_expect_eq(o->rel_seq, rel_seq);
    cr_expect_gt(o->seg.payload_bytes, w->tcb->snd_mss);
}

/* A probe needs its own run of the scoreboard, or its loss could not be detected. It is sent only
 * when a run is available. */
static void no_probe_behind(unsigned n_runs)
{
    struct world w;
    open_full(&w);
    nj_dsl_write(&w, 10000);
    uint32_t una = carry(&w, 1, 1300, 10 * SEC, 0);
    una = carry(&w, una, 1300, 20 * SEC, 100000);
    una = carry(&w, una, 1300, 700 * SEC, 0);
    uint16_t mss = w.tcb->snd_mss;
    cr_assert_lt(mss, FULL);
    uint32_t n_others = w.tcp.runs.n_max - NJ_SENT_RUNS_RESERVED * w.tcp.cfg.conns_max;
    w.tcp.n_runs_shared += n_others; /* other connections hold them */
    for (unsigned i = 0; i < n_runs; i++) {
        WRITE(&w, 100);
        EXPECT(&w, .flags = A, .seq = una + 100 * i, .ack = 1, .len = 100);
        nj_dsl_run(&w, 1 * MS);
    }
    uint32_t at = una + 100 * n_runs;
    WRITE(&w, 8 * mss);
    for (unsigned i = 0; i < 8; i++)
        EXPECT(&w, .flags = A, .seq = at + i * mss, .ack = 1, .len = mss);
    w.tcp.n_runs_shared -= n_others;
    SEND(&w, .flags = A, .seq = 1, .ack = at + 8 * mss);
    WRITE(&w, 8 * mss);
    expect_probe(&w, at + 8 * mss);
    nj_dsl_fini(&w);
}

Test(tcp_pmtu, no_probe_without_a_run)
{
    uint32_t n_most = NJ_SENT_RUNS_RESERVED - NJ_SENT_RUNS_SPARE; /* for new data */

    no_probe_behind(n_most);
    no_probe_behind(n_most - 1); /* the next segments would join it */
}

/* The segments behind a probe joined the probe's run, because that run took the last free one but
 * one. Their ACK is no evidence for the probed size, and the next probe is sent. */
Test(tcp_pmtu, a_probe_that_was_joined)
{
    struct world w;
    open_full(&w);
    nj_dsl_write(&w, 10000);
    uint32_t una = carry(&w, 1, 1300, 10 * SEC, 0);
    una = carry(&w, una, 1300, 20 * SEC, 100000);
    una = carry(&w, una, 1300, 700 * SEC, 0);
    uint16_t mss = w.tcb->snd_mss;
    for (unsigned i = 0; i < NJ_SENT_RUNS_RESERVED; i++) {
        WRITE(&w, 100);
        EXPECT(&w, .flags = A, .seq = una + 100 * i, .ack = 1, .len = 100);
        nj_dsl_run(&w, 1 * MS);
    }
    cr_assert_eq(w.tcb->x->n_runs, NJ_SENT_RUNS_RESERVED);
    una += 100 * NJ_SENT_RUNS_RESERVED;
    uint32_t n_all = w.tcp.runs.n_max - NJ_SENT_RUNS_RESERVED * w.tcp.cfg.conns_max;
    uint32_t n_others = n_all - (NJ_SENT_RUNS_SPARE + 2) * NJ_SENT_RUNS_DIVISOR;
    w.tcp.n_runs_shared += n_others;
    WRITE(&w, 8 * mss);
    expect_probe(&w, una);
    cr_assert_eq(w.tcb->x->n_runs, NJ_SENT_RUNS_RESERVED + 1, "the probe has its run alone");
    w.tcp.n_runs_shared -= n_others;
    w.next_out = w.n_out;
    una += 8 * mss;
    SEND(&w, .flags = A, .seq = 1, .ack = una);
    nj_dsl_run(&w, 500 * MS);
    WRITE(&w, 8 * mss);
    EXPECT(&w, .flags = A, .seq = una, .ack = 1, .len = mss);
    w.next_out = w.n_out;
    una += 8 * mss;
    SEND(&w, .flags = A, .seq = 1, .ack = una);
    nj_dsl_run(&w, 600 * MS);
    WRITE(&w, 8 * mss);
    expect_probe(&w, una);
    nj_dsl_fini(&w);
}

/* An ICMP message suppresses probes for ten minutes (RFC 1191 6.3). Less than 552 bytes over IPv4
 * is not accepted. */
Test(tcp_pmtu, a_claim_holds_for_a_while)
{
    struct world w;
    open_full(&w);
    WRITE(&w, FULL);
    w.next_out = w.n_out;
    tell(&w, NJ_ICMP_TOO_BIG, 1, w.v6 ? 1280 : 70);
    cr_expect_eq(w.tcb->snd_mss, w.v6 ? 1220 : 512, "%u", w.tcb->snd_mss);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_mtu_floor), !w.v6);
    carry(&w, 1, FULL, 100 * MS, 0); /* the call took the retransmitted segments from the script */
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + FULL);
    uint32_t una = carry(&w, 1 + FULL, FULL, 5 * SEC, 100000);
    cr_expect_lt(w.tcb->snd_mss, FULL);
    w.now += 600 * SEC;
    carry(&w, una, FULL, 5 * SEC, 200000);
    cr_expect_eq(w.tcb->snd_mss, FULL);
    nj_dsl_fini(&w);
}

/* Sentence 96; RFC 9293 3.9.2.2, RFC 5927 5.2: soft, in every state that has something in flight.
 */
Test(tcp_pmtu, unreachable)
{
    struct world w;
    open_full(&w);
    WRITE(&w, 100);
    w.next_out = w.n_out;
    cr_expect(tell(&w, NJ_ICMP_HARD_ERROR, 1, 0));
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    SEND(&w, .flags = A, .seq = 1, .ack = 101);
    CLOSE(&w);
    EXPECT(&w, .flags = FA, .seq = 101, .ack = 1);
    tell(&w, NJ_ICMP_HARD_ERROR, 101, 0);
    STATE(&w, FIN_WAIT_1);
    cr_expect_not(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 5927 5.2: in SYN-SENT the error is hard. */
Test(tcp_pmtu, unreachable_before_it_opens)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.tcb = nj_tcp_connect(&w.tcp, &w.tuple, w.now);
    w.tcb->user = &w;
    nj_dsl_step(&w);
    EXPECT(&w, .flags = S);
    cr_expect_not(tell(&w, NJ_ICMP_HARD_ERROR, 7, 0), "not our SYN");
    cr_expect_not(w.dead);
    cr_expect(tell(&w, NJ_ICMP_HARD_ERROR, 0, 0));
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* Sentence 91: a change of the MSS while bytes are in flight does not change the stream, also with
 * timestamps and holes. The script's wire compares every byte. */
Test(tcp_pmtu, mss_falls_with_holes)
{
    static const uint16_t smaller[] = {1448, 1300, 1221, 1220};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(smaller); i++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = FULL, .sack_ok = true, .ts = true});
        uint32_t mss = FULL - NJ_TCP_TS_BYTES;
        WRITE(&w, 8 * mss);
        nj_dsl_run(&w, 20 * MS);
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{1 + 2 * mss, 1 + 3 * mss}});
        w.next_out = w.n_out;
        tell(&w, NJ_ICMP_TOO_BIG, 1, mtu_of(&w, smaller[i]));
        for (unsigned k = 0; k < 20 && w.tcb->snd_una != w.tcb->snd_nxt; k++) {
            nj_dsl_run(&w, 400 * MS);
            for (struct dsl_out *o; (o = nj_dsl_take(&w));)
                cr_expect_leq(o->seg.payload_bytes, smaller[i] - NJ_TCP_TS_BYTES);
            uint32_t ack = 1 + (k + 1) * mss;
            SEND(&w, .flags = A, .seq = 1, .ack = ack < 1 + 8 * mss ? ack : 1 + 8 * mss);
        }
        cr_expect_eq(w.tcb->x->sndq.n_bytes, 0);
        nj_dsl_fini(&w);
    }
}
