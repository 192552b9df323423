/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a folder for a listing. Any number of threads may do it at once. */
#ifndef NJ_STORE_DIR_READER_H
#define NJ_STORE_DIR_READER_H

#include "http/files/dir_listing.h"
#include "http/files/file_ops.h"
#include "store/file_root.h"

/* Names of a folder that are looked at; a listing says when there were more. Each costs a stat(2),
 * 1 to 2 us, so a thread is busy for 20 ms with the largest; and 1.2 KB of page with a name of 255
 * bytes, so that none is larger than 20 MiB. */
#define NJ_LIST_ENTRIES_MAX 10000u

/* Read folder `path` below `r`: what may be shown of it, sorted. `path` is lent for as long as `l`
 * is. Returns 0 or an errno; `l` is to be freed with nj__list_free() in any case. */
int nj__list_read(struct nj__root *r, const char *path, struct nj_listing *l);
void nj__list_free(struct nj_listing *l);

#endif
