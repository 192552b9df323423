/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of a server (config/policy_snapshots.h) and the state that its shards share for it: at
 * start, on SIGHUP, and once per minute. */
#pragma once

#include "config/policy_snapshots.h"
#include "config/settings_validate.h"
#include "config/time_zone.h"
#include "server/shards.h"

struct nj_policy_in_force {
    const struct nj_settings *settings;
    struct nj_policies *policies;
    struct nj_shape_shared *shape;
    char zone[NJ_TIME_ZONE_NAME_BYTES]; /* name of the time zone */
};

/* Log the warnings about the policy file and create what shards need. `settings` live as long as
 * `p`. Returns 0, or -1 with the reason. Main thread. */
int nj__policy_open(struct nj_policy_in_force *p, struct nj_settings *settings, char *why,
                    size_t why_bytes);
void nj__policy_close(struct nj_policy_in_force *p);
/* Pass changes to these shards from now on. */
void nj__policy_set_shards(struct nj_policy_in_force *p, struct nj_shards *shards);
/* Apply hours of the day. The supervisor, once per tick. */
void nj__policy_apply_hours(struct nj_policy_in_force *p);
/* nj_policies_change(), with a line in the log. False with the reason: nothing has changed. Any
 * thread but an lcore. */
bool nj__policy_change_limits(struct nj_policy_in_force *p, const char *change, char *why,
                              size_t why_bytes);
/* End the blocks and the changes of limits that are due at this time of CLOCK_MONOTONIC. The
 * supervisor, once per tick. */
void nj__policy_end_due(struct nj_policy_in_force *p, nj_ns now);
/* Put other settings in force: nj_policies_install(), with lines in the log. Any thread but an
 * lcore.
 */
uint64_t nj__policy_install(struct nj_policy_in_force *p, struct nj_settings *next,
                            struct nj_diags *faults);
/* Log the warnings and free them. */
void nj__policy_log_warnings(struct nj_diags *warnings);
