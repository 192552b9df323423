/* SPDX-License-Identifier: BSD-3-Clause */
/* `/nightjar/workers`: counters of the worker pool and of its thread strategy. */
#include <rte_telemetry.h>

#include "base/compiler.h"
#include "mgmt/telemetry_commands.h"
#include "mgmt/telemetry_dict.h"

static void add_kind(struct rte_tel_data *d, const char *name, const struct nj_worker_pool_stats *s,
                     enum nj_worker_kind kind)
{
    const struct nj__telemetry_row rows[] = {
        {"max", s->kind[kind].n_max},
        {"running", s->kind[kind].n_running},
        {"out", s->kind[kind].n_out},
        {"waiting", s->kind[kind].n_waiting},
        {"done", s->kind[kind].n_done},
        {"refused", s->kind[kind].n_refused},
        {"displaced", s->kind[kind].n_displaced},
        {"held_back", s->kind[kind].n_held_back},
    };
    struct rte_tel_data *one = nj__telemetry_add_dict(d, "%s", name);

    if (one)
        nj__telemetry_add_numbers(one, rows, NJ_ARRAY_LEN(rows));
}

bool nj__telemetry_workers(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d)
{
    struct nj_worker_pool_stats stats = nj_worker_pool_stats(v->workers);
    const struct nj_strategy_counters *c = &stats.strategy;
    const struct nj__telemetry_row rows[] = {
        {"threads", stats.n_threads},
        {"pec", c->pec},
        {"epc", c->epc},
        {"recruits_sent", c->recruits_sent},
        {"recruits_useful", c->recruits_useful},
        {"recruits_wasted", c->recruits_wasted},
        {"recruits_missed", c->recruits_missed},
        {"recruits_spared", c->recruits_spared},
    };

    if (params)
        return false;
    nj__telemetry_add_numbers(d, rows, NJ_ARRAY_LEN(rows));
    add_kind(d, "handlers", &stats, NJ_WORKER_HANDLERS);
    add_kind(d, "files", &stats, NJ_WORKER_FILES);
    add_kind(d, "tls", &stats, NJ_WORKER_TLS);
    return true;
}
