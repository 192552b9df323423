/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells when the name of --root leads to no folder that the server can serve. The store then goes
 * on with the folder that had the name, so that nobody would notice (store/file_root.c). */
#pragma once

#include "privilege/privileges.h"
#include "store/file_store.h"

/* Where the name of the root leads to. */
enum nj_root_state {
    NJ_ROOT_SERVED,
    NJ_ROOT_MISSING,
    NJ_ROOT_CLOSED,    /* to the folder that is served, which the user may not read any more */
    NJ_ROOT_ELSEWHERE, /* to another folder, which the server may not read */
};

struct nj_root_watch {
    const char *root;
    const struct nj_file_store *store;
    const struct nj_privileges *privileges;
    enum nj_root_state seen, logged; /* by the last check, and by the log */
    uint32_t n_checks;               /* that saw `seen`, in a row */
};

/* Log an error if the root's name leads to no folder that the server may read. May block. Any
 * thread. */
void nj__root_watch_check(const struct nj_root_watch *w);
/* The same once a second, if it is so in two calls; and when it ends. One thread at a time that may
 * block. */
void nj__root_watch_tick(struct nj_root_watch *w);
