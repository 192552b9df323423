/* SPDX-License-Identifier: BSD-3-Clause */
/* man/nightjar.1, man/nightjar.conf.5, man/nightjar-ctl.1 and man/nightjar-load.1. */
#include <stdio.h>
#include <string.h>

#include "ctl/command_table.h"
#include "help.h"
#include "option_docs.h"
#include "option_table.h"

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

/* The title of a paragraph about an option. */
static void put_option(const char *name, const char *value)
{
    fputs("\\fB\\-\\-", stdout);
    put_roff(name);
    fputs("\\fR", stdout);
    if (*value) {
        fputs(" \\fI", stdout);
        put_roff(value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
}

static void man_option(const struct nj_option *o)
{
    char text[HELP_TEXT_BYTES], key[NJ_OPTION_KEY_BYTES];

    fputs(".TP\n", stdout);
    put_option(o->name, help_value(o));
    help_describe(o, text);
    put_roff(text);
    if (o->section) {
        fputs("; key: [", stdout);
        put_roff(o->section);
        fputs("] ", stdout);
        put_roff(nj_option_key(o, key));
    }
    putchar('\n');
}

static const char man_begin[] =
    ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
    ".\\\" Written by `./dev options` from lib/config/option_table.c and\n"
    ".\\\" app/nightjar/option_docs.c.\n"
    ".TH NIGHTJAR 1 \"\" \"nightjar " NJ_RELEASE "\" \"User Commands\"\n"
    ".SH NAME\n"
    "nightjar \\- HTTP server with a TCP stack of its own on DPDK\n"
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
    ".B \\-\\-config\n"
    ".I FILE\n"
    ".RI [ options ]\n"
    ".YS\n"
    ".SY nightjar\n"
    ".B \\-\\-check\n"
    ".RI [ options ]\n"
    ".YS\n"
    ".SY nightjar\n"
    ".B convert\n"
    ".RI [ \"EAL arguments\" ]\n"
    ".B \\-\\-\n"
    ".RI [ options ]\n"
    ".YS\n"
    ".SY nightjar\n"
    ".B doctor\n"
    ".RB [ \\-\\-user\n"
    ".IR NAME ]\n"
    ".RB [ \\-\\-lcores\n"
    ".IR LIST ]\n"
    ".RB [ \\-\\-json ]\n"
    ".RB [ \\-\\-help ]\n"
    ".YS\n"
    ".SH DESCRIPTION\n"
    "Serves a folder over HTTP/2 and HTTP/1.1, in cleartext and, with\n"
    ".BR \\-\\-tls\\-cert ,\n"
    "over TLS 1.3.\n"
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
    "With\n"
    ".B \\-\\-config\n"
    "the\n"
    ".B \\-\\-\n"
    "may be missing: the file has EAL arguments, too, see\n"
    ".BR nightjar.conf (5).\n"
    ".B nightjar convert\n"
    "prints the file that equals a command line.\n"
    ".PP\n"
    ".B nightjar doctor\n"
    "checks whether this host is ready for a NIC.\n"
    ".B nightjar ctl\n"
    "looks into a running server and changes its limits, and\n"
    ".B nightjar top\n"
    "watches it on the terminal, see\n"
    ".BR nightjar\\-ctl (1).\n"
    ".SH OPTIONS\n"
    "A key is that of the file, in its section.\n"
    "Parentheses have the range of the value, or how often the option may be given.\n"
    "Brackets have the default.\n";

static const char man_end[] =
    ".SH SIGNALS\n"
    ".TP\n"
    ".BR SIGTERM \", \" SIGINT \", \" SIGQUIT\n"
    "Stop: refuse new connections, send GOAWAY, finish running responses for at most\n"
    ".BR \\-\\-drain\\-timeout .\n"
    "A second signal resets the connections that are still open.\n"
    ".TP\n"
    ".B SIGHUP\n"
    "Open the access log again, and read the configuration file, certificates, keys and "
    "OCSP\n"
    "responses again.\n"
    "A valid file applies at once; keys that only a start reads are named in the log.\n"
    "Of an invalid one each error is printed, and what is in force stays.\n"
    ".TP\n"
    ".B SIGUSR1\n"
    "Open the access log again, after its file was renamed.\n"
    ".TP\n"
    ".B SIGUSR2\n"
    "Does nothing, except a line in the log.\n"
    "An upgrade is another process with the same\n"
    ".BR \\-\\-upgrade\\-socket .\n"
    ".SH ENVIRONMENT\n"
    ".TP\n"
    ".BR NOTIFY_SOCKET \", \" WATCHDOG_USEC \", \" WATCHDOG_PID\n"
    "The service manager, which gets the messages of\n"
    ".BR sd_notify (3).\n"
    "The watchdog's are sent while all lcores poll.\n"
    ".TP\n"
    ".B RUNTIME_DIRECTORY\n"
    "The folder of the EAL's telemetry socket; default:\n"
    ".I /var/run\n"
    "as root, else\n"
    ".B XDG_RUNTIME_DIR\n"
    "or\n"
    ".IR /tmp .\n"
    ".TP\n"
    ".B TZ\n"
    "The time zone of hours in the file, and of times in the access log in the format\n"
    ".IR combined ;\n"
    "default: that of\n"
    ".IR /etc/localtime .\n"
    ".TP\n"
    ".B TZDIR\n"
    "The folder of the files of time zones; default:\n"
    ".IR /usr/share/zoneinfo .\n"
    ".TP\n"
    ".B JOURNAL_STREAM\n"
    "Set by systemd.\n"
    "If it names standard error, log lines begin with a priority of\n"
    ".BR sd\\-daemon (3)\n"
    "in place of time and level.\n"
    ".TP\n"
    ".B NJ_EAL_VERBOSE\n"
    "If 1, what the EAL prints during the start is shown.\n"
    ".SH FILES\n"
    "Options name the files that the server reads and writes.\n"
    ".TP\n"
    ".BI \\-\\-root \" DIR\"\n"
    "the folder to serve\n"
    ".TP\n"
    ".BI \\-\\-config \" FILE\"\n"
    "the configuration file, e.g.\n"
    ".I /etc/nightjar/nightjar.conf\n"
    ".TP\n"
    ".BI \\-\\-mime\\-types \" FILE\"\n"
    "content types in the format of\n"
    ".I /etc/mime.types\n"
    ".TP\n"
    ".BI \\-\\-access\\-log \" FILE\"\n"
    "the access log, to which lines are appended\n"
    ".TP\n"
    ".BI \\-\\-tls\\-cert \" FILE\"\n"
    "a certificate chain; and, in the same way,\n"
    ".BR \\-\\-tls\\-key ,\n"
    ".B \\-\\-tls\\-ocsp\n"
    "and\n"
    ".B \\-\\-tls\\-client\\-ca\n"
    ".TP\n"
    ".BI \\-\\-keylog \" FILE\"\n"
    "secrets of TLS connections, which are appended\n"
    ".TP\n"
    ".BI \\-\\-upgrade\\-socket \" PATH\"\n"
    "the socket at which the next process takes over\n"
    ".TP\n"
    ".I /etc/default/nightjar\n"
    "arguments of the systemd units nightjar.service and nightjar@.service\n"
    ".SH SEE ALSO\n"
    ".BR nightjar.conf (5),\n"
    ".BR nightjar\\-ctl (1),\n"
    ".BR nightjar\\-load (1),\n"
    ".BR curl (1),\n"
    ".BR libnightjar (3),\n"
    ".BR systemd.service (5)\n"
    ".PP\n"
    "In the source tree, and with the package nightjar-doc in\n"
    ".IR /usr/share/doc/nightjar-doc :\n"
    ".I docs/policy.md\n"
    "(classes and limits),\n"
    ".I docs/network.md\n"
    "(addresses and ports),\n"
    ".I docs/deploy.md\n"
    "(installation and operation),\n"
    ".I docs/limits.md\n"
    "(limits and their counters).\n";

/* The heading of a group of options; NULL: the option continues the one before. */
static void put_group(const char *group)
{
    if (!group)
        return;
    fputs(".SS ", stdout);
    put_roff(group);
    putchar('\n');
}

void write_man(void)
{
    fputs(man_begin, stdout);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (!nj_option_is_named(o))
            continue;
        put_group(o->group);
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

/* --- nightjar.conf(5) ------------------------------------------------------------------------- */

static const char conf_begin[] =
    ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
    ".\\\" Written by `./dev options` from lib/config/option_table.c and\n"
    ".\\\" app/nightjar/roff_docs.c.\n"
    ".TH NIGHTJAR.CONF 5 \"\" \"nightjar " NJ_RELEASE "\" \"File Formats\"\n"
    ".SH NAME\n"
    "nightjar.conf \\- configuration of nightjar\n"
    ".SH SYNOPSIS\n"
    ".SY nightjar\n"
    ".B \\-\\-config\n"
    ".I /etc/nightjar/nightjar.conf\n"
    ".YS\n"
    ".SH EXAMPLE\n"
    ".EX\n"
    "[eal]\n"
    "arguments = \\-l 2,3\n"
    "preset = ixgbe,pci=0000:03:00.0\n"
    "\n"
    "[network]\n"
    "addr = 192.0.2.10/24\n"
    "addr = 2001:db8::10/64\n"
    "gateway = 192.0.2.1\n"
    "\n"
    "[files]\n"
    "root = /srv/www\n"
    "\n"
    "[class default]\n"
    "client_rate = 20MiB/s\n"
    ".EE\n"
    ".SH DESCRIPTION\n"
    "A section begins with a line\n"
    ".RI [ NAME ],\n"
    "and may occur once.\n"
    "Each line below it is\n"
    ".IR \"KEY \" = \" VALUE\" ;\n"
    "\\- and _ in a key are equivalent.\n"
    "# begins a comment, also behind a value (\\e# is a # of the value), and ; at the begin of a\n"
    "line does.\n"
    "A value has up to 2,047 bytes.\n"
    "Sizes, rates and times have a unit:\n"
    ".IR 64KiB ,\n"
    ".IR 20MiB/s ,\n"
    ".IR 100Mbit/s ,\n"
    ".IR 500ms ;\n"
    "only 0 needs none.\n"
    ".I none\n"
    "removes a limit.\n"
    ".PP\n"
    ".B include =\n"
    ".I FILE\n"
    "stands for the lines of another file.\n"
    "The last part of its name may have *, ? and [...]: all files that match are read in the "
    "order\n"
    "of their names, and none need match.\n"
    "A relative name begins at the folder of the file that includes it.\n"
    "The line ends the section above it.\n"
    "At most 128 files, 8 deep, are read.\n"
    ".PP\n"
    "Options of the command line override the file.\n"
    "A list of values replaces that of the file, except of\n"
    ".BR \\-\\-trusted\\-proxy .\n"
    "Relative names in root, alias and acme of sites and paths begin at [files] root.\n"
    "Other relative names begin at the working directory, as on the command line.\n"
    ".PP\n"
    ".B nightjar \\-\\-check \\-\\-config\n"
    ".I FILE\n"
    "prints what the file says, or each error with its line.\n"
    ".B nightjar convert\n"
    "prints the file that equals a command line.\n"
    ".PP\n"
    "SIGHUP reads the file, and the files that it names, again.\n"
    "If there is an error, the log has it with file and line, and nothing changes.\n"
    "Else changes apply at once, except of keys below that say \"change: restart\": the log names "
    "them\n"
    "with the values before and after.\n"
    ".SH SECTIONS\n";

static const char conf_path[] = ".SS All keys of [path NAME PATH]\n"
                                "The keys of [site NAME] except\n"
                                ".IR name ,\n"
                                "for a part of the site with that first name, or of\n"
                                ".IR default .\n"
                                "PATH is decoded:\n"
                                ".TP\n"
                                ".I /downloads/\n"
                                "all paths below it, and /downloads\n"
                                ".TP\n"
                                ".I /robots.txt\n"
                                "this path only\n"
                                ".TP\n"
                                ".I *.iso\n"
                                "paths that end so\n"
                                ".SS Precedence of sites and paths\n"
                                "A host belongs to the site with that name, else to the one with "
                                "the longest wildcard, else to\n"
                                "[site default].\n"
                                "Each section overrides the keys that it has, in this order: the "
                                "site, the longest suffix, each\n"
                                "prefix from the shortest to the longest, the exact path; lines\n"
                                ".I header\n"
                                "by the name of the field.\n"
                                "A value of\n"
                                ".I none\n"
                                "(allow:\n"
                                ".IR all ,\n"
                                "methods:\n"
                                ".IR any )\n"
                                "removes what an outer section has set.\n"
                                ".B nightjar \\-\\-check \\-\\-config\n"
                                ".I FILE\n"
                                ".B \\-\\-explain\n"
                                ".I URL\n"
                                "prints the lines that apply to a request.\n"
                                ".SS Variables of URLs\n"
                                ".TP\n"
                                ".I $host\n"
                                "the host of the request\n"
                                ".TP\n"
                                ".I $path\n"
                                "its path and query\n"
                                ".TP\n"
                                ".I $rest\n"
                                "what follows the PATH of the section, with the query\n";

static const char conf_end[] = ".SH SEE ALSO\n"
                               ".BR nightjar (1)\n"
                               ".PP\n"
                               "In the source tree, and with the package nightjar-doc in\n"
                               ".IR /usr/share/doc/nightjar-doc :\n"
                               ".I docs/policy.md\n"
                               "(classes and limits, with examples),\n"
                               ".I docs/sites.md\n"
                               "(sites and paths),\n"
                               ".I docs/deploy.md\n"
                               "(what a reload changes, and how to restart without a cut).\n";

static void conf_key(const struct nj_option *o)
{
    char text[HELP_TEXT_BYTES], key[NJ_OPTION_KEY_BYTES];

    printf(".TP\n\\fB%s\\fR = \\fI", nj_option_key(o, key));
    put_roff(help_key_value(o));
    fputs("\\fR\n", stdout);
    help_describe(o, text);
    put_roff(text);
    if (o->may_repeat)
        fputs("; may be repeated", stdout);
    if (o->reload != NJ_RELOAD_TAKES)
        printf("; change: %s", nj_option_reload_text(o));
    putchar('\n');
}

void write_conf_man(void)
{
    const char *section = "";

    fputs(conf_begin, stdout);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        /* [class default] has the keys of [class NAME] */
        if (!o->section || strcmp(o->section, "class default") == 0)
            continue;
        if (strcmp(section, o->section) != 0)
            printf(".SS [%s]\n", section = o->section);
        conf_key(o);
    }
    fputs(conf_path, stdout);
    fputs(conf_end, stdout);
}

/* --- nightjar-ctl(1) ------------------------------------------------------------------------- */

static const char ctl_begin[] =
    ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
    ".\\\" Written by `./dev options` from app/ctl/command_table.c and\n"
    ".\\\" app/nightjar/roff_docs.c.\n"
    ".TH NIGHTJAR\\-CTL 1 \"\" \"nightjar " NJ_RELEASE "\" \"User Commands\"\n"
    ".SH NAME\n"
    "nightjar\\-ctl \\- look into a running nightjar, watch it, and change its limits\n"
    ".SH SYNOPSIS\n"
    ".SY nightjar\\~ctl\n"
    ".RI [ options ]\n"
    ".I COMMAND\n"
    ".RI [ arguments ]\n"
    ".YS\n"
    ".SY nightjar\\~top\n"
    ".RI [ options ]\n"
    ".YS\n"
    ".SH DESCRIPTION\n"
    "Asks a server over the Unix socket of its management listener.\n"
    "Who may write to the socket may ask: root and the group of the server.\n"
    "Tables are for people; their columns may change.\n"
    "Scripts use\n"
    ".B \\-\\-json\n"
    "and the exit status.\n"
    ".SH COMMANDS\n";

static const char ctl_end[] = ".SH EXAMPLES\n"
                              ".EX\n"
                              "nightjar ctl status\n"
                              "nightjar ctl clients limit=20 by=connections\n"
                              "nightjar ctl limits class=video rate=50MiB/s streams=4\n"
                              "nightjar ctl limits rate=none\n"
                              "nightjar ctl transfers client=192.0.2.0/24\n"
                              "nightjar ctl block \\-\\-for 10m 192.0.2.7\n"
                              "nightjar ctl \\-\\-json get latency | jq .total.p99_us\n"
                              "nightjar top \\-\\-interval 5\n"
                              ".EE\n"
                              ".SH SEE ALSO\n"
                              ".BR nightjar (1),\n"
                              ".BR nightjar.conf (5)\n"
                              ".PP\n"
                              "In the source tree, and with the package nightjar-doc in\n"
                              ".IR /usr/share/doc/nightjar-doc :\n"
                              ".I docs/observe.md\n"
                              "(what the answers mean).\n";

void write_ctl_man(void)
{
    fputs(ctl_begin, stdout);
    for (const struct ctl_command *k = ctl_commands; k < ctl_commands + CTL_N_COMMANDS; k++) {
        printf(".TP\n\\fB%s\\fR%s\\fI", k->name, *k->arguments ? " " : "");
        put_roff(k->arguments);
        fputs("\\fR\n", stdout);
        put_roff(k->help);
        putchar('\n');
    }
    fputs(".SH OPTIONS\n", stdout);
    for (const struct ctl_option *o = ctl_options; o < ctl_options + CTL_N_OPTIONS; o++) {
        fputs(".TP\n", stdout);
        put_option(o->name, o->value);
        if (o->letter)
            printf("(\\fB\\-%c\\fR) ", o->letter);
        put_roff(o->help);
        putchar('\n');
    }
    fputs(".SH KEYS OF NIGHTJAR TOP\n", stdout);
    for (const struct ctl_top_key *k = ctl_top_keys; k->keys; k++) {
        fputs(".TP\n\\fB", stdout);
        put_roff(k->keys);
        fputs("\\fR\n", stdout);
        put_roff(k->help);
        putchar('\n');
    }
    fputs(".SH EXIT STATUS\n", stdout);
    for (const struct ctl_exit_status *s = ctl_exit_statuses; s->status; s++) {
        printf(".TP\n.B %s\n", s->status);
        put_roff(s->meaning);
        putchar('\n');
    }
    fputs(ctl_end, stdout);
}

/* --- nightjar-load(1) ------------------------------------------------------------------------ */

#define LOAD_ADDR     ".B \\-\\-addr\n.I ADDRESS/PREFIX\n"
#define LOAD_OPERANDS ".RI [ options ]\n.I URL\n.RI [ PATH [= N ]\n\\&...]\n"

static const char load_begin[] =
    ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
    ".\\\" Written by `./dev options` from perf/tools/load/option_table.c and\n"
    ".\\\" app/nightjar/roff_docs.c.\n"
    ".TH NIGHTJAR\\-LOAD 1 \"\" \"nightjar " NJ_RELEASE "\" \"User Commands\"\n"
    ".SH NAME\n"
    "nightjar\\-load \\- HTTP load generator over sockets, or a TCP stack of its own on DPDK\n"
    ".SH SYNOPSIS\n"
    ".SY nightjar\\-load\n" LOAD_OPERANDS ".SY nightjar\\-load\n"
    ".B \\-\\-preset\n"
    ".IR NAME ,...\n" LOAD_ADDR LOAD_OPERANDS ".SY nightjar\\-load\n"
    ".I EAL arguments\n"
    ".B \\-\\-\n" LOAD_ADDR LOAD_OPERANDS ".YS\n"
    ".SH DESCRIPTION\n";

static const char load_end[] = ".SH SIGNALS\n"
                               ".TP\n"
                               ".BR SIGTERM \", \" SIGINT\n"
                               "End the measurement, and report what was measured.\n"
                               ".SH EXIT STATUS\n"
                               ".TP\n.B 0\n"
                               "There is a report, with at least one response.\n"
                               ".TP\n.B 1\n"
                               "There was no response, the load could not begin, or a file of the "
                               "report could not be written.\n"
                               ".TP\n.B 2\n"
                               "The arguments are not valid.\n"
                               ".SH SEE ALSO\n"
                               ".BR nightjar (1),\n"
                               ".BR h2load (1)\n";

static void load_man_option(const struct load_option *o)
{
    fputs(".TP\n", stdout);
    if (o->code < 256)
        printf("\\fB\\-%c\\fR, ", o->code);
    put_option(o->name, o->value ? o->value : "");
    put_roff(o->help);
    if (o->default_text) {
        fputs(" [", stdout);
        put_roff(o->default_text);
        putchar(']');
    }
    putchar('\n');
}

void write_load_man(void)
{
    fputs(load_begin, stdout);
    put_roff(load_intro);
    fputs("\n.PP\n", stdout);
    put_roff(load_outro);
    fputs("\n.SH OPTIONS\nBrackets have the default.\n", stdout);
    for (const struct load_option *o = load_option_table; o < load_option_table + load_n_options;
         o++) {
        put_group(o->group);
        load_man_option(o);
    }
    fputs(".SH EXAMPLES\nThe last with a server on the other end of a memif:\n.PP\n.EX\n", stdout);
    put_roff(load_example);
    fputs("\n.EE\n", stdout);
    fputs(load_end, stdout);
}
