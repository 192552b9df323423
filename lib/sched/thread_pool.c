/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lock for the queue and all counts of it. Idle threads are a stack: the one that was busy last
 * is woken first, so that those at the bottom leave also when there always is a little to do.
 *
 * One thread is called at a time, and it calls the next when it comes and finds more than it takes:
 * a burst of tasks does not wake a crowd that finds nothing. So: while there are tasks, a thread is
 * being called, or all are busy that may be.
 *
 * nj_reserved calls on_wanted() in the middle of try_execute(), which must not wait for the lock.
 * It sets `wanted` and tries the lock; whoever holds the lock looks at `wanted` after letting it
 * go. So one of the two wakes a thread.
 */
#include "sched/thread_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/attr.h"
#include "sched/context.h"
#include "sched/park.h"
#include "sched/reserved.h"

struct job {
    struct nj_task *task;
    const struct nj_strategy *of;
};

enum life { NONE, ALIVE, GONE }; /* GONE: to be joined */

struct thread {
    struct nj_thread_pool *pool;
    pthread_t id;
    enum life life;
    bool idle;   /* on the stack */
    bool called; /* woken or made for the queue, and not there yet */
    _Atomic uint32_t n_wakes;
} NJ_CACHE_ALIGNED;

struct nj_thread_pool {
    struct nj_executor executor;
    struct nj_thread_pool_config config;
    struct nj_reserved *reserved;
    pthread_mutex_t lock;
    bool stopping;
    struct job *jobs; /* a ring of n_room, a power of two */
    uint32_t n_room, head, n_jobs;
    uint32_t n_threads, n_idle, n_serving, n_leased;
    uint32_t n_seats; /* of n_leased: the reserve's */
    uint32_t n_called;
    struct thread **idle;
    struct thread *threads;
    _Atomic bool wanted NJ_CACHE_ALIGNED;
    _Atomic uint32_t n_gone; /* counts threads that left, to wait for it */
};

/* --- the queue, under the lock ---------------------------------------------------------------- */

static bool grow(struct nj_thread_pool *p)
{
    uint32_t n_room = p->n_room ? 2 * p->n_room : 64;
    struct job *jobs = n_room > p->n_room ? malloc(n_room * sizeof *jobs) : NULL;

    if (!jobs)
        return false;
    for (uint32_t i = 0; i < p->n_jobs; i++)
        jobs[i] = p->jobs[(p->head + i) & (p->n_room - 1)];
    free(p->jobs);
    p->jobs = jobs;
    p->n_room = n_room;
    p->head = 0;
    return true;
}

static bool push(struct nj_thread_pool *p, struct job job)
{
    if (p->config.queue_max && p->n_jobs >= p->config.queue_max)
        return false;
    if (p->n_jobs == p->n_room && !grow(p))
        return false;
    p->jobs[(p->head + p->n_jobs++) & (p->n_room - 1)] = job;
    return true;
}

static bool pop(struct nj_thread_pool *p, struct job *job)
{
    if (!p->n_jobs)
        return false;
    *job = p->jobs[p->head];
    p->head = (p->head + 1) & (p->n_room - 1);
    p->n_jobs--;
    return true;
}

/* --- threads, under the lock ------------------------------------------------------------------ */

static void *worker(void *arg);

static bool spawn(struct nj_thread_pool *p)
{
    for (uint32_t i = 0; i < p->config.n_max; i++) {
        struct thread *t = &p->threads[i];
        if (t->life == ALIVE)
            continue;
        if (t->life == GONE) /* it has let go of the lock, and does nothing any more */
            pthread_join(t->id, NULL);
        t->life = NONE;
        if (pthread_create(&t->id, NULL, worker, t) != 0)
            return false;
        t->life = ALIVE;
        t->called = true;
        p->n_called++;
        p->n_threads++;
        return true;
    }
    return false;
}

static struct thread *pop_idle(struct nj_thread_pool *p)
{
    if (!p->n_idle)
        return NULL;
    struct thread *t = p->idle[--p->n_idle];
    t->idle = false;
    t->called = true;
    p->n_called++;
    return t;
}

static void push_idle(struct nj_thread_pool *p, struct thread *t)
{
    t->idle = true;
    p->idle[p->n_idle++] = t;
}

static void remove_idle(struct nj_thread_pool *p, struct thread *t)
{
    uint32_t i = 0;

    while (p->idle[i] != t)
        i++;
    for (p->n_idle--; i < p->n_idle; i++)
        p->idle[i] = p->idle[i + 1];
    t->idle = false;
}

/* Somebody for the queue, if that needs one: a thread that is idle (to be woken by the caller,
 * without the lock), else a new one, if there may be one more. */
static struct thread *call_one(struct nj_thread_pool *p)
{
    if (!p->n_jobs || p->n_called)
        return NULL;
    struct thread *t = pop_idle(p);

    if (!t && !p->stopping)
        spawn(p);
    return t;
}

/* --- the lock --------------------------------------------------------------------------------- */

static void lock(struct nj_thread_pool *p)
{
    pthread_mutex_lock(&p->lock);
}

static void wake(struct thread *t)
{
    if (t)
        nj__unpark(&t->n_wakes);
}

/* See the head of this file. */
static void unlock(struct nj_thread_pool *p)
{
    pthread_mutex_unlock(&p->lock);
    while (atomic_load(&p->wanted) && pthread_mutex_trylock(&p->lock) == 0) {
        struct thread *t = atomic_exchange(&p->wanted, false) ? pop_idle(p) : NULL;
        pthread_mutex_unlock(&p->lock);
        wake(t);
    }
}

static void on_wanted(void *ctx)
{
    struct nj_thread_pool *p = ctx;

    atomic_exchange(&p->wanted, true);
    if (pthread_mutex_trylock(&p->lock) == 0)
        unlock(p);
}

/* --- a thread --------------------------------------------------------------------------------- */

enum next { RUN, SERVE, WAIT, LEAVE };

/* One thread of those that may be, and are not leased, is left to the queue. */
static bool may_serve(const struct nj_thread_pool *p)
{
    uint32_t n_kept = p->n_leased - p->n_seats + 1;
    return !p->stopping && p->n_serving + n_kept < p->config.n_max;
}

/* Under the lock. */
static enum next what_next(struct nj_thread_pool *p, struct thread *t, struct job *job)
{
    if (t->called) {
        t->called = false;
        p->n_called--;
    }
    if (may_serve(p) && nj_reserved_wants(p->reserved))
        return SERVE;
    if (pop(p, job))
        return RUN;
    return p->stopping ? LEAVE : WAIT;
}

/* True when it slept long enough to leave. */
static bool wait_idle(struct nj_thread_pool *p, struct thread *t)
{
    uint32_t seen = atomic_load_explicit(&t->n_wakes, memory_order_relaxed);

    push_idle(p, t);
    unlock(p);
    bool woken = nj__park(&t->n_wakes, seen, p->config.idle_ns);
    lock(p);
    if (!t->idle)
        return false; /* somebody called it */
    remove_idle(p, t);
    return !woken && p->n_threads > p->config.n_min;
}

static void run(struct nj_thread_pool *p, struct job job)
{
    struct thread *t = call_one(p);

    unlock(p);
    wake(t);
    nj__run_clean(job.of, job.task);
    lock(p);
}

/* Its place at the queue is another's to take. */
static void serve(struct nj_thread_pool *p)
{
    p->n_serving++;
    struct thread *t = call_one(p);
    unlock(p);
    wake(t);
    nj_reserved_serve(p->reserved);
    lock(p);
    p->n_serving--;
}

static void leave(struct nj_thread_pool *p, struct thread *t)
{
    t->life = GONE;
    p->n_threads--;
    unlock(p);
    nj__unpark(&p->n_gone);
}

static void *worker(void *arg)
{
    struct thread *t = arg;
    struct nj_thread_pool *p = t->pool;
    struct job job;

    lock(p);
    for (;;) {
        switch (what_next(p, t, &job)) {
        case RUN:
            run(p, job);
            continue;
        case SERVE:
            serve(p);
            continue;
        case WAIT:
            if (!wait_idle(p, t))
                continue;
            break;
        case LEAVE:
            break;
        }
        leave(p, t);
        return NULL;
    }
}

/* --- the executor ----------------------------------------------------------------------------- */

static bool execute(struct nj_executor *e, struct nj_task *task, const struct nj_strategy *of)
{
    struct nj_thread_pool *p = nj_container_of(e, struct nj_thread_pool, executor);
    struct job taken_back;

    lock(p);
    bool accepted = !p->stopping && push(p, (struct job){task, of});
    struct thread *t = accepted ? call_one(p) : NULL;
    if (accepted && !p->n_threads) { /* the only thread could not be made; the queue was empty */
        accepted = false;
        pop(p, &taken_back);
    }
    unlock(p);
    wake(t);
    return accepted;
}

static bool try_execute(struct nj_executor *e, struct nj_task *task)
{
    struct nj_thread_pool *p = nj_container_of(e, struct nj_thread_pool, executor);
    return nj_reserved_try_execute(p->reserved, task);
}

static const struct nj_executor_ops executor_ops = {.execute = execute, .try_execute = try_execute};

struct nj_executor *nj_thread_pool_executor(struct nj_thread_pool *p)
{
    return &p->executor;
}

/* --- leases ----------------------------------------------------------------------------------- */

bool nj_thread_pool_lease(struct nj_thread_pool *p, const char *who, uint32_t n, char *why,
                          size_t n_why)
{
    lock(p);
    bool fits = p->n_leased + (uint64_t)n < p->config.n_max;
    if (!fits && why)
        snprintf(why, n_why, "%s needs %u threads; of %u, %u are leased and 1 has to stay", who, n,
                 p->config.n_max, p->n_leased);
    if (fits)
        p->n_leased += n;
    unlock(p);
    return fits;
}

void nj_thread_pool_unlease(struct nj_thread_pool *p, uint32_t n)
{
    lock(p);
    NJ_CHECK(p->n_leased >= n);
    p->n_leased -= n;
    unlock(p);
}

struct nj_thread_pool_counts nj_thread_pool_count(struct nj_thread_pool *p)
{
    struct nj_thread_pool_counts c;

    lock(p);
    nj_reserved_count(p->reserved, &c.n_reserved, &c.n_wanted);
    c.n_threads = p->n_threads;
    c.n_idle = p->n_idle;
    c.n_leased = p->n_leased;
    c.n_queued = p->n_jobs;
    uint32_t n_wait = c.n_idle + c.n_reserved;
    c.n_utilised = c.n_threads > n_wait ? c.n_threads - n_wait : 0;
    unlock(p);
    return c;
}

/* --- life ------------------------------------------------------------------------------------- */

static struct nj_thread_pool *make(const struct nj_thread_pool_config *config, uint32_t n_seats)
{
    struct nj_thread_pool *p = aligned_alloc(NJ_CACHE_LINE, sizeof *p);
    struct nj_reserved_config seats = {
        .capacity = n_seats,
        .n_min = n_seats ? 1 : 0,
        .idle_ns = config->idle_ns,
        .wanted = on_wanted,
        .ctx = p,
    };

    if (!p)
        return NULL;
    *p = (struct nj_thread_pool){.executor = {&executor_ops}, .config = *config};
    pthread_mutex_init(&p->lock, NULL);
    p->threads = aligned_alloc(NJ_CACHE_LINE, config->n_max * sizeof *p->threads);
    p->idle = calloc(config->n_max, sizeof *p->idle);
    p->reserved = nj_reserved_new(&seats);
    if (!p->threads || !p->idle || !p->reserved) {
        nj_thread_pool_free(p);
        return NULL;
    }
    for (uint32_t i = 0; i < config->n_max; i++)
        p->threads[i] = (struct thread){.pool = p};
    return p;
}

struct nj_thread_pool *nj_thread_pool_start(const struct nj_thread_pool_config *config, char *why,
                                            size_t n_why)
{
    uint32_t n_seats = nj_reserved_capacity(config->n_reserved, config->n_cpus, config->n_max);
    char nobody[1];

    if (!why) {
        why = nobody;
        n_why = sizeof nobody;
    }
    if (config->n_reserved < 0 && n_seats >= config->n_max)
        n_seats = config->n_max ? config->n_max - 1 : 0; /* a small pool has none to spare */
    if (!config->n_max || config->n_max > NJ_THREADS_MAX || config->n_min > config->n_max) {
        snprintf(why, n_why, "a pool has 1 to %u threads, and not fewer than its least",
                 NJ_THREADS_MAX);
        return NULL;
    }
    struct nj_thread_pool *p = make(config, n_seats);
    if (!p) {
        snprintf(why, n_why, "no memory for a pool of %u threads, %u reserved", config->n_max,
                 n_seats);
        return NULL;
    }
    bool whole = !n_seats || nj_thread_pool_lease(p, "the reserve", n_seats, why, n_why);
    p->n_seats = whole ? n_seats : 0;
    lock(p);
    while (whole && p->n_threads < config->n_min)
        if (!spawn(p)) {
            whole = false;
            snprintf(why, n_why, "the system has no thread for us after %u", p->n_threads);
        }
    unlock(p);
    if (whole)
        return p;
    nj_thread_pool_stop(p);
    nj_thread_pool_free(p);
    return NULL;
}

static void wait_for_threads(struct nj_thread_pool *p)
{
    for (;;) {
        uint32_t seen = atomic_load_explicit(&p->n_gone, memory_order_acquire);
        lock(p);
        uint32_t n_threads = p->n_threads;
        struct thread *t = pop_idle(p);
        unlock(p);
        if (!n_threads)
            break;
        if (t)
            wake(t);
        else
            nj__park(&p->n_gone, seen, NJ_NEVER);
    }
    for (uint32_t i = 0; i < p->config.n_max; i++)
        if (p->threads[i].life == GONE)
            pthread_join(p->threads[i].id, NULL);
}

void nj_thread_pool_stop(struct nj_thread_pool *p)
{
    struct job job;

    lock(p);
    p->stopping = true;
    unlock(p);
    nj_reserved_stop(p->reserved);
    for (bool more = true; more;) {
        lock(p);
        more = pop(p, &job);
        unlock(p); /* as the task is called without it */
        if (more)
            job.task->ops->reject(job.task);
    }
    wait_for_threads(p);
}

void nj_thread_pool_free(struct nj_thread_pool *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    nj_reserved_free(p->reserved);
    free(p->threads);
    free(p->idle);
    free(p->jobs);
    free(p);
}
