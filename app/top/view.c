/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"
#include "top/top.h"

#define PAGE_MIN 1u

void top_view_init(struct top_view *v)
{
    *v = (struct top_view){.n_visible = PAGE_MIN};
    for (unsigned i = 0; i < TOP_N_PANELS; i++)
        v->sort[i] = top_panels[i].sort;
}

/* --- the selected row ----------------------------------------------------------------------- */

void top_view_settle(struct top_view *v, const struct top_list *list, size_t n_visible)
{
    size_t *at = &v->at[v->panel], *first = &v->first[v->panel], i = 0;
    char *selected = v->selected[v->panel];

    v->n_visible = n_visible > PAGE_MIN ? n_visible : PAGE_MIN;
    while (i < list->n && strcmp(top_row_id(list->rows[i]), selected) != 0)
        i++;
    if (i < list->n)
        *at = i;
    if (*at >= list->n)
        *at = list->n > 0 ? list->n - 1 : 0;
    if (list->n > 0)
        snprintf(selected, TOP_ID_BYTES, "%s", top_row_id(list->rows[*at]));
    if (*first > *at)
        *first = *at;
    if (*at >= *first + v->n_visible)
        *first = *at - v->n_visible + 1;
    if (*first + v->n_visible > list->n)
        *first = list->n > v->n_visible ? list->n - v->n_visible : 0;
}

static struct top_list list_of(const struct top_view *v, json_t *model)
{
    return top_list_new(model, v->panel, v->sort[v->panel], v->filter);
}

/* By so many rows down; up if it is below 0. */
static void move(struct top_view *v, json_t *model, long by)
{
    struct top_list list = list_of(v, model);
    size_t *at = &v->at[v->panel];

    top_view_settle(v, &list, v->n_visible);
    if (by < 0)
        *at = *at > (size_t)-by ? *at - (size_t)-by : 0;
    else
        *at = list.n - *at > (size_t)by ? *at + (size_t)by : list.n;
    if (*at >= list.n)
        *at = list.n > 0 ? list.n - 1 : 0;
    if (list.n > 0)
        snprintf(v->selected[v->panel], TOP_ID_BYTES, "%s", top_row_id(list.rows[*at]));
    top_view_settle(v, &list, v->n_visible);
    top_list_free(&list);
}

/* NULL: there is none. */
static json_t *selected_row(struct top_view *v, json_t *model)
{
    struct top_list list = list_of(v, model);

    top_view_settle(v, &list, v->n_visible);
    json_t *row = list.n > 0 ? list.rows[v->at[v->panel]] : NULL;
    top_list_free(&list);
    return row;
}

/* --- downloads and addresses ---------------------------------------------------------------- */

/* Asks about a text of the selected row, which has these characters only; else says what to do. */
static void ask_about(struct top_view *v, enum top_change what, const char *text,
                      const char *characters, const char *otherwise)
{
    size_t n = text ? strlen(text) : 0;

    if (n == 0 || n >= sizeof v->change || strspn(text, characters) < n) {
        snprintf(v->message, sizeof v->message, "%s", otherwise);
        return;
    }
    memcpy(v->change, text, n + 1);
    v->what = what;
    v->mode = TOP_CONFIRM;
}

static void begin_end(struct top_view *v, json_t *model)
{
    json_t *row = v->panel == TOP_TRANSFERS ? selected_row(v, model) : NULL;

    ask_about(v, TOP_END, row ? top_row_id(row) : NULL, "0123456789-",
              "select a transfer first (t)");
}

static void begin_block(struct top_view *v, json_t *model)
{
    json_t *row = selected_row(v, model);

    ask_about(v, TOP_BLOCK, json_string_value(json_object_get(row, "client")),
              "0123456789abcdefABCDEF.:/", "select a row with a client first (t, l, r)");
}

/* --- limits --------------------------------------------------------------------------------- */

#define KIB  1024u
#define KBIT 125u

bool top_scale_rate(const char *rate, bool up, char out[TOP_NUMBER_BYTES])
{
    uint64_t n, step;

    if (!nj_parse_rate(rate, &n))
        return false;
    step = strstr(rate, "bit") ? KBIT : KIB;
    n = up ? n + n / 4 : n - n / 5;
    if (n >= 16 * step)
        n -= n % step;
    n = n < 1 ? 1 : n > NJ_RATE_MAX ? NJ_RATE_MAX : n;
    nj_format_rate(n, out, TOP_NUMBER_BYTES);
    return true;
}

/* The row of the selected class. NULL, with a message: there is none. */
static json_t *selected_class(struct top_view *v, json_t *model)
{
    json_t *row = v->panel == TOP_CLASSES ? selected_row(v, model) : NULL;

    if (!row)
        snprintf(v->message, sizeof v->message, "select a class first (c)");
    return row;
}

/* False: the name has characters that a change cannot have. */
static bool take_class(struct top_view *v, json_t *row)
{
    const char *name = top_row_id(row);

    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == ',' || *p == '=')
            return false;
    return (size_t)snprintf(v->class_of, sizeof v->class_of, "%s", name) < sizeof v->class_of;
}

/* KEY=VALUE for a limit of this row, and what has to be said again with it. */
static void put_change(json_t *row, const char *value, char change[TOP_INPUT_BYTES])
{
    const char *key = json_string_value(json_object_get(row, "limit_key")),
               *burst = json_string_value(json_object_get(row, "burst"));
    bool has_burst = burst && key && strcmp(key, "rate") == 0;

    snprintf(change, TOP_INPUT_BYTES, "%s=%s%s%s", key ? key : "rate", value,
             has_burst ? ",burst=" : "", has_burst ? burst : "");
}

static void begin_edit(struct top_view *v, json_t *model)
{
    json_t *row = selected_class(v, model);
    const char *limit = json_string_value(json_object_get(row, "limit"));

    if (!row || !take_class(v, row))
        return;
    put_change(row, limit ? limit : "", v->input);
    v->mode = TOP_EDIT;
}

/* Ask whether the rate may become larger or smaller. */
static void begin_scale(struct top_view *v, json_t *model, bool up)
{
    json_t *row = selected_class(v, model);
    const char *limit = json_string_value(json_object_get(row, "limit"));
    char scaled[TOP_NUMBER_BYTES];

    if (!row || !take_class(v, row))
        return;
    if (!limit || !top_scale_rate(limit, up, scaled)) {
        snprintf(v->message, sizeof v->message, "it has no rate: e sets one");
        return;
    }
    put_change(row, scaled, v->change);
    v->what = TOP_LIMITS;
    v->mode = TOP_CONFIRM;
}

/* A change that was asked for already, once more: KEY=RATE, and what follows it. */
static void scale_again(struct top_view *v, bool up)
{
    char before[TOP_INPUT_BYTES + 1], scaled[TOP_NUMBER_BYTES];
    size_t n_key = strcspn(v->change, "=");

    memcpy(before, v->change, sizeof v->change);
    char *rate = before + n_key + (before[n_key] != '\0'), *rest = rate + strcspn(rate, ",");
    memmove(rest + 1, rest, strlen(rest) + 1);
    *rest++ = '\0';
    if (top_scale_rate(rate, up, scaled))
        snprintf(v->change, sizeof v->change, "%.*s=%s%s", (int)n_key, before, scaled, rest);
}

const char *top_view_change(const struct top_view *v, char body[2 * TOP_INPUT_BYTES])
{
    static const char *const target[] = {[TOP_LIMITS] = "/api/v1/limits",
                                         [TOP_END] = "/api/v1/transfers/end",
                                         [TOP_BLOCK] = "/api/v1/block"};
    bool has_class = v->what == TOP_LIMITS && v->class_of[0];

    snprintf(body, 2 * (size_t)TOP_INPUT_BYTES, "%s%s%s%s%s", has_class ? "class=" : "",
             has_class ? v->class_of : "", has_class ? "," : "", v->change,
             v->what == TOP_BLOCK ? ",10m" : "");
    return target[v->what];
}

/* --- keys ----------------------------------------------------------------------------------- */

/* A line of input. True: the key was for it. */
static bool type(char *input, size_t bytes, int key)
{
    size_t n = strlen(input);

    if (key == TOP_KEY_BACKSPACE && n > 0)
        input[n - 1] = '\0';
    else if (key == 'U' - '@') /* Ctrl-U: the whole line */
        input[0] = '\0';
    else if (key >= ' ' && key <= '~' && n + 1 < bytes)
        memcpy(input + n, (char[]){(char)key, '\0'}, 2);
    else
        return false;
    return true;
}

static enum top_action filter_key(struct top_view *v, int key)
{
    if (key == TOP_KEY_ESCAPE)
        v->filter[0] = '\0';
    if (key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER)
        v->mode = TOP_BROWSE;
    else
        type(v->filter, sizeof v->filter, key);
    return TOP_DO_NOTHING;
}

static enum top_action edit_key(struct top_view *v, int key)
{
    if (key == TOP_KEY_ESCAPE) {
        v->mode = TOP_BROWSE;
        snprintf(v->message, sizeof v->message, "nothing was changed");
    } else if (key == TOP_KEY_ENTER && strchr(v->input, '=')) {
        memcpy(v->change, v->input, sizeof v->change);
        v->what = TOP_LIMITS;
        v->mode = TOP_CONFIRM;
    } else if (key == TOP_KEY_ENTER) {
        snprintf(v->message, sizeof v->message, "expected KEY=VALUE, such as rate=5MiB/s");
    } else {
        type(v->input, sizeof v->input, key);
    }
    return TOP_DO_NOTHING;
}

static enum top_action confirm_key(struct top_view *v, int key)
{
    if (v->what == TOP_LIMITS && (key == '+' || key == '-')) {
        scale_again(v, key == '+');
        return TOP_DO_NOTHING;
    }
    v->mode = TOP_BROWSE;
    if (key == 'y' || key == 'Y')
        return TOP_DO_CHANGE;
    snprintf(v->message, sizeof v->message, "nothing was changed");
    return TOP_DO_NOTHING;
}

static enum top_action show(struct top_view *v, json_t *model, enum top_panel panel)
{
    if (model && !top_model_has(model, panel)) {
        snprintf(v->message, sizeof v->message, "this server has no list of %s",
                 top_panels[panel].key);
        return TOP_DO_NOTHING;
    }
    v->panel = panel;
    return TOP_DO_ASK;
}

static enum top_action move_key(struct top_view *v, json_t *model, int key)
{
    long page = (long)v->n_visible;

    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        move(v, model, -1);
        break;
    case TOP_KEY_DOWN:
    case 'j':
        move(v, model, 1);
        break;
    case TOP_KEY_PAGE_UP:
        move(v, model, -page);
        break;
    case TOP_KEY_PAGE_DOWN:
        move(v, model, page);
        break;
    case TOP_KEY_HOME:
        move(v, model, -(1l << 30));
        break;
    case TOP_KEY_END:
        move(v, model, 1l << 30);
        break;
    default:
        break;
    }
    return TOP_DO_NOTHING;
}

static enum top_action browse_key(struct top_view *v, json_t *model, int key)
{
    for (unsigned i = 0; i < TOP_N_PANELS; i++)
        if (key == top_panels[i].letter)
            return show(v, model, (enum top_panel)i);
    switch (key) {
    case 'q':
        return TOP_DO_QUIT;
    case 's':
        v->sort[v->panel] = (v->sort[v->panel] + 1) % top_panels[v->panel].n_columns;
        return TOP_DO_ASK; /* clients with most of another column */
    case 'p':
        v->is_paused = !v->is_paused;
        return v->is_paused ? TOP_DO_NOTHING : TOP_DO_ASK;
    case '/':
        v->mode = TOP_FILTER;
        break;
    case TOP_KEY_ESCAPE:
        v->filter[0] = '\0';
        break;
    case 'h':
    case '?':
        v->mode = TOP_HELP;
        break;
    case 'e':
        begin_edit(v, model);
        break;
    case 'x':
        begin_end(v, model);
        break;
    case 'b':
        begin_block(v, model);
        break;
    case '+':
    case '-':
        begin_scale(v, model, key == '+');
        break;
    default:
        return move_key(v, model, key);
    }
    return TOP_DO_NOTHING;
}

enum top_action top_view_key(struct top_view *v, json_t *model, int key)
{
    if (key == TOP_KEY_NONE)
        return TOP_DO_NOTHING;
    v->message[0] = '\0';
    switch (v->mode) {
    case TOP_FILTER:
        return filter_key(v, key);
    case TOP_EDIT:
        return edit_key(v, key);
    case TOP_CONFIRM:
        return confirm_key(v, key);
    case TOP_HELP:
        v->mode = TOP_BROWSE;
        return key == 'q' ? TOP_DO_QUIT : TOP_DO_NOTHING;
    case TOP_BROWSE:
        break;
    }
    return browse_key(v, model, key);
}
