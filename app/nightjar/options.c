/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line (getopt_long(3)) into a configuration, and runs the server. Options
 * before the -- go to DPDK's EAL; --help, --check and the --print- options print and exit. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nightjar/server.h>

#include "options.h"

static const char *const help[] = {
    "before the --\n"
    "  --preset NAME,KEY=VALUE,...   EAL arguments for a family of devices, and what to expect of\n"
    "                          the port: ixgbe,pci=0000:03:00.0 or tap,iface=nj0\n"
    "  --preset list           list the presets\n"
    "  --preset NAME,help      show what a preset needs, expects and cannot do\n"
    "  --print-preset NAME,... print the EAL arguments of a preset and exit\n"
    "\n",

    "network\n"
    "  --port N[=LCORES]       DPDK port number, needed if the EAL finds several ports (up to 8\n"
    "                          times). Each lcore polls one port: the listed lcores (=4-7), or an\n"
    "                          equal share of the lcores that no port lists. With several ports,\n"
    "                          append @N to a value of --addr to --vlan to select the port\n"
    "  --addr ADDRESS/PREFIX   address of the server, IPv4 or IPv6 (required; up to 8 times per\n"
    "                          port; without @N: for the first port)\n"
    "  --addr auto6            IPv6 addresses by router advertisements (SLAAC)\n"
    "  --gateway ADDRESS       default router, one for each address family\n"
    "                          [IPv6: from router advertisements]\n"
    "  --route NETWORK/PREFIX=ADDRESS   router for a network (up to 16 times per port)\n"
    "  --neighbour ADDRESS=MAC static neighbour entry, usually for a gateway: ARP and neighbour\n"
    "                          discovery cannot change it (up to 7 times per port)\n"
    "  --vlan ID               802.1Q VLAN ID, 1 to 4094 [untagged]\n"
    "  --mtu N                 IP MTU in bytes, 1280 to 9000 [the device's, at most 1500]\n"
    "  --listen PORT           TCP port [80]\n"
    "  --rx-ring N, --tx-ring N   descriptors per queue, 64 to 8192 [1024]\n"
    "  --rss-key HEX           RSS key that spreads connections over lcores, 80 hexadecimal\n"
    "                          digits; for use with other equipment that needs it [random]\n"
    "  --no-offload            compute checksums in software\n"
    "  --newreno               use NewReno congestion control [CUBIC]\n"
    "  --no-ecn                disable ECN (RFC 3168)\n"
    "\n",

    "content\n"
    "  --root DIR              folder to serve\n"
    "  --serve-private         as root, also serve files that other users cannot read [403]\n"
    "  --cache SIZE            memory for file contents, e.g. 512MiB [1GiB]\n"
    "  --index NAME            index file of a folder [index.html]\n"
    "  --listing               list folders without an index file, as HTML or JSON\n"
    "  --no-precompressed      do not send FILE.br, FILE.zst or FILE.gz in place of FILE\n"
    "  --mime-types FILE       content types (mime.types) that override the built-in table\n"
    "  --cache-control VALUE   Cache-Control header field of files, e.g. max-age=3600 [none]\n"
    "  --error-page 404=/404.html   file below the root to send with a status (up to 16 times)\n"
    "  --symlinks none|owner|beneath   symbolic links to follow: none, those to files of the\n"
    "                          link's owner, or those that stay below the root [beneath]\n"
    "  --file-reads auto|direct|buffered|threads   how to read large files: io_uring bypassing\n"
    "                          the page cache, io_uring through it, or threads; auto: direct if\n"
    "                          available, else threads [auto]\n"
    "\n",

    "limits (docs/policy.md)\n"
    "  --config FILE           policy file: classes, clients, lists, hours; reloaded on SIGHUP.\n"
    "                          Options override the file\n"
    "  --check                 check options and policy file, print the result with errors and\n"
    "                          warnings, and exit\n"
    "  --rate R                rate of the whole server, e.g. 20MiB/s or 100Mbit/s [none]\n"
    "  --rate-per-client R     rate of one client address (IPv6: one /64), over all its\n"
    "                          connections; if there are classes, in each class [none]\n"
    "  --rate-per-request R    rate of one response [none]\n"
    "  --rate-after SIZE       first bytes of a response that --rate-per-request does not limit\n"
    "                          [0]\n"
    "  --connections-per-client N   open connections of one client [none]\n"
    "  --streams-per-client N       open requests of one client [none]\n"
    "  --requests-per-client N      requests per second of one client; above: 429 [none]\n"
    "  --trusted-proxy NETWORK      proxies whose connections count for no client and who may\n"
    "                          name clients in a header, e.g. 10.0.0.0/8 (up to 16 times)\n"
    "\n",

    "requests\n"
    "  --max-body SIZE         maximum request body; above: 413 [set by the route]\n"
    "  --max-header-size SIZE  maximum size of a request header, 1KiB to 32KiB; above: 431\n"
    "                          [32KiB]\n"
    "  --max-headers N         maximum number of header fields, 8 to 128; above: 431 [128]\n"
    "  --preface-timeout TIME  maximum time until a new connection sends its first bytes [10s]\n"
    "  --header-timeout TIME   maximum time to receive a request header [10s]\n"
    "  --body-timeout TIME     maximum time without progress of a request body [60s]\n"
    "  --min-upload-rate R     minimum average rate of a request body over --body-timeout\n"
    "                          [500B/s]\n"
    "  --body-deadline TIME    maximum time from a request to the end of its body [1h]\n"
    "  --send-timeout TIME     maximum time a response may stall (time spent paced does not\n"
    "                          count) [60s]\n"
    "  --min-rate R            minimum average rate of a response over --send-timeout [none]\n"
    "  --idle-timeout TIME     maximum time a connection may have no running request [75s]\n"
    "  --max-connections N     maximum TCP connections per lcore [65536]\n"
    "\n",

    "running\n"
    "  --access-log FILE       log one line per request; -: standard output [none]\n"
    "  --log-format combined|json   [combined]\n"
    "  --drain-timeout TIME    time for running responses after SIGTERM, e.g. 500ms, 10s [10s]\n"
    "  --workers N             threads for OS_BLOCKING handlers, 1 to 32 [one per CPU without an\n"
    "                          lcore, at most 4]\n"
    "  --fibers N              maximum waiting handlers per lcore [256]\n"
    "  --strategy NAME         where handlers run: ewyk (by their type), or for comparison pc "
    "(all\n"
    "                          inline) or pec (all on workers) [ewyk]\n"
    "  --idle MODE             what an idle lcore does: sleep (up to 1 ms; with a tap or veth "
    "until\n"
    "                          a packet arrives), interrupt (wait for a receive interrupt, if the\n"
    "                          NIC has them), pause (poll at low power, if the CPU can), spin\n"
    "                          (poll) [sleep]\n"
    "  --busy-poll             same as --idle spin\n"
    "  --live                  print rates every second, if stderr is a terminal\n"
    "  --print-placement       draw which CPU polls which queue and where the workers run, for\n"
    "                          the lcores of -l or else the best ones of this host, and exit\n"
    "  --help, --version\n"
    "\n",

    "Limit the server to 100 Mbit/s, each client to 20 Mbit/s, each response to 200 KiB/s after\n"
    "its first 64 KiB, and apply a policy file:\n"
    "  nightjar ... -- ... --rate 100Mbit/s --rate-per-client 20Mbit/s \\\n"
    "           --rate-per-request 200KiB/s --rate-after 64KiB --config /etc/nightjar.conf\n"
    "  nightjar --check --config /etc/nightjar.conf      (needs no root, starts no server)\n"
    "\n"
    "Exit status: 0 after a signal or when the requested output is complete; 2 if an option or\n"
    "the policy file is invalid; 1 if the server could not start or did not stop cleanly.\n"
    "\n",
};

/* Options that print something in place of running a server; the library does not know them. Each
 * option has its own number: getopt_long() sees no ambiguity between options with equal numbers. */
enum { MODE_PRINT_PLACEMENT = 1, MODE_CHECK, MODE_HELP, MODE_VERSION, FIRST_OPTION_ID = 256 };

static const struct mode_options {
    const char *name;
    int what;
} mode_options[] = {{"print-placement", MODE_PRINT_PLACEMENT},
                    {"check", MODE_CHECK},
                    {"help", MODE_HELP},
                    {"version", MODE_VERSION}};

/* In the order of help[]. getopt_long() accepts unique prefixes of a name. */
static const char *const names[] = {
    "port",
    "addr",
    "gateway",
    "route",
    "neighbour",
    "vlan",
    "mtu",
    "rx-ring",
    "tx-ring",
    "listen",
    "rss-key",
    "no-offload",
    "newreno",
    "no-ecn",
    "root",
    "serve-private",
    "cache",
    "index",
    "listing",
    "no-precompressed",
    "mime-types",
    "cache-control",
    "error-page",
    "symlinks",
    "file-reads",
    "config",
    "rate",
    "rate-per-client",
    "rate-per-request",
    "rate-after",
    "connections-per-client",
    "streams-per-client",
    "requests-per-client",
    "trusted-proxy",
    "max-body",
    "max-header-size",
    "max-headers",
    "preface-timeout",
    "header-timeout",
    "body-timeout",
    "send-timeout",
    "min-rate",
    "min-upload-rate",
    "body-deadline",
    "idle-timeout",
    "max-connections",
    "access-log",
    "log-format",
    "drain-timeout",
    "workers",
    "fibers",
    "strategy",
    "idle",
    "busy-poll",
    "live",
};

#define N_NAMES        (sizeof names / sizeof names[0])
#define N_MODE_OPTIONS (sizeof mode_options / sizeof mode_options[0])

static void fill_options(struct option options[N_NAMES + N_MODE_OPTIONS + 1])
{
    size_t n = 0;

    for (int i = 0; i < (int)N_NAMES; i++)
        options[n++] = (struct option){
            names[i], nj_server_config_takes(names[i]) ? required_argument : no_argument, NULL,
            FIRST_OPTION_ID + i};
    for (size_t i = 0; i < N_MODE_OPTIONS; i++)
        options[n++] =
            (struct option){mode_options[i].name, no_argument, NULL, mode_options[i].what};
    options[n] = (struct option){0};
}

static const struct nj_app *app;
static bool print_placement, check; /* modes that replace running a server */

static void print_help(FILE *out)
{
    fputs(app->intro, out);
    for (size_t i = 0; i < sizeof help / sizeof help[0]; i++)
        fputs(help[i], out);
    fputs(app->outro, out);
}

static void set_run_mode(int what)
{
    switch (what) {
    case MODE_PRINT_PLACEMENT:
        print_placement = true;
        break;
    case MODE_CHECK:
        check = true;
        break;
    case MODE_HELP:
        print_help(stdout);
        exit(0);
    case MODE_VERSION:
        printf("%s %s\n", app->name, nj_version());
        exit(0);
    default:
        break;
    }
}

/* Returns how many options begin with these letters; `all` gets their names. */
static size_t options_with_prefix(const char *text, size_t n, char *all, size_t n_all)
{
    struct option options[N_NAMES + N_MODE_OPTIONS + 1];
    size_t n_found = 0, at = 0;

    fill_options(options);
    for (size_t i = 0; options[i].name; i++) {
        if (strncmp(options[i].name, text, n) != 0)
            continue;
        int put = snprintf(all + at, n_all - at, "%s--%s", n_found++ ? ", " : "", options[i].name);
        at += put > 0 && (size_t)put < n_all - at ? (size_t)put : 0;
    }
    return n_found;
}

/* Explains an argument that getopt_long() rejected. */
static void report_bad_option(const char *word, int opt)
{
    const char *more[N_MODE_OPTIONS + 1] = {NULL};
    char name[64], all[256] = "";
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;

    for (size_t i = 0; i < N_MODE_OPTIONS; i++)
        more[i] = mode_options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)n, word + 2);
    const char *near = nj_server_config_near(name, more);
    if (strcmp(name, "preset") == 0)
        fprintf(stderr, "nightjar: --preset: must come before the --, among the EAL arguments\n");
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
    struct option options[N_NAMES + N_MODE_OPTIONS + 1];
    char why[256];
    int opt;

    fill_options(options);
    opterr = 0; /* its messages suggest no similar names */
    optind = 1;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt == '?' || opt == ':') {
            report_bad_option(argv[optind - 1], opt);
            return -1;
        }
        if (opt < FIRST_OPTION_ID) {
            set_run_mode(opt);
        } else if (nj_server_config_set(c, names[opt - FIRST_OPTION_ID], optarg, why, sizeof why) !=
                   0) {
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
        bool is_check = strcmp(argv[i], "--check") == 0;
        if (!is_check && strcmp(argv[i], "--print-placement") != 0)
            continue;
        set_run_mode(is_check ? MODE_CHECK : MODE_PRINT_PLACEMENT);
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

int nj_app_run(int argc, char **argv, const struct nj_app *me, struct nj_server_config *config)
{
    int n_eal = 0;

    app = me;
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
        print_help(stderr);
        return 2;
    }
    if (ours)
        n_eal = 0;
    else if (n_eal < argc)
        set_modes_before_dashes(&n_eal, &argc, argv);
    config->crash_report = true;
    if (n_eal < argc && parse_options(argc - n_eal, argv + n_eal, config) != 0)
        return 2;
    if (check)
        return nj_server_check(config);
    if (print_placement)
        return nj_print_placement(n_eal, ours ? NULL : argv, config);
    argv[n_eal < argc ? n_eal : argc] = NULL;
    if (n_eal == argc) { /* only -h: the EAL's help */
        config->addr[0] = "198.18.0.2/24";
        config->root = "/";
    }
    return nj_server_run(n_eal, argv, config);
}
