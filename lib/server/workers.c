/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane is one shard's way to the pool and back, for tasks of one kind:
 *
 *     waiting (the shard's)  ->  ring  ->  a thread runs it  ->  home  ->  poll (the shard's)
 *
 * The ring has one producer, the shard's thread, and one consumer at a time: the thread that
 * produces for the strategy. What that wrote is seen by the next one (strategy.h). A task is in a
 * slot of its lane from the ring until it is home: that is what the pool sees of it.
 *
 * No task is left in a ring while a thread is free. Whoever fills the ring asks for production
 * (flush) unless as many of the kind run as may; then one that ends asks: a consumer when it comes
 * back to the strategy (nj_strategy_config.asks_again), a task that the pool ran for want of a
 * recruit at its end (run_slot). Between filling the ring and reading n_running there is a full
 * fence, and so there is between the change of n_running and the next look at the ring.
 */
#include "server/workers.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Acquire and release where DPDK's x86 rings use compiler barriers: the same instructions, but
 * ThreadSanitizer can follow them. */
#define RTE_USE_C11_MEM_MODEL
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "base/altstack.h"
#include "base/assert.h"
#include "base/attr.h"
#include "sched/ewyk.h"
#include "sched/task_queue.h"
#include "sched/thread_pool.h"

#define N_KINDS NJ_WORKERS_N_KINDS
#define NOT_RUN UINT64_MAX /* as run_ns: it was cancelled, or the pool stops */

/* Looks at empty rings before a thread gives production up, each with a pause of 40 to 140 cycles:
 * some 17 us, about what a sleep and its wake-up cost. With 1000, tasks of 20 us cost a fifth more
 * CPU at 20,000 per second and a third more at 2,000; none started earlier at 2,000, and half of
 * them 4 us earlier at 20,000 (./dev bench ewyk --delays). */
#define LOOKS 500

/* The longest that tasks of a class took is forgotten by a part in so many with each that comes
 * home: one that took 100 ms among quick ones counts as longer than NJ_WORKER_AHEAD_NS for some 430
 * more. */
#define AWAY_FORGET 64u

struct lane;

struct slot {
    struct nj_task task; /* the pool's */
    struct nj_task *job; /* the shard's */
    struct lane *lane;
    struct slot *next; /* while it is free, or on its way home */
    bool ahead;        /* the job's class was known to be short */
    bool queued;       /* the pool runs it, not the thread that produced it */
};

struct lane {
    struct nj_workers *pool;
    enum nj_workers_kind kind;
    uint32_t index;
    /* The shard's thread alone: */
    struct nj_task_queue waiting; /* for room in the ring */
    struct slot *free, *done;     /* done: at home, and not polled */
    uint32_t n_out;               /* slots in use */
    uint32_t n_long;              /* of these, not known to be short */
    bool unflushed, closed;
    /* Written by it alone, read by any thread: */
    _Atomic uint64_t n_done, n_refused, n_displaced, n_held_back;
    _Atomic uint32_t seen_out, seen_waiting; /* n_out and waiting.n, together with it */
    struct rte_ring *ring;
    _Atomic(struct slot *) home NJ_CACHE_ALIGNED; /* that have run, the last one first */
} NJ_CACHE_ALIGNED;

struct nj_workers {
    struct nj_workers_config config;
    uint32_t n_threads, n_lanes;
    struct nj_producer producer;
    struct nj_executor executor; /* the pool's, that marks what it queues */
    struct nj_strategy strategy;
    struct nj_thread_pool *threads;
    struct slot *slots;
    uint32_t turn; /* the lane to look at first; the producer's */
    struct {       /* what each thread has to give back at its end */
        void *altstack;
        bool registered;
    } own[N_KINDS * NJ_WORKERS_MAX];
    _Atomic bool stopping;
    bool ended; /* all threads */
    struct {
        _Atomic uint32_t n_running; /* from produce() to the end of run */
    } NJ_CACHE_ALIGNED kind[N_KINDS];
    struct lane lanes[];
};

static uint64_t clock_ns(clockid_t which)
{
    struct timespec ts;
    clock_gettime(which, &ts);
    return (uint64_t)ts.tv_sec * NJ_SEC + (uint64_t)ts.tv_nsec;
}

static bool is_stopping(const struct nj_workers *w)
{
    return atomic_load_explicit(&w->stopping, memory_order_relaxed);
}

/* --- producing: on the thread that looks ------------------------------------------------------ */

static bool is_full(struct nj_workers *w, enum nj_workers_kind kind)
{
    return atomic_load_explicit(&w->kind[kind].n_running, memory_order_relaxed) >=
           w->config.kind[kind].n_max;
}

/* rte_ring_empty() for the consumer, with an atomic read of what the producer writes. */
static bool is_empty(const struct rte_ring *r)
{
    return __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED);
}

/* A lane that has a task which may run now; lanes take turns. NULL: none. */
static struct lane *next_lane(struct nj_workers *w)
{
    for (uint32_t i = 0; i < w->n_lanes; i++) {
        struct lane *l = &w->lanes[(w->turn + i) % w->n_lanes];
        if (!is_empty(l->ring) && !is_full(w, l->kind))
            return l;
    }
    return NULL;
}

static struct nj_task *take(struct nj_workers *w, struct lane *l)
{
    void *slot;

    NJ_CHECK(rte_ring_sc_dequeue(l->ring, &slot) == 0);
    w->turn = (uint32_t)(l - w->lanes) + 1;
    /* What those that ended did is seen by this one. */
    atomic_fetch_add_explicit(&w->kind[l->kind].n_running, 1, memory_order_acquire);
    return &((struct slot *)slot)->task;
}

static struct nj_task *produce(struct nj_producer *p)
{
    struct nj_workers *w = nj_container_of(p, struct nj_workers, producer);

    for (uint32_t n = 0; n < LOOKS && !is_stopping(w); n++) {
        struct lane *l = next_lane(w);
        if (l)
            return take(w, l);
        rte_pause();
    }
    return NULL;
}

static bool has_more(struct nj_producer *p)
{
    struct nj_workers *w = nj_container_of(p, struct nj_workers, producer);
    return next_lane(w) != NULL;
}

/* --- consuming: on any thread ----------------------------------------------------------------- */

static void go_home(struct slot *s)
{
    struct lane *l = s->lane;
    const struct nj_workers_config *c = &l->pool->config;
    uint32_t index = l->index;

    s->next = atomic_load_explicit(&l->home, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&l->home, &s->next, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
    if (c->wakers && index < c->n_wakers)
        nj_waker_wake(&c->wakers[index]);
}

/* Each task finds the thread as the first one did, whatever the one before it left behind. */
static void run_job(const struct nj_workers *w, enum nj_workers_kind kind, struct nj_task *job)
{
    job->wall_ns = 0;
    if (is_stopping(w) || atomic_load_explicit(&job->cancelled, memory_order_relaxed)) {
        job->run_ns = NOT_RUN;
        return;
    }
    if (w->config.kind[kind].prepare)
        w->config.kind[kind].prepare();
    errno = 0;
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID), since = clock_ns(CLOCK_MONOTONIC);
    job->ops->run(job);
    job->run_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    job->wall_ns = clock_ns(CLOCK_MONOTONIC) - since;
    fesetenv(FE_DFL_ENV);
}

static void run_slot(struct nj_task *task)
{
    struct slot *s = nj_container_of(task, struct slot, task);
    struct nj_workers *w = s->lane->pool;
    enum nj_workers_kind kind = s->lane->kind;
    bool queued = s->queued;

    run_job(w, kind, s->job);
    go_home(s); /* the slot may be in use again from here on */
    atomic_fetch_sub(&w->kind[kind].n_running, 1);
    rte_smp_mb(); /* see the head of this file */
    if (queued)
        nj_strategy_dispatch(&w->strategy);
}

static void reject_slot(struct nj_task *task)
{
    struct slot *s = nj_container_of(task, struct slot, task);
    struct nj_workers *w = s->lane->pool;
    enum nj_workers_kind kind = s->lane->kind;

    s->job->run_ns = NOT_RUN;
    go_home(s);
    atomic_fetch_sub(&w->kind[kind].n_running, 1);
}

static const struct nj_task_ops slot_ops = {.run = run_slot, .reject = reject_slot};

static bool execute(struct nj_executor *e, struct nj_task *task, const struct nj_strategy *of)
{
    struct nj_workers *w = nj_container_of(e, struct nj_workers, executor);
    struct nj_executor *pool = nj_thread_pool_executor(w->threads);

    if (of)
        nj_container_of(task, struct slot, task)->queued = true;
    return pool->ops->execute(pool, task, of);
}

static bool try_execute(struct nj_executor *e, struct nj_task *task)
{
    struct nj_executor *pool =
        nj_thread_pool_executor(nj_container_of(e, struct nj_workers, executor)->threads);
    return pool->ops->try_execute(pool, task);
}

static bool post(struct nj_executor *e, struct nj_task *task)
{
    struct nj_executor *pool =
        nj_thread_pool_executor(nj_container_of(e, struct nj_workers, executor)->threads);
    return pool->ops->post(pool, task);
}

static const struct nj_executor_ops executor_ops = {
    .execute = execute, .try_execute = try_execute, .post = post};

/* --- a lane, on the shard's thread ------------------------------------------------------------ */

/* One writer. */
static void count(_Atomic uint64_t *n)
{
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void publish(struct lane *l)
{
    atomic_store_explicit(&l->seen_out, l->n_out + l->waiting.n, memory_order_relaxed);
    atomic_store_explicit(&l->seen_waiting, l->waiting.n, memory_order_relaxed);
}

/* All tasks that its class had lately were short. */
static bool is_short(const struct nj_task *job)
{
    const struct nj_task_class *c = job->class_of;
    return c && c->away_ns > 0 && c->away_ns <= NJ_WORKER_AHEAD_NS;
}

/* As many as may run at once; and more short ones, for each that may run and is not taken by a
 * long one. */
static bool has_room(const struct lane *l, bool ahead)
{
    uint32_t n_max = l->pool->config.kind[l->kind].n_max;
    uint32_t n_long = l->n_long < n_max ? l->n_long : n_max;

    return l->n_out < (ahead ? n_max + (n_max - n_long) * (NJ_WORKER_DEPTH - 1) : n_max);
}

static void place(struct lane *l, struct nj_task *job, bool ahead)
{
    struct slot *s = l->free;

    l->free = s->next;
    s->job = job;
    s->ahead = ahead;
    s->queued = false;
    l->n_long += !ahead;
    l->n_out++;
    l->unflushed = true;
    NJ_CHECK(rte_ring_sp_enqueue(l->ring, s) == 0); /* it holds as many as there are slots */
}

static void place_waiting(struct lane *l)
{
    struct nj_task *job;

    while ((job = nj_task_queue_first(&l->waiting))) {
        bool ahead = is_short(job);
        if (!has_room(l, ahead))
            break;
        nj_task_queue_pop(&l->waiting);
        place(l, job, ahead);
    }
    publish(l);
}

static void reject(struct nj_task *job)
{
    job->ops->reject(job);
}

/* There is room for it, be it in the place of another client's. */
static bool make_room(struct lane *l, const struct nj_task *job)
{
    if (l->n_out + l->waiting.n < l->pool->config.kind[l->kind].tasks_max)
        return true;
    struct nj_task *other = nj_task_queue_displace(&l->waiting, job);
    if (!other)
        return false;
    count(&l->n_displaced);
    reject(other);
    return true;
}

static bool submit(void *ctx, struct nj_task *job)
{
    struct lane *l = ctx;

    if (l->closed || !make_room(l, job)) {
        count(&l->n_refused);
        return false;
    }
    atomic_store_explicit(&job->cancelled, false, memory_order_relaxed);
    nj_task_queue_push(&l->waiting, job);
    place_waiting(l);
    if (nj_list_linked(&job->node))
        count(&l->n_held_back);
    return true;
}

static bool withdraw(void *ctx, struct nj_task *job)
{
    struct lane *l = ctx;

    if (!nj_list_linked(&job->node)) { /* in the ring, or with a thread */
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
        return false;
    }
    nj_task_queue_remove(&l->waiting, job);
    publish(l);
    return true;
}

static void flush(void *ctx)
{
    struct lane *l = ctx;

    if (!l->unflushed)
        return;
    l->unflushed = false;
    rte_smp_mb(); /* see the head of this file */
    if (!is_full(l->pool, l->kind))
        nj_strategy_dispatch(&l->pool->strategy);
}

/* What it took is what others of its class are expected to take. */
static void learn(const struct nj_task *job)
{
    struct nj_task_class *c = job->class_of;

    if (!c || job->run_ns == NOT_RUN)
        return;
    uint64_t faded = c->away_ns - c->away_ns / AWAY_FORGET;
    c->away_ns = job->wall_ns >= faded ? job->wall_ns + 1 : faded; /* never 0: it is known */
}

/* What has come home since, behind what had before, in its order. */
static void take_home(struct lane *l)
{
    struct slot **end = &l->done;
    struct slot *s = NULL, *first = NULL;

    if (atomic_load_explicit(&l->home, memory_order_relaxed))
        s = atomic_exchange_explicit(&l->home, NULL, memory_order_acquire);
    while (s) {
        struct slot *next = s->next;
        s->next = first;
        first = s;
        s = next;
    }
    while (*end)
        end = &(*end)->next;
    *end = first;
}

/* When all threads have ended: what they did not take from the ring. */
static void take_back(struct lane *l)
{
    void *slot;

    while (l->pool->ended && rte_ring_sc_dequeue(l->ring, &slot) == 0) {
        struct slot *s = slot;
        s->job->run_ns = NOT_RUN;
        s->next = l->done;
        l->done = s;
    }
}

/* The job that was in the slot, which is free again; NULL when that was rejected. */
static struct nj_task *leave(struct lane *l, struct slot *s)
{
    struct nj_task *job = s->job;

    l->n_out--;
    l->n_long -= !s->ahead;
    s->next = l->free;
    l->free = s;
    nj_task_queue_home(&l->waiting, job);
    learn(job);
    count(&l->n_done);
    if (job->run_ns != NOT_RUN)
        return job;
    if (!atomic_load_explicit(&job->cancelled, memory_order_relaxed)) {
        reject(job);
        return NULL;
    }
    job->run_ns = 0;
    return job;
}

static void reject_waiting(struct lane *l)
{
    struct nj_task *job;

    while ((job = nj_task_queue_first(&l->waiting))) {
        nj_task_queue_remove(&l->waiting, job);
        reject(job);
    }
}

static uint32_t poll_done(void *ctx, struct nj_task **jobs, uint32_t n)
{
    struct lane *l = ctx;
    uint32_t n_home = 0;

    if (l->n_out > 0) {
        take_home(l);
        take_back(l);
        while (l->done && n_home < n) {
            struct slot *s = l->done;
            l->done = s->next;
            struct nj_task *job = leave(l, s);
            if (job)
                jobs[n_home++] = job;
        }
        publish(l);
    }
    if (l->closed) {
        reject_waiting(l);
        publish(l);
    } else if (l->waiting.n > 0) {
        place_waiting(l);
        flush(l); /* now: a step in which nothing is submitted need not flush */
    }
    return n_home;
}

static struct lane *lane_of(const struct nj_workers *w, uint32_t shard, enum nj_workers_kind kind)
{
    NJ_CHECK(shard < w->config.n_shards && kind < N_KINDS);
    return (struct lane *)&w->lanes[shard * N_KINDS + kind];
}

struct nj_task_port nj_workers_port(struct nj_workers *w, uint32_t shard, enum nj_workers_kind kind)
{
    return (struct nj_task_port){.ctx = lane_of(w, shard, kind),
                                 .submit = submit,
                                 .flush = flush,
                                 .poll = poll_done,
                                 .withdraw = withdraw};
}

struct nj_workers_load nj_workers_load(const struct nj_workers *w, uint32_t shard,
                                       enum nj_workers_kind kind)
{
    const struct lane *l = lane_of(w, shard, kind);
    return (struct nj_workers_load){.n_out = l->n_out + l->waiting.n, .n_waiting = l->waiting.n};
}

struct nj_workers_stats nj_workers_stats(const struct nj_workers *w)
{
    struct nj_workers_stats s = {.n_threads = w->n_threads,
                                 .strategy = nj_strategy_counters(&w->strategy)};

    for (uint32_t k = 0; k < N_KINDS; k++) {
        s.kind[k].n_max = w->config.kind[k].n_max;
        s.kind[k].n_running = atomic_load_explicit(&w->kind[k].n_running, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < w->n_lanes; i++) {
        const struct lane *l = &w->lanes[i];
        s.kind[l->kind].n_out += atomic_load_explicit(&l->seen_out, memory_order_relaxed);
        s.kind[l->kind].n_waiting += atomic_load_explicit(&l->seen_waiting, memory_order_relaxed);
        s.kind[l->kind].n_done += atomic_load_explicit(&l->n_done, memory_order_relaxed);
        s.kind[l->kind].n_refused += atomic_load_explicit(&l->n_refused, memory_order_relaxed);
        s.kind[l->kind].n_displaced += atomic_load_explicit(&l->n_displaced, memory_order_relaxed);
        s.kind[l->kind].n_held_back += atomic_load_explicit(&l->n_held_back, memory_order_relaxed);
    }
    return s;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void thread_begin(void *ctx, uint32_t thread)
{
    struct nj_workers *w = ctx;
    const struct nj_workers_config *c = &w->config;
    const cpu_set_t *cpus = thread < c->n_affinity ? &c->affinity[thread] : c->rest;
    char name[16];

    snprintf(name, sizeof name, "nj-worker-%u", thread);
    pthread_setname_np(pthread_self(), name);
    if (cpus)
        pthread_setaffinity_np(pthread_self(), sizeof *cpus, cpus);
    w->own[thread].altstack = nj_altstack_begin();
    w->own[thread].registered = c->eal && rte_thread_register() == 0;
}

static void thread_end(void *ctx, uint32_t thread)
{
    const struct nj_workers *w = ctx;

    if (w->own[thread].registered)
        rte_thread_unregister();
    nj_altstack_end(w->own[thread].altstack);
}

static bool start_threads(struct nj_workers *w)
{
    struct nj_thread_pool_config c = {
        .n_min = w->n_threads,
        .n_max = w->n_threads,
        .n_reserved = (int)w->n_threads - 1, /* one stays for what is queued */
        .idle_ns = NJ_NEVER,
        .thread_begin = thread_begin,
        .thread_end = thread_end,
        .ctx = w,
    };

    w->threads = nj_thread_pool_start(&c, NULL, 0);
    return w->threads != NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static struct rte_ring *new_ring(uint32_t n_max)
{
    uint32_t n = 2;
    while (n < n_max + 1) /* a ring of n holds n - 1 */
        n *= 2;
    struct rte_ring *r = aligned_alloc(NJ_CACHE_LINE, (size_t)rte_ring_get_memsize(n));
    if (r && rte_ring_init(r, "nj-workers", n, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0)
        return r;
    free(r);
    return NULL;
}

static uint32_t slots_of(const struct nj_workers_config *c, uint32_t kind)
{
    return c->kind[kind].n_max * NJ_WORKER_DEPTH;
}

static bool init_lane(struct nj_workers *w, uint32_t i, struct slot *slots)
{
    struct lane *l = &w->lanes[i];

    l->pool = w;
    l->kind = (enum nj_workers_kind)(i % N_KINDS);
    l->index = i / N_KINDS;
    nj_task_queue_init(&l->waiting);
    for (uint32_t k = slots_of(&w->config, l->kind); k > 0; k--) {
        struct slot *s = &slots[k - 1];
        s->task.ops = &slot_ops;
        s->lane = l;
        s->next = l->free;
        l->free = s;
    }
    l->ring = new_ring(slots_of(&w->config, l->kind));
    return l->ring != NULL;
}

static bool init_lanes(struct nj_workers *w)
{
    uint32_t n_slots = 0;

    for (uint32_t i = 0; i < w->n_lanes; i++)
        n_slots += slots_of(&w->config, i % N_KINDS);
    w->slots = calloc(n_slots, sizeof *w->slots);
    n_slots = 0;
    for (uint32_t i = 0; w->slots && i < w->n_lanes; i++) {
        if (!init_lane(w, i, w->slots + n_slots))
            return false;
        n_slots += slots_of(&w->config, i % N_KINDS);
    }
    return w->slots != NULL;
}

static void free_memory(struct nj_workers *w)
{
    nj_thread_pool_free(w->threads);
    for (uint32_t i = 0; i < w->n_lanes; i++)
        free(w->lanes[i].ring);
    free(w->slots);
    free(w);
}

int nj_workers_start(const struct nj_workers_config *config, struct nj_workers **out)
{
    uint32_t n_lanes = config->n_shards * N_KINDS;
    size_t n_bytes = sizeof(struct nj_workers) + n_lanes * sizeof(struct lane);
    struct nj_workers *w = aligned_alloc(NJ_CACHE_LINE, n_bytes);

    NJ_CHECK(config->n_shards > 0);
    if (!w)
        return -ENOMEM;
    memset(w, 0, n_bytes);
    w->config = *config;
    w->n_lanes = n_lanes;
    for (uint32_t k = 0; k < N_KINDS; k++) {
        NJ_CHECK(config->kind[k].n_max <= NJ_WORKERS_MAX);
        w->n_threads += config->kind[k].n_max;
    }
    w->producer = (struct nj_producer){.produce = produce, .has_more = has_more};
    w->executor.ops = &executor_ops;
    struct nj_strategy_config c = {.kind = NJ_STRATEGY_ADAPTIVE,
                                   .producer = &w->producer,
                                   .executor = &w->executor,
                                   .posts = true,
                                   .asks_again = true};
    nj_strategy_init(&w->strategy, &c);
    int rc = !init_lanes(w) ? -ENOMEM : !start_threads(w) ? -EAGAIN : 0;
    if (rc < 0) {
        free_memory(w);
        return rc;
    }
    *out = w;
    return 0;
}

static void begin_stop(struct nj_workers *w)
{
    if (is_stopping(w))
        return;
    atomic_store_explicit(&w->stopping, true, memory_order_relaxed);
    for (uint32_t i = 0; i < w->n_lanes; i++)
        w->lanes[i].closed = true;
    nj_strategy_stop(&w->strategy);
    nj_thread_pool_begin_stop(w->threads);
}

uint32_t nj_workers_stop(struct nj_workers *w, uint32_t wait_ms)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), end = now + wait_ms * (uint64_t)NJ_MS;
    uint32_t n_left;

    begin_stop(w);
    do {
        n_left = nj_thread_pool_await(w->threads, now < end ? end - now : 0);
        now = clock_ns(CLOCK_MONOTONIC);
    } while (n_left > 0 && now < end);
    w->ended = n_left == 0;
    return n_left;
}

void nj_workers_free(struct nj_workers *w)
{
    for (uint32_t i = 0; i < w->n_lanes; i++)
        NJ_ASSERT(w->lanes[i].n_out == 0 && w->lanes[i].waiting.n == 0);
    free_memory(w);
}
