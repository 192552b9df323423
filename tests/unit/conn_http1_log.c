/* SPDX-License-Identifier: BSD-3-Clause */
/* The access log of requests of HTTP/1: as of HTTP/2 for the same requests, and what differs. */
#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/access_book.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

static void words(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "words", 5);
}

static void slow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(3 * NJ_SEC);
    nj_response_write(resp, "a", 1);
    nj_response_flush(resp);
    nj_sleep(2 * NJ_SEC);
    nj_response_write(resp, "b", 1);
}

static void nothing(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_status(resp, 204);
}

static void breaks(struct nj_request *req, struct nj_response *resp, void *arg)
{
    slow(req, resp, arg);
    nj_response_flush(resp);
    nj_sleep(NJ_SEC);
    nj_response_reset(resp);
}

static void reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[100];

    while (nj_request_read(req, some, sizeof some) > 0)
        ;
}

static const struct nj_route routes[] = {
    {.path = "/words", .handle = words},
    {.path = "/slow", .type = NJ_BLOCKING, .handle = slow},
    {.path = "/nothing", .handle = nothing},
    {.path = "/breaks", .type = NJ_BLOCKING, .handle = breaks},
    {.path = "/reads", .type = NJ_BLOCKING, .handle = reads},
};

static struct hr *start(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    h->config.conns.access = book_begin(16);
    return hr_start(h);
}

static void finish(struct hr *h)
{
    hr_free(h);
    book_expect_written();
}

static const char *text_of(const struct nj_access_record *a, char *out)
{
    memcpy(out, a->text, NJ_ACCESS_TEXT_BYTES);
    out[a->n_method + a->n_path + a->n_authority + a->n_referer + a->n_agent] = '\0';
    return out;
}

struct asked {
    const char *method, *path, *name, *value;
    uint32_t n_body;
};

static const struct asked table[] = {
    {"GET", "/whole?q=1", "referer", "http://a/b", 0},
    {"GET", "/index.html", "user-agent", "me", 0},
    {"HEAD", "/whole", NULL, NULL, 0},
    {"GET", "/whole", "range", "bytes=100-199", 0},
    {"GET", "/none", NULL, NULL, 0},
    {"GET", "/dir", NULL, NULL, 0},
    {"GET", "/../x", NULL, NULL, 0},
    {"POST", "/whole", NULL, NULL, 0},
    {"OPTIONS", "*", NULL, NULL, 0},
    {"GET", "/words", NULL, NULL, 0},
    {"HEAD", "/words", NULL, NULL, 0},
    {"GET", "/slow", NULL, NULL, 0},
    {"GET", "/nothing", NULL, NULL, 0},
    {"POST", "/reads", NULL, NULL, 100},
    {"GET", "/words", "expect", "something", 0},
};

static void ask(struct hr *h, struct rig_peer *p, const struct asked *q)
{
    char fields[256], body[128];
    int n = 0;

    fields[0] = '\0';
    if (q->name)
        n = sprintf(fields, "%s: %s\r\n", q->name, q->value);
    if (q->n_body > 0)
        sprintf(fields + n, "Content-Length: %u\r\n", q->n_body);
    http1_ask(h->r, p, q->method, q->path, fields);
    memset(body, 'b', sizeof body);
    if (q->n_body > 0)
        rig_send(h->r, p, body, q->n_body);
}

static uint32_t n_h2;

/* All requests over HTTP/2, then over HTTP/1, each on a connection of its own. */
static void ask_in_both(struct hr *h)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(table); i++) {
        const struct asked *q = &table[i];
        struct hr_client *c = hr_connect(h);
        nghttp2_nv nv[] = {HR_NV(":method", q->method), HR_NV(":scheme", "http"),
                           HR_NV(":authority", "a.test"), HR_NV(":path", q->path),
                           HR_NV(q->name ? q->name : "x", q->name ? q->value : "")};
        if (q->n_body > 0)
            hr_post(c, q->path, q->n_body);
        else
            hr_ask_fields(c, nv, q->name ? 5 : 4);
        hr_run(h, 10 * NJ_SEC);
    }
    n_h2 = book.n_lines;
    for (size_t i = 0; i < NJ_ARRAY_LEN(table); i++) {
        ask(h, rig_connect(h->r, (uint16_t)(1000 + i)), &table[i]);
        hr_run(h, 10 * NJ_SEC);
    }
}

static void expect_equal(const struct asked *q, const struct nj_access_record *a,
                         const struct nj_access_record *b)
{
    char one[NJ_ACCESS_TEXT_BYTES], other[NJ_ACCESS_TEXT_BYTES];

    cr_expect(a->status == b->status, "%s %s: %u, %u", q->method, q->path, a->status, b->status);
    cr_expect(a->n_bytes == b->n_bytes, "%s %s: %lu, %lu", q->method, q->path, a->n_bytes,
              b->n_bytes);
    cr_expect(a->complete && b->complete, "%s %s", q->method, q->path);
    cr_expect(a->ttfb / NJ_SEC == b->ttfb / NJ_SEC && a->total / NJ_SEC == b->total / NJ_SEC,
              "%s %s: %lu ns, %lu ns", q->method, q->path, a->ttfb, b->ttfb);
    cr_expect_str_eq(a->class_of, b->class_of);
    if (q->n_body == 0) /* hr_post() names another authority */
        cr_expect_str_eq(text_of(a, one), text_of(b, other));
    cr_expect(a->n_method == b->n_method && a->n_path == b->n_path && a->cut == b->cut);
}

Test(conn_http1_log, as_for_http2)
{
    struct hr *h = start();

    ask_in_both(h);
    cr_assert_eq(n_h2, NJ_ARRAY_LEN(table));
    cr_assert_eq(book.n_lines, 2 * n_h2);
    for (uint32_t i = 0; i < n_h2; i++)
        expect_equal(&table[i], &book.line[i], &book.line[n_h2 + i]);
    finish(h);
}

/* Requests of a connection are numbered, as streams are. */
Test(conn_http1_log, numbers)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    for (uint32_t i = 0; i < 4; i++)
        http1_get(h->r, p, i % 2 ? "/words" : "/index.html");
    hr_settle(h);
    cr_assert_eq(book.n_lines, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct nj_access_record *a = &book.line[i];
        cr_expect(a->conn == 1 && a->stream_id == i + 1 && a->rport == 1000, "%u", a->stream_id);
        cr_expect_eq(nj_addr_to_v4(&a->remote), htonl(RIG_PEER_IP));
        cr_expect(!a->tls_suite);
    }
    finish(h);
}

/* Responses that end early are logged as incomplete, with the bytes that were sent. */
Test(conn_http1_log, what_was_broken_off)
{
    struct hr *h = start();
    struct rig_peer *file = rig_connect(h->r, 1000), *none = rig_connect(h->r, 1001);
    struct rig_peer *breaks_off = rig_connect(h->r, 1002), *body = rig_connect(h->r, 1003);

    file->rcv_wnd = 3000;
    file->manual = true;
    http1_get(h->r, file, "/big");
    hr_settle(h);
    rig_seg(h->r, file, file->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    hr_settle(h);
    cr_assert_eq(book.n_lines, 1);
    const struct nj_access_record *a = book.line;
    cr_expect(a->status == 200 && a->n_bytes > 0 && a->n_bytes < RIG_BIG && !a->complete);
    http1_get(h->r, none, "/slow");
    hr_settle(h);
    rig_seg(h->r, none, none->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    hr_settle(h);
    cr_assert_eq(book.n_lines, 2);
    cr_expect(a[1].status == 0 && a[1].ttfb == 0 && !a[1].complete);
    http1_get(h->r, breaks_off, "/breaks");
    hr_run(h, 10 * NJ_SEC);
    cr_assert_eq(book.n_lines, 3);
    cr_expect(a[2].status == 200 && a[2].n_bytes == 2 && !a[2].complete);
    http1_ask(h->r, body, "POST", "/reads", "Content-Length: 100\r\n");
    hr_settle(h);
    rig_fin(h->r, body);
    hr_settle(h);
    cr_assert_eq(book.n_lines, 4);
    cr_expect(!a[3].complete);
    finish(h);
}

/* Of a request that is refused before it is one, the log has what could be read. */
Test(conn_http1_log, refused_requests)
{
    static const struct {
        const char *bytes;
        unsigned status;
        const char *text; /* the beginning of method, path and authority */
    } rows[] = {
        {"GET /x HTTP/1.1\r\n\r\n", 400, "GET/x"},
        {"GET /x HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", 400, "GET/x"},
        {"GET /x HTTP/9.1\r\nHost: a\r\n\r\n", 505, "GET"},
        {"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, "POST/x"},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct hr *h = start();
        char text[NJ_ACCESS_TEXT_BYTES];
        http1_send(h->r, rig_connect(h->r, 1000), rows[i].bytes);
        hr_settle(h);
        cr_assert_eq(book.n_lines, 1, "%s", rows[i].bytes);
        cr_expect_eq(book.line[0].status, rows[i].status);
        cr_expect(book.line[0].complete && book.line[0].n_bytes == 0);
        cr_expect(strncmp(text_of(&book.line[0], text), rows[i].text, strlen(rows[i].text)) == 0,
                  "%s: %s", rows[i].bytes, text);
        finish(h);
    }
}

/* A body that is malformed: the line of its request has the status of the refusal. */
Test(conn_http1_log, refused_bodies)
{
    struct hr *h = start();
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_ask(h->r, p, "POST", "/reads", "Transfer-Encoding: chunked\r\n");
    hr_settle(h);
    http1_send(h->r, p, "x\r\n");
    hr_settle(h);
    struct http1_reply a = http1_first(p);
    cr_expect(a.status == 400 && a.says_close, "%s", a.head);
    cr_assert_eq(book.n_lines, 1);
    cr_expect(book.line[0].status == 400 && book.line[0].complete);
    cr_expect_eq(rig_count(h->r, NJ_C_requests), 1);
    cr_expect_eq(rig_count(h->r, NJ_C_responses), 1);
    http1_expect_closed(h->r, p);
    finish(h);
}
