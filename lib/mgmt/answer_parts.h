/* SPDX-License-Identifier: BSD-3-Clause */
/* What several answers have: counters, numbers, and the parameter that names a shard. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mgmt/document.h"
#include "mgmt/view.h"
#include "telem/count.h"

/* Parse the shards that a command is about: all, or the one in `params`. */
bool nj__answer_parse_shards(const struct nj_mgmt_view *v, const char *params, uint32_t *from,
                             uint32_t *to);

/* Add the sums of these counters over shards from..to-1 under their names. */
void nj__answer_add_counters(const struct nj_mgmt_view *v, uint32_t from, uint32_t to,
                             const nj_counter *which, size_t n, struct nj__doc d);

/* A named number. UINT64_MAX: not available, the row is omitted. */
struct nj__answer_row {
    const char *name;
    uint64_t value;
};
void nj__answer_add_numbers(struct nj__doc d, const struct nj__answer_row *rows, size_t n);
