/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers: how many wait, and how each route is run (docs/ewyk.md). */
#include "base/relaxed_atomics.h"
#include "mgmt/metrics_parts.h"

/* Routes with samples of their own; those behind them are summed as "others". */
#define ROUTES_SHOWN 32u

struct route {
    const char *name;
    uint64_t mode[NJ_N_MODES], overruns, would_block, moves;
};

/* Fields of a class of tasks, which its lcore writes. */
static uint64_t load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_shard(const struct nj_task_class *c, struct route *to)
{
    for (unsigned k = 0; k < NJ_N_MODES; k++)
        to->mode[k] += load(&c->n[k]);
    to->overruns += load(&c->n_overruns);
    to->would_block += load(&c->n_would_block);
    to->moves += load(&c->n_moves);
}

/* Returns the number of entries. */
static size_t sum_routes(const struct nj_mgmt_view *v, struct route route[ROUTES_SHOWN + 1])
{
    uint32_t n = v->routes ? nj_routes_count(v->routes) : 0;

    for (uint32_t k = 0; k < n; k++) {
        struct route *to = &route[nj_min_u32(k, ROUTES_SHOWN)];
        if (k <= ROUTES_SHOWN)
            *to = (struct route){
                k < ROUTES_SHOWN ? nj_routes_name(v->routes, k) : "others", {0}, 0, 0, 0};
        for (uint32_t i = 0; i < v->n_shards; i++)
            add_shard(&v->shard[i]->conns.handlers.classes[k], to);
    }
    return nj_min_u32(n, ROUTES_SHOWN + 1);
}

static void add_routes(const struct route *route, size_t n, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"route_requests", NJ__METRIC_COUNTER, "requests of a route, by how its handler was run"}};
    static const struct nj__metric events[] = {
        {"route_budget_overruns", NJ__METRIC_COUNTER,
         "times that a handler of a route held its lcore for longer than 100 us"},
        {"route_would_block", NJ__METRIC_COUNTER,
         "calls of a route's handlers that would have had to wait, and must not"},
        {"route_moves", NJ__METRIC_COUNTER, "times that a route was moved to the workers or back"}};
    static const char *const mode[NJ_N_MODES] = {
        "pc", "pic", "epc_inline", "epc_parked", "pec_queue", "pec_worker", "rejected"};
    struct nj__metric_row row[(ROUTES_SHOWN + 1) * NJ_N_MODES] = {0};
    size_t n_rows = 0;

    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < NJ_N_MODES; k++)
            row[n_rows++] = (struct nj__metric_row){{{"route", route[i].name}, {"mode", mode[k]}},
                                                    {route[i].mode[k]}};
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, n_rows);
    for (size_t i = 0; i < n; i++)
        row[i] = (struct nj__metric_row){{{"route", route[i].name}},
                                         {route[i].overruns, route[i].would_block, route[i].moves}};
    nj__metrics_add_table(m, events, NJ_ARRAY_LEN(events), row, n);
}

static void add_fibers(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"fibers", NJ__METRIC_GAUGE, "fibers in use"},
        {"fibers_lcore_high", NJ__METRIC_GAUGE,
         "highest number of fibers that one lcore had in use since the start"},
        {"fibers_lcore_limit", NJ__METRIC_GAUGE, "fibers that one lcore can have"},
        {"fibers_waiting", NJ__METRIC_GAUGE, "requests that wait for a fiber"}};
    struct nj__metric_row row = {.value = {0, 0, v->fibers_max, 0}};

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_handlers *h = &v->shard[i]->conns.handlers;
        row.value[0] += nj_load_relaxed(&h->n_fibers);
        row.value[1] = nj_max_u64(row.value[1], nj_load_relaxed(&h->n_fibers_high));
        row.value[3] += nj_load_relaxed(&h->n_waiting);
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), &row, 1);
}

void nj__metrics_routes(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    struct route route[ROUTES_SHOWN + 1];
    size_t n = sum_routes(v, route);

    add_fibers(v, m);
    add_routes(route, n, m);
}
