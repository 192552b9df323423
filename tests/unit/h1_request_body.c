/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of requests: lengths, chunks, trailers, 100 (Continue), the window, early responses. */
#include "h1_rig.h"

#define GET(t)     "GET " t " HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST(t, n) "POST " t " HTTP/1.1\r\nHost: h\r\nContent-Length: " n "\r\n\r\n"
#define CHUNKS(t)  "POST " t " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OWN        "Server: nightjar\r\nX-Content-Type-Options: nosniff\r\n"
#define OK(n)      "HTTP/1.1 200 OK\r\n" OWN "Content-Length: " #n "\r\n"
#define CLOSE      "Connection: close\r\n"
#define CONTINUE   "HTTP/1.1 100 Continue\r\n\r\n"
#define EMPTY      "Content-Length: 0\r\n" CLOSE "\r\n"
#define BAD        "HTTP/1.1 400 Bad Request\r\nServer: nightjar\r\n" EMPTY

/* The request is read completely with this content, and the next one is served, too. */
static void expect_content(const char *request, const char *content, int line)
{
    struct rig *r = rig_new();
    char text[4000];
    snprintf(text, sizeof text, "%s" GET("/2"), request);
    cr_expect_eq(rig_say(r, text), 0, "line %d", line);
    cr_assert_eq(r->n_req, 2, "line %d: %s", line, r->out);
    const struct rig_request *q = r->req[0];
    cr_expect(q->ended && q->complete, "line %d", line);
    cr_expect(q->n_content == strlen(content) && memcmp(q->content, content, q->n_content) == 0,
              "line %d: %.*s", line, (int)q->n_content, q->content);
    RIG_EXPECT(r, OK(1) "\r\nb" OK(2) "\r\ncd");
    rig_free(r);
}
#define EXPECT_CONTENT(request, content) expect_content(request, content, __LINE__)

/* Sentence 286. */
Test(h1_request_body, lengths)
{
    EXPECT_CONTENT(POST("/1?a", "3") "abc", "abc");
    EXPECT_CONTENT(POST("/1?a", "1") "a", "a");
    EXPECT_CONTENT(POST("/1?a", "3") "\r\n\n", "\r\n\n");
    EXPECT_CONTENT(POST("/1?ac", "28") GET("/3"), GET("/3")); /* it looks like a request */
}

/* Sentences 270, 294, 296 - 299, 302, 304. */
Test(h1_request_body, chunks)
{
    EXPECT_CONTENT(CHUNKS("/1?a") "3\r\nabc\r\n0\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde");
    EXPECT_CONTENT(CHUNKS("/1?a") "A\r\nabcdefghij\r\n00\r\n\r\n", "abcdefghij");
    EXPECT_CONTENT(CHUNKS("/1?a") "a\r\nabcdefghij\r\n0000000000000000\r\n\r\n", "abcdefghij");
    EXPECT_CONTENT(CHUNKS("/1?a") "0000000000000003\r\nabc\r\n0\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "2\r\n\r\n\r\n0\r\n\r\n", "\r\n");
    /* extensions (RFC 9112 7.1.1) */
    EXPECT_CONTENT(CHUNKS("/1?a") "3;a\r\nabc\r\n0;b=c\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "3 \t; \ta \t= \tb \t;c\r\nabc\r\n0\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "3;a=\"b;=\\\"\t\\\\ \x80\"\r\nabc\r\n0\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "3;a=\"\" ;b=!\r\nabc\r\n0\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "3;a=\"b\";c;d=e\r\nabc\r\n0\r\n\r\n", "abc");
    /* trailers are dropped */
    EXPECT_CONTENT(CHUNKS("/1?a") "3\r\nabc\r\n0\r\nX: y\r\nContent-Length: 5\r\n\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "0\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "");
    EXPECT_CONTENT(CHUNKS("/1?a") "0\r\n\r\n", "");
}

/* Whether there is a body does not depend on the method. Sentence 269. */
Test(h1_request_body, bodies_of_any_method)
{
    EXPECT_CONTENT("GET /1?a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "abc");
    EXPECT_CONTENT("X /1?a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "abc");
    EXPECT_CONTENT("DELETE /1?a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "3\r\nabc\r\n0\r\n\r\n",
                   "abc");
}

/* As HTTP/1.0 agents send it behind a POST. Sentence 206. */
Test(h1_request_body, an_empty_line_behind_a_body)
{
    EXPECT_CONTENT(POST("/1?a", "3") "abc\r\n", "abc");
    EXPECT_CONTENT(CHUNKS("/1?a") "3\r\nabc\r\n0\r\n\r\n\r\n", "abc");
}

/* ---- bad framing ---- */

static const struct {
    const char *text;
    nj_counter why;
} bad[] = {
    {"\r\n", NJ_C_h1_line_end},
    {"\n", NJ_C_h1_line_end},
    {"3\n", NJ_C_h1_line_end},
    {"3\r3", NJ_C_h1_line_end},
    {"3;a\n", NJ_C_h1_line_end},
    {"3;a=\"\r\n", NJ_C_h1_line_end},
    {"3;a=\"\n", NJ_C_h1_line_end},
    {"3;\r\n", NJ_C_h1_line_end},
    {"3;a=\r\n", NJ_C_h1_line_end},
    {"3;a \r\n", NJ_C_h1_line_end},
    {"3 \r\n", NJ_C_h1_line_end},
    {"3;a=b \r\n", NJ_C_h1_line_end},
    {"3\r\nabcd", NJ_C_h1_line_end},
    {"3\r\nabc\n", NJ_C_h1_line_end},
    {"3\r\nabc\r0", NJ_C_h1_line_end},
    {"3\r\nabc0\r\n", NJ_C_h1_line_end},
    {"g", NJ_C_h1_chunk},
    {" 3", NJ_C_h1_chunk},
    {"+3", NJ_C_h1_chunk},
    {"-3", NJ_C_h1_chunk},
    {"0x3", NJ_C_h1_chunk},
    {"3h", NJ_C_h1_chunk},
    {"3,", NJ_C_h1_chunk},
    {"3.", NJ_C_h1_chunk},
    {";a\r\n", NJ_C_h1_chunk},
    {"3 3", NJ_C_h1_chunk},
    {"3;;", NJ_C_h1_chunk},
    {"3;=", NJ_C_h1_chunk},
    {"3;a==", NJ_C_h1_chunk},
    {"3;a b", NJ_C_h1_chunk},
    {"3;a=b=", NJ_C_h1_chunk},
    {"3;a=b c", NJ_C_h1_chunk},
    {"3;a=\"b\"c", NJ_C_h1_chunk},
    {"3;a\"", NJ_C_h1_chunk},
    {"3;a=\"\x01", NJ_C_h1_chunk},
    {"3;a=\"\x7f", NJ_C_h1_chunk},
    {"3;a=\"\\\x01", NJ_C_h1_chunk},
    {"3;\x80", NJ_C_h1_chunk},
    {"3;a=\x80", NJ_C_h1_chunk},
    {"3;a,b", NJ_C_h1_chunk},
    {"00000000000000003\r\n", NJ_C_h1_chunk}, /* 17 digits */
    {"10000000000000000\r\n", NJ_C_h1_chunk},
    {"0\r\nX : y\r\n", NJ_C_h1_field_name},
    {"0\r\nX\r\n", NJ_C_h1_field_name},
    {"0\r\nX: \x01\r\n", NJ_C_h1_field_value},
    {"0\r\n Y: z\r\n", NJ_C_h1_field_value},
    {"0\r\nX: y\n", NJ_C_h1_line_end},
    {"0\r\n\n", NJ_C_h1_line_end},
    {"0\r\n\rX", NJ_C_h1_field_name}, /* when its line ends */
};

/* Before the response, the request gets 400; on_close follows. Sentences 295 - 297, 300, 303, 342.
 */
Test(h1_request_body, bad_chunks)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        char text[200];
        struct rig *r = rig_new();
        snprintf(text, sizeof text, CHUNKS("/1?a") "%s%s", bad[i].text,
                 i + 1 == NJ_ARRAY_LEN(bad) ? ": y\r\n" : "");
        cr_expect_eq(rig_say(r, text), 0);
        bool line_end = i + 1 == NJ_ARRAY_LEN(bad);
        cr_expect(r->refused_why == (line_end ? NJ_C_h1_line_end : bad[i].why) &&
                      r->refused_status == 400,
                  "%s: %s", nj_counter_info[r->refused_why].name, bad[i].text);
        RIG_EXPECT(r, BAD);
        cr_expect(rig_last(r)->closed && rig_last(r)->complete && !rig_last(r)->ended);
        cr_expect(nj_h1_is_finished(r->h));
        rig_free(r);
    }
}

/* After the begin of a response there is no second one: the connection ends. */
Test(h1_request_body, bad_chunks_after_the_response)
{
    struct rig *r = rig_new(); /* it is complete */
    rig_say(r, CHUNKS("/1") "x");
    RIG_EXPECT(r, OK(1) CLOSE "\r\nb");
    cr_expect(rig_last(r)->complete && nj_h1_is_finished(r->h));
    rig_free(r);

    r = rig_new(); /* it is not */
    rig_say(r, CHUNKS("/9?d"));
    rig_say(r, "x");
    RIG_EXPECT(r, OK(9) CLOSE "\r\n");
    cr_expect(!rig_last(r)->complete && rig_last(r)->closed && nj_h1_is_finished(r->h));
    cr_expect(!nj_h1_must_reset(r->h) && r->n_refused == 1 && r->refused_status == 0);
    rig_free(r);

    r = rig_new(); /* it is ended by the connection */
    rig_say(r, "POST /9?dun HTTP/1.0\r\nContent-Length: 5\r\n\r\n");
    nj_h1_close(r->h);
    r->h = NULL;
    rig_free(r);
}

/* Sentence 301. */
Test(h1_request_body, extensions_are_bounded)
{
    char text[4000];
    for (unsigned over = 0; over < 2; over++) {
        int n = snprintf(text, sizeof text, CHUNKS("/1?a"));
        for (unsigned i = 0; i < 4; i++) /* 256 bytes each, in all of the request */
            n += snprintf(text + n, sizeof text - (size_t)n, "1;%0*d\r\na\r\n",
                          255 + (over && i == 3), 0);
        snprintf(text + n, sizeof text - (size_t)n, "0\r\n\r\n");
        struct rig *r = rig_new();
        rig_say(r, text);
        cr_expect_eq(rig_count(r, NJ_C_h1_chunk), over);
        cr_expect_eq(rig_last(r)->ended, !over);
        rig_free(r);
    }
}

/* Sentences 265, 303. */
Test(h1_request_body, trailers_are_bounded)
{
    const struct nj_h1_limits limits = {.header_bytes_max = 300, .header_fields_max = 3};
    for (unsigned pieces = 0; pieces < 2; pieces++) {
        struct rig *r = rig_new_with(&rig_events, &limits);
        char text[600];
        int n = snprintf(text, sizeof text, CHUNKS("/1?a") "0\r\nX: %0*d", 400, 0);
        for (int i = 0; pieces && i < n; i++)
            rig_input(r, text + i, 1);
        if (!pieces)
            rig_input(r, text, (size_t)n);
        cr_expect_eq(rig_count(r, NJ_C_h1_head_full), 1);
        cr_expect_eq(r->refused_status, 431);
        rig_free(r);
    }
    struct rig *r = rig_new_with(&rig_events, &limits); /* the number of their fields */
    rig_say(r, CHUNKS("/1?a") "0\r\na: b\r\na: b\r\na: b\r\na: b\r\n\r\n");
    cr_expect(r->refused_status == 431 && rig_count(r, NJ_C_h1_head_full) == 1);
    rig_free(r);
}

/* ---- the window ---- */

/* Sentence 339. */
Test(h1_request_body, the_window)
{
    struct rig *r = rig_new();
    const size_t size = NJ_H1_BODY_WINDOW_BYTES + 1000;
    char *body = malloc(size), head[200];
    memset(body, 'x', size);
    snprintf(head, sizeof head, "POST /1?a HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
             size);
    rig_say(r, head);
    cr_expect_eq(rig_input(r, body, size), 1000);
    cr_expect(!nj_h1_may_read(r->h) && rig_last(r)->n_content == NJ_H1_BODY_WINDOW_BYTES);
    rig_consume(r, 400);
    cr_expect(nj_h1_may_read(r->h));
    cr_expect_eq(rig_input(r, body, 1000), 600);
    rig_consume(r, 5000);
    cr_expect_eq(rig_input(r, body, 600), 0);
    cr_expect(rig_last(r)->ended && rig_last(r)->complete);
    free(body);
    rig_free(r);
}

/* Sentence 339. */
Test(h1_request_body, the_window_of_chunks)
{
    struct rig *r = rig_new();
    size_t n = 0, at = 0;
    char *text = malloc(700000);
    n = (size_t)sprintf(text, CHUNKS("/1?a"));
    while (n < 600000)
        n += (size_t)sprintf(text + n, "64\r\n%0100d\r\n", 0);
    n += (size_t)sprintf(text + n, "0\r\n\r\n");
    for (unsigned turns = 0; at < n; turns++) {
        cr_assert_lt(turns, 10);
        at = n - rig_input(r, text + at, n - at);
        if (!rig_last(r)->closed)
            rig_consume(r, rig_last(r)->n_held);
    }
    cr_expect(rig_last(r)->complete && rig_last(r)->n_content > 500000);
    free(text);
    rig_free(r);
}

/* Without on_data bodies are discarded. Sentence 335. */
Test(h1_request_body, unread_bodies)
{
    struct rig *r = rig_new_with(&rig_plain_events, &rig_limits);
    rig_say(r, POST("/1?l", "5") "abcde");
    cr_expect(!rig_last(r)->closed);
    rig_answer(r, rig_last(r));
    rig_output(r);
    rig_say(r, CHUNKS("/2?l") "3\r\nabc\r\n0\r\n\r\n");
    rig_answer(r, rig_last(r));
    rig_output(r);
    RIG_EXPECT(r, OK(1) "\r\nb" OK(2) "\r\ncd");
    rig_free(r);
}

/* ---- 100 (Continue) ---- */

#define EXPECTS(t)                                                                                 \
    "POST " t " HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"

/* Sentences 279, 291, 311, 318, 323. */
Test(h1_request_body, continues)
{
    struct rig *r = rig_new();
    rig_say(r, EXPECTS("/1?ax"));
    RIG_EXPECT(r, CONTINUE);
    nj_h1_send_continue(r->h); /* only once */
    rig_output(r);
    RIG_EXPECT(r, "");
    rig_say(r, "abc");
    RIG_EXPECT(r, OK(1) "\r\nb");
    cr_expect(!nj_h1_is_finished(r->h));
    rig_free(r);
}

/* No effect: nothing is expected, bytes have come, the version is 1.0, the response was given.
 * Sentences 216, 319 - 321, 325. */
Test(h1_request_body, no_continue)
{
    struct rig *r = rig_new();
    rig_say(r, POST("/1?xa", "3"));
    nj_h1_send_continue(r->h);
    rig_output(r);
    RIG_EXPECT(r, "");
    rig_say(r, "abc");
    RIG_EXPECT(r, OK(1) "\r\nb");
    rig_say(r, EXPECTS("/1?a") "a");
    nj_h1_send_continue(r->h);
    rig_say(r, "bc");
    RIG_EXPECT(r, OK(1) "\r\nb");
    rig_say(r, EXPECTS("/1?d"));
    nj_h1_send_continue(r->h);
    rig_output(r);
    RIG_EXPECT(r, OK(1) CLOSE "\r\n");
    rig_free(r);

    r = rig_new();
    rig_say(r, "POST /1?xa HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    RIG_EXPECT(r, "");
    rig_say(r, "abc");
    RIG_EXPECT(r, OK(1) CLOSE "\r\nb");
    rig_free(r);
}

/* A client of HTTP/1.0 that expects 100 in vain may not send the body. Sentences 320, 324, 335. */
Test(h1_request_body, early_response_to_an_expectation_of_1_0)
{
    static const char head[] =
        "POST /1 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n";
    struct rig *r = rig_new();
    rig_say(r, head);
    rig_say(r, "Expect: 100-continue\r\n\r\n");
    RIG_EXPECT(r, OK(1) CLOSE "\r\nb");
    cr_expect(nj_h1_is_finished(r->h) && rig_last(r)->complete);
    rig_free(r);
    r = rig_new(); /* without the expectation the body is on the way */
    rig_say(r, head);
    rig_say(r, "\r\n");
    RIG_EXPECT(r, OK(1) "Connection: keep-alive\r\n\r\nb");
    cr_expect(!nj_h1_is_finished(r->h));
    rig_free(r);
}

/* ---- responses before the end of the request ---- */

/* Sentences 319, 324, 335, 341. */
Test(h1_request_body, early_responses)
{
    struct rig *r = rig_new(); /* few bytes are to come: they are discarded */
    rig_say(r, POST("/1", "65536"));
    RIG_EXPECT(r, OK(1) "\r\nb");
    cr_expect(rig_last(r)->closed && nj_h1_n_requests(r->h) == 0 && !nj_h1_is_finished(r->h));
    for (unsigned i = 0; i < 65536; i++)
        rig_say(r, "x");
    cr_expect_eq(rig_last(r)->n_content, 0);
    rig_say(r, GET("/2"));
    RIG_EXPECT(r, OK(2) "\r\ncd");
    rig_free(r);

    r = rig_new(); /* too many */
    rig_say(r, POST("/1", "65537") "x");
    RIG_EXPECT(r, OK(1) CLOSE "\r\nb");
    cr_expect(nj_h1_is_finished(r->h) && rig_last(r)->complete);
    rig_free(r);

    r = rig_new(); /* an unknown number */
    rig_say(r, CHUNKS("/1"));
    RIG_EXPECT(r, OK(1) CLOSE "\r\nb");
    rig_free(r);

    r = rig_new(); /* the client may wait */
    rig_say(r, EXPECTS("/1"));
    RIG_EXPECT(r, OK(1) CLOSE "\r\nb");
    cr_expect(nj_h1_is_finished(r->h));
    rig_free(r);

    r = rig_new(); /* it does not */
    rig_say(r, EXPECTS("/1?x"));
    RIG_EXPECT(r, CONTINUE OK(1) "\r\nb");
    rig_free(r);
}

/* Whose rest may still come when the connection has ended. */
Test(h1_request_body, rest_behind_the_last_response)
{
    struct rig *r = rig_new();
    rig_say(r, POST("/1", "65537") "x");
    cr_expect(nj_h1_is_finished(r->h) && nj_h1_rest_may_come(r->h));
    rig_free(r);

    r = rig_new(); /* a slow body */
    rig_say(r, POST("/1?a", "65537") "x");
    cr_assert_eq(nj_h1_respond(r->h, 408, NULL, 0, 0, NULL), 0);
    rig_output(r);
    cr_expect(nj_h1_is_finished(r->h) && !nj_h1_rest_may_come(r->h));
    rig_free(r);

    r = rig_new(); /* no response is complete */
    rig_say(r, POST("/1?a", "65537") "x");
    nj_h1_reset(r->h);
    rig_output(r);
    cr_expect(nj_h1_is_finished(r->h) && !nj_h1_rest_may_come(r->h));
    rig_free(r);

    r = rig_new(); /* a short rest that is slow */
    rig_say(r, POST("/1", "9") "x");
    cr_expect(!nj_h1_is_finished(r->h) && !nj_h1_rest_may_come(r->h));
    nj_h1_end_for_timeout(r->h);
    rig_output(r);
    cr_expect(nj_h1_is_finished(r->h) && !nj_h1_rest_may_come(r->h));
    rig_free(r);

    r = rig_new(); /* the whole request has come */
    rig_say(r, "GET /1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    cr_expect(nj_h1_is_finished(r->h) && !nj_h1_rest_may_come(r->h));
    rig_free(r);
}

/* The rest of the request is read while the response is not complete. Sentence 324. */
Test(h1_request_body, both_at_the_same_time)
{
    struct rig *r = rig_new();
    rig_say(r, CHUNKS("/3?d"));
    rig_say(r, "3\r\nabc\r\n");
    rig_release(rig_last(r)->body, 1);
    rig_say(r, "0\r\n\r\n");
    cr_expect(rig_last(r)->ended && rig_last(r)->n_content == 3);
    RIG_EXPECT(r, OK(3) CLOSE "\r\nd");
    rig_release(rig_last(r)->body, 2);
    rig_output(r);
    RIG_EXPECT(r, "ef");
    cr_expect(nj_h1_is_finished(r->h));
    rig_free(r);
}

/* Callbacks that reset the request. */
static void on_data_reset(void *user, struct nj_h1 *h, const uint8_t *data, size_t n)
{
    rig_on_data(user, h, data, n);
    nj_h1_reset(h);
}

Test(h1_request_body, reset_in_on_data)
{
    struct nj_h1_events events = rig_events;
    events.on_data = on_data_reset;
    struct rig *r = rig_new_with(&events, &rig_limits);
    rig_say(r, POST("/1?a", "3") "abc" GET("/2"));
    RIG_EXPECT(r, "");
    cr_expect(!rig_last(r)->ended && rig_last(r)->closed && !rig_last(r)->complete);
    cr_expect(nj_h1_is_finished(r->h) && r->n_req == 1);
    rig_free(r);
}

static void on_data_respond(void *user, struct nj_h1 *h, const uint8_t *data, size_t n)
{
    rig_on_data(user, h, data, n);
    if (rig_last(user)->n_content == n)
        rig_answer(user, rig_last(user));
}

Test(h1_request_body, respond_in_on_data)
{
    struct nj_h1_events events = rig_events;
    events.on_data = on_data_respond;
    struct rig *r = rig_new_with(&events, &rig_limits);
    rig_say(r, POST("/1?l", "3") "abc" GET("/2"));
    RIG_EXPECT(r, OK(1) "\r\nb" OK(2) "\r\ncd");
    rig_free(r);
}
