/* SPDX-License-Identifier: BSD-3-Clause */
/* Timer expiry: keepalive (RFC 9293 3.8.4) and user timeout (RFC 9293 3.9.1). Retransmissions are
 * tested in tcp_send_recovery.c. */
#include "support/tcp_dsl.h"
#include "telem/counters.h"

static void open_quiet(struct world *w, nj_ns keepalive)
{
    nj_dsl_init(w, NULL);
    w->tcp.cfg.keepalive = keepalive;
    nj_dsl_open(w);
}

/* Sentence 116; RFC 9293 3.8.4: nine probes after the configured time, then RST. */
Test(tcp_timers, keepalive_gives_up)
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
Test(tcp_timers, keepalive_is_answered)
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
Test(tcp_timers, keepalive_of_the_peer)
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
Test(tcp_timers, keepalive_and_segments_out_of_place)
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
Test(tcp_timers, no_keepalive)
{
    struct world w;
    open_quiet(&w, 0);
    nj_dsl_run(&w, 1000000 * SEC);
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* Sentence 71; RFC 9293 3.9.1: the user timeout counts from the first unanswered segment. */
Test(tcp_timers, user_timeout)
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
Test(tcp_timers, user_timeout_and_progress)
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
