/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects the policy (config/policy_snapshots.h) to the shards: at start, on SIGHUP, and once per
 * minute. */
#include <stdio.h>
#include <time.h>

#include "base/relaxed_atomics.h"
#include "config/policy_warn.h"
#include "config/time_zone.h"
#include "log/log.h"
#include "server/server_internal.h"

/* Clients tracked at once, over all lcores: 128 bytes each, 8 MiB. When the table is full, clients
 * with open connections or responses share the limits of one client. */
#define CLIENTS_MAX 65536u

/* Logs the warnings and frees them. */
static void log_warnings(struct nj_diags *warnings)
{
    if (warnings->text)
        nj_log(NJ_LEVEL_WARNING, "%s", warnings->text);
    if (warnings->n > NJ_DIAGS_MAX)
        nj_log(NJ_LEVEL_WARNING, "%u more policy warnings; see nightjar --check --config FILE",
               warnings->n - NJ_DIAGS_MAX);
    nj_diags_free(warnings);
}

static void log_zone(const struct nj_server *s)
{
    char zone[NJ_TIME_ZONE_TEXT_BYTES];

    nj_time_zone_format(s->zone, time(NULL), zone);
    nj_log(NJ_LEVEL_INFO, "policy: hours of classes are in the time zone %s", zone);
}

bool nj__server_init_policy(struct nj_server *s)
{
    const struct nj_settings *set = &s->settings;
    struct nj_diags warnings = {0};

    nj_time_zone_warn(&warnings);
    nj_time_zone_name(s->zone);
    nj_policy_warn(set->policy, set->given->policy_file, set->given, &warnings);
    log_warnings(&warnings);
    if (nj_policy_file_has_hours(set->policy))
        log_zone(s);
    s->policies = nj_policies_new(set->policy, set->given, set->config,
                                  nj_minute_of_day(time(NULL)), s->why, sizeof s->why);
    if (!s->policies)
        return false;
    s->shape = nj_shape_shared_new(CLIENTS_MAX);
    if (s->shape)
        return true;
    snprintf(s->why, sizeof s->why, "not enough memory for the table of clients");
    nj_policies_free(s->policies);
    return false;
}

void nj__server_free_policy(struct nj_server *s)
{
    nj_shape_shared_free(s->shape);
    nj_policies_free(s->policies);
}

static void set_policy_on_all(void *server, const struct nj_policy *policy)
{
    struct nj_server *s = server;

    for (uint32_t i = 0; i < s->shards.n; i++)
        nj_shard_set_policy(s->shards.shard[i], policy);
    nj__shards_wake(&s->shards);
}

static uint64_t adopted_by_all(void *server)
{
    const struct nj_server *s = server;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < s->shards.n; i++) {
        uint64_t version = nj_shard_policy_version(s->shards.shard[i]);
        least = version < least ? version : least;
    }
    return least;
}

/* A response may start in an old class during this check; nj_shape_set_policy() handles that. */
static bool has_open_responses(void *server, uint8_t slot)
{
    const struct nj_server *s = server;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->shards.n; i++)
        n += nj_load_relaxed(&nj_shape_class_stats(s->shards.shard[i]->txns.shape, slot)->n_open);
    return n > 0;
}

void nj__server_set_policy_ops(struct nj_server *s)
{
    nj_policies_set_ops(s->policies, &(struct nj_policy_ops){s, set_policy_on_all, adopted_by_all,
                                                             has_open_responses});
}

static void format_counts(void *text, const struct nj_policy *p)
{
    snprintf(text, 64, "%u class%s, %u rule%s", p->n_classes, p->n_classes == 1 ? "" : "es",
             p->n_rules, p->n_rules == 1 ? "" : "s");
}

static void log_policy(struct nj_server *s, uint64_t version, const char *why)
{
    char text[64];

    nj_policies_call_with_current(s->policies, format_counts, text);
    nj_log(NJ_LEVEL_INFO, "policy %lu: %s in force, %s", (unsigned long)version, text, why);
}

bool nj__server_reload_policy(struct nj_server *s)
{
    struct nj_diags faults = {0}, warnings = {0};
    char note[128];

    if (!s->settings.given->policy_file)
        return false;
    uint64_t version = nj_policies_reload(s->policies, nj_minute_of_day(time(NULL)), &faults,
                                          &warnings, note, sizeof note);

    if (version == 0) {
        nj_log(NJ_LEVEL_ERROR, "%skeeping the current policy", faults.text ? faults.text : "");
    } else {
        log_policy(s, version, s->settings.config->policy_file);
        if (nj_policies_have_hours(s->policies))
            log_zone(s);
        log_warnings(&warnings);
        if (note[0])
            nj_log(NJ_LEVEL_WARNING, "%s", note);
    }
    nj_diags_free(&faults);
    nj_diags_free(&warnings);
    return version != 0;
}

void nj__server_apply_policy_hours(struct nj_server *s)
{
    uint64_t version = nj_policies_apply_hours(s->policies, nj_minute_of_day(time(NULL)));
    if (version != 0)
        log_policy(s, version, "hours changed");
}
