/* SPDX-License-Identifier: BSD-3-Clause */
/* `ewyk`: how handlers were executed, per route, and how many wait. See docs/ewyk.md. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/relaxed_atomics.h"
#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"

/* An answer of telemetry holds 16 KiB, and a route takes about 400 bytes of it. */
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
                      struct nj__doc d)
{
    struct sum sum = sum_up(v, route, from, to);
    const struct nj_task_class *c = &v->shard[0]->conns.handlers.classes[route];
    char cut[NAME_SHOWN];

    snprintf(cut, sizeof cut, "%s", c->name);
    nj__doc_text(d, "route", nj__doc_is_telemetry(d) ? cut : c->name);
    nj__doc_text(d, "type", type_name(c->declared));
    for (unsigned m = 0; m < NJ_N_MODES; m++)
        nj__doc_uint(d, mode_names[m], sum.n[m]);
    nj__doc_uint(d, "budget_overrun", sum.overruns);
    nj__doc_uint(d, "would_block", sum.would_block);
    nj__doc_uint(d, "moves", sum.moves);
    nj__doc_uint(d, "longest_ns", sum.longest_ns);
    nj__doc_uint(d, "average_ns", sum.ewma_ns);
    nj__doc_uint(d, "tail_ppm", sum.tail_ppm);
}

/* The type by which each shard runs the route now. */
static void add_shards(const struct nj_mgmt_view *v, uint32_t route, struct nj__doc d)
{
    struct nj__doc list = nj__doc_list(d, "shards", "shard");

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_task_class *c = &v->shard[i]->conns.handlers.classes[route];
        enum nj_task_type type = __atomic_load_n(&c->type, __ATOMIC_RELAXED);
        nj__doc_item_text(list, i, type_name(type));
    }
}

static void add_fibers(const struct nj_mgmt_view *v, struct nj__doc d)
{
    uint64_t in_use = 0, high = 0, waiting = 0, resetting = 0, events = 0, fds = 0;

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_handlers *h = &v->shard[i]->conns.handlers;
        in_use += nj_load_relaxed(&h->n_fibers);
        high = nj_max_u64(high, nj_load_relaxed(&h->n_fibers_high));
        waiting += nj_load_relaxed(&h->n_waiting);
        events += nj_load_relaxed(&h->n_awaiting[NJ_AWAIT_EVENT]);
        fds += nj_load_relaxed(&h->n_awaiting[NJ_AWAIT_FD]);
        resetting += atomic_load_explicit(&h->reset, memory_order_acquire);
    }
    nj__doc_uint(d, "fibers_in_use", in_use);
    nj__doc_uint(d, "fibers_high_water", high); /* of one lcore */
    nj__doc_uint(d, "fibers_max", v->fibers_max);
    nj__doc_uint(d, "waiting", waiting);
    nj__doc_uint(d, "awaiting_events", events);
    nj__doc_uint(d, "awaiting_descriptors", fds);
    nj__doc_uint(d, "resetting", resetting); /* shards that have not reset yet */
}

static void add_all(const struct nj_mgmt_view *v, struct nj__doc d)
{
    uint32_t n = nj_routes_count(v->routes);

    add_fibers(v, d);
    if (nj__doc_is_telemetry(d)) {
        nj__doc_uint(d, "routes", n);
        n = n < ROUTES_SHOWN ? n : ROUTES_SHOWN;
    }
    struct nj__doc list = nj__doc_list(d, "routes", "route");
    for (uint32_t i = 0; i < n; i++)
        add_route(v, i, 0, v->n_shards, nj__doc_item(list, i));
}

static void request_reset(const struct nj_mgmt_view *v, struct nj__doc d)
{
    v->hooks.reset_handler_counters(v->hooks.ctx);
    nj__doc_uint(d, "reset", v->n_shards);
}

/* "ROUTE", or "ROUTE,SHARD" for the counters of one shard. */
static bool add_one(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
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
    struct nj__doc one = nj__doc_only_item(nj__doc_list(d, "routes", "route"), (uint32_t)route);
    add_route(v, (uint32_t)route, (uint32_t)shard, is_one ? (uint32_t)shard + 1 : v->n_shards, one);
    if (!is_one)
        add_shards(v, (uint32_t)route, one);
    return true;
}

bool nj__answer_handlers(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    bool reset = params && nj__doc_is_telemetry(d) && strcmp(params, "reset") == 0;

    if (params && !reset)
        return add_one(v, params, d);
    (reset ? request_reset : add_all)(v, d);
    return true;
}
