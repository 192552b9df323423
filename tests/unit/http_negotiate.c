/* SPDX-License-Identifier: BSD-3-Clause */
/* Accept-Encoding (RFC 9110 12.5.3, with its examples) and Accept (12.5.1). */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "http/proto/negotiate.h"

#define BR   (1u << NJ_CODING_BR)
#define ZSTD (1u << NJ_CODING_ZSTD)
#define GZIP (1u << NJ_CODING_GZIP)
#define ALL  (BR | ZSTD | GZIP)

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, s ? (uint32_t)strlen(s) : 0};
}

Test(http_negotiate, accept_encoding)
{
    static const struct {
        const char *value;
        uint8_t siblings;
        uint32_t want;
    } rows[] = {
        /* RFC 9110 12.5.3 */
        {"compress, gzip", ALL, NJ_CODING_GZIP},
        {"", ALL, NJ_CODING_IDENTITY},
        {"*", ALL, NJ_CODING_BR},
        {"compress;q=0.5, gzip;q=1.0", ALL, NJ_CODING_GZIP},
        {"gzip;q=1.0, identity; q=0.5, *;q=0", ALL, NJ_CODING_GZIP},
        {"gzip;q=1.0, identity; q=0.5, *;q=0", BR | ZSTD, NJ_CODING_IDENTITY},
        {NULL, ALL, NJ_CODING_IDENTITY},
        /* values of browsers and curl */
        {"gzip, deflate, br, zstd", ALL, NJ_CODING_BR},
        {"gzip, deflate, br, zstd", ZSTD | GZIP, NJ_CODING_ZSTD},
        {"gzip, deflate, br, zstd", GZIP, NJ_CODING_GZIP},
        {"gzip, deflate, br, zstd", 0, NJ_CODING_IDENTITY},
        {"deflate, gzip", BR, NJ_CODING_IDENTITY},
        /* weights */
        {"br;q=0.1, gzip;q=0.2", ALL, NJ_CODING_GZIP},
        {"br;q=0, zstd;q=0.001, identity;q=0", ALL, NJ_CODING_ZSTD},
        {"gzip;q=0.5, identity;q=1", ALL, NJ_CODING_IDENTITY},
        {"gzip;q=0.5, identity;q=0.5", ALL, NJ_CODING_GZIP},
        {"gzip;q=0.001", ALL, NJ_CODING_GZIP},
        {"gzip;q=0", ALL, NJ_CODING_IDENTITY},
        {"*;q=0.5, br;q=0.4", ALL, NJ_CODING_ZSTD},
        {"br, *;q=0", ALL, NJ_CODING_BR},
        {"br, *;q=0", GZIP, NJ_CODING_IDENTITY}, /* nothing is acceptable: as without the field */
        {"identity;q=0", GZIP, NJ_CODING_IDENTITY},
        {"identity;q=0, gzip;q=0.3", GZIP, NJ_CODING_GZIP},
        {"*;q=0", ALL, NJ_CODING_IDENTITY},
        {"*;q=0, identity;q=0", 0, NJ_CODING_IDENTITY},
        /* names */
        {"x-gzip", ALL, NJ_CODING_GZIP},
        {"GZIP", ALL, NJ_CODING_GZIP},
        {"BR;Q=1", ALL, NJ_CODING_BR},
        {"gzipx, xgzip, b, zst", ALL, NJ_CODING_IDENTITY},
        {"gzip;q=0, x-gzip;q=1", ALL, NJ_CODING_GZIP},
        /* blanks and empty elements */
        {" , gzip ;q=0.5 ,,\tbr\t;\tq=0.6", ALL, NJ_CODING_BR},
        /* a malformed weight drops its element */
        {"br;q=2, gzip;q=0.1", ALL, NJ_CODING_GZIP},
        {"br;q=-1, gzip;q=0.1", ALL, NJ_CODING_GZIP},
        {"br;q=1.001, gzip;q=0.1", ALL, NJ_CODING_GZIP},
        {"br;q=0.1234, gzip;q=0.1", ALL, NJ_CODING_GZIP},
        {"br;q=, gzip;q=0.1", ALL, NJ_CODING_GZIP},
        {"br;q=.5, gzip;q=0.1", ALL, NJ_CODING_GZIP},
        {"br;q=1., gzip;q=0.1", ALL, NJ_CODING_BR},
        {"br;q=1.000, gzip;q=0.999", GZIP, NJ_CODING_GZIP},
        {"br;level=\"a,b;q=0\", gzip", BR, NJ_CODING_BR},
        {"br;level=\"a", BR, NJ_CODING_BR},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_accepted_codings c = nj_accept_encoding_parse(str(rows[i].value));
        uint32_t got = nj_coding_select(&c, rows[i].siblings);
        cr_expect_eq(got, rows[i].want, "%s, %x: %u", rows[i].value, rows[i].siblings, got);
    }
}

Test(http_negotiate, accept)
{
    static const struct {
        const char *value;
        bool json;
    } rows[] = {
        {NULL, false},
        {"", false},
        {"*/*", false},
        {"application/json", true},
        {"APPLICATION/JSON", true},
        {"application/json;q=0", false},
        {"application/json;charset=utf-8;q=0.5", true},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
        {"text/html, application/json", false},
        {"text/html;q=0.9, application/json", true},
        {"application/json, text/plain, */*", true},
        {"application/json;q=0.5, */*", false},
        {"application/*", true},
        {"application/*, text/*", false},
        {"application/json, text/*;q=0.5", true},
        {"text/*;q=0, */*", true},
        {"text/jsonapplication/json", false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++)
        cr_expect_eq(nj_accept_prefers_json(str(rows[i].value)), rows[i].json, "%s", rows[i].value);
}
