/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of all sites in force, for metrics and the command `sites`. Any thread but an lcore.
 */
#pragma once

#include "mgmt/view.h"

struct nj__mgmt_site {
    char name[NJ_SITE_HOST_MAX + 3]; /* its first name: perhaps a wildcard, or "default" */
    struct nj_mgmt_site_sum sum;
    uint64_t n_open; /* requests that have not ended */
};

/* Returns them, for the caller to free(3), and their number in *n: in the order of the file, and
 * then "(others)" for those that have no place of their own. NULL: no memory. */
struct nj__mgmt_site *nj__mgmt_sites_read(const struct nj_mgmt_view *v, uint32_t *n);
