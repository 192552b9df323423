/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between a shard and the threads that run its OS_BLOCKING tasks: the worker pool, or
 * a stand-in of a test. One lcore calls these functions; none of them blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sched/task.h"

struct nj_worker_ops {
    void *ctx;
    /*
     * Submits a task. True: the task belongs to the workers until poll() returns it or its reject()
     * is called. ops->run is called on another thread and must not free the task. When the queue is
     * full, an earlier task may be displaced and rejected during this call. False: no room; the
     * task stays with the caller.
     */
    bool (*submit)(void *ctx, struct nj_task *task);
    /* Wakes sleeping threads that have work. Once per step, after the last submit. */
    void (*flush)(void *ctx);
    /*
     * Returns up to `n` tasks that have run; run_ns is their CPU time. After a stop, tasks that
     * will never run are rejected during this call (ops->reject) and not returned.
     */
    uint32_t (*poll)(void *ctx, struct nj_task **tasks, uint32_t n);
    /*
     * Cancels a submitted task that poll() has not returned. True: no worker had it; it belongs to
     * the caller again, and is not run, rejected or returned. False: a worker has it; poll()
     * returns it, and it does not run if the worker had not started it; else its waits end. NULL:
     * not supported.
     */
    bool (*withdraw)(void *ctx, struct nj_task *task);
    /*
     * Another client also waits for a submitted task that poll() has not returned. True: the task
     * was moved to the queue of this client, where it runs earlier, and task->client was updated.
     * NULL: the port has no queues by client.
     */
    bool (*join)(void *ctx, struct nj_task *task, const void *client);
};
