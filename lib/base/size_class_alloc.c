/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segregated free lists by size class, without locks. Freed blocks are reused in LIFO order and
 * return to the system with the allocator, so the free lists hold the peak of use.
 *
 * Each block is preceded by its size class. Under AddressSanitizer every block comes from malloc(),
 * which detects stale pointers.
 */
#include "base/size_class_alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/page_alloc.h"

#define HEADER_BYTES   16u
#define SLAB_BYTES     NJ_LARGE_PAGE
#define RUN_BYTES      (32u * 1024u)
/* The first block's header ends at a cache line, so blocks of whole lines are cache-line aligned.
 */
#define FIRST_BLOCK_AT (NJ_CACHE_LINE - HEADER_BYTES)
#define CLASS_DIRECT   UINT16_MAX /* straight from malloc */

#if defined(__SANITIZE_ADDRESS__)
#define ALL_BLOCKS_DIRECT true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALL_BLOCKS_DIRECT true
#endif
#endif
#ifndef ALL_BLOCKS_DIRECT
#define ALL_BLOCKS_DIRECT false
#endif

/* Whole blocks with their header; the one of 448 is for connections. */
static const uint32_t class_bytes[NJ_ALLOC_CLASSES] = {
    32, 48, 64, 96, 128, 192, 256, 448, 512, 768, 1024, 1536, 2048, 3072, 4352, 6144, 8192, 16448,
};

struct block {
    struct block *next; /* of a free block */
    uint32_t n_bytes;   /* as counted in bytes_used */
    uint16_t class;
    bool freed;
};
_Static_assert(sizeof(struct block) == HEADER_BYTES, "blocks keep malloc's alignment");

void nj_alloc_init(struct nj_alloc *a, size_t bytes_max)
{
    memset(a, 0, sizeof *a);
    a->bytes_max = bytes_max;
    uint8_t c = 0;
    for (uint32_t i = 0; i < NJ_ALLOC_SMALL_STEPS; i++) {
        while (class_bytes[c] < i * 16)
            c++;
        a->small_class[i] = c;
    }
}

void nj_alloc_fini(struct nj_alloc *a)
{
    NJ_ASSERT(a->bytes_used == 0);
    while (a->slabs) {
        uint8_t *slab = a->slabs;
        memcpy(&a->slabs, slab, sizeof a->slabs);
        nj_pages_unmap(slab, SLAB_BYTES);
    }
}

/* The class of a whole block. */
static uint32_t class_of(const struct nj_alloc *a, size_t n_bytes)
{
    if (ALL_BLOCKS_DIRECT)
        return CLASS_DIRECT;
    if (n_bytes <= (NJ_ALLOC_SMALL_STEPS - 1) * 16)
        return a->small_class[(n_bytes + 15) / 16];
    for (uint32_t c = a->small_class[NJ_ALLOC_SMALL_STEPS - 1]; c < NJ_ALLOC_CLASSES; c++) {
        if (n_bytes <= class_bytes[c])
            return c;
    }
    return CLASS_DIRECT;
}

/* A slab begins with the pointer to the previous slab. */
static bool add_slab(struct nj_alloc *a)
{
    uint8_t *slab = nj_pages_map(SLAB_BYTES, a->slabs ? 0 : SLAB_BYTES);
    if (!slab)
        return false;
    memcpy(slab, &a->slabs, sizeof a->slabs);
    a->slabs = slab;
    a->slab_used = FIRST_BLOCK_AT;
    return true;
}

/* Add a run to a class that has no free block left. */
static bool add_run(struct nj_alloc *a, uint32_t class)
{
    uint32_t n = class_bytes[class] < RUN_BYTES / 4 ? RUN_BYTES / class_bytes[class] : 1;
    size_t n_bytes = (size_t)n * class_bytes[class];

    if ((!a->slabs || SLAB_BYTES - a->slab_used < n_bytes) && !add_slab(a))
        return false;
    a->bump[class] = a->slabs + a->slab_used;
    a->bump_end[class] = a->bump[class] + n_bytes;
    a->slab_used += (n_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE;
    return true;
}

static struct block *take_block(struct nj_alloc *a, uint32_t class)
{
    struct block *b = a->free_head[class];
    if (nj_likely(b != NULL)) {
        a->free_head[class] = b->next;
        return b;
    }
    if (a->bump[class] == a->bump_end[class] && !add_run(a, class))
        return NULL;
    b = (struct block *)a->bump[class];
    a->bump[class] += class_bytes[class];
    return b;
}

static struct block *alloc_block(struct nj_alloc *a, size_t n_bytes, uint32_t *class)
{
    if (nj_unlikely(a->fail_countdown > 0) && --a->fail_countdown == 0)
        return NULL;
    if (n_bytes > UINT32_MAX)
        return NULL;
    *class = class_of(a, n_bytes);
    return *class == CLASS_DIRECT ? malloc(n_bytes) : take_block(a, *class);
}

void *nj_alloc_take(struct nj_alloc *a, size_t n_bytes)
{
    uint32_t class;
    if (n_bytes > UINT32_MAX) /* so that the sum can't wrap */
        n_bytes = UINT32_MAX;
    n_bytes += HEADER_BYTES;
    struct block *b = alloc_block(a, n_bytes, &class);
    if (!b)
        return NULL;
    b->freed = false;
    b->class = (uint16_t) class;
    b->n_bytes = class == CLASS_DIRECT ? (uint32_t)n_bytes : class_bytes[class];
    a->bytes_used += b->n_bytes;
    return b + 1;
}

void *nj_alloc_zero(struct nj_alloc *a, size_t n_bytes)
{
    void *p = nj_alloc_take(a, n_bytes);
    return p ? memset(p, 0, n_bytes) : NULL;
}

static void free_block(struct nj_alloc *a, struct block *b)
{
    if (b->class == CLASS_DIRECT) {
        free(b);
        return;
    }
    b->next = a->free_head[b->class];
    a->free_head[b->class] = b;
}

void nj_alloc_free(struct nj_alloc *a, void *p)
{
    if (!p)
        return;
    struct block *b = (struct block *)p - 1;
    NJ_ASSERT(!b->freed && a->bytes_used >= b->n_bytes);
    b->freed = true;
    a->bytes_used -= b->n_bytes;
    free_block(a, b);
}

void *nj_alloc_resize(struct nj_alloc *a, void *p, size_t n_bytes)
{
    if (!p)
        return nj_alloc_take(a, n_bytes);
    size_t had = ((struct block *)p - 1)->n_bytes - HEADER_BYTES;
    if (n_bytes <= had)
        return p;
    void *q = nj_alloc_take(a, n_bytes);
    if (!q)
        return NULL;
    memcpy(q, p, had);
    nj_alloc_free(a, p);
    return q;
}
