/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/policy_in_force.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/relaxed_atomics.h"
#include "base/set_error.h"
#include "config/policy_warn.h"
#include "config/site_sections.h"
#include "log/log.h"
#include "threads/os_clock.h"

/* Clients tracked at once, over all lcores: 128 bytes each, 8 MiB. When the table is full, clients
 * with open connections or responses share the limits of one client. */
#define CLIENTS_MAX 65536u

void nj__policy_log_warnings(struct nj_diags *warnings)
{
    for (char *p = warnings->text; p && *p; p += strcspn(p, "\n"), p += *p != '\0') {
        char *word = memmem(p, strcspn(p, "\n"), "warning: ", 9); /* the level says it */
        if (word)
            memmove(word, word + 9, strlen(word + 9) + 1);
    }
    if (warnings->text)
        nj_log(NJ_LEVEL_WARNING, "%s", warnings->text);
    if (warnings->n > NJ_DIAGS_MAX)
        nj_log(NJ_LEVEL_WARNING, "%u more policy warnings; see nightjar --check --config FILE",
               warnings->n - NJ_DIAGS_MAX);
    nj_diags_free(warnings);
}

static void log_zone(const struct nj_policy_in_force *p)
{
    char zone[NJ_TIME_ZONE_TEXT_BYTES];

    nj_time_zone_format(p->zone, time(NULL), zone);
    nj_log(NJ_LEVEL_INFO, "policy: hours of classes are in the time zone %s", zone);
}

int nj__policy_open(struct nj_policy_in_force *p, struct nj_settings *set, char *why,
                    size_t why_bytes)
{
    struct nj_diags warnings = {0};

    p->settings = set;
    nj_time_zone_warn(&warnings);
    nj_time_zone_name(p->zone);
    nj_policy_warn(set->policy, set->given->policy_file, set->given, &warnings);
    nj__policy_log_warnings(&warnings);
    if (nj_policy_file_has_hours(set->policy))
        log_zone(p);
    p->policies = nj_policies_new(set, nj_minute_of_day(time(NULL)), why, why_bytes);
    if (!p->policies)
        return -1;
    p->shape = nj_shape_shared_new(CLIENTS_MAX);
    if (p->shape)
        return 0;
    nj_policies_free(p->policies);
    return nj_set_error(why, why_bytes, "not enough memory for the table of clients");
}

void nj__policy_close(struct nj_policy_in_force *p)
{
    nj_shape_shared_free(p->shape);
    nj_policies_free(p->policies);
}

static void set_policy_on_all(void *shards, const struct nj_policy *policy)
{
    struct nj_shards *s = shards;

    for (uint32_t i = 0; i < s->n; i++)
        nj_conns_set_policy(&s->shard[i]->conns, policy);
    nj__shards_wake(s);
}

static uint64_t adopted_by_all(void *shards)
{
    const struct nj_shards *s = shards;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t version = nj_conns_policy_version(&s->shard[i]->conns);
        least = version < least ? version : least;
    }
    return least;
}

/* A response may start in an old class during this check; nj_shape_set_policy() handles that. */
static bool has_open_responses(void *shards, uint8_t slot)
{
    const struct nj_shards *s = shards;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++)
        n += nj_load_relaxed(&nj_shape_class_stats(s->shard[i]->conns.txns.shape, slot)->n_open);
    return n > 0;
}

void nj__policy_set_shards(struct nj_policy_in_force *p, struct nj_shards *shards)
{
    nj_policies_set_ops(p->policies, &(struct nj_policy_ops){shards, set_policy_on_all,
                                                             adopted_by_all, has_open_responses});
}

static void format_counts(void *text, const struct nj_policy *p)
{
    snprintf(text, 64, "%u class%s, %u rule%s", p->n_classes, p->n_classes == 1 ? "" : "es",
             p->n_rules, p->n_rules == 1 ? "" : "s");
}

static void log_policy(const struct nj_policy_in_force *p, uint64_t version, const char *why)
{
    const struct nj_site_sections *s = nj_policies_settings(p->policies)->policy->sites;
    uint32_t n_paths = 0;
    char text[64];

    for (uint32_t i = 0; i < s->n_paths; i++)
        n_paths += !nj_site_is_of_acme(&s->paths[i].rules); /* which is a key of its site */
    nj_policies_call_with_current(p->policies, format_counts, text);
    nj_log(NJ_LEVEL_INFO, "policy %lu: %s, %u site%s, %u path%s in force, %s",
           (unsigned long)version, text, s->n_sites, s->n_sites == 1 ? "" : "s", n_paths,
           n_paths == 1 ? "" : "s", why);
}

uint64_t nj__policy_install(struct nj_policy_in_force *p, struct nj_settings *next,
                            struct nj_diags *faults)
{
    const char *path = next->config->policy_file;
    struct nj_diags warnings = {0};

    nj_policy_warn(next->policy, path, next->given, &warnings);
    uint64_t version = nj_policies_install(p->policies, next, nj_minute_of_day(time(NULL)), faults);
    if (version != 0) {
        log_policy(p, version, p->settings->config->policy_file);
        if (nj_policies_have_hours(p->policies))
            log_zone(p);
        nj__policy_log_warnings(&warnings);
    }
    nj_diags_free(&warnings);
    return version;
}

void nj__policy_apply_hours(struct nj_policy_in_force *p)
{
    uint64_t version = nj_policies_apply_hours(p->policies, nj_minute_of_day(time(NULL)));
    if (version != 0)
        log_policy(p, version, "hours changed");
}

bool nj__policy_change_limits(struct nj_policy_in_force *p, const char *change, char *why, size_t n)
{
    char text[512];
    uint64_t version = nj_policies_change(
        p->policies, change, nj_os_clock_gettime_ns(CLOCK_MONOTONIC), text, sizeof text);

    if (version > 0)
        nj_log(NJ_LEVEL_INFO, "policy %lu: %s", (unsigned long)version, text);
    else
        nj_set_error(why, n, "%s", text);
    return version > 0;
}

void nj__policy_end_due(struct nj_policy_in_force *p, nj_ns now)
{
    uint32_t n = nj_policies_end_blocks(p->policies, now);
    if (n > 0)
        nj_log(NJ_LEVEL_INFO, "policy: the end of %u block%s has come", n, n == 1 ? "" : "s");
    n = nj_policies_end_limits(p->policies, now);
    if (n > 0)
        nj_log(NJ_LEVEL_INFO, "policy: the end of %u changed limit%s has come", n,
               n == 1 ? "" : "s");
}
