/* SPDX-License-Identifier: BSD-3-Clause */
/* nj-ewyk-bench: measures one cell once and prints a line of JSON. perf/bench/ewyk.py measures many
 * cells. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"
#include "strategy/thread_pool.h"

/* --- measurement -------------------------------------------------------------------------------
 */

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

static struct nj_strategy_counters sum_counters(struct producer *const *p, uint32_t n)
{
    struct nj_strategy_counters sum = {0};

    for (uint32_t i = 0; i < n; i++) {
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
    return sum;
}

struct measured {
    uint64_t n_tasks;
    nj_ns wall, cpu, until;
    struct nj_strategy_counters warm_up; /* the counters before the measurement */
};

static struct measured measure(const struct options *o, struct producer *const *p)
{
    struct measured m;

    bench_wait(o->warm_up_ms * NJ_MS);
    nj_ns from = bench_now(), cpu = cpu_ns();
    atomic_store(&bench_from, from);
    m.warm_up = sum_counters(p, o->n_producers);
    uint64_t n = n_consumed(p, o->n_producers);
    bench_wait(o->ms * NJ_MS);
    m.n_tasks = n_consumed(p, o->n_producers) - n;
    m.until = bench_now();
    m.wall = m.until - from;
    m.cpu = cpu_ns() - cpu;
    atomic_store(&bench_over, true);
    return m;
}

static void print(const struct options *o, struct producer *const *p, struct measured m,
                  const struct nj_strategy_counters *c)
{
    struct bench_delays d = bench_delays(p, o->n_producers, m.until);
    const struct nj_strategy_counters *w = &m.warm_up;
    uint32_t n_violations = 0;

    for (uint32_t i = 0; i < o->n_producers; i++)
        n_violations += atomic_load(&p[i]->n_violations);
    printf("{\"per_second\": %.0f, \"cpu_ns\": %.1f, \"cpus\": %.3f, ",
           (double)m.n_tasks * 1e9 / (double)m.wall,
           m.n_tasks ? (double)m.cpu / (double)m.n_tasks : 0, (double)m.cpu / (double)m.wall);
    if (o->rate)
        printf("\"due\": %" PRIu64 ", \"unstarted\": %" PRIu64 ", \"start_p50_ns\": %" PRIu64
               ", \"start_p99_ns\": %" PRIu64 ", \"start_p999_ns\": %" PRIu64 ", ",
               d.n, d.n_unstarted, d.p50, d.p99, d.p999);
    printf("\"pc\": %" PRIu64 ", \"pic\": %" PRIu64 ", \"pec\": %" PRIu64 ", \"epc\": %" PRIu64
           ", \"recruits_sent\": %" PRIu64 ", \"recruits_useful\": %" PRIu64
           ", \"recruits_wasted\": %" PRIu64 ", \"recruits_missed\": %" PRIu64
           ", \"violations\": %u}\n",
           c->pc - w->pc, c->pic - w->pic, c->pec - w->pec, c->epc - w->epc,
           c->recruits_sent - w->recruits_sent, c->recruits_useful - w->recruits_useful,
           c->recruits_wasted - w->recruits_wasted, c->recruits_missed - w->recruits_missed,
           n_violations);
}

/* --- the strategies ----------------------------------------------------------------------------
 */

static void with_threads(const struct options *o, struct producer *const *p,
                         enum nj_strategy_kind kind, struct nj_executor *executor)
{
    for (uint32_t i = 0; i < o->n_producers; i++) {
        struct nj_strategy_config config = {
            .consume = nj_strategies[kind].consume, .producer = &p[i]->port, .executor = executor};
        p[i]->dual.keeps_two = true;
        nj_reference_init(&p[i]->strategy, &config); /* all tasks are BLOCKING: they have no type */
        nj_reference_produce_elsewhere(&p[i]->strategy);
    }
    struct measured m = measure(o, p);
    for (uint32_t i = 0; i < o->n_producers; i++) {
        while (atomic_load(&p[i]->n_under_way) || atomic_load(&p[i]->n_blocked))
            bench_wait(NJ_MS);
        nj_reference_stop(&p[i]->strategy); /* the threads of the dual strategy leave */
    }
    struct nj_strategy_counters sum = sum_counters(p, o->n_producers);
    print(o, p, m, &sum);
}

static void with_pool(const struct options *o, struct producer *const *p,
                      enum nj_strategy_kind kind)
{
    struct nj_thread_pool_config config = {.n_min = o->n_threads,
                                           .n_max = o->n_threads,
                                           .n_reserved = (int)o->n_reserved,
                                           .idle_ns = NJ_NEVER};
    struct nj_thread_pool *pool = nj_thread_pool_start(&config, NULL, 0);

    if (kind == NJ_STRATEGY_DUAL && 2 * o->n_producers >= o->n_threads) {
        fprintf(stderr, "the dual strategy keeps 2 threads for each producer; of %u 1 must stay\n",
                o->n_threads);
        exit(2);
    }
    with_threads(o, p, kind, nj_thread_pool_executor(pool));
    nj_thread_pool_stop(pool);
    nj_thread_pool_free(pool);
}

/* Production on CPU 0 and consumption on CPU 1, as in the server, whose workers do not share an
 * lcore's CPU. Without pinning, the kernel runs both on one CPU while the machine is busy, and then
 * the cache is hot. */
struct split {
    struct nj_executor executor;
    struct nj_thread_pool *produce, *consume;
    struct producer *const *producers;
    uint32_t n_producers;
};

static bool split_execute(struct nj_executor *e, struct nj_task *task)
{
    struct split *s = nj_container_of(e, struct split, executor);
    bool is_recruit = bench_is_recruit(s->producers, s->n_producers, task);
    struct nj_executor *pool = nj_thread_pool_executor(is_recruit ? s->produce : s->consume);

    return pool->ops->execute(pool, task);
}

static bool split_try_execute(struct nj_executor *e, struct nj_task *task)
{
    (void)e, (void)task;
    return false;
}

/* Starts a pool whose threads run on `cpu`: threads inherit the CPUs of the thread that starts
 * them. */
static struct nj_thread_pool *pool_on(int cpu, uint32_t n_threads)
{
    struct nj_thread_pool_config config = {
        .n_min = n_threads, .n_max = n_threads, .n_reserved = 0, .idle_ns = NJ_NEVER};
    cpu_set_t all, one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || sched_setaffinity(0, sizeof one, &one) != 0)
        exit(3); /* the process may not use this CPU */
    struct nj_thread_pool *pool = nj_thread_pool_start(&config, NULL, 0);
    sched_setaffinity(0, sizeof all, &all);
    return pool;
}

static void with_split(const struct options *o, struct producer *const *p)
{
    static const struct nj_executor_ops ops = {.execute = split_execute,
                                               .try_execute = split_try_execute};
    struct split s = {
        {&ops}, pool_on(0, PRODUCERS_MAX), pool_on(1, o->n_threads), p, o->n_producers};

    with_threads(o, p, NJ_STRATEGY_PEC, &s.executor);
    nj_thread_pool_stop(s.produce);
    nj_thread_pool_stop(s.consume);
    nj_thread_pool_free(s.produce);
    nj_thread_pool_free(s.consume);
}

static void with_crew(const struct options *o, struct producer *const *p, bool steals)
{
    struct crew *crew = crew_new(steals, p, o);

    with_threads(o, p, NJ_STRATEGY_PEC, crew_executor(crew));
    crew_free(crew);
}

static void with_lcores(const struct options *o, struct producer *const *p)
{
    uint64_t n[NJ_N_MODES] = {0};

    lcores_start(p, o->n_producers);
    struct measured m = measure(o, p);
    lcores_join(n);
    print(o, p, m,
          &(struct nj_strategy_counters){
              .pc = n[NJ_MODE_PC],
              .pic = n[NJ_MODE_PIC],
              .pec = n[NJ_MODE_PEC_QUEUE] + n[NJ_MODE_PEC_WORKER],
              .epc = n[NJ_MODE_EPC_INLINE] + n[NJ_MODE_EPC_PARKED],
          });
}

static bool run_strategy(const struct options *o, struct producer *const *p)
{
    for (int kind = 0; kind < NJ_N_STRATEGIES; kind++)
        if (strcmp(o->strategy, nj_strategies[kind].name) == 0) {
            with_pool(o, p, (enum nj_strategy_kind)kind);
            return true;
        }
    if (strcmp(o->strategy, "lcore") == 0)
        with_lcores(o, p);
    else if (strcmp(o->strategy, "split") == 0)
        with_split(o, p);
    else if (strcmp(o->strategy, "ring") == 0 || strcmp(o->strategy, "steal") == 0)
        with_crew(o, p, strcmp(o->strategy, "steal") == 0);
    else
        return false;
    return true;
}

/* --- arguments ---------------------------------------------------------------------------------
 */

static bool parse(struct options *o, const char *argument)
{
    const struct {
        const char *name;
        uint32_t *value;
    } known[] = {
        {"bytes", &o->n_bytes},
        {"work-ns", &o->work_ns},
        {"block-every", &o->block_every},
        {"producers", &o->n_producers},
        {"window", &o->window},
        {"ms", &o->ms},
        {"warm-up-ms", &o->warm_up_ms},
        {"threads", &o->n_threads},
        {"reserved", &o->n_reserved},
        {"rate", &o->rate},
        {"seed", &o->seed},
    };
    const char *equals = strchr(argument, '=');

    for (size_t i = 0; equals && i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == (size_t)(equals - argument) &&
            strncmp(known[i].name, argument, (size_t)(equals - argument)) == 0) {
            char *end;
            unsigned long value = strtoul(equals + 1, &end, 10);
            *known[i].value = (uint32_t)value;
            return equals[1] >= '0' && equals[1] <= '9' && *end == '\0' && value <= UINT32_MAX;
        }
    return false;
}

/* Returns the error, or NULL if the options are valid. */
static const char *error_of(const struct options *o)
{
    if (o->n_bytes > BUFFER_BYTES)
        return "a task has at most 4096 bytes";
    if (!o->window || o->window > WINDOW_MAX)
        return "a window has 1 to 512 tasks";
    if (!o->n_producers || o->n_producers > PRODUCERS_MAX)
        return "expected 1 or 2 producers";
    if (o->n_threads < 2 || o->n_threads > NJ_THREADS_MAX)
        return "expected 2 to 1024 threads";
    if (o->n_reserved != BY_DEFAULT && o->n_reserved >= o->n_threads)
        return "not all threads can be reserved";
    if (o->rate && o->rate < RATE_MIN)
        return "expected a rate of at least 10 tasks per second";
    return NULL;
}

int main(int argc, char **argv)
{
    struct options o = {.n_bytes = 4096,
                        .n_producers = 1,
                        .window = 64,
                        .ms = 200,
                        .warm_up_ms = 30,
                        .n_threads = 64,
                        .n_reserved = BY_DEFAULT,
                        .seed = 1};
    struct producer *p[PRODUCERS_MAX];

    if (argc < 2) {
        fprintf(stderr, "usage: nj-ewyk-bench STRATEGY [NAME=NUMBER ...]\n");
        return 2;
    }
    o.strategy = argv[1];
    for (int i = 2; i < argc; i++)
        if (!parse(&o, argv[i])) {
            fprintf(stderr, "nj-ewyk-bench: %s: unknown option, or not a number\n", argv[i]);
            return 2;
        }
    if (error_of(&o)) {
        fprintf(stderr, "nj-ewyk-bench: %s\n", error_of(&o));
        return 2;
    }
    uint64_t n_spin = bench_calibrate(o.work_ns);
    for (uint32_t i = 0; i < o.n_producers; i++)
        p[i] = bench_producer_new(&o, n_spin, i);
    if (run_strategy(&o, p))
        return 0;
    fprintf(stderr, "nj-ewyk-bench: %s: unknown strategy\n", o.strategy);
    return 2;
}
