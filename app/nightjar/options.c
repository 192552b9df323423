/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line (getopt_long(3)) into a configuration, and runs the server. Options
 * before the -- go to DPDK's EAL; --help, --check and the --print- options print and exit.
 * Names, types and help texts are in lib/config/option_table.c. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nightjar/server.h>

#include "base/handled_signals.h"
#include "base/standard_descriptors.h"
#include "config/option_table.h"
#include "help.h"
#include "options.h"

#define FIRST_OPTION_ID 256 /* what getopt_long() returns for the first option of the table */

static const struct nj_app *app;
static bool print_placement, check; /* modes that replace running a server */

/* --- signals before main() -------------------------------------------------------------------- */

#define KERNEL_SIGSET_BYTES 8

static sigset_t inherited_mask;

/* Constructors of libraries run for some 20 ms before main(), and SIGHUP of a service manager or a
 * log rotation would end the process meanwhile. A system call, because sanitizers, which replace
 * functions of libc, are not ready yet. */
static void block_signals_early(void)
{
    sigset_t handled;

    sigemptyset(&inherited_mask);
    nj_handled_signals_fill(&handled);
    (void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &handled, &inherited_mask, KERNEL_SIGSET_BYTES);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_constructors)(void) = block_signals_early;

void nj_app_unblock_signals(void)
{
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

/* --- options ---------------------------------------------------------------------------------- */

/* Options of the table in the form of getopt_long(), which accepts unique prefixes of a name.
 * Each has a number of its own: options with equal numbers are not ambiguous to getopt_long(). */
static void fill_getopt_options(struct option options[NJ_OPTIONS_MAX + 1])
{
    size_t n = 0;

    for (uint32_t i = 0; i < nj_n_options; i++) {
        const struct nj_option *o = &nj_options[i];
        int argument = nj_option_takes_value(o) ? required_argument : no_argument;
        if (o->kind != NJ_OPTION_EAL)
            options[n++] = (struct option){o->name, argument, NULL, FIRST_OPTION_ID + (int)i};
    }
    options[n] = (struct option){0};
}

static void set_run_mode(const char *name)
{
    if (strcmp(name, "print-placement") == 0) {
        print_placement = true;
    } else if (strcmp(name, "check") == 0) {
        check = true;
    } else if (strcmp(name, "help") == 0) {
        help_print(stdout, app);
        exit(0);
    } else if (strcmp(name, "version") == 0) {
        printf("%s %s\n", app->name, nj_version());
        exit(0);
    }
}

/* Returns how many options begin with these letters; `all` gets their names. */
static size_t options_with_prefix(const char *text, size_t n, char *all, size_t n_all)
{
    size_t n_found = 0, at = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->kind == NJ_OPTION_EAL || strncmp(o->name, text, n) != 0)
            continue;
        int put = snprintf(all + at, n_all - at, "%s--%s", n_found++ ? ", " : "", o->name);
        at += put > 0 && (size_t)put < n_all - at ? (size_t)put : 0;
    }
    return n_found;
}

/* Explains an argument that getopt_long() rejected. */
static void report_bad_option(const char *word, int opt)
{
    const char *modes[NJ_OPTIONS_MAX + 1] = {NULL};
    char name[64], all[256] = "";
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0, n_modes = 0;
    bool is_eal = false;

    snprintf(name, sizeof name, "%.*s", (int)n, word + 2);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->kind == NJ_OPTION_MODE)
            modes[n_modes++] = o->name;
        is_eal |= o->kind == NJ_OPTION_EAL && strcmp(name, o->name) == 0;
    }
    const char *near = nj_server_config_near(name, modes);
    if (is_eal)
        fprintf(stderr, "nightjar: --%s: must come before the --, among the EAL arguments\n", name);
    else if (n == 0)
        fprintf(stderr,
                "nightjar: %s: there is no such option; options begin with --; see --help\n", word);
    else if (opt == ':')
        fprintf(stderr, "nightjar: --%s: expected a value\n", name);
    else if (optopt != 0)
        fprintf(stderr, "nightjar: --%s: expected no value\n", name);
    else if (options_with_prefix(name, n, all, sizeof all) > 1)
        fprintf(stderr, "nightjar: --%s: ambiguous: %s\n", name, all);
    else if (near)
        fprintf(stderr, "nightjar: --%s: there is no such option: did you mean --%s?\n", name,
                near);
    else
        fprintf(stderr, "nightjar: --%s: there is no such option; see --help\n", name);
}

static int parse_options(int argc, char **argv, struct nj_server_config *c)
{
    struct option options[NJ_OPTIONS_MAX + 1];
    char why[256];
    int opt;

    fill_getopt_options(options);
    opterr = 0; /* its messages suggest no similar names */
    optind = 1;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt == '?' || opt == ':') {
            report_bad_option(argv[optind - 1], opt);
            return -1;
        }
        const struct nj_option *o = &nj_options[opt - FIRST_OPTION_ID];
        if (o->kind == NJ_OPTION_MODE) {
            set_run_mode(o->name);
        } else if (nj_server_config_set(c, o->name, optarg, why, sizeof why) != 0) {
            fprintf(stderr, "nightjar: %s\n", why);
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nightjar: %s: unexpected argument (options begin with --; see --help)\n",
                argv[optind]);
        return -1;
    }
    optind = opterr = 1; /* the EAL uses getopt, too */
    return 0;
}

/* `nightjar --help`, `--version`, `--print-placement`, and `--check` with more, need no --. */
static bool needs_no_eal(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0)
            return true;
    return argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "--version") == 0 ||
                         strcmp(argv[1], "--print-placement") == 0);
}

/* Removes --check and --print-placement from the arguments before the --, where they are accepted
 * too: the EAL would reject them. */
static void set_modes_before_dashes(int *n_eal, int *argc, char **argv)
{
    for (int i = 1; i < *n_eal; i++) {
        if (strcmp(argv[i], "--check") != 0 && strcmp(argv[i], "--print-placement") != 0)
            continue;
        set_run_mode(argv[i] + strlen("--"));
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof *argv);
        (*argc)--;
        (*n_eal)--;
        i--;
    }
}

/* The preset to print, "" if its name is missing, or NULL if none is to be printed. */
static const char *preset_to_print(int argc, char **argv)
{
    static const char print[] = "--print-preset", use[] = "--preset";

    for (int i = 1; i < argc; i++) {
        const char *equal = strchr(argv[i], '='), *value = equal ? equal + 1 : argv[i + 1];
        size_t n = equal ? (size_t)(equal - argv[i]) : strlen(argv[i]);
        if (n == strlen(print) && strncmp(argv[i], print, n) == 0)
            return value ? value : "";
        if (n != strlen(use) || strncmp(argv[i], use, n) != 0 || !value)
            continue;
        const char *comma = strchr(value, ',');
        if (strcmp(value, "list") == 0 || strcmp(value, "help") == 0 ||
            (comma && strcmp(comma, ",help") == 0))
            return value;
    }
    return NULL;
}

static void warn_closed_stdout(int closed, const struct nj_server_config *config)
{
    if ((closed & 1 << STDOUT_FILENO) && config->access_log && strcmp(config->access_log, "-") == 0)
        fputs("nightjar: warning: --access-log -: standard output is closed, so the lines of the "
              "access log are lost: name a file\n",
              stderr);
}

int nj_app_run(int argc, char **argv, const struct nj_app *me, struct nj_server_config *config)
{
    int n_eal = 0, closed = nj_standard_descriptors_open();

    app = me;
    if (closed < 0) {
        fprintf(stderr,
                "nightjar: a descriptor of 0 to 2 is closed, and /dev/null cannot be opened in its "
                "place: %s\n",
                strerror(errno));
        return 1;
    }
    if (nj_openssl_exclude_from_dumps() != 0)
        fputs("nightjar: warning: a library has used OpenSSL before main(), so core dumps can have "
              "private keys of TLS\n",
              stderr);
    const char *preset = preset_to_print(argc, argv);
    if (preset)
        return nj_print_preset(preset);
    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    bool ours = n_eal == argc && needs_no_eal(argc, argv);
    if (n_eal == argc && argc > 1 && !ours && strcmp(argv[1], "-h") != 0) {
        fprintf(
            stderr,
            "nightjar: no -- found: put EAL arguments before it and %s's options after it; see %s "
            "--help\n",
            app->name, app->name);
        return 2;
    }
    if (n_eal == argc && argc == 1) {
        help_print(stderr, app);
        return 2;
    }
    if (ours)
        n_eal = 0;
    else if (n_eal < argc)
        set_modes_before_dashes(&n_eal, &argc, argv);
    config->crash_report = true;
    config->service_notify = true;
    config->drop_privileges = true;
    if (n_eal < argc && parse_options(argc - n_eal, argv + n_eal, config) != 0)
        return 2;
    if (check || print_placement)
        nj_app_unblock_signals();
    if (check)
        return nj_server_check(config);
    warn_closed_stdout(closed, config);
    if (print_placement)
        return nj_print_placement(n_eal, ours ? NULL : argv, config);
    argv[n_eal < argc ? n_eal : argc] = NULL;
    if (n_eal == argc) { /* only -h: the EAL's help */
        config->addr[0] = "198.18.0.2/24";
        config->root = "/";
    }
    return nj_server_run(n_eal, argv, config);
}
