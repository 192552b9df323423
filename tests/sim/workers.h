/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers of a simulated shard: a task runs in an instant, after its delay. */
#pragma once

#include "base/types.h"
#include "sched/worker_ops.h"

struct sim;

#define SIM_TASKS_MAX 256u

struct sim_workers {
    struct sim *sim;
    nj_ns delay;            /* until a task has run, at most */
    uint32_t queue;         /* tasks; up to SIM_TASKS_MAX */
    uint32_t refuse;        /* chance that a task is refused though there is room */
    uint32_t n_out, n_done; /* n_out: not polled yet */
    struct nj_task *done[SIM_TASKS_MAX];
};

struct nj_worker_ops nj_sim_workers_port(struct sim_workers *w);
/* The delay has passed. `errand` is the argument of the event. */
void nj_sim_workers_done(struct sim *sim, void *errand);
