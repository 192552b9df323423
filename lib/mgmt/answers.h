/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be asked about a running server: one table for DPDK's telemetry and for JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mgmt/document.h"

struct nj_mgmt_view;

/* Fills the root of a document. `params`: NULL, or those of telemetry, what is after the first
 * comma of a request. False: they are invalid. Any thread but an lcore. */
typedef bool nj__answer_fn(const struct nj_mgmt_view *v, const char *params, struct nj__doc d);

nj__answer_fn nj__answer_stats, nj__answer_shards, nj__answer_port, nj__answer_stages,
    nj__answer_memory, nj__answer_handlers, nj__answer_workers, nj__answer_limits,
    nj__answer_classes, nj__answer_clients, nj__answer_shaping, nj__answer_files, nj__answer_abuse,
    nj__answer_refused, nj__answer_latency, nj__answer_addresses, nj__answer_version,
    nj__answer_server, nj__answer_transfers, nj__answer_blocks, nj__answer_problems,
    nj__answer_sites;

#define NJ__COMMAND_PARAMS_MAX 2

struct nj__command {
    const char *name;             /* telemetry has it below /nightjar/ */
    const char *help;             /* what it answers: a sentence */
    const char *telemetry_params; /* about the parameters of telemetry: sentences */
    nj__answer_fn *answer;
    /* Parameters of JSON, "shard=1", in the order in which telemetry has their values. Of one that
     * ends with '=' telemetry has the name, too. JSON changes nothing. */
    const char *param[NJ__COMMAND_PARAMS_MAX];
    bool is_list; /* telemetry answers with a list of texts */
};

extern const struct nj__command nj__commands[];
extern const size_t nj__n_commands;

/* NULL: there is none. */
const struct nj__command *nj__command_find(const char *name);
