/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carries tasks from a shard to the threads of a service and back. The way there is a single-
 * producer single-consumer ring; the way back is a lock-free LIFO list that the shard takes as a
 * whole.
 */
#include "threads/task_rings.h"

#include <stdlib.h>

/* Acquire and release where DPDK's x86 rings use compiler barriers: the same instructions, but
 * ThreadSanitizer can follow them. */
#define RTE_USE_C11_MEM_MODEL
#include <rte_atomic.h>
#include <rte_ring.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/limits.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "sched/worker_wait.h"
#include "threads/os_clock.h"

/* The recorded maximum of a class decays by 1/AWAY_FORGET with each completed task. A task of
 * 100 ms among quick ones keeps its class above NJ_WORKER_SHORT_TASK_NS for some 430 tasks. */
#define AWAY_FORGET 64u

/* --- the service's side ----------------------------------------------------------------------- */

/* rte_ring_empty() for the consumer, with an atomic read of the producer's index. */
bool nj__task_rings_is_empty(const struct nj__task_rings *l)
{
    return __atomic_load_n(&l->ring->prod.tail, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&l->ring->cons.tail, __ATOMIC_RELAXED);
}

struct nj__task_slot *nj__task_rings_pop(struct nj__task_rings *l)
{
    void *slot;
    return rte_ring_sc_dequeue(l->ring, &slot) == 0 ? slot : NULL;
}

/* A shard may have tasks that wait for the end of a slow task of another shard. Its thread arms its
 * wake-up between the store of seen_waiting and its last look at n_slow. */
static void wake_others(const struct nj__task_rings *l)
{
    rte_smp_mb(); /* between the change of n_slow and the reads of seen_waiting */
    for (const struct nj__task_rings *o = l->config.next; o != l; o = o->config.next)
        if (o->config.waker && nj_load_relaxed(&o->seen_waiting) > 0)
            nj_wakeup_signal(o->config.waker);
}

void nj__task_rings_return_to_shard(struct nj__task_slot *s)
{
    struct nj__task_rings *l = s->rings;
    struct nj_wakeup *waker = l->config.waker;
    bool slow = s->slow;

    if (slow)
        atomic_fetch_sub(l->config.n_slow, 1);
    s->next = nj_load_relaxed(&l->home);
    while (!atomic_compare_exchange_weak_explicit(&l->home, &s->next, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
    if (waker)
        nj_wakeup_signal(waker);
    if (slow)
        wake_others(l);
}

/* --- on the shard's thread -------------------------------------------------------------------- */

static void publish(struct nj__task_rings *l)
{
    nj_store_relaxed(&l->seen_out, l->n_out + l->waiting.n);
    nj_store_relaxed(&l->seen_waiting, l->waiting.n);
}

/* Were all recent tasks of its class short? */
static bool is_short(const struct nj_task *job)
{
    const struct nj_task_class *c = job->class_of;
    return c && c->worker_max_ns > 0 && c->worker_max_ns <= NJ_WORKER_SHORT_TASK_NS;
}

/* May a task of its class take so long that others would notice? */
static bool is_slow(const struct nj__task_rings *l, const struct nj_task *job)
{
    const struct nj_task_class *c = job->class_of;
    return l->config.n_slow &&
           (!c || c->worker_max_ns == 0 || c->worker_max_ns > NJ_WORKER_SLOW_TASK_NS);
}

/* Room for n_max tasks; and for `depth` short tasks for each of the n_max without a long task. */
static bool has_room(const struct nj__task_rings *l, bool ahead)
{
    uint32_t n_max = l->config.n_max;
    uint32_t n_long = l->n_long < n_max ? l->n_long : n_max;

    return l->n_out < (ahead ? n_max + (n_max - n_long) * (l->config.depth - 1) : n_max);
}

static void place(struct nj__task_rings *l, struct nj_task *job, bool ahead, bool slow)
{
    struct nj__task_slot *s = l->free;

    l->free = s->next;
    s->job = job;
    s->ahead = ahead;
    s->slow = slow;
    s->queued = false;
    l->n_long += !ahead;
    l->n_out++;
    l->unflushed = true;
    NJ_CHECK(rte_ring_sp_enqueue(l->ring, s) == 0); /* the ring holds all slots */
}

static nj_ns now_of(const struct nj__task_rings *l)
{
    return l->config.clock ? l->config.clock()
                           : nj_os_clock_gettime_ns(CLOCK_MONOTONIC_COARSE); /* no system call */
}

/* Time is read for the first task of another client than the last one, and where a cap may apply:
 * tasks of the last client are only counted until then. */
static void notice_last_client(struct nj__task_rings *l, nj_ns now)
{
    uint64_t n = nj_load_relaxed(&l->n_submitted);

    if (l->n_noticed != n)
        l->last_client_at = now;
    l->n_noticed = n;
}

static void note_client(struct nj__task_rings *l, const struct nj_task *job)
{
    if (l->last_client != job->client) {
        l->other_client_at = l->last_client ? now_of(l) : 0;
        l->last_client = job->client;
    }
    nj_add_single_writer(&l->n_submitted, 1);
}

/* Tasks of other shards. A client of another shard counts as another one. */
static void notice_other_shards(struct nj__task_rings *l, nj_ns now)
{
    uint64_t n = 0;

    for (const struct nj__task_rings *o = l->config.next; o != l; o = o->config.next)
        n += nj_load_relaxed(&o->n_submitted);
    if (n != l->n_elsewhere)
        l->elsewhere_at = now;
    l->n_elsewhere = n;
}

static bool is_recent(nj_ns at, nj_ns now)
{
    return at > 0 && now - at < NJ_WORKER_ALONE_NS;
}

/* Did another client than this one submit a task lately? */
static bool others_are_there(struct nj__task_rings *l, const void *client)
{
    nj_ns now = now_of(l);

    notice_last_client(l, now);
    if (is_recent(client == l->last_client ? l->other_client_at : l->last_client_at, now))
        return true;
    notice_other_shards(l, now);
    return is_recent(l->elsewhere_at, now);
}

/* Slow tasks of all shards, beyond which a client with `n` tasks at workers waits while others are
 * there: of the last two threads, one is for clients without a task at a worker, and one for tasks
 * that are not slow. Of two threads, the last one is for the latter. */
static uint32_t slow_max(const struct nj__task_rings *l, uint32_t n)
{
    uint32_t n_max = l->config.n_max;
    return n_max - (n == 0 || n_max == 2 ? 1 : 2);
}

/* While there are other clients, a client with a long task leaves one of the places for their first
 * tasks. `n`: tasks of the client at workers. */
static bool may_start(void *rings, const struct nj_task *job, uint32_t n)
{
    struct nj__task_rings *l = rings;
    uint32_t n_max = l->config.n_max;

    l->slow_max = UINT32_MAX;
    if (is_short(job) || n_max < 2 || !others_are_there(l, job->client))
        return true;
    if (n >= n_max - 1)
        return false;
    l->slow_max = slow_max(l, n);
    return !is_slow(l, job) || atomic_load(l->config.n_slow) < l->slow_max;
}

/* False: another shard was faster, and the task may not start now. */
static bool count_slow(struct nj__task_rings *l)
{
    uint32_t n = nj_load_relaxed(l->config.n_slow);

    while (n < l->slow_max)
        if (atomic_compare_exchange_weak(l->config.n_slow, &n, n + 1))
            return true;
    return false;
}

static void fill_ring(struct nj__task_rings *l)
{
    struct nj_task *job;

    while ((job = nj_task_queue_find(&l->waiting, may_start, l)) && has_room(l, is_short(job))) {
        bool slow = is_slow(l, job);
        if (slow && !count_slow(l))
            continue;
        nj_task_queue_take(&l->waiting, job);
        place(l, job, is_short(job), slow);
    }
    publish(l);
}

static void reject(struct nj_task *job)
{
    job->ops->reject(job);
}

/* True: there is room, possibly after a task of another client was displaced. */
static bool make_room(struct nj__task_rings *l, const struct nj_task *job)
{
    if (l->n_out + l->waiting.n < l->config.tasks_max)
        return true;
    struct nj_task *other = nj_task_queue_evict_from_longest(&l->waiting, job);
    if (!other)
        return false;
    nj_add_single_writer(&l->n_displaced, 1);
    reject(other);
    return true;
}

static bool submit(void *ctx, struct nj_task *job)
{
    struct nj__task_rings *l = ctx;

    if (l->closed || !make_room(l, job)) {
        nj_add_single_writer(&l->n_refused, 1);
        return false;
    }
    nj_store_relaxed(&job->cancelled, false);
    nj_store_relaxed(&job->worker, NULL);
    note_client(l, job);
    nj_task_queue_push(&l->waiting, job);
    fill_ring(l);
    if (nj_list_linked(&job->node))
        nj_add_single_writer(&l->n_held_back, 1);
    return true;
}

static bool withdraw(void *ctx, struct nj_task *job)
{
    struct nj__task_rings *l = ctx;

    if (!nj_list_linked(&job->node)) { /* in the ring, or running */
        nj_task_cancel(job);
        return false;
    }
    nj_task_queue_remove(&l->waiting, job);
    publish(l);
    return true;
}

static bool join(void *ctx, struct nj_task *job, const void *client)
{
    return nj_task_queue_move_to_client(&((struct nj__task_rings *)ctx)->waiting, job, client);
}

static void flush(void *ctx)
{
    struct nj__task_rings *l = ctx;

    if (!l->unflushed)
        return;
    l->unflushed = false;
    rte_smp_mb(); /* between filling the ring and reading the service's state */
    l->config.ask(l);
}

/* Updates the decaying maximum of the run time of its class. */
static void update_worker_max(const struct nj_task *job)
{
    struct nj_task_class *c = job->class_of;

    if (!c || job->run_ns == NJ__NOT_RUN)
        return;
    uint64_t faded = c->worker_max_ns - c->worker_max_ns / AWAY_FORGET;
    c->worker_max_ns = job->wall_ns >= faded ? job->wall_ns + 1 : faded; /* + 1: 0 means unknown */
}

/* Appends newly completed slots to `done`, in order of completion. */
static void collect_completed(struct nj__task_rings *l)
{
    struct nj__task_slot **end = &l->done;
    struct nj__task_slot *s = NULL, *first = NULL;

    if (nj_load_relaxed(&l->home))
        s = atomic_exchange_explicit(&l->home, NULL, memory_order_acquire);
    while (s) {
        struct nj__task_slot *next = s->next;
        s->next = first;
        first = s;
        s = next;
    }
    while (*end)
        end = &(*end)->next;
    *end = first;
}

/* After all threads have ended: takes back the slots that are still in the ring. */
static void take_back(struct nj__task_rings *l)
{
    void *slot;

    while (l->ended && rte_ring_sc_dequeue(l->ring, &slot) == 0) {
        struct nj__task_slot *s = slot;
        if (s->slow)
            atomic_fetch_sub(l->config.n_slow, 1);
        s->job->run_ns = NJ__NOT_RUN;
        s->next = l->done;
        l->done = s;
    }
}

/* Frees the slot and returns its job; NULL: the job was rejected. */
static struct nj_task *leave(struct nj__task_rings *l, struct nj__task_slot *s)
{
    struct nj_task *job = s->job;

    l->n_out--;
    l->n_long -= !s->ahead;
    s->next = l->free;
    l->free = s;
    nj_task_queue_done(&l->waiting, job);
    update_worker_max(job);
    nj_add_single_writer(&l->n_done, 1);
    if (job->run_ns != NJ__NOT_RUN)
        return job;
    if (!nj_load_relaxed(&job->cancelled)) {
        reject(job);
        return NULL;
    }
    job->run_ns = 0;
    return job;
}

static void reject_waiting(struct nj__task_rings *l)
{
    struct nj_task *job;

    while ((job = nj_task_queue_first(&l->waiting))) {
        nj_task_queue_remove(&l->waiting, job);
        reject(job);
    }
}

static uint32_t poll_done(void *ctx, struct nj_task **jobs, uint32_t n)
{
    struct nj__task_rings *l = ctx;
    uint32_t n_home = 0;

    if (l->n_out > 0) {
        collect_completed(l);
        take_back(l);
        while (l->done && n_home < n) {
            struct nj__task_slot *s = l->done;
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
        fill_ring(l);
        flush(l); /* here: the shard flushes only in steps with a submit */
    }
    return n_home;
}

struct nj_worker_ops nj__task_rings_ops(struct nj__task_rings *l)
{
    return (struct nj_worker_ops){.ctx = l,
                                  .submit = submit,
                                  .flush = flush,
                                  .poll = poll_done,
                                  .withdraw = withdraw,
                                  .join = join};
}

/* --- life ------------------------------------------------------------------------------------- */

struct rte_ring *nj__task_ring_new(uint32_t n_max)
{
    uint32_t n = 2;
    while (n < n_max + 1) /* a ring of n holds n - 1 */
        n *= 2;
    struct rte_ring *r = aligned_alloc(NJ_CACHE_LINE, (size_t)rte_ring_get_memsize(n));
    if (r && rte_ring_init(r, "nj-tasks", n, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0)
        return r;
    free(r);
    return NULL;
}

bool nj__task_rings_init(struct nj__task_rings *l, const struct nj__task_rings_config *config)
{
    uint32_t n_slots = config->n_max * config->depth;

    l->config = *config;
    if (!l->config.next)
        l->config.next = l;
    nj_task_queue_init(&l->waiting);
    l->slots = calloc(n_slots + 1, sizeof *l->slots);
    l->ring = nj__task_ring_new(n_slots);
    if (!l->slots || !l->ring)
        return false;
    for (uint32_t i = n_slots; i > 0; i--) {
        struct nj__task_slot *s = &l->slots[i - 1];
        s->task.ops = config->slot_ops;
        s->rings = l;
        s->next = l->free;
        l->free = s;
    }
    return true;
}

void nj__task_rings_fini(struct nj__task_rings *l)
{
    NJ_ASSERT(l->n_out == 0 && l->waiting.n == 0);
    free(l->ring);
    free(l->slots);
}
