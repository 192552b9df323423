/* SPDX-License-Identifier: BSD-3-Clause */
#include "pace.h"

#include "base/assert.h"
#include "telem/counters.h"
#include "sim.h"

static uint64_t rate_of(struct nj_prng *p, uint64_t least, uint64_t most)
{
    return nj_prng_below(p, 2) ? least + nj_prng_next(p) % (most - least) : 0;
}

static struct nj_limit limit(struct nj_prng *p, uint64_t least, uint64_t most)
{
    uint64_t rate = rate_of(p, least, most);
    return (struct nj_limit){.rate = nj_prng_below(p, 3) ? rate : 0, .ceiling = rate};
}

/* Rates low enough to matter, and high enough that all bodies of a seed complete in time. */
static void draw(struct nj_policy *policy, uint64_t version, struct nj_prng *p)
{
    static const char *const prefix[] = {"", "/w-", "/k-"};

    *policy = nj_policy_none;
    policy->version = version;
    policy->total = limit(p, 300000, 5000000);
    policy->n_classes = 1 + nj_prng_below(p, 3);
    for (uint32_t i = 0; i < policy->n_classes; i++) {
        struct nj_class *c = &policy->classes[i];
        *c = policy->classes[0];
        c->slot = (uint8_t)i;
        snprintf(c->name, sizeof c->name, "class%u", i);
        c->total = limit(p, 300000, 5000000);
        c->client = limit(p, 200000, 3000000);
        c->request = limit(p, 100000, 2000000);
        c->rate_after = nj_prng_below(p, 2) ? nj_prng_below(p, 100000) : 0;
        if (i > 0)
            policy->rules[policy->n_rules++] = (struct nj_class_rule){
                .class_index = (uint8_t)i,
                .path_prefix = {prefix[i], (uint32_t)strlen(prefix[i])},
            };
    }
}

void nj_sim_limits_init(struct sim *sim)
{
    struct sim_limits *l = &sim->limits;
    struct nj_prng p;

    *l = (struct sim_limits){.change_at = NJ_NEVER, .at = sim->now};
    nj_prng_init(&p, sim->seed ^ 0x117117);
    if (!sim->mix.limits || nj_prng_below(&p, 3) > 0)
        return;
    l->shared = nj_shape_shared_new(64);
    NJ_CHECK(l->shared);
    draw(&l->policy[0], 1, &p);
    draw(&l->policy[1], 2, &p);
    if (nj_prng_below(&p, 2))
        l->change_at = sim->now + nj_prng_next(&p) % (10 * NJ_SEC);
}

void nj_sim_limits_fini(struct sim *sim)
{
    nj_shape_shared_free(sim->limits.shared);
}

const struct nj_policy *nj_sim_limits_policy(const struct sim *sim)
{
    return sim->limits.shared ? &sim->limits.policy[0] : NULL;
}

void nj_sim_limits_change(struct sim *sim)
{
    struct sim_limits *l = &sim->limits;

    nj_sim_log(sim, "another policy");
    l->change_at = NJ_NEVER;
    l->in_use = 1;
    l->level = 0;
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        nj_conns_set_policy(&sim->server.lane[i].shard->conns, &l->policy[1]);
}

static uint64_t sum(const struct sim *sim, nj_counter which)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        n += nj_counter_read(&sim->server.lane[i].shard->counters, which);
    return n;
}

void nj_sim_limits_check(struct sim *sim)
{
    struct sim_limits *l = &sim->limits;
    const struct nj_limit *total = &l->policy[l->in_use].total;
    uint64_t sent = sum(sim, NJ_C_body_bytes), charged = sum(sim, NJ_C_shape_bytes);

    if (charged != sent)
        nj_sim_fail(sim, "%lu bytes of bodies went, %lu were charged", (unsigned long)sent,
                    (unsigned long)charged);
    if (!l->shared || total->ceiling == 0) {
        l->seen = sent;
        l->at = sim->now;
        return;
    }
    uint64_t leaked = (sim->now - l->at) * total->ceiling / NJ_SEC;
    if (leaked >= l->level) {
        l->level = 0;
        l->at = sim->now;
    } else { /* fractions of a byte are leaked the next time */
        l->level -= leaked;
        l->at += leaked * NJ_SEC / total->ceiling;
    }
    l->level += sent - l->seen;
    l->seen = sent;
    uint64_t burst = total->ceiling / 20;
    burst = burst > 2 * NJ_QUANTUM_MIN_BYTES ? burst : 2 * NJ_QUANTUM_MIN_BYTES;
    if (l->level > burst)
        nj_sim_fail(sim, "%lu bytes more than %lu per second", (unsigned long)l->level,
                    (unsigned long)total->ceiling);
}
