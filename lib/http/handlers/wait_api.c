/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements blocking waits for handlers on fibers: nj_sleep(), nj_await() and waits for request
 * bytes or response room. On a thread that may block, nj_sleep() blocks the thread. */
#include <errno.h>
#include <time.h>

#include "http/handlers/exchange_state.h"

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

/* Sleeps on a thread that may block: a worker, or a shard configured to run everything inline. Only
 * here lib/http reads a clock itself, as no caller can pass the time. */
static int sleep_thread(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / NJ_SEC), (long)(ns % NJ_SEC)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return 0;
}

int nj_sleep(uint64_t ns)
{
    if (nj_must_not_block())
        return refuse_to_block();
    if (!nj_fiber_self())
        return sleep_thread(ns);
    enum nj_wake_reason why = nj_fiber_park(NULL, deadline_in(ns));
    return why == NJ_WAKE_TIMEOUT ? 0 : error_of(why);
}

int nj_await(struct nj_event *event, uint64_t timeout_ns)
{
    struct nj_waiter w;

    if (event->set)
        return 0;
    if (nj_must_not_block() || !nj_fiber_self())
        return refuse_to_block();
    if (event->waiter)
        return NJ_ERR_INVALID;
    event->waiter = &w;
    enum nj_wake_reason why = nj_fiber_park(&w, timeout_ns ? deadline_in(timeout_ns) : NJ_NEVER);
    event->waiter = NULL;
    return error_of(why);
}

void nj_event_set(struct nj_event *event)
{
    const struct nj_waiter *w = event->waiter;

    event->set = true;
    if (w)
        nj_fiber_wake(*w, NJ_WAKE_OK);
}
