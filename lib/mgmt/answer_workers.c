/* SPDX-License-Identifier: BSD-3-Clause */
/* `workers`: counters of the worker pool and of its thread strategy. */

#include "base/compiler.h"
#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"

static void add_kind(struct nj__doc d, const char *name, const struct nj_worker_pool_stats *s,
                     enum nj_worker_kind kind)
{
    const struct nj__answer_row rows[] = {
        {"max", s->kind[kind].n_max},
        {"running", s->kind[kind].n_running},
        {"out", s->kind[kind].n_out},
        {"waiting", s->kind[kind].n_waiting},
        {"done", s->kind[kind].n_done},
        {"refused", s->kind[kind].n_refused},
        {"displaced", s->kind[kind].n_displaced},
        {"held_back", s->kind[kind].n_held_back},
    };

    nj__answer_add_numbers(nj__doc_dict(d, name), rows, NJ_ARRAY_LEN(rows));
}

bool nj__answer_workers(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct nj_worker_pool_stats stats = nj_worker_pool_stats(v->workers);
    const struct nj_strategy_counters *c = &stats.strategy;
    const struct nj__answer_row rows[] = {
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
    nj__answer_add_numbers(d, rows, NJ_ARRAY_LEN(rows));
    add_kind(d, "handlers", &stats, NJ_WORKER_HANDLERS);
    add_kind(d, "files", &stats, NJ_WORKER_FILES);
    add_kind(d, "tls", &stats, NJ_WORKER_TLS);
    return true;
}
