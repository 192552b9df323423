/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of rte_telemetry. `commands` in telemetry.c has their names and their help. */
#pragma once

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
