/* SPDX-License-Identifier: BSD-3-Clause */
/* Timeouts of peers that speak HTTP/1: those of HTTP/2, and 408 for a head that is too slow. */
#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

static void read_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
    nj_response_write(resp, "heard", 5);
}

/* Responds first, then waits for more of the request. */
static void read_and_write(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
    nj_response_flush(resp);
    read_body(req, resp, arg);
}

static void wait_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(1000 * NJ_SEC);
}

static const struct nj_route routes[] = {
    {.path = "/read_body", .type = NJ_BLOCKING, .handle = read_body, .body_max_bytes = 1u << 30},
    {.path = "/pack", .type = NJ_OS_BLOCKING, .handle = read_body},
    {.path = "/read_and_write", .type = NJ_BLOCKING, .handle = read_and_write},
    {.path = "/wait", .type = NJ_BLOCKING, .handle = wait_long},
};

static struct hr *start(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->r->http.min_rate = 0;
    return hr_start(h);
}

/* Sends the bytes, one per `every`, until the server ends the connection. Returns the time. */
static nj_ns dribble(struct rig *r, struct rig_peer *p, const char *bytes, nj_ns every)
{
    nj_ns begun = r->now;

    for (uint32_t i = 0; i < 1000 && !p->got_fin && !p->got_rst; i++) {
        if (*bytes)
            rig_send(r, p, bytes++, 1);
        rig_run(r, every);
    }
    return r->now - begun;
}

/* ---- without a request ---- */

Test(conn_http1_timeouts, silent_peers)
{
    struct rig *r = rig_new();
    struct rig_peer *silent = rig_connect(r, 1000), *almost = rig_connect(r, 1001);

    rig_send(r, almost, "P", 1); /* it may be either protocol */
    rig_run(r, 9900 * NJ_MS);
    cr_expect(!silent->got_rst && !almost->got_rst);
    rig_run(r, 200 * NJ_MS);
    cr_expect(silent->got_rst && almost->got_rst);
    cr_expect_eq(silent->n_got + almost->n_got, 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 2);
    rig_free(r);
}

/* 75 s after the last response; it ends without another one. Sentence 338. */
Test(conn_http1_timeouts, idle_connections)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    for (int i = 0; i < 3; i++) {
        http1_get(r, p, "/index.html");
        rig_run(r, 74 * NJ_SEC);
    }
    cr_expect(!p->got_fin);
    rig_run(r, 900 * NJ_MS);
    cr_expect(!p->got_fin);
    rig_run(r, 300 * NJ_MS);
    cr_expect_eq(http1_count(p, NULL), 3);
    cr_expect_eq(rig_count(r, NJ_C_status_4xx), 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    http1_expect_closed(r, p);
    rig_run(r, 2500 * NJ_MS);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_free(r);
}

/* A request that comes in the step in which the time is over is answered. */
Test(conn_http1_timeouts, a_request_at_the_end_of_the_time)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_get(r, p, "/index.html");
    rig_run(r, 5 * NJ_SEC);
    http1_get(r, p, "/whole");
    r->now += 80 * NJ_SEC;
    rig_settle(r);
    cr_expect_eq(http1_count(p, NULL), 2);
    cr_expect(!p->got_fin);
    rig_free(r);
}

/* Only the empty line before a request has come: no request has begun. */
Test(conn_http1_timeouts, an_empty_line_is_no_request)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_send(r, p, "\r\n");
    rig_run(r, 76 * NJ_SEC);
    cr_expect_eq(p->n_got, 0);
    http1_expect_closed(r, p);
    rig_free(r);
}

/* ---- heads ---- */

/* 408, FIN and a lingering close (RFC 9110 15.5.9). */
static void expect_408(struct rig *r, struct rig_peer *p, uint32_t n_before, nj_ns took)
{
    struct http1_reply a = {0};

    cr_expect(took >= 9900 * NJ_MS && took <= 11100 * NJ_MS, "%lu ms", took / NJ_MS);
    cr_expect_eq(http1_count(p, &a), n_before + 1);
    cr_expect(a.status == 408 && a.is_whole && a.says_close, "%s", a.head);
    cr_expect_eq(rig_count(r, NJ_C_h1_head_timeout), 1);
    http1_expect_closed(r, p);
    http1_send(r, p, "more");
    rig_run(r, 100 * NJ_MS);
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    rig_run(r, 6 * NJ_SEC);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
}

/* Sentence 314. */
Test(conn_http1_timeouts, heads_that_dribble)
{
    static const char *const heads[] = {
        "GET /index.html?aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "GET / HTTP/1.1\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\n",
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(heads); i++)
        for (int first = 0; first < 2; first++) {
            struct rig *r = rig_new();
            struct rig_peer *p = rig_connect(r, 1000);
            if (first) {
                http1_get(r, p, "/index.html");
                rig_run(r, 20 * NJ_SEC);
            }
            expect_408(r, p, (uint32_t)first, dribble(r, p, heads[i], NJ_SEC));
            rig_free(r);
        }
}

Test(conn_http1_timeouts, heads_that_stop)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_send(r, p, "GET / HTTP/1.1\r\nHost: a\r\n");
    rig_settle(r);
    expect_408(r, p, 0, dribble(r, p, "", 500 * NJ_MS));
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    rig_free(r);
}

/* The part of a head behind a request waits with it; its time begins when it is read. */
Test(conn_http1_timeouts, heads_behind_a_request)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    r->files_slow = true;
    http1_get(r, p, "/index.html");
    http1_send(r, p, "GET / HTTP");
    rig_run(r, 30 * NJ_SEC);
    cr_expect_eq(p->n_got, 0);
    r->files_slow = false;
    rig_settle(r);
    cr_expect_eq(http1_count(p, NULL), 1);
    expect_408(r, p, 1, dribble(r, p, "", 100 * NJ_MS));
    rig_free(r);
}

/* Heads that end in time may be slow, one after the other, for ever. */
Test(conn_http1_timeouts, slow_heads_are_fine)
{
    static const char head[] = "GET /n HTTP/1.1\r\nHost:a\r\n\r\n";
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    for (int i = 0; i < 10; i++)
        for (const char *at = head; *at; at++) {
            rig_send(r, p, at, 1);
            rig_run(r, 350 * NJ_MS);
        }
    cr_expect_eq(http1_count(p, NULL), 10);
    cr_expect(!p->got_fin && !p->got_rst);
    rig_free(r);
}

/* ---- bodies of requests ---- */

/* 60 s, late by an eighth at most. */
static bool in_time(nj_ns took)
{
    return took >= 60 * NJ_SEC && took <= 68 * NJ_SEC;
}

/* Sends `n` bytes per second, until the server ends the connection. */
static nj_ns upload(struct hr *h, struct rig_peer *p, uint32_t n, nj_ns most)
{
    static const uint8_t zeros[1400];
    nj_ns begun = h->r->now;

    while (h->r->now - begun < most && !p->got_fin && !p->got_rst) {
        for (uint32_t at = 0; at < n && !p->got_fin; at += 1400)
            rig_send(h->r, p, zeros, n - at < 1400 ? n - at : 1400);
        hr_run(h, NJ_SEC);
    }
    return h->r->now - begun;
}

Test(conn_http1_timeouts, bodies_that_stop)
{
    static const char *const paths[] = {"/pack", "/read_body", "/read_and_write"};
    static const char *const fields[] = {"Content-Length: 5000\r\n",
                                         "Transfer-Encoding: chunked\r\n"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++)
        for (size_t k = 0; k < NJ_ARRAY_LEN(fields); k++) {
            struct hr *h = start();
            struct rig_peer *p = rig_connect(h->r, 1000);
            http1_ask(h->r, p, "POST", paths[i], fields[k]);
            http1_send(h->r, p, k ? "100\r\nsome" : "some");
            nj_ns took = upload(h, p, 0, 100 * NJ_SEC);
            cr_expect(in_time(took), "%s: %lu ms", paths[i], took / NJ_MS);
            struct http1_reply a = http1_first(p);
            if (i == 0) /* no handler has started */
                cr_expect(a.status == 408 && a.is_whole && a.says_close, "%s", a.head);
            else if (i == 1)
                cr_expect_eq(a.status, 0, "%s", a.head);
            else
                cr_expect(a.status == 200 && !a.is_whole && a.is_chunked, "%s", a.head);
            http1_expect_closed(h->r, p);
            cr_expect_eq(rig_count(h->r, NJ_C_body_timeout), 1);
            hr_free(h);
        }
}

/* At half and at twice of min_upload_rate. */
Test(conn_http1_timeouts, bodies_that_are_slow)
{
    for (uint32_t n = 500; n <= 2000; n *= 4) {
        struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
        h->r->http.min_upload_rate = 1000;
        hr_start(h);
        struct rig_peer *p = rig_connect(h->r, 1000);
        http1_ask(h->r, p, "POST", "/read_body", "Content-Length: 50000000\r\n");
        nj_ns took = upload(h, p, n, 200 * NJ_SEC);
        if (n == 500) {
            cr_expect(in_time(took), "%lu ms", took / NJ_MS);
            cr_expect_eq(rig_count(h->r, NJ_C_body_slow), 1);
            http1_expect_closed(h->r, p);
        } else {
            cr_expect(took >= 200 * NJ_SEC && !p->got_fin);
        }
        hr_free(h);
    }
}

Test(conn_http1_timeouts, body_deadline)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->r->http.body_deadline = 100 * NJ_SEC;
    hr_start(h);
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_ask(h->r, p, "POST", "/read_body", "Content-Length: 50000000\r\n");
    nj_ns took = upload(h, p, 8000, 300 * NJ_SEC);
    cr_expect(took >= 100 * NJ_SEC && took <= 110 * NJ_SEC, "%lu s", took / NJ_SEC);
    cr_expect_eq(rig_count(h->r, NJ_C_body_slow), 1);
    http1_expect_closed(h->r, p);
    hr_free(h);
}

/* `text` and then `more`, a byte each 3 s. Returns when the connection ended. */
static nj_ns dribble_body(struct hr *h, struct rig_peer *p, const char *text, const char *more)
{
    nj_ns begun = h->r->now;

    http1_ask(h->r, p, "POST", "/read_body", "Transfer-Encoding: chunked\r\n");
    http1_send(h->r, p, text);
    while (h->r->now - begun < 200 * NJ_SEC && !p->got_fin && !p->got_rst) {
        hr_run(h, 3 * NJ_SEC);
        if (*more && !p->got_fin)
            rig_send(h->r, p, more++, 1);
    }
    return h->r->now - begun;
}

static const char many[] =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/* Trailers have the time of a head, which is late by a check of the request. */
Test(conn_http1_timeouts, trailers_that_do_not_end)
{
    static const char *const texts[] = {"4\r\nsome\r\n0\r\nA: b\r\n", "0\r\nA", "0\r\n\r"};
    static const char *const mores[] = {"", many};

    for (size_t i = 0; i < NJ_ARRAY_LEN(texts); i++)
        for (size_t k = 0; k < 2; k++) {
            struct hr *h = start();
            struct rig_peer *p = rig_connect(h->r, 1000);
            nj_ns took = dribble_body(h, p, texts[i], i < 2 ? mores[k] : "");
            cr_expect(took >= 10 * NJ_SEC && took <= 21 * NJ_SEC, "%lu ms", took / NJ_MS);
            struct http1_reply a = http1_first(p);
            cr_expect(a.status == 408 && a.is_whole && a.says_close, "%s", a.head);
            cr_expect_eq(rig_count(h->r, NJ_C_h1_head_timeout), 1);
            cr_expect_eq(nj_abuse_get_count(&h->r->s->conns.abuse, NJ_C_h1_head_timeout), 1);
            http1_expect_closed(h->r, p);
            hr_free(h);
        }
}

/* Chunk syntax is a part of the body, and no progress of it. */
Test(conn_http1_timeouts, chunk_syntax_that_does_not_end)
{
    static const char *const texts[] = {"4\r\nsome\r\n0\r\n", "4\r\nsome\r\n4;", "4\r\nsome\r"};
    static const char *const mores[] = {"", many, ""};

    for (size_t i = 0; i < NJ_ARRAY_LEN(texts); i++) {
        struct hr *h = start();
        struct rig_peer *p = rig_connect(h->r, 1000);
        nj_ns took = dribble_body(h, p, texts[i], mores[i]);
        cr_expect(took >= 60 * NJ_SEC && took <= 72 * NJ_SEC, "%lu ms", took / NJ_MS);
        cr_expect_eq(rig_count(h->r, NJ_C_body_timeout), 1);
        http1_expect_closed(h->r, p);
        hr_free(h);
    }
}

/* The rest of a body behind its response has the time of a head, too. */
Test(conn_http1_timeouts, the_rest_of_a_body_that_nobody_wants)
{
    for (int stops = 0; stops < 2; stops++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        http1_ask(r, p, "POST", "/index.html", "Content-Length: 1000\r\n");
        rig_settle(r);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 405 && a.is_whole && !a.says_close, "%s", a.head);
        nj_ns took = dribble(r, p, stops ? "a" : many, NJ_SEC);
        cr_expect(took >= 9900 * NJ_MS && took <= 11100 * NJ_MS, "%lu ms", took / NJ_MS);
        cr_expect_eq(http1_count(p, NULL), 1);
        cr_expect_eq(rig_count(r, NJ_C_h1_slow), 1);
        cr_expect_eq(nj_abuse_get_count(&r->s->conns.abuse, NJ_C_h1_slow), 1);
        http1_expect_closed(r, p);
        rig_free(r);
    }
}

/* It ends in time; the time of the next head begins with it. */
Test(conn_http1_timeouts, a_head_behind_the_rest_of_a_body)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_ask(r, p, "POST", "/index.html", "Content-Length: 9\r\n");
    for (int i = 0; i < 8; i++) {
        http1_send(r, p, "a");
        rig_run(r, NJ_SEC);
    }
    http1_send(r, p, "aGET / HTTP/1.1\r\n");
    rig_run(r, 9 * NJ_SEC);
    cr_expect(!p->got_fin);
    http1_send(r, p, "Host: a\r\n\r\n");
    rig_settle(r);
    cr_expect_eq(http1_count(p, NULL), 2);
    rig_run(r, 60 * NJ_SEC);
    cr_expect(!p->got_fin, "it is idle");
    rig_free(r);
}

/* A handler that waits is not the peer's fault. */
Test(conn_http1_timeouts, slow_handlers)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_get(h->r, p, "/wait");
    hr_run(h, 300 * NJ_SEC);
    cr_expect(!p->got_fin && !p->got_rst);
    hr_free(h);
}

/* ---- responses that are not taken ---- */

/* The peer opens its window by `n` bytes, and closes it. */
static void ack_some(struct rig *r, struct rig_peer *p, uint32_t n)
{
    p->rcv_wnd = n;
    rig_ack(r, p);
    for (int i = 0; i < 3; i++)
        rig_step(r);
    p->rcv_wnd = 0;
    if (!p->got_rst)
        rig_ack(r, p);
}

/* The peer takes `n` bytes per second. Returns when the connection ended. */
static nj_ns take_at(struct rig *r, struct rig_peer *p, uint32_t n, nj_ns most)
{
    nj_ns begun = r->now;

    while (r->now - begun < most && !p->got_rst && !p->got_fin) {
        if (n > 0)
            ack_some(r, p, n);
        rig_run(r, NJ_SEC);
    }
    return r->now - begun;
}

Test(conn_http1_timeouts, who_takes_nothing)
{
    static const char *const paths[] = {"/index.html", "/whole", "/big"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        p->rcv_wnd = 0;
        http1_get(r, p, paths[i]);
        nj_ns took = take_at(r, p, 0, 100 * NJ_SEC);
        cr_expect(in_time(took), "%s: %lu ms", paths[i], took / NJ_MS);
        cr_expect(p->got_rst && !p->got_fin);
        cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
        cr_expect_eq(r->s->conns.pool.n_used, 0);
        rig_free(r);
    }
}

Test(conn_http1_timeouts, the_lowest_rate)
{
    for (uint32_t n = 2000; n <= 8000; n *= 4) {
        struct rig *r = rig_new();
        r->http.min_rate = 4000;
        struct rig_peer *p = rig_connect(r, 1000);
        p->manual = true;
        http1_get(r, p, "/big");
        nj_ns took = take_at(r, p, n, 300 * NJ_SEC);
        if (n == 2000)
            cr_expect(took >= 59 * NJ_SEC && took <= 76 * NJ_SEC && p->got_rst, "%lu s",
                      took / NJ_SEC);
        else
            cr_expect(took >= 300 * NJ_SEC && !p->got_rst, "%lu s", took / NJ_SEC);
        rig_free(r);
    }
}

/* Requests do not keep a connection alive whose responses are not read. */
Test(conn_http1_timeouts, asking_is_not_taking)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    nj_ns begun = r->now;

    p->rcv_wnd = 0;
    for (uint32_t i = 0; !p->got_rst && i < 100; i++) {
        http1_get(r, p, "/index.html");
        rig_run(r, 5 * NJ_SEC);
    }
    nj_ns took = r->now - begun;
    cr_expect(took >= 60 * NJ_SEC && took <= 70 * NJ_SEC, "%lu ms", took / NJ_MS);
    rig_free(r);
}

/* A response whose end is the end of the connection is not ended by FIN, however slow the peer. */
Test(conn_http1_timeouts, a_peer_that_does_not_close)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_send(r, p, "GET /whole HTTP/1.0\r\n\r\n");
    rig_run(r, NJ_SEC);
    http1_expect_closed(r, p);
    cr_expect(http1_first(p).is_whole);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    rig_run(r, 2500 * NJ_MS);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_free(r);
}

/* A file that a worker does not open: 503, and the connection goes on. */
Test(conn_http1_timeouts, a_file_that_does_not_come)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    r->files_slow = true;
    http1_get(r, p, "/whole");
    rig_run(r, 70 * NJ_SEC);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 503 && a.is_whole && !a.says_close, "%s", a.head);
    cr_expect_eq(rig_count(r, NJ_C_file_timeout), 1);
    r->files_slow = false;
    http1_get(r, p, "/index.html");
    rig_settle(r);
    cr_expect_eq(http1_count(p, &a), 2);
    cr_expect_eq(a.status, 200);
    rig_free(r);
}
