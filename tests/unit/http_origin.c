/* SPDX-License-Identifier: BSD-3-Clause */
/* A site as an origin server: validators, ranges, codings, lists, error pages. */
#include "site_rig.h"

#define BR   (1u << NJ_CODING_BR)
#define ZSTD (1u << NJ_CODING_ZSTD)
#define GZIP (1u << NJ_CODING_GZIP)

#define MODIFIED  "Sat, 05 Nov 1994 01:46:40 GMT"
#define ETAG_OF_8 "\"ae153d89fe80000-8\"" /* of "/a/x.html" */

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool has(struct bench *b, const char *name)
{
    return strcmp(field(b, name), "(none)") != 0;
}

/* All of a body as text, jobs completed as it waits. */
static const char *text_of(struct bench *b)
{
    static char text[1u << 16];
    struct nj_slice s;
    uint32_t n = 0;
    int r;

    if (!b->body)
        return "";
    b->body->waiter = b->body;
    uint64_t size = b->body->ops->remaining(b->body);
    while (b->body->ops->remaining(b->body) > 0) {
        r = b->body->ops->peek(b->body, 777, &s);
        cr_assert_geq(r, 0);
        if (r == 0) {
            cr_assert(step(b), "the body waits and no job is out");
            continue;
        }
        cr_assert_lt(n + s.n_bytes, sizeof text);
        memcpy(text + n, s.data, s.n_bytes);
        b->body->ops->advance(b->body, s.n_bytes);
        n += s.n_bytes;
    }
    cr_assert_eq(n, size);
    text[n] = '\0';
    close_body(b->body);
    b->body = NULL;
    return text;
}

static void get(struct bench *b, const char *path, const char *const *lines)
{
    ask_with(b, "GET", path, lines);
    while (step(b))
        ;
}

Test(http_origin, validators)
{
    struct bench *b = begin();
    get(b, "/a/x.html", NULL);
    cr_expect_eq(b->status, 200);
    cr_expect_str_eq(field(b, "etag"), ETAG_OF_8);
    cr_expect_str_eq(field(b, "last-modified"), MODIFIED);
    cr_expect_str_eq(field(b, "accept-ranges"), "bytes");
    cr_expect_not(has(b, "vary") || has(b, "cache-control") || has(b, "content-encoding"));
    close_body(b->body);
    b->racy = true;
    get(b, "/a/y.html", NULL);
    cr_expect_str_eq(field(b, "etag"), "W/" ETAG_OF_8);
    close_body(b->body);

    /* A change that is still to come is one of now (RFC 9110 8.8.2.1). */
    b->mtime_ns = 784111778 * NJ_SEC;
    get(b, "/future", NULL);
    cr_expect_str_eq(field(b, "last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    close_body(b->body);
    end(b);
}

/* 304 and 412, from the table and after a wait, when the request's strings are gone. */
Test(http_origin, conditions)
{
    static const struct {
        const char *method, *line, *line2;
        uint16_t status;
    } rows[] = {
        {"GET", "if-none-match: " ETAG_OF_8, NULL, 304},
        {"HEAD", "if-none-match: " ETAG_OF_8, NULL, 304},
        {"GET", "if-none-match: W/" ETAG_OF_8, NULL, 304},
        {"GET", "if-none-match: *", NULL, 304},
        {"GET", "if-none-match: \"x\"", "if-none-match: " ETAG_OF_8, 304}, /* two lines, one list */
        {"GET", "if-none-match: \"x\"", "if-modified-since: " MODIFIED, 200},
        {"GET", "if-modified-since: " MODIFIED, NULL, 304},
        {"GET", "if-modified-since: " MODIFIED, "if-modified-since: " MODIFIED, 200},
        {"GET", "if-match: " ETAG_OF_8, NULL, 200},
        {"GET", "if-match: \"x\"", NULL, 412},
        {"HEAD", "if-match: \"x\"", NULL, 412},
        {"GET", "if-unmodified-since: " MODIFIED, NULL, 200},
        {"GET", "if-unmodified-since: Sat, 05 Nov 1994 01:46:39 GMT", NULL, 412},
        {"GET", "if-match: \"x\"", "range: bytes=0-0", 412}, /* conditions before ranges */
        {"GET", "if-none-match: *", "range: bytes=100-", 304},
        {"POST", "if-none-match: *", NULL, 405},
        {"OPTIONS", "if-match: \"x\"", NULL, 204}, /* RFC 9110 13.2.1 */
    };
    for (size_t i = 0; i < 2 * NJ_ARRAY_LEN(rows); i++) {
        struct bench *b = begin();
        char line[256];
        size_t row = i / 2;
        if (i % 2)
            get(b, "/a/x.html", NULL);
        if (i % 2)
            close_body(b->body);
        strcpy(line, rows[row].line);
        ask_with(b, rows[row].method, "/a/x.html", LINES(line, rows[row].line2));
        memset(line, 'X', sizeof line);
        step(b);
        cr_expect_eq(b->status, rows[row].status, "%s: %u", rows[row].line, b->status);
        if (b->status == 304) {
            /* RFC 9110 15.4.5: these, and nothing about the content. */
            cr_expect(has(b, "etag") && has(b, "date"));
            cr_expect_not(b->body || has(b, "content-length") || has(b, "content-type") ||
                          has(b, "last-modified"));
        }
        close_body(b->body);
        end(b);
    }
}

/* What would not be 200 is not looked at (RFC 9110 13.2.1). */
Test(http_origin, conditions_of_what_is_not_there)
{
    struct bench *b = begin();
    get(b, "/none", LINES("if-match: *"));
    cr_expect_eq(b->status, 404);
    close_body(b->body);
    get(b, "/dir", LINES("if-none-match: *"));
    cr_expect_eq(b->status, 301);
    close_body(b->body);
    end(b);
}

/* All that is kept of a request has a bound, and no lines can be joined beyond it. */
Test(http_origin, too_many_conditions)
{
    static char line[5000] = "if-none-match: ";
    const char *lines[17] = {0};
    struct bench *b = begin();
    size_t n = strlen(line);
    memset(line + n, 'a', 4094);
    get(b, "/a/x.html", LINES(line));
    cr_expect_eq(b->status, 200);
    close_body(b->body);
    strcpy(line + n + 4094, "a");
    get(b, "/a/x.html", LINES(line));
    cr_expect_eq(b->status, 431);
    close_body(b->body);
    memset(line + n, 'a', 600);
    line[n + 600] = '\0';
    for (int i = 0; i < 16; i++)
        lines[i] = i % 2 ? line : "if-match: \"a\"";
    get(b, "/a/x.html", lines);
    cr_expect_eq(b->status, 431);
    close_body(b->body);
    end(b);
}

Test(http_origin, one_range)
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
    /* A weak validator does no harm where none is asked for. */
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

Test(http_origin, several_ranges)
{
    struct bench *b = begin();
    char boundary[64], want[1024], length[24];
    get(b, "/a/x.html", LINES("range: bytes=7-7, 0-1"));
    cr_expect_eq(b->status, 206);
    cr_expect_not(has(b, "content-range"), "RFC 9110 15.3.7.2");
    cr_assert_eq(sscanf(field(b, "content-type"), "multipart/byteranges; boundary=%63s", boundary),
                 1);
    snprintf(want, sizeof want,
             "--%s\r\ncontent-type: text/html; charset=utf-8\r\ncontent-range: bytes 7-7/8\r\n\r\nl"
             "\r\n--%s\r\ncontent-type: text/html; charset=utf-8\r\n"
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

/* A range of a large object, chunk by chunk: nothing outside of it is read. */
Test(http_origin, range_of_chunks)
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

/* Several ranges of a large object, taken in odd pieces, with rests; each is where it belongs. */
Test(http_origin, parts_of_chunks)
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
            if (memcmp(last4, "\r\n\r\n", 4) == 0 && part < 3) { /* the next bytes are of a range */
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

/* The file changes while a range of it is sent: an error, no wrong bytes, in parts, too. */
Test(http_origin, range_of_a_file_that_changes)
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

/* Close parts after each number of events; run out of them. */
Test(http_origin, parts_are_closed_and_bounded)
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

/* RFC 9110 8.8.3.3, 12.5.3, 12.5.5 */
Test(http_origin, codings)
{
    static const struct {
        uint8_t siblings;
        const char *accept, *coding, *text, *etag;
    } rows[] = {
        {BR | GZIP, "accept-encoding: gzip, br", "br", "x.html.br", "\"ae153d89fe80000-9-br\""},
        {GZIP, "accept-encoding: gzip, br", "gzip", "x.html.gz", "\"ae153d89fe80000-9-gzip\""},
        {ZSTD, "accept-encoding: zstd", "zstd", "x.html.zst", "\"ae153d89fe80000-a-zstd\""},
        {BR, "accept-encoding: gzip", "(none)", "x.html", "\"ae153d89fe80000-6\""},
        {BR, "x-nothing: 1", "(none)", "x.html", "\"ae153d89fe80000-6\""},
    };
    for (size_t i = 0; i < 4 * NJ_ARRAY_LEN(rows); i++) {
        struct bench *b = begin();
        size_t row = i / 4;
        b->siblings = rows[row].siblings;
        b->prompt = i & 1;
        if (i & 2) { /* known already, and its sibling not; then both */
            get(b, "/x.html", NULL);
            close_body(b->body);
        }
        for (int again = 0; again < 2; again++) {
            get(b, "/x.html", LINES(rows[row].accept));
            cr_expect_eq(b->status, 200);
            cr_expect_str_eq(field(b, "content-encoding"), rows[row].coding);
            cr_expect_str_eq(field(b, "content-type"), "text/html; charset=utf-8");
            cr_expect_str_eq(field(b, "vary"), "accept-encoding");
            cr_expect_str_eq(field(b, "etag"), rows[row].etag);
            cr_expect_str_eq(text_of(b), rows[row].text);
        }
        /* Conditions and ranges are those of the variant. */
        char line[128];
        snprintf(line, sizeof line, "if-none-match: %s", rows[row].etag);
        get(b, "/x.html", LINES(rows[row].accept, line));
        cr_expect_eq(b->status, 304);
        cr_expect_str_eq(field(b, "vary"), "accept-encoding", "RFC 9110 15.4.5");
        get(b, "/x.html", LINES(rows[row].accept, "range: bytes=5-"));
        cr_expect_eq(b->status, 206);
        cr_expect_str_eq(text_of(b), rows[row].text + 5);
        end(b);
    }
}

/* A sibling that is gone, or no file: without it, and the others are not forgotten. */
Test(http_origin, siblings_that_are_none)
{
    for (int i = 0; i < 2; i++) {
        struct bench *b = begin();
        b->prompt = i;
        b->siblings = BR | GZIP;
        get(b, "/dir", NULL);
        close_body(b->body);
        get(b, "/none-br.html", NULL); /* "none" is what the port does not have */
        cr_expect_eq(b->status, 404);
        close_body(b->body);
        b->no_siblings = true;
        get(b, "/x.html", LINES("accept-encoding: br, gzip"));
        cr_expect_eq(b->status, 200);
        cr_expect_str_eq(field(b, "content-encoding"), "(none)");
        cr_expect_str_eq(text_of(b), "x.html");
        end(b);
    }
}

Test(http_origin, which_files_have_siblings)
{
    struct nj_site_options options = {.no_precompressed = true};
    struct bench *b = begin();
    get(b, "/x.html", NULL);
    cr_expect(b->asked_siblings);
    close_body(b->body);
    b->siblings = BR;
    get(b, "/x.tar.gz", LINES("accept-encoding: br"));
    cr_expect_not(b->asked_siblings);
    cr_expect_not(has(b, "vary") || has(b, "content-encoding"));
    cr_expect_str_eq(field(b, "content-type"), "application/gzip");
    close_body(b->body);
    end(b);

    b = begin_with(&options);
    b->siblings = BR;
    get(b, "/x.html", LINES("accept-encoding: br"));
    cr_expect_not(b->asked_siblings);
    cr_expect_not(has(b, "vary") || has(b, "content-encoding"));
    close_body(b->body);
    end(b);
}

/* The longest name has no room for a suffix. */
Test(http_origin, long_name_has_no_siblings)
{
    static char path[NJ_PATH_MAX + 1];
    struct bench *b = begin();
    b->siblings = BR;
    for (size_t n = NJ_PATH_MAX - 5; n < NJ_PATH_MAX; n++) {
        memset(path, 'a', n);
        path[0] = '/';
        path[n] = '\0';
        get(b, path, LINES("accept-encoding: br"));
        cr_expect_eq(b->status, 200);
        cr_expect_eq(has(b, "content-encoding"), n - 1 + 3 < NJ_PATH_MAX, "%zu", n);
        close_body(b->body);
    }
    end(b);
}

Test(http_origin, options)
{
    static const char *const paths[] = {"*", "/", "/x", "/none", "/.git", "/dir"};
    struct bench *b = begin();
    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        cr_expect_null(ask(b, "OPTIONS", paths[i]));
        cr_expect(b->status == 204 && !b->body);
        cr_expect_str_eq(field(b, "allow"), "GET, HEAD, OPTIONS");
        cr_expect_not(has(b, "content-length"), "RFC 9110 8.6");
    }
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_opens), 0);
    end(b);
}

Test(http_origin, index_and_cache_control)
{
    struct nj_site_options options = {.index = "start.htm", .cache_control = "max-age=60"};
    struct bench *b = begin_with(&options);
    get(b, "/d/", NULL);
    cr_expect_str_eq(field(b, "cache-control"), "max-age=60");
    cr_expect_str_eq(text_of(b), "d/start.htm");
    get(b, "/d/", LINES("if-none-match: *"));
    cr_expect_eq(b->status, 304);
    cr_expect_str_eq(field(b, "cache-control"), "max-age=60");
    get(b, "/d/", LINES("range: bytes=0-0"));
    cr_expect_eq(b->status, 206);
    cr_expect_str_eq(field(b, "cache-control"), "max-age=60");
    close_body(b->body);
    get(b, "/none", NULL);
    cr_expect(b->status == 404 && !has(b, "cache-control"));
    close_body(b->body);
    end(b);
}

Test(http_origin, list)
{
    static const struct {
        const char *path, *accept, *text, *type;
    } rows[] = {
        {"/none/", "x: y", "404 Not Found\n", "text/plain; charset=utf-8"},
        {"/nodex/", "x: y", "html of nodex", "text/html; charset=utf-8"},
        {"/nodex/", "accept: application/json", "json of nodex", "application/json"},
        {"/nodex/", "accept: text/html", "html of nodex", "text/html; charset=utf-8"},
        {"//nodex/a//", "x: y", "html of nodex/a", "text/html; charset=utf-8"},
        {"/", "accept: application/json", "json of ", "application/json"},
        {"/", "x: y", "html of ", "text/html; charset=utf-8"},
    };
    for (size_t i = 0; i < 2 * NJ_ARRAY_LEN(rows); i++) {
        struct nj_site_options options = {
            .listing = true, .cache_control = "max-age=60", .index = "none.html"};
        struct bench *b = begin_with(&options);
        size_t row = i / 2;
        b->no_index = true;
        b->prompt = i % 2;
        for (int again = 0; again < 2; again++) {
            get(b, rows[row].path, LINES(rows[row].accept));
            cr_expect_str_eq(field(b, "content-type"), rows[row].type);
            if (b->status == 200) {
                cr_expect_str_eq(field(b, "vary"), "accept");
                cr_expect_not(has(b, "etag") || has(b, "last-modified") ||
                              has(b, "accept-ranges") || has(b, "cache-control"));
            }
            cr_expect_str_eq(text_of(b), rows[row].text, "%s", rows[row].path);
        }
        cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_opens), 2, "the list is kept, too");
        get(b, rows[row].path, LINES("range: bytes=0-0"));
        cr_expect(b->status == 200 || b->status == 404);
        close_body(b->body);
        end(b);
    }
}

Test(http_origin, no_list_unless_told)
{
    struct bench *b = begin();
    b->no_index = true;
    get(b, "/nodex/", NULL);
    cr_expect_eq(b->status, 404);
    close_body(b->body);
    end(b);
}

/* Pages of the site go with failures: status, what belongs to it, and no end of it in a circle. */
Test(http_origin, error_pages)
{
    static const struct {
        const char *method, *path, *line;
        enum nj_file_result failure;
        uint16_t status;
        const char *name, *value, *text;
    } rows[] = {
        {"GET", "/none", "x: y", 0, 404, "content-type", "text/html; charset=utf-8",
         "page404.html"},
        {"GET", "/.git", "x: y", 0, 404, "content-length", "12", "page404.html"},
        {"HEAD", "/none", "x: y", 0, 404, "content-length", "12", ""},
        {"POST", "/x", "x: y", 0, 405, "allow", "GET, HEAD, OPTIONS", "page405.txt"},
        {"GET", "/x", "x: y", NJ_FILE_NO_MEMORY, 503, "retry-after", "1", "page503"},
        {"GET", "/x", "range: bytes=5-", 0, 416, "content-range", "bytes */1", "page416"},
        {"GET", "/x", "if-match: \"x\"", 0, 412, "content-length", "7", "page412"},
        {"GET", "/..", "if-none-match: *", 0, 400, "content-length", "16", "400 Bad Request\n"},
        {"GET", "/x", "range: bytes=0-0", NJ_FILE_DENIED, 403, "content-length", "14",
         "403 Forbidden\n"},
        {"GET", "/none", "range: bytes=0-0", 0, 404, "content-length", "12", "page404.html"},
        {"GET", "/none", "if-none-match: *", 0, 404, "content-length", "12", "page404.html"},
    };
    struct nj_site_options options = {
        .n_error_pages = 7,
        .error_page =
            {
                {404, "page404.html"},
                {405, "page405.txt"},
                {503, "page503"},
                {416, "page416"},
                {412, "page412"},
                {400, "none400.html"},
                {403, "dir"},
            },
    };
    for (size_t i = 0; i < 2 * NJ_ARRAY_LEN(rows); i++) {
        struct bench *b = begin_with(&options);
        size_t row = i / 2;
        b->prompt = i % 2;
        b->failure = rows[row].failure;
        for (int again = 0; again < 2; again++) {
            ask_with(b, rows[row].method, rows[row].path, LINES(rows[row].line));
            while (step(b))
                ;
            cr_expect_eq(b->status, rows[row].status, "%s: %u", rows[row].path, b->status);
            cr_expect_str_eq(field(b, rows[row].name), rows[row].value, "%s", rows[row].path);
            cr_expect_not(has(b, "etag") || has(b, "last-modified") || has(b, "accept-ranges"));
            cr_expect_str_eq(text_of(b), rows[row].text, "%s", rows[row].path);
        }
        cr_expect_eq(b->n_replies, 2);
        end(b);
    }
}

/* Cancelled, refused and out of room at each step of a long way: file, sibling, list, page. */
Test(http_origin, a_long_way_is_left_anywhere)
{
    struct nj_site_options options = {
        .listing = true, .n_error_pages = 1, .error_page = {{404, "page404.html"}}};
    static const char *const paths[] = {"/none/", "/x.html", "/none", "/nodex/"};
    for (int i = 0; i < 4 * 4 * 2; i++) {
        struct bench *b = begin_with(&options);
        struct nj_site_wait *x, *y;
        int n_steps = i / 4 % 4;
        b->siblings = BR | GZIP;
        b->no_siblings = true;
        b->no_index = true;
        x = ask_with(b, "GET", paths[i % 4], LINES("accept-encoding: br, gzip"));
        y = ask_with(b, "GET", paths[i % 4], LINES("accept-encoding: br, gzip"));
        cr_assert(x && y);
        for (int n = 0; n < n_steps && b->n_replies == 0; n++)
            step(b);
        if (b->n_replies == 0) {
            nj_site_cancel(x);
            if (i / 16)
                b->room = 0; /* the next job is refused */
        }
        while (step(b))
            ;
        cr_expect(b->n_replies == 1 || b->n_replies == 2);
        for (uint32_t n = 0; n < b->n_replies; n++)
            close_body(b->bodies[n]);
        end(b);
    }
}

Test(http_origin, media_types_of_a_file)
{
    uint32_t line;
    const char *why;
    struct nj_mime_table *mime = nj_mime_table_read("a/b html\n", 9, &line, &why);
    struct nj_site_options options = {.mime = mime};
    struct bench *b = begin_with(&options);
    get(b, "/x.html", NULL);
    cr_expect_str_eq(field(b, "content-type"), "a/b");
    close_body(b->body);
    b->siblings = BR;
    get(b, "/y.html", LINES("accept-encoding: br"));
    cr_expect_str_eq(field(b, "content-type"), "a/b");
    close_body(b->body);
    end(b);
    nj_mime_table_free(mime);
}
