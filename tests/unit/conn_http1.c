/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that speak HTTP/1: how they begin, go on and end (RFC 9112 9). */
#include <criterion/criterion.h>

#include "telem/counters.h"
#include "conn_http1_rig.h"

#define GET_INDEX "GET /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n"

/* ---- which protocol is spoken ---- */

struct beginning {
    const char *bytes;
    int status; /* of the response; 0: none, as HTTP/2 or garbage */
    bool is_h2, ends;
};

static const struct beginning beginnings[] = {
    {GET_INDEX, .status = 200},
    {"\r\n" GET_INDEX, .status = 200}, /* RFC 9112 2.2 */
    {"GET / HTTP/1.0\r\n", .status = 0},
    {"GET / HTTP/1.0\r\n\r\n", .status = 200, .ends = true},
    {"G / HTTP/1.0\r\n\r\n", .status = 501, .ends = true}, /* as long as what detection keeps */
    {"P / HTTP/1.0\r\n\r\n", .status = 501, .ends = true},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .is_h2 = true},
    {"PRI * HTTP/1.1\r\nHost: a\r\n\r\n", .is_h2 = true, .ends = true}, /* its session refuses it */
    {"PRINT /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n", .status = 501},
    {"PR /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n", .status = 501},
    {"P /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n", .status = 501},
    {"PROPFIND /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n", .status = 501},
    {"get /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n", .status = 501},
    {"\r\nPRI * HTTP/2.0\r\n\r\n", .status = 505, .ends = true},
    {"\r\n\r\n" GET_INDEX, .status = 400, .ends = true},
    {"\n" GET_INDEX, .status = 400, .ends = true},
    {"GET /\r\n", .status = 400, .ends = true}, /* HTTP/0.9 */
    {"GET / HTTP/3.0\r\n\r\n", .status = 505, .ends = true},
    {" GET / HTTP/1.1\r\n\r\n", .ends = true},
    {"\x16\x03\x01", .ends = true},
};

static void begin(const struct beginning *b, uint32_t n_segment)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    uint32_t n = (uint32_t)strlen(b->bytes);

    for (uint32_t at = 0; at < n; at += n_segment) {
        rig_send(r, p, b->bytes + at, n - at < n_segment ? n - at : n_segment);
        rig_settle(r);
    }
    if (!b->is_h2) {
        struct http1_reply a = http1_first(p);
        cr_expect_eq(a.status, b->status, "'%s' in %u: %d", b->bytes, n_segment, a.status);
        cr_expect(a.status == 0 || a.is_whole);
    }
    cr_expect_eq(p->got_fin, b->ends, "'%s' in %u", b->bytes, n_segment);
    cr_expect(!p->got_rst);
    bool is_garbage = b->ends && !b->is_h2 && b->status == 0;
    cr_expect_eq(rig_count(r, NJ_C_conn_h2), b->is_h2, "'%s' in %u", b->bytes, n_segment);
    cr_expect_eq(rig_count(r, NJ_C_conn_h1), !b->is_h2 && !is_garbage);
    cr_expect_eq(rig_count(r, NJ_C_conn_unknown), is_garbage);
    rig_free(r);
}

/* Sentence 205. */
Test(conn_http1, beginnings)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(beginnings); i++)
        for (uint32_t n_segment = 1; n_segment < 1000; n_segment *= 3)
            begin(&beginnings[i], n_segment);
}

/* A client may send its head byte by byte, over several timeouts of nobody. Sentence 202. */
Test(conn_http1, one_byte_at_a_time)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    for (const char *at = GET_INDEX; *at; at++) {
        rig_send(r, p, at, 1);
        rig_run(r, 200 * NJ_MS);
    }
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 200 && a.is_whole && a.n_body == 100 && !a.wrong && !a.says_close);
    cr_expect(!p->got_fin);
    rig_free(r);
}

static void expect_refused_without_http1(const char *request)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);

    r->http.no_http1 = true;
    rig_new_with(r, &c);
    struct rig_peer *p = rig_connect(r, 1000);
    http1_send(r, p, request);
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 505);
    cr_expect_eq(rig_count(r, NJ_C_conn_http1), 1);
    cr_expect_eq(rig_count(r, NJ_C_conn_h1), 0);
    http1_expect_closed(r, p);
    rig_free(r);
}

Test(conn_http1, the_option_that_refuses_it)
{
    expect_refused_without_http1(GET_INDEX);
    expect_refused_without_http1("GET / HTTP/1.0\r\n\r\n");
}

/* ---- https without TLS ---- */

static uint32_t any_address(const void *ctx, const struct nj_addr *a)
{
    (void)ctx;
    (void)a;
    return 1;
}

/* Only a trusted proxy may ask for it. Sentence 237. */
Test(conn_http1, https_in_cleartext)
{
    static const char head[] = "GET https://a.test/index.html HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for (uint32_t trusted = 0; trusted < 2; trusted++) {
        struct nj_policy policy = nj_policy_none;
        struct rig *r = rig_alloc(16384, 16384);
        struct nj_shard_config config = rig_config(r);
        policy.trusted = trusted;
        policy.lists = any_address;
        config.conns.policy = &policy;
        rig_new_with(r, &config);
        struct rig_peer *p = rig_connect(r, 1000);
        http1_send(r, p, head);
        rig_settle(r);
        cr_expect_eq(http1_first(p).status, trusted ? 200 : 421);
        cr_expect_eq(p->got_fin, !trusted);
        rig_free(r);
    }
}

/* ---- requests one after the other ---- */

Test(conn_http1, a_connection_goes_on)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    for (uint32_t i = 0; i < 20; i++) {
        http1_get(r, p, "/index.html");
        rig_run(r, 30 * NJ_SEC);
        struct http1_reply a;
        cr_expect_eq(http1_count(p, &a), i + 1);
        cr_expect(a.status == 200 && a.n_body == 100 && !a.wrong && !a.says_close);
    }
    cr_expect(!p->got_fin);
    cr_expect_eq(rig_count(r, NJ_C_requests), 20);
    cr_expect_eq(rig_count(r, NJ_C_responses), 20);
    rig_free(r);
}

/* Sentence 289. */
Test(conn_http1, whole_files)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_get(r, p, "/whole");
    rig_run(r, NJ_SEC);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 200 && a.is_whole && a.length == RIG_WHOLE && !a.wrong);
    p->n_got = 0;
    http1_ask(r, p, "GET", "/big", "Range: bytes=0-149999\r\n");
    rig_run(r, NJ_SEC);
    a = http1_first(p);
    cr_expect(a.status == 206 && a.is_whole && a.length == 150000 && !a.wrong);
    p->n_got = 0;
    http1_ask(r, p, "HEAD", "/big", "");
    http1_get(r, p, "/index.html");
    rig_run(r, NJ_SEC);
    struct http1_reader in = http1_reader_of(p);
    cr_expect(http1_next(&in, true, &a) && a.status == 200 && a.length == RIG_BIG);
    cr_expect(http1_next(&in, false, &a) && a.status == 200 && a.n_body == 100);
    cr_expect_eq(in.at, in.n);
    rig_free(r);
}

/* RFC 9112 9.3: which connections persist. Sentences 328, 331, 332, 340. */
Test(conn_http1, who_asks_for_the_end)
{
    static const struct {
        const char *line_and_fields;
        bool ends, says_keep_alive;
    } rows[] = {
        {"HTTP/1.1\r\nHost: a\r\n", false, false},
        {"HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", true, false},
        {"HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n", false, false},
        {"HTTP/1.0\r\n", true, false},
        {"HTTP/1.0\r\nConnection: keep-alive\r\n", false, true},
        {"HTTP/1.0\r\nConnection: Keep-Alive\r\n", false, true},
        {"HTTP/1.0\r\nConnection: keep-alive, close\r\n", true, false},
    };
    char text[256];

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        snprintf(text, sizeof text, "GET /index.html %s\r\n", rows[i].line_and_fields);
        http1_send(r, p, text);
        rig_settle(r);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && a.is_whole && a.n_body == 100, "%s", text);
        cr_expect(a.says_close == rows[i].ends && p->got_fin == rows[i].ends, "%s", text);
        cr_expect_eq(a.says_keep_alive, rows[i].says_keep_alive, "%s", text);
        rig_free(r);
    }
}

/* ---- pipelining (RFC 9112 9.3.2) ---- */

static uint32_t put_gets(char *text, uint32_t n_gets, const char *path)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_gets; i++)
        n += (uint32_t)sprintf(text + n, "GET %s?%u HTTP/1.1\r\nHost: a\r\n\r\n", path, i);
    return n;
}

/* Sentence 336. */
Test(conn_http1, a_hundred_requests_in_order)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    char text[16384];
    struct http1_reader in;
    struct http1_reply a;

    /* Redirects repeat the query, which shows the order. */
    put_gets(text, 100, "/dir");
    http1_send(r, p, text);
    rig_settle(r);
    in = http1_reader_of(p);
    for (uint32_t i = 0; i < 100; i++) {
        char location[32];
        snprintf(location, sizeof location, "/dir/?%u", i);
        cr_assert(http1_next(&in, false, &a) && a.is_whole, "%u", i);
        cr_expect(a.status / 100 == 3 && http1_field_is(&a, "Location", location), "%s", a.head);
    }
    cr_expect_eq(in.at, in.n);
    cr_expect_eq(rig_count(r, NJ_C_responses), 100);
    rig_free(r);
}

/* As many short requests as a segment holds. */
Test(conn_http1, a_segment_of_requests)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    char text[1460];
    uint32_t n = 0, n_requests = 0;

    for (; n + 27 <= sizeof text; n_requests++)
        n += (uint32_t)sprintf(text + n, "GET /n HTTP/1.1\r\nHost:a\r\n\r\n");
    rig_send(r, p, text, n);
    rig_settle(r);
    struct http1_reply a;
    cr_expect_eq(http1_count(p, &a), n_requests);
    cr_expect_eq(a.status, 404);
    rig_free(r);
}

/* While a response waits, further requests stay in the receive queue, whose window closes. Sentence
 * 337. */
Test(conn_http1, a_response_that_waits_stops_input)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    char text[1400];
    uint32_t n = put_gets(text, 30, "/index.html"), n_sent = 0;

    r->files_slow = true;
    http1_get(r, p, "/whole");
    rig_settle(r);
    for (int i = 0; i < 1000; i++) {
        uint32_t flying = p->snd_nxt - p->snd_una;
        if (flying + n <= p->srv_wnd) {
            rig_send(r, p, text, n);
            n_sent += 30;
        }
        rig_step(r);
        r->now += NJ_MS;
    }
    cr_expect_lt(p->srv_wnd, n, "the window is %u", p->srv_wnd);
    cr_expect_eq(rig_count(r, NJ_C_requests), 1);
    cr_expect_leq(r->s->tcp.n_held, NJ_RECV_MBUFS_MAX + 1);
    cr_expect_gt(r->s->conns.held_mbufs.n_held, 0);
    cr_expect_eq(r->s->conns.held_memory.n_held, 0, "nothing was copied");
    p->rcv_wnd = 65535;
    r->files_slow = false;
    for (int i = 0; i < 200; i++)
        rig_run(r, 10 * NJ_MS);
    cr_expect_eq(rig_count(r, NJ_C_responses), n_sent + 1);
    cr_expect_eq(rig_count(r, NJ_C_requests), n_sent + 1);
    cr_expect_eq(r->s->conns.held_mbufs.n_held, 0);
    cr_expect_gt(p->srv_wnd, 30000);
    rig_free(r);
}

/* A peer that sends requests and does not read is not read either. */
Test(conn_http1, a_peer_that_does_not_read)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    char text[1400];
    uint32_t n = put_gets(text, 30, "/index.html");

    p->rcv_wnd = 0;
    for (int i = 0; i < 2000; i++) {
        if (p->snd_nxt - p->snd_una + n <= p->srv_wnd)
            rig_send(r, p, text, n);
        rig_step(r);
        r->now += NJ_MS;
    }
    cr_expect_lt(p->srv_wnd, n, "the window is %u", p->srv_wnd);
    cr_expect_leq(r->sndq_max, NJ_SENDQ_BYTES_MIN);
    rig_run(r, 70 * NJ_SEC);
    cr_expect(p->got_rst);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    cr_expect_eq(r->s->conns.held_mbufs.n_held, 0);
    rig_free(r);
}

/* ---- FIN and RST of the peer ---- */

/* A client may close its half when its request is sent. Sentence 344. */
Test(conn_http1, fin_behind_a_request)
{
    static const char *const paths[] = {"/index.html", "/whole", "/none"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++)
        for (int slow = 0; slow < 2; slow++) {
            struct rig *r = rig_new();
            struct rig_peer *p = rig_connect(r, 1000);
            r->files_slow = slow;
            http1_get(r, p, paths[i]);
            rig_fin(r, p);
            rig_run(r, NJ_SEC);
            cr_expect(!slow || p->n_got == 0);
            r->files_slow = false;
            rig_run(r, NJ_SEC);
            struct http1_reply a = http1_first(p);
            cr_expect(a.status == (i < 2 ? 200 : 404) && a.is_whole, "%s", paths[i]);
            http1_expect_closed(r, p);
            cr_expect_eq(r->s->conns.pool.n_used, 0);
            rig_free(r);
        }
}

/* All requests that were sent before it are answered. Sentence 344. */
Test(conn_http1, fin_behind_pipelined_requests)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    char text[8192];

    put_gets(text, 50, "/index.html");
    r->files_slow = true;
    http1_send(r, p, text);
    rig_fin(r, p);
    rig_run(r, NJ_SEC);
    cr_expect(!p->got_fin);
    r->files_slow = false;
    rig_run(r, NJ_SEC);
    cr_expect_eq(http1_count(p, NULL), 50);
    http1_expect_closed(r, p);
    rig_free(r);
}

static const char *const cut_requests[] = {
    "",
    "G",
    "PRI",
    "\r\n",
    "GET / HTTP/1.1\r\nHost",
    "GET / HTTP/1.1\r\nHost: a\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\nA: b",
    GET_INDEX "GET /",
};

/* The connection ends at once, since nothing more will come. Sentence 288. */
Test(conn_http1, fin_in_the_middle)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(cut_requests); i++)
        for (int at_once = 0; at_once < 2; at_once++) {
            struct rig *r = rig_new();
            struct rig_peer *p = rig_connect(r, 1000);
            if (*cut_requests[i])
                http1_send(r, p, cut_requests[i]);
            if (!at_once)
                rig_settle(r);
            rig_fin(r, p);
            rig_settle(r);
            http1_expect_closed(r, p);
            cr_expect_eq(r->s->conns.pool.n_used, 0, "%s", cut_requests[i]);
            rig_free(r);
        }
}

Test(conn_http1, rst_in_the_middle)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(cut_requests); i++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        if (*cut_requests[i])
            http1_send(r, p, cut_requests[i]);
        rig_settle(r);
        rig_seg(r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
        rig_settle(r);
        cr_expect_eq(r->s->conns.pool.n_used, 0);
        cr_expect_eq(nj_h1_context_n_conns(r->s->conns.h1), 0);
        rig_free(r);
    }
}

/* ... and while a response is awaited, sent, or unacknowledged. */
Test(conn_http1, rst_during_a_response)
{
    for (int at = 0; at < 3; at++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        r->files_slow = at == 0;
        p->rcv_wnd = at == 1 ? 3000 : 65535;
        p->manual = at == 2;
        http1_get(r, p, at == 2 ? "/index.html" : "/big");
        http1_get(r, p, "/index.html");
        for (int i = 0; i < 20; i++)
            rig_step(r);
        cr_expect_eq(r->s->conns.txns.pool.n_used, at < 2);
        rig_seg(r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
        rig_settle(r);
        r->files_slow = false;
        rig_settle(r);
        cr_expect_eq(r->s->conns.pool.n_used, 0);
        cr_expect_eq(r->s->conns.txns.pool.n_used, 0);
        rig_free(r);
    }
}

/* ---- errors of the peer ---- */

/* RFC 9112 9.6: after an error the server reads on for a while, so that no RST overtakes the
 * response. Sentences 327, 343. */
Test(conn_http1, a_lingering_close)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    http1_send(r, p, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" GET_INDEX);
    rig_settle(r);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 400 && a.is_whole && a.says_close && http1_field(&a, "Date"));
    cr_expect_eq(http1_count(p, NULL), 1, "what follows is not read");
    http1_expect_closed(r, p);
    for (int i = 0; i < 10; i++) {
        http1_send(r, p, GET_INDEX);
        rig_run(r, 50 * NJ_MS);
    }
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    rig_fin(r, p);
    rig_settle(r);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(rig_count(r, NJ_C_requests), 1);
    rig_free(r);
}

/* The responses before the error are complete. Sentence 342. */
Test(conn_http1, an_error_behind_requests)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    struct http1_reply a;

    r->files_slow = true;
    http1_send(r, p, GET_INDEX GET_INDEX "GET / HTTP/1.1\r\nBad header: x\r\n\r\n");
    rig_settle(r);
    r->files_slow = false;
    rig_settle(r);
    cr_expect_eq(http1_count(p, &a), 3);
    cr_expect(a.status == 400 && a.says_close);
    cr_expect_eq(rig_count(r, NJ_C_h1_field_name), 1);
    http1_expect_closed(r, p);
    rig_free(r);
}
