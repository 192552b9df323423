/* SPDX-License-Identifier: BSD-3-Clause */
/* Rate limits of the server in some seeds: a policy, a change to another policy, and a check that
 * the sent bytes comply. */
#pragma once

#include "shape/shaper.h"

struct sim;

struct sim_limits {
    struct nj_shape_shared *shared; /* NULL: this seed has none */
    struct nj_policy policy[2];
    uint32_t in_use; /* of these */
    nj_ns change_at; /* a whole second; NJ_NEVER */
    /* A leaky bucket at the server's rate. */
    uint64_t seen; /* body bytes of both shards */
    uint64_t level;
    nj_ns at;
};

void nj_sim_limits_init(struct sim *sim);
void nj_sim_limits_fini(struct sim *sim);
/* The initial policy; NULL: none. */
const struct nj_policy *nj_sim_limits_policy(const struct sim *sim);
/* Changes to the second policy. */
void nj_sim_limits_change(struct sim *sim);
/* After each step of a shard. */
void nj_sim_limits_check(struct sim *sim);
