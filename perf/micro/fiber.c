/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ./dev bench fiber: the cost of a task on a stack of its own. Nanoseconds per task for tasks that
 * never park, inline (PC) and on a fiber (EPC), without and with the two clock reads of a measured
 * task; for the start of a fiber alone; and from park to resume. Each round measures all ways;
 * every second round reverses their order. Prints the medians and the quartiles of the rounds. The
 * difference of two ways is computed within each round.
 *
 * bench_fiber --count WAY N runs one way N times, for perf/bench/fiber.py, which counts
 * instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "dpdk/tsc_clock.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "sched/fiber_internal.h"
#include "threads/os_clock.h"

#define ROUNDS 401
#define TIMES  2000 /* per round */

struct bench {
    struct nj_ewyk *bare, *timed; /* without and with a clock */
    struct nj_fibers *fibers;
    struct nj_tsc_clock clock;
    struct nj_task_class non_blocking, blocking;
    struct nj_task pc, epc;
    uint64_t n_done;
    struct nj_waiter of_fiber, of_ewyk;
    bool ends;
};

static struct bench b;

static nj_ns read_clock(void *ctx)
{
    (void)ctx;
    return nj_tsc_clock_now(&b.clock);
}

static void consume(struct nj_task *t)
{
    (void)t;
    b.n_done++;
}

static void consume_bare(void *arg)
{
    (void)arg;
    b.n_done++;
}

static const struct nj_task_ops ops = {.run = consume, .reject = consume};

static void pc(void)
{
    nj_ewyk_offer(b.bare, &b.pc);
}

static void epc(void)
{
    nj_ewyk_offer(b.bare, &b.epc);
}

static void pc_timed(void)
{
    nj_ewyk_offer(b.timed, &b.pc);
}

static void epc_timed(void)
{
    nj_ewyk_offer(b.timed, &b.epc);
}

static enum nj_fiber_started fiber_start(struct nj_fibers *fs, void (*fn)(void *arg), void *arg)
{
    nj__fibers_bind(fs);
    return nj__fiber_start_for_class(fs, fn, arg, NULL);
}

static void start(void)
{
    fiber_start(b.fibers, consume_bare, NULL);
}

static void start_inline(void)
{
    void (*volatile fn)(void *) = consume_bare;
    fn(NULL);
}

/* A fiber that parks in a loop. The root wakes it. */
static void park_in_loop(void *waiter)
{
    while (!b.ends) {
        b.n_done++;
        nj_fiber_park(waiter, NJ_NEVER);
    }
}

static void park_resume(void)
{
    nj_fiber_wake(b.of_fiber, NJ_WAKE_OK);
    nj__fibers_wake_due(b.fibers, 0);
    nj__fiber_resume(nj__fibers_pop_runnable(b.fibers));
}

static void park_in_loop_as_task(struct nj_task *t)
{
    (void)t;
    park_in_loop(&b.of_ewyk);
}

static const struct nj_task_ops parking_ops = {.run = park_in_loop_as_task, .reject = consume};

static void park_resume_timed(void)
{
    nj_fiber_wake(b.of_ewyk, NJ_WAKE_OK);
    nj_ewyk_run(b.timed, 0, 1);
}

static void clock_alone(void)
{
    b.n_done += read_clock(NULL) & 1;
}

enum { CALL, START, PC, EPC, PC_TIMED, EPC_TIMED, PARK, PARK_TIMED, CLOCK, N_WAYS };

static const struct {
    const char *key, *name;
    void (*run)(void);
} ways[N_WAYS] = {
    [CALL] = {"call", "a call through a pointer", start_inline},
    [START] = {"start", "the start of a fiber, to its end", start},
    [PC] = {"pc", "offer, PC", pc},
    [EPC] = {"epc", "offer, EPC that never parks", epc},
    [PC_TIMED] = {"pc-measured", "offer, PC, measured", pc_timed},
    [EPC_TIMED] = {"epc-measured", "offer, EPC, measured", epc_timed},
    [PARK] = {"park", "wake, resume, park", park_resume},
    [PARK_TIMED] = {"park-measured", "wake, resume, park, measured", park_resume_timed},
    [CLOCK] = {"clock", "one clock read", clock_alone},
};

static const struct {
    const char *name;
    int way, over; /* over -1: the cost of `way` itself */
    double most_ns;
} limits[] = {
    {"EPC that never parks, over PC", EPC, PC, 30},
    {"the same, measured", EPC_TIMED, PC_TIMED, 30},
    {"recruit: start, over a call", START, CALL, 50},
    {"park to resume, measured", PARK_TIMED, -1, 100},
};

static double now_ns(void)
{
    return (double)nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

static double once(void (*run)(void))
{
    double from = now_ns();

    for (int i = 0; i < TIMES; i++)
        run();
    return (now_ns() - from) / TIMES;
}

static int by_value(const void *a, const void *z)
{
    const double *x = a, *y = z;
    return *x < *y ? -1 : *x > *y;
}

/* Replaces nj_tsc_clock_init(), which needs the EAL. Measures the rate of the TSC for 20 ms. */
static void start_clock(struct nj_tsc_clock *c)
{
    double from = now_ns(), ns;

    c->tsc_base = rte_rdtsc();
    while ((ns = now_ns() - from) < 20e6)
        ;
    c->ns_per_cycle_q32 = (uint64_t)(ns * 4294967296.0 / (double)(rte_rdtsc() - c->tsc_base));
}

/* `clock`: the clock advances. Otherwise it stands still, so that no task takes any time. */
static bool prepare(bool clock)
{
    struct nj_ewyk_config config = {.n_fibers_max = 256, .n_queue_max = 16};
    static struct nj_task parking = {.ops = &parking_ops, .class_of = &b.blocking};

    if (clock)
        start_clock(&b.clock);
    nj_task_class_init(&b.non_blocking, "/pc", NJ_NON_BLOCKING);
    nj_task_class_init(&b.blocking, "/epc", NJ_BLOCKING);
    b.pc = (struct nj_task){.ops = &ops, .class_of = &b.non_blocking};
    b.epc = (struct nj_task){.ops = &ops, .class_of = &b.blocking};
    b.bare = nj_ewyk_new(&config);
    config.clock = read_clock;
    b.timed = nj_ewyk_new(&config);
    b.fibers = nj_fibers_new(&(struct nj_fibers_config){.n_max = 256});
    return b.bare && b.timed && b.fibers &&
           fiber_start(b.fibers, park_in_loop, &b.of_fiber) == NJ_FIBER_PARKED &&
           nj_ewyk_offer(b.timed, &parking) == NJ_MODE_EPC_PARKED;
}

static void finish(void)
{
    b.ends = true;
    park_resume();
    park_resume_timed();
    nj_fibers_free(b.fibers);
    nj_ewyk_free(b.bare);
    nj_ewyk_free(b.timed);
}

struct spread {
    double low, middle, high;
};

static struct spread spread(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof values[0], by_value);
    return (struct spread){values[ROUNDS / 4], values[ROUNDS / 2], values[ROUNDS * 3 / 4]};
}

static void verdict(double (*ns)[ROUNDS], const char *what, int way, int over, double most)
{
    double differences[ROUNDS];

    for (int r = 0; r < ROUNDS; r++)
        differences[r] = ns[way][r] - (over < 0 ? 0 : ns[over][r]);
    struct spread s = spread(differences);
    printf("%-32s%+10.1f   %.1f .. %.1f (at most %.0f: %s)\n", what, s.middle, s.low, s.high, most,
           s.middle <= most ? "met" : "NOT met");
}

static int measure(void)
{
    static double ns[N_WAYS][ROUNDS];

    if (!prepare(true))
        return 1;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < N_WAYS; i++) {
            int w = r % 2 ? N_WAYS - 1 - i : i;
            ns[w][r] = once(ways[w].run);
        }
    printf("%-32s%10s   quartiles of %d rounds\n", "ns", "median", ROUNDS);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        verdict(ns, limits[i].name, limits[i].way, limits[i].over, limits[i].most_ns);
    for (int w = 0; w < N_WAYS; w++) {
        struct spread s = spread(ns[w]);
        printf("%-32s%10.1f   %.1f .. %.1f\n", ways[w].name, s.middle, s.low, s.high);
    }
    finish();
    return 0;
}

static int count(const char *key, const char *times)
{
    int w = 0;

    while (w < N_WAYS && strcmp(key, ways[w].key) != 0)
        w++;
    if (w == N_WAYS) {
        fprintf(stderr, "bench_fiber: %s: unknown way\n", key);
        return 2;
    }
    if (!prepare(false))
        return 1;
    for (long n = atol(times); n > 0; n--)
        ways[w].run();
    finish();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return measure();
    if (argc == 4 && strcmp(argv[1], "--count") == 0)
        return count(argv[2], argv[3]);
    fprintf(stderr, "usage: bench_fiber [--count WAY N]\n");
    return 2;
}
