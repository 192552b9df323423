/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files below one document root, as objects in memory. Thread-safe: a job may block, and then
 * delays no other job. Two jobs that open the same uncached file both read it.
 *
 * Names are resolved with openat2(2) and never leave the root. Small files are cached whole. Large
 * files are cached open and read in chunks, which are cached, too, in the same budget
 * (cache_policy.h). Each OPEN checks that the cached copy is still current.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <nightjar/server.h>

#include "http/files/file_ops.h"

/* Operations of one shard that workers run or that wait for them. */
#define NJ_FILE_JOBS_MAX            1024u
#define NJ_FILE_CACHE_BYTES_DEFAULT (1024u * 1024u * 1024u)
/* Minimum budget: one page. */
#define NJ__CACHE_BYTES_MIN         4096u

struct nj_file_store_options {
    const char *root;
    uint64_t cache_bytes;
    enum nj_symlinks symlinks; /* DEFAULT is BENEATH */
    uint32_t n_threads;        /* that may do jobs at once; 0 is 1 */
    bool drop_rights;          /* open files with dropped rights (thread_file_rights.h) */
};

struct nj_file_store;

/* Returns 0, or a negative errno and a message in `err`. */
int nj_file_store_open(const struct nj_file_store_options *options, struct nj_file_store **out,
                       char *err, size_t n_err);

/* Do a job and fill in its outputs. `store` is a struct nj_file_store. Any thread that may block.
 * With `drop_rights` the thread may keep the dropped rights; if they cannot be dropped, the result
 * is DENIED. */
void nj_file_store_do_job(void *store, struct nj_file_job *job);

/* Free objects without references; the close(2) of files may block. Cheap if there are none. Any
 * thread that may block (not the reader). Call after each job. */
void nj_file_store_free_unreferenced(void *store);
/* The same, plus housekeeping: expires readahead, closes deleted files, releases memory. May block
 * on a disk. Any thread; call once a second. */
void nj_file_store_run_housekeeping(void *store);

/* Is this the folder that is served now? Its name may lead to another one meanwhile. Any thread. */
bool nj_file_store_is_root(const struct nj_file_store *store, const struct stat *folder);

/* Counters. Any thread may read. */
struct nj_file_store_stats {
    _Atomic uint64_t cached_files, cached_bytes; /* kept by name; bytes of whole ones */
    _Atomic uint64_t hits, misses;               /* of OPENs that found a file */
    _Atomic uint64_t evictions;                  /* to make room for others */
    _Atomic uint64_t whole_bytes;                /* contents in memory, cached or only lent */
    _Atomic uint64_t chunk_bytes;                /* of buffers for chunks */
    _Atomic uint64_t chunk_lent_bytes;           /* of these, referenced */
    _Atomic uint64_t chunk_hits;                 /* READs that found their chunk */
    _Atomic uint64_t chunk_returns;              /* chunks whose last reference was dropped */
    _Atomic uint64_t reads, read_bytes;          /* from the file system */
    _Atomic uint64_t ahead;                      /* of the reads: readahead */
    _Atomic uint64_t ahead_bytes;                /* of chunk_bytes: readahead not requested yet */
    _Atomic uint64_t unused_bytes; /* of read_bytes: freed before they were requested, or broken */
    _Atomic uint64_t waits;        /* READs delayed by lack of memory */
    _Atomic uint64_t waits_for_read; /* READs delayed by a read of the same chunk */
    _Atomic uint64_t changed;        /* READs that found another file */
    _Atomic uint64_t listings;
    _Atomic uint64_t listings_failed; /* too long, or an I/O error */
    _Atomic uint64_t stale_siblings;  /* found at OPENs, and older than their files */
};
const struct nj_file_store_stats *nj_file_store_stats(const struct nj_file_store *store);

/* Could a READ that failed with NO_MEMORY or BUSY succeed now? For the owner of the job; any
 * thread.
 */
bool nj_file_store_may_retry_read(struct nj_file_store *store, const struct nj_file_job *job);

/* Does its memory for chunks consist of large pages? */
bool nj_file_store_has_hugepages(const struct nj_file_store *store);

/* The chunk cache, for the reader. */
struct nj__chunks *nj__file_store_chunks(struct nj_file_store *store);

/* Number of objects and lent chunks, including cached files. Any thread. */
uint32_t nj_file_store_count_held_objects(const struct nj_file_store *store);

/* Empty the cache and free everything. Precondition: no job runs. Returns the number of objects and
 * chunks still referenced; if it is not 0, their memory stays allocated. */
uint32_t nj_file_store_close(struct nj_file_store *store);
