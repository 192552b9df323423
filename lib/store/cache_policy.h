/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The eviction policy of the file cache: S3-FIFO (Yang et al., FIFO queues are all you need for
 * cache eviction, SOSP 2023), with sizes in bytes (docs/adr/0020-what-the-store-keeps.md).
 *
 * An entry is a small file or a chunk of a large one. A new entry enters the queue `small`, which
 * has a twentieth of the budget. At the head of `small` an entry that was used again moves to the
 * queue `main`; any other is evicted. So a client that reads every file once evicts nothing from
 * `main`. At the head of `main` an entry that was used is requeued with one use less; any other is
 * evicted. The fingerprint of an entry evicted from `small` becomes a ghost. An entry with a young
 * ghost enters `main` directly.
 *
 * A use increments a counter in the entry and moves nothing. Entries are embedded in the caller's
 * structs. Only nj__cache_policy_init() allocates: the ghosts, NJ__CACHE_GHOSTS_DIV of the budget.
 *
 * Locking: the caller holds its own lock in every call. No call blocks. Only init and fini make
 * system calls. Ownership: the caller owns entries and their contents at all times, and frees the
 * entries that nj__cache_policy_pop_victim() returns:
 *
 *     while ((e = nj__cache_policy_pop_victim(p, n_bytes)))
 *         free the file or chunk of `e`;
 *     if (!nj__cache_policy_fits(p, n_bytes))
 *         all entries are pinned: wait until one is unpinned, or do not cache;
 *     nj__cache_policy_add(p, entry, fingerprint, n_bytes);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Upper bound of an entry's use counter. */
#define NJ__CACHE_USES_MAX      7u
/* Size of the queue `small`: the budget divided by this. */
#define NJ__CACHE_SMALL_DIV     20u
/* A ghost expires after `small` has evicted this fraction (1/N) of the budget of `main`. */
#define NJ__CACHE_GHOST_AGE_DIV 4u
/* Memory of ghosts: the budget divided by this, 8 bytes for each 8 KiB. */
#define NJ__CACHE_GHOSTS_DIV    1024u
/* Used entries that one search for a victim may requeue. Then the next entry is the victim, used or
 * not. This bounds a call to microseconds. */
#define NJ__CACHE_SCAN_MAX      128u

enum nj__cache_queue { NJ__CACHE_NO_QUEUE, NJ__CACHE_SMALL_QUEUE, NJ__CACHE_MAIN_QUEUE };

/* Zeroed by the caller before its first add. */
struct nj__cache_entry {
    struct nj_list node;
    uint64_t fingerprint;
    uint32_t n_bytes;
    uint8_t queue; /* enum nj__cache_queue; of an entry in `aside`, its former queue */
    uint8_t n_uses;
    bool is_pinned, is_aside;
};

struct nj__cache_fifo {
    struct nj_list list; /* the oldest first */
    uint64_t n_bytes;    /* including its entries in `aside` */
};

struct nj__cache_ghost {
    uint32_t fingerprint; /* 0: none */
    uint32_t stamp;       /* ghost_clock at its eviction */
};

struct nj__cache_policy {
    uint64_t n_bytes_max, small_max;
    struct nj__cache_fifo small, main;
    struct nj_list aside; /* pinned entries that reached the head of their queue */
    uint64_t n_entries;
    struct nj__cache_ghost *ghosts; /* a set-associative table; one set is a cache line */
    uint64_t n_buckets;
    uint32_t ghost_clock, ghost_window; /* in pages */
    uint32_t n_rest_bytes;              /* evicted bytes that do not fill a page of ghost_clock */
};

/* `n_bytes_max`: the budget, at least one page. Returns false if there is no memory. */
bool nj__cache_policy_init(struct nj__cache_policy *p, uint64_t n_bytes_max);
/* Precondition: no entries are left. */
void nj__cache_policy_fini(struct nj__cache_policy *p);

/* Bytes of all entries, including pinned ones. */
static inline uint64_t nj__cache_policy_used_bytes(const struct nj__cache_policy *p)
{
    return p->small.n_bytes + p->main.n_bytes;
}

/* Do `n_bytes` more fit into the budget? */
static inline bool nj__cache_policy_fits(const struct nj__cache_policy *p, uint64_t n_bytes)
{
    return n_bytes <= p->n_bytes_max && nj__cache_policy_used_bytes(p) <= p->n_bytes_max - n_bytes;
}

/* Remove and return the next entry to evict so that `n_bytes` more fit. Returns NULL if they fit
 * already, exceed the whole budget, or all entries are pinned. */
struct nj__cache_entry *nj__cache_policy_pop_victim(struct nj__cache_policy *p, uint64_t n_bytes);

/* Add an entry. `fingerprint` is a keyed hash of the identity of its contents and is stable over
 * time. No other entry with these contents may be present. The caller checks that it fits. */
void nj__cache_policy_add(struct nj__cache_policy *p, struct nj__cache_entry *e,
                          uint64_t fingerprint, uint32_t n_bytes);

/* Count a use. The request for which the entry was added does not count. */
static inline void nj__cache_policy_touch(struct nj__cache_entry *e)
{
    if (e->n_uses < NJ__CACHE_USES_MAX)
        e->n_uses++;
}

/* A pinned entry is in use and is never a victim. It counts in the budget. An entry may be pinned
 * before it is added, and unpinned after it was removed. Pins do not nest. */
void nj__cache_policy_pin(struct nj__cache_entry *e);
void nj__cache_policy_unpin(struct nj__cache_policy *p, struct nj__cache_entry *e);

/* Remove an entry whose contents are stale, pinned or not. Leaves no ghost. Does nothing if the
 * entry is not present. */
void nj__cache_policy_remove(struct nj__cache_policy *p, struct nj__cache_entry *e);
