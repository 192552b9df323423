/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar [EAL arguments] -- [options]: the command line, turned into a configuration. */
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
    "  --preset list           which there are\n"
    "  --preset NAME,help      what one needs, expects and cannot do\n"
    "  --print-preset NAME,... the EAL arguments that it stands for, and end\n"
    "\n",

    "network\n"
    "  --port N[=LCORES]       a port by DPDK's number, when the EAL finds several; up to 8 "
    "times.\n"
    "                          Each lcore polls one port: with =4-7 those, otherwise an equal\n"
    "                          part of those that no port names. With several ports @N behind a\n"
    "                          value of the options --addr to --vlan says of which port it is\n"
    "  --addr ADDRESS/PREFIX   our address on the link, IPv4 or IPv6 (required; up to 8 times\n"
    "                          for each port; without @N of the first port)\n"
    "  --addr auto6            IPv6 addresses as the link's routers tell (SLAAC)\n"
    "  --gateway ADDRESS       router for what is not on the link, one for each family;\n"
    "                          for IPv6 [what routers advertise]\n"
    "  --route NETWORK/PREFIX=ADDRESS   another router of the link, for that network (up to 16\n"
    "                          times for each port)\n"
    "  --neighbour ADDRESS=MAC the MAC address of a host of the link, a gateway mostly, that no\n"
    "                          packet can change (up to 7 times for each port)\n"
    "  --vlan ID               802.1Q VLAN to be in, 1 to 4094 [untagged]\n"
    "  --mtu N                 of IP packets, 1280 to 9000 [the device's, at most 1500]\n"
    "  --listen PORT           TCP port [80]\n"
    "  --rx-ring N, --tx-ring N   descriptors of each queue, 64 to 8192 [1024]\n"
    "  --rss-key HEX           80 digits: the key by which connections are spread over lcores,\n"
    "                          where something else has to know it [random]\n"
    "  --no-offload            checksums by software, whatever the device offers\n"
    "  --newreno               congestion control by NewReno [CUBIC]\n"
    "  --no-ecn                no ECN (RFC 3168), also for peers that ask for it\n"
    "\n",

    "content\n"
    "  --root DIR              folder to serve\n"
    "  --serve-private         as root, also what only its owner or group may read [403]\n"
    "  --cache SIZE            file contents kept in memory, e.g. 512MiB [1GiB]\n"
    "  --index NAME            what a folder stands for [index.html]\n"
    "  --listing               list folders without such a file, as HTML or JSON\n"
    "  --no-precompressed      do not send FILE.br, FILE.zst or FILE.gz in place of FILE\n"
    "  --mime-types FILE       content types (mime.types), looked at before our own\n"
    "  --cache-control VALUE   that header field of files, e.g. max-age=3600 [none]\n"
    "  --error-page 404=/404.html   a file below the root for a status (up to 16 times)\n"
    "  --symlinks none|owner|beneath   follow none, those to files of the link's owner, or those\n"
    "                          that stay below the root [beneath]\n"
    "  --file-reads auto|direct|buffered|threads   large files: by io_uring past the page cache,\n"
    "                          through it, or by threads; auto is direct, else threads [auto]\n"
    "\n",

    "who may have what (docs/policy.md)\n"
    "  --config FILE           policy: classes, clients, lists, hours; read again at SIGHUP.\n"
    "                          Where an option and the file disagree, the option wins\n"
    "  --check                 read options and policy, show what they come to, say what is\n"
    "                          wrong or hardly meant, and end\n"
    "  --rate R                of the whole server, e.g. 20MiB/s or 100Mbit/s [none]\n"
    "  --rate-per-client R     of an address (IPv6: a /64), whatever it opens\n"
    "                          (of each class, where there are classes) [none]\n"
    "  --rate-per-request R    of one response [none]\n"
    "  --rate-after SIZE       beginning of a response that --rate-per-request spares [0]\n"
    "  --connections-per-client N   open at once [none]\n"
    "  --streams-per-client N       requests open at once [none]\n"
    "  --requests-per-client N      per second; beyond: 429 [none]\n"
    "  --trusted-proxy NETWORK      its connections count for no client, and it may name\n"
    "                          clients in a header, e.g. 10.0.0.0/8 (up to 16 times)\n"
    "\n",

    "requests\n"
    "  --max-body SIZE         longest request body; beyond: 413 [as its route says]\n"
    "  --max-header-size SIZE  header of a request, 1KiB to 32KiB; beyond: 431 [32KiB]\n"
    "  --max-headers N         its fields, 8 to 128; beyond: 431 [128]\n"
    "  --preface-timeout TIME  a new connection may be silent for so long [10s]\n"
    "  --header-timeout TIME   from the first byte of a header to its last [10s]\n"
    "  --body-timeout TIME     the peer may send nothing of a request body for so long [60s]\n"
    "  --min-upload-rate R     what it must send of the body on the average of that time\n"
    "                          [500B/s]\n"
    "  --body-deadline TIME    from a request to the end of its body [1h]\n"
    "  --send-timeout TIME     the peer may take nothing of a response for so long, while our\n"
    "                          own limits do not hold it back [60s]\n"
    "  --min-rate R            what it must take on the average of that time [none]\n"
    "  --idle-timeout TIME     a connection without a running request [75s]\n"
    "  --max-connections N     TCP connections of one lcore [65536]\n"
    "\n",

    "running\n"
    "  --access-log FILE       a line for each request; -: standard output [none]\n"
    "  --log-format combined|json   [combined]\n"
    "  --drain-timeout TIME    after SIGTERM, time for running responses, e.g. 500ms, 10s [10s]\n"
    "  --workers N             threads for handlers that may block, 1 to 32\n"
    "                          [up to 4, as many as CPUs are left by the lcores]\n"
    "  --fibers N              handlers of one lcore that can wait at once [256]\n"
    "  --strategy NAME         where handlers run: ewyk, as their type says; or to compare:\n"
    "                          pc, all inline; pec, all on workers [ewyk]\n"
    "  --idle MODE             what lcores do without work: sleep (up to 1 ms; with a tap or veth\n"
    "                          until a packet comes), interrupt (wait for the NIC's, where it\n"
    "                          has them), pause (polls with less power, where the CPU can),\n"
    "                          spin (polls) [sleep]\n"
    "  --busy-poll             the same as --idle spin\n"
    "  --live                  a line of rates every second, where stderr is a terminal\n"
    "  --print-placement       draw which CPU polls which queue and where the workers run, for\n"
    "                          the lcores of -l or else the best ones here, and end\n"
    "  --help, --version\n"
    "\n",

    "No client more than a fifth of 100 Mbit/s, no response faster than 200 KiB/s after its first\n"
    "64 KiB, and what the policy file says besides:\n"
    "  nightjar ... -- ... --rate 100Mbit/s --rate-per-client 20Mbit/s \\\n"
    "           --rate-per-request 200KiB/s --rate-after 64KiB --config /etc/nightjar.conf\n"
    "  nightjar --check --config /etc/nightjar.conf      (needs no root, starts nothing)\n"
    "\n"
    "Exit status: 0 after a signal, or when what was asked for is done; 2 when an option or the\n"
    "policy file is wrong; 1 when the server could not start or ended badly.\n"
    "\n",
};

/* What the library does not know: they ask for something else than a server. Each option has a
 * number of its own: what differs in nothing but its name is no ambiguity to getopt_long(). */
enum { ASK_PRINT_PLACEMENT = 1, ASK_CHECK, ASK_HELP, ASK_VERSION, FIRST_NAME = 256 };

static const struct asking {
    const char *name;
    int what;
} asking[] = {{"print-placement", ASK_PRINT_PLACEMENT},
              {"check", ASK_CHECK},
              {"help", ASK_HELP},
              {"version", ASK_VERSION}};

/* In the order of help[]; getopt_long() takes what is unique of a name, too. */
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

#define N_NAMES  (sizeof names / sizeof names[0])
#define N_ASKING (sizeof asking / sizeof asking[0])

static void fill_options(struct option options[N_NAMES + N_ASKING + 1])
{
    size_t n = 0;

    for (int i = 0; i < (int)N_NAMES; i++)
        options[n++] = (struct option){
            names[i], nj_server_config_takes(names[i]) ? required_argument : no_argument, NULL,
            FIRST_NAME + i};
    for (size_t i = 0; i < N_ASKING; i++)
        options[n++] = (struct option){asking[i].name, no_argument, NULL, asking[i].what};
    options[n] = (struct option){0};
}

static const struct nj_app *app;
static bool print_placement, check; /* asked for, in place of a server */

static void print_help(FILE *out)
{
    fputs(app->intro, out);
    for (size_t i = 0; i < sizeof help / sizeof help[0]; i++)
        fputs(help[i], out);
    fputs(app->outro, out);
}

static void take_asking(int what)
{
    switch (what) {
    case ASK_PRINT_PLACEMENT:
        print_placement = true;
        break;
    case ASK_CHECK:
        check = true;
        break;
    case ASK_HELP:
        print_help(stdout);
        exit(0);
    case ASK_VERSION:
        printf("%s %s\n", app->name, nj_version());
        exit(0);
    default:
        break;
    }
}

/* How many options begin with these letters; *all has their names one behind the other. */
static size_t begin_with(const char *text, size_t n, char *all, size_t n_all)
{
    struct option options[N_NAMES + N_ASKING + 1];
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

/* What getopt_long() did not take. */
static void tell_wrong(const char *word, int opt)
{
    const char *more[N_ASKING + 1] = {NULL};
    char name[64], all[256] = "";
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;

    for (size_t i = 0; i < N_ASKING; i++)
        more[i] = asking[i].name;
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
    else if (begin_with(name, n, all, sizeof all) > 1)
        fprintf(stderr, "nightjar: --%s: ambiguous: %s\n", name, all);
    else if (near)
        fprintf(stderr, "nightjar: --%s: there is no such option: did you mean --%s?\n", name,
                near);
    else
        fprintf(stderr, "nightjar: --%s: there is no such option; see --help\n", name);
}

static int parse_options(int argc, char **argv, struct nj_server_config *c)
{
    struct option options[N_NAMES + N_ASKING + 1];
    char why[256];
    int opt;

    fill_options(options);
    opterr = 0; /* it knows no near ones */
    optind = 1;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt == '?' || opt == ':') {
            tell_wrong(argv[optind - 1], opt);
            return -1;
        }
        if (opt < FIRST_NAME) {
            take_asking(opt);
        } else if (nj_server_config_set(c, names[opt - FIRST_NAME], optarg, why, sizeof why) != 0) {
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
static bool asks_about_us(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0)
            return true;
    return argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "--version") == 0 ||
                         strcmp(argv[1], "--print-placement") == 0);
}

/* `nightjar --check -- --config FILE`: what asks for something else than a server is ours on either
 * side of the --. The EAL does not get to see it. */
static void take_asking_before(int *n_eal, int *argc, char **argv)
{
    for (int i = 1; i < *n_eal; i++) {
        bool is_check = strcmp(argv[i], "--check") == 0;
        if (!is_check && strcmp(argv[i], "--print-placement") != 0)
            continue;
        take_asking(is_check ? ASK_CHECK : ASK_PRINT_PLACEMENT);
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof *argv);
        (*argc)--;
        (*n_eal)--;
        i--;
    }
}

/* What is to be printed of presets, in place of a server; "" when that is missing. Or NULL. */
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
    bool ours = n_eal == argc && asks_about_us(argc, argv);
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
        take_asking_before(&n_eal, &argc, argv);
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
