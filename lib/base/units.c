/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse and print numbers with units, independent of the locale. Contract: units.h. */
#include "base/units.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* A unit, and its size in multiples of the first unit of its table. */
struct unit {
    const char *name;
    double factor;
};

static const struct unit byte_units[] = {
    {"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
static const struct unit second_units[] = {{"", 1},     {"s", 1},     {"ms", 0.001}, {"m", 60},
                                           {"h", 3600}, {"d", 86400}, {NULL, 0}};
static const struct unit rate_units[] = {{"", 1},
                                         {"B/s", 1},
                                         {"KiB/s", 1024},
                                         {"MiB/s", 1048576},
                                         {"bit/s", 1.0 / 8},
                                         {"kbit/s", 125},
                                         {"Mbit/s", 125e3},
                                         {"Gbit/s", 125e6},
                                         {"GiB/s", 1073741824},
                                         {NULL, 0}};

/* Select the C locale, which has "." as decimal point. Returns the thread's previous locale. */
static locale_t use_c_locale(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static bool parse_quantity(const char *text, const struct unit *units, double *out)
{
    char *end;

    /* strtod() alone would take white space, signs, 0x10, inf and nan. */
    if (strspn(text, "0123456789.") == 0 || (text[0] == '0' && (text[1] | 0x20) == 'x'))
        return false;
    locale_t locale = use_c_locale();
    errno = 0;
    *out = strtod(text, &end);
    uselocale(locale);
    if (end == text || errno || !isfinite(*out))
        return false;
    for (const struct unit *u = units; u->name; u++) {
        if (strcmp(end, u->name) == 0) {
            *out *= u->factor;
            return true;
        }
    }
    return false;
}

bool nj_parse_seconds(const char *text, double *out)
{
    return parse_quantity(text, second_units, out);
}

bool nj_parse_bytes(const char *text, uint64_t *out)
{
    double q;

    if (!parse_quantity(text, byte_units, &q) || q > NJ_BYTES_MAX)
        return false;
    *out = (uint64_t)q;
    return true;
}

bool nj_parse_rate(const char *text, uint64_t *out)
{
    double q;

    if (!parse_quantity(text, rate_units, &q) || q < 1 || q > (double)NJ_RATE_MAX)
        return false;
    *out = (uint64_t)q;
    return true;
}

bool nj_lacks_unit(const char *text)
{
    return text[strspn(text, "0123456789.")] == '\0' && strpbrk(text, "123456789");
}

/* `n` in the largest of four units that divides it; each unit is `step` times the one before. *u is
 * set to the index of that unit. */
static uint64_t largest_exact_unit(uint64_t n, uint64_t step, size_t *u)
{
    for (*u = 0; *u < 3 && n >= step && n % step == 0; (*u)++)
        n /= step;
    return n;
}

static const char *const shown_bytes[] = {"B", "KiB", "MiB", "GiB"};
static const char *const shown_bits[] = {"bit", "kbit", "Mbit", "Gbit"};

void nj_format_bytes(uint64_t n, char *text, size_t n_text)
{
    size_t u;
    uint64_t in = largest_exact_unit(n, 1024, &u);

    snprintf(text, n_text, "%llu%s", (unsigned long long)in, shown_bytes[u]);
}

void nj_format_rate(uint64_t n, char *text, size_t n_text)
{
    size_t u, u_bits;
    uint64_t in = largest_exact_unit(n, 1024, &u), bits = largest_exact_unit(8 * n, 1000, &u_bits);
    bool as_bits = bits < in;

    snprintf(text, n_text, "%llu%s/s", (unsigned long long)(as_bits ? bits : in),
             as_bits ? shown_bits[u_bits] : shown_bytes[u]);
}

void nj_format_double(double number, char *text, size_t n_text)
{
    locale_t locale = use_c_locale();

    snprintf(text, n_text, "%.15g", number);
    uselocale(locale);
}

void nj_format_seconds(double seconds, char *text, size_t n_text)
{
    bool is_long = seconds >= 1;
    bool hours = seconds >= 3600 && seconds < 1e9 && seconds == (double)(uint64_t)seconds &&
                 (uint64_t)seconds % 3600 == 0;

    nj_format_double(hours ? seconds / 3600 : is_long ? seconds : seconds * 1000, text, n_text);
    size_t n = strlen(text);
    snprintf(text + n, n_text - n, "%s", hours ? "h" : is_long ? "s" : "ms");
}

bool nj_parse_decimal(const char *text, uint64_t *out)
{
    struct nj_str s = {text, (uint32_t)strnlen(text, UINT32_MAX)};

    return s.n_bytes <= 18 && nj_str_parse_u64(s, out);
}

/* "22:00": two digits each. 24:00 is the end of the day. */
static bool parse_hh_mm(const char *t, uint16_t *out)
{
    for (unsigned i = 0; i < 5; i++)
        if (i == 2 ? t[i] != ':' : t[i] < '0' || t[i] > '9')
            return false;
    unsigned h = (unsigned)(t[0] - '0') * 10 + (unsigned)(t[1] - '0');
    unsigned m = (unsigned)(t[3] - '0') * 10 + (unsigned)(t[4] - '0');
    *out = (uint16_t)(h * 60 + m);
    return m < 60 && *out <= 1440;
}

bool nj_parse_time_range(const char *text, uint16_t out[2])
{
    return strlen(text) == 11 && text[5] == '-' && parse_hh_mm(text, &out[0]) &&
           parse_hh_mm(text + 6, &out[1]) && out[0] != out[1] && out[0] < 1440;
}
