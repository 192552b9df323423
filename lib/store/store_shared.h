/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of a file store share: a lock, a budget of memory, files and pieces whose last
 * reference was put, and counters. The lock guards the cache, the table of pieces, and what a file
 * notes of how it was when it was looked at last. It is held for steps in memory only: no system
 * call that touches a file system is made with it, so whoever is stuck in one holds up nobody.
 *
 * What nobody holds any more is buried, which is a step in memory, and then freed. Freeing a file
 * is a close(2) or munmap(2), which may block: nj__shared_close() does that, for threads that may.
 */
#ifndef NJ_STORE_STORE_SHARED_H
#define NJ_STORE_STORE_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/attr.h"
#include "store/cache_policy.h"
#include "store/file_store.h"

/* A file or a piece on its way out. */
struct nj__grave {
    struct nj__grave *next;
    void (*bury)(struct nj__grave *); /* takes it out of lists and sums; with the lock */
    void (*free)(struct nj__grave *); /* its memory and descriptor; without the lock */
    bool may_block;                   /* `free` */
};

/* A file or a piece that nobody has to hold, in the one budget of both. */
struct nj__cached {
    struct nj__cache_entry entry;
    /* The budget needs its memory, and has forgotten it. With the lock. */
    void (*evict)(struct nj__cached *);
};

struct nj__shared {
    pthread_mutex_t lock;
    struct nj__cache_policy policy;       /* what stays of files and pieces; with the lock */
    struct nj__grave *to_free;            /* by whoever unlocks; `free` does not block */
    _Atomic(struct nj__grave *) to_close; /* the others; changed with the lock */
    /* Lock-free stack of what nobody holds any more: pushed by any thread, lcores among them, taken
     * whole by one that has the lock, so no ABA. */
    _Atomic(struct nj__grave *) dead NJ_CACHE_ALIGNED;
    struct nj_file_store_stats stats NJ_CACHE_ALIGNED;
};

/* `n_bytes`: the budget. False: no memory. */
bool nj__shared_init(struct nj__shared *sh, uint64_t n_bytes);
/* When nothing is cached. */
void nj__shared_fini(struct nj__shared *sh);
void nj__shared_lock(struct nj__shared *sh);
/* Also frees what was given to nj__shared_free() since the lock and does not block. */
void nj__shared_unlock(struct nj__shared *sh);

/* Its last reference was put. Any thread; no lock, no system call. */
void nj__shared_push(struct nj__shared *sh, struct nj__grave *g);
/* Any thread: is there something to bury, at some moment just now? */
static inline bool nj__shared_has_dead(struct nj__shared *sh)
{
    return nj_load_relaxed(&sh->dead) != NULL;
}
/* With the lock: evict until so many bytes more fit. False: they do not, as others are lent. */
bool nj__shared_make_room(struct nj__shared *sh, uint64_t n_bytes);
/* With the lock: evict one more. False: there is none, or all are lent. */
bool nj__shared_evict_one(struct nj__shared *sh);
/* With the lock: bury all that was pushed. */
void nj__shared_bury(struct nj__shared *sh);
/* With the lock: call its `free` after it, or in nj__shared_close(). */
void nj__shared_free(struct nj__shared *sh, struct nj__grave *g);
/* Without the lock: free what may block. Not for lcores, nor for the reader. If one blocks, other
 * threads free the others. Cheap when there is nothing. */
void nj__shared_close(struct nj__shared *sh);

/* Any thread, with the lock or without. */
static inline void nj__file_stat_add(_Atomic uint64_t *stat, int64_t by)
{
    nj_add_relaxed(stat, (uint64_t)by);
}

#endif
