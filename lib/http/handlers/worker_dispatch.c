/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends exchanges to blocking worker threads and takes them back. A worker gets the request with
 * its complete body in read-only blocks, and returns the complete response in malloc() memory; only
 * the worker touches either meanwhile.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_state.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "telem/counters_http.h"

/* Finishes an exchange that was not sent; poll() returns its task with a CPU time of 0. */
static void finish_undispatched(struct nj_exchange *x)
{
    nj__handler_done(x);
    nj_list_push_back(&x->set->undispatched, &x->task.node);
}

/* True if the task may be submitted with its declared type: a route that was only moved to the
 * workers must not be rejected when they are full. Strategies that move no routes have no
 * `call`. */
static bool may_requeue(const struct nj_exchange *x)
{
    return x->set->config.call && x->task.class_of->declared != NJ_OS_BLOCKING &&
           !x->task.as_declared && nj__stream_is_open(x);
}

bool nj__dispatch_requeue_on_lcore(struct nj_exchange *x)
{
    if (!may_requeue(x))
        return false;
    nj_count(nj__counters(x->set), NJ_C_task_inline);
    nj__clear_needs_stack(x);
    x->task.as_declared = true;
    x->task.displaced = false;
    x->with_workers = false;
    x->state = NJ__EXCHANGE_CREATED;
    x->txn->set->events->requeue(x->txn);
    return true;
}

/* True if `n_bytes` of a worker's response fit in the total, and leave the other clients their
 * part. */
static bool may_reserve(const struct nj_exchange *x, uint32_t n_bytes)
{
    const struct nj_exchanges *set = x->set;
    uint64_t has = x->txn->requester->n_held;

    if (set->n_held + n_bytes > set->n_held_max)
        return false;
    if (has == 0 ||
        has + n_bytes <= (set->n_held_max - set->n_held - n_bytes) * NJ_CLIENT_SHARE_FACTOR)
        return true;
    if (!may_requeue(x))
        nj__report_over_limit(x, NJ_C_response_limit);
    return false;
}

/* Submits the task to the workers. False: they are full, or no memory for their response is
 * left. */
static bool dispatch(struct nj_exchange *x)
{
    const struct nj_worker_ops *port = x->set->config.workers;

    if (x->req.too_large) {
        nj__exchange_fail(x, 413);
        finish_undispatched(x);
        return true;
    }
    enum nj__exchange_state before = x->state;
    uint32_t longest_response = x->set->longest_response[x->route];
    if (!may_reserve(x, longest_response))
        return false;
    nj__set_held_response_bytes(x, longest_response);
    x->state = NJ__EXCHANGE_ON_WORKER;
    x->resp.on_worker = true;
    x->resp.blocks = NULL;
    x->set->n_on_worker++;
    if (port->submit(port->ctx, &x->task)) {
        nj__clear_needs_stack(x); /* read by the lcore only */
        x->set->unflushed = true;
        return true;
    }
    nj__dispatch_returned(x);
    x->state = before;
    return false;
}

void nj__dispatch_returned(struct nj_exchange *x)
{
    NJ_ASSERT(x->state == NJ__EXCHANGE_ON_WORKER && x->set->n_on_worker > 0);
    x->set->n_on_worker--;
    nj_byte_queue_clear(&x->req.used);
    nj__set_held_response_bytes(x, x->resp.out.n_bytes);
    x->resp.on_worker = false;
    nj_store_relaxed(&x->resp.owner, nj_this_thread());
    x->resp.blocks = x->set->blocks;
    if (x->resp.is_deferred) /* it was deferred on a worker, where no callback can run */
        x->resp.broken = true;
    x->resp.is_deferred = false;
    if (x->resp.needs_lcore) /* the route stays on the lcore from now on */
        x->task.class_of->pinned = true;
}

void nj__dispatch_when_body_complete(struct nj_exchange *x)
{
    if (!nj__stream_is_open(x) || x->reset) {
        finish_undispatched(x);
    } else if (x->body_overdue && !x->req.complete) {
        nj__exchange_fail(x, 408);
        finish_undispatched(x);
    } else if ((x->req.complete || x->req.too_large) && !dispatch(x) &&
               !nj__dispatch_requeue_on_lcore(x)) {
        x->task.ops->reject(&x->task);
    }
}

static bool submit(void *set, struct nj_task *task)
{
    struct nj_exchange *x = nj__exchange_of_task(task);

    (void)set;
    if (!nj__stream_is_open(x) || x->reset) {
        x->with_workers = true;
        finish_undispatched(x);
        return true;
    }
    if (!x->req.complete && !x->req.too_large) {
        x->state = NJ__EXCHANGE_AWAITING_BODY;
        x->body_buffered = true;
        nj__clear_needs_stack(x);
        x->n_window_credit +=
            x->req.body.n_bytes; /* buffered here, so return the flow-control credit */
        nj__mark_dirty(x);
    } else if (!dispatch(x)) {
        return nj__dispatch_requeue_on_lcore(x);
    }
    x->with_workers = true;
    return true;
}

/* Tasks sent when their body is complete are submitted long after the strategy's own flush. */
static void flush(void *ctx)
{
    struct nj_exchanges *set = ctx;

    if (!set->unflushed)
        return;
    set->unflushed = false;
    set->config.workers->flush(set->config.workers->ctx);
}

static void leave_workers(struct nj_exchange *x)
{
    x->with_workers = false;
    nj__mark_dirty(x);
}

bool nj__dispatch_withdraw(struct nj_exchange *x)
{
    const struct nj_worker_ops *port = x->set->config.workers;

    if (!port->withdraw || !port->withdraw(port->ctx, &x->task))
        return false;
    nj_count(nj__counters(x->set), NJ_C_task_withdrawn);
    nj__dispatch_returned(x);
    nj__handler_done(x);
    leave_workers(x);
    return true;
}

/* Updates the expected response length of a route: a maximum that decays with each shorter
 * response. Tasks that did not run, or whose stream had closed, are ignored. */
static void update_longest(const struct nj_exchange *x)
{
    uint32_t *longest_response = &x->set->longest_response[x->route], n = x->resp.out.n_bytes;

    if (n < *longest_response && !nj__stream_is_open(x))
        return;
    uint32_t faded = *longest_response - *longest_response / NJ_WORKER_LONGEST_FORGET;
    *longest_response = n > faded ? n : faded;
}

static uint32_t poll(void *ctx, struct nj_task **tasks, uint32_t n_max)
{
    struct nj_exchanges *set = ctx;
    const struct nj_worker_ops *port = set->config.workers;
    struct nj_list *node;

    uint32_t n_stayed = 0;

    for (; n_stayed < n_max && (node = nj_list_pop(&set->undispatched)); n_stayed++) {
        tasks[n_stayed] = nj_container_of(node, struct nj_task, node);
        leave_workers(nj__exchange_of_task(tasks[n_stayed]));
    }
    uint32_t n = n_stayed, n_back = port->poll(port->ctx, tasks + n_stayed, n_max - n_stayed);
    for (uint32_t i = 0; i < n_back; i++) {
        struct nj_task *task = tasks[n_stayed + i];
        if (nj__call_returned(task)) /* its CPU time is not a hold of the core */
            continue;
        struct nj_exchange *x = nj__exchange_of_task(task);
        tasks[n++] = task;
        nj__dispatch_returned(x);
        update_longest(x);
        nj__handler_done(x);
        leave_workers(x);
    }
    return n;
}

struct nj_worker_ops nj_exchanges_full_body_worker_ops(struct nj_exchanges *set)
{
    return (struct nj_worker_ops){.ctx = set, .submit = submit, .flush = flush, .poll = poll};
}
