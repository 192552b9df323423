/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the configuration and the files that it names again, for all parts of a server. Each part
 * first says whether it accepts them; only then do they change. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/relaxed_atomics.h"
#include "log/log.h"
#include "server/server_internal.h"

/* Parts of a server, and what was read for them. */
struct reload {
    const struct nj_settings *start;
    struct nj_policy_in_force *policy;
    struct nj_tls_identity *identity;
    struct nj_access_log *access; /* NULL: none */
    struct nj_supervisor *supervisor;
    struct nj_settings *settings;      /* NULL: there is no file */
    const struct nj_settings *now;     /* these, or those of the start */
    struct nj_tls_server_context *tls; /* NULL: TLS does not change */
    struct nj_diags faults, notes;
    char why[1024]; /* errors that are not in `faults` */
};

enum nj_access_format nj__access_format(const struct nj_server_config *config)
{
    switch (config->log_format) {
    case NJ_LOG_JSON:
        return NJ_ACCESS_JSON;
    case NJ_LOG_LOGFMT:
        return NJ_ACCESS_LOGFMT;
    case NJ_LOG_DEFAULT:
    case NJ_LOG_COMBINED:
        break;
    }
    return NJ_ACCESS_COMBINED;
}

static bool read_settings(struct reload *r)
{
    r->now = r->start;
    if (!r->start->given->policy_file)
        return true;
    r->settings = nj_settings_read_again(r->start, &r->faults, &r->notes, r->why, sizeof r->why);
    if (r->settings)
        r->now = r->settings;
    return r->settings != NULL;
}

static bool read_tls(struct reload *r)
{
    char why[400];

    if (nj__tls_identity_read(r->identity, r->now, &r->tls, why, sizeof why) == 0)
        return true;
    size_t n = strlen(r->why); /* of the settings */
    snprintf(r->why + n, sizeof r->why - n, "%sTLS: %s; the former certificates stay in use",
             n ? "\n" : "", why);
    return false;
}

static bool try_log(struct reload *r)
{
    const char *path = r->now->config->access_log,
               *now = nj_policies_settings(r->policy->policies)->config->access_log;

    return !r->access || !path || (now && strcmp(path, now) == 0) ||
           nj_access_log_try(path, r->why, sizeof r->why) == 0;
}

static bool install(struct reload *r)
{
    const struct nj_server_config *config = r->now->config;

    if (r->settings && nj__policy_install(r->policy, r->settings, &r->faults) == 0)
        return false;
    if (r->tls)
        nj__tls_identity_replace(r->identity, r->now, r->tls);
    if (r->access && config->access_log &&
        !nj_access_log_change(r->access, config->access_log, nj__access_format(config)))
        nj_log(NJ_LEVEL_ERROR, "no memory to change the access log");
    nj__supervisor_set_drain(r->supervisor, config);
    nj__policy_log_warnings(&r->notes);
    return true;
}

static void give_up(struct reload *r)
{
    nj_log(NJ_LEVEL_ERROR, "%s%s%skeeping the current policy", r->faults.text ? r->faults.text : "",
           r->why, r->why[0] ? "\n" : "");
    if (r->tls)
        nj_tls_server_context_put(r->tls);
    if (r->settings)
        nj_settings_free(r->settings);
    free(r->settings);
}

bool nj__server_read_again(struct nj_server *s)
{
    struct reload r = {.start = &s->settings,
                       .policy = &s->policy,
                       .identity = &s->tls,
                       .access = s->access,
                       .supervisor = &s->supervisor};
    bool is_read = read_settings(&r);
    bool ok = read_tls(&r) && is_read; /* a faulty file does not hide errors of certificates */

    ok = ok && try_log(&r) && install(&r);
    nj_store_relaxed(&s->reloads.has_failed, !ok);
    if (ok)
        nj_store_relaxed(&s->reloads.good_at_s, (int64_t)time(NULL));
    else
        give_up(&r);
    nj_diags_free(&r.faults);
    nj_diags_free(&r.notes);
    return ok;
}
