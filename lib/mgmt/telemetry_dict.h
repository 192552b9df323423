/* SPDX-License-Identifier: BSD-3-Clause */
/* Dictionaries of rte_telemetry, and parameters that several commands have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "mgmt/view.h"
#include "telem/count.h"

struct rte_tel_data;

/* Parse the shards that a command is about: all, or the one in `params`. */
bool nj__telemetry_parse_shards(const struct nj_mgmt_view *v, const char *params, uint32_t *from,
                                uint32_t *to);

/* Add an empty dictionary under that name. NULL if there is no memory. */
struct rte_tel_data *nj__telemetry_add_dict(struct rte_tel_data *d, const char *name_fmt, ...)
    NJ_PRINTF(2, 3);
/* Add the sums of these counters over shards from..to-1 under their names. */
void nj__telemetry_add_counters(const struct nj_mgmt_view *v, uint32_t from, uint32_t to,
                                const nj_counter *which, size_t n, struct rte_tel_data *d);

/* A named number. UINT64_MAX: not available, the row is omitted. */
struct nj__telemetry_row {
    const char *name;
    uint64_t value;
};
void nj__telemetry_add_numbers(struct rte_tel_data *d, const struct nj__telemetry_row *rows,
                               size_t n);
