/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses Accept-Encoding and Accept, and selects a content coding or a media type by weight.
 * Follows RFC 9110 12.5.1 and 12.5.3. */
#include "http/proto/negotiate.h"

#include "base/field_list.h"
#include "http/proto/field_value.h"

#define Q_UNSET 0xffffu

const struct nj_str nj_coding_name[NJ_N_CODINGS + 1] = {
    [NJ_CODING_BR] = NJ_STR_INIT("br"),
    [NJ_CODING_ZSTD] = NJ_STR_INIT("zstd"),
    [NJ_CODING_GZIP] = NJ_STR_INIT("gzip"),
    [NJ_CODING_IDENTITY] = NJ_STR_INIT("identity"),
};

const struct nj_str nj_coding_suffix[NJ_N_CODINGS] = {
    [NJ_CODING_BR] = NJ_STR_INIT(".br"),
    [NJ_CODING_ZSTD] = NJ_STR_INIT(".zst"),
    [NJ_CODING_GZIP] = NJ_STR_INIT(".gz"),
};

static uint32_t coding_of(struct nj_str name)
{
    for (uint32_t i = 0; i <= NJ_CODING_IDENTITY; i++)
        if (nj_str_eq_nocase(name, nj_coding_name[i]))
            return i;
    return nj_str_eq_nocase_cstr(name, "x-gzip") ? NJ_CODING_GZIP : Q_UNSET; /* RFC 9110 8.4.1.3 */
}

struct nj_accepted_codings nj_accept_encoding_parse(struct nj_str value)
{
    struct nj_accepted_codings c;
    struct nj_str element, name;
    uint16_t q, others = Q_UNSET;

    for (uint32_t i = 0; i <= NJ_CODING_IDENTITY; i++)
        c.q[i] = Q_UNSET;
    while (nj_list_next(&value, &element)) {
        if (!nj__parse_weighted(element, &name, &q))
            continue;
        uint32_t i = coding_of(name);
        if (i != Q_UNSET)
            c.q[i] = c.q[i] == Q_UNSET || q > c.q[i] ? q : c.q[i];
        else if (nj_str_eq_nocase_cstr(name, "*"))
            others = q;
    }
    for (uint32_t i = 0; i <= NJ_CODING_IDENTITY; i++)
        if (c.q[i] == Q_UNSET)
            c.q[i] = others != Q_UNSET ? others : i == NJ_CODING_IDENTITY;
    return c;
}

uint32_t nj_coding_select(const struct nj_accepted_codings *c, uint8_t siblings)
{
    uint32_t best = NJ_CODING_IDENTITY;

    for (uint32_t i = 0; i < NJ_N_CODINGS; i++) {
        if (!(siblings & 1u << i) || c->q[i] == 0)
            continue;
        if (c->q[i] > c->q[best] || (best == NJ_CODING_IDENTITY && c->q[i] == c->q[best]))
            best = i;
    }
    return best;
}

/* The most specific media range so far that covers a type, and its weight. */
struct media_match {
    uint32_t precision; /* 0: none; 1: any type; 2: any subtype; 3: exact */
    uint16_t q;
};

static void match_media_range(struct media_match *m, struct nj_str name, uint16_t q,
                              const char *type, const char *kind)
{
    uint32_t precision = nj_str_eq_nocase_cstr(name, type)    ? 3
                         : nj_str_eq_nocase_cstr(name, kind)  ? 2
                         : nj_str_eq_nocase_cstr(name, "*/*") ? 1
                                                              : 0;
    if (precision > m->precision)
        *m = (struct media_match){precision, q};
}

bool nj_accept_prefers_json(struct nj_str value)
{
    struct media_match json = {0}, html = {0};
    struct nj_str element, name;
    uint16_t q;

    while (nj_list_next(&value, &element)) {
        if (!nj__parse_weighted(element, &name, &q))
            continue;
        match_media_range(&json, name, q, "application/json", "application/*");
        match_media_range(&html, name, q, "text/html", "text/*");
    }
    return json.q > html.q || (json.q > 0 && json.q == html.q && json.precision > html.precision);
}
