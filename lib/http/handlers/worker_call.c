/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements nj_call_on_worker(): a function of a handler that runs as a task of its own, by the
 * rules of the handler's client and route, while the handler's fiber is parked.
 *
 * The task is on the stack of the fiber, which waits until the workers have returned it, even if
 * the fiber is cancelled.
 */
#include "base/assert.h"
#include "http/handlers/exchange_state.h"
#include "sched/ewyk_fiber_scheduler.h"

struct call {
    struct nj_task task;
    void (*fn)(void *arg);
    void *arg;
    struct nj_exchanges *set;
    struct nj_waiter waiter;
    bool has_run; /* written by the worker */
    bool is_back; /* from the workers */
    int rc;       /* then: what nj_call_on_worker() returns */
};

static struct call *call_of(struct nj_task *task)
{
    return nj_container_of(task, struct call, task);
}

/* On the worker. */
static void run(struct nj_task *task)
{
    struct call *c = call_of(task);

    c->fn(c->arg);
    c->has_run = true;
}

static void come_back(struct call *c, int rc)
{
    NJ_ASSERT(c->set->n_calls > 0 && !c->is_back);
    c->set->n_calls--;
    c->is_back = true;
    c->rc = rc;
    nj_fiber_wake(c->waiter, NJ_WAKE_OK); /* no effect if it was cancelled and is about to look */
}

/* Another client's task displaced it, or the workers stop. */
static void reject(struct nj_task *task)
{
    come_back(call_of(task), task->displaced ? NJ_ERR_MEMORY : NJ_ERR_CANCELLED);
}

static const struct nj_task_ops call_ops = {run, reject};

bool nj__call_returned(struct nj_task *task)
{
    if (task->ops != &call_ops)
        return false;
    struct call *c = call_of(task);
    come_back(c, c->has_run ? 0 : NJ_ERR_CANCELLED);
    return true;
}

/* Parks until the task is back. */
static int wait_until_back(struct call *c, const struct nj_worker_ops *port)
{
    bool cancelled = nj_fiber_park(&c->waiter, NJ_NEVER) == NJ_WAKE_CANCELLED;

    if (cancelled && !c->is_back && port->withdraw && port->withdraw(port->ctx, &c->task))
        come_back(c, NJ_ERR_CANCELLED);
    while (!c->is_back)
        nj_fiber_park_uncancelled(&c->waiter);
    return c->rc;
}

static int call_on_worker(struct nj_exchange *x, void (*fn)(void *arg), void *arg)
{
    const struct nj_worker_ops *port = x->set->config.workers;
    struct call c = {
        .task = {.ops = &call_ops, .class_of = x->task.class_of, .client = x->task.client},
        .fn = fn,
        .arg = arg,
        .set = x->set,
    };

    x->task.class_of->pinned = true; /* the handler itself is to stay: workers get its calls */
    if (nj_fiber_report_cancelled())
        return NJ_ERR_CANCELLED;
    nj_list_init(&c.task.node);
    if (!port->submit || !port->submit(port->ctx, &c.task))
        return NJ_ERR_MEMORY;
    x->set->n_calls++;
    x->set->unflushed = true;
    return wait_until_back(&c, port);
}

int nj_call_on_worker(void (*fn)(void *arg), void *arg)
{
    struct nj_task *task = nj_ewyk_running_task();

    if (nj_must_not_block()) {
        nj_fiber_report_would_block();
        return NJ_ERR_WOULD_BLOCK;
    }
    if (task)
        return call_on_worker(nj__exchange_of_task(task), fn, arg);
    fn(arg);
    return 0;
}

uint32_t nj_exchanges_n_calls(const struct nj_exchanges *set)
{
    return set->n_calls;
}
