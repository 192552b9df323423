/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a folder for a listing. Thread-safe. */
#ifndef NJ_STORE_DIR_READER_H
#define NJ_STORE_DIR_READER_H

#include "http/files/dir_listing.h"
#include "http/files/file_ops.h"
#include "store/file_root.h"

/* Maximum of names read from a folder; a longer listing is marked as cut. A name costs a stat(2) of
 * 1 to 2 us, 20 ms in total, and up to 1.2 KB of page, 20 MiB at most in total. */
#define NJ_DIR_ENTRIES_MAX 10000u

/* Read the visible entries of folder `path` below `r`, sorted. `l` refers to `path`, which the
 * caller keeps. Returns 0 or an errno. The caller frees `l` with nj__dir_free() in any case. */
int nj__dir_read(struct nj__root *r, const char *path, struct nj_listing *l);
void nj__dir_free(struct nj_listing *l);

#endif
