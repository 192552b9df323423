/* SPDX-License-Identifier: BSD-3-Clause */
/* SYN cookies (RFC 4987 3.6), and service during a SYN flood (RFC 4987 2). */
#include <stdio.h>

#include "base/prng.h"
#include "tcp/seq.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

#define PERIOD (64 * SEC) /* of syn_cookie.c */

/* A world whose backlog is filled by another peer. */
static void begin(struct world *w, const struct dsl_options *options)
{
    struct dsl_options o = options ? *options : (struct dsl_options){0};

    o.half_open_max = 1;
    nj_dsl_init(w, &o);
    w->tuple.rport = 999;
    SEND(w, .flags = S);
    w->tuple.rport = 40000;
    w->next_out = w->n_out;
}

/* SYN and the cookie for it; no state is kept. */
static struct dsl_out *get_cookie(struct world *w, const struct dsl_seg *syn)
{
    struct dsl_seg s = *syn;
    uint64_t n = nj_dsl_count(w, NJ_C_tcp_cookie_sent);

    s.flags = S;
    nj_dsl_feed(w, &s);
    NO_CONNECTION(w);
    cr_assert_eq(nj_dsl_count(w, NJ_C_tcp_cookie_sent), n + 1);
    w->ts = s.ts;
    return EXPECT(w, .flags = SA, .seq = 0, .ack = 1, .wnd = 65535, .ecn_syn = true);
}

/* Sentence 15; RFC 4987 3.6. */
Test(tcp_syn_cookie, no_memory_is_held)
{
    struct world w;
    begin(&w, NULL);
    for (uint32_t i = 0; i < 500; i++) {
        w.tuple.rport = (uint16_t)(2000 + i);
        w.n_out = w.next_out = 0;
        get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    }
    cr_expect_eq(w.tcp.syns.n_touched, 1);
    cr_expect_eq(w.tcp.tcbs.n_touched, 0);
    cr_expect_eq(w.tcp.n_half_open, 1);
    cr_expect_eq(w.tcp.wheel.n_timers, 0);
    nj_dsl_fini(&w);
}

/* Sentence 16; RFC 4987 3.6. */
Test(tcp_syn_cookie, opens_a_connection)
{
    struct world w;
    begin(&w, NULL);
    struct dsl_out *o = get_cookie(&w, &(struct dsl_seg){.mss = 1450, .wscale_p1 = 1 + 7});
    cr_expect_not(o->seg.opts.has_wscale, "there is no place to remember it");
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 4000);
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    cr_expect(w.events & NJ_TCP_EV_OPENED);
    cr_expect_eq(w.tcb->snd_mss, 1440);
    cr_expect_eq(w.tcb->snd_wnd, 4000);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_cookie_ok), 1);
    WRITE(&w, 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    SEND(&w, .flags = A, .seq = 1, .ack = 101, .len = 10);
    cr_expect_eq(w.n_read, 10);
    nj_dsl_fini(&w);
}

/* Sentence 16: with timestamps, window scale, SACK and ECN come back with their echo. */
Test(tcp_syn_cookie, timestamps_remember_options)
{
    for (unsigned i = 0; i < 16 * 4; i++) {
        uint8_t wscale = i % 16; /* 15: none */
        bool sack = i & 16, ecn = i & 32;
        struct world w;
        begin(&w, &(struct dsl_options){.ecn = true});
        struct dsl_seg syn = {.mss = 1460, .ts = true, .sack_ok = sack, .ecn_syn = ecn};
        syn.wscale_p1 = wscale == 15 ? 0 : wscale + 1;
        struct dsl_out *o = get_cookie(&w, &syn);
        cr_expect_eq(o->seg.opts.has_wscale, wscale < 15);
        cr_expect_eq(o->seg.opts.sack_permitted, sack);
        cr_expect_eq(!!(o->seg.flags & NJ_TCP_ECE), ecn);
        cr_expect(o->seg.opts.has_ts);
        cr_expect_eq(o->seg.opts.ts_ecr, (uint32_t)(w.now / MS));
        nj_dsl_run(&w, 20 * MS);
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .wnd = 100);
        STATE(&w, ESTABLISHED);
        cr_expect(w.tcb->ts_on);
        cr_expect_eq(w.tcb->snd_wnd, 100u << (wscale < 15 ? wscale : 0));
        cr_expect_eq(w.tcb->rcv_wscale, wscale < 15 ? NJ_TCP_WSCALE : 0);
        cr_expect_eq(w.tcb->sack_on, sack);
        cr_expect_eq(w.tcb->ecn_on, ecn);
        cr_expect_eq(w.tcb->ts_recent, (uint32_t)(w.now / MS));
        nj_dsl_fini(&w);
    }
}

/* The same without a cookie, for comparison. */
Test(tcp_syn_cookie, options_without_a_cookie)
{
    for (unsigned i = 0; i < 16; i++) {
        bool sack = i & 1, ecn = i & 2, may = i & 4, ts = i & 8; /* may: we speak ECN */
        struct world w;
        nj_dsl_init(&w, &(struct dsl_options){.ecn = may});
        SEND(&w, .flags = S, .mss = 1460, .ts = ts, .sack_ok = sack, .ecn_syn = ecn);
        struct dsl_out *o = EXPECT(&w, .flags = SA, .ack = 1, .ecn_syn = true);
        w.ts = ts;
        cr_expect_eq(o->seg.opts.sack_permitted, sack);
        cr_expect_eq(!!(o->seg.flags & NJ_TCP_ECE), ecn && may);
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
        cr_expect_eq(w.tcb->sack_on, sack);
        cr_expect_eq(w.tcb->ecn_on, ecn && may);
        nj_dsl_fini(&w);
    }
}

/* Sentence 16: rounded down to a table, and never up. */
Test(tcp_syn_cookie, mss_comes_from_a_table)
{
    const uint64_t seed = 0x3355;
    struct world w;
    struct nj_prng r;
    uint32_t seen[9001] = {0}, n_seen = 0;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    begin(&w, &(struct dsl_options){.mtu = 9000});
    for (unsigned i = 0; i < 2000; i++) {
        uint16_t mss = (uint16_t)(1 + nj_prng_below(&r, i % 2 ? 1600 : 65535));
        w.n_out = w.next_out = 0;
        get_cookie(&w, &(struct dsl_seg){.mss = mss});
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
        STATE(&w, ESTABLISHED);
        uint16_t got = w.tcb->snd_mss;
        cr_assert_leq(got, mss > NJ_TCP_MSS_MIN ? mss : NJ_TCP_MSS_MIN);
        n_seen += seen[got]++ == 0;
        nj_dsl_abort(&w);
        nj_dsl_step(&w);
    }
    cr_expect_eq(n_seen, 8);
    cr_expect(seen[536] && seen[1220] && seen[1440] && seen[1460] && seen[8940]);
    w.n_out = w.next_out = 0;
    get_cookie(&w, &(struct dsl_seg){.mss = 0});
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(w.tcb->snd_mss, nj_dsl_default_mss());
    nj_dsl_fini(&w);
}

/* Sentences 11 and 13 for a cookie: the ACK carries text and FIN. */
Test(tcp_syn_cookie, text_and_fin_with_the_cookie)
{
    struct world w;
    begin(&w, NULL);
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    SEND(&w, .flags = FA, .seq = 1, .ack = 1, .len = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 102);
    STATE(&w, CLOSE_WAIT);
    cr_expect_eq(w.n_read, 100);
    cr_expect_eq(w.events, NJ_TCP_EV_OPENED | NJ_TCP_EV_READABLE | NJ_TCP_EV_PEER_FIN);
    nj_dsl_fini(&w);
}

/* An ACK that must not open anything. */
static void refused(struct world *w, uint32_t seq, uint32_t ack)
{
    uint64_t n = nj_dsl_count(w, NJ_C_drop_tcp_cookie);

    w->n_out = w->next_out = 0;
    SEND(w, .flags = A, .seq = seq, .ack = ack);
    cr_assert_eq(nj_dsl_flow(w), NULL, "seq %u, ack %u", seq, ack);
    EXPECT(w, .flags = R, .seq = ack);
    cr_assert_eq(nj_dsl_count(w, NJ_C_drop_tcp_cookie), n + 1);
}

/* Sentence 17: no bit of it may be another. */
Test(tcp_syn_cookie, forged)
{
    struct world w;
    begin(&w, NULL);
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    for (unsigned bit = 0; bit < 32; bit++) {
        refused(&w, 1, ((w.iss + 1) ^ 1u << bit) - w.iss);
        refused(&w, ((w.irs + 1) ^ 1u << bit) - w.irs, 1);
    }
    for (unsigned bit = 0; bit < 16; bit++) { /* another peer, another port */
        w.tuple.rport ^= (uint16_t)(1u << bit);
        refused(&w, 1, 1);
        w.tuple.rport ^= (uint16_t)(1u << bit);
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        w.tuple.remote.b[12 + bit / 8] ^= (uint8_t)(1u << bit % 8);
        refused(&w, 1, 1);
        w.tuple.remote.b[12 + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    SEND(&w, .flags = RA, .seq = 1, .ack = 1); /* a peer that did not ask for a connection */
    SEND(&w, .flags = R, .seq = 1);
    NOTHING(&w);
    NO_CONNECTION(&w);
    SEND(&w, .flags = SA, .seq = 1, .ack = 1);
    EXPECT(&w, .flags = R, .seq = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* Sentence 17: a million guesses, none of which is right (the odds of one are 1 to 268). */
Test(tcp_syn_cookie, guesses)
{
    const uint64_t seed = 0x6e55;
    struct world w;
    struct nj_prng r;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    begin(&w, NULL);
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    for (unsigned i = 0; i < 1000000; i++) {
        w.n_out = w.next_out = 0;
        FEED(&w, .flags = A, .seq = 1, .ack = (uint32_t)nj_prng_next(&r));
    }
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_cookie), 1000000);
    w.n_out = w.next_out = 0;
    nj_dsl_fini(&w);
}

/* Sentence 17: good for 64 s to 128 s, whenever it was made. */
Test(tcp_syn_cookie, stale)
{
    static const nj_ns into[] = {0, 1, 31 * SEC, PERIOD - MS, PERIOD - 1};
    for (unsigned i = 0; i < 3 * NJ_ARRAY_LEN(into); i++) {
        nj_ns made_at =
            20 * PERIOD + i / NJ_ARRAY_LEN(into) * PERIOD + into[i % NJ_ARRAY_LEN(into)];
        nj_ns good_until = (made_at / PERIOD + 2) * PERIOD;
        static const int32_t at_s[] = {0, 63, 64, 127, 128, 129, 192, 256, 320, 6400};
        for (unsigned k = 0; k < NJ_ARRAY_LEN(at_s) + 2; k++) {
            struct world w;
            begin(&w, NULL);
            nj_dsl_run(&w, made_at - w.now);
            w.tuple.rport = 999; /* the other peer continues */
            SEND(&w, .flags = S);
            w.tuple.rport = 40000;
            w.next_out = w.n_out;
            get_cookie(&w, &(struct dsl_seg){.mss = 1460});
            nj_ns back_at = k < NJ_ARRAY_LEN(at_s) ? made_at + (nj_ns)at_s[k] * SEC
                                                   : good_until - (k - NJ_ARRAY_LEN(at_s));
            nj_dsl_run(&w, back_at - w.now);
            w.tcp.cookie_at = w.now; /* as if cookies were sent all the time */
            w.next_out = w.n_out;
            SEND(&w, .flags = A, .seq = 1, .ack = 1);
            cr_assert_eq(nj_dsl_state(&w), w.now < good_until ? NJ_TCP_ESTABLISHED : NJ_TCP_CLOSED,
                         "made at %lu, back at %lu", (unsigned long)made_at, (unsigned long)w.now);
            nj_dsl_fini(&w);
        }
    }
}

/* A draining server opens no connection, even for a valid cookie. */
Test(tcp_syn_cookie, refused_while_draining)
{
    struct world w;
    begin(&w, NULL);
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    w.tcp.draining = true;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    EXPECT(&w, .flags = R, .seq = 1);
    NO_CONNECTION(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_draining), 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_accepted), 0);
    refused(&w, 1, 2); /* a forged one is that first */
    nj_dsl_fini(&w);
}

/* Without recent cookies ACKs are not hashed. */
Test(tcp_syn_cookie, not_taken_when_none_was_sent)
{
    struct world w;
    begin(&w, NULL);
    SEND(&w, .flags = A, .seq = 1, .ack = 99);
    EXPECT(&w, .flags = R, .seq = 99);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_closed), 1);
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    nj_dsl_run(&w, 2 * PERIOD);
    w.next_out = w.n_out;
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    EXPECT(&w, .flags = R, .seq = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_closed), 2);
    nj_dsl_fini(&w);
}

/* RFC 7323 5.3: the cookie's timestamp is in the recent past, and the peer never takes the
 * following segments for old ones. */
Test(tcp_syn_cookie, timestamps_never_go_back)
{
    struct world w;
    begin(&w, NULL);
    for (unsigned i = 0; i < 1000; i++) {
        uint8_t wscale = (uint8_t)(i % 15);
        w.n_out = w.next_out = 0;
        w.tuple.rport = (uint16_t)(2000 + i);
        get_cookie(&w, &(struct dsl_seg){.mss = 1460, .ts = true, .wscale_p1 = 1 + wscale});
        uint32_t sent = w.last_tsval;
        cr_assert_eq(sent % 16, wscale);
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
        uint32_t ts_now = nj__tcp_ts_now(w.tcb, w.now);
        cr_assert(nj_seq_le(sent, ts_now) && ts_now - sent < 64, "%u, %u", sent, ts_now);
        WRITE(&w, 1);
        cr_assert_eq(w.last_tsval, ts_now);
        nj_dsl_abort(&w);
        nj_dsl_run(&w, i % 7 * MS);
    }
    w.n_out = w.next_out = 0;
    nj_dsl_fini(&w);
}

/* Transmit slots reserved for connections are not used for cookies. */
Test(tcp_syn_cookie, leaves_room_for_data)
{
    struct world w;
    begin(&w, NULL);
    w.room = NJ_TCP_COOKIE_TX_RESERVE;
    SEND(&w, .flags = S, .mss = 1460);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_backlog), 1);
    w.room++;
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    nj_dsl_fini(&w);
}

/* All blocks are in use when the cookie returns: the peer's next segment returns it again. */
Test(tcp_syn_cookie, waits_for_a_block)
{
    struct world w;
    begin(&w, &(struct dsl_options){.conns_max = 1});
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    struct nj_tuple tuple = w.tuple;
    uint32_t iss = w.iss;
    w.tuple.rport = 50000;
    get_cookie(&w, &(struct dsl_seg){.mss = 1460});
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    w.tuple = tuple;
    w.iss = iss;
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    NO_CONNECTION(&w);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_full), 1);
    nj_dsl_abort(&w);
    nj_dsl_step(&w);
    w.next_out = w.n_out;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    STATE(&w, ESTABLISHED);
    cr_expect_eq(w.n_read, 10);
    nj_dsl_fini(&w);
}

/* --- a flood --------------------------------------------------------------------------------- */

#define FLOOD 1000000u

static void forged_syn(struct world *w, struct nj_prng *r)
{
    struct nj_tuple real = w->tuple;
    uint64_t x = nj_prng_next(r);
    bool ts = w->ts;

    memcpy(&w->tuple.remote.b[13], &x, 3); /* of 10.0.0.0/8 */
    w->tuple.rport = (uint16_t)(x >> 48 | 1);
    w->ts = false;
    FEED(w, .flags = S, .seq = (uint32_t)nj_prng_next(r), .mss = 1460, .ts = x >> 40 & 1);
    w->tuple = real;
    w->ts = ts;
    w->n_out = w->next_out = 0;
}

/* A client in the midst of it: SYN, ACK, request, answer, and out of the way. */
static void real_client(struct world *w, uint32_t i)
{
    w->tuple.rport = (uint16_t)(10000 + i);
    nj_dsl_feed(w, &(struct dsl_seg){.flags = S, .mss = 1460, .ts = true, .wscale_p1 = 8});
    EXPECT(w, .flags = SA, .seq = 0, .ack = 1);
    w->ts = true;
    FEED(w, .flags = A, .seq = 1, .ack = 1);
    SEND(w, .flags = P | A, .seq = 1, .ack = 1, .len = 200);
    STATE(w, ESTABLISHED);
    cr_assert_eq(w->n_read, 200);
    w->next_out = w->n_out;
    WRITE(w, 1000);
    EXPECT(w, .flags = A, .seq = 1, .ack = 201, .len = 1000);
    CLOSE(w);
    SEND(w, .flags = FA, .seq = 201, .ack = 1002);
    nj_dsl_release(w);
    STATE(w, TIME_WAIT);
    w->ts = false;
    w->n_out = w->next_out = 0;
}

/* Sentences 14, 15; RFC 4987 2: a million SYNs in ten seconds fill only the backlog, and genuine
 * clients connect at once. */
Test(tcp_syn_cookie, flood)
{
    const uint64_t seed = 0xf100d;
    struct world w;
    struct nj_prng r;
    uint32_t n_real = 0;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 1000, .half_open_max = 512});
    for (uint32_t i = 0; i < FLOOD; i++) {
        forged_syn(&w, &r);
        w.now += 10 * NJ_US;
        if (i % 64 == 63) {
            nj_dsl_step(&w);
            w.n_out = w.next_out = 0;
        }
        if (i % 10000 == 9999)
            real_client(&w, n_real++);
        cr_assert_leq(w.tcp.syns.n_used, 512);
        cr_assert_leq(w.tcp.tcbs.n_used, 0);
    }
    cr_expect_eq(n_real, 100);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_accepted), n_real);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_cookie_ok), n_real);
    cr_expect_gt(nj_dsl_count(&w, NJ_C_tcp_cookie_sent), FLOOD - 1024);
    cr_expect_eq(w.tcp.syns.n_touched, 512);
    cr_expect_eq(w.tcp.tcbs.n_touched, 1);
    cr_expect_eq(w.tcp.time_waits.n_touched, n_real);
    cr_expect_eq(w.tcp.wheel.n_timers, 0);
    cr_expect(nj_dsl_mbufs_back(&w), "mbufs");
    nj_dsl_run(&w, 64 * SEC); /* and it is over */
    cr_expect_eq(w.tcp.n_half_open, 0);
    w.n_out = w.next_out = 0;
    nj_dsl_fini(&w);
}
