/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of each lcore whose fill level is published, and when the server begins to refuse or
 * reset because one is full. docs/limits.md describes the limits. Any thread but an lcore. */
#pragma once

#include "mgmt/view.h"

struct nj__full_table {
    const char *name; /* plural */
    uint64_t used, max;
    unsigned lcore;    /* the first one whose table is full */
    uint32_t n_lcores; /* whose table is full */
};

extern const uint32_t nj__n_tables;

/* Is the table `i`, below nj__n_tables, full on some lcore? */
bool nj__table_is_full(const struct nj_mgmt_view *v, uint32_t i, struct nj__full_table *full);
