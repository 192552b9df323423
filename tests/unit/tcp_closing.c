/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing of connections: RFC 9293 3.6, 3.10.4, 3.10.5 and the second half of 3.10.7.4. */
#include "support/tcp_dsl.h"
#include "telem/counters.h"

/* RFC 9293 3.6 figure 12 */
Test(tcp_closing, we_close_first)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    WRITE(&w, 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    CLOSE(&w);
    EXPECT(&w, .flags = FA, .seq = 101, .ack = 1);
    STATE(&w, FIN_WAIT_1);
    cr_expect_eq(nj_tcp_send_room(w.tcb), 0);
    SEND(&w, .flags = A, .seq = 1, .ack = 101);
    STATE(&w, FIN_WAIT_1);
    SEND(&w, .flags = A, .seq = 1, .ack = 102);
    STATE(&w, FIN_WAIT_2);
    SEND(&w, .flags = FA, .seq = 1, .ack = 102);
    EXPECT(&w, .flags = A, .seq = 102, .ack = 2);
    STATE(&w, TIME_WAIT);
    cr_expect(w.events & NJ_TCP_EV_PEER_FIN);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.6 figure 12, seen by the other end; sentence 113 */
Test(tcp_closing, peer_closes_first)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = FA, .seq = 1, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2);
    STATE(&w, CLOSE_WAIT);
    WRITE(&w, 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2, .len = 10);
    CLOSE(&w);
    EXPECT(&w, .flags = FA, .seq = 11, .ack = 2);
    STATE(&w, LAST_ACK);
    SEND(&w, .flags = A, .seq = 2, .ack = 11);
    STATE(&w, LAST_ACK);
    SEND(&w, .flags = A, .seq = 2, .ack = 12);
    NO_CONNECTION(&w);
    cr_expect(w.dead);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_closed), 1);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.4, RFC 2525 2.17; sentence 105 */
Test(tcp_closing, release_with_unread_data_resets)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    w.no_read = true;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    nj_dsl_close(&w);
    nj_dsl_release(&w);
    nj_dsl_step(&w);
    EXPECT(&w, .flags = RA, .seq = 1, .ack = 11);
    NOTHING(&w);
    NO_CONNECTION(&w);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.5; sentence 114, in every state in which ABORT sends a RST */
Test(tcp_closing, abort_resets)
{
    static const uint8_t state[] = {NJ_TCP_ESTABLISHED, NJ_TCP_FIN_WAIT_1, NJ_TCP_FIN_WAIT_2,
                                    NJ_TCP_CLOSE_WAIT,  NJ_TCP_CLOSING,    NJ_TCP_LAST_ACK,
                                    NJ_TCP_TIME_WAIT};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(state); i++) {
        for (unsigned release = 0; release < 2; release++) {
            struct world w;
            nj_dsl_init(&w, NULL);
            nj_dsl_open_to(&w, (enum nj_tcp_state)state[i]);
            nj_dsl_abort(&w);
            if (release) {
                nj_dsl_release(&w);
            } else {
                nj_dsl_step(&w);
                cr_expect(w.dead);
            }
            struct dsl_out *o = nj_dsl_take(&w);
            cr_expect_eq(o != NULL, state[i] != NJ_TCP_TIME_WAIT);
            if (o)
                cr_expect_eq(o->seg.flags, RA);
            NOTHING(&w);
            NO_CONNECTION(&w);
            nj_dsl_fini(&w);
        }
    }
}

/* RFC 9293 3.6; sentence 106 */
Test(tcp_closing, half_close_still_receives)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_to(&w, NJ_TCP_FIN_WAIT_2);
    for (uint32_t i = 0; i < 10; i++)
        SEND(&w, .flags = A, .seq = 1 + i * 1460, .ack = 2, .len = 1460);
    cr_expect_eq(w.n_read, 14600);
    w.next_out = w.n_out;
    SEND(&w, .flags = FA, .seq = 14601, .ack = 2, .len = 5);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 14607);
    cr_expect_eq(w.n_read, 14605);
    STATE(&w, TIME_WAIT);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.8.1; sentence 107, in every state that may have lost one */
Test(tcp_closing, fin_is_sent_again)
{
    static const uint8_t state[] = {NJ_TCP_FIN_WAIT_1, NJ_TCP_CLOSING, NJ_TCP_LAST_ACK};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(state); i++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_to(&w, (enum nj_tcp_state)state[i]);
        uint32_t ack = state[i] == NJ_TCP_FIN_WAIT_1 ? 1 : 2;
        nj_dsl_run(&w, 205 * MS);
        EXPECT(&w, .flags = FA, .seq = 1, .ack = ack);
        nj_dsl_run(&w, 405 * MS);
        EXPECT(&w, .flags = FA, .seq = 1, .ack = ack);
        NOTHING(&w);
        nj_dsl_run(&w, 200 * SEC);
        cr_expect(w.dead);
        nj_dsl_fini(&w);
    }
}

/* Text and FIN are lost together; the FIN does not fit in the first segment. */
Test(tcp_closing, text_and_fin_are_sent_again)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    nj_dsl_write(&w, 2000);
    CLOSE(&w);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 1460);
    EXPECT(&w, .flags = FA, .seq = 1461, .ack = 1, .len = 540);
    nj_dsl_run(&w, 205 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 1460);
    SEND(&w, .flags = A, .seq = 1, .ack = 1461);
    EXPECT(&w, .flags = FA, .seq = 1461, .ack = 1, .len = 540);
    SEND(&w, .flags = A, .seq = 1, .ack = 2001);
    NOTHING(&w);
    STATE(&w, FIN_WAIT_1);
    nj_dsl_run(&w, 450 * MS);
    EXPECT(&w, .flags = FA, .seq = 2001, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 2002);
    STATE(&w, FIN_WAIT_2);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.6 figure 13; sentence 108 */
Test(tcp_closing, simultaneous_close)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_to(&w, NJ_TCP_FIN_WAIT_1);
    SEND(&w, .flags = FA, .seq = 1, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    STATE(&w, CLOSING);
    SEND(&w, .flags = A, .seq = 2, .ack = 2);
    STATE(&w, TIME_WAIT);
    NOTHING(&w);
    nj_dsl_run(&w, 61 * SEC);
    cr_expect(w.dead);
    nj_dsl_fini(&w);
}

/* The peer's FIN arrives while our FIN waits behind data that the send window does not allow yet.
 */
Test(tcp_closing, fin_waits_behind_a_closed_window)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.wnd = 100;
    nj_dsl_open(&w);
    nj_dsl_write(&w, 150);
    CLOSE(&w);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    SEND(&w, .flags = FA, .seq = 1, .ack = 101, .no_wnd = true);
    EXPECT(&w, .flags = A, .seq = 101, .ack = 2);
    STATE(&w, CLOSING);
    nj_dsl_run(&w, 205 * MS);
    EXPECT(&w, .flags = A, .seq = 101, .ack = 2, .len = 1); /* probe, taken */
    SEND(&w, .flags = A, .seq = 2, .ack = 102, .no_wnd = true);
    SEND(&w, .flags = A, .seq = 2, .ack = 102);
    EXPECT(&w, .flags = FA, .seq = 102, .ack = 2, .len = 49);
    SEND(&w, .flags = A, .seq = 2, .ack = 152);
    STATE(&w, TIME_WAIT);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* Our FIN is the probe, and the peer acknowledges it. */
Test(tcp_closing, fin_goes_out_with_the_probe)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.wnd = 100;
    nj_dsl_open(&w);
    nj_dsl_write(&w, 101);
    CLOSE(&w);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    SEND(&w, .flags = A, .seq = 1, .ack = 101, .no_wnd = true);
    nj_dsl_run(&w, 205 * MS);
    EXPECT(&w, .flags = FA, .seq = 101, .ack = 1, .len = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 103, .no_wnd = true);
    STATE(&w, FIN_WAIT_2);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.6 and the orphan's limit; sentence 109 */
Test(tcp_closing, orphan_in_fin_wait_2)
{
    for (unsigned early = 0; early < 2; early++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_to(&w, early ? NJ_TCP_FIN_WAIT_1 : NJ_TCP_FIN_WAIT_2);
        cr_expect_eq(nj_tcp_conns_less_fin2_orphans(&w.tcp), 1);
        nj_dsl_release(&w);
        cr_expect_eq(nj_tcp_conns_less_fin2_orphans(&w.tcp), early);
        SEND(&w, .flags = A, .seq = 1, .ack = 2);
        STATE(&w, FIN_WAIT_2);
        cr_expect_eq(nj_tcp_conns(&w.tcp), 1);
        cr_expect_eq(nj_tcp_conns_less_fin2_orphans(&w.tcp), 0);
        nj_dsl_run(&w, 59 * SEC);
        STATE(&w, FIN_WAIT_2);
        nj_dsl_run(&w, 2 * SEC);
        NO_CONNECTION(&w);
        cr_expect_eq(nj_tcp_conns_less_fin2_orphans(&w.tcp), 0);
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.6.1: data for an orphan */
Test(tcp_closing, orphan_resets_on_new_text)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_to(&w, NJ_TCP_FIN_WAIT_2);
    nj_dsl_release(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 2, .len = 10);
    EXPECT(&w, .flags = R, .seq = 2);
    NO_CONNECTION(&w);
    nj_dsl_fini(&w);
}

/* An orphan whose peer keeps its window closed and answers every probe ends after a limited time.
 */
Test(tcp_closing, orphan_with_a_closed_window)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    nj_dsl_write(&w, 1000);
    CLOSE(&w);
    nj_dsl_release(&w);
    w.next_out = w.n_out;
    nj_ns begun = w.now;
    while (nj_dsl_find(&w) && w.now - begun < 1000 * SEC) {
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_wnd = true);
        nj_dsl_run(&w, 1 * SEC);
    }
    cr_expect_lt(w.now - begun, 200 * SEC);
    nj_dsl_fini(&w);
}

/* A peer that acknowledges a byte now and then makes progress, but the limit of orphans applies,
 * and ends with a RST. */
Test(tcp_closing, orphan_with_a_reader_of_single_bytes)
{
    for (unsigned theirs = 0; theirs < 2; theirs++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_to(&w, theirs ? NJ_TCP_CLOSE_WAIT : NJ_TCP_ESTABLISHED);
        nj_dsl_write(&w, 1000);
        CLOSE(&w);
        nj_dsl_release(&w);
        nj_ns begun = w.now;
        uint32_t taken = 0;
        struct dsl_out *o, *last = NULL;
        while (nj_dsl_find(&w) && w.now - begun < 1000 * SEC) {
            taken++;
            w.n_out = w.next_out = 0;
            SEND(&w, .flags = A, .seq = 1 + theirs, .ack = 1 + taken);
            nj_dsl_run(&w, 10 * SEC);
        }
        while ((o = nj_dsl_take(&w)))
            last = o;
        cr_assert_not_null(last);
        cr_expect_eq(last->seg.flags, RA);
        nj_ns due = begun + NJ_TCP_ORPHAN_MAX;
        cr_expect(last->at >= due && last->at < due + 2 * MS, "after %lu ms",
                  (unsigned long)((last->at - begun) / MS));
        cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_aborted), 1);
        NO_CONNECTION(&w);
        nj_dsl_fini(&w);
    }
}

/* An orphan sends all queued data in order, in spite of losses. */
Test(tcp_closing, orphan_finishes)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = FA, .seq = 1, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2);
    nj_dsl_write(&w, 100);
    nj_dsl_close(&w);
    nj_dsl_release(&w);
    nj_dsl_step(&w);
    EXPECT(&w, .flags = FA, .seq = 1, .ack = 2, .len = 100);
    nj_dsl_run(&w, 205 * MS);
    EXPECT(&w, .flags = FA, .seq = 1, .ack = 2, .len = 100);
    SEND(&w, .flags = A, .seq = 2, .ack = 102);
    NO_CONNECTION(&w);
    nj_dsl_fini(&w);
}

/* RFC 9293 3.10.4: a second CLOSE has no effect. */
Test(tcp_closing, close_twice)
{
    static const uint8_t state[] = {NJ_TCP_FIN_WAIT_1, NJ_TCP_FIN_WAIT_2, NJ_TCP_CLOSING,
                                    NJ_TCP_LAST_ACK, NJ_TCP_TIME_WAIT};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(state); i++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_to(&w, (enum nj_tcp_state)state[i]);
        CLOSE(&w);
        NOTHING(&w);
        cr_expect_eq(nj_dsl_find(&w)->state, state[i]);
        nj_dsl_fini(&w);
    }
}

/* Release in every state, followed by every kind of segment; pools are checked at the end. */
Test(tcp_closing, released_in_every_state)
{
    static const uint8_t state[] = {NJ_TCP_ESTABLISHED, NJ_TCP_FIN_WAIT_1, NJ_TCP_FIN_WAIT_2,
                                    NJ_TCP_CLOSE_WAIT,  NJ_TCP_CLOSING,    NJ_TCP_LAST_ACK,
                                    NJ_TCP_TIME_WAIT};
    static const uint8_t flags[] = {A, FA, R, S, SA, 0};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(state) * NJ_ARRAY_LEN(flags) * 3 * 3 * 2; i++) {
        struct world w;
        unsigned j = i;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_to(&w, (enum nj_tcp_state)state[j % NJ_ARRAY_LEN(state)]);
        j /= NJ_ARRAY_LEN(state);
        nj_dsl_release(&w);
        uint8_t f = flags[j % NJ_ARRAY_LEN(flags)];
        j /= NJ_ARRAY_LEN(flags);
        SEND(&w, .flags = f, .seq = j % 3, .ack = j / 3 % 3, .len = j / 9 * 10);
        nj_dsl_run(&w, 10 * SEC);
        SEND(&w, .flags = f, .seq = j % 3, .ack = j / 3 % 3, .len = j / 9 * 10);
        nj_dsl_run(&w, 200 * SEC);
        NO_CONNECTION(&w);
        nj_dsl_fini(&w);
    }
}

/* Sentence 115 */
Test(tcp_closing, many_connections_leave_nothing_behind)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    for (uint32_t i = 0; i < 20000; i++) {
        w.tuple.rport = (uint16_t)(1024 + i % 60000);
        w.n_out = w.next_out = 0;
        nj_dsl_open(&w);
        SEND(&w, .flags = FA, .seq = 1, .ack = 1, .len = 100);
        nj_dsl_write(&w, 3000);
        if (i % 2) {
            nj_dsl_close(&w);
            nj_dsl_release(&w);
            nj_dsl_step(&w);
            SEND(&w, .flags = A, .seq = 102, .ack = 3002);
        } else {
            nj_dsl_abort(&w);
            nj_dsl_step(&w);
        }
        cr_assert_eq(w.tcp.tcbs.n_used, 0);
    }
    cr_expect_eq(w.tcp.tcbs.n_touched, 1);
    nj_dsl_fini(&w);
}
