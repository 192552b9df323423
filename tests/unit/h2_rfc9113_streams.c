/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 5.1.1 to 5.5: stream ids, concurrency, priorities, errors, unknown frames. */
#include "h2_rfc9113_rig.h"

/* ---- 5.1.1 ids ---- */

/* "Streams initiated by a client MUST use odd-numbered stream identifiers"; "The identifier of a
 * newly established stream MUST be numerically greater than all streams that the initiating
 * endpoint has opened or reserved"; "An endpoint that receives an unexpected stream identifier MUST
 * respond with a connection error of type PROTOCOL_ERROR." */
RFC_CASE(h2_rfc9113_ids, even)
{
    rfc_hello(c);
    rfc_get(c, 2);
    rfc_go(c);
    rfc_expect(c, 2, RFC_CONN(RFC_E_PROTOCOL));
}

RFC_CASE(h2_rfc9113_ids, lower_than_before)
{
    rfc_hello(c);
    rfc_get(c, 5);
    rfc_get(c, 3);
    rfc_go(c);
    rfc_expect(c, 3, RFC_CONN(RFC_E_PROTOCOL));
    RFC_CHECK(c, !rfc_stream(c, 3)->shown, "it was shown");
}

/* A stream closes those below, also when it was reset itself (5.1.1: "The first use of a new stream
 * identifier implicitly closes all streams in the "idle" state"). */
RFC_CASE(h2_rfc9113_ids, lower_than_one_that_was_reset)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 9);
    rfc_say32(c, RFC_RST_STREAM, 9, 8);
    rfc_go(c);
    rfc_get(c, 7);
    rfc_go(c);
    rfc_expect(c, 7, RFC_CONN(RFC_E_PROTOCOL));
}

RFC_CASE(h2_rfc9113_ids, used_twice)
{
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect(c, 1,
               (struct rfc_may){
                   .conn = RFC_E_PROTOCOL | RFC_E_CLOSED, .reset = RFC_E_CLOSED, .ignored = true});
    RFC_CHECK(c, c->over || c->n_shown == 3, "%u were shown", c->n_shown);
}

RFC_CASE(h2_rfc9113_ids, gaps_are_allowed)
{
    static const uint32_t ids[] = {1, 3, 9, 11, 1001, 100001, 0x7ffffff1};
    rfc_hello(c);
    for (size_t i = 0; i < NJ_ARRAY_LEN(ids); i++)
        rfc_get(c, ids[i]);
    rfc_go(c);
    for (size_t i = 0; i < NJ_ARRAY_LEN(ids); i++)
        rfc_expect_answer(c, ids[i]);
    rfc_expect_alive(c);
}

/* The highest of all; behind it there is none. */
RFC_CASE(h2_rfc9113_ids, highest)
{
    rfc_hello(c);
    rfc_get(c, RFC_ID_MAX);
    rfc_go(c);
    rfc_expect_answer(c, RFC_ID_MAX);
    rfc_get(c, RFC_ID_MAX - 2);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* 4.1: "the reserved bit MUST be ignored when receiving". */
RFC_CASE(h2_rfc9113_ids, reserved_bit)
{
    c->hold = true;
    rfc_hello(c);
    rfc_head(c, 0x80000001u, RFC_END_HEADERS, RFC_POST);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 0x80000001u, 100);
    rfc_say_zeros(c, RFC_PING, 0, 0x80000000u, 8);
    rfc_go(c);
    rfc_answer(c, 1, 128);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    RFC_CHECK(c, rfc_stream(c, 1)->n_body == 100 && c->n_pings == 1, "it was not ignored");
    rfc_expect_alive(c);
}

/* ---- 5.1.2 concurrency ---- */

/* "An endpoint that receives a HEADERS frame that causes its advertised concurrent stream limit to
 * be exceeded MUST treat this as a stream error of type PROTOCOL_ERROR or REFUSED_STREAM". */
static void one_too_many(struct rfc *c, bool acked, bool body)
{
    c->limits.concurrent_streams_max = 4;
    c->hold = true;
    if (acked) {
        rfc_hello(c);
        rfc_go(c);
    } else {
        rfc_magic(c);
        rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    }
    for (uint32_t id = 1; id <= 7; id += 2)
        rfc_head(c, id, body ? RFC_END_HEADERS : RFC_ENDS, RFC_GET);
    rfc_head_sync(c, 9, RFC_ENDS);
    rfc_go(c);
    RFC_CHECK(c, c->setting[RFC_MAX_CONCURRENT_STREAMS] == 4, "the limit");
    RFC_CHECK(c, c->n_shown <= 4, "%u are open", c->n_shown);
    for (uint32_t id = 1; id <= 5 && !c->over; id += 2) {
        rfc_answer(c, id, 128);
        if (body)
            rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, id, 20);
    }
    rfc_go(c);
    rfc_expect(c, 9, RFC_STREAM(RFC_E_PROTOCOL | RFC_E_REFUSED));
    if (c->over)
        return;
    for (uint32_t id = 1; id <= 7; id += 2)
        RFC_CHECK(c, !rfc_stream(c, id)->reset, "%u was reset", id);
    rfc_expect_answer(c, 1);
}

RFC_CASE(h2_rfc9113_concurrency, one_too_many)
{
    one_too_many(c, true, false);
}

/* The client cannot know the limit yet, so this stream must not end the connection. */
RFC_CASE(h2_rfc9113_concurrency, one_too_many_before_ack)
{
    one_too_many(c, false, false);
    RFC_CHECK(c, !c->over && rfc_stream(c, 9)->code == 7, "code %u", rfc_stream(c, 9)->code);
}

RFC_CASE(h2_rfc9113_concurrency, one_too_many_open)
{
    one_too_many(c, false, true);
}

/* The client sends the body before it reads the refusal: that is no error, and the connection's
 * window is returned. */
RFC_CASE(h2_rfc9113_concurrency, body_of_one_too_many)
{
    c->limits.concurrent_streams_max = 3;
    c->hold = true;
    rfc_magic(c);
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    for (uint32_t id = 1; id <= 5; id += 2)
        rfc_get(c, id);
    rfc_go(c);
    rfc_post(c, 7);
    uint64_t n_sent = 0, conn = RFC_FIRST_WINDOW + c->given;
    for (; n_sent + 16384 <= conn / 2 + 16384; n_sent += 16384)
        rfc_say_zeros(c, RFC_DATA, 0, 7, 16384);
    rfc_say32(c, RFC_WINDOW_UPDATE, 7, 10);
    rfc_trailers_sync(c, 7, RFC_ENDS);
    rfc_go(c);
    RFC_CHECK(c, RFC_FIRST_WINDOW + c->given > conn, "no window was returned");
    for (uint32_t id = 1; id <= 5; id += 2)
        rfc_answer(c, id, 128);
    rfc_go(c);
    rfc_expect(c, 7, (struct rfc_may){.reset = RFC_E_PROTOCOL | RFC_E_REFUSED});
    rfc_expect_answer(c, 1);
}

/* "Streams that are in the "open" state or in either of the "half-closed" states count": streams
 * that were reset or answered do not. */
RFC_CASE(h2_rfc9113_concurrency, room_comes_back)
{
    c->limits.concurrent_streams_max = 4;
    c->hold = true;
    rfc_hello(c);
    for (uint32_t id = 1; id <= 41; id += 8) {
        for (uint32_t i = 0; i < 8; i += 2)
            rfc_head(c, id + i, i == 4 ? RFC_END_HEADERS : RFC_ENDS, RFC_GET);
        rfc_go(c);
        RFC_CHECK(c, !c->over && c->n_shown == (id + 7) / 2, "%u shown", c->n_shown);
        rfc_answer(c, id, 128);
        nj_h2_reset_stream(rfc_stream(c, id + 2)->st, 8);
        rfc_go(c);
        rfc_say32(c, RFC_RST_STREAM, id + 4, 8);
        rfc_say32(c, RFC_RST_STREAM, id + 6, 8);
    }
    rfc_go(c);
    rfc_expect_alive(c);
}

/* A whole default limit of streams, answered in reverse. */
RFC_CASE(h2_rfc9113_concurrency, all_of_them)
{
    c->hold = true;
    rfc_hello(c);
    uint32_t n = nj_h2_limits_default.concurrent_streams_max;
    for (uint32_t i = 0; i < n; i++)
        rfc_get(c, 2 * i + 1);
    rfc_go(c);
    RFC_CHECK(c, c->n_shown == n, "%u shown", c->n_shown);
    for (uint32_t i = n; i-- > 0;)
        rfc_answer(c, 2 * i + 1, 100);
    rfc_go(c);
    for (uint32_t i = 0; i < n; i++)
        rfc_expect_answer(c, 2 * i + 1);
    rfc_expect_alive(c);
}

/* ---- 5.3, 6.3: priorities of RFC 7540 are read, and all but one ignored ---- */

static void say_priority(struct rfc *c, uint32_t id, uint32_t depends_on)
{
    uint8_t p[5] = {0, 0, 0, 0, 15};
    rfc_put32(p, depends_on);
    rfc_say(c, RFC_PRIORITY, 0, id, p, sizeof p);
}

RFC_CASE(h2_rfc9113_priority, ignored_anywhere)
{
    c->hold = true;
    rfc_hello(c);
    say_priority(c, 3, 0);
    say_priority(c, 5, 0x80000003u);
    rfc_post(c, 3);
    say_priority(c, 3, 7);
    say_priority(c, 1, 3);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 3, 50);
    say_priority(c, 3, 1);
    rfc_go(c);
    rfc_answer(c, 3, 128);
    rfc_go(c);
    say_priority(c, 3, 1);
    say_priority(c, 2, 3);
    rfc_get(c, 5);
    rfc_go(c);
    rfc_answer(c, 5, 128);
    rfc_go(c);
    rfc_expect_answer(c, 3);
    rfc_expect_answer(c, 5);
    rfc_expect_alive(c);
}

/* RFC 7540 5.3.1 made this an error of the stream. RFC 9113 no longer defines it, and forbids no
 * error. RFC 9218 2.1 forbids one after the client has sent SETTINGS_NO_RFC7540_PRIORITIES. */
RFC_CASE(h2_rfc9113_priority, on_itself)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    say_priority(c, 1, 1);
    rfc_go(c);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
}

RFC_CASE(h2_rfc9113_priority, on_itself_but_of_no_use)
{
    rfc_magic(c);
    rfc_setting(c, RFC_NO_PRIORITIES, 1);
    say_priority(c, 1, 1);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_priority, on_itself_before_it_is)
{
    rfc_hello(c);
    say_priority(c, 3, 0x80000003u);
    rfc_go(c);
    rfc_expect(c, 3, RFC_CONN(RFC_E_PROTOCOL));
}

/* 6.2: with the PRIORITY flag five bytes are before the block, behind the length of padding. */
static void get_that_depends(struct rfc *c, uint32_t on, uint8_t padding)
{
    struct rfc_block b = {.n = 0};
    const struct rfc_block *get = rfc_block(RFC_GET, NULL);
    uint8_t depends[5] = {[4] = 200}, zeros[UINT8_MAX] = {0};
    rfc_put32(depends, on);
    rfc_put_bytes(&b, &padding, padding ? 1 : 0);
    rfc_put_bytes(&b, depends, sizeof depends);
    rfc_put_bytes(&b, get->p, get->n);
    rfc_put_bytes(&b, zeros, padding);
    rfc_hello(c);
    rfc_head_block(c, 1, RFC_ENDS | RFC_PRI | (padding ? RFC_PADDED : 0), &b);
    rfc_go(c);
}

RFC_CASE(h2_rfc9113_priority, in_headers)
{
    get_that_depends(c, 0x80000003u, 0);
    rfc_expect_answer(c, 1);
    RFC_CHECK(c, strcmp(rfc_stream(c, 1)->path, "/") == 0, "path");
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_priority, in_headers_on_itself)
{
    get_that_depends(c, 1, 0);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
}

RFC_CASE(h2_rfc9113_priority, in_padded_headers_on_itself)
{
    get_that_depends(c, 1, 2);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
}

static void priority_in_headers_short(struct rfc *c, const void *arg)
{
    uint32_t n = *(const uint32_t *)arg;
    snprintf(c->what, sizeof c->what, "%u bytes: ", n);
    rfc_hello(c);
    rfc_say_zeros(c, RFC_HEADERS, RFC_ENDS | RFC_PRI, 1, n);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE | RFC_E_PROTOCOL);
}

Test(h2_rfc9113_priority, in_headers_too_short)
{
    for (uint32_t n = 0; n < 5; n++)
        rfc_every_way(priority_in_headers_short, &n);
}

/* 6.3: "A PRIORITY frame with a length other than 5 octets MUST be treated as a stream error of
 * type FRAME_SIZE_ERROR"; on stream 0 it is a connection error of PROTOCOL_ERROR. */
static void priority_length(struct rfc *c, const void *arg)
{
    uint32_t n = *(const uint32_t *)arg;
    snprintf(c->what, sizeof c->what, "%u bytes: ", n);
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_say_zeros(c, RFC_PRIORITY, 0, 1, n);
    rfc_go(c);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_SIZE));
}

Test(h2_rfc9113_priority, length)
{
    for (uint32_t n = 0; n < 12; n++)
        if (n != 5)
            rfc_every_way(priority_length, &n);
}

RFC_CASE(h2_rfc9113_priority, on_the_connection)
{
    rfc_hello(c);
    say_priority(c, 0, 3);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
}

/* ---- RFC 9218 ---- */

/* 4: a value that does not parse, or is out of range, is ignored. */
static void priority_field(struct rfc *c, const void *arg)
{
    const char *value = arg;
    snprintf(c->what, sizeof c->what, "priority: %.40s: ", value);
    rfc_hello(c);
    rfc_head(c, 1, RFC_ENDS, RFC_GET, "priority", value);
    rfc_head(c, 3, RFC_ENDS, RFC_GET, "priority", "u=1", "priority", value);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    rfc_expect_alive(c);
}

Test(h2_rfc9113_priority, field)
{
    static const char *const values[] = {"u=0",
                                         "u=7, i",
                                         "i",
                                         "",
                                         "u=8",
                                         "u=-1",
                                         "u=\"a\"",
                                         "u",
                                         "=",
                                         ",,,,",
                                         "u=1;;;",
                                         "i=?2",
                                         "(((((",
                                         "u=1, u=2, x=(a b)",
                                         "u=99999999999999999999999999999999999",
                                         "\"\\"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(values); i++)
        rfc_every_way(priority_field, values[i]);
}

struct update {
    const char *name;
    uint32_t prioritized;
    const char *value;
    struct rfc_may may;
};

/* 7.1. A server that does not know the frame ignores all of them (RFC 9113 5.5). */
static void priority_update(struct rfc *c, const void *arg)
{
    const struct update *u = arg;
    snprintf(c->what, sizeof c->what, "PRIORITY_UPDATE %s: ", u->name);
    c->hold = true;
    uint8_t p[64];
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_get(c, 3);
    rfc_go(c);
    rfc_answer(c, 1, 128);
    rfc_go(c);
    rfc_put32(p, u->prioritized);
    memcpy(p + 4, u->value, strlen(u->value));
    rfc_say(c, RFC_PRIORITY_UPDATE, 0, 0, p, 4 + strlen(u->value));
    rfc_go(c);
    if (!c->over) {
        rfc_answer(c, 3, 128);
        rfc_go(c);
        rfc_expect_answer(c, 3);
    }
    rfc_expect(c, 0, u->may);
}

Test(h2_rfc9113_priority, update)
{
    const struct rfc_may either = {.conn = RFC_E_PROTOCOL, .ignored = true};
    const struct update updates[] = {
        {"of an open stream", 3, "u=1, i", RFC_IGNORED},
        {"with the reserved bit", 0x80000003u, "u=1, i", RFC_IGNORED},
        {"without a value", 3, "", RFC_IGNORED},
        {"of an idle stream", 101, "u=1", RFC_IGNORED},
        {"of a closed stream", 1, "u=1", RFC_IGNORED},
        {"that does not parse", 3, "u=((\x01\xff", {RFC_E_PROTOCOL, 0, true}},
        {"of stream 0", 0, "u=1", either},
        {"of a push", 2, "u=1", either},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(updates); i++)
        rfc_every_way(priority_update, &updates[i]);
}

/* The frame names an idle stream, which behaves like any other afterwards. */
RFC_CASE(h2_rfc9113_priority, update_before_the_request)
{
    c->hold = true;
    rfc_hello(c);
    for (uint32_t id = 1; id < 20; id += 2) {
        uint8_t p[7] = {0, 0, 0, (uint8_t)id, 'u', '=', '1'};
        rfc_say(c, RFC_PRIORITY_UPDATE, 0, 0, p, sizeof p);
        p[3] = (uint8_t)(id + 40);
        rfc_say(c, RFC_PRIORITY_UPDATE, 0, 0, p, sizeof p);
        rfc_get(c, id);
        rfc_go(c);
        if (id % 4 == 1)
            rfc_say32(c, RFC_RST_STREAM, id, 8);
        else
            rfc_answer(c, id, 128);
        rfc_go(c);
        RFC_CHECK(c, rfc_stream(c, id)->closed, "%u is not over", id);
    }
    rfc_expect_alive(c);
}

RFC_CASE(h2_rfc9113_priority, update_too_short)
{
    rfc_hello(c);
    rfc_say_zeros(c, RFC_PRIORITY_UPDATE, 0, 0, 3);
    rfc_go(c);
    rfc_expect(c, 0, (struct rfc_may){.conn = RFC_E_SIZE | RFC_E_PROTOCOL, .ignored = true});
}

/* ---- 5.4 errors ---- */

/* 5.4.1, 6.8: GOAWAY names the last stream that was, or might have been, acted on. */
RFC_CASE(h2_rfc9113_errors, last_stream_id)
{
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_get(c, 7);
    rfc_get(c, 13);
    rfc_go(c);
    rfc_say_zeros(c, RFC_PING, 0, 0, 7);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
    RFC_CHECK(c, c->goaway_last == 13, "last stream %u", c->goaway_last);
}

RFC_CASE(h2_rfc9113_errors, last_stream_id_without_streams)
{
    rfc_hello(c);
    rfc_say_zeros(c, RFC_PING, 0, 0, 9);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
    RFC_CHECK(c, c->goaway_last == 0, "last stream %u", c->goaway_last);
}

/* Frames that follow the error in the same bytes have no effect, of any type. */
RFC_CASE(h2_rfc9113_errors, nothing_after_it)
{
    rfc_hello(c);
    rfc_say_zeros(c, RFC_PING, 0, 0, 9);
    for (uint32_t id = 1; id < 20; id += 2)
        rfc_get(c, id);
    rfc_say_zeros(c, RFC_GOAWAY, 0, 3, 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
    RFC_CHECK(c, c->n_shown == 0 && c->n_goaways == 1, "%u shown", c->n_shown);
    rfc_get(c, 21);
    rfc_go(c);
    RFC_CHECK(c, c->n_shown == 0 && c->n_goaways == 1, "%u shown", c->n_shown);
}

/* 5.4.2: "To avoid looping, an endpoint MUST NOT send a RST_STREAM in response to a RST_STREAM
 * frame", with any code (7: "Unknown or unsupported error codes MUST NOT trigger any special
 * behavior"). */
RFC_CASE(h2_rfc9113_errors, no_reset_for_a_reset)
{
    static const uint32_t codes[] = {0, 1, 2, 3, 7, 8, 13, 14, 0x1234, 0xffffffffu};
    c->hold = true;
    rfc_hello(c);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(codes); i++)
        rfc_head(c, 2 * i + 1, i % 2 ? RFC_ENDS : RFC_END_HEADERS, RFC_GET);
    rfc_go(c);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(codes); i++)
        rfc_say32(c, RFC_RST_STREAM, 2 * i + 1, codes[i]);
    rfc_go(c);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(codes); i++) {
        struct rfc_stream *s = rfc_stream(c, 2 * i + 1);
        RFC_CHECK(c, s->closed && !s->complete && !s->reset && !s->status, "code %u", codes[i]);
    }
    rfc_expect_alive(c);
}

/* 5.4.2: the error of one stream does not affect the others. */
RFC_CASE(h2_rfc9113_errors, of_one_stream)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_post(c, 3);
    rfc_get(c, 5);
    rfc_say32(c, RFC_WINDOW_UPDATE, 3, RFC_ID_MAX);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 100);
    rfc_go(c);
    rfc_answer(c, 1, 128);
    rfc_answer(c, 5, 128);
    rfc_go(c);
    rfc_expect(c, 3, (struct rfc_may){.reset = RFC_E_FLOW});
    RFC_CHECK(c, rfc_stream(c, 3)->closed, "it is not over");
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 5);
}

/* 5.4.1: after the server has sent GOAWAY with an error, it sends no responses. */
RFC_CASE(h2_rfc9113_errors, owner_is_told)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_get(c, 3);
    rfc_go(c);
    rfc_say_zeros(c, RFC_SETTINGS, 0, 0, 5);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
    RFC_CHECK(c, c->n_shown == 2, "%u shown", c->n_shown);
}

/* ---- 4.1, 5.5 unknown frames and codes ---- */

static void unknown_type(struct rfc *c, const void *arg)
{
    uint8_t type = *(const uint8_t *)arg;
    snprintf(c->what, sizeof c->what, "type 0x%x: ", type);
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say_zeros(c, type, 0xff, 0, 100);
    rfc_say_zeros(c, type, 0, 1, 16384);
    rfc_say_zeros(c, type, 0x55, 2, 0);
    rfc_say_zeros(c, type, 0x04, 77, 20);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 20);
    rfc_say_zeros(c, type, 0x01, 1, 20);
    rfc_go(c);
    rfc_answer(c, 1, 128);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    RFC_CHECK(c, rfc_stream(c, 1)->n_body == 20, "%d bytes", (int)rfc_stream(c, 1)->n_body);
    rfc_expect_alive(c);
}

/* "Implementations MUST ignore unknown or unsupported values and MUST discard frames that have
 * unknown or unsupported types", with any flags and stream. */
Test(h2_rfc9113_unknown, types)
{
    static const uint8_t types[] = {0x0a, 0x0b, 0x0c, 0x0d, 0x0f, 0x11, 0x20, 0x80, 0xbb, 0xff};
    for (size_t i = 0; i < NJ_ARRAY_LEN(types); i++)
        rfc_every_way(unknown_type, &types[i]);
}

/* "extension frames that appear in the middle of a field block are not permitted; these MUST be
 * treated as a connection error of type PROTOCOL_ERROR." */
RFC_CASE(h2_rfc9113_unknown, type_in_a_header_block)
{
    const struct rfc_block *b = rfc_block(RFC_GET, NULL);
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 1, b->p, 5);
    rfc_say_zeros(c, RFC_UNKNOWN, 0, 1, 8);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, b->p + 5, b->n - 5);
    rfc_go(c);
    rfc_expect(c, 1, RFC_CONN(RFC_E_PROTOCOL));
    RFC_CHECK(c, c->n_shown == 0, "it was shown");
}

/* 4.1: "Flags that have no defined semantics for a particular frame type are unused flags and MUST
 * be ignored on receipt". */
RFC_CASE(h2_rfc9113_unknown, flags)
{
    c->hold = true;
    rfc_hello(c);
    rfc_head(c, 1, 0xd2 | RFC_END_HEADERS, RFC_POST);
    rfc_head(c, 3, 0xd2 | RFC_END_HEADERS, RFC_POST);
    rfc_say_zeros(c, RFC_DATA, 0xf6, 1, 50);
    rfc_say_zeros(c, RFC_PRIORITY, 0xff, 1, 5);
    rfc_say_zeros(c, RFC_SETTINGS, 0xfe, 0, 6);
    uint64_t ping = 0x1122334455667788u;
    rfc_say(c, RFC_PING, 0xfe, 0, &ping, 8);
    rfc_say(c, RFC_WINDOW_UPDATE, 0xff, 0, "\0\0\0\1", 4);
    rfc_say(c, RFC_WINDOW_UPDATE, 0xff, 1, "\0\0\0\1", 4);
    rfc_say(c, RFC_RST_STREAM, 0xff, 3, "\0\0\0\x8", 4);
    rfc_say_zeros(c, RFC_DATA, 0xf6 | RFC_END_STREAM, 1, 50);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, s->st && s->n_body == 100 && s->body_ended, "stream 1");
    RFC_CHECK(c, rfc_stream(c, 3)->closed, "stream 3");
    RFC_CHECK(c, c->n_acks == 2 && c->n_pings == 1, "%u and %u ACKs", c->n_acks, c->n_pings);
    rfc_expect_alive(c);
}

/* The same for CONTINUATION. */
RFC_CASE(h2_rfc9113_unknown, flags_of_continuation)
{
    const struct rfc_block *b = rfc_block(RFC_GET, NULL);
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 1, b->p, 5);
    rfc_say(c, RFC_CONTINUATION, 0xfb, 1, b->p + 5, 5);
    rfc_say(c, RFC_CONTINUATION, 0xff, 1, b->p + 10, b->n - 10);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}
