/* SPDX-License-Identifier: BSD-3-Clause */
/* Syntax of field names and values (RFC 9113 8.2.1, RFC 9110 5.1, 5.5). */
#include "h2/hpack/hpack_internal.h"

enum {
    IN_NAME = 1,      /* names: tchar of RFC 9110 5.6.2 without upper case */
    IN_VALUE = 2,     /* values: RFC 9110 5.5 with obs-text, and HTAB */
    IN_PATH = 4,      /* :path: VCHAR and obs-text */
    IN_AUTHORITY = 8, /* :authority and host: RFC 3986 3.2 */
    IN_METHOD = 16,   /* :method: tchar */
    IN_SCHEME = 32,   /* :scheme: RFC 3986 3.1 */
};

static const uint8_t allowed_in[256] = {
    ['\t'] = IN_VALUE,
    [' '] = IN_VALUE,
    ['!'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD,
    ['"'] = IN_VALUE | IN_PATH,
    ['#'] = IN_NAME | IN_VALUE | IN_PATH | IN_METHOD,
    ['$' ... '\''] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD,
    ['(' ... ')'] = IN_VALUE | IN_PATH | IN_AUTHORITY,
    ['*'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD,
    ['+'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD | IN_SCHEME,
    [','] = IN_VALUE | IN_PATH | IN_AUTHORITY,
    ['-' ... '.'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD | IN_SCHEME,
    ['/'] = IN_VALUE | IN_PATH,
    ['0' ... '9'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD | IN_SCHEME,
    [':' ... ';'] = IN_VALUE | IN_PATH | IN_AUTHORITY,
    ['<'] = IN_VALUE | IN_PATH,
    ['='] = IN_VALUE | IN_PATH | IN_AUTHORITY,
    ['>' ... '?'] = IN_VALUE | IN_PATH,
    ['@'] = IN_VALUE | IN_PATH | IN_AUTHORITY, /* userinfo is for request_head.c to refuse */
    ['A' ... 'Z'] = IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD | IN_SCHEME,
    ['['] = IN_VALUE | IN_PATH | IN_AUTHORITY,
    ['\\'] = IN_VALUE | IN_PATH,
    [']'] = IN_VALUE | IN_PATH | IN_AUTHORITY,
    ['^'] = IN_NAME | IN_VALUE | IN_PATH | IN_METHOD,
    ['_'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD,
    ['`'] = IN_NAME | IN_VALUE | IN_PATH | IN_METHOD,
    ['a' ... 'z'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD | IN_SCHEME,
    ['{'] = IN_VALUE | IN_PATH,
    ['|'] = IN_NAME | IN_VALUE | IN_PATH | IN_METHOD,
    ['}'] = IN_VALUE | IN_PATH,
    ['~'] = IN_NAME | IN_VALUE | IN_PATH | IN_AUTHORITY | IN_METHOD,
    [0x80 ... 0xff] = IN_VALUE | IN_PATH,
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
    return name.n_bytes > 0 && consists_of(name, IN_NAME);
}

static bool is_value_valid(struct nj_str v)
{
    if (v.n_bytes == 0)
        return true;
    return !nj_is_ows(v.p[0]) && !nj_is_ows(v.p[v.n_bytes - 1]) &&
           consists_of_fast(v, ' ', IN_VALUE);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool nj__hpack_is_value_valid(enum nj__token token, struct nj_str v)
{
    switch (token) {
    case NJ__TOKEN_METHOD:
        return v.n_bytes > 0 && consists_of(v, IN_METHOD);
    case NJ__TOKEN_SCHEME:
        return v.n_bytes > 0 && is_letter(v.p[0]) && consists_of(v, IN_SCHEME);
    case NJ__TOKEN_PATH:
        return v.n_bytes > 0 && consists_of_fast(v, '!', IN_PATH);
    case NJ__TOKEN_AUTHORITY:
    case NJ__TOKEN_HOST:
        return v.n_bytes > 0 && consists_of(v, IN_AUTHORITY);
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
