/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reserved threads: each waits on its own seat, so that a task can be handed to one of them in a
 * bounded number of instructions.
 *
 * At first no thread is reserved. A try_execute() that finds none requests one, and fails. Idle
 * threads check nj_reserved_is_wanted() and call nj_reserved_serve().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "sched/task.h"

/* The most seats. */
#define NJ_RESERVED_MAX 256u

struct nj_reserved_config {
    uint32_t capacity;         /* most threads reserved and wanted; 0: try_execute() always fails */
    uint32_t n_min;            /* threads that stay reserved however long they wait */
    nj_ns idle_ns;             /* the others leave after this time; or NJ_NEVER */
    void (*wanted)(void *ctx); /* nj_reserved_is_wanted() became true; must not block; or NULL */
    /* Called by each thread after it has taken a seat and before it sleeps. True: the thread is
     * needed elsewhere and leaves. Must not block; or NULL */
    bool (*is_needed)(void *ctx);
    void *ctx;
};

struct nj_reserved;

/* NULL: no memory, or capacity exceeds NJ_RESERVED_MAX. */
struct nj_reserved *nj_reserved_new(const struct nj_reserved_config *config);
/* After nj_reserved_stop(), when all threads have returned from nj_reserved_serve(). */
void nj_reserved_free(struct nj_reserved *r);

/* True: a waiting thread has the task and starts it without further waiting. False: the task will
 * not run. Never blocks, queues, allocates or yields. Any thread. */
bool nj_reserved_try_execute(struct nj_reserved *r, struct nj_task *task);

/* Is another reserved thread wanted? Any thread. */
bool nj_reserved_is_wanted(const struct nj_reserved *r);
/* Makes the calling thread reserved, if one is wanted: it runs the tasks that it is given. Returns
 * when enough others are reserved, after idle_ns, when the thread is needed elsewhere, or after a
 * stop. True: because of a nj_reserved_unreserve_one(). */
bool nj_reserved_serve(struct nj_reserved *r);

/* Makes one waiting thread return from nj_reserved_serve(). False: none waits; a thread that starts
 * to wait later calls is_needed() first. Any thread. */
bool nj_reserved_unreserve_one(struct nj_reserved *r);

/* Later calls of try_execute() fail, and waiting threads return. Accepted tasks run. Any thread. */
void nj_reserved_stop(struct nj_reserved *r);

/* The numbers of threads that are reserved (or were just given a task) and wanted. Any thread. */
void nj_reserved_count_and_wanted(const struct nj_reserved *r, uint32_t *n_reserved,
                                  uint32_t *n_wanted);
