/* SPDX-License-Identifier: BSD-3-Clause */
/* nj-option-docs man|markdown: writes man/nightjar.1 or docs/options.md, from the table of options,
 * to standard output. `./dev options` calls it. */
#include <stdio.h>
#include <string.h>

#include "help.h"

/* --- man/nightjar.1 (man(7)) ---------------------------------------------------------------- */

/* Prints text for a line of its own: troff takes '-' for a hyphen, and a '.' or '\'' at the begin
 * of a line for a request. */
static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
    }
}

static void man_option(const struct nj_option *o)
{
    const char *value = help_value(o);
    char text[HELP_TEXT_BYTES];

    fputs(".TP\n\\fB\\-\\-", stdout);
    put_roff(o->name);
    fputs("\\fR", stdout);
    if (*value) {
        fputs(" \\fI", stdout);
        put_roff(value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    help_describe(o, text);
    put_roff(text);
    putchar('\n');
}

static const char man_begin[] =
    ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
    ".\\\" Written by `./dev options` from lib/config/option_table.c and\n"
    ".\\\" app/nightjar/option_docs.c.\n"
    ".TH NIGHTJAR 1 \"\" \"nightjar " NJ_VERSION "\" \"User Commands\"\n"
    ".SH NAME\n"
    "nightjar \\- HTTP/2 server with a TCP stack of its own on DPDK\n"
    ".SH SYNOPSIS\n"
    ".SY nightjar\n"
    ".RI [ \"EAL arguments\" ]\n"
    ".B \\-\\-\n"
    ".B \\-\\-addr\n"
    ".I ADDRESS/PREFIX\n"
    ".B \\-\\-root\n"
    ".I DIR\n"
    ".RI [ options ]\n"
    ".YS\n"
    ".SY nightjar\n"
    ".B \\-\\-check\n"
    ".RI [ options ]\n"
    ".YS\n"
    ".SY nightjar\n"
    ".B doctor\n"
    ".RB [ \\-\\-help ]\n"
    ".YS\n"
    ".SH DESCRIPTION\n"
    "Serves a folder over HTTP/2 without TLS (prior knowledge, h2c).\n"
    "Packets go through the TCP stack of nightjar, on NICs that DPDK drives, not through the\n"
    "kernel.\n"
    "Each lcore (EAL option\n"
    ".BR \\-l )\n"
    "runs a shard of its own.\n"
    ".PP\n"
    "Arguments before\n"
    ".B \\-\\-\n"
    "go to DPDK's EAL (Environment Abstraction Layer) unchanged, except\n"
    ".B \\-\\-preset\n"
    "and\n"
    ".BR \\-\\-print\\-preset .\n"
    ".B nightjar \\-h\n"
    "prints the arguments of the EAL.\n"
    ".PP\n"
    ".B nightjar doctor\n"
    "checks whether this host is ready for a NIC.\n"
    ".SH OPTIONS\n"
    "A name may be shortened to a prefix that no other name has.\n"
    "Parentheses have the range of the value, or how often the option may be given.\n"
    "Brackets have the default.\n";

static const char man_end[] =
    ".SH SIGNALS\n"
    ".TP\n"
    ".BR SIGTERM \", \" SIGINT\n"
    "Stop: refuse new connections, send GOAWAY, finish running responses for at most\n"
    ".BR \\-\\-drain\\-timeout .\n"
    "A second signal resets the connections that are still open.\n"
    ".TP\n"
    ".B SIGHUP\n"
    "Open the access log again and read the policy file again.\n"
    "A valid file applies at once.\n"
    "Of an invalid one each error is printed, and the policy in force stays.\n"
    ".TP\n"
    ".B SIGUSR1\n"
    "Open the access log again, after its file was renamed.\n"
    ".SH FILES\n"
    "The places of all files are options.\n"
    ".TP\n"
    ".BI \\-\\-root \" DIR\"\n"
    "the folder to serve\n"
    ".TP\n"
    ".BI \\-\\-config \" FILE\"\n"
    "the policy file, e.g.\n"
    ".I /etc/nightjar.conf\n"
    ".TP\n"
    ".BI \\-\\-mime\\-types \" FILE\"\n"
    "content types in the format of\n"
    ".I /etc/mime.types\n"
    ".TP\n"
    ".BI \\-\\-access\\-log \" FILE\"\n"
    "the access log, to which lines are appended\n"
    ".SH SEE ALSO\n"
    ".BR curl (1)\n"
    ".PP\n"
    "In the source tree:\n"
    ".I docs/policy.md\n"
    "(the policy file),\n"
    ".I docs/network.md\n"
    "(addresses and ports),\n"
    ".I docs/deploy.md\n"
    "(installation and operation),\n"
    ".I docs/limits.md\n"
    "(limits and their counters).\n";

static void write_man(void)
{
    fputs(man_begin, stdout);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->group) {
            fputs(".SS ", stdout);
            put_roff(o->group);
            putchar('\n');
        }
        man_option(o);
    }
    fputs(".SH EXIT STATUS\n", stdout);
    for (const struct help_exit_status *s = help_exit_statuses; s->status; s++) {
        printf(".TP\n.B %s\n", s->status);
        put_roff(s->meaning);
        putchar('\n');
    }
    fputs(man_end, stdout);
}

/* --- docs/options.md ------------------------------------------------------------------------ */

/* Prints text for a cell of a table. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text);
    }
}

static void markdown_option(const struct nj_option *o)
{
    const char *value = help_value(o);
    char range[64];

    printf("| `--%s%s", o->name, *value ? " " : "");
    put_cell(value);
    fputs("` | ", stdout);
    put_cell(o->help);
    nj_option_format_range(o, range, sizeof range);
    printf(" | %s%s | %s | ", range, o->may_be_none ? ", or none" : "",
           o->default_text ? o->default_text : "");
    if (o->section) {
        printf("`[%s]` `", o->section);
        for (const char *p = o->name; *p; p++)
            putchar(*p == '-' ? '_' : *p);
        putchar('`');
    }
    fputs(" |\n", stdout);
}

static void write_markdown(void)
{
    fputs(
        "# Options\n"
        "\n"
        "Written by `./dev options` from `lib/config/option_table.c`: do not edit this file.\n"
        "\n"
        "    nightjar [EAL arguments] -- [options]\n"
        "\n"
        "`nightjar --help` prints the same. A name may be shortened to a prefix that no other "
        "name has.\n"
        "The last column is the key in the policy file ([policy.md](policy.md)), in which a switch "
        "is `yes` or `no`;\n"
        "rates and limits of clients and classes have keys of their own there.\n"
        "An option overrides the policy file. Rates, sizes and times have the syntax of that "
        "file: `20MiB/s`, `64KiB`, `500ms`.\n",
        stdout);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->group)
            printf("\n## %c%s\n\n"
                   "| option | meaning | range | default | policy file |\n"
                   "|---|---|---|---|---|\n",
                   o->group[0] - 'a' + 'A', o->group + 1);
        markdown_option(o);
    }
    fputs("\n## Exit status\n\n| status | meaning |\n|---|---|\n", stdout);
    for (const struct help_exit_status *s = help_exit_statuses; s->status; s++)
        printf("| %s | %s |\n", s->status, s->meaning);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "man") == 0)
        write_man();
    else if (argc == 2 && strcmp(argv[1], "markdown") == 0)
        write_markdown();
    else {
        fputs("usage: nj-option-docs man|markdown\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
