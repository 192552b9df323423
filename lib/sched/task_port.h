/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam between a shard and the threads that run its OS_BLOCKING tasks: workers in the server,
 * whatever a test likes elsewhere. One lcore's; nothing in here waits.
 */
#ifndef NJ_SCHED_TASK_PORT_H
#define NJ_SCHED_TASK_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/task.h"

struct nj_task_port {
    void *ctx;
    /*
     * Hand a task over. True: it belongs to the port until poll() gives it back or its reject() was
     * called. ops->run is called on another thread, and must not free the task there: it comes home
     * first. Where too many wait, one that was submitted before may be displaced by it and rejected
     * in here. False: there is no room, the task stays with the caller.
     */
    bool (*submit)(void *ctx, struct nj_task *task);
    /* Once per step, after the last submit: wake those threads that sleep and have work now. */
    void (*flush)(void *ctx);
    /*
     * Take home up to `n` tasks that ran; their run_ns says how much CPU time they took. Tasks that
     * will never run, as the port is closed, are rejected in here: their ops->reject is called and
     * they do not count.
     */
    uint32_t (*poll)(void *ctx, struct nj_task **tasks, uint32_t n);
    /*
     * Nobody wants this task any more, which was submitted and is not home. True: no worker had it;
     * it is the caller's again, and is neither run, rejected nor returned by poll(). False: a
     * worker has it. It comes home by poll(), and does not run if the worker had not begun it.
     * NULL: the port cannot take tasks back.
     */
    bool (*withdraw)(void *ctx, struct nj_task *task);
    /*
     * Another client wants this task, too, which was submitted and is not home. True: it waits with
     * the tasks of this client from now on, as it comes earlier there, and task->client says so.
     * NULL: the port has no turns.
     */
    bool (*join)(void *ctx, struct nj_task *task, const void *client);
};

#endif
