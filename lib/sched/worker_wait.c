/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleep and wake-up of a worker by an eventfd(2).
 *
 * Cancellation: the worker stores itself in task->worker and then reads task->cancelled, before
 * each wait; the lcore stores the latter and then reads the former. All four are sequentially
 * consistent (Dekker), so the worker reads true, or the lcore finds the worker and wakes it.
 */
#include "sched/worker_wait.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sched/fiber_internal.h"

bool nj_worker_wait_open(struct nj_worker_wait *w)
{
    *w = (struct nj_worker_wait){.ops = w->ops, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return w->fd >= 0;
}

void nj_worker_wait_close(struct nj_worker_wait *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

void nj_worker_wait_bind(struct nj_worker_wait *w)
{
    nj__current.worker = w;
}

void nj_worker_wait_begin_task(struct nj_task *task)
{
    nj__current.worker->task = task;
    atomic_store(&task->worker, nj__current.worker);
}

void nj_worker_wait_end_task(struct nj_task *task)
{
    atomic_store(&task->worker, NULL);
    nj__current.worker->task = NULL;
}

struct nj_worker_wait *nj_worker_wait_self(void)
{
    struct nj_worker_wait *w = nj__current.worker;
    return w && w->task ? w : NULL;
}

bool nj_worker_wait_is_cancelled(const struct nj_worker_wait *w)
{
    return atomic_load(&w->task->cancelled);
}

void nj_worker_wait_wake(const struct nj_worker_wait *w)
{
    const uint64_t one = 1;
    (void)!write(w->fd, &one, sizeof one); /* EAGAIN: readable anyway */
}

void nj_task_cancel(struct nj_task *task)
{
    atomic_store(&task->cancelled, true);
    const struct nj_worker_wait *w = atomic_load(&task->worker);
    if (w)
        nj_worker_wait_wake(w);
}

static nj_ns system_now(struct nj_worker_wait *w)
{
    struct timespec ts;

    (void)w;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (nj_ns)ts.tv_sec * NJ_SEC + (nj_ns)ts.tv_nsec;
}

static int system_poll(struct nj_worker_wait *w, struct pollfd *fds, unsigned n, nj_ns deadline)
{
    nj_ns now = deadline == NJ_NEVER ? 0 : system_now(w);
    nj_ns left = deadline > now ? deadline - now : 0;
    struct timespec ts = {(time_t)(left / NJ_SEC), (long)(left % NJ_SEC)};

    int n_ready = ppoll(fds, n, deadline == NJ_NEVER ? NULL : &ts, NULL);
    if (n_ready < 0)
        return errno == EINTR ? 0 : -errno;
    return n_ready == 0 && left == 0 ? -ETIME : n_ready;
}

static const struct nj_worker_wait_ops *ops_of(const struct nj_worker_wait *w)
{
    static const struct nj_worker_wait_ops of_system = {system_now, system_poll};
    return w->ops ? w->ops : &of_system;
}

nj_ns nj_worker_wait_deadline(nj_ns ns)
{
    struct nj_worker_wait *w = nj__current.worker;
    nj_ns now = ops_of(w)->now(w);
    return ns < NJ_NEVER - now ? now + ns : NJ_NEVER;
}

int nj_worker_wait_poll(struct nj_worker_wait *w, struct pollfd *fds, unsigned n, nj_ns deadline)
{
    uint64_t n_wakes;

    fds[n] = (struct pollfd){.fd = w->fd, .events = POLLIN};
    int n_ready = ops_of(w)->poll(w, fds, n + 1, deadline);
    if (n_ready > 0 && fds[n].revents) {
        (void)!read(w->fd, &n_wakes, sizeof n_wakes);
        return n_ready - 1;
    }
    return n_ready;
}
