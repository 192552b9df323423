/* SPDX-License-Identifier: BSD-3-Clause */
/* The syntax of Host and of the authority of a target (RFC 9110 7.2, RFC 3986 3.2). */
#include "base/field_syntax.h"
#include "h1/h1_internal.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (nj_lower(c) >= 'a' && nj_lower(c) <= 'f');
}

/* reg-name or IPv4address, from `i` on. Returns where it ends, or 0. */
static uint32_t skip_name(struct nj_str s)
{
    uint32_t i = 0;

    for (; i < s.n_bytes && s.p[i] != ':'; i++) {
        if (s.p[i] == '[' || s.p[i] == ']' || s.p[i] == '@')
            return 0;
        if (s.p[i] == '%' && (s.n_bytes - i < 3 || !is_hex(s.p[i + 1]) || !is_hex(s.p[i + 2])))
            return 0;
    }
    return i;
}

/* IP-literal: the address is not parsed. Returns where it ends, or 0. */
static uint32_t skip_literal(struct nj_str s)
{
    uint32_t i = 1;

    while (i < s.n_bytes && (is_hex(s.p[i]) || s.p[i] == ':' || s.p[i] == '.'))
        i++;
    return i > 2 && i < s.n_bytes && s.p[i] == ']' ? i + 1 : 0;
}

bool nj__h1_is_authority(struct nj_str s)
{
    if (s.n_bytes == 0 || !nj_syntax_allows(s, NJ_IN_AUTHORITY))
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
