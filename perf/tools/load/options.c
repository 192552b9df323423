/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
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
    printf("Example, with a server on the other end of a memif:\n%s\n", load_example);
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

/* Of either family; IPv6 in brackets (RFC 3986 3.2.2). */
static bool read_host(const char *text, size_t n, struct nj_addr *out)
{
    char buf[INET6_ADDRSTRLEN];
    struct in_addr in;
    bool six = n > 2 && text[0] == '[' && text[n - 1] == ']';

    n -= six ? 2 : 0;
    if (n >= sizeof buf)
        return false;
    memcpy(buf, text + six, n);
    buf[n] = '\0';
    if (six)
        return inet_pton(AF_INET6, buf, out->b) == 1;
    if (inet_pton(AF_INET, buf, &in) != 1)
        return false;
    *out = nj_addr_from_v4(in.s_addr);
    return true;
}

static int read_url(struct load_options *o, const char *text, char *why)
{
    const char *host = strstr(text, "://"), *path, *end, *colon;

    o->plan.is_https = strncmp(text, "https://", 8) == 0;
    if (!o->plan.is_https && strncmp(text, "http://", 7) != 0)
        return nj_set_error(why, WHY_BYTES, "%s: expected http://ADDRESS[:PORT]/PATH, or https://",
                            text);
    host += 3;
    uint64_t port = o->plan.is_https ? 443 : 80;
    path = strchr(host, '/');
    end = path ? path : host + strlen(host);
    colon = memrchr(host, ':', (size_t)(end - host));
    if (colon && memchr(colon, ']', (size_t)(end - colon)))
        colon = NULL; /* of an IPv6 address */
    if (!read_host(host, (size_t)((colon ? colon : end) - host), &o->to))
        return nj_set_error(why, WHY_BYTES,
                            "%s: expected an address, such as 198.18.0.2 or "
                            "[2001:db8::2], for names are not looked up",
                            text);
    if (colon) {
        char *rest;
        port = strtoul(colon + 1, &rest, 10);
        if (colon[1] < '0' || colon[1] > '9' || rest != end || port == 0 || port > 65535)
            return nj_set_error(why, WHY_BYTES, "%s: expected a port from 1 to 65535", text);
    }
    o->port = (uint16_t)port;
    snprintf(o->authority, sizeof o->authority, "%.*s", (int)(end - host), host);
    path = path ? path : "/";
    return add_path(o, path, strlen(path), 1, why); /* its query may end as a weight does */
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
    default:
        return nj_server_config_set(&o->link, name, value, why, WHY_BYTES);
    }
}

static bool has_field(const struct load_options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strncmp(o->field[i], name, strlen(name)) == 0)
            return true;
    return false;
}

/* Checks for addresses of the server's family, and enough ports. "auto6" may become several. */
static int check_link(const struct load_options *o, char *why)
{
    bool v4 = nj_addr_is_v4(&o->to), any = false;
    uint32_t n = 0;

    for (uint32_t i = 0; i < NJ_SERVER_ADDRS_MAX && o->link.addr[i]; i++) {
        bool automatic = strcmp(o->link.addr[i], "auto6") == 0;
        any |= automatic && !v4;
        n += !automatic && (strchr(o->link.addr[i], ':') == NULL) == v4;
    }
    if (n == 0 && !any)
        return nj_set_error(why, WHY_BYTES, "--addr: none of %s, as %s is", v4 ? "IPv4" : "IPv6",
                            o->authority);
    if (!any && o->n_conns > n * NJ_ACTIVE_PORTS)
        return nj_set_error(why, WHY_BYTES,
                            "--connections %u: an address has ports for %u: give more "
                            "of them with --addr",
                            o->n_conns, NJ_ACTIVE_PORTS);
    return 0;
}

static int finish(struct load_options *o, int argc, char **argv, char *why)
{
    if (argc == 0)
        return nj_set_error(why, WHY_BYTES, "no URL: which server, and what of it? (--help)");
    if (!o->link.addr[0])
        return nj_set_error(why, WHY_BYTES,
                            "--addr is missing: give our address on the link, e.g. "
                            "--addr 198.18.0.1/24");
    if (read_url(o, argv[0], why) != 0)
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
    if (check_link(o, why) != 0)
        return -1;
    if (!has_field(o, "user-agent:"))
        o->field[o->n_fields++] = "user-agent: nightjar-load";
    if (!o->plan.framing->make(&o->plan, o->authority, o->field, o->n_fields))
        return nj_set_error(why, WHY_BYTES, "--header: all fields together are more than 4 KiB");
    return 0;
}

enum load_told load_options_read(struct load_options *o, int argc, char **argv)
{
    char why[WHY_BYTES] = "", letters[2 * LOAD_OPTIONS_MAX + 2];
    struct option known[LOAD_OPTIONS_MAX];
    int c, which = -1;

    list_options(known);
    list_letters(letters);
    *o = (struct load_options){.n_conns = 1,
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
        if (why[0])
            break;
        which = -1;
    }
    if (!why[0] && finish(o, argc - optind, argv + optind, why) == 0)
        return LOAD_GO;
    fprintf(stderr, "nightjar-load: %s\n", why);
    return LOAD_WRONG;
}
