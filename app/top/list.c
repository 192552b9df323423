/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"
#include "top/top.h"

/* --- the panels ----------------------------------------------------------------------------- */

static const struct top_column classes[] = {
    {"name", "CLASS", TOP_TEXT, 12, 32, false},
    {"open", "OPEN", TOP_COUNT, 7, 0, false},
    {"waiting", "WAITING", TOP_COUNT, 7, 0, false},
    {"bytes_per_s", "RATE", TOP_BYTES_PER_S, 12, 0, false},
    {"limit", "LIMIT", TOP_LIMIT, 11, 0, false},
    {"requests_per_s", "REQ/S", TOP_PER_S, 7, 0, false},
    {"refused_per_s", "REFUSED/S", TOP_PER_S, 9, 0, false},
    {"refused", "REFUSED", TOP_COUNT, 8, 0, false},
    {"client_rate", "PER CLIENT", TOP_LIMIT, 11, 0, false},
    {"request_rate", "PER REQUEST", TOP_LIMIT, 11, 0, false},
    {"streams", "STREAMS", TOP_LIMIT, 7, 0, false},
    {"requests", "REQUESTS", TOP_COUNT, 8, 0, false},
    {"bytes", "SENT", TOP_BYTES, 10, 0, false},
    {"throttled_ms", "THROTTLED", TOP_MS, 9, 0, false},
};

static const struct top_column clients[] = {
    {"client", "CLIENT", TOP_TEXT, 24, 43, false},
    {"bytes_per_s", "RATE", TOP_BYTES_PER_S, 12, 0, false},
    {"bytes", "SENT", TOP_BYTES, 10, 0, false},
    {"streams", "STREAMS", TOP_COUNT, 7, 0, false},
    {"connections", "CONNS", TOP_COUNT, 7, 0, false},
    {"requests_per_s", "REQ/S", TOP_PER_S, 7, 0, false},
    {"refused_per_s", "REFUSED/S", TOP_PER_S, 9, 0, false},
    {"refused", "REFUSED", TOP_COUNT, 8, 0, false},
    {"requests", "REQUESTS", TOP_COUNT, 8, 0, false},
    {"throttled_ms", "THROTTLED", TOP_MS, 9, 0, false},
};

static const struct top_column transfers[] = {
    {"client", "CLIENT", TOP_TEXT, 15, 39, false},
    {"path", "PATH", TOP_TEXT, 14, 80, true},
    {"bytes_per_s", "RATE", TOP_BYTES_PER_S, 12, 0, false},
    {"bytes_done", "DONE", TOP_BYTES, 10, 0, false},
    {"left_s", "LEFT", TOP_SECONDS, 7, 0, false},
    {"why", "WHY", TOP_TEXT, 13, 20, false},
    {"class", "CLASS", TOP_TEXT, 10, 24, false},
    {"bytes_left", "BYTES LEFT", TOP_BYTES, 10, 0, false},
};

static const struct top_column refusals[] = {
    {"what", "WHAT", TOP_TEXT, 7, 0, false},
    {"name", "REASON", TOP_TEXT, 25, 40, false},
    {"per_s", "NOW/S", TOP_PER_S, 7, 0, false},
    {"count", "COUNT", TOP_COUNT, 8, 0, false},
    {"client", "LAST CLIENT", TOP_TEXT, 15, 43, false},
    {"others", "", TOP_TEXT, 10, 0, false},
};

#define PANEL(key, letter, title, columns, sort)                                                   \
    {                                                                                              \
        key, letter, title, columns, NJ_ARRAY_LEN(columns), sort                                   \
    }
const struct top_panel_info top_panels[TOP_N_PANELS] = {
    [TOP_CLASSES] = PANEL("classes", 'c', "classes", classes, 3),
    [TOP_CLIENTS] = PANEL("clients", 'l', "clients", clients, 1),
    [TOP_TRANSFERS] = PANEL("transfers", 't', "transfers", transfers, 2),
    [TOP_REFUSALS] = PANEL("refusals", 'r', "refusals", refusals, 2),
};

/* --- filter and order ----------------------------------------------------------------------- */

const char *top_row_id(json_t *row)
{
    const char *id = json_string_value(json_object_get(row, "id"));

    return id ? id : "";
}

static bool is_shown(json_t *row, const struct top_panel_info *panel, const char *filter)
{
    if (!*filter)
        return true;
    for (unsigned i = 0; i < panel->n_columns; i++) {
        const char *text = json_string_value(json_object_get(row, panel->columns[i].key));
        if (text && panel->columns[i].unit == TOP_TEXT && strcasestr(text, filter))
            return true;
    }
    return false;
}

/* Less than all that are known: what is absent. */
static double number_of(const struct top_column *column, json_t *row)
{
    const json_t *value = json_object_get(row, column->key);
    uint64_t rate;

    if (column->unit == TOP_LIMIT)
        return json_is_string(value) && nj_parse_rate(json_string_value(value), &rate)
                   ? (double)rate
                   : -1;
    return json_is_number(value) ? json_number_value(value) : -1;
}

struct entry {
    json_t *row;
    size_t place; /* entries that are equal stay in their order */
};

static int order_of_texts(const struct top_column *column, json_t *a, json_t *b)
{
    const char *x = json_string_value(json_object_get(a, column->key)),
               *y = json_string_value(json_object_get(b, column->key));

    return strcmp(x ? x : "", y ? y : "");
}

static int compare(const void *a, const void *b, void *by)
{
    const struct entry *x = a, *y = b;
    const struct top_column *column = by;
    int first = json_is_true(json_object_get(y->row, "first")) -
                json_is_true(json_object_get(x->row, "first"));

    if (first != 0)
        return first;
    if (column->unit == TOP_TEXT) {
        int order = order_of_texts(column, x->row, y->row);
        if (order != 0)
            return order;
    } else {
        double m = number_of(column, x->row), n = number_of(column, y->row);
        if (m != n)
            return m > n ? -1 : 1;
    }
    return x->place < y->place ? -1 : 1;
}

struct top_list top_list_new(json_t *model, enum top_panel panel, unsigned sort, const char *filter)
{
    const struct top_panel_info *info = &top_panels[panel];
    json_t *all = top_model_rows(model, panel), *row;
    struct top_list list = {.n_all = json_array_size(all)};
    struct entry *entries = calloc(list.n_all + 1, sizeof *entries);
    size_t i;

    list.rows = calloc(list.n_all + 1, sizeof(json_t *));
    if (!entries || !list.rows) {
        free(entries);
        free(list.rows);
        return (struct top_list){0};
    }
    json_array_foreach(all, i, row)
    {
        if (is_shown(row, info, filter))
            entries[list.n++] = (struct entry){row, i};
    }
    struct top_column by = info->columns[sort < info->n_columns ? sort : 0];
    qsort_r(entries, list.n, sizeof *entries, compare, &by);
    for (i = 0; i < list.n; i++)
        list.rows[i] = entries[i].row;
    free(entries);
    return list;
}

void top_list_free(struct top_list *list)
{
    free(list->rows);
    *list = (struct top_list){0};
}
