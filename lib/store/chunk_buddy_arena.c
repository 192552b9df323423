/* SPDX-License-Identifier: BSD-3-Clause */
/* A buddy system in which a block splits into eight (Knuth, The Art of Computer Programming, volume
 * 1, 2.5). Blocks of the largest size also have a state: populated or released. */
#include "store/chunk_buddy_arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/list.h"
#include "base/page_alloc.h"

#define FANOUT  8u
#define LARGEST NJ_CHUNK_BYTES

struct size {
    uint32_t n_bytes;
    struct nj_list *blocks; /* one node for each block; linked in `free` while the block is free */
    uint8_t *n_free;        /* free siblings in each block of the next size */
    struct nj_list free;
};

struct nj__arena {
    uint8_t *at;
    uint64_t n_bytes;
    bool is_huge;
    struct size size[NJ__ARENA_SIZES]; /* smallest first */
    struct nj_list released;           /* free blocks of 256 KiB that have no pages */
    _Atomic uint32_t n_populated;      /* free blocks of 256 KiB that have pages */
    _Atomic uint32_t n_released;       /* both are written with the lock */
};

/* Map hugepages, or return NULL. The range is excluded from core dumps, as in nj_pages_map(). */
static uint8_t *map_huge(uint64_t n_bytes)
{
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
                   -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, n_bytes, MADV_DONTDUMP);
    return p;
}

static uint64_t index_of(const struct nj__arena *a, uint32_t size, const uint8_t *block)
{
    return (uint64_t)(block - a->at) / a->size[size].n_bytes;
}

static uint8_t *address_of(const struct nj__arena *a, uint32_t size, const struct nj_list *l)
{
    return a->at + (uint64_t)(l - a->size[size].blocks) * a->size[size].n_bytes;
}

/* One writer at a time. */
static void add_count(_Atomic uint32_t *n, int by)
{
    nj_add_single_writer(n, (uint32_t)by);
}

static void push_released(struct nj__arena *a, uint64_t i)
{
    nj_list_push_back(&a->released, &a->size[2].blocks[i]);
    add_count(&a->n_released, 1);
}

static uint8_t *pop_released(struct nj__arena *a)
{
    struct nj_list *l = nj_list_pop(&a->released);

    if (!l)
        return NULL;
    add_count(&a->n_released, -1);
    return address_of(a, 2, l);
}

static uint32_t size_of(uint32_t n_room)
{
    NJ_ASSERT(n_room == LARGEST || n_room == LARGEST / FANOUT ||
              n_room == LARGEST / FANOUT / FANOUT);
    return n_room == LARGEST ? 2 : n_room == LARGEST / FANOUT ? 1 : 0;
}

static bool init_size(struct nj__arena *a, uint32_t size, uint32_t n_bytes)
{
    struct size *s = &a->size[size];
    uint64_t n = a->n_bytes / n_bytes;

    s->n_bytes = n_bytes;
    s->blocks = calloc(n, sizeof *s->blocks);
    s->n_free = calloc(n / FANOUT + 1, 1);
    nj_list_init(&s->free);
    return s->blocks && s->n_free;
}

struct nj__arena *nj__arena_new(uint64_t n_bytes)
{
    struct nj__arena *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->n_bytes = (n_bytes + NJ_LARGE_PAGE - 1) / NJ_LARGE_PAGE * NJ_LARGE_PAGE;
    nj_list_init(&a->released);
    a->at = map_huge(a->n_bytes);
    a->is_huge = a->at != NULL;
    if (!a->at)
        a->at = nj_pages_map(a->n_bytes, 0);
    bool ok = a->at;
    for (uint32_t i = 0, n = LARGEST / FANOUT / FANOUT; i < NJ__ARENA_SIZES; i++, n *= FANOUT)
        ok = init_size(a, i, n) && ok;
    if (!ok) {
        nj__arena_free(a);
        return NULL;
    }
    for (uint64_t i = 0; i < a->n_bytes / LARGEST; i++) /* smaller sizes get nodes on a split */
        push_released(a, i);
    return a;
}

void nj__arena_free(struct nj__arena *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < NJ__ARENA_SIZES; i++) {
        free(a->size[i].blocks);
        free(a->size[i].n_free);
    }
    nj_pages_unmap(a->at, a->n_bytes);
    free(a);
}

static void push_free(struct nj__arena *a, uint32_t size, uint64_t i)
{
    struct size *s = &a->size[size];
    struct nj_list *first = s->free.next;

    nj_list_push_back(first, &s->blocks[i]); /* at the front: its lines are in the CPU cache */
    if (size == 2)
        add_count(&a->n_populated, 1);
    else
        s->n_free[i / FANOUT]++;
}

static void unlink_free(struct nj__arena *a, uint32_t size, uint64_t i)
{
    struct size *s = &a->size[size];

    nj_list_del(&s->blocks[i]);
    if (size == 2)
        add_count(&a->n_populated, -1);
    else
        s->n_free[i / FANOUT]--;
}

static uint8_t *take_block(struct nj__arena *a, uint32_t size)
{
    struct size *s = &a->size[size];
    uint8_t *block = NULL;

    if (!nj_list_empty(&s->free)) {
        block = address_of(a, size, s->free.next);
        unlink_free(a, size, index_of(a, size, block));
    } else if (size == 2) {
        block = pop_released(a);
    } else if ((block = take_block(a, size + 1))) {
        uint64_t i = index_of(a, size, block);
        nj_list_init(&s->blocks[i]);
        for (uint32_t k = FANOUT - 1; k > 0; k--)
            push_free(a, size, i + k);
    }
    return block;
}

uint8_t *nj__arena_take(struct nj__arena *a, uint32_t n_room)
{
    return take_block(a, size_of(n_room));
}

void nj__arena_put(struct nj__arena *a, uint8_t *block, uint32_t n_room)
{
    uint32_t size = size_of(n_room);
    uint64_t i = index_of(a, size, block);

    NJ_ASSERT(a->at + i * a->size[size].n_bytes == block &&
              !nj_list_linked(&a->size[size].blocks[i]));
    for (; size < NJ__ARENA_SIZES - 1 && a->size[size].n_free[i / FANOUT] == FANOUT - 1; size++) {
        uint64_t first = i - i % FANOUT;
        for (uint64_t k = first; k < first + FANOUT; k++)
            if (k != i)
                unlink_free(a, size, k);
        i /= FANOUT;
    }
    push_free(a, size, i);
}

uint8_t *nj__arena_take_surplus(struct nj__arena *a)
{
    if (a->is_huge || nj_load_relaxed(&a->n_populated) <= NJ__ARENA_KEEP_MAX)
        return NULL;
    uint8_t *block = address_of(a, 2, a->size[2].free.prev);
    unlink_free(a, 2, index_of(a, 2, block));
    return block;
}

void nj__arena_release_block_pages(uint8_t *block)
{
    madvise(block, LARGEST, MADV_DONTNEED);
}

void nj__arena_put_unbacked(struct nj__arena *a, uint8_t *block)
{
    push_released(a, index_of(a, 2, block));
}

bool nj__arena_needs_pages(const struct nj__arena *a)
{
    return nj_load_relaxed(&a->n_populated) < NJ__ARENA_LOW_WATER &&
           nj_load_relaxed(&a->n_released) > 0;
}

uint8_t *nj__arena_take_unpopulated(struct nj__arena *a)
{
    return nj_load_relaxed(&a->n_populated) < NJ__ARENA_HIGH_WATER ? pop_released(a) : NULL;
}

int nj__arena_populate(uint8_t *block)
{
    return madvise(block, LARGEST, MADV_POPULATE_WRITE) == 0 ? 0 : -errno;
}

/* At the back: blocks that were used recently are in the CPU cache and come first. */
void nj__arena_put_populated(struct nj__arena *a, uint8_t *block)
{
    nj_list_push_back(&a->size[2].free, &a->size[2].blocks[index_of(a, 2, block)]);
    add_count(&a->n_populated, 1);
}

struct nj__arena_memory nj__arena_memory_range(const struct nj__arena *a)
{
    return (struct nj__arena_memory){a->at, a->n_bytes, a->is_huge};
}
