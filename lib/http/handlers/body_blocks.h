/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of requests and responses, in blocks of a few sizes.
 *
 * A block lives until its last reference is put. TCP's send queue, and a device that has not sent
 * yet, hold references to response bytes, so blocks may come back after the shard has ended: the
 * pools stay until then. All of that happens on one thread at a time.
 */
#ifndef NJ_HTTP_HANDLERS_BODY_BLOCKS_H
#define NJ_HTTP_HANDLERS_BODY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ref.h"

struct nj_blocks;

struct nj_block {
    struct nj_ref ref;
    struct nj_blocks *home; /* NULL: of malloc() */
    struct nj_block *next;  /* in a queue */
    uint32_t n_room, n_bytes, n_taken;
    uint32_t size; /* index */
    uint8_t bytes[] __attribute__((aligned(16)));
};

/* As many as NJ_BLOCKS_* say, divided by `share`. NULL when memory is refused. */
struct nj_blocks *nj_blocks_new(uint32_t share);
/* No more are taken; memory goes with the last one out. */
void nj_blocks_close(struct nj_blocks *b);
uint32_t nj_blocks_out(const struct nj_blocks *b);
/* Memory of the blocks that can be taken; not of the smallest, which are for crumbs only. */
uint64_t nj_blocks_left(const struct nj_blocks *b);

/* A block with room for `n_bytes` or, if those are used up, the next larger one. NULL: none left,
 * or none is so large. The caller has the one reference. */
struct nj_block *nj_block_take(struct nj_blocks *b, uint32_t n_bytes);
/* The same from malloc(), for threads that have no pools. */
struct nj_block *nj_block_alloc(uint32_t n_bytes);

/* --- queues of bytes in blocks --- */

struct nj_bytes {
    struct nj_block *head, *tail;
    uint32_t n_bytes, n_held; /* n_held: memory of the blocks */
};

/* Append a copy. Returns how many bytes found room: fewer when there are no blocks. `b` NULL: by
 * malloc(). `more` is how many may follow soon: the size of a new block is chosen for them. */
uint32_t nj_bytes_put(struct nj_bytes *q, struct nj_blocks *b, const void *data, uint32_t n_bytes,
                      uint32_t more);
/* Take up to `n_bytes` from the front. Blocks that are used up go back; or with `used` they go
 * there, for a thread that has no part in their pool: its owner clears that. */
uint32_t nj_bytes_get(struct nj_bytes *q, void *out, uint32_t n_bytes, struct nj_bytes *used);
/* Drop `n_bytes` of those at the front. */
void nj_bytes_skip(struct nj_bytes *q, uint32_t n_bytes);
void nj_bytes_clear(struct nj_bytes *q);

#endif
