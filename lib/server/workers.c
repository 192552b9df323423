/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/workers.h"

#include <errno.h>
#include <fenv.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/attr.h"
#include "sched/ewyk.h"
#include "sched/task_queue.h"
#include "server/worker.h"

#define NOT_RUN UINT64_MAX /* as run_ns: it was cancelled, or the pool stops */

/* The longest that tasks of a class took is forgotten by a part in so many with each that comes
 * home: one that took 100 ms among quick ones counts as longer than NJ_WORKER_AHEAD_NS for some 430
 * more. */
#define AWAY_FORGET 64u

/* One shard's side. Its lcore's alone. */
struct lane {
    struct nj_workers *pool;
    struct nj_worker_port *port[NJ_WORKERS_MAX];
    struct nj_task_queue waiting;    /* for room in any worker's ring */
    uint32_t n_long[NJ_WORKERS_MAX]; /* of those in its ring, not known to be short */
    uint32_t n_out;                  /* in the rings of the workers */
    uint32_t nearest;                /* worker to ask first */
    uint32_t polled;                 /* worker to poll first: the others' turn comes, too */
    uint64_t to_flush;               /* a bit for each worker */
    bool closed;
} NJ_CACHE_ALIGNED;

struct nj_workers {
    uint32_t n_workers, n_shards, tasks_max;
    struct nj_worker *worker[NJ_WORKERS_MAX];
    _Atomic bool stopping;
    struct lane lanes[];
};

_Static_assert(NJ_WORKERS_MAX <= 64, "bits of to_flush");

/* --- on the worker's thread ----------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t which)
{
    struct timespec ts;
    clock_gettime(which, &ts);
    return (uint64_t)ts.tv_sec * NJ_SEC + (uint64_t)ts.tv_nsec;
}

/* Each task finds the thread as the first one did, whatever the one before it left behind. */
static void run_task(void *ctx, void *job)
{
    struct nj_workers *pool = ctx;
    struct nj_task *task = job;

    task->wall_ns = 0;
    if (atomic_load_explicit(&pool->stopping, memory_order_relaxed) ||
        atomic_load_explicit(&task->cancelled, memory_order_relaxed)) {
        task->run_ns = NOT_RUN;
        return;
    }
    errno = 0;
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID), since = clock_ns(CLOCK_MONOTONIC);
    task->ops->run(task);
    task->run_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    task->wall_ns = clock_ns(CLOCK_MONOTONIC) - since;
    fesetenv(FE_DFL_ENV);
}

/* --- on the lcore ---------------------------------------------------------------------------- */

/* Less is better. A worker that sleeps costs a system call and some time to wake, but what one that
 * runs is at may take for ever; and what was given to it and not taken home counts most. */
static uint32_t burden(const struct lane *l, uint32_t i)
{
    static const uint32_t of_state[] = {
        [NJ_WORKER_SPINS] = 0, [NJ_WORKER_SLEEPS] = 1, [NJ_WORKER_RUNS] = 2};
    return nj_worker_n_out(l->port[i]) * 4 + of_state[nj_worker_state(l->pool->worker[i])];
}

/* Nothing waits in a ring behind a task that may take long, nor does such a task wait there:
 * whoever waits in the lane goes to the worker that is free first. */
static bool has_room(const struct lane *l, uint32_t i, bool ahead)
{
    uint32_t n = nj_worker_n_out(l->port[i]);
    return n == 0 || (ahead && l->n_long[i] == 0 && n < NJ_WORKER_DEPTH);
}

/* All tasks that its class had lately were short. */
static bool is_short(const struct nj_task *task)
{
    const struct nj_task_class *c = task->class_of;
    return c && c->away_ns > 0 && c->away_ns <= NJ_WORKER_AHEAD_NS;
}

/* The worker with the least burden, the nearest of several. False: none has room for this task. */
static bool choose(const struct lane *l, bool ahead, uint32_t *best)
{
    const struct nj_workers *pool = l->pool;
    uint32_t least = UINT32_MAX;

    for (uint32_t k = 0; k < pool->n_workers && least > 0; k++) {
        uint32_t i = (l->nearest + k) % pool->n_workers;
        uint32_t b = burden(l, i);
        if (b < least && has_room(l, i, ahead)) {
            *best = i;
            least = b;
        }
    }
    return least < UINT32_MAX;
}

static void place_waiting(struct lane *l)
{
    struct nj_task *task;
    uint32_t i = 0;

    while ((task = nj_task_queue_first(&l->waiting))) {
        bool ahead = is_short(task);
        if (!choose(l, ahead, &i))
            return;
        nj_task_queue_pop(&l->waiting);
        task->ahead = ahead;
        l->n_long[i] += !ahead;
        NJ_CHECK(nj_worker_submit(l->port[i], task));
        l->n_out++;
        l->to_flush |= UINT64_C(1) << i;
    }
}

static void reject(struct nj_task *task)
{
    task->ops->reject(task);
}

/* There is room for it, be it in the place of another client's. */
static bool make_room(struct lane *l, const struct nj_task *task)
{
    if (l->n_out + l->waiting.n < l->pool->tasks_max)
        return true;
    struct nj_task *other = nj_task_queue_displace(&l->waiting, task);
    if (!other)
        return false;
    reject(other);
    return true;
}

static bool submit(void *ctx, struct nj_task *task)
{
    struct lane *l = ctx;

    if (l->closed || !make_room(l, task))
        return false;
    atomic_store_explicit(&task->cancelled, false, memory_order_relaxed);
    nj_task_queue_push(&l->waiting, task);
    place_waiting(l);
    return true;
}

static bool withdraw(void *ctx, struct nj_task *task)
{
    struct lane *l = ctx;

    if (!nj_list_linked(&task->node)) { /* in a ring, or with its worker */
        atomic_store_explicit(&task->cancelled, true, memory_order_relaxed);
        return false;
    }
    nj_task_queue_remove(&l->waiting, task);
    return true;
}

static void flush(void *ctx)
{
    struct lane *l = ctx;

    while (l->to_flush) {
        nj_worker_flush(l->port[__builtin_ctzll(l->to_flush)]);
        l->to_flush &= l->to_flush - 1;
    }
}

/* What it took is what others of its class are expected to take. */
static void learn(const struct nj_task *task)
{
    struct nj_task_class *c = task->class_of;

    if (!c || task->run_ns == NOT_RUN)
        return;
    uint64_t faded = c->away_ns - c->away_ns / AWAY_FORGET;
    c->away_ns = task->wall_ns >= faded ? task->wall_ns + 1 : faded; /* never 0: it is known */
}

/* Up to `n` from one worker, without those that the pool refuses to run as it stops. */
static uint32_t poll_worker(struct lane *l, uint32_t i, struct nj_task **tasks, uint32_t n)
{
    uint32_t n_home = nj_worker_poll(l->port[i], (void **)tasks, n), n_ran = 0;

    l->n_out -= n_home;
    for (uint32_t k = 0; k < n_home; k++) {
        struct nj_task *task = tasks[k];
        l->n_long[i] -= !task->ahead;
        nj_task_queue_home(&l->waiting, task);
        learn(task);
        bool cancelled = atomic_load_explicit(&task->cancelled, memory_order_relaxed);
        if (task->run_ns == NOT_RUN && !cancelled) {
            reject(task);
            continue;
        }
        if (task->run_ns == NOT_RUN)
            task->run_ns = 0;
        tasks[n_ran++] = task;
    }
    return n_ran;
}

static uint32_t poll_done(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct lane *l = ctx;
    uint32_t n_ran = 0;

    if (l->n_out > 0) {
        for (uint32_t k = 0; k < l->pool->n_workers && n_ran < n; k++)
            n_ran += poll_worker(l, (l->polled + k) % l->pool->n_workers, tasks + n_ran, n - n_ran);
        l->polled++;
    }
    if (l->closed) {
        for (struct nj_task *task; (task = nj_task_queue_first(&l->waiting));) {
            nj_task_queue_remove(&l->waiting, task);
            reject(task);
        }
    } else if (l->waiting.n > 0) {
        place_waiting(l);
        flush(l); /* now: a step in which nothing is submitted need not flush */
    }
    return n_ran;
}

struct nj_task_port nj_workers_port(struct nj_workers *pool, uint32_t shard)
{
    NJ_CHECK(shard < pool->n_shards);
    return (struct nj_task_port){.ctx = &pool->lanes[shard],
                                 .submit = submit,
                                 .flush = flush,
                                 .poll = poll_done,
                                 .withdraw = withdraw};
}

struct nj_workers_load nj_workers_load(const struct nj_workers *pool, uint32_t shard)
{
    const struct lane *l = &pool->lanes[shard];
    return (struct nj_workers_load){.n_out = l->n_out + l->waiting.n, .n_waiting = l->waiting.n};
}

/* --- life ------------------------------------------------------------------------------------ */

static int start_worker(struct nj_workers *pool, const struct nj_workers_config *config, uint32_t i)
{
    char name[24];
    struct nj_worker_config c = {
        .name = name,
        .n_shards = pool->n_shards,
        .jobs_max = NJ_WORKER_DEPTH,
        .affinity = config->affinity ? &config->affinity[i] : NULL,
        .eal = config->eal,
        .wakers = config->wakers,
        .run = run_task,
        .ctx = pool,
    };

    snprintf(name, sizeof name, "nj-worker-%u", i);
    return nj_worker_start(&c, &pool->worker[i]);
}

static void init_lane(struct nj_workers *pool, const struct nj_workers_config *config, uint32_t i)
{
    struct lane *l = &pool->lanes[i];

    l->pool = pool;
    l->nearest = (config->nearest ? config->nearest[i] : i) % pool->n_workers;
    nj_task_queue_init(&l->waiting);
    for (uint32_t k = 0; k < pool->n_workers; k++)
        l->port[k] = nj_worker_port(pool->worker[k], i);
}

int nj_workers_start(const struct nj_workers_config *config, struct nj_workers **out)
{
    NJ_CHECK(config->n_workers > 0 && config->n_workers <= NJ_WORKERS_MAX);
    NJ_CHECK(config->n_shards > 0 && config->tasks_max > 0);
    size_t n_bytes = sizeof(struct nj_workers) + config->n_shards * sizeof(struct lane);
    struct nj_workers *pool = aligned_alloc(NJ_CACHE_LINE, n_bytes);
    if (!pool)
        return -ENOMEM;
    memset(pool, 0, n_bytes);
    pool->n_shards = config->n_shards;
    pool->tasks_max = config->tasks_max;
    for (uint32_t i = 0; i < config->n_workers; i++, pool->n_workers++) {
        int rc = start_worker(pool, config, i);
        if (rc != 0) {
            nj_workers_stop(pool, UINT32_MAX);
            nj_workers_free(pool);
            return rc;
        }
    }
    for (uint32_t i = 0; i < pool->n_shards; i++)
        init_lane(pool, config, i);
    *out = pool;
    return 0;
}

uint32_t nj_workers_stop(struct nj_workers *pool, uint32_t wait_ms)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_ms * (uint64_t)NJ_MS;
    uint32_t n_stuck = 0;

    atomic_store_explicit(&pool->stopping, true, memory_order_relaxed);
    for (uint32_t i = 0; i < pool->n_shards; i++)
        pool->lanes[i].closed = true;
    for (uint32_t i = 0; i < pool->n_workers; i++)
        nj_worker_begin_stop(pool->worker[i]);
    for (uint32_t i = 0; i < pool->n_workers; i++) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        n_stuck +=
            !nj_worker_join(pool->worker[i], now < end ? (uint32_t)((end - now) / NJ_MS) : 0);
    }
    return n_stuck;
}

void nj_workers_free(struct nj_workers *pool)
{
    for (uint32_t i = 0; i < pool->n_shards; i++)
        NJ_ASSERT(pool->lanes[i].n_out == 0 && pool->lanes[i].waiting.n == 0);
    for (uint32_t i = 0; i < pool->n_workers; i++)
        nj_worker_free(pool->worker[i]);
    free(pool);
}
