/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements nightjar/text.h: views, query strings (application/x-www-form-urlencoded), numbers and
 * JSON strings. Pure. */
#include <nightjar/text.h>
#include <string.h>

#include "base/json_escape_utf8.h"
#include "http/proto/field_value.h"

static struct nj_str str(struct nj_view v)
{
    return v.p ? (struct nj_str){v.p, v.n_bytes} : NJ_STR("");
}

static struct nj_view part(struct nj_str s, uint32_t from, uint32_t n)
{
    return (struct nj_view){n > 0 ? s.p + from : "", n};
}

/* Stores a result that the caller may not want. */
static void store(struct nj_view *to, struct nj_view v)
{
    if (to)
        *to = v;
}

struct nj_view nj_view_of(const char *text)
{
    return text ? (struct nj_view){text, (uint32_t)strnlen(text, UINT32_MAX)}
                : (struct nj_view){"", 0};
}

bool nj_view_is(struct nj_view v, const char *text)
{
    return text && nj_str_eq(str(v), str(nj_view_of(text)));
}

bool nj_view_is_nocase(struct nj_view v, const char *text)
{
    return text && nj_str_eq_nocase_cstr(str(v), text);
}

bool nj_view_begins(struct nj_view v, const char *text)
{
    return text && nj_str_starts_with(str(v), str(nj_view_of(text)));
}

bool nj_view_cut(struct nj_view v, char separator, struct nj_view *before, struct nj_view *after)
{
    struct nj_str s = str(v);
    const char *at = memchr(s.p, separator, s.n_bytes);
    uint32_t n = at ? (uint32_t)(at - s.p) : s.n_bytes;

    store(before, part(s, 0, n));
    store(after, part(s, n + 1, at ? s.n_bytes - n - 1 : 0));
    return at != NULL;
}

struct nj_view nj_view_trim(struct nj_view v)
{
    struct nj_str s = nj_str_trim(str(v));

    return (struct nj_view){s.p, s.n_bytes};
}

bool nj_query_next(struct nj_view *rest, struct nj_view *name, struct nj_view *value)
{
    while (rest && rest->p && rest->n_bytes > 0) {
        struct nj_view pair;
        nj_view_cut(*rest, '&', &pair, rest);
        if (pair.n_bytes > 0) {
            nj_view_cut(pair, '=', name, value);
            return true;
        }
    }
    return false;
}

/* Takes one decoded byte. */
static char next_byte(struct nj_str *s)
{
    int escaped = nj__percent_decode_byte(s->p, s->n_bytes);
    char c = escaped >= 0 ? (char)escaped : *s->p == '+' ? ' ' : *s->p;

    nj_str_skip(s, escaped >= 0 ? 3 : 1);
    return c;
}

static bool decodes_to(struct nj_str s, const char *text)
{
    while (s.n_bytes > 0 && *text && next_byte(&s) == *text)
        text++;
    return s.n_bytes == 0 && !*text;
}

bool nj_query_find(struct nj_view query, const char *name, struct nj_view *value)
{
    struct nj_view n, v;

    while (name && nj_query_next(&query, &n, &v))
        if (decodes_to(str(n), name)) {
            store(value, v);
            return true;
        }
    return false;
}

/* Terminates `out`, whether or not `n` bytes fit. */
static size_t ended(char *out, size_t n_out, size_t n)
{
    if (out && n_out > 0)
        out[n < n_out ? n : 0] = '\0';
    return n;
}

size_t nj_query_decode(struct nj_view encoded, char *out, size_t n_out)
{
    size_t n = 0;

    for (struct nj_str s = str(encoded); s.n_bytes > 0; n++) {
        char c = next_byte(&s);
        if (out && n < n_out)
            out[n] = c;
    }
    return ended(out, n_out, n);
}

bool nj_view_to_u64(struct nj_view v, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t n;

    if (!nj_str_parse_u64(str(v), &n) || n < min || n > max)
        return false;
    if (out)
        *out = n;
    return true;
}

bool nj_view_to_i64(struct nj_view v, int64_t min, int64_t max, int64_t *out)
{
    bool minus = nj_view_begins(v, "-");
    uint64_t n;

    if (!nj_view_to_u64(minus ? part(str(v), 1, v.n_bytes - 1) : v, 0, (uint64_t)INT64_MAX + minus,
                        &n))
        return false;
    int64_t i = (int64_t)(minus ? -n : n);
    if (i < min || i > max)
        return false;
    if (out)
        *out = i;
    return true;
}

size_t nj_u64_digits(uint64_t n, char *out)
{
    char digits[NJ_U64_DIGITS_MAX], *end = digits + sizeof digits,
                                    *p = nj_put_digits_backward(end, n);

    if (out)
        memcpy(out, p, (size_t)(end - p));
    return ended(out, NJ_U64_BYTES, (size_t)(end - p));
}

size_t nj_json_string(struct nj_view v, char *out, size_t n_out)
{
    bool has_room = out && n_out > 1;
    size_t n = nj_json_escape(has_room ? out + 1 : NULL, has_room ? n_out - 1 : 0, str(v),
                              NJ_JSON_REPLACE);

    if (out && n + 2 < n_out)
        out[0] = out[n + 1] = '"';
    return ended(out, n_out, n + 2);
}
