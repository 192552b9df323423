/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a process opens after it has given up its privileges, as its new user: they are
 * checked, and are all that Landlock lets it open. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "privilege/run_user.h"

enum nj_file_need {
    NJ_NEED_READ,
    NJ_NEED_FOLDER, /* read all files below it */
    NJ_NEED_APPEND, /* a file that is made if there is none */
    NJ_NEED_LOG,    /* the same, and it is made again after a rotation */
    NJ_NEED_SOCKET, /* a socket that is made, and removed at the end */
    NJ_NEED_ALL,    /* make, write and remove all files below a folder; no links lead to others */
};

struct nj_needed_file {
    const char *option; /* that names it, for the message; NULL: it is not checked */
    const char *path;   /* NULL: there is none */
    enum nj_file_need need;
    const char *file; /* of the configuration, and the line that names it; NULL: none */
    uint32_t line;
};

/* As the new user: can the process read and write these files? Other errors than of rights are left
 * to those who open them, except for those of a log. Returns 0, or -1 with the reason and the
 * remedy in `why`. May block. */
int nj__needed_files_check(const struct nj_needed_file *file, uint32_t n_files,
                           const struct nj_run_user *user, char *why, size_t why_bytes);
