/* SPDX-License-Identifier: BSD-3-Clause */
/* One lcore's strategy in virtual time, and jobs that record how they were run. */
#pragma once

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/ewyk_fiber_scheduler.h"

#define RIG_WORKER_MAX 64

struct rig {
    struct nj_ewyk *e;
    nj_ns now;
    bool workers_full;
    struct nj_task *at_worker[RIG_WORKER_MAX];
    unsigned n_at_worker;
    unsigned n_logged, n_started;
    char line[200]; /* the last one that was logged */
    struct nj_task_class non_blocking, either, blocking, os_blocking;
};

struct job {
    struct nj_task task;
    struct rig *rig;
    void (*does)(struct job *); /* NULL: no action */
    void *arg;
    unsigned n_run, n_rejected, n_ended;
    unsigned order; /* which one it was to start, from 1 */
    bool on_fiber, tagged;
    struct nj_waiter w;
    enum nj_wake_reason why;
};

static nj_ns rig_clock(void *ctx)
{
    return ((struct rig *)ctx)->now;
}

static bool rig_submit(void *ctx, struct nj_task *t)
{
    struct rig *r = ctx;

    if (r->workers_full || r->n_at_worker == RIG_WORKER_MAX)
        return false;
    r->at_worker[r->n_at_worker++] = t;
    return true;
}

static void rig_log(void *ctx, const char *line)
{
    struct rig *r = ctx;

    r->n_logged++;
    memcpy(r->line, line, strlen(line) + 1);
}

static void job_run(struct nj_task *t)
{
    struct job *j = nj_container_of(t, struct job, task);

    j->n_run++;
    j->order = ++j->rig->n_started;
    j->on_fiber = nj_fiber_self() != NULL;
    j->tagged = nj_noblock_is_set();
    if (j->does)
        j->does(j);
    j->n_ended++;
}

static void job_reject(struct nj_task *t)
{
    nj_container_of(t, struct job, task)->n_rejected++;
}

static const struct nj_task_ops job_ops = {.run = job_run, .reject = job_reject};

static struct nj_ewyk_config rig_config(struct rig *r, uint32_t n_fibers, uint32_t n_queue)
{
    return (struct nj_ewyk_config){.n_fibers_max = n_fibers,
                                   .n_queue_max = n_queue,
                                   .now = r->now,
                                   .clock = rig_clock,
                                   .submit = rig_submit,
                                   .log = rig_log,
                                   .ctx = r};
}

static struct rig *rig_from(struct rig *r, const struct nj_ewyk_config *config)
{
    nj_task_class_init(&r->non_blocking, "/non-blocking", NJ_NON_BLOCKING);
    nj_task_class_init(&r->either, "/either", NJ_EITHER);
    nj_task_class_init(&r->blocking, "/blocking", NJ_BLOCKING);
    nj_task_class_init(&r->os_blocking, "/os-blocking", NJ_OS_BLOCKING);
    r->e = nj_ewyk_new(config);
    cr_assert_not_null(r->e);
    return r;
}

static inline struct rig *rig_new(uint32_t n_fibers, uint32_t n_queue)
{
    struct rig *r = calloc(1, sizeof *r);

    r->now = 7 * NJ_SEC;
    struct nj_ewyk_config config = rig_config(r, n_fibers, n_queue);
    return rig_from(r, &config);
}

/* Run until no task is left, then free the rig. */
static inline void rig_free(struct rig *r)
{
    nj_ewyk_stop(r->e);
    while (!nj_ewyk_is_idle(r->e)) {
        nj_ewyk_cancel_fibers(r->e);
        nj_ewyk_run(r->e, r->now, 100);
    }
    nj_ewyk_free(r->e);
    free(r);
}

static inline void job_init(struct job *j, struct rig *r, struct nj_task_class *c,
                            void (*does)(struct job *))
{
    *j = (struct job){.task = {.ops = &job_ops, .class_of = c}, .rig = r, .does = does};
    nj_list_init(&j->task.node);
}

static inline enum nj_run_mode job_offer(struct job *j, struct rig *r, struct nj_task_class *c,
                                         void (*does)(struct job *))
{
    job_init(j, r, c, does);
    return nj_ewyk_offer(r->e, &j->task);
}

/* Bodies of jobs. */
static inline void waits(struct job *j)
{
    j->why = nj_fiber_park(&j->w, NJ_NEVER);
}

static inline uint64_t consumed(const struct nj_task_class *c)
{
    uint64_t n = 0;
    for (int m = 0; m < NJ_N_MODES; m++)
        n += c->n[m];
    return n;
}
