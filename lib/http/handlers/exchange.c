/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the life cycle of an exchange: begin, submit, run, settle and free. Handlers only
 * record what they want; settling carries it out in the root context. */
#include "http/handlers/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_internal.h"
#include "http/response_head.h"
#include "sched/ewyk.h"
#include "telem/counters.h"

/* Interval at which blocks are granted: some bytes have to be sent first. */
#define HUNGRY_NS  (1 * NJ_MS)
/* Grants per interval. */
#define HUNGRY_MAX 16u

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
    nj_list_init(&set->hungry);
    nj_list_init(&set->home);
    nj_list_init(&set->holders);
    nj_wheel_init(&set->wheel, now);
    uint32_t share = config->blocks_share ? config->blocks_share : 1;
    set->n_held_max = NJ_WORKER_HELD_BYTES / share;
    set->blocks = nj_blocks_new(share);
    set->bodies = nj_blocks_new(share);
    set->longest = calloc(nj_routes_count(config->routes), sizeof *set->longest);
    if (set->blocks && set->bodies && set->longest &&
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
    nj_blocks_close(set->blocks);
    nj_blocks_close(set->bodies);
    free(set->longest);
    free(set);
}

uint32_t nj_exchanges_open(const struct nj_exchanges *set)
{
    return set->pool.n_used;
}

uint32_t nj_exchanges_left(const struct nj_exchanges *set)
{
    return set->pool.n_max - set->pool.n_used;
}

uint32_t nj_exchanges_away(const struct nj_exchanges *set)
{
    return set->n_away;
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

void nj__mark(struct nj_exchange *x)
{
    if (!nj_list_linked(&x->dirty))
        nj_list_push_back(&x->set->dirty, &x->dirty);
}

void nj__hoards(const struct nj_exchange *x, enum nj_counter why)
{
    nj_count(nj__counters(x->set), why);
    if (nj__is_open(x))
        nj_txn_abuse(x->txn, why);
}

/* --- a request arrives --- */

static struct nj_view view(const char *p, uint32_t n_bytes)
{
    return (struct nj_view){p, n_bytes};
}

/* Appends a string behind the fields. */
static struct nj_str keep(char **at, struct nj_str s)
{
    struct nj_str kept = {*at, s.n_bytes};
    if (s.n_bytes > 0) /* `p` may be NULL if empty */
        memcpy(*at, s.p, s.n_bytes);
    *at += s.n_bytes;
    return kept;
}

static struct nj_view keep_view(char **at, struct nj_str s)
{
    struct nj_str kept = keep(at, s);
    return view(kept.p, kept.n_bytes);
}

/* Copies a head into one block. NULL: none is free. */
static struct nj_block *copy_head(struct nj_blocks *blocks, const struct nj_request_head *from,
                                  struct nj_str plain_path)
{
    size_t n_fields = from->n_fields * sizeof(struct nj_field);
    size_t n = sizeof(struct nj__head) + n_fields + from->method.n_bytes + from->scheme.n_bytes +
               from->authority.n_bytes + from->path.n_bytes + plain_path.n_bytes;
    for (uint32_t i = 0; i < from->n_fields; i++)
        n += from->fields[i].name.n_bytes + from->fields[i].value.n_bytes;
    struct nj_block *block = n < UINT32_MAX ? nj_block_take(blocks, (uint32_t)n) : NULL;
    if (!block)
        return NULL;
    struct nj__head *head = (struct nj__head *)block->bytes;
    char *at = (char *)block->bytes + sizeof *head + n_fields;
    head->method = keep_view(&at, from->method);
    head->scheme = keep_view(&at, from->scheme);
    head->authority = keep_view(&at, from->authority);
    struct nj_str path = keep(&at, from->path);
    const char *mark = path.n_bytes ? memchr(path.p, '?', path.n_bytes) : NULL;
    uint32_t n_path = mark ? (uint32_t)(mark - path.p) : path.n_bytes;
    head->path = view(path.p, n_path);
    head->plain_path = keep_view(&at, plain_path);
    head->query = mark ? view(mark + 1, path.n_bytes - n_path - 1) : view("", 0);
    head->n_fields = from->n_fields;
    for (uint32_t i = 0; i < from->n_fields; i++) {
        head->fields[i].name = keep(&at, from->fields[i].name);
        head->fields[i].value = keep(&at, from->fields[i].value);
    }
    return block;
}

static uint64_t body_max(const struct nj_exchanges *set, uint32_t index)
{
    const struct nj_route *route = nj_routes_at(set->config.routes, index);
    uint64_t all = set->config.txns->body_max, n = route->body_max_bytes;

    if (n == 0)
        n = route->type == NJ_OS_BLOCKING ? NJ_WORKER_REQUEST_BYTES : NJ_REQUEST_BODY_BYTES;
    return all > 0 && all < n ? all : n;
}

static void exchange_init(struct nj_exchange *x, struct nj_exchanges *set, uint32_t index,
                          const struct nj_request_head *head, struct nj_txn *txn)
{
    x->task.ops = &nj__exchange_task_ops;
    x->task.class_of = &set->config.classes[index];
    nj_list_init(&x->task.node);
    nj_list_init(&x->node);
    nj_list_init(&x->dirty);
    nj_list_init(&x->hungry);
    nj_timer_init(&x->timer);
    x->set = set;
    x->txn = txn;
    x->body.ops = &nj__exchange_body_ops;
    x->route = index;
    x->req.n_max = body_max(set, index);
    x->req.complete = head->ends;
    x->expects = head->expects_continue;
    x->req.is_head = txn->is_head;
    x->resp.declared = NJ_BODY_UNKNOWN;
    x->resp.blocks = set->blocks;
}

struct nj_exchange *nj_exchange_begin(struct nj_exchanges *set, uint32_t index,
                                      const struct nj_request_head *head, struct nj_str plain_path,
                                      struct nj_txn *txn)
{
    if (head->content_length > body_max(set, index)) {
        nj_reply_error(txn, 413, (struct nj_field){0});
        return NULL;
    }
    struct nj_exchange *x = nj_pool_take(&set->pool);
    struct nj_block *block = x ? copy_head(set->blocks, head, plain_path) : NULL;
    if (!block) {
        if (x)
            nj_pool_put(&set->pool, x);
        nj_count(nj__counters(set), NJ_C_exchange_full);
        nj_reply_error(txn, 503, (struct nj_field){0});
        return NULL;
    }
    exchange_init(x, set, index, head, txn);
    x->req.block = block;
    txn->exchange = x;
    return x;
}

const struct nj_routes *nj_exchanges_routes(const struct nj_exchanges *set)
{
    return set->config.routes;
}

void nj_exchange_join(struct nj_exchange *x, struct nj_exchange_peer *peer)
{
    x->peer = peer;
    peer->n++;
    nj_list_push_back(&peer->exchanges, &x->node);
}

/* Removes the exchange from its connection's list. */
static void part(struct nj_exchange *x)
{
    if (!x->peer)
        return;
    nj_list_del(&x->node);
    x->peer->n--;
    x->peer = NULL;
}

void nj_exchange_peer_gone(struct nj_exchange_peer *peer)
{
    while (!nj_list_empty(&peer->exchanges))
        part(nj_exchange_of_node(peer->exchanges.next));
}

void nj_exchange_offered(struct nj_exchange *x)
{
    NJ_ASSERT(x->state == NJ__ASKED);
    x->state = NJ__OFFERED;
    x->at_work = true;
    x->txn->requester->n_at_work++;
}

void nj__off_stack(struct nj_exchange *x)
{
    if (!x->at_work)
        return;
    x->txn->requester->n_at_work--;
    x->at_work = false;
}

struct nj_txn *nj_exchange_txn(const struct nj_exchange *x)
{
    return x->txn;
}

/* --- events of the stream --- */

/* Resets the stream at the next settle and cancels the handler. RST_STREAM closes the stream only
 * when it has left the output buffer, which a client that acknowledges nothing can delay; the
 * handler and its stack are released now. */
static void give_up(struct nj_exchange *x, enum nj_reset why)
{
    x->reset = (uint8_t)why;
    if (x->state == NJ__RUNNING)
        nj_fiber_cancel(x->fiber);
    nj__mark(x);
}

void nj_exchange_cut(struct nj_exchange *x)
{
    if (!x->req.complete && !x->reset)
        give_up(x, NJ_RESET_CANCEL);
}

bool nj_exchange_late(struct nj_exchange *x)
{
    if (x->req.complete || x->reset || x->late)
        return false;
    x->late = true;
    if (x->state == NJ__PACKING)
        nj__mark(x);
    else
        nj_exchange_cut(x);
    return true;
}

/* Keeps the exchange in its connection's list while its handler runs, before those that are yet to
 * be submitted. */
static void stay(struct nj_exchange *x)
{
    if (!nj_exchange_runs_on(x)) {
        part(x);
    } else if (x->peer) {
        nj_list_del(&x->node);
        nj_list_push_back(x->peer->exchanges.next, &x->node); /* becomes the first */
    }
}

bool nj_exchange_runs_on(const struct nj_exchange *x)
{
    return x->state == NJ__AWAY || x->state == NJ__RUNNING;
}

void nj_exchange_gone(struct nj_exchange *x)
{
    NJ_ASSERT(!nj__is_open(x) && !x->body_open);
    nj__owe(x);
    nj_list_del(&x->hungry);
    nj__mark(x);
    switch ((enum nj__exchange_state)x->state) {
    case NJ__ASKED:
        nj_list_del(&x->task.node);
        nj__leave(x);
        break;
    case NJ__RUNNING: /* parked on a fiber: only the root context runs now */
        NJ_ASSERT(x->fiber);
        nj_fiber_cancel(x->fiber);
        break;
    case NJ__OFFERED: /* free its place: a client that requests and resets must not fill the queue
                       */
        x->set->config.withdraw(x->set->config.strategy, &x->task);
        nj__leave(x);
        break;
    case NJ__AWAY:
        (void)nj__errand_withdraw(x);
        break;
    case NJ__KEPT:
    case NJ__PACKING:
    case NJ__LEFT:
        break;
    }
    stay(x);
}

bool nj_exchange_is_stuck(const struct nj_exchange *x)
{
    return x->state == NJ__RUNNING && nj__is_open(x) && !x->reset && x->waiting != NJ__WAIT_NONE;
}

void nj_exchange_evict(struct nj_exchange *x, enum nj_reset why)
{
    NJ_ASSERT(nj_exchange_is_stuck(x));
    nj__off_stack(x);
    give_up(x, why);
}

uint64_t nj_exchange_came(const struct nj_exchange *x)
{
    return x->req.n_came;
}

struct nj_exchange *nj_exchange_of_task(struct nj_task *task)
{
    return nj__of_task(task);
}

bool nj_exchange_is_away(const struct nj_exchange *x)
{
    return x->state == NJ__AWAY;
}

bool nj_exchange_sends_file(const struct nj_exchange *x)
{
    return x->resp.file && x->head_sent;
}

bool nj_exchange_is_ours(const struct nj_exchange *x)
{
    switch ((enum nj__exchange_state)x->state) {
    case NJ__ASKED:
    case NJ__OFFERED:
    case NJ__AWAY:
        return true;
    case NJ__RUNNING:
        return x->waiting == NJ__WAIT_NONE;
    case NJ__KEPT: /* without a timer it waits for the client to send or read */
        return nj_timer_armed(&x->timer) || (x->req.complete && x->resp.out.n_bytes == 0);
    case NJ__PACKING:
    case NJ__LEFT:
        break;
    }
    return false;
}

/* --- running the handler --- */

void nj__leave(struct nj_exchange *x)
{
    nj__off_stack(x);
    x->state = NJ__LEFT;
    x->resp.ended = true;
    x->due = 0;
    nj_bytes_clear(
        &x->req.body); /* HTTP/2 returns the flow-control credit when the stream closes */
    nj_timer_disarm(&x->set->wheel, &x->timer);
    nj_list_del(&x->hungry);
    if (!nj__is_open(x))
        part(x);
    nj__mark(x);
}

void nj__handle(struct nj_exchange *x)
{
    const struct nj_route *route = nj__route_of(x);
    route->handle(&x->req, &x->resp, route->arg);
}

static void run(struct nj_task *task)
{
    struct nj_exchange *x = nj__of_task(task);

    if (x->resp.on_worker) { /* a worker must not touch anything else */
        nj__handle(x);
        return;
    }
    NJ_ASSERT(nj__is_open(x));
    if (x->reset) { /* the reset says that the request was not processed (RFC 9113 8.7) */
        nj__leave(x);
        return;
    }
    x->state = NJ__RUNNING;
    x->fiber = nj_fiber_self();
    nj__handle(x);
    x->fiber = NULL;
    if (x->resp.kept && !x->resp.ended) {
        x->state = NJ__KEPT;
        nj__off_stack(x);
        nj__mark(x);
    } else {
        nj__leave(x);
    }
}

static void reject(struct nj_task *task)
{
    struct nj_exchange *x = nj__of_task(task);

    if (x->state == NJ__AWAY) /* the workers stop, or another client's task displaced it */
        nj__errand_home(x);
    if (task->displaced && nj__errand_again(x))
        return;
    nj_count(nj__counters(x->set), NJ_C_exchange_rejected);
    if (task->displaced)
        nj__hoards(x, NJ_C_task_displaced);
    if (x->with_port) /* the strategy does not count it */
        nj_task_class_count(task->class_of, NJ_MODE_REJECTED);
    x->with_port = false;
    if (nj__is_open(x))
        nj__answer_error(x, 503);
    nj__leave(x);
}

const struct nj_task_ops nj__exchange_task_ops = {run, reject};

/* --- settling --- */

static void call(struct nj_exchange *x, const struct nj__hook *hook)
{
    if (x->state == NJ__KEPT && hook->fn)
        hook->fn(&x->req, &x->resp, hook->arg);
}

/* Runs the pending callbacks of a handler. */
static void call_back(void *exchange)
{
    struct nj_exchange *x = exchange;
    uint8_t due = x->due;
    bool before = nj_tag_set();

    x->due &= NJ__DUE_TIMER; /* a callback may disarm the timer */
    if (!nj__is_open(x)) {
        call(x, &x->req.on_body);
        call(x, &x->resp.on_gone);
        nj__leave(x);
    }
    if (due & NJ__DUE_BODY) {
        x->req.was_told = true;
        call(x, &x->req.on_body);
    }
    if (due & NJ__DUE_ROOM)
        call(x, &x->resp.on_room);
    if (x->due & NJ__DUE_TIMER) {
        x->due &= (uint8_t)~NJ__DUE_TIMER;
        call(x, &x->resp.on_timer);
    }
    nj_tag_restore(before);
}

static void exchange_free(struct nj_exchange *x)
{
    NJ_ASSERT(!nj_list_linked(&x->task.node) && !nj_timer_armed(&x->timer));
    nj_bytes_clear(&x->req.body);
    nj_bytes_clear(&x->resp.out);
    nj__lent_clear(&x->resp.lent);
    if (x->resp.file)
        nj_ref_put(&x->resp.file->ref);
    nj__errand_holds(x, 0);
    nj__fields_clear(&x->resp.fields);
    nj__fields_clear(&x->resp.trailers);
    nj_ref_put(&x->req.block->ref);
    NJ_ASSERT(!x->peer);
    nj_list_del(&x->dirty);
    nj_list_del(&x->hungry);
    nj_txn_release(x->txn);
    nj_pool_put(&x->set->pool, x);
}

/* Sends a due 100 (Continue), when the handler reads or a worker is to get the body. Until then a
 * request that is refused for its head gets its final status instead (RFC 9110 10.1.1). */
static void let_body_come(struct nj_exchange *x)
{
    bool wanted = x->waiting == NJ__WAIT_BODY || x->state == NJ__PACKING ||
                  (x->state == NJ__KEPT && x->req.on_body.fn);

    if (!wanted || !nj__is_open(x) || x->head_sent || x->reset)
        return;
    x->expects = false;
    x->txn->framing->go_on(x->txn->stream);
}

static void settle(struct nj_exchange *x)
{
    const struct nj_exchanges_config *config = &x->set->config;

    if (x->state == NJ__KEPT && (x->due || !nj__is_open(x))) {
        if (config->call)
            config->call(config->strategy, x->task.class_of, call_back, x);
        else
            call_back(x);
    }
    if (x->state == NJ__PACKING)
        nj__errand_settle(x);
    if (nj_unlikely(x->expects))
        let_body_come(x);
    nj__owe(x);
    if (nj__is_open(x) && x->n_done > 0) {
        size_t n = x->n_done;
        x->n_done = 0;
        x->txn->framing->consume(x->txn->stream, n);
    }
    if (nj__is_open(x) && x->state != NJ__AWAY)
        nj__answer(x);
    if (!nj__is_open(x) && x->state == NJ__LEFT && !x->with_port)
        exchange_free(x);
}

uint32_t nj_exchanges_settle(struct nj_exchanges *set, nj_ns now)
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

static void fire(void *ctx, struct nj_timer *timer)
{
    struct nj_exchange *x = nj_container_of(timer, struct nj_exchange, timer);

    (void)ctx;
    x->due |= NJ__DUE_TIMER;
    nj__mark(x);
}

static bool has_blocks(struct nj_exchanges *set)
{
    struct nj_block *probe = nj_block_take(set->blocks, NJ_BLOCK_SMALL_BYTES);

    if (probe)
        nj_ref_put(&probe->ref);
    return probe != NULL;
}

/* Grants free blocks, in FIFO order. */
static void feed(struct nj_exchanges *set)
{
    struct nj_list *node;

    set->n_fed = 0; /* grants not used within the interval expire */
    while (set->n_fed < HUNGRY_MAX && has_blocks(set)) {
        if (!(node = nj_list_pop(&set->hungry)))
            return;
        struct nj_exchange *x = nj_container_of(node, struct nj_exchange, hungry);
        x->fed = true;
        set->n_fed++;
        nj__have_room(x);
        if (x->state == NJ__KEPT) /* settle it now: fibers run before the dirty list and would use
                                     up the blocks */
            settle(x);
    }
}

void nj_exchanges_tick(struct nj_exchanges *set, nj_ns now)
{
    set->now = now;
    nj_wheel_advance(&set->wheel, now, fire, set);
    if ((!nj_list_empty(&set->hungry) || set->n_fed > 0) && now >= set->feed_at) {
        set->feed_at = now + HUNGRY_NS;
        feed(set);
    }
}

nj_ns nj_exchanges_next(const struct nj_exchanges *set)
{
    nj_ns next = nj_wheel_next(&set->wheel);

    if (!nj_list_empty(&set->dirty) || !nj_list_empty(&set->home))
        return 0;
    if ((!nj_list_empty(&set->hungry) || set->n_fed > 0) && set->feed_at < next)
        next = set->feed_at;
    return next;
}
