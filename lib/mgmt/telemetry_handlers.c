/* SPDX-License-Identifier: BSD-3-Clause */
/* `/nightjar/ewyk`: how handlers were executed, per route, and how many wait. See docs/ewyk.md. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>

#include "base/relaxed_atomics.h"
#include "dpdk/compat.h"
#include "mgmt/telemetry_commands.h"
#include "mgmt/telemetry_dict.h"

/* A response of the socket holds 16 KiB, and a route takes about 400 bytes of it. */
#define ROUTES_SHOWN 32u
#define NAME_SHOWN   64

static const char *const mode_names[NJ_N_MODES] = {
    "pc", "pic", "epc_inline", "epc_parked", "pec_queue", "pec_worker", "rejected"};

static const char *type_name(enum nj_task_type type)
{
    static const char *const names[NJ_N_TASK_TYPES] = {"untyped", "non_blocking", "either",
                                                       "blocking", "os_blocking"};
    return names[type];
}

/* A counter of a class of tasks, which its lcore writes. */
static uint64_t counter_of(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Counters of a route, summed over shards from..to-1. */
struct sum {
    uint64_t n[NJ_N_MODES];
    uint64_t overruns, would_block, moves, longest_ns, ewma_ns, tail_ppm;
};

static struct sum sum_up(const struct nj_mgmt_view *v, uint32_t route, uint32_t from, uint32_t to)
{
    nj_ns now = nj_tsc_clock_now(v->clock);
    struct sum sum = {0};

    for (uint32_t i = from; i < to; i++) {
        const struct nj_task_class *c = &v->shard[i]->conns.handlers.classes[route];
        for (unsigned m = 0; m < NJ_N_MODES; m++)
            sum.n[m] += counter_of(&c->n[m]);
        sum.overruns += counter_of(&c->n_overruns);
        sum.would_block += counter_of(&c->n_would_block);
        sum.moves += counter_of(&c->n_moves);
        sum.longest_ns = nj_max_u64(sum.longest_ns, counter_of(&c->longest_ns));
        sum.ewma_ns = nj_max_u64(sum.ewma_ns, counter_of(&c->ewma_x8_ns) / 8);
        sum.tail_ppm = nj_max_u64(sum.tail_ppm, nj_task_class_overrun_time_ppm(c, now));
    }
    return sum;
}

static void add_route(const struct nj_mgmt_view *v, uint32_t route, uint32_t from, uint32_t to,
                      struct rte_tel_data *d)
{
    struct sum sum = sum_up(v, route, from, to);
    const struct nj_task_class *c = &v->shard[0]->conns.handlers.classes[route];
    char name[NAME_SHOWN];

    snprintf(name, sizeof name, "%s", c->name);
    rte_tel_data_add_dict_string(d, "route", name);
    rte_tel_data_add_dict_string(d, "type", type_name(c->declared));
    for (unsigned m = 0; m < NJ_N_MODES; m++)
        rte_tel_data_add_dict_uint(d, mode_names[m], sum.n[m]);
    rte_tel_data_add_dict_uint(d, "budget_overrun", sum.overruns);
    rte_tel_data_add_dict_uint(d, "would_block", sum.would_block);
    rte_tel_data_add_dict_uint(d, "moves", sum.moves);
    rte_tel_data_add_dict_uint(d, "longest_ns", sum.longest_ns);
    rte_tel_data_add_dict_uint(d, "average_ns", sum.ewma_ns);
    rte_tel_data_add_dict_uint(d, "tail_ppm", sum.tail_ppm);
}

/* Adds the shards that run the route in another mode than it declares. */
static void add_shards(const struct nj_mgmt_view *v, uint32_t route, struct rte_tel_data *d)
{
    char key[32];

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_task_class *c = &v->shard[i]->conns.handlers.classes[route];
        enum nj_task_type type = __atomic_load_n(&c->type, __ATOMIC_RELAXED);
        snprintf(key, sizeof key, "shard%u", i);
        rte_tel_data_add_dict_string(d, key, type_name(type));
    }
}

static void add_fibers(const struct nj_mgmt_view *v, struct rte_tel_data *d)
{
    uint64_t in_use = 0, high = 0, waiting = 0, resetting = 0;

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_handlers *h = &v->shard[i]->conns.handlers;
        in_use += nj_load_relaxed(&h->n_fibers);
        high = nj_max_u64(high, nj_load_relaxed(&h->n_fibers_high));
        waiting += nj_load_relaxed(&h->n_waiting);
        resetting += atomic_load_explicit(&h->reset, memory_order_acquire);
    }
    rte_tel_data_add_dict_uint(d, "fibers_in_use", in_use);
    rte_tel_data_add_dict_uint(d, "fibers_high_water", high); /* of one lcore */
    rte_tel_data_add_dict_uint(d, "fibers_max", v->fibers_max);
    rte_tel_data_add_dict_uint(d, "waiting", waiting);
    rte_tel_data_add_dict_uint(d, "resetting", resetting); /* shards that have not reset yet */
}

static void add_all(const struct nj_mgmt_view *v, struct rte_tel_data *d)
{
    uint32_t n = nj_routes_count(v->routes);
    add_fibers(v, d);
    rte_tel_data_add_dict_uint(d, "routes", n);
    for (uint32_t i = 0; i < n && i < ROUTES_SHOWN; i++) {
        struct rte_tel_data *one = nj__telemetry_add_dict(d, "route%u", i);
        if (!one)
            return;
        add_route(v, i, 0, v->n_shards, one);
    }
}

static void request_reset(const struct nj_mgmt_view *v, struct rte_tel_data *d)
{
    v->hooks.reset_handler_counters(v->hooks.ctx);
    rte_tel_data_add_dict_uint(d, "reset", v->n_shards);
}

/* "ROUTE", or "ROUTE,SHARD" for the counters of one shard. */
static bool add_one(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d)
{
    char *end;
    unsigned long route = strtoul(params, &end, 10), shard = 0;
    bool is_one = *end == ',' && isdigit((unsigned char)end[1]);

    if (end == params || route >= nj_routes_count(v->routes))
        return false;
    if (is_one)
        shard = strtoul(end + 1, &end, 10);
    if (*end || shard >= v->n_shards)
        return false;
    add_route(v, (uint32_t)route, (uint32_t)shard, is_one ? (uint32_t)shard + 1 : v->n_shards, d);
    if (!is_one)
        add_shards(v, (uint32_t)route, d);
    return true;
}

bool nj__telemetry_handlers(const struct nj_mgmt_view *v, const char *params,
                            struct rte_tel_data *d)
{
    if (params && strcmp(params, "reset") != 0)
        return add_one(v, params, d);
    (params ? request_reset : add_all)(v, d);
    return true;
}
