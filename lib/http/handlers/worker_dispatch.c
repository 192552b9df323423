/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends exchanges to blocking worker threads and takes them back. A worker gets the request with
 * its complete body in read-only blocks, and returns the complete response in malloc() memory; only
 * the worker touches either meanwhile.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_internal.h"
#include "sched/ewyk.h"
#include "telem/counters.h"

/* Finishes an exchange that was not sent; poll() returns its task with run_ns 0. */
static void stay(struct nj_exchange *x)
{
    nj__leave(x);
    nj_list_push_back(&x->set->home, &x->task.node);
}

void nj__errand_holds(struct nj_exchange *x, uint32_t n_bytes)
{
    uint64_t more = (uint64_t)n_bytes - x->n_held; /* modulo 2^64 */

    if (more == 0)
        return;
    x->set->n_held += more;
    x->txn->requester->n_held += more;
    x->n_held = n_bytes;
}

/* True if the task may be submitted with its declared type: a route that was only moved to the
 * workers must not be rejected when they are full. Strategies that move no routes have no
 * `call`. */
static bool may_begin_again(const struct nj_exchange *x)
{
    return x->set->config.call && x->task.class_of->declared != NJ_OS_BLOCKING &&
           !x->task.as_declared && nj__is_open(x);
}

bool nj__errand_again(struct nj_exchange *x)
{
    if (!may_begin_again(x))
        return false;
    nj_count(nj__counters(x->set), NJ_C_task_again);
    nj__off_stack(x);
    x->task.as_declared = true;
    x->task.displaced = false;
    x->with_port = false;
    x->state = NJ__ASKED;
    x->txn->set->events->again(x->txn);
    return true;
}

/* True if `n_bytes` of a worker's response fit in the total, and leave the other clients their
 * part. */
static bool may_hold(const struct nj_exchange *x, uint32_t n_bytes)
{
    const struct nj_exchanges *set = x->set;
    uint64_t has = x->txn->requester->n_held;

    if (set->n_held + n_bytes > set->n_held_max)
        return false;
    if (has == 0 || has + n_bytes <= (set->n_held_max - set->n_held - n_bytes) * NJ_CLIENT_PART)
        return true;
    if (!may_begin_again(x))
        nj__hoards(x, NJ_C_response_hoard);
    return false;
}

/* Submits the task to the workers. False: they are full, or no memory for their response is
 * left. */
static bool go(struct nj_exchange *x)
{
    const struct nj_task_port *port = x->set->config.workers;

    if (x->req.too_large) {
        nj__answer_error(x, 413);
        stay(x);
        return true;
    }
    enum nj__exchange_state before = x->state;
    uint32_t longest = x->set->longest[x->route];
    if (!may_hold(x, longest))
        return false;
    nj__errand_holds(x, longest);
    x->state = NJ__AWAY;
    x->resp.on_worker = true;
    x->resp.blocks = NULL;
    x->set->n_away++;
    if (port->submit(port->ctx, &x->task)) {
        nj__off_stack(x); /* read by the lcore only */
        x->set->unflushed = true;
        return true;
    }
    nj__errand_home(x);
    x->state = before;
    return false;
}

void nj__errand_home(struct nj_exchange *x)
{
    NJ_ASSERT(x->state == NJ__AWAY && x->set->n_away > 0);
    x->set->n_away--;
    nj_bytes_clear(&x->req.used);
    nj__errand_holds(x, x->resp.out.n_bytes);
    x->resp.on_worker = false;
    x->resp.blocks = x->set->blocks;
    if (x->resp.kept) /* it was deferred on a worker, where no callback can run */
        x->resp.broken = true;
    x->resp.kept = false;
    if (x->resp.homesick) /* the route stays on the lcore from now on */
        x->task.class_of->pinned = true;
}

void nj__errand_settle(struct nj_exchange *x)
{
    if (!nj__is_open(x) || x->reset) {
        stay(x);
    } else if (x->late && !x->req.complete) {
        nj__answer_error(x, 408);
        stay(x);
    } else if ((x->req.complete || x->req.too_large) && !go(x) && !nj__errand_again(x)) {
        x->task.ops->reject(&x->task);
    }
}

static bool submit(void *set, struct nj_task *task)
{
    struct nj_exchange *x = nj__of_task(task);

    (void)set;
    if (!nj__is_open(x) || x->reset) {
        x->with_port = true;
        stay(x);
        return true;
    }
    if (!x->req.complete && !x->req.too_large) {
        x->state = NJ__PACKING;
        x->packed = true;
        nj__off_stack(x);
        x->n_done += x->req.body.n_bytes; /* buffered here, so return the flow-control credit */
        nj__mark(x);
    } else if (!go(x)) {
        return nj__errand_again(x);
    }
    x->with_port = true;
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

static void let_go(struct nj_exchange *x)
{
    x->with_port = false;
    nj__mark(x);
}

bool nj__errand_withdraw(struct nj_exchange *x)
{
    const struct nj_task_port *port = x->set->config.workers;

    if (!port->withdraw || !port->withdraw(port->ctx, &x->task))
        return false;
    nj_count(nj__counters(x->set), NJ_C_task_withdrawn);
    nj__errand_home(x);
    nj__leave(x);
    let_go(x);
    return true;
}

/* Updates the expected response length of a route: a maximum that decays with each shorter
 * response. Tasks that did not run, or whose stream had closed, are ignored. */
static void learn(const struct nj_exchange *x)
{
    uint32_t *longest = &x->set->longest[x->route], n = x->resp.out.n_bytes;

    if (n < *longest && !nj__is_open(x))
        return;
    uint32_t faded = *longest - *longest / NJ_WORKER_LONGEST_FORGET;
    *longest = n > faded ? n : faded;
}

static uint32_t poll(void *ctx, struct nj_task **tasks, uint32_t n_max)
{
    struct nj_exchanges *set = ctx;
    const struct nj_task_port *port = set->config.workers;
    struct nj_list *node;

    uint32_t n_stayed = 0;

    for (; n_stayed < n_max && (node = nj_list_pop(&set->home)); n_stayed++) {
        tasks[n_stayed] = nj_container_of(node, struct nj_task, node);
        let_go(nj__of_task(tasks[n_stayed]));
    }
    uint32_t n = n_stayed + port->poll(port->ctx, tasks + n_stayed, n_max - n_stayed);
    for (uint32_t i = n_stayed; i < n; i++) {
        struct nj_exchange *x = nj__of_task(tasks[i]);
        nj__errand_home(x);
        learn(x);
        nj__leave(x);
        let_go(x);
    }
    return n;
}

struct nj_task_port nj_exchanges_port(struct nj_exchanges *set)
{
    return (struct nj_task_port){.ctx = set, .submit = submit, .flush = flush, .poll = poll};
}
