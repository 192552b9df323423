/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 6: the rules of each frame type except SETTINGS and WINDOW_UPDATE. */
#include "h2_rfc9113_rig.h"

/* ---- 6.1 DATA ---- */

/* "If a DATA frame is received whose Stream Identifier field is 0x00, the recipient MUST respond
 * with a connection error of type PROTOCOL_ERROR." */
RFC_CASE(h2_rfc9113_data, on_the_connection)
{
    rfc_hello(c);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 0, 20);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

struct padding {
    uint32_t n, pad;
};

static void padded_data(struct rfc *c, const void *arg)
{
    const struct padding *t = arg;
    uint8_t p[300] = {(uint8_t)t->pad};
    snprintf(c->what, sizeof c->what, "%u bytes, %u of padding: ", t->n, t->pad);
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say(c, RFC_DATA, RFC_PADDED | RFC_END_STREAM, 1, p, t->n);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    if (t->n == 0) { /* 4.2: a frame too small for its mandatory fields */
        rfc_expect_over(c, RFC_E_SIZE | RFC_E_PROTOCOL);
    } else if (t->pad >= t->n) {
        rfc_expect_over(c, RFC_E_PROTOCOL);
    } else {
        RFC_CHECK(c, s->body_ended && s->n_body == t->n - 1 - t->pad, "%u shown",
                  (unsigned)s->n_body);
        rfc_expect_alive(c);
    }
    RFC_CHECK(c, !c->over || !s->body_ended, "its end is shown");
}

/* "If the length of the padding is the length of the frame payload or greater, the recipient MUST
 * treat this as a connection error of type PROTOCOL_ERROR." */
Test(h2_rfc9113_data, padding)
{
    static const struct padding paddings[] = {{0, 0},   {1, 0},     {1, 1},     {1, 255}, {2, 1},
                                              {2, 2},   {5, 4},     {5, 5},     {20, 0},  {20, 19},
                                              {20, 20}, {256, 255}, {255, 255}, {300, 7}};
    for (size_t i = 0; i < NJ_ARRAY_LEN(paddings); i++)
        rfc_every_way(padded_data, &paddings[i]);
}

/* Padding need not be zero, and a receiver may object ("A receiver is not obligated to verify
 * padding but MAY treat non-zero padding as a connection error of type PROTOCOL_ERROR"). */
RFC_CASE(h2_rfc9113_data, padding_of_ones)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say(c, RFC_DATA, RFC_PADDED | RFC_END_STREAM, 1, "\4abcd\1\2\3\4", 9);
    rfc_go(c);
    rfc_expect(c, 1, (struct rfc_may){.conn = RFC_E_PROTOCOL, .ignored = true});
    RFC_CHECK(c, c->over || rfc_stream(c, 1)->n_body == 4, "padding is shown");
}

/* A body of many pieces, empty ones among them; its end in an empty frame. */
RFC_CASE(h2_rfc9113_data, body)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_post(c, 3);
    for (uint32_t i = 0; i < 20; i++) {
        rfc_say_zeros(c, RFC_DATA, 0, 1, i * 37);
        rfc_say_zeros(c, RFC_DATA, 0, 3, 1);
    }
    rfc_say_zeros(c, RFC_DATA, 0, 3, 16384);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 0);
    rfc_go(c);
    struct rfc_stream *one = rfc_stream(c, 1), *three = rfc_stream(c, 3);
    RFC_CHECK(c, one->n_body == 190 * 37 && one->body_ended, "%d", (int)one->n_body);
    RFC_CHECK(c, three->n_body == 20 + 16384 && !three->body_ended, "%d", (int)three->n_body);
    rfc_answer(c, 1, 128);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 3, 1);
    rfc_go(c);
    rfc_answer(c, 3, 128);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    rfc_expect_alive(c);
}

/* ---- 6.2 HEADERS ---- */

RFC_CASE(h2_rfc9113_headers, on_the_connection)
{
    rfc_hello(c);
    rfc_get(c, 0);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

struct head_padding {
    uint32_t pad, cut; /* the block ends that many bytes early */
    bool priority, good;
};

/* "the padding ... exceeds the size remaining for the field block fragment MUST be treated as a
 * PROTOCOL_ERROR", of the connection. */
static void padded_headers(struct rfc *c, const void *arg)
{
    const struct head_padding *t = arg;
    const struct rfc_block *get = rfc_block(RFC_GET, NULL);
    struct rfc_block b = {.n = 0};
    uint8_t zeros[256] = {0}, pad = (uint8_t)t->pad;
    snprintf(c->what, sizeof c->what, "%u of padding, %d: ", t->pad, t->priority);
    rfc_put_bytes(&b, &pad, 1);
    if (t->priority)
        rfc_put_bytes(&b, "\0\0\0\0\x10", 5);
    rfc_put_bytes(&b, get->p, get->n);
    rfc_put_bytes(&b, zeros, t->good ? t->pad : 0);
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, (uint8_t)(RFC_ENDS | RFC_PADDED | (t->priority ? RFC_PRI : 0)), 1, b.p,
            b.n - t->cut);
    rfc_go(c);
    if (!t->good) {
        rfc_expect_over(c, RFC_E_PROTOCOL | (b.n - t->cut < 6 ? RFC_E_SIZE : 0));
        return;
    }
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

Test(h2_rfc9113_headers, padding)
{
    uint32_t n = (uint32_t)rfc_block(RFC_GET, NULL)->n;
    const struct head_padding paddings[] = {
        {0, 0, false, true},     {1, 0, false, true},     {255, 0, false, true},
        {0, 0, true, true},      {255, 0, true, true},    {n + 1, 0, false, false},
        {255, 0, false, false},  {n + 1, 0, true, false}, {n + 6, 0, true, false},
        {255, 0, true, false},   {1, n, false, false},    {4, n + 3, true, false},
        {0, n + 5, true, false}, {0, n + 6, true, false}, {0, n + 1, false, false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(paddings); i++)
        rfc_every_way(padded_headers, &paddings[i]);
}

/* ---- 6.4 RST_STREAM ---- */

RFC_CASE(h2_rfc9113_rst_stream, on_the_connection)
{
    rfc_hello(c);
    rfc_say32(c, RFC_RST_STREAM, 0, 8);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* "A RST_STREAM frame with a length other than 4 octets MUST be treated as a connection error of
 * type FRAME_SIZE_ERROR." */
static void rst_stream_length(struct rfc *c, const void *arg)
{
    uint32_t n = *(const uint32_t *)arg;
    snprintf(c->what, sizeof c->what, "%u bytes: ", n);
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_say_zeros(c, RFC_RST_STREAM, 0, 1, n);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
}

Test(h2_rfc9113_rst_stream, length)
{
    static const uint32_t sizes[] = {0, 1, 3, 5, 8, 16384};
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++)
        rfc_every_way(rst_stream_length, &sizes[i]);
}

/* A reset in the middle of a response: the stream sends nothing more, and other streams continue.
 */
RFC_CASE(h2_rfc9113_rst_stream, in_a_response)
{
    c->answer_bytes = 1000000;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 1)->n_data == RFC_FIRST_WINDOW, "%d bytes",
              (int)rfc_stream(c, 1)->n_data);
    rfc_say32(c, RFC_RST_STREAM, 1, 8);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 1000000);
    rfc_get(c, 3);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, s->closed && !s->complete && s->n_data == RFC_FIRST_WINDOW && !s->reset, "more");
    RFC_CHECK(c, rfc_stream(c, 3)->n_data == RFC_FIRST_WINDOW,
              "the other stream does not continue");
    rfc_expect_alive(c);
}

/* ---- 6.6 PUSH_PROMISE, 8.4 ---- */

/* "A client cannot push. Thus, servers MUST treat the receipt of a PUSH_PROMISE frame as a
 * connection error of type PROTOCOL_ERROR." */
RFC_CASE(h2_rfc9113_push_promise, on_a_stream)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say(c, RFC_PUSH_PROMISE, RFC_END_HEADERS, 1, "\0\0\0\2\x82\x86\x84\x41\1h", 10);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

RFC_CASE(h2_rfc9113_push_promise, on_the_connection)
{
    rfc_hello(c);
    rfc_say(c, RFC_PUSH_PROMISE, RFC_END_HEADERS, 0, "\0\0\0\2\x82\x86\x84\x41\1h", 10);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

RFC_CASE(h2_rfc9113_push_promise, on_an_idle_stream)
{
    rfc_hello(c);
    rfc_say(c, RFC_PUSH_PROMISE, RFC_END_HEADERS, 3, "\0\0\0\5\x82\x86\x84\x41\1h", 10);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* ---- 6.7 PING ---- */

/* "an identical frame payload", in order; "Receivers of a PING frame that does not include an ACK
 * flag MUST send a PING frame with the ACK flag set in response". */
RFC_CASE(h2_rfc9113_ping, answers)
{
    rfc_hello(c);
    for (uint64_t i = 1; i <= 50; i++) {
        uint64_t payload = i * 0x0123456789abcdefu;
        rfc_say(c, RFC_PING, 0, 0, &payload, 8);
        if (i % 20 == 0)
            rfc_go(c);
    }
    rfc_go(c);
    RFC_CHECK(c, c->n_pings == 50, "%u answers", c->n_pings);
    rfc_expect_alive(c);
}

/* "A PING frame with the ACK flag set MUST NOT be responded to". An ACK without a PING is no error.
 */
RFC_CASE(h2_rfc9113_ping, ack_is_not_answered)
{
    rfc_hello(c);
    rfc_say_zeros(c, RFC_PING, RFC_ACK, 0, 8);
    rfc_go(c);
    RFC_CHECK(c, c->n_pings == 0, "%u answers", c->n_pings);
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_ping, of_the_server)
{
    rfc_hello(c);
    nj_h2_ping(c->h);
    rfc_go(c);
    RFC_CHECK(c, c->n_own_pings == 1, "%u PINGs", c->n_own_pings);
    rfc_say_zeros(c, RFC_PING, RFC_ACK, 0, 8);
    rfc_go(c);
    RFC_CHECK(c, c->n_own_pings == 1 && c->n_pings == 0, "%u PINGs", c->n_own_pings);
    rfc_expect_alive(c);
}

struct shape {
    uint32_t n;
    uint8_t flags;
    uint32_t id;
};

/* "If a PING frame is received with a Stream Identifier field value other than 0x00, the recipient
 * MUST respond with a connection error of type PROTOCOL_ERROR"; "a length field value other than 8
 * MUST be treated as a connection error of type FRAME_SIZE_ERROR". */
static void bad_ping(struct rfc *c, const void *arg)
{
    const struct shape *t = arg;
    snprintf(c->what, sizeof c->what, "PING of %u on %u: ", t->n, t->id);
    rfc_hello(c);
    rfc_say_zeros(c, RFC_PING, t->flags, t->id, t->n);
    rfc_go(c);
    rfc_expect_over(c, (uint32_t)(t->id ? RFC_E_PROTOCOL : 0) |
                           (uint32_t)(t->n != 8 ? RFC_E_SIZE : 0));
}

Test(h2_rfc9113_ping, shapes)
{
    static const struct shape shapes[] = {{8, 0, 1},  {8, RFC_ACK, 1}, {8, 0, 2},
                                          {0, 0, 0},  {7, 0, 0},       {9, 0, 0},
                                          {16, 0, 0}, {7, RFC_ACK, 0}, {16384, RFC_ACK, 0}};
    for (size_t i = 0; i < NJ_ARRAY_LEN(shapes); i++)
        rfc_every_way(bad_ping, &shapes[i]);
}

/* ---- 6.8 GOAWAY of the client ---- */

static void say_goaway(struct rfc *c, uint32_t id, uint32_t last, uint32_t code, const char *text)
{
    uint8_t p[64];
    rfc_put32(p, last);
    rfc_put32(p + 4, code);
    memcpy(p + 8, text, strlen(text));
    rfc_say(c, RFC_GOAWAY, 0, id, p, 8 + strlen(text));
}

RFC_CASE(h2_rfc9113_goaway, on_a_stream)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    say_goaway(c, 1, 0, 0, "");
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* 4.2: too short for its mandatory fields. */
RFC_CASE(h2_rfc9113_goaway, too_short)
{
    rfc_hello(c);
    rfc_say_zeros(c, RFC_GOAWAY, 0, 0, 7);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
}

/* Open streams are served to their end; the debug data and the code have no effect. The client may
 * send another GOAWAY with a smaller id. */
RFC_CASE(h2_rfc9113_goaway, open_streams_go_on)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_get(c, 3);
    rfc_go(c);
    say_goaway(c, 0, RFC_ID_MAX, 0, "good bye");
    say_goaway(c, 0, 0, 0x1234, "");
    rfc_go(c);
    RFC_CHECK(c, !c->over && !rfc_stream(c, 1)->closed, "over");
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 30);
    rfc_answer(c, 3, 128);
    rfc_go(c);
    rfc_answer(c, 1, 100000);
    rfc_go(c);
    rfc_say32(c, RFC_WINDOW_UPDATE, 1, 100000);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 100000);
    rfc_say_zeros(c, RFC_PING, 0, 0, 8);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    RFC_CHECK(c, rfc_stream(c, 1)->n_data == 100000 && c->n_pings == 1, "the rest");
    RFC_CHECK(c, nj_h2_is_finished(c->h), "there is nothing left, but it is not finished");
}

/* ---- 6.8 GOAWAY of the server, as h2.h has it ---- */

/* The first GOAWAY has 2^31-1, so that no stream under way is lost. The second has the last stream
 * seen, and frames for later streams are ignored. The connection is finished with the last stream.
 */
RFC_CASE(h2_rfc9113_goaway, graceful)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    nj_h2_goaway(c->h);
    rfc_go(c);
    RFC_CHECK(c, c->n_goaways == 1 && c->goaway_last == RFC_ID_MAX && !c->goaway_code, "the first");
    rfc_get(c, 3);
    rfc_post(c, 5);
    rfc_go(c);
    RFC_CHECK(c, c->n_shown == 3 && !nj_h2_is_finished(c->h), "%u shown", c->n_shown);
    nj_h2_goaway(c->h);
    rfc_go(c);
    RFC_CHECK(c, c->n_goaways == 2 && c->goaway_last == 5 && !c->goaway_code, "the second");
    rfc_head_path(c, 7, RFC_END_HEADERS, "/late");
    rfc_say_zeros(c, RFC_DATA, 0, 7, 200);
    rfc_say32(c, RFC_WINDOW_UPDATE, 7, 10);
    rfc_say32(c, RFC_RST_STREAM, 7, 8);
    rfc_head_newest(c, 9);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 5, 20);
    rfc_say_zeros(c, RFC_PING, 0, 0, 8);
    rfc_go(c);
    RFC_CHECK(c, !c->over && !nj_h2_is_finished(c->h), "over too early");
    for (uint32_t id = 7; id <= 9; id += 2)
        RFC_CHECK(c, !rfc_stream(c, id)->shown && !rfc_stream(c, id)->status, "%u is shown", id);
    RFC_CHECK(c, c->n_pings == 1, "no answer to a PING");
    for (uint32_t id = 1; id <= 5; id += 2)
        rfc_answer(c, id, 128);
    rfc_go(c);
    for (uint32_t id = 1; id <= 5; id += 2)
        rfc_expect_answer(c, id);
    RFC_CHECK(c, nj_h2_is_finished(c->h), "not finished");
}

/* Without streams the connection is finished at once. A third call has no effect. */
RFC_CASE(h2_rfc9113_goaway, graceful_when_idle)
{
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    nj_h2_goaway(c->h);
    rfc_go(c);
    RFC_CHECK(c, !nj_h2_is_finished(c->h), "requests may be on their way");
    nj_h2_goaway(c->h);
    rfc_go(c);
    nj_h2_goaway(c->h);
    rfc_go(c);
    RFC_CHECK(c, c->n_goaways == 2 && c->goaway_last == 1, "%u, last %u", c->n_goaways,
              c->goaway_last);
    RFC_CHECK(c, nj_h2_is_finished(c->h) && !c->over, "not finished");
}

/* An error between the two is reported by its own GOAWAY. */
RFC_CASE(h2_rfc9113_goaway, error_after_graceful)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    nj_h2_goaway(c->h);
    rfc_go(c);
    rfc_say_zeros(c, RFC_PING, 0, 0, 3);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
    RFC_CHECK(c, c->n_goaways == 2 && c->goaway_last == 1, "last %u", c->goaway_last);
}

/* ---- 6.10 CONTINUATION ---- */

/* "A CONTINUATION frame MUST be preceded by a HEADERS, PUSH_PROMISE or CONTINUATION frame without
 * the END_HEADERS flag set. A recipient that observes violation of this rule MUST respond with a
 * connection error of type PROTOCOL_ERROR." Streams in every state: h2_rfc9113_states.c. */
RFC_CASE(h2_rfc9113_continuation, first_of_all)
{
    rfc_hello(c);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, "\x82", 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

RFC_CASE(h2_rfc9113_continuation, on_the_connection)
{
    rfc_hello(c);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 0, "\x82", 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

RFC_CASE(h2_rfc9113_continuation, after_the_last)
{
    const struct rfc_block *b = rfc_block(RFC_GET, NULL);
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 1, b->p, 7);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, b->p + 7, b->n - 7);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, "\x82", 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

RFC_CASE(h2_rfc9113_continuation, after_data)
{
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say_zeros(c, RFC_DATA, 0, 1, 20);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, "\x82", 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}
