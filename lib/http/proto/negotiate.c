/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses Accept-Encoding and Accept, and selects a content coding or a media type by weight.
 * Follows RFC 9110 12.5.1 and 12.5.3. */
#include "http/proto/negotiate.h"

#include "http/proto/field_value.h"

#define UNSAID 0xffffu

static uint32_t coding_of(struct nj_str name)
{
    static const char *const names[] = {
        [NJ_CODING_BR] = "br",
        [NJ_CODING_ZSTD] = "zstd",
        [NJ_CODING_GZIP] = "gzip",
        [NJ_NO_CODING] = "identity",
    };
    for (uint32_t i = 0; i <= NJ_NO_CODING; i++)
        if (nj_str_is_nocase(name, names[i]))
            return i;
    return nj_str_is_nocase(name, "x-gzip") ? NJ_CODING_GZIP : UNSAID; /* RFC 9110 8.4.1.3 */
}

struct nj_codings nj_codings_parse(struct nj_str value)
{
    struct nj_codings c;
    struct nj_str element, name;
    uint16_t q, others = UNSAID;

    for (uint32_t i = 0; i <= NJ_NO_CODING; i++)
        c.q[i] = UNSAID;
    while (nj__list_next(&value, &element)) {
        if (!nj__weighted(element, &name, &q))
            continue;
        uint32_t i = coding_of(name);
        if (i != UNSAID)
            c.q[i] = c.q[i] == UNSAID || q > c.q[i] ? q : c.q[i];
        else if (nj_str_is_nocase(name, "*"))
            others = q;
    }
    for (uint32_t i = 0; i <= NJ_NO_CODING; i++)
        if (c.q[i] == UNSAID)
            c.q[i] = others != UNSAID ? others : i == NJ_NO_CODING;
    return c;
}

uint32_t nj_codings_pick(const struct nj_codings *c, uint8_t siblings)
{
    uint32_t best = NJ_NO_CODING;

    for (uint32_t i = 0; i < NJ_N_CODINGS; i++) {
        if (!(siblings & 1u << i) || c->q[i] == 0)
            continue;
        if (c->q[i] > c->q[best] || (best == NJ_NO_CODING && c->q[i] == c->q[best]))
            best = i;
    }
    return best;
}

struct nj_str nj_coding_name(uint32_t coding)
{
    static const struct nj_str names[] = {
        [NJ_CODING_BR] = NJ_STR_INIT("br"),
        [NJ_CODING_ZSTD] = NJ_STR_INIT("zstd"),
        [NJ_CODING_GZIP] = NJ_STR_INIT("gzip"),
    };
    return names[coding];
}

struct nj_str nj_coding_suffix(uint32_t coding)
{
    static const struct nj_str suffixes[] = {
        [NJ_CODING_BR] = NJ_STR_INIT(".br"),
        [NJ_CODING_ZSTD] = NJ_STR_INIT(".zst"),
        [NJ_CODING_GZIP] = NJ_STR_INIT(".gz"),
    };
    return suffixes[coding];
}

/* The most specific media range so far that covers a type, and its weight. */
struct match {
    uint32_t precision; /* 0: none; 1: any type; 2: any subtype; 3: exact */
    uint16_t q;
};

static void consider(struct match *m, struct nj_str name, uint16_t q, const char *type,
                     const char *kind)
{
    uint32_t precision = nj_str_is_nocase(name, type)    ? 3
                         : nj_str_is_nocase(name, kind)  ? 2
                         : nj_str_is_nocase(name, "*/*") ? 1
                                                         : 0;
    if (precision > m->precision)
        *m = (struct match){precision, q};
}

bool nj_accept_json(struct nj_str value)
{
    struct match json = {0}, html = {0};
    struct nj_str element, name;
    uint16_t q;

    while (nj__list_next(&value, &element)) {
        if (!nj__weighted(element, &name, &q))
            continue;
        consider(&json, name, q, "application/json", "application/*");
        consider(&html, name, q, "text/html", "text/*");
    }
    return json.q > html.q || (json.q > 0 && json.q == html.q && json.precision > html.precision);
}
