/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the calls of nightjar/wait.h, and waits for request bytes or response room. On a fiber
 * they park it; on a worker they block the thread (sched/worker_wait.h).
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "http/handlers/exchange_state.h"
#include "sched/worker_wait.h"

static int error_of(enum nj_wake_reason why)
{
    switch (why) {
    case NJ_WAKE_OK:
        return 0;
    case NJ_WAKE_TIMEOUT:
        return NJ_ERR_TIMEOUT;
    case NJ_WAKE_CANCELLED:
        return NJ_ERR_CANCELLED;
    case NJ_WAKE_WOULD_BLOCK:
        break;
    }
    return NJ_ERR_WOULD_BLOCK;
}

bool nj_must_not_block(void)
{
    return nj_noblock_is_set();
}

int nj__wait_for(struct nj_exchange *x, enum nj__waiting what)
{
    if (x->resp.on_worker || nj_must_not_block() || !nj_fiber_self()) {
        if (what == NJ__WAIT_BODY && x->req.on_body.fn) /* on_body reports further bytes */
            return NJ_ERR_WOULD_BLOCK;
        if (!x->resp.on_worker)
            nj_fiber_report_would_block();
        return NJ_ERR_WOULD_BLOCK;
    }
    x->waiting = (uint8_t)what;
    if (what == NJ__WAIT_BODY)
        nj__schedule_due_continue(x);
    enum nj_wake_reason why = nj_fiber_park(&x->waiter, NJ_NEVER);
    x->waiting = NJ__WAIT_NONE;
    x->waiter = (struct nj_waiter){0};
    return error_of(why);
}

int nj__report_cancelled(const struct nj_exchange *x)
{
    if (x->fiber && x->fiber == nj_fiber_self())
        nj_fiber_yield_if_ignoring_cancel();
    return NJ_ERR_CANCELLED;
}

static int refuse_to_block(void)
{
    nj_fiber_report_would_block();
    return NJ_ERR_WOULD_BLOCK;
}

static nj_ns deadline_in(uint64_t ns)
{
    nj_ns now = nj_fiber_now();
    return ns < NJ_NEVER - now ? now + ns : NJ_NEVER;
}

/* 0: no limit. */
static nj_ns time_limit(uint64_t timeout_ns)
{
    return timeout_ns ? timeout_ns : NJ_NEVER;
}

/* --- sleep ------------------------------------------------------------------------------------ */

/* On a shard configured to run everything inline, or a thread of the program. Only here and in
 * worker_wait.c these layers read a clock themselves, as no caller can pass the time. */
static int sleep_thread(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / NJ_SEC), (long)(ns % NJ_SEC)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return 0;
}

/* Waits on a worker for `n` descriptors, or for nothing else than a wake-up that is_over() knows.
 * `fds` has room for one more. Returns the number of ready descriptors, or 0: it is over. */
static int wait_on_worker(struct nj_worker_wait *w, struct pollfd *fds, unsigned n,
                          bool (*is_over)(const void *), const void *what, uint64_t ns)
{
    nj_ns deadline = ns == NJ_NEVER ? NJ_NEVER : nj_worker_wait_deadline(ns);

    for (int rc = 0;;) {
        if (rc > 0 || (is_over && is_over(what)))
            return rc;
        if (nj_worker_wait_is_cancelled(w))
            return NJ_ERR_CANCELLED;
        if (rc < 0)
            return rc == -ETIME ? NJ_ERR_TIMEOUT : rc == -ENOMEM ? NJ_ERR_MEMORY : NJ_ERR_INVALID;
        rc = nj_worker_wait_poll(w, fds, n, deadline);
    }
}

int nj_sleep(uint64_t ns)
{
    struct nj_worker_wait *w = nj_worker_wait_self();
    struct pollfd none[1];

    if (nj_must_not_block())
        return refuse_to_block();
    if (nj_fiber_self()) {
        enum nj_wake_reason why = nj_fiber_park(NULL, deadline_in(ns));
        return why == NJ_WAKE_TIMEOUT ? 0 : error_of(why);
    }
    if (!w)
        return sleep_thread(ns);
    int rc = wait_on_worker(w, none, 0, NULL, NULL, ns);
    return rc == NJ_ERR_TIMEOUT ? 0 : rc;
}

/* --- events ----------------------------------------------------------------------------------- */

/*
 * The state of an event: CLEAR, SET, or the address of who waits, a fiber or a worker. Whoever
 * exchanges such an address for SET signals it, and no longer touches the event: it may be gone.
 * Fibers and workers last as long as the server, so a late signal finds them, and at most ends
 * another wait too early, which checks its own condition and goes on.
 */
#define CLEAR     ((uintptr_t)0)
#define SET       ((uintptr_t)1)
#define IS_WORKER ((uintptr_t)2) /* added to the address of a worker */

static uintptr_t state_of(const struct nj_event *event)
{
    return __atomic_load_n(&event->state, __ATOMIC_ACQUIRE);
}

static bool is_set(const struct nj_event *event)
{
    return state_of(event) == SET;
}

/* False: the state is not `from`. */
static bool change(struct nj_event *event, uintptr_t from, uintptr_t to)
{
    return __atomic_compare_exchange_n(&event->state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* Whoever waits for an event, as its state names it. The state changes only when the event is set:
 * that counts, even if another thread has cleared it again. */
struct registration {
    const struct nj_event *event;
    uintptr_t me;
};

static bool has_been_set(const void *registration)
{
    const struct registration *r = registration;
    return state_of(r->event) != r->me;
}

static int park_until_set(const struct registration *r, uint64_t timeout_ns)
{
    nj_ns deadline = timeout_ns ? deadline_in(timeout_ns) : NJ_NEVER;
    enum nj_wake_reason why;

    do
        why = nj_fiber_park_for_signal(NJ_AWAIT_EVENT, deadline);
    while (why == NJ_WAKE_OK && !has_been_set(r));
    return error_of(why);
}

int nj_await(struct nj_event *event, uint64_t timeout_ns)
{
    struct nj_fiber *f = nj_fiber_self();
    struct nj_worker_wait *w = nj_worker_wait_self();
    uintptr_t me = f ? (uintptr_t)f : (uintptr_t)w | IS_WORKER;
    struct pollfd none[1];

    if (!event)
        return NJ_ERR_INVALID;
    if (is_set(event))
        return 0;
    if (nj_must_not_block() || (!f && !w))
        return refuse_to_block();
    if (!change(event, CLEAR, me))
        return is_set(event) ? 0 : NJ_ERR_INVALID;
    const struct registration r = {event, me};
    int rc = f ? park_until_set(&r, timeout_ns)
               : wait_on_worker(w, none, 0, has_been_set, &r, time_limit(timeout_ns));
    return change(event, me, CLEAR) ? rc : 0;
}

void nj_event_set(struct nj_event *event)
{
    if (!event)
        return;
    uintptr_t before = __atomic_exchange_n(&event->state, SET, __ATOMIC_ACQ_REL);
    if (before == CLEAR || before == SET)
        return;
    if (before & IS_WORKER)
        nj_worker_wait_wake((const struct nj_worker_wait *)(before & ~IS_WORKER));
    else
        nj_fiber_signal((struct nj_fiber *)before);
}

void nj_event_clear(struct nj_event *event)
{
    if (event)
        (void)change(event, SET, CLEAR);
}

bool nj_event_is_set(const struct nj_event *event)
{
    return event && is_set(event);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Most callers on a worker have few descriptors. */
#define FEW 16u

static int error_of_errno(int error)
{
    return error == ENOMEM || error == ENOSPC ? NJ_ERR_MEMORY : NJ_ERR_INVALID;
}

static void unwatch(const struct nj_wait_ops *ops, const struct pollfd *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            ops->unwatch(ops->ctx, fds[i].fd);
}

/* poll(2) ignores negative descriptors. */
static int watch(const struct nj_wait_ops *ops, const struct pollfd *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        int rc =
            fds[i].fd < 0 ? 0 : ops->watch(ops->ctx, fds[i].fd, fds[i].events, nj_fiber_self());
        if (rc == 0)
            continue;
        unwatch(ops, fds, i);
        return error_of_errno(rc);
    }
    return 0;
}

static int park_until_ready(struct pollfd *fds, unsigned n, uint64_t timeout_ns)
{
    const struct nj_wait_ops *ops = nj_fiber_wait_ops(nj_fiber_self());
    nj_ns deadline = timeout_ns ? deadline_in(timeout_ns) : NJ_NEVER;
    enum nj_wake_reason why = NJ_WAKE_OK;

    if (!ops->watch)
        return refuse_to_block();
    if (nj_fiber_report_cancelled())
        return NJ_ERR_CANCELLED;
    for (;;) {
        int rc = ops->poll(ops->ctx, fds, n);
        if (rc != 0)
            return rc > 0 ? rc : error_of_errno(-rc);
        if (why != NJ_WAKE_OK)
            return error_of(why);
        rc = watch(ops, fds, n);
        if (rc != 0)
            return rc;
        why = nj_fiber_park_for_signal(NJ_AWAIT_FD, deadline);
        unwatch(ops, fds, n);
        if (why == NJ_WAKE_CANCELLED)
            return NJ_ERR_CANCELLED;
    }
}

static int block_until_ready(struct nj_worker_wait *w, struct pollfd *fds, unsigned n,
                             uint64_t timeout_ns)
{
    struct pollfd few[FEW + 1];
    struct pollfd *copy = n <= FEW ? few : calloc((size_t)n + 1, sizeof *copy);

    if (!copy)
        return NJ_ERR_MEMORY;
    for (unsigned i = 0; i < n; i++)
        copy[i] = (struct pollfd){.fd = fds[i].fd, .events = fds[i].events};
    int rc = wait_on_worker(w, copy, n, NULL, NULL, time_limit(timeout_ns));
    for (unsigned i = 0; i < n; i++)
        fds[i].revents = rc > 0 ? copy[i].revents : 0;
    if (copy != few)
        free(copy);
    return rc;
}

int nj_await_fds(struct pollfd *fds, unsigned n, uint64_t timeout_ns)
{
    struct nj_worker_wait *w = nj_worker_wait_self();

    if (!fds && n > 0)
        return NJ_ERR_INVALID;
    if (nj_must_not_block() || (!nj_fiber_self() && !w))
        return refuse_to_block();
    return nj_fiber_self() ? park_until_ready(fds, n, timeout_ns)
                           : block_until_ready(w, fds, n, timeout_ns);
}

int nj_await_fd(int fd, short events, uint64_t timeout_ns)
{
    struct pollfd one = {.fd = fd, .events = events};
    int rc = fd < 0 ? NJ_ERR_INVALID : nj_await_fds(&one, 1, timeout_ns);

    if (rc <= 0)
        return rc;
    return one.revents & POLLNVAL ? NJ_ERR_INVALID : one.revents;
}
