/* SPDX-License-Identifier: BSD-3-Clause */
/* Header fields, and response bytes on their way from their source to the peer. */
#ifndef NJ_BASE_FIELD_H
#define NJ_BASE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/ref.h"

/* A string without a terminating zero. Each function documents how long its results are valid. */
struct nj_str {
    const char *p;
    uint32_t n_bytes;
};

/* NJ_STR_INIT is for initialisers, NJ_STR for expressions. */
#define NJ_STR_INIT(literal)                                                                       \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define NJ_STR(literal) ((struct nj_str)NJ_STR_INIT(literal))

static inline bool nj_str_eq(struct nj_str a, struct nj_str b)
{
    return a.n_bytes == b.n_bytes && memcmp(a.p, b.p, a.n_bytes) == 0;
}

static inline bool nj_str_starts_with(struct nj_str s, struct nj_str with)
{
    return s.n_bytes >= with.n_bytes && memcmp(s.p, with.p, with.n_bytes) == 0;
}

static inline char nj_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* As strncasecmp() in the C locale: only ASCII letters are folded. */
static inline int nj_strncasecmp(const char *a, const char *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int order = (uint8_t)nj_lower(a[i]) - (uint8_t)nj_lower(b[i]);
        if (order != 0 || !a[i])
            return order;
    }
    return 0;
}

static inline bool nj_str_eq_nocase(struct nj_str a, struct nj_str b)
{
    if (a.n_bytes != b.n_bytes)
        return false;
    for (uint32_t i = 0; i < a.n_bytes; i++)
        if (nj_lower(a.p[i]) != nj_lower(b.p[i]))
            return false;
    return true;
}

static inline bool nj_str_eq_nocase_cstr(struct nj_str s, const char *word)
{
    return nj_str_eq_nocase(s, (struct nj_str){word, (uint32_t)strlen(word)});
}

/* OWS of RFC 9110 5.6.3 */
static inline bool nj_is_ows(char c)
{
    return c == ' ' || c == '\t';
}

/* Remove leading and trailing OWS. */
static inline struct nj_str nj_str_trim(struct nj_str s)
{
    while (s.n_bytes > 0 && nj_is_ows(s.p[0]))
        s.p++, s.n_bytes--;
    while (s.n_bytes > 0 && nj_is_ows(s.p[s.n_bytes - 1]))
        s.n_bytes--;
    return s;
}

/* Remove the next word from `line`. Spaces, tabs and CR separate words. False at the end. */
static inline bool nj_str_next_word(struct nj_str *line, struct nj_str *word)
{
    while (line->n_bytes > 0 && (nj_is_ows(*line->p) || *line->p == '\r'))
        line->p++, line->n_bytes--;
    *word = (struct nj_str){line->p, 0};
    while (line->n_bytes > 0 && !nj_is_ows(*line->p) && *line->p != '\r')
        line->p++, line->n_bytes--, word->n_bytes++;
    return word->n_bytes > 0;
}

/* Parse a decimal number: digits only, no sign, no blanks. False if malformed or above 2^64 - 1. */
static inline bool nj_str_parse_u64(struct nj_str s, uint64_t *out)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < s.n_bytes; i++) {
        unsigned digit = (unsigned)(uint8_t)s.p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    if (s.n_bytes == 0)
        return false;
    *out = v;
    return true;
}

#define NJ_U64_DIGITS_MAX 20 /* decimal digits of UINT64_MAX */

/* Write the decimal digits of `v` so that they end before `end`. Returns the first digit. */
static inline char *nj_put_digits(char *end, uint64_t v)
{
    do {
        *--end = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    return end;
}

struct nj_field {
    struct nj_str name, value; /* name in lower case (RFC 9113 8.2) */
};

/* The first field of this name, or NULL. */
static inline const struct nj_field *nj_field_find(const struct nj_field *fields, size_t n,
                                                   struct nj_str name)
{
    for (size_t i = 0; i < n; i++)
        if (nj_str_eq(fields[i].name, name))
            return &fields[i];
    return NULL;
}

/* Bytes that `ref` keeps alive. To keep a slice after the call that returned it, take a reference.
 * `ref` is NULL for bytes with static lifetime. */
struct nj_slice {
    const uint8_t *data;
    uint32_t n_bytes;
    struct nj_ref *ref;
};

/*
 * The source of a response body. The consumer pulls: it asks for a byte only when the stream's
 * window, the connection's window and the send queue have room for it.
 * The owner embeds it as first member. Used only on the shard that created it.
 */
struct nj_body {
    const struct nj_body_ops *ops;
    void *waiter; /* set by a consumer whose peek got nothing; the owner wakes it for new bytes */
};

#define NJ_BODY_LEN_UNKNOWN UINT64_MAX

struct nj_body_ops {
    /* Return the next bytes without consuming them.
     *   > 0  the number of bytes in *out, at most `n_max` (n_max > 0)
     *     0  none yet: body->waiter is woken when there are some, or on an error
     *   < 0  error: the stream must be reset.
     * Not called after the last byte was consumed. */
    int (*peek)(struct nj_body *, uint32_t n_max, struct nj_slice *out);
    /* Consume `n_bytes`, at most the result of the last peek. */
    void (*advance)(struct nj_body *, uint32_t n_bytes);
    /* Bytes not yet consumed: exact, or NJ_BODY_LEN_UNKNOWN until the end is known. 0 after a peek
     * that returned 0 means the end of the body. */
    uint64_t (*remaining)(const struct nj_body *);
    /* The stream no longer needs the body, complete or not. Called exactly once. */
    void (*close)(struct nj_body *);
    /* The consumer will not peek for a while: release buffers that are cheap to get again. Called
     * at any time before close. Afterwards the consumer uses only slices that it holds a reference
     * to. May be NULL. */
    void (*rest)(struct nj_body *);
};

#endif
