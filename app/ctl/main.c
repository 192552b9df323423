/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar-ctl, which `nightjar ctl` and `nightjar top` run: parses its command line, finds the
 * server, and runs the command. */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "ctl/ctl.h"
#include "top/top.h"
#include "wrap_text.h"

static const char usage[] =
    "usage: nightjar ctl [--socket PATH] [--json] [--timeout SECONDS] COMMAND [ARGUMENTS]\n"
    "       nightjar top [--socket PATH] [--interval SECONDS] [--once]\n"
    "\n"
    "Asks a running server over the Unix socket of its management listener.\n"
    "\n";

/* Of getopt_long(), which tells errors by '?' and ':'. */
#define OPTION_CODE(i) (0x100 + (int)(i))

static void print_entry(const char *dashes, const char *name, const char *value, char letter,
                        const char *help)
{
    int at = printf("  %s%s%s%s", dashes, name, *value ? " " : "", value);

    if (letter)
        at += printf(", -%c", letter);
    if (at + 1 > WRAP_INDENT) {
        putchar('\n');
        at = 0;
    }
    wrap_text(stdout, help, at, WRAP_INDENT);
}

static void print_help(void)
{
    fputs(usage, stdout);
    for (size_t i = 0; i < CTL_N_COMMANDS; i++)
        print_entry("", ctl_commands[i].name, ctl_commands[i].arguments, 0, ctl_commands[i].help);
    putchar('\n');
    for (size_t i = 0; i < CTL_N_OPTIONS; i++)
        print_entry("--", ctl_options[i].name, ctl_options[i].value, ctl_options[i].letter,
                    ctl_options[i].help);
    fputs("\nExit status:\n", stdout);
    for (const struct ctl_exit_status *s = ctl_exit_statuses; s->status; s++)
        printf("  %s  %s\n", s->status, s->meaning);
}

/* CTL_N_COMMANDS: there is none. */
static enum ctl_command_id find_command(const char *name)
{
    unsigned i = 0;

    while (i < CTL_N_COMMANDS && strcmp(ctl_commands[i].name, name) != 0)
        i++;
    return (enum ctl_command_id)i;
}

static enum ctl_status bad_usage(const char *what, const char *reason)
{
    fprintf(stderr, "nightjar ctl: %s: %s; see nightjar ctl --help\n", what, reason);
    return CTL_USAGE;
}

/* Seconds, from 1 ms to a day. */
static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= 0.001 && *seconds <= 86400;
}

/* What the options say. */
struct options {
    const char *socket;
    pid_t pid;                    /* 0: not given */
    double timeout_s, interval_s; /* timeout_s 0: that of the command */
    bool json, once;
};

static enum ctl_status flush_output(enum ctl_status status)
{
    if (fflush(stdout) == 0)
        return status;
    perror("nightjar ctl: standard output");
    return status == CTL_OK ? CTL_REFUSED : status;
}

static enum ctl_status run(enum ctl_command_id id, const struct options *o, struct ctl *c)
{
    double timeout_s = o->timeout_s > 0 ? o->timeout_s : ctl_commands[id].timeout_s;
    char path[CTL_PATH_BYTES], why[1024];

    if (id == CTL_CMD_TOP && o->pid)
        return bad_usage("--pid", "top does not have it");
    if (id == CTL_CMD_TOP) {
        const struct top_options top = {.socket = o->socket,
                                        .timeout_s = timeout_s,
                                        .interval_s = o->interval_s,
                                        .once = o->once || o->json,
                                        .json = o->json};
        return flush_output((enum ctl_status)top_run(&top));
    }
    if (!(o->pid ? ctl_find_socket_of(o->pid, o->socket, path, why, sizeof why)
                 : ctl_find_socket(o->socket, path, why, sizeof why))) {
        fprintf(stderr, "nightjar ctl: %s\n", why);
        return CTL_UNREACHABLE;
    }
    c->client = ctl_client_new(path, timeout_s);
    if (!c->client) {
        fputs("nightjar ctl: no memory\n", stderr);
        return CTL_UNREACHABLE;
    }
    c->socket = path;
    enum ctl_status status = ctl_run(c, id);
    ctl_client_free(c->client);
    return flush_output(status);
}

/* Of the options of captures and traces. */
static bool has_option(enum ctl_command_id id, enum ctl_option_id option)
{
    bool is_of_both = option == CTL_OPT_CLIENT || option == CTL_OPT_SECONDS;

    return id == CTL_CMD_CAPTURE
               ? option != CTL_OPT_REQUESTS
               : id == CTL_CMD_TRACE && (is_of_both || option == CTL_OPT_REQUESTS);
}

static enum ctl_status run_arguments(int argc, char **argv, const struct options *o, struct ctl *c)
{
    if (argc == 0)
        return bad_usage("COMMAND", "expected one");
    enum ctl_command_id id = find_command(argv[0]);
    if (id == CTL_N_COMMANDS)
        return bad_usage(argv[0], "there is no such command");
    c->argc = argc - 1;
    c->argv = argv + 1;
    if (c->argc < ctl_commands[id].argc_min)
        return bad_usage(argv[0], "expected an argument");
    if (c->argc > ctl_commands[id].argc_max)
        return bad_usage(c->argv[ctl_commands[id].argc_max], "unexpected argument");
    if (c->for_time && id != CTL_CMD_BLOCK && (id != CTL_CMD_LIMITS || c->argc == 0))
        return bad_usage("--for", "only block and changes of limits have it");
    for (unsigned i = 0; i < CTL_N_OPTIONS; i++)
        if (c->given[i] && !has_option(id, (enum ctl_option_id)i))
            return bad_usage(ctl_options[i].name, "this command has no such option");
    return run(id, o, c);
}

int main(int argc, char **argv)
{
    struct option options[CTL_N_OPTIONS + 1] = {0};
    struct options o = {.interval_s = 1};
    struct ctl c = {0};
    uint64_t number;
    int opt;

    for (size_t i = 0; i < CTL_N_OPTIONS; i++)
        options[i] = (struct option){ctl_options[i].name, *ctl_options[i].value != '\0', NULL,
                                     OPTION_CODE(i)};
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":b", options, NULL)) != -1) {
        switch (opt) {
        case OPTION_CODE(CTL_OPT_SOCKET):
            o.socket = optarg;
            break;
        case OPTION_CODE(CTL_OPT_PID):
            if (!nj_parse_decimal(optarg, &number) || number == 0 || number > INT_MAX)
                return bad_usage(optarg, "expected the id of a process");
            o.pid = (pid_t)number;
            break;
        case OPTION_CODE(CTL_OPT_JSON):
            o.json = c.json = true;
            break;
        case OPTION_CODE(CTL_OPT_TIMEOUT):
        case OPTION_CODE(CTL_OPT_INTERVAL):
            if (!parse_seconds(optarg,
                               opt == OPTION_CODE(CTL_OPT_TIMEOUT) ? &o.timeout_s : &o.interval_s))
                return bad_usage(optarg, "expected a number of seconds, 0.001 to 86400");
            break;
        case OPTION_CODE(CTL_OPT_FOR):
            c.for_time = optarg;
            break;
        case OPTION_CODE(CTL_OPT_CLIENT):
        case OPTION_CODE(CTL_OPT_PORT):
        case OPTION_CODE(CTL_OPT_SNAPLEN):
        case OPTION_CODE(CTL_OPT_SECONDS):
        case OPTION_CODE(CTL_OPT_PACKETS):
        case OPTION_CODE(CTL_OPT_REQUESTS):
            c.given[opt - OPTION_CODE(0)] = optarg;
            break;
        case 'b':
        case OPTION_CODE(CTL_OPT_ONCE):
            o.once = true;
            break;
        case OPTION_CODE(CTL_OPT_HELP):
            print_help();
            return CTL_OK;
        default:
            return bad_usage(argv[optind - 1],
                             opt == ':' ? "expected a value" : "there is no such option");
        }
    }
    return run_arguments(argc - optind, argv + optind, &o, &c);
}
