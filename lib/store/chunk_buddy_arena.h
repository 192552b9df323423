/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buddy allocator for file chunks: blocks of 4, 32 and 256 KiB, each aligned to its size, as
 * direct I/O requires. A block of 256 KiB splits into eight of 32 KiB, and one of these into eight
 * of 4 KiB. Eight free siblings merge again. Blocks are reused without mapping or zeroing.
 *
 * The arena lies in hugepages if enough are free, else in pages that are populated on first use,
 * which may be transparent hugepages. Sizes are bytes. The caller holds the store's lock, except
 * where a function says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/files/file_ops.h"

#define NJ__ARENA_SIZES      3u
/* Free populated blocks of 256 KiB above which pages are released to the system: 64 MiB. */
#define NJ__ARENA_KEEP_MAX   256u
/* When fewer than NJ__ARENA_LOW_WATER free blocks of 256 KiB are populated, populate until there
 * are NJ__ARENA_HIGH_WATER (32 MiB). At 1 GB/s the low mark is reached 17 ms before the last is
 * used. */
#define NJ__ARENA_HIGH_WATER 128u
#define NJ__ARENA_LOW_WATER  64u

struct nj__arena;

/* `n_bytes` is rounded up to whole blocks. Returns NULL if there is no memory. */
struct nj__arena *nj__arena_new(uint64_t n_bytes);
void nj__arena_free(struct nj__arena *a);

/* Allocate and free a block. `n_room` is 4, 32 or 256 KiB. Returns NULL if none is free. */
uint8_t *nj__arena_take(struct nj__arena *a, uint32_t n_room);
void nj__arena_put(struct nj__arena *a, uint8_t *block, uint32_t n_room);

/* Release the pages of one block beyond NJ__ARENA_KEEP_MAX to the system, in three steps: take it
 * with the lock, nj__arena_release_block_pages() without the lock, nj__arena_put_unbacked() with
 * the lock. Returns NULL if there is none. */
uint8_t *nj__arena_take_surplus(struct nj__arena *a);
void nj__arena_release_block_pages(uint8_t *block);
void nj__arena_put_unbacked(struct nj__arena *a, uint8_t *block);

/* Are fewer than NJ__ARENA_LOW_WATER blocks populated, and could others be? Any thread, without the
 * lock; the answer may be stale. */
bool nj__arena_needs_pages(const struct nj__arena *a);
/* Populate one block, in three steps: take it with the lock, nj__arena_populate() without the lock,
 * nj__arena_put_populated() with the lock, or nj__arena_put_unbacked() on failure. Returns NULL if
 * NJ__ARENA_HIGH_WATER blocks are populated or no block lacks pages. */
uint8_t *nj__arena_take_unpopulated(struct nj__arena *a);
/* Returns 0 or a negative errno: EINVAL before Linux 5.14. */
int nj__arena_populate(uint8_t *block);
void nj__arena_put_populated(struct nj__arena *a, uint8_t *block);

/* The memory range of the arena, and whether it lies in hugepages. */
struct nj__arena_memory {
    uint8_t *at;
    uint64_t n_bytes;
    bool is_huge;
};
struct nj__arena_memory nj__arena_memory_range(const struct nj__arena *a);
