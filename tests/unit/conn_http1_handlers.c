/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of each type, and files, over HTTP/1: bodies in both directions, Expect: 100-continue,
 * and responses that fail. */
#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/body_handlers.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define BODY 5000u

static void refuses(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_status(resp, 403);
}

static void says_hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_header(resp, "x", "1");
    nj_response_write(resp, "hello", 5);
}

static void fails_first(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_reset(resp);
}

/* A length is promised, and the body is shorter. */
static void ends_early(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_header(resp, "content-length", "1000");
    nj_response_write(resp, "hello", 5);
    nj_response_flush(resp);
    nj_sleep(NJ_MS);
    nj_response_reset(resp);
}

/* With `arg` it responds while it reads. */
static void on_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[1000];
    int64_t n;

    while ((n = nj_request_read(req, some, sizeof some)) > 0)
        if (arg)
            nj_response_try_write(resp, "x", 1);
    if (n == 0)
        nj_response_end(resp);
}

static void keeps(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_request_on_body(req, on_body, arg);
}

static void sends_file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_file(resp, "/whole");
}

static const struct nj_route routes[] = {
    {.path = "/reads", .type = NJ_BLOCKING, .handle = body_reads},
    {.path = "/sleeps", .type = NJ_BLOCKING, .handle = body_reads_late},
    {.path = "/refuses", .type = NJ_BLOCKING, .handle = refuses},
    {.path = "/hello", .type = NJ_NON_BLOCKING, .handle = says_hello},
    {.path = "/fiber", .type = NJ_BLOCKING, .handle = says_hello},
    {.path = "/thread", .type = NJ_OS_BLOCKING, .handle = says_hello},
    {.path = "/streams", .type = NJ_BLOCKING, .handle = body_streams},
    {.path = "/breaks", .type = NJ_BLOCKING, .handle = body_streams, .arg = (void *)1},
    {.path = "/fails", .type = NJ_BLOCKING, .handle = fails_first},
    {.path = "/short", .type = NJ_BLOCKING, .handle = ends_early},
    {.path = "/keeps", .type = NJ_NON_BLOCKING, .handle = keeps},
    {.path = "/echoes", .type = NJ_NON_BLOCKING, .handle = keeps, .arg = (void *)1},
    {.path = "/worker", .type = NJ_OS_BLOCKING, .handle = body_reads},
    {.path = "/file", .type = NJ_BLOCKING, .handle = sends_file},
    {.path = "/small", .type = NJ_BLOCKING, .handle = body_reads, .body_max_bytes = BODY - 1},
};

static struct hr *start(void)
{
    return hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
}

/* ---- types of handlers ---- */

Test(conn_http1_handlers, types)
{
    static const char *const paths[] = {"/hello", "/fiber", "/thread"};
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    struct http1_reply a;

    for (uint32_t i = 0; i < 30; i++) {
        http1_get(h->r, p, paths[i % 3]);
        hr_settle(h);
        cr_expect_eq(http1_count(p, &a), i + 1);
        cr_expect(a.status == 200 && a.length == 5 && !strcmp(a.body, "hello"), "%s", a.head);
        cr_expect(http1_field_is(&a, "X", "1"));
    }
    cr_expect(!p->got_fin);
    hr_free(h);
}

/* All types, pipelined: in the order of the requests. Sentence 336. */
Test(conn_http1_handlers, in_order)
{
    static const char *const paths[] = {"/sleeps", "/hello",      "/thread", "/refuses",
                                        "/fiber",  "/index.html", "/worker", "/none"};
    static const int statuses[] = {200, 200, 200, 403, 200, 200, 200, 404};
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    struct http1_reply a;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(paths); i++)
        http1_get(h->r, p, paths[i]);
    hr_run(h, 900 * NJ_MS);
    cr_expect_eq(p->n_got, 0);
    hr_run(h, 200 * NJ_MS);
    struct http1_reader in = http1_reader_of(p);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        cr_assert(http1_next(&in, false, &a) && a.is_whole, "%s", paths[i]);
        cr_expect_eq(a.status, statuses[i], "%s: %d", paths[i], a.status);
    }
    cr_expect_eq(in.at, in.n);
    hr_free(h);
}

/* A request whose client leaves while a worker has it. */
Test(conn_http1_handlers, clients_that_leave)
{
    static const char *const paths[] = {"/sleeps", "/thread", "/worker", "/keeps", "/streams"};

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(paths); i++)
        for (int rst = 0; rst < 2; rst++) {
            struct hr *h = start();
            struct rig_peer *p = rig_connect(h->r, 1000);
            h->workers_slow = true;
            http1_ask(h->r, p, "POST", paths[i], "Content-Length: 2\r\n");
            http1_send(h->r, p, "ab");
            hr_settle(h);
            if (rst)
                rig_seg(h->r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
            else
                rig_fin(h->r, p);
            hr_run(h, 100 * NJ_MS);
            h->workers_slow = false;
            hr_run(h, 5 * NJ_SEC);
            struct http1_reply a = http1_first(p);
            cr_expect(rst || (a.status == 200 && a.is_whole), "%s: %s", paths[i], a.head);
            cr_expect_eq(h->r->s->conns.pool.n_used, 0, "%s", paths[i]);
            hr_free(h);
        }
}

/* ---- bodies of requests ---- */

static void send_body(struct hr *h, struct rig_peer *p, uint32_t n, uint32_t n_chunk)
{
    char chunk[1400];
    uint32_t n_head = 0, n_data;

    for (uint32_t at = 0; at < n; at += n_data) {
        n_data = n - at < n_chunk ? n - at : n_chunk;
        n_head = n_chunk < 1300 ? (uint32_t)sprintf(chunk, "%x\r\n", n_data) : 0;
        memset(chunk + n_head, 'b', n_data);
        if (n_head > 0)
            memcpy(chunk + n_head + n_data, "\r\n", 2);
        rig_send(h->r, p, chunk, n_head + n_data + (n_head ? 2 : 0));
        hr_step(h);
    }
    if (n_head > 0)
        rig_send(h->r, p, "0\r\n\r\n", 5);
}

/* Sentences 270, 304. */
Test(conn_http1_handlers, bodies)
{
    static const char *const paths[] = {"/reads", "/sleeps", "/keeps", "/worker"};
    static const uint32_t chunks[] = {1, 7, 500, 1300};
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    struct http1_reply a = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(paths); i++)
        for (uint32_t k = 0; k < NJ_ARRAY_LEN(chunks); k++) {
            http1_ask(h->r, p, "POST", paths[i],
                      chunks[k] < 1300 ? "Transfer-Encoding: chunked\r\n"
                                       : "Content-Length: 5000\r\n");
            send_body(h, p, BODY, chunks[k]);
            hr_run(h, 1010 * NJ_MS);
            cr_assert_eq(http1_count(p, &a), ++n, "%s in %u", paths[i], chunks[k]);
            cr_expect_eq(a.status, 200);
            cr_expect(i == 2 || !strcmp(a.body, "5000"), "%s: %s", paths[i], a.body);
        }
    cr_expect(!p->got_fin);
    hr_free(h);
}

/* The response begins before the request has ended. If the rest is short and its length is known,
 * the connection goes on. */
Test(conn_http1_handlers, both_at_the_same_time)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        struct hr *h = start();
        struct rig_peer *p = rig_connect(h->r, 1000);
        http1_ask(h->r, p, "POST", "/echoes",
                  chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: 5000\r\n");
        send_body(h, p, BODY, chunked ? 500 : 1300);
        hr_settle(h);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && a.is_chunked && a.is_whole && a.body[0] == 'x');
        cr_expect_eq(a.says_close, chunked);
        cr_expect_eq(p->got_fin, chunked);
        hr_free(h);
    }
}

/* Beyond what a handler reads, the receive window closes. Sentence 339. */
Test(conn_http1_handlers, a_body_that_nobody_reads_yet)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    char some[1400];
    uint32_t n = 0;

    memset(some, 'b', sizeof some);
    http1_ask(h->r, p, "POST", "/sleeps", "Content-Length: 1000000\r\n");
    hr_settle(h);
    while (n + sizeof some <= 1000000 && p->snd_nxt - p->snd_una + sizeof some <= p->srv_wnd) {
        rig_send(h->r, p, some, sizeof some);
        n += (uint32_t)sizeof some;
        for (int i = 0; i < 4; i++)
            hr_step(h);
    }
    cr_expect_lt(n, NJ_H1_BODY_WINDOW_BYTES + NJ_RECV_WINDOW_BYTES + 1400, "%u", n);
    for (int i = 0; i < 3000 && n < 1000000; i++) {
        uint32_t left = 1000000 - n < 1400 ? 1000000 - n : 1400;
        if (p->snd_nxt - p->snd_una + left <= p->srv_wnd) {
            rig_send(h->r, p, some, left);
            n += left;
        }
        hr_step(h);
        h->r->now += NJ_MS;
    }
    hr_run(h, NJ_SEC);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 200 && !strcmp(a.body, "1000000"), "%u: %s %s", n, a.head, a.body);
    hr_free(h);
}

/* 413 before the body, which is then read and discarded: the connection goes on. */
Test(conn_http1_handlers, bodies_that_are_too_long)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    struct http1_reply a = {0};

    http1_ask(h->r, p, "POST", "/small", "Content-Length: 5000\r\n");
    hr_settle(h);
    cr_expect_eq(http1_count(p, &a), 1);
    cr_expect(a.status == 413 && !a.says_close, "%s", a.head);
    send_body(h, p, BODY, 1300);
    http1_get(h->r, p, "/hello");
    hr_settle(h);
    cr_expect_eq(http1_count(p, &a), 2);
    cr_expect_eq(a.status, 200);
    http1_ask(h->r, p, "POST", "/small", "Content-Length: 500000\r\n");
    hr_settle(h);
    cr_expect_eq(http1_count(p, &a), 3);
    cr_expect(a.status == 413 && a.says_close, "%s", a.head);
    http1_expect_closed(h->r, p);
    hr_free(h);
}

/* A chunked body has no length before its end. */
Test(conn_http1_handlers, chunks_that_are_too_many)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_ask(h->r, p, "POST", "/small", "Transfer-Encoding: chunked\r\n");
    send_body(h, p, BODY, 500);
    hr_settle(h);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 200 && a.body[0] == '-', "the handler decides: %s", a.body);
    cr_expect_eq(http1_count(p, NULL), 1);
    hr_free(h);
}

/* ---- 100 (Continue), RFC 9110 10.1.1 ---- */

/* Sentences 318, 323. */
Test(conn_http1_handlers, continues)
{
    static const char *const paths[] = {"/reads", "/keeps", "/worker", "/sleeps"};
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    struct http1_reply a;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        p->n_got = 0;
        http1_ask(h->r, p, "POST", paths[i], "Content-Length: 5000\r\nExpect: 100-continue\r\n");
        hr_settle(h);
        cr_expect_eq(http1_first(p).status, i < 3 ? 100 : 0, "%s", paths[i]);
        hr_run(h, 1010 * NJ_MS);
        cr_expect_eq(http1_first(p).status, 100, "%s", paths[i]);
        cr_expect_eq(http1_count(p, NULL), 1, "%s", paths[i]);
        send_body(h, p, BODY, 1300);
        hr_settle(h);
        cr_expect_eq(http1_count(p, &a), 2, "%s", paths[i]);
        cr_expect(a.status == 200 && !a.says_close);
    }
    cr_expect(!p->got_fin);
    hr_free(h);
}

/* The final status shows that the body is not wanted. It may come or not: the connection ends.
 * Sentence 319. */
Test(conn_http1_handlers, the_final_status_instead)
{
    static const struct {
        const char *path;
        int status;
    } rows[] = {{"/refuses", 403}, {"/whole", 405}, {"/../x", 400}, {"/small", 413}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct hr *h = start();
        struct rig_peer *p = rig_connect(h->r, 1000);
        http1_ask(h->r, p, "POST", rows[i].path,
                  "Content-Length: 5000\r\nExpect: 100-continue\r\n");
        hr_settle(h);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == rows[i].status && a.says_close && a.is_whole, "%s", a.head);
        http1_expect_closed(h->r, p);
        hr_free(h);
    }
}

/* Sentence 322. */
Test(conn_http1_handlers, another_expectation)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_ask(h->r, p, "POST", "/reads", "Content-Length: 5\r\nExpect: 200-ok\r\n");
    hr_settle(h);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 417 && a.says_close && a.is_whole, "%s", a.head);
    http1_expect_closed(h->r, p);
    hr_free(h);
}

/* A body that comes at once needs no 100; HTTP/1.0 has none. Sentences 320, 321, 325. */
Test(conn_http1_handlers, nobody_waits_for_it)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000), *q = rig_connect(h->r, 1001);

    http1_send(h->r, p,
               "POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: "
               "100-continue\r\n\r\nhello");
    http1_send(h->r, q,
               "POST /reads HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    hr_settle(h);
    cr_expect_eq(http1_first(p).status, 200);
    cr_expect_eq(q->n_got, 0);
    http1_send(h->r, q, "hello");
    hr_settle(h);
    cr_expect_eq(http1_first(q).status, 200);
    hr_free(h);
}

/* ---- responses without a known length ---- */

/* Sentences 282, 312. */
Test(conn_http1_handlers, chunks_for_1_1)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);
    struct http1_reply a;

    for (uint32_t i = 1; i < 4; i++) {
        http1_get(h->r, p, "/streams");
        hr_run(h, 300 * NJ_MS);
        cr_expect_eq(http1_count(p, &a), i);
        cr_expect(a.is_chunked && a.n_chunks > 10 && a.n_body == 20000 && !a.wrong &&
                  !a.says_close);
    }
    cr_expect(memmem(p->got, p->n_got, "\r\n0\r\nTrailer-X: t\r\n\r\n", 21) != NULL);
    cr_expect(!p->got_fin);
    hr_free(h);
}

/* What is flushed is sent at once. */
Test(conn_http1_handlers, chunks_are_not_collected)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_get(h->r, p, "/streams");
    hr_settle(h);
    cr_expect_eq(http1_first(p).n_body, 1000);
    hr_run(h, 100 * NJ_MS);
    uint64_t n = http1_first(p).n_body;
    cr_expect(n >= 4000 && n <= 11000, "%lu", n);
    hr_free(h);
}

/* Sentences 216, 280, 313. */
Test(conn_http1_handlers, the_end_of_the_connection_for_1_0)
{
    static const char *const fields[] = {"", "Connection: keep-alive\r\n"};
    char text[128];

    for (uint32_t i = 0; i < 2; i++) {
        struct hr *h = start();
        struct rig_peer *p = rig_connect(h->r, 1000);
        snprintf(text, sizeof text, "GET /streams HTTP/1.0\r\n%s\r\n", fields[i]);
        http1_send(h->r, p, text);
        hr_run(h, 300 * NJ_MS);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && a.ends_by_fin && a.is_whole && a.n_body == 20000 && !a.wrong);
        cr_expect(a.says_close && !a.says_keep_alive, "%s", a.head);
        http1_expect_closed(h->r, p);
        hr_free(h);
    }
}

/* ---- responses that fail ---- */

/* None looks complete: no last chunk; fewer bytes than Content-Length; RST instead of FIN if the
 * end of the connection is the end of the body (RFC 9112 8). Sentences 315, 316. */
Test(conn_http1_handlers, responses_that_break_off)
{
    static const struct {
        const char *request;
        bool resets;
    } rows[] = {
        {"GET /breaks HTTP/1.1\r\nHost: a\r\n\r\n", false},
        {"GET /breaks HTTP/1.0\r\n\r\n", true},
        {"GET /short HTTP/1.1\r\nHost: a\r\n\r\n", false},
        {"GET /short HTTP/1.0\r\n\r\n", false},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct hr *h = start();
        struct rig_peer *p = rig_connect(h->r, 1000);
        http1_send(h->r, p, rows[i].request);
        hr_run(h, 300 * NJ_MS);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && !a.is_whole, "%s: %lu bytes, FIN %d", rows[i].request,
                  a.n_body, p->got_fin);
        cr_expect_eq(p->got_rst, rows[i].resets, "%s", rows[i].request);
        cr_expect_eq(p->got_fin, !rows[i].resets, "%s", rows[i].request);
        cr_expect_eq(nj_h1_context_n_conns(h->r->s->conns.h1), 0);
        hr_free(h);
    }
}

/* Nothing was sent of the response: nothing is sent at all. */
Test(conn_http1_handlers, responses_that_do_not_begin)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_get(h->r, p, "/fails");
    http1_get(h->r, p, "/hello");
    hr_settle(h);
    cr_expect_eq(p->n_got, 0);
    http1_expect_closed(h->r, p);
    hr_free(h);
}

Test(conn_http1_handlers, files_of_handlers)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_get(h->r, p, "/file");
    hr_run(h, 100 * NJ_MS);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 200 && a.is_whole && a.n_body == RIG_WHOLE && !a.wrong);
    hr_free(h);
}

/* ---- files that cannot be read to their end ---- */

static bool file_fails;

static uint32_t poll_failing(void *ctx, struct nj_file_job **jobs, uint32_t n)
{
    struct rig *r = ctx;
    uint32_t got = 0;

    for (; !r->files_slow && got < n && got < r->n_jobs; got++) {
        jobs[got] = r->job[got];
        if (file_fails && jobs[got]->op == NJ_FILE_READ && jobs[got]->offset >= 100000)
            jobs[got]->result = NJ_FILE_BROKEN;
        else
            rig_file_run(r, jobs[got]);
    }
    r->n_jobs -= got;
    memmove(r->job, r->job + got, r->n_jobs * sizeof r->job[0]);
    return got;
}

Test(conn_http1_handlers, a_file_that_fails_in_the_middle)
{
    static const char *const versions[] = {"1.1\r\nHost: a\r\n", "1.0\r\n"};
    char text[128];

    file_fails = true;
    for (int i = 0; i < 2; i++) {
        struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
        h->config.conns.ops.files.poll = poll_failing;
        hr_start(h);
        struct rig_peer *p = rig_connect(h->r, 1000);
        snprintf(text, sizeof text, "GET /big HTTP/%s\r\n", versions[i]);
        http1_send(h->r, p, text);
        hr_run(h, NJ_SEC);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && a.length == RIG_BIG && !a.is_whole && !a.wrong);
        cr_expect(a.n_body >= 60000, "%lu", a.n_body);
        http1_expect_closed(h->r, p);
        hr_free(h);
    }
}
