/* SPDX-License-Identifier: BSD-3-Clause */
/* Dates against the C library's calendar. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "http/proto/date.h"

static void expect_like_libc(int64_t t)
{
    char got[NJ_DATE_BYTES], want[64];
    struct tm tm;
    time_t tt = t;

    gmtime_r(&tt, &tm);
    strftime(want, sizeof want, "%a, %d %b ", &tm);
    snprintf(want + 12, sizeof want - 12, "%04d %02d:%02d:%02d GMT", tm.tm_year + 1900, tm.tm_hour,
             tm.tm_min, tm.tm_sec);
    nj_date_format(t, got);
    cr_assert_eq(memcmp(got, want, NJ_DATE_BYTES), 0, "%lld: %.29s, want %s", (long long)t, got,
                 want);
}

Test(http_date, known)
{
    char got[NJ_DATE_BYTES];

    nj_date_format(784111777, got); /* RFC 9110 5.6.7 */
    cr_expect_eq(memcmp(got, "Sun, 06 Nov 1994 08:49:37 GMT", NJ_DATE_BYTES), 0);
    nj_date_format(INT64_MIN, got);
    cr_expect_eq(memcmp(got, "Mon, 01 Jan 0001 00:00:00 GMT", NJ_DATE_BYTES), 0);
    nj_date_format(INT64_MAX, got);
    cr_expect_eq(memcmp(got, "Fri, 31 Dec 9999 23:59:59 GMT", NJ_DATE_BYTES), 0);
}

Test(http_date, every_day_of_four_centuries)
{
    for (int64_t day = -200000; day < 200000; day++)
        expect_like_libc(day * 86400 + (day & 1 ? 86399 : 0));
}

Test(http_date, many)
{
    for (int64_t t = -62135596800; t <= 253402300799; t += 1234567891 / 7)
        expect_like_libc(t);
}

static bool parse(const char *text, int64_t now_s, int64_t *t)
{
    return nj_date_parse((struct nj_str){text, (uint32_t)strlen(text)}, now_s, t);
}

#define NOW 1700000000 /* 2023-11-14 */

/* RFC 9110 5.6.7 and its examples. */
Test(http_date, three_forms)
{
    static const struct {
        const char *text;
        int64_t now_s, want;
    } rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", NOW, 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", NOW, 784111777},
        {"Sun Nov  6 08:49:37 1994", NOW, 784111777},
        {"Wed Nov 16 08:49:37 1994", NOW, 784975777},
        {"Thu, 01 Jan 1970 00:00:00 GMT", NOW, 0},
        {"Wednesday, 01-Jan-70 00:00:00 GMT", NOW, 3155760000}, /* 2070 */
        {"Thursday, 01-Jan-70 00:00:00 GMT", 1000000000, 0},
        {"Mon, 01 Jan 0001 00:00:00 GMT", NOW, -62135596800},
        {"Fri, 31 Dec 9999 23:59:59 GMT", NOW, 253402300799},
        {"Tue, 29 Feb 2000 12:00:00 GMT", NOW, 951825600},
        {"Sat, 31 Dec 2016 23:59:60 GMT", NOW, 1483228800}, /* a leap second */
        {"Mon, 06 Nov 1994 08:49:37 GMT", NOW, 784111777},  /* the wrong weekday */
        /* A two-digit year means the future up to 50 years from now, else the past. */
        {"Tuesday, 14-Nov-73 22:13:20 GMT", NOW, 3277923200},
        {"Tuesday, 14-Nov-73 22:13:21 GMT", NOW, 122163201},
        {"Wednesday, 16-Nov-73 22:13:20 GMT", NOW, 122336000},
        {"Monday, 01-Jan-74 00:00:00 GMT", NOW, 126230400},
        {"Monday, 01-Jan-24 00:00:00 GMT", NOW, 1704067200},
        {"Monday, 01-Jan-99 00:00:00 GMT", 946684800 /* 2000 */, 915148800},
        {"Sunday, 06-Nov-04 08:49:37 GMT", INT64_MAX, 250399586977}, /* 9904, not 10004 */
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        int64_t t = -1;
        cr_expect(parse(rows[i].text, rows[i].now_s, &t), "%s", rows[i].text);
        cr_expect_eq(t, rows[i].want, "%s: %lld", rows[i].text, (long long)t);
    }
}

Test(http_date, none_of_them)
{
    static const char *const rows[] = {
        "",
        "S",
        "Sun",
        "Sun,",
        "0",
        "784111777",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 NOV 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:3x GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Monsday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov  6 08:49:37 1994, Sun Nov  6 08:49:37 1994",
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        int64_t t;
        cr_expect_not(parse(rows[i], NOW, &t), "%s", rows[i]);
    }
}

Test(http_date, what_is_written_is_read)
{
    char text[NJ_DATE_BYTES];
    int64_t t;

    for (int64_t want = -62135596800; want <= 253402300799; want += 1234567891 / 7) {
        nj_date_format(want, text);
        cr_assert(nj_date_parse((struct nj_str){text, NJ_DATE_BYTES}, NOW, &t));
        cr_assert_eq(t, want);
    }
}
