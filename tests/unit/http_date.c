/* SPDX-License-Identifier: BSD-3-Clause */
/* Dates against the C library's calendar, and media types. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "http/date.h"
#include "http/mime.h"

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

static void expect_type(const char *name, const char *want)
{
    struct nj_str got = nj_mime_type(name);
    cr_expect(got.n_bytes == strlen(want) && memcmp(got.p, want, got.n_bytes) == 0, "%s: %.*s",
              name, (int)got.n_bytes, got.p);
}

Test(http_mime, types)
{
    expect_type("index.html", "text/html; charset=utf-8");
    expect_type("a/b.HTM", "text/html; charset=utf-8");
    expect_type("x.css", "text/css; charset=utf-8");
    expect_type("x.min.js", "text/javascript; charset=utf-8");
    expect_type("x.json", "application/json");
    expect_type("x.png", "image/png");
    expect_type("x.woff2", "font/woff2");
    expect_type("x.7z", "application/x-7z-compressed");
    expect_type("x.zst", "application/zstd");
    expect_type("noext", "application/octet-stream");
    expect_type("dir.html/noext", "application/octet-stream");
    expect_type("x.", "application/octet-stream");
    expect_type("x.htmlx", "application/octet-stream");
    expect_type("", "application/octet-stream");
}

/* Rows that the search can't reach would be answered with the default. */
Test(http_mime, table_is_sorted)
{
    static const char *const names[] = {
        "aac",   "apng", "atom", "avif",        "bmp", "bz2",  "c",   "csv",  "deb",  "epub",
        "flac",  "gif",  "gz",   "h",           "ico", "ics",  "jar", "jpeg", "jpg",  "jsonld",
        "jxl",   "log",  "m3u8", "m4a",         "map", "md",   "mjs", "mp3",  "mp4",  "mpd",
        "ogg",   "ogv",  "opus", "otf",         "pdf", "rss",  "rtf", "svg",  "tar",  "tif",
        "tiff",  "ts",   "ttf",  "txt",         "vtt", "wasm", "wav", "webm", "webp", "woff",
        "xhtml", "xml",  "xz",   "webmanifest", "zip",
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        char name[32];
        snprintf(name, sizeof name, "x.%s", names[i]);
        struct nj_str type = nj_mime_type(name);
        cr_expect_neq(memcmp(type.p, "application/octet", 17), 0, "%s", name);
    }
}
