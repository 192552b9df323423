/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/set_error.h"
#include "base/limits.h"
#include "base/units.h"
#include "h1.h"
#include "h2.h"
#include "option_table.h"
#include "target.h"
#include "wrap_text.h"

#define WHY_BYTES 256u

/* nightjar-load's own options for getopt_long(), {NULL} last. */
static void list_options(struct option known[LOAD_OPTIONS_MAX])
{
    for (uint32_t i = 0; i < load_n_options; i++) {
        const struct load_option *o = &load_option_table[i];
        known[i] =
            (struct option){o->name, o->value ? required_argument : no_argument, NULL, o->code};
    }
    known[load_n_options] = (struct option){NULL, 0, NULL, 0};
}

/* The letters for getopt_long(), with ':' after those with a value. */
static void list_letters(char letters[2 * LOAD_OPTIONS_MAX + 2])
{
    char *p = letters;

    *p++ = ':'; /* a missing value is told from an unknown option */
    for (const struct load_option *o = load_option_table; o < load_option_table + load_n_options;
         o++)
        if (o->code < 256) {
            *p++ = (char)o->code;
            if (o->value)
                *p++ = ':';
        }
    *p = '\0';
}

static void print_help(void)
{
    printf("usage: %s\n\n", load_usage);
    wrap_text(stdout, load_intro, 0, 0);
    for (const struct load_option *o = load_option_table; o < load_option_table + load_n_options;
         o++) {
        char text[512];
        if (o->group)
            printf("\n%s:\n", o->group);
        int at = o->code < 256 ? printf("  -%c, ", o->code) : printf("      ");
        at += printf("--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        if (at + 1 > WRAP_INDENT) {
            putchar('\n');
            at = 0;
        }
        snprintf(text, sizeof text, "%s%s%s%s", o->help, o->default_text ? " [" : "",
                 o->default_text ? o->default_text : "", o->default_text ? "]" : "");
        wrap_text(stdout, text, at, WRAP_INDENT);
    }
    putchar('\n');
    wrap_text(stdout, load_outro, 0, 0);
    printf("Examples; the last with a server on the other end of a memif:\n%s\n", load_example);
}

static int number(const char *text, uint64_t least, uint64_t most, uint64_t *out, const char *name,
                  char *why)
{
    if (nj_parse_decimal(text, out) && *out >= least && *out <= most)
        return 0;
    return nj_set_error(why, WHY_BYTES, "--%s %s: expected a number from %lu to %lu", name, text,
                        (unsigned long)least, (unsigned long)most);
}

static int seconds(const char *text, double least, nj_ns *out, const char *name, char *why)
{
    double value;

    if (!nj_parse_seconds(text, &value) || value < least || value > 86400)
        return nj_set_error(why, WHY_BYTES,
                            "--%s %s: expected a time such as 10s or 500ms, up to 24h", name, text);
    *out = (nj_ns)(value * (double)NJ_SEC);
    return 0;
}

static int bytes(const char *text, uint64_t most, uint64_t *out, const char *name, char *why)
{
    if (nj_parse_bytes(text, out) && *out > 0 && *out <= most)
        return 0;
    return nj_set_error(why, WHY_BYTES, "--%s %s: expected a size such as 64KiB, from 1 to %lu",
                        name, text, (unsigned long)most);
}

static int rate(struct load_options *o, const char *text, char *why)
{
    char *end;

    o->rate = strtod(text, &end);
    if (*text >= '0' && *text <= '9' && *end == '\0' && o->rate > 0 && o->rate <= 1e9)
        return 0;
    return nj_set_error(why, WHY_BYTES, "--rate %s: expected requests per second, up to 1000000000",
                        text);
}

/* "name: value"; the name as RFC 9113 8.2 requires it. */
static int header(struct load_options *o, char *text, char *why)
{
    char *colon = strchr(text, ':');

    if (!colon || colon == text || strpbrk(text, "\r\n"))
        return nj_set_error(why, WHY_BYTES, "--header %s: expected 'name: value'", text);
    if (o->n_fields == LOAD_FIELDS_MAX)
        return nj_set_error(why, WHY_BYTES, "--header: at most %u", LOAD_FIELDS_MAX);
    for (char *p = text; p < colon; p++) {
        if (*p <= ' ' || *p > '~')
            return nj_set_error(why, WHY_BYTES, "--header %s: this is not a valid name of a field",
                                text);
        *p = (char)tolower((unsigned char)*p);
    }
    for (char *end = text + strlen(text); end > colon + 1 && strchr(" \t", end[-1]); end--)
        end[-1] = '\0'; /* RFC 9113 8.2.1 */
    o->field[o->n_fields++] = text;
    return 0;
}

/* One more path, or "path=N". */
static int add_path(struct load_options *o, const char *text, size_t n, uint64_t weight, char *why)
{
    struct load_plan *p = &o->plan;

    if (*text != '/' || n > LOAD_PATH_BYTES)
        return nj_set_error(why, WHY_BYTES,
                            "%s: expected a path that begins with / and has at most %u "
                            "bytes",
                            text, LOAD_PATH_BYTES);
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '#')
            return nj_set_error(why, WHY_BYTES, "%s: a path can't hold that; write it as %%HH",
                                text);
    if (p->n_paths == LOAD_PATHS_MAX)
        return nj_set_error(why, WHY_BYTES, "at most %u paths", LOAD_PATHS_MAX);
    p->path[p->n_paths].text = text;
    p->path[p->n_paths].n_bytes = (uint32_t)n;
    o->weight[p->n_paths++] = (uint32_t)weight;
    o->weights += (uint32_t)weight;
    return 0;
}

static int read_path(struct load_options *o, const char *text, char *why)
{
    const char *equals = strrchr(text, '=');
    uint64_t weight = 1;

    if (!equals || equals[1] == '\0' || !nj_parse_decimal(equals + 1, &weight))
        return add_path(o, text, strlen(text), 1, why);
    if (weight == 0 || weight > 1000000)
        return nj_set_error(why, WHY_BYTES, "%s: expected a weight from 1 to 1000000", text);
    return add_path(o, text, (size_t)(equals - text), weight, why);
}

static int take(struct load_options *o, int c, const char *name, char *value, char *why)
{
    uint64_t n = 0;
    int rc = 0;

    switch (c) {
    case 'c':
        rc = number(value, 1, LOAD_CONNS_MAX, &n, name, why);
        o->n_conns = (uint32_t)n;
        return rc;
    case 'm':
        rc = number(value, 1, LOAD_STREAMS_MAX, &n, name, why);
        o->plan.streams = (uint32_t)n;
        return rc;
    case LOAD_OPTION_IN_FLIGHT:
        rc = number(value, 1, LOAD_ASKING_MAX, &n, name, why);
        o->in_flight = (uint32_t)n;
        return rc;
    case 'n':
        return number(value, 1, UINT64_MAX / 2, &o->n_requests, name, why);
    case LOAD_OPTION_SEED:
        return number(value, 0, UINT64_MAX, &o->seed, name, why);
    case 'd':
        return seconds(value, 0.01, &o->duration, name, why);
    case 'w':
        return seconds(value, 0, &o->warm_up, name, why);
    case LOAD_OPTION_TIMEOUT:
        return seconds(value, 0.01, &o->timeout, name, why);
    case 'u':
        return bytes(value, 1ull << 40, &o->plan.upload_bytes, name, why);
    case LOAD_OPTION_WINDOW:
        rc = bytes(value, 0x7fffffff, &n, name, why);
        o->plan.window = (uint32_t)n;
        return rc;
    case 'r':
        return rate(o, value, why);
    case 'H':
        return header(o, value, why);
    case LOAD_OPTION_JSON:
        o->json = value;
        return 0;
    case LOAD_OPTION_CSV:
        o->csv = value;
        return 0;
    case LOAD_OPTION_IN_TURN:
        o->in_turn = true;
        return 0;
    case LOAD_OPTION_HTTP1:
        o->plan.framing = &h1_framing;
        return 0;
    case 'q':
        o->quiet = true;
        return 0;
    case 't':
        rc = number(value, 1, NJ_SHARDS_MAX, &n, name, why);
        o->n_threads = (uint32_t)n;
        return rc;
    case LOAD_OPTION_PRESET:
        if (o->preset)
            return nj_set_error(why, WHY_BYTES, "--preset: the load comes from one port");
        o->preset = value;
        o->over_dpdk = true;
        return 0;
    default:
        o->over_dpdk = true;
        return nj_server_config_set(&o->link, name, value, why, WHY_BYTES);
    }
}

/* Is it a question, "list" or "NAME,help"? */
static bool shows_preset(const char *preset)
{
    const char *comma = strchr(preset, ',');
    return strcmp(preset, "list") == 0 || strcmp(preset, "help") == 0 ||
           (comma && strcmp(comma, ",help") == 0);
}

static bool has_field(const struct load_options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strncmp(o->field[i], name, strlen(name)) == 0)
            return true;
    return false;
}

/* Checks for addresses of the server's family, and enough ports. "auto6" may become several. */
static int check_link(struct load_options *o, char *why)
{
    uint32_t n_ours[2] = {0}, n_to = 0; /* IPv4, IPv6 */
    bool automatic = false;

    for (uint32_t i = 0; i < NJ_SERVER_ADDRS_MAX && o->link.addr[i]; i++) {
        bool is_auto = strcmp(o->link.addr[i], "auto6") == 0;
        automatic |= is_auto;
        n_ours[1] += !is_auto && strchr(o->link.addr[i], ':') != NULL;
        n_ours[0] += !is_auto && strchr(o->link.addr[i], ':') == NULL;
    }
    bool v4 = nj_addr_is_v4(&o->to[0]);
    for (uint32_t i = 0; i < o->n_to; i++) {
        bool is_v4 = nj_addr_is_v4(&o->to[i]);
        if (n_ours[!is_v4] > 0 || (!is_v4 && automatic))
            o->to[n_to++] = o->to[i];
    }
    o->n_to = n_to;
    if (n_to == 0)
        return nj_set_error(why, WHY_BYTES, "--addr: none of %s, as %s is", v4 ? "IPv4" : "IPv6",
                            o->authority);
    v4 = nj_addr_is_v4(&o->to[0]);
    if ((v4 || !automatic) && o->n_conns > n_ours[!v4] * NJ_ACTIVE_PORTS)
        return nj_set_error(why, WHY_BYTES,
                            "--connections %u: an address has ports for %u: give more "
                            "of them with --addr",
                            o->n_conns, NJ_ACTIVE_PORTS);
    return 0;
}

static int check_threads(const struct load_options *o, char *why)
{
    if (o->n_threads > o->n_conns)
        return nj_set_error(why, WHY_BYTES, "--threads %u: there are only %u connections",
                            o->n_threads, o->n_conns);
    if (o->in_flight && o->n_threads > o->in_flight)
        return nj_set_error(why, WHY_BYTES, "--in-flight %u: fewer than threads, %u", o->in_flight,
                            o->n_threads);
    return 0;
}

static int finish(struct load_options *o, int argc, char **argv, char *why)
{
    const char *path;

    if (argc == 0)
        return nj_set_error(why, WHY_BYTES, "no URL: which server, and what of it? (--help)");
    if (o->over_dpdk && !o->link.addr[0])
        return nj_set_error(why, WHY_BYTES,
                            "--addr is missing: give our address on the link, e.g. "
                            "--addr 198.18.0.1/24");
    if (load_target_read(o, argv[0], &path, why, WHY_BYTES) != 0 ||
        add_path(o, path, strlen(path), 1, why) != 0) /* its query may end as a weight does */
        return -1;
    for (int i = 1; i < argc; i++)
        if (read_path(o, argv[i], why) != 0)
            return -1;
    if (o->rate > 0 && o->in_flight)
        return nj_set_error(why, WHY_BYTES,
                            "--rate and --in-flight: an open loop asks when it is time, "
                            "however many are under way");
    if (o->n_requests)
        o->warm_up = 0;
    if (check_threads(o, why) != 0)
        return -1;
    if (!has_field(o, "user-agent:"))
        o->field[o->n_fields++] = "user-agent: nightjar-load";
    if (!o->plan.framing->make(&o->plan, o->authority, o->field, o->n_fields))
        return nj_set_error(why, WHY_BYTES, "--header: all fields together are more than 4 KiB");
    return 0;
}

/* Finds the server's addresses, the last step, for it may take a while. */
static enum load_told find_server(struct load_options *o, char *why)
{
    if (load_target_look_up(o, why, WHY_BYTES) != 0)
        return LOAD_NO_HOST;
    return o->over_dpdk && check_link(o, why) != 0 ? LOAD_WRONG : LOAD_GO;
}

enum load_told load_options_read(struct load_options *o, int argc, char **argv, bool has_eal)
{
    enum load_told told = LOAD_WRONG;
    char why[WHY_BYTES] = "", letters[2 * LOAD_OPTIONS_MAX + 2];
    struct option known[LOAD_OPTIONS_MAX];
    int c, which = -1;

    list_options(known);
    list_letters(letters);
    *o = (struct load_options){.over_dpdk = has_eal,
                               .n_threads = 1,
                               .n_conns = 1,
                               .duration = 10 * NJ_SEC,
                               .warm_up = NJ_SEC,
                               .timeout = 10 * NJ_SEC,
                               .seed = 1,
                               .plan = {.framing = &h2_framing, .streams = 1, .window = 16u << 20}};
    nj_server_config_init(&o->link);
    optind = 0; /* getopt has looked at other arguments before */
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, known, &which)) != -1) {
        if (c == 'h') {
            print_help();
            return LOAD_HELPED;
        }
        if (c == LOAD_OPTION_VERSION) {
            printf("nightjar-load %s\n", nj_version());
            return LOAD_HELPED;
        }
        const char *name = which >= 0 ? known[which].name : NULL;
        for (size_t i = 0; !name && known[i].name; i++)
            if (known[i].val == c)
                name = known[i].name;
        if (c == '?' || c == ':')
            nj_set_error(why, sizeof why, "%s: %s", argv[optind - 1],
                         c == '?' ? "no such option (--help)" : "a value is missing");
        else
            take(o, c, name, optarg, why);
        if (!why[0] && c == LOAD_OPTION_PRESET && shows_preset(optarg))
            return nj_print_preset(optarg) == 0 ? LOAD_HELPED : LOAD_WRONG;
        if (why[0])
            break;
        which = -1;
    }
    if (!why[0] && finish(o, argc - optind, argv + optind, why) == 0)
        told = find_server(o, why);
    if (told != LOAD_GO)
        fprintf(stderr, "nightjar-load: %s\n", why);
    return told;
}
