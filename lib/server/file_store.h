/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files below one root folder, as objects in memory. Belongs to one worker thread, which may
 * block; only references are shared.
 *
 * Names are resolved by the kernel with openat2(2) and never leave the root. Small files are read
 * whole and kept, least recently used first out, within a budget; each OPEN checks that the
 * kept copy is still the file. Large files are kept open and read in chunks.
 */
#ifndef NJ_SERVER_FILE_STORE_H
#define NJ_SERVER_FILE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "http/file_port.h"

#define NJ_FILE_CACHE_BYTES_DEFAULT (256u * 1024u * 1024u)

struct nj_file_store;

/* Returns 0, or a negative errno and a sentence in `err`. */
int nj_file_store_open(const char *root, uint64_t cache_bytes, struct nj_file_store **out,
                       char *err, size_t n_err);

/* Do a job: fills in its outputs. `store` is a struct nj_file_store. */
void nj_file_store_run(void *store, struct nj_file_job *job);

/* Free what was put by its last holder. Cheap when there is nothing. */
void nj_file_store_tidy(void *store);

/* Objects and chunks that are not freed yet, cached ones included. Any thread. */
uint32_t nj_file_store_objects(const struct nj_file_store *store);
/* Bytes the cache accounts for. The worker's thread. */
uint64_t nj_file_store_cached_bytes(const struct nj_file_store *store);

/* Empty the cache and free everything. Returns the objects and chunks that someone still holds: 0,
 * or there is a leak, and what they need stays allocated. */
uint32_t nj_file_store_close(struct nj_file_store *store);

#endif
