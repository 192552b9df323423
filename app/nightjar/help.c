/* SPDX-License-Identifier: BSD-3-Clause */
/* --help: the table of options, a group at a time, with texts wrapped to the width of the page. */
#include "help.h"

#include <string.h>

#include "wrap_text.h"

const struct help_exit_status help_exit_statuses[] = {
    {"0", "after a signal or when the requested output is complete"},
    {"1", "if the server could not start or did not stop cleanly"},
    {"2", "if an option or the policy file is invalid"},
    {NULL, NULL},
};

const char *help_value(const struct nj_option *o)
{
    if (!nj_option_takes_value(o))
        return "";
    return o->value ? o->value : o->expected;
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
    char text[HELP_TEXT_BYTES];

    int at = fprintf(out, "  --%s%s%s", o->name, *value ? " " : "", value);
    if (at + 1 > WRAP_INDENT) {
        fputc('\n', out);
        at = 0;
    }
    help_describe(o, text);
    wrap_text(out, text, at, WRAP_INDENT);
}

void help_print(FILE *out, const struct nj_app *app)
{
    char text[HELP_TEXT_BYTES] = "Exit status:";

    fputs(app->intro, out);
    for (uint32_t i = 0; i < nj_n_options; i++) {
        const struct nj_option *o = &nj_options[i];
        if (o->group)
            fprintf(out, "%s%s\n", i ? "\n" : "", o->group);
        print_option(out, o);
    }
    fputs("\n"
          "Limit the server to 100 Mbit/s, each client to 20 Mbit/s, each response to 200 KiB/s "
          "after\n"
          "its first 64 KiB, and apply a policy file:\n"
          "  nightjar ... -- ... --rate 100Mbit/s --rate-per-client 20Mbit/s \\\n"
          "           --rate-per-request 200KiB/s --rate-after 64KiB \\\n"
          "           --config /etc/nightjar/nightjar.conf\n"
          "Check the policy file, without root and without a server:\n"
          "  nightjar --check --config /etc/nightjar/nightjar.conf\n"
          "\n",
          out);
    for (const struct help_exit_status *s = help_exit_statuses; s->status; s++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, " %s %s%s", s->status, s->meaning,
                 s[1].status ? ";" : ".");
    }
    wrap_text(out, text, 0, 0);
    fprintf(out, "\n%s", app->outro);
}
