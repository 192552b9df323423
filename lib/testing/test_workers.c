/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for the worker pool, in virtual time: of the threads and the test's own only one runs
 * at a time, by turns, so a test has one result. A thread has its turn until its task ends or waits
 * (sched/worker_wait.h); poll_done() gives it the next one when the wait is over.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "sched/worker_wait.h"
#include "testing/testing_internal.h"

#define TASKS_MAX   4096u /* submitted and not polled */
#define DEFAULT_MAX 4u    /* threads, as many as a server has by default at most */

struct worker {
    struct nj_worker_wait wait; /* first */
    struct nj__test_workers *all;
    pthread_t thread;
    bool has_thread;
    struct nj_task *task; /* NULL: it is free */
    bool is_waiting;
    /* Of the wait: */
    struct pollfd *fds;
    unsigned n_fds;
    nj_ns deadline;
    int result;
};

struct nj__test_workers {
    const nj_ns *now;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker *turn; /* NULL: the test's thread */
    bool stops;
    /* Of the test's thread: */
    uint64_t n_turns;
    uint32_t n_max, n;
    struct nj_task *queue[TASKS_MAX]; /* the oldest first */
    struct worker worker[];
};

/* --- turns ------------------------------------------------------------------------------------ */

/* Of a worker: passes the turn to the test's thread. Returns when it has it again, or at the end.
 */
static void yield_turn(struct worker *w)
{
    struct nj__test_workers *all = w->all;

    all->turn = NULL;
    pthread_cond_broadcast(&all->changed);
    while (all->turn != w && !all->stops)
        pthread_cond_wait(&all->changed, &all->lock);
}

static void give_turn(struct worker *w)
{
    struct nj__test_workers *all = w->all;

    pthread_mutex_lock(&all->lock);
    all->n_turns++;
    all->turn = w;
    pthread_cond_broadcast(&all->changed);
    while (all->turn)
        pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static void *run_tasks(void *worker)
{
    struct worker *w = worker;
    struct nj__test_workers *all = w->all;

    nj_worker_wait_bind(&w->wait);
    pthread_mutex_lock(&all->lock);
    while (all->turn != w && !all->stops)
        pthread_cond_wait(&all->changed, &all->lock);
    while (!all->stops) {
        nj_worker_wait_begin_task(w->task);
        w->task->ops->run(w->task);
        nj_worker_wait_end_task(w->task);
        w->task->run_ns = w->task->wall_ns = 1;
        yield_turn(w);
    }
    pthread_mutex_unlock(&all->lock);
    nj_worker_wait_bind(NULL);
    return NULL;
}

/* --- waits ------------------------------------------------------------------------------------ */

static struct worker *of_wait(struct nj_worker_wait *wait)
{
    return nj_container_of(wait, struct worker, wait);
}

static nj_ns now(struct nj_worker_wait *wait)
{
    return *of_wait(wait)->all->now;
}

static int wait_in_virtual_time(struct nj_worker_wait *wait, struct pollfd *fds, unsigned n,
                                nj_ns deadline)
{
    struct worker *w = of_wait(wait);

    w->fds = fds;
    w->n_fds = n;
    w->deadline = deadline;
    w->is_waiting = true;
    yield_turn(w);
    return w->result;
}

static bool is_wait_over(struct worker *w)
{
    int n = poll(w->fds, w->n_fds, 0);

    w->result = n != 0 ? n : w->deadline <= *w->all->now ? -ETIME : 0;
    w->is_waiting = w->result == 0;
    return !w->is_waiting;
}

uint64_t nj__test_workers_turns(const struct nj__test_workers *all)
{
    return all->n_turns;
}

nj_ns nj__test_workers_next_at(const struct nj__test_workers *all)
{
    nj_ns next = NJ_NEVER;

    for (uint32_t i = 0; i < all->n_max; i++)
        if (all->worker[i].is_waiting)
            next = nj_min_u64(next, all->worker[i].deadline);
    return next;
}

uint32_t nj__test_workers_waiting(const struct nj__test_workers *all)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < all->n_max; i++)
        n += all->worker[i].is_waiting;
    return n;
}

uint32_t nj__test_workers_list_fds(const struct nj__test_workers *all, struct pollfd *fds,
                                   uint32_t n_max)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < all->n_max; i++)
        for (unsigned k = 0; all->worker[i].is_waiting && k < all->worker[i].n_fds && n < n_max;
             k++)
            fds[n++] = all->worker[i].fds[k];
    return n;
}

/* --- life ------------------------------------------------------------------------------------- */

static bool start(struct worker *w)
{
    static const struct nj_worker_wait_ops ops = {now, wait_in_virtual_time};

    w->wait.ops = &ops;
    if (!w->has_thread)
        w->has_thread =
            nj_worker_wait_open(&w->wait) && pthread_create(&w->thread, NULL, run_tasks, w) == 0;
    return w->has_thread;
}

struct nj__test_workers *nj__test_workers_new(uint32_t n_threads, const nj_ns *now_at)
{
    uint32_t n_max = n_threads ? n_threads : DEFAULT_MAX;
    struct nj__test_workers *all = nj__test_alloc(sizeof *all + n_max * sizeof all->worker[0]);

    all->now = now_at;
    all->n_max = n_max;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    for (uint32_t i = 0; i < n_max; i++) {
        all->worker[i].all = all;
        all->worker[i].wait.fd = -1;
    }
    return all;
}

void nj__test_workers_free(struct nj__test_workers *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->stops = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    for (uint32_t i = 0; i < all->n_max; i++) {
        if (all->worker[i].has_thread)
            pthread_join(all->worker[i].thread, NULL);
        nj_worker_wait_close(&all->worker[i].wait);
    }
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static bool submit(void *workers, struct nj_task *task)
{
    struct nj__test_workers *all = workers;

    if (all->n == TASKS_MAX)
        return false;
    atomic_store(&task->worker, NULL);
    all->queue[all->n++] = task;
    return true;
}

static void flush(void *workers)
{
    (void)workers; /* poll() runs tasks */
}

static void take(struct nj__test_workers *all, uint32_t i)
{
    all->n--;
    memmove(all->queue + i, all->queue + i + 1, (all->n - i) * sizeof all->queue[0]);
}

/* Runs what can run. Returns the task that has ended, or NULL: it waits. */
static struct nj_task *run_worker(struct nj__test_workers *all, struct worker *w)
{
    if (!w->task && all->n > 0 && start(w)) {
        w->task = all->queue[0];
        take(all, 0);
    } else if (!w->task || !is_wait_over(w)) {
        return NULL;
    }
    struct nj_task *task = w->task;
    give_turn(w);
    if (w->is_waiting)
        return NULL;
    w->task = NULL;
    return task;
}

static uint32_t poll_done(void *workers, struct nj_task **tasks, uint32_t n)
{
    struct nj__test_workers *all = workers;
    uint32_t got = 0;

    for (uint32_t i = 0; i < all->n_max && got < n;) {
        struct nj_task *task = run_worker(all, &all->worker[i]);
        if (task)
            tasks[got++] = task; /* and the next one on this thread */
        else
            i++;
    }
    return got;
}

static bool withdraw(void *workers, struct nj_task *task)
{
    struct nj__test_workers *all = workers;

    for (uint32_t i = 0; i < all->n; i++)
        if (all->queue[i] == task) {
            take(all, i);
            return true;
        }
    nj_task_cancel(task);
    return false;
}

struct nj_worker_ops nj__test_workers_ops(struct nj__test_workers *all)
{
    return (struct nj_worker_ops){
        .ctx = all, .submit = submit, .flush = flush, .poll = poll_done, .withdraw = withdraw};
}
