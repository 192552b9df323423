/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: one per client and class with responses on this shard. They are the leaves of the deficit
 * round robin tree. Statistics are added to the client entry that all lcores share only at
 * intervals: such a write costs more than a grant.
 */
#include "base/relaxed_atomics.h"
#include "shape/shaper_internal.h"

#include "base/compiler.h"

#define FLUSH_BYTES (256u * 1024u)
#define FLUSH_NS    (500 * NJ_MS)

static struct nj_list *bucket_of(struct nj_shape *s, const struct nj_client *client)
{
    uint64_t place = (uint64_t)(uintptr_t)client / sizeof *client;
    return &s->bucket[(place * 0x9e3779b97f4a7c15u >> 32) & s->bucket_mask];
}

void nj__group_free_idle_spare(struct nj_shape *s)
{
    if (!s->idle_group)
        return;
    nj_list_del(&s->idle_group->bucket);
    nj_pool_put(&s->groups, s->idle_group);
    s->idle_group = NULL;
}

static struct nj_paced_group *group_new(struct nj_shape *s, struct nj__class *c,
                                        struct nj_client *client)
{
    if (s->groups.n_used == s->groups.n_max)
        nj__group_free_idle_spare(s);
    struct nj_paced_group *g = nj_pool_take(&s->groups);
    if (!g)
        return NULL;
    nj__node_init(&g->node, &c->node, &client->rate_gcra, NJ__LEVEL_GROUP);
    g->class_of = c;
    g->client = client;
    g->flushed_at = s->now;
    nj_timer_init(&g->lease_timer.timer);
    nj_timer_init(&g->linger_timer.timer);
    g->lease_timer.kind = NJ__TIMER_LEASE;
    g->linger_timer.kind = NJ__TIMER_LINGER;
    nj_list_push_back(bucket_of(s, client), &g->bucket);
    nj__node_set_limit(&g->node, &c->policy->client);
    g->limits_gen = s->limits_gen;
    g->slot_gen = c->slot_gen;
    return g;
}

struct nj_paced_group *nj__group_join(struct nj_shape *s, struct nj__class *c,
                                      struct nj_client *client)
{
    struct nj_list *head = bucket_of(s, client);
    struct nj_paced_group *g = NULL;
    for (struct nj_list *l = head->next; l != head && !g; l = l->next) {
        struct nj_paced_group *at = nj_container_of(l, struct nj_paced_group, bucket);
        if (at->client == client && at->class_of == c && at->slot_gen == c->slot_gen)
            g = at;
    }
    if (g)
        nj__group_migrate(s, g);
    else
        g = group_new(s, c, client);
    if (!g)
        return NULL;
    if (g == s->idle_group) {
        s->idle_group = NULL;
        g->flushed_at = s->now;
    }
    g->n_responses++;
    return g;
}

static void leave_lcore(struct nj_paced_group *g)
{
    if (g->counted)
        atomic_fetch_sub_explicit(&g->client->n_lcores, 1, memory_order_relaxed);
    g->counted = false;
}

/* The last group that became empty is kept, so a client that sends one request after another reuses
 * it. It refers to its client's slot in the table, not to the client in it. */
void nj__group_leave(struct nj_shape *s, struct nj_paced_group *g)
{
    if (--g->n_responses > 0)
        return;
    nj__group_flush_counts(g);
    leave_lcore(g);
    nj__node_return_all_credit(s, &g->node);
    nj_timer_disarm(&s->wheel, &g->lease_timer.timer);
    nj_timer_disarm(&s->wheel, &g->linger_timer.timer);
    nj__group_free_idle_spare(s);
    s->idle_group = g;
}

/* Adds the group's open and waiting responses to its class, or subtracts them. */
static void count_in_class(struct nj_paced_group *g, int32_t sign)
{
    nj_add_single_writer(&g->class_of->stats.n_open, sign * (int32_t)g->n_responses);
    nj_add_single_writer(&g->class_of->stats.n_waiting, sign * (int32_t)g->n_waits);
    g->class_of->wanted += sign * g->share;
}

void nj__group_migrate(struct nj_shape *s, struct nj_paced_group *g)
{
    if (g->limits_gen == s->limits_gen)
        return;
    g->limits_gen = s->limits_gen;
    if (g->class_of->is_retired || g->slot_gen != g->class_of->slot_gen) {
        count_in_class(g, -1);
        g->class_of = &s->class_of[s->policy->classes[0].slot];
        g->slot_gen = g->class_of->slot_gen;
        count_in_class(g, 1);
    }
    nj__node_set_limit_and_parent(s, &g->node, &g->class_of->node, &g->class_of->policy->client);
}

void nj__group_flush_counts(struct nj_paced_group *g)
{
    if (g->n_bytes)
        nj_add_relaxed(&g->client->n_bytes, g->n_bytes);
    if (g->throttled_ns)
        nj_add_relaxed(&g->client->throttled_ns, g->throttled_ns);
    g->n_bytes = 0;
    g->throttled_ns = 0;
}

void nj__group_count_sent(struct nj_shape *s, struct nj_paced_group *g, uint32_t n)
{
    g->n_bytes += n;
    if (g->n_bytes < FLUSH_BYTES && s->now - g->flushed_at < FLUSH_NS)
        return;
    g->flushed_at = s->now;
    nj__group_flush_counts(g);
}

void nj__group_release_idle_share(struct nj_shape *s, struct nj_paced_group *g)
{
    if (g->node.state != NJ__NODE_IDLE)
        return; /* armed again when the group has no demand */
    if (s->now - g->node.unready_at >= NJ__LINGER_NS)
        leave_lcore(g);
    else
        nj_timer_arm(&s->wheel, &g->linger_timer.timer, g->node.unready_at + NJ__LINGER_NS);
}
