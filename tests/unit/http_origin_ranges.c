/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges: one and several, of files in memory and of chunked files. */
#include "site_rig.h"

#include "http/proto/range.h"

Test(http_origin_ranges, one_range)
{
    static const struct {
        const char *range, *if_range;
        uint16_t status;
        const char *content_range, *text;
    } rows[] = {
        {"range: bytes=2-4", NULL, 206, "bytes 2-4/8", "x.h"},
        {"range: bytes=-4", NULL, 206, "bytes 4-7/8", "html"},
        {"range: bytes=7-", NULL, 206, "bytes 7-7/8", "l"},
        {"range: bytes=0-", NULL, 206, "bytes 0-7/8", "a/x.html"},
        {"range: bytes=100-,1-1", NULL, 206, "bytes 1-1/8", "/"},
        {"range: bytes=8-", NULL, 416, "bytes */8", "416 Range Not Satisfiable\n"},
        {"range: bytes=0-3,2-5", NULL, 200, "(none)", "a/x.html"},
        {"range: lines=1-2", NULL, 200, "(none)", "a/x.html"},
        {"range: bytes=2-4", "if-range: " ETAG_OF_8, 206, "bytes 2-4/8", "x.h"},
        {"range: bytes=2-4", "if-range: \"x\"", 200, "(none)", "a/x.html"},
        {"range: bytes=2-4", "if-range: W/" ETAG_OF_8, 200, "(none)", "a/x.html"},
        {"range: bytes=2-4", "if-range: " MODIFIED, 206, "bytes 2-4/8", "x.h"},
        {"range: bytes=8-", "if-range: \"x\"", 200, "(none)", "a/x.html"},
        {"range: bytes=2-4", "range: bytes=2-4", 200, "(none)", "a/x.html"}, /* not a list */
        {"if-range: " ETAG_OF_8, NULL, 200, "(none)", "a/x.html"},
    };
    struct bench *b = begin();
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        char length[24];
        get(b, "/a/x.html", LINES(rows[i].range, rows[i].if_range));
        cr_expect_eq(b->status, rows[i].status, "%s: %u", rows[i].range, b->status);
        cr_expect_str_eq(field(b, "content-range"), rows[i].content_range);
        snprintf(length, sizeof length, "%zu", strlen(rows[i].text));
        cr_expect_str_eq(field(b, "content-length"), length);
        if (b->status == 206)
            cr_expect_eq(has(b, "last-modified"), !rows[i].if_range, "RFC 9110 15.3.7");
        cr_expect(b->status == 416 || has(b, "etag"));
        cr_expect_str_eq(text_of(b), rows[i].text, "%s", rows[i].range);
    }
    /* HEAD has no ranges (RFC 9110 14.2). */
    ask_with(b, "HEAD", "/a/x.html", LINES("range: bytes=2-4"));
    cr_expect_eq(b->status, 200);
    cr_expect_str_eq(field(b, "content-length"), "8");
    /* A weak validator is harmless where none is needed. */
    b->racy = true;
    get(b, "/a/y.html", LINES("range: bytes=2-4"));
    cr_expect_eq(b->status, 206);
    cr_expect_str_eq(text_of(b), "y.h");
    get(b, "/empty", LINES("range: bytes=0-"));
    cr_expect_eq(b->status, 416);
    cr_expect_str_eq(field(b, "content-range"), "bytes */0");
    close_body(b->body);
    get(b, "/empty", LINES("range: bytes=-1"));
    cr_expect(b->status == 200 && !b->body);
    end(b);
}

Test(http_origin_ranges, several_ranges)
{
    struct bench *b = begin();
    char boundary[64], want[1024], length[24];
    get(b, "/a/x.html", LINES("range: bytes=7-7, 0-1"));
    cr_expect_eq(b->status, 206);
    cr_expect_not(has(b, "content-range"), "RFC 9110 15.3.7.2");
    cr_assert_eq(sscanf(field(b, "content-type"), "multipart/byteranges; boundary=%63s", boundary),
                 1);
    snprintf(want, sizeof want,
             "--%s\r\ncontent-type: text/html\r\ncontent-range: bytes 7-7/8\r\n\r\nl"
             "\r\n--%s\r\ncontent-type: text/html\r\n"
             "content-range: bytes 0-1/8\r\n\r\na/\r\n--%s--\r\n",
             boundary, boundary, boundary);
    snprintf(length, sizeof length, "%zu", strlen(want));
    cr_expect_str_eq(field(b, "content-length"), length);
    cr_expect_str_eq(text_of(b), want);
    get(b, "/a/x.html", LINES("range: bytes=7-7, 0-0"));
    char other[64];
    cr_assert_eq(sscanf(field(b, "content-type"), "multipart/byteranges; boundary=%63s", other), 1);
    cr_expect_str_neq(boundary, other);
    close_body(b->body);
    end(b);
}

/* `n` ranges of `n_bytes`, with equal gaps, of the large file. */
static const char *ranges_of_big(uint32_t n, uint32_t n_bytes)
{
    static char lines[8192];
    int at = sprintf(lines, "range: bytes=");

    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = i * (BIG_BYTES / n);
        at += sprintf(lines + at, "%s%u-%u", i ? "," : "", first, first + n_bytes - 1);
    }
    return lines;
}

/* RFC 9110 17.15: a response with many parts is not longer than the file, whatever its type. */
Test(http_origin_ranges, many_parts_are_not_longer_than_the_file)
{
    static char type[NJ_MIME_TYPE_MAX + 1];
    static const uint32_t counts[] = {NJ_RANGES_UNSORTED_MAX + 1, NJ_RANGES_MAX};
    static const uint32_t type_lengths[] = {9, 24, 100, NJ_MIME_TYPE_MAX};

    for (size_t i = 0; i < 2 * NJ_ARRAY_LEN(type_lengths); i++) {
        uint32_t n = counts[i % 2], n_type = type_lengths[i / 2], n_sent = 0;
        memset(type, 'x', n_type);
        type[1] = '/';
        type[n_type] = '\0';
        struct nj_file_server_options options = {.mime.default_type = type};
        struct bench *b = begin_with(&options);
        /* From parts that with their headers are longer than the file, to shorter ones. */
        for (uint32_t less = 60; less < 60 + n_type + 60; less++) {
            ask_with(b, "GET", "/big", LINES(ranges_of_big(n, BIG_BYTES / n - less)));
            step(b);
            cr_assert(b->status == 206 || b->status == 200);
            uint64_t n_bytes = b->body->ops->remaining(b->body);
            cr_expect_leq(n_bytes, BIG_BYTES, "%u parts less %u, type of %u: %lu bytes", n, less,
                          n_type, (unsigned long)n_bytes);
            n_sent += b->status == 206;
            close_body(b->body);
        }
        cr_expect_geq(n_sent, 1, "%u parts, type of %u", n, n_type);
        while (step(b))
            ;
        end(b);
    }
}

/* A range of a large object, read in chunks: no chunk outside of it is read. */
Test(http_origin_ranges, range_of_chunks)
{
    static const struct {
        uint64_t first, last;
    } rows[] = {
        {0, 0},
        {1, 40000},
        {NJ_CHUNK_BYTES - 1, NJ_CHUNK_BYTES},
        {NJ_CHUNK_BYTES, 3 * NJ_CHUNK_BYTES - 1},
        {12345, BIG_BYTES - 1},
        {BIG_BYTES - 1, BIG_BYTES - 1},
    };
    for (size_t i = 0; i < 4 * NJ_ARRAY_LEN(rows); i++) {
        uint64_t first = rows[i / 4].first, n = rows[i / 4].last - first + 1, at = 0;
        struct bench *b = begin();
        char range[64];
        b->prompt = i % 2;
        b->odd_chunks = i & 2;
        snprintf(range, sizeof range, "range: bytes=%llu-%llu", (unsigned long long)first,
                 (unsigned long long)rows[i / 4].last);
        ask_with(b, "GET", "/big", LINES(range));
        step(b);
        cr_assert_eq(b->status, 206);
        cr_assert_eq(b->body->ops->remaining(b->body), n);
        b->body->waiter = b->body;
        while (at < n) {
            struct nj_slice s;
            int r = b->body->ops->peek(b->body, 100000, &s);
            cr_assert_geq(r, 0);
            if (r == 0)
                cr_assert(step(b));
            for (int k = 0; k < r; k++)
                cr_assert_eq(s.data[k], big_byte(first + at + (uint64_t)k));
            if (r > 0)
                b->body->ops->advance(b->body, (uint32_t)r);
            at += (uint64_t)r;
            cr_assert_eq(b->body->ops->remaining(b->body), n - at);
        }
        cr_expect_lt(b->read_end, rows[i / 4].last + 2);
        cr_expect_geq(b->read_first, first);
        close_body(b->body);
        while (step(b))
            ;
        end(b);
    }
}

/* Several ranges of a large object, read in odd sizes, with rests. */
Test(http_origin_ranges, parts_of_chunks)
{
    for (int i = 0; i < 4; i++) {
        struct bench *b = begin();
        static const uint64_t firsts[] = {300000, 5, 700000};
        static const uint64_t lasts[] = {400000, 5, 700999};
        uint64_t at = 0;
        size_t part = 0;
        char last4[4] = "";
        b->prompt = i % 2;
        ask_with(b, "GET", "/big", LINES("range: bytes=300000-400000,5-5,700000-700999"));
        step(b);
        cr_assert_eq(b->status, 206);
        struct nj_body *body = b->body;
        const struct nj_body_ops *ops = body->ops;
        char length[24];
        snprintf(length, sizeof length, "%llu", (unsigned long long)ops->remaining(body));
        cr_expect_str_eq(field(b, "content-length"), length);
        body->waiter = body;
        while (ops->remaining(body) > 0) {
            struct nj_slice s;
            int r = ops->peek(body, 3001, &s);
            cr_assert_geq(r, 0);
            if (r == 0) {
                uint32_t n_wakes = b->n_wakes;
                cr_assert(step(b));
                cr_assert_eq(b->n_wakes, n_wakes + 1);
                continue;
            }
            if (memcmp(last4, "\r\n\r\n", 4) == 0 && part < 3) { /* the next bytes are in a range */
                cr_assert_leq(at + (uint64_t)r, lasts[part] - firsts[part] + 1);
                for (int k = 0; k < r; k++)
                    cr_assert_eq(s.data[k], big_byte(firsts[part] + at + (uint64_t)k));
                at += (uint64_t)r;
                if (at == lasts[part] - firsts[part] + 1) {
                    at = 0;
                    part++;
                    memset(last4, 0, 4);
                }
            } else {
                for (int k = 0; k < r; k++) {
                    memmove(last4, last4 + 1, 3);
                    last4[3] = (char)s.data[k];
                }
            }
            ops->advance(body, (uint32_t)r);
            if (i & 2)
                ops->rest(body);
        }
        cr_expect_eq(part, 3);
        close_body(body);
        while (step(b))
            ;
        end(b);
    }
}

/* The file changes while a range is sent: an error and no wrong bytes; also with several ranges. */
Test(http_origin_ranges, range_of_a_file_that_changes)
{
    static const char *const ranges[] = {"range: bytes=1000-700000",
                                         "range: bytes=600000-700000,1-1"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(ranges); i++) {
        struct bench *b = begin();
        struct nj_slice s;
        int r = 1;
        b->read_failure = NJ_FILE_BROKEN;
        b->read_fails_at = 650000;
        ask_with(b, "GET", "/big", LINES(ranges[i]));
        step(b);
        b->body->waiter = b->body;
        for (int n = 0; n < 100 && r >= 0; n++) {
            r = b->body->ops->peek(b->body, 30000, &s);
            if (r > 0)
                b->body->ops->advance(b->body, (uint32_t)r);
            else if (r == 0)
                step(b);
        }
        cr_expect_lt(r, 0);
        cr_expect_gt(b->body->ops->remaining(b->body), 0);
        close_body(b->body);
        while (step(b))
            ;
        end(b);
    }
}

/* Close a multipart body after each number of events; exhaust the pool of bodies. */
Test(http_origin_ranges, parts_are_closed_and_bounded)
{
    for (int n_events = 0; n_events < 20; n_events++) {
        struct bench *b = begin();
        ask_with(b, "GET", "/big", LINES("range: bytes=0-99999,300000-400000"));
        step(b);
        b->body->waiter = b->body;
        for (int i = 0; i < n_events && b->body->ops->remaining(b->body) > 0; i++) {
            struct nj_slice s;
            int r = b->body->ops->peek(b->body, 100000, &s);
            if (r > 0)
                b->body->ops->advance(b->body, (uint32_t)r);
            else if (i % 2)
                step(b);
        }
        close_body(b->body);
        while (step(b))
            ;
        end(b);
    }
    struct bench *b = begin();
    struct nj_body *bodies[EXCHANGES];
    b->prompt = true;
    for (int i = 0; i < EXCHANGES; i++) {
        get(b, "/x", LINES("range: bytes=0-0,-0,0-0"));
        cr_expect_eq(b->status, 200);
        close_body(b->body);
        get(b, "/xyz", LINES("range: bytes=0-0,2-2"));
        cr_expect_eq(b->status, 206);
        bodies[i] = b->body;
    }
    get(b, "/xyz", LINES("range: bytes=0-0,2-2"));
    cr_expect_eq(b->status, 503);
    close_body(b->body);
    for (int i = 0; i < EXCHANGES; i++)
        close_body(bodies[i]);
    end(b);
}
