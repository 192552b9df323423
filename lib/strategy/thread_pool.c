/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread pool with one lock for its queue and counts. Idle threads form a stack: the thread that
 * was busy last is woken first, so that at low load the threads at the bottom time out and leave.
 *
 * One thread is called at a time. It calls the next one when it arrives and finds more tasks, so a
 * burst of tasks causes no thundering herd. The called thread is an idle one, else a new one, else
 * a reserved one. Invariant: while tasks are queued, a thread is being called, or all are busy.
 *
 * Two calls must not block on the lock: on_wanted(), which nj_reserved calls inside try_execute(),
 * and post(). They record a request (`wanted`, `inbox`) and try the lock. The holder of the lock
 * checks for requests after releasing it. So one of the two handles the request.
 */
#include "strategy/thread_pool.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/futex_park.h"
#include "base/interleaving_points.h"
#include "strategy/os_thread_mutex.h"
#include "strategy/reserved_threads.h"
#include "strategy/strategy_thread_context.h"

enum life { NONE, ALIVE, GONE }; /* GONE: ended, not joined */

struct thread {
    struct nj_thread_pool *pool;
    pthread_t id;
    enum life life;
    bool idle;   /* in the stack of idle threads */
    bool called; /* woken or created for the queue, and not arrived yet */
    _Atomic uint32_t n_wakes;
} NJ_CACHE_ALIGNED;

struct nj_thread_pool {
    struct nj_executor executor;
    struct nj_thread_pool_config config;
    struct nj_reserved *reserved;
    struct nj__lock lock;
    struct nj_task *first, **last; /* the queue, linked by nj_task.next, FIFO */
    uint32_t n_threads, n_idle, n_serving;
    uint32_t n_called; /* threads called or roused that have not arrived yet */
    struct thread **idle;
    struct thread *threads;
    uint32_t n_queued;
    _Atomic bool stopping; /* written under the lock */
    /* Tasks are queued and no thread could be called; written under the lock. */
    _Atomic bool lacks_thread;
    _Atomic bool wanted NJ_CACHE_ALIGNED;
    _Atomic(struct nj_task *) inbox; /* posted tasks, linked by nj_task.next, LIFO */
    _Atomic uint32_t n_exited;       /* wake-up word: threads that have ended */
};

/* --- the queue, under the lock ---------------------------------------------------------------- */

static void push(struct nj_thread_pool *p, struct nj_task *task)
{
    task->next = NULL;
    *p->last = task;
    p->last = &task->next;
    p->n_queued++;
}

static struct nj_task *pop(struct nj_thread_pool *p)
{
    struct nj_task *task = p->first;

    if (!task)
        return NULL;
    p->first = task->next;
    if (!p->first)
        p->last = &p->first;
    p->n_queued--;
    return task;
}

/* Removes the task that was pushed last; posted tasks may precede it. */
static void take_back(struct nj_thread_pool *p, const struct nj_task *task)
{
    struct nj_task **at = &p->first;

    while (*at != task)
        at = &(*at)->next;
    *at = NULL;
    p->last = at;
    p->n_queued--;
}

/* --- threads, under the lock ------------------------------------------------------------------ */

static void *worker(void *arg);

static bool spawn(struct nj_thread_pool *p)
{
    for (uint32_t i = 0; i < p->config.n_max; i++) {
        struct thread *t = &p->threads[i];
        if (t->life == ALIVE)
            continue;
        if (t->life == GONE) /* it has released the lock and is ending: see thread_end() */
            nj__thread_join(t->id);
        t->life = NONE;
        if (!nj__thread_start(&t->id, worker, t))
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

/* Calls a thread for the queue, if that needs one: an idle thread, which is returned and to be
 * woken by the caller after unlocking; else a new thread, up to n_max; else a reserved one. */
static struct thread *get_thread(struct nj_thread_pool *p)
{
    if (!p->first || p->n_called || p->stopping)
        return NULL;
    struct thread *t = pop_idle(p);
    if (t || spawn(p))
        return t;
    NJ__SCHED_POINT(NJ__AT_POOL_FLAG, 0);
    atomic_store(&p->lacks_thread, true); /* before the look at the seats: see is_needed() */
    if (nj_reserved_unreserve_one(p->reserved)) {
        p->n_called++;
        NJ__SCHED_POINT(NJ__AT_POOL_FLAG, 1);
        atomic_store(&p->lacks_thread, false);
    }
    return NULL;
}

/* --- the lock --------------------------------------------------------------------------------- */

static void lock(struct nj_thread_pool *p)
{
    nj__lock_take(&p->lock);
}

static void wake(struct thread *t)
{
    if (t)
        nj_unpark(&t->n_wakes);
}

static bool has_requests(struct nj_thread_pool *p)
{
    NJ__SCHED_POINT(NJ__AT_POOL_REQUEST, 0);
    return atomic_load(&p->wanted) || atomic_load(&p->inbox);
}

/* Under the lock. Moves posted tasks to the queue, in order; they are rejected later if the pool
 * stops or has no thread. */
static void take_posted(struct nj_thread_pool *p)
{
    NJ__SCHED_POINT(NJ__AT_POOL_REQUEST, 2);
    struct nj_task *task = atomic_exchange(&p->inbox, NULL), *first = NULL;

    while (task) {
        struct nj_task *next = task->next;
        task->next = first;
        first = task;
        task = next;
    }
    while (first) {
        task = first;
        first = task->next;
        push(p, task);
    }
}

static void reject_queued(struct nj_thread_pool *p);

/* Handles requests, see the head of this file. True: the thread that `leaves` holds the lock and
 * must stay. */
static bool handle_requests(struct nj_thread_pool *p, bool leaves)
{
    while (has_requests(p) && nj__lock_try(&p->lock)) {
        take_posted(p);
        if (leaves && !p->stopping)
            return true;
        NJ__SCHED_POINT(NJ__AT_POOL_REQUEST, 3);
        struct thread *t = atomic_exchange(&p->wanted, false) ? pop_idle(p) : NULL;
        struct thread *called = get_thread(p);
        bool rejects = p->stopping || !p->n_threads; /* creating the first thread failed */
        nj__lock_release(&p->lock);
        wake(t);
        wake(called);
        if (rejects)
            reject_queued(p);
    }
    return false;
}

static void unlock(struct nj_thread_pool *p)
{
    nj__lock_release(&p->lock);
    handle_requests(p, false);
}

static void try_lock(struct nj_thread_pool *p)
{
    if (nj__lock_try(&p->lock))
        unlock(p);
}

static void on_wanted(void *ctx)
{
    struct nj_thread_pool *p = ctx;

    NJ__SCHED_POINT(NJ__AT_POOL_REQUEST, 4);
    atomic_exchange(&p->wanted, true);
    try_lock(p);
}

/* A reserved thread leaves its seat for the queue when no other thread is available. */
static bool is_needed(void *ctx)
{
    struct nj_thread_pool *p = ctx;

    NJ__SCHED_POINT(NJ__AT_IDLE_LOOK, 0);
    return atomic_load(&p->lacks_thread);
}

/* --- a thread --------------------------------------------------------------------------------- */

enum next { RUN, SERVE, WAIT, LEAVE };

/* At least one thread stays available for the queue; and if tasks are queued, another thread can be
 * called for them. */
static bool may_serve(const struct nj_thread_pool *p)
{
    bool others = !p->first || p->n_idle > 0 || p->n_threads < p->config.n_max;
    return !p->stopping && others && p->n_serving + 1 < p->config.n_max;
}

/* Under the lock. */
static enum next next_action(struct nj_thread_pool *p, struct thread *t, struct nj_task **task)
{
    if (t->called) {
        t->called = false;
        p->n_called--;
    }
    if (may_serve(p) && nj_reserved_is_wanted(p->reserved))
        return SERVE;
    NJ__SCHED_POINT(NJ__AT_POOL_FLAG, 2);
    atomic_store(&p->lacks_thread, false); /* this one is here */
    if ((*task = pop(p)))
        return RUN;
    return p->stopping ? LEAVE : WAIT;
}

/* True: the thread was idle for idle_ns and leaves. */
static bool wait_idle(struct nj_thread_pool *p, struct thread *t)
{
    uint32_t seen = atomic_load_explicit(&t->n_wakes, memory_order_relaxed);

    push_idle(p, t);
    unlock(p);
    bool woken = nj_park(&t->n_wakes, seen, p->config.idle_ns);
    lock(p);
    if (!t->idle)
        return false; /* another thread woke it */
    remove_idle(p, t);
    return !woken && p->n_threads > p->config.n_min;
}

static void run(struct nj_thread_pool *p, struct nj_task *task)
{
    struct thread *t = get_thread(p);

    unlock(p);
    wake(t);
    nj__run_task_in_clean_state(task);
    lock(p);
}

/* Runs as a reserved thread; another thread is called for the queue. */
static void serve(struct nj_thread_pool *p)
{
    p->n_serving++;
    struct thread *t = get_thread(p);
    unlock(p);
    wake(t);
    bool roused = nj_reserved_serve(p->reserved);
    lock(p);
    p->n_serving--;
    p->n_called -= roused;
}

/* Releases the lock. False: a request was found; the thread holds the lock again and stays. While
 * it is GONE it creates no thread, because that could join this thread. */
static bool leave(struct nj_thread_pool *p, struct thread *t)
{
    t->life = GONE;
    p->n_threads--;
    nj__lock_release(&p->lock);
    if (handle_requests(p, true)) {
        t->life = ALIVE;
        p->n_threads++;
        return false;
    }
    nj_unpark(&p->n_exited);
    return true;
}

static void serve_pool(struct nj_thread_pool *p, struct thread *t)
{
    struct nj_task *task;

    lock(p);
    for (;;) {
        switch (next_action(p, t, &task)) {
        case RUN:
            run(p, task);
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
        if (leave(p, t))
            return;
    }
}

static void *worker(void *arg)
{
    struct thread *t = arg;
    struct nj_thread_pool *p = t->pool;
    const struct nj_thread_pool_config *c = &p->config;

    if (c->thread_begin)
        c->thread_begin(c->ctx, (uint32_t)(t - p->threads));
    serve_pool(p, t);
    if (c->thread_end)
        c->thread_end(c->ctx, (uint32_t)(t - p->threads));
    return NULL;
}

/* --- the executor ----------------------------------------------------------------------------- */

static bool execute(struct nj_executor *e, struct nj_task *task)
{
    struct nj_thread_pool *p = nj_container_of(e, struct nj_thread_pool, executor);

    lock(p);
    bool accepted = !p->stopping;
    if (accepted)
        push(p, task);
    struct thread *t = accepted ? get_thread(p) : NULL;
    if (accepted && !p->n_threads) { /* the only thread could not be made */
        accepted = false;
        take_back(p, task);
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

/* A reserved thread is the fastest way. */
static bool post(struct nj_executor *e, struct nj_task *task)
{
    struct nj_thread_pool *p = nj_container_of(e, struct nj_thread_pool, executor);

    if (nj_reserved_try_execute(p->reserved, task))
        return true;
    NJ__SCHED_POINT(NJ__AT_POOL_REQUEST, 5);
    if (atomic_load(&p->stopping))
        return false;
    task->next = atomic_load_explicit(&p->inbox, memory_order_relaxed);
    do
        NJ__SCHED_POINT(NJ__AT_POOL_REQUEST, 1);
    while (!atomic_compare_exchange_strong(&p->inbox, &task->next, task));
    try_lock(p);
    return true;
}

static const struct nj_executor_ops executor_ops = {
    .execute = execute, .try_execute = try_execute, .post = post};

struct nj_executor *nj_thread_pool_executor(struct nj_thread_pool *p)
{
    return &p->executor;
}

struct nj_thread_pool_counts nj_thread_pool_get_counts(struct nj_thread_pool *p)
{
    struct nj_thread_pool_counts c;

    lock(p);
    nj_reserved_count_and_wanted(p->reserved, &c.n_reserved, &c.n_wanted);
    c.n_threads = p->n_threads;
    c.n_queued = p->n_queued;
    uint32_t n_wait = p->n_idle + c.n_reserved;
    c.n_utilised = c.n_threads > n_wait ? c.n_threads - n_wait : 0;
    unlock(p);
    return c;
}

/* --- life cycle ----------------------------------------------------------------------------------
 */

static struct nj_thread_pool *make(const struct nj_thread_pool_config *config, uint32_t n_seats)
{
    struct nj_thread_pool *p = aligned_alloc(NJ_CACHE_LINE, sizeof *p);
    struct nj_reserved_config seats = {
        .capacity = n_seats,
        .n_min = n_seats ? 1 : 0,
        .idle_ns = config->idle_ns,
        .wanted = on_wanted,
        .is_needed = is_needed,
        .ctx = p,
    };

    if (!p)
        return NULL;
    *p = (struct nj_thread_pool){.executor = {&executor_ops}, .config = *config};
    p->last = &p->first;
    nj__lock_init(&p->lock);
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

/*
 * A consumer that blocks occupies its thread, and the next thread takes its seat only after a
 * wake-up. Until then tasks are queued that could have been consumed at once. So the number of
 * seats exceeds the threads that start to block during a wake-up, not the CPUs. The queue loses no
 * thread, as a reserved thread leaves its seat for it.
 */
static uint32_t seats_of(const struct nj_thread_pool_config *config)
{
    uint32_t half = config->n_max / 2;

    if (config->n_reserved >= 0)
        return (uint32_t)config->n_reserved;
    return half < NJ_RESERVED_MAX ? half : NJ_RESERVED_MAX;
}

struct nj_thread_pool *nj_thread_pool_start(const struct nj_thread_pool_config *config, char *why,
                                            size_t n_why)
{
    uint32_t n_seats = seats_of(config);
    char nobody[1];

    if (!why) {
        why = nobody;
        n_why = sizeof nobody;
    }
    if (!config->n_max || config->n_max > NJ_THREADS_MAX || config->n_min > config->n_max) {
        snprintf(why, n_why, "a pool has 1 to %u threads, and at least n_min", NJ_THREADS_MAX);
        return NULL;
    }
    if (n_seats > 0 && n_seats >= config->n_max) {
        snprintf(why, n_why, "of %u threads at most %u can be reserved: 1 must stay", config->n_max,
                 config->n_max - 1);
        return NULL;
    }
    struct nj_thread_pool *p = make(config, n_seats);
    if (!p) {
        snprintf(why, n_why, "no memory for a pool of %u threads, %u reserved", config->n_max,
                 n_seats);
        return NULL;
    }
    bool whole = true;
    lock(p);
    while (whole && p->n_threads < config->n_min)
        if (!spawn(p)) {
            whole = false;
            snprintf(why, n_why, "the system refused a thread after %u", p->n_threads);
        }
    unlock(p);
    if (whole)
        return p;
    nj_thread_pool_stop(p);
    nj_thread_pool_free(p);
    return NULL;
}

static void reject_queued(struct nj_thread_pool *p)
{
    for (struct nj_task *task;;) {
        lock(p);
        task = pop(p);
        nj__lock_release(&p->lock); /* reject() runs without the lock, and may post */
        if (!task)
            return;
        task->ops->reject(task);
    }
}

void nj_thread_pool_begin_stop(struct nj_thread_pool *p)
{
    lock(p);
    NJ__SCHED_POINT(NJ__AT_POOL_FLAG, 3);
    p->stopping = true;
    take_posted(p);
    nj__lock_release(&p->lock);
    nj_reserved_stop(p->reserved);
    reject_queued(p);
    handle_requests(p, false);
}

/* Wakes idle threads one by one. Returns the number of threads. */
static uint32_t wake_all_idle(struct nj_thread_pool *p)
{
    uint32_t n_threads;
    struct thread *t;

    do {
        lock(p);
        n_threads = p->n_threads;
        t = pop_idle(p);
        unlock(p);
        wake(t);
    } while (t);
    return n_threads;
}

uint32_t nj_thread_pool_timed_join(struct nj_thread_pool *p, nj_ns wait_ns)
{
    uint32_t seen = atomic_load_explicit(&p->n_exited, memory_order_acquire);

    if (wake_all_idle(p) > 0) {
        nj_park(&p->n_exited, seen, wait_ns);
        uint32_t n_left = wake_all_idle(p);
        if (n_left > 0)
            return n_left;
    }
    for (uint32_t i = 0; i < p->config.n_max; i++) {
        if (p->threads[i].life == GONE)
            nj__thread_join(p->threads[i].id);
        p->threads[i].life = NONE;
    }
    return 0;
}

void nj_thread_pool_stop(struct nj_thread_pool *p)
{
    nj_thread_pool_begin_stop(p);
    while (nj_thread_pool_timed_join(p, NJ_NEVER) > 0)
        ;
}

void nj_thread_pool_free(struct nj_thread_pool *p)
{
    if (!p)
        return;
    nj__lock_fini(&p->lock);
    nj_reserved_free(p->reserved);
    free(p->threads);
    free(p->idle);
    free(p);
}
