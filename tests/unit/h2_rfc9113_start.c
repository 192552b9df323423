/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 3.4 and 4: the preface, frame headers and sizes, header blocks and CONTINUATION. */
#include "h2_rfc9113_rig.h"

/* ---- 3.4 the preface ---- */

/* "Clients and servers MUST treat an invalid connection preface as a connection error of type
 * PROTOCOL_ERROR." */
static void bad_magic(struct rfc *c, const void *arg)
{
    const char *magic = arg;
    snprintf(c->what, sizeof c->what, "'%.10s': ", magic);
    rfc_bytes(c, magic, strlen(magic));
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    rfc_get(c, 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
    RFC_CHECK(c, c->n_shown == 0 && c->n_acks == 0, "it is listened to");
}

Test(h2_rfc9113_preface, wrong)
{
    static const char *const magics[] = {
        "INVALID CONNECTION PREFACE\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r",
        "PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n", "pri * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(magics); i++)
        rfc_every_way(bad_magic, magics[i]);
}

/* A part of it is no error: the rest may come. */
RFC_CASE(h2_rfc9113_preface, not_whole_yet)
{
    rfc_bytes(c, RFC_MAGIC, 23);
    rfc_go(c);
    RFC_CHECK(c, !c->over && c->n_acks == 0, "over");
    rfc_bytes(c, &RFC_MAGIC[23], 1);
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    rfc_go(c);
    RFC_CHECK(c, c->n_acks == 1, "no ACK");
    rfc_expect_alive(c);
}

/* "the connection preface ... MUST be followed by a SETTINGS frame, which MAY be empty." Any other
 * first frame is an invalid preface. */
struct first {
    const char *name;
    uint8_t type, flags;
    uint32_t id, n;
};

static void not_settings(struct rfc *c, const void *arg)
{
    const struct first *t = arg;
    snprintf(c->what, sizeof c->what, "%s first: ", t->name);
    rfc_magic(c);
    if (t->type == RFC_HEADERS)
        rfc_get(c, 1);
    else
        rfc_say_zeros(c, t->type, t->flags, t->id, t->n);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
    RFC_CHECK(c, c->n_shown == 0, "it is shown");
}

Test(h2_rfc9113_preface, settings_come_first)
{
    static const struct first firsts[] = {
        {"HEADERS", RFC_HEADERS, RFC_ENDS, 1, 0},
        {"PING", RFC_PING, 0, 0, 8},
        {"SETTINGS ACK", RFC_SETTINGS, RFC_ACK, 0, 0},
        {"GOAWAY", RFC_GOAWAY, 0, 0, 8},
        {"DATA", RFC_DATA, 0, 1, 10},
        {"unknown", RFC_UNKNOWN, 0, 0, 10},
        {"PRIORITY", RFC_PRIORITY, 0, 3, 5},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(firsts); i++)
        rfc_every_way(not_settings, &firsts[i]);
}

/* "the client ... can send additional frames immediately after": all in one go. */
RFC_CASE(h2_rfc9113_preface, requests_at_once)
{
    rfc_magic(c);
    rfc_setting(c, RFC_MAX_FRAME_SIZE, 20000);
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 1000);
    rfc_get(c, 1);
    rfc_post(c, 3);
    rfc_say_zeros(c, RFC_PING, 0, 0, 8);
    rfc_go(c);
    RFC_CHECK(c, c->n_acks == 1 && c->n_pings == 1, "ACKs");
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* ---- 4.1, 4.2 frames ---- */

/* "An endpoint MUST send an error code of FRAME_SIZE_ERROR if a frame exceeds the size defined in
 * SETTINGS_MAX_FRAME_SIZE ... A frame size error in a frame that could alter the state of the
 * entire connection MUST be treated as a connection error". For DATA it may be one of the stream.
 */
struct size {
    const char *name;
    uint8_t type, flags;
    uint32_t id;
};

static void too_large(struct rfc *c, const void *arg)
{
    const struct size *t = arg;
    snprintf(c->what, sizeof c->what, "%s of 16385: ", t->name);
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    rfc_say_zeros(c, t->type, t->flags, t->id, 16385);
    rfc_go(c);
    if (t->type == RFC_DATA)
        rfc_expect(c, 1, RFC_STREAM(RFC_E_SIZE));
    else
        rfc_expect_over(c, RFC_E_SIZE);
}

Test(h2_rfc9113_frame_size, one_too_many)
{
    static const struct size sizes[] = {
        {"DATA", RFC_DATA, 0, 1},
        {"HEADERS", RFC_HEADERS, RFC_ENDS, 3},
        {"trailers", RFC_HEADERS, RFC_ENDS, 1},
        {"SETTINGS", RFC_SETTINGS, 0, 0},
        {"PING", RFC_PING, 0, 0},
        {"GOAWAY", RFC_GOAWAY, 0, 0},
        {"unknown", RFC_UNKNOWN, 0, 0},
        {"RST_STREAM", RFC_RST_STREAM, 0, 1},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++)
        rfc_every_way(too_large, &sizes[i]);
}

/* The frame header shows the size: the server does not wait for 16 MiB. */
RFC_CASE(h2_rfc9113_frame_size, told_by_the_head)
{
    rfc_hello(c);
    rfc_frame_head(c, 0xffffff, RFC_HEADERS, RFC_ENDS, 1);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_SIZE);
}

/* "All implementations MUST be capable of receiving and minimally processing frames up to 2^14
 * octets in length": of every type. */
RFC_CASE(h2_rfc9113_frame_size, largest)
{
    struct rfc_block b = {.n = 0};
    const struct rfc_block *post = rfc_block(RFC_POST, NULL);
    static char value[16384];
    memset(value, 'v', sizeof value);
    rfc_put_bytes(&b, post->p, post->n);
    rfc_put_field_n(&b, 0, "x-long", 6, value, 16384 - post->n - 11);
    cr_assert_eq(b.n, 16384);
    c->hold = true;
    rfc_hello(c);
    rfc_head_block(c, 1, RFC_END_HEADERS, &b);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 16384);
    rfc_say_zeros(c, RFC_UNKNOWN, 0, 0, 16384);
    uint8_t settings[6 * 30] = {0};
    for (size_t i = 0; i < 30; i++)
        settings[6 * i] = 0x55;
    rfc_say(c, RFC_SETTINGS, 0, 0, settings, sizeof settings);
    rfc_say_zeros(c, RFC_GOAWAY, 0, 0, 16384);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, !c->over && s->body_ended && s->n_body == 16384, "over %d", c->over);
    rfc_answer(c, 1, 128);
    rfc_go(c);
    rfc_expect_answer(c, 1);
}

/* Frames of length 0 where it is allowed. */
RFC_CASE(h2_rfc9113_frame_size, empty)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say(c, RFC_DATA, 0, 1, NULL, 0);
    rfc_say(c, RFC_UNKNOWN, 0, 1, NULL, 0);
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    rfc_say(c, RFC_DATA, RFC_END_STREAM, 1, NULL, 0);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, s->body_ended && s->n_body == 0 && c->n_acks == 2, "ended %d", s->body_ended);
    rfc_expect_alive(c);
}

/* ---- 4.3 header blocks ---- */

/* Cut at every place into HEADERS and CONTINUATIONs, empty ones among them. */
static void cut_block(struct rfc *c, const void *arg)
{
    uint32_t step = *(const uint32_t *)arg;
    const struct rfc_block *b = rfc_block(RFC_GET, "x-a", "some value", NULL);
    snprintf(c->what, sizeof c->what, "cut by %u: ", step);
    rfc_hello(c);
    uint32_t at = step == 1 ? 0 : step; /* the first one is empty once */
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 1, b->p, at);
    while (b->n - at > step) {
        rfc_say(c, RFC_CONTINUATION, 0, 1, b->p + at, step);
        at += step;
    }
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, b->p + at, b->n - at);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    RFC_CHECK(c, strcmp(rfc_stream(c, 1)->authority, "host.example") == 0, "the fields");
    rfc_expect_alive(c);
}

Test(h2_rfc9113_blocks, continuation)
{
    static const uint32_t steps[] = {2, 3, 7, 13, 40, 60};
    for (size_t i = 0; i < NJ_ARRAY_LEN(steps); i++)
        rfc_every_way(cut_block, &steps[i]);
}

/* The end in an empty CONTINUATION; END_STREAM counts from the HEADERS frame, not from there
 * (6.2: "CONTINUATION frames cannot be used to end a stream"). */
RFC_CASE(h2_rfc9113_blocks, empty_continuation)
{
    const struct rfc_block *b = rfc_block(RFC_POST, NULL);
    c->hold = true;
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, 0, 1, b->p, b->n);
    rfc_say(c, RFC_CONTINUATION, 0, 1, NULL, 0);
    rfc_say(c, RFC_CONTINUATION, RFC_ENDS, 1, NULL, 0);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, s->shown && !s->ends, "shown %d, ends %d", s->shown, s->ends);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 30);
    rfc_go(c);
    RFC_CHECK(c, s->body_ended && s->n_body == 30, "the body");
    rfc_expect_alive(c);
}

/* PADDED and PRIORITY belong to HEADERS alone; its padding is at its end, in the middle of the
 * block. */
RFC_CASE(h2_rfc9113_blocks, padding_within)
{
    const struct rfc_block *b = rfc_block(RFC_GET, NULL);
    uint8_t p[64] = {9, 0, 0, 0, 0, 77};
    memcpy(p + 6, b->p, 11);
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM | RFC_PADDED | RFC_PRI, 1, p, 6 + 11 + 9);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS | RFC_PADDED | RFC_PRI, 1, b->p + 11, b->n - 11);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

struct within {
    const char *name;
    uint8_t type, flags;
    uint32_t id, n;
};

/* "Field blocks MUST be transmitted as a contiguous sequence of frames, with no interleaved frames
 * of any other type or from any other stream": 6.2, 6.10: a connection error of PROTOCOL_ERROR. */
static void within_block(struct rfc *c, const void *arg)
{
    const struct within *t = arg;
    snprintf(c->what, sizeof c->what, "%s within: ", t->name);
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    const struct rfc_block *b = rfc_block(RFC_GET, NULL);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 3, b->p, 9);
    rfc_say_zeros(c, t->type, t->flags, t->id, t->n);
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 3, b->p + 9, b->n - 9);
    rfc_go(c);
    rfc_expect_over(c, RFC_E_PROTOCOL);
    RFC_CHECK(c, c->n_shown == 1 && !c->n_pings && c->n_acks == 1, "it has an effect");
}

Test(h2_rfc9113_blocks, nothing_within)
{
    static const struct within withins[] = {
        {"DATA", RFC_DATA, 0, 1, 20},
        {"DATA of its own", RFC_DATA, 0, 3, 20},
        {"HEADERS", RFC_HEADERS, RFC_ENDS, 5, 0},
        {"HEADERS of its own", RFC_HEADERS, RFC_ENDS, 3, 0},
        {"PRIORITY", RFC_PRIORITY, 0, 3, 5},
        {"RST_STREAM", RFC_RST_STREAM, 0, 1, 4},
        {"RST_STREAM of its own", RFC_RST_STREAM, 0, 3, 4},
        {"SETTINGS", RFC_SETTINGS, 0, 0, 0},
        {"PUSH_PROMISE", RFC_PUSH_PROMISE, RFC_END_HEADERS, 1, 10},
        {"PING", RFC_PING, 0, 0, 8},
        {"GOAWAY", RFC_GOAWAY, 0, 0, 8},
        {"WINDOW_UPDATE", RFC_WINDOW_UPDATE, 0, 0, 4},
        {"CONTINUATION of another", RFC_CONTINUATION, RFC_END_HEADERS, 1, 0},
        {"CONTINUATION of none", RFC_CONTINUATION, RFC_END_HEADERS, 0, 0},
        {"PRIORITY_UPDATE", RFC_PRIORITY_UPDATE, 0, 0, 8},
        {"unknown", RFC_UNKNOWN, 0, 0, 8},
        {"unknown of its own", RFC_UNKNOWN, 0, 3, 0},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(withins); i++)
        rfc_every_way(within_block, &withins[i]);
}

/* Trailers may be cut, too. */
RFC_CASE(h2_rfc9113_blocks, trailers_cut)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say_zeros(c, RFC_DATA, 0, 1, 30);
    const struct rfc_block *b = rfc_block("x-sum", "1", "x-more", "2", NULL);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 1, b->p, 4);
    rfc_go(c);
    RFC_CHECK(c, !rfc_stream(c, 1)->body_ended, "it has ended too early");
    rfc_say(c, RFC_CONTINUATION, RFC_END_HEADERS, 1, b->p + 4, b->n - 4);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 1)->body_ended, "it has not ended");
    rfc_expect_alive(c);
}

/* A head too large for the owner gets 431, and the table of HPACK stays in step; far beyond, the
 * connection ends. */
static void large_head(struct rfc *c, uint32_t n_fields)
{
    struct rfc_block b = {.n = 0};
    static char value[1000];
    memset(value, 'v', sizeof value);
    rfc_put_bytes(&b, "\x82\x86\x41\x01h\x44\x05/sync", 12); /* as rfc_head_sync() */
    for (uint32_t i = 0; i < n_fields; i++)
        rfc_put_field_n(&b, 0, "x-a", 3, value, sizeof value);
    rfc_hello(c);
    for (size_t at = 0; at < b.n || at == 0; at += 16384) {
        size_t n = b.n - at < 16384 ? b.n - at : 16384;
        uint8_t last = at + n == b.n ? RFC_END_HEADERS : 0;
        rfc_say(c, at ? RFC_CONTINUATION : RFC_HEADERS, (at ? 0 : RFC_END_STREAM) | last, 1,
                b.p + at, n);
    }
    c->sync = RFC_SYNC_PATH;
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    if (n_fields < 32) {
        rfc_expect_answer(c, 1);
        rfc_expect_alive(c);
    } else if (n_fields < 100) {
        RFC_CHECK(c, !s->shown && s->status == 431 && s->ended, "status %d", s->status);
        rfc_expect_alive(c);
    } else {
        RFC_CHECK(c, !s->shown, "it is shown");
        rfc_expect_over(c, RFC_E_CALM);
    }
}

RFC_CASE(h2_rfc9113_blocks, large)
{
    large_head(c, 31);
}

RFC_CASE(h2_rfc9113_blocks, too_large_to_show)
{
    large_head(c, 40);
}

RFC_CASE(h2_rfc9113_blocks, far_too_large)
{
    large_head(c, 150);
}

/* The same for a request with a body. */
RFC_CASE(h2_rfc9113_blocks, too_large_to_show_with_body)
{
    struct rfc_block b = {.n = 0};
    const struct rfc_block *post = rfc_block(RFC_POST, NULL);
    rfc_put_bytes(&b, post->p, post->n);
    for (int i = 0; i < 200; i++)
        rfc_put_field(&b, "cookie", "a=b");
    rfc_hello(c);
    rfc_head_block(c, 1, RFC_END_HEADERS, &b);
    rfc_say_zeros(c, RFC_DATA, 0, 1, 1000);
    rfc_go(c);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 1000);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, !s->shown && s->status == 431 && s->ended, "status %d", s->status);
    RFC_CHECK(c, !s->reset || s->code == 0, "reset with %u", s->code);
    rfc_expect_alive(c);
}

/* HEADERS without a following frame: the owner gets no request, and the connection can be closed.
 */
RFC_CASE(h2_rfc9113_blocks, no_end)
{
    const struct rfc_block *b = rfc_block(RFC_GET, NULL);
    rfc_hello(c);
    rfc_say(c, RFC_HEADERS, RFC_END_STREAM, 1, b->p, b->n);
    rfc_go(c);
    RFC_CHECK(c, c->n_shown == 0 && !c->over, "it is shown");
}
