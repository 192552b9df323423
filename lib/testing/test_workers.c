/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the worker pool: one thread, which runs a task while the test's thread waits. So
 * tasks run in the order in which they were submitted, and a test has one result. */
#include <pthread.h>
#include <string.h>

#include "testing/testing_internal.h"

#define TASKS_MAX 4096u /* submitted and not polled */

struct nj__test_workers {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct nj_task *running; /* the thread's; NULL: none */
    bool stops;
    /* Of the test's thread: */
    uint32_t n;
    struct nj_task *queue[TASKS_MAX]; /* the oldest first */
};

static void *run_tasks(void *workers)
{
    struct nj__test_workers *w = workers;

    pthread_mutex_lock(&w->lock);
    while (!w->stops) {
        struct nj_task *task = w->running;
        if (task) {
            task->ops->run(task);
            task->run_ns = task->wall_ns = 1;
            w->running = NULL;
            pthread_cond_signal(&w->changed);
        }
        while (!w->stops && !w->running)
            pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct nj__test_workers *nj__test_workers_new(void)
{
    struct nj__test_workers *w = nj__test_alloc(sizeof *w);

    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (pthread_create(&w->thread, NULL, run_tasks, w) == 0)
        return w;
    free(w);
    return NULL;
}

void nj__test_workers_free(struct nj__test_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stops = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static bool submit(void *workers, struct nj_task *task)
{
    struct nj__test_workers *w = workers;

    if (w->n == TASKS_MAX)
        return false;
    w->queue[w->n++] = task;
    return true;
}

static void flush(void *workers)
{
    (void)workers; /* poll() runs tasks */
}

static void run_on_thread(struct nj__test_workers *w, struct nj_task *task)
{
    pthread_mutex_lock(&w->lock);
    w->running = task;
    pthread_cond_broadcast(&w->changed);
    while (w->running)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void take(struct nj__test_workers *w, uint32_t i)
{
    w->n--;
    memmove(w->queue + i, w->queue + i + 1, (w->n - i) * sizeof w->queue[0]);
}

static uint32_t poll_done(void *workers, struct nj_task **tasks, uint32_t n)
{
    struct nj__test_workers *w = workers;
    uint32_t got = 0;

    while (got < n && w->n > 0) {
        struct nj_task *task = w->queue[0];
        take(w, 0);
        run_on_thread(w, task);
        tasks[got++] = task;
    }
    return got;
}

static bool withdraw(void *workers, struct nj_task *task)
{
    struct nj__test_workers *w = workers;

    for (uint32_t i = 0; i < w->n; i++)
        if (w->queue[i] == task) {
            take(w, i);
            return true;
        }
    return false;
}

struct nj_worker_ops nj__test_workers_ops(struct nj__test_workers *w)
{
    return (struct nj_worker_ops){
        .ctx = w, .submit = submit, .flush = flush, .poll = poll_done, .withdraw = withdraw};
}
