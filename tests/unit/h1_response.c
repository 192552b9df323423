/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses: heads, the framing of bodies, and what of a body goes by reference. */
#include "h1_rig.h"

#define H10     "Host: h\r\n\r\n"
#define GET(t)  "GET " t " HTTP/1.1\r\nHost: h\r\n\r\n"
#define HEAD(t) "HEAD " t " HTTP/1.1\r\nHost: h\r\n\r\n"
#define OWN     "Server: nightjar\r\nX-Content-Type-Options: nosniff\r\n"
#define OK      "HTTP/1.1 200 OK\r\n" OWN
#define LENGTH  "Content-Length: "
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define CLOSE   "Connection: close\r\n"

static void expect_answer(const char *request, const char *want, bool ends, int line)
{
    struct rig *r = rig_new();
    rig_say(r, request);
    rig_expect(r, want, line);
    cr_expect_eq(nj_h1_is_finished(r->h), ends, "line %d", line);
    cr_expect_eq(rig_last(r)->closed, true, "line %d", line);
    cr_expect(!nj_h1_must_reset(r->h), "line %d", line);
    cr_expect_eq(nj_h1_is_idle(r->h), true);
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0, "an idle connection holds nothing");
    rig_free(r);
}
#define EXPECT_ANSWER(request, want, ends) expect_answer(request, want, ends, __LINE__)

/* Sentences 215, 289, 306. */
Test(h1_response, with_a_length)
{
    EXPECT_ANSWER(GET("/3"), OK LENGTH "3\r\n\r\ndef", false);
    EXPECT_ANSWER(GET("/3?n"), OK LENGTH "3\r\n\r\ndef", false); /* the engine adds it */
    EXPECT_ANSWER(GET("/0"), OK LENGTH "0\r\n\r\n", false);
    EXPECT_ANSWER(GET("/0?n"), OK LENGTH "0\r\n\r\n", false);
    EXPECT_ANSWER(GET("/3?u"), OK LENGTH "3\r\n\r\ndef", false);
    EXPECT_ANSWER(GET("/3?ue"), OK LENGTH "3\r\n\r\ndef", false);
    EXPECT_ANSWER(GET("/3?t"), OK LENGTH "3\r\n\r\ndef", false); /* no trailers */
    EXPECT_ANSWER("GET /3?u HTTP/1.0\r\n\r\n", OK LENGTH "3\r\n" CLOSE "\r\ndef", true);
}

/* Sentences 279, 291, 292, 310, 311. */
Test(h1_response, without_a_body)
{
    EXPECT_ANSWER(HEAD("/3"), OK LENGTH "3\r\n\r\n", false);
    EXPECT_ANSWER(HEAD("/3?n"), OK "\r\n", false);
    EXPECT_ANSWER(HEAD("/3?nu"), OK "\r\n", false);
    EXPECT_ANSWER(GET("/3?4"), "HTTP/1.1 304 Not Modified\r\n" OWN LENGTH "3\r\n\r\n", false);
    EXPECT_ANSWER(GET("/3?4n"), "HTTP/1.1 304 Not Modified\r\n" OWN "\r\n", false);
    EXPECT_ANSWER(GET("/3?2"), "HTTP/1.1 204 No Content\r\n" OWN "\r\n", false);
    EXPECT_ANSWER("HEAD /3 HTTP/1.0\r\n\r\n", OK LENGTH "3\r\n" CLOSE "\r\n", true);
    EXPECT_ANSWER("HEAD /3?nu HTTP/1.0\r\n\r\n", OK CLOSE "\r\n", true);
}

/* Sentences 282, 305, 306, 312. */
Test(h1_response, chunked)
{
    EXPECT_ANSWER(GET("/3?un"), OK CHUNKED "\r\n3\r\ndef\r\n0\r\n\r\n", false);
    EXPECT_ANSWER(GET("/3?une"), OK CHUNKED "\r\n3\r\ndef\r\n0\r\n\r\n", false);
    EXPECT_ANSWER(GET("/0?un"), OK CHUNKED "\r\n0\r\n\r\n", false);
    EXPECT_ANSWER(GET("/27?un"), OK CHUNKED "\r\n1b\r\nbcdefghijklmnopqrstuvwxyzab\r\n0\r\n\r\n",
                  false);
    EXPECT_ANSWER(GET("/3?unt"), OK CHUNKED "\r\n3\r\ndef\r\n0\r\nX-Sum: 3\r\n\r\n", false);
    EXPECT_ANSWER(GET("/4?unt"), OK CHUNKED "\r\n4\r\nefgh\r\n0\r\nX-Sum: 4\r\n\r\n", false);
    EXPECT_ANSWER("GET /3?un HTTP/1.1\r\nConnection: close\r\n" H10,
                  OK CHUNKED CLOSE "\r\n3\r\ndef\r\n0\r\n\r\n", true);
}

/* Sentences 216, 280, 306, 313, 334. */
Test(h1_response, ended_by_the_connection)
{
    EXPECT_ANSWER("GET /3?un HTTP/1.0\r\n\r\n", OK CLOSE "\r\ndef", true);
    EXPECT_ANSWER("GET /3?unt HTTP/1.0\r\n\r\n", OK CLOSE "\r\ndef", true);
    EXPECT_ANSWER("GET /3?un HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", OK CLOSE "\r\ndef", true);
}

/* ---- bodies that contradict their length ---- */

static void expect_failure(const char *request, const char *want, bool must_reset, int line)
{
    struct rig *r = rig_new();
    rig_say(r, request);
    rig_expect(r, want, line);
    cr_expect(rig_last(r)->closed && !rig_last(r)->complete, "line %d", line);
    cr_expect(nj_h1_is_finished(r->h), "line %d", line);
    cr_expect_eq(nj_h1_must_reset(r->h), must_reset, "line %d", line);
    cr_expect_eq(rig_count(r, NJ_C_responses), 0);
    rig_free(r);
}
#define EXPECT_FAILURE(request, want, must_reset)                                                  \
    expect_failure(request, want, must_reset, __LINE__)

/* Sentences 290, 315. */
Test(h1_response, shorter_than_its_length)
{
    EXPECT_FAILURE(GET("/3?s"), OK LENGTH "8\r\n" CLOSE "\r\ndef", false);
    EXPECT_FAILURE(GET("/0?s"), OK LENGTH "5\r\n" CLOSE "\r\n", false);
    EXPECT_FAILURE(GET("/3?us"), OK LENGTH "8\r\n\r\ndef", false);
    EXPECT_FAILURE(GET("/3?ues"), OK LENGTH "8\r\n\r\ndef", false);
}

/* Sentence 290. */
Test(h1_response, longer_than_its_length)
{
    EXPECT_ANSWER(GET("/8?o"), OK LENGTH "3\r\n" CLOSE "\r\nijk", true);
    EXPECT_ANSWER(GET("/5?o"), OK LENGTH "0\r\n" CLOSE "\r\n", true);
    EXPECT_ANSWER(GET("/8?uo"), OK LENGTH "3\r\n\r\nijk", true);
    EXPECT_ANSWER(GET("/8?ueo"), OK LENGTH "3\r\n\r\nijk", true);
}

/* Sentences 315, 316. */
Test(h1_response, failing_bodies)
{
    EXPECT_FAILURE(GET("/8?f"), OK LENGTH "8\r\n\r\nijkl", false);
    EXPECT_FAILURE(GET("/8?fun"), OK CHUNKED "\r\n4\r\nijkl\r\n", false);
    EXPECT_FAILURE("GET /8?fun HTTP/1.0\r\n\r\n", OK CLOSE "\r\nijkl", true);
    EXPECT_FAILURE("GET /8?f HTTP/1.0\r\n\r\n", OK LENGTH "8\r\n" CLOSE "\r\nijkl", false);
    EXPECT_FAILURE(GET("/0?fu"), OK LENGTH "0\r\n\r\n", false);
}

/* Sentences 315, 316. */
Test(h1_response, resets)
{
    EXPECT_FAILURE(GET("/8?r"), "", false);
    EXPECT_FAILURE(GET("/8?R"), OK LENGTH "8\r\n\r\n", false);
    EXPECT_FAILURE(GET("/8?Run"), OK CHUNKED "\r\n", false);
    EXPECT_FAILURE("GET /8?Run HTTP/1.0\r\n\r\n", OK CLOSE "\r\n", true);
    EXPECT_ANSWER(GET("/8?R4"), "HTTP/1.1 304 Not Modified\r\n" OWN LENGTH "8\r\n\r\n", true);
}

/* What the sink does not take at the reset is discarded, and then a FIN would be wrong. Sentence
 * 316. */
Test(h1_response, reset_while_the_sink_is_full)
{
    struct rig *r = rig_new();
    r->room = 1;
    rig_say(r, GET("/8?d"));
    RIG_EXPECT(r, "");
    nj_h1_reset(r->h);
    nj_h1_reset(r->h);
    cr_expect(nj_h1_may_read(r->h) && !nj_h1_is_finished(r->h));
    cr_expect_eq(rig_say(r, GET("/1")), 0);
    cr_expect(nj_h1_is_finished(r->h) && nj_h1_must_reset(r->h));
    cr_expect(rig_last(r)->closed && !rig_last(r)->complete);
    nj_h1_reset(r->h); /* no request is open */
    rig_free(r);
}

/* A response that is given after the reset is not sent. */
Test(h1_response, reset_before_the_response)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/8?l"));
    nj_h1_reset(r->h);
    cr_expect_eq(rig_answer(r, rig_last(r)), 0);
    rig_output(r);
    RIG_EXPECT(r, "");
    cr_expect(rig_last(r)->closed && nj_h1_is_finished(r->h) && !nj_h1_must_reset(r->h));
    rig_free(r);
}

/* ---- heads ---- */

static void on_request_fields(void *user, struct nj_h1 *h, const struct nj_request_head *req)
{
    static const struct nj_field fields[] = {
        {NJ_STR_INIT("etag"), NJ_STR_INIT("\"x\"")},
        {NJ_STR_INIT("www-authenticate"), NJ_STR_INIT("Basic")},
        {NJ_STR_INIT("x--1a"), NJ_STR_INIT("")},
        {NJ_STR_INIT("content-length"), NJ_STR_INIT("x")},
        {NJ_STR_INIT("content-length"), NJ_STR_INIT("0")},
        {NJ_STR_INIT("content-length"), NJ_STR_INIT("1")},
    };
    rig_on_request(user, h, req);
    uint16_t status = (uint16_t)strtoul(req->path.p + 1, NULL, 10);
    (void)nj_h1_respond(h, status, fields, NJ_ARRAY_LEN(fields), 0, NULL);
}

/* Sentences 254, 255, 293. */
Test(h1_response, names_and_status_lines)
{
    struct nj_h1_events events = rig_events;
    events.on_request = on_request_fields;
    struct rig *r = rig_new_with(&events, &rig_limits);
    rig_say(r, GET("/200?l"));
    /* A Content-Length that is malformed, or a second one, is not sent. */
    RIG_EXPECT(r, "HTTP/1.1 200 OK\r\nEtag: \"x\"\r\nWww-Authenticate: Basic\r\nX--1a: \r\n"
                  "Content-Length: 0\r\n\r\n");
    rig_say(r, GET("/404?l"));
    cr_expect(strncmp(r->out, "HTTP/1.1 404 Not Found\r\n", 24) == 0);
    rig_clear(r);
    rig_say(r, GET("/599?l"));
    cr_expect(strncmp(r->out, "HTTP/1.1 599 \r\n", 15) == 0);
    cr_expect_eq(rig_count(r, NJ_C_status_2xx), 1);
    cr_expect_eq(rig_count(r, NJ_C_status_4xx), 1);
    cr_expect_eq(rig_count(r, NJ_C_status_5xx), 1);
    rig_free(r);
}

/* A cached head is the same on all connections; what depends on the request is added to it.
 * Sentence 282. */
Test(h1_response, cached_heads)
{
    struct rig *r = rig_new();
    for (unsigned i = 0; i < 3; i++) {
        rig_say(r, GET("/3?p"));
        RIG_EXPECT(r, OK LENGTH "3\r\n\r\ndef");
        rig_say(r, GET("/3?pn"));
        RIG_EXPECT(r, OK LENGTH "3\r\n\r\ndef");
        rig_say(r, GET("/3?pnu"));
        RIG_EXPECT(r, OK CHUNKED "\r\n3\r\ndef\r\n0\r\n\r\n");
        rig_say(r, HEAD("/3?p"));
        RIG_EXPECT(r, OK LENGTH "3\r\n\r\n");
        rig_say(r, "GET /3?p HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        RIG_EXPECT(r, OK LENGTH "3\r\nConnection: keep-alive\r\n\r\ndef");
        rig_say(r, GET("/8?po")); /* the same head as for 3 bytes */
        RIG_EXPECT(r, OK LENGTH "3\r\n" CLOSE "\r\nijk");
        nj_h1_close(r->h);
        r->h = nj_h1_open(r->ctx, r, false, false);
        r->n_former = r->n_req;
    }
    cr_expect_eq(rig_count(r, NJ_C_status_2xx), 18);
    rig_free(r);
}

/* A head that is too long for the cache, and one that takes the place of another. */
Test(h1_response, heads_that_are_not_cached)
{
    struct rig *r = rig_new();
    static char value[NJ__H1_CACHED_HEAD_MAX];
    memset(value, 'v', sizeof value);
    for (uint64_t stamp = 1; stamp < 1000; stamp += NJ__H1_CACHED_HEADS) {
        const struct nj_field field = {NJ_STR_INIT("x"),
                                       {value, stamp < 300 ? (uint32_t)stamp : sizeof value}};
        rig_say(r, GET("/0?l"));
        cr_expect(!nj_h1_respond_cached(r->h, 200, stamp, NULL));
        cr_expect_eq(nj_h1_respond(r->h, 200, &field, 1, stamp, NULL), 0);
        rig_output(r);
        rig_say(r, GET("/0?l"));
        bool ok = nj_h1_respond_cached(r->h, 200, stamp, NULL);
        cr_expect_eq(ok, stamp < 300);
        if (!ok)
            cr_expect_eq(nj_h1_respond(r->h, 200, &field, 1, stamp, NULL), 0);
        rig_output(r);
        cr_expect_eq(r->n_closed, r->n_req);
    }
    rig_free(r);
}

/* ---- bodies ---- */

/* The bytes of a response with the body of rig_body_new(). */
static void expect_bytes(const struct rig *r, uint64_t size)
{
    const char *body = strstr(r->out, "\r\n\r\n") + 4;
    cr_assert_eq(r->n_out - (size_t)(body - r->out), size);
    for (uint64_t i = 0; i < size; i++)
        cr_assert_eq((uint8_t)body[i], rig_byte(size, i));
}

Test(h1_response, large_bodies_are_references)
{
    static const uint64_t sizes[] = {511, 512, 513, 4096, 100000, 3000000};
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        struct rig *r = rig_new();
        char request[100];
        snprintf(request, sizeof request, "GET /%llu HTTP/1.1\r\n" H10,
                 (unsigned long long)sizes[i]);
        rig_say(r, request);
        expect_bytes(r, sizes[i]);
        cr_expect_eq(r->n_copies, 1); /* one for the head */
        cr_expect_eq(r->n_refers, sizes[i] < 512 ? 0 : sizes[i] / NJ_SINK_SLICE_MAX + 1);
        cr_expect_eq(rig_count(r, NJ_C_body_bytes), sizes[i]);
        rig_free(r);
    }
}

/* In small steps of the sink nothing is lost, and no more is given than it has room for. */
Test(h1_response, a_sink_with_little_room)
{
    static const char *const paths[] = {"/100000", "/100000?un", "/100000?unt", "/511", "/3000?u"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        char request[100];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" H10, paths[i]);
        struct rig *whole = rig_new(), *r = rig_new();
        rig_say(whole, request);
        r->room = 4096;
        rig_say(r, request);
        unsigned n_turns = 0;
        for (; !rig_last(r)->closed; n_turns++) {
            cr_assert_lt(n_turns, 100);
            cr_expect(!nj_h1_may_read(r->h) || rig_last(r)->closed);
            r->room = 4096 + n_turns * 37;
            rig_drain(r);
            rig_output(r);
        }
        if (!strchr(paths[i], '?'))
            expect_bytes(r, strtoull(paths[i] + 1, NULL, 10));
        else if (strstr(paths[i], "un")) /* with other sizes of chunks */
            cr_expect(r->n_out > 100000 &&
                      strcmp(r->out + r->n_out - 5, whole->out + whole->n_out - 5) == 0);
        rig_free(whole);
        rig_free(r);
    }
}

Test(h1_response, bodies_that_wait)
{
    static const char *const paths[] = {"/30?d", "/3000?d", "/30?dun", "/30?du", "/3000?dunt"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        struct rig *r = rig_new();
        char request[100];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" H10, paths[i]);
        rig_say(r, request);
        cr_expect(nj_h1_is_blocked_by_body(r->h) && !nj_h1_is_idle(r->h));
        for (unsigned n = 0; !rig_last(r)->closed; n++) {
            cr_assert_lt(n, 100);
            cr_expect(nj_h1_is_blocked_by_body(r->h));
            cr_expect(!nj_h1_may_read(r->h));
            rig_output(r);
            rig_release(rig_last(r)->body, 100);
            cr_expect(!nj_h1_is_blocked_by_body(r->h));
            rig_output(r);
        }
        cr_expect(rig_last(r)->complete);
        if (!strchr(paths[i], 'n'))
            expect_bytes(r, strtoull(paths[i] + 1, NULL, 10));
        rig_free(r);
    }
}

/* peek() returns 0 and wakes the body before it returns. Sentence 305. */
Test(h1_response, bodies_that_wake_in_peek)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/50?w"));
    expect_bytes(r, 50);
    rig_clear(r);
    rig_say(r, GET("/2?wun"));
    RIG_EXPECT(r, OK CHUNKED "\r\n1\r\nc\r\n1\r\nd\r\n0\r\n\r\n");
    cr_expect(rig_last(r)->complete);
    rig_free(r);
}

/* The end of the body becomes known after its last byte. Sentences 312, 313. */
Test(h1_response, late_ends)
{
    static const char *const requests[] = {GET("/3?unh"), GET("/3?uh"),
                                           "GET /3?unh HTTP/1.0\r\n\r\n"};
    static const char *const answers[] = {OK CHUNKED "\r\n3\r\ndef\r\n", OK LENGTH "3\r\n\r\ndef",
                                          OK CLOSE "\r\ndef"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(requests); i++) {
        struct rig *r = rig_new();
        rig_say(r, requests[i]);
        RIG_EXPECT(r, answers[i]);
        cr_expect(!rig_last(r)->closed && nj_h1_is_blocked_by_body(r->h));
        cr_expect_eq(nj_h1_n_requests(r->h), 1);
        rig_finish(rig_last(r)->body);
        rig_output(r);
        RIG_EXPECT(r, i == 0 ? "0\r\n\r\n" : "");
        cr_expect(rig_last(r)->complete);
        cr_expect_eq(nj_h1_n_requests(r->h), 0);
        rig_free(r);
    }
}

/* Sentence 306. */
Test(h1_response, late_trailers)
{
    struct rig *r = rig_new();
    const struct nj_field field = {NJ_STR_INIT("x-late"), NJ_STR_INIT("yes")};
    rig_say(r, GET("/3?unh"));
    rig_clear(r);
    cr_expect_eq(nj_h1_set_trailers(r->h, &field, 1), 0);
    rig_finish(rig_last(r)->body);
    rig_output(r);
    RIG_EXPECT(r, "0\r\nX-Late: yes\r\n\r\n");
    cr_expect_eq(nj_h1_set_trailers(r->h, &field, 1), -1); /* no request is open */
    rig_free(r);
}

/* The responses of pipelined requests need one call of the sink. Sentence 336. */
Test(h1_response, small_bodies_are_collected)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/1?p") GET("/2?p") GET("/3?p") GET("/4?pun") GET("/5?4p"));
    cr_expect_eq(r->n_req, 5);
    cr_expect_eq(r->n_closed, 5);
    cr_expect_leq(r->n_copies, 2);
    cr_expect_eq(r->n_refers, 0);
    rig_free(r);
}
