/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy with sites of 20 paths each, that change a field of responses. The requested host is one
 * of them, and the requested path is one of its paths. A single site has a name and no more. */
#pragma once

#include "site/site_table.h"
#include "shape/request_policy.h"

struct sites {
    struct nj_policy policy;
    struct nj_sites *table;
    struct nj_site_def *sites;
    struct nj_path_def *paths;
    char (*text)[32];
};

/* `n` sites; 0: the policy has none. False: no memory. */
bool sites_init(struct sites *s, uint32_t n, const char *host, const char *path);
void sites_fini(struct sites *s);
