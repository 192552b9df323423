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
#ifndef NJ_MGMT_TELEMETRY_COMMANDS_H
#define NJ_MGMT_TELEMETRY_COMMANDS_H

#include <stdbool.h>

struct nj_mgmt_view;
struct rte_tel_data;

/* Fills a dictionary. False: invalid parameters. A thread of rte_telemetry. */
typedef bool nj__telemetry_command_fn(const struct nj_mgmt_view *v, const char *params,
                                      struct rte_tel_data *d);

nj__telemetry_command_fn nj__telemetry_counters, nj__telemetry_shards, nj__telemetry_port,
    nj__telemetry_stages, nj__telemetry_memory, nj__telemetry_handlers, nj__telemetry_workers,
    nj__telemetry_limits, nj__telemetry_classes, nj__telemetry_clients, nj__telemetry_shaping,
    nj__telemetry_files, nj__telemetry_abuse, nj__telemetry_refused, nj__telemetry_latency;

#endif
