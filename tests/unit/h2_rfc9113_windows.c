/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 5.2, 6.9: flow control in both directions. The rig checks that the server stays within
 * its send windows. */
#include "h2_rfc9113_rig.h"

static uint64_t got(struct rfc *c, uint32_t id)
{
    return rfc_stream(c, id)->n_data;
}

#define EXPECT_GOT(c, id, n)                                                                       \
    RFC_CHECK(c, got(c, id) == (n), "line %d: %d bytes on %u", __LINE__, (int)got(c, id), id)

/* ---- 6.9 the form of the frame ---- */

struct shape {
    uint32_t n, id;
};

/* "A WINDOW_UPDATE frame with a length other than 4 octets MUST be treated as a connection error of
 * type FRAME_SIZE_ERROR." */
static void bad_length(struct rfc *c, const void *arg)
{
    const struct shape *t = arg;
    snprintf(c->what, sizeof c->what, "WINDOW_UPDATE of %u on %u: ", t->n, t->id);
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_frame_head(c, t->n, RFC_WINDOW_UPDATE, 0, t->id);
    for (uint32_t i = 0; i < t->n; i++)
        rfc_bytes(c, "\1", 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
}

Test(h2_rfc9113_windows, length)
{
    static const struct shape shapes[] = {{0, 0}, {3, 0}, {5, 0}, {8, 0},
                                          {0, 1}, {3, 1}, {5, 1}, {16384, 1}};
    for (size_t i = 0; i < NJ_ARRAY_LEN(shapes); i++)
        rfc_every_way(bad_length, &shapes[i]);
}

/* "A receiver MUST treat the receipt of a WINDOW_UPDATE frame with a flow-control window increment
 * of 0 as a stream error of type PROTOCOL_ERROR; errors on the connection flow-control window MUST
 * be treated as a connection error." */
RFC_CASE(h2_rfc9113_windows, zero_on_the_connection)
{
    rfc_hello(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 0);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

RFC_CASE(h2_rfc9113_windows, zero_on_a_stream)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 0);
    rfc_go(c);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
}

/* The reserved bit is not part of the number. */
RFC_CASE(h2_rfc9113_windows, reserved_bit)
{
    c->answer_bytes = 100000;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 0x80000000u | 50000);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 0x80000000u | 50000);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_windows, zero_with_the_reserved_bit)
{
    rfc_hello(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 0x80000000u);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* ---- 6.9.1 the windows of responses ---- */

/* Both windows are 65,535 at first, and both must be open. */
RFC_CASE(h2_rfc9113_windows, both_count)
{
    c->answer_bytes = 200000;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65535);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 10);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65535);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 7);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65542);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 100000);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65545);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 200000);
    rfc_go(c);
    EXPECT_GOT(c, 1, 165542);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 200000);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    EXPECT_GOT(c, 1, 200000);
    rfc_expect_alive(c);
}

/* Responses without a body, and heads, need no window (6.9.1: only DATA counts). */
RFC_CASE(h2_rfc9113_windows, heads_need_none)
{
    c->no_body = true;
    rfc_magic(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 0);
    rfc_get(c, 1);
    rfc_head(c, 3, RFC_ENDS, RFC_FIELDS("HEAD", "/"));
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    c->no_body = false;
    rfc_get(c, 5);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 5)->status == 200 && !rfc_stream(c, 5)->ended, "no head");
    EXPECT_GOT(c, 5, 0);
    rfc_say32(c, RFC_WINDOW_UPDATE, 5, 127);
    rfc_go(c);
    EXPECT_GOT(c, 5, 127);
    rfc_say32(c, RFC_WINDOW_UPDATE, 5, 1);
    rfc_go(c);
    rfc_expect_answer(c, 5);
    rfc_expect_alive(c);
}

/* A window of one byte, again and again (h2spec 6.9.1/1). */
RFC_CASE(h2_rfc9113_windows, one_byte_each)
{
    rfc_magic(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 1);
    rfc_get(c, 1);
    rfc_go(c);
    for (uint32_t n = 1; n <= 128; n++) {
        EXPECT_GOT(c, 1, n);
        rfc_say32(c, RFC_WINDOW_UPDATE, 1, 1);
        rfc_go(c);
    }
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* Streams share the connection's window. A stream whose own window is used up does not delay the
 * others. */
RFC_CASE(h2_rfc9113_windows, stalled_stream_beside_others)
{
    c->answer_bytes = 30000;
    rfc_magic(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 10000);
    rfc_get(c, 1);
    rfc_get(c, 3);
    rfc_get(c, 5);
    rfc_go(c);
    EXPECT_GOT(c, 1, 10000);
    EXPECT_GOT(c, 5, 10000);
    rfc_say32(c, RFC_WINDOW_UPDATE, 3, 20000);
    rfc_go(c);
    rfc_expect_answer(c, 3);
    rfc_say32(c, RFC_WINDOW_UPDATE, 5, 20000);
    rfc_go(c);
    EXPECT_GOT(c, 1, 10000);
    EXPECT_GOT(c, 5, 25535);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 1u << 20);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 20000);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 5);
    rfc_expect_alive(c);
}

/* ---- 6.9.1 overflow ---- */

/* "If a sender receives a WINDOW_UPDATE that causes a flow-control window to exceed this maximum,
 * it MUST terminate either the stream or the connection": RST_STREAM or GOAWAY with
 * FLOW_CONTROL_ERROR. */
RFC_CASE(h2_rfc9113_windows, overflow_of_the_connection)
{
    rfc_hello(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, RFC_ID_MAX - RFC_FIRST_WINDOW);
    rfc_go(c);
    rfc_expect_alive(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_FLOW);
}

RFC_CASE(h2_rfc9113_windows, overflow_at_once)
{
    rfc_hello(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, RFC_ID_MAX);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_FLOW);
}

RFC_CASE(h2_rfc9113_windows, overflow_of_a_stream)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_get(c, 3);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, RFC_ID_MAX - RFC_FIRST_WINDOW);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 1)->st && !rfc_stream(c, 1)->reset, "the maximum is allowed");
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 1);
    rfc_go(c);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_FLOW));
    RFC_CHECK(c, rfc_stream(c, 1)->closed, "it is not over");
}

/* 6.9.2: "An endpoint MUST treat a change to SETTINGS_INITIAL_WINDOW_SIZE that causes any
 * flow-control window to exceed the maximum size as a connection error of type
 * FLOW_CONTROL_ERROR." */
RFC_CASE(h2_rfc9113_windows, overflow_by_settings)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 1000);
    rfc_go(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, RFC_ID_MAX - 999);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_FLOW);
}

RFC_CASE(h2_rfc9113_windows, maximum_by_settings)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 1000);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, RFC_ID_MAX - 1000);
    rfc_go(c);
    rfc_answer(c, 1, 1000);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* ---- 6.9.2 changes of INITIAL_WINDOW_SIZE ---- */

/* "a receiver MUST adjust the size of all stream flow-control windows that it maintains by the
 * difference between the new value and the old value"; the connection's does not change. */
RFC_CASE(h2_rfc9113_windows, grows)
{
    c->answer_bytes = 100;
    rfc_magic(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 3);
    rfc_get(c, 1);
    rfc_get(c, 3);
    rfc_go(c);
    EXPECT_GOT(c, 1, 3);
    rfc_say32(c, RFC_WINDOW_UPDATE, 3, 10);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 20);
    rfc_get(c, 5);
    rfc_go(c);
    EXPECT_GOT(c, 1, 20);
    EXPECT_GOT(c, 3, 30);
    EXPECT_GOT(c, 5, 20);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 100);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    rfc_expect_answer(c, 5);
    rfc_expect_alive(c);
}

/* "A change to SETTINGS_INITIAL_WINDOW_SIZE can cause the available space in a flow-control window
 * to become negative. A sender MUST track the negative flow-control window and MUST NOT send new
 * flow-controlled frames until it receives WINDOW_UPDATE frames that cause the flow-control window
 * to become positive." */
RFC_CASE(h2_rfc9113_windows, negative)
{
    c->answer_bytes = 100;
    rfc_magic(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 60);
    rfc_get(c, 1);
    rfc_go(c);
    EXPECT_GOT(c, 1, 60);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 10);
    rfc_go(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 49);
    rfc_go(c);
    EXPECT_GOT(c, 1, 60);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 1);
    rfc_go(c);
    EXPECT_GOT(c, 1, 60);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 1);
    rfc_go(c);
    EXPECT_GOT(c, 1, 61);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 0);
    rfc_go(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 20);
    rfc_go(c);
    EXPECT_GOT(c, 1, 71);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 1000);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* From the maximum down to zero, and back. */
RFC_CASE(h2_rfc9113_windows, very_negative)
{
    c->answer_bytes = 70000;
    rfc_magic(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, RFC_ID_MAX);
    rfc_get(c, 1);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65535);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 0);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 100000);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65535);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 65535);
    rfc_go(c);
    EXPECT_GOT(c, 1, 65535);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 4465);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* Streams that are half closed, or not answered yet, have windows, too. */
RFC_CASE(h2_rfc9113_windows, of_requests_without_answer)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_post(c, 3);
    rfc_go(c);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 5);
    rfc_say32(c, RFC_WINDOW_UPDATE, 3, 6);
    rfc_go(c);
    rfc_answer(c, 1, 100);
    rfc_answer(c, 3, 100);
    rfc_go(c);
    EXPECT_GOT(c, 1, 5);
    EXPECT_GOT(c, 3, 11);
    rfc_setting(c, RFC_INITIAL_WINDOW_SIZE, 100);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 3, 20);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    rfc_expect_alive(c);
}

/* ---- the windows of requests, which the server gives ---- */

/* A client that stays within its windows can send any amount. The windows never exceed 2^31-1. */
RFC_CASE(h2_rfc9113_windows, upload)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    uint64_t n_sent = 0, total = 3u << 20;
    while (n_sent < total) {
        uint64_t conn = RFC_FIRST_WINDOW + c->given,
                 own = c->setting[RFC_INITIAL_WINDOW_SIZE] + s->given;
        uint64_t left = (conn < own ? conn : own) - n_sent;
        if (left == 0 || c->over)
            break;
        uint32_t n = left < 16384 ? (uint32_t)left : 16384;
        rfc_say_zeros(c, RFC_DATA, 0, 1, n);
        n_sent += n;
        rfc_go(c);
        RFC_CHECK(c, RFC_FIRST_WINDOW + c->given - n_sent <= RFC_ID_MAX, "the window");
    }
    RFC_CHECK(c, n_sent >= total && s->n_body == n_sent, "stuck after %d", (int)n_sent);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 0);
    rfc_go(c);
    RFC_CHECK(c, s->body_ended, "no end");
    rfc_expect_alive(c);
}

/* 6.9.1: "A receiver MAY respond with a stream error or connection error of type
 * FLOW_CONTROL_ERROR if it is unable to accept a frame" beyond the window. Without it a reader that
 * waits would not bound anything. */
static void beyond(struct rfc *c, bool padded)
{
    c->hold = c->keep = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    uint64_t own = c->setting[RFC_INITIAL_WINDOW_SIZE], n_sent = 0;
    RFC_CHECK(c, RFC_FIRST_WINDOW + c->given > own, "the connection's window is the smaller one");
    while (n_sent < own) {
        uint32_t n = own - n_sent < 16384 ? (uint32_t)(own - n_sent) : 16384;
        rfc_say_zeros(c, RFC_DATA, padded ? RFC_PADDED : 0, 1, n);
        n_sent += n;
    }
    rfc_go(c);
    RFC_CHECK(c, !c->over && !s->reset && s->n_body <= own, "the window itself");
    if (padded)
        return;
    rfc_say_zeros(c, RFC_DATA, 0, 1, 20);
    rfc_go(c);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_FLOW));
    RFC_CHECK(c, s->n_body == own, "more than the window is shown");
}

RFC_CASE(h2_rfc9113_windows, client_goes_beyond)
{
    beyond(c, false);
}

/* 6.1: "The entire DATA frame payload is included in flow control, including the Pad Length and
 * Padding fields if present." */
RFC_CASE(h2_rfc9113_windows, padding_counts)
{
    beyond(c, true);
}

/* Many streams together beyond the connection's window. */
RFC_CASE(h2_rfc9113_windows, client_goes_beyond_the_connection)
{
    c->hold = c->keep = true;
    rfc_hello(c);
    rfc_go(c);
    uint64_t conn = RFC_FIRST_WINDOW + c->given, own = c->setting[RFC_INITIAL_WINDOW_SIZE];
    uint64_t n_sent = 0;
    uint32_t id = 1;
    for (; n_sent < conn; id += 2) {
        rfc_post(c, id);
        for (uint64_t at = 0; at < own && n_sent < conn;) {
            uint64_t n = own - at < conn - n_sent ? own - at : conn - n_sent;
            n = n < 16384 ? n : 16384;
            rfc_say_zeros(c, RFC_DATA, 0, id, n);
            at += n;
            n_sent += n;
        }
    }
    rfc_go(c);
    RFC_CHECK(c, !c->over && c->n_shown == (id - 1) / 2, "the window itself");
    rfc_post(c, id);
    rfc_say_zeros(c, RFC_DATA, 0, id, 20);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_FLOW);
}

/* 5.1: "the content of DATA frames counts toward the connection flow-control window" also where it
 * is thrown away, so it must be given back: of streams that were reset by either side, ended, or
 * never read. */
static void thrown_away(struct rfc *c, int who)
{
    c->hold = c->keep = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    if (who == 0)
        nj_h2_reset_stream(rfc_stream(c, 1)->st, 8);
    if (who == 1)
        rfc_answer(c, 1, 128);
    rfc_go(c);
    uint64_t n_sent = 0, own = c->setting[RFC_INITIAL_WINDOW_SIZE];
    /* The client may not know of the reset yet: it sends one window of the stream. */
    for (; n_sent + 16384 <= own && !c->over; n_sent += 16384) {
        rfc_say_zeros(c, RFC_DATA, 0, 1, 16384);
        rfc_go(c);
    }
    uint64_t first = c->given;
    rfc_post(c, 3);
    for (uint32_t i = 0; i < 4 && who == 2; i++)
        rfc_go(c);
    if (who == 2)
        rfc_say32(c, RFC_RST_STREAM, 1, 8);
    rfc_go(c);
    RFC_CHECK(c, !c->over, "the connection ended with %u", c->goaway_code);
    /* The rest of the window may be returned late, but at most half of it may be kept. */
    uint64_t conn = RFC_FIRST_WINDOW + c->given - n_sent;
    RFC_CHECK(c, conn >= own, "only %d are left, %d of them since", (int)conn,
              (int)(c->given - first));
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_windows, given_back_after_our_reset)
{
    thrown_away(c, 0);
}

RFC_CASE(h2_rfc9113_windows, given_back_after_our_answer)
{
    thrown_away(c, 1);
}

RFC_CASE(h2_rfc9113_windows, given_back_after_their_reset)
{
    thrown_away(c, 2);
}
