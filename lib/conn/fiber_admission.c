/* SPDX-License-Identifier: BSD-3-Clause */
/* Admits requests of BLOCKING routes to fibers, fairly between clients. Queued requests are served
 * per client, the client with the fewest fibers first (max-min fairness); fiber_admission.h has the
 * rules. */
#include "conn/fiber_admission.h"

#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "conn/handler_tasks.h"
#include "conn/request_timeouts.h"
#include "telem/counters_http.h"

static uint32_t n_max_of(const struct nj_conns *cs)
{
    return cs->cfg->fibers_max ? cs->cfg->fibers_max : NJ_FIBERS_DEFAULT;
}

/* Free fibers: neither in use by a handler nor needed by a task that the strategy has queued. */
static uint32_t n_free_of(const struct nj_conns *cs)
{
    struct nj_ewyk_gauges g = nj_ewyk_gauges(cs->handlers.ewyk);
    uint32_t n = g.n_fibers_in_use + g.n_waiting, n_max = n_max_of(cs);
    return n < n_max ? n_max - n : 0;
}

/* --- admission ----------------------------------------------------------------------------- */

static void note_client(struct nj_admission *st, const struct nj_requester *c, nj_ns now)
{
    if (st->last == c)
        return;
    st->other_client_at = st->last ? now : 0;
    st->last = c;
}

/* No other client sent a request lately or has one in the queue. */
static bool is_alone(const struct nj_admission *st, const struct nj_requester *c, nj_ns now)
{
    const struct nj_list *first = st->waiting_clients.next;
    bool others_wait =
        first != st->waiting_clients.prev || (first != &st->waiting_clients && first != &c->turn);

    return !others_wait && st->last == c &&
           (st->other_client_at == 0 || now - st->other_client_at >= NJ_FIBERS_ALONE_NS);
}

/* May the client have one of `n_free` fibers? Small numbers of fibers are not divided. A trusted
 * proxy without a named client represents many clients. */
static bool may_have(struct nj_conns *cs, const struct nj_txn *t, uint32_t n_free)
{
    const struct nj_requester *c = t->requester;
    uint32_t n_max = n_max_of(cs);

    if (n_free == 0)
        return false;
    return t->client_unknown || n_free > n_max / NJ_FIBERS_RESERVE_PART ||
           c->n_need_stack < n_max / NJ_FIBERS_SHARE_PART || n_max < 2 * NJ_FIBERS_SHARE_PART ||
           is_alone(&cs->admission, c, cs->now);
}

/* May this request have a fiber now? Records that its client sent a request, whatever the result.
 */
static bool may_start(struct nj_conns *cs, const struct nj_txn *t)
{
    const struct nj_requester *c = t->requester;

    note_client(&cs->admission, c, cs->now);
    return nj_list_empty(&c->waiting) && may_have(cs, t, n_free_of(cs));
}

static struct nj_requester *client_at(struct nj_list *turn)
{
    return nj_container_of(turn, struct nj_requester, turn);
}

/* Answers a queued request with 503. */
static void reject_waiting(struct nj_conns *cs, struct nj_txn *t, nj_ns now)
{
    nj__admission_dequeue(cs, t);
    nj__txn_schedule_progress_check(t, now);
    nj__handlers_reject(t->exchange);
    nj__conn_mark_ready(t->conn);
}

/* The queue is full: the client with most queued requests loses its latest one to a client with
 * less than its share. A client at its share cannot displace another. */
/* Held: requests that wait for a stack | client, in requests | equal shares of 4,096 | 10 s |
 * stack_displaced, stack_timeout */
static bool displace(struct nj_conns *cs, const struct nj_requester *c)
{
    struct nj_admission *st = &cs->admission;
    struct nj_requester *most = NULL;

    if (c->n_waiting >= st->n_waiting / (st->n_clients + (c->n_waiting == 0)))
        return false;
    for (struct nj_list *at = st->waiting_clients.next; at != &st->waiting_clients; at = at->next)
        if (!most || client_at(at)->n_waiting > most->n_waiting)
            most = client_at(at);
    struct nj_txn *last = nj_container_of(most->waiting.prev, struct nj_txn, node);
    nj__abuse_record(cs, NJ_C_stack_displaced, nj__conn_remote(nj__conn_of(last)));
    reject_waiting(cs, last, cs->now);
    return true;
}

/* Queues the request until nj__admission_serve_queue() offers it. When the queue is full, the
 * client with most queued requests loses its latest one (503). Returns false when this request
 * would be that one. */
static bool enqueue(struct nj_conns *cs, struct nj_txn *t)
{
    struct nj_admission *st = &cs->admission;
    struct nj_requester *c = t->requester;
    uint32_t n_max =
        cs->cfg->handlers_queue_max ? cs->cfg->handlers_queue_max : NJ_HANDLERS_QUEUE_MAX;

    if (st->n_waiting >= n_max && !displace(cs, c))
        return false;
    if (st->n_waiting++ == 0)
        st->scan_at = cs->now + NJ_FIBERS_GRACE;
    t->awaits_stack = true;
    t->stack_since = cs->now;
    nj_list_del(&t->node); /* the peer is not timed while the server makes it wait */
    nj_list_push_back(&c->waiting, &t->node);
    if (c->n_waiting++ > 0)
        return true;
    nj_list_push_back(&st->waiting_clients, &c->turn);
    st->n_clients++;
    return true;
}

enum nj_admit nj__admission_admit_request(struct nj_conns *cs, struct nj_exchange *x)
{
    struct nj_task *task = nj_exchange_task(x);
    struct nj_txn *t = nj_exchange_txn(x);

    if (!cs->handlers.ewyk)
        return NJ_ADMIT_NOW;
    switch (nj_task_effective_type(task)) {
    case NJ_NON_BLOCKING:
    case NJ_OS_BLOCKING:
        return NJ_ADMIT_NOW;
    case NJ_EITHER: /* it can run without a fiber */
        task->run_inline = !may_start(cs, t);
        return NJ_ADMIT_NOW;
    case NJ_BLOCKING:
    case NJ_UNTYPED:
    case NJ_N_TASK_TYPES:
        break;
    }
    if (may_start(cs, t))
        return NJ_ADMIT_NOW;
    if (enqueue(cs, t))
        return NJ_ADMIT_QUEUED;
    nj__handlers_reject(x);
    return NJ_ADMIT_REJECTED;
}

void nj__admission_dequeue(struct nj_conns *cs, struct nj_txn *t)
{
    struct nj_requester *c = t->requester;

    t->awaits_stack = false;
    nj_list_del(&t->node);
    cs->admission.n_waiting--;
    if (--c->n_waiting > 0)
        return;
    nj_list_del(&c->turn);
    cs->admission.n_clients--;
}

static struct nj_txn *first_waiting(const struct nj_requester *c)
{
    return nj_container_of(c->waiting.next, struct nj_txn, node);
}

/* Of the clients with queued requests, the one with the fewest fibers that may have another. */
static struct nj_requester *next_client(struct nj_conns *cs, uint32_t n_free)
{
    const struct nj_admission *st = &cs->admission;
    struct nj_requester *best = NULL;

    if (n_free == 0)
        return NULL;
    for (struct nj_list *at = st->waiting_clients.next; at != &st->waiting_clients; at = at->next) {
        struct nj_requester *c = client_at(at);
        if ((!best || c->n_need_stack < best->n_need_stack) &&
            may_have(cs, first_waiting(c), n_free))
            best = c;
        if (best && best->n_need_stack == 0)
            break;
    }
    return best;
}

static void start_request(struct nj_conns *cs, struct nj_txn *t, nj_ns now)
{
    nj__admission_dequeue(cs, t);
    nj__txn_schedule_progress_check(t, now);
    nj_exchange_task(t->exchange)->queued = true;
    nj__conn_mark_ready(t->conn);
    nj__handlers_schedule_request(cs, t->exchange);
}

static uint32_t start_waiting(struct nj_conns *cs, nj_ns now)
{
    struct nj_admission *st = &cs->admission;
    struct nj_requester *c;
    uint32_t n = 0;

    while (n < NJ_HANDLERS_RUN_MAX && st->n_waiting > 0 && (c = next_client(cs, n_free_of(cs)))) {
        nj_list_del(&c->turn); /* moves behind the other clients */
        nj_list_push_back(&st->waiting_clients, &c->turn);
        start_request(cs, first_waiting(c), now);
        n++;
    }
    return n;
}

/* --- eviction ------------------------------------------------------------------------------ */

/* All fibers, divided by the clients that use or need one. */
static uint32_t fair_share(const struct nj_conns *cs)
{
    const struct nj_requester *all = cs->txns.requester;
    uint32_t n = 0;

    for (uint32_t i = 0; i < NJ_REQUESTERS; i++)
        n += all[i].n_need_stack > 0 || !nj_list_empty(&all[i].waiting);
    uint32_t share = n ? n_max_of(cs) / n : 0;
    return share ? share : 1;
}

/* Fibers owed to clients below their share whose requests have waited for NJ_FIBERS_GRACE. */
static uint32_t n_claimed(struct nj_conns *cs, uint32_t share, nj_ns now)
{
    const struct nj_admission *st = &cs->admission;
    uint32_t n = 0;

    for (struct nj_list *at = st->waiting_clients.next; at != &st->waiting_clients; at = at->next) {
        const struct nj_requester *c = client_at(at);
        uint32_t n_has = c->n_need_stack;
        for (struct nj_list *w = c->waiting.next; w != &c->waiting; w = w->next) {
            const struct nj_txn *t = nj_container_of(w, struct nj_txn, node);
            if (n_has++ >= share || now - t->stack_since < NJ_FIBERS_GRACE)
                break;
            if (++n == NJ_FIBERS_EVICT_MAX)
                return n;
        }
    }
    return n;
}

/* What a handler waits for, in the order of eviction. */
enum wait { WAIT_PEER, WAIT_OWN_EVENT, WAIT_SERVER };

struct search {
    nj_ns now;
    uint32_t share;
    struct nj_txn *found;
    uint32_t n_has; /* fibers of the client of `found` */
    enum wait wait; /* of `found` */
    uint64_t rate;  /* bytes per second that its peer sent and acknowledged */
};

/* WAIT_SERVER: for the rate of its response, or for other delays of the server, which do not count
 * against the peer. */
static enum wait wait_of(const struct nj_txn *t)
{
    if (!nj_exchange_waits_for_client(t->exchange))
        return WAIT_OWN_EVENT;
    return nj__txn_waits_for_peer(t) ? WAIT_PEER : WAIT_SERVER;
}

/* Is the victim of `g` to be evicted before that of `f`? Requests of trusted proxies come last, and
 * before them handlers that wait for the server. */
static bool evict_before(const struct search *f, const struct search *g)
{
    if (g->found->client_unknown != f->found->client_unknown)
        return !g->found->client_unknown;
    if ((g->wait == WAIT_SERVER) != (f->wait == WAIT_SERVER))
        return f->wait == WAIT_SERVER;
    if (g->n_has != f->n_has)
        return g->n_has > f->n_has;
    return g->wait != f->wait ? g->wait < f->wait : g->rate < f->rate;
}

static void consider_victim(void *search, struct nj_task *task)
{
    struct search *f = search;
    struct nj_exchange *x = nj_exchange_of_task(task);

    if (!nj_exchange_is_suspended(x))
        return;
    struct nj_txn *t = nj_exchange_txn(x);
    struct search g = {.now = f->now, .share = f->share, .found = t};
    g.n_has = t->requester->n_need_stack;
    g.wait = wait_of(t);
    nj_ns age = f->now - t->stack_since, throttled = t->paced.throttled_ns;
    if (g.n_has <= f->share || age < (g.wait == WAIT_PEER ? NJ_FIBERS_GRACE : NJ_FIBERS_OWN_GRACE))
        return;
    nj_ns time = throttled < age ? age - throttled : 0; /* that the peer had */
    g.rate = (nj_exchange_body_bytes_received(x) + t->paced.n_bytes) * 1000 / (time / NJ_MS + 1);
    if (!f->found || evict_before(f, &g))
        *f = g;
}

/* The handler is not charged to its client from now on. Its fiber is free when the handler has
 * returned. */
static void evict(struct nj_conns *cs, struct nj_txn *t)
{
    nj__abuse_record(cs, NJ_C_stack_evicted, nj__conn_remote(nj__conn_of(t)));
    nj_exchange_cancel_and_reset(t->exchange, NJ_RESET_ENHANCE_CALM);
    nj__conn_mark_ready(t->conn);
}

/* Held: stacks of handlers | client, in stacks | 1/8 of `--fibers`, once only 1/4 is free; equal
 * shares, once none is free | `--body-timeout`, `--send-timeout`; 2 s for a handler that waits for
 * something else, such as a timer, while other clients wait for a stack | stack_evicted */
static uint32_t evict_stalled(struct nj_conns *cs, nj_ns now)
{
    struct search f = {.now = now, .share = fair_share(cs)};
    uint32_t n_wanted = n_claimed(cs, f.share, now), n = 0;

    for (; n < n_wanted; n++) {
        f.found = NULL;
        f.n_has = 0;
        nj_ewyk_each_parked(cs->handlers.ewyk, consider_victim, &f);
        if (!f.found)
            break;
        evict(cs, f.found);
    }
    return n;
}

/* --- expiry -------------------------------------------------------------------------------- */

static uint32_t reject_expired(struct nj_conns *cs, nj_ns now)
{
    const struct nj_admission *st = &cs->admission;
    uint32_t n = 0;

    for (struct nj_list *at = st->waiting_clients.next, *next;
         at != &st->waiting_clients && n < NJ_FIBERS_REJECT_MAX; at = next) {
        struct nj_requester *c = client_at(at);
        struct nj_txn *t = first_waiting(c);
        next = at->next;
        if (now - t->stack_since < NJ_FIBERS_WAIT_MAX)
            continue;
        nj_count(cs->counters, NJ_C_stack_timeout);
        reject_waiting(cs, t, now);
        next = nj_list_empty(&c->waiting) ? next : at; /* this client may have further expired
                                                          requests */
        n++;
    }
    return n;
}

uint32_t nj__admission_serve_queue(struct nj_conns *cs, nj_ns now)
{
    struct nj_admission *st = &cs->admission;

    if (nj_likely(st->n_waiting == 0))
        return 0;
    uint32_t n = start_waiting(cs, now);
    if (st->n_waiting == 0 || now < st->scan_at)
        return n;
    st->scan_at = now + NJ_FIBERS_SCAN_EVERY;
    n += reject_expired(cs, now);
    if (n_free_of(cs) == 0)
        n += evict_stalled(cs, now);
    return n;
}

nj_ns nj__admission_next_at(const struct nj_conns *cs)
{
    const struct nj_admission *st = &cs->admission;
    return st->n_waiting > 0 ? st->scan_at : NJ_NEVER;
}
