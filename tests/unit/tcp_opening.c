/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening of connections: RFC 9293 3.5, 3.10.7.1 - 3.10.7.3. "Sentence n" is a number in our list
 * of 120 checkable sentences about TCP. */
#include "tcp/seq.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

/* RFC 9293 3.10.7.2; sentence 1 */
Test(tcp_opening, syn_gets_syn_ack)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .mss = 1460);
    struct dsl_out *o = EXPECT(&w, .flags = SA, .seq = 0, .ack = 1);
    cr_expect(o->seg.opts.has_mss && o->seg.opts.mss == 1460);
    STATE(&w, SYN_RECEIVED);
    cr_expect_null(w.tcb, "the user gets the event too early");
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    cr_expect(w.events & NJ_TCP_EV_OPENED);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_accepted), 1);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.1; sentences 2, 3, 4 */
Test(tcp_opening, closed_port_resets)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .seq = 0, .len = 10, .port = 81);
    struct dsl_out *o = EXPECT(&w, .flags = RA, .seq = 0 - w.iss, .ack = 11);
    cr_expect_eq(o->seg.seq, 0);
    SEND(&w, .flags = A, .seq = 7, .ack = 777, .port = 81);
    EXPECT(&w, .flags = R, .seq = 777);
    SEND(&w, .flags = R, .seq = 7, .port = 81);
    SEND(&w, .flags = RA, .seq = 7, .ack = 777, .port = 81);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_closed), 4);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.9.1.1: a passive OPEN may name the local address. */
Test(tcp_opening, listener_of_one_address)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    struct nj_listener *l = w.tcp.listeners.at;
    *l = (struct nj_listener){.addr = {{1}}, .port = DSL_PORT, .has_addr = true};
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = RA, .seq = 0 - w.iss, .ack = 1);
    l->addr = w.tuple.local;
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.2; sentences 5, 6 */
Test(tcp_opening, listener_takes_only_syn)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S | F);
    SEND(&w, .flags = S | R);
    SEND(&w, .flags = R);
    SEND(&w, .flags = 0);
    SEND(&w, .flags = F);
    NOTHING(&w);
    NO_CONNECTION(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 99);
    EXPECT(&w, .flags = R, .seq = 99);
    SEND(&w, .flags = SA, .seq = 1, .ack = 98);
    EXPECT(&w, .flags = R, .seq = 98);
    SEND(&w, .flags = RA, .seq = 1, .ack = 97);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.1; sentence 7 */
Test(tcp_opening, repeated_syn_gets_same_syn_ack)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    uint32_t iss = w.iss;
    nj_dsl_run(&w, 300 * MS);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    cr_expect_eq(w.iss, iss);
    cr_expect_eq(w.tcp.syns.n_used, 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    cr_expect_eq(w.tcp.syns.n_used, 0);
    nj_dsl_fini(&w);
}

/* A peer that repeats its SYN does not extend its time in the backlog. */
Test(tcp_opening, repeated_syn_does_not_postpone_the_end)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    nj_ns begun = w.now;
    while (nj_dsl_flow(&w) && w.now - begun < 200 * SEC) {
        nj_dsl_run(&w, 500 * MS);
        if (nj_dsl_flow(&w) && w.now - begun < 60 * SEC)
            SEND(&w, .flags = S);
    }
    cr_expect_lt(w.now - begun, 70 * SEC);
    nj_dsl_fini(&w);
}

/* RFC 6298 2.1, 5.5, RFC 9293 3.8.3; sentence 8 */
Test(tcp_opening, syn_ack_backs_off_and_gives_up)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    nj_ns last = EXPECT(&w, .flags = SA, .ack = 1)->at, gap = 1 * SEC;
    nj_dsl_run(&w, 70 * SEC);
    for (unsigned i = 0; i < NJ_TCP_SYNACK_RETRIES; i++) {
        struct dsl_out *o = EXPECT(&w, .flags = SA, .ack = 1);
        cr_expect_geq(o->at - last, gap);
        cr_expect_leq(o->at - last, gap + 2 * MS, "%lu", (unsigned long)(o->at - last));
        last = o->at;
        gap *= 2;
    }
    NOTHING(&w);
    NO_CONNECTION(&w);
    cr_expect_eq(w.tcp.n_half_open, 0);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, fifth; sentence 9 */
Test(tcp_opening, wrong_ack_is_reset_and_forgotten)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 0);
    EXPECT(&w, .flags = R, .seq = 0);
    SEND(&w, .flags = A, .seq = 1, .ack = 2);
    EXPECT(&w, .flags = R, .seq = 2);
    STATE(&w, SYN_RECEIVED);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, second; sentence 10 */
Test(tcp_opening, reset_of_half_open_is_silent)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = R, .seq = 1);
    NOTHING(&w);
    NO_CONNECTION(&w);
    cr_expect_eq(w.events, 0);
    SEND(&w, .flags = S, .seq = 9);
    EXPECT(&w, .flags = SA, .ack = 10);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4; sentence 11 */
Test(tcp_opening, data_on_the_last_ack_is_delivered)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    cr_expect_eq(w.n_read, 100);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    cr_expect_eq(w.n_read, 100);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.4: text on a SYN is not acknowledged, so the peer repeats it; sentence 12 */
Test(tcp_opening, data_on_the_syn_comes_again)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .len = 50);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 50);
    cr_expect_eq(w.n_read, 50);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, eighth; sentence 13 */
Test(tcp_opening, fin_on_the_last_ack)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = FA, .seq = 1, .ack = 1, .len = 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 12);
    STATE(&w, CLOSE_WAIT);
    cr_expect_eq(w.n_read, 10);
    cr_expect_eq(w.events, NJ_TCP_EV_OPENED | NJ_TCP_EV_READABLE | NJ_TCP_EV_PEER_FIN);
    nj_dsl_fini(&w);
}

/* Sentence 14; RFC 4987 3.2: half-open connections have their own limit and use no control block.
 */
Test(tcp_opening, backlog_and_pool_are_bounded)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 6, .half_open_max = 4});
    for (uint32_t i = 0; i < 10; i++) {
        w.tuple.rport = (uint16_t)(1000 + i);
        w.room = i < 7 ? 1000 : NJ_TCP_COOKIE_TX_RESERVE;
        SEND(&w, .flags = S);
    }
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_cookie_sent), 3);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_backlog), 3);
    cr_expect_eq(w.tcp.n_half_open, 4);
    cr_expect_eq(w.tcp.syns.n_used, 4);
    cr_expect_eq(w.tcp.tcbs.n_used, 0);
    cr_expect_eq(nj_tcp_conns(&w.tcp), 4);
    nj_dsl_fini(&w);
}

static uint32_t iss_of_half_open(struct world *w)
{
    struct nj_flow *f = nj_dsl_flow(w);
    cr_assert(f && f->kind == NJ_FLOW_SYN);
    return ((struct nj_syn *)f)->bare.snd_nxt - 1;
}

/* Sentence 14: without a free block the handshake waits; the peer's next segment completes it. */
Test(tcp_opening, handshake_waits_for_a_block)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 2, .half_open_max = 4});
    for (uint32_t i = 0; i < 3; i++) {
        w.tuple.rport = (uint16_t)(1000 + i);
        SEND(&w, .flags = S);
    }
    w.next_out = w.n_out;
    for (uint32_t i = 0; i < 3; i++) {
        w.tuple.rport = (uint16_t)(1000 + i);
        w.iss = iss_of_half_open(&w);
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
    }
    NOTHING(&w);
    STATE(&w, SYN_RECEIVED);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_full), 1);
    w.tuple.rport = 3000; /* the ACK does not create a new connection either */
    SEND(&w, .flags = S);
    NOTHING(&w);
    NO_CONNECTION(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_full), 2);
    nj_dsl_abort(&w);
    nj_dsl_step(&w);
    w.next_out = w.n_out;
    w.tuple.rport = 1002;
    SEND(&w, .flags = P | A, .seq = 1, .ack = 1, .len = 100);
    STATE(&w, ESTABLISHED);
    cr_expect_eq(w.n_read, 100);
    nj_dsl_fini(&w);
}

/* The last blocks are reserved for handshakes under way. */
Test(tcp_opening, the_last_blocks_are_not_for_new_syns)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 64, .half_open_max = 64});
    for (uint32_t i = 0; i < 62; i++) {
        w.tuple.rport = (uint16_t)(1000 + i);
        w.n_out = w.next_out = 0;
        nj_dsl_open(&w);
    }
    w.tuple.rport = 2000;
    SEND(&w, .flags = S);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_full), 1);
    nj_dsl_fini(&w);
}

/* Sentence 18; RFC 9293 3.10.7.4, fourth: a SYN in the window takes a half-open connection back to
 * LISTEN, which answers it. */
Test(tcp_opening, newest_syn_wins)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = S, .seq = 3000);
    EXPECT(&w, .flags = SA, .ack = 3001);
    cr_expect_eq(w.tcp.n_half_open, 1);
    SEND(&w, .flags = A, .seq = 3001, .ack = 1);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* Sentence 18; RFC 9293 3.5.2, figure 9: a SYN outside the window is answered with an ACK. It is
 * accepted after the peer's RST. */
Test(tcp_opening, newest_syn_wins_from_afar)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = S, .seq = 300000);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = S, .seq = 300000); /* at once again: not answered */
    NOTHING(&w);
    SEND(&w, .flags = R, .seq = 1); /* the answer of a peer in SYN_SENT */
    NO_CONNECTION(&w);
    SEND(&w, .flags = S, .seq = 300000);
    EXPECT(&w, .flags = SA, .ack = 300001);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, first and second, RFC 5961 3.2, for a half-open connection. */
Test(tcp_opening, half_open_against_strangers)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = R, .seq = 0);
    SEND(&w, .flags = R, .seq = 1 + NJ_TCP_SYN_WINDOW);
    NOTHING(&w);
    SEND(&w, .flags = R, .seq = 1000);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = P, .seq = 1, .len = 10);
    NOTHING(&w);
    for (unsigned i = 0; i < 10; i++)
        SEND(&w, .flags = A, .seq = 0, .ack = 1, .len = i % 2);
    nj_dsl_run(&w, 501 * MS); /* challenges are that far apart */
    SEND(&w, .flags = SA, .seq = 0, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    STATE(&w, SYN_RECEIVED);
    SEND(&w, .flags = A, .seq = 100, .ack = 1, .len = 10); /* in the window, out of order */
    STATE(&w, ESTABLISHED);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 99);
    cr_expect_eq(w.n_read, 109);
    nj_dsl_fini(&w);
}

/* RFC 7323 5.3 for a half-open connection. */
Test(tcp_opening, half_open_checks_timestamps)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .ts = true, .tsval = 1000);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .ts = true, .tsval = 999);
    cr_expect(EXPECT(&w, .flags = A, .seq = 1, .ack = 1)->seg.opts.has_ts);
    STATE(&w, SYN_RECEIVED);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_paws), 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .ts = true, .tsval = 1001);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* RFC 6298 2: the handshake is the first sample, when the SYN-ACK was sent once. */
Test(tcp_opening, handshake_measures_the_round_trip)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    nj_dsl_run(&w, 70 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(nj__srtt(w.tcb), 70 * MS);
    nj_dsl_fini(&w);

    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    nj_dsl_run(&w, 70 * MS);
    SEND(&w, .flags = S);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(nj__srtt(w.tcb), 0, "Karn");
    nj_dsl_fini(&w);
}

static struct nj_tcb *connect(struct world *w)
{
    w->tcb = nj_tcp_connect(&w->tcp, &w->tuple, w->now);
    cr_assert_not_null(w->tcb);
    w->tcb->user = w;
    nj_dsl_step(w);
    struct dsl_out *o = EXPECT(w, .flags = S, .seq = 0);
    cr_expect(o->seg.opts.has_mss && o->seg.opts.has_ts && o->seg.opts.has_wscale);
    return w->tcb;
}

/* RFC 9293 3.10.7.3; sentence 19 */
Test(tcp_opening, active_open)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    cr_expect_null(nj_tcp_connect(&w.tcp, &w.tuple, w.now), "the tuple is in use");
    SEND(&w, .flags = SA, .ack = 2);
    EXPECT(&w, .flags = R, .seq = 2);
    SEND(&w, .flags = A, .ack = 0);
    EXPECT(&w, .flags = R, .seq = 0);
    SEND(&w, .flags = A, .ack = 1);
    NOTHING(&w);
    STATE(&w, SYN_SENT);
    SEND(&w, .flags = SA, .ack = 1, .mss = 1000);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    cr_expect(w.events & NJ_TCP_EV_OPENED);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    cr_expect_eq(w.n_read, 100);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.3; sentence 20 */
Test(tcp_opening, active_open_refused)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    SEND(&w, .flags = R, .seq = 0);
    SEND(&w, .flags = RA, .seq = 0, .ack = 2);
    NOTHING(&w);
    STATE(&w, SYN_SENT);
    SEND(&w, .flags = RA, .seq = 0, .ack = 1);
    NOTHING(&w);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.3: three minutes for a SYN */
Test(tcp_opening, active_open_gives_up)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    nj_dsl_run(&w, 179 * SEC);
    cr_expect_not(w.dead);
    nj_dsl_run(&w, 70 * SEC);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.5 figure 7, with the SYN-ACK that repeats the peer's SYN; sentence 21 */
Test(tcp_opening, simultaneous_open)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    SEND(&w, .flags = S, .mss = 1000);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1);
    STATE(&w, SYN_RECEIVED);
    SEND(&w, .flags = SA, .seq = 0, .ack = 1, .mss = 1000);
    STATE(&w, ESTABLISHED);
    NOTHING(&w);
    cr_expect(w.events & NJ_TCP_EV_OPENED);
    WRITE(&w, 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    nj_dsl_fini(&w);
}

/* The same, with a peer that needs our SYN-ACK only; sentence 21 */
Test(tcp_opening, simultaneous_open_by_ack)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 5);
    STATE(&w, ESTABLISHED);
    cr_expect_eq(w.n_read, 5);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.4, SYN-RECEIVED: the FIN waits for ESTABLISHED */
Test(tcp_opening, close_during_simultaneous_open)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1);
    CLOSE(&w);
    nj_dsl_release(&w);
    NOTHING(&w);
    nj_dsl_run(&w, 1500 * MS);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    EXPECT(&w, .flags = FA, .seq = 1, .ack = 1);
    STATE(&w, FIN_WAIT_1);
    SEND(&w, .flags = FA, .seq = 1, .ack = 2);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    STATE(&w, TIME_WAIT);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.4 and 3.10.5, SYN-SENT */
Test(tcp_opening, close_abort_release_before_the_answer)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    connect(&w);
    CLOSE(&w);
    cr_expect(w.dead);
    connect(&w);
    nj_dsl_abort(&w);
    nj_dsl_step(&w);
    cr_expect(w.dead);
    connect(&w);
    nj_dsl_release(&w);
    NO_CONNECTION(&w);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* Sentence 22: we receive our own SYN */
Test(tcp_opening, self_connect)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.tuple.rport = DSL_PORT;
    connect(&w);
    w.irs = w.iss; /* the peer is ourselves */
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1);
    SEND(&w, .flags = SA, .ack = 1);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* RFC 6528; sentence 23 */
Test(tcp_opening, initial_sequence_numbers)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    uint32_t last = nj__tcp_isn(&w.tcp, &w.tuple, w.now);
    for (unsigned i = 1; i < 100; i++) {
        uint32_t isn = nj__tcp_isn(&w.tcp, &w.tuple, w.now + i * 10 * MS);
        cr_expect_eq(isn - last, 2500);
        last = isn;
    }
    uint32_t high_bytes[256] = {0};
    for (unsigned i = 0; i < 2560; i++) {
        w.tuple.rport = (uint16_t)(i + 1024);
        high_bytes[nj__tcp_isn(&w.tcp, &w.tuple, w.now) >> 24]++;
    }
    for (unsigned i = 0; i < 256; i++)
        cr_expect_lt(high_bytes[i], 40);
    nj_dsl_fini(&w);
}

/* RFC 6298 5.7: the RTO is 3 s after a lost SYN-ACK */
Test(tcp_opening, rto_after_a_lost_syn_ack)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .ack = 1);
    nj_dsl_run(&w, 1100 * MS);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    WRITE(&w, 100);
    nj_ns sent = EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100)->at;
    nj_dsl_run(&w, 4 * SEC);
    nj_ns again = EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100)->at;
    cr_expect_geq(again - sent, 3 * SEC);
    cr_expect_leq(again - sent, 3 * SEC + 2 * MS);
    nj_dsl_fini(&w);
}

/* The pool may be empty at any time; the timer tries again. */
Test(tcp_opening, syn_ack_without_an_mbuf)
{
    struct world w;
    struct rte_mbuf *hog[4];
    nj_dsl_init(&w, &(struct dsl_options){.pool_mbufs = 4});
    for (unsigned i = 0; i < 4; i++)
        hog[i] = rte_pktmbuf_alloc(w.pool);
    SEND(&w, .flags = S);
    NOTHING(&w);
    SEND(&w, .flags = A, .ack = 1, .port = 81); /* no RST can be sent either */
    NOTHING(&w);
    for (unsigned i = 0; i < 4; i++)
        rte_pktmbuf_free(hog[i]);
    nj_dsl_run(&w, 1100 * MS);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 9);
    cr_expect_eq(w.n_read, 9);
    nj_dsl_fini(&w);
}

Test(tcp_opening, draining_refuses)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.tcp.draining = true;
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = RA, .seq = 0 - w.iss, .ack = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_draining), 1);
    nj_dsl_fini(&w);
}
