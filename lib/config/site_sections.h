/* SPDX-License-Identifier: BSD-3-Clause */
/* [site NAME] and [path NAME PATH] of the configuration file: definitions for the table of sites
 * (site/site_table.h). Any thread, one at a time. */
#pragma once

#include "config/policy_file.h"
#include "site/site_table.h"
#include "tls/server_context.h"

/* A folder that a site or a path names: "/FOLDER//" (store/file_root.h), and where. */
struct nj_site_folder {
    struct nj_str name;
    const struct nj_ini_entry *at;
};

/* The sections that have been read. Strings that are not in the file are in `owned`. */
struct nj_site_sections {
    uint32_t n_sites, n_paths, n_owned, n_folders, n_files;
    struct nj_site_def *sites;
    struct nj_path_def *paths;
    const struct nj_ini_section **site_at, **path_at; /* where they are declared */
    char **owned;
    struct nj_site_folder *folders; /* each once */
    /* Keys with files of TLS, each file once. */
    const struct nj_ini_entry **files;
    bool has_cert; /* of a site */
    /* What each site has for TLS, and last what [tls] has. NULL before nj__settings_check_tls(). */
    struct nj_tls_set *tls;
    struct nj_tls_identity_files *pairs; /* NJ_SERVER_TLS_CERTS_MAX of each */
};

/* Declare a section. Returns its index, or -1 with a diagnostic. Sites come before their paths. */
int nj__site_declare(struct nj__policy_reader *r, const struct nj_ini_section *s, const char *name);
int nj__site_declare_path(struct nj__policy_reader *r, const struct nj_ini_section *s,
                          const char *site, const char *path);

/* Parse a key of a section. False: no such key. */
bool nj__site_parse_key(struct nj__policy_reader *r, bool is_site, uint32_t index, const char *key,
                        const struct nj_ini_entry *e);

/* Has [site NAME] the key, but [path NAME PATH] not? */
bool nj__site_key_is_of_site(const char *key);

/* site_file_keys.c: the same for keys about files, and about TLS. */
bool nj__site_parse_file_key(struct nj__policy_reader *r, bool is_site, uint32_t index,
                             const char *key, const struct nj_ini_entry *e);
bool nj__site_folder_is_absolute(const struct nj_site_folder *f);
/* The file system's name of the file `name` below `folder` ("/FOLDER//" of the rules; empty:
 * `root`). `root` may be NULL. False: it is needed, or the name is too long. */
bool nj__site_name_file(char *to, size_t n_max, const char *root, struct nj_str folder,
                        struct nj_str name);
/* Report folders that cannot be read. */
void nj__site_check_folders(struct nj__policy_reader *r);

/* Make room for one more element, of an array whose capacity is a power of two. */
bool nj__site_grow(struct nj__policy_reader *r, void **array, uint32_t n, size_t n_each);
/* The sections own the text from here on. NULL is passed through, with a diagnostic. */
const char *nj__site_own(struct nj__policy_reader *r, char *text);

/* Report names and paths that two sections have, and tables that cannot be made. */
void nj__site_check(struct nj__policy_reader *r);
void nj__site_sections_free(struct nj_site_sections *s);
