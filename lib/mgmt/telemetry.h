/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_telemetry commands:
 *   /nightjar/stats   all counters, summed over the shards
 *   /nightjar/shards    per shard: lcore, steering, cycles, packets, drops by reason, memory in use
 *   /nightjar/shards,N  the same for one shard
 *   /nightjar/memory    memory of connections: sizes, number in use, maximum so far
 *   /nightjar/memory,N  the same for one shard
 *   /nightjar/ewyk        executions of handlers per route and mode; waiting requests
 *   /nightjar/ewyk,N      one route, with its mode on each shard
 *   /nightjar/ewyk,reset  reset these counters
 *   /nightjar/workers     the worker pool: running and queued tasks, producers
 *   /nightjar/limits      the policy in force: limits of the server and of its classes
 *   /nightjar/limits,class=video,rate=5MiB/s,...   change limits, also of responses in progress;
 *                         without class: of the server; until the policy file is reloaded
 *   /nightjar/classes     per class: requests, bytes and current rates
 *   /nightjar/clients,N   the N clients with most bytes; default 10
 *   /nightjar/clients,N,by=streams   ... with most open streams, or by=connections
 *   /nightjar/shaping     pacing of responses; with ,N of one shard
 *   /nightjar/files       the file store: contents and hit counts
 *   /nightjar/latency     response times; with ,N of one shard
 *   /nightjar/abuse       protective actions: reason, count, client
 *   /nightjar/refused     refusals before a transaction: reason, count, client
 */
#ifndef NJ_MGMT_TELEMETRY_H
#define NJ_MGMT_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "telem/counters.h"

struct nj_mgmt_view;
struct rte_tel_data;

/* Attach the commands to the view of a server. After NULL they return empty dictionaries. */
void nj_telemetry_attach(const struct nj_mgmt_view *view);

/* Parse the shards that a command is about: all, or the one in `params`. */
bool nj__telemetry_parse_shards(const struct nj_mgmt_view *v, const char *params, uint32_t *from,
                                uint32_t *to);

/* Add an empty dictionary under that name. NULL if there is no memory. */
struct rte_tel_data *nj__telemetry_add_dict(struct rte_tel_data *d, const char *name_fmt, ...)
    NJ_PRINTF(2, 3);
/* Add the sums of these counters over shards from..to-1 under their names. */
void nj__telemetry_add_counters(const struct nj_mgmt_view *v, uint32_t from, uint32_t to,
                                const enum nj_counter *which, size_t n, struct rte_tel_data *d);

/* A named number. UINT64_MAX: not available, the row is omitted. */
struct nj__telemetry_row {
    const char *name;
    uint64_t value;
};
void nj__telemetry_add_numbers(struct rte_tel_data *d, const struct nj__telemetry_row *rows,
                               size_t n);

/* Handlers of telemetry_*.c; they fill a dictionary. False: invalid parameters. */
bool nj__telemetry_handlers(const struct nj_mgmt_view *v, const char *params,
                            struct rte_tel_data *d);
bool nj__telemetry_workers(const struct nj_mgmt_view *v, const char *params,
                           struct rte_tel_data *d);
bool nj__telemetry_limits(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d);
bool nj__telemetry_classes(const struct nj_mgmt_view *v, const char *params,
                           struct rte_tel_data *d);
bool nj__telemetry_clients(const struct nj_mgmt_view *v, const char *params,
                           struct rte_tel_data *d);
bool nj__telemetry_shaping(const struct nj_mgmt_view *v, const char *params,
                           struct rte_tel_data *d);
bool nj__telemetry_files(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d);
bool nj__telemetry_abuse(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d);
bool nj__telemetry_refused(const struct nj_mgmt_view *v, const char *params,
                           struct rte_tel_data *d);
bool nj__telemetry_latency(const struct nj_mgmt_view *v, const char *params,
                           struct rte_tel_data *d);

#endif
