/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-exchange: a server's shard and its clients' shard in one thread, without a device (pair.h).
 * With --count it reads no clock, because callgrind counts the instructions (perf/bench/guard.py).
 * Otherwise it measures the cycles of one pair alone, and of two pairs on two CPUs at the same
 * time.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "base/compiler.h"
#include "base/units.h"
#include "dpdk/eal.h"
#include "eal.h"
#include "pair.h"
#include "report.h"

static const char USAGE[] =
    "usage: nj-exchange [options] [SHAPE ...]\n"
    "\n"
    "A server and its clients in one thread, in simulated time and without a device. Only the\n"
    "server's work for requests is measured.\n"
    "\n"
    "      --threads N    1; or 2, to measure also two pairs at the same time, on a CPU each [1]\n"
    "      --rounds N     rounds of measurements; the results are medians [15]\n"
    "  -n, --requests N   requests of a measurement; at least the shape's minimum [20000, or\n"
    "                     256 MiB of bodies]\n"
    "      --json FILE    write all values as JSON; - is standard output\n"
    "      --count        run one shape once without a clock, for callgrind: each run executes\n"
    "                     the same instructions below nj_exchange_server_step(). See\n"
    "                     ./dev bench guard\n"
    "  -h, --help\n"
    "\n"
    "Shapes (connections x streams; 128 bytes from a file or a handler, or downloads):\n";

/* The warm-up requests end slow start; after them all requests of a connection are equal. The
 * number of measured requests is a multiple of the requests in flight, so that the requests at both
 * ends of the measurement do not matter. callgrind needs some seconds for them. */
static const struct shape shapes[] = {
    {"1x1", 1, 1, 128, 64, .n_requests = 1000},
    {"16x32", 16, 32, 128, 4 * 512, .n_requests = 20 * 512},
    {"route", 16, 32, 128, 4 * 512, .n_requests = 20 * 512, .handler = {.touches = HANDLER_PLAIN}},
    {"1000x1", 1000, 1, 128, 4 * 1000, .n_requests = 5 * 1000},
    {"200KiB", 4, 4, 200 << 10, 16, .n_requests = 8 * 16},
    {"10MiB", 1, 1, 10 << 20, 1, .n_requests = 3},
    {"16x32+tls", 16, 32, 128, 4 * 512, .n_requests = 20 * 512, .tls = true},
    {"10MiB+tls", 1, 1, 10 << 20, 1, .n_requests = 3, .tls = true},
    {"1000x1+http1", 1000, 1, 128, 4 * 1000, .n_requests = 5 * 1000, .http1 = true},
    {"10MiB+http1", 1, 1, 10 << 20, 1, .n_requests = 3, .http1 = true},
    {"1000x1+site", 1000, 1, 128, 4 * 1000, .n_requests = 5 * 1000, .n_sites = 1},
    {"1000x1+sites", 1000, 1, 128, 4 * 1000, .n_requests = 5 * 1000, .n_sites = 1000},
    {"100kx1", 100000, 1, 128, 3 * 100000, .n_requests = 16 * 1000, .in_turn = 16},
};

#define ROUNDS_MAX  REPORT_ROUNDS_MAX
#define THREADS_MAX REPORT_THREADS_MAX
_Static_assert(THREADS_MAX <= EAL_LCORES_MAX, "each thread has an lcore");
/* Of a measurement, which takes about 50 ms. If other processes use the CPU, many short rounds are
 * better than few long ones: the median is then that of an undisturbed round. */
#define TIMED_COUNT 20000u
#define TIMED_BYTES (256ull << 20)

struct options {
    uint64_t n_threads, n_rounds, n_requests;
    const char *json;
    bool count;
};

/* The work of one thread. */
struct thread {
    unsigned lcore;
    struct pair *pair;
    const struct shape *shape;
    uint64_t n_requests;
    _Atomic int *running; /* shared by all threads of a measurement; NULL: one thread alone */
    int n_together;
    struct cost cost;
    bool good;
};

static uint64_t cycles(void)
{
    return rte_rdtsc();
}

static void print_error(const struct shape *shape, const struct pair *p)
{
    fprintf(stderr, "nj-exchange: %s: %s\n", shape->name,
            p ? p->why : "not enough memory, or see above");
}

/* ---- threads ---- */

static int begin(void *arg)
{
    struct thread *t = arg;

    t->pair = pair_new(t->shape, cycles);
    t->good = t->pair && pair_begin(t->pair);
    return 0;
}

/* Measures. With other threads, it starts when all are ready, and keeps the server busy until all
 * have measured. */
static int measure(void *arg)
{
    struct thread *t = arg;

    if (t->running) {
        atomic_fetch_add(t->running, 1);
        while (atomic_load(t->running) < t->n_together)
            rte_pause();
    }
    t->good = pair_run(t->pair, t->n_requests, &t->cost);
    if (t->running) {
        atomic_fetch_add(t->running, t->n_together);
        while (atomic_load(t->running) < t->n_together * (1 + t->n_together))
            pair_turn(t->pair);
    }
    return 0;
}

static int end(void *arg)
{
    struct thread *t = arg;

    t->good = pair_end(t->pair);
    return 0;
}

/* Runs `work` for all threads at the same time, one of them on this lcore. False: a thread failed,
 * and stderr has the reason. */
static bool on_all(struct thread *t, uint32_t n, int (*work)(void *))
{
    bool good = true;

    for (uint32_t i = 0; i < n; i++)
        if (t[i].lcore != rte_lcore_id())
            rte_eal_remote_launch(work, &t[i], t[i].lcore);
    for (uint32_t i = 0; i < n; i++) {
        if (t[i].lcore == rte_lcore_id())
            work(&t[i]);
        else
            rte_eal_wait_lcore(t[i].lcore);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!t[i].good)
            print_error(t[i].shape, t[i].pair);
        good = good && t[i].good;
    }
    return good;
}

/* ---- measurements ---- */

static uint64_t n_timed(const struct options *o, const struct shape *s)
{
    uint64_t n = TIMED_COUNT;

    if (n > TIMED_BYTES / s->file_bytes)
        n = TIMED_BYTES / s->file_bytes;
    if (o->n_requests)
        n = o->n_requests;
    return n > s->n_requests ? n : s->n_requests;
}

/* Measures each thread alone, and after each of them all threads together. */
static bool round_of(struct thread *t, const struct options *o, struct report_shape *r,
                     uint32_t round)
{
    for (uint32_t i = 0; i < o->n_threads; i++) {
        _Atomic int running = 0;
        if (!on_all(&t[i], 1, measure))
            return false;
        r->alone[i][round] = t[i].cost;
        if (o->n_threads == 1)
            continue;
        for (uint32_t k = 0; k < o->n_threads; k++) {
            t[k].running = &running;
            t[k].n_together = (int)o->n_threads;
        }
        if (!on_all(t, (uint32_t)o->n_threads, measure))
            return false;
        for (uint32_t k = 0; k < o->n_threads; k++) {
            r->together[k][round * o->n_threads + i] = t[k].cost;
            t[k].running = NULL;
        }
    }
    return true;
}

static bool time_shape(const struct options *o, const struct shape *shape, struct report_shape *r)
{
    struct thread t[THREADS_MAX] = {0};
    uint32_t n = 0;
    unsigned lcore;
    bool good;

    r->shape = shape;
    RTE_LCORE_FOREACH(lcore)
    {
        t[n++] = (struct thread){.lcore = lcore, .shape = shape, .n_requests = n_timed(o, shape)};
        if (n == o->n_threads)
            break;
    }
    good = on_all(t, n, begin);
    for (uint32_t i = 0; good && i < o->n_rounds; i++)
        good = round_of(t, o, r, i);
    good = good && on_all(t, n, end);
    for (uint32_t i = 0; i < n; i++)
        if (t[i].pair)
            pair_free(t[i].pair);
    return good;
}

static bool count_shape(const struct options *o, const struct shape *shape)
{
    struct pair *p = pair_new(shape, NULL);
    struct cost cost;
    bool good = p && pair_begin(p) &&
                pair_run(p, o->n_requests ? o->n_requests : shape->n_requests, &cost) &&
                pair_end(p);

    if (good)
        report_count(shape, &cost);
    else
        print_error(shape, p);
    if (p)
        pair_free(p);
    return good;
}

/* ---- options ---- */

static const struct shape *find_shape(const char *name)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

static void help(void)
{
    fputs(USAGE, stdout);
    for (size_t i = 0; i < NJ_ARRAY_LEN(shapes); i++)
        printf("  %-12s %6u x %-3u %8lu bytes%s\n", shapes[i].name, shapes[i].n_conns,
               shapes[i].streams, (unsigned long)shapes[i].file_bytes,
               shapes[i].in_turn           ? ", few requests in flight; only if named"
               : shapes[i].tls             ? ", over TLS 1.3"
               : shapes[i].http1           ? ", over HTTP/1.1"
               : shapes[i].n_sites > 1     ? ", with 1,000 sites of 20 paths"
               : shapes[i].n_sites > 0     ? ", with one site"
               : shapes[i].handler.touches ? ", from a handler"
                                           : "");
}

static bool number(const char *text, uint64_t most, uint64_t *out)
{
    return nj_parse_decimal(text, out) && *out >= 1 && *out <= most;
}

/* Returns -1 to continue, else the exit status. */
static int read_options(struct options *o, int argc, char **argv)
{
    enum { THREADS = 256, ROUNDS, JSON, COUNT };
    static const struct option known[] = {
        {"threads", required_argument, NULL, THREADS},
        {"rounds", required_argument, NULL, ROUNDS},
        {"requests", required_argument, NULL, 'n'},
        {"json", required_argument, NULL, JSON},
        {"count", no_argument, NULL, COUNT},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int c;

    *o = (struct options){.n_threads = 1, .n_rounds = 15};
    while (good && (c = getopt_long(argc, argv, "n:h", known, NULL)) != -1) {
        if (c == 'h') {
            help();
            return 0;
        }
        good = c == THREADS  ? number(optarg, THREADS_MAX, &o->n_threads)
               : c == ROUNDS ? number(optarg, ROUNDS_MAX, &o->n_rounds)
               : c == 'n'    ? number(optarg, UINT32_MAX, &o->n_requests)
                             : c == JSON || c == COUNT;
        o->json = c == JSON ? optarg : o->json;
        o->count |= c == COUNT;
    }
    for (int i = optind; i < argc; i++)
        if (!find_shape(argv[i])) {
            fprintf(stderr, "nj-exchange: %s: unknown shape (--help)\n", argv[i]);
            return 2;
        }
    if (good && (!o->count || optind + 1 == argc))
        return -1;
    fputs("nj-exchange: invalid option or value, or --count without one shape (--help)\n", stderr);
    return 2;
}

static bool run(const struct options *o, int n_names, char **names)
{
    static struct report report;
    bool good = true;

    if (o->count)
        return count_shape(o, find_shape(names[0]));
    report.hz = rte_get_tsc_hz();
    report.n_rounds = (uint32_t)o->n_rounds;
    report.n_threads = (uint32_t)o->n_threads;
    for (size_t i = 0; good && i < (n_names ? (size_t)n_names : NJ_ARRAY_LEN(shapes)); i++) {
        const struct shape *s = n_names ? find_shape(names[i]) : &shapes[i];
        if (!n_names && s->in_turn)
            continue;
        struct report_shape *r = report_add(&report);
        good = r && time_shape(o, s, r);
    }
    if (good && (!o->json || strcmp(o->json, "-") != 0))
        report_table(&report);
    return good && (!o->json || report_json(&report, o->json));
}

int main(int argc, char **argv)
{
    struct options o;
    int status = read_options(&o, argc, argv);

    if (status >= 0)
        return status;
    if (!eal_start("nj-exchange", (uint32_t)o.n_threads))
        return 1;
    bool good = run(&o, argc - optind, argv + optind);
    nj_eal_fini();
    return good ? 0 : 1;
}
