/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9113 8.1: bodies, content-length and trailers of requests, and the responses. */
#include "h2_rfc9113_rig.h"

/* ---- 8.1.1 content-length ---- */

enum verdict { GOOD, MALFORMED, EITHER };

struct length {
    const char *value, *value2; /* of content-length; once more */
    bool head_ends;             /* END_STREAM with HEADERS */
    uint32_t data[3];           /* DATA frames, as many as are not 0 */
    bool padded, trailers;
    enum verdict verdict;
};

static void say_body(struct rfc *c, const struct length *t)
{
    uint32_t n = 0;
    while (n < NJ_ARRAY_LEN(t->data) && t->data[n])
        n++;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t end = i + 1 == n && !t->trailers ? RFC_END_STREAM : 0, p[600] = {50};
        if (t->padded)
            rfc_say(c, RFC_DATA, end | RFC_PADDED, 1, p, t->data[i] + 51);
        else
            rfc_say(c, RFC_DATA, end, 1, p + 1, t->data[i]);
    }
    if (n == 0 && !t->trailers)
        rfc_say(c, RFC_DATA, RFC_END_STREAM, 1, NULL, 0);
    if (t->trailers)
        rfc_trailers_sync(c, 1, RFC_ENDS);
}

/* "A request or response that is defined as having content when it contains a Content-Length header
 * field is malformed if the value of the Content-Length header field does not equal the sum of the
 * DATA frame payload lengths that form the content." The owner gets no event that the request is
 * complete. */
static void one_length(struct rfc *c, const void *arg)
{
    const struct length *t = arg;
    snprintf(c->what, sizeof c->what, "content-length %s %s, %u+%u: ", t->value,
             t->value2 ? t->value2 : "", t->data[0], t->data[1]);
    c->hold = true;
    rfc_hello(c);
    uint8_t flags = t->head_ends ? RFC_ENDS : RFC_END_HEADERS;
    if (t->value2)
        rfc_head(c, 1, flags, RFC_POST, "content-length", t->value, "content-length", t->value2);
    else
        rfc_head(c, 1, flags, RFC_POST, "content-length", t->value);
    rfc_go(c);
    if (!t->head_ends)
        say_body(c, t);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    bool whole = s->shown && !s->closed && (s->ends || s->body_ended);
    if (t->verdict == GOOD || (t->verdict == EITHER && whole)) {
        RFC_CHECK(c, whole && !s->reset, "shown %d, ended %d, reset %d with %u", s->shown,
                  s->body_ended, s->reset, s->code);
        rfc_expect_alive(c);
        return;
    }
    RFC_CHECK(c, !s->body_ended && !s->ends, "it is shown as complete");
    if (s->status == 400)
        rfc_expect_alive(c);
    else
        rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
}

Test(h2_rfc9113_content_length, values)
{
    static const struct length lengths[] = {
        {.value = "100", .data = {100}},
        {.value = "100", .data = {30, 70}},
        {.value = "0"},
        {.value = "0", .head_ends = true},
        {.value = "00100", .data = {100}},
        {.value = "100", .data = {100}, .padded = true},
        {.value = "130", .data = {100, 30}, .trailers = true},
        {.value = "0", .trailers = true},
        {.value = "100", .data = {99}, .verdict = MALFORMED},
        {.value = "100", .data = {101}, .verdict = MALFORMED},
        {.value = "100", .data = {50, 51}, .verdict = MALFORMED},
        {.value = "100", .data = {100, 1}, .verdict = MALFORMED},
        {.value = "100", .data = {50, 49}, .verdict = MALFORMED},
        {.value = "100", .verdict = MALFORMED},
        {.value = "0", .data = {1}, .verdict = MALFORMED},
        {.value = "1", .head_ends = true, .verdict = MALFORMED},
        {.value = "100", .data = {49}, .padded = true, .verdict = MALFORMED},
        {.value = "100", .data = {99}, .trailers = true, .verdict = MALFORMED},
        {.value = "1", .trailers = true, .verdict = MALFORMED},
        {.value = "100", .data = {101}, .trailers = true, .verdict = MALFORMED},
        /* RFC 9110 8.6: 1*DIGIT; a value that overflows must not be accepted as another one. */
        {.value = "", .data = {100}, .verdict = MALFORMED},
        {.value = "+100", .data = {100}, .verdict = MALFORMED},
        {.value = "-1", .data = {100}, .verdict = MALFORMED},
        {.value = "0x64", .data = {100}, .verdict = MALFORMED},
        {.value = "100a", .data = {100}, .verdict = MALFORMED},
        {.value = "1 00", .data = {100}, .verdict = MALFORMED},
        {.value = "18446744073709551716", .data = {100}, .verdict = MALFORMED}, /* 2^64 + 100 */
        {.value = "4294967396", .data = {100}, .verdict = MALFORMED},           /* 2^32 + 100 */
        {.value = "99999999999999999999999999", .data = {100}, .verdict = MALFORMED},
        {.value = "100", .value2 = "101", .data = {100}, .verdict = MALFORMED},
        {.value = "101", .value2 = "100", .data = {100}, .verdict = MALFORMED},
        /* "a sender has repeated it": the server may accept it as one value. */
        {.value = "100", .value2 = "100", .data = {100}, .verdict = EITHER},
        {.value = "100, 100", .data = {100}, .verdict = EITHER},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(lengths); i++)
        rfc_every_way(one_length, &lengths[i]);
}

/* Without one, any length is good, none as well. */
RFC_CASE(h2_rfc9113_content_length, absent)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say(c, RFC_DATA, RFC_END_STREAM, 1, NULL, 0);
    rfc_post(c, 3);
    rfc_trailers_sync(c, 3, RFC_ENDS);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 1)->body_ended && rfc_stream(c, 3)->body_ended, "no end");
    rfc_expect_alive(c);
}

/* ---- 8.1 trailers ---- */

struct trailers {
    const char *name;
    enum verdict verdict;
    const char *fields[6];
};

static void one_trailers(struct rfc *c, const void *arg)
{
    const struct trailers *t = arg;
    struct rfc_block b = {.n = 0};
    snprintf(c->what, sizeof c->what, "trailers, %s: ", t->name);
    for (size_t i = 0; i < NJ_ARRAY_LEN(t->fields) && t->fields[i]; i += 2)
        rfc_put_field(&b, t->fields[i], t->fields[i + 1]);
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_say_zeros(c, RFC_DATA, 0, 1, 100);
    rfc_go(c);
    rfc_head_block(c, 1, RFC_ENDS, &b);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    if (t->verdict == GOOD || (t->verdict == EITHER && !s->reset && !c->over)) {
        RFC_CHECK(c, s->body_ended && s->st && s->n_body == 100, "no end");
        rfc_expect_alive(c);
    } else {
        RFC_CHECK(c, !s->body_ended, "an end");
        rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
    }
}

/* "Trailers MUST NOT include pseudo-header fields"; 8.2.1, 8.2.2 hold for them, too. */
Test(h2_rfc9113_trailers, fields)
{
    static const struct trailers trailers[] = {
        {"one", GOOD, {"x-sum", "12"}},
        {"two", GOOD, {"x-sum", "12", "x-other", ""}},
        {"none", EITHER, {NULL}},
        {"pseudo", MALFORMED, {":path", "/"}},
        {"unknown pseudo", MALFORMED, {":x", "/"}},
        {"pseudo behind", MALFORMED, {"x-sum", "12", ":method", "GET"}},
        {"upper case", MALFORMED, {"X-sum", "12"}},
        {"line feed", MALFORMED, {"x-sum", "1\n2"}},
        {"connection", MALFORMED, {"connection", "close"}},
        {"transfer-encoding", MALFORMED, {"transfer-encoding", "chunked"}},
        {"content-length", EITHER, {"content-length", "100"}},
        {"wrong content-length", EITHER, {"content-length", "1"}},
        {"host", EITHER, {"host", "a"}},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(trailers); i++)
        rfc_every_way(one_trailers, &trailers[i]);
}

/* DATA behind trailers: the stream is half closed. */
RFC_CASE(h2_rfc9113_trailers, data_behind)
{
    c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_trailers_sync(c, 1, RFC_ENDS);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 100);
    rfc_go(c);
    RFC_CHECK(c, rfc_stream(c, 1)->n_body == 0, "it is shown");
    rfc_expect(c, 1, RFC_STREAM(RFC_E_CLOSED));
}

/* ---- responses ---- */

/* 8.1: "A server can send a complete response prior to the client sending an entire request". After
 * the response it may send RST_STREAM, with NO_ERROR and no other code. */
RFC_CASE(h2_rfc9113_responses, before_the_end)
{
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, s->status == 200 && s->ended && s->closed && s->complete, "no answer");
    RFC_CHECK(c, !s->reset || s->code == 0, "reset with %u", s->code);
    rfc_say_zeros(c, RFC_DATA, 0, 1, 1000);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 100);
    rfc_go(c);
    RFC_CHECK(c, s->n_body == 0 && (!s->reset || s->code == 0), "reset with %u", s->code);
    rfc_expect_alive(c);
}

/* HEAD: the head of a GET, and no content (RFC 9110 9.3.2). */
RFC_CASE(h2_rfc9113_responses, to_head)
{
    rfc_hello(c);
    rfc_head(c, 1, RFC_ENDS, RFC_FIELDS("HEAD", "/"));
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    RFC_CHECK(c, s->status == 200 && s->ended && s->n_data == 0, "%d bytes", (int)s->n_data);
    rfc_expect_alive(c);
}

/* Fields of 40 KB: HEADERS and CONTINUATIONs without frames in between, although other streams have
 * output (4.3). None is larger than the client's SETTINGS_MAX_FRAME_SIZE. */
RFC_CASE(h2_rfc9113_responses, large_head)
{
    static char value[10000];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)('!' + i * 31 % 90);
    struct nj_field fields[4];
    for (size_t i = 0; i < 4; i++)
        fields[i] = (struct nj_field){NJ_STR("x-large"), {value, sizeof value}};
    c->hold = true;
    rfc_hello(c);
    rfc_get(c, 1);
    rfc_get(c, 3);
    rfc_go(c);
    rfc_answer(c, 1, 40000);
    cr_expect_eq(nj_h2_respond(rfc_stream(c, 3)->st, 200, fields, 4, 0, NULL), 0);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_answer(c, 3);
    rfc_expect_alive(c);
}

/* Trailers that the server sends: the last HEADERS has END_STREAM and follows the last byte of the
 * body, which may be empty. Trailers need no window. */
RFC_CASE(h2_rfc9113_responses, trailers)
{
    const struct nj_field field = {NJ_STR("x-sum"), NJ_STR("12")};
    c->hold = true;
    rfc_hello(c);
    for (uint32_t id = 1; id <= 7; id += 2)
        rfc_get(c, id);
    rfc_go(c);
    static const uint32_t sizes[] = {0, 1, 40000, 40000};
    for (uint32_t i = 0; i < 4; i++) {
        cr_expect_eq(nj_h2_set_trailers(rfc_stream(c, 2 * i + 1)->st, &field, 1), 0);
        rfc_answer(c, 2 * i + 1, sizes[i]);
    }
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 7);
    RFC_CHECK(c, !s->ended && !s->trailers, "beyond the window");
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 100000);
    rfc_go(c);
    for (uint32_t i = 0; i < 4; i++) {
        s = rfc_stream(c, 2 * i + 1);
        rfc_expect_answer(c, s->id);
        RFC_CHECK(c, s->trailers && s->n_data == sizes[i] && s->complete, "%u: trailers %d", s->id,
                  s->trailers);
    }
    rfc_expect_alive(c);
}

/* The owner resets: RST_STREAM with its code, at once, and no frame of the stream behind it. */
RFC_CASE(h2_rfc9113_responses, reset_by_the_owner)
{
    static const uint32_t codes[] = {0, 2, 7, 8, 11, 13};
    c->hold = true;
    rfc_hello(c);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(codes); i++)
        rfc_head(c, 2 * i + 1, i % 2 ? RFC_ENDS : RFC_END_HEADERS, RFC_GET);
    rfc_go(c);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(codes); i++) {
        uint32_t id = 2 * i + 1;
        if (i >= 2)
            rfc_answer(c, id, 200000);
        if (i >= 4)
            rfc_go(c);
        nj_h2_reset_stream(rfc_stream(c, id)->st, codes[i]);
        rfc_go(c);
        struct rfc_stream *s = rfc_stream(c, id);
        RFC_CHECK(c, s->reset && s->code == codes[i] && s->closed && !s->complete && !s->ended,
                  "%u: reset %d with %u", id, s->reset, s->code);
    }
    rfc_say32(c, RFC_WINDOW_UPDATE, 0, 1000000);
    rfc_go(c);
    rfc_expect_alive(c);
}

/* ---- without a reader ---- */

/* Bodies are thrown away, and windows come back as if they were read. */
RFC_CASE(h2_rfc9113_responses, nobody_reads)
{
    c->no_reader = c->hold = true;
    rfc_hello(c);
    rfc_post(c, 1);
    rfc_go(c);
    struct rfc_stream *s = rfc_stream(c, 1);
    uint64_t n_sent = 0, total = 2u << 20;
    while (n_sent < total && !c->over) {
        uint64_t conn = RFC_FIRST_WINDOW + c->given;
        uint64_t own = c->setting[RFC_INITIAL_WINDOW_SIZE] + s->given;
        uint64_t left = (conn < own ? conn : own) - n_sent;
        if (left == 0)
            break;
        uint32_t n = left < 16384 ? (uint32_t)left : 16384;
        rfc_say_zeros(c, RFC_DATA, 0, 1, n);
        n_sent += n;
        rfc_go(c);
    }
    RFC_CHECK(c, n_sent >= total, "stuck after %d", (int)n_sent);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 1);
    rfc_answer(c, 1, 128);
    rfc_go(c);
    rfc_expect_answer(c, 1);
    rfc_expect_alive(c);
}

/* content-length counts there, too. */
RFC_CASE(h2_rfc9113_responses, nobody_reads_but_counts)
{
    c->no_reader = c->hold = true;
    rfc_hello(c);
    rfc_head(c, 1, RFC_END_HEADERS, RFC_POST, "content-length", "100");
    rfc_go(c);
    rfc_say_zeros(c, RFC_DATA, RFC_END_STREAM, 1, 99);
    rfc_go(c);
    rfc_expect(c, 1, RFC_STREAM(RFC_E_PROTOCOL));
}
