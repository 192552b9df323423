/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings without a terminating zero, and decimal numbers in them. ASCII only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* Remove `n` bytes from the front. */
static inline void nj_str_skip(struct nj_str *s, uint32_t n)
{
    s->p += n;
    s->n_bytes -= n;
}

/* Split `rest` at the first `mark`: *part gets the bytes before it, `rest` keeps those behind it.
 * False: there is no mark; *part gets all of `rest`. */
static inline bool nj_str_cut(struct nj_str *rest, char mark, struct nj_str *part)
{
    const char *at = memchr(rest->p, mark, rest->n_bytes);

    *part = (struct nj_str){rest->p, at ? (uint32_t)(at - rest->p) : rest->n_bytes};
    nj_str_skip(rest, part->n_bytes + (at != NULL));
    return at != NULL;
}

/* Write the string. Returns where it ends. */
static inline uint8_t *nj_str_put(uint8_t *to, struct nj_str s)
{
    if (s.n_bytes > 0)
        memcpy(to, s.p, s.n_bytes);
    return to + s.n_bytes;
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

/* The value of a hexadecimal digit, or -1. */
static inline int nj_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = nj_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#define NJ_U64_DIGITS_MAX 20 /* decimal digits of UINT64_MAX */

/* Write the decimal digits of `v` so that they end before `end`. Returns the first digit. */
static inline char *nj_put_digits_backward(char *end, uint64_t v)
{
    do {
        *--end = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    return end;
}

/* The decimal digits of `v`, in `digits`. */
static inline struct nj_str nj_str_of_u64(char digits[NJ_U64_DIGITS_MAX], uint64_t v)
{
    char *end = digits + NJ_U64_DIGITS_MAX, *p = nj_put_digits_backward(end, v);
    return (struct nj_str){p, (uint32_t)(end - p)};
}
