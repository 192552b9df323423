/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/json_string.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The character at `p`, where `n` bytes are, and how many of them it has (RFC 3629 4). A byte that
 * is no UTF-8 is taken for the character of that number: mostly it is ISO 8859-1. */
static uint32_t utf8(const uint8_t *p, size_t n, size_t *n_char)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t b = p[0];
    size_t len = b < 0x80 ? 1 : b < 0xc0 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0;

    *n_char = 1;
    if (len < 2 || len > n)
        return b;
    uint32_t c = b & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return b;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return b;
    *n_char = len;
    return c;
}

static char *put_u(char *to, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";

    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = hex[c >> shift & 15];
    return to;
}

/* Written as \u: what JSON does not allow within a string, what is no character of its own in the
 * source, and what terminals obey or some readers take for the end of a line. */
char *nj_json_string(char *to, const void *from, size_t n)
{
    const uint8_t *p = from;

    *to++ = '"';
    while (n > 0) {
        size_t n_char;
        uint32_t c = utf8(p, n, &n_char);
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
        } else if (control || (c >= 0x80 && n_char == 1)) {
            to = put_u(to, c);
        } else {
            memcpy(to, p, n_char);
            to += n_char;
        }
        p += n_char;
        n -= n_char;
    }
    *to++ = '"';
    return to;
}
