/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for pieces of files: blocks of 4, 32 and 256 KiB, each aligned to its size, which is what
 * reads past the page cache need. A block of 256 KiB is divided into eight of 32 KiB, and one of
 * these into eight of 4 KiB; when all eight are free again they are one block. Blocks are used
 * again and again: nothing is mapped or zeroed for a piece.
 *
 * The arena lies in hugepages if there are enough of them, else in pages that come with their first
 * use, which transparent hugepages may serve. For whoever has the store's lock, where nothing else
 * is said.
 */
#ifndef NJ_STORE_CHUNK_ARENA_H
#define NJ_STORE_CHUNK_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "http/files/file_ops.h"

#define NJ__ARENA_SIZES 3u
/* Free blocks of 256 KiB whose pages are kept, for bursts: 64 MiB. */
#define NJ__ARENA_KEEP  256u
/* Free blocks of 256 KiB that are given pages before they are used: 32 MiB; when there are fewer
 * than the second number. At 1 GB/s that is 17 ms before the last of them is taken. */
#define NJ__ARENA_READY 128u
#define NJ__ARENA_LOW   64u

struct nj__arena;

/* `n_bytes` is rounded up to whole blocks. NULL: no memory. */
struct nj__arena *nj__arena_new(uint64_t n_bytes);
void nj__arena_free(struct nj__arena *a);

/* `n_room` is 4, 32 or 256 KiB. NULL: all such blocks are taken. */
uint8_t *nj__arena_take(struct nj__arena *a, uint32_t n_room);
void nj__arena_put(struct nj__arena *a, uint8_t *block, uint32_t n_room);

/* The pages of one block beyond NJ__ARENA_KEEP are to go back to the system: taken with the lock,
 * given back by nj__arena_release() without it, returned with it by nj__arena_put_released(). NULL:
 * there is none. */
uint8_t *nj__arena_take_spare(struct nj__arena *a);
void nj__arena_release(uint8_t *block);
void nj__arena_put_released(struct nj__arena *a, uint8_t *block);

/* Any thread, at some moment just now: less than NJ__ARENA_LOW blocks have pages, and others could
 * be given some. */
bool nj__arena_is_low(const struct nj__arena *a);
/* One block is to get pages: taken with the lock, given them by nj__arena_populate() without it,
 * returned with it by nj__arena_put_populated(), or nj__arena_put_released() if that failed. NULL:
 * NJ__ARENA_READY have pages, or all others are in use. */
uint8_t *nj__arena_take_released(struct nj__arena *a);
/* Returns 0, or a negative errno: EINVAL before Linux 5.14. */
int nj__arena_populate(uint8_t *block);
void nj__arena_put_populated(struct nj__arena *a, uint8_t *block);

/* All of it, and whether it is in hugepages. */
struct nj__arena_memory {
    uint8_t *at;
    uint64_t n_bytes;
    bool is_huge;
};
struct nj__arena_memory nj__arena_memory(const struct nj__arena *a);

#endif
