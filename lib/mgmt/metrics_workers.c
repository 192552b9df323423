/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of workers, by kind of task. */
#include "mgmt/metrics_parts.h"

static void add_kinds(const struct nj_worker_pool_stats *s, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"worker_tasks_limit", NJ__METRIC_GAUGE, "tasks that may run at once"},
        {"worker_tasks_running", NJ__METRIC_GAUGE, "tasks that run"},
        {"worker_tasks_unfinished", NJ__METRIC_GAUGE,
         "tasks that wait, run, or have a result that the lcore has not fetched"},
        {"worker_tasks_waiting", NJ__METRIC_GAUGE, "tasks that are not in the ring yet"},
        {"worker_tasks_done", NJ__METRIC_COUNTER, "tasks whose result the lcore has fetched"},
        {"worker_tasks_refused", NJ__METRIC_COUNTER,
         "tasks refused because too many were unfinished"},
        {"worker_tasks_displaced", NJ__METRIC_COUNTER,
         "tasks that lost their place to another client's task"},
        {"worker_tasks_held_back", NJ__METRIC_COUNTER,
         "tasks that found no place in the ring at once"},
    };
    static const char *const kind[] = {
        [NJ_WORKER_HANDLERS] = "handlers", [NJ_WORKER_FILES] = "files", [NJ_WORKER_TLS] = "tls"};
    struct nj__metric_row row[NJ_WORKER_N_KINDS];

    for (unsigned k = 0; k < NJ_WORKER_N_KINDS; k++)
        row[k] =
            (struct nj__metric_row){{{"kind", kind[k]}},
                                    {s->kind[k].n_max, s->kind[k].n_running, s->kind[k].n_out,
                                     s->kind[k].n_waiting, s->kind[k].n_done, s->kind[k].n_refused,
                                     s->kind[k].n_displaced, s->kind[k].n_held_back}};
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, NJ_WORKER_N_KINDS);
}

static void add_recruits(const struct nj_strategy_counters *c, struct nj__metrics *m)
{
    static const struct nj__metric family = {"worker_recruits", NJ__METRIC_COUNTER,
                                             "threads of the pool woken to look for a task (sent), "
                                             "what they found, and those not woken"};
    const struct {
        const char *result;
        uint64_t n;
    } recruits[] = {{"sent", c->recruits_sent},
                    {"useful", c->recruits_useful},
                    {"wasted", c->recruits_wasted},
                    {"missed", c->recruits_missed},
                    {"spared", c->recruits_spared}};

    nj__metrics_begin(m, &family);
    for (size_t i = 0; i < NJ_ARRAY_LEN(recruits); i++)
        nj__metrics_add(m, recruits[i].n,
                        (struct nj__metric_label[]){{"result", recruits[i].result}, {0}});
}

void nj__metrics_workers(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"worker_threads", NJ__METRIC_GAUGE, "threads of the pool of workers"}};
    struct nj_worker_pool_stats s = nj_worker_pool_stats(v->workers);
    const struct nj__metric_row row = {.value = {s.n_threads}};

    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), &row, 1);
    add_kinds(&s, m);
    add_recruits(&s.strategy, m);
}
