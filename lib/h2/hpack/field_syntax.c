/* SPDX-License-Identifier: BSD-3-Clause */
/* Syntax of field names and values (RFC 9113 8.2.1, RFC 9110 5.1, 5.5). */
#include "h2/hpack/hpack_internal.h"

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
