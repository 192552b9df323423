/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the configuration and the files that it names again, for all parts of a server. Each part
 * first says whether it accepts them; only then do they change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/relaxed_atomics.h"
#include "log/log.h"
#include "server/server_internal.h"
#include "telem/counters_conn.h"

/* Parts of a server, and what was read for them. */
struct reload {
    const struct nj_settings *start;
    struct nj_policy_in_force *policy;
    struct nj_tls_identity *identity;
    struct nj_access_log *access; /* NULL: none */
    struct nj_supervisor *supervisor;
    struct nj_management *management;
    struct nj_mgmt_tokens tokens;
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

/* Another error in a line of its own. */
static void add_why(struct reload *r, const char *format, const char *why)
{
    size_t n = strlen(r->why);

    n += (size_t)snprintf(r->why + n, sizeof r->why - n, "%s", n ? "\n" : "");
    if (n < sizeof r->why)
        snprintf(r->why + n, sizeof r->why - n, format, why);
}

static bool read_tls(struct reload *r)
{
    char why[400];

    if (nj__tls_identity_read(r->identity, r->now, &r->tls, why, sizeof why) == 0)
        return true;
    add_why(r, "TLS: %s; the former certificates stay in use", why);
    return false;
}

static bool read_tokens(struct reload *r)
{
    const struct nj_server_config *c = r->now->config;
    char why[400];

    if (nj_mgmt_tokens_read(c->management_token, c->management_read_token, &r->tokens, why,
                            sizeof why) == 0)
        return true;
    add_why(r, "%s; the former tokens stay in use", why);
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
    nj__management_configure(r->management, config, &r->tokens);
    nj__policy_log_warnings(&r->notes);
    return true;
}

static struct reload reload_of(struct nj_server *s)
{
    return (struct reload){.start = &s->settings,
                           .policy = &s->policy,
                           .identity = &s->tls,
                           .access = s->access,
                           .supervisor = &s->supervisor,
                           .management = &s->management};
}

/* A faulty file does not hide errors of others. */
static bool read_all(struct reload *r)
{
    bool ok = read_settings(r);
    ok = read_tls(r) && ok;
    return read_tokens(r) && ok;
}

static void put_errors(const struct reload *r, char **errors)
{
    if (asprintf(errors, "%s%s", r->faults.text ? r->faults.text : "", r->why) < 0)
        *errors = NULL;
}

static void free_read(struct reload *r)
{
    if (r->tls)
        nj_tls_server_context_put(r->tls);
    if (r->settings)
        nj_settings_free(r->settings);
    free(r->settings);
}

static void give_up(struct reload *r, char **errors)
{
    if (errors)
        put_errors(r, errors);
    nj_log(NJ_LEVEL_ERROR, "%s%s%skeeping the current policy", r->faults.text ? r->faults.text : "",
           r->why, r->why[0] ? "\n" : "");
    free_read(r);
}

static bool read_again(struct reload *r, struct nj_mgmt_reloads *state, char **errors)
{
    bool ok = read_all(r) && try_log(r) && install(r);

    nj_store_relaxed(&state->has_failed, !ok);
    if (ok)
        nj_store_relaxed(&state->good_at_s, (int64_t)time(NULL));
    else
        give_up(r, errors);
    nj_diags_free(&r->faults);
    nj_diags_free(&r->notes);
    return ok;
}

bool nj__server_reload(void *server, char **errors)
{
    struct nj_server *s = server;

    pthread_mutex_lock(&s->reload_lock);
    nj__service_reloading(&s->service);
    if (s->access)
        nj_access_log_reopen(s->access);
    nj__root_watch_check(&s->housekeeping.root);
    struct reload r = reload_of(s);
    bool ok = read_again(&r, &s->reloads, errors);
    nj__service_reloaded(&s->service, ok, nj_mgmt_sum_counter(&s->view, NJ_C_connections));
    pthread_mutex_unlock(&s->reload_lock);
    return ok;
}

bool nj__server_diff(void *server, nj_config_change_fn *see, void *of, char **errors,
                     char **restart)
{
    struct nj_server *s = server;

    pthread_mutex_lock(&s->reload_lock);
    struct reload r = reload_of(s);
    bool ok = read_all(&r);
    if (r.settings)
        nj_config_diff_files(nj_policies_settings(r.policy->policies)->policy, r.settings->policy,
                             see, of);
    if (!nj_config_diff_limits(r.policy->policies, nj_minute_of_day(time(NULL)), see, of)) {
        add_why(&r, "%s", "not enough memory to compare limits");
        ok = false;
    }
    if (!ok)
        put_errors(&r, errors);
    *restart = r.notes.text ? strdup(r.notes.text) : NULL;
    free_read(&r);
    nj_diags_free(&r.faults);
    nj_diags_free(&r.notes);
    pthread_mutex_unlock(&s->reload_lock);
    return ok;
}
