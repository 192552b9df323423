/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of fixed-size objects. One thread only. Address space for all objects is reserved at start
 * and touched only when used, so a high limit costs nothing until it is reached. Freed objects are
 * reused last in, first out: the most recently freed one is probably still in the cache.
 */
#pragma once

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

/* Reserve room for `n_max` objects of `obj_bytes`. Returns false if the kernel refuses. */
bool nj_pool_init(struct nj_pool *p, size_t obj_bytes, uint32_t n_max);
void nj_pool_fini(struct nj_pool *p);

/* As nj_pool_take(), but the object is not zeroed: for large objects. */
static inline void *nj_pool_take_raw(struct nj_pool *p)
{
    void *obj = p->free_head;
    if (obj) {
        memcpy(&p->free_head, obj, sizeof p->free_head);
        __builtin_prefetch(p->free_head); /* the next take reads it */
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

/* Objects by index, 0..n_max-1: an index has half the size of a pointer. */
static inline void *nj_pool_at(const struct nj_pool *p, uint32_t place)
{
    return p->mem + p->obj_bytes * place;
}

static inline uint32_t nj_pool_index(const struct nj_pool *p, const void *obj)
{
    return (uint32_t)((size_t)((const uint8_t *)obj - p->mem) / p->obj_bytes);
}
