/* SPDX-License-Identifier: BSD-3-Clause */
/* A UTF-8 decoder (RFC 3629) and the escaping of JSON strings (RFC 8259 7). */
#include "base/json_escape_utf8.h"

uint32_t nj_utf8_next(struct nj_str *s)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *p = (const uint8_t *)s->p;
    size_t n = s->n_bytes;
    uint8_t b = p[0];
    size_t len = b < 0x80 ? 1 : b < 0xc0 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0;

    s->p++;
    s->n_bytes--;
    if (len == 1)
        return b;
    if (len == 0 || len > n)
        return NJ_UTF8_INVALID;
    uint32_t c = b & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return NJ_UTF8_INVALID;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return NJ_UTF8_INVALID;
    s->p += len - 1;
    s->n_bytes -= (uint32_t)len - 1;
    return c;
}

/* Take one character and write it. Control characters (C0, DEL, C1) and the line separators U+2028
 * and U+2029 are written as \u escapes: JSON forbids the first, terminals obey some of them. */
static size_t escape_next_char(struct nj_str *s, enum nj_json_invalid bad, char out[6])
{
    static const char hex[] = "0123456789abcdef";
    const char *p = s->p;
    uint32_t c = nj_utf8_next(s);
    size_t n = (size_t)(s->p - p);

    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    if (c == NJ_UTF8_INVALID && bad == NJ_JSON_REPLACE) {
        memcpy(out, "\xef\xbf\xbd", 3);
        return 3;
    }
    if (c == NJ_UTF8_INVALID) {
        c = (uint8_t)*p;
    } else if (c >= 0x20 && (c < 0x7f || c > 0x9f) && c != 0x2028 && c != 0x2029) {
        memcpy(out, p, n);
        return n;
    }
    out[0] = '\\';
    out[1] = 'u';
    for (uint32_t i = 2; i < 6; i++, c <<= 4)
        out[i] = hex[c >> 12 & 15];
    return 6;
}

size_t nj_json_escape(char *out, size_t n_out, struct nj_str s, enum nj_json_invalid bad)
{
    size_t n = 0;

    while (s.n_bytes > 0) {
        char one[6], c = *s.p;
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && n < n_out) { /* the common case */
            out[n++] = c;
            s.p++;
            s.n_bytes--;
            continue;
        }
        size_t n_one = escape_next_char(&s, bad, one);
        if (n + n_one <= n_out)
            memcpy(out + n, one, n_one);
        n += n_one;
    }
    return n;
}
