/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets, checks, formats and compares fields of a configuration by name, as option_table.c has them.
 */
#include "config/config_by_name.h"

#include <stdio.h>
#include <string.h>

#include "base/set_error.h"
#include "base/units.h"
#include "config/policy_file.h"

static const struct nj_option *find_option(const char *name)
{
    for (uint32_t i = 0; name && i < nj_n_options; i++)
        if (nj_option_has_field(&nj_options[i]) && strcmp(nj_options[i].name, name) == 0)
            return &nj_options[i];
    return NULL;
}

const struct nj_option *nj_config_file_option_at(uint32_t i)
{
    for (uint32_t k = 0; k < nj_n_options; k++)
        if (nj_options[k].section && !nj_options[k].in_policy &&
            nj_option_has_field(&nj_options[k]) && i-- == 0)
            return &nj_options[k];
    return NULL;
}

static void put(const struct nj_option *o, void *at, uint64_t value)
{
    memcpy(at, &value, o->width); /* little endian */
}

static bool in_range(const struct nj_option *o, double value)
{
    return (value >= o->min && value <= o->max) || (value == 0 && o->may_be_zero);
}

/* Append a value to a list. */
static bool append_value(const struct nj_option *o, const char **list, const char *value)
{
    uint32_t n = nj_config_count_values(list, (uint32_t)o->max);

    if (n == (uint32_t)o->max)
        return false;
    list[n] = value;
    return true;
}

int nj_config_word_index(const char *words, const char *value)
{
    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");
        if (strlen(value) == n && memcmp(words, value, n) == 0)
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}

bool nj_option_parse_number(const struct nj_option *o, const char *value, double *out)
{
    uint64_t n = 0;

    if (o->kind == NJ_OPTION_TIME)
        return nj_parse_seconds(value, out) && !nj_lacks_unit(value) && in_range(o, *out);
    if (o->kind == NJ_OPTION_WORD) {
        int word = nj_config_word_index(o->expected, value);
        *out = o->min + word;
        return word >= 0;
    }
    bool ok = o->kind == NJ_OPTION_RATE   ? nj_parse_rate(value, &n)
              : o->kind == NJ_OPTION_SIZE ? nj_parse_bytes(value, &n)
                                          : nj_parse_decimal(value, &n);
    *out = (double)n;
    return ok && (o->kind == NJ_OPTION_NUMBER || !nj_lacks_unit(value)) && in_range(o, *out);
}

static bool put_value(const struct nj_option *o, struct nj_server_config *c, const char *value)
{
    void *at = (char *)c + o->offset;
    double number;

    if (o->kind == NJ_OPTION_TEXT)
        memcpy(at, &value, sizeof value);
    else if (o->kind == NJ_OPTION_LIST)
        return append_value(o, at, value);
    else if (o->kind == NJ_OPTION_SWITCH)
        *(bool *)at = true;
    else if (o->may_be_none && strcmp(value, "none") == 0)
        put(o, at, UINT64_MAX);
    else if (!nj_option_parse_number(o, value, &number))
        return false;
    else if (o->kind == NJ_OPTION_TIME)
        memcpy(at, &number, sizeof number);
    else
        put(o, at, (uint64_t)number);
    return true;
}

/* "a, b or c" from "a|b|c". */
static void format_words(const char *words, char *text, size_t n_text)
{
    const char *last = strrchr(words, '|');
    size_t at = 0;

    for (const char *p = words; *p && at + 8 < n_text; p++) {
        const char *as = *p != '|' ? NULL : p == last ? " or " : ", ";
        at += (size_t)snprintf(text + at, n_text - at, as ? "%s" : "%.1s", as ? as : p);
    }
    text[at] = '\0';
}

/* A number without a unit, with one. The option takes it, or the text is "". */
static void add_unit(const struct nj_option *o, const char *number, char *text, size_t n_text)
{
    static const char *const units[][3] = {[NJ_OPTION_SIZE] = {"B", "MiB", "KiB"},
                                           [NJ_OPTION_RATE] = {"B/s"},
                                           [NJ_OPTION_TIME] = {"s", "ms"}};
    double ignored;
    size_t from = o->kind == NJ_OPTION_SIZE && strlen(number) < 4 ? 1 : 0; /* few are no bytes */

    for (size_t i = from; i < 3 && units[o->kind][i]; i++) {
        snprintf(text, n_text, "%.24s%s", number, units[o->kind][i]);
        if (nj_option_parse_number(o, text, &ignored))
            return;
    }
    text[0] = '\0';
}

void nj_option_format_expected(const struct nj_option *o, const char *value, char *text,
                               size_t n_text)
{
    const char *none = o->may_be_none ? ", or none" : o->may_be_zero ? ", or 0" : "";
    char range[64];

    if (value && o->kind >= NJ_OPTION_SIZE && o->kind <= NJ_OPTION_TIME && nj_lacks_unit(value)) {
        add_unit(o, value, range, sizeof range);
        if (range[0]) {
            snprintf(text, n_text, "a unit, e.g. %s", range);
            return;
        }
    }

    nj_option_format_range(o, range, sizeof range);
    if (o->kind == NJ_OPTION_WORD)
        format_words(o->expected, text, n_text);
    else if (o->kind == NJ_OPTION_LIST)
        snprintf(text, n_text, "at most %u of them", (unsigned)o->max);
    else if (o->kind == NJ_OPTION_RATE || !range[0]) /* NJ_RATE_SYNTAX has the range */
        snprintf(text, n_text, "%s%s", o->expected, none);
    else
        snprintf(text, n_text, "%s%s%s%s", o->expected,
                 o->kind == NJ_OPTION_NUMBER ? " from " : ", ", range, none);
}

int nj_server_config_takes(const char *name)
{
    const struct nj_option *o = find_option(name);
    return o ? nj_option_takes_value(o) : -1;
}

static const char *name_at(void *ctx, uint32_t i)
{
    const char *const *more = ctx;

    for (uint32_t k = 0; k < nj_n_options; k++)
        if (nj_option_has_field(&nj_options[k]) && i-- == 0)
            return nj_options[k].name;
    return more ? more[i] : NULL;
}

const char *nj_server_config_near(const char *name, const char *const *more)
{
    return name ? nj__policy_closest_name(name, name_at, (void *)(uintptr_t)more) : NULL;
}

/* Of set_by_name: options alone have one. */
static uint32_t bit_of(const struct nj_option *option)
{
    uint32_t n = 0;

    for (const struct nj_option *o = nj_options; o < option; o++)
        n += nj_option_has_field(o);
    return n;
}

int nj_server_config_set(struct nj_server_config *c, const char *name, const char *value, char *why,
                         size_t n)
{
    const struct nj_option *o = find_option(name);
    char expected[160];

    if (!c || !name)
        return nj_set_error(why, n, "%s is NULL", c ? "name" : "config");
    if (!o)
        return nj_set_error(why, n, "--%s: there is no such option", name);
    if (!value && o->kind != NJ_OPTION_SWITCH)
        return nj_set_error(why, n, "--%s: expected a value", name);
    if (put_value(o, c, value)) {
        uint32_t i = bit_of(o);
        if (c->size_bytes >= sizeof *c) /* an older program's struct lacks the field */
            c->set_by_name[i / 64] |= 1ull << i % 64;
        return 0;
    }
    nj_option_format_expected(o, value, expected, sizeof expected);
    return nj_set_error(why, n, "--%s %s: expected %s", name, value, expected);
}

static bool texts_equal(const char *const *a, const char *const *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!a[i] || !b[i] ? a[i] != b[i] : strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static bool fields_equal(const struct nj_option *o, const struct nj_server_config *a,
                         const struct nj_server_config *b)
{
    const void *x = (const char *)a + o->offset, *y = (const char *)b + o->offset;

    return o->kind == NJ_OPTION_TEXT   ? texts_equal(x, y, 1)
           : o->kind == NJ_OPTION_LIST ? texts_equal(x, y, (size_t)o->max)
                                       : memcmp(x, y, o->width) == 0;
}

static bool is_zero(const struct nj_server_config *c, const struct nj_option *o)
{
    static const struct nj_server_config zero;

    return fields_equal(o, c, &zero);
}

bool nj_config_differs(const struct nj_server_config *c, const struct nj_option *o)
{
    struct nj_server_config defaults;

    nj_server_config_init(&defaults);
    return !fields_equal(o, c, &defaults);
}

static bool is_set(const struct nj_server_config *c, const struct nj_option *o)
{
    uint32_t i = bit_of(o);

    return c->set_by_name[i / 64] >> i % 64 & 1 || nj_config_differs(c, o);
}

bool nj_config_is_set(const struct nj_server_config *config, const char *name)
{
    const struct nj_option *o = find_option(name);
    return o && is_set(config, o);
}

static uint64_t load_number(const struct nj_option *o, const void *at)
{
    uint64_t v8 = 0;

    memcpy(&v8, at, o->width); /* little endian */
    return v8;
}

static double value_of(const struct nj_option *o, const void *at)
{
    double seconds;

    if (o->kind != NJ_OPTION_TIME)
        return (double)load_number(o, at);
    memcpy(&seconds, at, sizeof seconds);
    return seconds;
}

static bool is_none(const struct nj_option *o, const void *at)
{
    return o->may_be_none && load_number(o, at) == UINT64_MAX >> (64 - 8 * o->width);
}

int nj_config_check_ranges(const struct nj_server_config *config, char *why, size_t n)
{
    struct nj_server_config defaults;
    char expected[160];

    nj_server_config_init(&defaults);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->kind <= NJ_OPTION_SWITCH)
            continue;
        const void *at = (const char *)config + o->offset;
        bool is_left_out = is_zero(config, o) && is_zero(&defaults, o);
        if (is_left_out || is_none(o, at) || in_range(o, value_of(o, at)))
            continue;
        nj_option_format_expected(o, NULL, expected, sizeof expected);
        return nj_set_error(why, n, "--%s: expected %s", o->name, expected);
    }
    return 0;
}

bool nj_config_format_option(const struct nj_server_config *config, const char *name, char *text,
                             size_t n)
{
    const struct nj_option *o = find_option(name);
    const void *at = o ? (const char *)config + o->offset : NULL;
    const char *const *list = at;
    size_t put = 0;

    if (!o || (is_zero(config, o) && !is_set(config, o)))
        return false;
    if (is_none(o, at))
        snprintf(text, n, "none");
    else if (o->kind == NJ_OPTION_SWITCH)
        snprintf(text, n, "yes");
    else if (o->kind > NJ_OPTION_SWITCH)
        nj_option_format_value(o, value_of(o, at), text, n);
    else
        for (size_t i = 0;
             i < (o->kind == NJ_OPTION_LIST ? (size_t)o->max : 1) && list[i] && put < n; i++)
            put += (size_t)snprintf(text + put, n - put, "%s%s", i ? ", " : "", list[i]);
    return true;
}

void nj_config_fill_unset_from_file(struct nj_server_config *c, const struct nj_server_config *file)
{
    const struct nj_option *o;

    for (uint32_t i = 0; (o = nj_config_file_option_at(i)); i++)
        if (!is_set(c, o))
            memcpy((char *)c + o->offset, (const char *)file + o->offset, o->width);
}

bool nj_config_needs_restart(const struct nj_option *o, const struct nj_server_config *from,
                             const struct nj_server_config *to)
{
    bool is_taken = o->reload == NJ_RELOAD_TAKES ||
                    (o->reload == NJ_RELOAD_VALUE && is_zero(from, o) == is_zero(to, o));
    return !is_taken && !fields_equal(o, from, to);
}

int nj_config_set_file_option(struct nj_server_config *c, const char *name, const char *value,
                              char *why, size_t n)
{
    const struct nj_option *o = find_option(name);

    if (o->kind == NJ_OPTION_SWITCH) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
            return nj_set_error(why, n, "yes or no");
        *(bool *)((char *)c + o->offset) = value[0] == 'y';
        return 0;
    }
    if (put_value(o, c, value))
        return 0;
    nj_option_format_expected(o, value, why, n);
    return -1;
}
