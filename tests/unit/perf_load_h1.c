/* SPDX-License-Identifier: BSD-3-Clause */
/* The load generator's HTTP/1.1: responses cut at every byte, malformed ones, and the order of
 * requests on a connection. */
#include "h1.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX 65536u

struct host {
    struct load_plan plan;
    struct h1_conn c;
    struct load_out out;
    uint32_t n_ended[LOAD_N_ENDS];
    uint64_t n_got, n_came; /* bytes of bodies: of complete responses; on arrival */
    char statuses[256];     /* "200 404 " */
    nj_ns first_at, last_due;
};

static void ended(void *user, const struct load_request *r, enum load_end end, nj_ns now)
{
    struct host *h = user;
    size_t n = strlen(h->statuses);

    h->n_ended[end]++;
    if (end != LOAD_DONE)
        return;
    h->n_got += r->n_body;
    h->first_at = r->first_at;
    h->last_due = r->due;
    snprintf(h->statuses + n, sizeof h->statuses - n, "%u ", r->status);
}

static void came(void *user, uint32_t n_bytes)
{
    ((struct host *)user)->n_came += n_bytes;
}

static void add_path(struct host *h, const char *path)
{
    h->plan.path[h->plan.n_paths].text = path;
    h->plan.path[h->plan.n_paths++].n_bytes = (uint32_t)strlen(path);
}

static struct host *host_new(uint32_t streams, uint64_t upload)
{
    struct host *h = calloc(1, sizeof *h);
    static const char *const fields[] = {"user-agent: load", "accept: */*"};

    h->plan.streams = streams;
    h->plan.upload_bytes = upload;
    h->plan.ended = ended;
    h->plan.came = came;
    add_path(h, "/");
    add_path(h, "/second?a=b");
    cr_assert(h1_framing.make(&h->plan, "host:80", fields, 2));
    h->out.data = malloc(OUT_MAX);
    h->out.n_max = OUT_MAX;
    cr_assert(h1_framing.open(&h->c.conn, &h->plan, h, &h->out));
    return h;
}

static void host_free(struct host *h)
{
    h1_framing.close(&h->c.conn, 0);
    free(h->out.data);
    free(h);
}

static void ask(struct host *h, uint32_t n, nj_ns due)
{
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_gt(h1_framing.room(&h->c.conn), 0);
        h1_framing.ask(&h->c.conn, i % 2, due, &h->out);
    }
}

/* The bytes come in a buffer of their own, so that a sanitizer finds reads beyond them. */
static bool give(struct host *h, const char *data, uint32_t n, nj_ns now)
{
    uint8_t *own = malloc(n ? n : 1);

    memcpy(own, data, n);
    bool good = h1_framing.input(&h->c.conn, own, n, now, &h->out);
    free(own);
    cr_assert(good == (h->c.conn.fault == NULL));
    return good;
}

static void check_sent(struct host *h, const char *wanted)
{
    cr_expect_eq(h->out.n_bytes, strlen(wanted), "%u bytes", h->out.n_bytes);
    cr_expect_arr_eq(h->out.data, wanted, strlen(wanted), "%.*s", (int)h->out.n_bytes,
                     (char *)h->out.data);
    h->out.n_bytes = 0;
}

/* ---- requests ---- */

#define REST " HTTP/1.1\r\nhost: host:80\r\nuser-agent: load\r\naccept: */*\r\n\r\n"

Test(perf_load_h1, requests_say_what_they_should)
{
    struct host *h = host_new(4, 0);

    cr_expect_eq(h1_framing.room(&h->c.conn), 4);
    ask(h, 2, 5);
    check_sent(h, "GET /" REST "GET /second?a=b" REST);
    cr_expect_eq(h1_framing.room(&h->c.conn), 2);
    cr_expect_geq(h->plan.request_max, strlen("GET /second?a=b" REST));
    host_free(h);
}

Test(perf_load_h1, a_host_field_replaces_ours)
{
    static const char *const fields[] = {"host: example", "x: y"};
    struct host *h = host_new(1, 0);

    cr_assert(h1_framing.make(&h->plan, "host:80", fields, 2));
    ask(h, 1, 5);
    check_sent(h, "GET / HTTP/1.1\r\nhost: example\r\nx: y\r\n\r\n");
    host_free(h);
}

Test(perf_load_h1, fields_beyond_the_bound)
{
    static char big[LOAD_BLOCK_BYTES] = "a: ";
    const char *const fields[] = {big};
    struct host *h = host_new(1, 0);

    memset(big + 3, 'a', sizeof big - 4);
    cr_expect(!h1_framing.make(&h->plan, "host", fields, 1));
    host_free(h);
}

Test(perf_load_h1, a_body_goes_before_the_next_request)
{
    struct host *h = host_new(2, 1000);
    const char *head = "POST / HTTP/1.1\r\nhost: host:80\r\ncontent-length: 1000\r\n"
                       "user-agent: load\r\naccept: */*\r\n\r\n";

    ask(h, 1, 5);
    check_sent(h, head);
    cr_expect_eq(h1_framing.room(&h->c.conn), 0);
    h->out.n_max = 600;
    cr_expect_eq(h1_framing.upload(&h->c.conn, &h->out), 600);
    cr_expect_eq(h1_framing.room(&h->c.conn), 0);
    h->out.n_bytes = 0;
    /* The response comes early; the body still goes on (RFC 9112 9.5). */
    cr_assert(give(h, "HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n", 38, 7));
    cr_expect_eq(h1_framing.upload(&h->c.conn, &h->out), 400);
    cr_expect_eq(h1_framing.upload(&h->c.conn, &h->out), 0);
    cr_expect_eq(h->out.n_bytes, 400);
    cr_expect_eq(h1_framing.room(&h->c.conn), 2);
    cr_expect_str_eq(h->statuses, "405 ");
    host_free(h);
}

/* ---- responses ---- */

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *what, *bytes, *statuses;
    uint32_t n_requests;
    uint64_t n_body;
    bool leaving;
} good[] = {
    {"a length", OK "Content-Length: 5\r\n\r\nhello", "200 ", 1, 5, false},
    {"no body", OK "Content-Length: 0\r\n\r\n", "200 ", 1, 0, false},
    {"no reason", "HTTP/1.1 404 \r\ncontent-length:2\r\n\r\nno", "404 ", 1, 2, false},
    {"no reason and no space", "HTTP/1.1 404\r\ncontent-length: 2 \r\n\r\nno", "404 ", 1, 2, false},
    {"the same length twice", OK "content-length: 1\r\nCONTENT-LENGTH:\t1\r\n\r\nx", "200 ", 1, 1,
     false},
    {"chunks", OK "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0A \r\n0123456789\r\n0\r\n\r\n",
     "200 ", 1, 15, false},
    {"chunks with extensions and trailers",
     OK "transfer-encoding: chunked\r\n\r\n1;a=\"b;c\"\r\nx\r\n000 ; last\r\nSum: 1\r\nb:\r\n\r\n",
     "200 ", 1, 1, false},
    {"an interim response", "HTTP/1.1 103 Early\r\nlink: a\r\n\r\n" OK "content-length: 1\r\n\r\nx",
     "200 ", 1, 1, false},
    {"204 and 304 have no body",
     "HTTP/1.1 204 None\r\n\r\nHTTP/1.1 304 Same\r\ncontent-length: 9\r\n\r\n" OK
     "content-length: 1\r\n\r\nx",
     "204 304 200 ", 3, 1, false},
    {"pipelined",
     OK "content-length: 3\r\n\r\nabc" OK "transfer-encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n"
        "HTTP/1.1 500 Bad\r\ncontent-length: 1\r\n\r\nz",
     "200 200 500 ", 3, 6, false},
    {"the last one", OK "Connection: upgrade, Close\r\ncontent-length: 1\r\n\r\nx", "200 ", 1, 1,
     true},
    {"HTTP/1.0 with a length", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", "200 ", 1, 1, true},
    {"HTTP/1.0 that stays",
     "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 1\r\n\r\nx", "200 ", 1, 1,
     false},
};

static void check_good(size_t i, struct host *h, size_t cut)
{
    cr_expect_str_eq(h->statuses, good[i].statuses, "%s, cut at %zu: %s", good[i].what, cut,
                     h->statuses);
    cr_expect_eq(h->n_got, good[i].n_body, "%s, cut at %zu", good[i].what, cut);
    cr_expect_eq(h->n_came, h->n_got);
    cr_expect_eq(h->c.conn.n_open, 0, "%s, cut at %zu", good[i].what, cut);
    cr_expect_eq(h->c.conn.leaving, good[i].leaving, "%s", good[i].what);
    cr_expect(h->c.conn.settled);
    cr_expect_eq(h->last_due, 5);
}

Test(perf_load_h1, responses_cut_at_every_byte)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint32_t n = (uint32_t)strlen(good[i].bytes);
        for (uint32_t cut = 0; cut <= n; cut++) {
            struct host *h = host_new(4, 0);
            ask(h, good[i].n_requests, 5);
            cr_assert(give(h, good[i].bytes, cut, 7) && give(h, good[i].bytes + cut, n - cut, 8),
                      "%s, cut at %u: %s", good[i].what, cut, h->c.conn.fault);
            check_good(i, h, cut);
            cr_expect(h->first_at == 7 || h->first_at == 8);
            host_free(h);
        }
    }
}

Test(perf_load_h1, responses_byte_by_byte)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct host *h = host_new(4, 0);
        ask(h, good[i].n_requests, 5);
        for (const char *p = good[i].bytes; *p; p++)
            cr_assert(give(h, p, 1, 7), "%s: %s", good[i].what, h->c.conn.fault);
        check_good(i, h, 1);
        host_free(h);
    }
}

/* RFC 9112 6.3: its headers are those of a GET. */
Test(perf_load_h1, a_response_to_head)
{
    static const char text[] = OK "content-length: 5\r\n\r\n" OK;
    struct h1_response r = {0};
    const uint8_t *data = (const uint8_t *)text;
    uint32_t n = sizeof text - 1, n_body;

    h1_response_begin(&r, true);
    cr_expect_eq(h1_response_take(&r, &data, &n, &n_body), H1_HEAD);
    cr_expect_eq(h1_response_take(&r, &data, &n, &n_body), H1_OVER);
    cr_expect_eq(n, strlen(OK));
    h1_response_free(&r);
}

Test(perf_load_h1, a_body_until_the_end_of_the_connection)
{
    struct host *h = host_new(4, 0);

    ask(h, 2, 5);
    cr_assert(give(h, OK "\r\nhel", (uint32_t)strlen(OK) + 5, 7));
    cr_expect(h->c.conn.leaving);
    cr_expect_eq(h1_framing.room(&h->c.conn), 0);
    cr_assert(give(h, "lo", 2, 8));
    cr_expect_eq(h->n_ended[LOAD_DONE], 0);
    h1_framing.finish(&h->c.conn, 9);
    cr_expect_eq(h->n_got, 5);
    cr_expect_eq(h->n_ended[LOAD_DONE], 1);
    cr_expect_eq(h->n_ended[LOAD_LOST], 1);
    host_free(h);
}

Test(perf_load_h1, the_end_of_the_connection_within_a_response)
{
    static const char *const parts[] = {"",
                                        "HTTP/1.1 2",
                                        OK "content-len",
                                        OK "\r",
                                        OK "content-length: 5\r\n\r\nhell",
                                        OK "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct host *h = host_new(1, 0);
        ask(h, 1, 5);
        cr_assert(give(h, parts[i], (uint32_t)strlen(parts[i]), 7));
        h1_framing.finish(&h->c.conn, 8);
        h1_framing.close(&h->c.conn, 9);
        cr_expect_eq(h->n_ended[LOAD_LOST], 1, "%s", parts[i]);
        host_free(h);
    }
}

/* ---- the end of a connection ---- */

Test(perf_load_h1, requests_behind_the_last_response_are_lost)
{
    static const char last[] = OK "connection: close\r\ncontent-length: 2\r\n\r\nok" OK;
    struct host *h = host_new(4, 0);

    ask(h, 3, 5);
    cr_assert(give(h, last, sizeof last - 1, 7)); /* what follows is ignored */
    cr_expect_eq(h->n_ended[LOAD_DONE], 1);
    cr_expect_eq(h->n_ended[LOAD_LOST], 2);
    cr_expect_eq(h->c.conn.n_open, 0);
    cr_expect_eq(h1_framing.room(&h->c.conn), 0);
    host_free(h);
}

/* A request cannot be cancelled without its connection. */
Test(perf_load_h1, a_timeout)
{
    struct host *h = host_new(4, 0);

    ask(h, 2, 5);
    ask(h, 1, 7);
    cr_expect(h1_framing.give_up(&h->c.conn, 5, 9, &h->out));
    cr_expect_eq(h->c.conn.n_open, 3);
    cr_expect(!h1_framing.give_up(&h->c.conn, 6, 9, &h->out));
    cr_expect_eq(h->n_ended[LOAD_TIMEOUT], 2);
    cr_expect_eq(h->n_ended[LOAD_LOST], 1);
    cr_expect_eq(h1_framing.room(&h->c.conn), 0);
    host_free(h);
}

Test(perf_load_h1, a_connection_that_was_never_open)
{
    struct h1_conn c = {0};

    h1_framing.close(&c.conn, 0);
    cr_expect_null(c.request);
}

/* Many requests, so that the ring of requests wraps. */
Test(perf_load_h1, a_long_connection)
{
    static const char response[] = OK "content-length: 2\r\n\r\nok";
    struct host *h = host_new(3, 0);

    for (uint32_t i = 0; i < 1000; i++) {
        while (h1_framing.room(&h->c.conn) > 0)
            ask(h, 1, i);
        h->out.n_bytes = 0;
        h->statuses[0] = '\0';
        cr_assert(give(h, response, sizeof response - 1, i));
        cr_expect_eq(h->last_due, i < 3 ? 0 : i - 2);
    }
    cr_expect_eq(h->n_ended[LOAD_DONE], 1000);
    host_free(h);
}

/* ---- malformed input ---- */

static const struct {
    const char *what, *bytes;
} bad[] = {
    {"HTTP/2", "HTTP/2 200 OK\r\n"},
    {"another protocol", "220 mail.example ESMTP\r\n"},
    {"HTTP/1", "HTTP/1 200 OK   \r\n"},
    {"no status", "HTTP/1.1 OK 200\r\n"},
    {"a status of two digits", "HTTP/1.1 20 OK\r\n"},
    {"a status of four digits", "HTTP/1.1 2000 OK\r\n"},
    {"a status below 100", "HTTP/1.1 099 OK\r\n"},
    {"a control in the reason", "HTTP/1.1 200 O\001K\r\n"},
    {"LF alone", "HTTP/1.1 200 OK\n"},
    {"CR in a line", OK "a: b\rc\r\n"},
    {"an empty line first", "\r\n"},
    {"no colon", OK "nothing\r\n"},
    {"no name", OK ": a\r\n"},
    {"a space before the colon", OK "content-length : 1\r\n"},
    {"folding", OK "a: b\r\n c\r\n"},
    {"a control in a value", OK "a: \177\r\n"},
    {"an empty length", OK "content-length:\r\n"},
    {"a signed length", OK "content-length: +1\r\n"},
    {"a list of lengths", OK "content-length: 1, 1\r\n"},
    {"a length beyond 64 bits", OK "content-length: 18446744073709551616\r\n"},
    {"two lengths", OK "content-length: 1\r\ncontent-length: 2\r\n"},
    {"another coding", OK "transfer-encoding: gzip, chunked\r\n"},
    {"a coding twice", OK "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n"},
    {"length and coding", OK "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"},
    {"coding in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"},
    {"101", "HTTP/1.1 101 Switch\r\n\r\n"},
    {"a chunk without a size", OK "transfer-encoding: chunked\r\n\r\n\r\n"},
    {"a chunk with a sign", OK "transfer-encoding: chunked\r\n\r\n-1\r\n"},
    {"a chunk with 0x", OK "transfer-encoding: chunked\r\n\r\n0x1\r\n"},
    {"a chunk beyond 64 bits", OK "transfer-encoding: chunked\r\n\r\n10000000000000000\r\n"},
    {"a chunk longer than its size", OK "transfer-encoding: chunked\r\n\r\n1\r\nab\r\n"},
    {"a chunk with LF alone", OK "transfer-encoding: chunked\r\n\r\n1\na"},
    {"a malformed trailer", OK "transfer-encoding: chunked\r\n\r\n0\r\na b: c\r\n"},
    {"a response without a request", OK "content-length: 0\r\n\r\nH"},
};

Test(perf_load_h1, a_peer_that_breaks_the_protocol)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (uint32_t step = 1; step <= 1000; step += 999) {
            struct host *h = host_new(1, 0);
            uint32_t n = (uint32_t)strlen(bad[i].bytes);
            bool fine = true;
            ask(h, 1, 5);
            for (uint32_t at = 0; fine && at < n; at += step)
                fine = give(h, bad[i].bytes + at, n - at < step ? n - at : step, 7);
            cr_expect(!fine, "%s, %u at a time", bad[i].what, step);
            host_free(h);
        }
}

/* Returns the bytes that were accepted, of `unit` again and again. */
static uint32_t flood(const char *begin, const char *unit)
{
    struct host *h = host_new(1, 0);
    uint32_t n = 0;

    ask(h, 1, 5);
    cr_assert(give(h, begin, (uint32_t)strlen(begin), 7));
    while (n < 1000000 && give(h, unit, (uint32_t)strlen(unit), 7))
        n += (uint32_t)strlen(unit);
    host_free(h);
    return n;
}

Test(perf_load_h1, heads_without_end)
{
    cr_expect_lt(flood(OK, "a: b\r\n"), LOAD_HEAD_BYTES);
    cr_expect_lt(flood(OK "a: ", "b"), H1_LINE_BYTES);
    cr_expect_lt(flood("", "HTTP/1.1 103 Early\r\n\r\n"), LOAD_HEAD_BYTES);
    cr_expect_lt(flood(OK "transfer-encoding: chunked\r\n\r\n0\r\n", "a: b\r\n"), LOAD_HEAD_BYTES);
    cr_expect_leq(flood(OK "transfer-encoding: chunked\r\n\r\n", "0"), H1_LINE_BYTES);
    cr_expect_geq(flood(OK "transfer-encoding: chunked\r\n\r\n", "1\r\na\r\n"), 1000000);
}
