/* SPDX-License-Identifier: BSD-3-Clause */
/* The Range field: RFC 9110 14.1.2 with its examples, and values seen from clients. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "http/proto/range.h"

#define TYPE_BYTES 9u /* text/html */

static enum nj_ranges_result parse(const char *value, uint64_t size, struct nj_ranges *r)
{
    return nj_ranges_parse((struct nj_str){value, (uint32_t)strlen(value)}, size, TYPE_BYTES, r);
}

/* The result as text: "0+500 9500+500", "ignored", "unsatisfiable". */
static const char *show(const char *value, uint64_t size)
{
    static char text[1024];
    struct nj_ranges r;
    size_t n = 0;

    switch (parse(value, size, &r)) {
    case NJ_RANGES_IGNORED:
        return "ignored";
    case NJ_RANGES_UNSATISFIABLE:
        return "unsatisfiable";
    case NJ_RANGES_OK:
        break;
    }
    for (uint32_t i = 0; i < r.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%llu+%llu", i ? " " : "",
                              (unsigned long long)r.range[i].first,
                              (unsigned long long)r.range[i].n_bytes);
    return text;
}

Test(http_range, table)
{
    static const struct {
        const char *value;
        uint64_t size;
        const char *want;
    } rows[] = {
        /* RFC 9110 14.1.2, a representation of 10000 bytes */
        {"bytes=0-499", 10000, "0+500"},
        {"bytes=500-999", 10000, "500+500"},
        {"bytes=-500", 10000, "9500+500"},
        {"bytes=9500-", 10000, "9500+500"},
        {"bytes=0-0,-1", 10000, "0+1 9999+1"},
        {"bytes= 0-0, 4500-5499, -1000", 10000, "0+1 4500+1000 9000+1000"},
        {"bytes=500-600,601-999", 10000, "500+101 601+399"},
        {"bytes=500-700,601-999", 10000, "ignored"}, /* overlapping */
        /* the end */
        {"bytes=0-", 10000, "0+10000"},
        {"bytes=0-9999", 10000, "0+10000"},
        {"bytes=0-10000", 10000, "0+10000"},
        {"bytes=9999-99999999999999999999999999", 10000, "9999+1"},
        {"bytes=-10000", 10000, "0+10000"},
        {"bytes=-99999999999999999999999999", 10000, "0+10000"},
        {"bytes=10000-", 10000, "unsatisfiable"},
        {"bytes=10000-10001", 10000, "unsatisfiable"},
        {"bytes=99999999999999999999999999-", 10000, "unsatisfiable"},
        {"bytes=18446744073709551615-18446744073709551615", UINT64_MAX, "unsatisfiable"},
        {"bytes=18446744073709551614-", UINT64_MAX, "18446744073709551614+1"},
        {"bytes=-0", 10000, "unsatisfiable"},
        {"bytes=0-0", 0, "unsatisfiable"},
        {"bytes=-1", 0, "ignored"}, /* all of an empty file */
        {"bytes=-0", 0, "unsatisfiable"},
        {"bytes=0-0,20000-", 10000, "0+1"},
        {"bytes=20000-,30000-", 10000, "unsatisfiable"},
        {"bytes=20000-,-1", 10000, "9999+1"},
        /* syntax */
        {"Bytes=0-0", 10000, "0+1"},
        {"bytes=,, 0-0 ,\t,", 10000, "0+1"},
        {"bytes=007-008", 10000, "7+2"},
        {"bytes", 10000, "ignored"},
        {"", 10000, "ignored"},
        {"bytes=", 10000, "ignored"},
        {"bytes=,", 10000, "ignored"},
        {"bytes=-", 10000, "ignored"},
        {"bytes=--1", 10000, "ignored"},
        {"bytes=5", 10000, "ignored"},
        {"bytes=5-4", 10000, "ignored"},
        {"bytes=5-4,0-0", 10000, "ignored"},
        {"bytes=0-0,5-4", 10000, "ignored"},
        {"bytes=a-b", 10000, "ignored"},
        {"bytes=0x0-1", 10000, "ignored"},
        {"bytes=0-1;2-3", 10000, "ignored"},
        {"bytes=0 - 1", 10000, "ignored"},
        {"bytes =0-1", 10000, "ignored"},
        {"bytes=+0-1", 10000, "ignored"},
        {"bytes=0-1, bytes=3-4", 10000, "ignored"},
        {"lines=0-1", 10000, "ignored"},
        {"items=0-1,3-4", 10000, "ignored"},
        /* many ranges: CVE-2011-3192 */
        {"bytes=0-,0-", 10000, "ignored"},
        {"bytes=0-,5-0,5-1,5-2", 10000, "ignored"},
        {"bytes=0-99,99-100", 10000, "ignored"},
        {"bytes=-10,9991-", 10000, "ignored"},
        {"bytes=9-9,0-8", 10, "9+1 0+9"},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        const char *got = show(rows[i].value, rows[i].size);
        cr_expect_str_eq(got, rows[i].want, "%s: %s", rows[i].value, got);
    }
}

/* `n` ranges of one byte, `step` bytes apart. */
static void list_ranges(char *value, uint32_t n, uint32_t step)
{
    value += sprintf(value, "bytes=");
    for (uint32_t i = 0; i < n; i++)
        value += sprintf(value, "%s%u-%u", i ? "," : "", step * i, step * i);
}

Test(http_range, as_many_as_there_may_be)
{
    char value[8192];
    struct nj_ranges r;

    list_ranges(value, NJ_RANGES_MAX, 1000);
    cr_expect_eq(parse(value, 1000000, &r), NJ_RANGES_OK);
    cr_expect_eq(r.n, NJ_RANGES_MAX);
    cr_expect(r.range[255].first == 255000 && r.range[255].n_bytes == 1);
    size_t n = strlen(value);
    strcat(value, ",500000-500000");
    cr_expect_eq(parse(value, 1000000, &r), NJ_RANGES_IGNORED);
    value[n] = '\0';
    strcat(value, ",5000000-");
    cr_expect_eq(parse(value, 1000000, &r), NJ_RANGES_IGNORED, "those beyond the end count, too");
}

/* RFC 9110 14.2: many ranges that do not ascend indicate a broken client or an attack. */
Test(http_range, many_must_ascend)
{
    char value[8192];
    struct nj_ranges r;

    list_ranges(value, NJ_RANGES_UNSORTED_MAX, 1000);
    size_t n = strlen(value);
    cr_expect_eq(parse(strcat(value, ",1-1"), 1000000, &r), NJ_RANGES_IGNORED);
    value[n] = '\0';
    cr_expect_eq(parse(strcat(value, ",15001-15001"), 1000000, &r), NJ_RANGES_OK);
    value[n] = '\0';
    cr_expect_eq(parse(strcat(value, ",15000-15001"), 1000000, &r), NJ_RANGES_IGNORED);
    list_ranges(value, NJ_RANGES_UNSORTED_MAX - 1, 1000);
    n = strlen(value);
    cr_expect_eq(parse(strcat(value, ",1-1"), 1000000, &r), NJ_RANGES_OK, "few need not");
    cr_expect_eq(parse(strcat(value, ",20000-20000"), 1000000, &r), NJ_RANGES_IGNORED);
}

/* A response with many parts is not longer than the file. */
Test(http_range, many_in_a_short_file)
{
    /* The first is 0-0, the second to the tenth N0-N0, the others N00-N00; of four digits. */
    const uint32_t n = NJ_RANGES_UNSORTED_MAX + 1, n_digits = 2 * (1 + 9 * 2 + 7 * 3) + 4 * n;
    const uint32_t n_bytes = n * (NJ_RANGE_HEADER_BYTES + TYPE_BYTES + 1) + n_digits;
    char value[8192];
    struct nj_ranges r;

    list_ranges(value, n, 10);
    cr_expect_eq(parse(value, n_bytes - 1, &r), NJ_RANGES_IGNORED);
    cr_expect_eq(parse(value, n_bytes, &r), NJ_RANGES_OK);
    list_ranges(value, n - 1, 10);
    cr_expect_eq(parse(value, n_bytes - 1, &r), NJ_RANGES_OK);
    strcat(value, ",18446744073709551000-");
    cr_expect_eq(parse(value, UINT64_MAX, &r), NJ_RANGES_OK);
}
