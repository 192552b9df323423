/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "ctl/command_table.h"
#include "ctl/format.h"
#include "top/top.h"

#define GAP        2u /* columns of the terminal between those of a table */
#define AGE_S      3  /* a model that is older is called so */
#define N_FOR_HEAD 4u

/* --- lines ---------------------------------------------------------------------------------- */

/* A frame, and the line that is being written. */
struct pen {
    struct top_frame *f;
    size_t n_max;
    unsigned width;
    FILE *line; /* NULL: there is no memory */
    char *text;
    size_t n_bytes;
};

static void begin(struct pen *p)
{
    p->text = NULL;
    p->line = open_memstream(&p->text, &p->n_bytes);
}

static void end(struct pen *p, enum top_style style)
{
    if (p->line)
        fclose(p->line);
    if (p->f->n < p->n_max)
        p->f->lines[p->f->n++] = (struct top_line){style, p->line ? p->text : NULL};
    else
        free(p->text);
}

/* A line of UTF-8, cut to the width. */
static void put_line(struct pen *p, enum top_style style, const char *text)
{
    begin(p);
    if (p->line)
        top_put_cell(p->line, text, p->width, TOP_LEFT);
    end(p, style);
}

/* Text in UTF-8, made of parts. */
struct parts {
    char text[4096];
    size_t n;
};

static void add(struct parts *t, const char *fmt, ...) NJ_PRINTF(2, 3);
static void add(struct parts *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(t->text + t->n, sizeof t->text - t->n, fmt, ap);
    va_end(ap);
    t->n = n < (int)(sizeof t->text - t->n) ? t->n + (size_t)n : sizeof t->text - 1;
}

/* --- values --------------------------------------------------------------------------------- */

static void format_number(double n, enum top_unit unit, char text[TOP_NUMBER_BYTES])
{
    switch (unit) {
    case TOP_PER_S:
        top_format_per_s(n, text);
        break;
    case TOP_BYTES:
        ctl_format_bytes(n, "", text, TOP_NUMBER_BYTES);
        break;
    case TOP_BYTES_PER_S:
        ctl_format_bytes(n, "/s", text, TOP_NUMBER_BYTES);
        break;
    case TOP_SECONDS:
        top_format_seconds(n, text);
        break;
    case TOP_MS:
        top_format_seconds(n / 1000, text);
        break;
    case TOP_TEXT:
    case TOP_LIMIT:
    case TOP_COUNT:
        top_format_count(n, text);
        break;
    }
}

static void put_value(struct pen *p, const struct top_column *column, json_t *row, unsigned width)
{
    const json_t *value = json_object_get(row, column->key);
    const char *text = json_string_value(value);
    bool is_text = column->unit == TOP_TEXT;
    char of_number[TOP_NUMBER_BYTES] = "-";

    if (json_is_number(value) && json_number_value(value) >= 0)
        format_number(json_number_value(value), column->unit, of_number);
    if (!value && is_text)
        of_number[0] = '\0';
    top_put_cell(p->line, text ? text : of_number, width,
                 !is_text            ? TOP_RIGHT
                 : column->keeps_end ? TOP_LEFT_KEEP_END
                                     : TOP_LEFT);
}

/* --- the head ------------------------------------------------------------------------------- */

static double number(json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool is_ready(json_t *model)
{
    return json_is_true(json_object_get(model, "ready"));
}

static void put_state(struct pen *p, json_t *model, const struct top_contact *contact,
                      bool is_paused)
{
    const char *version = json_string_value(json_object_get(model, "version"));
    char text[TOP_NUMBER_BYTES];
    struct parts t = {.n = 0};

    add(&t, "nightjar %s", version ? version : "");
    if (json_object_get(model, "up_s")) {
        top_format_seconds(number(model, "up_s"), text);
        add(&t, "  up %s", text);
    }
    if (contact->why)
        add(&t, "  NOT REACHABLE");
    else if (model)
        add(&t, "  %s", is_ready(model) ? "ready" : "NOT READY");
    if (is_paused)
        add(&t, "  paused");
    if (model && contact->age_s >= AGE_S) {
        top_format_seconds(contact->age_s, text);
        add(&t, "  values of %s ago", text);
    }
    put_line(p, contact->why || (model && !is_ready(model)) ? TOP_ALARM : TOP_BOLD, t.text);
}

static void put_totals(struct pen *p, json_t *model)
{
    static const struct {
        const char *key, *title;
        void (*format)(double n, char text[TOP_NUMBER_BYTES]);
    } shown[] = {{"requests_per_s", "requests/s", top_format_per_s},
                 {"tx_bits_per_s", "out", top_format_bits},
                 {"connections", "connections", top_format_count},
                 {"open", "open", top_format_count},
                 {"waiting", "waiting", top_format_count},
                 {"refused_per_s", "refused/s", top_format_per_s},
                 {"rx_bits_per_s", "in", top_format_bits}};
    json_t *totals = json_object_get(model, "totals");
    struct parts t = {.n = 0};

    for (size_t i = 0; model && i < NJ_ARRAY_LEN(shown); i++) {
        const json_t *value = json_object_get(totals, shown[i].key);
        char text[TOP_NUMBER_BYTES] = "-";
        if (json_is_number(value))
            shown[i].format(json_number_value(value), text);
        add(&t, "%s%s %s", i > 0 ? "  " : "", shown[i].title, text);
    }
    put_line(p, TOP_NORMAL, t.text);
}

/* The share of each lcore, behind the average. */
static void put_lcores(struct pen *p, json_t *model)
{
    json_t *lcores = json_object_get(model, "lcores"), *one;
    struct parts t = {.n = 0}, each = {.n = 0};
    double sum = 0;
    size_t i, n = 0;

    json_array_foreach(lcores, i, one)
    {
        double busy = number(one, "busy");
        add(&each, "%s%.0f: ", i > 0 ? "  " : " ", number(one, "lcore"));
        if (!json_object_get(one, "busy")) {
            add(&each, "-");
            continue;
        }
        add(&each, "%.0f%%", 100 * busy);
        sum += busy;
        n++;
    }
    if (n > 1)
        add(&t, "busy %.0f%%  lcore%s", 100 * sum / (double)n, each.text);
    else if (model)
        add(&t, "busy lcore%s", each.text);
    put_line(p, TOP_NORMAL, t.text);
}

/* Why there is no answer; what is wrong, which has the reasons why the server is not ready, unless
 * it cannot tell that. */
static void put_reason(struct pen *p, json_t *model, const struct top_contact *contact)
{
    json_t *problems = json_object_get(model, "problems"), *one,
           *why = json_array_size(problems) > 0 ? problems : json_object_get(model, "why");
    struct parts t = {.n = 0};
    size_t i;

    if (contact->why) {
        add(&t, "%s", contact->why);
    } else {
        json_array_foreach(why, i, one)
        {
            add(&t, "%s%s", i > 0 ? "; " : "",
                json_string_value(one) ? json_string_value(one) : "?");
        }
    }
    put_line(p, t.n > 0 ? TOP_ALARM : TOP_NORMAL, t.text);
}

static void put_head(struct pen *p, json_t *model, const struct top_contact *contact,
                     bool is_paused)
{
    put_state(p, model, contact, is_paused);
    put_totals(p, model);
    put_lcores(p, model);
    put_reason(p, model, contact);
}

/* --- tables --------------------------------------------------------------------------------- */

/* The widths of as many columns as there is room for; columns of texts share the rest. */
static unsigned fit_columns(const struct top_panel_info *info, unsigned width,
                            unsigned widths[static 32])
{
    unsigned n = 0, used = 0;

    for (; n < info->n_columns; n++) {
        unsigned more = info->columns[n].width + (n > 0 ? GAP : 0);
        if (used + more > width)
            break;
        used += more;
        widths[n] = info->columns[n].width;
    }
    if (n == 0 && info->n_columns > 0) {
        widths[n++] = width;
        used = width;
    }
    for (bool grew = true; grew && used < width;) {
        grew = false;
        for (unsigned i = 0; i < n && used < width; i++) {
            if (widths[i] >= info->columns[i].width_max)
                continue;
            widths[i]++;
            used++;
            grew = true;
        }
    }
    return n;
}

static void put_gap(struct pen *p, unsigned i)
{
    fprintf(p->line, "%*s", i > 0 ? (int)GAP : 0, "");
}

/* The titles; that of the column by which rows are sorted has a star. */
static void put_titles(struct pen *p, const struct top_panel_info *info, unsigned sort)
{
    unsigned widths[32], n = fit_columns(info, p->width, widths);

    begin(p);
    for (unsigned i = 0; p->line && i < n; i++) {
        char title[32];
        bool is_text = info->columns[i].unit == TOP_TEXT;
        snprintf(title, sizeof title, "%s%s%s", i == sort && !is_text ? "*" : "",
                 info->columns[i].title, i == sort && is_text ? "*" : "");
        put_gap(p, i);
        top_put_cell(p->line, title, widths[i], is_text ? TOP_LEFT : TOP_RIGHT);
    }
    end(p, TOP_HEAD);
}

static void put_row(struct pen *p, const struct top_panel_info *info, json_t *row,
                    enum top_style style)
{
    unsigned widths[32], n = fit_columns(info, p->width, widths);

    begin(p);
    for (unsigned i = 0; p->line && i < n; i++) {
        put_gap(p, i);
        put_value(p, &info->columns[i], row, widths[i]);
    }
    end(p, style);
}

/* --- the screen ----------------------------------------------------------------------------- */

static void put_tabs(struct pen *p, json_t *model, const struct top_view *v,
                     const struct top_list *list)
{
    struct parts t = {.n = 0};

    for (unsigned i = 0; i < TOP_N_PANELS; i++) {
        const char *around = i == v->panel ? "[]" : "  ";
        if (i == v->panel || top_model_has(model, (enum top_panel)i))
            add(&t, "%c%s%c", around[0], top_panels[i].title, around[1]);
    }
    add(&t, "  %zu", list->n);
    if (v->filter[0])
        add(&t, " of %zu with \"%s\"", list->n_all, v->filter);
    if (v->sort[v->panel] < top_panels[v->panel].n_columns)
        add(&t, "  sorted by %s", top_panels[v->panel].columns[v->sort[v->panel]].title);
    put_line(p, TOP_BOLD, t.text);
}

/* Of the transfer with that id, which may have ended. */
static const char *client_of(json_t *model, const char *id)
{
    const char *client = NULL;
    json_t *row;
    size_t i;

    json_array_foreach(top_model_rows(model, TOP_TRANSFERS), i, row)
    {
        if (strcmp(top_row_id(row), id) == 0)
            client = json_string_value(json_object_get(row, "client"));
    }
    return client ? client : "a client";
}

/* The last line: a question, what the last key did, or what keys there are. */
static void put_foot(struct pen *p, json_t *model, const struct top_view *v)
{
    struct parts t = {.n = 0};
    bool is_input = v->mode == TOP_FILTER || v->mode == TOP_EDIT;

    if (v->mode == TOP_FILTER)
        add(&t, "show rows with: %s", v->filter);
    else if (v->mode == TOP_EDIT && !v->message[0])
        add(&t, "limits of %s, KEY=VALUE: %s", v->class_of[0] ? v->class_of : "the server",
            v->input);
    else if (v->mode == TOP_CONFIRM && v->what == TOP_END)
        add(&t, "end the transfer %s of %s? (y: yes, other keys: no)", v->change,
            client_of(model, v->change));
    else if (v->mode == TOP_CONFIRM && v->what == TOP_BLOCK)
        add(&t, "block %s for 10 minutes? (y: yes, other keys: no)", v->change);
    else if (v->mode == TOP_CONFIRM)
        add(&t, "change %s: %s? (y: yes, + -: more or less, other keys: no)",
            v->class_of[0] ? v->class_of : "the server", v->change);
    else if (v->message[0])
        add(&t, "%s", v->message);
    else
        add(&t, "h help  q quit  s sort  / filter  e + - limit  x end  b block  p pause  "
                "c classes  l clients  t transfers  r refusals");
    if (is_input)
        p->f->cursor = t.n < p->width ? (unsigned)t.n : p->width - 1;
    put_line(p, is_input || v->mode == TOP_CONFIRM || v->message[0] ? TOP_BOLD : TOP_NORMAL,
             t.text);
}

static void put_help(struct pen *p)
{
    for (const struct ctl_top_key *k = ctl_top_keys; k->keys; k++) {
        char text[200];
        snprintf(text, sizeof text, "  %-18s %s", k->keys, k->help);
        put_line(p, TOP_NORMAL, text);
    }
    put_line(p, TOP_NORMAL, "");
    put_line(p, TOP_NORMAL, "  any key: back");
}

static struct pen pen_for(struct top_frame *f, unsigned width, size_t height)
{
    width = width > TOP_WIDTH_MAX ? TOP_WIDTH_MAX : width;
    *f = (struct top_frame){.lines = calloc(height + 1, sizeof *f->lines)};
    return (struct pen){.f = f, .n_max = f->lines ? height : 0, .width = width ? width : 1};
}

struct top_frame top_frame_new(json_t *model, struct top_view *v, const struct top_contact *contact,
                               unsigned width, unsigned height)
{
    const struct top_panel_info *info = &top_panels[v->panel];
    struct top_frame f;
    struct pen p = pen_for(&f, width, height ? height : 1);
    size_t last = p.n_max ? p.n_max - 1 : 0; /* the line of the foot */
    struct top_list list = top_list_new(model, v->panel, v->sort[v->panel], v->filter);

    p.n_max = last;
    put_head(&p, model, contact, v->is_paused);
    put_tabs(&p, model, v, &list);
    if (v->mode == TOP_HELP) {
        put_help(&p);
    } else {
        put_titles(&p, info, v->sort[v->panel]);
        top_view_settle(v, &list, last > f.n ? last - f.n : 1);
        for (size_t i = v->first[v->panel]; i < list.n && f.n < last; i++)
            put_row(&p, info, list.rows[i], i == v->at[v->panel] ? TOP_SELECTED : TOP_NORMAL);
    }
    while (f.n < last)
        put_line(&p, TOP_NORMAL, "");
    p.n_max = f.lines ? last + 1 : 0;
    put_foot(&p, model, v);
    top_list_free(&list);
    return f;
}

struct top_frame top_frame_of_all(json_t *model, unsigned width)
{
    const struct top_contact contact = {.why = NULL};
    size_t height = N_FOR_HEAD;
    struct top_frame f;

    for (unsigned i = 0; i < TOP_N_PANELS; i++)
        height += 3 + json_array_size(top_model_rows(model, (enum top_panel)i));
    struct pen p = pen_for(&f, width, height);
    put_head(&p, model, &contact, false);
    for (unsigned i = 0; i < TOP_N_PANELS; i++) {
        if (!top_model_rows(model, (enum top_panel)i))
            continue;
        struct top_list list = top_list_new(model, (enum top_panel)i, top_panels[i].sort, "");
        put_line(&p, TOP_NORMAL, "");
        put_line(&p, TOP_BOLD, top_panels[i].title);
        put_titles(&p, &top_panels[i], top_panels[i].n_columns);
        for (size_t k = 0; k < list.n; k++)
            put_row(&p, &top_panels[i], list.rows[k], TOP_NORMAL);
        top_list_free(&list);
    }
    return f;
}

void top_frame_free(struct top_frame *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->lines[i].text);
    free(f->lines);
    *f = (struct top_frame){0};
}
