/* SPDX-License-Identifier: BSD-3-Clause */
/* nj-ewyk-bench: one cell, measured once; prints one line of JSON. perf/ewyk.py runs many. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"
#include "sched/thread_pool.h"

_Atomic bool bench_over;

nj_ns bench_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (nj_ns)ts.tv_sec * NJ_SEC + (nj_ns)ts.tv_nsec;
}

static void wait_ns(nj_ns ns)
{
    struct timespec ts = {(time_t)(ns / NJ_SEC), (long)(ns % NJ_SEC)};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

/* --- producing ---------------------------------------------------------------------------------
 */

static void fill(struct bench_task *t, uint64_t n)
{
    uint64_t *words = (uint64_t *)t->buffer;

    for (uint32_t i = 0; i < t->of->options->n_bytes / sizeof *words; i++)
        words[i] = n + i;
}

static bool has_room(struct producer *p, uint32_t window)
{
    return atomic_load(&p->n_under_way) < window && atomic_load(&p->n_blocked) < BLOCKED_MAX;
}

/* The window is full: wait until half of it is free; unless it is by now. */
static bool must_wait(struct producer *p)
{
    if (has_room(p, p->options->window))
        return false;
    atomic_store(&p->waits, true);
    return !has_room(p, p->options->window / 2) || !atomic_exchange(&p->waits, false);
}

static void restart(struct producer *p)
{
    if (atomic_load(&p->waits) && has_room(p, p->options->window / 2) &&
        p->strategy.config.producer && atomic_exchange(&p->waits, false))
        while (!nj_strategy_dispatch(&p->strategy))
            ;
}

struct nj_task *bench_produce(struct producer *p)
{
    const struct options *o = p->options;

    if (atomic_load_explicit(&bench_over, memory_order_relaxed) || must_wait(p))
        return NULL;
    if (atomic_exchange_explicit(&p->n_inside, 1, memory_order_acquire))
        atomic_fetch_add(&p->n_violations, 1); /* two producers at a time */
    while (atomic_load_explicit(&p->tasks[p->cursor % BUFFERS].busy, memory_order_acquire))
        p->cursor++;
    struct bench_task *t = &p->tasks[p->cursor++ % BUFFERS];
    uint64_t n = atomic_load_explicit(&p->n_produced, memory_order_relaxed);
    atomic_store_explicit(&t->busy, true, memory_order_relaxed);
    fill(t, n);
    t->blocks = o->block_every && n % o->block_every == o->block_every - 1;
    t->produced = n % STAMP_EVERY || t->blocks ? 0 : bench_now();
    atomic_store_explicit(&p->n_produced, n + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->n_under_way, 1, memory_order_relaxed);
    atomic_store_explicit(&p->n_inside, 0, memory_order_release);
    return &t->task;
}

/* --- consuming ---------------------------------------------------------------------------------
 */

static uint32_t bucket(uint64_t ns)
{
    uint32_t log = ns ? 63 - (uint32_t)__builtin_clzll(ns) : 0;
    return log < 3 ? (uint32_t)ns : log * 8 + (uint32_t)(ns >> (log - 3) & 7);
}

static uint64_t of_bucket(uint32_t b)
{
    return b < 24 ? b : (8 + b % 8) * (UINT64_C(1) << (b / 8 - 3));
}

static void spin(uint64_t n)
{
    for (; n; n--)
        __asm__ volatile("" : : : "memory");
}

bool bench_work(struct bench_task *t)
{
    const uint64_t *words = (const uint64_t *)t->buffer;
    struct producer *p = t->of;
    uint64_t sum = 0;

    if (t->produced)
        atomic_fetch_add_explicit(&p->delays[bucket(bench_now() - t->produced)], 1,
                                  memory_order_relaxed);
    for (uint32_t i = 0; i < p->options->n_bytes / sizeof *words; i++)
        sum += words[i];
    __asm__ volatile("" : : "r"(sum));
    spin(p->n_spin);
    if (!t->blocks)
        return false;
    atomic_fetch_add(&p->n_blocked, 1);
    atomic_fetch_sub(&p->n_under_way, 1);
    restart(p);
    return true;
}

void bench_done(struct bench_task *t)
{
    struct producer *p = t->of;
    bool blocked = t->blocks;

    atomic_store_explicit(&t->busy, false, memory_order_release);
    atomic_fetch_sub(blocked ? &p->n_blocked : &p->n_under_way, 1);
    restart(p);
}

static void run(struct nj_task *task)
{
    struct bench_task *t = nj_container_of(task, struct bench_task, task);

    if (bench_work(t))
        wait_ns(BLOCK_NS);
    bench_done(t);
}

static void reject(struct nj_task *task)
{
    struct bench_task *t = nj_container_of(task, struct bench_task, task);

    t->blocks = false;
    bench_done(t);
}

static struct nj_task *produce(struct nj_producer *port)
{
    return bench_produce(nj_container_of(port, struct producer, port));
}

/* --- setting up --------------------------------------------------------------------------------
 */

/* Turns of spin() in that time: the best of some tries, as others may use the core. */
static uint64_t calibrate(uint32_t ns)
{
    nj_ns best = NJ_NEVER;

    for (int i = 0; i < 20; i++) {
        nj_ns began = bench_now();
        spin(100000);
        nj_ns took = bench_now() - began;
        best = took < best ? took : best;
    }
    return (uint64_t)ns * 100000 / best;
}

static struct producer *producer_new(const struct options *o, uint64_t n_spin)
{
    static const struct nj_task_ops ops = {run, reject};
    struct producer *p = aligned_alloc(NJ_CACHE_LINE, sizeof *p);
    uint8_t *buffers = aligned_alloc(4096, (size_t)BUFFERS * BUFFER_BYTES);

    if (!p || !buffers)
        abort();
    memset(p, 0, sizeof *p);
    memset(buffers, 0, (size_t)BUFFERS * BUFFER_BYTES);
    p->port.produce = produce;
    p->options = o;
    p->n_spin = n_spin;
    p->tasks = calloc(BUFFERS, sizeof *p->tasks);
    for (uint32_t i = 0; i < BUFFERS; i++)
        p->tasks[i] = (struct bench_task){
            .task = {.ops = &ops}, .of = p, .buffer = buffers + (size_t)i * BUFFER_BYTES};
    return p;
}

static nj_ns cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (nj_ns)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NJ_SEC +
           (nj_ns)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NJ_US;
}

static uint64_t n_consumed(struct producer *const *p, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += atomic_load(&p[i]->n_produced) - atomic_load(&p[i]->n_under_way) -
               atomic_load(&p[i]->n_blocked);
    return sum;
}

static uint64_t percentile(struct producer *const *p, uint32_t n, double share)
{
    uint64_t counts[BUCKETS] = {0}, all = 0, seen = 0;

    for (uint32_t b = 0; b < BUCKETS; b++) {
        for (uint32_t i = 0; i < n; i++)
            counts[b] += atomic_load(&p[i]->delays[b]);
        all += counts[b];
    }
    for (uint32_t b = 0; b < BUCKETS; b++)
        if ((seen += counts[b]) > share * (double)all)
            return of_bucket(b);
    return 0;
}

struct measured {
    uint64_t n_tasks;
    nj_ns wall, cpu;
};

static struct measured measure(const struct options *o, struct producer *const *p)
{
    struct measured m;

    wait_ns(o->warm_up_ms * NJ_MS);
    for (uint32_t i = 0; i < o->n_producers; i++)
        for (uint32_t b = 0; b < BUCKETS; b++)
            atomic_store(&p[i]->delays[b], 0);
    nj_ns wall = bench_now(), cpu = cpu_ns();
    uint64_t n = n_consumed(p, o->n_producers);
    wait_ns(o->ms * NJ_MS);
    m.n_tasks = n_consumed(p, o->n_producers) - n;
    m.wall = bench_now() - wall;
    m.cpu = cpu_ns() - cpu;
    return m;
}

static void print(const struct options *o, struct producer *const *p, struct measured m,
                  const struct nj_strategy_counters *c)
{
    uint32_t n_violations = 0;

    for (uint32_t i = 0; i < o->n_producers; i++)
        n_violations += atomic_load(&p[i]->n_violations);
    printf("{\"per_second\": %.0f, \"cpu_ns\": %.1f, \"cpus\": %.3f, \"start_p50_ns\": %" PRIu64
           ", \"start_p99_ns\": %" PRIu64 ", \"pc\": %" PRIu64 ", \"pic\": %" PRIu64
           ", \"pec\": %" PRIu64 ", \"epc\": %" PRIu64 ", \"recruits_sent\": %" PRIu64
           ", \"recruits_useful\": %" PRIu64 ", \"recruits_wasted\": %" PRIu64
           ", \"recruits_missed\": %" PRIu64 ", \"violations\": %u}\n",
           (double)m.n_tasks * 1e9 / (double)m.wall,
           m.n_tasks ? (double)m.cpu / (double)m.n_tasks : 0, (double)m.cpu / (double)m.wall,
           percentile(p, o->n_producers, 0.5), percentile(p, o->n_producers, 0.99), c->pc, c->pic,
           c->pec, c->epc, c->recruits_sent, c->recruits_useful, c->recruits_wasted,
           c->recruits_missed, n_violations);
}

/* --- the strategies ----------------------------------------------------------------------------
 */

static void with_threads(const struct options *o, struct producer *const *p,
                         enum nj_strategy_kind kind, struct nj_executor *executor)
{
    struct nj_strategy_counters sum = {0};

    for (uint32_t i = 0; i < o->n_producers; i++) {
        struct nj_strategy_config config = {
            .kind = kind, .producer = &p[i]->port, .executor = executor};
        nj_strategy_init(&p[i]->strategy, &config); /* all tasks are BLOCKING: none declares more */
        nj_strategy_dispatch(&p[i]->strategy);
    }
    struct measured m = measure(o, p);
    atomic_store(&bench_over, true);
    for (uint32_t i = 0; i < o->n_producers; i++) {
        while (atomic_load(&p[i]->n_under_way) || atomic_load(&p[i]->n_blocked))
            wait_ns(NJ_MS);
        struct nj_strategy_counters c = nj_strategy_counters(&p[i]->strategy);
        sum.pc += c.pc;
        sum.pic += c.pic;
        sum.pec += c.pec;
        sum.epc += c.epc;
        sum.recruits_sent += c.recruits_sent;
        sum.recruits_useful += c.recruits_useful;
        sum.recruits_wasted += c.recruits_wasted;
        sum.recruits_missed += c.recruits_missed;
    }
    print(o, p, m, &sum);
}

static void with_pool(const struct options *o, struct producer *const *p,
                      enum nj_strategy_kind kind)
{
    struct nj_thread_pool_config config = {.n_min = THREADS,
                                           .n_max = THREADS,
                                           .n_cpus = 2,
                                           .n_reserved = o->n_reserved,
                                           .idle_ns = NJ_NEVER};
    struct nj_thread_pool *pool = nj_thread_pool_start(&config, NULL, 0);

    with_threads(o, p, kind, nj_thread_pool_executor(pool));
    nj_thread_pool_stop(pool);
    nj_thread_pool_free(pool);
}

/* Production on one CPU and consumption on another, as the server's workers never share an lcore's:
 * left to the kernel both run on one when the machine is busy, and then the cache is hot. */
struct split {
    struct nj_executor executor;
    struct nj_thread_pool *produce, *consume;
};

static bool split_execute(struct nj_executor *e, struct nj_task *task, const struct nj_strategy *of)
{
    struct split *s = nj_container_of(e, struct split, executor);
    struct nj_executor *pool = nj_thread_pool_executor(of ? s->consume : s->produce);

    return pool->ops->execute(pool, task, of);
}

static bool split_try_execute(struct nj_executor *e, struct nj_task *task)
{
    (void)e, (void)task;
    return false;
}

/* Threads have the CPUs of who makes them. */
static struct nj_thread_pool *pool_on(int cpu, uint32_t n_threads)
{
    struct nj_thread_pool_config config = {
        .n_min = n_threads, .n_max = n_threads, .n_cpus = 1, .n_reserved = 0, .idle_ns = NJ_NEVER};
    cpu_set_t all, one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || sched_setaffinity(0, sizeof one, &one) != 0)
        exit(3); /* there are no two CPUs */
    struct nj_thread_pool *pool = nj_thread_pool_start(&config, NULL, 0);
    sched_setaffinity(0, sizeof all, &all);
    return pool;
}

static void with_split(const struct options *o, struct producer *const *p)
{
    static const struct nj_executor_ops ops = {.execute = split_execute,
                                               .try_execute = split_try_execute};
    struct split s = {{&ops}, pool_on(0, PRODUCERS_MAX), pool_on(1, THREADS)};

    with_threads(o, p, NJ_STRATEGY_PEC, &s.executor);
    nj_thread_pool_stop(s.produce);
    nj_thread_pool_stop(s.consume);
    nj_thread_pool_free(s.produce);
    nj_thread_pool_free(s.consume);
}

static void with_crew(const struct options *o, struct producer *const *p, bool steals)
{
    struct crew *crew = crew_new(steals, p, o->n_producers);

    with_threads(o, p, NJ_STRATEGY_PEC, crew_executor(crew));
    crew_free(crew);
}

static void with_lcores(const struct options *o, struct producer *const *p)
{
    uint64_t n[NJ_N_MODES] = {0};

    lcores_start(p, o->n_producers);
    struct measured m = measure(o, p);
    atomic_store(&bench_over, true);
    lcores_join(n);
    print(o, p, m,
          &(struct nj_strategy_counters){
              .pc = n[NJ_MODE_PC],
              .pic = n[NJ_MODE_PIC],
              .pec = n[NJ_MODE_PEC_QUEUE] + n[NJ_MODE_PEC_WORKER],
              .epc = n[NJ_MODE_EPC_INLINE] + n[NJ_MODE_EPC_PARKED],
          });
}

static void run_strategy(const struct options *o, struct producer *const *p)
{
    static const char *const pools[NJ_N_STRATEGIES] = {"pc", "pec", "epc", "adaptive"};

    for (int kind = 0; kind < NJ_N_STRATEGIES; kind++)
        if (strcmp(o->strategy, pools[kind]) == 0) {
            with_pool(o, p, (enum nj_strategy_kind)kind);
            return;
        }
    if (strcmp(o->strategy, "lcore") == 0)
        with_lcores(o, p);
    else if (strcmp(o->strategy, "split") == 0)
        with_split(o, p);
    else
        with_crew(o, p, strcmp(o->strategy, "steal") == 0);
}

int main(int argc, char **argv)
{
    if (argc != 10) {
        fprintf(stderr, "usage: nj-ewyk-bench STRATEGY BYTES WORK_NS BLOCK_EVERY PRODUCERS WINDOW "
                        "MS WARM_UP_MS RESERVED\n");
        return 2;
    }
    struct options o = {
        .strategy = argv[1],
        .n_bytes = (uint32_t)atoi(argv[2]),
        .work_ns = (uint32_t)atoi(argv[3]),
        .block_every = (uint32_t)atoi(argv[4]),
        .n_producers = (uint32_t)atoi(argv[5]),
        .window = (uint32_t)atoi(argv[6]),
        .ms = (uint32_t)atoi(argv[7]),
        .warm_up_ms = (uint32_t)atoi(argv[8]),
        .n_reserved = atoi(argv[9]),
    };
    if (o.n_bytes > BUFFER_BYTES || o.window > WINDOW_MAX || !o.n_producers ||
        o.n_producers > PRODUCERS_MAX)
        return 2;
    struct producer *p[PRODUCERS_MAX];
    uint64_t n_spin = calibrate(o.work_ns);
    for (uint32_t i = 0; i < o.n_producers; i++)
        p[i] = producer_new(&o, n_spin);
    run_strategy(&o, p);
    return 0;
}
