/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar top: rates of two samples, the rows and their order, keys, and lines of a screen. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "ctl/format.h"
#include "top/top.h"

#define SAMPLE(at, cycles, requests, bytes, refused, started)                                      \
    "{'at_s':" at ",'wall_s':1764522000,'ready':true,'why':[],"                                    \
    "'commands':['classes','clients','refused','abuse'],"                                          \
    "'version':{'version':'1.2','started':'" started "'},"                                         \
    "'shards':{'shards':[{'number':0,'lcore':3,'cycles_busy':" cycles ",'cycles_idle':" cycles     \
    ",'requests':" requests ",'connections':5}]},"                                                 \
    "'stats':{'tx_bytes':" bytes ",'rx_bytes':0},"                                                 \
    "'limits':{'server':{'rate':'10MiB/s'},'classes':[{'name':'b','rate':'2MiB/s',"                \
    "'ceiling':'4MiB/s'}]},"                                                                       \
    "'classes':{'classes':[{'name':'a','open':1,'bytes_per_s':10,'refused':" refused "},"          \
    "{'name':'b','open':2,'bytes_per_s':20,'refused':0}]},"                                        \
    "'clients':{'clients':[{'client':'198.18.0.1','key':'x','bytes':" bytes "},"                   \
    "{'client':'198.18.0.2','key':'y','bytes':7}]},"                                               \
    "'refused':{'reasons':[{'name':'r','count':" refused ",'client':'198.18.0.3'}]}}"

#define STARTED "2025-11-30T16:00:00Z"
static const char first[] = SAMPLE("100.0", "1000", "50", "1000", "2", STARTED);
static const char second[] = SAMPLE("102.0", "1600", "70", "5000", "8", STARTED);
static const char restarted[] = SAMPLE("104.0", "1700", "90", "9000", "9", "2025-11-30T17:00:00Z");

static json_t *model;
static struct top_view view;

static json_t *parse(const char *text)
{
    char *copy = strdup(text);

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *root = json_loads(copy, 0, NULL);
    cr_assert_not_null(root);
    free(copy);
    return root;
}

static void make(const char *before, const char *now)
{
    json_t *a = before ? parse(before) : NULL, *b = parse(now);

    json_decref(model);
    model = top_model(a, b);
    json_decref(a);
    json_decref(b);
}

static void start(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    top_view_init(&view);
    make(first, second);
}

static void finish(void)
{
    json_decref(model);
    model = NULL;
}

TestSuite(app_top, .init = start, .fini = finish);

static json_t *row(enum top_panel panel, size_t i)
{
    return json_array_get(top_model_rows(model, panel), i);
}

static double number(json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static json_t *totals(void)
{
    return json_object_get(model, "totals");
}

/* --- the model ------------------------------------------------------------------------------ */

Test(app_top, rates)
{
    cr_expect_eq(number(totals(), "requests_per_s"), 10);
    cr_expect_eq(number(totals(), "tx_bits_per_s"), 8 * 2000);
    cr_expect_eq(number(totals(), "rx_bits_per_s"), 0);
    cr_expect_eq(number(totals(), "refused_per_s"), 3);
    cr_expect_eq(number(totals(), "connections"), 5);
    cr_expect_eq(number(totals(), "open"), 3);
    json_t *lcore = json_array_get(json_object_get(model, "lcores"), 0);
    cr_expect_eq(number(lcore, "busy"), 0.5);
    cr_expect_eq(number(lcore, "lcore"), 3);
    cr_expect_eq(number(row(TOP_CLIENTS, 0), "bytes_per_s"), 2000);
    cr_expect_eq(number(row(TOP_CLIENTS, 1), "bytes_per_s"), 0);
    cr_expect_eq(number(row(TOP_REFUSALS, 0), "per_s"), 3);
    cr_expect_eq(number(row(TOP_CLASSES, 1), "refused_per_s"), 3);
}

/* One sample, one of another process, and one of the same time: no rates. */
Test(app_top, no_rates)
{
    const char *const before[] = {NULL, first, second}, *const now[] = {first, restarted, second};

    for (size_t i = 0; i < 3; i++) {
        make(before[i], now[i]);
        cr_expect_eq(number(totals(), "requests_per_s"), -1);
        cr_expect_eq(number(totals(), "tx_bits_per_s"), -1);
        cr_expect_eq(number(totals(), "open"), 3);
        cr_expect_eq(number(row(TOP_CLIENTS, 0), "bytes_per_s"), -1);
        cr_expect_eq(number(row(TOP_REFUSALS, 0), "per_s"), -1);
        json_t *lcore = json_array_get(json_object_get(model, "lcores"), 0);
        cr_expect_eq(number(lcore, "busy"), -1);
    }
}

/* A count that went back began anew. */
Test(app_top, counts_that_go_back)
{
    make("{'at_s':1,'stats':{'tx_bytes':10},'shards':{'shards':[{'number':0,'cycles_busy':9,"
         "'cycles_idle':9}]}}",
         "{'at_s':2,'stats':{'tx_bytes':3},'shards':{'shards':[{'number':0,'cycles_busy':1,"
         "'cycles_idle':10}]}}");
    cr_expect_eq(number(totals(), "tx_bits_per_s"), -1);
    json_t *lcore = json_array_get(json_object_get(model, "lcores"), 0);
    cr_expect_eq(number(lcore, "busy"), -1);
}

/* A panel that was not asked for before: a reason's count is not of the last second. A new reason
 * of a panel that was asked for began at 0. */
Test(app_top, new_reasons)
{
    const char *reasons = "{'at_s':2,'refused':{'reasons':[{'name':'r','count':9}]}}";

    make("{'at_s':1}", reasons);
    cr_expect_eq(number(row(TOP_REFUSALS, 0), "per_s"), -1);
    make("{'at_s':1,'refused':{'reasons':[]}}", reasons);
    cr_expect_eq(number(row(TOP_REFUSALS, 0), "per_s"), 9);
}

Test(app_top, up_time)
{
    cr_expect_eq(number(model, "up_s"), 1764522000 - 1764518400);
}

Test(app_top, limits)
{
    const char *const limit[] = {"10MiB/s", NULL, "4MiB/s"}, *const key[] = {"rate", NULL,
                                                                             "ceiling"};

    for (size_t i = 0; i < 3; i++) {
        const char *l = json_string_value(json_object_get(row(TOP_CLASSES, i), "limit")),
                   *k = json_string_value(json_object_get(row(TOP_CLASSES, i), "limit_key"));
        cr_expect_str_eq(l ? l : "-", limit[i] ? limit[i] : "-");
        cr_expect_str_eq(k ? k : "-", key[i] ? key[i] : "-");
    }
}

Test(app_top, transfers)
{
    make(NULL,
         "{'transfers':{'transfers':[{'client':'c','path':'/p','bytes_per_s':10,'bytes_left':50},"
         "{'client':'c','path':'/q','bytes_per_s':0,'bytes_left':50},{'id':'7'},3]}}");
    cr_expect_eq(number(row(TOP_TRANSFERS, 0), "left_s"), 5);
    cr_expect_eq(number(row(TOP_TRANSFERS, 1), "left_s"), -1);
    cr_expect_str_eq(top_row_id(row(TOP_TRANSFERS, 0)), "c /p");
    cr_expect_str_eq(top_row_id(row(TOP_TRANSFERS, 2)), "7");
    cr_expect_null(row(TOP_TRANSFERS, 3));
}

/* An id is cut, and not within a character. */
Test(app_top, long_ids)
{
    char text[2000] = "{'transfers':{'transfers':[{'client':'c','path':'";

    for (unsigned i = 0; i < 300; i++)
        strcat(text, "\xc3\xbc");
    strcat(text, "'}]}}");
    make(NULL, text);
    cr_expect_eq(strlen(top_row_id(row(TOP_TRANSFERS, 0))), TOP_ID_BYTES - 2);
}

/* --- rows ----------------------------------------------------------------------------------- */

static void expect_order(enum top_panel panel, unsigned sort, const char *filter, const char *ids)
{
    struct top_list list = top_list_new(model, panel, sort, filter);
    char found[100] = "";

    for (size_t i = 0; i < list.n; i++) {
        strcat(found, top_row_id(list.rows[i]));
        strcat(found, " ");
    }
    cr_expect_str_eq(found, ids);
    cr_expect_eq(list.n_all, json_array_size(top_model_rows(model, panel)));
    top_list_free(&list);
}

Test(app_top, order_and_filter)
{
    expect_order(TOP_CLASSES, 0, "", " a b "); /* the server is the first, whatever the order */
    expect_order(TOP_CLASSES, 3, "", " b a ");
    expect_order(TOP_CLASSES, 4, "", " b a ");
    expect_order(TOP_CLIENTS, 1, "", "x y ");
    expect_order(TOP_CLIENTS, 3, "", "x y "); /* equal: as the server has them */
    expect_order(TOP_CLIENTS, 99, "0.2", "y ");
    expect_order(TOP_CLIENTS, 0, "none", "");
    expect_order(TOP_TRANSFERS, 0, "", "");
}

/* --- texts ---------------------------------------------------------------------------------- */

static void expect_cell(const char *text, unsigned width, enum top_align align, const char *cell)
{
    char out[200] = "";
    FILE *f = fmemopen(out, sizeof out, "w");

    top_put_cell(f, text, width, align);
    fclose(f);
    cr_expect_str_eq(out, cell, "%s: |%s|", text, out);
}

Test(app_top, cells)
{
    expect_cell("abc", 5, TOP_LEFT, "abc  ");
    expect_cell("abc", 5, TOP_RIGHT, "  abc");
    expect_cell("abcdef", 5, TOP_LEFT, "abcd>");
    expect_cell("abcdef", 5, TOP_RIGHT, "abcd>");
    expect_cell("abcdef", 5, TOP_LEFT_KEEP_END, "<cdef");
    expect_cell("abcdef", 1, TOP_LEFT, ">");
    expect_cell("abcdef", 0, TOP_LEFT, "");
    expect_cell("", 2, TOP_LEFT, "  ");
    expect_cell("gr\xc3\xbc\xc3\x9f", 5, TOP_LEFT, "gr\xc3\xbc\xc3\x9f ");
    expect_cell("\xe6\x97\xa5\xe6\x9c\xac", 5, TOP_LEFT, "\xe6\x97\xa5\xe6\x9c\xac "); /* wide */
    expect_cell("\xe6\x97\xa5\xe6\x9c\xac", 3, TOP_LEFT, "\xe6\x97\xa5>");
    expect_cell("\xe6\x97\xa5\xe6\x9c\xac", 2, TOP_LEFT_KEEP_END, "< ");
}

/* Control characters (C0, DEL, C1), invalid bytes, marks that turn the direction or have no width.
 */
Test(app_top, characters_that_are_not_shown)
{
    expect_cell("\x1b[2J\r\n\t\x7f", 8, TOP_LEFT, "?[2J????");
    expect_cell("\xc2\x9b\xc2\x80", 2, TOP_LEFT, "??");
    expect_cell("\xff\xc3", 2, TOP_LEFT, "??");
    expect_cell("\xe2\x80\xae\xe2\x80\x8f\xe2\x80\x8b", 3, TOP_LEFT, "???");
    setlocale(LC_CTYPE, "C");
    expect_cell("gr\xc3\xbc\xc3\x9f", 4, TOP_LEFT, "gr??");
}

Test(app_top, characters_that_control)
{
    static const uint32_t bad[] = {0,      0x1b,   0x7f,   0x85,   0x9b,    0xad,     0x61c,
                                   0x200b, 0x200e, 0x2028, 0x202e, 0x2066,  0x2069,   0xd800,
                                   0xe000, 0xf8ff, 0xfeff, 0xffff, 0xe0041, 0x10fffd, UINT32_MAX};
    static const uint32_t good[] = {' ', '~', 0xa0, 0xe9, 0x5d0, 0x4e2d, 0xfffd, 0x1f600};

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect_not(ctl_is_shown(bad[i]), "%x", bad[i]);
    for (size_t i = 0; i < NJ_ARRAY_LEN(good); i++)
        cr_expect(ctl_is_shown(good[i]), "%x", good[i]);
}

Test(app_top, numbers)
{
    static const struct {
        void (*format)(double n, char text[TOP_NUMBER_BYTES]);
        double n;
        const char *text;
    } cases[] = {{top_format_count, 0, "0"},
                 {top_format_count, 9999999, "9999999"},
                 {top_format_count, 12345678, "12.3 M"},
                 {top_format_count, 1e300, "1e+300"},
                 {top_format_per_s, 0.25, "0.2"},
                 {top_format_per_s, 9.96, "10"},
                 {top_format_bits, 999, "999 bit/s"},
                 {top_format_bits, 8.02e9, "8.02 Gbit/s"},
                 {top_format_seconds, 59.9, "59s"},
                 {top_format_seconds, 245, "4m05s"},
                 {top_format_seconds, 7380, "2h03m"},
                 {top_format_seconds, 273600, "3d04h"},
                 {top_format_seconds, 1e300, "11574074d01h"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[TOP_NUMBER_BYTES];
        cases[i].format(cases[i].n, text);
        cr_expect_str_eq(text, cases[i].text, "%zu: %s", i, text);
    }
}

/* --- keys ----------------------------------------------------------------------------------- */

static enum top_action key(int k)
{
    return top_view_key(&view, model, k);
}

static void keys(const char *text)
{
    for (; *text; text++)
        key(*text);
}

Test(app_top, scaled_rates)
{
    static const struct {
        const char *rate;
        bool up;
        const char *scaled;
    } cases[] = {{"5MiB/s", true, "6400KiB/s"},    {"5MiB/s", false, "4MiB/s"},
                 {"100Mbit/s", true, "125Mbit/s"}, {"1B/s", false, "1B/s"},
                 {"10B/s", true, "12B/s"},         {"1024GiB/s", true, "1024GiB/s"}};
    char out[TOP_NUMBER_BYTES];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect(top_scale_rate(cases[i].rate, cases[i].up, out));
        cr_expect_str_eq(out, cases[i].scaled, "%s: %s", cases[i].rate, out);
    }
    cr_expect_not(top_scale_rate("none", true, out));
}

static void expect_post(enum top_action action, const char *target, const char *body)
{
    char text[2 * TOP_INPUT_BYTES];

    cr_expect_eq(action, TOP_DO_CHANGE);
    cr_expect_str_eq(top_view_change(&view, text), target);
    cr_expect_str_eq(text, body);
}

Test(app_top, a_transfer_ends_and_a_client_is_blocked)
{
    key('x');
    cr_expect(view.mode == TOP_BROWSE && strstr(view.message, "select a transfer"));
    key('b');
    cr_expect(view.mode == TOP_BROWSE && strstr(view.message, "select a row with a client"));
    make(NULL, "{'commands':['transfers'],'transfers':{'transfers':["
               "{'id':'1-2-3-4','client':'198.18.0.7','bytes_per_s':10},"
               "{'client':'c,1s','path':'/q','bytes_per_s':0}]}}");
    key('t');
    key('x');
    cr_expect(view.mode == TOP_CONFIRM && view.what == TOP_END);
    cr_expect_eq(key('+'), TOP_DO_NOTHING);
    cr_expect_eq(view.mode, TOP_BROWSE);
    key('x');
    expect_post(key('y'), "/api/v1/transfers/end", "1-2-3-4");
    key('b');
    cr_expect_eq(key(TOP_KEY_ESCAPE), TOP_DO_NOTHING);
    key('b');
    expect_post(key('y'), "/api/v1/block", "198.18.0.7,10m");
    key(TOP_KEY_DOWN); /* of a server that tells other ids and clients */
    key('x');
    cr_expect_eq(view.mode, TOP_BROWSE);
    key('b');
    cr_expect_eq(view.mode, TOP_BROWSE);
}

Test(app_top, problems)
{
    const struct top_contact contact = {.why = NULL};

    make(NULL, "{'ready':false,'why':['other words'],'problems':{'problems':["
               "{'kind':'port-down','text':'port 0 has no link'},3,{'text':'a table is full'}]}}");
    struct top_frame f = top_frame_new(model, &view, &contact, 80, 24);
    cr_assert_gt(f.n, 4);
    cr_expect_eq(f.lines[3].style, TOP_ALARM);
    cr_expect_eq(strncmp(f.lines[3].text, "port 0 has no link; a table is full  ", 37), 0);
    top_frame_free(&f);
}

Test(app_top, a_change_is_confirmed)
{
    char body[2 * TOP_INPUT_BYTES];

    key(TOP_KEY_DOWN); /* b, which has the higher rate */
    key('+');
    cr_expect_eq(view.mode, TOP_CONFIRM);
    cr_expect_eq(key('+'), TOP_DO_NOTHING);
    cr_expect_eq(key('y'), TOP_DO_CHANGE);
    top_view_change(&view, body);
    cr_expect_str_eq(body, "class=b,ceiling=6400KiB/s");
    key('-');
    cr_expect_eq(key('x'), TOP_DO_NOTHING);
    cr_expect_eq(view.mode, TOP_BROWSE);
    key(TOP_KEY_DOWN); /* a has no limit */
    key('+');
    cr_expect_eq(view.mode, TOP_BROWSE);
    cr_expect_str_eq(view.message, "it has no rate: e sets one");
}

/* A server that has a rate tells the same ceiling with it. A change of the rate ends the burst. */
Test(app_top, rate_and_burst)
{
    make(NULL, "{'at_s':1,'classes':{'classes':[]},'limits':{'server':{'rate':'10MiB/s',"
               "'ceiling':'10MiB/s','burst':'64KiB'}}}");
    key('+');
    cr_expect_str_eq(view.change, "rate=12800KiB/s,burst=64KiB");
    key('-');
    cr_expect_str_eq(view.change, "rate=10MiB/s,burst=64KiB");
    key('n');
    key('e');
    cr_expect_str_eq(view.input, "rate=10MiB/s,burst=64KiB");
    key('U' - '@');
    for (unsigned i = 0; i < TOP_INPUT_BYTES; i++)
        key('=');
    key(TOP_KEY_ENTER);
    key('+'); /* no rate */
    cr_expect_eq(strlen(view.change), TOP_INPUT_BYTES - 1);
}

Test(app_top, a_change_is_typed)
{
    char body[2 * TOP_INPUT_BYTES];

    key('e'); /* of the server */
    cr_expect_str_eq(view.input, "rate=10MiB/s");
    key('U' - '@');
    keys("rates");
    key(TOP_KEY_BACKSPACE);
    key(TOP_KEY_ENTER);
    cr_expect_eq(view.mode, TOP_EDIT, "it lacks =");
    keys("=1MiB/s");
    key(TOP_KEY_ENTER);
    cr_expect_eq(view.mode, TOP_CONFIRM);
    cr_expect_eq(key('y'), TOP_DO_CHANGE);
    top_view_change(&view, body);
    cr_expect_str_eq(body, "rate=1MiB/s");
    key('e');
    key(TOP_KEY_ESCAPE);
    cr_expect_eq(view.mode, TOP_BROWSE);
    key('e');
    for (unsigned i = 0; i < 1000; i++)
        key('x');
    cr_expect_eq(strlen(view.input), TOP_INPUT_BYTES - 1);
}

/* The selection stays with its row, whatever its place. */
Test(app_top, the_selected_row_moves)
{
    struct top_list list;

    key(TOP_KEY_END);
    cr_expect_str_eq(view.selected[TOP_CLASSES], "a");
    key('s'); /* by limit, then by names */
    for (unsigned i = 4; i < top_panels[TOP_CLASSES].n_columns; i++)
        key('s');
    list = top_list_new(model, TOP_CLASSES, view.sort[TOP_CLASSES], "");
    top_view_settle(&view, &list, 1);
    cr_expect_eq(view.at[TOP_CLASSES], 1);
    cr_expect_eq(view.first[TOP_CLASSES], 1);
    top_list_free(&list);
    key('/');
    keys("b");
    key(TOP_KEY_ENTER);
    list = top_list_new(model, TOP_CLASSES, view.sort[TOP_CLASSES], view.filter);
    top_view_settle(&view, &list, 10);
    cr_expect_eq(list.n, 1);
    cr_expect_str_eq(view.selected[TOP_CLASSES], "b");
    top_list_free(&list);
}

Test(app_top, keys_without_rows)
{
    static const int all[] = {TOP_KEY_UP,
                              TOP_KEY_DOWN,
                              TOP_KEY_PAGE_UP,
                              TOP_KEY_PAGE_DOWN,
                              TOP_KEY_HOME,
                              TOP_KEY_END,
                              'e',
                              '+',
                              '-',
                              's',
                              'p',
                              'p',
                              't',
                              'r'};

    json_decref(model);
    model = NULL;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        key(all[i]);
    cr_expect_eq(view.panel, TOP_REFUSALS);
    cr_expect_eq(key('q'), TOP_DO_QUIT);
}

Test(app_top, panels_that_the_server_has)
{
    cr_expect_eq(key('l'), TOP_DO_ASK);
    cr_expect_eq(view.panel, TOP_CLIENTS);
    cr_expect_eq(key('t'), TOP_DO_NOTHING);
    cr_expect_eq(view.panel, TOP_CLIENTS);
    cr_expect_str_eq(view.message, "this server has no list of transfers");
}

/* --- frames --------------------------------------------------------------------------------- */

static const struct top_contact reached = {.why = NULL};

/* All lines have the width, whatever the size; the number of lines is the height. */
Test(app_top, frames_of_all_sizes)
{
    for (unsigned width = 1; width <= 230; width += width < 100 ? 1 : 13) {
        for (unsigned height = 1; height <= 30; height++) {
            struct top_frame f = top_frame_new(model, &view, &reached, width, height);
            cr_assert_eq(f.n, height);
            for (size_t i = 0; i < f.n; i++)
                cr_assert_leq(strlen(f.lines[i].text), width, "%u %u", width, height);
            top_frame_free(&f);
        }
    }
}

static bool has_line(const struct top_frame *f, enum top_style style, const char *beginning)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->lines[i].style == style &&
            strncmp(f->lines[i].text, beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

Test(app_top, a_frame)
{
    struct top_frame f = top_frame_new(model, &view, &reached, 80, 24);

    cr_expect(has_line(&f, TOP_BOLD, "nightjar 1.2  up 1h00m  ready "));
    cr_expect(has_line(&f, TOP_NORMAL, "requests/s 10  out 16.00 kbit/s  connections 5  open 3"));
    cr_expect(has_line(&f, TOP_NORMAL, "busy lcore 3: 50%"));
    cr_expect(has_line(&f, TOP_SELECTED, "(server) "));
    cr_expect(has_line(&f, TOP_NORMAL, "b  "));
    cr_expect_eq(f.cursor, 0);
    top_frame_free(&f);
}

/* Before the first answer, and while there is none. */
Test(app_top, no_answer)
{
    const struct top_contact lost = {.why = "it is \x1b[gone", .age_s = 65};
    struct top_frame f = top_frame_new(NULL, &view, &lost, 80, 24);

    cr_expect(has_line(&f, TOP_ALARM, "nightjar   NOT REACHABLE "));
    cr_expect(has_line(&f, TOP_ALARM, "it is ?[gone "));
    top_frame_free(&f);
    f = top_frame_new(model, &view, &lost, 80, 24);
    cr_expect(
        has_line(&f, TOP_ALARM, "nightjar 1.2  up 1h00m  NOT REACHABLE  values of 1m05s ago"));
    top_frame_free(&f);
}

Test(app_top, questions_have_a_cursor)
{
    key('/');
    keys("ab");
    struct top_frame f = top_frame_new(model, &view, &reached, 80, 24);
    cr_expect_eq(f.cursor, strlen("show rows with: ab"));
    top_frame_free(&f);
    f = top_frame_new(model, &view, &reached, 5, 24);
    cr_expect_eq(f.cursor, 4);
    top_frame_free(&f);
}

Test(app_top, all_panels)
{
    struct top_frame f = top_frame_of_all(model, 200);

    cr_expect(has_line(&f, TOP_BOLD, "classes "));
    cr_expect(has_line(&f, TOP_BOLD, "clients "));
    cr_expect_not(has_line(&f, TOP_BOLD, "transfers "));
    cr_expect(has_line(&f, TOP_NORMAL, "198.18.0.2 "));
    top_frame_free(&f);
}
