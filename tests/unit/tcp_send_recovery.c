/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and retransmission: RFC 9293 3.8, RFC 6298, RFC 5681, RFC 6582. */
#include "base/prng.h"
#include "tcp/cc/congestion.h"
#include "tcp/seq.h"

#include "support/tcp_dsl.h"
#include "tcp/cc/congestion.h"
#include "telem/counters.h"

#define MSS 1000u

/* A connection with an MSS of 1000 and a round trip of 100 ms. */
static void open_slow(struct world *w, const struct dsl_options *options)
{
    nj_dsl_init(w, options);
    SEND(w, .flags = S, .mss = MSS);
    EXPECT(w, .flags = SA, .ack = 1);
    nj_dsl_run(w, 100 * MS);
    SEND(w, .flags = A, .seq = 1, .ack = 1);
}

/* Expect `n` full segments, the first being number `first`. */
static void expect_full(struct world *w, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        EXPECT(w, .flags = A, .seq = 1 + (first + i) * MSS, .ack = 1, .len = MSS);
}

/* The bytes to queue so that the windows, not the queue, end the next transmission. */
Test(tcp_send_recovery, bytes_that_the_windows_want)
{
    struct world w;
    open_slow(&w, NULL);
    cr_expect_eq(nj_tcp_send_wanted(w.tcb), w.tcb->cwnd + MSS);
    nj_dsl_write(&w, 3 * MSS + 500);
    cr_expect_eq(nj_tcp_send_wanted(w.tcb), w.tcb->cwnd - 2 * MSS - 500);
    nj_dsl_step(&w);
    expect_full(&w, 0, 3);
    EXPECT(&w, .flags = A, .seq = 1 + 3 * MSS, .ack = 1, .len = 500);
    cr_expect_eq(nj_tcp_send_wanted(w.tcb), w.tcb->cwnd - 2 * MSS - 500, "in flight");
    w.tcb->cwnd = 5 * MSS;
    nj_dsl_write(&w, 2 * MSS + 500);
    cr_expect_eq(nj_tcp_send_wanted(w.tcb), 0);
    nj_dsl_fini(&w);
}

/* RFC 6298 2.2, 2.3; sentences 67, 70 */
Test(tcp_send_recovery, rto_from_round_trips)
{
    struct world w;
    open_slow(&w, NULL);
    cr_expect_eq(w.tcb->srtt_us * NJ_US, 100 * MS);
    cr_expect_eq(w.tcb->rttvar_us * NJ_US, 50 * MS);
    cr_expect_eq(w.tcb->x->rto, 300 * MS);
    WRITE(&w, 10);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 11);
    cr_expect_eq(w.tcb->x->rto, 300 * MS);
    nj_dsl_fini(&w);
}

/* RFC 6298 2.4: a round trip of 250 ms that is steady for a while, and grows by 10 ms, twelve
 * times. No time-out is spurious. Sentence 70 */
Test(tcp_send_recovery, a_round_trip_that_grows_slowly)
{
    struct world w;
    open_slow(&w, NULL);
    for (uint32_t i = 0; i < 13 * 50; i++) {
        WRITE(&w, 10);
        nj_dsl_run(&w, (250 + i / 50 * 10) * MS);
        SEND(&w, .flags = A, .seq = 1, .ack = 11 + i * 10);
        w.n_out = w.next_out = 0;
    }
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_rto), 0, "%lu spurious time-outs",
                 (unsigned long)nj_dsl_count(&w, NJ_C_tcp_rto));
    nj_dsl_fini(&w);
}

/* RFC 6298 5.4 - 5.6; sentences 69, 71 */
Test(tcp_send_recovery, backs_off_and_gives_up)
{
    struct world w;
    open_slow(&w, NULL);
    WRITE(&w, 10);
    nj_ns last = EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 10)->at, first = last;
    nj_ns gap = 300 * MS;
    nj_dsl_run(&w, 200 * SEC);
    for (struct dsl_out *o; (o = nj_dsl_take(&w)) && o->seg.flags != RA;) {
        cr_expect(o->at - last >= gap && o->at - last <= gap + 2 * MS, "after %lu ms",
                  (unsigned long)((o->at - last) / MS));
        last = o->at;
        gap = gap * 2 < 60 * SEC ? gap * 2 : 60 * SEC;
    }
    cr_expect(w.dead);
    cr_expect_geq(last - first, 70 * SEC);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.3: R2 counts from the first unanswered segment, not from the last one received. */
Test(tcp_send_recovery, idle_time_is_not_counted)
{
    struct world w;
    open_slow(&w, NULL);
    nj_dsl_run(&w, 1000 * SEC);
    WRITE(&w, 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    nj_dsl_run(&w, 310 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    SEND(&w, .flags = A, .seq = 1, .ack = 11, .no_wnd = true);
    nj_dsl_run(&w, 1000 * SEC);
    WRITE(&w, 10); /* the same for the persist timer */
    nj_dsl_run(&w, 2 * SEC);
    cr_expect_not(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 6298 3 (Karn); sentence 68 */
Test(tcp_send_recovery, no_sample_from_what_was_sent_twice)
{
    struct world w;
    open_slow(&w, NULL);
    WRITE(&w, 10);
    nj_dsl_run(&w, 350 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 11);
    cr_expect_eq(w.tcb->srtt_us * NJ_US, 100 * MS);
    cr_expect_eq(w.tcb->x->rto, 600 * MS, "the RTO is kept until there is a new sample");
    WRITE(&w, 10);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 21);
    cr_expect_eq(w.tcb->x->rto, 300 * MS);
    nj_dsl_fini(&w);
}

/* RFC 6582 3.2; sentences 72, 73, 78 */
Test(tcp_send_recovery, newreno)
{
    struct world w;
    open_slow(&w, &(struct dsl_options){.cc = &nj_cc_newreno});
    WRITE(&w, 20 * MSS);
    expect_full(&w, 0, 10);            /* segments 0 and 4 get lost */
    for (uint32_t i = 0; i < 2; i++) { /* RFC 3042: each lets a new one go */
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
        expect_full(&w, 10 + i, 1);
    }
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    expect_full(&w, 0, 1);
    NOTHING(&w);
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS); /* half of the window: RFC 5681 3.2 step 2 */
    for (uint32_t i = 0; i < 4; i++)        /* RFC 9937: five for every twelve */
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    for (uint32_t i = 0; i < 3; i++) /* ... and one for each, below ssthresh */
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
    expect_full(&w, 12, 3);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 4 * MSS); /* partial */
    expect_full(&w, 4, 1);
    w.next_out = w.n_out;
    cr_expect(w.tcb->x->ca == NJ_CA_RECOVERY);
    SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_nxt - w.iss);
    cr_expect_neq(w.tcb->x->ca, NJ_CA_RECOVERY);
    cr_expect_leq(w.tcb->cwnd, 5 * MSS);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), 1);
    nj_dsl_fini(&w);
}

/* RFC 5681 2: ACKs that are no duplicate ACKs; sentence 72 */
Test(tcp_send_recovery, what_is_no_duplicate)
{
    struct world w;
    open_slow(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    WRITE(&w, 5 * MSS);
    expect_full(&w, 0, 5);
    for (uint32_t i = 0; i < 6; i++)
        SEND(&w, .flags = A, .seq = 1 + i * 10, .ack = 1, .len = 10); /* with text */
    for (uint16_t i = 0; i < 6; i++)
        SEND(&w, .flags = A, .seq = 61, .ack = 1, .wnd = (uint16_t)(60000 + i)); /* updates */
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), 0);
    nj_dsl_fini(&w);
}

/* The same for text at our closed window: it is trimmed to nothing. */
Test(tcp_send_recovery, probes_of_the_peer_are_no_duplicates)
{
    struct world w;
    open_slow(&w, NULL);
    w.no_read = true;
    uint32_t seq = 1, wnd;
    while ((wnd = nj__tcp_rcv_wnd(w.tcb)) > 0) {
        uint32_t n = wnd < 1460 ? wnd : 1460;
        SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = n);
        seq += n;
        nj_dsl_run(&w, 50 * MS);
    }
    w.next_out = w.n_out;
    WRITE(&w, 5 * MSS);
    for (unsigned i = 0; i < 5; i++)
        SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), 0);
    nj_dsl_fini(&w);
}

/* RFC 6582 3.2 step 2, after more than 2^31 bytes without a loss; sentence 54 */
Test(tcp_send_recovery, recover_follows_the_stream)
{
    struct world w;
    open_slow(&w, NULL);
    /* Move the connection ahead by that number of bytes: all sequence numbers change. */
    for (uint32_t i = 0; i < 3; i++) {
        WRITE(&w, 10);
        SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_nxt - w.iss);
        w.iss += 0x40000000;
        w.tcb->snd_una += 0x40000000;
        w.tcb->snd_nxt += 0x40000000;
        w.tcb->ack_min += 0x40000000;
        memset(w.tcb->x->cursor, 0, sizeof w.tcb->x->cursor);
    }
    w.next_out = w.n_out;
    WRITE(&w, 5 * MSS);
    for (uint32_t i = 0; i < 3; i++)
        SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_una - w.iss);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_fast_retransmit), 1);
    nj_dsl_fini(&w);
}

/* RFC 6298 5.4 and RFC 5681 3.1 equation (4); sentences 75, 82 */
Test(tcp_send_recovery, time_out_starts_over)
{
    struct world w;
    open_slow(&w, &(struct dsl_options){.cc = &nj_cc_newreno});
    WRITE(&w, 10 * MSS);
    expect_full(&w, 0, 10);
    nj_dsl_run(&w, 310 * MS);
    expect_full(&w, 0, 1);
    NOTHING(&w);
    cr_expect_eq(w.tcb->cwnd, MSS);
    cr_expect_eq(w.tcb->ssthresh, 5 * MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS);
    expect_full(&w, 1, 2);
    NOTHING(&w);
    /* A peer that has all ten must not take our ACK for an old one. */
    SEND(&w, .flags = A, .seq = 500, .ack = 1 + MSS, .len = 10);
    EXPECT(&w, .flags = A, .seq = 1 + 10 * MSS, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 10 * MSS); /* it was only the ACKs that got lost */
    WRITE(&w, MSS);
    expect_full(&w, 10, 1);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 11 * MSS);
    nj_dsl_fini(&w);
}

/* RFC 5681 3.1, RFC 3465; sentences 79, 80 */
Test(tcp_send_recovery, slow_start_counts_bytes)
{
    struct world w;
    open_slow(&w, NULL);
    WRITE(&w, 30 * MSS);
    cr_expect_eq(w.tcb->cwnd, 10 * MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS);
    cr_expect_eq(w.tcb->cwnd, 11 * MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS + 10);
    cr_expect_eq(w.tcb->cwnd, 11 * MSS + 10);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 11 * MSS); /* NJ_CC_L_FIRST = 8 */
    cr_expect_eq(w.tcb->cwnd, 19 * MSS + 10);
    uint32_t cwnd = w.tcb->cwnd;
    SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_nxt - w.iss);
    while (nj_tcb_flight(w.tcb))
        SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_nxt - w.iss);
    cwnd = w.tcb->cwnd;
    for (uint32_t i = 0; i < 20; i++) { /* far from filling it */
        WRITE(&w, 100);
        SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_nxt - w.iss);
    }
    cr_expect_eq(w.tcb->cwnd, cwnd);
    nj_dsl_fini(&w);
}

/* RFC 5681 4.1; sentence 81: ACKs are not data, so they do not prevent the restart of the window */
Test(tcp_send_recovery, idle_restarts_the_window)
{
    struct world w;
    open_slow(&w, NULL);
    w.tcb->cwnd = 50 * MSS;
    WRITE(&w, 10);
    SEND(&w, .flags = A, .seq = 1, .ack = 11);
    cr_expect_eq(w.tcb->cwnd, 50 * MSS);
    for (uint32_t i = 0; i < 20; i++) {
        SEND(&w, .flags = A, .seq = 1 + i * 100, .ack = 11, .len = 100);
        nj_dsl_run(&w, 100 * MS);
    }
    WRITE(&w, 10);
    cr_expect_eq(w.tcb->cwnd, 10 * MSS);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, fifth; sentence 87 */
Test(tcp_send_recovery, window_of_an_old_segment_is_not_applied)
{
    struct world w;
    open_slow(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100, .wnd = 5000);
    SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 100, .wnd = 4000);
    cr_expect_eq(w.tcb->snd_wnd, 4000);
    SEND(&w, .flags = A, .seq = 1 + 150, .ack = 1, .len = 100, .wnd = 3000); /* trimmed: new */
    cr_expect_eq(w.tcb->snd_wnd, 3000);
    WRITE(&w, 10);
    SEND(&w, .flags = A, .seq = 251, .ack = 11, .wnd = 2000);
    SEND(&w, .flags = A, .seq = 251, .ack = 1, .wnd = 9000); /* an older ACK, overtaken */
    cr_expect_eq(w.tcb->snd_wnd, 2000);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.6 SHLD-15; sentence 88 */
Test(tcp_send_recovery, window_that_shrinks)
{
    struct world w;
    open_slow(&w, NULL);
    WRITE(&w, 8 * MSS);
    expect_full(&w, 0, 8);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS, .wnd = 2 * MSS);
    WRITE(&w, MSS);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 2 * MSS, .no_wnd = true);
    nj_dsl_run(&w, 2 * SEC);
    struct dsl_out *o;
    while ((o = nj_dsl_take(&w)))
        cr_expect(o->rel_seq == 1 + 2 * MSS && o->seg.payload_bytes == 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 2 * MSS, .wnd = 60000);
    expect_full(&w, 2, 7);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 9 * MSS);
    cr_expect_eq(w.tcb->x->sndq.n_bytes, 0);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.6.1; sentence 89 */
Test(tcp_send_recovery, zero_window_probes)
{
    for (unsigned taken = 0; taken < 2; taken++) { /* whether the peer keeps the probe's byte */
        struct world w;
        open_slow(&w, NULL);
        WRITE(&w, 2 * MSS);
        expect_full(&w, 0, 2);
        SEND(&w, .flags = A, .seq = 1, .ack = 1 + 2 * MSS, .no_wnd = true);
        nj_ns rto = w.tcb->x->rto;
        WRITE(&w, 2 * MSS);
        NOTHING(&w);
        uint32_t una = 1 + 2 * MSS;
        nj_ns last = w.now, gap = 0;
        for (unsigned i = 0; i < 8; i++) {
            while (w.next_out == w.n_out)
                nj_dsl_run(&w, 10 * MS);
            struct dsl_out *o = EXPECT(&w, .flags = A, .seq = una, .ack = 1, .len = 1);
            if (!taken)
                cr_expect_geq(o->at - last, gap * 19 / 10);
            gap = o->at - last;
            last = o->at;
            una += taken;
            SEND(&w, .flags = A, .seq = 1, .ack = una, .no_wnd = true);
        }
        nj_dsl_run(&w, 10 * SEC);
        cr_expect_not(w.dead);
        w.next_out = w.n_out;
        SEND(&w, .flags = A, .seq = 1, .ack = una);
        EXPECT(&w, .flags = A, .seq = una, .ack = 1, .len = MSS);
        /* A window probe is no evidence about the network: the RTO does not change. */
        cr_expect_leq(w.tcb->x->rto, rto, "%lu", (unsigned long)(w.tcb->x->rto / MS));
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.8.6.1: a window update gets lost and the peer is gone for good */
Test(tcp_send_recovery, unanswered_probes_give_up)
{
    struct world w;
    open_slow(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_wnd = true);
    WRITE(&w, MSS);
    nj_dsl_run(&w, 100 * SEC);
    cr_expect_not(w.dead);
    nj_dsl_run(&w, 100 * SEC);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.6.2.1, and the timer that follows: it counts from when the segment went out. */
Test(tcp_send_recovery, silly_window)
{
    struct world w;
    open_slow(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 100);
    WRITE(&w, 5 * MSS);
    NOTHING(&w);
    nj_dsl_run(&w, w.tcb->x->rto - 20 * MS);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 5000);
    expect_full(&w, 0, 5);
    nj_dsl_run(&w, 200 * MS);
    NOTHING(&w); /* not yet a time-out */
    nj_dsl_fini(&w);

    open_slow(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 100);
    WRITE(&w, 5 * MSS);
    nj_dsl_run(&w, 310 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100); /* after some time any length is sent */
    nj_dsl_fini(&w);
}

/* Nagle's rule is left out; sentence 90 */
Test(tcp_send_recovery, small_segments_do_not_wait)
{
    struct world w;
    open_slow(&w, NULL);
    for (uint32_t i = 0; i < 5; i++) {
        WRITE(&w, 10);
        EXPECT(&w, .flags = A, .seq = 1 + i * 10, .ack = 1, .len = 10);
    }
    nj_dsl_fini(&w);
}

/* An ACK to a peer with a closed window needs a sequence number that this peer accepts (RFC 9293
 * table 6) */
Test(tcp_send_recovery, ack_while_the_peer_is_shut)
{
    struct world w;
    open_slow(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_wnd = true);
    WRITE(&w, MSS);
    nj_dsl_run(&w, 310 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_wnd = true); /* the byte was refused */
    SEND(&w, .flags = A, .seq = 100, .ack = 1, .len = 10, .no_wnd = true);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_fini(&w);
}

/* Without mbufs no data is lost; sending resumes when mbufs are available. */
Test(tcp_send_recovery, empty_pool)
{
    struct world w;
    struct rte_mbuf *hog[64];
    unsigned n = 0;
    open_slow(&w, &(struct dsl_options){.pool_mbufs = 64});
    nj_dsl_write(&w, 20 * MSS);
    while ((hog[n] = nj__mbuf_get(&w.tcp))) /* also the mbufs in the cache */
        n++;
    nj_dsl_step(&w);
    NOTHING(&w);
    cr_expect_not(nj_tcp_send_copy(&w.tcp, w.tcb, (const uint8_t *)hog, 5000));
    cr_expect_eq(w.tcb->x->sndq.n_bytes, 20 * MSS);
    rte_pktmbuf_free(hog[--n]);
    nj_dsl_step(&w);
    expect_full(&w, 0, 10);
    hog[n] = rte_pktmbuf_alloc(w.pool);
    n++;
    for (uint32_t i = 0; i < 3; i++)
        SEND(&w, .flags = A, .seq = 1, .ack = 1); /* no mbuf for the fast retransmit */
    nj_dsl_run(&w, 1 * SEC);
    NOTHING(&w);
    while (n > 0)
        rte_pktmbuf_free(hog[--n]);
    nj_dsl_run(&w, 1 * SEC);
    expect_full(&w, 0, 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 10 * MSS);
    expect_full(&w, 10, 2);
    nj_dsl_fini(&w);
}

/* config.room() limits sending when the device is full. */
Test(tcp_send_recovery, full_device)
{
    struct world w;
    open_slow(&w, NULL);
    w.room = 0;
    WRITE(&w, 3 * MSS);
    NOTHING(&w);
    CLOSE(&w);
    NOTHING(&w);
    w.room = 1;
    nj_dsl_step(&w);
    expect_full(&w, 0, 2);
    EXPECT(&w, .flags = FA, .seq = 1 + 2 * MSS, .ack = 1, .len = MSS);
    nj_dsl_fini(&w);
}

/* All of the above while sequence numbers wrap around 2^32, with random losses; sentences 54, 91 */
Test(tcp_send_recovery, lossy_transfer_across_the_wrap)
{
    const uint64_t seed = 54;
    struct nj_prng r;
    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (unsigned run = 0; run < 40; run++) {
        struct world w;
        uint32_t got = 1, total = 100000;
        open_slow(&w, &(struct dsl_options){.has_iss = true,
                                            .iss = UINT32_MAX - nj_prng_below(&r, 100000)});
        while (got < 1 + total + 1) {
            struct dsl_out *o;
            if (w.tcb) {
                uint32_t n = total - w.n_written, room_bytes = nj_tcp_send_room(w.tcb);
                nj_dsl_write(&w, n < room_bytes ? n : room_bytes);
                if (w.n_written == total)
                    nj_dsl_close(&w);
            }
            nj_dsl_run(&w, 10 * MS);
            while ((o = nj_dsl_take(&w))) {
                uint32_t end = o->rel_seq + nj_seg_len(&o->seg);
                if (nj_prng_below(&r, 20) == 0) /* lost */
                    continue;
                if (o->rel_seq <= got && end > got)
                    got = end;
                uint16_t wnd = (uint16_t)(nj_prng_below(&r, 30) ? 20000 : nj_prng_below(&r, 900));
                FEED(&w, .flags = A, .seq = 1, .ack = got, .wnd = wnd, .no_wnd = wnd == 0);
            }
            w.n_out = w.next_out = 0;
            cr_assert_not(w.dead);
        }
        nj_dsl_step(&w);
        STATE(&w, FIN_WAIT_2);
        nj_dsl_fini(&w);
    }
}
