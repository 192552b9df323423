/* SPDX-License-Identifier: BSD-3-Clause */
/* Syntax of field names and values (RFC 9113 8.2.1, RFC 9110 5.1, 5.5). */
#include "base/field_syntax.h"
#include "h2/hpack/hpack_internal.h"

bool nj__hpack_is_name_valid(struct nj_str name)
{
    if (name.n_bytes > 0 && name.p[0] == ':') {
        name.p++;
        name.n_bytes--;
    }
    return name.n_bytes > 0 && nj_syntax_allows(name, NJ_IN_NAME);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool nj__hpack_is_value_valid(enum nj__token token, struct nj_str v)
{
    switch (token) {
    case NJ__TOKEN_METHOD:
        return v.n_bytes > 0 && nj_syntax_allows(v, NJ_IN_METHOD);
    case NJ__TOKEN_SCHEME:
        return v.n_bytes > 0 && is_letter(v.p[0]) && nj_syntax_allows(v, NJ_IN_SCHEME);
    case NJ__TOKEN_PATH:
        return v.n_bytes > 0 && nj_syntax_allows_fast(v, '!', NJ_IN_PATH);
    case NJ__TOKEN_AUTHORITY:
    case NJ__TOKEN_HOST:
        return v.n_bytes > 0 && nj_syntax_allows(v, NJ_IN_AUTHORITY);
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
        return nj_syntax_is_value(v);
    }
}
