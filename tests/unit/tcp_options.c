/* SPDX-License-Identifier: BSD-3-Clause */
/* Effects of the options of RFC 9293 3.2 and RFC 7323. Their parsing is tested in wire_tcp_parse.c
 * (sentences 31 - 35). */
#include "support/tcp_dsl.h"
#include "telem/counters.h"

/* The largest segment that follows a SYN with these options. */
static uint32_t segment_after(const struct dsl_seg *syn, uint16_t mtu)
{
    struct world w;
    nj_dsl_init(&w, &(struct dsl_options){.mtu = mtu});
    nj_dsl_open_with(&w, syn);
    WRITE(&w, 2000);
    struct dsl_out *o = nj_dsl_take(&w);
    uint32_t n_bytes = o->seg.payload_bytes;
    nj_dsl_fini(&w);
    return n_bytes;
}

/* RFC 9293 3.7.1 MUST-15, 16, RFC 6691; sentences 24, 25, 26 */
Test(tcp_options, mss)
{
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 0}, 1500), nj_dsl_default_mss());
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 1000}, 1500), 1000);
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 1000, .ts = true}, 1500), 988);
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 9000}, 1500), 1460);
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 9000, .ts = true}, 1500), 1448);
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 1460}, 1000), 960);
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 1}, 1500), NJ_TCP_MSS_MIN);
    cr_expect_eq(segment_after(&(struct dsl_seg){.mss = 1, .ts = true}, 1500), NJ_TCP_MSS_MIN - 12);
}

/* RFC 7323 2.2: offered, so answered; sentences 29, 30, 38 */
Test(tcp_options, are_answered_in_kind)
{
    struct world w;
    for (unsigned i = 0; i < 4; i++) {
        bool wscale = i & 1, ts = i & 2;
        nj_dsl_init(&w, NULL);
        SEND(&w, .flags = S, .mss = 1460, .wscale_p1 = wscale ? 8 : 0, .ts = ts);
        struct dsl_out *o = EXPECT(&w, .flags = SA, .ack = 1, .wnd = 65535);
        cr_expect_eq(o->seg.opts.has_wscale, wscale);
        cr_expect_eq(o->seg.opts.has_ts, ts);
        cr_expect_not(o->seg.opts.sack_permitted);
        if (ts)
            cr_expect_eq(o->seg.opts.ts_ecr, (uint32_t)(w.now / MS));
        w.ts = ts;
        SEND(&w, .flags = A, .seq = 1, .ack = 1);
        WRITE(&w, 1);
        o = EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = 1);
        cr_expect_eq(o->seg.opts.has_ts, ts);
        cr_expect_eq(o->seg.wnd, wscale ? NJ_RECV_WINDOW_BYTES >> NJ_TCP_WSCALE : 65535);
        nj_dsl_fini(&w);
    }
}

/* RFC 7323 2.3; sentences 27, 28, 30 */
Test(tcp_options, window_scale)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    w.wnd = 4;
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1000, .wscale_p1 = 1 + 7});
    cr_expect_eq(w.tcb->snd_wnd, 4 << 7);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1, .wscale_p1 = 1 + 3, .wnd = 5);
    cr_expect_eq(w.tcb->snd_wnd, 5 << 7, "a shift outside a SYN");
    nj_dsl_fini(&w);

    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1000, .wscale_p1 = 1 + 200});
    cr_expect_eq(w.tcb->snd_wnd, 65535u << 14);
    nj_dsl_fini(&w);
}

/* RFC 7323 3.2; sentence 36 */
Test(tcp_options, timestamps_on_every_segment)
{
    struct world w;
    struct dsl_out *o;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    WRITE(&w, 20000);
    SEND(&w, .flags = A, .seq = 500, .ack = 1, .len = 10);
    nj_dsl_run(&w, 2 * SEC);
    nj_dsl_close(&w);
    nj_dsl_run(&w, 2 * SEC);
    while ((o = nj_dsl_take(&w)))
        cr_expect(o->seg.opts.has_ts);
    nj_dsl_fini(&w);
}

/* RFC 7323 3.2: a middlebox removes the timestamps from some time on. The connection goes on,
 * without PAWS; our segments still carry them. Sentence 36 */
Test(tcp_options, timestamps_vanish)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_ts_missing), 0);
    uint32_t ts_recent = w.tcb->ts_recent;
    WRITE(&w, 20000);
    for (uint32_t i = 0; w.tcb->snd_una != w.iss + 20001 && i < 200; i++) {
        nj_dsl_run(&w, 10 * MS);
        SEND(&w, .flags = A, .seq = 11 + i, .ack = w.tcb->snd_nxt - w.iss, .len = 1, .no_ts = true);
        cr_expect_eq(w.n_read, 11 + i);
    }
    cr_expect_eq(w.tcb->snd_una - w.iss, 20001, "the download stopped");
    cr_expect_eq(w.tcb->ts_recent, ts_recent);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_ts_missing), w.n_read - 10);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_rto), 0);
    for (struct dsl_out *o; (o = nj_dsl_take(&w));)
        cr_expect(o->seg.opts.has_ts);
    nj_dsl_fini(&w);
}

/* What protects from a blind sender is not weaker than without timestamps (RFC 5961): neither text
 * outside the window nor with an ACK of data never sent is accepted. A SYN without timestamps is
 * challenged. */
Test(tcp_options, missing_timestamp_opens_no_door)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    SEND(&w, .flags = A, .seq = 1 + NJ_TCP_SYN_WINDOW * 8, .ack = 1, .len = 10, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 2, .len = 10, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL);
    SEND(&w, .flags = A, .seq = 1, .ack = 0, .len = 10, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_run(&w, NJ_TCP_CHALLENGE_INTERVAL);
    SEND(&w, .flags = S, .seq = 1, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(w.n_read, 0);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_ts_missing), 0);
    nj_dsl_fini(&w);
}

/* The same in the last segment of the handshake, and in TIME-WAIT. */
Test(tcp_options, timestamps_vanish_without_a_control_block)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .mss = 1460, .ts = true);
    EXPECT(&w, .flags = SA, .ack = 1);
    w.ts = true;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_ts = true);
    STATE(&w, ESTABLISHED);
    CLOSE(&w);
    EXPECT(&w, .flags = FA, .seq = 1, .ack = 1);
    SEND(&w, .flags = FA, .seq = 1, .ack = 2, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    nj_dsl_release(&w);
    cr_expect_eq(w.tcp.tcbs.n_used, 0);
    SEND(&w, .flags = FA, .seq = 1, .ack = 2, .no_ts = true);
    EXPECT(&w, .flags = A, .seq = 2, .ack = 2);
    nj_dsl_fini(&w);
}

/* RFC 7323 4.3; sentence 37 */
Test(tcp_options, echo_is_of_the_earliest_unacknowledged_segment)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    uint32_t t = (uint32_t)(w.now / MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100, .tsval = t + 1);
    SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 100, .tsval = t + 2);
    nj_dsl_run(&w, 50 * MS);
    cr_expect_eq(EXPECT(&w, .flags = A, .seq = 1, .ack = 201)->seg.opts.ts_ecr, t + 1);
    /* A hole: the echo stays with the last in-order segment. */
    SEND(&w, .flags = A, .seq = 301, .ack = 1, .len = 100, .tsval = t + 60);
    cr_expect_eq(EXPECT(&w, .flags = A, .seq = 1, .ack = 201)->seg.opts.ts_ecr, t + 1);
    SEND(&w, .flags = A, .seq = 201, .ack = 1, .len = 100, .tsval = t + 61);
    cr_expect_eq(EXPECT(&w, .flags = A, .seq = 1, .ack = 401)->seg.opts.ts_ecr, t + 61);
    nj_dsl_fini(&w);
}

/* RFC 7323 5.3; sentence 55 */
Test(tcp_options, paws)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    uint32_t t = (uint32_t)(w.now / MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100, .tsval = t + 10);
    SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 100, .tsval = t + 9);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    cr_expect_eq(w.n_read, 100);
    SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 100, .tsval = t + 10);
    cr_expect_eq(w.n_read, 200);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_paws), 1);
    nj_dsl_fini(&w);
}

/* ACKs of old segments without text are rate-limited. Otherwise two ends could answer each other
 * endlessly. */
Test(tcp_options, paws_answers_are_limited)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    uint32_t t = (uint32_t)(w.now / MS);
    for (unsigned i = 0; i < 10; i++)
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .tsval = t - 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    for (unsigned i = 0; i < 3; i++) { /* a peer that sends text waits for an answer */
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1, .tsval = t - 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    }
    nj_dsl_run(&w, NJ_TCP_STRAY_ACK_INTERVAL);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .tsval = t - 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_paws), 14);
    nj_dsl_fini(&w);
}

/* RFC 7323 5.4: the clock of the peer wraps */
Test(tcp_options, paws_across_the_wrap)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    SEND(&w, .flags = S, .ts = true, .tsval = UINT32_MAX - 1);
    EXPECT(&w, .flags = SA, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1, .ts = true, .tsval = UINT32_MAX);
    SEND(&w, .flags = A, .seq = 2, .ack = 1, .len = 1, .ts = true, .tsval = 7);
    cr_expect_eq(w.n_read, 2);
    nj_dsl_fini(&w);
}

/* RFC 7323 5.5; sentence 56 */
Test(tcp_options, paws_forgets_after_24_days)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = true});
    uint32_t t = (uint32_t)(w.now / MS);
    nj_dsl_run(&w, 23 * 24 * 3600 * SEC);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1, .tsval = t - 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_run(&w, 2 * 24 * 3600 * SEC);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1, .tsval = t - 100);
    cr_expect_eq(w.n_read, 1);
    nj_dsl_run(&w, 50 * MS);
    cr_expect_eq(EXPECT(&w, .flags = A, .seq = 1, .ack = 2)->seg.opts.ts_ecr, t - 100);
    SEND(&w, .flags = A, .seq = 2, .ack = 1, .len = 1, .tsval = t - 101);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2); /* it protects again */
    nj_dsl_fini(&w);
}
