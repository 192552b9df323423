/* SPDX-License-Identifier: BSD-3-Clause */
/* --help: a page, or the table of options, a group at a time, with texts wrapped to the width of
 * the page. */
#include "help.h"

#include <string.h>

#include "wrap_text.h"

const struct help_exit_status help_exit_statuses[] = {
    {"0", "after a signal or when the requested output is complete"},
    {"1", "if the server could not start or did not stop cleanly"},
    {"2", "if an option, the configuration file, or a file of TLS is invalid"},
    {NULL, NULL},
};

const char *help_value(const struct nj_option *o)
{
    if (!nj_option_takes_value(o))
        return "";
    return o->value ? o->value : o->expected;
}

const char *help_key_value(const struct nj_option *o)
{
    return o->kind == NJ_OPTION_SWITCH ? "yes|no" : help_value(o);
}

void help_describe(const struct nj_option *o, char text[HELP_TEXT_BYTES])
{
    char range[64];

    nj_option_format_range(o, range, sizeof range);
    /* All times have nearly the same range, up to a day. */
    bool show_range = range[0] && !o->may_be_none && o->kind != NJ_OPTION_TIME;
    snprintf(text, HELP_TEXT_BYTES, "%s%s%s%s%s%s%s", o->help, show_range ? " (" : "",
             show_range ? range : "", show_range ? ")" : "", o->default_text ? " [" : "",
             o->default_text ? o->default_text : "", o->default_text ? "]" : "");
}

static void print_option(FILE *out, const struct nj_option *o)
{
    const char *value = help_value(o);
    char text[HELP_TEXT_BYTES], key[NJ_OPTION_KEY_BYTES];
    int at = nj_option_is_named(o)
                 ? fprintf(out, "  --%s%s%s", o->name, *value ? " " : "", value)
                 : fprintf(out, "  [%s] %s = %s", o->section, nj_option_key(o, key), value);

    if (at + 1 > WRAP_INDENT) {
        fputc('\n', out);
        at = 0;
    }
    help_describe(o, text);
    if (o->section && nj_option_is_named(o)) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "; key: [%s] %s", o->section, nj_option_key(o, key));
    }
    wrap_text(out, text, at, WRAP_INDENT);
}

/* What is behind each name of a group. */
static const char *const topics[][2] = {
    {"eal", "cores, devices and memory, by DPDK's EAL and presets"},
    {"network", "addresses, routes, ports of TCP, rings"},
    {"tls", "certificates and keys"},
    {"files", "what is served"},
    {"storage", "the cache, and how files are read"},
    {"limits", "maxima and time-outs"},
    {"log", "the access log"},
    {"user", "the user that serves"},
    {"process", "shutdown, upgrade, threads"},
    {"management", "metrics, health and changes, over HTTP of the kernel"},
    {"policy", "rates and limits of classes and clients"},
    {"sites", "keys of sites and paths"},
    {"program", "--config, --check and others that print and exit"},
    {"all", "all options, and the exit status"},
    {NULL, NULL},
};

static void print_topics(FILE *out)
{
    for (size_t i = 0; topics[i][0]; i++)
        fprintf(out, "  %-9s %s\n", topics[i][0], topics[i][1]);
}

int help_print(FILE *out, const struct nj_app *app)
{
    fprintf(out, "%s%s\n%s --help TOPIC describes options and keys of the file:\n", app->intro,
            app->outro, app->name);
    print_topics(out);
    return 0;
}

static void print_exit_status(void)
{
    char text[HELP_TEXT_BYTES] = "Exit status:";

    for (const struct help_exit_status *s = help_exit_statuses; s->status; s++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, " %s %s%s", s->status, s->meaning,
                 s[1].status ? ";" : ".");
    }
    fputc('\n', stdout);
    wrap_text(stdout, text, 0, 0);
}

/* The topic with the most letters in common at its begin, and one at least. */
static const char *near_topic(const char *topic)
{
    const char *near = NULL;
    size_t best = 0;

    for (size_t i = 0; topics[i][0]; i++) {
        size_t n = 0;
        while (topic[n] && topic[n] == topics[i][0][n])
            n++;
        if (n > best) {
            best = n;
            near = topics[i][0];
        }
    }
    return near;
}

int help_print_topic(const struct nj_app *app, const char *topic)
{
    bool all = strcmp(topic, "all") == 0, is_in = false, any = false;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->group)
            is_in = all || strcmp(o->group, topic) == 0;
        if (!is_in || (all && !nj_option_is_named(o)))
            continue;
        if (o->group)
            printf("%s%s\n", any ? "\n" : "", o->group);
        print_option(stdout, o);
        any = true;
    }
    if (all)
        print_exit_status();
    if (any)
        return 0;
    const char *near = near_topic(topic);
    fprintf(stderr, "nightjar: --help %s: there is no such topic%s%s%s\nTopics of %s:\n", topic,
            near ? ": did you mean " : "", near ? near : "", near ? "?" : "", app->name);
    print_topics(stderr);
    return 2;
}
