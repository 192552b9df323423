/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar [EAL arguments] -- [options]: the command line, turned into a configuration. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nightjar/server.h>

#include "options.h"

static const char help[] =
    "network\n"
    "  --addr ADDRESS/PREFIX   our address on the link, IPv4 or IPv6 (required; up to 8 times)\n"
    "  --addr auto6            IPv6 addresses as the link's routers tell (SLAAC)\n"
    "  --gateway ADDRESS       router for what is not on the link, one for each family;\n"
    "                          for IPv6 [what routers advertise]\n"
    "  --vlan ID               802.1Q VLAN to be in, 1 to 4094 [untagged]\n"
    "  --listen PORT           TCP port [80]\n"
    "  --port N                DPDK port number, when the EAL finds several\n"
    "  --no-offload            checksums by software, whatever the device offers\n"
    "  --newreno               congestion control by NewReno [CUBIC]\n"
    "  --no-ecn                no ECN (RFC 3168), also for peers that ask for it\n"
    "\n"
    "content\n"
    "  --root DIR              folder to serve\n"
    "  --cache SIZE            file contents kept in memory, e.g. 512MiB [256MiB]\n"
    "\n"
    "running\n"
    "  --max-connections N     TCP connections of one lcore [65536]\n"
    "  --preface-timeout TIME  a new connection may be silent for so long [10s]\n"
    "  --idle-timeout TIME     a connection without a running request, too [75s]\n"
    "  --drain-timeout TIME    after SIGTERM, time for running responses, e.g. 500ms, 10s [10s]\n"
    "  --workers N             threads for handlers that may block, 1 to 32\n"
    "                          [up to 4, as many as CPUs are left by the lcores]\n"
    "  --fibers N              handlers of one lcore that can wait at once [256]\n"
    "  --strategy NAME         where handlers run: ewyk, as their type says; or to compare:\n"
    "                          pc, all inline; pec, all on workers [ewyk]\n"
    "  --busy-poll             lcores never sleep, also without work\n"
    "  --live                  a line of rates on stderr every second\n"
    "\n"
    "  --print-placement       draw which CPU polls which queue and where the workers run, for "
    "the\n"
    "                          lcores of -l or else the best ones here, and end\n"
    "  --help, --version\n"
    "\n";

enum {
    OPT_ADDR = 256,
    OPT_GATEWAY,
    OPT_VLAN,
    OPT_LISTEN,
    OPT_PORT,
    OPT_NO_OFFLOAD,
    OPT_NEWRENO,
    OPT_NO_ECN,
    OPT_ROOT,
    OPT_CACHE,
    OPT_MAX_CONNECTIONS,
    OPT_PREFACE_TIMEOUT,
    OPT_IDLE_TIMEOUT,
    OPT_DRAIN_TIMEOUT,
    OPT_WORKERS,
    OPT_FIBERS,
    OPT_STRATEGY,
    OPT_BUSY_POLL,
    OPT_LIVE,
    OPT_PRINT_PLACEMENT,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option options[] = {
    {"addr", required_argument, NULL, OPT_ADDR},
    {"gateway", required_argument, NULL, OPT_GATEWAY},
    {"vlan", required_argument, NULL, OPT_VLAN},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"port", required_argument, NULL, OPT_PORT},
    {"no-offload", no_argument, NULL, OPT_NO_OFFLOAD},
    {"newreno", no_argument, NULL, OPT_NEWRENO},
    {"no-ecn", no_argument, NULL, OPT_NO_ECN},
    {"root", required_argument, NULL, OPT_ROOT},
    {"cache", required_argument, NULL, OPT_CACHE},
    {"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
    {"preface-timeout", required_argument, NULL, OPT_PREFACE_TIMEOUT},
    {"idle-timeout", required_argument, NULL, OPT_IDLE_TIMEOUT},
    {"drain-timeout", required_argument, NULL, OPT_DRAIN_TIMEOUT},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"fibers", required_argument, NULL, OPT_FIBERS},
    {"strategy", required_argument, NULL, OPT_STRATEGY},
    {"busy-poll", no_argument, NULL, OPT_BUSY_POLL},
    {"live", no_argument, NULL, OPT_LIVE},
    {"print-placement", no_argument, NULL, OPT_PRINT_PLACEMENT},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

/* A number with one of the units, in units of the first; false when it is neither. */
struct unit {
    const char *name;
    double factor;
};

static bool parse_quantity(const char *text, const struct unit *units, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || errno || !isfinite(*out) || *out < 0)
        return false;
    for (const struct unit *u = units; u->name; u++) {
        if (strcmp(end, u->name) == 0) {
            *out *= u->factor;
            return true;
        }
    }
    return false;
}

static const struct unit bytes[] = {
    {"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
static const struct unit seconds[] = {{"", 1}, {"s", 1}, {"ms", 0.001}, {"m", 60}, {NULL, 0}};

static bool parse_integer(const char *text, long min, long max, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return end != text && *end == '\0' && !errno && *out >= min && *out <= max;
}

static int wrong(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "nightjar: --%s %s: expected %s\n", option, value, expected);
    return -1;
}

/* One more value of an option that may be given several times. */
static int add(const char *option, const char **list, unsigned max)
{
    unsigned n = 0;
    while (n < max && list[n])
        n++;
    if (n == max) {
        fprintf(stderr, "nightjar: --%s %s: at most %u can be given\n", option, optarg, max);
        return -1;
    }
    list[n] = optarg;
    return 0;
}

static int take_seconds(const char *option, double min, double *out)
{
    if (!parse_quantity(optarg, seconds, out) || *out < min || *out > 86400)
        return wrong(option, optarg,
                     min > 0 ? "a time such as 500ms or 10s, 100ms to a day"
                             : "a time such as 500ms or 10s, at most a day");
    return 0;
}

static int take_strategy(struct nj_server_config *c)
{
    static const char *const names[] = {"ewyk", "pc", "pec"}; /* in the order of enum nj_run */

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(optarg, names[i]) != 0)
            continue;
        c->strategy = (enum nj_run)i;
        return 0;
    }
    return wrong("strategy", optarg, "ewyk, pc or pec");
}

static const struct nj_app *app;
static bool print_placement; /* asked for, in place of a server */

static void print_help(FILE *out)
{
    fputs(app->intro, out);
    fputs(help, out);
    fputs(app->outro, out);
}

static int take_switch(struct nj_server_config *c, int opt)
{
    switch (opt) {
    case OPT_NO_OFFLOAD:
        c->no_offload = true;
        return 0;
    case OPT_NEWRENO:
        c->newreno = true;
        return 0;
    case OPT_NO_ECN:
        c->no_ecn = true;
        return 0;
    case OPT_BUSY_POLL:
        c->busy_poll = true;
        return 0;
    case OPT_LIVE:
        c->live = true;
        return 0;
    case OPT_PRINT_PLACEMENT:
        print_placement = true;
        return 0;
    case OPT_HELP:
        print_help(stdout);
        exit(0);
    case OPT_VERSION:
        printf("%s %s\n", app->name, nj_version());
        exit(0);
    default:
        return -1;
    }
}

static int take_option(struct nj_server_config *c, int opt)
{
    long n = 0;
    double q = 0;

    switch (opt) {
    case OPT_ADDR:
        return add("addr", c->addr, NJ_SERVER_ADDRS_MAX);
    case OPT_GATEWAY:
        return add("gateway", c->gateway, NJ_SERVER_GATEWAYS_MAX);
    case OPT_ROOT:
        c->root = optarg;
        return 0;
    case OPT_VLAN:
        if (!parse_integer(optarg, 1, 4094, &n))
            return wrong("vlan", optarg, "a VLAN id from 1 to 4094");
        c->vlan = (uint16_t)n;
        return 0;
    case OPT_LISTEN:
        if (!parse_integer(optarg, 1, 65535, &n))
            return wrong("listen", optarg, "a port from 1 to 65535");
        c->listen_port = (uint16_t)n;
        return 0;
    case OPT_PORT:
        if (!parse_integer(optarg, 0, 65535, &n))
            return wrong("port", optarg, "a DPDK port number");
        c->ethdev = (int)n;
        return 0;
    case OPT_CACHE:
        if (!parse_quantity(optarg, bytes, &q) || q > 1e15)
            return wrong("cache", optarg, "a size such as 64MiB or 1GiB");
        c->cache_bytes = (uint64_t)q;
        return 0;
    case OPT_MAX_CONNECTIONS:
        if (!parse_integer(optarg, 1, 1 << 24, &n))
            return wrong("max-connections", optarg, "a number from 1 to 16777216");
        c->conns_max = (uint32_t)n;
        return 0;
    case OPT_PREFACE_TIMEOUT:
        return take_seconds("preface-timeout", 0.1, &c->preface_timeout_s);
    case OPT_IDLE_TIMEOUT:
        return take_seconds("idle-timeout", 0.1, &c->idle_timeout_s);
    case OPT_DRAIN_TIMEOUT:
        return take_seconds("drain-timeout", 0, &c->drain_timeout_s);
    case OPT_WORKERS:
        if (!parse_integer(optarg, 1, 32, &n))
            return wrong("workers", optarg, "a number from 1 to 32");
        c->workers = (uint32_t)n;
        return 0;
    case OPT_FIBERS:
        if (!parse_integer(optarg, 1, 16384, &n))
            return wrong("fibers", optarg, "a number from 1 to 16384");
        c->fibers_max = (uint32_t)n;
        return 0;
    case OPT_STRATEGY:
        return take_strategy(c);
    default:
        return take_switch(c, opt);
    }
}

/* getopt's own message begins with argv[0], which we set to our name. */
static int parse_options(int argc, char **argv, struct nj_server_config *c)
{
    static char name[32];
    int opt;

    snprintf(name, sizeof name, "%s", app->name);
    argv[0] = name;
    optind = 1;
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (take_option(c, opt) != 0)
            return -1;
    if (optind < argc) {
        fprintf(stderr, "nightjar: %s: unexpected argument (options begin with --; see --help)\n",
                argv[optind]);
        return -1;
    }
    optind = 1; /* the EAL uses getopt, too */
    return 0;
}

/* `nightjar --help`, `--version` and `--print-placement` need no --. */
static bool asks_about_us(int argc, char **argv)
{
    return argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "--version") == 0 ||
                         strcmp(argv[1], "--print-placement") == 0);
}

int nj_app_run(int argc, char **argv, const struct nj_app *me, struct nj_server_config *config)
{
    int n_eal = 0;

    app = me;
    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    if (asks_about_us(argc, argv))
        return parse_options(argc, argv, config) == 0 ? nj_print_placement(0, NULL, config) : 2;
    if (n_eal == argc && argc > 1 && strcmp(argv[1], "-h") != 0) {
        fprintf(stderr,
                "nightjar: no -- found: EAL arguments stand before it, %s's own after it; see %s "
                "--help\n",
                app->name, app->name);
        return 2;
    }
    if (n_eal == argc && argc == 1) {
        print_help(stderr);
        return 2;
    }
    if (n_eal < argc && parse_options(argc - n_eal, argv + n_eal, config) != 0)
        return 2;
    if (print_placement)
        return nj_print_placement(n_eal, argv, config);
    argv[n_eal < argc ? n_eal : argc] = NULL;
    if (n_eal == argc) { /* only -h: the EAL's help */
        config->addr[0] = "198.18.0.2/24";
        config->root = "/";
    }
    return nj_server_run(n_eal, argv, config);
}
