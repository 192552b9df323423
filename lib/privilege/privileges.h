/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process gives up when its devices are open: its user, its capabilities, system calls, and
 * files (docs/adr/0023-what-a-server-gives-up.md). One thread calls these functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "privilege/needed_files.h"
#include "privilege/run_user.h"

struct nj_privileges {
    bool is_enabled;         /* else the process gives up nothing */
    struct nj_run_user user; /* whom it becomes; its name is "" if not enabled */
};

/* If enabled, look up the user that is wanted ("NAME", "NAME:GROUP", or NULL for the default). A
 * process that is not root stays who it is. Returns 0, or -1 with the reason in `why`: there is no
 * such user, or the process cannot become it. */
int nj_privileges_init(struct nj_privileges *p, bool is_enabled, const char *wanted, char *why,
                       size_t why_bytes);

/* Is the process root, and stays root after nj_privileges_drop()? Any thread. */
bool nj_privileges_keep_root(const struct nj_privileges *p);
/* Does nj_privileges_drop() change the user? */
bool nj_privileges_change_user(const struct nj_privileges *p);

/* Give up user, capabilities and system calls on all threads, and check that the new user can read
 * and write the files. Root as the new user keeps everything. `has_own_code`: code of the program
 * runs on lcores, and neither its files nor its system calls are known: no Landlock, no list of
 * allowed calls. Returns 0, or -1 with the reason in `why`; some threads may then have given up
 * theirs. */
int nj_privileges_drop(const struct nj_privileges *p, const struct nj_needed_file *file,
                       uint32_t n_files, bool has_own_code, char *why, size_t why_bytes);
