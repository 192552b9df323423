/* SPDX-License-Identifier: BSD-3-Clause */
/* The file server as an origin server: validators, ranges, codings, listings, error pages. */
#include "site_rig.h"

#include "http/files/file_server_internal.h"
#include "telem/counters.h"

#define BR   (1u << NJ_CODING_BR)
#define ZSTD (1u << NJ_CODING_ZSTD)
#define GZIP (1u << NJ_CODING_GZIP)

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
    cr_expect_not(has(b, "etag") || has(b, "last-modified"));
    close_body(b->body);
    b->racy = false;

    /* A modification time in the future is not known to be that of the last change. */
    b->mtime_ns = 784111778 * NJ_SEC;
    get(b, "/future", NULL);
    cr_expect(has(b, "etag"));
    cr_expect_not(has(b, "last-modified"));
    close_body(b->body);
    b->mtime_ns = NJ_SEC;
    get(b, "/package", NULL);
    cr_expect_eq(memcmp(field(b, "etag"), "W/", 2), 0);
    cr_expect_not(has(b, "last-modified"));
    close_body(b->body);
    end(b);
}

/* 304 and 412, from the cache and after a wait, when the request's strings are no longer valid. */
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
        {"GET", "if-none-match: \"x\"", "if-none-match: " ETAG_OF_8,
         304}, /* two lines form one list */
        {"GET", "if-none-match: \"x\"", "if-modified-since: " MODIFIED, 200},
        {"GET", "if-modified-since: " MODIFIED, NULL, 304},
        {"GET", "if-modified-since: " MODIFIED, "if-modified-since: " MODIFIED, 200},
        {"GET", "if-match: " ETAG_OF_8, NULL, 200},
        {"GET", "if-match: \"x\"", NULL, 412},
        {"HEAD", "if-match: \"x\"", NULL, 412},
        {"GET", "if-unmodified-since: " MODIFIED, NULL, 200},
        {"GET", "if-unmodified-since: Sat, 05 Nov 1994 01:46:39 GMT", NULL, 412},
        {"GET", "if-match: \"x\"", "range: bytes=0-0", 412}, /* preconditions before ranges */
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
            /* RFC 9110 15.4.5: these fields, and none about the content. */
            cr_expect(has(b, "etag") && has(b, "date"));
            cr_expect_not(b->body || has(b, "content-length") || has(b, "content-type") ||
                          has(b, "last-modified"));
        }
        close_body(b->body);
        end(b);
    }
}

/* Preconditions are ignored unless the response would be 200 (RFC 9110 13.2.1). */
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

/* The stored bytes of a request are bounded, also for joined lines: what does not fit is ignored,
 * and if-match is refused (RFC 9110 13.1.1, 13.1.2, 13.1.5, 14.2). */
Test(http_origin, fields_that_are_too_long)
{
    static const struct {
        const char *name, *other;
        uint16_t fits, too_long;
    } rows[] = {
        {"if-none-match", NULL, 200, 200},
        {"if-none-match", "if-modified-since: " MODIFIED, 200, 200},
        {"if-modified-since", NULL, 200, 200},
        {"if-unmodified-since", NULL, 200, 200},
        {"if-range", "range: bytes=1-2", 200, 200},
        {"range", "if-none-match: " ETAG_OF_8, 304, 304},
        {"accept", "if-none-match: " ETAG_OF_8, 304, 304},
        {"accept-encoding", "range: bytes=1-2", 206, 206},
        {"if-match", NULL, 412, 431},
        {"if-match", "if-none-match: " ETAG_OF_8, 412, 431},
    };
    static char line[2 * NJ__REQ_FIELDS_MAX];
    struct bench *b = begin();
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        size_t n = (size_t)sprintf(line, "%s: ", rows[i].name);
        memset(line + n, 'a', NJ__REQ_FIELDS_MAX);
        line[n + NJ__REQ_FIELDS_MAX - 2] = '\0';
        get(b, "/a/x.html", LINES(line, rows[i].other));
        cr_expect_eq(b->status, rows[i].fits, "%s: %u", rows[i].name, b->status);
        close_body(b->body);
        line[n + NJ__REQ_FIELDS_MAX - 2] = 'a';
        line[n + NJ__REQ_FIELDS_MAX - 1] = '\0';
        get(b, "/a/x.html", LINES(line, rows[i].other));
        cr_expect_eq(b->status, rows[i].too_long, "%s: %u", rows[i].name, b->status);
        close_body(b->body);
    }
    end(b);
}

/* What is ignored takes no room: each field beside a full one, of which one byte is left. */
Test(http_origin, many_fields_that_are_too_long)
{
    static char line[8][2 * NJ__REQ_FIELDS_MAX];
    static const char *const names[] = {
        "if-unmodified-since", "if-none-match", "if-modified-since", "if-range", "range",
        "accept-encoding",     "accept"};
    const char *lines[9] = {0};
    struct bench *b = begin();

    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        size_t n = (size_t)sprintf(line[i], "%s: ", names[i]);
        memset(line[i] + n, 'a', NJ__REQ_FIELDS_MAX - (i == 0 ? 3 : 0));
        lines[i] = line[i];
    }
    get(b, "/a/x.html", lines);
    cr_expect_eq(b->status, 200);
    close_body(b->body);
    end(b);
}

Test(http_origin, lines_that_are_too_long_together)
{
    static char tags[2][2000] = {"if-match: ", "if-none-match: "};
    const char *lines[17] = {0};
    struct bench *b = begin();

    for (int i = 0; i < 2; i++)
        memset(tags[i] + strlen(tags[i]), 'a', 1500);
    for (int i = 0; i < 12; i++)
        lines[i] = i == 5 ? "if-match: *" : tags[1];
    get(b, "/a/x.html", lines);
    cr_expect_eq(b->status, 200, "if-none-match is too long; %u", b->status);
    close_body(b->body);
    for (int i = 0; i < 12; i++)
        lines[i] = i == 5 ? "if-none-match: *" : tags[0];
    get(b, "/a/x.html", lines);
    cr_expect_eq(b->status, 431, "if-match is; %u", b->status);
    close_body(b->body);
    end(b);
}

/* RFC 9110 8.8.3.3, 12.5.3, 12.5.5 */
Test(http_origin, codings)
{
    static const struct {
        uint8_t siblings;
        const char *accept, *coding, *text, *etag;
    } rows[] = {
        {BR | GZIP, "accept-encoding: gzip, br", "br", "x.html.br", "\"6dd390b455b5dc9-9-br\""},
        {GZIP, "accept-encoding: gzip, br", "gzip", "x.html.gz", "\"6dd390b455b5dc9-9-gzip\""},
        {ZSTD, "accept-encoding: zstd", "zstd", "x.html.zst", "\"6bcbe716b2025357-a-zstd\""},
        {BR, "accept-encoding: gzip", "(none)", "x.html", "\"aaf5cde76696ed64-6\""},
        {BR, "x-nothing: 1", "(none)", "x.html", "\"aaf5cde76696ed64-6\""},
    };
    for (size_t i = 0; i < 4 * NJ_ARRAY_LEN(rows); i++) {
        struct bench *b = begin();
        size_t row = i / 4;
        b->siblings = rows[row].siblings;
        b->prompt = i & 1;
        if (i & 2) { /* the file is cached and its sibling is not; then both */
            get(b, "/x.html", NULL);
            close_body(b->body);
        }
        for (int again = 0; again < 2; again++) {
            get(b, "/x.html", LINES(rows[row].accept));
            cr_expect_eq(b->status, 200);
            cr_expect_str_eq(field(b, "content-encoding"), rows[row].coding);
            cr_expect_str_eq(field(b, "content-type"), "text/html");
            cr_expect_str_eq(field(b, "vary"), "accept-encoding");
            cr_expect_str_eq(field(b, "etag"), rows[row].etag);
            cr_expect_str_eq(text_of(b), rows[row].text);
        }
        /* Preconditions and ranges apply to the coded variant. */
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

static uint64_t stamp(struct bench *b, const char *method, const char *path, const char *line)
{
    ask_with(b, method, path, line ? LINES(line) : NULL);
    if (b->body)
        close_body(b->body);
    return b->stamp;
}

/* Only whole objects, from the second response within a second, have a stamp; other heads have no
 * stamp or a different one. (The rig checks that heads with equal stamps are equal.) */
Test(http_origin, stamps)
{
    static const char gzip[] = "accept-encoding: gzip";
    struct bench *b = begin();
    b->prompt = true;
    b->siblings = GZIP;
    stamp(b, "GET", "/x.html", NULL); /* and this one was not cached */
    cr_expect_eq(stamp(b, "GET", "/x.html", NULL), 0);
    uint64_t whole = stamp(b, "GET", "/x.html", NULL);
    cr_expect(whole != 0);
    cr_expect_eq(stamp(b, "HEAD", "/x.html", NULL), whole);
    cr_expect_eq(stamp(b, "GET", "/x.html", "if-none-match: *"), 0);
    cr_expect_eq(stamp(b, "GET", "/x.html", "range: bytes=0-1"), 0);
    cr_expect_eq(stamp(b, "GET", "/none", NULL), 0);
    for (int i = 0; i < 3; i++) {
        stamp(b, "GET", "/x.html", gzip);
        stamp(b, "GET", "/x.html.gz", NULL);
        stamp(b, "GET", "/y.html", NULL);
    }
    uint64_t coded = stamp(b, "GET", "/x.html", gzip);
    uint64_t by_name = stamp(b, "GET", "/x.html.gz", NULL),
             other = stamp(b, "GET", "/y.html", NULL);
    cr_expect(coded && by_name && other);
    cr_expect(coded != by_name && coded != whole && by_name != whole && other != whole);
    b->now += SEC / 2;
    cr_expect_eq(stamp(b, "GET", "/x.html", NULL), whole);
    b->now += SEC / 2; /* another date, and the entry has expired */
    for (int i = 0; i < 3; i++)
        cr_expect_neq(stamp(b, "GET", "/x.html", NULL), whole);
    b->now += SEC + SEC / 2;
    for (int i = 0; i < 3; i++)
        whole = stamp(b, "GET", "/x.html", NULL);
    b->now += SEC / 2; /* another date, and the entry is valid */
    cr_expect_eq(stamp(b, "GET", "/x.html", NULL), 0);
    cr_expect_neq(stamp(b, "GET", "/x.html", NULL), whole);
    end(b);
}

/* A sibling that is absent or not a file: continue without it, and still offer the others. */
Test(http_origin, siblings_that_are_none)
{
    for (int i = 0; i < 2; i++) {
        struct bench *b = begin();
        b->prompt = i;
        b->siblings = BR | GZIP;
        get(b, "/dir", NULL);
        close_body(b->body);
        get(b, "/none-br.html", NULL); /* "none" does not exist */
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

/* The shard knows a sibling that is of another version than the one that was made from the file. */
Test(http_origin, siblings_of_another_version)
{
    for (int i = 0; i < 2; i++) {
        struct bench *b = begin();
        b->prompt = i;
        b->siblings = BR | GZIP;
        b->other_siblings = true;
        get(b, "/x.html", LINES("accept-encoding: br, gzip"));
        cr_expect_eq(b->status, 200);
        cr_expect_str_eq(field(b, "content-encoding"), "(none)");
        cr_expect_str_eq(field(b, "vary"), "accept-encoding");
        cr_expect_str_eq(text_of(b), "x.html");
        end(b);
    }
}

/* The coding that a client has cannot be told from a date. */
Test(http_origin, dates_are_of_no_coding)
{
    static const struct {
        const char *line, *accept;
        uint16_t status;
    } rows[] = {
        {"if-range: " MODIFIED, "x-nothing: 1", 206},
        {"if-range: " MODIFIED, "accept-encoding: identity", 206},
        {"if-range: " MODIFIED, "accept-encoding: gzip;q=0", 206},
        {"if-range: " MODIFIED, "accept-encoding: gzip", 200},
        {"if-unmodified-since: " MODIFIED, "x-nothing: 1", 206},
        {"if-unmodified-since: " MODIFIED, "accept-encoding: br", 200},
        {"if-range: " ETAG_OF_8, "accept-encoding: br", 206},
        {"if-match: " ETAG_OF_8, "accept-encoding: br", 206},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct bench *b = begin();
        get(b, "/a/x.html", LINES(rows[i].line, rows[i].accept, "range: bytes=2-4"));
        cr_expect_eq(b->status, rows[i].status, "%s, %s: %u", rows[i].line, rows[i].accept,
                     b->status);
        close_body(b->body);
        end(b);
    }
}

Test(http_origin, which_files_have_siblings)
{
    struct nj_file_server_options options = {.no_precompressed = true};
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

/* The longest name leaves no room for a suffix. */
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

/* Sentences 252, 291. */
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
    struct nj_file_server_options options = {.index = "start.htm", .cache_control = "max-age=60"};
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
        struct nj_file_server_options options = {
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

/* Error pages: status, required fields, and no endless recursion. */
Test(http_origin, error_pages)
{
    static const struct {
        const char *method, *path, *line;
        enum nj_file_result failure;
        uint16_t status;
        const char *name, *value, *text;
    } rows[] = {
        {"GET", "/none", "x: y", 0, 404, "content-type", "text/html", "page404.html"},
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
    struct nj_file_server_options options = {
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

/* Cancelled, refused and out of memory at each step of a long chain: file, sibling, listing, error
 * page. */
Test(http_origin, a_long_way_is_left_anywhere)
{
    struct nj_file_server_options options = {
        .listing = true, .n_error_pages = 1, .error_page = {{404, "page404.html"}}};
    static const char *const paths[] = {"/none/", "/x.html", "/none", "/nodex/"};
    for (int i = 0; i < 4 * 4 * 2; i++) {
        struct bench *b = begin_with(&options);
        struct nj_txn *x, *y;
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
            x->on_end(x);
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
    struct nj_mime_table *mime = nj_mime_table_parse("a/b html\n", 9, &line, &why);
    struct nj_file_server_options options = {.mime.own = mime};
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

Test(http_origin, default_type_and_charset)
{
    struct nj_file_server_options options = {.mime = {.default_type = "text/x", .is_utf8 = true}};
    struct bench *b = begin_with(&options);
    get(b, "/README", NULL);
    cr_expect_str_eq(field(b, "content-type"), "text/x");
    close_body(b->body);
    get(b, "/x.html", NULL);
    cr_expect_str_eq(field(b, "content-type"), "text/html; charset=utf-8");
    close_body(b->body);
    end(b);
}

/* RFC 9110 8.4: the bytes of the file are compressed; and no coding is looked for. */
Test(http_origin, svgz)
{
    struct bench *b = begin();
    b->siblings = BR;
    for (int i = 0; i < 4; i++) {
        get(b, "/x.SVGZ", i % 2 ? LINES("accept-encoding: br", "range: bytes=0-1") : NULL);
        cr_expect_eq(b->status, i % 2 ? 206 : 200);
        cr_expect_str_eq(field(b, "content-type"), "image/svg+xml");
        cr_expect_str_eq(field(b, "content-encoding"), "gzip");
        cr_expect(!b->asked_siblings && !has(b, "vary"));
        close_body(b->body);
    }
    get(b, "/x.svgz", LINES("if-none-match: *"));
    cr_expect(b->status == 304 && !has(b, "content-encoding"));
    get(b, "/svgz", NULL);
    cr_expect_not(has(b, "content-encoding"));
    close_body(b->body);
    end(b);

    uint32_t line;
    const char *why;
    struct nj_mime_table *own = nj_mime_table_parse("application/gzip svgz\n", 22, &line, &why);
    struct nj_file_server_options options = {.mime.own = own};
    b = begin_with(&options);
    get(b, "/x.svgz", NULL);
    cr_expect_str_eq(field(b, "content-type"), "application/gzip");
    cr_expect_not(has(b, "content-encoding"));
    close_body(b->body);
    end(b);
    nj_mime_table_free(own);
}

/* Names with a dot that are served, and those that an operator chose. */
Test(http_origin, dotfiles)
{
    static const char *const paths[] = {"/.treeinfo", "/a/.discinfo", "/.well-known/x", "/.git/x",
                                        "/a/.treeinfo.orig"};
    static const struct {
        const char *names;
        uint16_t status[NJ_ARRAY_LEN(paths)];
    } rows[] = {
        {NULL, {200, 200, 200, 404, 404}},
        {"none", {404, 404, 404, 404, 404}},
        {" .git , .treeinfo.orig", {404, 404, 404, 200, 200}},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_dotfiles names;
        struct nj_file_server_options options = {0};
        if (rows[i].names) {
            cr_assert(nj_dotfiles_parse(rows[i].names, &names));
            options.dotfiles = &names;
        }
        struct bench *b = begin_with(&options);
        for (size_t k = 0; k < 2 * NJ_ARRAY_LEN(paths); k++) {
            get(b, paths[k / 2], NULL);
            cr_expect_eq(b->status, rows[i].status[k / 2], "%s %s: %u", rows[i].names, paths[k / 2],
                         b->status);
            close_body(b->body);
        }
        end(b);
    }
}

/* RFC 9110 10.2.3: another process has the file; later it can be read. */
Test(http_origin, leased)
{
    struct bench *b = begin();
    b->failure = NJ_FILE_LEASED;
    get(b, "/x", NULL);
    cr_expect_eq(b->status, 503);
    cr_expect_str_eq(field(b, "retry-after"), "1");
    close_body(b->body);
    end(b);
}
