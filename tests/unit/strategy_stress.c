/* SPDX-License-Identifier: BSD-3-Clause */
/* Strategies on a pool, with threads that are delayed at random before every change of shared
 * state. NJ_TEST_SEED=n chooses other delays. Run it under ThreadSanitizer, too. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "reference/strategies.h"
#include "base/interleaving_points.h"
#include "strategy/thread_pool.h"

#define CALLERS 3u
#define EACH    4000u /* tasks of a caller */
#define TASKS   (CALLERS * EACH)

struct task {
    struct nj_task task;
    enum nj_task_type type;
    _Atomic uint8_t n_run, n_rejected;
};

static struct {
    struct nj_thread_pool *pool;
    struct nj_executor executor; /* observes the pool */
    struct nj_producer producer;
    union {
        struct nj_strategy s;
        struct nj_dual dual;
    };
    struct task *tasks;
    _Atomic uint32_t n_brought, n_done, n_bad, n_inside;
    _Atomic bool is_there[TASKS];
    uint32_t next, n_calls; /* the producer's: no lock, no atomics */
    _Atomic uint32_t n_calls_seen;
    _Atomic uint32_t n_stopped;
} w;

/* --- delays ------------------------------------------------------------------------------------
 */

static _Atomic uint64_t n_threads_seen;
static uint64_t seed;
static _Thread_local struct nj_prng prng;
static _Thread_local bool seeded;
static _Thread_local uint32_t n_steps;

static uint32_t dice(uint32_t n)
{
    if (!seeded) {
        seeded = true;
        nj_prng_init(&prng, seed + atomic_fetch_add(&n_threads_seen, 1));
    }
    return nj_prng_below(&prng, n);
}

void nj__sched_point(enum nj__place place, uint64_t seen)
{
    (void)place, (void)seen;
    n_steps++;
    switch (dice(32)) {
    case 0:
        sched_yield();
        break;
    case 1:
    case 2:
        for (uint32_t n = dice(400); n; n--)
            atomic_signal_fence(memory_order_seq_cst);
        break;
    default:
        break;
    }
}

/* --- the world ---------------------------------------------------------------------------------
 */

static void count(_Atomic uint32_t *n)
{
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static void run(struct nj_task *task)
{
    struct task *t = nj_container_of(task, struct task, task);

    nj__sched_point(NJ__AT_RUN, 0);
    if (t->type != NJ_NON_BLOCKING && dice(64) == 0)
        nj_reference_produce(&w.s); /* from the middle of a task */
    atomic_fetch_add_explicit(&t->n_run, 1, memory_order_relaxed);
    count(&w.n_done);
}

static void reject(struct nj_task *task)
{
    struct task *t = nj_container_of(task, struct task, task);

    atomic_fetch_add_explicit(&t->n_rejected, 1, memory_order_relaxed);
    count(&w.n_done);
}

static enum nj_task_type type_of(const struct nj_task *task)
{
    return ((const struct task *)task)->type;
}

/* One call at a time, and each sees the writes of the previous one. ThreadSanitizer would report
 * `n_calls` and `next`, because nothing here but the strategy itself synchronises. EWYK 5.1,
 * EWYK 5.2 */
static struct nj_task *produce(struct nj_producer *p)
{
    struct nj_task *found = NULL;

    (void)p;
    if (atomic_fetch_add_explicit(&w.n_inside, 1, memory_order_relaxed))
        count(&w.n_bad);
    w.n_calls++;
    count(&w.n_calls_seen);
    nj__sched_point(NJ__AT_PRODUCE, 0);
    if (w.next < TASKS && atomic_load_explicit(&w.is_there[w.next], memory_order_acquire))
        found = &w.tasks[w.next++].task;
    atomic_fetch_sub_explicit(&w.n_inside, 1, memory_order_relaxed);
    return found;
}

static bool execute(struct nj_executor *e, struct nj_task *t)
{
    struct nj_executor *pool = nj_thread_pool_executor(w.pool);

    (void)e;
    if (dice(50) == 0)
        return false;
    return pool->ops->execute(pool, t);
}

/* EWYK 5.38 */
static bool try_execute(struct nj_executor *e, struct nj_task *t)
{
    struct nj_executor *pool = nj_thread_pool_executor(w.pool);

    (void)e;
    uint32_t before = n_steps;
    bool accepted = pool->ops->try_execute(pool, t);
    if (n_steps - before > 100)
        atomic_fetch_add(&w.n_bad, 1);
    return accepted;
}

/* Refused: call again, as the contract requires. */
static void ask(void)
{
    bool produces = dice(3) == 0;

    while (!(produces ? nj_reference_produce(&w.s) : nj_reference_produce_elsewhere(&w.s)))
        sched_yield();
}

static void *caller(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < EACH; i++) {
        atomic_store_explicit(&w.is_there[atomic_fetch_add(&w.n_brought, 1)], true,
                              memory_order_release);
        if (dice(4))
            ask();
    }
    ask();
    return NULL;
}

static void on_stopped(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&w.n_stopped, 1);
}

static void begin(enum nj_strategy_kind kind, bool keeps_two)
{
    static const struct nj_executor_ops executor_ops = {.execute = execute,
                                                        .try_execute = try_execute};
    static const struct nj_task_ops task_ops = {run, reject};
    struct nj_thread_pool_config pool = {
        .n_min = 2, .n_max = 6, .n_reserved = 2, .idle_ns = 50 * NJ_US};
    struct nj_strategy_config config = {.consume = nj_strategies[kind].consume,
                                        .producer = &w.producer,
                                        .executor = &w.executor,
                                        .type_of = type_of,
                                        .on_stopped = on_stopped};
    const char *given = getenv("NJ_TEST_SEED");

    memset(&w, 0, sizeof w);
    w.dual.keeps_two = keeps_two;
    seed = given ? strtoull(given, NULL, 0) : 1;
    fprintf(stderr, "seed %lu (NJ_TEST_SEED)\n", (unsigned long)seed);
    w.pool = nj_thread_pool_start(&pool, NULL, 0);
    w.executor.ops = &executor_ops;
    w.producer.produce = produce;
    w.tasks = calloc(TASKS, sizeof *w.tasks);
    for (unsigned i = 0; i < TASKS; i++) {
        w.tasks[i].task.ops = &task_ops;
        w.tasks[i].type = (enum nj_task_type)(NJ_NON_BLOCKING + dice(3));
    }
    nj_reference_init(&w.s, &config);
}

static bool is_at_rest(uint32_t word)
{
    return nj__state_production(word) == NJ__STATE_IDLE &&
           !(nj__state_recruit_mask(word) & (NJ__RECRUIT_QUEUED | NJ__RECRUIT_SURE));
}

/* EWYK 5.1, EWYK 5.2, EWYK 5.3, EWYK 5.9, EWYK 5.28, EWYK 5.50, EWYK 5.51 */
static void stress(enum nj_strategy_kind kind, bool keeps_two)
{
    pthread_t callers[CALLERS];

    begin(kind, keeps_two);
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, caller, NULL);
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    while (atomic_load(&w.n_done) < TASKS)
        sched_yield();
    while (!is_at_rest(atomic_load(&w.s.word))) /* recruits that find no task */
        sched_yield();
    nj_reference_stop(&w.s);
    while (!atomic_load(&w.n_stopped)) /* recruits that are under way */
        sched_yield();
    nj_thread_pool_stop(w.pool);

    struct nj_strategy_counters c = nj_strategy_counters(&w.s);
    cr_assert_eq(c.pc + c.pic + c.pec + c.epc, TASKS);
    for (unsigned i = 0; i < TASKS; i++)
        cr_assert_eq(w.tasks[i].n_run + w.tasks[i].n_rejected, 1, "task %u", i);
    cr_assert_eq(w.n_bad, 0);
    cr_assert_eq(w.n_calls, atomic_load(&w.n_calls_seen));
    cr_assert_eq(w.n_stopped, 1);
    nj_thread_pool_free(w.pool);
    free(w.tasks);
}

Test(strategy_stress, pc, .timeout = 100)
{
    stress(NJ_STRATEGY_PC, false);
}

Test(strategy_stress, pec, .timeout = 100)
{
    stress(NJ_STRATEGY_PEC, false);
}

Test(strategy_stress, epc, .timeout = 100)
{
    stress(NJ_STRATEGY_EPC, false);
}

Test(strategy_stress, adaptive, .timeout = 100)
{
    stress(NJ_STRATEGY_ADAPTIVE, false);
}

Test(strategy_stress, dual, .timeout = 100)
{
    stress(NJ_STRATEGY_DUAL, false);
}

Test(strategy_stress, dual_that_keeps_two, .timeout = 100)
{
    stress(NJ_STRATEGY_DUAL, true);
}
