/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers for the text that handlers read and write: nightjar/text.h. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/text_model.h"

static bool same(struct nj_view v, const char *text)
{
    return v.n_bytes == strlen(text) && memcmp(v.p, text, v.n_bytes) == 0;
}

/* A view of a literal, which may have NUL bytes. */
#define VIEW(literal) text_view(literal, sizeof(literal) - 1)

static const struct nj_view none; /* p is NULL */

Test(http_text_helpers, compare)
{
    cr_expect(nj_view_is(VIEW("abc"), "abc"));
    cr_expect_not(nj_view_is(VIEW("abc"), "abd"));
    cr_expect_not(nj_view_is(VIEW("abc"), "ab"));
    cr_expect_not(nj_view_is(VIEW("ab"), "abc"));
    cr_expect_not(nj_view_is(VIEW("abc"), "ABC"));
    cr_expect_not(nj_view_is(VIEW("ab\0"), "ab"));
    cr_expect(nj_view_is(none, ""));
    cr_expect_not(nj_view_is(none, "a"));
    cr_expect(nj_view_is(nj_view_of("abc"), "abc"));

    cr_expect(nj_view_is_nocase(VIEW("Text/HTML"), "tEXT/html"));
    cr_expect_not(nj_view_is_nocase(VIEW("@[`{"), "`{@["), "only letters have a case");
    cr_expect_not(nj_view_is_nocase(VIEW("\xe9"), "\xc9"), "only ASCII has one");
    cr_expect_not(nj_view_is_nocase(VIEW("ab\0"), "ab"));
    cr_expect_not(nj_view_is_nocase(VIEW("ab"), "abc"));
    cr_expect_not(nj_view_is_nocase(VIEW("abc"), "ab"));
    cr_expect(nj_view_is_nocase(none, ""));

    cr_expect(nj_view_begins(VIEW("/api/x"), "/api/"));
    cr_expect(nj_view_begins(VIEW("/api/"), "/api/"));
    cr_expect_not(nj_view_begins(VIEW("/api"), "/api/"));
    cr_expect_not(nj_view_begins(VIEW("/apj/x"), "/api/"));
    cr_expect(nj_view_begins(none, ""));
}

Test(http_text_helpers, cut_and_trim)
{
    struct nj_view a, b, rest = VIEW("a, b,,c");
    char all[32] = "";

    cr_expect(nj_view_cut(VIEW("k=v=w"), '=', &a, &b));
    cr_expect(same(a, "k") && same(b, "v=w"));
    cr_expect_not(nj_view_cut(VIEW("k"), '=', &a, &b));
    cr_expect(same(a, "k") && same(b, ""));
    cr_expect(nj_view_cut(VIEW("="), '=', &a, &b));
    cr_expect(same(a, "") && same(b, ""));
    cr_expect_not(nj_view_cut(none, '=', &a, &b));
    cr_expect(same(a, "") && same(b, ""));
    while (rest.n_bytes > 0) {
        nj_view_cut(rest, ',', &a, &rest);
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "[" NJ_VIEW_FMT "]", NJ_VIEW_ARG(nj_view_trim(a)));
    }
    cr_expect_str_eq(all, "[a][b][][c]");
    cr_expect(same(nj_view_trim(VIEW(" \t a b \t")), "a b"));
    cr_expect(same(nj_view_trim(VIEW(" \t ")), ""));
    cr_expect(same(nj_view_trim(VIEW("\na ")), "\na"), "a line feed is no OWS");
    cr_expect(same(nj_view_trim(none), ""));
    snprintf(all, sizeof all, "<" NJ_VIEW_FMT ">", NJ_VIEW_ARG(none));
    cr_expect_str_eq(all, "<>");
}

Test(http_text_helpers, pairs)
{
    struct nj_view rest = VIEW("&a=1&&b&=c&d=e=f&a=2&"), name, value;
    static const char *const want[][2] = {
        {"a", "1"}, {"b", ""}, {"", "c"}, {"d", "e=f"}, {"a", "2"}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(want); i++) {
        cr_assert(nj_query_next(&rest, &name, &value));
        cr_expect(same(name, want[i][0]) && same(value, want[i][1]), "pair %zu", i);
    }
    cr_expect_not(nj_query_next(&rest, &name, &value));
    cr_expect(same(value, "2"), "unchanged");
    rest = none;
    cr_expect_not(nj_query_next(&rest, &name, &value));
}

Test(http_text_helpers, find)
{
    const struct nj_view query = VIEW("x=0&%61+b=1&a%20b=2&%=3&nul%00=4&nul=5&empty");
    struct nj_view value;

    cr_expect(nj_query_find(query, "a b", &value) && same(value, "1"));
    cr_expect(nj_query_find(query, "%", &value) && same(value, "3"));
    cr_expect(nj_query_find(query, "nul", &value) && same(value, "5"), "not the one with a NUL");
    cr_expect(nj_query_find(query, "empty", &value) && same(value, ""));
    cr_expect(nj_query_find(VIEW("=1"), "", &value) && same(value, "1"));
    cr_expect_not(nj_query_find(query, "a", &value));
    cr_expect_not(nj_query_find(query, "X", &value), "case matters");
    cr_expect_not(nj_query_find(none, "", &value));
    cr_expect(same(value, "1"), "unchanged");
}

Test(http_text_helpers, decode)
{
    const struct {
        struct nj_view from, to;
    } rows[] = {
        {VIEW("a+b%20c"), VIEW("a b c")},
        {VIEW("%2B%2b"), VIEW("++")},
        {VIEW("%"), VIEW("%")},
        {VIEW("%4"), VIEW("%4")},
        {VIEW("%4g%zz"), VIEW("%4g%zz")},
        {VIEW("%%41"), VIEW("%A")},
        {VIEW("%2541"), VIEW("%41")},
        {VIEW("%+1"), VIEW("% 1")},
        {VIEW("a%00b"), VIEW("a\0b")},
        {VIEW("%c3%A9\xff"), VIEW("\xc3\xa9\xff")},
        {{NULL, 0}, VIEW("")},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        const char *bad =
            text_check_rooms(nj_query_decode, rows[i].from, rows[i].to.p, rows[i].to.n_bytes);
        cr_expect_null(bad, NJ_VIEW_FMT ": %s", NJ_VIEW_ARG(rows[i].from), bad);
    }
}

static bool is_u64(const char *text, uint64_t min, uint64_t max, uint64_t want)
{
    uint64_t n = 7;

    return nj_view_to_u64(nj_view_of(text), min, max, &n) && n == want;
}

static bool is_i64(const char *text, int64_t min, int64_t max, int64_t want)
{
    int64_t n = 7;

    return nj_view_to_i64(nj_view_of(text), min, max, &n) && n == want;
}

Test(http_text_helpers, numbers)
{
    static const char *const bad[] = {"",    " 1",  "1 ", "+1", "0x1", "1.0",
                                      "1e3", "--1", "-",  "a",  "1-",  "18446744073709551616"};

    cr_expect(is_u64("0", 0, UINT64_MAX, 0));
    cr_expect(is_u64("18446744073709551615", 0, UINT64_MAX, UINT64_MAX));
    cr_expect(is_u64("00000000000000000000000000007", 0, UINT64_MAX, 7));
    cr_expect(is_u64("5", 5, 5, 5));
    cr_expect_not(is_u64("4", 5, 5, 4));
    cr_expect_not(is_u64("6", 5, 5, 6));
    cr_expect_not(is_u64("-0", 0, UINT64_MAX, 0));
    cr_expect(is_i64("-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN));
    cr_expect(is_i64("9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX));
    cr_expect_not(is_i64("-9223372036854775809", INT64_MIN, INT64_MAX, INT64_MAX));
    cr_expect_not(is_i64("9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN));
    cr_expect(is_i64("-0", 0, 0, 0));
    cr_expect(is_i64("-3", -3, -3, -3));
    cr_expect_not(is_i64("-4", -3, 3, -4));
    cr_expect_not(is_i64("4", -3, 3, 4));
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        const char *wrong = text_check_number((const uint8_t *)bad[i], strlen(bad[i]));
        cr_expect_null(wrong, "'%s': %s", bad[i], wrong);
    }
    cr_expect_not(nj_view_to_u64(none, 0, 0, &(uint64_t){0}));
}

Test(http_text_helpers, digits)
{
    char got[NJ_U64_BYTES], want[NJ_U64_BYTES];

    for (uint64_t n = 1; n > 0; n = n > UINT64_MAX / 3 ? 0 : 3 * n)
        for (uint64_t near = n - 1; near <= n + 1; near++) {
            size_t n_want = (size_t)snprintf(want, sizeof want, "%llu", (unsigned long long)near);
            cr_assert_eq(nj_u64_digits(near, got), n_want);
            cr_assert_str_eq(got, want);
        }
    cr_expect_eq(nj_u64_digits(UINT64_MAX, got), 20);
    cr_expect_str_eq(got, "18446744073709551615");
}

#define BAD "\xef\xbf\xbd" /* U+FFFD */

Test(http_text_helpers, json)
{
    const struct {
        struct nj_view from;
        const char *to;
    } rows[] = {
        {VIEW("a b/"), "\"a b/\""},
        {VIEW("\"\\"), "\"\\\"\\\\\""},
        {VIEW("\n\0\x1f\x7f"), "\"\\u000a\\u0000\\u001f\\u007f\""},
        {VIEW("\xc3\xa9\xf0\x9f\xa6\x87"), "\"\xc3\xa9\xf0\x9f\xa6\x87\""},
        {VIEW("\xc2\x85\xe2\x80\xa8"), "\"\\u0085\\u2028\""},
        {VIEW("\xc1\xbf"), "\"" BAD BAD "\""}, /* overlong */
        {VIEW("\xe0\x9f\xbf"), "\"" BAD BAD BAD "\""},
        {VIEW("\xf0\x8f\xbf\xbf"), "\"" BAD BAD BAD BAD "\""},
        {VIEW("\xed\xa0\x80"), "\"" BAD BAD BAD "\""}, /* surrogates */
        {VIEW("\xed\xbf\xbf"), "\"" BAD BAD BAD "\""},
        {VIEW("\xed\x9f\xbf\xee\x80\x80"), "\"\xed\x9f\xbf\xee\x80\x80\""},
        {VIEW("\xf4\x8f\xbf\xbf"), "\"\xf4\x8f\xbf\xbf\""},
        {VIEW("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\""},
        {VIEW("\xe9|\xe2\x82"), "\"" BAD "|" BAD BAD "\""},
        {{NULL, 0}, "\"\""},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        const char *bad =
            text_check_rooms(nj_json_string, rows[i].from, rows[i].to, strlen(rows[i].to));
        cr_expect_null(bad, "%s: %s", rows[i].to, bad);
    }
}

/* --- any bytes, against the models of text_model.h; NJ_SEED runs one seed again ------------ */

static size_t any_bytes(struct nj_prng *r, uint8_t *out)
{
    static const char *const pieces[] = {"&",
                                         "=",
                                         "+",
                                         "%",
                                         "%00",
                                         "%41",
                                         "a",
                                         "b",
                                         "-",
                                         "0",
                                         "9",
                                         "18446744073709551615",
                                         "1844674407",
                                         "\"",
                                         "\\",
                                         "\xc3\xa9",
                                         "\xe2\x82",
                                         "\xed\x9f\xbf",
                                         "\xee\x80\x80",
                                         "\xf0\x9f\xa6\x87",
                                         "\xef",
                                         "\xf4",
                                         "\x8f",
                                         "\xbf",
                                         "\xe0",
                                         "\x80",
                                         "9223372036854775807"};
    uint32_t n_pieces = nj_prng_below(r, 12), kinds = 1 + nj_prng_below(r, NJ_ARRAY_LEN(pieces));
    uint32_t first = nj_prng_below(r, NJ_ARRAY_LEN(pieces));
    size_t n = 0;

    for (uint32_t i = 0; i < n_pieces; i++) {
        const char *piece = pieces[(first + nj_prng_below(r, kinds)) % NJ_ARRAY_LEN(pieces)];
        memcpy(out + n, piece, strlen(piece));
        n += strlen(piece);
        if (nj_prng_below(r, 8) == 0)
            out[n++] = (uint8_t)nj_prng_next(r);
    }
    return n;
}

Test(http_text_helpers, any)
{
    const char *given = getenv("NJ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    struct nj_prng r;

    fprintf(stderr, "NJ_SEED=%llu\n", (unsigned long long)seed);
    nj_prng_init(&r, seed);
    for (uint32_t i = 0; i < 40000; i++) {
        uint8_t bytes[TEXT_MODEL_MAX];
        size_t n = any_bytes(&r, bytes);
        uint8_t *exact = malloc(n > 0 ? n : 1); /* AddressSanitizer detects a read beyond it */
        memcpy(exact, bytes, n);
        const char *bad = text_check(exact, n);
        cr_assert_null(bad, "NJ_SEED=%llu, text %u '" NJ_VIEW_FMT "': %s", (unsigned long long)seed,
                       i, NJ_VIEW_ARG(text_view(bytes, n)), bad);
        free(exact);
    }
}

static size_t encoded(struct nj_prng *r, const uint8_t *from, size_t n, char *out)
{
    size_t n_out = 0;

    for (size_t i = 0; i < n; i++) {
        bool plain = isalnum(from[i]) && nj_prng_below(r, 4) > 0;
        if (plain)
            out[n_out++] = (char)from[i];
        else if (from[i] == ' ' && nj_prng_below(r, 2) == 0)
            out[n_out++] = '+';
        else
            n_out += (size_t)sprintf(out + n_out, nj_prng_below(r, 2) ? "%%%02x" : "%%%02X",
                                     (unsigned)from[i]);
    }
    return n_out;
}

/* What a client encodes is decoded, in order, and the first of equal names is found. */
Test(http_text_helpers, round_trip)
{
    enum { PAIRS = 6, BYTES = 12 };
    const char *given = getenv("NJ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    struct nj_prng r;

    fprintf(stderr, "NJ_SEED=%llu\n", (unsigned long long)seed);
    nj_prng_init(&r, seed);
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t text[2 * PAIRS][BYTES];
        size_t n_text[2 * PAIRS], n = 0;
        char query[2 * PAIRS * (3 * BYTES + 1)], got[BYTES + 1];
        for (uint32_t k = 0; k < 2 * PAIRS; k++) {
            n_text[k] = nj_prng_below(&r, BYTES + 1);
            for (size_t b = 0; b < n_text[k]; b++)
                text[k][b] = nj_prng_below(&r, 2) ? (uint8_t) "ab &=+%"[nj_prng_below(&r, 7)]
                                                  : (uint8_t)nj_prng_next(&r);
            n += encoded(&r, text[k], n_text[k], query + n);
            query[n++] = k % 2 ? '&' : '=';
        }
        struct nj_view rest = text_view(query, n), pair[2];
        for (uint32_t k = 0; k < 2 * PAIRS; k++) {
            cr_assert(k % 2 || nj_query_next(&rest, &pair[0], &pair[1]), "%u", i);
            cr_assert_eq(nj_query_decode(pair[k % 2], got, sizeof got), n_text[k], "%u", i);
            cr_assert_eq(memcmp(got, text[k], n_text[k]), 0, "%u", i);
        }
        cr_assert_not(nj_query_next(&rest, &pair[0], &pair[1]), "%u", i);
    }
}

/* What is NULL is empty, or not stored. */
Test(http_text_helpers, null)
{
    struct nj_view absent = {NULL, 5}, v = nj_view_of("a=1&b=2"), name;
    uint64_t n = 7;

    cr_expect_eq(nj_view_of(NULL).n_bytes, 0);
    cr_expect(!nj_view_is(nj_view_of(""), NULL) && !nj_view_is_nocase(v, NULL) &&
              !nj_view_begins(v, NULL));
    cr_expect(nj_view_is(absent, "") && !nj_view_begins(absent, "x") &&
              !nj_view_is_nocase(absent, "x"));
    cr_expect(nj_view_cut(v, '&', NULL, NULL));
    cr_expect(!nj_view_cut(absent, '&', &name, NULL));
    cr_expect_eq(name.n_bytes, 0);
    cr_expect_eq(nj_view_trim(absent).n_bytes, 0);
    cr_expect(!nj_query_next(NULL, &name, NULL) && !nj_query_next(&absent, &name, NULL));
    cr_expect(nj_query_next(&v, NULL, NULL) && nj_view_is(v, "b=2"));
    cr_expect(nj_query_find(v, "b", NULL) && !nj_query_find(v, NULL, &name));
    cr_expect_eq(nj_query_decode(v, NULL, 10), 3);
    cr_expect_eq(nj_query_decode(absent, NULL, 0), 0);
    cr_expect(nj_view_to_u64(nj_view_of("12"), 0, 20, NULL) && !nj_view_to_u64(absent, 0, 20, &n));
    cr_expect(nj_view_to_i64(nj_view_of("-2"), -5, 20, NULL));
    cr_expect_eq(n, 7);
    cr_expect_eq(nj_u64_digits(123, NULL), 3);
    cr_expect_eq(nj_json_string(nj_view_of("a"), NULL, 10), 3);
    cr_expect_eq(nj_json_string(absent, NULL, 0), 2);
}
