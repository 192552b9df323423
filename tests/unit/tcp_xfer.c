/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle connections: struct nj_xfer is released, and attached again. */
#include "support/tcp_flight.h"

/* An idle connection has no struct nj_xfer; the next segment or call attaches one. */
Test(tcp_xfer, gives_back_and_takes_again)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    WRITE(&w, 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    cr_expect_eq(w.tcp.xfers.n_used, 1);
    nj_dsl_run(&w, 50 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 101);
    uint32_t srtt_us = w.tcb->srtt_us;
    nj_dsl_run(&w, 10 * SEC);
    cr_expect_null(w.tcb->x);
    cr_expect_eq(w.tcp.xfers.n_used, 0);
    SEND(&w, .flags = A, .seq = 1, .ack = 101, .len = 10);
    cr_expect_not_null(w.tcb->x);
    cr_expect_eq(w.n_read, 10);
    cr_expect_eq(w.tcb->srtt_us, srtt_us);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 101, .ack = 11);
    nj_dsl_run(&w, 10 * SEC);
    cr_expect_null(w.tcb->x);
    WRITE(&w, 10);
    EXPECT(&w, .flags = A, .seq = 101, .ack = 11, .len = 10);
    nj_dsl_run(&w, 250 * MS + w.tcb->x->rto);
    EXPECT(&w, .flags = A, .seq = 101, .ack = 11, .len = 10); /* the time-out is on again */
    nj_dsl_fini(&w);
}

/* Sentence 81; RFC 5681 4.1: an idle time reduces a large window, with and without a struct
 * nj_xfer. */
Test(tcp_xfer, window_restarts)
{
    for (unsigned secs = 0; secs < 20; secs += 10) {
        struct world w;
        open_flight(&w, NULL);
        w.tcb->cwnd = 40 * MSS;
        WRITE(&w, 10);
        SEND(&w, .flags = A, .seq = 1, .ack = 11);
        w.next_out = w.n_out;
        nj_dsl_run(&w, 500 * MS + secs * SEC);
        cr_expect_eq(w.tcb->x == NULL, secs > 0);
        WRITE(&w, 40 * MSS);
        cr_expect_eq(w.n_out - w.next_out, 10, "after %u s: %u", secs, w.n_out - w.next_out);
        cr_expect_geq(w.tcb->ssthresh, 30 * MSS);
        nj_dsl_fini(&w);
    }
}

/* Sentence 56; RFC 7323 5.5: 24 days without a segment, on an idle connection. */
Test(tcp_xfer, timestamps_after_24_days)
{
    for (unsigned days = 23; days <= 25; days += 2) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
        uint32_t last = (uint32_t)(w.now / MS);
        nj_dsl_run(&w, days * 24 * 3600 * SEC);
        SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 10, .tsval = last - 5);
        cr_expect_eq(w.n_read, days > 24 ? 10 : 0, "after %u days", days);
        nj_dsl_fini(&w);
    }
}

/* Sentence 114: abort, with data queued or unread. */
Test(tcp_xfer, abort_of_an_idle_one)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    nj_dsl_run(&w, 10 * SEC);
    cr_expect_null(w.tcb->x);
    nj_dsl_abort(&w);
    nj_dsl_step(&w);
    EXPECT(&w, .flags = RA, .seq = 1, .ack = 1);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* Sentence 115: 100,000 connections, with idle times, that end in every way, leak nothing. */
Test(tcp_xfer, a_hundred_thousand, .timeout = 100)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.time_wait_max = 64});
    for (uint32_t i = 0; i < 100000; i++) {
        w.tuple.rport = (uint16_t)(1024 + i % 60000);
        w.n_out = w.next_out = 0;
        w.ts = w.sack = false;
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .sack_ok = i % 2, .ts = i % 3 == 0});
        nj_dsl_write(&w, 3000);
        nj_dsl_step(&w);
        switch (i % 5) {
        case 0: /* the peer first */
            SEND(&w, .flags = FA, .seq = 1, .ack = 3001, .len = 100);
            nj_dsl_close(&w);
            nj_dsl_release(&w);
            nj_dsl_step(&w);
            SEND(&w, .flags = A, .seq = 102, .ack = 3002);
            break;
        case 1: /* we first, through TIME-WAIT */
            nj_dsl_close(&w);
            nj_dsl_release(&w);
            nj_dsl_step(&w);
            SEND(&w, .flags = A, .seq = 1, .ack = 3002);
            SEND(&w, .flags = FA, .seq = 1, .ack = 3002);
            break;
        case 2:
            SEND(&w, .flags = A, .seq = 1, .ack = 3001);
            nj_dsl_run(&w, 3 * SEC);
            nj_dsl_abort(&w);
            break;
        case 3: /* with a hole in the sent data */
            SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 50, .sack = {{1461, 3001}});
            SEND(&w, .flags = R, .seq = 1);
            break;
        default: /* the peer is silent, the user has released it */
            nj_dsl_close(&w);
            nj_dsl_release(&w);
            if (i % 100 == 4)
                nj_dsl_run(&w, 200 * SEC);
            else
                SEND(&w, .flags = R, .seq = 1);
            break;
        }
        nj_dsl_step(&w);
        cr_assert_eq(w.tcp.tcbs.n_used, 0, "connection %u, the way %u", i, i % 5);
        cr_assert_eq(w.tcp.xfers.n_used + w.tcp.runs.n_used + w.tcp.syns.n_used, 0);
        cr_assert_leq(w.tcp.time_waits.n_used, 64);
        if (i % 100 == 99) /* a slow question */
            cr_assert(nj_dsl_mbufs_back(&w));
    }
    cr_expect_eq(w.tcp.tcbs.n_touched, 1);
    nj_dsl_fini(&w);
}
