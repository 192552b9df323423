/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State shared by the parts of a file store: the lock, the memory budget, the queue of deferred
 * frees, and counters. The lock guards the file cache, the chunk table, and the metadata that a
 * file had at its last check. No system call on a file system is made with the lock held, so a
 * thread that blocks in one delays no other thread.
 *
 * Deferred free: an object without references is first unlinked under the lock
 * (nj__store_unlink_unreferenced()), then freed outside of it. Freeing a file calls close(2) or
 * munmap(2), which may block: nj__store_run_blocking_frees() does it on threads that may block.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "store/cache_policy.h"
#include "store/file_store.h"

/* The deferred free of a file or chunk. */
struct nj__deferred {
    struct nj__deferred *next;
    void (*detach)(struct nj__deferred *); /* unlinks it and updates counters; with the lock */
    void (*free)(struct nj__deferred *);   /* frees memory and descriptor; without the lock */
    bool may_block;                        /* `free` may block */
};

/* A cached file or chunk, in the budget of both. It may have no references. */
struct nj__cache_item {
    struct nj__cache_entry entry;
    /* Free the memory: the policy has removed the entry. Called with the lock. */
    void (*evict)(struct nj__cache_item *);
};

struct nj__store {
    pthread_mutex_t lock;
    struct nj__cache_policy policy;          /* of files and chunks; with the lock */
    struct nj__deferred *to_free;            /* freed by the next unlock; `free` does not block */
    _Atomic(struct nj__deferred *) to_close; /* `free` may block; written with the lock */
    /* Lock-free stack of objects without references. Any thread pushes, including lcores. The lock
     * holder takes the whole stack at once, so there is no ABA problem. */
    _Atomic(struct nj__deferred *) dead NJ_CACHE_ALIGNED;
    struct nj_file_store_stats stats NJ_CACHE_ALIGNED;
};

/* `n_bytes` is the budget. Returns false if there is no memory. */
bool nj__store_init(struct nj__store *sh, uint64_t n_bytes);
/* Precondition: nothing is cached. */
void nj__store_fini(struct nj__store *sh);
void nj__store_lock(struct nj__store *sh);
/* Unlock, then free what nj__store_queue_free_at_unlock() queued and does not block. */
void nj__store_unlock_and_free(struct nj__store *sh);

/* Queue an object whose last reference was dropped. Any thread; no lock, no system call. */
void nj__store_defer_free(struct nj__store *sh, struct nj__deferred *g);
/* Is an object queued? Any thread; the answer may be stale. */
static inline bool nj__store_has_deferred(struct nj__store *sh)
{
    return nj_load_relaxed(&sh->dead) != NULL;
}
/* With the lock: evict until `n_bytes` more fit. Returns false if pinned entries prevent that. */
bool nj__store_make_room(struct nj__store *sh, uint64_t n_bytes);
/* With the lock: evict one entry. Returns false if there is none or all are pinned. */
bool nj__store_evict_one(struct nj__store *sh);
/* With the lock: unlink all queued objects. */
void nj__store_unlink_unreferenced(struct nj__store *sh);
/* With the lock: have `g->free` called after the unlock, or in nj__store_run_blocking_frees() if it
 * may block.
 */
void nj__store_queue_free_at_unlock(struct nj__store *sh, struct nj__deferred *g);
/* Without the lock: run the frees that may block. Not on lcores or the reader. If one blocks, other
 * threads run the rest. Cheap if there are none. */
void nj__store_run_blocking_frees(struct nj__store *sh);

/* Any thread, with the lock or without. */
static inline void nj__file_stat_add(_Atomic uint64_t *stat, int64_t by)
{
    nj_add_relaxed(stat, (uint64_t)by);
}
