/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a folder for a listing. Thread-safe. */
#pragma once

#include "http/files/dir_listing.h"
#include "http/files/file_ops.h"
#include "store/file_root.h"

/* Maximum of names in a folder that is listed: a list with some of them would be taken for all. A
 * name costs a stat(2) of 1 to 2 us, so a worker lists a folder in 0.2 s; 100 bytes while the
 * folder is read; and 200 bytes of page, at most 1.2 KB. */
#define NJ_DIR_ENTRIES_MAX 100000u
/* Maximum of a page: 100,000 names of 120 bytes fit. */
#define NJ_DIR_PAGE_BYTES  (64u * 1024u * 1024u)

/* Read the visible entries of folder `path` below `r`, sorted. `l` refers to `path`, which the
 * caller keeps. Returns 0 or an errno; E2BIG: there are more than NJ_DIR_ENTRIES_MAX. The caller
 * frees `l` with nj__dir_free() in any case. */
int nj__dir_read(struct nj__root *r, const char *path, struct nj_listing *l);
void nj__dir_free(struct nj_listing *l);
