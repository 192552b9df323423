/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-handshakes: TLS connections of clients, over the kernel's TCP.
 *
 *   nj-handshakes run --seconds S [--open N] [--rate R] [--resumed] [--request] ADDR:PORT
 *       opens connections, N at a time, and resets each when the server's SETTINGS have arrived
 *   nj-handshakes hold --connections N [--resumed] [--request|--silent] [--clear] ADDR:PORT
 *       opens N connections, prints its line, and keeps them until the end of standard input
 *   nj-handshakes flood --seconds S --rate R [--hold-ms MS] [--seed X] ADDR:PORT
 *       sends R ClientHellos per second on new connections, and completes no handshake
 *
 * --source ADDR, also several times: own addresses, in turn.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "client.h"
#include "flood.h"

static const struct option options[] = {
    {"seconds", 1, NULL, 's'},     {"open", 1, NULL, 'o'},    {"rate", 1, NULL, 'r'},
    {"connections", 1, NULL, 'c'}, {"hold-ms", 1, NULL, 'h'}, {"seed", 1, NULL, 'x'},
    {"source", 1, NULL, 'f'},      {"resumed", 0, NULL, 't'}, {"request", 0, NULL, 'g'},
    {"silent", 0, NULL, 'i'},      {"clear", 0, NULL, 'p'},   {0}};

static int usage(void)
{
    fprintf(stderr, "usage: nj-handshakes run|hold|flood OPTIONS ADDR:PORT (see main.c)\n");
    return 2;
}

static bool parse_server(struct sockaddr_in *out, const char *text)
{
    char addr[INET_ADDRSTRLEN];
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : sizeof addr;

    if (n >= sizeof addr)
        return false;
    memcpy(addr, text, n);
    addr[n] = '\0';
    out->sin_family = AF_INET;
    out->sin_port = htons((uint16_t)atoi(colon + 1));
    return inet_pton(AF_INET, addr, &out->sin_addr) == 1 && out->sin_port != 0;
}

static bool add_source(struct target *t, const char *text)
{
    return t->n_sources < SOURCES_MAX && inet_pton(AF_INET, text, &t->source[t->n_sources++]) == 1;
}

static void raise_file_limit(void)
{
    struct rlimit most = {1u << 20, 1u << 20};

    if (setrlimit(RLIMIT_NOFILE, &most) == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
}

static bool parse(int argc, char **argv, struct client_options *o, struct flood_options *f)
{
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            f->duration = o->duration = (nj_ns)(atof(optarg) * NJ_SEC);
            break;
        case 'o':
            o->n_open = (uint32_t)atoi(optarg);
            break;
        case 'r':
            f->rate = o->rate = (uint32_t)atoi(optarg);
            break;
        case 'c':
            o->n_total = (uint32_t)atoi(optarg);
            break;
        case 'h':
            f->hold = (nj_ns)atoi(optarg) * NJ_MS;
            break;
        case 'x':
            f->seed = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            if (!add_source(&o->to, optarg))
                return false;
            break;
        case 't':
            o->resumed = true;
            break;
        case 'g':
            o->request = true;
            break;
        case 'i':
            o->silent = true;
            break;
        case 'p':
            o->clear = true;
            break;
        default:
            return false;
        }
    }
    if (argc - optind != 2 || !parse_server(&o->to.server, argv[optind + 1]) || o->n_open == 0)
        return false;
    f->to = o->to;
    return true;
}

int main(int argc, char **argv)
{
    struct client_options o = {.n_open = 16};
    struct flood_options f = {.seed = 1};

    if (!parse(argc, argv, &o, &f))
        return usage();
    raise_file_limit();
    const char *what = argv[optind];
    if (strcmp(what, "run") == 0 && o.duration > 0 && o.n_total == 0)
        return client_run(&o) ? 0 : 1;
    if (strcmp(what, "hold") == 0 && o.n_total > 0)
        return client_hold(&o) ? 0 : 1;
    if (strcmp(what, "flood") == 0 && f.duration > 0 && f.rate > 0)
        return flood_run(&f) ? 0 : 1;
    return usage();
}
