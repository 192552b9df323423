/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP/1 over TLS, with OpenSSL as the client. At the end of each test the rig checks that all
 * objects were returned. */
#define RIG_GOT_MAX (512u * 1024u)
#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "http/handlers/route_table.h"
#include "support/body_handlers.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

#define GET_INDEX "GET /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n"

static struct tls_rig *t;
static struct tls_peer *c;
static struct nj_routes *routes;

/* `alpn`: protocols, each behind its length; NULL: none is offered. */
static struct tls_peer *connect_with(const char *alpn, uint16_t port)
{
    SSL_CTX_set_alpn_protos(t->client, (const uint8_t *)alpn, alpn ? (unsigned)strlen(alpn) : 0);
    struct tls_peer *p = tls_peer_new(t, port);
    tls_peer_pump(t, p, 1400);
    cr_assert(SSL_is_init_finished(p->ssl));
    return p;
}

static const struct nj_route route_table[] = {
    {.path = "/reads", .type = NJ_BLOCKING, .handle = body_reads},
    {.path = "/late", .type = NJ_BLOCKING, .handle = body_reads_late},
    {.path = "/streams", .type = NJ_BLOCKING, .handle = body_streams},
    {.path = "/breaks", .type = NJ_BLOCKING, .handle = body_streams, .arg = (void *)1},
};

static void begin(void)
{
    char why[256];

    t = tls_rig_alloc(8192, 8192);
    tls_rig_permit_http1(t);
    t->routes = routes = nj_routes_new(route_table, NJ_ARRAY_LEN(route_table), why, sizeof why);
    cr_assert(routes);
    tls_rig_start(t);
    c = connect_with("\x08http/1.1", 1000);
}

static void end(void)
{
    tls_peer_free(c);
    tls_rig_free(t);
    nj_routes_free(routes);
}

TestSuite(conn_http1_tls, .init = begin, .fini = end);

static struct http1_reader reader_of(const struct tls_peer *p)
{
    return (struct http1_reader){p->got, p->n_got, 0, p->closed};
}

static struct http1_reply first_of(const struct tls_peer *p)
{
    struct http1_reader r = reader_of(p);
    struct http1_reply a;

    http1_next(&r, false, &a);
    return a;
}

static uint32_t count(const struct tls_peer *p, struct http1_reply *last)
{
    struct http1_reader r = reader_of(p);
    uint32_t n = 0;

    while (http1_next(&r, false, last) && last->is_whole)
        n++;
    return n;
}

static void say(const char *text)
{
    tls_peer_write(c, text, (uint32_t)strlen(text));
}

static void ask(const char *text)
{
    say(text);
    tls_peer_pump(t, c, 1400);
}

/* Time passes, in which the client acknowledges and reads. */
static void run(nj_ns time)
{
    for (nj_ns until = t->r->now + time; t->r->now < until;) {
        rig_run(t->r, 10 * NJ_MS);
        tls_peer_read(c);
    }
    tls_peer_pump(t, c, 1400);
}

static void expect_closed(void)
{
    cr_expect(c->closed && !c->failed, "close_notify came");
    cr_expect(c->p->got_fin && !c->p->got_rst);
    cr_expect_eq(nj_h1_context_n_conns(t->r->s->conns.h1), 0);
    cr_expect_eq(t->r->s->conns.held_memory.n_held, 0);
}

/* ---- which protocol is spoken (RFC 7301) ---- */

Test(conn_http1_tls, alpn)
{
    static const char *const offers[] = {"\x08http/1.1", NULL, "\x08http/1.1\x08http/1.0"};

    for (uint16_t i = 0; i < NJ_ARRAY_LEN(offers); i++) {
        tls_peer_free(c);
        c = connect_with(offers[i], 2000 + i);
        for (uint32_t n = 1; n < 4; n++) {
            struct http1_reply a;
            ask(GET_INDEX);
            cr_expect_eq(count(c, &a), n);
            cr_expect(count(c, &a) == n && !c->p->got_fin);
        }
        cr_expect(first_of(c).status == 200 && first_of(c).n_body == 100 && !first_of(c).wrong);
    }
    cr_expect_eq(rig_count(t->r, NJ_C_conn_h1), NJ_ARRAY_LEN(offers));
}

/* Also a client that offers both gets HTTP/2. */
Test(conn_http1_tls, h2_is_preferred)
{
    struct tls_peer *both = connect_with("\x08http/1.1\x02h2", 2000);
    uint8_t hello[128];

    tls_peer_write(both, hello, rig_h2_hello(hello));
    tls_peer_pump(t, both, 1400);
    tls_peer_get(both, 1, "/index.html");
    tls_peer_pump(t, both, 1400);
    cr_expect_eq(rig_count(t->r, NJ_C_status_2xx), 1);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_h2), 1);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_h1), 0);
    tls_peer_free(both);
}

/* Only ALPN decides. */
Test(conn_http1_tls, the_preface_of_http2)
{
    ask(RIG_PREFACE);
    struct http1_reply a = first_of(c);
    cr_expect(a.status == 505 && a.is_whole && a.says_close, "%s", a.head);
    cr_expect_eq(rig_count(t->r, NJ_C_h1_version), 1);
    expect_closed();
}

Test(conn_http1_tls, the_preface_byte_by_byte)
{
    for (const char *at = RIG_PREFACE; *at; at++) {
        if (c->closed)
            break;
        tls_peer_write(c, at, 1);
        tls_peer_pump(t, c, 1400);
    }
    cr_expect_eq(first_of(c).status, 505);
    expect_closed();
}

/* ---- requests and responses ---- */

/* Sentence 346. */
Test(conn_http1_tls, whole_files)
{
    struct http1_reply a;

    ask("GET /whole HTTP/1.1\r\nHost: a\r\n\r\n" GET_INDEX);
    run(NJ_SEC);
    a = first_of(c);
    cr_expect(a.is_whole && a.n_body == RIG_WHOLE && !a.wrong);
    cr_expect_eq(count(c, &a), 2);
}

/* One byte in each record, each record in several segments. Sentence 346. */
Test(conn_http1_tls, single_bytes)
{
    for (const char *at = GET_INDEX; *at; at++)
        tls_peer_write(c, at, 1);
    tls_peer_pump(t, c, 7);
    struct http1_reply a = first_of(c);
    cr_expect(a.status == 200 && a.n_body == 100 && !a.wrong);
}

/* Sentences 313, 347. */
Test(conn_http1_tls, responses_without_a_length)
{
    struct http1_reply a;

    ask("GET /streams HTTP/1.1\r\nHost: a\r\n\r\n");
    run(NJ_SEC);
    a = first_of(c);
    cr_expect(a.is_chunked && a.is_whole && a.n_body == 20000 && !a.wrong && !c->closed);
    c->n_got = 0;
    ask("GET /streams HTTP/1.0\r\n\r\n");
    run(NJ_SEC);
    a = first_of(c);
    cr_expect(a.ends_by_fin && a.is_whole && a.n_body == 20000 && !a.wrong);
    expect_closed();
}

/* RFC 9112 9.8: an incomplete close makes a response that ends with the connection incomplete. So
 * there is no close_notify behind one that failed, and no FIN. Sentence 316. */
Test(conn_http1_tls, a_response_that_breaks_off)
{
    ask("GET /breaks HTTP/1.0\r\n\r\n");
    run(NJ_SEC);
    struct http1_reply a = first_of(c);
    cr_expect(a.ends_by_fin && !a.is_whole && a.n_body > 0);
    cr_expect(!c->closed && !c->p->got_fin && c->p->got_rst);
}

/* ---- pipelined requests: what is behind a request in its record is copied ---- */

static uint32_t put_gets(char *text, uint32_t n_gets)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_gets; i++)
        n += (uint32_t)sprintf(text + n, "GET /dir?%u HTTP/1.1\r\nHost: a\r\n\r\n", i);
    return n;
}

static void expect_redirects(uint32_t n)
{
    struct http1_reader r = reader_of(c);
    struct http1_reply a;
    char location[32];

    for (uint32_t i = 0; i < n; i++) {
        cr_assert(http1_next(&r, false, &a) && a.is_whole, "%u", i);
        snprintf(location, sizeof location, "/dir/?%u", i);
        cr_expect(http1_field_is(&a, "Location", location), "%u: %s", i, a.head);
    }
    cr_expect_eq(r.at, r.n);
}

/* Sentence 336. */
Test(conn_http1_tls, a_hundred_requests_in_order)
{
    char text[16384];

    put_gets(text, 100);
    t->r->files_slow = true;
    ask(text);
    cr_expect_eq(rig_count(t->r, NJ_C_requests), 1);
    cr_expect_geq(t->r->s->conns.held_memory.n_held, 3, "the copy is in the account");
    t->r->files_slow = false;
    run(100 * NJ_MS);
    expect_redirects(100);
    cr_expect_eq(t->r->s->conns.held_memory.n_held, 0);
    cr_expect_eq(rig_count(t->r, NJ_C_responses), 100);
}

/* Records behind the one that is being read stay in the receive queue, whose window closes.
 * Sentence 337. */
Test(conn_http1_tls, records_wait)
{
    static char text[14000];
    uint32_t n = 0, n_requests = 0, n_written = 0;

    for (; n + 27 <= sizeof text; n_requests++)
        n += (uint32_t)sprintf(text + n, "GET /n HTTP/1.1\r\nHost:a\r\n\r\n");
    t->r->files_slow = true;
    ask(GET_INDEX);
    for (int i = 0; i < 1000; i++) {
        uint8_t segment[1400];
        if (BIO_pending(c->out) == 0) {
            tls_peer_write(c, text, n);
            n_written += n_requests;
        }
        if (c->p->snd_nxt - c->p->snd_una + sizeof segment <= c->p->srv_wnd)
            rig_send(t->r, c->p, segment, (uint32_t)BIO_read(c->out, segment, (int)sizeof segment));
        rig_step(t->r);
        t->r->now += NJ_MS;
    }
    cr_expect_lt(c->p->srv_wnd, 1400, "%u", c->p->srv_wnd);
    cr_expect_eq(rig_count(t->r, NJ_C_requests), 1);
    cr_expect_leq(t->r->s->conns.held_memory.n_held, 16);
    cr_expect_gt(t->r->s->conns.held_mbufs.n_held, 0);
    t->r->files_slow = false;
    for (int i = 0; i < 3000 && rig_count(t->r, NJ_C_responses) < 1 + n_written; i++) {
        uint8_t segment[1400];
        if (BIO_pending(c->out) > 0 &&
            c->p->snd_nxt - c->p->snd_una + sizeof segment <= c->p->srv_wnd)
            rig_send(t->r, c->p, segment, (uint32_t)BIO_read(c->out, segment, (int)sizeof segment));
        rig_run(t->r, NJ_MS);
    }
    cr_expect_eq(rig_count(t->r, NJ_C_responses), 1 + n_written);
    cr_expect_eq(t->r->s->conns.held_memory.n_held, 0);
    cr_expect_eq(t->r->s->conns.held_mbufs.n_held, 0);
}

/* The client leaves while requests are kept. */
Test(conn_http1_tls, rst_behind_kept_requests)
{
    t->r->files_slow = true;
    ask(GET_INDEX GET_INDEX GET_INDEX);
    rig_seg(t->r, c->p, c->p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(t->r);
    cr_expect_eq(t->r->s->conns.pool.n_used, 0);
    cr_expect_eq(t->r->s->conns.held_memory.n_held, 0);
    t->r->files_slow = false;
}

/* FIN, with close_notify or without, behind requests that are kept: all are answered. */
static void leave_behind_requests(bool with_close_notify)
{
    struct http1_reply a;

    t->r->files_slow = true;
    say(GET_INDEX GET_INDEX GET_INDEX);
    if (with_close_notify)
        SSL_shutdown(c->ssl);
    tls_peer_send(t, c, 1400);
    rig_fin(t->r, c->p);
    rig_run(t->r, NJ_SEC);
    cr_expect(!c->p->got_fin);
    t->r->files_slow = false;
    run(NJ_SEC);
    cr_expect_eq(count(c, &a), 3);
    cr_expect(c->p->got_fin && !c->p->got_rst);
    cr_expect_eq(t->r->s->conns.pool.n_used, 0);
}

/* Sentences 344, 348. */
Test(conn_http1_tls, fin_behind_kept_requests)
{
    leave_behind_requests(false);
}

/* Sentence 344. */
Test(conn_http1_tls, close_notify_behind_kept_requests)
{
    leave_behind_requests(true);
}

/* In a drain the open request is the last one; what is kept is dropped. Sentences 345, 347. */
Test(conn_http1_tls, drain)
{
    struct http1_reply a;

    t->r->files_slow = true;
    ask(GET_INDEX GET_INDEX);
    nj_conns_drain(&t->r->s->conns, t->r->now);
    rig_settle(t->r);
    t->r->files_slow = false;
    run(NJ_SEC);
    cr_expect_eq(count(c, &a), 1);
    cr_expect(first_of(c).says_close);
    expect_closed();
}

/* ---- bodies of requests ---- */

/* Sentence 346. */
Test(conn_http1_tls, bodies)
{
    static char body[50000];

    memset(body, 'b', sizeof body);
    ask("POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n");
    tls_peer_write(c, body, sizeof body);
    tls_peer_pump(t, c, 1400);
    cr_expect_str_eq(first_of(c).body, "50000");
    c->n_got = 0;
    ask("POST /reads HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nc350\r\n");
    tls_peer_write(c, body, sizeof body);
    say("\r\n0\r\n\r\n");
    tls_peer_pump(t, c, 1400);
    cr_expect_str_eq(first_of(c).body, "50000");
}

/* More than is read ahead waits in the receive queue, and the rest of its record in a copy. */
Test(conn_http1_tls, a_body_that_nobody_reads_yet)
{
    static char body[16000];
    uint32_t n = 0;

    memset(body, 'b', sizeof body);
    ask("POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 800000\r\n\r\n");
    for (int i = 0; i < 5000 && (n < 800000 || BIO_pending(c->out) > 0); i++) {
        uint8_t segment[1400];
        if (BIO_pending(c->out) == 0) {
            tls_peer_write(c, body, sizeof body);
            n += (uint32_t)sizeof body;
        }
        if (c->p->snd_nxt - c->p->snd_una + sizeof segment <= c->p->srv_wnd)
            rig_send(t->r, c->p, segment, (uint32_t)BIO_read(c->out, segment, (int)sizeof segment));
        rig_step(t->r);
        t->r->now += NJ_MS;
    }
    run(2 * NJ_SEC);
    struct http1_reply a = first_of(c);
    cr_expect(a.status == 200 && !strcmp(a.body, "800000"), "%u: %s %s", n, a.head, a.body);
    cr_expect_eq(t->r->s->conns.held_memory.n_held, 0);
}

/* ---- timeouts ---- */

/* Sentence 314. */
Test(conn_http1_tls, a_slow_head)
{
    nj_ns begun = t->r->now;

    for (const char *at = "GET /index.html HTTP/1.1\r\nHost:"; *at && !c->closed; at++) {
        tls_peer_write(c, at, 1);
        tls_peer_pump(t, c, 1400);
        run(NJ_SEC);
    }
    nj_ns took = t->r->now - begun;
    cr_expect(took >= 9 * NJ_SEC && took <= 12 * NJ_SEC, "%lu s", took / NJ_SEC);
    cr_expect_eq(first_of(c).status, 408);
    expect_closed();
}

/* Sentences 338, 347. */
Test(conn_http1_tls, idle_connections)
{
    struct http1_reply a;

    ask(GET_INDEX);
    run(74900 * NJ_MS);
    cr_expect(!c->closed);
    run(400 * NJ_MS);
    cr_expect_eq(count(c, &a), 1);
    expect_closed();
}

/* A request that comes in the step in which the time is over is answered. */
Test(conn_http1_tls, a_request_at_the_end_of_the_time)
{
    struct http1_reply a;

    ask(GET_INDEX);
    run(5 * NJ_SEC);
    say(GET_INDEX);
    tls_peer_send(t, c, 1400);
    t->r->now += 80 * NJ_SEC;
    run(NJ_SEC);
    cr_expect_eq(count(c, &a), 2);
    cr_expect(!c->closed && !c->p->got_fin);
}

/* The client is named. */
static void expect_named(void)
{
    cr_expect_eq(rig_count(t->r, NJ_C_h1_slow), 1);
    cr_expect_eq(nj_abuse_get_count(&t->r->s->conns.abuse, NJ_C_h1_slow), 1);
}

/* The beginning of a record, and then a byte each 100 ms. Returns how long the connection lived. */
static nj_ns live_within_a_record(void)
{
    static const uint8_t head[] = {23, 3, 3, 0x40, 0};
    nj_ns begun = t->r->now;

    rig_send(t->r, c->p, head, sizeof head);
    rig_settle(t->r);
    while (!c->p->got_fin && !c->p->got_rst && t->r->now - begun < 300 * NJ_SEC) {
        rig_send(t->r, c->p, "x", 1);
        rig_run(t->r, 100 * NJ_MS);
    }
    return t->r->now - begun;
}

Test(conn_http1_tls, a_record_that_stays_incomplete)
{
    nj_ns most = t->r->http.header_timeout;

    ask(GET_INDEX);
    nj_ns lived = live_within_a_record();
    cr_expect(lived >= most && lived <= most + NJ_SEC, "%.1f s", (double)lived / NJ_SEC);
    expect_named();
}

/* A record of an upload may take longer; not for ever. */
Test(conn_http1_tls, a_record_that_stays_incomplete_beside_a_request)
{
    nj_ns most = t->r->http.body_timeout;

    t->r->files_slow = true;
    ask(GET_INDEX);
    nj_ns lived = live_within_a_record();
    cr_expect(lived > t->r->http.header_timeout && lived <= most + most / 4, "%.1f s",
              (double)lived / NJ_SEC);
    t->r->files_slow = false;
    expect_named();
}

Test(conn_http1_tls, a_record_of_a_body_that_stays_incomplete)
{
    nj_ns most = t->r->http.body_timeout;

    ask("POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n");
    rig_run(t->r, 3 * NJ_SEC);
    ask("some");
    nj_ns lived = live_within_a_record();
    cr_expect(lived > t->r->http.header_timeout && lived <= most + most / 4, "%.1f s",
              (double)lived / NJ_SEC);
    expect_named();
}

static nj_ns take_at(uint32_t n_bytes, nj_ns at_most)
{
    nj_ns begun = t->r->now;

    c->p->manual = true;
    say("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    tls_peer_send(t, c, 1400);
    while (!c->p->got_rst && t->r->now - begun < at_most) {
        c->p->rcv_wnd = n_bytes;
        rig_ack(t->r, c->p);
        rig_run(t->r, NJ_SEC);
    }
    return t->r->now - begun;
}

Test(conn_http1_tls, min_rate)
{
    t->r->http.min_rate = 4000;
    nj_ns took = take_at(2000, 300 * NJ_SEC);
    cr_expect(took >= 60 * NJ_SEC && took <= 65 * NJ_SEC, "%lu s", took / NJ_SEC);
}

Test(conn_http1_tls, above_min_rate)
{
    t->r->http.min_rate = 1000;
    take_at(2000, 300 * NJ_SEC);
    cr_expect(!c->p->got_rst);
}
