/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/json_escape_utf8.h"
#include "ctl/format.h"
#include "top/top.h"

/* --- texts ---------------------------------------------------------------------------------- */

/* The next character, in the encoding of the locale. Returns its width in columns, 1 or 2. */
static unsigned next_character(struct nj_str *s, char out[MB_LEN_MAX + 1])
{
    uint32_t code = nj_utf8_next(s);
    int width = ctl_is_shown(code) ? wcwidth((wchar_t)code) : -1;
    mbstate_t state = {0};
    size_t n = width > 0 ? wcrtomb(out, (wchar_t)code, &state) : (size_t)-1;

    if (n == (size_t)-1) {
        strcpy(out, "?");
        return 1;
    }
    out[n] = '\0';
    return (unsigned)width;
}

static size_t width_of(struct nj_str s)
{
    char one[MB_LEN_MAX + 1];
    size_t width = 0;

    while (s.n_bytes > 0)
        width += next_character(&s, one);
    return width;
}

static void put_spaces(FILE *out, size_t n)
{
    fprintf(out, "%*s", (int)n, "");
}

/* The beginning, in `width` columns. */
static void put_beginning(FILE *out, struct nj_str s, unsigned width)
{
    char one[MB_LEN_MAX + 1];

    while (s.n_bytes > 0) {
        unsigned n = next_character(&s, one);
        if (n > width)
            break;
        fputs(one, out);
        width -= n;
    }
    put_spaces(out, width);
}

void top_put_cell(FILE *out, const char *text, unsigned width, enum top_align align)
{
    struct nj_str s = {text, (uint32_t)strnlen(text, UINT32_MAX)};
    char one[MB_LEN_MAX + 1];
    size_t n = width_of(s);

    if (width == 0)
        return;
    if (n <= width) {
        put_spaces(out, align == TOP_RIGHT ? width - n : 0);
        put_beginning(out, s, align == TOP_RIGHT ? (unsigned)n : width);
    } else if (align == TOP_LEFT_KEEP_END) {
        while (n > width - 1)
            n -= next_character(&s, one);
        fputc('<', out);
        put_beginning(out, s, width - 1);
    } else {
        put_beginning(out, s, width - 1);
        fputc('>', out);
    }
}

/* --- numbers -------------------------------------------------------------------------------- */

/* With a prefix of SI, three digits or more. */
static void format_si(double n, const char *unit, int decimals, char text[TOP_NUMBER_BYTES])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t i = 0;

    if (fabs(n) >= 1e21) {
        snprintf(text, TOP_NUMBER_BYTES, "%.0e%s%s", n, *unit ? " " : "", unit);
        return;
    }
    while (fabs(n) >= 1000 && i + 1 < sizeof prefixes / sizeof prefixes[0]) {
        n /= 1000;
        i++;
    }
    snprintf(text, TOP_NUMBER_BYTES, "%.*f %s%s", i > 0 ? decimals : 0, n, prefixes[i], unit);
}

void top_format_count(double n, char text[TOP_NUMBER_BYTES])
{
    if (n < 1e7)
        snprintf(text, TOP_NUMBER_BYTES, "%.0f", n);
    else
        format_si(n, "", 1, text);
}

void top_format_per_s(double n, char text[TOP_NUMBER_BYTES])
{
    if (n > 0 && n < 9.95)
        snprintf(text, TOP_NUMBER_BYTES, "%.1f", n);
    else
        top_format_count(n, text);
}

void top_format_bits(double n, char text[TOP_NUMBER_BYTES])
{
    format_si(n, "bit/s", 2, text);
}

void top_format_seconds(double s, char text[TOP_NUMBER_BYTES])
{
    unsigned long long n = s < 1e12 ? (unsigned long long)s : 1000000000000ull;

    if (n < 60)
        snprintf(text, TOP_NUMBER_BYTES, "%llus", n);
    else if (n < 3600)
        snprintf(text, TOP_NUMBER_BYTES, "%llum%02llus", n / 60, n % 60);
    else if (n < 86400)
        snprintf(text, TOP_NUMBER_BYTES, "%lluh%02llum", n / 3600, n / 60 % 60);
    else
        snprintf(text, TOP_NUMBER_BYTES, "%llud%02lluh", n / 86400, n / 3600 % 24);
}
