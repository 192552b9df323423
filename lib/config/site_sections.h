/* SPDX-License-Identifier: BSD-3-Clause */
/* [site NAME] and [path NAME PATH] of the configuration file: definitions for the table of sites
 * (site/site_table.h). Any thread, one at a time. */
#pragma once

#include "config/policy_file.h"
#include "site/site_table.h"

/* The sections that have been read. Strings that are not in the file are in `owned`. */
struct nj_site_sections {
    uint32_t n_sites, n_paths, n_owned;
    struct nj_site_def *sites;
    struct nj_path_def *paths;
    const struct nj_ini_section **site_at, **path_at; /* where they are declared */
    char **owned;
};

/* Declare a section. Returns its index, or -1 with a diagnostic. Sites come before their paths. */
int nj__site_declare(struct nj__policy_reader *r, const struct nj_ini_section *s, const char *name);
int nj__site_declare_path(struct nj__policy_reader *r, const struct nj_ini_section *s,
                          const char *site, const char *path);

/* Parse a key of a section. False: no such key. */
bool nj__site_parse_key(struct nj__policy_reader *r, bool is_site, uint32_t index, const char *key,
                        const struct nj_ini_entry *e);

/* Report names and paths that two sections have, and tables that cannot be made. */
void nj__site_check(struct nj__policy_reader *r);
void nj__site_sections_free(struct nj_site_sections *s);
