/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <ncurses.h>

#include "ctl/ctl.h"
#include "top/top.h"

#define WIDTH_WITHOUT_TERMINAL 200u
#define WAIT_MS_MAX            1000 /* a signal may come before the wait begins */

struct top {
    const struct top_options *o;
    struct top_view view;
    json_t *sample, *model;
    double sample_at_s;
    char path[CTL_PATH_BYTES], why[1024]; /* why there is no answer; "": there was one */
    enum top_action pending;              /* of keys that came while the server was asked */
};

static volatile sig_atomic_t is_ended;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- asking --------------------------------------------------------------------------------- */

/* A connection for each sample: in an upgrade another process takes the socket. NULL, with the
 * reason in t->why: there is no server. */
static struct ctl_client *connect_to_server(struct top *t)
{
    if (!ctl_find_socket(t->o->socket, t->path, t->why, sizeof t->why))
        return NULL;
    struct ctl_client *client = ctl_client_new(t->path, t->o->timeout_s);
    if (!client)
        snprintf(t->why, sizeof t->why, "no memory");
    return client;
}

static struct top_query query_of(const struct top *t)
{
    const struct top_panel_info *clients = &top_panels[TOP_CLIENTS];
    const char *by = clients->columns[t->view.sort[TOP_CLIENTS]].key;
    bool is_known = strcmp(by, "streams") == 0 || strcmp(by, "connections") == 0;

    return (struct top_query){.has_all_panels = t->o->once,
                              .panel = t->view.panel,
                              .clients_by = is_known ? by : "bytes"};
}

static void take_sample(struct top *t, struct ctl_client *client)
{
    const struct top_query query = query_of(t);
    char why[sizeof t->why] = "";
    json_t *sample = top_sample(client, &query, why, sizeof why);

    if (sample) {
        json_t *model = top_model(t->sample, sample);
        json_decref(t->sample);
        json_decref(t->model);
        t->sample = sample;
        t->model = model;
        t->sample_at_s = now_s();
    } else if (t->sample) { /* the next one is of another process, or of a later time */
        json_decref(t->sample);
        t->sample = NULL;
    }
    memcpy(t->why, why, sizeof why);
}

/* --- the terminal --------------------------------------------------------------------------- */

static void end_by_signal(int number)
{
    is_ended = 1;
}

static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end_by_signal}; /* system calls are interrupted */

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

static enum ctl_status fail(enum ctl_status status, const char *text)
{
    fputs("nightjar top: ", stderr);
    ctl_print_text(stderr, text);
    fputc('\n', stderr);
    return status;
}

/* Does the description of the terminal have it? */
static bool has_string(const char *capability)
{
    const char *text = tigetstr(capability);

    return text && text != (const char *)-1;
}

/* NULL, with a message: this terminal cannot be used. */
static SCREEN *open_screen(void)
{
    const char *name = getenv("TERM");
    SCREEN *screen = name && *name ? newterm(NULL, stdout, stdin) : NULL;

    if (screen && has_string("cup") && has_string("clear")) {
        cbreak();
        noecho();
        nonl();
        keypad(stdscr, TRUE);
        set_escdelay(50);
        curs_set(0);
        return screen;
    }
    if (screen) {
        endwin();
        delscreen(screen);
    }
    fprintf(stderr,
            "nightjar top: TERM=%.40s: this terminal is unknown, or cannot move its cursor; "
            "nightjar top --once and nightjar ctl status need none\n",
            name ? name : "");
    return NULL;
}

static attr_t attributes(enum top_style style)
{
    static const attr_t of[] = {[TOP_NORMAL] = A_NORMAL,
                                [TOP_BOLD] = A_BOLD,
                                [TOP_ALARM] = A_BOLD | A_REVERSE,
                                [TOP_HEAD] = A_UNDERLINE,
                                [TOP_SELECTED] = A_REVERSE};

    return of[style];
}

static void draw(struct top *t)
{
    int height = getmaxy(stdscr), width = getmaxx(stdscr);
    const struct top_contact contact = {.why = t->why[0] ? t->why : NULL,
                                        .age_s = t->view.is_paused ? 0 : now_s() - t->sample_at_s};
    struct top_frame f =
        top_frame_new(t->model, &t->view, &contact, (unsigned)width, (unsigned)height);

    erase();
    for (size_t i = 0; i < f.n; i++) {
        attrset((int)attributes(f.lines[i].style));
        mvaddstr((int)i, 0, f.lines[i].text ? f.lines[i].text : "");
    }
    attrset(A_NORMAL);
    curs_set(f.cursor > 0);
    if (f.cursor > 0)
        move(height - 1, (int)f.cursor);
    refresh();
    top_frame_free(&f);
}

static int key_of(int c)
{
    switch (c) {
    case ERR:
    case KEY_RESIZE:
        return TOP_KEY_NONE;
    case KEY_UP:
        return TOP_KEY_UP;
    case KEY_DOWN:
        return TOP_KEY_DOWN;
    case KEY_PPAGE:
        return TOP_KEY_PAGE_UP;
    case KEY_NPAGE:
        return TOP_KEY_PAGE_DOWN;
    case KEY_HOME:
        return TOP_KEY_HOME;
    case KEY_END:
        return TOP_KEY_END;
    case '\r':
    case '\n':
    case KEY_ENTER:
        return TOP_KEY_ENTER;
    case 27:
        return TOP_KEY_ESCAPE;
    case 8:
    case 127:
    case KEY_BACKSPACE:
        return TOP_KEY_BACKSPACE;
    default:
        return c < 256 ? c : TOP_KEY_NONE;
    }
}

/* The terminal is gone: reading does not wait any more. */
static bool is_closed(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Handle the keys that came within `wait_ms`, and show what they changed. */
static void take_keys(struct top *t, int wait_ms)
{
    int c;

    timeout(wait_ms);
    while (!is_ended && (c = getch()) != ERR) {
        enum top_action action = top_view_key(&t->view, t->model, key_of(c));
        if (action > t->pending)
            t->pending = action;
        timeout(0);
    }
    if (is_closed())
        is_ended = 1;
    draw(t);
}

/* Of ctl_client_watch(). */
static bool take_keys_of(void *top)
{
    struct top *t = top;

    take_keys(t, 0);
    return !is_ended && t->pending != TOP_DO_QUIT;
}

/* --- the loop ------------------------------------------------------------------------------- */

static void change(struct top *t, struct ctl_client *client)
{
    static const char *const done[] = {
        [TOP_LIMITS] = "changed", [TOP_END] = "ended", [TOP_BLOCK] = "blocked"};
    char body[2 * TOP_INPUT_BYTES], why[sizeof t->view.message - 20] = "";
    const char *target = top_view_change(&t->view, body);
    bool ok = top_post(client, target, body, why, sizeof why);

    snprintf(t->view.message, sizeof t->view.message, "%s%s: %.200s", ok ? "" : "not ",
             done[t->view.what], ok ? body : why);
}

static void look(struct top *t)
{
    enum top_action action = t->pending;
    struct ctl_client *client = connect_to_server(t);

    t->pending = TOP_DO_NOTHING;
    if (client) {
        ctl_client_watch(client, STDIN_FILENO, take_keys_of, t);
        if (action == TOP_DO_CHANGE)
            change(t, client);
        take_sample(t, client);
        ctl_client_free(client);
    } else if (t->sample) {
        json_decref(t->sample);
        t->sample = NULL;
    }
}

static void loop(struct top *t)
{
    double next_s = now_s() + t->o->interval_s;

    while (!is_ended && t->pending != TOP_DO_QUIT) {
        bool is_due = !t->view.is_paused && now_s() >= next_s;
        if (is_due || t->pending != TOP_DO_NOTHING) {
            look(t);
            next_s = now_s() + t->o->interval_s;
            draw(t);
        }
        double wait_ms = t->view.is_paused ? WAIT_MS_MAX : ceil((next_s - now_s()) * 1000);
        take_keys(t, wait_ms < 0 ? 0 : wait_ms > WAIT_MS_MAX ? WAIT_MS_MAX : (int)wait_ms);
    }
}

static enum ctl_status run_on_terminal(struct top *t)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return fail(CTL_USAGE, "this needs a terminal; nightjar ctl status, or nightjar top "
                               "--once, print to files and pipes");
    struct ctl_client *client = connect_to_server(t);
    if (!client)
        return fail(CTL_UNREACHABLE, t->why);
    take_sample(t, client);
    ctl_client_free(client);
    if (t->why[0])
        return fail(CTL_UNREACHABLE, t->why);
    catch_signals();
    SCREEN *screen = open_screen();
    if (!screen)
        return CTL_USAGE;
    draw(t);
    loop(t);
    endwin();
    delscreen(screen);
    return CTL_OK;
}

/* --- once ----------------------------------------------------------------------------------- */

static unsigned width_of_output(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : WIDTH_WITHOUT_TERMINAL;
}

static void print_frame(json_t *model)
{
    struct top_frame f = top_frame_of_all(model, width_of_output());

    for (size_t i = 0; i < f.n; i++) {
        size_t n = f.lines[i].text ? strlen(f.lines[i].text) : 0;
        while (n > 0 && f.lines[i].text[n - 1] == ' ')
            n--;
        printf("%.*s\n", (int)n, n > 0 ? f.lines[i].text : "");
    }
    top_frame_free(&f);
}

/* Rates need two samples. */
static enum ctl_status run_once(struct top *t)
{
    const double whole = floor(t->o->interval_s);
    const struct timespec interval = {.tv_sec = (time_t)whole,
                                      .tv_nsec = (long)((t->o->interval_s - whole) * 1e9)};
    struct ctl_client *client = NULL;

    for (unsigned i = 0; i < 2; i++) {
        if (i > 0)
            nanosleep(&interval, NULL);
        client = connect_to_server(t);
        if (client) {
            take_sample(t, client);
            ctl_client_free(client);
        }
        if (t->why[0])
            return fail(CTL_UNREACHABLE, t->why);
    }
    if (t->o->json) {
        json_dumpf(t->model, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        putchar('\n');
    } else {
        print_frame(t->model);
    }
    return json_is_true(json_object_get(t->model, "ready")) ? CTL_OK : CTL_REFUSED;
}

int top_run(const struct top_options *o)
{
    struct top *t = calloc(1, sizeof *t);
    enum ctl_status status;

    if (!t)
        return fail(CTL_UNREACHABLE, "no memory");
    setlocale(LC_CTYPE, ""); /* an unknown one is that of C */
    t->o = o;
    top_view_init(&t->view);
    status = o->once ? run_once(t) : run_on_terminal(t);
    json_decref(t->sample);
    json_decref(t->model);
    free(t);
    return status;
}
