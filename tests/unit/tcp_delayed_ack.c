/* SPDX-License-Identifier: BSD-3-Clause */
/* Delayed and quick ACKs (RFC 9293 3.8.6.3, RFC 5681 4.2). */
#include "support/tcp_dsl.h"

/* Use up the quick ACKs with full segments of `len`. Returns the sequence number of the next byte.
 */
static uint32_t talk(struct world *w, uint32_t len)
{
    uint32_t seq = 1;
    w->no_read = true; /* no window updates in between */
    for (uint32_t i = 0; i < NJ_TCP_QUICK_ACKS; i++) {
        SEND(w, .flags = A, .seq = seq, .ack = 1, .len = len);
        seq += len;
        EXPECT(w, .flags = A, .seq = 1, .ack = seq);
    }
    return seq;
}

/* RFC 5681 4.2 allows an ACK per segment; we use quick ACKs in the peer's first window. */
Test(tcp_delayed_ack, quick_at_the_start_then_every_second)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    uint32_t seq = talk(&w, 1460);
    for (uint32_t i = 0; i < 5; i++) {
        SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = 1460);
        NOTHING(&w);
        SEND(&w, .flags = A, .seq = seq + 1460, .ack = 1, .len = 1460);
        seq += 2920;
        EXPECT(&w, .flags = A, .seq = 1, .ack = seq);
    }
    nj_dsl_fini(&w);
}

/* After an idle RTO the peer restarts slow start (RFC 5681 4.1), and quick ACKs restart. */
Test(tcp_delayed_ack, quick_after_a_silence)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    uint32_t seq = talk(&w, 1460);
    nj_dsl_run(&w, w.tcb->x->rto);
    SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = 1460);
    NOTHING(&w);
    nj_dsl_run(&w, w.tcb->x->rto + 2 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = seq + 1460);
    SEND(&w, .flags = A, .seq = seq + 1460, .ack = 1, .len = 1460);
    EXPECT(&w, .flags = A, .seq = 1, .ack = seq + 2920);
    nj_dsl_fini(&w);
}

/* The ACK of a request is delayed, so that the response can carry it, for each length of the
 * request. */
Test(tcp_delayed_ack, what_is_pushed_or_short_waits)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 1460);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1461, .ack = 1, .len = 1459);
    NOTHING(&w);
    nj_dsl_run(&w, NJ_TCP_DELAYED_ACK + 2 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2920);
    nj_dsl_fini(&w);
}

/* Sentence 39; RFC 5681 4.2: the full size is that of the peer's segments, not our MSS. With our
 * 1460 only every fifth segment of 600 bytes would be acknowledged. */
Test(tcp_delayed_ack, full_size_is_the_peers)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    uint32_t seq = talk(&w, 600);
    for (uint32_t i = 0; i < 5; i++) {
        SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = 600);
        NOTHING(&w);
        SEND(&w, .flags = A, .seq = seq + 600, .ack = 1, .len = 600);
        seq += 1200;
        EXPECT(&w, .flags = A, .seq = 1, .ack = seq);
    }
    nj_dsl_fini(&w);
}

/* Small segments are not bulk data: segments of 100 bytes are not acknowledged in pairs. */
Test(tcp_delayed_ack, small_talk_waits_for_the_delay)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    for (uint32_t i = 0; i < 10; i++) {
        SEND(&w, .flags = A, .seq = 1 + 100 * i, .ack = 1, .len = 100);
        NOTHING(&w);
    }
    SEND(&w, .flags = A, .seq = 1001, .ack = 1, .len = 100); /* 2 * 536 */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1101);
    nj_dsl_fini(&w);
}

/* Sentences 40, 41, 64 and the probe of 46: these are acknowledged at once. */
Test(tcp_delayed_ack, at_once)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    SEND(&w, .flags = A | P, .seq = 101, .ack = 1, .len = 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A | P, .seq = 201, .ack = 1, .len = 10);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A | P, .seq = 1, .ack = 1, .len = 100); /* one of two holes */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 111);
    SEND(&w, .flags = A | P, .seq = 111, .ack = 1, .len = 10); /* a part of the second hole */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 121);
    SEND(&w, .flags = A | P, .seq = 121, .ack = 1, .len = 80);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 211);
    SEND(&w, .flags = FA, .seq = 211, .ack = 1);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 212);
    nj_dsl_fini(&w);
}
