/* SPDX-License-Identifier: BSD-3-Clause */
/* Access-log records and limits of transactions. */
#include <criterion/criterion.h>

#include "http/transaction.h"
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

static const struct nj_route routes[] = {
    {.path = "/words", .handle = words},
    {.path = "/slow", .type = NJ_BLOCKING, .handle = slow},
    {.path = "/nothing", .handle = nothing},
};

static struct hr *start(unsigned n_max)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    h->config.conns.access = book_begin(n_max);
    h->config.index = 0;
    return hr_start(h);
}

static void finish(struct hr *h)
{
    hr_free(h);
    book_expect_written();
}

static bool said(const struct nj_access_record *a, unsigned at, uint16_t n, const char *what)
{
    return n == strlen(what) && memcmp(a->text + at, what, n) == 0;
}

Test(http_transaction, a_line)
{
    struct hr *h = start(BOOK_LINES);
    struct hr_client *c = hr_connect(h);

    hr_ask(c, "GET", "/whole?q=1", 0, 0, "referer", "http://a/b");
    hr_settle(h);
    cr_assert_eq(book.n_lines, 1);
    const struct nj_access_record *a = &book.line[0];
    cr_expect_eq(a->wall_ns, (1700000000 + 1000) * (int64_t)NJ_SEC);
    cr_expect_eq(nj_addr_to_v4(&a->remote), htonl(RIG_PEER_IP));
    cr_expect_eq(a->rport, 2000);
    cr_expect_eq(a->status, 200);
    cr_expect_eq(a->stream_id, 1);
    cr_expect_eq(a->shard, 0);
    cr_expect_eq(a->conn, 1);
    cr_expect_eq(a->n_bytes, RIG_WHOLE);
    cr_expect(a->complete && !a->cut);
    cr_expect_str_eq(a->class_of, "default");
    unsigned at = 0;
    cr_expect(said(a, at, a->n_method, "GET"));
    at += a->n_method;
    cr_expect(said(a, at, a->n_path, "/whole?q=1"));
    at += a->n_path;
    cr_expect(said(a, at, a->n_authority, "198.18.0.2"));
    at += a->n_authority;
    cr_expect(said(a, at, a->n_referer, "http://a/b"));
    cr_expect_eq(a->n_agent, 0);
    finish(h);
}

/* Large files are streamed to as many requests as allowed, on any number of connections. */
Test(http_transaction, many_downloads_of_few_connections)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns_max = 2;
    hr_start(h);
    struct hr_client *c = hr_connect_with(h, &(struct hr_options){.window = 4096, .no_auto = true});
    int32_t id[20];

    for (unsigned i = 0; i < NJ_ARRAY_LEN(id); i++)
        id[i] = hr_get(c, "/big");
    hr_settle(h);
    for (unsigned i = 0; i < NJ_ARRAY_LEN(id); i++)
        cr_expect_eq(hr_reply_of(c, id[i])->status, 200, "%u: %d", i,
                     hr_reply_of(c, id[i])->status);
    cr_expect_eq(rig_count(h->r, NJ_C_file_busy), 0);
    hr_free(h);
}

/* An absent file is cached, too. */
Test(http_transaction, files_that_do_not_come)
{
    struct hr *h = start(BOOK_LINES);
    struct hr_client *c = hr_connect(h);

    hr_get(c, "/big");
    while (h->r->n_jobs == 0 || h->r->job[0]->op != NJ_FILE_READ)
        hr_step(h);
    h->r->files_slow = true;
    hr_run(h, 2 * NJ_SEC); /* its cache entry has expired */
    hr_get(c, "/big");
    hr_run(h, 70 * NJ_SEC);
    cr_assert_eq(book.n_lines, 2);
    cr_expect(book.line[0].status == 200 && !book.line[0].complete && book.line[0].n_bytes == 0);
    cr_expect(book.line[1].status == 503 && book.line[1].complete && book.line[1].n_bytes == 0);
    finish(h);
}

/* The body is not read, and is refused as too large anyway. */
Test(http_transaction, too_large_for_a_file)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->r->http.body_max = 1000;
    hr_start(h);
    struct hr_client *c = hr_connect(h);

    int32_t fits = hr_ask(c, "GET", "/whole", 1000, 1000, "content-length", "1000");
    int32_t not = hr_ask(c, "GET", "/whole", 1001, 1001, "content-length", "1001");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, fits)->status, 200);
    cr_expect_eq(hr_reply_of(c, not )->status, 413);
    hr_free(h);
}

/* From the request head to the first byte, and to the last. */
Test(http_transaction, times)
{
    struct hr *h = start(BOOK_LINES);
    struct hr_client *c = hr_connect(h);

    hr_get(c, "/slow");
    hr_run(h, 10 * NJ_SEC);
    cr_assert_eq(book.n_lines, 1);
    const struct nj_access_record *a = &book.line[0];
    cr_expect(a->ttfb >= 3 * NJ_SEC && a->ttfb < 3100 * NJ_MS, "%lu", a->ttfb / NJ_MS);
    cr_expect(a->total >= 5 * NJ_SEC && a->total < 5100 * NJ_MS, "%lu", a->total / NJ_MS);
    cr_expect_eq(a->n_bytes, 2);
    const struct nj_shard *s = h->r->s;
    cr_expect_eq(nj_histogram_count(&s->conns.txns.ttfb), 1);
    cr_expect_eq(nj_histogram_count(&s->conns.txns.total), 1);
    cr_expect_eq(nj_histogram_count(&s->conns.txns.throttled), 0);
    cr_expect(nj_histogram_quantile(&s->conns.txns.ttfb, 0.5) / NJ_MS > 2600 &&
              nj_histogram_quantile(&s->conns.txns.ttfb, 0.5) / NJ_MS < 3500);
    hr_get(c, "/nothing");
    hr_settle(h);
    cr_assert_eq(book.n_lines, 2);
    cr_expect_eq(book.line[1].status, 204);
    cr_expect(book.line[1].complete && book.line[1].n_bytes == 0);
    cr_expect_eq(nj_histogram_count(&s->conns.txns.ttfb), 2, "the head counts");
    finish(h);
}

/* Requests that were reset by the client, or whose connection closed, are logged as such. */
Test(http_transaction, what_was_broken_off)
{
    struct hr *h = start(BOOK_LINES);
    struct hr_options narrow = {.window = 1000, .no_auto = true};
    struct hr_client *c = hr_connect_with(h, &narrow);
    int32_t id = hr_get(c, "/whole");

    hr_get(c, "/slow");
    hr_settle(h);
    cr_expect_eq(book.n_lines, 0);
    hr_reset(c, id);
    hr_settle(h);
    cr_assert_eq(book.n_lines, 1);
    cr_expect(book.line[0].status == 200 && book.line[0].n_bytes == 1000 && !book.line[0].complete);
    rig_seg(h->r, c->p, c->p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    hr_settle(h);
    cr_assert_eq(book.n_lines, 2);
    cr_expect(book.line[1].status == 0 && book.line[1].ttfb == 0 && !book.line[1].complete);
    finish(h);
}

/* A request is served even if no log record is free. */
Test(http_transaction, log_is_full)
{
    struct hr *h = start(0);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/words");

    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, id)->status, 200);
    cr_expect_eq(book.n_lines, 0);
    finish(h);
}

/* Strings that do not fit are cut, and marked. */
Test(http_transaction, long_paths_are_cut)
{
    struct hr *h = start(BOOK_LINES);
    struct hr_client *c = hr_connect(h);
    char path[1000] = "/";

    memset(path + 1, 'x', sizeof path - 2);
    path[sizeof path - 1] = '\0';
    hr_ask(c, "GET", path, 0, 0, "user-agent", "me");
    hr_settle(h);
    cr_assert_eq(book.n_lines, 1);
    const struct nj_access_record *a = &book.line[0];
    cr_expect(a->cut);
    cr_expect_eq(a->n_method + a->n_path + a->n_authority + a->n_referer + a->n_agent,
                 NJ_ACCESS_TEXT_BYTES);
    cr_expect_eq(a->status, 404);
    finish(h);
}

/* The limit: a request beyond it gets 503, and nothing is stored but its log line. */
Test(http_transaction, records_run_out)
{
    struct hr *h = start(BOOK_LINES);
    struct hr_client *c = hr_connect(h);
    struct nj_pool *pool = &h->r->s->conns.txns.pool;
    void *rest[4];

    uint32_t n_max = pool->n_max;
    pool->n_max = 2;
    for (int i = 0; i < 2; i++)
        rest[i] = nj_pool_take(pool);
    int32_t site = hr_get(c, "/index.html"), route = hr_post(c, "/words", 1000);
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, site)->status, 503);
    cr_expect_eq(hr_reply_of(c, route)->status, 503);
    cr_expect_str_eq(hr_reply_of(c, site)->retry_after, "1");
    cr_expect_eq(rig_count(h->r, NJ_C_request_no_memory), 2);
    cr_assert_eq(book.n_lines, 2);
    for (int i = 0; i < 2; i++)
        cr_expect(book.line[i].status == 503 && book.line[i].complete &&
                  book.line[i].n_bytes == 0 && book.line[i].total == 0);
    cr_expect(said(&book.line[0], 3, book.line[0].n_path, "/index.html"));
    cr_expect(said(&book.line[1], 4, book.line[1].n_path, "/words"));
    for (int i = 0; i < 2; i++)
        nj_pool_put(pool, rest[i]);
    site = hr_get(c, "/index.html");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, site)->status, 200);
    pool->n_max = n_max;
    finish(h);
}

static void read_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[100];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
}

static bool text_is(const struct nj_access_record *a, uint32_t at, uint32_t n, const char *want)
{
    return n == strlen(want) && memcmp(a->text + at, want, n) == 0;
}

/* Refused for its head alone: has the fields of every response (RFC 9110 6.6.1, 8.6), and is logged
 * as far as it is known. */
static void check_refused(const struct hr_client *c, int32_t id, int status)
{
    const struct hr_reply *r = &c->reply[id / 2];
    const struct nj_access_record *a = NULL;

    cr_expect_eq(r->status, status, "%d: %d", id, r->status);
    cr_expect(r->ended && r->closed && r->n_got == 0);
    cr_expect_str_eq(r->length, "0");
    cr_expect_str_eq(r->server, "nightjar");
    cr_expect_eq(strlen(r->date), 29, "%s", r->date);
    for (unsigned i = 0; i < book.n_lines; i++)
        if (book.line[i].stream_id == (uint32_t)id)
            a = &book.line[i];
    cr_assert(a);
    cr_expect(a->status == status && a->complete && a->n_bytes == 0 && a->conn == 1);
    cr_expect(text_is(a, 0, a->n_method, "GET"));
    cr_expect(text_is(a, a->n_method, a->n_path, "/words?x"));
}

/* RFC 9113 8.3.1: authority and target must be unambiguous. */
Test(http_transaction, heads_that_contradict_themselves)
{
    static const char *const rows[][3] = {/* :scheme, :authority, host */
                                          {"ftp", "a.example", NULL},
                                          {"http", "me@a.example", NULL},
                                          {"http", "a.example", "b.example"}};
    struct hr *h = start(BOOK_LINES);
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        const nghttp2_nv nv[] = {HR_NV(":method", "GET"), HR_NV(":scheme", rows[i][0]),
                                 HR_NV(":authority", rows[i][1]), HR_NV(":path", "/words?x"),
                                 HR_NV("host", rows[i][2] ? rows[i][2] : "")};
        int32_t id = hr_ask_fields(c, nv, rows[i][2] ? 5 : 4);
        hr_settle(h);
        check_refused(c, id, 400);
    }
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PC], 0);
    cr_expect_eq(rig_count(h->r, NJ_C_status_4xx), NJ_ARRAY_LEN(rows));
    finish(h);
}

/* An oversized head is logged as far as it was read. */
Test(http_transaction, heads_that_are_too_large)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    char value[200];

    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    h->config.conns.access = book_begin(BOOK_LINES);
    h->r->http.header_bytes_max = 300;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    hr_get(c, "/words");
    int32_t big = hr_ask(c, "GET", "/words?x", 0, 0, "name", value);
    hr_settle(h);
    cr_assert_eq(book.n_lines, 2);
    check_refused(c, big, 431);
    finish(h);
}

/* --max-header-size; --max-body below and above the route's limit. */
Test(http_transaction, limits_of_requests)
{
    static const struct nj_route readers[] = {
        {.path = "/read", .type = NJ_BLOCKING, .handle = read_body},
        {.path = "/tight", .type = NJ_BLOCKING, .handle = read_body, .body_max_bytes = 10},
    };
    struct hr *h = hr_new(readers, NJ_ARRAY_LEN(readers));
    h->r->http.header_bytes_max = 300;
    h->r->http.header_fields_max = 6;
    h->r->http.body_max = 1000;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    char value[200];

    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    int32_t big = hr_ask(c, "GET", "/read", 0, 0, "name", value);
    int32_t fits = hr_post(c, "/read", 1000), over = hr_post(c, "/read", 1001);
    int32_t told = hr_ask(c, "POST", "/read", 1001, 1001, "content-length", "1001");
    int32_t tight = hr_post(c, "/tight", 10), tighter = hr_post(c, "/tight", 11);
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, big)->status, 431);
    cr_expect_eq(hr_reply_of(c, fits)->status, 200);
    cr_expect_eq(hr_reply_of(c, over)->status, 413);
    cr_expect_eq(hr_reply_of(c, told)->status, 413);
    cr_expect_eq(hr_reply_of(c, tight)->status, 200);
    cr_expect_eq(hr_reply_of(c, tighter)->status, 413);
    hr_free(h);
}
