/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-ewyk-delays in real time, nj-ewyk-virtual in virtual time: the start delay of OS_BLOCKING
 * tasks while some of them are stuck. Measures one cell once and prints a line of JSON.
 * perf/bench/ewyk_delays.py measures many cells.
 *
 * The calling thread, the driver, acts as the lcores of all shards. Tasks are due at exponential
 * intervals, independent of the pool. A delay counts from the due time.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/prng.h"
#include "delays.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "threads/worker_pool.h"

#define SHARDS    2u
#define CLIENTS   64u
#define TASKS_MAX 200000u /* of a run */
#define START_NS  (100 * NJ_MS)

static struct options {
    bool ahead;
    uint32_t n_workers, rate, stuck_per_mille;
    nj_ns work_ns, stuck_ns, length_ns;
    uint64_t seed;
} o;

struct job {
    struct nj_task task;
    nj_ns due, started;
    uint32_t shard;
    bool stuck;
};

static struct job jobs[TASKS_MAX];
static nj_ns delays[TASKS_MAX];
static struct nj_task_class classes[SHARDS];
static char clients[CLIENTS][NJ_CACHE_LINE];

/* --- tasks ------------------------------------------------------------------------------------ */

static void run(struct nj_task *task)
{
    struct job *j = nj_container_of(task, struct job, task);

    j->started = time_now();
    time_burn(o.work_ns);
    if (j->stuck)
        time_block(o.stuck_ns);
}

static void reject(struct nj_task *task)
{
    (void)task;
    NJ_UNREACHABLE("the benchmark submits fewer tasks than tasks_max");
}

static const struct nj_task_ops ops = {run, reject};

/* --- the driver ------------------------------------------------------------------------------- */

static struct nj_prng prng;

static double uniform(void)
{
    return ((double)(nj_prng_next(&prng) >> 11) + 1) / 9007199254740993.0;
}

/* Draws all tasks, with their due times in ns from the start. Returns the number of tasks. */
static uint32_t plan(void)
{
    double at = 0;
    uint32_t n = 0;

    nj_prng_init(&prng, o.seed);
    for (; n < TASKS_MAX; n++) {
        at += -log(uniform()) * 1e9 / o.rate;
        if (at >= (double)o.length_ns)
            break;
        struct job *j = &jobs[n];
        j->task.ops = &ops;
        nj_list_init(&j->task.node);
        j->task.client = clients[nj_prng_below(&prng, CLIENTS)];
        j->due = (nj_ns)at;
        j->shard = nj_prng_below(&prng, SHARDS);
        j->task.class_of = &classes[j->shard];
        j->stuck = nj_prng_below(&prng, 1000) < o.stuck_per_mille;
    }
    return n;
}

/* Returns the number of tasks that are done. */
static uint32_t poll_done(struct nj_worker_ops *port)
{
    struct nj_task *done[32];
    return port->poll(port->ctx, done, NJ_ARRAY_LEN(done));
}

/* Submits each task when it is due, until all tasks are done. Returns the maximum delay of a
 * submission. */
static nj_ns drive(struct nj_worker_ops *ports, uint32_t n)
{
    time_block(START_NS); /* until the workers have started */
    nj_ns began = time_now(), late = 0;
    uint32_t n_in = 0, n_done = 0;

    while (n_done < n) {
        nj_ns now = time_now() - began;
        for (; n_in < n && jobs[n_in].due <= now; n_in++) {
            struct job *j = &jobs[n_in];
            late = now - j->due > late ? now - j->due : late;
            j->due += began;
            NJ_CHECK(ports[j->shard].submit(ports[j->shard].ctx, &j->task));
        }
        for (uint32_t s = 0; s < SHARDS; s++) {
            ports[s].flush(ports[s].ctx);
            n_done += poll_done(&ports[s]);
        }
        time_step();
    }
    return late;
}

/* --- results ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *z)
{
    nj_ns x = *(const nj_ns *)a, y = *(const nj_ns *)z;
    return x < y ? -1 : x > y;
}

static void report(uint32_t n, nj_ns cpu, nj_ns late)
{
    for (uint32_t i = 0; i < n; i++)
        delays[i] = jobs[i].started - jobs[i].due;
    qsort(delays, n, sizeof delays[0], by_value);
    printf("{\"tasks\": %u, \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"p999_ns\": %" PRIu64
           ", \"max_ns\": %" PRIu64 ", \"cpu_ns\": %.1f, \"late_ns\": %" PRIu64 "}\n",
           n, delays[n / 2], delays[(uint64_t)n * 99 / 100], delays[(uint64_t)n * 999 / 1000],
           delays[n - 1], n ? (double)cpu / n : 0, late);
}

static int run_pool(uint32_t n)
{
    struct nj_worker_pool_config c = {
        .n_shards = SHARDS,
        .kind = {[NJ_WORKER_HANDLERS] = {.n_max = o.n_workers, .tasks_max = TASKS_MAX}}};
    struct nj_worker_ops ports[SHARDS];
    struct nj_worker_pool *w;

    time_place();
    if (nj_worker_pool_start(&c, &w) != 0) {
        fputs("nj-ewyk-delays: cannot start the threads, or out of memory\n", stderr);
        return 1;
    }
    time_place();
    for (uint32_t s = 0; s < SHARDS; s++)
        ports[s] = nj_worker_pool_ops(w, s, NJ_WORKER_HANDLERS);
    nj_ns cpu = time_cpu_of_others();
    nj_ns late = drive(ports, n);
    report(n, time_cpu_of_others() - cpu, late);
    NJ_CHECK(nj_worker_pool_stop(w, 10000) == 0);
    nj_worker_pool_free(w);
    return 0;
}

static int run_ahead(uint32_t n)
{
    struct nj_worker_ops ports[SHARDS];

    time_place();
    struct ahead *a = ahead_new(o.n_workers, SHARDS, TASKS_MAX);
    time_place();
    for (uint32_t s = 0; s < SHARDS; s++)
        ports[s] = ahead_port(a, s);
    nj_ns cpu = time_cpu_of_others();
    nj_ns late = drive(ports, n);
    report(n, time_cpu_of_others() - cpu, late);
    ahead_free(a);
    return 0;
}

static int run_cell(void)
{
    uint32_t n = plan();

    for (uint32_t s = 0; s < SHARDS; s++)
        nj_task_class_init(&classes[s], "bench", NJ_OS_BLOCKING);
    return o.ahead ? run_ahead(n) : run_pool(n);
}

int main(int argc, char **argv)
{
    if (argc != 9 || (strcmp(argv[1], "pool") != 0 && strcmp(argv[1], "ahead") != 0)) {
        fputs("usage: nj-ewyk-delays pool|ahead WORKERS TASKS_PER_S WORK_US STUCK_PER_MILLE "
              "STUCK_MS MS SEED\n",
              stderr);
        return 2;
    }
    o = (struct options){
        .ahead = strcmp(argv[1], "ahead") == 0,
        .n_workers = (uint32_t)atoi(argv[2]),
        .rate = (uint32_t)atoi(argv[3]),
        .work_ns = (nj_ns)atoi(argv[4]) * NJ_US,
        .stuck_per_mille = (uint32_t)atoi(argv[5]),
        .stuck_ns = (nj_ns)atoi(argv[6]) * NJ_MS,
        .length_ns = (nj_ns)atoi(argv[7]) * NJ_MS,
        .seed = strtoull(argv[8], NULL, 0),
    };
    if (o.n_workers < 1 || o.n_workers > NJ_WORKERS_MAX || o.rate < 1 ||
        (uint64_t)o.rate * o.length_ns / NJ_SEC > TASKS_MAX / 2) {
        fprintf(stderr,
                "nj-ewyk-delays: expected 1 to %u workers, a rate of at least 1, and "
                "at most %u tasks\n",
                NJ_WORKERS_MAX, TASKS_MAX / 2);
        return 2;
    }
    return time_run(run_cell);
}
