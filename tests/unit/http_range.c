/* SPDX-License-Identifier: BSD-3-Clause */
/* The Range field: RFC 9110 14.1.2 with its examples, and values seen from clients. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "http/proto/range.h"

static enum nj_ranges_result parse(const char *value, uint64_t size, struct nj_ranges *r)
{
    return nj_ranges_parse((struct nj_str){value, (uint32_t)strlen(value)}, size, r);
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

Test(http_range, as_many_as_there_may_be)
{
    char value[512] = "bytes=";
    size_t n = strlen(value);
    struct nj_ranges r;

    for (uint32_t i = 0; i < NJ_RANGES_MAX; i++)
        n += (size_t)sprintf(value + n, "%s%u-%u", i ? "," : "", 10 * i, 10 * i);
    cr_expect_eq(parse(value, 10000, &r), NJ_RANGES_OK);
    cr_expect_eq(r.n, NJ_RANGES_MAX);
    strcat(value, ",5000-5000");
    cr_expect_eq(parse(value, 10000, &r), NJ_RANGES_IGNORED);
    value[n] = '\0';
    strcat(value, ",50000-");
    cr_expect_eq(parse(value, 10000, &r), NJ_RANGES_IGNORED, "those beyond the end count, too");
}
