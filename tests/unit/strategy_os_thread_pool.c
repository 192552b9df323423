/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool, and the adaptive strategy on it, with real threads. Where a test waits, it polls; its
 * time-out is the bound.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "reference/strategies.h"
#include "sched/fiber.h"
#include "sched/fpu_control.h"
#include "strategy/reserved_threads.h"
#include "strategy/thread_pool.h"

#define TASKS_MAX 256u

struct world;

enum body { QUICK, AT_GATE, DIRTY, CLEAN };

struct task {
    struct nj_task task;
    struct world *w;
    enum nj_task_type type;
    enum body body;
    _Atomic unsigned n_run, n_rejected;
};

struct world {
    struct nj_thread_pool *pool;
    struct nj_executor *executor;
    struct nj_producer producer;
    struct nj_strategy s;
    struct task tasks[TASKS_MAX];
    unsigned n_tasks;
    pthread_mutex_t lock; /* of what is offered to the producer */
    struct task *offered[TASKS_MAX];
    unsigned n_offered, n_produced;
    _Atomic unsigned n_run, n_at_gate, n_bad;
    _Atomic bool open; /* the gate */
};

static struct world w;

static void run(struct nj_task *task)
{
    struct task *t = nj_container_of(task, struct task, task);

    switch (t->body) {
    case QUICK:
        break;
    case AT_GATE:
        atomic_fetch_add(&w.n_at_gate, 1);
        while (!atomic_load(&w.open))
            sched_yield();
        atomic_fetch_sub(&w.n_at_gate, 1);
        break;
    case DIRTY: /* leaves thread state that the next task must not see */
        errno = EDOM;
        nj_noblock_enter();
#ifdef __x86_64__
        nj__fpu_set_control(nj__fpu_get_control() ^ 0x6000); /* another rounding mode */
#endif
        break;
    case CLEAN:
        if (errno || nj_noblock_is_set())
            atomic_fetch_add(&w.n_bad, 1);
#ifdef __x86_64__
        if (nj__fpu_get_control() & 0x6000)
            atomic_fetch_add(&w.n_bad, 1);
#endif
        break;
    }
    atomic_fetch_add(&t->n_run, 1);
    atomic_fetch_add(&w.n_run, 1);
}

static void reject(struct nj_task *task)
{
    atomic_fetch_add(&nj_container_of(task, struct task, task)->n_rejected, 1);
}

static enum nj_task_type type_of(const struct nj_task *task)
{
    return ((const struct task *)task)->type;
}

static struct nj_task *produce(struct nj_producer *p)
{
    (void)p;
    pthread_mutex_lock(&w.lock);
    struct task *t = w.n_produced < w.n_offered ? w.offered[w.n_produced++] : NULL;
    pthread_mutex_unlock(&w.lock);
    return t ? &t->task : NULL;
}

/* A task that the test gives to the executor. No producer has it: a task runs once. */
static struct task *add(enum nj_task_type type, enum body body)
{
    static const struct nj_task_ops ops = {run, reject};
    struct task *t = &w.tasks[w.n_tasks++];

    t->task.ops = &ops;
    t->type = type;
    t->body = body;
    return t;
}

/* A task that the strategy produces. */
static struct task *offer(enum nj_task_type type, enum body body)
{
    struct task *t = add(type, body);

    pthread_mutex_lock(&w.lock);
    w.offered[w.n_offered++] = t;
    pthread_mutex_unlock(&w.lock);
    return t;
}

static void begin(struct nj_thread_pool_config config)
{
    memset(&w, 0, sizeof w);
    pthread_mutex_init(&w.lock, NULL);
    w.pool = nj_thread_pool_start(&config, NULL, 0);
    cr_assert(w.pool != NULL);
    w.executor = nj_thread_pool_executor(w.pool);
    w.producer.produce = produce;
    struct nj_strategy_config strategy = {.consume = nj_strategy_consume_adaptive,
                                          .producer = &w.producer,
                                          .executor = w.executor,
                                          .type_of = type_of};
    nj_reference_init(&w.s, &strategy);
}

static void end(void)
{
    atomic_store(&w.open, true);
    nj_thread_pool_stop(w.pool);
    nj_thread_pool_free(w.pool);
}

static bool execute(struct task *t)
{
    return w.executor->ops->execute(w.executor, &t->task);
}

static void wait_for(_Atomic unsigned *n, unsigned value)
{
    while (atomic_load(n) != value)
        sched_yield();
}

static struct nj_thread_pool_counts counts(void)
{
    return nj_thread_pool_get_counts(w.pool);
}

static void *stop(void *arg)
{
    (void)arg;
    nj_thread_pool_stop(w.pool);
    return NULL;
}

/* --- the pool ----------------------------------------------------------------------------------
 */

/* Tasks still queued at the end are rejected, once. EWYK 5.49, EWYK 5.42, EWYK 5.3 */
Test(strategy_os_thread_pool, stop_rejects_what_is_queued, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 1, .n_max = 1, .n_reserved = 0, .idle_ns = NJ_NEVER});
    cr_assert(execute(add(NJ_BLOCKING, AT_GATE)));
    wait_for(&w.n_at_gate, 1);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(execute(add(NJ_BLOCKING, QUICK)));
    add(NJ_BLOCKING, QUICK);
    cr_assert_eq(counts().n_queued, 3);
    cr_assert_eq(counts().n_utilised, 1);

    pthread_t stopper; /* the stop waits for the task at the gate */
    pthread_create(&stopper, NULL, stop, NULL);
    for (unsigned i = 1; i <= 3; i++)
        wait_for(&w.tasks[i].n_rejected, 1);
    cr_assert(!execute(&w.tasks[4]), "refused: it stops");
    atomic_store(&w.open, true);
    pthread_join(stopper, NULL);
    cr_assert_eq(w.n_run, 1);
    cr_assert_eq(w.tasks[0].n_run, 1);
    for (unsigned i = 1; i <= 3; i++)
        cr_assert_eq(w.tasks[i].n_run, 0);
    cr_assert_eq(w.tasks[4].n_rejected, 0, "that is its caller's to do");
    nj_thread_pool_free(w.pool);
}

/* Much more than the first room of the queue. */
Test(strategy_os_thread_pool, unbounded_queue, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 0, .n_max = 1, .n_reserved = 0, .idle_ns = NJ_NEVER});
    execute(add(NJ_BLOCKING, AT_GATE));
    wait_for(&w.n_at_gate, 1);
    for (unsigned i = 1; i < 200; i++)
        cr_assert(execute(add(NJ_BLOCKING, QUICK)));
    atomic_store(&w.open, true);
    wait_for(&w.n_run, 200);
    for (unsigned i = 0; i < 200; i++)
        cr_assert_eq(w.tasks[i].n_run, 1);
    end();
}

/* A spike, then a little to do all the time: the threads of the spike leave. EWYK 5.45 */
Test(strategy_os_thread_pool, shrinks_under_low_load, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 1, .n_max = 8, .n_reserved = 0, .idle_ns = 2 * NJ_MS});
    for (unsigned round = 0; round < 2; round++) {
        atomic_store(&w.open, false);
        unsigned n = w.n_run;
        for (unsigned i = 0; i < 8; i++)
            execute(add(NJ_BLOCKING, AT_GATE));
        wait_for(&w.n_at_gate, 8);
        cr_assert_eq(counts().n_threads, 8);
        atomic_store(&w.open, true);
        wait_for(&w.n_run, n + 8);
        struct task *t = add(NJ_BLOCKING, QUICK);
        while (counts().n_threads > 1) {
            n = w.n_run;
            execute(t);
            wait_for(&w.n_run, n + 1);
        }
    }
    end();
}

/* The seats of a pool without a thread: as many threads as are wanted in the end. */
static uint32_t n_seats(void)
{
    static struct nj_task task;

    for (unsigned i = 0; i <= NJ_RESERVED_MAX; i++)
        cr_assert_not(w.executor->ops->try_execute(w.executor, &task));
    return counts().n_wanted;
}

/* EWYK 5.47 */
Test(strategy_os_thread_pool, one_thread_is_not_reserved)
{
    struct nj_thread_pool_config config = {.n_max = 4, .n_reserved = 4, .idle_ns = NJ_NEVER};
    char why[200] = "";

    cr_assert_null(nj_thread_pool_start(&config, why, sizeof why));
    cr_assert_str_eq(why, "of 4 threads at most 3 can be reserved: 1 must stay");
    config.n_max = 0;
    cr_assert_null(nj_thread_pool_start(&config, why, sizeof why));
    config.n_max = 4;
    config.n_reserved = 3;
    begin(config);
    cr_assert_eq(n_seats(), 3);
    end();
}

/* EWYK 5.46 */
Test(strategy_os_thread_pool, capacity_of_the_reserve)
{
    static const struct {
        uint32_t n_max;
        int configured;
        uint32_t n_seats;
    } rows[] = {{1, -1, 0},     {2, -1, 1},      {3, -1, 1}, {64, -1, 32},
                {512, -1, 256}, {1024, -1, 256}, {64, 0, 0}, {64, 17, 17}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        begin((struct nj_thread_pool_config){
            .n_max = rows[i].n_max, .n_reserved = rows[i].configured, .idle_ns = NJ_NEVER});
        cr_assert_eq(n_seats(), rows[i].n_seats, "row %zu", i);
        end();
    }
}

/* EWYK 5.48 */
Test(strategy_os_thread_pool, nothing_is_left_of_the_last_task, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 1, .n_max = 1, .n_reserved = 0, .idle_ns = NJ_NEVER});
    for (unsigned i = 0; i < 50; i++) {
        execute(add(NJ_BLOCKING, DIRTY));
        execute(add(NJ_BLOCKING, CLEAN));
    }
    wait_for(&w.n_run, 100);
    cr_assert_eq(w.n_bad, 0);
    end();
}

/* --- reserved threads, and posted tasks ------------------------------------------------ */

static bool post(struct task *t)
{
    return w.executor->ops->post(w.executor, &t->task);
}

/* A reserved thread waits for recruits, but not while a task waits for a thread. */
Test(strategy_os_thread_pool, reserve_helps_the_queue, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 4, .n_max = 4, .n_reserved = 3, .idle_ns = NJ_NEVER});
    for (unsigned i = 0; i < 20; i++) {
        unsigned n = w.n_run;
        w.n_tasks = 0;
        atomic_store(&w.open, false);
        for (unsigned k = 0; k < 3; k++) { /* each miss requests one more */
            struct task *t = add(NJ_BLOCKING, AT_GATE);
            while (!w.executor->ops->try_execute(w.executor, &t->task))
                sched_yield();
        }
        atomic_store(&w.open, true);
        wait_for(&w.n_run, n + 3);
        while (counts().n_reserved < 3)
            sched_yield();
        n = w.n_run;
        atomic_store(&w.open, false);
        for (unsigned k = 0; k < 4; k++)
            cr_assert(execute(add(NJ_BLOCKING, AT_GATE)));
        wait_for(&w.n_at_gate, 4);
        atomic_store(&w.open, true);
        wait_for(&w.n_run, n + 4);
    }
    end();
}

/* A posted task runs like an executed one: on a reserved thread, an idle one, or later. */
Test(strategy_os_thread_pool, posted, .timeout = 60)
{
    for (int n_reserved = 0; n_reserved < 3; n_reserved++) {
        begin((struct nj_thread_pool_config){
            .n_min = 3, .n_max = 3, .n_reserved = n_reserved, .idle_ns = NJ_NEVER});
        for (unsigned i = 0; i < 100; i++)
            cr_assert(post(add(NJ_BLOCKING, QUICK)));
        wait_for(&w.n_run, 100);
        for (unsigned i = 0; i < 3; i++)
            cr_assert(post(add(NJ_BLOCKING, AT_GATE)));
        wait_for(&w.n_at_gate, 3);
        for (unsigned i = 0; i < 50; i++)
            cr_assert(post(add(NJ_BLOCKING, QUICK)));
        cr_assert_eq(w.n_run, 100);
        atomic_store(&w.open, true);
        wait_for(&w.n_run, 153);
        for (unsigned i = 0; i < 153; i++)
            cr_assert_eq(w.tasks[i].n_run, 1);
        end();
    }
}

/* EWYK 5.42 */
Test(strategy_os_thread_pool, posted_at_the_end, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 1, .n_max = 1, .n_reserved = 0, .idle_ns = NJ_NEVER});
    cr_assert(post(add(NJ_BLOCKING, AT_GATE)));
    wait_for(&w.n_at_gate, 1);
    cr_assert(post(add(NJ_BLOCKING, QUICK)));
    nj_thread_pool_begin_stop(w.pool);
    cr_assert_eq(w.tasks[1].n_rejected, 1);
    cr_assert(!post(add(NJ_BLOCKING, QUICK)), "it is its caller's");
    cr_assert_eq(nj_thread_pool_timed_join(w.pool, 1), 1, "one is at the gate");
    atomic_store(&w.open, true);
    while (nj_thread_pool_timed_join(w.pool, NJ_NEVER) > 0)
        ;
    cr_assert(w.tasks[0].n_run == 1 && w.tasks[1].n_run == 0 && w.tasks[2].n_run == 0);
    nj_thread_pool_free(w.pool);
}

static _Atomic unsigned n_begun[3], n_ended[3];

static void thread_begin(void *ctx, uint32_t thread)
{
    cr_assert_eq(ctx, &w);
    atomic_fetch_add(&n_begun[thread], 1);
}

static void thread_end(void *ctx, uint32_t thread)
{
    (void)ctx;
    atomic_fetch_add(&n_ended[thread], 1);
}

Test(strategy_os_thread_pool, threads_begin_and_end, .timeout = 60)
{
    begin((struct nj_thread_pool_config){.n_min = 3,
                                         .n_max = 3,
                                         .n_reserved = 1,
                                         .idle_ns = NJ_NEVER,
                                         .thread_begin = thread_begin,
                                         .thread_end = thread_end,
                                         .ctx = &w});
    end();
    for (unsigned i = 0; i < 3; i++)
        cr_assert(n_begun[i] == 1 && n_ended[i] == 1);
}

/* --- the strategy on it ------------------------------------------------------------------------
 */

/* One thread is reserved, because the first miss requests it, and all others are idle: none still
 * produces. */
static void warm_up(void)
{
    struct nj_thread_pool_counts c;

    offer(NJ_BLOCKING, QUICK);
    nj_reference_produce_elsewhere(&w.s);
    wait_for(&w.n_run, 1);
    do {
        sched_yield();
        c = counts();
    } while (c.n_reserved < 1 || c.n_utilised > 0);
}

/* A reserved thread starts a task although all other threads are busy. EWYK 5.39 */
Test(strategy_os_thread_pool, reserved_thread_waits_for_nobody, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 3, .n_max = 3, .n_reserved = 1, .idle_ns = NJ_NEVER});
    warm_up();
    unsigned n = w.n_run;
    execute(add(NJ_BLOCKING, AT_GATE));
    execute(add(NJ_BLOCKING, AT_GATE));
    wait_for(&w.n_at_gate, 2);
    struct task *t = add(NJ_BLOCKING, QUICK);
    while (!w.executor->ops->try_execute(w.executor, &t->task))
        sched_yield();
    wait_for(&w.n_run, n + 1);
    end();
}

/* As many consumers as there are seats are blocked, and production continues. EWYK 5.12 */
Test(strategy_os_thread_pool, stuck_consumers, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 6, .n_max = 6, .n_reserved = 2, .idle_ns = NJ_NEVER});
    warm_up();
    unsigned n = w.n_run;
    offer(NJ_BLOCKING, AT_GATE);
    offer(NJ_BLOCKING, AT_GATE);
    nj_reference_produce_elsewhere(&w.s);
    wait_for(&w.n_at_gate, 2);
    for (unsigned i = 1; i <= 30; i++) {
        offer((enum nj_task_type)(NJ_NON_BLOCKING + i % 3), QUICK);
        cr_assert(nj_reference_produce_elsewhere(&w.s));
        wait_for(&w.n_run, n + i);
    }
    end();
}

/* All pool threads are blocked. The thread that adds a task is the last one, and it always
 * produces. EWYK 5.13 */
Test(strategy_os_thread_pool, all_threads_stuck, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 3, .n_max = 3, .n_reserved = 2, .idle_ns = NJ_NEVER});
    for (unsigned i = 0; i < 3; i++)
        execute(add(NJ_BLOCKING, AT_GATE));
    wait_for(&w.n_at_gate, 3);
    for (unsigned i = 0; i < 30; i++) {
        struct task *t = offer(i % 3 == 0   ? NJ_BLOCKING
                               : i % 3 == 1 ? NJ_EITHER
                                            : NJ_NON_BLOCKING,
                               QUICK);
        cr_assert(nj_reference_produce(&w.s));
        cr_assert_eq(t->n_run, i % 3 != 0, "only BLOCKING ones wait");
    }
    cr_assert_eq(nj_strategy_counters(&w.s).pic, 10);
    atomic_store(&w.open, true);
    wait_for(&w.n_run, 33);
    end();
}

/* Longer idle than every time-out: all threads leave, and the next task finds one. EWYK 5.18 */
Test(strategy_os_thread_pool, first_task_after_a_long_idle, .timeout = 60)
{
    begin((struct nj_thread_pool_config){
        .n_min = 0, .n_max = 4, .n_reserved = 0, .idle_ns = 1 * NJ_MS});
    for (unsigned i = 1; i <= 5; i++) {
        offer(NJ_BLOCKING, QUICK);
        cr_assert(nj_reference_produce_elsewhere(&w.s));
        wait_for(&w.n_run, i);
        while (counts().n_threads)
            sched_yield();
    }
    end();
}
