/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of fields. nj__hpack_token_of() gives the token of a request's field, which later code
 * compares instead of the name. nj__hpack_names[] says of each known field of a response how the
 * encoder indexes it (RFC 7541 6.2).
 */
#include "h2/hpack/hpack_internal.h"

#include "base/assert.h"

/* ---- tokens of names ---- */

static bool is_name(struct nj_str s, const char *literal)
{
    return nj__hpack_bytes_equal(s.p, literal, s.n_bytes);
}

static enum nj__token token_of_7(struct nj_str name)
{
    if (is_name(name, ":method"))
        return NJ__TOKEN_METHOD;
    if (is_name(name, ":scheme"))
        return NJ__TOKEN_SCHEME;
    if (is_name(name, ":status"))
        return NJ__TOKEN_STATUS;
    return is_name(name, "upgrade") ? NJ__TOKEN_CONN_SPECIFIC : NJ__TOKEN_OTHER;
}

static enum nj__token token_of_10(struct nj_str name)
{
    if (is_name(name, ":authority"))
        return NJ__TOKEN_AUTHORITY;
    if (is_name(name, "connection") || is_name(name, "keep-alive"))
        return NJ__TOKEN_CONN_SPECIFIC;
    return NJ__TOKEN_OTHER;
}

static enum nj__token token_by_length(struct nj_str name)
{
    switch (name.n_bytes) {
    case 2:
        return is_name(name, "te") ? NJ__TOKEN_TE : NJ__TOKEN_OTHER;
    case 4:
        return is_name(name, "host") ? NJ__TOKEN_HOST : NJ__TOKEN_OTHER;
    case 5:
        return is_name(name, ":path") ? NJ__TOKEN_PATH : NJ__TOKEN_OTHER;
    case 6:
        return is_name(name, "expect") ? NJ__TOKEN_EXPECT : NJ__TOKEN_OTHER;
    case 7:
        return token_of_7(name);
    case 8:
        return is_name(name, "priority") ? NJ__TOKEN_PRIORITY : NJ__TOKEN_OTHER;
    case 10:
        return token_of_10(name);
    case 14:
        return is_name(name, "content-length") ? NJ__TOKEN_CONTENT_LENGTH : NJ__TOKEN_OTHER;
    case 16:
        return is_name(name, "proxy-connection") ? NJ__TOKEN_CONN_SPECIFIC : NJ__TOKEN_OTHER;
    case 17:
        return is_name(name, "transfer-encoding") ? NJ__TOKEN_CONN_SPECIFIC : NJ__TOKEN_OTHER;
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
