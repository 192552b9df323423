/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/access_format.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "support/access_check.h"

static char line[NJ_ACCESS_LINE_BYTES + 1];

static struct nj_access_record some(void)
{
    static const uint8_t addr[4] = {198, 18, 0, 7};
    static const char text[] = "GET/iso/a.isoexample.org:80http://example.org/curl/8.0";
    struct nj_access_record a = {
        .wall_ns = 1795294998 * (int64_t)NJ_SEC + 345678901,
        .rport = 40123,
        .status = 206,
        .stream_id = 3,
        .shard = 1,
        .conn = 77,
        .n_bytes = 1048576,
        .ttfb = 412345,
        .total = 5 * NJ_SEC + 120999999,
        .throttled = 4 * NJ_SEC,
        .complete = true,
        .class_of = "iso",
        .n_method = 3,
        .n_path = 10,
        .n_authority = 14,
        .n_referer = 19,
        .n_agent = 8,
    };
    uint32_t v4;

    memcpy(&v4, addr, 4);
    a.remote = nj_addr_from_v4(v4);
    memcpy(a.text, text, sizeof text - 1);
    cr_assert_eq(a.n_method + a.n_path + a.n_authority + a.n_referer + a.n_agent, sizeof text - 1);
    return a;
}

static size_t write_line(enum nj_access_format format, const struct nj_access_record *a)
{
    struct nj_access_time_cache clock = {0};
    memset(line, '#', sizeof line);
    size_t n = nj_access_format_line(format, a, &clock, line);
    cr_assert(n <= NJ_ACCESS_LINE_BYTES && line[n] == '#' && line[n - 1] == '\n');
    line[n] = '\0';
    return n;
}

static void in_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

Test(access_format, combined)
{
    struct nj_access_record a = some();

    in_zone("<+0330>-3:30");
    write_line(NJ_ACCESS_COMBINED, &a);
    cr_assert_str_eq(line,
                     "198.18.0.7 - - [22/Nov/2026:00:33:18 +0330] \"GET /iso/a.iso HTTP/2.0\" "
                     "206 1048576 \"http://example.org/\" \"curl/8.0\" rt=5.120 ttfb=0.000 "
                     "throttled=4.000 class=\"iso\" complete\n");
}

Test(access_format, versions)
{
    static const char *const text[] = {"HTTP/2.0", "HTTP/1.1", "HTTP/1.0"};
    struct nj_access_record a = some();
    char want[64];

    for (a.version = 0; a.version < NJ_N_HTTP_VERSIONS; a.version++) {
        write_line(NJ_ACCESS_COMBINED, &a);
        snprintf(want, sizeof want, "\"GET /iso/a.iso %s\" 206", text[a.version]);
        cr_expect(strstr(line, want), "%s", line);
        write_line(NJ_ACCESS_JSON, &a);
        snprintf(want, sizeof want, ",\"protocol\":\"%s\",", text[a.version]);
        cr_expect(strstr(line, want), "%s", line);
    }
}

Test(access_format, json)
{
    struct nj_access_record a = some();

    in_zone("<+0330>-3:30");
    write_line(NJ_ACCESS_JSON, &a);
    cr_assert_str_eq(
        line, "{\"time\":\"2026-11-21T21:03:18.345Z\",\"remote\":\"198.18.0.7\",\"port\":40123,"
              "\"method\":\"GET\",\"path\":\"/iso/a.iso\",\"authority\":\"example.org:80\","
              "\"protocol\":\"HTTP/2.0\",\"status\":206,\"bytes\":1048576,"
              "\"referer\":\"http://example.org/\",\"user_agent\":\"curl/8.0\",\"class\":\"iso\","
              "\"ttfb_ms\":0.412,\"total_ms\":5120.999,\"throttled_ms\":4000.000,"
              "\"complete\":true,\"cut\":false,\"shard\":1,\"connection\":77,\"stream\":3}\n");
}

Test(access_format, logfmt)
{
    struct nj_access_record a = some();

    in_zone("<+0330>-3:30");
    a.scheme = NJ_SCHEME_HTTPS;
    a.peer.b[15] = 2;
    a.client.b[15] = 1;
    write_line(NJ_ACCESS_LOGFMT, &a);
    cr_assert_str_eq(
        line, "time=2026-11-21T21:03:18.345Z client=::1 remote=198.18.0.7 port=40123 peer=::2 "
              "host=\"example.org:80\" scheme=https protocol=HTTP/2.0 tls=- method=\"GET\" "
              "path=\"/iso/a.iso\" status=206 bytes=1048576 referer=\"http://example.org/\" "
              "user_agent=\"curl/8.0\" client_subject=\"\" class=\"iso\" ttfb_ms=0.412 "
              "total_ms=5120.999 throttled_ms=4000.000 complete=true cut=false shard=1 "
              "connection=77 stream=3\n");
    a.tls_suite = "TLS_AES_128_GCM_SHA256";
    a.scheme = NJ_SCHEME_NONE;
    a.n_path = 5;
    memcpy(a.text + 3, "\" = \n", 5);
    write_line(NJ_ACCESS_LOGFMT, &a);
    cr_expect(strstr(line, " scheme=- protocol=HTTP/2.0 tls=TLS_AES_128_GCM_SHA256 "), "%s", line);
    cr_expect(strstr(line, " path=\"\\\" = \\u000a\" "), "%s", line);
}

Test(access_format, tls)
{
    struct nj_access_record a = some();
    uint32_t at = (uint32_t)a.n_method + a.n_path + a.n_authority + a.n_referer + a.n_agent;

    a.tls_suite = "TLS_AES_128_GCM_SHA256";
    write_line(NJ_ACCESS_COMBINED, &a);
    cr_expect(strstr(line, " complete tls=TLS_AES_128_GCM_SHA256\n"));
    a.n_subject = 8;
    memcpy(a.text + at, "CN=\"a\",b", 8);
    write_line(NJ_ACCESS_COMBINED, &a);
    cr_expect(strstr(line, " tls=TLS_AES_128_GCM_SHA256 client=\"CN=\\x22a\\x22,b\"\n"), "%s",
              line);
    write_line(NJ_ACCESS_JSON, &a);
    cr_expect(
        strstr(line,
               ",\"tls\":\"TLS_AES_128_GCM_SHA256\",\"client_subject\":\"CN=\\\"a\\\",b\"}\n"),
        "%s", line);
}

/* A record of a request that was not parsed and got no response. */
Test(access_format, nothing_is_known)
{
    struct nj_access_record a = {.cut = true};

    a.remote.b[15] = 1;
    in_zone("UTC0");
    write_line(NJ_ACCESS_COMBINED, &a);
    cr_assert_str_eq(line, "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 000 0 \"-\" \"-\" rt=0.000 "
                           "ttfb=0.000 throttled=0.000 class=\"-\" incomplete cut\n");
    write_line(NJ_ACCESS_JSON, &a);
    cr_assert_null(access_check_json(line, strlen(line)));
    cr_assert(strstr(line, "\"complete\":false,\"cut\":true"));
    cr_assert(strstr(line, "\"remote\":\"::1\",\"port\":0,\"method\":\"\""));
}

/* The time that was turned into text last is used for its second, and no longer. */
Test(access_format, seconds_follow_the_record)
{
    struct nj_access_time_cache clock = {0};
    struct nj_access_record a = some();

    for (int i = 0; i < 3; i++) {
        int64_t second = 1795294998 + (i == 1);
        a.wall_ns = second * (int64_t)NJ_SEC + 999999999;
        nj_access_format_line(NJ_ACCESS_JSON, &a, &clock, line);
        cr_assert_eq(memcmp(line,
                            i == 1 ? "{\"time\":\"2026-11-21T21:03:19.999Z\""
                                   : "{\"time\":\"2026-11-21T21:03:18.999Z\"",
                            34),
                     0);
    }
    a.wall_ns = -1;
    nj_access_format_line(NJ_ACCESS_JSON, &a, &clock, line);
    cr_assert_eq(memcmp(line, "{\"time\":\"1969-12-31T23:59:59.999Z\"", 34), 0);
}

static void path_is(const char *bytes, size_t n, const char *in_combined, const char *in_json)
{
    struct nj_access_record a = {.n_method = 1, .n_path = (uint16_t)n};
    char want[256];

    a.text[0] = 'G';
    memcpy(a.text + 1, bytes, n);
    write_line(NJ_ACCESS_COMBINED, &a);
    snprintf(want, sizeof want, "\"G %s HTTP/2.0\"", in_combined);
    cr_assert(strstr(line, want), "%s: %s", want, line);
    write_line(NJ_ACCESS_JSON, &a);
    snprintf(want, sizeof want, ",\"path\":\"%s\",", in_json);
    cr_assert(strstr(line, want), "%s: %s", want, line);
}

Test(access_format, escapes)
{
#define PATH(bytes, ...) path_is(bytes, sizeof(bytes) - 1, __VA_ARGS__)
    PATH("/a b", "/a b", "/a b");
    PATH("/\"\\/", "/\\x22\\x5C/", "/\\\"\\\\/");
    PATH("/\n\r\t\0\x1b[", "/\\x0A\\x0D\\x09\\x00\\x1B[", "/\\u000a\\u000d\\u0009\\u0000\\u001b[");
    PATH("\x7f", "\\x7F", "\\u007f");
    PATH("\xc3\xa9\xe2\x82\xac", "\\xC3\\xA9\\xE2\\x82\\xAC", "\xc3\xa9\xe2\x82\xac");
    PATH("\xf0\x9f\xa6\x87", "\\xF0\\x9F\\xA6\\x87", "\xf0\x9f\xa6\x87");
    PATH("\xe9t\xe9", "\\xE9t\\xE9", "\\u00e9t\\u00e9"); /* ISO 8859-1 */
    PATH("\xc2\x85\xe2\x80\xa8", "\\xC2\\x85\\xE2\\x80\\xA8", "\\u0085\\u2028");
    PATH("\xc0\xaf", "\\xC0\\xAF", "\\u00c0\\u00af");                 /* overlong */
    PATH("\xed\xa0\x80", "\\xED\\xA0\\x80", "\\u00ed\\u00a0\\u0080"); /* a surrogate */
    PATH("\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80", "\\u00f4\\u0090\\u0080\\u0080");
    PATH("\xe2\x82", "\\xE2\\x82", "\\u00e2\\u0082"); /* cut in the middle */
    PATH("\xe2\x82/", "\\xE2\\x82/", "\\u00e2\\u0082/");
#undef PATH
}

/* The longest possible line: NJ_ACCESS_LINE_BYTES is its length. write_line() checks that. */
Test(access_format, longest)
{
    struct nj_access_record a;

    memset(&a, 0xff, sizeof a);
    memset(&a.remote, 0xab, sizeof a.remote);
    a.peer = a.client = a.remote;
    a.wall_ns = INT64_MAX;
    a.complete = false;
    a.cut = true;
    a.version = NJ_HTTP_1_0;
    a.n_method = NJ_ACCESS_TEXT_BYTES;
    a.n_path = a.n_authority = a.n_referer = a.n_agent = a.n_subject = 0;
    a.tls_suite = "TLS_CHACHA20_POLY1305_SHA256";
    a.scheme = NJ_SCHEME_HTTPS;
    size_t n = write_line(NJ_ACCESS_JSON, &a);
    cr_assert_null(access_check_json(line, n));
    n = write_line(NJ_ACCESS_LOGFMT, &a);
    cr_assert_null(access_check_logfmt(line, n));
    cr_assert_gt(n, NJ_ACCESS_LINE_BYTES - 200, "%zu of %u: a bound has to be about true", n,
                 NJ_ACCESS_LINE_BYTES);
    n = write_line(NJ_ACCESS_COMBINED, &a);
    cr_assert_null(access_check_combined(&a, line, n));
}

static uint16_t length(struct nj_prng *rng, size_t *left)
{
    size_t n = nj_prng_below(rng, 4) == 0 ? nj_prng_below(rng, (uint32_t)*left + 1)
                                          : nj_prng_below(rng, 8);
    n = n < *left ? n : *left;
    *left -= n;
    return (uint16_t)n;
}

/* Any bytes in any field make one valid line. */
Test(access_format, any_bytes)
{
    static const char nasty[] = "\"\\\n\r\t\x7f{}[],: \xc3\xa9\xe2\x80\xa8\xf0\x9f\xa6\x87\xc2\x85";
    uint64_t seed = 0xacce55;
    struct nj_prng rng;
    struct nj_access_record a;

    nj_prng_init(&rng, seed);
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t *byte = (uint8_t *)&a;
        for (size_t i = 0; i < sizeof a; i++) {
            uint64_t r = nj_prng_next(&rng);
            byte[i] = r & 256 ? (uint8_t)r : (uint8_t)nasty[(r >> 16) % (sizeof nasty - 1)];
        }
        size_t left = sizeof a.text;
        a.n_method = length(&rng, &left);
        a.n_path = length(&rng, &left);
        a.n_authority = length(&rng, &left);
        a.n_referer = length(&rng, &left);
        a.n_agent = length(&rng, &left);
        a.n_subject = length(&rng, &left);
        a.tls_suite = round & 4 ? "TLS_AES_128_GCM_SHA256" : NULL;
        a.version = (uint8_t)(round % NJ_N_HTTP_VERSIONS);
        a.scheme = (uint8_t)(round % NJ_N_SCHEMES);
        a.complete = round & 1;
        a.cut = round & 2;
        size_t n = write_line(NJ_ACCESS_JSON, &a);
        const char *bad = access_check_json(line, n);
        cr_assert_null(bad, "seed %" PRIu64 ", round %u: %s: %s", seed, round, bad, line);
        n = write_line(NJ_ACCESS_LOGFMT, &a);
        bad = access_check_logfmt(line, n);
        cr_assert_null(bad, "seed %" PRIu64 ", round %u: %s: %s", seed, round, bad, line);
        n = write_line(NJ_ACCESS_COMBINED, &a);
        bad = access_check_combined(&a, line, n);
        cr_assert_null(bad, "seed %" PRIu64 ", round %u: %s: %s", seed, round, bad, line);
    }
}
