/* SPDX-License-Identifier: BSD-3-Clause */
/* Which octets may occur in the names and values of fields, and in the parts of a request's target
 * (RFC 9110 5.1, 5.5, RFC 3986 3). Both framings use it. */
#pragma once

#include "base/str.h"

enum {
    NJ_IN_NAME = 1,      /* names: tchar of RFC 9110 5.6.2 without upper case */
    NJ_IN_VALUE = 2,     /* values: RFC 9110 5.5 with obs-text, and HTAB */
    NJ_IN_PATH = 4,      /* a path with query: VCHAR and obs-text */
    NJ_IN_AUTHORITY = 8, /* an authority, and Host: RFC 3986 3.2 */
    NJ_IN_METHOD = 16,   /* a method: tchar */
    NJ_IN_SCHEME = 32,   /* a scheme: RFC 3986 3.1 */
    NJ_IN_HOST = 64,     /* a registered name without percent-encoding: RFC 3986 3.2.2 */
};

extern const uint8_t nj_syntax_allowed_in[256];

/* Each octet may occur in `what`, one of NJ_IN_*. */
static inline bool nj_syntax_allows(struct nj_str s, unsigned what)
{
    for (uint32_t i = 0; i < s.n_bytes; i++)
        if (!(nj_syntax_allowed_in[(uint8_t)s.p[i]] & what))
            return false;
    return true;
}

#define NJ__REPEAT8(octet) (UINT64_C(0x0101010101010101) * (octet))

/* Not 0 if one of eight octets is below `least` or DEL. */
static inline uint64_t nj__find_controls(const char *p, uint8_t least)
{
    uint64_t x, del;
    memcpy(&x, p, 8);
    del = x ^ NJ__REPEAT8(0x7f);
    return (((x - NJ__REPEAT8(least)) & ~x) | ((del - NJ__REPEAT8(1)) & ~del)) & NJ__REPEAT8(0x80);
}

/* Test eight octets at a time. All octets from `least` on except DEL are allowed by `what`; if any
 * other occurs, each octet is tested. */
static inline bool nj_syntax_allows_fast(struct nj_str s, uint8_t least, unsigned what)
{
    if (s.n_bytes < 8)
        return nj_syntax_allows(s, what);
    uint64_t found = nj__find_controls(s.p + s.n_bytes - 8, least);
    for (uint32_t i = 0; i + 8 < s.n_bytes; i += 8)
        found |= nj__find_controls(s.p + i, least);
    return found == 0 || nj_syntax_allows(s, what);
}

/* uri-host [ ":" port ] (RFC 9110 7.2), without userinfo and with a host that is not empty. */
bool nj_syntax_is_authority(struct nj_str s);

/* Does an authority that is valid have a port that is not empty? */
static inline bool nj_syntax_has_port(struct nj_str authority)
{
    char last = authority.p[authority.n_bytes - 1];
    return last >= '0' && last <= '9' && memchr(authority.p, ':', authority.n_bytes);
}

/* Splits an http or https URI: the scheme in lower case, the authority, and the rest, which is
 * empty or begins with '/' or '?' and is not checked. False: it is none. */
bool nj_syntax_split_uri(struct nj_str uri, struct nj_str *scheme, struct nj_str *authority,
                         struct nj_str *rest);

/* A field's value, without OWS at either end. */
static inline bool nj_syntax_is_value(struct nj_str v)
{
    if (v.n_bytes == 0)
        return true;
    return !nj_is_ows(v.p[0]) && !nj_is_ows(v.p[v.n_bytes - 1]) &&
           nj_syntax_allows_fast(v, ' ', NJ_IN_VALUE);
}
