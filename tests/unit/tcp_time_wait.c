/* SPDX-License-Identifier: BSD-3-Clause */
/* TIME-WAIT: RFC 9293 3.6.1, 3.10.7.4, 3.10.8, RFC 1337, RFC 6191. */
#include <stdio.h>

#include "base/prng.h"
#include "tcp/seq.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

/* In TIME_WAIT; without a user there is no control block any more. */
static void begin(struct world *w, const struct dsl_options *options, bool released)
{
    nj_dsl_init(w, options);
    nj_dsl_open_to(w, NJ_TCP_TIME_WAIT);
    if (released) {
        nj_dsl_release(w);
        cr_assert_eq(w->tcp.tcbs.n_used, 0);
        cr_assert_eq(w->tcp.xfers.n_used, 0);
        cr_assert_eq(w->tcp.wheel.n_timers, 0);
        cr_assert_eq(w->tcp.time_waits.n_used, 1);
    }
    cr_assert_eq(w->tcp.n_time_wait, 1);
    cr_assert_eq(nj_tcp_conns(&w->tcp), 0);
    STATE(w, TIME_WAIT);
}

/* Sentence 110; RFC 9293 3.10.7.4, 3.10.8. */
Test(tcp_time_wait, lasts_two_msl_and_starts_over)
{
    for (unsigned released = 0; released < 2; released++) {
        struct world w;
        begin(&w, NULL, released);
        nj_dsl_run(&w, 50 * SEC);
        SEND(&w, .flags = FA, .seq = 1, .ack = 2);
        EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
        nj_dsl_run(&w, 59 * SEC);
        STATE(&w, TIME_WAIT);
        nj_dsl_run(&w, 2 * SEC);
        NO_CONNECTION(&w);
        NOTHING(&w);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_closed), 1);
        cr_expect_eq(w.dead, !released);
        nj_dsl_fini(&w);
    }
}

/* The peer's FIN arrives for an orphan: the block is freed after sending its ACK. */
Test(tcp_time_wait, orphan_acknowledges_and_shrinks)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_to(&w, NJ_TCP_FIN_WAIT_2);
    nj_dsl_release(&w);
    w.room = 0; /* the device is full: the block has to stay until the ACK is out */
    SEND(&w, .flags = FA, .seq = 1, .ack = 2);
    NOTHING(&w);
    cr_expect_eq(w.tcp.tcbs.n_used, 1);
    w.room = 10;
    nj_dsl_step(&w);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    cr_expect_eq(w.tcp.tcbs.n_used, 0);
    STATE(&w, TIME_WAIT);
    nj_dsl_fini(&w);
}

/* The same through CLOSING. */
Test(tcp_time_wait, orphan_after_simultaneous_close)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_to(&w, NJ_TCP_CLOSING);
    nj_dsl_release(&w);
    SEND(&w, .flags = A, .seq = 2, .ack = 2);
    NOTHING(&w);
    STATE(&w, TIME_WAIT);
    cr_expect_eq(w.tcp.tcbs.n_used, 0);
    nj_dsl_fini(&w);
}

/* Sentence 111; RFC 1337. */
Test(tcp_time_wait, is_not_assassinated)
{
    for (unsigned released = 0; released < 2; released++) {
        struct world w;
        begin(&w, NULL, released);
        SEND(&w, .flags = R, .seq = 2);
        SEND(&w, .flags = RA, .seq = 2, .ack = 2);
        SEND(&w, .flags = R, .seq = 3);
        NOTHING(&w);
        STATE(&w, TIME_WAIT);
        nj_dsl_fini(&w);
    }
}

/* Sentence 110; RFC 9293 3.10.7.4, eighth: another FIN than the peer's, in the window. */
Test(tcp_time_wait, any_fin_is_acknowledged)
{
    for (unsigned released = 0; released < 2; released++) {
        struct world w;
        begin(&w, NULL, released);
        SEND(&w, .flags = FA, .seq = 2, .ack = 2);
        EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
        nj_dsl_run(&w, 100 * MS);
        SEND(&w, .flags = FA, .seq = 100, .ack = 2);
        EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
        NOTHING(&w);
        STATE(&w, TIME_WAIT);
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.10.7.4 for segments in TIME-WAIT, and rate limits of their ACKs. */
Test(tcp_time_wait, other_segments)
{
    struct world w;
    begin(&w, NULL, true);
    SEND(&w, .flags = A, .seq = 2, .ack = 2); /* nothing new */
    SEND(&w, .flags = A, .seq = 2, .ack = 2, .len = 50);
    SEND(&w, .flags = 0, .seq = 2);
    NOTHING(&w);
    for (unsigned i = 0; i < 5; i++)
        SEND(&w, .flags = P | A, .seq = 1, .ack = 1, .len = 1); /* old */
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    NOTHING(&w);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = S, .seq = 2); /* not beyond the old one */
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    nj_dsl_run(&w, 501 * MS);
    SEND(&w, .flags = SA, .seq = 0x80000000, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    nj_dsl_run(&w, 501 * MS);                 /* challenges are that far apart */
    SEND(&w, .flags = A, .seq = 2, .ack = 3); /* never sent */
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_ack), 1);
    for (unsigned i = 0; i < 5; i++) { /* the FIN is always answered */
        SEND(&w, .flags = FA, .seq = 1, .ack = 2);
        EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    }
    SEND(&w, .flags = FA, .seq = 0, .ack = 2); /* but not any FIN */
    NOTHING(&w);
    STATE(&w, TIME_WAIT);
    nj_dsl_fini(&w);
}

/* Sentence 112; RFC 9293 3.6.1 MAY-2, RFC 6191. */
Test(tcp_time_wait, is_replaced_by_a_new_syn)
{
    for (unsigned released = 0; released < 2; released++) {
        struct world w;
        begin(&w, NULL, released);
        uint32_t old_end = w.iss + 2;
        SEND(&w, .flags = S, .seq = 2); /* not beyond the old one */
        EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
        STATE(&w, TIME_WAIT);
        SEND(&w, .flags = S, .seq = 3, .mss = 1460);
        EXPECT(&w, .flags = SA, .ack = 4);
        cr_expect_eq(w.dead, !released, "the user of the old connection gets EV_DEAD");
        cr_expect(nj_seq_lt(old_end, w.iss));
        cr_expect_eq(w.tcp.n_time_wait, 0);
        SEND(&w, .flags = A, .seq = 4, .ack = 1);
        STATE(&w, ESTABLISHED);
        nj_dsl_run(&w, 61 * SEC); /* the rest of the old connection ends, this one continues */
        STATE(&w, ESTABLISHED);
        cr_expect_eq(w.tcp.time_waits.n_used, 0);
        nj_dsl_fini(&w);
    }
}

/* Sentence 112; RFC 6191: the new sequence numbers begin beyond the old ones, at any speed of the
 * old connection. */
Test(tcp_time_wait, new_numbers_are_beyond_the_old_ones)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.wnd = 60000;
    nj_dsl_open(&w);
    for (uint32_t sent = 0; sent < 1000000; sent += 50000) { /* 250,000 would be 1 s of clock */
        w.n_out = w.next_out = 0;
        nj_dsl_write(&w, 50000);
        for (uint32_t part = 1; part <= 50; part++)
            SEND(&w, .flags = A, .seq = 1, .ack = 1 + sent + part * 1000);
    }
    w.n_out = w.next_out = 0;
    CLOSE(&w);
    EXPECT(&w, .flags = FA, .seq = 1000001, .ack = 1);
    SEND(&w, .flags = FA, .seq = 1, .ack = 1000002);
    EXPECT(&w, .flags = A, .seq = 1000002, .ack = 2);
    nj_dsl_release(&w);
    uint32_t old_end = w.iss + 1000002;
    SEND(&w, .flags = S, .seq = 3);
    EXPECT(&w, .flags = SA, .ack = 4);
    cr_expect_eq(w.iss, old_end + 1);
    nj_dsl_fini(&w);
}

static void open_and_wait_with_timestamps(struct world *w, const struct dsl_options *options,
                                          bool released)
{
    nj_dsl_init(w, options);
    nj_dsl_open_with(w, &(struct dsl_seg){.mss = 1460, .ts = true});
    CLOSE(w);
    EXPECT(w, .flags = FA, .seq = 1, .ack = 1);
    SEND(w, .flags = FA, .seq = 1, .ack = 2);
    EXPECT(w, .flags = A, .seq = 2, .ack = 2);
    if (released)
        nj_dsl_release(w);
}

/* Sentence 112; RFC 6191 2. */
Test(tcp_time_wait, is_replaced_by_timestamp)
{
    struct world w;
    open_and_wait_with_timestamps(&w, NULL, true);
    uint32_t t = (uint32_t)(w.now / MS);
    SEND(&w, .flags = S, .seq = 90000, .tsval = t - 1);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    SEND(&w, .flags = S, .seq = 1 - 100000, .tsval = t + 1);
    EXPECT(&w, .flags = SA, .ack = 2 - 100000);
    nj_dsl_fini(&w);
}

/* RFC 7323 3.2, 5.3: our timestamps go on, and the peer's are checked. */
Test(tcp_time_wait, timestamps_go_on)
{
    struct world w;
    open_and_wait_with_timestamps(&w, NULL, true);
    uint32_t ours = w.last_tsval, theirs = (uint32_t)(w.now / MS);
    nj_dsl_run(&w, 30 * SEC);
    SEND(&w, .flags = FA, .seq = 1, .ack = 2);
    struct dsl_out *o = EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    cr_expect(o->seg.opts.has_ts);
    cr_expect_eq(o->seg.opts.ts_val, ours + 30000);
    cr_expect_eq(o->seg.opts.ts_ecr, theirs);
    SEND(&w, .flags = FA, .seq = 1, .ack = 2, .tsval = theirs - 1);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    SEND(&w, .flags = FA, .seq = 1, .ack = 2, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_paws), 1);
    nj_dsl_fini(&w);
}

/* Sentence 112; RFC 9293 3.6.1: a refused SYN does not end TIME-WAIT. Otherwise the next SYN would
 * be answered with an unchecked initial number. */
Test(tcp_time_wait, is_not_replaced_by_who_is_refused)
{
    enum { DRAINING, NO_BLOCKS, NO_MBUFS, N_REASONS };
    for (unsigned i = 0; i < 2 * N_REASONS; i++) {
        struct world w;
        unsigned why = i / 2, released = i % 2;
        begin(&w, &(struct dsl_options){.conns_max = 2}, released);
        w.tcp.draining = why == DRAINING;
        if (why == NO_BLOCKS)
            w.tcp.cfg.conns_max = 0;
        if (why == NO_MBUFS)
            w.tcp.cfg.held_max = w.tcp.n_held = 8; /* other connections hold them */
        SEND(&w, .flags = S, .seq = 90000);
        if (why == DRAINING)
            EXPECT(&w, .flags = RA, .seq = 0 - w.iss, .ack = 90001);
        NOTHING(&w);
        STATE(&w, TIME_WAIT);
        cr_expect_not(w.dead);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_draining), why == DRAINING);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_full), why != DRAINING);
        w.tcp.cfg.conns_max = 2;
        w.tcp.n_held = 0;
        nj_dsl_fini(&w);
    }
}

/* Sentence 112; RFC 9293 3.6.1: a cookie's number can't be chosen to be beyond those of the old
 * connection, so only timestamps distinguish the two. */
Test(tcp_time_wait, replacement_by_cookie_needs_timestamps)
{
    struct world w;
    struct dsl_options o = {.half_open_max = 1};
    for (unsigned i = 0; i < 4; i++) {
        bool ts = i / 2, released = i % 2;
        if (ts)
            open_and_wait_with_timestamps(&w, &o, released);
        else
            begin(&w, &o, released);
        w.tuple.rport++;
        SEND(&w, .flags = S); /* the backlog is full */
        w.tuple.rport--;
        w.next_out = w.n_out;
        nj_dsl_run(&w, 10 * MS);
        SEND(&w, .flags = S, .seq = 90000);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_cookie_sent), ts);
        cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_backlog), !ts);
        cr_expect_eq(w.dead, ts && !released);
        if (!ts)
            STATE(&w, TIME_WAIT);
        nj_dsl_fini(&w);
    }
}

/* Entries in TIME-WAIT never block new connections. */
Test(tcp_time_wait, leaves_the_blocks_to_others)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 2, .time_wait_max = 3});
    for (uint16_t i = 0; i < 10; i++) {
        w.n_out = w.next_out = 0;
        w.tuple.rport = (uint16_t)(1000 + i);
        nj_dsl_open_to(&w, NJ_TCP_TIME_WAIT);
        nj_dsl_release(&w);
        nj_dsl_run(&w, 1 * SEC);
    }
    cr_expect_eq(w.tcp.n_time_wait, 3);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_time_wait_cut), 7);
    for (uint16_t i = 0; i < 10; i++) { /* the last ones are the ones that were kept */
        w.tuple.rport = (uint16_t)(1000 + i);
        cr_expect_eq(nj_dsl_state(&w), i < 7 ? NJ_TCP_CLOSED : NJ_TCP_TIME_WAIT);
    }
    nj_dsl_fini(&w);
}

/* With a user the block is kept, and EV_DEAD follows after 2 MSL. */
Test(tcp_time_wait, with_a_user)
{
    struct world w;
    begin(&w, &(struct dsl_options){.conns_max = 1}, false);
    struct nj_tcb *held = w.tcb;
    w.tuple.rport = 2000;
    SEND(&w, .flags = S);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_full), 1);
    cr_expect_eq(w.tcb, held);
    nj_dsl_run(&w, 61 * SEC);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* --- against a model ------------------------------------------------------------------------- */

#define PEERS 24u
#define MAX   9u

struct model {
    bool waits[PEERS];
    nj_ns ends[PEERS];
};

static void enter(struct world *w, struct model *m, uint32_t i)
{
    nj_dsl_open_to(w, NJ_TCP_TIME_WAIT);
    nj_dsl_release(w);
    m->waits[i] = true;
    m->ends[i] = w->now + w->tcp.cfg.time_wait;
}

static void do_something(struct world *w, struct model *m, struct nj_prng *r, uint32_t i)
{
    w->n_out = w->next_out = 0;
    w->tuple.rport = (uint16_t)(1000 + i);
    w->irs = 5000;
    if (nj_dsl_state(w) == NJ_TCP_CLOSED) {
        if (w->tcp.time_waits.n_used < MAX)
            enter(w, m, i);
    } else if (nj_prng_below(r, 2)) {
        FEED(w, .flags = FA, .seq = 1, .ack = 2);
        cr_assert_eq(w->n_out, 1);
        m->ends[i] = w->now + w->tcp.cfg.time_wait;
    } else if (nj_prng_below(r, 2)) { /* a new connection that is not established */
        FEED(w, .flags = S, .seq = 3);
        FEED(w, .flags = R, .seq = 4);
        cr_assert_eq(nj_dsl_state(w), NJ_TCP_CLOSED);
        m->waits[i] = false;
    }
}

/* No entry ends before its 2 MSL, restarted or not. All end within another 2 MSL and leave the flow
 * table. */
static void compare(struct world *w, struct model *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < PEERS; i++) {
        w->tuple.rport = (uint16_t)(1000 + i);
        bool waits = nj_dsl_state(w) == NJ_TCP_TIME_WAIT;
        if (w->now < m->ends[i])
            cr_assert_eq(waits, m->waits[i], "peer %u at %lu", i, (unsigned long)w->now);
        if (w->now > m->ends[i] + w->tcp.cfg.time_wait + 2 * MS)
            cr_assert_not(waits, "peer %u at %lu", i, (unsigned long)w->now);
        m->waits[i] = waits;
        n += waits;
    }
    cr_assert_eq(w->tcp.n_time_wait, n);
    cr_assert_leq(n, w->tcp.time_waits.n_used);
}

Test(tcp_time_wait, agrees_with_a_model)
{
    const uint64_t seed = 0x7173;
    struct world w;
    struct model m = {0};
    struct nj_prng r;
    uint32_t n_used_max = 0;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    nj_dsl_init(&w, &(struct dsl_options){.time_wait_max = MAX});
    for (unsigned step = 0; step < 20000; step++) {
        do_something(&w, &m, &r, nj_prng_below(&r, PEERS));
        if (nj_prng_below(&r, 3) == 0)
            nj_dsl_run(&w, nj_prng_below(&r, step % 4000 < 2000 ? 5000 : 30000) * MS);
        compare(&w, &m);
        if (w.tcp.time_waits.n_used > n_used_max)
            n_used_max = w.tcp.time_waits.n_used;
    }
    cr_expect_eq(n_used_max, MAX);
    w.n_out = w.next_out = 0;
    nj_dsl_fini(&w);
}
