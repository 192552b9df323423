/* SPDX-License-Identifier: BSD-3-Clause */
/* The user that a server becomes after bring-up: --user. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define NJ_RUN_GROUPS_MAX  256
#define NJ_RUN_NAME_BYTES  64
#define NJ_RUN_USER        "nightjar" /* without --user, if there is such a user */
#define NJ_RUN_USER_NOBODY "nobody"   /* else */

struct nj_run_user {
    char name[NJ_RUN_NAME_BYTES], group[NJ_RUN_NAME_BYTES]; /* or numbers */
    uid_t uid;
    gid_t gid;
    int n_groups; /* supplementary groups */
    gid_t groups[NJ_RUN_GROUPS_MAX];
};

/* Look up "NAME" or "NAME:GROUP", by name or number, in the system's databases. `text` NULL: the
 * default user. Returns 0, or -1 with the reason and the remedy in `why`. One thread at a time. */
int nj_run_user_find(const char *text, struct nj_run_user *out, char *why, size_t why_bytes);
