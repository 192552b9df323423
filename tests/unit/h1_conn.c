/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection from request to request: what it goes on after, what waits, and how it ends. */
#include "h1_rig.h"

#define GET(t) "GET " t " HTTP/1.1\r\nHost: h\r\n\r\n"
#define OWN    "Server: nightjar\r\nX-Content-Type-Options: nosniff\r\n"
#define OK(n)  "HTTP/1.1 200 OK\r\n" OWN "Content-Length: " #n "\r\n"

/* ---- RFC 9112 9.3 ---- */

/* Sentences 214, 267, 328, 331 - 333, 340. */
Test(h1_conn, which_connections_go_on)
{
    static const struct {
        const char *version, *fields, *says; /* says: the field of the response */
        bool goes_on;
    } rows[] = {
        {"1.1", "", "", true},
        {"1.1", "Connection: keep-alive\r\n", "", true},
        {"1.1", "Connection: close\r\n", "Connection: close\r\n", false},
        {"1.1", "Connection: x, CLOSE ,y\r\n", "Connection: close\r\n", false},
        {"1.1", "Connection: keep-alive, close\r\n", "Connection: close\r\n", false},
        {"1.1", "Connection: keep-alive\r\nconnection: close\r\n", "Connection: close\r\n", false},
        {"1.1", "Connection: closed\r\n", "", true},
        {"1.1", "Connection: \"close\"\r\n", "", true},
        {"1.1", "Connection: ,,\r\n", "", true},
        {"1.1", "Proxy-Connection: close\r\n", "", true},
        {"1.2", "", "", true},
        {"1.0", "", "Connection: close\r\n", false},
        {"1.0", "Connection: keep-alive\r\n", "Connection: keep-alive\r\n", true},
        {"1.0", "Connection: Keep-Alive\r\n", "Connection: keep-alive\r\n", true},
        {"1.0", "Connection: keep-alive, close\r\n", "Connection: close\r\n", false},
        {"1.0", "Connection: close\r\n", "Connection: close\r\n", false},
        {"1.0", "Proxy-Connection: keep-alive\r\n", "Connection: close\r\n", false},
        {"1.0", "Keep-Alive: timeout=5\r\n", "Connection: close\r\n", false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        char text[400];
        struct rig *r = rig_new();
        snprintf(text, sizeof text, "GET /1 HTTP/%s\r\nHost: h\r\n%s\r\n" GET("/2"),
                 rows[i].version, rows[i].fields);
        cr_expect_eq(rig_say(r, text), 0);
        snprintf(text, sizeof text, OK(1) "%s\r\nb%s", rows[i].says,
                 rows[i].goes_on ? OK(2) "\r\ncd" : "");
        RIG_EXPECT(r, text);
        cr_expect_eq(r->n_req, rows[i].goes_on ? 2 : 1, "%s", rows[i].fields);
        cr_expect_eq(nj_h1_is_finished(r->h), !rows[i].goes_on);
        cr_expect(nj_h1_may_read(r->h));
        rig_free(r);
    }
}

/* Sentence 250. */
Test(h1_conn, connect_ends_the_connection)
{
    struct rig *r = rig_new();
    rig_say(r, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n" GET("/1"));
    RIG_EXPECT(r, OK(0) "Connection: close\r\n\r\n");
    cr_expect(nj_h1_is_finished(r->h) && r->n_req == 1);
    rig_free(r);
}

/* ---- pipelining ---- */

/* Sentences 287, 336. */
Test(h1_conn, responses_are_in_order)
{
    struct rig *r = rig_new();
    cr_expect_eq(rig_say(r, GET("/1") GET("/2") GET("/600") GET("/3")), 0);
    cr_expect_eq(r->n_closed, 4);
    const char *second = strstr(r->out, OK(2)), *third = strstr(r->out, OK(600)),
               *last = strstr(r->out, OK(3) "\r\ndef");
    cr_expect(strncmp(r->out, OK(1), strlen(OK(1))) == 0 && second < third && third < last &&
              second && last);
    rig_free(r);
}

/* Sentence 337. */
Test(h1_conn, a_request_waits_for_the_response_before)
{
    struct rig *r = rig_new();
    static const char next[] = GET("/2") GET("/3");
    size_t n = rig_say(r, GET("/1?l") GET("/2") GET("/3"));
    cr_expect_eq(n, sizeof next - 1, "it is left to the owner");
    cr_expect(!nj_h1_may_read(r->h) && r->n_req == 1 && !nj_h1_has_kept(r->h));
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    cr_expect_eq(nj_h1_unfinished_since(r->h, 5), NJ_NEVER);
    rig_answer(r, rig_last(r));
    rig_output(r);
    RIG_EXPECT(r, OK(1) "\r\nb");
    cr_expect(nj_h1_may_read(r->h));
    cr_expect_eq(rig_say(r, next), 0);
    RIG_EXPECT(r, OK(2) "\r\ncd" OK(3) "\r\ndef");
    rig_free(r);
}

/* The outbox is not filled without bound by requests whose responses nobody takes. Sentence 339. */
Test(h1_conn, a_full_outbox_stops_input)
{
    struct rig *r = rig_new();
    char text[2000] = "";
    for (unsigned i = 0; i < 50; i++)
        strcat(text, GET("/100"));
    r->room = 1;
    size_t left = rig_say(r, text);
    cr_expect_gt(left, 0);
    cr_expect(!nj_h1_may_read(r->h));
    cr_expect_leq(nj_h1_buffered_bytes(r->h), 8192);
    cr_expect(r->n_req > 10 && r->n_closed == r->n_req - 1);
    r->room = 0;
    rig_output(r);
    cr_expect_eq(rig_input(r, text + strlen(text) - left, left), 0);
    cr_expect_eq(r->n_closed, 50);
    rig_free(r);
}

/* A response that nobody has taken yet is complete when the next request begins. */
Test(h1_conn, a_request_ends_when_its_response_is_taken)
{
    struct rig *r = rig_new();
    r->room = 1;
    rig_say(r, GET("/1"));
    cr_expect(!rig_last(r)->closed && nj_h1_n_requests(r->h) == 1);
    cr_expect(nj_h1_may_read(r->h) && !nj_h1_is_finished(r->h) && !nj_h1_is_idle(r->h));
    nj_h1_drain(r->h, false);
    cr_expect_eq(rig_say(r, GET("/2")), 0);
    cr_expect(rig_last(r)->complete && r->n_req == 1 && !nj_h1_is_finished(r->h));
    r->room = 0;
    rig_output(r);
    RIG_EXPECT(r, OK(1) "\r\nb");
    cr_expect(nj_h1_is_finished(r->h));
    rig_free(r);
}

/* ---- nj_h1_keep() ---- */

static void keep(struct rig *r, const char *text)
{
    nj_h1_keep(r->h, (const uint8_t *)text, (uint32_t)strlen(text));
}

/* Sentence 337. */
Test(h1_conn, kept_bytes)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/1?l"));
    keep(r, GET("/2?l"));
    keep(r, "GET /3");
    cr_expect(nj_h1_has_kept(r->h) && !nj_h1_may_read(r->h));
    cr_expect_gt(nj_h1_buffered_bytes(r->h), 0);
    cr_expect_eq(nj_h1_unfinished_since(r->h, 5), NJ_NEVER);
    rig_answer(r, rig_last(r));
    rig_output(r);
    cr_expect(nj_h1_may_read(r->h));
    cr_expect_eq(nj_h1_input(r->h, (const uint8_t *)"", 0), 0);
    cr_expect_eq(r->n_req, 2);
    cr_expect(nj_h1_has_kept(r->h));
    rig_answer(r, rig_last(r));
    rig_output(r);
    cr_expect_eq(nj_h1_input(r->h, (const uint8_t *)"", 0), 0);
    cr_expect(!nj_h1_has_kept(r->h), "it is an incomplete head");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 7), 7);
    rig_say(r, " HTTP/1.1\r\nHost: h\r\n\r\n" GET("/4"));
    cr_expect_eq(r->n_req, 4);
    RIG_EXPECT(r, OK(1) "\r\nb" OK(2) "\r\ncd" OK(3) "\r\ndef" OK(4) "\r\nefgh");
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    rig_free(r);
}

/* Kept bytes come before those of the next input. Sentence 337. */
Test(h1_conn, kept_bytes_and_input)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/1?l"));
    keep(r, GET("/2") "GET ");
    rig_answer(r, rig_last(r));
    rig_output(r);
    static const char rest[] = "/3?l HTTP/1.1\r\nHost: h\r\n\r\n" GET("/4");
    size_t left = rig_input(r, rest, sizeof rest - 1);
    cr_expect_eq(left, sizeof GET("/4") - 1);
    cr_expect_eq(r->n_req, 3);
    keep(r, rest + sizeof rest - 1 - left);
    nj_h1_drain(r->h, false); /* the open request is the last one */
    rig_answer(r, rig_last(r));
    rig_output(r);
    cr_expect_eq(nj_h1_input(r->h, (const uint8_t *)"", 0), 0);
    cr_expect(!nj_h1_has_kept(r->h) && nj_h1_is_finished(r->h));
    keep(r, "x"); /* without effect */
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    RIG_EXPECT(r, OK(1) "\r\nb" OK(2) "\r\ncd" OK(3) "Connection: close\r\n\r\ndef");
    rig_free(r);
}

/* Many requests of one record of TLS, which wait for one response after the other. Sentence 337. */
Test(h1_conn, kept_requests)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/0?l"));
    for (unsigned i = 1; i < 200; i++)
        keep(r,
             i % 3 ? GET("/2?l") : "POST /1?l HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    keep(r, "GET /"); /* an incomplete one, which is completed after half of the others */
    for (unsigned i = 1; i <= 200; i++) {
        rig_answer(r, rig_last(r));
        rig_output(r);
        if (i == 100)
            keep(r, "3?l HTTP/1.1\r\nHost: h\r\n\r\nGET ");
        cr_expect_eq(nj_h1_input(r->h, (const uint8_t *)"", 0), 0);
        cr_expect_eq(r->n_req, i + 1);
    }
    rig_answer(r, rig_last(r));
    rig_say(r, "/4 HTTP/1.1\r\nHost: h\r\n\r\n");
    cr_expect(r->n_req == 202 && rig_last(r)->complete);
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    rig_free(r);
}

/* Responses to requests that were read are sent completely. Sentences 315, 341. */
Test(h1_conn, no_memory_for_kept_bytes)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/1?d"));
    r->alloc.fail_countdown = 1;
    keep(r, GET("/2"));
    rig_release(rig_last(r)->body, 1);
    rig_output(r);
    cr_expect_eq(r->rv, 0);
    RIG_EXPECT(r, OK(1) "\r\nb");
    cr_expect(rig_last(r)->complete && nj_h1_is_finished(r->h) && !nj_h1_must_reset(r->h));
    rig_free(r);

    r = rig_new(); /* the response has not begun */
    rig_say(r, GET("/1?l"));
    r->alloc.fail_countdown = 1;
    keep(r, GET("/2"));
    rig_answer(r, rig_last(r));
    rig_output(r);
    RIG_EXPECT(r, OK(1) "Connection: close\r\n\r\nb");
    cr_expect(nj_h1_is_finished(r->h) && r->n_req == 1);
    rig_free(r);

    r = rig_new(); /* the rest of the body is lost */
    rig_say(r, "POST /1?l HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n");
    char *body = calloc(1, 270000);
    uint32_t left = (uint32_t)rig_input(r, body, 270000);
    cr_expect(left > 0 && !nj_h1_may_read(r->h));
    r->alloc.fail_countdown = 1;
    nj_h1_keep(r->h, (const uint8_t *)body, left);
    rig_output(r);
    RIG_EXPECT(r, "");
    cr_expect(rig_last(r)->closed && !rig_last(r)->complete && nj_h1_is_finished(r->h));
    free(body);
    rig_free(r);
}

/* Sentence 286. */
Test(h1_conn, kept_bytes_of_a_body)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/1?l"));
    keep(r, "POST /2?a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    rig_answer(r, rig_last(r));
    rig_output(r);
    rig_say(r, "defghijGET /3 HTTP/1.0\r\n\r\n");
    cr_expect_eq(r->n_closed, 3);
    cr_expect(r->req[1]->n_content == 10 && memcmp(r->req[1]->content, "abcdefghij", 10) == 0);
    rig_free(r);
}

/* ---- graceful shutdown ---- */

/* Sentences 341, 345. */
Test(h1_conn, drain)
{
    struct rig *r = rig_new(); /* without a request */
    nj_h1_drain(r->h, false);
    cr_expect(nj_h1_is_finished(r->h));
    cr_expect_eq(rig_say(r, GET("/1")), 0);
    cr_expect_eq(r->n_req, 0);
    rig_free(r);

    r = rig_new(); /* before the response */
    rig_say(r, GET("/1?l"));
    nj_h1_drain(r->h, false);
    cr_expect(!nj_h1_is_finished(r->h));
    rig_answer(r, rig_last(r));
    rig_output(r);
    RIG_EXPECT(r, OK(1) "Connection: close\r\n\r\nb");
    cr_expect(nj_h1_is_finished(r->h) && rig_last(r)->complete);
    rig_free(r);

    r = rig_new(); /* within the response */
    rig_say(r, GET("/1?d"));
    nj_h1_drain(r->h, false);
    cr_expect(!nj_h1_is_finished(r->h));
    rig_release(rig_last(r)->body, 1);
    rig_output(r);
    RIG_EXPECT(r, OK(1) "\r\nb");
    cr_expect(nj_h1_is_finished(r->h));
    rig_free(r);

    r = rig_new(); /* after the response; a part of a head is there */
    rig_say(r, GET("/1") "GET /2");
    nj_h1_drain(r->h, false);
    cr_expect(!nj_h1_is_finished(r->h));
    cr_expect_eq(nj_h1_unfinished_since(r->h, 5), 5);
    rig_say(r, " HTTP/1.1\r\nHost: h\r\n\r\n");
    cr_expect(nj_h1_is_finished(r->h) && rig_last(r)->complete);
    cr_expect_eq(r->n_req, 2);
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    rig_free(r);
}

/* ---- time-outs ---- */

Test(h1_conn, when_a_head_began)
{
    struct rig *r = rig_new();
    cr_expect_eq(nj_h1_unfinished_since(r->h, 1), NJ_NEVER);
    rig_say(r, "\r\n");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 2), NJ_NEVER);
    rig_say(r, "G");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 3), 3);
    rig_say(r, "ET /1 HTTP/1.1\r\n");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 4), 3);
    rig_say(r, "Host: h\r\n\r\nG"); /* another one */
    cr_expect_eq(nj_h1_unfinished_since(r->h, 5), 5);
    rig_say(r, "ET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 6), NJ_NEVER);
    rig_say(r, "POST /1?a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 7), 7, "of trailers");
    rig_say(r, ": y\r\n\r\n\r");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 8), 8);
    rig_say(r, "\n");
    cr_expect_eq(nj_h1_unfinished_since(r->h, 9), NJ_NEVER);
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    rig_free(r);
}

/* Sentences 314, 338. */
Test(h1_conn, a_slow_head)
{
    struct rig *r = rig_new();
    rig_say(r, GET("/1") "GET /2 HTTP/1.1\r\nHo");
    rig_clear(r);
    nj_h1_end_for_timeout(r->h);
    rig_output(r);
    RIG_EXPECT(r, "HTTP/1.1 408 Request Timeout\r\nServer: nightjar\r\nContent-Length: 0\r\n"
                  "Connection: close\r\n\r\n");
    cr_expect(nj_h1_is_finished(r->h) && r->refused_why == NJ_C_h1_head_timeout);
    cr_expect_eq(rig_count(r, NJ_C_h1_head_timeout), 1);
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    rig_free(r);

    r = rig_new(); /* trailers */
    rig_say(r, "POST /1?a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ");
    nj_h1_end_for_timeout(r->h);
    rig_output(r);
    RIG_EXPECT(r, "HTTP/1.1 408 Request Timeout\r\nServer: nightjar\r\nContent-Length: 0\r\n"
                  "Connection: close\r\n\r\n");
    cr_expect(nj_h1_is_finished(r->h) && rig_last(r)->closed);
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    rig_free(r);

    r = rig_new(); /* trailers, behind a response that has begun */
    rig_say(r, "POST /1?d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ");
    rig_clear(r);
    nj_h1_end_for_timeout(r->h);
    rig_output(r);
    RIG_EXPECT(r, "");
    cr_expect(nj_h1_is_finished(r->h) && !rig_last(r)->complete);
    rig_free(r);

    r = rig_new(); /* no bytes, no response */
    nj_h1_end_for_timeout(r->h);
    nj_h1_end_for_timeout(r->h);
    rig_output(r);
    RIG_EXPECT(r, "");
    cr_expect(nj_h1_is_finished(r->h));
    rig_free(r);

    r = rig_new(); /* a request is open: it ends without a response */
    rig_say(r, GET("/1?l"));
    nj_h1_end_for_timeout(r->h);
    rig_output(r);
    RIG_EXPECT(r, "");
    cr_expect(nj_h1_is_finished(r->h));
    rig_free(r);
}

/* ---- the end at any time ---- */

/* Sentence 288. */
Test(h1_conn, the_owner_closes)
{
    static const char *const texts[] = {
        "",
        "GET /1 HTT",
        GET("/1?l"),
        GET("/9?d"),
        GET("/9?dunt"),
        GET("/1?l") GET("/2"),
        "POST /1?a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
        GET("/1?r")};
    for (size_t i = 0; i < NJ_ARRAY_LEN(texts); i++) {
        struct rig *r = rig_new();
        r->room = i % 2;
        rig_say(r, texts[i]);
        bool was_open = nj_h1_n_requests(r->h) > 0;
        nj_h1_close(r->h);
        r->h = NULL;
        cr_expect(!was_open || (rig_last(r)->closed && !rig_last(r)->complete));
        rig_free(r);
    }
}

/* Calls in on_close have no effect. */
static void on_close_calls(void *user, struct nj_h1 *h, bool complete)
{
    struct rig *r = user;
    const struct nj_field field = {NJ_STR_INIT("a"), NJ_STR_INIT("b")};
    cr_expect_eq(nj_h1_set_trailers(h, &field, 1), -1);
    nj_h1_reset(h);
    nj_h1_resume(h);
    nj_h1_send_continue(h);
    nj_h1_consume(h, rig_last(r)->n_held + 1);
    rig_on_close(user, h, complete);
}

Test(h1_conn, calls_in_on_close)
{
    struct nj_h1_events events = rig_events;
    events.on_close = on_close_calls;
    struct rig *r = rig_new_with(&events, &rig_limits);
    rig_say(r, GET("/1") GET("/2"));
    RIG_EXPECT(r, OK(1) "\r\nb" OK(2) "\r\ncd");
    rig_say(r, "POST /1?l HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc");
    rig_free(r);
}

/* ---- memory ---- */

Test(h1_conn, the_memory_limit)
{
    struct rig *r = rig_new();
    cr_expect_leq(sizeof(struct nj_h1), 256);
    r->alloc.bytes_max = r->alloc.bytes_used + 600;
    struct nj_h1 *second = nj_h1_open(r->ctx, r, false, false);
    cr_assert(second);
    r->alloc.bytes_max = r->alloc.bytes_used;
    cr_expect_null(nj_h1_open(r->ctx, r, false, false));
    cr_expect_eq(rig_say(r, GET("/1")), 0); /* responses are not refused */
    RIG_EXPECT(r, OK(1) "\r\nb");
    rig_say(r, "GET /1"); /* an incomplete head is */
    cr_expect(r->rv == 0 && nj_h1_is_finished(r->h) && !nj_h1_must_reset(r->h));
    cr_expect_eq(nj_h1_input(r->h, (const uint8_t *)"x", 1), 1, "and input is discarded");
    cr_expect_eq(nj_h1_buffered_bytes(r->h), 0);
    nj_h1_close(second);
    rig_free(r);
}

Test(h1_conn, a_sink_that_fails)
{
    for (uint32_t k = 1; k < 5; k++) {
        struct rig *r = rig_new();
        r->sink_fail = k;
        rig_say(r, GET("/1") GET("/3000?un") GET("/2000"));
        cr_expect_eq(r->rv, -1);
        cr_expect(nj_h1_may_read(r->h));
        rig_free(r);
    }
}
