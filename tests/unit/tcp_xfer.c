/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle connections: release of struct nj_xfer, keepalive (RFC 9293 3.8.4) and user timeout (RFC
 * 9293 3.9.1). */
#include "support/tcp_flight.h"
#include "telem/counters.h"

static void open_quiet(struct world *w, nj_ns keepalive)
{
    nj_dsl_init(w, NULL);
    w->tcp.cfg.keepalive = keepalive;
    nj_dsl_open(w);
}

/* Sentence 116; RFC 9293 3.8.4: nine probes after the configured time, then RST. */
Test(tcp_xfer, keepalive_gives_up)
{
    struct world w;
    open_quiet(&w, 7200 * SEC);
    nj_ns heard_at = w.now;
    nj_dsl_run(&w, 7199 * SEC);
    NOTHING(&w);
    nj_dsl_run(&w, 10000 * SEC);
    nj_ns due = heard_at + 7200 * SEC;
    for (unsigned i = 0; i < NJ_TCP_KEEPALIVE_PROBES; i++) {
        struct dsl_out *o = EXPECT(&w, .flags = A, .seq = 0, .ack = 1); /* SND.UNA - 1 */
        cr_expect(o->at >= due && o->at < due + 2 * MS, "probe %u", i);
        due += NJ_TCP_KEEPALIVE_INTERVAL;
    }
    struct dsl_out *o = EXPECT(&w, .flags = RA, .seq = 1, .ack = 1);
    cr_expect(o->at >= due && o->at < due + 2 * MS);
    NOTHING(&w);
    cr_expect(w.dead);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_keepalive), NJ_TCP_KEEPALIVE_PROBES);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_keepalive_dead), 1);
    nj_dsl_fini(&w);
}

/* Sentence 116: any segment of the peer restarts the time. */
Test(tcp_xfer, keepalive_is_answered)
{
    struct world w;
    open_quiet(&w, 100 * SEC);
    for (unsigned i = 0; i < 20; i++) {
        nj_dsl_run(&w, 101 * SEC);
        EXPECT(&w, .flags = A, .seq = 0, .ack = 1);
        NOTHING(&w);
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
    }
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.4 MUST-26: the peer's keepalive restarts the time, with a byte of old text or
 * without. */
Test(tcp_xfer, keepalive_of_the_peer)
{
    struct world w;
    open_quiet(&w, 100 * SEC);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 5);
    nj_dsl_run(&w, 99 * SEC);
    w.next_out = w.n_out;
    for (unsigned i = 0; i < 20; i++) {
        SEND(&w, .flags = A, .seq = 5, .ack = 1, .len = i % 2);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 6);
        nj_dsl_run(&w, 99 * SEC);
        NOTHING(&w);
    }
    nj_dsl_run(&w, 2 * SEC);
    EXPECT(&w, .flags = A, .seq = 0, .ack = 6);
    nj_dsl_fini(&w);
}

/* Sentence 116; RFC 9293 3.8.4: a segment dropped in step one of 3.10.7.4 does not count as an
 * answer to a probe. A blind attacker must not keep a dead connection alive. It must not trigger
 * keepalive probes either. */
Test(tcp_xfer, keepalive_and_segments_out_of_place)
{
    static const struct dsl_seg stray[] = {
        {.flags = A, .seq = 0, .ack = 1}, /* older than a keepalive would be */
        {.flags = A, .seq = 5, .ack = 0}, /* its number, but not our last one */
        {.flags = A | P, .seq = 4, .ack = 1, .len = 2},
        {.flags = SA, .seq = 5, .ack = 1},
        {.flags = R, .seq = 5},
        {.flags = A, .seq = 0x40000000, .ack = 1},
    };
    for (unsigned i = 0; i < NJ_ARRAY_LEN(stray); i++) {
        struct world w;
        open_quiet(&w, 100 * SEC);
        SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 5);
        nj_ns heard_at = w.now;
        while (!w.dead && w.now - heard_at < 2000 * SEC) {
            w.n_out = w.next_out = 0;
            nj_dsl_run(&w, 7 * SEC);
            if (w.dead)
                break;
            nj_dsl_feed(&w, &stray[i]);
            nj_dsl_step(&w);
        }
        nj_ns due = 100 * SEC + NJ_TCP_KEEPALIVE_PROBES * NJ_TCP_KEEPALIVE_INTERVAL;
        nj_ns after = w.now - heard_at;
        cr_expect(after >= due && after < due + 8 * SEC, "segment %u: after %lu s", i,
                  (unsigned long)(after / SEC));
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_keepalive), NJ_TCP_KEEPALIVE_PROBES);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_keepalive_dead), 1);
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.8.4 MUST-25: off by default. */
Test(tcp_xfer, no_keepalive)
{
    struct world w;
    open_quiet(&w, 0);
    nj_dsl_run(&w, 1000000 * SEC);
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* An idle connection has no struct nj_xfer; the next segment or call attaches one. */
Test(tcp_xfer, gives_back_and_takes_again)
{
    struct world w;
    open_quiet(&w, 0);
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

/* Sentence 71; RFC 9293 3.9.1: the user timeout counts from the first unanswered segment. */
Test(tcp_xfer, user_timeout)
{
    struct world w;
    open_quiet(&w, 0);
    w.tcp.cfg.user_timeout = 10 * SEC;
    nj_dsl_run(&w, 100 * SEC);
    WRITE(&w, 10);
    nj_ns began = w.now;
    nj_dsl_run(&w, 9 * SEC);
    cr_expect_not(w.dead);
    nj_dsl_run(&w, 20 * SEC);
    cr_expect(w.dead);
    struct dsl_out *o = NULL, *last;
    while ((last = nj_dsl_take(&w)))
        o = last;
    cr_assert_not_null(o);
    cr_expect_eq(o->seg.flags, RA);
    cr_expect_geq(o->at - began, 10 * SEC);
    nj_dsl_fini(&w);
}

/* Sentence 71: a peer that acknowledges a byte now and then is alive. */
Test(tcp_xfer, user_timeout_and_progress)
{
    struct world w;
    open_quiet(&w, 0);
    w.tcp.cfg.user_timeout = 10 * SEC;
    WRITE(&w, 100);
    for (uint32_t i = 1; i < 10; i++) {
        nj_dsl_run(&w, 8 * SEC);
        SEND(&w, .flags = A, .seq = 1, .ack = 1 + i);
    }
    cr_expect_not(w.dead);
    nj_dsl_run(&w, 60 * SEC);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* Sentence 114: abort, with data queued or unread. */
Test(tcp_xfer, abort_of_an_idle_one)
{
    struct world w;
    open_quiet(&w, 0);
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
