/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks for a pool of workers, and a shard's thread that sends them and receives them back. Waits
 * are polls, and the test's time-out is their bound. */
#pragma once

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "threads/worker_pool.h"

#define SHARDS   2
#define FOR_EVER 60000u /* ms: longer than any test takes */

/* A job that a shard sends, and reads when it has returned. It is plain memory without atomics, so
 * that ThreadSanitizer reports it if the rings do not order the accesses. */
struct job {
    struct nj_task task;
    uint32_t n_run, n_home, n_rejected, n_withdrawn;
    uint32_t *n_displaced; /* counts it, when it is rejected for another's sake */
    _Atomic bool started;  /* the one thing to be looked at while it runs */
    bool cancelled;        /* the shard withdrew it, in time or not */
    sem_t *gate;           /* wait for it in run */
    int err;               /* the value that it found, and the one that it leaves */
    int rounding;
};

static inline struct job *job_of(struct nj_task *t)
{
    return nj_container_of(t, struct job, task);
}

static inline void run(struct nj_task *t)
{
    struct job *j = job_of(t);

    atomic_store(&j->started, true);
    while (j->gate && sem_wait(j->gate) != 0)
        ;
    j->n_run++;
}

static inline void reject(struct nj_task *t)
{
    job_of(t)->n_rejected++;
    if (t->displaced)
        ++*job_of(t)->n_displaced;
}

static const struct nj_task_ops ops = {run, reject};

static inline struct nj_worker_pool *start(uint32_t n_workers, uint32_t tasks_max)
{
    struct nj_worker_pool *w = NULL;
    struct nj_worker_pool_config c = {
        .n_shards = SHARDS,
        .kind = {[NJ_WORKER_HANDLERS] = {.n_max = n_workers, .tasks_max = tasks_max}}};
    cr_assert_eq(nj_worker_pool_start(&c, &w), 0);
    return w;
}

static inline void finish(struct nj_worker_pool *w)
{
    cr_assert_eq(nj_worker_pool_stop(w, FOR_EVER), 0);
    nj_worker_pool_free(w);
}

static inline struct job *new_jobs(uint32_t n, sem_t *gate)
{
    struct job *jobs = calloc(n, sizeof *jobs);
    cr_assert(jobs);
    for (uint32_t i = 0; i < n; i++) {
        jobs[i].task.ops = &ops;
        jobs[i].gate = gate;
        nj_list_init(&jobs[i].task.node);
    }
    return jobs;
}

static inline uint32_t take_home(struct nj_worker_ops *port, uint32_t n)
{
    struct nj_task *home[16];

    n = port->poll(port->ctx, home, n < NJ_ARRAY_LEN(home) ? n : NJ_ARRAY_LEN(home));
    for (uint32_t i = 0; i < n; i++)
        job_of(home[i])->n_home++;
    return n;
}

static inline void await_home(struct nj_worker_ops *port, uint32_t n)
{
    while (n > 0) {
        uint32_t n_now = take_home(port, n);
        n -= n_now;
        if (n_now == 0)
            sched_yield();
    }
}

static inline void send(struct nj_worker_ops *port, struct job *j)
{
    cr_assert(port->submit(port->ctx, &j->task));
    port->flush(port->ctx);
}

static inline void await_start(struct job *j)
{
    while (!atomic_load(&j->started))
        sched_yield();
}
