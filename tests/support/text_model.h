/* SPDX-License-Identifier: BSD-3-Clause */
/* The required results of nightjar/text.h for any bytes, against independent models. Each check
 * returns NULL, or the error. `n` is at most TEXT_MODEL_MAX. */
#pragma once

#include <ctype.h>
#include <errno.h>
#include <nightjar/text.h>
#include <stdlib.h>
#include <string.h>

#include "support/access_check.h"

#define TEXT_MODEL_MAX 512

static inline struct nj_view text_view(const void *p, size_t n)
{
    return (struct nj_view){(const char *)p, (uint32_t)n};
}

typedef size_t text_writer(struct nj_view v, char *out, size_t n_out);

/* The writer gives `want` with enough room, and "" with less; it writes nothing behind `n_out`. */
static inline const char *text_check_writer(text_writer *write, struct nj_view v, const char *want,
                                            size_t n_want, size_t n_out)
{
    static char out[6 * TEXT_MODEL_MAX + 16];

    memset(out, '#', n_want + 16);
    if (write(v, n_out > 0 ? out : NULL, n_out) != n_want)
        return "the length is wrong";
    for (size_t i = n_out; i < n_want + 16; i++)
        if (out[i] != '#')
            return "it wrote behind the buffer";
    if (n_out > n_want)
        return memcmp(out, want, n_want) != 0 ? "the text is wrong"
               : out[n_want] != '\0'          ? "no NUL ends it"
                                              : NULL;
    return n_out > 0 && out[0] != '\0' ? "a part of the text is left" : NULL;
}

static inline const char *text_check_rooms(text_writer *write, struct nj_view v, const char *want,
                                           size_t n_want)
{
    const size_t rooms[] = {0, 1, 2, 3, n_want / 2, n_want - 1, n_want, n_want + 1, n_want + 9};
    const char *bad = NULL;

    for (size_t i = n_want > 0 ? 0 : 6; !bad && i < sizeof rooms / sizeof rooms[0]; i++)
        bad = text_check_writer(write, v, want, n_want, rooms[i]);
    return bad;
}

/* WHATWG URL standard 5.1 and 1.3: first each '+', then each escape. */
static inline size_t text_model_decode(const uint8_t *p, size_t n, char *out)
{
    char spaced[TEXT_MODEL_MAX + 3] = {0};
    size_t n_out = 0;

    for (size_t i = 0; i < n; i++)
        spaced[i] = p[i] == '+' ? ' ' : (char)p[i];
    for (size_t i = 0; i < n; i++) {
        char digits[3] = {spaced[i + 1], i + 2 < n ? spaced[i + 2] : '\0', '\0'};
        if (spaced[i] == '%' && isxdigit((uint8_t)digits[0]) && isxdigit((uint8_t)digits[1])) {
            out[n_out++] = (char)strtoul(digits, NULL, 16);
            i += 2;
        } else {
            out[n_out++] = spaced[i];
        }
    }
    return n_out;
}

static inline const char *text_check_decode(const uint8_t *p, size_t n)
{
    char want[TEXT_MODEL_MAX];
    size_t n_want = text_model_decode(p, n, want);

    return text_check_rooms(nj_query_decode, text_view(p, n), want, n_want);
}

/* The first pair of this name, found by its place in the query. */
static inline const char *text_check_find(const uint8_t *p, size_t n, const uint8_t *name_p,
                                          size_t n_name)
{
    char name[TEXT_MODEL_MAX + 1], other[TEXT_MODEL_MAX];
    size_t n_decoded = text_model_decode(name_p, n_name, name);
    struct nj_view value = {"unchanged", 9}, first, v, rest = text_view(p, n);

    name[n_decoded] = '\0';
    if (memchr(name, '\0', n_decoded)) /* no C string has it */
        return NULL;
    if (!nj_query_find(text_view(p, n), name, &value))
        return "a name is not found";
    while (nj_query_next(&rest, &first, &v)) {
        size_t n_other = text_model_decode((const uint8_t *)first.p, first.n_bytes, other);
        if (n_other == n_decoded && memcmp(other, name, n_other) == 0)
            return v.p == value.p && v.n_bytes == value.n_bytes ? NULL : "not the first is found";
    }
    return "no pair has the name";
}

static inline const char *text_check_query(const uint8_t *p, size_t n)
{
    struct nj_view rest = text_view(p, n), name, value;

    for (size_t at = 0; at < n;) {
        size_t end = at, is = at;
        while (end < n && p[end] != '&')
            end++;
        while (is < end && p[is] != '=')
            is++;
        if (end > at) {
            size_t n_value = is < end ? end - is - 1 : 0;
            if (!nj_query_next(&rest, &name, &value))
                return "a pair is lost";
            if (name.n_bytes != is - at || memcmp(name.p, p + at, is - at) != 0)
                return "the name is wrong";
            if (value.n_bytes != n_value ||
                (n_value > 0 && memcmp(value.p, p + is + 1, n_value) != 0))
                return "the value is wrong";
            const char *bad = text_check_find(p, n, p + at, is - at);
            if (bad)
                return bad;
        }
        at = end + 1;
    }
    return nj_query_next(&rest, &name, &value) ? "there is a pair too many" : NULL;
}

/* RFC 8259 7, back to the bytes it is of. */
static inline const char *text_unquote(const char *text, size_t n, char *out, size_t *n_out)
{
    struct access_reader r = {(const uint8_t *)text, (const uint8_t *)text + n};
    const char *bad = access_skip_string(&r);

    *n_out = 0;
    if (bad || r.p != r.end)
        return bad ? bad : "there is something behind the string";
    for (size_t i = 1; i < n - 1; i++) {
        if (text[i] != '\\') {
            out[(*n_out)++] = text[i];
        } else if (text[++i] != 'u') {
            out[(*n_out)++] = text[i];
        } else {
            char digits[5] = {text[i + 1], text[i + 2], text[i + 3], text[i + 4], '\0'};
            unsigned c = (unsigned)strtoul(digits, NULL, 16);
            i += 4;
            if (c >= 0x800) {
                out[(*n_out)++] = (char)(0xe0 | c >> 12);
                out[(*n_out)++] = (char)(0x80 | (c >> 6 & 0x3f));
            } else if (c >= 0x80) {
                out[(*n_out)++] = (char)(0xc0 | c >> 6);
            }
            out[(*n_out)++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
        }
    }
    return NULL;
}

static inline const char *text_check_json(const uint8_t *p, size_t n)
{
    static char json[NJ_JSON_STRING_BYTES(TEXT_MODEL_MAX)], back[6 * TEXT_MODEL_MAX],
        want[3 * TEXT_MODEL_MAX];
    struct access_reader r = {p, p + n};
    size_t n_want = 0, n_back, n_json;

    while (r.p < r.end) {
        const uint8_t *from = r.p;
        if (access_skip_utf8(&r)) {
            memcpy(want + n_want, from, (size_t)(r.p - from));
            n_want += (size_t)(r.p - from);
        } else {
            memcpy(want + n_want, "\xef\xbf\xbd", 3);
            n_want += 3;
            r.p++;
        }
    }
    n_json = nj_json_string(text_view(p, n), json, NJ_JSON_STRING_BYTES(n));
    if (n_json >= NJ_JSON_STRING_BYTES(n))
        return "NJ_JSON_STRING_BYTES() is too small";
    const char *bad = text_unquote(json, n_json, back, &n_back);
    if (bad)
        return bad;
    if (n_back != n_want || memcmp(back, want, n_want) != 0)
        return "the JSON string is of another text";
    return text_check_rooms(nj_json_string, text_view(p, n), json, n_json);
}

/* Against strtoull() and strtoll(), which accept more than a number. */
static inline const char *text_check_number(const uint8_t *p, size_t n)
{
    char text[TEXT_MODEL_MAX + 1];
    uint64_t u = 7;
    int64_t i = 7;

    memcpy(text, p, n);
    text[n] = '\0';
    bool minus = text[0] == '-';
    bool digits = n > minus && strspn(text + minus, "0123456789") == n - minus;
    errno = 0;
    uint64_t want_u = strtoull(text, NULL, 10);
    bool is_u = digits && !minus && errno == 0;
    errno = 0;
    int64_t want_i = strtoll(text, NULL, 10);
    bool is_i = digits && errno == 0;
    if (nj_view_to_u64(text_view(p, n), 0, UINT64_MAX, &u) != is_u || u != (is_u ? want_u : 7))
        return "the unsigned number is wrong";
    if (nj_view_to_i64(text_view(p, n), INT64_MIN, INT64_MAX, &i) != is_i ||
        i != (is_i ? want_i : 7))
        return "the signed number is wrong";
    return NULL;
}

static inline const char *text_check(const uint8_t *p, size_t n)
{
    const char *bad = text_check_decode(p, n);

    bad = bad ? bad : text_check_query(p, n);
    bad = bad ? bad : text_check_json(p, n);
    return bad ? bad : text_check_number(p, n);
}
