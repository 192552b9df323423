/* SPDX-License-Identifier: BSD-3-Clause */
/* Blind attacks (RFC 5961, RFC 7323 5), and processing of RSTs (RFC 9293 3.10.7.4). */
#include "tcp/seq.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

#define WINDOW 65535u /* the window that the SYN-ACK advertised */

/* RFC 5961 3.2; sentence 98 */
Test(tcp_reset_attack, exact_rst_aborts)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    WRITE(&w, 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    SEND(&w, .flags = R, .seq = 1);
    NOTHING(&w);
    NO_CONNECTION(&w);
    cr_expect(w.dead);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_reset_in), 1);
    nj_dsl_fini(&w);
}

/* RFC 5961 3.2; sentence 99 */
Test(tcp_reset_attack, rst_in_window_is_challenged)
{
    static const uint32_t seq[] = {2, 1000, WINDOW};
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (unsigned i = 0; i < NJ_ARRAY_LEN(seq); i++) {
        SEND(&w, .flags = R, .seq = seq[i]);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
        STATE(&w, ESTABLISHED);
        nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL);
    }
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_challenge_ack), 3);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_reset), 3);
    nj_dsl_fini(&w);
}

/* RFC 5961 3.2: a long RST that only reaches into the window is not an exact one. */
Test(tcp_reset_attack, rst_with_text_is_not_trimmed_to_fit)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1000);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    SEND(&w, .flags = R, .seq = 1, .len = 1400);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, first; sentence 100 */
Test(tcp_reset_attack, rst_outside_window_is_dropped)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = R, .seq = 0);
    SEND(&w, .flags = R, .seq = 1 + WINDOW);
    SEND(&w, .flags = R, .seq = 0x80000000);
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_window), 3);
    nj_dsl_fini(&w);
}

/* RFC 5961 4.2; sentence 101 */
Test(tcp_reset_attack, syn_is_challenged)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = S, .seq = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL);
    SEND(&w, .flags = S, .seq = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL);
    SEND(&w, .flags = SA, .seq = 500, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = S, .seq = 0x70000000);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = S, .seq = 0);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* RFC 5961 4.2: text behind a SYN is not accepted either. */
Test(tcp_reset_attack, syn_with_text_is_challenged)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = SA, .seq = 0, .ack = 1, .len = 100, .flip = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(w.n_read, 0);
    STATE(&w, ESTABLISHED);
    nj_dsl_fini(&w);
}

/* RFC 5961 4.2 for a peer that has restarted, and sends no timestamps now; sentence 101 */
Test(tcp_reset_attack, syn_without_timestamp_is_challenged)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    SEND(&w, .flags = S, .seq = 77, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = R, .seq = 1, .no_ts = true); /* its answer */
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 5961 7; sentence 102: the limit per second for all connections is unpredictable. */
Test(tcp_reset_attack, challenges_are_limited)
{
    struct world w;
    uint32_t per_second[4];
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 256});
    for (uint32_t i = 0; i < 200; i++) {
        w.tuple.rport = (uint16_t)(1000 + i);
        nj_dsl_open(&w);
    }
    for (unsigned s = 0; s < 4; s++) {
        uint64_t before = nj_dsl_count(&w, NJ_C_tcp_challenge_ack);
        w.n_out = w.next_out = 0;
        for (uint32_t i = 0; i < 200; i++) {
            w.tuple.rport = (uint16_t)(1000 + i);
            SEND(&w, .flags = R, .seq = 100);
        }
        per_second[s] = (uint32_t)(nj_dsl_count(&w, NJ_C_tcp_challenge_ack) - before);
        cr_expect_geq(per_second[s], NJ_TCP_CHALLENGES_PER_S / 2);
        cr_expect_lt(per_second[s], NJ_TCP_CHALLENGES_PER_S * 3 / 2);
        nj_dsl_run(&w, 1 * SEC);
    }
    cr_expect(per_second[0] != per_second[1] || per_second[1] != per_second[2], "not random");
    w.n_out = w.next_out = 0;
    nj_dsl_fini(&w);
}

/* Sentence 102: a half-open connection, which is cheaper to provoke, does not use up the limit. */
Test(tcp_reset_attack, challenges_of_one_handshake_are_limited)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .mss = 1460);
    EXPECT(&w, .flags = SA, .ack = 1);
    for (unsigned i = 0; i < 300; i++)
        SEND(&w, .flags = R, .seq = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    w.tuple.rport++;
    nj_dsl_open(&w);
    SEND(&w, .flags = R, .seq = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_challenge_ack), 2);
    nj_dsl_fini(&w);
}

/* Sentence 102: challenge ACKs of half-open connections do not use up the limit of open
 * connections. */
Test(tcp_reset_attack, challenges_are_kept_for_open_connections)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.conns_max = 256, .half_open_max = 300});
    nj_dsl_open(&w);
    uint16_t ours = w.tuple.rport;
    uint32_t iss = w.iss;
    for (uint32_t i = 0; i < 300; i++) {
        w.tuple.rport = (uint16_t)(20000 + i);
        FEED(&w, .flags = S, .mss = 1460);
    }
    w.n_out = w.next_out = 0;
    for (uint32_t i = 0; i < 300; i++) {
        w.tuple.rport = (uint16_t)(20000 + i);
        SEND(&w, .flags = R, .seq = 100);
    }
    uint32_t n = (uint32_t)nj_dsl_count(&w, NJ_C_tcp_challenge_ack);
    cr_expect_geq(n, NJ_TCP_CHALLENGES_PER_S / 4);
    cr_expect_lt(n, NJ_TCP_CHALLENGES_PER_S * 3 / 4 + 1);
    w.n_out = w.next_out = 0;
    w.tuple.rport = ours;
    w.iss = iss;
    SEND(&w, .flags = R, .seq = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_challenge_ack), n + 1);
    nj_dsl_fini(&w);
}

/* Sentence 102; RFC 5961 7: challenge ACKs on one connection do not reduce the limit of others and
 * reveal nothing about them (CVE-2016-5696). */
Test(tcp_reset_attack, challenges_of_one_connection_are_limited)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (unsigned i = 0; i < 300; i++)
        SEND(&w, .flags = R, .seq = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL - MS);
    SEND(&w, .flags = S, .seq = 100);
    NOTHING(&w);
    w.tuple.rport++; /* meanwhile, on another connection */
    nj_dsl_open(&w);
    SEND(&w, .flags = R, .seq = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    w.tuple.rport--;
    nj_dsl_run(&w, MS);
    FEED(&w, .flags = S, .seq = 100);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_challenge_ack), 3);
    nj_dsl_fini(&w);
}

/* The segment gets a challenge ACK, and its text is dropped. */
static void expect_challenged(struct world *w, uint32_t ack)
{
    uint32_t n_read = w->n_read;
    uint64_t n_drops = nj_dsl_count(w, NJ_C_drop_tcp_ack);

    nj_dsl_run(w, NJ_TCP_CHALLENGE_INTERVAL);
    SEND(w, .flags = A, .seq = 1, .ack = ack, .len = 10, .flip = 1);
    EXPECT(w, .flags = A, .seq = w->tcb->snd_nxt - w->iss, .ack = 1);
    cr_expect_eq(w->n_read, n_read);
    cr_expect_eq(nj_dsl_count(w, NJ_C_drop_tcp_ack), n_drops + 1);
}

/* RFC 5961 5.2, RFC 9293 3.10.7.4, fifth; sentences 85, 86, 103 */
Test(tcp_reset_attack, acks_out_of_range_are_challenged)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.wnd = 1000;
    nj_dsl_open(&w);
    for (uint32_t i = 0; i < 4; i++) {
        WRITE(&w, 500);
        EXPECT(&w, .flags = A, .seq = 1 + i * 500, .ack = 1, .len = 500);
        SEND(&w, .flags = A, .seq = 1, .ack = 501 + i * 500);
    }
    NOTHING(&w);
    expect_challenged(&w, 2002); /* data never sent */
    expect_challenged(&w, 2001 - 1001);
    expect_challenged(&w, 0x80000000);
    SEND(&w, .flags = A, .seq = 1, .ack = 2001 - 1000, .len = 10); /* old, but in range */
    cr_expect_eq(w.n_read, 10);
    cr_expect_eq(w.tcb->snd_una - w.iss, 2001);
    nj_dsl_fini(&w);
}

/* RFC 5961 5.2: what lies below the initial number was never acknowledged, however large the window
 * is. The same after the connection was idle. Sentence 103 */
Test(tcp_reset_attack, acks_below_the_first_number_are_challenged)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .wscale_p1 = 15});
    for (unsigned i = 0; i < 2; i++) {
        expect_challenged(&w, 0);
        expect_challenged(&w, (uint32_t)-200000);
        nj_dsl_run(&w, 10 * NJ_TCP_IDLE_AFTER);
        cr_assert_null(w.tcb->x);
    }
    WRITE(&w, 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 500);
    SEND(&w, .flags = A, .seq = 1, .ack = 501);
    expect_challenged(&w, 0);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    cr_expect_eq(w.n_read, 10);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.7.4, fifth: no ACK, no text */
Test(tcp_reset_attack, segment_without_ack_is_dropped)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = 0, .seq = 1, .len = 10);
    SEND(&w, .flags = F, .seq = 1);
    NOTHING(&w);
    STATE(&w, ESTABLISHED);
    cr_expect_eq(w.n_read, 0);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.5.2; sentence 104, in every state */
Test(tcp_reset_attack, rst_is_never_answered_with_rst)
{
    static const uint8_t state[] = {NJ_TCP_ESTABLISHED, NJ_TCP_FIN_WAIT_1, NJ_TCP_FIN_WAIT_2,
                                    NJ_TCP_CLOSE_WAIT,  NJ_TCP_CLOSING,    NJ_TCP_LAST_ACK,
                                    NJ_TCP_TIME_WAIT};
    static const uint32_t seq[] = {0, 1, 2, 3, 40000, 0x90000000};
    static const uint8_t flags[] = {R, RA, R | S, RA | S, RA | F};

    for (unsigned i = 0; i < NJ_ARRAY_LEN(state); i++) {
        for (unsigned j = 0; j < NJ_ARRAY_LEN(seq) * NJ_ARRAY_LEN(flags); j++) {
            struct world w;
            struct dsl_out *o;
            nj_dsl_init(&w, NULL);
            nj_dsl_open_to(&w, (enum nj_tcp_state)state[i]);
            SEND(&w, .flags = flags[j % NJ_ARRAY_LEN(flags)], .seq = seq[j / NJ_ARRAY_LEN(flags)],
                 .ack = 12345);
            while ((o = nj_dsl_take(&w)))
                cr_expect_eq(o->seg.flags, A);
            nj_dsl_fini(&w);
        }
    }
}

/* RFC 7323 5.3, RFC 9293 3.10.7.4: a forged segment outside the window must not move TS.Recent,
 * otherwise PAWS drops all segments of the real peer. */
Test(tcp_reset_attack, paws_is_not_poisoned_from_outside_the_window)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    uint32_t future = (uint32_t)(w.now / MS) + 0x10000000;
    SEND(&w, .flags = A, .seq = 1 - 100000, .ack = 1, .len = 1, .tsval = future);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    cr_expect_eq(w.n_read, 100);
    nj_dsl_fini(&w);
}

/* RFC 7323 5.2; sentence 57 */
Test(tcp_reset_attack, rst_needs_no_timestamp)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    SEND(&w, .flags = R, .seq = 1, .no_ts = true);
    cr_expect(w.dead);
    nj_dsl_fini(&w);

    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    SEND(&w, .flags = R, .seq = 1, .tsval = 5);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* A sequence number space that wraps right here; sentences 54, 98 - 100 */
Test(tcp_reset_attack, across_the_wrap)
{
    struct world w;
    nj_dsl_init(
        &w, &(struct dsl_options){.irs = UINT32_MAX - 20, .has_iss = true, .iss = UINT32_MAX - 2});
    nj_dsl_open(&w);
    SEND(&w, .flags = R, .seq = 30);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = R, .seq = 0);
    SEND(&w, .flags = R, .seq = 70000);
    NOTHING(&w);
    nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL);
    WRITE(&w, 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    SEND(&w, .flags = A, .seq = 1, .ack = 12);
    EXPECT(&w, .flags = A, .seq = 11, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 11);
    SEND(&w, .flags = R, .seq = 1);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.4; sentence 66: a keepalive of the peer is answered. Two ends whose windows disagree
 * must not answer each other's ACKs endlessly. */
Test(tcp_reset_attack, answers_to_stray_acks_are_limited)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (unsigned i = 0; i < 50; i++)
        SEND(&w, .flags = A, .seq = 0, .ack = 1); /* like a keepalive: the sequence number before
                                                   * RCV.NXT */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 0, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = P | A, .seq = 0, .ack = 1, .len = 1); /* text is always answered */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_fini(&w);
}

/* RFC 5961 7: ACKs of unacceptable segments and challenge ACKs of a connection have separate
 * limits. */
Test(tcp_reset_attack, stray_segments_prevent_no_challenge)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (unsigned i = 0; i < 20; i++) {
        nj_dsl_run(&w, 100 * MS);
        SEND(&w, .flags = A, .seq = 0, .ack = 1);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    }
    SEND(&w, .flags = R, .seq = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_challenge_ack), 1);
    nj_dsl_run(&w, 100 * MS);
    for (unsigned i = 0; i < 2; i++)
        SEND(&w, .flags = R, .seq = 100);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 0, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    nj_dsl_fini(&w);
}
