/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two executors for PEC without a lock on the queue.
 *
 * The ring, after the Disruptor: slots have sequence numbers. A producer or a consumer claims a
 * slot with one compare-and-swap of a counter, and does not wait for other threads.
 *
 * Work stealing: a producer pushes tasks to its own deque. A consumer pops tasks from its own
 * deque. If that is empty, it steals up to STEAL tasks from a producer's deque, else one task from
 * the deque of another consumer.
 *
 * Both have the same consumers, which sleep while there are no tasks, and a thread pool for
 * production.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "bench.h"
#include "strategy/thread_pool.h"

#define ROOM  4096u /* of a queue, a power of two: more than the windows of all producers */
#define STEAL 8u    /* tasks that a consumer steals from a producer at a time */
#define TRIES 200u  /* polls before a consumer sleeps */

struct slot {
    _Atomic uint64_t turn;
    struct nj_task *task;
};

struct ring {
    _Atomic uint64_t head NJ_CACHE_ALIGNED;
    _Atomic uint64_t tail NJ_CACHE_ALIGNED;
    struct slot slots[ROOM];
};

struct deque { /* of Chase and Lev, with a fixed size */
    _Atomic int64_t top NJ_CACHE_ALIGNED;
    _Atomic int64_t bottom NJ_CACHE_ALIGNED;
    _Atomic(struct nj_task *) tasks[ROOM];
};

struct member {
    struct crew *crew;
    uint32_t index;
    pthread_t thread;
};

struct crew {
    struct nj_executor executor;
    bool steals;
    struct producer *producers[PRODUCERS_MAX];
    uint32_t n_producers;
    struct nj_thread_pool *pool;
    struct member *members;
    uint32_t n_members;
    struct ring ring;
    struct deque of_producer[PRODUCERS_MAX], *of_member;
    _Atomic bool over;
    _Atomic uint32_t n_asleep NJ_CACHE_ALIGNED;
    sem_t wakes;
    _Atomic bool wake_pending; /* a consumer was woken and has not polled yet */
};

static void wake_one(struct crew *c)
{
    if (atomic_load(&c->n_asleep) && !atomic_exchange(&c->wake_pending, true))
        sem_post(&c->wakes);
}

/* --- the ring ----------------------------------------------------------------------------------
 */

static bool ring_put(struct ring *r, struct nj_task *task)
{
    uint64_t at = atomic_load(&r->head);

    for (;;) {
        struct slot *s = &r->slots[at % ROOM];
        uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
        if (turn < at)
            return false; /* full */
        if (turn > at) {
            at = atomic_load(&r->head);
        } else if (atomic_compare_exchange_weak(&r->head, &at, at + 1)) {
            s->task = task;
            atomic_store_explicit(&s->turn, at + 1, memory_order_release);
            return true;
        }
    }
}

static struct nj_task *ring_get(struct ring *r)
{
    uint64_t at = atomic_load(&r->tail);

    for (;;) {
        struct slot *s = &r->slots[at % ROOM];
        uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
        if (turn < at + 1)
            return NULL;
        if (turn > at + 1) {
            at = atomic_load(&r->tail);
        } else if (atomic_compare_exchange_weak(&r->tail, &at, at + 1)) {
            struct nj_task *task = s->task;
            atomic_store_explicit(&s->turn, at + ROOM, memory_order_release);
            return task;
        }
    }
}

/* --- deques ------------------------------------------------------------------------------------
 */

static bool deque_push(struct deque *d, struct nj_task *task)
{
    int64_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed);

    if (bottom - atomic_load_explicit(&d->top, memory_order_acquire) >= (int64_t)ROOM)
        return false;
    atomic_store_explicit(&d->tasks[bottom % ROOM], task, memory_order_relaxed);
    atomic_store(&d->bottom, bottom + 1);
    return true;
}

static struct nj_task *deque_pop(struct deque *d)
{
    int64_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed) - 1;

    atomic_store(&d->bottom, bottom);
    int64_t top = atomic_load(&d->top);
    struct nj_task *task = NULL;
    if (top <= bottom) {
        task = atomic_load_explicit(&d->tasks[bottom % ROOM], memory_order_relaxed);
        if (top < bottom)
            return task;
        if (!atomic_compare_exchange_strong(&d->top, &top, top + 1))
            task = NULL; /* the last task was stolen */
    }
    atomic_store_explicit(&d->bottom, bottom + 1, memory_order_relaxed);
    return task;
}

static struct nj_task *deque_steal(struct deque *d)
{
    int64_t top = atomic_load(&d->top);

    if (top >= atomic_load(&d->bottom))
        return NULL;
    struct nj_task *task = atomic_load_explicit(&d->tasks[top % ROOM], memory_order_relaxed);
    return atomic_compare_exchange_strong(&d->top, &top, top + 1) ? task : NULL;
}

static struct nj_task *steal(struct crew *c, struct member *m)
{
    for (uint32_t i = 0; i < c->n_producers; i++) {
        struct deque *from = &c->of_producer[(m->index + i) % c->n_producers];
        struct nj_task *first = deque_steal(from), *next;
        for (uint32_t k = 1; first && k < STEAL && (next = deque_steal(from)); k++)
            NJ_CHECK(deque_push(&c->of_member[m->index], next));
        if (first)
            return first;
    }
    for (uint32_t i = 1; i < c->n_members; i++) {
        struct nj_task *task = deque_steal(&c->of_member[(m->index + i) % c->n_members]);
        if (task)
            return task;
    }
    return NULL;
}

/* --- consumers ---------------------------------------------------------------------------------
 */

static struct nj_task *next(struct crew *c, struct member *m)
{
    if (!c->steals)
        return ring_get(&c->ring);
    struct nj_task *task = deque_pop(&c->of_member[m->index]);
    return task ? task : steal(c, m);
}

/* Sleeps until wake_one() wakes the consumer. A consumer counts itself as asleep before its last
 * poll, and clears wake_pending before it polls again. So a task that is queued after a poll causes
 * a wake-up. */
static void sleep_until_woken(struct crew *c, struct member *m, struct nj_task **task)
{
    atomic_fetch_add(&c->n_asleep, 1);
    *task = next(c, m);
    if (!*task && !atomic_load(&c->over))
        sem_wait(&c->wakes);
    atomic_fetch_sub(&c->n_asleep, 1);
    atomic_store(&c->wake_pending, false);
    if (!*task)
        *task = next(c, m);
}

static struct nj_task *next_or_sleep(struct crew *c, struct member *m)
{
    struct nj_task *task = NULL;

    for (uint32_t i = 0; i < TRIES && !task; i++)
        task = next(c, m);
    if (task)
        return task;
    while (!task && !atomic_load(&c->over))
        sleep_until_woken(c, m, &task);
    if (task)
        wake_one(c); /* the queue may have further tasks */
    return task;
}

static void *consumer(void *arg)
{
    struct member *m = arg;
    struct nj_task *task;

    while ((task = next_or_sleep(m->crew, m)))
        task->ops->run(task);
    return NULL;
}

/* --- the executor ------------------------------------------------------------------------------
 */

static bool execute(struct nj_executor *e, struct nj_task *task)
{
    struct crew *c = nj_container_of(e, struct crew, executor);
    struct nj_executor *pool = nj_thread_pool_executor(c->pool);
    uint32_t i = 0;

    if (bench_is_recruit(c->producers, c->n_producers, task))
        return pool->ops->execute(pool, task);
    while (c->steals && c->producers[i] != nj_container_of(task, struct bench_task, task)->producer)
        i++;
    if (!(c->steals ? deque_push(&c->of_producer[i], task) : ring_put(&c->ring, task)))
        return false;
    wake_one(c);
    return true;
}

static bool try_execute(struct nj_executor *e, struct nj_task *task)
{
    (void)e, (void)task;
    return false;
}

static void *zeroed(size_t n_bytes)
{
    void *memory = aligned_alloc(NJ_CACHE_LINE, n_bytes);

    if (!memory)
        abort();
    return memset(memory, 0, n_bytes);
}

struct crew *crew_new(bool steals, struct producer *const *producers, const struct options *o)
{
    static const struct nj_executor_ops ops = {.execute = execute, .try_execute = try_execute};
    struct nj_thread_pool_config pool = {
        .n_min = PRODUCERS_MAX, .n_max = PRODUCERS_MAX, .n_reserved = 0, .idle_ns = NJ_NEVER};
    struct crew *c = zeroed(sizeof *c);

    c->members = calloc(o->n_threads, sizeof *c->members);
    c->n_members = o->n_threads;
    c->of_member = zeroed(o->n_threads * sizeof *c->of_member);
    c->executor.ops = &ops;
    c->steals = steals;
    sem_init(&c->wakes, 0, 0);
    c->n_producers = o->n_producers;
    memcpy(c->producers, producers, o->n_producers * sizeof *producers);
    for (uint64_t i = 0; i < ROOM; i++)
        atomic_init(&c->ring.slots[i].turn, i);
    c->pool = nj_thread_pool_start(&pool, NULL, 0);
    for (uint32_t i = 0; i < c->n_members; i++) {
        c->members[i].crew = c;
        c->members[i].index = i;
        if (pthread_create(&c->members[i].thread, NULL, consumer, &c->members[i]) != 0)
            abort();
    }
    return c;
}

struct nj_executor *crew_executor(struct crew *c)
{
    return &c->executor;
}

void crew_free(struct crew *c)
{
    atomic_store(&c->over, true);
    for (uint32_t i = 0; i < c->n_members; i++)
        sem_post(&c->wakes);
    for (uint32_t i = 0; i < c->n_members; i++)
        pthread_join(c->members[i].thread, NULL);
    sem_destroy(&c->wakes);
    nj_thread_pool_stop(c->pool);
    nj_thread_pool_free(c->pool);
    free(c->of_member);
    free(c->members);
    free(c);
}
