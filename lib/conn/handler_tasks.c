/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs handlers of routes for the requests of a shard.
 *
 * The parser only queues a request with its connection (conn_requests.c), because no handler may
 * run within a session's input. The request is offered to the strategy (EWYK,
 * sched/ewyk_fiber_scheduler.h) when the parser has returned. What the handler responded is passed
 * to the stream after the handler has returned or parked.
 */
#include "conn/handler_tasks.h"

#include <stdlib.h>

#include "base/assert.h"
#include "conn/conns.h"
#include "telem/counters_http.h"

/* --- the strategy --------------------------------------------------------------------------- */

static nj_ns read_clock(void *conns)
{
    const struct nj_conns *cs = conns;
    return cs->cfg->ops.clock ? cs->cfg->ops.clock(cs->cfg->ops.clock_ctx) : 0;
}

static void ewyk_log(void *conns, const char *line)
{
    const struct nj_conns *cs = conns;
    if (cs->cfg->ops.log)
        cs->cfg->ops.log(cs->cfg->ops.log_ctx, line);
}

static bool submit(void *conns, struct nj_task *task)
{
    struct nj_conns *cs = conns;
    const struct nj_handlers *h = &cs->handlers;

    return h->port.submit(h->port.ctx, task);
}

static struct nj_ewyk *ewyk_new(struct nj_conns *cs, nj_ns now)
{
    struct nj_ewyk_config c = {
        .n_fibers_max = cs->cfg->fibers_max ? cs->cfg->fibers_max : NJ_FIBERS_DEFAULT,
        .n_queue_max =
            cs->cfg->handlers_queue_max ? cs->cfg->handlers_queue_max : NJ_HANDLERS_QUEUE_MAX,
        .now = now,
        .clock = cs->cfg->ops.clock ? read_clock : NULL,
        .submit = cs->cfg->ops.workers.submit ? submit : NULL,
        .waits = cs->cfg->ops.waits,
        .log = ewyk_log,
        .ctx = cs,
        .would_block = NJ_EWYK_WOULD_BLOCK_COUNTED, /* handlers get an error, see handler.h */
    };
    return nj_ewyk_new(&c);
}

static void withdraw(void *conns, struct nj_task *task)
{
    struct nj_conns *cs = conns;
    nj_ewyk_withdraw(cs->handlers.ewyk, task); /* no other strategy has a queue */
}

static void call(void *conns, struct nj_task_class *route, void (*fn)(void *arg), void *arg)
{
    struct nj_conns *cs = conns;
    nj_ewyk_call_measured(cs->handlers.ewyk, route, fn, arg);
}

static void classes_init(struct nj_conns *cs, uint32_t n)
{
    struct nj_task_class *c = cs->handlers.classes;

    for (uint32_t i = 0; i < n; i++) {
        const struct nj_route *route = nj_routes_at(cs->cfg->routes, i);
        nj_task_class_init(&c[i], nj_routes_name(cs->cfg->routes, i), route->type);
        c[i].pinned = route->pin_to_lcore;
    }
}

bool nj__handlers_init(struct nj_conns *cs, nj_ns now)
{
    struct nj_handlers *h = &cs->handlers;
    uint32_t n = nj_routes_count(cs->cfg->routes);

    if (n == 0)
        return true;
    h->classes = calloc(n, sizeof *h->classes);
    if (!h->classes)
        return false;
    classes_init(cs, n);
    struct nj_exchanges_config c = {
        .txns = &cs->txns,
        .site = cs->site,
        .routes = cs->cfg->routes,
        .classes = h->classes,
        .workers = &cs->cfg->ops.workers,
        .withdraw = withdraw,
        .call = cs->cfg->strategy == NJ_RUN_EWYK ? call : NULL,
        .strategy = cs,
    };
    h->exchanges = nj_exchanges_new(&c, now);
    if (!h->exchanges)
        return false;
    h->port = nj_exchanges_full_body_worker_ops(h->exchanges);
    if (cs->cfg->strategy != NJ_RUN_EWYK)
        return true;
    h->ewyk = ewyk_new(cs, now);
    return h->ewyk != NULL;
}

/* Runs the handler inline, even if it blocks the shard. Handlers that must not wait get an error
 * when they try. */
static enum nj_run_mode offer_pc(struct nj_task *task)
{
    enum nj_task_type type = task->class_of->declared;
    bool tag = type == NJ_NON_BLOCKING || type == NJ_EITHER, before = tag && nj_noblock_enter();

    task->ops->run(task);
    if (tag)
        nj_noblock_leave(before);
    return NJ_MODE_PC;
}

static enum nj_run_mode offer_pec(struct nj_conns *cs, struct nj_task *task)
{
    if (cs->cfg->ops.workers.submit && submit(cs, task))
        return NJ_MODE_PEC_WORKER;
    task->ops->reject(task);
    return NJ_MODE_REJECTED;
}

/* Baseline strategies, for comparison. */
static void offer_baseline(struct nj_conns *cs, struct nj_task *task)
{
    struct nj_task_class *c = task->class_of; /* the task may be freed before this returns */
    enum nj_run_mode mode = cs->cfg->strategy == NJ_RUN_PC ? offer_pc(task) : offer_pec(cs, task);

    if (mode != NJ_MODE_PEC_WORKER) /* counted when it comes back */
        nj_task_class_count_run(c, mode);
}

void nj__handlers_reject(struct nj_exchange *x)
{
    nj_exchange_note_scheduled(x);
    nj_task_reject(nj_exchange_task(x));
}

nj_ns nj__handlers_schedule_request(struct nj_conns *cs, struct nj_exchange *x)
{
    struct nj_task *task = nj_exchange_task(x);
    nj_ns begin = read_clock(cs);

    struct nj_txn *t = nj_exchange_txn(x);
    t->stack_since = cs->now;
    task->client = t->requester;
    nj_exchange_note_scheduled(x);
    if (cs->handlers.ewyk)
        nj_ewyk_offer(cs->handlers.ewyk, task);
    else
        offer_baseline(cs, task);
    return read_clock(cs) - begin;
}

/* --- results, timers and shutdown ----------------------------------------------------------- */

uint32_t nj__handlers_deliver_responses(struct nj_conns *cs, nj_ns now)
{
    return cs->handlers.exchanges ? nj_exchanges_process_dirty(cs->handlers.exchanges, now) : 0;
}

static uint32_t collect_worker_tasks(struct nj_conns *cs)
{
    struct nj_handlers *h = &cs->handlers;
    struct nj_task *task[NJ_HANDLERS_POLL_MAX];

    if (!cs->cfg->ops.workers.submit)
        return 0;
    uint32_t n = h->port.poll(h->port.ctx, task, NJ_HANDLERS_POLL_MAX);
    for (uint32_t i = 0; i < n; i++)
        if (h->ewyk)
            nj_ewyk_account_worker_run(h->ewyk, task[i]->class_of, task[i]->run_ns);
        else
            nj_task_class_count_run(task[i]->class_of, NJ_MODE_PEC_WORKER);
    return n;
}

static void reset_route_counts(struct nj_conns *cs)
{
    for (uint32_t i = 0; i < nj_routes_count(cs->cfg->routes); i++)
        nj_task_class_reset_counters(&cs->handlers.classes[i]);
}

uint32_t nj__handlers_run_due(struct nj_conns *cs, nj_ns now)
{
    struct nj_handlers *h = &cs->handlers;

    if (!h->exchanges)
        return 0;
    nj_exchanges_tick(h->exchanges, now);
    uint32_t n = h->ewyk ? nj_ewyk_run(h->ewyk, now, NJ_HANDLERS_RUN_MAX) : 0;
    if (h->ewyk && now >= h->trim_at && cs->admission.n_waiting == 0) {
        h->trim_at = now + NJ_FIBERS_TRIM_EVERY;
        nj_ewyk_trim(h->ewyk, NJ_FIBERS_KEEP, NJ_FIBERS_TRIM);
    }
    return n + collect_worker_tasks(cs);
}

void nj__handlers_wake_workers(struct nj_conns *cs)
{
    struct nj_handlers *h = &cs->handlers;

    if (h->exchanges && cs->cfg->ops.workers.submit)
        h->port.flush(h->port.ctx);
}

nj_ns nj__handlers_next_at(const struct nj_conns *cs)
{
    const struct nj_handlers *h = &cs->handlers;

    if (!h->exchanges)
        return NJ_NEVER;
    nj_ns ewyk = h->ewyk ? nj_ewyk_next_due(h->ewyk) : NJ_NEVER;
    return nj_min_u64(nj_exchanges_next_at(h->exchanges), ewyk);
}

bool nj__handlers_busy(const struct nj_conns *cs)
{
    return cs->handlers.exchanges && nj_exchanges_n_open(cs->handlers.exchanges) > 0;
}

static void publish_awaits(struct nj_conns *cs, const struct nj_await_count *awaits)
{
    static const nj_counter counter[] = {
        [NJ_AWAIT_EVENT] = NJ_C_handler_event_waits, [NJ_AWAIT_FD] = NJ_C_handler_fd_waits};
    struct nj_handlers *h = &cs->handlers;

    for (int i = 0; i < NJ_N_AWAITS; i++) {
        nj_count_n(cs->counters, counter[i], awaits[i].n - h->n_awaits[i]);
        h->n_awaits[i] = awaits[i].n;
        atomic_store_explicit(&h->n_awaiting[i], awaits[i].n_now, memory_order_relaxed);
    }
}

void nj__handlers_publish(struct nj_conns *cs)
{
    struct nj_handlers *h = &cs->handlers;

    if (!h->exchanges)
        return;
    nj_gauge_set(cs->counters, NJ_C_exchanges, nj_exchanges_n_open(h->exchanges));
    if (atomic_load_explicit(&h->reset, memory_order_acquire)) {
        reset_route_counts(cs);
        atomic_store_explicit(&h->reset, false,
                              memory_order_release); /* telemetry may read it now */
    }
    if (!h->ewyk)
        return;
    struct nj_ewyk_gauges g = nj_ewyk_gauges(h->ewyk);
    nj_count_n(cs->counters, NJ_C_handler_would_block, g.n_would_block - h->n_would_block);
    h->n_would_block = g.n_would_block;
    publish_awaits(cs, g.awaits);
    atomic_store_explicit(&h->n_fibers, g.n_fibers_in_use, memory_order_relaxed);
    atomic_store_explicit(&h->n_fibers_high, g.n_fibers_high_water, memory_order_relaxed);
    atomic_store_explicit(&h->n_waiting, g.n_waiting + cs->admission.n_waiting,
                          memory_order_relaxed);
}

/* From now on each wait of a handler ends at once, or when its call on a worker has ended. Returns
 * when all handlers have returned, or have been resumed NJ_HANDLERS_CANCEL_TURNS times and no call
 * ends within NJ_HANDLERS_CALL_WAIT. */
static void cancel_fibers(struct nj_conns *cs)
{
    struct nj_handlers *h = &cs->handlers;

    NJ_ASSERT(cs->admission.n_waiting == 0); /* those requests ended with their connections */
    nj_ewyk_stop(h->ewyk);
    nj_ewyk_cancel_fibers(h->ewyk);
    uint64_t n_fibers = nj_ewyk_gauges(h->ewyk).n_fibers_in_use;
    uint64_t n = (n_fibers / NJ_HANDLERS_RUN_MAX + 1) * NJ_HANDLERS_CANCEL_TURNS;
    nj_ns until = read_clock(cs) + NJ_HANDLERS_CALL_WAIT;
    while (!nj_ewyk_is_idle(h->ewyk)) {
        bool waits = nj_exchanges_n_calls(h->exchanges) > 0 && read_clock(cs) < until;
        if (n == 0 && !waits)
            break;
        n -= !waits;
        nj__handlers_run_due(cs, cs->now);
        nj__handlers_deliver_responses(cs, cs->now);
    }
    h->n_stuck = nj_ewyk_gauges(h->ewyk).n_fibers_in_use;
}

void nj__handlers_cancel_waiting(struct nj_conns *cs)
{
    struct nj_handlers *h = &cs->handlers;

    if (!h->exchanges || h->n_stuck > 0)
        return;
    if (h->ewyk)
        cancel_fibers(cs);
    nj_exchanges_process_dirty(h->exchanges, cs->now);
}

uint32_t nj_conns_stuck_fibers(const struct nj_conns *cs, const char **route)
{
    const struct nj_handlers *h = &cs->handlers;

    if (h->n_stuck > 0)
        *route = nj_ewyk_first_busy_fiber_class(h->ewyk)->name;
    return h->n_stuck;
}

void nj__handlers_fini(struct nj_conns *cs)
{
    struct nj_handlers *h = &cs->handlers;

    while (h->n_stuck == 0 && nj__handlers_busy(cs)) { /* workers will return them */
        collect_worker_tasks(cs);
        nj_exchanges_process_dirty(h->exchanges, cs->now);
    }
    if (h->n_stuck == 0) { /* else fibers refer to these objects, which are leaked with them */
        if (h->ewyk)
            nj_ewyk_free(h->ewyk);
        nj_exchanges_free(h->exchanges);
        free(h->classes);
    }
    h->ewyk = NULL;
    h->exchanges = NULL;
    h->classes = NULL;
    h->n_stuck = 0;
}
