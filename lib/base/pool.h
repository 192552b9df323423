/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixed-size objects for one thread. Address space for all of them is reserved at start and touched
 * only when used, so a high limit costs nothing until it is reached. Freed objects are reused last
 * in, first out: the one that is still in the cache comes back first.
 */
#ifndef NJ_BASE_POOL_H
#define NJ_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct nj_pool {
    uint8_t *mem;
    void *free_head;
    size_t obj_bytes; /* rounded up to a cache line */
    uint32_t n_max, n_touched, n_used;
};

/* Reserve room for `n_max` objects of `obj_bytes`. False when the address space is refused. */
bool nj_pool_init(struct nj_pool *p, size_t obj_bytes, uint32_t n_max);
void nj_pool_fini(struct nj_pool *p);

/* As nj_pool_take(), with whatever bytes are in the object: for large ones. */
static inline void *nj_pool_take_raw(struct nj_pool *p)
{
    void *obj = p->free_head;
    if (obj) {
        memcpy(&p->free_head, obj, sizeof p->free_head);
        __builtin_prefetch(p->free_head); /* for the next time: it may be in nobody's cache */
    } else if (p->n_touched < p->n_max) {
        obj = p->mem + p->obj_bytes * p->n_touched++;
    } else {
        return NULL;
    }
    p->n_used++;
    return obj;
}

/* A zeroed object, cache-line aligned, or NULL when all are in use. */
static inline void *nj_pool_take(struct nj_pool *p)
{
    void *obj = nj_pool_take_raw(p);
    if (obj)
        memset(obj, 0, p->obj_bytes);
    return obj;
}

/* Give an object back; it must come from this pool and must not be used any more. */
void nj_pool_put(struct nj_pool *p, void *obj);

/* Objects by number, 0..n_max-1: half the size of a pointer. */
static inline void *nj_pool_at(const struct nj_pool *p, uint32_t place)
{
    return p->mem + p->obj_bytes * place;
}

static inline uint32_t nj_pool_place(const struct nj_pool *p, const void *obj)
{
    return (uint32_t)((size_t)((const uint8_t *)obj - p->mem) / p->obj_bytes);
}

#endif
