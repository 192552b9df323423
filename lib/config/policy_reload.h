/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy in force, and how another one comes: from its file, with the hours of the day, by
 * telemetry. Shards are given snapshots; one that was replaced is freed when every shard has
 * adopted a later one. One lock: the supervisor and telemetry's threads change it.
 */
#ifndef NJ_CONFIG_POLICY_RELOAD_H
#define NJ_CONFIG_POLICY_RELOAD_H

#include <time.h>

#include "config/policy_file.h"

#define NJ_POLICIES_OLD_MAX 16u /* replaced ones that a shard may still use */

/* Who is told: all shards. */
struct nj_policy_port {
    void *ctx;
    void (*set)(void *ctx, const struct nj_policy *policy);
    uint64_t (*adopted)(void *ctx);        /* the version that all have adopted, or a later one */
    bool (*runs)(void *ctx, uint8_t slot); /* does a response run in it, on any shard? */
};

struct nj_policies;

/* Version 1, of the file that was read at the start, which lives for longer. `given` is what the
 * command line said. Needs the EAL where there are lists. NULL with the reason. */
struct nj_policies *nj_policies_new(struct nj_policy_file *first,
                                    const struct nj_server_config *given,
                                    const struct nj_server_config *effective, uint32_t minute,
                                    char *why, size_t why_bytes);
/* No shard uses any of them any more. */
void nj_policies_free(struct nj_policies *p);
const struct nj_policy *nj_policies_first(const struct nj_policies *p);
/* From now on these are told. */
void nj_policies_attach(struct nj_policies *p, const struct nj_policy_port *port);

/* Read the file again. Returns the new version; 0 when the old one stays, and why is in `faults`.
 * What a file that is taken says and probably does not mean is in `warnings`, as of
 * nj_policy_warn(). `note`: what to know besides, or empty. */
uint64_t nj_policies_reload(struct nj_policies *p, uint32_t minute, struct nj_faults *faults,
                            struct nj_faults *warnings, char *note, size_t note_bytes);
/* Time has passed: other hours may hold, and what was replaced may be unused. Returns the new
 * version, or 0. */
uint64_t nj_policies_tick(struct nj_policies *p, uint32_t minute);

/* `params`: "class=NAME,KEY=VALUE,KEY=VALUE", without class: the whole server's. In force until the
 * file is read again. Returns the new version; 0 with the reason. */
uint64_t nj_policies_change(struct nj_policies *p, const char *params, char *why, size_t why_bytes);
/* Show the policy in force. */
void nj_policies_see(struct nj_policies *p, void (*see)(void *ctx, const struct nj_policy *policy),
                     void *ctx);

/* Of the process's time zone. */
uint32_t nj_minute_of_day(time_t now);

#endif
