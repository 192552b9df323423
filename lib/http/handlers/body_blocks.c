/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements pools of fixed-size blocks and byte queues made of blocks. This is a
 * segregated-fit allocator. */
#include "http/handlers/body_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/pool.h"

#define N_SIZES 4u
#define HEAD    (uint32_t)sizeof(struct nj_block)

static const struct {
    uint32_t n_bytes, n_max;
} sizes[N_SIZES] = {
    {NJ_BLOCK_SMALL_BYTES, NJ_BLOCKS_SMALL},
    {NJ_BLOCK_MEDIUM_BYTES, NJ_BLOCKS_MEDIUM},
    {NJ_BLOCK_LARGE_BYTES, NJ_BLOCKS_LARGE},
    {NJ_BLOCK_HUGE_BYTES, NJ_BLOCKS_HUGE},
};

struct nj_block_pool {
    struct nj_pool pool[N_SIZES];
    uint32_t n_out;
    bool closed;
};

struct nj_block_pool *nj_block_pool_new(uint32_t share)
{
    struct nj_block_pool *b = calloc(1, sizeof *b);
    for (uint32_t i = 0; b && i < N_SIZES; i++) {
        if (nj_pool_init(&b->pool[i], sizes[i].n_bytes, sizes[i].n_max / share))
            continue;
        nj_block_pool_close(b);
        return NULL;
    }
    return b;
}

static void free_if_unused(struct nj_block_pool *b)
{
    if (!b->closed || b->n_out > 0)
        return;
    for (uint32_t i = 0; i < N_SIZES; i++)
        nj_pool_fini(&b->pool[i]);
    free(b);
}

void nj_block_pool_close(struct nj_block_pool *b)
{
    if (!b)
        return;
    b->closed = true;
    free_if_unused(b);
}

uint64_t nj_block_pool_bytes_left(const struct nj_block_pool *b)
{
    uint64_t n = 0;

    for (uint32_t i = 1; i < N_SIZES; i++)
        n += (uint64_t)(b->pool[i].n_max - b->pool[i].n_used) * sizes[i].n_bytes;
    return n;
}

uint32_t nj_block_pool_in_use(const struct nj_block_pool *b)
{
    return b->n_out;
}

static void free_pooled(struct nj_ref *ref)
{
    struct nj_block *block = nj_container_of(ref, struct nj_block, ref);
    struct nj_block_pool *b = block->home_pool;
    nj_pool_put(&b->pool[block->size], block);
    b->n_out--;
    free_if_unused(b);
}

static void free_malloced(struct nj_ref *ref)
{
    free(nj_container_of(ref, struct nj_block, ref));
}

static void block_init(struct nj_block *block, struct nj_block_pool *home_pool, uint32_t n_room)
{
    block->home_pool = home_pool;
    block->next = NULL;
    block->n_room = n_room;
    block->n_bytes = block->n_taken = block->size = 0;
    nj_ref_init(&block->ref, home_pool ? free_pooled : free_malloced);
}

struct nj_block *nj_block_pool_take(struct nj_block_pool *b, uint32_t n_bytes)
{
    NJ_ASSERT(!b->closed);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        if (n_bytes > sizes[i].n_bytes - HEAD)
            continue;
        struct nj_block *block = nj_pool_take_raw(&b->pool[i]);
        if (!block)
            continue;
        block_init(block, b, sizes[i].n_bytes - HEAD);
        block->size = i;
        b->n_out++;
        return block;
    }
    return NULL;
}

struct nj_block *nj_block_malloc(uint32_t n_bytes)
{
    struct nj_block *block = malloc(HEAD + (size_t)n_bytes);
    if (block)
        block_init(block, NULL, n_bytes);
    return block;
}

/* --- queues --- */

static struct nj_block *append_block(struct nj_byte_queue *q, struct nj_block_pool *b,
                                     uint32_t n_bytes)
{
    uint32_t most = NJ_BLOCK_LARGE_BYTES - HEAD;
    n_bytes = n_bytes < most ? n_bytes : most;
    struct nj_block *block = b ? nj_block_pool_take(b, n_bytes) : nj_block_malloc(n_bytes);

    /* A smaller block is better than none. The smallest size is not reserved for heads. */
    if (!block && b)
        block = nj_block_pool_take(b, NJ_BLOCK_SMALL_BYTES);
    if (!block)
        return NULL;
    if (q->tail)
        q->tail->next = block;
    else
        q->head = block;
    q->tail = block;
    q->n_held += HEAD + block->n_room;
    return block;
}

uint32_t nj_byte_queue_put(struct nj_byte_queue *q, struct nj_block_pool *b, const void *data,
                           uint32_t n_bytes, uint32_t more)
{
    const uint8_t *from = data;
    uint32_t left = n_bytes;

    while (left > 0) {
        struct nj_block *block = q->tail;
        if ((!block || block->n_bytes == block->n_room) &&
            !(block = append_block(q, b, left + more)))
            break;
        uint32_t room = block->n_room - block->n_bytes, n = left < room ? left : room;
        memcpy(block->bytes + block->n_bytes, from, n);
        block->n_bytes += n;
        from += n;
        left -= n;
    }
    q->n_bytes += n_bytes - left;
    return n_bytes - left;
}

/* Removes bytes from the front. Empty blocks are released, or moved to the front of `used`. */
static void drop_front(struct nj_byte_queue *q, uint32_t n_bytes, struct nj_byte_queue *used)
{
    NJ_ASSERT(n_bytes <= q->n_bytes);
    q->n_bytes -= n_bytes;
    while (q->head) {
        struct nj_block *block = q->head;
        uint32_t here = block->n_bytes - block->n_taken, n = n_bytes < here ? n_bytes : here;
        block->n_taken += n;
        n_bytes -= n;
        if (block->n_taken < block->n_bytes)
            break;
        q->head = block->next;
        q->n_held -= HEAD + block->n_room;
        if (!q->head)
            q->tail = NULL;
        if (used) {
            block->next = used->head;
            used->head = block;
        } else {
            nj_ref_put(&block->ref);
        }
    }
}

void nj_byte_queue_skip(struct nj_byte_queue *q, uint32_t n_bytes)
{
    drop_front(q, n_bytes, NULL);
}

uint32_t nj_byte_queue_get(struct nj_byte_queue *q, void *out, uint32_t n_bytes,
                           struct nj_byte_queue *used)
{
    uint8_t *to = out;
    uint32_t got = 0;

    while (got < n_bytes && q->n_bytes > 0) {
        const struct nj_block *block = q->head;
        uint32_t here = block->n_bytes - block->n_taken, left = n_bytes - got;
        uint32_t n = here < left ? here : left;
        memcpy(to + got, block->bytes + block->n_taken, n);
        got += n;
        drop_front(q, n, used);
    }
    return got;
}

void nj_byte_queue_clear(struct nj_byte_queue *q)
{
    struct nj_block *block;

    while ((block = q->head)) {
        q->head = block->next;
        nj_ref_put(&block->ref);
    }
    *q = (struct nj_byte_queue){0};
}
