/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP segmentation offload: the size of TSO packets, and the loss of a part of one. Sentence 92.
 * The other scripts run with such a device, too (NJ_TEST_TSO). */
#include "base/prng.h"
#include "tcp/cc/congestion.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

#define MSS 1000u

/* A round trip of 100 ms. */
static void open_tso(struct world *w, struct dsl_options o)
{
    o.tso_bytes_max = o.tso_bytes_max ? o.tso_bytes_max : 65415;
    nj_dsl_init(w, &o);
    SEND(w, .flags = S, .mss = MSS, .sack_ok = true, .ecn_syn = o.ecn);
    EXPECT(w, .flags = SA, .ack = 1, .ecn_syn = o.ecn);
    nj_dsl_run(w, 100 * MS);
    SEND(w, .flags = A, .seq = 1, .ack = 1);
}

static void expect_full(struct world *w, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        EXPECT(w, .flags = A, .seq = 1 + (first + i) * MSS, .ack = 1, .len = MSS);
}

Test(tcp_tso, initial_window_is_one_segment)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.ecn = false});
    WRITE(&w, 25500);
    cr_expect_eq(w.n_cut, 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_tso), 1);
    cr_expect_geq(w.n_referred, 3, "full mbufs of the queue are not copied");
    expect_full(&w, 0, 10);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 10001);
    cr_expect_eq(w.n_cut, 2, "the end is not a whole number of segments, and needn't be");
    expect_full(&w, 10, 15);
    struct dsl_out *o = EXPECT(&w, .flags = A, .seq = 25001, .ack = 1, .len = 500);
    cr_expect(o->seg.flags & P);
    cr_expect_not(o[-1].seg.flags & P);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

Test(tcp_tso, fin_is_in_the_last_piece)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.ecn = false});
    nj_dsl_write(&w, 2500);
    CLOSE(&w);
    cr_expect_eq(w.n_cut, 1);
    expect_full(&w, 0, 2);
    EXPECT(&w, .flags = FA, .seq = 2001, .ack = 1, .len = 500);
    nj_dsl_fini(&w);
}

/* In mid-stream only full segments are sent. */
Test(tcp_tso, whole_segments_before_the_end)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.ecn = false});
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 3700);
    WRITE(&w, 9000);
    cr_expect_eq(w.n_cut, 1);
    expect_full(&w, 0, 3);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

Test(tcp_tso, bound_of_the_device)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.tso_bytes_max = 3 * 2048, .tso_mbufs_max = 4});
    WRITE(&w, 20000);
    cr_expect_eq(w.n_cut, 2, "10,000 bytes as six segments and four, not %u", w.n_cut);
    expect_full(&w, 0, 10);
    nj_dsl_fini(&w);
}

/* TSO that cannot hold two segments is not used. */
Test(tcp_tso, bound_below_a_segment)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.tso_bytes_max = 1999});
    WRITE(&w, 20000);
    cr_expect_eq(w.n_cut, 0);
    expect_full(&w, 0, 10);
    nj_dsl_fini(&w);
}

static void windows(uint64_t seed)
{
    struct world w;
    struct nj_prng r;
    uint32_t acked = 1, edge = 0;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    open_tso(&w, (struct dsl_options){.ecn = false});
    edge = 1 + 65535;
    for (unsigned i = 0; i < 400; i++) {
        uint32_t room = nj_tcp_send_room(w.tcb), want = nj_prng_below(&r, 30000);
        nj_dsl_write(&w, want < room ? want : room);
        nj_dsl_step(&w);
        uint32_t flight = w.tcb->snd_nxt - w.tcb->snd_una;
        cr_assert_leq(flight, w.tcb->cwnd);
        for (struct dsl_out *o; (o = nj_dsl_take(&w));)
            cr_assert_leq(o->rel_seq + o->seg.payload_bytes, edge, "beyond the peer's window");
        w.n_out = w.next_out = 0;
        nj_dsl_run(&w, 5 * MS);
        uint32_t n = w.tcb->snd_nxt - w.iss - acked;
        acked += n > 1 && nj_prng_below(&r, 3) ? nj_prng_below(&r, n) : n;
        uint16_t wnd = (uint16_t)(1 + nj_prng_below(&r, 65535));
        if (acked + wnd < edge)
            wnd = (uint16_t)(edge - acked); /* it does not shrink */
        edge = acked + wnd;
        FEED(&w, .flags = A, .seq = 1, .ack = acked, .wnd = wnd);
    }
    cr_expect_gt(w.n_cut, 100);
    cr_expect_gt(acked, 100000);
    nj_dsl_fini(&w);
}

/* Sentence 92: segments of any size stay within both windows. */
Test(tcp_tso, stays_within_both_windows)
{
    for (uint64_t seed = 0x5200; seed < 0x5210; seed++)
        windows(seed);
}

/* The scoreboard holds byte ranges, not the segments as they were passed to the device. */
Test(tcp_tso, lost_piece_goes_again_alone)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.ecn = false});
    WRITE(&w, 10000);
    cr_expect_eq(w.n_cut, 1);
    expect_full(&w, 0, 10);
    nj_dsl_run(&w, 20 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 3001, .sack = {{4001, 10001}});
    EXPECT(&w, .flags = A, .seq = 3001, .ack = 1, .len = MSS);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_retransmit), 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 10001);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* Retransmissions use TSO, too: after a time-out, as slow start allows. */
Test(tcp_tso, all_lost)
{
    struct world w;
    uint32_t acked = 1;

    open_tso(&w, (struct dsl_options){.ecn = false});
    WRITE(&w, 10000);
    expect_full(&w, 0, 10);
    while (nj_dsl_count(&w, NJ_C_tcp_rto) == 0)
        nj_dsl_run(&w, 10 * MS);
    w.next_out = w.n_out;
    uint32_t n_cut = w.n_cut;
    for (unsigned i = 0; i < 9 && acked < 10001; i++) {
        uint32_t n = 0;
        acked += i == 0 ? MSS : 0; /* the segments that the time-out sent */
        SEND(&w, .flags = A, .seq = 1, .ack = acked);
        for (struct dsl_out *o; (o = nj_dsl_take(&w)); n++) {
            cr_assert_eq(o->rel_seq, acked);
            cr_assert_eq(o->seg.payload_bytes, MSS);
            acked += MSS;
        }
        cr_assert_gt(n, 0);
    }
    cr_expect_eq(acked, 10001);
    cr_expect_geq(w.n_cut, n_cut + 2);
    SEND(&w, .flags = A, .seq = 1, .ack = acked);
    nj_dsl_fini(&w);
}

/* RFC 3168 6.1.2: a device would set CWR on each segment. */
Test(tcp_tso, cwr_once)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.ecn = true});
    cr_assert(w.tcb->ecn_on);
    WRITE(&w, 40000);
    expect_full(&w, 0, 10);
    nj_dsl_run(&w, 10 * MS);
    SEND(&w, .flags = A | NJ_TCP_ECE, .seq = 1, .ack = 10001);
    uint32_t n_cwr = 0, n = 0;
    for (struct dsl_out *o; (o = nj_dsl_take(&w)); n++)
        n_cwr += !!(o->seg.flags & NJ_TCP_CWR);
    cr_expect_gt(n, 2);
    cr_expect_eq(n_cwr, 1);
    cr_expect_geq(w.n_cut, 2, "the others are sent together");
    nj_dsl_fini(&w);
}

/* Mbufs for one segment are enough to continue. */
Test(tcp_tso, few_mbufs)
{
    struct world w;
    open_tso(&w, (struct dsl_options){.pool_mbufs = 8});
    nj_dsl_write(&w, 13000); /* six mbufs; the whole window needs at least five more */
    nj_dsl_step(&w);
    cr_expect_gt(nj_dsl_count(&w, NJ_C_mbuf_none), 0);
    expect_full(&w, 0, 10);
    nj_dsl_fini(&w);
}
