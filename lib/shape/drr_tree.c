/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical deficit round robin (Shreedhar and Varghese 1995) over global, class and client.
 * Only nodes with demand are linked, so a grant visits three levels, whatever the number of waiting
 * responses.
 *
 * A node that is sending its last grant is still part of the round: the next round waits until it
 * is back or NJ__AWAY_NS has passed, and its remaining deficit is served first. Otherwise many slow
 * clients would take the share of a single fast one.
 */
#include "base/atomics.h"
#include "shape/shaper_internal.h"

#include "base/assert.h"
#include "base/attr.h"

void nj__node_init(struct nj__node *n, struct nj__node *parent, struct nj_gate *gate, uint8_t level)
{
    *n = (struct nj__node){.parent = parent, .gate = gate, .level = level};
    nj_list_init(&n->link);
    nj_list_init(&n->below);
    nj_list_init(&n->away);
    nj_list_init(&n->rich);
}

void nj__node_limit(struct nj__node *n, const struct nj_limit *limit)
{
    n->rate = limit->ceiling;
    n->burst = nj_max_u64(limit->burst ? limit->burst : n->rate / 20, 2 * NJ_QUANTUM_MIN_BYTES);
    n->share_bytes = nj_min_u64(n->rate / 64 + 1, n->burst / 2);
    n->pace = n->parent ? n->parent->pace : 0;
    if (n->rate && (n->pace == 0 || n->rate < n->pace))
        n->pace = n->rate;
}

/* ---- the lists ---- */

static void idle(struct nj_shape *s, struct nj__node *n);

static void note_surplus(struct nj_shape *s, struct nj__node *n)
{
    if (n->credit > 0 && n->n_waiting == 0 && !nj_list_linked(&n->rich))
        nj_list_push_back(&s->rich, &n->rich);
}

static void group_comes(struct nj_paced_group *g)
{
    if (!g->counted)
        nj_add_relaxed(&g->client->n_lcores, 1);
    g->counted = true;
    nj__group_share(g);
}

/* A positive or negative deficit is kept for NJ__TURN_KEPT_NS, then reset. */
static void refresh(struct nj_shape *s, struct nj__node *n)
{
    if (n->state == NJ__IDLE && s->now - n->left_at > NJ__TURN_KEPT_NS)
        n->deficit = 0;
}

static void wants(struct nj_shape *s, struct nj__node *n)
{
    nj_list_del(&n->link); /* it may be in service */
    if (n->rate && n->credit < NJ_QUANTUM_MIN_BYTES) {
        n->state = NJ__NEEDY;
        nj_list_push_back(&s->needy, &n->link);
        return;
    }
    n->state = NJ__READY;
    struct nj__node *p = n->parent;
    if (!p)
        return;
    bool has_turn = n->deficit > 0 || n->turn != p->round;
    nj_list_push_back(has_turn ? p->below.next : &p->below, &n->link);
    p->n_below++;
    if (n->level == NJ__GROUP)
        group_comes(nj__group_of_node(n));
    if (p->state == NJ__IDLE) {
        refresh(s, p);
        wants(s, p);
    }
}

/* Removes the node from the schedule of its parent. */
static void unready(struct nj_shape *s, struct nj__node *n)
{
    struct nj__node *p = n->parent;
    n->left_at = s->now;
    if (!p)
        return;
    nj_list_del(&n->link);
    p->n_below--;
    if (n->level == NJ__GROUP) {
        struct nj_paced_group *g = nj__group_of_node(n);
        g->class_of->wanted -= g->share;
        g->share = 0;
    }
    if (nj_list_empty(&p->below))
        idle(s, p);
}

/* The node has no scheduled child any longer. */
static void idle(struct nj_shape *s, struct nj__node *n)
{
    uint8_t was = n->state;
    n->state = NJ__IDLE;
    n->left_at = s->now;
    if (was == NJ__READY)
        unready(s, n);
    else if (was == NJ__LEASED)
        nj__lease_forget(s, n);
    else
        nj_list_del(&n->link);
    note_surplus(s, n);
    if (n->level == NJ__GROUP)
        nj_timer_arm(&s->wheel, &nj__group_of_node(n)->linger_timer.timer, s->now + NJ__LINGER_NS);
}

static void set_aside(struct nj_shape *s, struct nj__node *n, enum nj__node_state state)
{
    unready(s, n);
    if (state == NJ__PARKED)
        n->parent->parked = s->run;
    n->state = (uint8_t)state;
    nj_list_push_back(state == NJ__NEEDY ? &s->needy : &s->parked, &n->link);
}

void nj__want(struct nj_shape *s, struct nj_paced *f)
{
    struct nj__node *g = &f->group->node;
    nj_list_push_back(f->starved ? g->below.next : &g->below, &f->want);
    f->starved = false;
    f->state = NJ__PACED_WANT;
    for (struct nj__node *n = g; n; n = n->parent)
        n->n_waiting++;
    if (g->state == NJ__IDLE) {
        refresh(s, g);
        wants(s, g);
    }
}

void nj__unwant(struct nj_shape *s, struct nj_paced *f)
{
    struct nj__node *g = &f->group->node;
    nj_list_del(&f->want);
    f->state = NJ__PACED_FREE;
    for (struct nj__node *n = g; n; n = n->parent)
        n->n_waiting--;
    if (nj_list_empty(&g->below))
        idle(s, g);
    for (struct nj__node *n = g->parent; n; n = n->parent)
        note_surplus(s, n);
}

/* ---- deficit round robin ---- */

/* Computes the bytes and the total weight of a round, once per run. The number of clients decays
 * slowly, since some are in service. */
static void weigh(struct nj_shape *s, struct nj__node *p)
{
    p->weighed = s->run;
    p->round_bytes = (uint64_t)((unsigned __int128)p->pace * s->span / NJ_SEC);
    if (p->level == NJ__CLASS) {
        p->round_weight = nj_max_u64(p->round_weight - (p->round_weight + 15) / 16, p->n_below);
        return;
    }
    p->round_weight = 0;
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++) {
        const struct nj__class *c = &s->class_of[i];
        if (c->policy && nj__is_there(s, &c->node))
            p->round_weight += nj__weight_here(s, c);
    }
}

static int64_t turn_bytes(const struct nj_shape *s, const struct nj__node *p, struct nj__node *n)
{
    uint64_t bytes;
    if (p->level == NJ__ROOT) {
        uint64_t weight = nj__weight_here(s, nj__class_of_node(n));
        bytes =
            (uint64_t)((unsigned __int128)p->round_bytes * weight / nj_max_u64(p->round_weight, 1));
    } else {
        struct nj_paced_group *g = nj__group_of_node(n);
        nj__group_share(g);
        bytes = nj_max_u64(p->round_bytes / nj_max_u64(p->round_weight, 1), NJ_QUANTUM_MIN_BYTES);
        bytes = bytes * (uint64_t)g->share / NJ__ONE;
    }
    return (int64_t)nj_max_u64(bytes, NJ__TURN_MIN_BYTES);
}

/* The node has no demand because it is sending its grant. */
static void enter_service(struct nj_shape *s, struct nj__node *n)
{
    struct nj__node *p = n->parent;
    if (nj_list_empty(&p->away))
        p->away_until = s->now + NJ__AWAY_NS;
    nj_list_push_back(&p->away, &n->link);
}

/* Does the next round wait for a child in service? Children that took too long are dropped. */
static bool is_awaited(struct nj_shape *s, struct nj__node *p)
{
    if (s->now >= p->away_until)
        while (nj_list_pop(&p->away))
            ;
    return !nj_list_empty(&p->away);
}

/* The next child of `p` with a positive deficit, or NULL: the round is over for this run. */
static struct nj__node *next_child(struct nj_shape *s, struct nj__node *p)
{
    if (p->weighed != s->run)
        weigh(s, p);
    for (;;) {
        struct nj__node *n = nj_container_of(p->below.next, struct nj__node, link);
        if (p->pace == 0 || n->deficit > 0)
            return n;
        if (n->turn == p->round) {
            if (p->parked == s->run || is_awaited(s, p))
                return NULL;
            p->round++;
        }
        n->turn = p->round;
        n->brought = turn_bytes(s, p, n);
        n->deficit += n->brought;
        if (n->deficit <= 0) {
            nj_list_del(&n->link);
            nj_list_push_back(&p->below, &n->link);
        }
    }
}

static void charge(struct nj__node *n, uint32_t n_bytes)
{
    if (n->rate)
        n->credit -= n_bytes;
    struct nj__node *p = n->parent;
    if (!p || p->pace == 0)
        return;
    n->deficit -= n_bytes;
    if (n->state == NJ__READY && n->deficit <= 0) {
        nj_list_del(&n->link);
        nj_list_push_back(&p->below, &n->link);
    }
}

/* Limits the grant to credit and deficit. */
static uint32_t clip(const struct nj__node *n, uint32_t n_bytes)
{
    if (n->rate)
        n_bytes = (uint32_t)nj_min_u64(n_bytes, n->credit);
    if (n->parent && n->parent->pace && n->deficit < (int64_t)n_bytes) {
        uint64_t left = n->deficit > 0 ? (uint64_t)n->deficit : 0;
        n_bytes = (uint32_t)nj_min_u64(n_bytes, nj_max_u64(left, NJ_QUANTUM_MIN_BYTES));
    }
    return n_bytes;
}

/* A limit without contention is leased from at once, so that the child does not lose its place. */
static bool has_credit(struct nj_shape *s, struct nj__node *n, uint32_t need)
{
    return n->rate == 0 || n->credit >= need ||
           (s->now >= n->calm_at && nj__lease_now(s, n, nj__lease_bytes(s, n)));
}

/* Records how many responses wait when a run begins to serve; later grants of the run use the same
 * number. */
static void note_backlog(const struct nj_shape *s, struct nj__node *n)
{
    if (n->crowd_run != s->run)
        n->crowd = n->n_waiting;
    n->crowd_run = s->run;
}

struct nj_paced *nj__serve(struct nj_shape *s, uint32_t *n_bytes)
{
    while (s->root.state == NJ__READY) {
        struct nj__node *c = next_child(s, &s->root);
        if (!c)
            return NULL;
        struct nj__node *g = next_child(s, c);
        if (!g) {
            set_aside(s, c, NJ__PARKED);
            continue;
        }
        struct nj_paced *f = nj_container_of(g->below.next, struct nj_paced, want);
        uint32_t need = nj__paced_need(f);
        struct nj__node *n = g;
        while (n && has_credit(s, n, need))
            n = n->parent;
        if (n) {
            set_aside(s, n, NJ__NEEDY);
            continue;
        }
        for (n = g; n; n = n->parent)
            note_backlog(s, n);
        uint32_t quantum = nj__paced_quantum(s, f);
        *n_bytes = quantum;
        for (n = g; n; n = n->parent)
            *n_bytes = clip(n, *n_bytes);
        f->owed = quantum - *n_bytes;
        for (n = g; n; n = n->parent)
            charge(n, *n_bytes);
        nj__unwant(s, f);
        for (n = g; n->parent; n = n->parent)
            if (n->state == NJ__IDLE)
                enter_service(s, n);
        return f;
    }
    return NULL;
}

/* May `p` grant at once to its child `n` (NULL: to one of its responses)? During contention only up
 * to the child's deficit. */
static bool may_take(struct nj_shape *s, struct nj__node *p, struct nj__node *n, uint32_t need)
{
    if (p->state == NJ__NEEDY || p->state == NJ__LEASED)
        return false;
    bool busy = p->n_waiting > 0 || s->now < p->calm_at;
    if (p->pace && busy) {
        if (!n && p->n_waiting > 0)
            return false;
        if (n)
            refresh(s, n);
        if (n && n->deficit <= 0)
            return false;
    }
    if (p->rate == 0 || p->credit >= need)
        return true;
    return !busy && nj__lease_now(s, p, nj_max_u64(need, p->burst / 16));
}

uint32_t nj__take_now(struct nj_shape *s, struct nj_paced *f, uint32_t n_bytes)
{
    struct nj__node *g = &f->group->node;
    struct nj__node *from = NULL;
    uint32_t need = nj__paced_need(f);
    for (struct nj__node *p = g; p; from = p, p = p->parent)
        if (!may_take(s, p, from, need))
            return 0;
    for (struct nj__node *n = g; n; n = n->parent) {
        struct nj__node *p = n->parent;
        if (n->rate)
            n_bytes = (uint32_t)nj_min_u64(n_bytes, n->credit);
        if (p && p->pace && (p->n_waiting > 0 || s->now < p->calm_at))
            n_bytes = clip(n, n_bytes);
    }
    for (struct nj__node *n = g; n; n = n->parent) {
        struct nj__node *p = n->parent;
        int64_t before = n->deficit;
        charge(n, n_bytes);
        bool free = p && p->n_waiting == 0 && s->now >= p->calm_at;
        if (free && n->deficit < 0)
            n->deficit = before < 0 ? before : 0;
        if (p)
            n->left_at = s->now;
        note_surplus(s, n);
    }
    return n_bytes;
}

/* Returned credit serves the waiting responses. A lease in addition would grant twice as much. */
static void no_lease(struct nj_shape *s, struct nj__node *n)
{
    if (n->state == NJ__LEASED)
        nj__lease_forget(s, n);
    else if (n->state == NJ__NEEDY)
        nj_list_del(&n->link);
    else
        return;
    n->state = NJ__IDLE;
    wants(s, n);
}

/* Undoes the charge to the deficit. */
static void turn_back(struct nj__node *n, uint32_t n_bytes)
{
    struct nj__node *p = n->parent;
    int64_t most = n->brought > NJ_QUANTUM_MAX_BYTES ? n->brought : NJ_QUANTUM_MAX_BYTES;
    if (!p || p->pace == 0 || n->deficit >= most) /* many may return credit at once */
        return;
    bool was_over = n->deficit <= 0;
    n->deficit += n_bytes;
    if (n->state == NJ__READY && was_over && n->deficit > 0) {
        nj_list_del(&n->link);
        nj_list_push_back(p->below.next, &n->link);
    }
}

void nj__give_back(struct nj_shape *s, struct nj_paced_group *g, uint32_t n_bytes)
{
    for (struct nj__node *n = &g->node; n; n = n->parent) {
        if (n->rate)
            n->credit += n_bytes;
        if (n->rate && n->credit >= NJ_QUANTUM_MIN_BYTES)
            no_lease(s, n);
        turn_back(n, n_bytes);
        note_surplus(s, n);
    }
}

/* ---- a run ---- */

static void lease_came(struct nj_shape *s, struct nj__node *n, uint64_t n_bytes)
{
    n->credit += n_bytes;
    n->state = NJ__IDLE;
    wants(s, n);
}

void nj__lease_due(struct nj_shape *s, struct nj__node *n)
{
    uint64_t n_bytes = n->leased;
    n->leased = 0;
    lease_came(s, n, n_bytes);
}

static void request_lease(struct nj_shape *s, struct nj__node *n)
{
    uint64_t n_bytes;
    nj_ns due = nj__lease(s, n, nj__lease_bytes(s, n), &n_bytes);
    if (due <= s->now) {
        lease_came(s, n, n_bytes);
        return;
    }
    nj_count(s->counters, NJ_C_shape_leases_waited);
    n->state = NJ__LEASED;
    n->leased = n_bytes;
    n->lease_due = due;
    n->calm_at = due + NJ__CALM_NS;
    if (n->level == NJ__GROUP)
        nj_timer_arm(&s->wheel, &nj__group_of_node(n)->lease_timer.timer, due);
    else if (due < s->due)
        s->due = due;
}

/* Leases of the root and of classes are polled: a tick of the timer wheel is too coarse when 64
 * lcores lease one after the other. */
static void leases_due(struct nj_shape *s)
{
    s->due = NJ_NEVER;
    for (uint32_t i = 0; i <= NJ_CLASSES_MAX; i++) {
        struct nj__node *n = i < NJ_CLASSES_MAX ? &s->class_of[i].node : &s->root;
        if (n->state != NJ__LEASED)
            continue;
        if (n->lease_due <= s->now)
            nj__lease_due(s, n);
        else if (n->lease_due < s->due)
            s->due = n->lease_due;
    }
}

void nj__tree_begin(struct nj_shape *s)
{
    struct nj_list *l;
    while ((l = nj_list_pop(&s->rich))) {
        struct nj__node *n = nj_container_of(l, struct nj__node, rich);
        if (n->n_waiting == 0) {
            nj_gate_return(n->gate, n->rate, n->credit);
            n->credit = 0;
        }
    }
    if (s->due <= s->now)
        leases_due(s);
    while ((l = nj_list_pop(&s->parked))) {
        struct nj__node *n = nj_container_of(l, struct nj__node, link);
        n->state = NJ__IDLE;
        wants(s, n);
    }
    /* A lease that is due at once may queue the parent for a lease at the end of this list. */
    while ((l = nj_list_pop(&s->needy)))
        request_lease(s, nj_container_of(l, struct nj__node, link));
    if (s->now >= s->sweep_at)
        nj__sweep(s);
}

/* ---- changed limits ---- */

static void forget(struct nj_shape *s, struct nj__node *n)
{
    nj_list_del(&n->link);
    nj_list_del(&n->rich);
    nj_gate_return(n->gate, n->rate, n->credit);
    n->credit = 0;
    n->deficit = 0;
    n->calm_at = 0;
}

void nj__node_reset(struct nj_shape *s, struct nj__node *n)
{
    NJ_ASSERT(n->state == NJ__IDLE && n->n_waiting == 0 && nj_list_empty(&n->below));
    forget(s, n);
}

void nj__node_change(struct nj_shape *s, struct nj__node *n, struct nj__node *parent,
                     const struct nj_limit *limit)
{
    bool wanted = n->state != NJ__IDLE;
    if (wanted)
        idle(s, n);
    forget(s, n);
    for (struct nj__node *p = n->parent; p; p = p->parent)
        p->n_waiting -= n->n_waiting;
    n->parent = parent;
    for (struct nj__node *p = parent; p; p = p->parent)
        p->n_waiting += n->n_waiting;
    nj__node_limit(n, limit);
    nj_gate_forgive(n->gate, n->rate, n->burst, s->now);
    if (wanted)
        wants(s, n);
}
