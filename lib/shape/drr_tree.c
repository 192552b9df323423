/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical deficit round robin (Shreedhar and Varghese 1995) over global, class and client.
 * Only nodes with demand are linked, so a grant visits three levels, whatever the number of waiting
 * responses.
 *
 * A node that is sending its last grant is still part of the round: the next round waits until it
 * is back or NJ__IN_SERVICE_NS has passed, and its remaining deficit is served first. Otherwise
 * many slow clients would take the share of a single fast one.
 */
#include "base/relaxed_atomics.h"
#include "shape/shaper_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "telem/counters_http.h"

void nj__node_init(struct nj__node *n, struct nj__node *parent, struct nj_gcra *rate_gcra,
                   uint8_t level)
{
    *n = (struct nj__node){.parent = parent, .rate_gcra = rate_gcra, .level = level};
    nj_list_init(&n->link);
    nj_list_init(&n->ready_list);
    nj_list_init(&n->in_service);
    nj_list_init(&n->surplus_list);
}

void nj__node_set_limit(struct nj__node *n, const struct nj_limit *limit)
{
    n->rate = limit->ceiling;
    n->burst = nj_max_u64(limit->burst ? limit->burst : n->rate / 20, 2 * NJ_QUANTUM_MIN_BYTES);
    n->share_bytes = nj_min_u64(n->rate / 64 + 1, n->burst / 2);
    n->slowest_rate = n->parent ? n->parent->slowest_rate : 0;
    if (n->rate && (n->slowest_rate == 0 || n->rate < n->slowest_rate))
        n->slowest_rate = n->rate;
}

/* ---- the lists ---- */

static void set_idle(struct nj_shape *s, struct nj__node *n);

static void note_surplus(struct nj_shape *s, struct nj__node *n)
{
    if (n->credit > 0 && n->n_waiting == 0 && !nj_list_linked(&n->surplus_list))
        nj_list_push_back(&s->surplus_list, &n->surplus_list);
}

static void group_ready(struct nj_paced_group *g)
{
    if (!g->counted)
        nj_add_relaxed(&g->client->n_lcores, 1);
    g->counted = true;
    nj__group_update_class_demand(g);
}

/* A positive or negative deficit is kept for NJ__DEFICIT_KEPT_NS, then reset. */
static void expire_deficit(struct nj_shape *s, struct nj__node *n)
{
    if (n->state == NJ__NODE_IDLE && s->now - n->unready_at > NJ__DEFICIT_KEPT_NS)
        n->deficit = 0;
}

static void set_ready(struct nj_shape *s, struct nj__node *n)
{
    nj_list_del(&n->link); /* it may be in service */
    if (n->rate && n->credit < NJ_QUANTUM_MIN_BYTES) {
        n->state = NJ__NODE_NO_CREDIT;
        nj_list_push_back(&s->no_credit, &n->link);
        return;
    }
    n->state = NJ__NODE_READY;
    struct nj__node *p = n->parent;
    if (!p)
        return;
    bool has_turn = n->deficit > 0 || n->turn_round != p->round;
    nj_list_push_back(has_turn ? p->ready_list.next : &p->ready_list, &n->link);
    p->n_ready++;
    if (n->level == NJ__LEVEL_GROUP)
        group_ready(nj__group_of_node(n));
    if (p->state == NJ__NODE_IDLE) {
        expire_deficit(s, p);
        set_ready(s, p);
    }
}

/* Removes the node from the schedule of its parent. */
static void remove_ready(struct nj_shape *s, struct nj__node *n)
{
    struct nj__node *p = n->parent;
    n->unready_at = s->now;
    if (!p)
        return;
    nj_list_del(&n->link);
    p->n_ready--;
    if (n->level == NJ__LEVEL_GROUP) {
        struct nj_paced_group *g = nj__group_of_node(n);
        g->class_of->wanted -= g->share;
        g->share = 0;
    }
    if (nj_list_empty(&p->ready_list))
        set_idle(s, p);
}

/* The node has no scheduled child any longer. */
static void set_idle(struct nj_shape *s, struct nj__node *n)
{
    uint8_t was = n->state;
    n->state = NJ__NODE_IDLE;
    n->unready_at = s->now;
    if (was == NJ__NODE_READY)
        remove_ready(s, n);
    else if (was == NJ__NODE_LEASED)
        nj__lease_cancel(s, n);
    else
        nj_list_del(&n->link);
    note_surplus(s, n);
    if (n->level == NJ__LEVEL_GROUP)
        nj_timer_arm(&s->wheel, &nj__group_of_node(n)->linger_timer.timer, s->now + NJ__LINGER_NS);
}

static void set_aside(struct nj_shape *s, struct nj__node *n, enum nj__node_state state)
{
    remove_ready(s, n);
    if (state == NJ__NODE_ROUND_DONE)
        n->parent->round_done = s->run;
    n->state = (uint8_t)state;
    nj_list_push_back(state == NJ__NODE_NO_CREDIT ? &s->no_credit : &s->round_done, &n->link);
}

void nj__drr_queue_response(struct nj_shape *s, struct nj_paced *f)
{
    struct nj__node *g = &f->group->node;
    nj_list_push_back(f->source_empty ? g->ready_list.next : &g->ready_list, &f->want);
    f->source_empty = false;
    f->state = NJ__PACED_WAIT_SHARED;
    for (struct nj__node *n = g; n; n = n->parent)
        n->n_waiting++;
    if (g->state == NJ__NODE_IDLE) {
        expire_deficit(s, g);
        set_ready(s, g);
    }
}

void nj__drr_remove_response(struct nj_shape *s, struct nj_paced *f)
{
    struct nj__node *g = &f->group->node;
    nj_list_del(&f->want);
    f->state = NJ__PACED_NOT_WAITING;
    for (struct nj__node *n = g; n; n = n->parent)
        n->n_waiting--;
    if (nj_list_empty(&g->ready_list))
        set_idle(s, g);
    for (struct nj__node *n = g->parent; n; n = n->parent)
        note_surplus(s, n);
}

/* ---- deficit round robin ---- */

/* Computes the bytes and the total weight of a round, once per run. The number of clients decays
 * slowly, since some are in service. */
static void weigh_round(struct nj_shape *s, struct nj__node *p)
{
    p->weighed_run = s->run;
    p->round_bytes = (uint64_t)((unsigned __int128)p->slowest_rate * s->lease_span / NJ_SEC);
    if (p->level == NJ__LEVEL_CLASS) {
        p->round_weight = nj_max_u64(p->round_weight - (p->round_weight + 15) / 16, p->n_ready);
        return;
    }
    p->round_weight = 0;
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++) {
        const struct nj__class *c = &s->class_of[i];
        if (c->policy && nj__node_is_active(s, &c->node))
            p->round_weight += nj__class_weight_here(s, c);
    }
}

static int64_t turn_bytes(const struct nj_shape *s, const struct nj__node *p, struct nj__node *n)
{
    uint64_t bytes;
    if (p->level == NJ__LEVEL_ROOT) {
        uint64_t weight = nj__class_weight_here(s, nj__class_of_node(n));
        bytes =
            (uint64_t)((unsigned __int128)p->round_bytes * weight / nj_max_u64(p->round_weight, 1));
    } else {
        struct nj_paced_group *g = nj__group_of_node(n);
        nj__group_update_class_demand(g);
        bytes = nj_max_u64(p->round_bytes / nj_max_u64(p->round_weight, 1), NJ_QUANTUM_MIN_BYTES);
        bytes = bytes * (uint64_t)g->share / NJ__SHARE_ONE;
    }
    return (int64_t)nj_max_u64(bytes, NJ__TURN_MIN_BYTES);
}

/* The node has no demand because it is sending its grant. */
static void enter_service(struct nj_shape *s, struct nj__node *n)
{
    struct nj__node *p = n->parent;
    if (nj_list_empty(&p->in_service))
        p->in_service_until = s->now + NJ__IN_SERVICE_NS;
    nj_list_push_back(&p->in_service, &n->link);
}

/* Does the next round wait for a child in service? Children that took too long are dropped. */
static bool is_service_awaited(struct nj_shape *s, struct nj__node *p)
{
    if (s->now >= p->in_service_until)
        while (nj_list_pop(&p->in_service))
            ;
    return !nj_list_empty(&p->in_service);
}

/* The next child of `p` with a positive deficit, or NULL: the round is over for this run. */
static struct nj__node *next_child(struct nj_shape *s, struct nj__node *p)
{
    if (p->weighed_run != s->run)
        weigh_round(s, p);
    for (;;) {
        struct nj__node *n = nj_container_of(p->ready_list.next, struct nj__node, link);
        if (p->slowest_rate == 0 || n->deficit > 0)
            return n;
        if (n->turn_round == p->round) {
            if (p->round_done == s->run || is_service_awaited(s, p))
                return NULL;
            p->round++;
        }
        n->turn_round = p->round;
        n->turn_quantum = turn_bytes(s, p, n);
        n->deficit += n->turn_quantum;
        if (n->deficit <= 0) {
            nj_list_del(&n->link);
            nj_list_push_back(&p->ready_list, &n->link);
        }
    }
}

static void charge_node(struct nj__node *n, uint32_t n_bytes)
{
    if (n->rate)
        n->credit -= n_bytes;
    struct nj__node *p = n->parent;
    if (!p || p->slowest_rate == 0)
        return;
    n->deficit -= n_bytes;
    if (n->state == NJ__NODE_READY && n->deficit <= 0) {
        nj_list_del(&n->link);
        nj_list_push_back(&p->ready_list, &n->link);
    }
}

/* Limits the grant to credit and deficit. */
static uint32_t clip_grant(const struct nj__node *n, uint32_t n_bytes)
{
    if (n->rate)
        n_bytes = (uint32_t)nj_min_u64(n_bytes, n->credit);
    if (n->parent && n->parent->slowest_rate && n->deficit < (int64_t)n_bytes) {
        uint64_t left = n->deficit > 0 ? (uint64_t)n->deficit : 0;
        n_bytes = (uint32_t)nj_min_u64(n_bytes, nj_max_u64(left, NJ_QUANTUM_MIN_BYTES));
    }
    return n_bytes;
}

/* A limit without contention is leased from at once, so that the child does not lose its place. */
static bool has_credit(struct nj_shape *s, struct nj__node *n, uint32_t need)
{
    return n->rate == 0 || n->credit >= need ||
           (s->now >= n->contended_until && nj__lease_try_acquire_now(s, n, nj__lease_bytes(s, n)));
}

/* Records how many responses wait when a run begins to serve; later grants of the run use the same
 * number. */
static void note_backlog(const struct nj_shape *s, struct nj__node *n)
{
    if (n->backlog_run != s->run)
        n->n_backlog = n->n_waiting;
    n->backlog_run = s->run;
}

struct nj_paced *nj__drr_charge_next_response(struct nj_shape *s, uint32_t *n_bytes)
{
    while (s->root.state == NJ__NODE_READY) {
        struct nj__node *c = next_child(s, &s->root);
        if (!c)
            return NULL;
        struct nj__node *g = next_child(s, c);
        if (!g) {
            set_aside(s, c, NJ__NODE_ROUND_DONE);
            continue;
        }
        struct nj_paced *f = nj_container_of(g->ready_list.next, struct nj_paced, want);
        uint32_t need = nj__paced_min_grant(f);
        struct nj__node *n = g;
        while (n && has_credit(s, n, need))
            n = n->parent;
        if (n) {
            set_aside(s, n, NJ__NODE_NO_CREDIT);
            continue;
        }
        for (n = g; n; n = n->parent)
            note_backlog(s, n);
        uint32_t quantum = nj__paced_next_grant_bytes(s, f);
        *n_bytes = quantum;
        for (n = g; n; n = n->parent)
            *n_bytes = clip_grant(n, *n_bytes);
        f->carried_bytes = quantum - *n_bytes;
        for (n = g; n; n = n->parent)
            charge_node(n, *n_bytes);
        nj__drr_remove_response(s, f);
        for (n = g; n->parent; n = n->parent)
            if (n->state == NJ__NODE_IDLE)
                enter_service(s, n);
        return f;
    }
    return NULL;
}

/* May `p` grant at once to its child `n` (NULL: to one of its responses)? During contention only up
 * to the child's deficit. */
static bool may_take(struct nj_shape *s, struct nj__node *p, struct nj__node *n, uint32_t need)
{
    if (p->state == NJ__NODE_NO_CREDIT || p->state == NJ__NODE_LEASED)
        return false;
    bool busy = p->n_waiting > 0 || s->now < p->contended_until;
    if (p->slowest_rate && busy) {
        if (!n && p->n_waiting > 0)
            return false;
        if (n)
            expire_deficit(s, n);
        if (n && n->deficit <= 0)
            return false;
    }
    if (p->rate == 0 || p->credit >= need)
        return true;
    return !busy && nj__lease_try_acquire_now(s, p, nj_max_u64(need, p->burst / 16));
}

uint32_t nj__drr_try_charge_at_once(struct nj_shape *s, struct nj_paced *f, uint32_t n_bytes)
{
    struct nj__node *g = &f->group->node;
    struct nj__node *from = NULL;
    uint32_t need = nj__paced_min_grant(f);
    for (struct nj__node *p = g; p; from = p, p = p->parent)
        if (!may_take(s, p, from, need))
            return 0;
    for (struct nj__node *n = g; n; n = n->parent) {
        struct nj__node *p = n->parent;
        if (n->rate)
            n_bytes = (uint32_t)nj_min_u64(n_bytes, n->credit);
        if (p && p->slowest_rate && (p->n_waiting > 0 || s->now < p->contended_until))
            n_bytes = clip_grant(n, n_bytes);
    }
    for (struct nj__node *n = g; n; n = n->parent) {
        struct nj__node *p = n->parent;
        int64_t before = n->deficit;
        charge_node(n, n_bytes);
        bool free = p && p->n_waiting == 0 && s->now >= p->contended_until;
        if (free && n->deficit < 0)
            n->deficit = before < 0 ? before : 0;
        if (p)
            n->unready_at = s->now;
        note_surplus(s, n);
    }
    return n_bytes;
}

/* Returned credit serves the waiting responses. A lease in addition would grant twice as much. */
static void cancel_lease(struct nj_shape *s, struct nj__node *n)
{
    if (n->state == NJ__NODE_LEASED)
        nj__lease_cancel(s, n);
    else if (n->state == NJ__NODE_NO_CREDIT)
        nj_list_del(&n->link);
    else
        return;
    n->state = NJ__NODE_IDLE;
    set_ready(s, n);
}

/* Undoes the charge to the deficit. */
static void restore_deficit(struct nj__node *n, uint32_t n_bytes)
{
    struct nj__node *p = n->parent;
    int64_t most = n->turn_quantum > NJ_QUANTUM_MAX_BYTES ? n->turn_quantum : NJ_QUANTUM_MAX_BYTES;
    if (!p || p->slowest_rate == 0 || n->deficit >= most) /* many may return credit at once */
        return;
    bool was_over = n->deficit <= 0;
    n->deficit += n_bytes;
    if (n->state == NJ__NODE_READY && was_over && n->deficit > 0) {
        nj_list_del(&n->link);
        nj_list_push_back(p->ready_list.next, &n->link);
    }
}

void nj__drr_return_credit(struct nj_shape *s, struct nj_paced_group *g, uint32_t n_bytes)
{
    for (struct nj__node *n = &g->node; n; n = n->parent) {
        if (n->rate)
            n->credit += n_bytes;
        if (n->rate && n->credit >= NJ_QUANTUM_MIN_BYTES)
            cancel_lease(s, n);
        restore_deficit(n, n_bytes);
        note_surplus(s, n);
    }
}

/* ---- a run ---- */

void nj__lease_add_to_credit(struct nj_shape *s, struct nj__node *n)
{
    n->credit += n->leased;
    n->leased = 0;
    n->state = NJ__NODE_IDLE;
    set_ready(s, n);
}

static void request_lease(struct nj_shape *s, struct nj__node *n)
{
    nj_ns due = nj__lease_from_gcra(s, n, nj__lease_bytes(s, n), &n->leased);
    if (due <= s->now) {
        nj__lease_add_to_credit(s, n);
        return;
    }
    nj_count(s->counters, NJ_C_shape_leases_waited);
    n->state = NJ__NODE_LEASED;
    n->lease_due = due;
    n->contended_until = due + NJ__CONTENDED_NS;
    if (n->level == NJ__LEVEL_GROUP)
        nj_timer_arm(&s->wheel, &nj__group_of_node(n)->lease_timer.timer, due);
    else if (due < s->due)
        s->due = due;
}

/* Leases of the root and of classes are polled: a tick of the timer wheel is too coarse when 64
 * lcores lease one after the other. */
static void add_due_leases(struct nj_shape *s)
{
    s->due = NJ_NEVER;
    for (uint32_t i = 0; i <= NJ_CLASSES_MAX; i++) {
        struct nj__node *n = i < NJ_CLASSES_MAX ? &s->class_of[i].node : &s->root;
        if (n->state != NJ__NODE_LEASED)
            continue;
        if (n->lease_due <= s->now)
            nj__lease_add_to_credit(s, n);
        else if (n->lease_due < s->due)
            s->due = n->lease_due;
    }
}

void nj__drr_begin_shaper_run(struct nj_shape *s)
{
    struct nj_list *l;
    while ((l = nj_list_pop(&s->surplus_list))) {
        struct nj__node *n = nj_container_of(l, struct nj__node, surplus_list);
        if (n->n_waiting == 0) {
            nj_gcra_return(n->rate_gcra, n->rate, n->credit);
            n->credit = 0;
        }
    }
    if (s->due <= s->now)
        add_due_leases(s);
    while ((l = nj_list_pop(&s->round_done))) {
        struct nj__node *n = nj_container_of(l, struct nj__node, link);
        n->state = NJ__NODE_IDLE;
        set_ready(s, n);
    }
    /* A lease that is due at once may queue the parent for a lease at the end of this list. */
    while ((l = nj_list_pop(&s->no_credit)))
        request_lease(s, nj_container_of(l, struct nj__node, link));
    if (s->now >= s->publish_at)
        nj__publish_all_class_demand(s);
}

/* ---- changed limits ---- */

static void forget_credit(struct nj_shape *s, struct nj__node *n)
{
    nj_list_del(&n->link);
    nj_list_del(&n->surplus_list);
    nj_gcra_return(n->rate_gcra, n->rate, n->credit);
    n->credit = 0;
    n->deficit = 0;
    n->contended_until = 0;
}

void nj__node_return_all_credit(struct nj_shape *s, struct nj__node *n)
{
    NJ_ASSERT(n->state == NJ__NODE_IDLE && n->n_waiting == 0 && nj_list_empty(&n->ready_list));
    forget_credit(s, n);
}

void nj__node_set_limit_and_parent(struct nj_shape *s, struct nj__node *n, struct nj__node *parent,
                                   const struct nj_limit *limit)
{
    bool wanted = n->state != NJ__NODE_IDLE;
    if (wanted)
        set_idle(s, n);
    forget_credit(s, n);
    for (struct nj__node *p = n->parent; p; p = p->parent)
        p->n_waiting -= n->n_waiting;
    n->parent = parent;
    for (struct nj__node *p = parent; p; p = p->parent)
        p->n_waiting += n->n_waiting;
    nj__node_set_limit(n, limit);
    nj_gcra_clamp(n->rate_gcra, n->rate, n->burst, s->now);
    if (wanted)
        set_ready(s, n);
}
