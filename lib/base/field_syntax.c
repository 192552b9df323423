/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of octets, and the syntax of authorities. Contract: field_syntax.h. */
#include "base/field_syntax.h"

#include "base/compiler.h"

const uint8_t nj_syntax_allowed_in[256] = {
    ['\t'] = NJ_IN_VALUE,
    [' '] = NJ_IN_VALUE,
    ['!'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD,
    ['"'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['#'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['$'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD,
    ['%'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD,
    ['&' ... '\''] =
        NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD,
    ['(' ... ')'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST,
    ['*'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD,
    ['+'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD |
            NJ_IN_SCHEME,
    [','] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST,
    ['-' ... '.'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST |
                    NJ_IN_METHOD | NJ_IN_SCHEME,
    ['/'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['0' ... '9'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST |
                    NJ_IN_METHOD | NJ_IN_SCHEME,
    [':'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    [';'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST,
    ['<'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['='] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST,
    ['>' ... '?'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['@'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY, /* userinfo is for the framings to refuse */
    ['A' ... 'Z'] =
        NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD | NJ_IN_SCHEME,
    ['['] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['\\'] = NJ_IN_VALUE | NJ_IN_PATH,
    [']'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['^'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['_'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD,
    ['`'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['a' ... 'z'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST |
                    NJ_IN_METHOD | NJ_IN_SCHEME,
    ['{'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['|'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['}'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['~'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_HOST | NJ_IN_METHOD,
    [0x80 ... 0xff] = NJ_IN_VALUE | NJ_IN_PATH,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* reg-name or IPv4address. Returns where it ends. */
static uint32_t skip_name(struct nj_str s)
{
    uint32_t i = 0;

    while (i < s.n_bytes) {
        if (nj_likely(nj_syntax_allowed_in[(uint8_t)s.p[i]] & NJ_IN_HOST))
            i++;
        else if (s.p[i] == '%' && s.n_bytes - i > 2 && nj_hex_value(s.p[i + 1]) >= 0 &&
                 nj_hex_value(s.p[i + 2]) >= 0)
            i += 3;
        else
            break;
    }
    return i;
}

/* IP-literal: the address is not parsed. Returns where it ends, or 0. */
static uint32_t skip_literal(struct nj_str s)
{
    uint32_t i = 1;

    while (i < s.n_bytes && (nj_hex_value(s.p[i]) >= 0 || s.p[i] == ':' || s.p[i] == '.'))
        i++;
    return i > 2 && i < s.n_bytes && s.p[i] == ']' ? i + 1 : 0;
}

bool nj_syntax_is_authority(struct nj_str s)
{
    if (s.n_bytes == 0)
        return false;
    uint32_t i = s.p[0] == '[' ? skip_literal(s) : skip_name(s);
    if (i == 0 || i == s.n_bytes)
        return i > 0;
    if (s.p[i] != ':')
        return false;
    while (++i < s.n_bytes)
        if (!is_digit(s.p[i]))
            return false;
    return true;
}

/* The schemes http and https in any case (RFC 9110 4.2.1, 4.2.2, 4.2.3). */
static bool take_scheme(struct nj_str *uri, const char *prefix, struct nj_str *scheme)
{
    uint32_t n = (uint32_t)strlen(prefix);

    if (uri->n_bytes < n || nj_strncasecmp(uri->p, prefix, n) != 0)
        return false;
    *scheme = (struct nj_str){prefix, n - 3}; /* without "://" */
    nj_str_skip(uri, n);
    return true;
}

bool nj_syntax_split_uri(struct nj_str uri, struct nj_str *scheme, struct nj_str *authority,
                         struct nj_str *rest)
{
    if (!take_scheme(&uri, "http://", scheme) && !take_scheme(&uri, "https://", scheme))
        return false;
    *rest = uri;
    while (rest->n_bytes > 0 && rest->p[0] != '/' && rest->p[0] != '?')
        nj_str_skip(rest, 1);
    *authority = (struct nj_str){uri.p, uri.n_bytes - rest->n_bytes};
    return nj_syntax_is_authority(*authority);
}
