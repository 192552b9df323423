/* SPDX-License-Identifier: BSD-3-Clause */
/* Segment arrival in synchronized states: the echo of ECN marks (RFC 3168 6.1.3). Other steps are
 * tested by subject: tcp_receive.c, tcp_closing.c, tcp_reset_attack.c. */
#include "support/tcp_dsl.h"

#define E  NJ_TCP_ECE
#define CE NJ_ECN_CE

static void open_ecn(struct world *w)
{
    nj_dsl_init(w, NULL);
    nj_dsl_open(w);
    w->tcb->ecn_on = true;
}

/* Sentence 93; RFC 3168 6.1.3: ECE on every ACK, pure or not, until CWR. */
Test(tcp_input_synchronized, marks_are_echoed_until_cwr)
{
    struct world w;
    open_ecn(&w);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 100, .ecn = NJ_ECN_ECT_0);
    NOTHING(&w);
    SEND(&w, .flags = A | P, .seq = 101, .ack = 1, .len = 100, .ecn = CE);
    EXPECT(&w, .flags = A | E, .seq = 1, .ack = 201); /* at once */
    SEND(&w, .flags = A | P, .seq = 201, .ack = 1, .len = 100, .ecn = NJ_ECN_ECT_0);
    NOTHING(&w); /* no news */
    WRITE(&w, 10);
    EXPECT(&w, .flags = A | E, .seq = 1, .ack = 301, .len = 10);
    SEND(&w, .flags = A | P, .seq = 401, .ack = 11, .len = 100, .ecn = CE); /* ahead of its turn */
    EXPECT(&w, .flags = A | E, .seq = 11, .ack = 301);
    SEND(&w, .flags = A | P | NJ_TCP_CWR, .seq = 301, .ack = 11, .len = 50, .ecn = NJ_ECN_ECT_0);
    EXPECT(&w, .flags = A, .seq = 11, .ack = 351);
    SEND(&w, .flags = A | P, .seq = 351, .ack = 11, .len = 50, .ecn = NJ_ECN_ECT_0);
    EXPECT(&w, .flags = A, .seq = 11, .ack = 501);
    nj_dsl_fini(&w);
}

/* A mark on the segment with CWR is new. */
Test(tcp_input_synchronized, mark_with_cwr)
{
    struct world w;
    open_ecn(&w);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 100, .ecn = CE);
    EXPECT(&w, .flags = A | E, .seq = 1, .ack = 101);
    SEND(&w, .flags = A | P | NJ_TCP_CWR, .seq = 101, .ack = 1, .len = 100, .ecn = CE);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A | E, .seq = 1, .ack = 201);
    nj_dsl_fini(&w);
}

/* RFC 3168 6.1.4, 6.1.5: marks on empty, unacceptable or duplicate segments are ignored. */
Test(tcp_input_synchronized, marks_that_do_not_count)
{
    struct world w;
    open_ecn(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .ecn = CE);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1 + 300000, .ack = 1, .len = 10, .ecn = CE);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 100);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 100, .ecn = CE);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    nj_dsl_fini(&w);
}

/* Without negotiation no ECE is sent. */
Test(tcp_input_synchronized, marks_without_ecn)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 100, .ecn = CE);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    nj_dsl_fini(&w);
}
