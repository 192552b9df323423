/* SPDX-License-Identifier: BSD-3-Clause */
/* The shaper of one shard: creation, runs, and new policies. The tree itself is drr_tree.c
 * (deficit round robin). */
#include "shape/shaper.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "shape/shaper_internal.h"
#include "telem/counters_http.h"

/* ---- state common to all lcores ---- */

struct nj_shape_shared *nj_shape_shared_new(uint32_t clients_max)
{
    struct nj_shape_shared *shared = aligned_alloc(NJ_CACHE_LINE, sizeof *shared);
    if (!shared)
        return NULL;
    memset(shared, 0, sizeof *shared);
    shared->clients = nj_clients_new(clients_max);
    if (shared->clients)
        return shared;
    free(shared);
    return NULL;
}

void nj_shape_shared_free(struct nj_shape_shared *shared)
{
    if (!shared)
        return;
    nj_clients_free(shared->clients);
    free(shared);
}

struct nj_clients *nj_shape_clients(struct nj_shape_shared *shared)
{
    return shared->clients;
}

/* ---- limits ---- */

/* Weight of classes without a guaranteed rate: the average of the guaranteed ones, but at most an
 * equal part of what these leave of the server. */
static uint64_t default_weight(const struct nj_policy *p)
{
    uint64_t sure = 0, n_sure = 0;
    for (uint32_t i = 0; i < p->n_classes; i++) {
        sure += p->classes[i].total.rate;
        n_sure += p->classes[i].total.rate > 0;
    }
    if (n_sure == 0 || n_sure == p->n_classes)
        return 1u << 20; /* all weigh the same */
    uint64_t weight = sure / n_sure;
    uint64_t most =
        p->total.ceiling > sure ? (p->total.ceiling - sure) / (p->n_classes - n_sure) : 0;
    if (p->total.ceiling && weight > most)
        weight = most;
    return weight > sure / NJ__SHARE_ONE ? weight : sure / NJ__SHARE_ONE + 1;
}

/* A class of another name got the slot: statistics start at zero. */
static void reset_class(struct nj__class *c, uint32_t slot_gen)
{
    c->slot_gen = slot_gen;
    nj_store_relaxed(&c->stats.n_requests, 0);
    nj_store_relaxed(&c->stats.n_refused, 0);
    nj_store_relaxed(&c->stats.n_bytes, 0);
    nj_store_relaxed(&c->stats.throttled_ns, 0);
}

static void apply_class_limits(struct nj_shape *s, const struct nj_policy *p)
{
    uint64_t others = default_weight(p);
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++)
        s->class_of[i].is_retired = s->class_of[i].policy != NULL;
    for (uint32_t i = 0; i < p->n_classes; i++) {
        const struct nj_class *k = &p->classes[i];
        struct nj__class *c = &s->class_of[k->slot];
        c->policy = k;
        c->is_retired = false;
        if (c->slot_gen != k->slot_gen)
            reset_class(c, k->slot_gen);
        c->weight = k->total.rate ? k->total.rate : others;
        nj__node_set_limit_and_parent(s, &c->node, &s->root, &k->total);
        nj__paced_limit_init(&c->own, &c->policy->request);
    }
}

static void apply_limits(struct nj_shape *s, const struct nj_policy *p)
{
    s->policy = p;
    s->limits_gen++;
    nj__node_set_limit_and_parent(s, &s->root, NULL, &p->total);
    apply_class_limits(s, p);
}

/* Frees classes of former policies; no response is left in them. */
static void free_retired(struct nj_shape *s)
{
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++) {
        struct nj__class *c = &s->class_of[i];
        if (!c->is_retired)
            continue;
        nj__node_return_all_credit(s, &c->node);
        nj__publish_class_demand(s, c, 0);
        c->policy = NULL;
        c->is_retired = false;
        c->peak = 0;
    }
}

static void migrate_some(struct nj_shape *s)
{
    for (uint32_t i = 0; i < NJ_SHAPE_MIGRATE_MAX && !nj_list_empty(&s->unmigrated); i++) {
        struct nj_list *l = nj_list_pop(&s->unmigrated);
        nj_list_push_back(&s->all, l);
        nj__paced_migrate(s, nj_container_of(l, struct nj_paced, all));
    }
    if (nj_list_empty(&s->unmigrated))
        free_retired(s);
}

static void return_grants(struct nj_shape *s)
{
    while (!nj_list_empty(&s->granted))
        nj__paced_return_grant(s, nj_container_of(s->granted.next, struct nj_paced, grant));
}

void nj_shape_set_policy(struct nj_shape *s, const struct nj_policy *policy, nj_ns now)
{
    s->now = now;
    for (struct nj_list *l = s->granted.next; l != &s->granted; l = l->next)
        nj_container_of(l, struct nj_paced, grant)->woken =
            false; /* the wake is not counted as empty */
    return_grants(s);
    apply_limits(s, policy);
    nj_list_splice(&s->all, &s->unmigrated);
    nj_list_splice(&s->unmigrated, &s->all);
    if (nj_list_empty(&s->unmigrated))
        free_retired(s);
}

bool nj_shape_is_migrated(const struct nj_shape *s)
{
    return nj_list_empty(&s->unmigrated);
}

const struct nj_policy *nj_shape_policy(const struct nj_shape *s)
{
    return s->policy;
}

const struct nj_class_stats *nj_shape_class_stats(const struct nj_shape *s, uint32_t slot)
{
    return &s->class_of[slot].stats;
}

const struct nj_class *nj_paced_class(const struct nj_paced *f)
{
    return f->group->class_of->policy;
}

void nj_shape_count_refused(struct nj_shape *s, const struct nj_class *class_of)
{
    nj_add_single_writer(&s->class_of[class_of->slot].stats.n_refused, 1);
}

/* ---- creation ---- */

static bool init_tables(struct nj_shape *s, uint32_t paced_max)
{
    uint32_t n = 64;
    while (n < paced_max && n < 1u << 20)
        n *= 2;
    s->bucket_mask = n - 1;
    s->bucket = malloc(n * sizeof *s->bucket);
    if (!s->bucket)
        return false;
    for (uint32_t i = 0; i < n; i++)
        nj_list_init(&s->bucket[i]);
    return nj_pool_init(&s->groups, sizeof(struct nj_paced_group), paced_max);
}

struct nj_shape *nj_shape_new(const struct nj_shape_config *config, nj_ns now)
{
    struct nj_shape *s = calloc(1, sizeof *s);
    if (!s || !init_tables(s, config->paced_max)) {
        nj_shape_free(s);
        return NULL;
    }
    s->shared = config->shared;
    s->counters = config->counters;
    s->now = now;
    s->lease_span = NJ__LEASE_NS;
    s->due = NJ_NEVER;
    nj_wheel_init(&s->wheel, now);
    nj_list_init(&s->round_done);
    nj_list_init(&s->no_credit);
    nj_list_init(&s->surplus_list);
    nj_list_init(&s->granted);
    nj_list_init(&s->all);
    nj_list_init(&s->unmigrated);
    nj__node_init(&s->root, NULL, &s->shared->root.rate_gcra, NJ__LEVEL_ROOT);
    for (uint32_t i = 0; i < NJ_CLASSES_MAX; i++)
        nj__node_init(&s->class_of[i].node, &s->root, &s->shared->class_of[i].rate_gcra,
                      NJ__LEVEL_CLASS);
    apply_limits(s, config->policy);
    return s;
}

void nj_shape_free(struct nj_shape *s)
{
    if (!s)
        return;
    NJ_ASSERT(s->n_responses == 0);
    nj__group_free_idle_spare(s);
    for (uint32_t i = 0; s->shared && i < NJ_CLASSES_MAX; i++)
        nj__publish_class_demand(s, &s->class_of[i], 0);
    nj_pool_fini(&s->groups);
    free(s->bucket);
    free(s);
}

/* ---- a run ---- */

static void timer_due(void *ctx, struct nj_timer *t)
{
    struct nj_shape *s = ctx;
    struct nj_shape_timer *st = nj_container_of(t, struct nj_shape_timer, timer);
    if (st->kind == NJ__TIMER_OWN)
        nj__paced_on_own_limit_timer(s, nj_container_of(st, struct nj_paced, timer));
    else if (st->kind == NJ__TIMER_LEASE)
        nj__lease_add_to_credit(s, &nj_container_of(st, struct nj_paced_group, lease_timer)->node);
    else
        nj__group_release_idle_share(s, nj_container_of(st, struct nj_paced_group, linger_timer));
}

void nj_shape_publish(struct nj_shape *s)
{
    nj_gauge_set(s->counters, NJ_C_shape_responses, s->n_responses);
    nj_gauge_set(s->counters, NJ_C_shape_waiting, s->n_waiting);
    nj_gauge_set(s->counters, NJ_C_shape_timers, s->wheel.n_timers);
    nj_gauge_set(s->counters, NJ_C_shape_clients, s->groups.n_used - (s->idle_group != NULL));
}

uint32_t nj_shape_run(struct nj_shape *s, nj_ns now, void (*wake)(void *ctx, void *waiter),
                      void *ctx)
{
    nj_ns lease_span = now - s->now;
    s->lease_span = lease_span < NJ__LEASE_NS       ? NJ__LEASE_NS
                    : lease_span > NJ__LEASE_NS_MAX ? NJ__LEASE_NS_MAX
                                                    : lease_span;
    s->now = now;
    s->run++;
    s->wake = wake;
    s->wake_ctx = ctx;
    s->n_woken = 0;
    return_grants(s);
    if (nj_unlikely(!nj_shape_is_migrated(s)))
        migrate_some(s);
    nj_wheel_advance(&s->wheel, now, timer_due, s);
    nj__drr_begin_shaper_run(s);
    uint32_t n;
    struct nj_paced *f;
    while ((f = nj__drr_charge_next_response(s, &n))) {
        nj__paced_grant(s, f, n);
        nj__paced_wake(s, f);
    }
    nj_shape_publish(s);
    return s->n_woken;
}

nj_ns nj_shape_next_at(const struct nj_shape *s)
{
    if (s->root.state == NJ__NODE_READY || !nj_list_empty(&s->no_credit) ||
        !nj_list_empty(&s->round_done) || !nj_list_empty(&s->granted) ||
        !nj_list_empty(&s->surplus_list) || !nj_shape_is_migrated(s))
        return s->now;
    nj_ns next = nj_wheel_next_due(&s->wheel);
    return next < s->due ? next : s->due;
}
