/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the life cycle of an exchange: begin, submit, run, settle and free. Handlers only
 * record what they want; settling carries it out in the root context. */
#include "http/handlers/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_state.h"
#include "http/http_options.h"
#include "http/response_head.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "telem/counters_http.h"

/* Interval at which blocks are granted: some bytes have to be sent first. */
#define BUF_RETRY_NS   (1 * NJ_MS)
/* Grants per interval. */
#define BUF_GRANTS_MAX 16u

/* Exchanges settled per call; each may run callbacks of its handler. */
#define SETTLE_MAX 256u

/* --- the set --- */

struct nj_exchanges *nj_exchanges_new(const struct nj_exchanges_config *config, nj_ns now)
{
    struct nj_exchanges *set = calloc(1, sizeof *set);

    if (!set)
        return NULL;
    set->config = *config;
    set->now = now;
    nj_list_init(&set->dirty);
    nj_list_init(&set->waiting_for_buf);
    nj_list_init(&set->undispatched);
    nj_wheel_init(&set->wheel, now);
    uint32_t share = config->blocks_share ? config->blocks_share : 1;
    set->n_held_max = NJ_WORKER_HELD_BYTES / share;
    set->blocks = nj_block_pool_new(share);
    set->bodies = nj_block_pool_new(share);
    set->longest_response = calloc(nj_routes_count(config->routes), sizeof *set->longest_response);
    if (nj_held_shares_init(&set->held_bodies) && set->blocks && set->bodies &&
        set->longest_response &&
        nj_pool_init(&set->pool, sizeof(struct nj_exchange),
                     config->n_max ? config->n_max : NJ_EXCHANGES_MAX))
        return set;
    nj_exchanges_free(set);
    return NULL;
}

void nj_exchanges_free(struct nj_exchanges *set)
{
    if (!set)
        return;
    NJ_ASSERT(set->pool.n_used == 0 && set->n_held == 0);
    nj_pool_fini(&set->pool);
    nj_block_pool_close(set->blocks);
    nj_block_pool_close(set->bodies);
    nj_held_shares_fini(&set->held_bodies);
    free(set->longest_response);
    free(set);
}

uint32_t nj_exchanges_n_open(const struct nj_exchanges *set)
{
    return set->pool.n_used;
}

uint32_t nj_exchanges_slots_left(const struct nj_exchanges *set)
{
    return set->pool.n_max - set->pool.n_used;
}

struct nj_task *nj_exchange_task(struct nj_exchange *x)
{
    return &x->task;
}

struct nj_list *nj_exchange_node(struct nj_exchange *x)
{
    return &x->node;
}

struct nj_exchange *nj_exchange_of_node(struct nj_list *node)
{
    return nj_container_of(node, struct nj_exchange, node);
}

/* --- running the handler --- */

static void run_handler(struct nj_exchange *x)
{
    const struct nj_route *route = nj__route_of(x);
    route->handle(&x->req, &x->resp, route->arg);
}

static void run(struct nj_task *task)
{
    struct nj_exchange *x = nj__exchange_of_task(task);

    if (x->resp.on_worker) { /* a worker must not touch anything else */
        nj_store_relaxed(&x->resp.owner, nj_this_thread());
        run_handler(x);
        return;
    }
    NJ_ASSERT(nj__stream_is_open(x));
    if (x->reset) { /* the reset says that the request was not processed (RFC 9113 8.7) */
        nj__handler_done(x);
        return;
    }
    x->state = NJ__EXCHANGE_FIBER_RUNNING;
    x->fiber = nj_fiber_self();
    run_handler(x);
    x->fiber = NULL;
    if (x->resp.is_deferred && !x->resp.ended) {
        x->state = NJ__EXCHANGE_DEFERRED;
        nj__clear_needs_stack(x);
        nj__mark_dirty(x);
    } else {
        nj__handler_done(x);
    }
}

static void reject(struct nj_task *task)
{
    struct nj_exchange *x = nj__exchange_of_task(task);

    if (x->state ==
        NJ__EXCHANGE_ON_WORKER) /* the workers stop, or another client's task displaced it */
        nj__dispatch_returned(x);
    if (task->displaced && nj__dispatch_requeue_on_lcore(x))
        return;
    nj_count(nj__counters(x->set), NJ_C_exchange_rejected);
    if (task->displaced)
        nj__report_over_limit(x, NJ_C_task_displaced);
    if (x->with_workers) /* the strategy does not count it */
        nj_task_class_count_run(task->class_of, NJ_MODE_REJECTED);
    x->with_workers = false;
    if (nj__stream_is_open(x))
        nj__exchange_fail(x, 503);
    nj__handler_done(x);
}

static const struct nj_task_ops task_ops = {run, reject};

/* --- the stream closes --- */

/* The stream has closed: on_end of its transaction. A queued task is withdrawn. If the handler has
 * finished, the exchange is freed and its transaction released. If it still runs, the exchange
 * stays in its connection's list, before all exchanges that were not submitted. */
static void on_stream_closed(struct nj_txn *t)
{
    struct nj_exchange *x = t->exchange;

    NJ_ASSERT(!nj__stream_is_open(x) && !x->body_open);
    nj__charge_body_to_client(x);
    nj_list_del(&x->waiting_for_buf);
    nj__mark_dirty(x);
    switch ((enum nj__exchange_state)x->state) {
    case NJ__EXCHANGE_CREATED:
        nj_list_del(&x->task.node);
        nj__handler_done(x);
        break;
    case NJ__EXCHANGE_FIBER_RUNNING: /* parked on a fiber: only the root context runs now */
        NJ_ASSERT(x->fiber);
        nj_fiber_cancel(x->fiber);
        break;
    case NJ__EXCHANGE_SUBMITTED: /* a client that requests and resets must not fill the queue */
        x->set->config.withdraw(x->set->config.strategy, &x->task);
        nj__handler_done(x);
        break;
    case NJ__EXCHANGE_ON_WORKER:
        (void)nj__dispatch_withdraw(x);
        break;
    case NJ__EXCHANGE_DEFERRED:
    case NJ__EXCHANGE_AWAITING_BODY:
    case NJ__EXCHANGE_FINISHED:
        break;
    }
    if (!nj_exchange_is_running(x)) {
        nj__exchange_detach(x);
    } else if (x->conn) {
        nj_list_del(&x->node);
        nj_list_push_back(x->conn->exchanges.next, &x->node); /* becomes the first */
    }
}

/* --- a request arrives --- */

static struct nj_view to_view(const char *p, uint32_t n_bytes)
{
    return (struct nj_view){p, n_bytes};
}

/* Appends a string after the fields. */
static struct nj_str append_str(char **at, struct nj_str s)
{
    struct nj_str copy = {*at, s.n_bytes};
    if (s.n_bytes > 0) /* `p` may be NULL if empty */
        memcpy(*at, s.p, s.n_bytes);
    *at += s.n_bytes;
    return copy;
}

static struct nj_view append_view(char **at, struct nj_str s)
{
    struct nj_str copy = append_str(at, s);
    return to_view(copy.p, copy.n_bytes);
}

/* Copies a head into one block, with another scheme. NULL: none is free. */
static struct nj_block *copy_head(struct nj_block_pool *blocks, const struct nj_request_head *from,
                                  struct nj_str scheme, struct nj_str plain_path)
{
    size_t n_fields = from->n_fields * sizeof(struct nj_field);
    size_t n = sizeof(struct nj__stored_head) + n_fields + from->method.n_bytes + scheme.n_bytes +
               from->authority.n_bytes + from->path.n_bytes + plain_path.n_bytes;
    for (uint32_t i = 0; i < from->n_fields; i++)
        n += from->fields[i].name.n_bytes + from->fields[i].value.n_bytes;
    struct nj_block *block = n < UINT32_MAX ? nj_block_pool_take(blocks, (uint32_t)n) : NULL;
    if (!block)
        return NULL;
    struct nj__stored_head *head = (struct nj__stored_head *)block->bytes;
    char *at = (char *)block->bytes + sizeof *head + n_fields;
    head->method = append_view(&at, from->method);
    head->scheme = append_view(&at, scheme);
    head->authority = append_view(&at, from->authority);
    struct nj_str path = append_str(&at, from->path);
    const char *mark = path.n_bytes ? memchr(path.p, '?', path.n_bytes) : NULL;
    uint32_t n_path = mark ? (uint32_t)(mark - path.p) : path.n_bytes;
    head->path = to_view(path.p, n_path);
    head->plain_path = append_view(&at, plain_path);
    head->query = mark ? to_view(mark + 1, path.n_bytes - n_path - 1) : to_view("", 0);
    head->n_fields = from->n_fields;
    for (uint32_t i = 0; i < from->n_fields; i++) {
        head->fields[i].name = append_str(&at, from->fields[i].name);
        head->fields[i].value = append_str(&at, from->fields[i].value);
    }
    return block;
}

static uint64_t body_max(const struct nj_exchanges *set, uint32_t index)
{
    const struct nj_route *route = nj_routes_at(set->config.routes, index);
    uint64_t all = set->config.txns->options->body_max, n = route->body_max_bytes;

    if (n == 0)
        n = route->type == NJ_OS_BLOCKING ? NJ_WORKER_REQUEST_BYTES : NJ_REQUEST_BODY_BYTES;
    return all > 0 && all < n ? all : n;
}

static void exchange_init(struct nj_exchange *x, struct nj_exchanges *set, uint32_t index,
                          const struct nj_request_head *head, struct nj_txn *txn)
{
    x->task.ops = &task_ops;
    x->task.class_of = &set->config.classes[index];
    nj_list_init(&x->task.node);
    nj_list_init(&x->node);
    nj_list_init(&x->dirty);
    nj_list_init(&x->waiting_for_buf);
    nj_list_init(&x->held_body.node);
    nj_timer_init(&x->timer);
    x->set = set;
    x->txn = txn;
    if (nj_unlikely(txn->framing->client_cert) && (x->cert = txn->framing->client_cert(txn->conn)))
        nj_ref_take(&x->cert->ref);
    x->body.ops = &nj__exchange_body_ops;
    x->route = index;
    x->req.n_max = body_max(set, index);
    x->req.complete = head->ends;
    x->wants_continue = head->expects_continue;
    x->req.is_head = txn->method == NJ_METHOD_HEAD;
    x->resp.declared_length = NJ_BODY_LEN_UNKNOWN;
    x->resp.blocks = set->blocks;
}

struct nj_exchange *nj_exchange_begin(struct nj_exchanges *set, const struct nj_route_match *route,
                                      const struct nj_request_head *head, struct nj_str plain_path,
                                      struct nj_txn *txn)
{
    if (head->content_length > body_max(set, route->index)) {
        nj_respond_error(txn, 413, (struct nj_field){0});
        return NULL;
    }
    struct nj_exchange *x = nj_pool_take(&set->pool);
    struct nj_str scheme = nj_unlikely(txn->named_scheme != NJ_SCHEME_NONE)
                               ? nj_scheme_text((enum nj_scheme)txn->named_scheme)
                               : head->scheme;
    struct nj_block *block = x ? copy_head(set->blocks, head, scheme, plain_path) : NULL;
    if (!block) {
        if (x)
            nj_pool_put(&set->pool, x);
        nj_count(nj__counters(set), NJ_C_exchange_full);
        nj_respond_error(txn, 503, (struct nj_field){0});
        return NULL;
    }
    exchange_init(x, set, route->index, head, txn);
    nj_store_relaxed(&x->resp.owner, nj_this_thread());
    x->req.block = block;
    x->req.n_mount = route->n_mount;
    txn->exchange = x;
    txn->on_end = on_stream_closed;
    return x;
}

const struct nj_routes *nj_exchanges_routes(const struct nj_exchanges *set)
{
    return set->config.routes;
}

void nj_exchange_attach_to_conn(struct nj_exchange *x, struct nj_conn_exchanges *conn)
{
    x->conn = conn;
    conn->n++;
    nj_list_push_back(&conn->exchanges, &x->node);
}

void nj_conn_exchanges_detach(struct nj_conn_exchanges *conn)
{
    while (!nj_list_empty(&conn->exchanges))
        nj__exchange_detach(nj_exchange_of_node(conn->exchanges.next));
}

void nj_exchange_note_scheduled(struct nj_exchange *x)
{
    NJ_ASSERT(x->state == NJ__EXCHANGE_CREATED);
    x->state = NJ__EXCHANGE_SUBMITTED;
    x->needs_stack = true;
    x->txn->requester->n_need_stack++;
}

struct nj_txn *nj_exchange_txn(const struct nj_exchange *x)
{
    return x->txn;
}

/* --- events of the stream --- */

/* Resets the stream at the next settle and cancels the handler. RST_STREAM closes the stream only
 * when it has left the output buffer, which a client that acknowledges nothing can delay; the
 * handler and its stack are released now. */
static void reset_stream(struct nj_exchange *x, enum nj_reset why)
{
    x->reset = (uint8_t)why;
    if (x->state == NJ__EXCHANGE_FIBER_RUNNING)
        nj_fiber_cancel(x->fiber);
    nj__mark_dirty(x);
}

void nj_exchange_cancel_if_body_partial(struct nj_exchange *x)
{
    if (!x->req.complete && !x->reset)
        reset_stream(x, NJ_RESET_CANCEL);
}

bool nj_exchange_on_body_timeout(struct nj_exchange *x)
{
    if (x->req.complete || x->reset || x->body_overdue)
        return false;
    x->body_overdue = true;
    if (x->state == NJ__EXCHANGE_AWAITING_BODY)
        nj__mark_dirty(x);
    else
        nj_exchange_cancel_if_body_partial(x);
    return true;
}

bool nj_exchange_is_running(const struct nj_exchange *x)
{
    return x->state == NJ__EXCHANGE_ON_WORKER || x->state == NJ__EXCHANGE_FIBER_RUNNING;
}

bool nj_exchange_is_suspended(const struct nj_exchange *x)
{
    return x->state == NJ__EXCHANGE_FIBER_RUNNING && nj__stream_is_open(x) && !x->reset;
}

bool nj_exchange_waits_for_client(const struct nj_exchange *x)
{
    return nj_exchange_is_suspended(x) && x->waiting != NJ__WAIT_NONE;
}

void nj_exchange_cancel_and_reset(struct nj_exchange *x, enum nj_reset why)
{
    NJ_ASSERT(nj_exchange_is_suspended(x));
    nj__clear_needs_stack(x);
    reset_stream(x, why);
}

uint64_t nj_exchange_body_bytes_received(const struct nj_exchange *x)
{
    return x->req.n_received;
}

struct nj_exchange *nj_exchange_of_task(struct nj_task *task)
{
    return nj__exchange_of_task(task);
}

bool nj_exchange_is_on_worker(const struct nj_exchange *x)
{
    return x->state == NJ__EXCHANGE_ON_WORKER;
}

bool nj_exchange_sends_file(const struct nj_exchange *x)
{
    return x->resp.file && x->head_sent;
}

bool nj_exchange_waits_for_handler(const struct nj_exchange *x)
{
    switch ((enum nj__exchange_state)x->state) {
    case NJ__EXCHANGE_CREATED:
    case NJ__EXCHANGE_SUBMITTED:
    case NJ__EXCHANGE_ON_WORKER:
        return true;
    case NJ__EXCHANGE_FIBER_RUNNING:
        return x->waiting == NJ__WAIT_NONE;
    case NJ__EXCHANGE_DEFERRED: /* without a timer it waits for the client to send or read */
        return nj_timer_armed(&x->timer) || (x->req.complete && x->resp.out.n_bytes == 0);
    case NJ__EXCHANGE_AWAITING_BODY:
    case NJ__EXCHANGE_FINISHED:
        break;
    }
    return false;
}

/* --- settling --- */

static void call_hook(struct nj_exchange *x, const struct nj__hook *hook)
{
    if (x->state == NJ__EXCHANGE_DEFERRED && hook->fn)
        hook->fn(&x->req, &x->resp, hook->arg);
}

/* Runs the pending callbacks of a handler. */
static void run_callbacks(void *exchange)
{
    struct nj_exchange *x = exchange;
    uint8_t due = x->due;
    bool before = nj_noblock_enter();

    x->due &= NJ__DUE_TIMER; /* a callback may disarm the timer */
    if (!nj__stream_is_open(x)) {
        call_hook(x, &x->req.on_body);
        call_hook(x, &x->resp.on_cancelled);
        nj__handler_done(x);
    }
    if (due & NJ__DUE_BODY) {
        x->req.body_notified = true;
        call_hook(x, &x->req.on_body);
    }
    if (due & NJ__DUE_WRITABLE)
        call_hook(x, &x->resp.on_writable);
    if (x->due & NJ__DUE_TIMER) {
        x->due &= (uint8_t)~NJ__DUE_TIMER;
        call_hook(x, &x->resp.on_timer);
    }
    nj_noblock_leave(before);
}

static void exchange_free(struct nj_exchange *x)
{
    NJ_ASSERT(!nj_list_linked(&x->task.node) && !nj_timer_armed(&x->timer));
    nj_byte_queue_clear(&x->req.body);
    nj_byte_queue_clear(&x->resp.out);
    nj__borrowed_release(&x->resp.borrowed);
    if (x->resp.file)
        nj_ref_put(&x->resp.file->ref);
    nj__set_held_response_bytes(x, 0);
    nj__resp_fields_clear(&x->resp.fields);
    nj__resp_fields_clear(&x->resp.trailers);
    nj_ref_put(&x->req.block->ref);
    NJ_ASSERT(!x->conn && x->held_body.n == 0);
    nj_list_del(&x->dirty);
    nj_list_del(&x->waiting_for_buf);
    if (nj_unlikely(x->cert))
        nj_ref_put(&x->cert->ref);
    nj_txn_release(x->txn);
    nj_pool_put(&x->set->pool, x);
}

/* Sends a due 100 (Continue), when the handler reads or a worker is to get the body. Until then a
 * request that is refused for its head gets its final status instead (RFC 9110 10.1.1). */
static void send_due_continue(struct nj_exchange *x)
{
    bool wanted = x->waiting == NJ__WAIT_BODY || x->state == NJ__EXCHANGE_AWAITING_BODY ||
                  (x->state == NJ__EXCHANGE_DEFERRED && x->req.on_body.fn);

    if (!wanted || !nj__stream_is_open(x) || x->head_sent || x->reset)
        return;
    x->wants_continue = false;
    x->txn->framing->send_continue(x->txn->stream);
}

static void settle(struct nj_exchange *x)
{
    const struct nj_exchanges_config *config = &x->set->config;

    if (x->state == NJ__EXCHANGE_DEFERRED && (x->due || !nj__stream_is_open(x))) {
        if (config->call)
            config->call(config->strategy, x->task.class_of, run_callbacks, x);
        else
            run_callbacks(x);
    }
    if (x->state == NJ__EXCHANGE_AWAITING_BODY)
        nj__dispatch_when_body_complete(x);
    if (nj_unlikely(x->wants_continue))
        send_due_continue(x);
    nj__charge_body_to_client(x);
    if (nj__stream_is_open(x) && x->n_window_credit > 0) {
        size_t n = x->n_window_credit;
        x->n_window_credit = 0;
        x->txn->framing->consume(x->txn->stream, n);
    }
    if (nj__stream_is_open(x) && x->state != NJ__EXCHANGE_ON_WORKER)
        nj__exchange_send_pending(x);
    if (!nj__stream_is_open(x) && x->state == NJ__EXCHANGE_FINISHED && !x->with_workers)
        exchange_free(x);
}

uint32_t nj_exchanges_process_dirty(struct nj_exchanges *set, nj_ns now)
{
    struct nj_list batch, *node;
    uint32_t n = 0;

    set->now = now;
    nj_list_init(&batch);
    nj_list_splice(&batch, &set->dirty);
    for (; n < SETTLE_MAX && (node = nj_list_pop(&batch)); n++)
        settle(nj_container_of(node, struct nj_exchange, dirty));
    nj_list_splice(&batch, &set->dirty); /* after those that are left */
    nj_list_splice(&set->dirty, &batch);
    return n;
}

/* --- time --- */

static void timer_expired(void *ctx, struct nj_timer *timer)
{
    struct nj_exchange *x = nj_container_of(timer, struct nj_exchange, timer);

    (void)ctx;
    x->due |= NJ__DUE_TIMER;
    nj__mark_dirty(x);
}

/* Grants free blocks, in FIFO order. */
static void grant_bufs(struct nj_exchanges *set)
{
    struct nj_list *node;

    set->n_granted = 0; /* grants not used within the interval expire */
    while (set->n_granted < BUF_GRANTS_MAX && nj_block_pool_bytes_left(set->blocks) > 0) {
        if (!(node = nj_list_pop(&set->waiting_for_buf)))
            return;
        struct nj_exchange *x = nj_container_of(node, struct nj_exchange, waiting_for_buf);
        x->buf_granted = true;
        set->n_granted++;
        nj__notify_writable(x);
        if (x->state == NJ__EXCHANGE_DEFERRED) /* settle it now: fibers run before the dirty list
                                     and would use up the blocks */
            settle(x);
    }
}

void nj_exchanges_tick(struct nj_exchanges *set, nj_ns now)
{
    set->now = now;
    nj_wheel_advance(&set->wheel, now, timer_expired, set);
    if ((!nj_list_empty(&set->waiting_for_buf) || set->n_granted > 0) && now >= set->grant_at) {
        set->grant_at = now + BUF_RETRY_NS;
        grant_bufs(set);
    }
}

nj_ns nj_exchanges_next_at(const struct nj_exchanges *set)
{
    nj_ns next = nj_wheel_next_due(&set->wheel);

    if (!nj_list_empty(&set->dirty) || !nj_list_empty(&set->undispatched))
        return 0;
    if ((!nj_list_empty(&set->waiting_for_buf) || set->n_granted > 0) && set->grant_at < next)
        next = set->grant_at;
    return next;
}
