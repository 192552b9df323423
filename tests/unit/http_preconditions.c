/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditional requests: RFC 9110 8.8.3, 13.1 and 13.2.2 as tables. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "http/proto/preconditions.h"

#define MODIFIED 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define NOW      (MODIFIED + 1000)

#define OLDER     "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME      "Sun, 06 Nov 1994 08:49:37 GMT"
#define NEWER     "Sun, 06 Nov 1994 08:49:38 GMT"
/* Until SETTLED_S after the change a shard may send a former version. */
#define UNSETTLED "Sun, 06 Nov 1994 08:49:39 GMT"
#define SETTLED   "Sun, 06 Nov 1994 08:49:40 GMT"

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, s ? (uint32_t)strlen(s) : 0};
}

static struct nj_validators validators(const char *etag, bool has_date)
{
    struct nj_validators v = {.n_etag = (uint32_t)strlen(etag), .has_date = has_date};
    memcpy(v.etag, etag, v.n_etag);
    v.modified_s = v.changed_s = MODIFIED;
    v.is_date_sent = has_date;
    return v;
}

#define MODIFIED_NS (MODIFIED * INT64_C(1000000000))
#define A_DAY_NS    (86400 * INT64_C(1000000000))

static struct nj_validators of_version(struct nj_file_version version)
{
    struct nj_file_object o = {.version = version};
    struct nj_validators v;

    nj_validators_of_object(&o, MODIFIED_NS + A_DAY_NS, &v);
    return v;
}

/* A version has one tag, and each of its numbers changes it, but for the device's. */
Test(http_preconditions, etag_of_a_version)
{
    static const int64_t t = MODIFIED_NS + 123456789;
    static const struct {
        struct nj_file_version version;
        const char *etag;
    } rows[] = {
        {{1, 2, 4096, t, t}, "\"be034ef631144f21-1000\""},
        {{1, 2, 4096, t, t + 1}, "\"177f9b553194eda6-1000\""},
        {{9, 2, 4096, t, t}, "\"be034ef631144f21-1000\""},
        {{1, 3, 4096, t, t}, "\"cb58e2ff12897d16-1000\""},
        {{1, 2, 4096, -1, t}, "\"5b3c747b265a4052-1000\""},
        {{1, 2, 4096, 2000000000, t}, "\"bcb845938027a9a4-1000\""},
        /* The times of a package (Nix, OSTree). */
        {{1, 2, 4096, 0, t}, "W/\"f9d8afa02738599f-1000\""},
        {{1, 2, 4096, 1999999999, t}, "W/\"512f5fea4ee807b-1000\""},
        /* Times that int64_t can't hold. */
        {{1, 2, 4096, NJ_FILE_TIME_MIN, t}, ""},
        {{1, 2, 4096, NJ_FILE_TIME_MAX, t}, ""},
        {{1, 2, 4096, t, NJ_FILE_TIME_MAX}, ""},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_validators v = of_version(rows[i].version);
        cr_expect(v.n_etag == strlen(rows[i].etag) && !memcmp(v.etag, rows[i].etag, v.n_etag),
                  "%.*s, want %s", (int)v.n_etag, v.etag, rows[i].etag);
        cr_expect_eq(v.has_date, *rows[i].etag == '"', "row %zu", i);
    }
}

/* Without validators: a listing, and a file that may change without a change of its times. */
Test(http_preconditions, no_validators)
{
    struct nj_file_object racy = {.version = {1, 2, 3, MODIFIED_NS, MODIFIED_NS}, .is_racy = true};
    struct nj_validators v;

    nj_validators_of_object(&racy, MODIFIED_NS + A_DAY_NS, &v);
    cr_expect(v.n_etag == 0 && !v.has_date && !v.is_date_sent);
    v = of_version(NJ_FILE_NO_VERSION);
    cr_expect(v.n_etag == 0 && !v.has_date && !v.is_date_sent);
    nj_validators_add_coding(&v, NJ_STR("br"));
    cr_expect_eq(v.n_etag, 0);
}

/* The longest tag fits; RFC 9110 8.8.3.3: another coding, another tag. */
Test(http_preconditions, etag_of_a_coding)
{
    struct nj_validators v = of_version(
        (struct nj_file_version){.size_bytes = UINT64_MAX, .mtime_ns = 1, .ctime_ns = MODIFIED_NS});
    uint32_t n = v.n_etag;

    nj_validators_add_coding(&v, NJ_STR("zstd"));
    cr_expect(v.n_etag == n + 5 && v.n_etag <= NJ_ETAG_MAX);
    cr_expect_eq(memcmp(v.etag, "W/\"", 3), 0);
    cr_expect_eq(memcmp(v.etag + n - 18, "-ffffffffffffffff-zstd\"", 23), 0);
}

/* A date is sent when the last change is settled: that of the contents, or of the times. */
Test(http_preconditions, date_of_a_version)
{
    static const struct {
        int64_t mtime_ns, ctime_ns;
        int64_t modified_s, changed_s;
        int64_t sent_at_s; /* the first second in which an OPEN leads to a date */
    } rows[] = {
        {MODIFIED_NS, MODIFIED_NS, MODIFIED, MODIFIED, MODIFIED + 3},
        {MODIFIED_NS + 999999999, MODIFIED_NS + 999999999, MODIFIED, MODIFIED, MODIFIED + 3},
        {-1, MODIFIED_NS, -1, MODIFIED, MODIFIED + 3},
        {-1000000001, MODIFIED_NS, -2, MODIFIED, MODIFIED + 3},
        {MODIFIED_NS + A_DAY_NS, MODIFIED_NS, MODIFIED + 86400, MODIFIED + 86400, MODIFIED + 86403},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_file_object o = {
            .version = {.mtime_ns = rows[i].mtime_ns, .ctime_ns = rows[i].ctime_ns}};
        struct nj_validators v;
        int64_t at_ns = rows[i].sent_at_s * INT64_C(1000000000);
        nj_validators_of_object(&o, at_ns - 1, &v);
        cr_expect(v.has_date && !v.is_date_sent, "row %zu", i);
        nj_validators_of_object(&o, at_ns, &v);
        cr_expect(v.has_date && v.is_date_sent, "row %zu", i);
        cr_expect_eq(v.modified_s, rows[i].modified_s);
        cr_expect_eq(v.changed_s, rows[i].changed_s);
    }
}

#define SEND NJ_PRECOND_PASSED
#define NOT  NJ_PRECOND_NOT_MODIFIED
#define FAIL NJ_PRECOND_FAILED

/* With a Range field: does it apply? */
static bool gets_range(struct nj_preconditions c, const struct nj_validators *v,
                       bool accepts_codings)
{
    c.range = NJ_STR("bytes=0-9");
    return nj_preconditions_eval(&c, v, NOW, accepts_codings) == NJ_PRECOND_RANGE;
}

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
        enum nj_precond_result got = nj_preconditions_eval(&c, &v, NOW, false);
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
        {.etag = "\"a\"", .if_modified = NEWER, .want = SEND},
        {.etag = "\"a\"", .if_modified = UNSETTLED, .want = SEND},
        {.etag = "\"a\"", .if_modified = SETTLED, .want = NOT},
        {.etag = "\"a\"", .if_modified = "Sunday, 06-Nov-94 08:49:37 GMT", .want = NOT},
        {.etag = "\"a\"", .if_modified = "Sun Nov  6 08:49:37 1994", .want = NOT},
        {.etag = "\"a\"", .if_modified = "yesterday", .want = SEND},
        {.etag = "\"a\"", .if_modified = SAME ", " SAME, .want = SEND},
        {.etag = "\"a\"", .if_modified = "", .want = SEND},
        {.etag = "\"a\"", .has_no_date = true, .if_modified = SETTLED, .want = SEND},
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
        {.etag = "\"a\"", .if_match = "\"a\"", .if_modified = SAME, .want = NOT},
        {.etag = "\"a\"", .if_unmodified = OLDER, .if_none_match = "\"a\"", .want = FAIL},
        {.etag = "\"a\"", .if_unmodified = NEWER, .if_none_match = "\"a\"", .want = NOT},
        {.etag = "\"a\"", .if_unmodified = OLDER, .if_modified = SAME, .want = FAIL},
        /* 3 before 4: If-None-Match disables If-Modified-Since */
        {.etag = "\"a\"", .if_none_match = "\"b\"", .if_modified = SAME, .want = SEND},
        {.etag = "\"a\"", .if_none_match = "\"a\"", .if_modified = OLDER, .want = NOT},
        {.etag = "\"a\"", .if_none_match = "nonsense", .if_modified = SAME, .want = SEND},
        /* none */
        {.etag = "\"a\"", .want = SEND},
    };
    check(rows, NJ_ARRAY_LEN(rows));
}

/* A file that was replaced by one with an older mtime, or whose permissions changed: it may have
 * been modified since any date between the two times. Only If-Modified-Since compares weakly: its
 * own mtime is enough (RFC 9110 8.8.2.2), as of the files of a mirror. */
Test(http_preconditions, dates_between_mtime_and_ctime)
{
    static const struct {
        const char *date;
        enum nj_precond_result if_modified, if_unmodified;
        bool is_certain; /* a range of the version of that date, by If-Unmodified-Since */
    } rows[] = {
        {OLDER, SEND, FAIL, false},
        {SAME, NOT, SEND, false},
        {NEWER, SEND, SEND, false},
        {"Sun, 06 Nov 1994 08:49:46 GMT", SEND, SEND, false},
        {"Sun, 06 Nov 1994 08:49:47 GMT", SEND, SEND, false},
        {"Sun, 06 Nov 1994 08:49:49 GMT", SEND, SEND, false},
        {"Sun, 06 Nov 1994 08:49:50 GMT", NOT, SEND, true},
        {"no date", SEND, SEND, true},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_validators v = validators("\"a\"", true);
        struct nj_str date = str(rows[i].date);
        struct nj_preconditions modified = {.if_modified_since = date},
                                unmodified = {.if_unmodified_since = date},
                                both = {.if_unmodified_since = date, .if_match = NJ_STR("*")},
                                range = {.if_range = date};
        v.changed_s = MODIFIED + 10;
        v.is_date_sent = true;
        cr_expect_eq(nj_preconditions_eval(&modified, &v, NOW, false), rows[i].if_modified, "%zu",
                     i);
        cr_expect_eq(nj_preconditions_eval(&unmodified, &v, NOW, false), rows[i].if_unmodified,
                     "%zu", i);
        cr_expect_eq(gets_range(unmodified, &v, false), rows[i].is_certain);
        cr_expect_not(gets_range(unmodified, &v, true));
        cr_expect(gets_range(both, &v, true), "the tag decides");
        cr_expect_eq(gets_range(modified, &v, true), rows[i].if_modified == SEND);
        cr_expect_not(gets_range(range, &v, false));
    }
}

/* A client whose clock is ahead: its date is later than the change, but its copy may be older. */
Test(http_preconditions, date_in_the_future)
{
    struct nj_validators v = validators("\"a\"", true);
    struct nj_str date = NJ_STR("Sun, 06 Nov 1994 09:06:17 GMT"); /* NOW */
    struct nj_preconditions modified = {.if_modified_since = date},
                            range = {.if_unmodified_since = date, .range = NJ_STR("bytes=0-9")};

    cr_expect_eq(nj_preconditions_eval(&modified, &v, NOW, false), NOT);
    cr_expect_eq(nj_preconditions_eval(&modified, &v, NOW - 1, false), SEND);
    cr_expect_eq(nj_preconditions_eval(&range, &v, NOW, false), NJ_PRECOND_RANGE);
    cr_expect_eq(nj_preconditions_eval(&range, &v, NOW - 1, false), SEND);
}

/* A client that has the mtime of a file from elsewhere, before this server sends it as a date. */
Test(http_preconditions, mtime_that_was_not_sent)
{
    struct nj_validators v = validators("\"a\"", true);
    struct nj_preconditions modified = {.if_modified_since = str(SAME)};

    v.changed_s = MODIFIED + 10;
    v.is_date_sent = false;
    cr_expect_eq(nj_preconditions_eval(&modified, &v, NOW, false), SEND);
}

/* The Date of a response with a former version may be the second of the change. It is not taken for
 * the version's own date until that is sent. */
Test(http_preconditions, date_of_a_response)
{
    static const struct {
        const char *date;
        bool is_date_sent, is_certain;
    } rows[] = {
        {SAME, false, false},  {SAME, true, true},       {NEWER, false, false},
        {NEWER, true, false},  {UNSETTLED, true, false}, {SETTLED, false, true},
        {SETTLED, true, true},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_validators v = validators("\"a\"", true);
        struct nj_preconditions modified = {.if_modified_since = str(rows[i].date)},
                                unmodified = {.if_unmodified_since = str(rows[i].date)};
        v.is_date_sent = rows[i].is_date_sent;
        cr_expect_eq(nj_preconditions_eval(&modified, &v, NOW, false),
                     rows[i].is_certain ? NOT : SEND, "row %zu", i);
        cr_expect_eq(nj_preconditions_eval(&unmodified, &v, NOW, false), SEND, "row %zu", i);
        cr_expect_eq(gets_range(unmodified, &v, false), rows[i].is_certain, "row %zu", i);
    }
}

#define A_WEDNESDAY (MODIFIED + 3 * 86400)
#define THEN        "Wed, 09 Nov 1994 08:49:37 GMT"

/* A date is that of the file and of its siblings alike. */
Test(http_preconditions, ranges_by_date)
{
    static const struct {
        const char *if_range, *if_unmodified, *if_match;
        bool plain, coded; /* without accepted codings, and with them */
    } rows[] = {
        {NULL, NULL, NULL, true, true},
        {"\"a\"", NULL, NULL, true, true},
        {"W/\"a\"", NULL, NULL, false, false},
        {" W/\"a\"", NULL, NULL, false, false},
        {NULL, THEN, NULL, true, false},
        {"\"a\"", THEN, NULL, true, true},
        {NULL, THEN, "\"a\"", true, true},
        {NULL, NULL, "\"a\"", true, true},
        /* Days of the week that begin as a weak tag does. */
        {THEN, NULL, NULL, true, false},
        {" " THEN, NULL, NULL, true, false},
        {"Wednesday, 09-Nov-94 08:49:37 GMT", NULL, NULL, true, false},
        {"Wed Nov  9 08:49:37 1994", NULL, NULL, true, false},
        {"W", NULL, NULL, false, false},
        {"", NULL, NULL, false, false},
    };
    struct nj_validators v = validators("\"a\"", true);

    v.modified_s = v.changed_s = A_WEDNESDAY;
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_preconditions c = {.if_range = str(rows[i].if_range),
                                     .if_unmodified_since = str(rows[i].if_unmodified),
                                     .if_match = str(rows[i].if_match)};
        cr_expect_eq(gets_range(c, &v, false), rows[i].plain, "row %zu", i);
        cr_expect_eq(gets_range(c, &v, true), rows[i].coded, "row %zu", i);
    }
}

/* RFC 9110 13.1.5 */
Test(http_preconditions, if_range)
{
    static const struct {
        const char *etag, *value;
        bool is_date_sent, want;
    } rows[] = {
        {"\"a\"", NULL, true, true},
        {"\"a\"", "\"a\"", true, true},
        {"\"a\"", " \"a\" ", true, true},
        {"\"a\"", "\"b\"", true, false},
        {"\"a\"", "W/\"a\"", true, false},
        {"W/\"a\"", "W/\"a\"", true, false},
        {"W/\"a\"", "\"a\"", true, false},
        {"\"a\"", "\"a\", \"a\"", true, false},
        {"\"a\"", "*", true, false},
        {"\"a\"", "", true, false},
        {"\"a\"", SAME, true, true},
        {"\"a\"", "Sun Nov  6 08:49:37 1994", true, true},
        {"\"a\"", "Wed, 09 Nov 1994 08:49:37 GMT", true, false},
        {"\"a\"", OLDER, true, false},
        {"\"a\"", NEWER, true, false}, /* it must be equal, not later */
        {"\"a\"", SAME, false, false},
        {"\"a\"", "nonsense", true, false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_validators v = validators(rows[i].etag, true);
        v.is_date_sent = rows[i].is_date_sent;
        struct nj_preconditions c = {.if_range = str(rows[i].value)};
        cr_expect_eq(gets_range(c, &v, false), rows[i].want, "%s", rows[i].value);
    }
}
