/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits of a task in its thread, which may block: a worker. Each thread has an eventfd(2), which is
 * one more descriptor of each ppoll(2). Other threads write to it when an event of the task is set
 * or the task is cancelled. It stays readable until the thread waits, so no wake-up is lost. A late
 * one may wake the next task of the thread: each wait checks its own condition and waits again.
 */
#pragma once

#include <stdbool.h>

#include "base/types.h"
#include "sched/task.h"

struct pollfd; /* of <poll.h> */

struct nj_worker_wait;

/* Time and waits of a thread in place of the system's: of tests in virtual time. */
struct nj_worker_wait_ops {
    nj_ns (*now)(struct nj_worker_wait *w);
    /* As nj_worker_wait_poll(). The last of `n` is the eventfd, which it does not read. */
    int (*poll)(struct nj_worker_wait *w, struct pollfd *fds, unsigned n, nj_ns deadline);
};

struct nj_worker_wait {
    const struct nj_worker_wait_ops *ops; /* NULL: the system's */
    int fd;                               /* eventfd */
    const struct nj_task *task;           /* which the thread runs; NULL: none. Of the thread */
};

/* False: no descriptor; errno has the reason. Keeps `ops`. */
bool nj_worker_wait_open(struct nj_worker_wait *w);
/* When no other thread can wake it any more. Also after a failed open. */
void nj_worker_wait_close(struct nj_worker_wait *w);

/* Gives it to the calling thread, until it calls this with NULL. */
void nj_worker_wait_bind(struct nj_worker_wait *w);
/* The calling thread begins and ends a task. In between nj_task_cancel() wakes it. */
void nj_worker_wait_begin_task(struct nj_task *task);
void nj_worker_wait_end_task(struct nj_task *task);

/* That of the calling thread, while it runs a task; else NULL. */
struct nj_worker_wait *nj_worker_wait_self(void);
/* Was the task that the thread runs cancelled? */
bool nj_worker_wait_is_cancelled(const struct nj_worker_wait *w);

/* The time in `ns` nanoseconds, for nj_worker_wait_poll(). */
nj_ns nj_worker_wait_deadline(nj_ns ns);
/* Waits until a descriptor is ready, a wake-up, a signal, or `deadline` (NJ_NEVER: none). `fds` has
 * room for one more than `n`. Returns poll()'s result for these, 0 without any, or -ETIME: the
 * deadline has passed; or another negative errno. The thread only. */
int nj_worker_wait_poll(struct nj_worker_wait *w, struct pollfd *fds, unsigned n, nj_ns deadline);
/* Wakes the thread from its wait, or ends its next one at once. Does not block. Any thread. */
void nj_worker_wait_wake(const struct nj_worker_wait *w);

/* Cancels a task: it does not run if no worker has started it, and its waits end. The task must not
 * have been returned. Its lcore. */
void nj_task_cancel(struct nj_task *task);
