/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stays in a cache that has a budget of bytes: S3-FIFO (Yang et al., FIFO queues are all you
 * need for cache eviction, SOSP 2023), with sizes (docs/adr/0020-what-the-store-keeps.md).
 *
 * An entry is a small file or a piece of a large one. It begins in the queue `small`, which has a
 * twentieth of the budget. At the end of that queue it moves to the queue `main` if it was used
 * again meanwhile; else it is evicted. So a client that reads every file once evicts nothing from
 * `main`. At the end of `main` an entry that was used goes back to the beginning with one use less;
 * else it is evicted. An entry that comes again soon after it was evicted from `small` begins in
 * `main`: its fingerprint is among the ghosts.
 *
 * A use adds one to a number in the entry and moves nothing. Entries are embedded in the caller's
 * structs. Only nj__cache_policy_init() allocates: the ghosts, NJ__CACHE_GHOSTS of the budget.
 *
 * Locking: the caller holds its own lock in every call. No call blocks; init and fini alone make
 * system calls. Ownership: entries and their contents are the caller's all the time. The caller
 * frees those that nj__cache_policy_victim() returns:
 *
 *     while ((e = nj__cache_policy_victim(p, n_bytes)))
 *         free the file or piece of `e`;
 *     if (!nj__cache_policy_fits(p, n_bytes))
 *         all entries are pinned: wait until one is unpinned, or do not keep it;
 *     nj__cache_policy_add(p, entry, fingerprint, n_bytes);
 */
#ifndef NJ_STORE_CACHE_POLICY_H
#define NJ_STORE_CACHE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Uses that an entry remembers. */
#define NJ__CACHE_USES_MAX  7u
/* The queue `small` has one part in so many of the budget. */
#define NJ__CACHE_SMALL     20u
/* A ghost is forgotten when `small` has evicted one part in so many of the budget of `main` since.
 */
#define NJ__CACHE_GHOST_AGE 4u
/* Ghosts take one part in so many of the budget: 8 bytes for each 8 KiB. */
#define NJ__CACHE_GHOSTS    1024u
/* Used entries that are looked at for one victim. After them the next one goes whatever its uses
 * are: a call takes microseconds, not a walk over all entries. */
#define NJ__CACHE_LOOKS_MAX 128u

enum nj__cache_queue { NJ__CACHE_NONE, NJ__CACHE_SMALL_QUEUE, NJ__CACHE_MAIN_QUEUE };

/* Zeroed by the caller before its first add. */
struct nj__cache_entry {
    struct nj_list node;
    uint64_t fingerprint;
    uint32_t n_bytes;
    uint8_t queue; /* enum nj__cache_queue; while it is aside, the one it was in */
    uint8_t n_uses;
    bool is_pinned, is_aside;
};

struct nj__cache_queue_of {
    struct nj_list list; /* the oldest first */
    uint64_t n_bytes;    /* with those aside */
};

struct nj__cache_ghost {
    uint32_t fingerprint; /* 0: none */
    uint32_t stamp;       /* how much had been evicted when it was */
};

struct nj__cache_policy {
    uint64_t n_bytes_max, small_max;
    struct nj__cache_queue_of small, main;
    struct nj_list aside; /* pinned ones that reached the end of their queue */
    uint64_t n_entries, n_pinned_bytes;
    struct nj__cache_ghost *ghosts; /* in buckets of a cache line */
    uint64_t n_buckets;
    uint32_t ghost_clock, ghost_window; /* in pages */
    uint32_t page_rest;                 /* bytes that are no page of the clock yet */
};

/* False: no memory. A budget of at least one page. */
bool nj__cache_policy_init(struct nj__cache_policy *p, uint64_t n_bytes_max);
/* There is no entry any more. */
void nj__cache_policy_fini(struct nj__cache_policy *p);

/* Bytes of all entries, those pinned included. */
static inline uint64_t nj__cache_policy_bytes(const struct nj__cache_policy *p)
{
    return p->small.n_bytes + p->main.n_bytes;
}

/* Is there room for so many bytes more? */
static inline bool nj__cache_policy_fits(const struct nj__cache_policy *p, uint64_t n_bytes)
{
    return n_bytes <= p->n_bytes_max && nj__cache_policy_bytes(p) <= p->n_bytes_max - n_bytes;
}

/* The entry that has to go next so that `n_bytes` more fit. The policy has forgotten it. NULL: they
 * fit, or they are more than the budget, or all entries are pinned. */
struct nj__cache_entry *nj__cache_policy_victim(struct nj__cache_policy *p, uint64_t n_bytes);

/* Keep an entry that is not in. `fingerprint` is a keyed hash of the identity of its contents, the
 * same each time; no other entry with these contents is in. Whether it fits is the caller's to
 * look. */
void nj__cache_policy_add(struct nj__cache_policy *p, struct nj__cache_entry *e,
                          uint64_t fingerprint, uint32_t n_bytes);

/* A request found it. The request for which it was added does not count. */
static inline void nj__cache_policy_used(struct nj__cache_entry *e)
{
    if (e->n_uses < NJ__CACHE_USES_MAX)
        e->n_uses++;
}

/* While it is lent, freeing it gives no memory back: it is no victim until it is unpinned. It
 * counts in the budget all the time. An entry may be pinned before it is added, and unpinned after
 * it was removed. Pins do not nest. */
void nj__cache_policy_pin(struct nj__cache_policy *p, struct nj__cache_entry *e);
void nj__cache_policy_unpin(struct nj__cache_policy *p, struct nj__cache_entry *e);

/* Forget an entry, pinned or not, and leave no ghost: its contents are not valid any more. Does
 * nothing if it is not in. */
void nj__cache_policy_remove(struct nj__cache_policy *p, struct nj__cache_entry *e);

#endif
