/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditional requests: RFC 9110 8.8.3, 13.1 and 13.2.2 as tables. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "http/proto/preconditions.h"

#define MODIFIED 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define NOW      (MODIFIED + 1000)

#define OLDER "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME  "Sun, 06 Nov 1994 08:49:37 GMT"
#define NEWER "Sun, 06 Nov 1994 08:49:38 GMT"

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, s ? (uint32_t)strlen(s) : 0};
}

static struct nj_validators validators(const char *etag, bool has_date)
{
    struct nj_validators v = {.n_etag = (uint32_t)strlen(etag), .has_date = has_date};
    memcpy(v.etag, etag, v.n_etag);
    v.modified_s = MODIFIED;
    return v;
}

Test(http_preconditions, etag_of_an_object)
{
    static const struct {
        int64_t mtime_ns;
        uint64_t size;
        bool is_racy;
        const char *etag;
        int64_t modified_s;
    } rows[] = {
        {784111777123456789, 4096, false, "\"ae1b981c3a4d715-1000\"", 784111777},
        {784111777123456789, 4096, true, "W/\"ae1b981c3a4d715-1000\"", 784111777},
        {0, 0, false, "\"0-0\"", 0},
        {-1, UINT64_MAX, false, "\"ffffffffffffffff-ffffffffffffffff\"", -1},
        {-1000000000, 1, false, "\"ffffffffc4653600-1\"", -1},
        {-1000000001, 1, false, "\"ffffffffc46535ff-1\"", -2},
        {INT64_MAX, 16, true, "W/\"7fffffffffffffff-10\"", 9223372036},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_file_object o = {
            .mtime_ns = rows[i].mtime_ns, .size_bytes = rows[i].size, .is_racy = rows[i].is_racy};
        struct nj_validators v;
        nj_validators_of_object(&o, &v);
        cr_expect(v.n_etag == strlen(rows[i].etag) && !memcmp(v.etag, rows[i].etag, v.n_etag),
                  "%.*s, want %s", (int)v.n_etag, v.etag, rows[i].etag);
        cr_expect(v.has_date && v.modified_s == rows[i].modified_s, "%lld",
                  (long long)v.modified_s);
    }
    struct nj_file_object listing = {.mtime_ns = NJ_OBJECT_NO_TIME};
    struct nj_validators v;
    nj_validators_of_object(&listing, &v);
    cr_expect(v.n_etag == 0 && !v.has_date);
    nj_validators_add_coding(&v, NJ_STR("br"));
    cr_expect_eq(v.n_etag, 0);
}

/* The longest tag fits; RFC 9110 8.8.3.3: another coding, another tag. */
Test(http_preconditions, etag_of_a_coding)
{
    struct nj_file_object o = {.mtime_ns = -1, .size_bytes = UINT64_MAX, .is_racy = true};
    struct nj_validators v;
    nj_validators_of_object(&o, &v);
    nj_validators_add_coding(&v, NJ_STR("zstd"));
    cr_expect(v.n_etag <= NJ_ETAG_MAX);
    cr_expect_eq(memcmp(v.etag, "W/\"ffffffffffffffff-ffffffffffffffff-zstd\"", v.n_etag), 0);
}

#define SEND NJ_PRECOND_PASSED
#define NOT  NJ_PRECOND_NOT_MODIFIED
#define FAIL NJ_PRECOND_FAILED

struct row {
    const char *etag;
    bool has_no_date;
    const char *if_match, *if_unmodified, *if_none_match, *if_modified;
    enum nj_precond_result want;
};

static void check(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        struct nj_validators v = validators(r->etag, !r->has_no_date);
        struct nj_preconditions c = {
            .if_match = str(r->if_match),
            .if_unmodified_since = str(r->if_unmodified),
            .if_none_match = str(r->if_none_match),
            .if_modified_since = str(r->if_modified),
        };
        enum nj_precond_result got = nj_preconditions_eval(&c, &v, NOW);
        cr_expect_eq(got, r->want, "row %zu: %d", i, got);
    }
}

/* RFC 9110 8.8.3.2: the table of comparisons. If-Match compares strongly, If-None-Match weakly. */
Test(http_preconditions, comparison)
{
    static const struct row rows[] = {
        {.etag = "W/\"1\"", .if_match = "W/\"1\"", .want = FAIL},
        {.etag = "W/\"1\"", .if_match = "W/\"2\"", .want = FAIL},
        {.etag = "W/\"1\"", .if_match = "\"1\"", .want = FAIL},
        {.etag = "\"1\"", .if_match = "W/\"1\"", .want = FAIL},
        {.etag = "\"1\"", .if_match = "\"1\"", .want = SEND},
        {.etag = "W/\"1\"", .if_none_match = "W/\"1\"", .want = NOT},
        {.etag = "W/\"1\"", .if_none_match = "W/\"2\"", .want = SEND},
        {.etag = "W/\"1\"", .if_none_match = "\"1\"", .want = NOT},
        {.etag = "\"1\"", .if_none_match = "W/\"1\"", .want = NOT},
        {.etag = "\"1\"", .if_none_match = "\"1\"", .want = NOT},
    };
    check(rows, NJ_ARRAY_LEN(rows));
}

/* RFC 9110 13.1.1 and 13.1.2: lists, and malformed ones. */
Test(http_preconditions, lists)
{
    static const struct row rows[] = {
        {.etag = "\"xyzzy\"", .if_match = "\"xyzzy\"", .want = SEND},
        {.etag = "\"xyzzy\"", .if_match = "\"xyzzy\", \"r2d2xxxx\", \"c3piozzzz\"", .want = SEND},
        {.etag = "\"c3piozzzz\"",
         .if_match = "\"xyzzy\", \"r2d2xxxx\", \"c3piozzzz\"",
         .want = SEND},
        {.etag = "\"other\"", .if_match = "\"xyzzy\", \"r2d2xxxx\", \"c3piozzzz\"", .want = FAIL},
        {.etag = "\"a\"", .if_match = "*", .want = SEND},
        {.etag = "\"a\"", .if_match = " * ", .want = SEND},
        {.etag = "", .if_match = "*", .want = SEND},
        {.etag = "", .if_match = "\"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_match = "", .want = FAIL},
        {.etag = "\"a\"", .if_match = "\"b\",,, \t\"a\",", .want = SEND},
        {.etag = "\"a,b\"", .if_match = "\"x\", \"a,b\"", .want = SEND},
        {.etag = "\"a\"", .if_match = "\"x,\"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_match = "a", .want = FAIL},
        {.etag = "\"a\"", .if_match = "\"a", .want = FAIL},
        {.etag = "\"a\"", .if_match = "w/\"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_match = "\"b\" \"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_match = "\"b\", *", .want = FAIL},
        {.etag = "\"a\"", .if_match = "\"b c\", \"a\"", .want = FAIL},
        {.etag = "\"xyzzy\"", .if_none_match = "W/\"xyzzy\"", .want = NOT},
        {.etag = "\"xyzzy\"", .if_none_match = "\"xyzzy\", \"r2d2xxxx\"", .want = NOT},
        {.etag = "\"c\"", .if_none_match = "W/\"xyzzy\", W/\"r2d2xxxx\", W/\"c\"", .want = NOT},
        {.etag = "\"d\"", .if_none_match = "W/\"xyzzy\", W/\"r2d2xxxx\", W/\"c\"", .want = SEND},
        {.etag = "\"a\"", .if_none_match = "*", .want = NOT},
        {.etag = "", .if_none_match = "*", .want = NOT},
        {.etag = "", .if_none_match = "\"a\"", .want = SEND},
        {.etag = "", .if_none_match = "\"\"", .want = SEND},
        {.etag = "\"\"", .if_none_match = "\"\"", .want = NOT},
        {.etag = "\"a\"", .if_none_match = "a", .want = SEND},
    };
    check(rows, NJ_ARRAY_LEN(rows));
}

/* RFC 9110 13.1.3 and 13.1.4. */
Test(http_preconditions, dates)
{
    static const struct row rows[] = {
        {.etag = "\"a\"", .if_modified = OLDER, .want = SEND},
        {.etag = "\"a\"", .if_modified = SAME, .want = NOT},
        {.etag = "\"a\"", .if_modified = NEWER, .want = NOT},
        {.etag = "\"a\"", .if_modified = "Sunday, 06-Nov-94 08:49:37 GMT", .want = NOT},
        {.etag = "\"a\"", .if_modified = "Sun Nov  6 08:49:37 1994", .want = NOT},
        {.etag = "\"a\"", .if_modified = "yesterday", .want = SEND},
        {.etag = "\"a\"", .if_modified = SAME ", " SAME, .want = SEND},
        {.etag = "\"a\"", .if_modified = "", .want = SEND},
        {.etag = "\"a\"", .has_no_date = true, .if_modified = NEWER, .want = SEND},
        {.etag = "\"a\"", .if_unmodified = OLDER, .want = FAIL},
        {.etag = "\"a\"", .if_unmodified = SAME, .want = SEND},
        {.etag = "\"a\"", .if_unmodified = NEWER, .want = SEND},
        {.etag = "\"a\"", .if_unmodified = "never", .want = SEND},
        {.etag = "\"a\"", .has_no_date = true, .if_unmodified = OLDER, .want = SEND},
    };
    check(rows, NJ_ARRAY_LEN(rows));
}

/* RFC 9110 13.2.2 */
Test(http_preconditions, precedence)
{
    static const struct row rows[] = {
        /* 1 before 2: If-Match disables If-Unmodified-Since */
        {.etag = "\"a\"", .if_match = "\"a\"", .if_unmodified = OLDER, .want = SEND},
        {.etag = "\"a\"", .if_match = "\"b\"", .if_unmodified = NEWER, .want = FAIL},
        /* 1, 2 before 3, 4 */
        {.etag = "\"a\"", .if_match = "\"b\"", .if_none_match = "\"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_match = "\"a\"", .if_none_match = "\"a\"", .want = NOT},
        {.etag = "\"a\"", .if_match = "\"a\"", .if_modified = NEWER, .want = NOT},
        {.etag = "\"a\"", .if_unmodified = OLDER, .if_none_match = "\"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_unmodified = NEWER, .if_none_match = "\"a\"", .want = NOT},
        {.etag = "\"a\"", .if_unmodified = OLDER, .if_modified = NEWER, .want = FAIL},
        /* 3 before 4: If-None-Match disables If-Modified-Since */
        {.etag = "\"a\"", .if_none_match = "\"b\"", .if_modified = NEWER, .want = SEND},
        {.etag = "\"a\"", .if_none_match = "\"a\"", .if_modified = OLDER, .want = NOT},
        {.etag = "\"a\"", .if_none_match = "nonsense", .if_modified = NEWER, .want = SEND},
        /* none */
        {.etag = "\"a\"", .want = SEND},
    };
    check(rows, NJ_ARRAY_LEN(rows));
}

/* RFC 9110 8.8.2.1: a modification time in the future counts as now. */
Test(http_preconditions, future)
{
    struct nj_validators v = validators("\"a\"", true);
    struct nj_preconditions c = {.if_modified_since = NJ_STR(OLDER)};
    cr_expect_eq(nj_preconditions_eval(&c, &v, MODIFIED - 1), NJ_PRECOND_NOT_MODIFIED);
    cr_expect_eq(nj_preconditions_eval(&c, &v, MODIFIED), NJ_PRECOND_PASSED);
}

/* RFC 9110 13.1.5 */
Test(http_preconditions, if_range)
{
    static const struct {
        const char *etag, *value;
        int64_t now_s;
        bool has_no_date, want;
    } rows[] = {
        {"\"a\"", NULL, NOW, false, true},
        {"\"a\"", "\"a\"", NOW, false, true},
        {"\"a\"", " \"a\" ", NOW, false, true},
        {"\"a\"", "\"b\"", NOW, false, false},
        {"\"a\"", "W/\"a\"", NOW, false, false},
        {"W/\"a\"", "W/\"a\"", NOW, false, false},
        {"W/\"a\"", "\"a\"", NOW, false, false},
        {"\"a\"", "\"a\", \"a\"", NOW, false, false},
        {"\"a\"", "*", NOW, false, false},
        {"\"a\"", "", NOW, false, false},
        {"\"a\"", SAME, NOW, false, true},
        {"\"a\"", "Sun Nov  6 08:49:37 1994", NOW, false, true},
        {"\"a\"", "Wed, 09 Nov 1994 08:49:37 GMT", NOW, false, false},
        {"\"a\"", OLDER, NOW, false, false},
        {"\"a\"", NEWER, NOW, false, false},     /* it must be equal, not later */
        {"\"a\"", SAME, MODIFIED, false, false}, /* the same second: a weak validator */
        {"\"a\"", SAME, MODIFIED + 1, false, true},
        {"\"a\"", SAME, NOW, true, false},
        {"\"a\"", "nonsense", NOW, false, false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_validators v = validators(rows[i].etag, !rows[i].has_no_date);
        struct nj_preconditions c = {.if_range = str(rows[i].value)};
        cr_expect_eq(nj_if_range_holds(&c, &v, rows[i].now_s), rows[i].want, "%s", rows[i].value);
    }
}
