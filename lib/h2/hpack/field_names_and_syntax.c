/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Field names: the static table (RFC 7541 Appendix A), tokens of names, and how each response field
 * is indexed. It also validates names and values (RFC 9113 8.2.1, RFC 9110 5.1, 5.5).
 */
#include "h2/hpack/hpack_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"

/* RFC 7541 Appendix A. */
#define FIELD(n, v, t)                                                                             \
    {                                                                                              \
        .name = NJ_STR_INIT(n), .value = NJ_STR_INIT(v), .token = NJ__TOKEN_##t,                   \
    }

#define KNOWN(n, v, k)                                                                             \
    {                                                                                              \
        .name = NJ_STR_INIT(n), .value = NJ_STR_INIT(v),                                           \
        .token = NJ__TOKEN_HEADER_BASE + (uint8_t)NJ_HEADER_##k,                                   \
    }

/* An entry whose empty value is invalid for the field. */
#define EMPTY(n, t)                                                                                \
    {                                                                                              \
        .name = NJ_STR_INIT(n), .value = NJ_STR_INIT(""), .token = NJ__TOKEN_##t,                  \
        .malformed = true,                                                                         \
    }

const struct nj__hpack_field nj__hpack_static[NJ__HPACK_N_STATIC + 1] = {
    [1] = EMPTY(":authority", AUTHORITY),
    [2] = FIELD(":method", "GET", METHOD),
    [3] = FIELD(":method", "POST", METHOD),
    [4] = FIELD(":path", "/", PATH),
    [5] = FIELD(":path", "/index.html", PATH),
    [6] = FIELD(":scheme", "http", SCHEME),
    [7] = FIELD(":scheme", "https", SCHEME),
    [8] = FIELD(":status", "200", STATUS),
    [9] = FIELD(":status", "204", STATUS),
    [10] = FIELD(":status", "206", STATUS),
    [11] = FIELD(":status", "304", STATUS),
    [12] = FIELD(":status", "400", STATUS),
    [13] = FIELD(":status", "404", STATUS),
    [14] = FIELD(":status", "500", STATUS),
    [15] = FIELD("accept-charset", "", OTHER),
    [16] = KNOWN("accept-encoding", "gzip, deflate", ACCEPT_ENCODING),
    [17] = FIELD("accept-language", "", OTHER),
    [18] = FIELD("accept-ranges", "", OTHER),
    [19] = KNOWN("accept", "", ACCEPT),
    [20] = FIELD("access-control-allow-origin", "", OTHER),
    [21] = FIELD("age", "", OTHER),
    [22] = FIELD("allow", "", OTHER),
    [23] = FIELD("authorization", "", OTHER),
    [24] = FIELD("cache-control", "", OTHER),
    [25] = FIELD("content-disposition", "", OTHER),
    [26] = FIELD("content-encoding", "", OTHER),
    [27] = FIELD("content-language", "", OTHER),
    [28] = FIELD("content-length", "", CONTENT_LENGTH),
    [29] = FIELD("content-location", "", OTHER),
    [30] = FIELD("content-range", "", OTHER),
    [31] = FIELD("content-type", "", OTHER),
    [32] = FIELD("cookie", "", OTHER),
    [33] = FIELD("date", "", OTHER),
    [34] = FIELD("etag", "", OTHER),
    [35] = FIELD("expect", "", EXPECT),
    [36] = FIELD("expires", "", OTHER),
    [37] = FIELD("from", "", OTHER),
    [38] = EMPTY("host", HOST),
    [39] = KNOWN("if-match", "", IF_MATCH),
    [40] = KNOWN("if-modified-since", "", IF_MODIFIED_SINCE),
    [41] = KNOWN("if-none-match", "", IF_NONE_MATCH),
    [42] = KNOWN("if-range", "", IF_RANGE),
    [43] = KNOWN("if-unmodified-since", "", IF_UNMODIFIED_SINCE),
    [44] = FIELD("last-modified", "", OTHER),
    [45] = FIELD("link", "", OTHER),
    [46] = FIELD("location", "", OTHER),
    [47] = FIELD("max-forwards", "", OTHER),
    [48] = FIELD("proxy-authenticate", "", OTHER),
    [49] = FIELD("proxy-authorization", "", OTHER),
    [50] = KNOWN("range", "", RANGE),
    [51] = KNOWN("referer", "", REFERER),
    [52] = FIELD("refresh", "", OTHER),
    [53] = FIELD("retry-after", "", OTHER),
    [54] = FIELD("server", "", OTHER),
    [55] = FIELD("set-cookie", "", OTHER),
    [56] = FIELD("strict-transport-security", "", OTHER),
    [57] = FIELD("transfer-encoding", "", CONN_SPECIFIC),
    [58] = KNOWN("user-agent", "", USER_AGENT),
    [59] = FIELD("vary", "", OTHER),
    [60] = FIELD("via", "", OTHER),
    [61] = FIELD("www-authenticate", "", OTHER),
};

/* ---- tokens of names ---- */

static bool is(struct nj_str s, const char *literal)
{
    return nj__hpack_bytes_equal(s.p, literal, s.n_bytes);
}

static enum nj__token token_of_7(struct nj_str name)
{
    if (is(name, ":method"))
        return NJ__TOKEN_METHOD;
    if (is(name, ":scheme"))
        return NJ__TOKEN_SCHEME;
    if (is(name, ":status"))
        return NJ__TOKEN_STATUS;
    return is(name, "upgrade") ? NJ__TOKEN_CONN_SPECIFIC : NJ__TOKEN_OTHER;
}

static enum nj__token token_of_10(struct nj_str name)
{
    if (is(name, ":authority"))
        return NJ__TOKEN_AUTHORITY;
    if (is(name, "connection") || is(name, "keep-alive"))
        return NJ__TOKEN_CONN_SPECIFIC;
    return NJ__TOKEN_OTHER;
}

static enum nj__token token_by_length(struct nj_str name)
{
    switch (name.n_bytes) {
    case 2:
        return is(name, "te") ? NJ__TOKEN_TE : NJ__TOKEN_OTHER;
    case 4:
        return is(name, "host") ? NJ__TOKEN_HOST : NJ__TOKEN_OTHER;
    case 5:
        return is(name, ":path") ? NJ__TOKEN_PATH : NJ__TOKEN_OTHER;
    case 6:
        return is(name, "expect") ? NJ__TOKEN_EXPECT : NJ__TOKEN_OTHER;
    case 7:
        return token_of_7(name);
    case 8:
        return is(name, "priority") ? NJ__TOKEN_PRIORITY : NJ__TOKEN_OTHER;
    case 10:
        return token_of_10(name);
    case 14:
        return is(name, "content-length") ? NJ__TOKEN_CONTENT_LENGTH : NJ__TOKEN_OTHER;
    case 16:
        return is(name, "proxy-connection") ? NJ__TOKEN_CONN_SPECIFIC : NJ__TOKEN_OTHER;
    case 17:
        return is(name, "transfer-encoding") ? NJ__TOKEN_CONN_SPECIFIC : NJ__TOKEN_OTHER;
    default:
        return NJ__TOKEN_OTHER;
    }
}

uint8_t nj__hpack_token_of(struct nj_str name)
{
    enum nj__token token = token_by_length(name);

    if (token != NJ__TOKEN_OTHER)
        return (uint8_t)token;
    if (name.n_bytes > 0 && name.p[0] == ':')
        return NJ__TOKEN_PSEUDO_OTHER;
    enum nj_header known = nj_header_id_of_name(name);
    return known == NJ_N_HEADERS ? NJ__TOKEN_OTHER : (uint8_t)(NJ__TOKEN_HEADER_BASE + known);
}

/* ---- syntax of names and values ---- */

enum {
    N = 1,  /* names: tchar of RFC 9110 5.6.2 without upper case */
    V = 2,  /* values: RFC 9110 5.5 with obs-text, and HTAB */
    P = 4,  /* :path: VCHAR and obs-text */
    A = 8,  /* :authority and host: RFC 3986 3.2 */
    M = 16, /* :method: tchar */
    S = 32, /* :scheme: RFC 3986 3.1 */
};

static const uint8_t allowed_in[256] = {
    ['\t'] = V,
    [' '] = V,
    ['!'] = N | V | P | A | M,
    ['"'] = V | P,
    ['#'] = N | V | P | M,
    ['$' ... '\''] = N | V | P | A | M,
    ['(' ... ')'] = V | P | A,
    ['*'] = N | V | P | A | M,
    ['+'] = N | V | P | A | M | S,
    [','] = V | P | A,
    ['-' ... '.'] = N | V | P | A | M | S,
    ['/'] = V | P,
    ['0' ... '9'] = N | V | P | A | M | S,
    [':' ... ';'] = V | P | A,
    ['<'] = V | P,
    ['='] = V | P | A,
    ['>' ... '?'] = V | P,
    ['@'] = V | P | A, /* userinfo is for request_head.c to refuse */
    ['A' ... 'Z'] = V | P | A | M | S,
    ['['] = V | P | A,
    ['\\'] = V | P,
    [']'] = V | P | A,
    ['^'] = N | V | P | M,
    ['_'] = N | V | P | A | M,
    ['`'] = N | V | P | M,
    ['a' ... 'z'] = N | V | P | A | M | S,
    ['{'] = V | P,
    ['|'] = N | V | P | M,
    ['}'] = V | P,
    ['~'] = N | V | P | A | M,
    [0x80 ... 0xff] = V | P,
};

static bool consists_of(struct nj_str s, unsigned what)
{
    for (uint32_t i = 0; i < s.n_bytes; i++)
        if (!(allowed_in[(uint8_t)s.p[i]] & what))
            return false;
    return true;
}

#define REPEAT8(octet) (UINT64_C(0x0101010101010101) * (octet))

/* Not 0 if one of eight octets is below `least` or DEL. */
static uint64_t find_controls(const char *p, uint8_t least)
{
    uint64_t x, del;
    memcpy(&x, p, 8);
    del = x ^ REPEAT8(0x7f);
    return (((x - REPEAT8(least)) & ~x) | ((del - REPEAT8(1)) & ~del)) & REPEAT8(0x80);
}

/* Test eight octets at a time. All octets from `least` on except DEL are allowed by `what`; if any
 * other occurs, each octet is tested. */
static bool consists_of_fast(struct nj_str s, uint8_t least, unsigned what)
{
    if (s.n_bytes < 8)
        return consists_of(s, what);
    uint64_t found = find_controls(s.p + s.n_bytes - 8, least);
    for (uint32_t i = 0; i + 8 < s.n_bytes; i += 8)
        found |= find_controls(s.p + i, least);
    return found == 0 || consists_of(s, what);
}

bool nj__hpack_is_name_valid(struct nj_str name)
{
    if (name.n_bytes > 0 && name.p[0] == ':') {
        name.p++;
        name.n_bytes--;
    }
    return name.n_bytes > 0 && consists_of(name, N);
}

static bool is_value_valid(struct nj_str v)
{
    if (v.n_bytes == 0)
        return true;
    return !nj_is_ows(v.p[0]) && !nj_is_ows(v.p[v.n_bytes - 1]) && consists_of_fast(v, ' ', V);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool nj__hpack_is_value_valid(enum nj__token token, struct nj_str v)
{
    switch (token) {
    case NJ__TOKEN_METHOD:
        return v.n_bytes > 0 && consists_of(v, M);
    case NJ__TOKEN_SCHEME:
        return v.n_bytes > 0 && is_letter(v.p[0]) && consists_of(v, S);
    case NJ__TOKEN_PATH:
        return v.n_bytes > 0 && consists_of_fast(v, '!', P);
    case NJ__TOKEN_AUTHORITY:
    case NJ__TOKEN_HOST:
        return v.n_bytes > 0 && consists_of(v, A);
    case NJ__TOKEN_OTHER:
    case NJ__TOKEN_STATUS:
    case NJ__TOKEN_PSEUDO_OTHER:
    case NJ__TOKEN_CONTENT_LENGTH:
    case NJ__TOKEN_TE:
    case NJ__TOKEN_PRIORITY:
    case NJ__TOKEN_EXPECT:
    case NJ__TOKEN_CONN_SPECIFIC:
    case NJ__TOKEN_HEADER_BASE:
    default:
        return is_value_valid(v);
    }
}

/* ---- names of response fields ---- */

#define ROW(n, i, u)                                                                               \
    {                                                                                              \
        .name = (n), .n_bytes = sizeof(n) - 1, .index = (i), .use = NJ__HPACK_##u                  \
    }

/* Fields with NJ__HPACK_NO_INDEX differ between files or responses and would evict constant fields.
 */
const struct nj__hpack_name nj__hpack_names[] = {
    {.use = NJ__HPACK_INDEX_REPEATED},
    ROW(":status", 8, INDEX),
    ROW("age", 21, NO_INDEX),
    ROW("via", 60, INDEX),
    ROW("date", 33, INDEX_DATE),
    ROW("etag", 34, NO_INDEX),
    ROW("vary", 59, INDEX),
    ROW("link", 45, INDEX_REPEATED),
    ROW("allow", 22, INDEX),
    ROW("server", 54, INDEX),
    ROW("alt-svc", 0, INDEX),
    ROW("expires", 36, NO_INDEX),
    ROW("refresh", 52, INDEX_REPEATED),
    ROW("location", 46, NO_INDEX),
    ROW("set-cookie", 55, NEVER_INDEX),
    ROW("retry-after", 53, NO_INDEX),
    ROW("content-type", 31, INDEX),
    ROW("accept-ranges", 18, INDEX),
    ROW("last-modified", 44, NO_INDEX),
    ROW("cache-control", 24, INDEX),
    ROW("content-range", 30, NO_INDEX),
    ROW("content-length", 28, NO_INDEX),
    ROW("content-encoding", 26, INDEX),
    ROW("content-language", 27, INDEX),
    ROW("content-location", 29, NO_INDEX),
    ROW("www-authenticate", 61, INDEX),
    ROW("proxy-authenticate", 48, INDEX),
    ROW("content-disposition", 25, INDEX_REPEATED),
    ROW("strict-transport-security", 56, INDEX),
    ROW("access-control-allow-origin", 20, INDEX),
};

_Static_assert(NJ_ARRAY_LEN(nj__hpack_names) <= NJ__HPACK_NAME_BUCKETS,
               "arrays by row have room for all rows");

void nj__hpack_response_names_init(uint8_t row_by_bucket[NJ__HPACK_NAME_BUCKETS])
{
    for (uint8_t row = NJ__HPACK_ROW_STATUS + 1; row < NJ_ARRAY_LEN(nj__hpack_names); row++) {
        const struct nj__hpack_name *n = &nj__hpack_names[row];
        uint8_t *at =
            &row_by_bucket[nj__hpack_response_name_bucket((struct nj_str){n->name, n->n_bytes})];
        NJ_CHECK(*at == 0); /* the sum was chosen so */
        *at = row;
    }
}
