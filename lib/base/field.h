/* SPDX-License-Identifier: BSD-3-Clause */
/* Header fields, and response bytes on their way from their source to the peer. */
#ifndef NJ_BASE_FIELD_H
#define NJ_BASE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/ref.h"

/* A string that is not terminated. Whoever hands it out says how long it lives. */
struct nj_str {
    const char *p;
    uint32_t n_bytes;
};

/* For initialisers and arguments alike. */
#define NJ_STR_INIT(literal)                                                                       \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define NJ_STR(literal) ((struct nj_str)NJ_STR_INIT(literal))

static inline bool nj_str_eq(struct nj_str a, struct nj_str b)
{
    return a.n_bytes == b.n_bytes && memcmp(a.p, b.p, a.n_bytes) == 0;
}

static inline bool nj_str_begins(struct nj_str s, struct nj_str with)
{
    return s.n_bytes >= with.n_bytes && memcmp(s.p, with.p, with.n_bytes) == 0;
}

static inline char nj_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* As strncasecmp(), of ASCII letters alone, whatever the locale of the program is. */
static inline int nj_order_nocase(const char *a, const char *b, uint32_t n)
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

static inline bool nj_str_is_nocase(struct nj_str s, const char *word)
{
    return nj_str_eq_nocase(s, (struct nj_str){word, (uint32_t)strlen(word)});
}

/* Without spaces and tabs at its ends: OWS of RFC 9110 5.6.3. */
static inline struct nj_str nj_str_trim(struct nj_str s)
{
    while (s.n_bytes > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s.p++, s.n_bytes--;
    while (s.n_bytes > 0 && (s.p[s.n_bytes - 1] == ' ' || s.p[s.n_bytes - 1] == '\t'))
        s.n_bytes--;
    return s;
}

/* A decimal number, of digits alone: no sign, no blanks. False: it is none, or above 2^64 - 1. */
static inline bool nj_str_number(struct nj_str s, uint64_t *out)
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

#define NJ_DIGITS_MAX 20 /* of a uint64_t */

/* The decimal digits of `v`, in front of `end`. Returns where they begin. */
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

/* The first of that name, or NULL. */
static inline const struct nj_field *nj_field_find(const struct nj_field *fields, size_t n,
                                                   struct nj_str name)
{
    for (size_t i = 0; i < n; i++)
        if (nj_str_eq(fields[i].name, name))
            return &fields[i];
    return NULL;
}

/* Bytes that `ref` keeps alive. Whoever keeps the slice beyond the call that showed it takes a
 * reference. `ref` is NULL for bytes that live as long as the program. */
struct nj_slice {
    const uint8_t *data;
    uint32_t n_bytes;
    struct nj_ref *ref;
};

/*
 * Where the bytes of a response come from. Pulled, never pushed: a byte is asked for only when the
 * stream's window, the connection's window and the send queue have room for it.
 * Embedded as first member by its owner; used only on the shard that made it.
 */
struct nj_body {
    const struct nj_body_ops *ops;
    void
        *waiter; /* set by whoever asked and got nothing: its owner wakes it when bytes are there */
};

#define NJ_BODY_UNKNOWN UINT64_MAX

struct nj_body_ops {
    /* Show the next bytes without taking them. Returns
     *   > 0  that many bytes are in *out, at most `n_max` (n_max > 0)
     *     0  none at the moment: body->waiter is woken when there are some, or when it broke
     *   < 0  the source broke: the stream must end in an error.
     * Not called once every byte was taken. */
    int (*peek)(struct nj_body *, uint32_t n_max, struct nj_slice *out);
    /* Take `n_bytes`, at most what the last peek showed. */
    void (*advance)(struct nj_body *, uint32_t n_bytes);
    /* Bytes still to be taken: exact, or NJ_BODY_UNKNOWN until the end is known. When peek shows
     * nothing and this is 0, that was the end. */
    uint64_t (*remaining)(const struct nj_body *);
    /* The stream is done with the body, finished or not. Called exactly once. */
    void (*close)(struct nj_body *);
    /* Nobody will peek for a while: let go of what can be had again without much ado. Any time
     * before close, and no slice that was shown is looked at any more but those with a reference.
     * May be NULL. */
    void (*rest)(struct nj_body *);
};

#endif
