/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A paced response: a body around another body. Without limits it passes everything through.
 * Otherwise it shows bytes up to its credit, requests a new grant when that is used up, and shows
 * nothing while it waits: first for the response's own limit (GCRA, in the timer wheel), then for
 * the common limits (deficit round robin, in its client's list). A grant charges all limits.
 */
#include "base/relaxed_atomics.h"
#include "shape/shaper_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "telem/counters_http.h"

static struct nj_paced *paced_of(struct nj_body *body)
{
    return nj_container_of(body, struct nj_paced, body);
}

/* ---- the response's own limit ---- */

void nj__paced_limit_init(struct nj_paced_limit *own, const struct nj_limit *limit)
{
    struct nj__node n = {0};

    nj__node_set_limit(&n, limit);
    own->rate = limit->ceiling;
    own->full_burst = limit->burst > 0;
    own->burst_units = own->rate ? nj_gcra_cost_down(own->rate, n.burst) : 0;
    own->quantum = NJ_QUANTUM_MAX_BYTES;
    if (own->rate && n.share_bytes < own->quantum)
        own->quantum = (uint32_t)n.share_bytes;
    if (own->quantum < NJ_QUANTUM_MIN_BYTES)
        own->quantum = NJ_QUANTUM_MIN_BYTES;
}

/* Bytes of `n` that are charged to the response's own limit. */
static uint32_t own_part(const struct nj_paced *f, uint32_t n)
{
    if (nj__paced_own_limit(f)->rate == 0)
        return 0;
    uint64_t free = nj__paced_unlimited_bytes(f);
    return free < n ? n - (uint32_t)free : 0;
}

/* Starts with the configured burst, else with one quantum. In any interval the bytes sent then
 * differ from the rate by at most a quantum. */
static void own_begin(const struct nj_shape *s, struct nj_paced *f)
{
    const struct nj_paced_limit *own = nj__paced_own_limit(f);
    uint64_t first = nj_gcra_cost_up(own->rate, own->quantum);
    f->tat = 1;
    if (!own->full_burst && own->burst_units > first)
        f->tat = s->now * NJ_GCRA_UNITS + own->burst_units - first;
}

static nj_ns own_due(const struct nj_shape *s, struct nj_paced *f, uint32_t n)
{
    const struct nj_paced_limit *own = nj__paced_own_limit(f);
    n = own_part(f, n);
    if (n == 0)
        return 0;
    if (f->tat == 0)
        own_begin(s, f);
    uint64_t at = s->now * NJ_GCRA_UNITS;
    uint64_t tat = (f->tat > at ? f->tat : at) + nj_gcra_cost_up(own->rate, n);
    return tat > own->burst_units ? (tat - own->burst_units + NJ_GCRA_UNITS - 1) / NJ_GCRA_UNITS
                                  : 0;
}

static void own_charge(const struct nj_shape *s, struct nj_paced *f, uint32_t n)
{
    f->granted_own = own_part(f, n);
    if (f->granted_own == 0)
        return;
    uint64_t at = s->now * NJ_GCRA_UNITS;
    f->tat =
        (f->tat > at ? f->tat : at) + nj_gcra_cost_up(nj__paced_own_limit(f)->rate, f->granted_own);
}

/* ---- waiting ---- */

static void wait_begins(struct nj_shape *s, struct nj_paced *f)
{
    s->n_waiting++;
    f->group->n_waits++;
    nj_add_single_writer(&f->group->class_of->stats.n_waiting, 1);
    nj_count(s->counters, NJ_C_shape_throttled);
    f->wait_began_at = s->now;
}

static void wait_ends(struct nj_shape *s, struct nj_paced *f)
{
    nj_ns waited = s->now - f->wait_began_at;
    s->n_waiting--;
    f->group->n_waits--;
    nj_add_single_writer(&f->group->class_of->stats.n_waiting, -1u);
    nj_add_single_writer(&f->group->class_of->stats.throttled_ns, waited);
    f->group->throttled_ns += waited;
    f->throttled_ns += waited;
}

bool nj_paced_is_waiting(const struct nj_paced *f)
{
    return f->state == NJ__PACED_WAIT_OWN || f->state == NJ__PACED_WAIT_SHARED;
}

/* The node on the path to the root that has no credit; of several the one whose lease is due last.
 */
static const struct nj__node *find_without_credit(const struct nj__node *n)
{
    const struct nj__node *found = NULL;
    nj_ns found_due = 0;

    for (; n; n = n->parent) {
        nj_ns due = n->state == NJ__NODE_LEASED ? n->lease_due : 0;
        if (n->state != NJ__NODE_LEASED && n->state != NJ__NODE_NO_CREDIT)
            continue;
        if (!found || due > found_due) {
            found = n;
            found_due = due;
        }
    }
    return found;
}

/* The response waits for its turn, while all have credit: the limit that children compete for. */
static const struct nj__node *find_contended(const struct nj_shape *s, const struct nj__node *group)
{
    const struct nj__node *n = group->parent;

    while (n && (n->rate == 0 || s->now >= n->contended_until))
        n = n->parent;
    for (n = n ? n : group; n->rate == 0 && n->parent;)
        n = n->parent;
    return n;
}

enum nj_paced_limiter nj_paced_limited_by(const struct nj_paced *f)
{
    static const enum nj_paced_limiter by_level[] = {
        [NJ__LEVEL_ROOT] = NJ_PACED_BY_SERVER,
        [NJ__LEVEL_CLASS] = NJ_PACED_BY_CLASS,
        [NJ__LEVEL_GROUP] = NJ_PACED_BY_CLIENT,
    };

    if (f->state == NJ__PACED_WAIT_OWN)
        return NJ_PACED_BY_CLASS;
    if (f->state != NJ__PACED_WAIT_SHARED)
        return NJ_PACED_BY_NOTHING;
    const struct nj__node *group = &f->group->node, *n = find_without_credit(group);
    return by_level[(n ? n : find_contended(f->shape, group))->level];
}

uint64_t nj_paced_bytes_left(const struct nj_paced *f)
{
    return f->inner ? nj__paced_remaining(f) : 0;
}

static void wait_own_limit(struct nj_shape *s, struct nj_paced *f, nj_ns due)
{
    f->state = NJ__PACED_WAIT_OWN;
    nj_timer_arm(&s->wheel, &f->timer.timer, due);
}

/* Removes the response from the list or wheel it waits in. */
static void stop_waiting(struct nj_shape *s, struct nj_paced *f)
{
    if (f->state == NJ__PACED_WAIT_OWN) {
        nj_timer_disarm(&s->wheel, &f->timer.timer);
        f->state = NJ__PACED_NOT_WAITING;
    } else if (f->state == NJ__PACED_WAIT_SHARED) {
        nj__drr_remove_response(s, f);
    }
}

/* ---- credit ---- */

void nj__paced_grant(struct nj_shape *s, struct nj_paced *f, uint32_t n)
{
    NJ_ASSERT(f->granted == 0);
    own_charge(s, f, n);
    f->granted = n;
    f->granted_limits_gen = f->group->node.slowest_rate ? f->group->limits_gen : 0;
    f->state = NJ__PACED_NOT_WAITING;
    if (n > 0) /* else the inner body ended meanwhile */
        nj_list_push_back(&s->granted, &f->grant);
}

void nj__paced_wake(struct nj_shape *s, struct nj_paced *f)
{
    wait_ends(s, f);
    f->woken = f->granted > 0;
    s->n_woken++;
    nj_count(s->counters, NJ_C_shape_wakes);
    s->wake(s->wake_ctx, f->body.waiter);
}

void nj__paced_return_grant(struct nj_shape *s, struct nj_paced *f)
{
    nj_list_del(&f->grant);
    if (f->granted == 0)
        return;
    if (f->woken)
        nj_count(s->counters, NJ_C_shape_wakes_empty);
    if (f->granted_limits_gen == f->group->limits_gen) /* else other limits were charged, or none */
        nj__drr_return_credit(s, f->group, f->granted);
    uint32_t own = (uint32_t)nj_min_u64(f->granted, f->granted_own);
    if (own > 0)
        f->tat -= nj_min_u64(nj_gcra_cost_down(nj__paced_own_limit(f)->rate, own), f->tat - 1);
    f->granted = f->granted_own = 0;
    f->woken = false;
}

/* Gets a grant at once, or returns false and waits. */
static bool ask_credit(struct nj_shape *s, struct nj_paced *f)
{
    uint32_t n = nj__paced_next_grant_bytes(s, f);
    if (n == 0)
        return false; /* the body has ended */
    nj_ns due = own_due(s, f, n);
    if (due > s->now) {
        wait_begins(s, f);
        wait_own_limit(s, f, due);
        return false;
    }
    if (f->group->node.slowest_rate) {
        n = nj__drr_try_charge_at_once(s, f, n);
        if (n == 0) {
            wait_begins(s, f);
            nj__drr_queue_response(s, f);
            return false;
        }
    }
    nj__paced_grant(s, f, n);
    return true;
}

/* The response's own limit allows the next grant. */
void nj__paced_on_own_limit_timer(struct nj_shape *s, struct nj_paced *f)
{
    f->state = NJ__PACED_NOT_WAITING;
    if (!f->limited || nj__paced_remaining(f) == 0) {
        nj__paced_wake(s, f);
        return;
    }
    uint32_t n = nj__paced_next_grant_bytes(s, f);
    nj_ns due = own_due(s, f, n);
    if (due > s->now) {
        wait_own_limit(s, f, due);
    } else if (f->group->node.slowest_rate) {
        nj__drr_queue_response(s, f);
    } else {
        nj__paced_grant(s, f, n);
        nj__paced_wake(s, f);
    }
}

/* ---- the body ---- */

static int paced_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct nj_paced *f = paced_of(body);
    struct nj_body *inner = f->inner;
    inner->waiter = body->waiter;
    if (nj_likely(!f->limited))
        return inner->ops->peek(inner, n_max, out);
    if (f->granted == 0 && (nj_paced_is_waiting(f) || !ask_credit(f->shape, f))) {
        if (inner->ops->rest)
            inner->ops->rest(inner);
        return 0;
    }
    int n = inner->ops->peek(inner, (uint32_t)nj_min_u64(n_max, f->granted), out);
    f->source_empty = n == 0;
    return n;
}

static void paced_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct nj_paced *f = paced_of(body);
    struct nj_shape *s = f->shape;
    f->inner->ops->advance(f->inner, n_bytes);
    if (f->n_bytes == 0)
        f->first_byte_at = s->now;
    f->n_bytes += n_bytes;
    nj_count_n(s->counters, NJ_C_shape_bytes, n_bytes);
    nj_add_single_writer(&f->group->class_of->stats.n_bytes, n_bytes);
    nj__group_count_sent(s, f->group, n_bytes);
    if (!f->limited)
        return;
    NJ_ASSERT(n_bytes <= f->granted);
    f->granted -= n_bytes;
    f->woken = false;
    if (f->granted == 0)
        nj_list_del(&f->grant);
}

static uint64_t paced_remaining(const struct nj_body *body)
{
    const struct nj_paced *f = nj_container_of(body, const struct nj_paced, body);
    return nj__paced_remaining(f);
}

/* Ends any wait and returns the grant. */
static void end_waiting(struct nj_paced *f)
{
    struct nj_shape *s = f->shape;
    if (nj_paced_is_waiting(f)) {
        wait_ends(s, f);
        stop_waiting(s, f);
    }
    f->woken = false;
    nj__paced_return_grant(s, f);
    f->state = NJ__PACED_CLOSED;
}

static void paced_close(struct nj_body *body)
{
    struct nj_paced *f = paced_of(body);
    struct nj_body *inner = f->inner;
    end_waiting(f);
    f->inner = NULL;
    inner->ops->close(inner);
}

static const struct nj_body_ops paced_ops = {
    .peek = paced_peek,
    .advance = paced_advance,
    .remaining = paced_remaining,
    .close = paced_close,
};

/* ---- public calls ---- */

static void update_limited(struct nj_paced *f)
{
    f->limited = f->group->node.slowest_rate || nj__paced_own_limit(f)->rate;
}

bool nj_paced_begin(struct nj_shape *s, struct nj_paced *f, const struct nj_class *class_of,
                    struct nj_client *client, nj_ns now)
{
    struct nj__class *c = &s->class_of[class_of->slot];
    NJ_ASSERT(c->policy);
    *f = (struct nj_paced){.body.ops = &paced_ops, .shape = s, .state = NJ__PACED_NOT_WAITING};
    f->group = nj__group_join(s, c, client);
    if (!f->group)
        return false;
    nj_list_init(&f->want);
    nj_list_init(&f->grant);
    nj_timer_init(&f->timer.timer);
    f->timer.kind = NJ__TIMER_OWN;
    nj_list_push_back(&s->all, &f->all);
    s->n_responses++;
    update_limited(f);
    nj_add_single_writer(&c->stats.n_requests, 1);
    nj_add_single_writer(&c->stats.n_open, 1);
    return true;
}

struct nj_body *nj_paced_wrap(struct nj_paced *f, struct nj_body *inner)
{
    f->inner = inner;
    return inner ? &f->body : NULL;
}

void nj_paced_end(struct nj_paced *f)
{
    struct nj_shape *s = f->shape;
    NJ_ASSERT(!f->inner && !nj_paced_is_waiting(f) && f->granted == 0);
    nj_add_single_writer(&f->group->class_of->stats.n_open, -1u);
    f->all.prev->next = f->all.next; /* as nj_list_del(), but nobody asks whether it is in a list */
    f->all.next->prev = f->all.prev;
    s->n_responses--;
    nj__group_leave(s, f->group);
    f->group = NULL;
}

bool nj_paced_is_of_class(const struct nj_paced *f, const struct nj_class *class_of)
{
    const struct nj_paced_group *g = f->group;
    return g->class_of == &f->shape->class_of[class_of->slot] && g->slot_gen == class_of->slot_gen;
}

bool nj_paced_set_class(struct nj_paced *f, const struct nj_class *class_of,
                        struct nj_client *client)
{
    struct nj_shape *s = f->shape;
    struct nj__class *c = &s->class_of[class_of->slot];

    NJ_ASSERT(!f->inner && !nj_paced_is_waiting(f) && f->granted == 0);
    struct nj_paced_group *g = nj__group_join(s, c, client);
    if (!g)
        return false;
    nj_add_single_writer(&f->group->class_of->stats.n_open, -1u);
    nj__group_leave(s, f->group);
    f->group = g;
    update_limited(f);
    nj_add_single_writer(&c->stats.n_requests, 1);
    nj_add_single_writer(&c->stats.n_open, 1);
    return true;
}

/* ---- changed limits ---- */

/* The grant in hand was charged to the former limit and is returned. */
void nj_paced_set_limit(struct nj_paced *f, const struct nj_limit *limit)
{
    struct nj_shape *s = f->shape;
    bool waits = nj_paced_is_waiting(f);

    nj__paced_return_grant(s, f);
    stop_waiting(s, f);
    f->has_own_limit = limit != NULL;
    if (limit)
        nj__paced_limit_init(&f->own, limit);
    f->tat = nj_min_u64(f->tat, s->now * NJ_GCRA_UNITS + nj__paced_own_limit(f)->burst_units);
    update_limited(f);
    if (waits)
        wait_own_limit(s, f, s->now);
}

/* Moves a response without a grant to the new policy. A waiting response is checked again by the
 * wheel, in the same run. */
void nj__paced_migrate(struct nj_shape *s, struct nj_paced *f)
{
    bool waits = nj_paced_is_waiting(f);
    NJ_ASSERT(f->granted == 0);
    stop_waiting(s, f);
    nj__group_migrate(s, f->group);
    uint64_t most = s->now * NJ_GCRA_UNITS + nj__paced_own_limit(f)->burst_units;
    f->tat = nj_min_u64(f->tat, most); /* like nj_gcra_clamp() */
    update_limited(f);
    f->source_empty = false;
    if (waits)
        wait_own_limit(s, f, s->now);
}
