/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases of credit: takes this lcore's part of a common limit from its GCRA. Demand is published in
 * one atomic per class and client, and read when a lease is made
 * (docs/adr/0009-leases-are-times.md).
 */
#include "base/relaxed_atomics.h"
#include "shape/shaper_internal.h"
#include "telem/counters_http.h"

/* With a small burst, a node holds at most one lease, including the remainder of the last one. */
static bool has_small_burst(const struct nj__node *n)
{
    return n->burst < 16 * NJ_QUANTUM_MIN_BYTES;
}

/* Largest lease: a quarter of the burst, or a quantum. The GCRA's burst is reduced by it, since an
 * lcore may hold a lease in hand. The remainder of a lease is less than a quantum. */
static uint64_t lease_max(const struct nj__node *n)
{
    return nj_max_u64(n->burst / 4, NJ_QUANTUM_MIN_BYTES);
}

static uint64_t gcra_burst(const struct nj__node *n)
{
    return n->burst - lease_max(n) - (has_small_burst(n) ? 0 : NJ_QUANTUM_MIN_BYTES);
}

static uint64_t top_up(const struct nj__node *n, uint64_t n_bytes)
{
    return has_small_burst(n) && n->credit < n_bytes ? n_bytes - n->credit : n_bytes;
}

void nj__publish_class_demand(struct nj_shape *s, struct nj__class *c, int64_t wanted)
{
    if (wanted == c->published)
        return;
    nj_add_relaxed(&s->shared->class_of[c - s->class_of].wanted, wanted - c->published);
    c->published = wanted;
}

/* Publishes the highest demand since the last time: at any moment some clients are sending their
 * grant. */
static void publish_peak(struct nj_shape *s, struct nj__class *c)
{
    nj__publish_class_demand(s, c, c->peak);
    c->peak = c->wanted;
}

/* This lcore's part of the demand for a class, in NJ__SHARE_ONE; 0: no demand anywhere. */
static uint64_t class_share(const struct nj_shape *s, const struct nj__class *c)
{
    int64_t all = nj_load_relaxed(&s->shared->class_of[c - s->class_of].wanted);
    int64_t others = all - c->published;
    int64_t own = c->peak > c->published ? c->peak : c->published;
    if (others <= 0)
        return own > 0 ? NJ__SHARE_ONE : 0;
    return (uint64_t)(own * NJ__SHARE_ONE / (own + others));
}

static bool wanted_elsewhere(const struct nj_shape *s, const struct nj__class *c)
{
    return nj_load_relaxed(&s->shared->class_of[c - s->class_of].wanted) > c->published;
}

/* Is the node scheduled, or was it until NJ__DEFICIT_KEPT_NS ago? */
bool nj__node_is_active(const struct nj_shape *s, const struct nj__node *n)
{
    return n->state == NJ__NODE_READY || n->state == NJ__NODE_ROUND_DONE ||
           (n->state == NJ__NODE_IDLE && n->unready_at &&
            s->now - n->unready_at < NJ__DEFICIT_KEPT_NS);
}

uint64_t nj__class_weight_here(const struct nj_shape *s, const struct nj__class *c)
{
    return c->weight * class_share(s, c) / NJ__SHARE_ONE;
}

/* This lcore's part of the server: the weight of classes active here, relative to all classes with
 * demand. */
static uint64_t root_share(struct nj_shape *s)
{
    uint64_t here = 0, all = 0;
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++) {
        struct nj__class *c = &s->class_of[i];
        if (!c->policy)
            continue;
        bool there = nj__node_is_active(s, &c->node);
        publish_peak(s, c);
        if (there)
            here += nj__class_weight_here(s, c);
        if (there || wanted_elsewhere(s, c))
            all += c->weight;
    }
    return all ? (uint64_t)((unsigned __int128)here * NJ__SHARE_ONE / all) : NJ__SHARE_ONE;
}

static uint64_t node_share(struct nj_shape *s, struct nj__node *n)
{
    if (n->level == NJ__LEVEL_ROOT)
        return root_share(s);
    if (n->level == NJ__LEVEL_CLASS) {
        struct nj__class *c = nj__class_of_node(n);
        publish_peak(s, c);
        return class_share(s, c);
    }
    uint32_t n_lcores = nj_load_relaxed(&nj__group_of_node(n)->client->n_lcores);
    return NJ__SHARE_ONE / (n_lcores ? n_lcores : 1);
}

uint64_t nj__lease_bytes(struct nj_shape *s, struct nj__node *n)
{
    uint64_t all = (uint64_t)((unsigned __int128)n->rate * s->lease_span / NJ_SEC);
    all = nj_min_u64(nj_max_u64(all, 4 * NJ_QUANTUM_MIN_BYTES), lease_max(n));
    return nj_max_u64(all * node_share(s, n) / NJ__SHARE_ONE, NJ_QUANTUM_MIN_BYTES);
}

void nj__lease_cancel(struct nj_shape *s, struct nj__node *n)
{
    if (n->level == NJ__LEVEL_GROUP)
        nj_timer_disarm(&s->wheel, &nj__group_of_node(n)->lease_timer.timer);
    nj_gcra_return(n->rate_gcra, n->rate, n->leased);
    n->leased = 0;
}

/* Returns the time the lease is due, and its size in *n_bytes. */
nj_ns nj__lease_from_gcra(struct nj_shape *s, struct nj__node *n, uint64_t wanted,
                          uint64_t *n_bytes)
{
    *n_bytes = top_up(n, wanted);
    nj_count(s->counters, NJ_C_shape_leases);
    return nj_gcra_reserve_bytes(n->rate_gcra, n->rate, gcra_burst(n), *n_bytes, s->now);
}

bool nj__lease_try_acquire_now(struct nj_shape *s, struct nj__node *n, uint64_t wanted)
{
    uint64_t n_bytes;
    if (nj__lease_from_gcra(s, n, wanted, &n_bytes) > s->now) {
        nj_gcra_return(n->rate_gcra, n->rate, n_bytes);
        n->contended_until = s->now + NJ__CONTENDED_NS;
        return false;
    }
    n->credit += n_bytes;
    return true;
}

/* Updates the group's part of its client, which other lcores may serve too. */
void nj__group_update_class_demand(struct nj_paced_group *g)
{
    uint32_t n = nj_load_relaxed(&g->client->n_lcores);
    int32_t share = NJ__SHARE_ONE / (int32_t)(n ? n : 1);
    struct nj__class *c = g->class_of;
    c->wanted += share - g->share;
    g->share = share;
    if (c->peak < c->wanted)
        c->peak = c->wanted;
}

void nj__publish_all_class_demand(struct nj_shape *s)
{
    s->publish_at = s->now + NJ__CONTENDED_NS;
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++)
        if (s->class_of[i].policy)
            publish_peak(s, &s->class_of[i]);
}
