/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the tasks of all shards on a pool of threads, by the "eat what you kill" strategy
 * (thread_strategy.h). The producing thread consumes the rings; its writes are visible to the next
 * producer.
 *
 * No task stays in a ring while a thread is free. A shard that fills a ring calls for production,
 * unless n_max tasks of that kind run. In that case a task that ends calls for production: a
 * consumer when it returns to the strategy (nj_strategy_config.asks_after_run), a task that the
 * pool ran from its queue in run_slot(). There is a full fence between filling the ring and reading
 * n_running, and another one between the change of n_running and the next read of the ring.
 */
#include "threads/worker_pool.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/relaxed_atomics.h"
#include "base/signal_stack.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "sched/worker_wait.h"
#include "strategy/thread_pool.h"
#include "threads/os_clock.h"
#include "threads/task_rings.h"

#define N_KINDS NJ_WORKER_N_KINDS

/* Polls of empty rings before a thread ends production, each with a pause of 40 to 140 cycles:
 * some 17 us, about the cost of a sleep and a wake-up. With 1000 polls, tasks of 20 us take a fifth
 * more CPU at 20,000 per second and a third more at 2,000. At 2,000 none starts earlier; at 20,000
 * half of them start 4 us earlier (./dev bench ewyk --delays). */
#define LOOKS 500

struct nj_worker_pool {
    struct nj_worker_pool_config config;
    uint32_t n_threads, n_rings;
    struct nj_producer producer;
    struct nj_executor executor; /* wraps the pool's, and marks queued slots */
    struct nj_strategy strategy;
    struct nj_thread_pool *threads;
    uint32_t turn; /* the rings to poll first; of the producer */
    struct {       /* per-thread resources, released at its end */
        void *altstack;
        bool registered;
        struct nj_worker_wait wait;
    } own[N_KINDS * NJ_WORKERS_MAX];
    _Atomic bool stopping;
    struct {
        _Atomic uint32_t n_running; /* from produce() to the end of run */
        _Atomic uint32_t n_slow;    /* see nj__task_rings_config */
    } NJ_CACHE_ALIGNED kind[N_KINDS];
    struct nj__task_rings rings[];
};

static bool is_stopping(const struct nj_worker_pool *w)
{
    return nj_load_relaxed(&w->stopping);
}

static struct nj_worker_pool *workers_of(const struct nj__task_rings *l)
{
    return l->config.service;
}

static enum nj_worker_kind kind_of(const struct nj__task_rings *l)
{
    return (enum nj_worker_kind)l->config.kind;
}

/* --- producing: on the producing thread - ------------------------------------------------------
 */

static bool is_full(struct nj_worker_pool *w, enum nj_worker_kind kind)
{
    return nj_load_relaxed(&w->kind[kind].n_running) >= w->config.kind[kind].n_max;
}

/* The next rings, round robin, with a task that may run now. NULL: none. */
static struct nj__task_rings *next_rings(struct nj_worker_pool *w)
{
    for (uint32_t i = 0; i < w->n_rings; i++) {
        struct nj__task_rings *l = &w->rings[(w->turn + i) % w->n_rings];
        if (!nj__task_rings_is_empty(l) && !is_full(w, kind_of(l)))
            return l;
    }
    return NULL;
}

static struct nj_task *take(struct nj_worker_pool *w, struct nj__task_rings *l)
{
    struct nj__task_slot *slot = nj__task_rings_pop(l);

    NJ_CHECK(slot);
    w->turn = (uint32_t)(l - w->rings) + 1;
    /* Acquire: the writes of tasks that have ended are visible to this task. */
    atomic_fetch_add_explicit(&w->kind[kind_of(l)].n_running, 1, memory_order_acquire);
    return &slot->task;
}

static struct nj_task *produce(struct nj_producer *p)
{
    struct nj_worker_pool *w = nj_container_of(p, struct nj_worker_pool, producer);

    for (uint32_t n = 0; n < LOOKS && !is_stopping(w); n++) {
        struct nj__task_rings *l = next_rings(w);
        if (l)
            return take(w, l);
        rte_pause();
    }
    return NULL;
}

static bool has_more(struct nj_producer *p)
{
    struct nj_worker_pool *w = nj_container_of(p, struct nj_worker_pool, producer);
    return next_rings(w) != NULL;
}

/* --- consuming: on any thread ----------------------------------------------------------------- */

/* Restores errno and the floating-point environment, so that tasks do not affect each other. */
static void run_job(const struct nj_worker_pool *w, enum nj_worker_kind kind, struct nj_task *job)
{
    job->wall_ns = 0;
    nj_worker_wait_begin_task(job);
    if (is_stopping(w) || nj_load_relaxed(&job->cancelled)) {
        job->run_ns = NJ__NOT_RUN;
        nj_worker_wait_end_task(job);
        return;
    }
    if (w->config.kind[kind].prepare)
        w->config.kind[kind].prepare();
    errno = 0;
    uint64_t began = nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID),
             since = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    nj_task_class_set_running(job->class_of);
    job->ops->run(job);
    nj_task_class_set_running(NULL);
    job->run_ns = nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    job->wall_ns = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - since;
    fesetenv(FE_DFL_ENV);
    nj_worker_wait_end_task(job);
}

static void run_slot(struct nj_task *task)
{
    struct nj__task_slot *s = nj_container_of(task, struct nj__task_slot, task);
    struct nj_worker_pool *w = workers_of(s->rings);
    enum nj_worker_kind kind = kind_of(s->rings);
    bool queued = s->queued;

    run_job(w, kind, s->job);
    nj__task_rings_return_to_shard(s); /* the slot may be reused from here on */
    atomic_fetch_sub(&w->kind[kind].n_running, 1);
    rte_smp_mb(); /* see the head of this file */
    if (queued)
        nj_strategy_produce_elsewhere(&w->strategy);
}

static void reject_slot(struct nj_task *task)
{
    struct nj__task_slot *s = nj_container_of(task, struct nj__task_slot, task);
    struct nj_worker_pool *w = workers_of(s->rings);
    enum nj_worker_kind kind = kind_of(s->rings);

    s->job->run_ns = NJ__NOT_RUN;
    nj__task_rings_return_to_shard(s);
    atomic_fetch_sub(&w->kind[kind].n_running, 1);
}

static const struct nj_task_ops slot_ops = {.run = run_slot, .reject = reject_slot};

static struct nj_executor *pool_of(struct nj_executor *e)
{
    return nj_thread_pool_executor(nj_container_of(e, struct nj_worker_pool, executor)->threads);
}

/* No recruit: those are posted. */
static bool execute(struct nj_executor *e, struct nj_task *task)
{
    nj_container_of(task, struct nj__task_slot, task)->queued = true;
    return pool_of(e)->ops->execute(pool_of(e), task);
}

static bool try_execute(struct nj_executor *e, struct nj_task *task)
{
    return pool_of(e)->ops->try_execute(pool_of(e), task);
}

static bool post(struct nj_executor *e, struct nj_task *task)
{
    return pool_of(e)->ops->post(pool_of(e), task);
}

static const struct nj_executor_ops executor_ops = {
    .execute = execute, .try_execute = try_execute, .post = post};

/* --- rings ------------------------------------------------------------------------------------ */

static void ask(struct nj__task_rings *l)
{
    struct nj_worker_pool *w = workers_of(l);

    if (!is_full(w, kind_of(l)))
        nj_strategy_produce_elsewhere(&w->strategy);
}

struct nj_worker_ops nj_worker_pool_ops(struct nj_worker_pool *w, uint32_t shard,
                                        enum nj_worker_kind kind)
{
    NJ_CHECK(shard < w->config.n_shards && kind < N_KINDS);
    return nj__task_rings_ops(&w->rings[shard * N_KINDS + kind]);
}

struct nj_worker_pool_stats nj_worker_pool_stats(const struct nj_worker_pool *w)
{
    struct nj_worker_pool_stats s = {.n_threads = w->n_threads,
                                     .strategy = nj_strategy_counters(&w->strategy)};

    for (uint32_t k = 0; k < N_KINDS; k++) {
        s.kind[k].n_max = w->config.kind[k].n_max;
        s.kind[k].n_running = nj_load_relaxed(&w->kind[k].n_running);
    }
    for (uint32_t i = 0; i < w->n_rings; i++) {
        const struct nj__task_rings *l = &w->rings[i];
        enum nj_worker_kind k = kind_of(l);
        s.kind[k].n_out += nj_load_relaxed(&l->seen_out);
        s.kind[k].n_waiting += nj_load_relaxed(&l->seen_waiting);
        s.kind[k].n_done += nj_load_relaxed(&l->n_done);
        s.kind[k].n_refused += nj_load_relaxed(&l->n_refused);
        s.kind[k].n_displaced += nj_load_relaxed(&l->n_displaced);
        s.kind[k].n_held_back += nj_load_relaxed(&l->n_held_back);
    }
    return s;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void thread_begin(void *ctx, uint32_t thread)
{
    struct nj_worker_pool *w = ctx;
    const struct nj_worker_pool_config *c = &w->config;
    const cpu_set_t *cpus = thread < c->n_affinity ? &c->affinity[thread] : c->housekeeping;
    char name[16];

    snprintf(name, sizeof name, "nj-worker-%u", thread);
    pthread_setname_np(pthread_self(), name);
    if (cpus)
        pthread_setaffinity_np(pthread_self(), sizeof *cpus, cpus);
    w->own[thread].altstack = nj_altstack_install();
    w->own[thread].registered = c->eal && rte_thread_register() == 0;
    nj_worker_wait_bind(&w->own[thread].wait);
}

static void thread_end(void *ctx, uint32_t thread)
{
    const struct nj_worker_pool *w = ctx;

    nj_worker_wait_bind(NULL);
    if (w->own[thread].registered)
        rte_thread_unregister();
    nj_altstack_remove(w->own[thread].altstack);
}

static bool open_waits(struct nj_worker_pool *w)
{
    for (uint32_t i = 0; i < w->n_threads; i++)
        if (!nj_worker_wait_open(&w->own[i].wait))
            return false;
    return true;
}

static bool start_threads(struct nj_worker_pool *w)
{
    struct nj_thread_pool_config c = {
        .n_min = w->n_threads,
        .n_max = w->n_threads,
        .n_reserved = (int)w->n_threads - 1, /* one thread stays for the pool's queue */
        .idle_ns = NJ_NEVER,
        .thread_begin = thread_begin,
        .thread_end = thread_end,
        .ctx = w,
    };

    w->threads = nj_thread_pool_start(&c, NULL, 0);
    return w->threads != NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static bool init_rings(struct nj_worker_pool *w)
{
    const struct nj_worker_pool_config *c = &w->config;

    for (uint32_t i = 0; i < w->n_rings; i++) {
        uint32_t shard = i / N_KINDS, kind = i % N_KINDS;
        struct nj__task_rings_config rings = {
            .service = w,
            .ask = ask,
            .slot_ops = &slot_ops,
            .n_max = c->kind[kind].n_max,
            .depth = NJ_WORKER_DEPTH,
            .tasks_max = c->kind[kind].tasks_max,
            .waker = c->wakeups && shard < c->n_wakeups ? &c->wakeups[shard] : NULL,
            .kind = (int)kind,
            .next = &w->rings[(i + N_KINDS) % w->n_rings],
            .n_slow = &w->kind[kind].n_slow,
        };
        if (!nj__task_rings_init(&w->rings[i], &rings))
            return false;
    }
    return true;
}

void nj_worker_pool_free(struct nj_worker_pool *w)
{
    nj_thread_pool_free(w->threads);
    for (uint32_t i = 0; i < w->n_rings; i++)
        nj__task_rings_fini(&w->rings[i]);
    for (uint32_t i = 0; i < w->n_threads; i++)
        nj_worker_wait_close(&w->own[i].wait);
    free(w);
}

int nj_worker_pool_start(const struct nj_worker_pool_config *config, struct nj_worker_pool **out)
{
    uint32_t n_rings = config->n_shards * N_KINDS;
    size_t n_bytes = sizeof(struct nj_worker_pool) + n_rings * sizeof(struct nj__task_rings);
    struct nj_worker_pool *w = aligned_alloc(NJ_CACHE_LINE, n_bytes);

    NJ_CHECK(config->n_shards > 0);
    if (!w)
        return -ENOMEM;
    memset(w, 0, n_bytes);
    w->config = *config;
    w->n_rings = n_rings;
    for (uint32_t k = 0; k < N_KINDS; k++) {
        NJ_CHECK(config->kind[k].n_max <= NJ_WORKERS_MAX);
        w->n_threads += config->kind[k].n_max;
    }
    for (uint32_t i = 0; i < w->n_threads; i++)
        w->own[i].wait.fd = -1;
    w->producer = (struct nj_producer){.produce = produce, .has_more = has_more};
    w->executor.ops = &executor_ops;
    struct nj_strategy_config c = {.consume = nj_strategy_consume_adaptive,
                                   .producer = &w->producer,
                                   .executor = &w->executor,
                                   .uses_post = true,
                                   .asks_after_run = true};
    nj_strategy_init(&w->strategy, &c);
    int rc = !init_rings(w) ? -ENOMEM : !open_waits(w) ? -EMFILE : !start_threads(w) ? -EAGAIN : 0;
    if (rc < 0) {
        nj_worker_pool_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

static void begin_stop(struct nj_worker_pool *w)
{
    if (is_stopping(w))
        return;
    nj_store_relaxed(&w->stopping, true);
    for (uint32_t i = 0; i < w->n_rings; i++)
        w->rings[i].closed = true;
    nj_strategy_stop(&w->strategy);
    nj_thread_pool_begin_stop(w->threads);
}

uint32_t nj_worker_pool_stop(struct nj_worker_pool *w, uint32_t wait_ms)
{
    uint64_t now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC), end = now + wait_ms * (uint64_t)NJ_MS;
    uint32_t n_left;

    begin_stop(w);
    do {
        n_left = nj_thread_pool_timed_join(w->threads, now < end ? end - now : 0);
        now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    } while (n_left > 0 && now < end);
    for (uint32_t i = 0; n_left == 0 && i < w->n_rings; i++)
        w->rings[i].ended = true;
    return n_left;
}
