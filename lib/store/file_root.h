/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The document root. Paths below it are opened by openat2(2), never outside of the root, and follow
 * symbolic links as configured (enum nj_symlinks). Thread-safe.
 *
 * "/FOLDER//PATH" is a path below another root, which is opened for this call: a site's. FOLDER is
 * absolute, or below the document root. Only an operator can give such a path: those of requests
 * and handlers do not begin with '/'.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "store/file_store.h"

/* Maximum folder depth of a walk with SYMLINKS_OWNER, which holds one descriptor per level. */
#define NJ__ROOT_DEPTH_MAX 64u

struct nj__root {
    char *path;
    int fd; /* constant number; dup3(2) may replace the folder */
    enum nj_symlinks symlinks;
    _Atomic int64_t checked_ms; /* last check that `path` is still this folder; INT64_MAX
                                 * during a check */
};

/* Returns 0, or a negative errno and a message in `err`. */
int nj__root_open(struct nj__root *r, const char *path, enum nj_symlinks symlinks, char *err,
                  size_t n_err);
void nj__root_close(struct nj__root *r);

/* Open `path` ("" is the root itself) with `flags`. Returns a descriptor, owned by the caller; or
 * -1 and errno: ELOOP, EXDEV or EACCES if the path is not allowed. A root that was replaced under
 * its name is detected within a second. */
int nj__root_openat(struct nj__root *r, const char *path, uint64_t flags);
