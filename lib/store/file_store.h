/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files below one root folder, as objects in memory. Any number of threads may do jobs at once;
 * a job may block, and then holds up no other one. Two of them that open the same file both read
 * it.
 *
 * Names are resolved by the kernel with openat2(2) and never leave the root. Small files are read
 * whole and kept, large ones are kept open and read in pieces, which are kept, too; one budget is
 * for both (cache_policy.h). Each OPEN checks that the kept copy is still the file.
 */
#ifndef NJ_STORE_FILE_STORE_H
#define NJ_STORE_FILE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nightjar/server.h>

#include "http/files/file_ops.h"

#define NJ_FILE_CACHE_BYTES_DEFAULT (1024u * 1024u * 1024u)
/* A smaller budget is taken for a page of memory: one that holds something of a file. */
#define NJ__CACHE_BYTES_LEAST       4096u

struct nj_file_store_options {
    const char *root;
    uint64_t cache_bytes;
    enum nj_symlinks symlinks; /* DEFAULT is BENEATH */
    uint32_t n_threads;        /* that may do jobs at once; 0 is 1 */
    bool as_others;            /* look names up with the rights of others (file_rights.h) */
};

struct nj_file_store;

/* Returns 0, or a negative errno and a sentence in `err`. */
int nj_file_store_open(const struct nj_file_store_options *options, struct nj_file_store **out,
                       char *err, size_t n_err);

/* Do a job: fills in its outputs. `store` is a struct nj_file_store. Any thread. With `as_others`
 * the thread may have the rights of others afterwards; where the system does not let it, names are
 * DENIED. */
void nj_file_store_run(void *store, struct nj_file_job *job);

/* Free what was put by its last holder, files among it, whose close(2) may block. Cheap when there
 * is nothing. Any thread that may block, which the reader's may not; to be called after jobs. */
void nj_file_store_bury(void *store);
/* The same, and let go of files that were deleted. Looks at open files, which may block: nobody may
 * wait for it. Any thread; to be called once a second. */
void nj_file_store_tidy(void *store);

/* What goes on in it. Any thread. */
struct nj_file_store_stats {
    _Atomic uint64_t cached_files, cached_bytes; /* kept by name; bytes of whole ones */
    _Atomic uint64_t hits, misses;               /* of OPENs that found a file */
    _Atomic uint64_t evictions;                  /* to make room for others */
    _Atomic uint64_t whole_bytes;                /* contents in memory, cached or only lent */
    _Atomic uint64_t chunk_bytes;                /* of buffers for chunks */
    _Atomic uint64_t chunk_lent_bytes;           /* of these, held by somebody */
    _Atomic uint64_t chunk_hits;                 /* READs that found their chunk */
    _Atomic uint64_t chunk_returns;              /* chunks that their last holder let go of */
    _Atomic uint64_t reads, read_bytes;          /* from the file system */
    _Atomic uint64_t ahead;                      /* of the reads, before somebody asked */
    _Atomic uint64_t ahead_bytes;                /* of chunk_bytes: nobody has asked so far */
    _Atomic uint64_t unused_bytes;   /* of read_bytes: let go of before somebody asked, or broken */
    _Atomic uint64_t waits;          /* READs put off for want of memory */
    _Atomic uint64_t waits_for_read; /* put off while another thread read the same */
    _Atomic uint64_t changed;        /* READs that found another file */
    _Atomic uint64_t listings;
};
const struct nj_file_store_stats *nj_file_store_stats(const struct nj_file_store *store);

/* May a READ that failed with NO_MEMORY or BUSY be different now? For who has the job. Any thread.
 */
bool nj_file_store_has_news(struct nj_file_store *store, const struct nj_file_job *job);

/* The pieces of its large files, for the reader. */
struct nj__chunks *nj__file_store_chunks(struct nj_file_store *store);

/* Objects and chunks that somebody may hold, cached files included. Any thread. */
uint32_t nj_file_store_objects(const struct nj_file_store *store);

/* When no job runs: empty the cache and free everything. Returns the objects and chunks that
 * someone still holds: 0, or there is a leak, and what they need stays allocated. */
uint32_t nj_file_store_close(struct nj_file_store *store);

#endif
