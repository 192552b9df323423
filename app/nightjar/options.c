/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line into a configuration, and runs the server. Arguments before the -- go to
 * DPDK's EAL; --help, --check and the --print- options print and exit. With --config, the -- may be
 * missing. Names, types and help texts are in lib/config/option_table.c. */
#include <errno.h>
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

/* `topic`: what follows --help, or NULL. */
static void set_run_mode(const char *name, const char *topic)
{
    if (strcmp(name, "print-placement") == 0) {
        print_placement = true;
    } else if (strcmp(name, "check") == 0) {
        check = true;
    } else if (strcmp(name, "help") == 0) {
        exit(topic ? help_print_topic(app, topic) : help_print(stdout, app));
    } else if (strcmp(name, "version") == 0) {
        printf("%s %s\n", app->name, nj_version());
        exit(0);
    }
}

/* `n`: of the name, without its value. */
static const struct nj_option *find_option(const char *name, size_t n)
{
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (nj_option_is_named(o) && strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

/* Returns how many options begin with these letters; `all` gets their names. */
static size_t options_with_prefix(const char *text, size_t n, char *all, size_t n_all)
{
    size_t n_found = 0, at = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (o->kind <= NJ_OPTION_EAL || !nj_option_is_named(o) || strncmp(o->name, text, n) != 0)
            continue;
        int put = snprintf(all + at, n_all - at, "%s--%s", n_found++ ? ", " : "", o->name);
        at += put > 0 && (size_t)put < n_all - at ? (size_t)put : 0;
    }
    return n_found;
}

/* `n`: of the name. */
static void report_unknown_option(const char *word, size_t n)
{
    const char *modes[NJ_OPTIONS_MAX + 1] = {NULL};
    char name[64], all[256] = "";
    size_t n_modes = 0;

    snprintf(name, sizeof name, "%.*s", (int)n, word + 2);
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (o->kind == NJ_OPTION_MODE)
            modes[n_modes++] = o->name;
    size_t n_found = n > 0 ? options_with_prefix(name, strlen(name), all, sizeof all) : 0;
    const char *near = n_found == 0 ? nj_server_config_near(name, modes) : NULL;
    if (near)
        snprintf(all, sizeof all, "--%s", near);
    if (n == 0)
        fprintf(stderr,
                "nightjar: %s: there is no such option; options begin with --; see --help\n", word);
    else if (n_found > 1)
        fprintf(stderr, "nightjar: --%s: there is no such option: did you mean one of %s?\n", name,
                all);
    else if (all[0])
        fprintf(stderr, "nightjar: --%s: there is no such option: did you mean %s?\n", name, all);
    else
        fprintf(stderr, "nightjar: --%s: there is no such option; see --help\n", name);
}

/* Parses the option at argv[*i] and its value. Advances *i to its last word. */
static int parse_option(int argc, char **argv, int *i, struct nj_server_config *c,
                        struct nj_given *given)
{
    const char *word = argv[*i], *value = NULL;
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    const struct nj_option *o = find_option(word + 2, n);
    bool has_value = n > 0 && word[2 + n] == '=';
    char why[256];

    if (!o || n == 0) {
        report_unknown_option(word, n);
        return -1;
    }
    if (o->kind == NJ_OPTION_EAL) {
        fprintf(stderr, "nightjar: --%s: must come before the --, among the EAL arguments\n",
                o->name);
        return -1;
    }
    bool is_help = strcmp(o->name, "help") == 0 && *i + 1 < argc;
    if (has_value)
        value = word + 2 + n + 1;
    else if ((nj_option_takes_value(o) || is_help) && *i + 1 < argc)
        value = argv[++*i];
    if (nj_option_takes_value(o) ? !value : has_value) {
        fprintf(stderr, "nightjar: --%s: expected %s value\n", o->name, has_value ? "no" : "a");
        return -1;
    }
    *given = (struct nj_given){o, value};
    if (o->kind == NJ_OPTION_MODE) {
        set_run_mode(o->name, value);
    } else if (nj_server_config_set(c, o->name, value, why, sizeof why) != 0) {
        fprintf(stderr, "nightjar: %s\n", why);
        return -1;
    }
    return 0;
}

int nj_app_parse_options(int argc, char **argv, struct nj_server_config *c, struct nj_given *given)
{
    struct nj_given none;

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1]) {
            fprintf(stderr,
                    "nightjar: %s: unexpected argument (options begin with --; see --help)\n",
                    argv[i]);
            return -1;
        }
        if (parse_option(argc, argv, &i, c, given ? given++ : &none) != 0)
            return -1;
    }
    return 0;
}

/* `nightjar --config FILE` and `--check` with more, and `--help`, `--version`, `--print-placement`
 * need no --. */
static bool needs_no_eal(int argc, char **argv)
{
    static const char *const alone[] = {"--help", "--version", "--print-placement"};

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0 || strcmp(argv[i], "--config") == 0 ||
            strncmp(argv[i], "--config=", 9) == 0)
            return true;
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (argc > 1 && strcmp(argv[1], alone[i]) == 0)
            return argc == 2 || i == 0;
    return false;
}

/* Removes --check and --print-placement from the arguments before the --, where they are accepted
 * too: the EAL would reject them. */
static void set_modes_before_dashes(int *n_eal, int *argc, char **argv)
{
    for (int i = 1; i < *n_eal; i++) {
        if (strcmp(argv[i], "--check") != 0 && strcmp(argv[i], "--print-placement") != 0)
            continue;
        set_run_mode(argv[i] + strlen("--"), NULL);
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
        fprintf(stderr,
                "nightjar: no -- found: put EAL arguments before it and %s's options after it, or "
                "name a "
                "file with --config; see %s --help\n",
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
    config->management_default = true;
    if (n_eal < argc && nj_app_parse_options(argc - n_eal, argv + n_eal, config, NULL) != 0)
        return 2;
    if (!check && (config->explain || config->explain_from || config->check_json)) {
        fputs("nightjar: --explain, --explain-from and --json need --check\n", stderr);
        return 2;
    }
    if (check || print_placement)
        nj_app_unblock_signals();
    if (check)
        return nj_server_check(config);
    warn_closed_stdout(closed, config);
    if (print_placement)
        return nj_print_placement(n_eal, ours ? NULL : argv, config);
    if (ours)
        n_eal = 1; /* the name of the program; the file has the others */
    argv[n_eal < argc ? n_eal : argc] = NULL;
    if (n_eal == argc) { /* only -h: the EAL's help */
        config->addr[0] = "198.18.0.2/24";
        config->root = "/";
    }
    return nj_server_run(n_eal, argv, config);
}
