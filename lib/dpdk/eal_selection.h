/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcores and the device that EAL arguments select. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* The EAL arguments that matter for placement. */
struct nj_eal_selection {
    uint32_t n_lcores; /* 0: not given */
    uint32_t cpu[NJ_SHARDS_MAX];
    char nic[64]; /* PCI address; "": not given */
};
/* Parse -l and --lcores (one CPU per lcore) and -a. Returns 0, or -1 with the reason. */
int nj_eal_selection_parse(int argc, char **argv, struct nj_eal_selection *out, char *why,
                           size_t n);
