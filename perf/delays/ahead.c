/* SPDX-License-Identifier: BSD-3-Clause */
/* The former pool of workers, which assigned tasks ahead of time (delays.h). Omits the parts that
 * no benchmark needs: a stop while tasks are in the pool, withdrawal of tasks, sleeping lcores. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RTE_USE_C11_MEM_MODEL
#include <rte_pause.h>
#include <rte_ring.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "delays.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "sched/fair_task_queue.h"
#include "base/futex_park.h"
#include "strategy/os_thread_mutex.h"
#include "threads/os_clock.h"

#define SPINS      1000u /* polls of empty rings before a worker sleeps */
#define WALL_FADE  64u   /* a class forgets this fraction of its maximum with each task */
#define SHARDS_MAX 4u

struct worker {
    struct ahead *pool;
    pthread_t thread;
    struct rte_ring *in[SHARDS_MAX], *out[SHARDS_MAX];
    _Atomic uint32_t n_wakes NJ_CACHE_ALIGNED;
    _Atomic bool sleeps;
    _Atomic bool runs NJ_CACHE_ALIGNED;
};

/* The state of one shard. */
struct lane {
    struct ahead *pool;
    uint32_t shard;
    struct nj_task_queue waiting;
    uint32_t n_in[NJ_WORKERS_MAX];   /* assigned tasks of each worker */
    uint32_t n_long[NJ_WORKERS_MAX]; /* without the tasks that are known to be short */
    uint32_t n_out;                  /* assigned tasks of all workers */
    uint64_t to_flush;               /* bits of workers that got tasks since the last flush() */
} NJ_CACHE_ALIGNED;

struct ahead {
    uint32_t n_workers, n_shards, tasks_max;
    _Atomic bool over;
    struct worker workers[NJ_WORKERS_MAX];
    struct lane lanes[SHARDS_MAX];
};

/* --- a worker --------------------------------------------------------------------------------- */

static void run_task(struct nj_task *task)
{
    nj_ns began = nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID),
          since = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    task->ops->run(task);
    task->run_ns = nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    task->wall_ns = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - since;
}

/* Runs one batch of each shard. False: there were no tasks. */
static bool run_batches(struct worker *w)
{
    bool any = false;

    for (uint32_t s = 0; s < w->pool->n_shards; s++) {
        void *tasks[NJ_WORKER_DEPTH];
        uint32_t n = rte_ring_sc_dequeue_burst(w->in[s], tasks, NJ_WORKER_DEPTH, NULL);
        for (uint32_t i = 0; i < n; i++) {
            atomic_store_explicit(&w->runs, true, memory_order_relaxed);
            run_task(tasks[i]);
            atomic_store_explicit(&w->runs, false, memory_order_relaxed);
            NJ_CHECK(rte_ring_sp_enqueue(w->out[s], tasks[i]) == 0);
        }
        any |= n > 0;
    }
    return any;
}

static bool has_work(const struct worker *w)
{
    for (uint32_t s = 0; s < w->pool->n_shards; s++)
        if (!rte_ring_empty(w->in[s]))
            return true;
    return atomic_load(&w->pool->over);
}

static void sleep_until_woken(struct worker *w)
{
    uint32_t seen = atomic_load_explicit(&w->n_wakes, memory_order_acquire);

    atomic_exchange(&w->sleeps, true);
    if (!has_work(w))
        nj_park(&w->n_wakes, seen, NJ_NEVER);
    atomic_exchange(&w->sleeps, false);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    uint32_t n_idle = 0;

    while (!atomic_load_explicit(&w->pool->over, memory_order_acquire)) {
        if (run_batches(w)) {
            n_idle = 0;
        } else if (n_idle++ < SPINS) {
            rte_pause();
        } else {
            sleep_until_woken(w);
            n_idle = 0;
        }
    }
    return NULL;
}

/* --- a shard ---------------------------------------------------------------------------------- */

/* Load of worker `i`; the lowest is the best. The shard's assigned tasks count first, then the
 * state: idle, asleep or running a task. */
static uint32_t load_of(const struct lane *l, uint32_t i)
{
    const struct worker *w = &l->pool->workers[i];
    uint32_t state = atomic_load_explicit(&w->runs, memory_order_relaxed)     ? 2
                     : atomic_load_explicit(&w->sleeps, memory_order_relaxed) ? 1
                                                                              : 0;
    return l->n_in[i] * 4 + state;
}

static bool is_short(const struct nj_task *task)
{
    const struct nj_task_class *c = task->class_of;
    return c->worker_max_ns > 0 && c->worker_max_ns <= NJ_WORKER_SHORT_TASK_NS;
}

/* Chooses the worker with the lowest load. `ahead`: the task is short, and may be assigned to a
 * worker that has only short ones. False: no worker has room. */
static bool choose(const struct lane *l, bool ahead, uint32_t *best)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t k = 0; k < l->pool->n_workers && least > 0; k++) {
        uint32_t i = (l->shard + k) % l->pool->n_workers, load = load_of(l, i);
        bool room = l->n_in[i] == 0 || (ahead && l->n_long[i] == 0 && l->n_in[i] < NJ_WORKER_DEPTH);
        if (load < least && room) {
            *best = i;
            least = load;
        }
    }
    return least < UINT32_MAX;
}

static void fill_ring(struct lane *l)
{
    struct nj_task *task;
    uint32_t i = 0;

    while ((task = nj_task_queue_first(&l->waiting))) {
        task->queued = is_short(task); /* in this pool: whether it is known to be short */
        if (!choose(l, task->queued, &i))
            return;
        nj_task_queue_take(&l->waiting, task);
        l->n_in[i]++;
        l->n_long[i] += !task->queued;
        NJ_CHECK(rte_ring_sp_enqueue(l->pool->workers[i].in[l->shard], task) == 0);
        l->n_out++;
        l->to_flush |= UINT64_C(1) << i;
    }
}

static bool submit(void *ctx, struct nj_task *task)
{
    struct lane *l = ctx;

    if (l->n_out + l->waiting.n >= l->pool->tasks_max)
        return false;
    nj_task_queue_push(&l->waiting, task);
    fill_ring(l);
    return true;
}

static void flush(void *ctx)
{
    struct lane *l = ctx;

    for (; l->to_flush; l->to_flush &= l->to_flush - 1) {
        struct worker *w = &l->pool->workers[__builtin_ctzll(l->to_flush)];
        if (atomic_exchange(&w->sleeps, false))
            nj_unpark(&w->n_wakes);
    }
}

/* Updates the maximum time of the task's class. */
static void learn(const struct nj_task *task)
{
    struct nj_task_class *c = task->class_of;
    uint64_t faded = c->worker_max_ns - c->worker_max_ns / WALL_FADE;

    c->worker_max_ns = task->wall_ns >= faded ? task->wall_ns + 1 : faded;
}

static uint32_t poll_done(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct lane *l = ctx;
    uint32_t n_done = 0;

    for (uint32_t i = 0; i < l->pool->n_workers && l->n_out > 0 && n_done < n; i++) {
        uint32_t k = rte_ring_sc_dequeue_burst(l->pool->workers[i].out[l->shard],
                                               (void **)tasks + n_done, n - n_done, NULL);
        for (uint32_t at = n_done; at < n_done + k; at++) {
            l->n_in[i]--;
            l->n_long[i] -= !tasks[at]->queued;
            nj_task_queue_done(&l->waiting, tasks[at]);
            learn(tasks[at]);
        }
        l->n_out -= k;
        n_done += k;
    }
    if (l->waiting.n > 0) {
        fill_ring(l);
        flush(l);
    }
    return n_done;
}

struct nj_worker_ops ahead_port(struct ahead *a, uint32_t shard)
{
    return (struct nj_worker_ops){
        .ctx = &a->lanes[shard], .submit = submit, .flush = flush, .poll = poll_done};
}

/* --- life ------------------------------------------------------------------------------------- */

static struct rte_ring *new_ring(void)
{
    uint32_t n = 2 * NJ_WORKER_DEPTH;
    struct rte_ring *r = aligned_alloc(NJ_CACHE_LINE, (size_t)rte_ring_get_memsize(n));

    NJ_CHECK(r && rte_ring_init(r, "ahead", n, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0);
    return r;
}

struct ahead *ahead_new(uint32_t n_workers, uint32_t n_shards, uint32_t tasks_max)
{
    struct ahead *a = aligned_alloc(NJ_CACHE_LINE, sizeof *a);

    NJ_CHECK(a && n_workers <= NJ_WORKERS_MAX && n_shards <= SHARDS_MAX);
    memset(a, 0, sizeof *a);
    a->n_workers = n_workers;
    a->n_shards = n_shards;
    a->tasks_max = tasks_max;
    for (uint32_t s = 0; s < n_shards; s++) {
        a->lanes[s].pool = a;
        a->lanes[s].shard = s;
        nj_task_queue_init(&a->lanes[s].waiting);
    }
    for (uint32_t i = 0; i < n_workers; i++) {
        struct worker *w = &a->workers[i];
        w->pool = a;
        for (uint32_t s = 0; s < n_shards; s++) {
            w->in[s] = new_ring();
            w->out[s] = new_ring();
        }
        NJ_CHECK(nj__thread_start(&w->thread, worker_main, w));
    }
    return a;
}

void ahead_free(struct ahead *a)
{
    atomic_store(&a->over, true);
    for (uint32_t i = 0; i < a->n_workers; i++)
        nj_unpark(&a->workers[i].n_wakes);
    for (uint32_t i = 0; i < a->n_workers; i++) {
        nj__thread_join(a->workers[i].thread);
        for (uint32_t s = 0; s < a->n_shards; s++) {
            free(a->workers[i].in[s]);
            free(a->workers[i].out[s]);
        }
    }
    free(a);
}
