/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-ahead: the server and the clients of nj-exchange. All requests go to a route. The number of
 * requests that the server parses before it consumes them is variable (pause.h).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "base/units.h"
#include "dpdk/eal.h"
#include "eal.h"
#include "pair.h"
#include "pause.h"
#include "threads/os_clock.h"

static const char USAGE[] =
    "usage: nj-ahead [options]\n"
    "\n"
    "A server and its clients as in nj-exchange. Each request goes to a route whose handler\n"
    "accesses memory and answers with 128 bytes. Prints a line of JSON for each variant; ns is\n"
    "the CPU time of the server's steps per request, in each round.\n"
    "\n"
    "  -c, --connections N    [16]\n"
    "  -m, --streams N        open streams of each connection [32]\n"
    "      --handler TOUCHES  memory that the handler accesses: plain (none), shared:SIZE (the\n"
    "                         same bytes for all requests), conn:SIZE (bytes of the connection),\n"
    "                         cold:SIZE (bytes that no recent request accessed) or body:SIZE (the\n"
    "                         body of a POST, which the handler reads) [plain]\n"
    "      --fiber            the handler is BLOCKING and runs on a stack of its own; without\n"
    "                         this option it is NON_BLOCKING and runs inline\n"
    "      --ahead LIST       requests to parse before they are consumed, such as 1,4,all;\n"
    "                         all: the whole input of the connection, as in nightjar [all]\n"
    "      --round-tasks LIST maximum of requests of a connection to consume in a step; all:\n"
    "                         nightjar's own limit [all]\n"
    "      --rounds N         rounds; each round measures every variant once [15]\n"
    "  -n, --requests N       measured requests of a variant in a round [2048]\n"
    "      --count            one round of one variant without a clock, for callgrind\n"
    "  -h, --help\n";

#define LIST_MAX   16u
#define ROUNDS_MAX 1000u
#define WARM       4u /* warm-up requests, in multiples of the requests in flight */
#define FILE_BYTES 128u

struct list {
    uint32_t n, value[LIST_MAX];
};

struct options {
    struct shape shape;
    struct list ahead, round_tasks;
    uint64_t n_rounds, n_requests;
    bool count;
};

struct variant {
    uint32_t ahead, round_tasks; /* 0: the whole input; 0: nightjar's own limit */
    struct cost last;
    double ns[ROUNDS_MAX]; /* per request */
};

/* CPU time of this thread. Excludes the time of threads that run in between. */
static uint64_t cpu_ns(void)
{
    return nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- options ---- */

static bool number(const char *text, uint64_t most, uint64_t *out)
{
    return nj_parse_decimal(text, out) && *out >= 1 && *out <= most;
}

static bool number32(const char *text, uint32_t most, uint32_t *out)
{
    uint64_t n;
    bool good = number(text, most, &n);
    *out = good ? (uint32_t)n : 0;
    return good;
}

/* Parses numbers and "all" (0), separated by commas. Modifies `text`. False: an invalid number, an
 * empty list or more than LIST_MAX values. */
static bool read_list(char *text, struct list *out)
{
    *out = (struct list){0};
    for (char *at = strtok(text, ","); at; at = strtok(NULL, ",")) {
        if (out->n == LIST_MAX)
            return false;
        uint32_t *value = &out->value[out->n++];
        if (strcmp(at, "all") != 0 && !number32(at, NJ_CONN_TASKS_MAX, value))
            return false;
    }
    return out->n > 0;
}

enum { HANDLER = 256, FIBER, AHEAD, ROUND_TASKS, ROUNDS, COUNT };

static bool read_option(struct options *o, int c, char *arg)
{
    switch (c) {
    case 'c':
        return number32(arg, 1000, &o->shape.n_conns);
    case 'm':
        return number32(arg, NJ_CONN_TASKS_MAX, &o->shape.streams);
    case 'n':
        return number(arg, UINT32_MAX, &o->n_requests);
    case HANDLER:
        return handler_read(&o->shape.handler, arg);
    case FIBER:
        return o->shape.handler.blocking = true;
    case AHEAD:
        return read_list(arg, &o->ahead);
    case ROUND_TASKS:
        return read_list(arg, &o->round_tasks);
    case ROUNDS:
        return number(arg, ROUNDS_MAX, &o->n_rounds);
    case COUNT:
        return o->count = true;
    default:
        return false;
    }
}

/* Returns -1 to continue, else the exit status. */
static int read_options(struct options *o, int argc, char **argv)
{
    static const struct option known[] = {
        {"connections", required_argument, NULL, 'c'},
        {"streams", required_argument, NULL, 'm'},
        {"requests", required_argument, NULL, 'n'},
        {"handler", required_argument, NULL, HANDLER},
        {"fiber", no_argument, NULL, FIBER},
        {"ahead", required_argument, NULL, AHEAD},
        {"round-tasks", required_argument, NULL, ROUND_TASKS},
        {"rounds", required_argument, NULL, ROUNDS},
        {"count", no_argument, NULL, COUNT},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int c;

    *o = (struct options){
        .shape = {"ahead", 16, 32, FILE_BYTES, .handler = {.touches = HANDLER_PLAIN}},
        .ahead = {.n = 1},
        .round_tasks = {.n = 1},
        .n_rounds = 15,
        .n_requests = 2048,
    };
    while (good && (c = getopt_long(argc, argv, "c:m:n:h", known, NULL)) != -1) {
        if (c == 'h') {
            fputs(USAGE, stdout);
            return 0;
        }
        good = read_option(o, c, optarg);
    }
    o->shape.n_warm = WARM * o->shape.n_conns * o->shape.streams;
    if (good && optind == argc && (!o->count || o->ahead.n * o->round_tasks.n == 1))
        return -1;
    fputs("nj-ahead: invalid option or value (--help)\n", stderr);
    return 2;
}

/* ---- measurements ---- */

static void set_variant(struct pair *p, const struct variant *v)
{
    pause_after(v->ahead);
    p->server->cfg.conns.round_tasks = v->round_tasks;
}

/* The requests in flight were sent under another variant, so as many requests are first answered
 * without a measurement. */
static bool measure(struct pair *p, const struct options *o, struct variant *v, uint64_t round)
{
    set_variant(p, v);
    if (!pair_run(p, o->shape.n_conns * o->shape.streams, &v->last) ||
        !pair_run(p, o->n_requests, &v->last))
        return false;
    v->ns[round] = (double)v->last.cycles / (double)v->last.n_requests;
    return true;
}

static bool count(struct pair *p, const struct options *o, struct variant *v)
{
    set_variant(p, v);
    return pair_begin(p) && pair_run(p, o->n_requests, &v->last) && pair_end(p);
}

/* Each round begins with another variant. */
static bool time_all(struct pair *p, const struct options *o, struct variant *v, uint32_t n)
{
    if (!pair_begin(p))
        return false;
    for (uint64_t round = 0; round < o->n_rounds; round++)
        for (uint32_t i = 0; i < n; i++)
            if (!measure(p, o, &v[(i + round) % n], round))
                return false;
    return pair_end(p);
}

static void print(const struct variant *v, const struct options *o)
{
    printf("{\"ahead\": %u, \"round_tasks\": %u, \"requests\": %lu, \"steps\": %lu, "
           "\"rx_packets\": %lu, \"tx_packets\": %lu, \"ns\": [",
           v->ahead, v->round_tasks, (unsigned long)v->last.n_requests,
           (unsigned long)v->last.n_steps, (unsigned long)v->last.rx_packets,
           (unsigned long)v->last.tx_packets);
    for (uint64_t i = 0; !o->count && i < o->n_rounds; i++)
        printf("%s%.1f", i ? ", " : "", v->ns[i]);
    puts("]}");
}

static bool run(const struct options *o)
{
    static struct variant variant[LIST_MAX * LIST_MAX];
    struct pair *p = pair_new(&o->shape, o->count ? NULL : cpu_ns);
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->round_tasks.n; i++)
        for (uint32_t k = 0; k < o->ahead.n; k++, n++) {
            variant[n].ahead = o->ahead.value[k];
            variant[n].round_tasks = o->round_tasks.value[i];
        }
    bool good = p && (o->count ? count(p, o, variant) : time_all(p, o, variant, n));
    for (uint32_t i = 0; good && i < n; i++)
        print(&variant[i], o);
    if (!good)
        fprintf(stderr, "nj-ahead: %s\n", p ? p->why : "not enough memory");
    if (p)
        pair_free(p);
    return good;
}

int main(int argc, char **argv)
{
    struct options o;
    int status = read_options(&o, argc, argv);

    if (status >= 0)
        return status;
    if (!eal_start("nj-ahead", 1))
        return 1;
    bool good = run(&o);
    nj_eal_fini();
    return good ? 0 : 1;
}
