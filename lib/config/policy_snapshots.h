/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The current policy and its changes: reload of the configuration, hours of the day, telemetry.
 * Shards get immutable snapshots. A replaced snapshot is freed when every shard has adopted a later
 * one. Functions may be called from any thread but lcores: a lock serialises them.
 */
#pragma once

#include <time.h>

#include "base/types.h"

#include "config/limit_changes.h"

#define NJ_POLICIES_OLD_MAX 16u /* replaced snapshots that a shard may still use */

/* Calls to the shards. */
struct nj_policy_ops {
    void *ctx;
    void (*set)(void *ctx, const struct nj_policy *policy);
    uint64_t (*adopted)(void *ctx); /* the lowest version that a shard has adopted */
    bool (*has_responses)(void *ctx,
                          uint8_t slot); /* does any shard have an open response in that slot? */
};

struct nj_policies;
struct nj_settings; /* config/settings_validate.h */

/* Create version 1 from the settings of the start, which remain the caller's. Lists need the EAL.
 * NULL with the reason. */
struct nj_policies *nj_policies_new(struct nj_settings *first, uint32_t minute, char *why,
                                    size_t why_bytes);
/* Only when no shard uses a snapshot any more. */
void nj_policies_free(struct nj_policies *p);
const struct nj_policy *nj_policies_initial(const struct nj_policies *p);
/* From now on, pass changes to these shards. */
void nj_policies_set_ops(struct nj_policies *p, const struct nj_policy_ops *port);

/* Those in force. Valid until the next call of nj_policies_install(). */
const struct nj_settings *nj_policies_settings(const struct nj_policies *p);
/* Put settings of nj_settings_read_again() in force, and take them over. Returns the new version,
 * or 0 with the reasons in `faults`: then the current ones are kept, and `next` is the caller's. */
uint64_t nj_policies_install(struct nj_policies *p, struct nj_settings *next, uint32_t minute,
                             struct nj_diags *faults);
/* Does the file in force have hours (nj_policy_file_has_hours())? */
bool nj_policies_have_hours(struct nj_policies *p);
/* Apply the hours of the day and free unused snapshots. Returns the new version, or 0. */
uint64_t nj_policies_apply_hours(struct nj_policies *p, uint32_t minute);

/* Change limits at this time of CLOCK_MONOTONIC: nj_limit_changes_add(). Returns the new version,
 * with what has changed in `why` (nj_limit_change_describe()), or 0 with the reason. */
uint64_t nj_policies_change(struct nj_policies *p, const char *params, nj_ns now, char *why,
                            size_t why_bytes);
/* Ends the changes whose end has come. Returns how many. The supervisor, once per tick. */
uint32_t nj_policies_end_limits(struct nj_policies *p, nj_ns now);

/* A change, and, if it has an end, the limits that the class or the server would have if that had
 * come. */
struct nj_limit_shown {
    struct nj_limit_change change;
    uint64_t file_hash; /* nj_limit_change_file_hash() with the file in force */
    bool has_follower;  /* not if the class is not in force now, because of its hours */
    struct nj_class follower;
};
/* Lists the changes, in their order, in *out, which the caller frees, and returns how many. NULL:
 * no memory. */
uint32_t nj_policies_limits(struct nj_policies *p, struct nj_limit_shown **out);
/* Call `see` with the current policy, under the lock. */
void nj_policies_call_with_current(struct nj_policies *p,
                                   void (*see)(void *ctx, const struct nj_policy *policy),
                                   void *ctx);

/* Call `see` with the sites in force, under the lock. */
void nj_policies_call_with_sites(struct nj_policies *p,
                                 void (*see)(void *ctx, const struct nj_site_def *sites,
                                             uint32_t n),
                                 void *ctx);

/* A network that is blocked until a time of CLOCK_MONOTONIC; NJ_NEVER: until it is unblocked. */
struct nj_block {
    struct nj_net net;
    nj_ns until;
};

/* Blocks a network, of which the bits behind the prefix are 0; one that is blocked already gets the
 * other end. Its connections and requests end when the lcores adopt the next snapshot. Blocks stay
 * in force over reloads. Returns false with the reason if there are NJ_BLOCKS_MAX already, if
 * lcores have not applied the last changes, or without memory. */
bool nj_policies_block(struct nj_policies *p, const struct nj_block *block, char *why,
                       size_t why_bytes);
/* Returns false with the reason, as nj_policies_block(), or if the network is not blocked. */
bool nj_policies_unblock(struct nj_policies *p, const struct nj_net *net, char *why,
                         size_t why_bytes);
/* Removes the blocks whose end has come. Returns how many. The supervisor, once per tick. */
uint32_t nj_policies_end_blocks(struct nj_policies *p, nj_ns now);
/* Copies the blocks, in the order in which they were made, and returns how many. */
uint32_t nj_policies_blocks(struct nj_policies *p, struct nj_block out[NJ_BLOCKS_MAX]);

/* Put the blocks and changes of limits of another process in place of those of this one. Under the
 * lock, `fill` gets the file in force, and sets what begins empty. Returns false with the reason:
 * nothing has changed. */
struct nj_run_time_changes {
    struct nj_limit_changes limits;
    uint32_t n_blocks;
    struct nj_block block[NJ_BLOCKS_MAX];
};
bool nj_policies_restore(struct nj_policies *p,
                         void (*fill)(void *ctx, const struct nj_policy_file *f,
                                      struct nj_run_time_changes *out),
                         void *ctx, char *why, size_t why_bytes);

/* Minute of the local day, 0 to 1439. */
uint32_t nj_minute_of_day(time_t now);
