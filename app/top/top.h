/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar top: what a running server does, once per second. Part of the program nightjar-ctl.
 *
 *   sample.c   asks the server: one object of JSON with its answers, the "sample"
 *   model.c    two samples -> one object with rates and rows, the "model"
 *   list.c     rows of a panel of the model, filtered and sorted
 *   view.c     what the user has chosen; keys change it
 *   frame.c    model and view -> lines of text
 *   text.c     numbers and texts in columns of the terminal
 *   screen.c   the terminal (ncurses), and the loop
 *
 * All but sample.c and screen.c are pure, and depend on the locale only for texts. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum top_panel { TOP_CLASSES, TOP_CLIENTS, TOP_TRANSFERS, TOP_REFUSALS, TOP_N_PANELS };

/* --- text.c --------------------------------------------------------------------------------- */

#define TOP_NUMBER_BYTES 32u

enum top_align { TOP_LEFT, TOP_RIGHT, TOP_LEFT_KEEP_END /* if too long, its end is shown */ };

/* Write a text of UTF-8 in exactly `width` columns, in the encoding of the locale. Characters that
 * are invalid, control the terminal, have no width or are not in the locale become '?'. One that is
 * too long is cut, and has '>' at its end or '<' at its beginning. */
void top_put_cell(FILE *out, const char *text, unsigned width, enum top_align align);

/* Numbers for people, at most 12 characters. */
void top_format_count(double n, char text[TOP_NUMBER_BYTES]);   /* 1234567, 12.3 M */
void top_format_per_s(double n, char text[TOP_NUMBER_BYTES]);   /* 0.5, 12, 12.3 M */
void top_format_bits(double n, char text[TOP_NUMBER_BYTES]);    /* 8.02 Gbit/s */
void top_format_seconds(double s, char text[TOP_NUMBER_BYTES]); /* 12s, 4m05s, 2h03m, 3d04h */

/* --- model.c -------------------------------------------------------------------------------- */

/* The model of a sample, and of the one before it if there is one (else NULL): rates need both. The
 * caller frees it; NULL: there is no memory. Members of a sample may be absent, or of any type.
 *
 * A sample has "at_s" (of a clock that only goes forward), "wall_s" (UNIX time), "ready", "why" (a
 * list of texts), "commands" (their names: what the server can answer), and by the name of their
 * command the answers of the server: "version", "shards", "stats", "classes", "limits", "clients",
 * "transfers", "refused", "abuse", "problems".
 *
 * A model has:
 *   "version", "up_s", "ready", "why", "commands"
 *   "problems" [TEXT]                 what is wrong, also while it is ready
 *   "lcores"  [{"lcore", "busy"}]     busy: a share from 0 to 1
 *   "totals"  {"requests_per_s", "tx_bits_per_s", "rx_bits_per_s", "refused_per_s", "connections",
 *              "open", "waiting"}
 *   and the rows of each panel that the sample has, by top_panels[].key. "id" of a row identifies
 *   it among those of its panel.
 * What is not known is absent. */
json_t *top_model(json_t *before, json_t *now);

/* Can the server tell what the panel shows? */
bool top_model_has(json_t *model, enum top_panel panel);
/* Rows of a panel. NULL: the server was not asked for them. */
json_t *top_model_rows(json_t *model, enum top_panel panel);

/* --- list.c --------------------------------------------------------------------------------- */

enum top_unit {
    TOP_TEXT,
    TOP_LIMIT, /* a text with a rate */
    TOP_COUNT,
    TOP_PER_S,
    TOP_BYTES,
    TOP_BYTES_PER_S,
    TOP_SECONDS,
    TOP_MS,
};

struct top_column {
    const char *key, *title;
    enum top_unit unit;
    unsigned width, width_max; /* in columns of the terminal; width_max 0: as width */
    bool keeps_end;
};

struct top_panel_info {
    const char *key;
    char letter; /* the key that shows it */
    const char *title;
    const struct top_column *columns; /* the most important first: the last are left out */
    unsigned n_columns, sort;         /* the column by which it is sorted at first */
};
extern const struct top_panel_info top_panels[TOP_N_PANELS];

struct top_list {
    json_t **rows; /* of the model, which has to live longer */
    size_t n, n_all;
};

/* The rows in which a text has `filter` ("": all), sorted by a column: large numbers first, texts
 * by the alphabet. Rows with "first" stand before others. Without memory: no rows. */
struct top_list top_list_new(json_t *model, enum top_panel panel, unsigned sort,
                             const char *filter);
void top_list_free(struct top_list *list);
const char *top_row_id(json_t *row);

/* --- view.c --------------------------------------------------------------------------------- */

#define TOP_ID_BYTES    256u
#define TOP_INPUT_BYTES 200u

enum top_mode { TOP_BROWSE, TOP_FILTER, TOP_EDIT, TOP_CONFIRM, TOP_HELP };

/* What is asked of the server when it is confirmed. */
enum top_change { TOP_LIMITS, TOP_END, TOP_BLOCK };

struct top_view {
    enum top_panel panel;
    enum top_mode mode;
    bool is_paused;
    unsigned sort[TOP_N_PANELS];
    char filter[64];
    /* The selected row, by its id, and where it was when it was last there. */
    char selected[TOP_N_PANELS][TOP_ID_BYTES];
    size_t at[TOP_N_PANELS], first[TOP_N_PANELS];
    size_t n_visible;             /* rows in the last frame */
    char input[TOP_INPUT_BYTES];  /* what is typed */
    enum top_change what;         /* TOP_CONFIRM */
    char change[TOP_INPUT_BYTES]; /* KEY=VALUE,KEY=VALUE; a transfer's id; an address */
    char class_of[64];            /* whose limit is changed; "": of the server */
    char message[256];            /* until the next key */
};

enum top_key {
    TOP_KEY_NONE = -1,
    TOP_KEY_UP = 0x110000, /* smaller ones are characters */
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
};

enum top_action {
    TOP_DO_NOTHING,
    TOP_DO_ASK,    /* what is shown needs another sample */
    TOP_DO_CHANGE, /* by a POST of top_view_change() */
    TOP_DO_QUIT,
};

void top_view_init(struct top_view *v);
/* Handle a key. `model` may be NULL. */
enum top_action top_view_key(struct top_view *v, json_t *model, int key);
/* Find the selected row in a list, and the first row of those that are visible. */
void top_view_settle(struct top_view *v, const struct top_list *list, size_t n_visible);
/* The body of the POST for what was confirmed. Returns its target. */
const char *top_view_change(const struct top_view *v, char body[2 * TOP_INPUT_BYTES]);
/* A rate as the server writes it, made a quarter larger, or a fifth smaller. False: it is none. */
bool top_scale_rate(const char *rate, bool up, char out[TOP_NUMBER_BYTES]);

/* --- frame.c -------------------------------------------------------------------------------- */

#define TOP_WIDTH_MAX 1000u

enum top_style { TOP_NORMAL, TOP_BOLD, TOP_ALARM, TOP_HEAD, TOP_SELECTED };

struct top_line {
    enum top_style style;
    char *text; /* in the encoding of the locale; NULL: there was no memory */
};

struct top_frame {
    struct top_line *lines;
    size_t n;
    unsigned cursor; /* its column in the last line; 0: it is hidden */
};

/* What the server was when it was asked last. */
struct top_contact {
    const char *why; /* why there is no answer; NULL: there was one */
    double age_s;    /* of the model */
};

/* The lines of a terminal of `width` columns and `height` lines. `model` NULL: there was no answer
 * yet. The view is settled. The caller frees the frame. */
struct top_frame top_frame_new(json_t *model, struct top_view *v, const struct top_contact *contact,
                               unsigned width, unsigned height);
/* All panels, one after the other, with all rows. */
struct top_frame top_frame_of_all(json_t *model, unsigned width);
void top_frame_free(struct top_frame *f);

/* --- sample.c ------------------------------------------------------------------------------- */

struct ctl_client;

/* What a sample has beside that of all panels. */
struct top_query {
    bool has_all_panels;
    enum top_panel panel;
    const char *clients_by; /* bytes, streams or connections */
};

/* Ask for a sample, which the caller frees. NULL, with the reason in `why`: there is no server, or
 * one of its answers is none of nightjar. */
json_t *top_sample(struct ctl_client *client, const struct top_query *query, char *why,
                   size_t why_bytes);
/* POST a change. False, with the reason in `why`: it was not made. */
bool top_post(struct ctl_client *client, const char *target, const char *body, char *why,
              size_t why_bytes);

/* --- screen.c ------------------------------------------------------------------------------- */

struct top_options {
    const char *socket; /* NULL: ctl_find_socket() finds it */
    double timeout_s, interval_s;
    bool once, json; /* json: once, and the model */
};

/* Returns the exit status (enum ctl_status). */
int top_run(const struct top_options *o);
