/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers for people: tables with aligned columns. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_escape_utf8.h"
#include "ctl/ctl.h"
#include "ctl/format.h"

#define COLUMNS_MAX 64u
#define CELL_BYTES  160u

/* --- values --------------------------------------------------------------------------------- */

static bool is_scalar(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

/* Of a scalar; "-" for others. */
static void format_value(const json_t *value, enum ctl_unit unit, char text[CELL_BYTES])
{
    json_int_t n = json_integer_value(value);

    if (json_is_string(value))
        snprintf(text, CELL_BYTES, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(text, CELL_BYTES, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_real(value))
        snprintf(text, CELL_BYTES, "%g", json_real_value(value));
    else if (!json_is_integer(value))
        snprintf(text, CELL_BYTES, "-");
    else if (unit == CTL_BYTES || unit == CTL_BYTES_PER_S)
        ctl_format_bytes((double)n, unit == CTL_BYTES ? "" : "/s", text, CELL_BYTES);
    else if (unit == CTL_MS)
        snprintf(text, CELL_BYTES, "%.3f s", (double)n / 1000);
    else
        snprintf(text, CELL_BYTES, "%" JSON_INTEGER_FORMAT, n);
}

void ctl_print_text(FILE *out, const char *text)
{
    struct nj_str s = {text, (uint32_t)strlen(text)};

    while (s.n_bytes > 0) {
        const char *one = s.p;
        uint32_t code = nj_utf8_next(&s);
        if (code == '\n' || ctl_is_shown(code))
            fwrite(one, 1, (size_t)(s.p - one), out);
        else
            fputc('?', out);
    }
}

/* Characters of UTF-8 and invalid bytes, as if each were a column wide. */
static size_t width_of(const char *text)
{
    struct nj_str s = {text, (uint32_t)strlen(text)};
    size_t n = 0;

    for (; s.n_bytes > 0; n++)
        nj_utf8_next(&s);
    return n;
}

static void print_spaces(FILE *out, size_t n)
{
    fprintf(out, "%*s", (int)n, "");
}

/* --- tables --------------------------------------------------------------------------------- */

/* Adds the keys of an object that are not there yet. Their values may be lists or objects: these
 * are no columns. */
static size_t add_keys(json_t *object, struct ctl_column columns[COLUMNS_MAX], size_t n)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (i < n && strcmp(columns[i].key, key) != 0)
            i++;
        if (i == n && n < COLUMNS_MAX && is_scalar(value))
            columns[n++] = (struct ctl_column){key, key, CTL_PLAIN};
    }
    return n;
}

/* Is the value aligned to the right? */
static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

static void print_cell(FILE *out, const char *text, size_t width, bool right, bool is_last)
{
    size_t n = width_of(text), pad = n < width ? width - n : 0;

    if (right)
        print_spaces(out, pad);
    ctl_print_text(out, text);
    if (!is_last)
        print_spaces(out, (right ? 0 : pad) + 2);
}

static void print_rows(FILE *out, json_t *list, const struct ctl_column *columns, size_t n,
                       size_t indent)
{
    size_t width[COLUMNS_MAX], i;
    bool right[COLUMNS_MAX] = {0};
    char text[CELL_BYTES];
    json_t *row;

    for (size_t k = 0; k < n; k++) {
        width[k] = width_of(columns[k].title);
        json_array_foreach(list, i, row)
        {
            const json_t *value = json_object_get(row, columns[k].key);
            format_value(value, columns[k].unit, text);
            size_t w = width_of(text);
            width[k] = w > width[k] ? w : width[k];
            right[k] = right[k] || is_number(value);
        }
    }
    print_spaces(out, indent);
    for (size_t k = 0; k < n; k++)
        print_cell(out, columns[k].title, width[k], right[k], k + 1 == n);
    fputc('\n', out);
    json_array_foreach(list, i, row)
    {
        print_spaces(out, indent);
        for (size_t k = 0; k < n; k++) {
            format_value(json_object_get(row, columns[k].key), columns[k].unit, text);
            print_cell(out, text, width[k], right[k], k + 1 == n);
        }
        fputc('\n', out);
    }
}

static void print_table(FILE *out, json_t *list, const struct ctl_column *columns, size_t n,
                        size_t indent)
{
    struct ctl_column all[COLUMNS_MAX];
    json_t *row;
    size_t i;

    if (!columns) {
        n = 0;
        json_array_foreach(list, i, row)
        {
            n = add_keys(row, all, n);
        }
        columns = all;
    }
    if (json_array_size(list) > 0)
        print_rows(out, list, columns, n, indent);
}

void ctl_print_table(FILE *out, json_t *list, const struct ctl_column *columns, size_t n)
{
    print_table(out, list, columns, n, 0);
}

/* --- anything ------------------------------------------------------------------------------- */

#define DEPTH_MAX 8u

/* Is it an object of scalars, of which several make a table? */
static bool is_row(json_t *value)
{
    const char *key;
    json_t *one;

    if (!json_is_object(value))
        return false;
    json_object_foreach(value, key, one)
    {
        if (!is_scalar(one))
            return false;
    }
    return true;
}

/* A list of the members that are rows, each with its name as the value of "". */
static json_t *rows_of(json_t *object)
{
    json_t *rows = json_array(), *value;
    const char *key;

    json_object_foreach(object, key, value)
    {
        if (!is_row(value))
            continue;
        json_t *row = json_object();
        json_object_set_new(row, "", json_string(key));
        json_object_update(row, value);
        json_array_append_new(rows, row);
    }
    return rows;
}

static void print_scalar(FILE *out, const json_t *value)
{
    char text[CELL_BYTES];

    format_value(value, CTL_PLAIN, text);
    ctl_print_text(out, json_is_string(value) ? json_string_value(value) : text);
}

/* A list whose members are no objects. */
static void print_scalars(FILE *out, json_t *list)
{
    json_t *value;
    size_t i;

    json_array_foreach(list, i, value)
    {
        fputs(i > 0 ? ", " : "", out);
        print_scalar(out, value);
    }
    fputs(json_array_size(list) > 0 ? "\n" : "none\n", out);
}

/* The width of the names of values that stand in one line. */
static size_t names_width(json_t *object)
{
    const char *key;
    json_t *value;
    size_t width = 0;

    json_object_foreach(object, key, value)
    {
        size_t n = width_of(key);
        if (!json_is_object(value) && n > width)
            width = n;
    }
    return width;
}

static void print_object(FILE *out, json_t *object, size_t depth);

/* A value that has lines below its name. */
static void print_block(FILE *out, const char *name, json_t *value, size_t depth)
{
    json_t *first = json_array_get(value, 0);

    ctl_print_text(out, name);
    fputc('\n', out);
    if (json_is_object(value))
        print_object(out, value, depth + 1);
    else if (json_array_size(value) == 1) /* it may be wide */
        print_object(out, first, depth + 1);
    else
        print_table(out, value, NULL, 0, 2 * depth + 2);
}

static void print_object(FILE *out, json_t *object, size_t depth)
{
    json_t *rows = rows_of(object), *value;
    bool has_table = json_array_size(rows) > 1;
    size_t width = names_width(object);
    const char *key;

    json_object_foreach(object, key, value)
    {
        if ((has_table && is_row(value)) || depth > DEPTH_MAX)
            continue;
        print_spaces(out, 2 * depth);
        if (json_is_object(value) || json_is_object(json_array_get(value, 0))) {
            print_block(out, key, value, depth);
            continue;
        }
        print_cell(out, key, width, false, false);
        if (json_is_array(value)) {
            print_scalars(out, value);
        } else {
            print_scalar(out, value);
            fputc('\n', out);
        }
    }
    if (has_table)
        print_table(out, rows, NULL, 0, 2 * depth);
    json_decref(rows);
}

void ctl_print_object(FILE *out, json_t *object)
{
    print_object(out, object, 0);
}
