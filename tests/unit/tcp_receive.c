/* SPDX-License-Identifier: BSD-3-Clause */
/* Received data: order, overlap, windows and acknowledgments (RFC 9293 3.4, 3.8.6, 3.10.7.4). */
#include "base/prng.h"
#include "tcp/seq.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

/* RFC 9293 3.8.6.3, RFC 5681 4.2; sentence 39 */
Test(tcp_receive, ack_is_delayed_but_not_for_long)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    NOTHING(&w);
    nj_ns at = w.now;
    nj_dsl_run(&w, 500 * MS);
    struct dsl_out *o = EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    cr_expect_geq(o->at - at, NJ_TCP_DELAYED_ACK);
    cr_expect_leq(o->at - at, NJ_TCP_DELAYED_ACK + 2 * MS);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* RFC 5681 4.2: at least every second full-sized segment; sentence 39 */
Test(tcp_receive, every_second_full_segment_is_acked)
{
    struct world w;
    for (unsigned ts = 0; ts < 2; ts++) {
        uint32_t full = ts ? 1448 : 1460;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = ts});
        for (uint32_t i = 0; i < 6; i += 2) {
            SEND(&w, .flags = A | P, .seq = 1 + i * full, .ack = 1, .len = full);
            NOTHING(&w);
            SEND(&w, .flags = A | P, .seq = 1 + (i + 1) * full, .ack = 1, .len = full);
            EXPECT(&w, .flags = A, .seq = 1, .ack = 1 + (i + 2) * full);
        }
        nj_dsl_fini(&w);
    }
}

/* One ACK for the whole burst; none if a response carries it. */
Test(tcp_receive, answer_carries_the_ack)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (uint32_t i = 0; i < 10; i++)
        FEED(&w, .flags = A | P, .seq = 1 + i * 1000, .ack = 1, .len = 1000);
    WRITE(&w, 50);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 10001, .len = 50);
    nj_dsl_run(&w, 100 * MS);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* RFC 5681 4.2; sentences 40, 41 */
Test(tcp_receive, hole)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (uint32_t i = 1; i < 5; i++) {
        SEND(&w, .flags = A, .seq = 1 + i * 100, .ack = 1, .len = 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    }
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 501);
    cr_expect_eq(w.n_read, 500);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* Sentence 42: the first copy of a byte is the one that counts. */
Test(tcp_receive, overlaps)
{
    static const struct {
        uint32_t seq, len; /* of a second segment; the first is 201..300 */
    } second[] = {{101, 150}, {250, 100}, {220, 30}, {101, 300},
                  {201, 100}, {201, 200}, {150, 151}};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(second); i++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open(&w);
        SEND(&w, .flags = A, .seq = 201, .ack = 1, .len = 100);
        SEND(&w, .flags = A, .seq = second[i].seq, .ack = 1, .len = second[i].len);
        SEND(&w, .flags = A, .seq = 201, .ack = 1, .len = 100, .flip = 0xff);
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 200);
        uint32_t end = w.n_read;
        cr_expect_geq(end, 300);
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 800);
        cr_expect_eq(w.n_read, 800);
        nj_dsl_fini(&w);
    }
}

/* Any order, any cut, across the wrap of the sequence space; sentences 42, 54 */
Test(tcp_receive, random_order)
{
    const uint64_t seed = 0x5eed;
    struct nj_prng r;
    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (unsigned run = 0; run < 60; run++) {
        struct world w;
        nj_dsl_init(&w, &(struct dsl_options){.irs = UINT32_MAX - nj_prng_below(&r, 5000)});
        nj_dsl_open(&w);
        for (unsigned i = 0; w.n_read < 8000; i++) {
            uint32_t back = nj_prng_below(&r, 500), off = nj_prng_below(&r, 4000);
            uint32_t seq = w.n_read + off > back ? w.n_read + off - back : 0;
            if (nj_prng_below(&r, 4) == 0)
                seq = w.n_read;
            FEED(&w, .flags = A, .seq = 1 + seq, .ack = 1, .len = nj_prng_below(&r, 1400));
            if (nj_prng_below(&r, 3) == 0)
                nj_dsl_step(&w);
            w.n_out = w.next_out = 0;
        }
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.10.7.4, first; sentences 43, 44, 45 */
Test(tcp_receive, window_edges)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    w.no_read = true;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1000);
    nj_dsl_run(&w, 50 * MS);
    uint32_t wnd = EXPECT(&w, .flags = A, .seq = 1, .ack = 1001)->seg.wnd;
    uint32_t edge = 1001 + wnd;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1000); /* old */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    SEND(&w, .flags = A, .seq = edge, .ack = 1, .len = 10); /* beyond */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_window), 2);
    SEND(&w, .flags = A, .seq = edge - 10, .ack = 1, .len = 500); /* ten bytes of it fit */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    cr_expect_eq(w.tcb->x->reasm_bytes, 10);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 1000); /* half of it is new */
    cr_expect_eq(w.tcb->rcv_nxt - w.irs, 1501);
    nj_dsl_read(&w, 5000);
    cr_expect_eq(w.n_read, 1500);
    nj_dsl_fini(&w);
}

/* Fill the peer's view of our window to the last byte. Returns the sequence number of the next
 * byte. */
static uint32_t fill_window(struct world *w)
{
    uint32_t seq = 1;
    w->no_read = true;
    while (nj__tcp_rcv_wnd(w->tcb) > 0) {
        uint32_t wnd = nj__tcp_rcv_wnd(w->tcb), n = wnd < 1460 ? wnd : 1460;
        SEND(w, .flags = A, .seq = seq, .ack = 1, .len = n);
        seq += n;
        nj_dsl_run(w, 50 * MS);
    }
    w->n_out = w->next_out = 0;
    return seq;
}

/* RFC 9293 3.8.6; sentences 46, 47, 48, 49 */
Test(tcp_receive, zero_window_and_back)
{
    for (unsigned scaled = 0; scaled < 2; scaled++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .wscale_p1 = scaled ? 8 : 0});
        uint32_t seq = fill_window(&w);
        cr_expect_geq(seq - 1, NJ_RECV_WINDOW_BYTES - 2920);
        SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = 1); /* a probe */
        struct dsl_out *o = EXPECT(&w, .flags = A, .seq = 1, .ack = seq);
        cr_expect_eq(o->seg.wnd, 0);
        WRITE(&w, 10); /* ACKs still count */
        EXPECT(&w, .flags = A, .seq = 1, .ack = seq, .len = 10);
        SEND(&w, .flags = A, .seq = seq, .ack = 11, .len = 1);
        cr_expect_eq(w.tcb->snd_una - w.iss, 11);
        EXPECT(&w, .flags = A, .seq = 11, .ack = seq);
        SEND(&w, .flags = A, .seq = seq + 1, .ack = 11, .len = 1);
        EXPECT(&w, .flags = A, .seq = 11, .ack = seq);
        while (w.next_out == w.n_out) { /* the first steps are not worth telling */
            nj_dsl_read(&w, 100);
            nj_dsl_step(&w);
        }
        o = EXPECT(&w, .flags = A, .seq = 11, .ack = seq);
        uint32_t wnd = (uint32_t)o->seg.wnd << w.tcb->rcv_wscale;
        cr_expect(wnd >= 2920 && wnd < 2920 + 100 + 8, "%u", wnd);
        nj_dsl_read(&w, UINT32_MAX);
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.10.7.4, first: a FIN without text is accepted at a closed window, and only the peer's
 * direction closes. */
Test(tcp_receive, fin_at_a_closed_window)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    uint32_t seq = fill_window(&w);
    SEND(&w, .flags = FA, .seq = seq, .ack = 1);
    STATE(&w, CLOSE_WAIT);
    struct dsl_out *o = EXPECT(&w, .flags = A, .seq = 1, .ack = seq + 1);
    cr_expect_eq(o->seg.wnd, 0);
    SEND(&w, .flags = A, .seq = seq + 1 + 100000, .ack = 1, .len = 5);
    EXPECT(&w, .flags = A, .seq = 1, .ack = seq + 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_window), 1);
    nj_dsl_read(&w, UINT32_MAX);
    cr_expect_eq(w.n_read, seq - 1);
    nj_dsl_fini(&w);
}

/* Sentence 50: a thousand one-byte segments pin no more than the bound. */
Test(tcp_receive, out_of_order_memory_is_bounded)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (uint32_t i = 0; i < 1000; i++) {
        FEED(&w, .flags = A, .seq = 10 + 2 * i, .ack = 1, .len = 1);
        w.n_out = 0;
    }
    cr_expect_eq(w.tcb->x->rcvq.n_mbufs, NJ_RECV_MBUFS_MAX);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_reassembly), 1000 - NJ_RECV_MBUFS_MAX);
    nj_dsl_fini(&w);
}

/* In-order data is accepted even if the queue is full of later bytes. */
Test(tcp_receive, hole_is_filled_though_the_queue_is_full)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .wscale_p1 = 8});
    for (uint32_t i = 1; i <= NJ_RECV_MBUFS_MAX + 10; i++) { /* the segments cannot be merged */
        FEED(&w, .flags = A, .seq = 2 + i * 200, .ack = 1, .len = 199);
        w.n_out = 0;
    }
    cr_expect_eq(w.tcb->x->rcvq.n_mbufs, NJ_RECV_MBUFS_MAX);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 201);
    cr_expect_eq(w.n_read, 400);
    nj_dsl_fini(&w);
}

/* The peer sends segments of `len` bytes; 0: of random length. The user reads sometimes; `reads` 0:
 * never. No byte within the advertised window is refused, and the count of mbufs stays within its
 * bound. */
static void takes_what_it_promised(uint32_t len, uint32_t reads, uint64_t seed)
{
    struct world w;
    struct nj_prng r;
    uint32_t seq = 1;

    nj_prng_init(&r, seed);
    nj_dsl_init(&w, &(struct dsl_options){.pool_mbufs = 64});
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .wscale_p1 = 8});
    w.no_read = true;
    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t wnd = nj__tcp_rcv_wnd(w.tcb), n = len ? len : 1 + nj_prng_below(&r, 1460);
        n = n < wnd ? n : wnd;
        if (n > 0)
            FEED(&w, .flags = A, .seq = seq, .ack = 1, .len = n);
        seq += n;
        cr_assert_eq(w.tcb->rcv_nxt - w.irs, seq, "seed %lu, length %u: refused with %u mbufs",
                     (unsigned long)seed, len, w.tcb->x->rcvq.n_mbufs);
        cr_assert_leq(w.tcb->x->rcvq.n_mbufs, NJ_RECV_MBUFS_MAX);
        if (reads && nj_prng_below(&r, reads) == 0)
            nj_dsl_read(&w, nj_prng_below(&r, 100000));
        if (reads && i % 500 == 250)
            len = len == 257 ? 600 : 257; /* single segments follow merged ones */
        nj_dsl_step(&w);
        w.n_out = w.next_out = 0;
    }
    cr_expect_geq(seq, reads ? 300000 : 256u * 1024u);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_reassembly), 0);
    nj_dsl_read(&w, UINT32_MAX);
    cr_expect_eq(w.n_read, seq - 1);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.6.2.2: an advertised window is never shrunk, for any segment lengths. */
Test(tcp_receive, what_was_promised_is_taken)
{
    static const uint32_t lens[] = {257, 300, 545, 800, 1089, 1460, 0};

    for (unsigned i = 0; i < NJ_ARRAY_LEN(lens); i++)
        takes_what_it_promised(lens[i], 0, i);
    for (uint64_t seed = 1; seed <= 10; seed++)
        takes_what_it_promised(seed % 2 ? 257 : 0, 60, seed);
}

/* The same with a share of a few mbufs: held mbufs are filled, in order or not. */
Test(tcp_receive, a_share_of_few_mbufs_is_used)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.tcp.cfg.held_max = 24;
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .wscale_p1 = 8});
    w.no_read = true;
    for (uint32_t i = 0; i < 12; i++)
        SEND(&w, .flags = A, .seq = 1 + i * 300, .ack = 1, .len = 300);
    for (uint32_t i = 13; i < 19; i++)
        SEND(&w, .flags = A, .seq = 1 + i * 300, .ack = 1, .len = 300);
    SEND(&w, .flags = A, .seq = 1 + 12 * 300, .ack = 1, .len = 300);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_reassembly), 0);
    cr_expect_leq(w.tcb->x->rcvq.n_mbufs, 5);
    nj_dsl_read(&w, UINT32_MAX);
    cr_expect_eq(w.n_read, 19 * 300);
    nj_dsl_fini(&w);
}

/* Sentence 50: a segment that directly follows held data is copied into the same mbuf, in order or
 * not. So a large number of small segments is accepted even with the count of mbufs at its bound.
 */
Test(tcp_receive, small_segments_share_an_mbuf)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    w.no_read = true;
    for (uint32_t i = 0; i < 1000; i++)
        FEED(&w, .flags = A, .seq = 1 + i, .ack = 1, .len = 1);
    cr_expect_eq(w.tcb->x->rcvq.n_mbufs, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        FEED(&w, .flags = A, .seq = 2001 + i, .ack = 1, .len = 1);
        w.n_out = 0;
    }
    cr_expect_eq(w.tcb->x->rcvq.n_mbufs, 2);
    cr_expect_eq(w.tcb->x->reasm_bytes, 1000);
    nj_dsl_read(&w, 500); /* a part of the mbuf that grows */
    for (uint32_t i = 0; i < 10; i++)
        FEED(&w, .flags = A, .seq = 1001 + 100 * i, .ack = 1, .len = 100);
    nj_dsl_read(&w, UINT32_MAX);
    cr_expect_eq(w.n_read, 3000);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_reassembly), 0);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.5 and 3.8.3; sentences 61, 62 */
Test(tcp_receive, push_and_urgent_do_not_disturb)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 10);
    cr_expect_eq(w.n_read, 10);
    SEND(&w, .flags = A | P | NJ_TCP_URG, .seq = 11, .ack = 1, .len = 10);
    SEND(&w, .flags = A | NJ_TCP_URG, .seq = 21, .ack = 1);
    cr_expect_eq(w.n_read, 20);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, seventh and eighth; sentences 63, 64, 65 */
Test(tcp_receive, fin_with_a_hole_before_it)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = FA, .seq = 101, .ack = 1, .len = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    cr_expect_not(w.events & NJ_TCP_EV_PEER_FIN);
    SEND(&w, .flags = A, .seq = 201, .ack = 1, .len = 50, .flip = 1); /* after the FIN */
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    STATE(&w, CLOSE_WAIT);
    cr_expect(w.events & NJ_TCP_EV_PEER_FIN);
    cr_expect_eq(w.n_read, 200);
    w.next_out = w.n_out - 1;
    EXPECT(&w, .flags = A, .seq = 1, .ack = 202);
    SEND(&w, .flags = FA, .seq = 101, .ack = 1, .len = 100); /* again */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 202);
    SEND(&w, .flags = A, .seq = 202, .ack = 1, .len = 50);
    SEND(&w, .flags = FA, .seq = 202, .ack = 1);
    cr_expect_eq(w.n_read, 200);
    cr_expect_eq(w.tcb->rcv_nxt - w.irs, 202);
    nj_dsl_fini(&w);
}

/* RFC 5681 4.2, RFC 9293 3.10.7.4, eighth: a FIN without text, out of order or after the peer's
 * FIN, is acknowledged at once. Sentence 40 */
Test(tcp_receive, fin_alone_out_of_order)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = FA, .seq = 101, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = FA, .seq = 101, .ack = 1); /* again */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    STATE(&w, CLOSE_WAIT);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 102);
    SEND(&w, .flags = FA, .seq = 102, .ack = 1); /* in the window, but after the FIN */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 102);
    NOTHING(&w);
    cr_expect_eq(w.tcb->rcv_nxt - w.irs, 102);
    nj_dsl_fini(&w);
}

/* A FIN before bytes already received is ignored. */
Test(tcp_receive, fin_before_later_bytes)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 100);
    SEND(&w, .flags = FA, .seq = 51, .ack = 1, .len = 10);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    cr_expect_eq(w.n_read, 200);
    STATE(&w, ESTABLISHED);
    SEND(&w, .flags = FA, .seq = 201, .ack = 1);
    STATE(&w, CLOSE_WAIT);
    nj_dsl_fini(&w);
}

/* An ACK that lacks an mbuf or device room stays due. */
Test(tcp_receive, ack_waits_for_room)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    w.room = 0;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1460);
    SEND(&w, .flags = A, .seq = 1461, .ack = 1, .len = 1460);
    NOTHING(&w);
    cr_expect_eq(nj_tcp_next_deadline(&w.tcp), 0);
    w.room = 1;
    nj_dsl_step(&w);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2921);
    nj_dsl_fini(&w);
}
