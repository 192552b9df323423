/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reference-counted blocks of a few fixed sizes for heads and bodies, and FIFO byte queues made of
 * them.
 *
 * A block lives until its last reference is dropped. TCP's send queue and the device's tx ring hold
 * references to response bytes, so blocks may come back after the shard has ended: the pools stay
 * until then. A pool is used by one thread at a time.
 */
#pragma once

#include <stdint.h>

#include "base/ref.h"

struct nj_block_pool;

struct nj_block {
    struct nj_ref ref;
    struct nj_block_pool *home_pool; /* NULL: from malloc() */
    struct nj_block *next;           /* next in a queue */
    uint32_t n_room, n_bytes, n_taken;
    uint32_t size; /* index into the pool's sizes */
    uint8_t bytes[] __attribute__((aligned(16)));
};

/* Makes pools of NJ_BLOCKS_* blocks, divided by `share`. NULL when memory is refused. */
struct nj_block_pool *nj_block_pool_new(uint32_t share);
/* Closes the pools: no block may be allocated any more. Memory is freed with the last block. */
void nj_block_pool_close(struct nj_block_pool *b);
uint32_t nj_block_pool_in_use(const struct nj_block_pool *b);
/* Free bytes, without the smallest size, which is for small writes only. */
uint64_t nj_block_pool_bytes_left(const struct nj_block_pool *b);

/* Allocates a block with room for `n_bytes`; if that size is used up, of the next larger size.
 * NULL: none left, or `n_bytes` exceeds the largest. The caller owns the only reference. */
struct nj_block *nj_block_pool_take(struct nj_block_pool *b, uint32_t n_bytes);
/* The same from malloc(), for threads without pools. */
struct nj_block *nj_block_malloc(uint32_t n_bytes);

/* --- queues of bytes in blocks --- */

struct nj_byte_queue {
    struct nj_block *head, *tail;
    uint32_t n_bytes, n_held; /* n_held: memory of the blocks */
};

/* Appends a copy. Returns the bytes appended: fewer than `n_bytes` when no block is free. `b` NULL:
 * malloc(). `more`: bytes likely to follow, to choose the size of a new block. */
uint32_t nj_byte_queue_put(struct nj_byte_queue *q, struct nj_block_pool *b, const void *data,
                           uint32_t n_bytes, uint32_t more);
/* Copies up to `n_bytes` from the front and removes them. Empty blocks are released; or moved to
 * `used`, for a thread that must not touch their pool: the pool's owner clears that queue. */
uint32_t nj_byte_queue_get(struct nj_byte_queue *q, void *out, uint32_t n_bytes,
                           struct nj_byte_queue *used);
/* Removes `n_bytes` from the front. */
void nj_byte_queue_skip(struct nj_byte_queue *q, uint32_t n_bytes);
void nj_byte_queue_clear(struct nj_byte_queue *q);
