/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root folder, and how names below it become descriptors: always by openat2(2), never out of
 * the root, and through symbolic links as far as the operator lets. Any number of threads may look
 * names up at once.
 */
#ifndef NJ_STORE_FILE_ROOT_H
#define NJ_STORE_FILE_ROOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "store/file_store.h"

/* Folders that a look-up holds at once where it has to walk over links itself (SYMLINKS_OWNER). */
#define NJ__ROOT_DEPTH_MAX 64u

struct nj__root {
    char *path;
    int fd; /* one number for the life of the root; which folder it is may change */
    enum nj_symlinks symlinks;
    _Atomic int64_t looked_at_ms; /* when we saw last that `path` is still this folder; INT64_MAX
                                   * while a thread looks */
};

/* Returns 0, or a negative errno and a sentence in `err`. */
int nj__root_open(struct nj__root *r, const char *path, enum nj_symlinks symlinks, char *err,
                  size_t n_err);
void nj__root_close(struct nj__root *r);

/* A descriptor of `path` ("" is the root itself), opened with `flags`; or -1 and errno: ELOOP,
 * EXDEV or EACCES where the way there is none that may be gone. A root that was replaced by another
 * folder under its name is noticed within a second. */
int nj__root_get(struct nj__root *r, const char *path, uint64_t flags);

#endif
