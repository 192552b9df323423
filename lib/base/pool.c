/* SPDX-License-Identifier: BSD-3-Clause */
/* A fixed-size object pool with a LIFO free list, for one thread. Contract: pool.h. */
#include "base/pool.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/page_alloc.h"

/* In checked builds a freed object is filled with this, so that a stale read is noticed. */
#define POISON 0xdb

bool nj_pool_init(struct nj_pool *p, size_t obj_bytes, uint32_t n_max)
{
    memset(p, 0, sizeof *p);
    p->obj_bytes = (obj_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE;
    p->n_max = n_max;
    if (n_max == 0) /* mmap() rejects a length of 0 */
        return true;
    p->mem = nj_pages_map(p->obj_bytes * n_max, NJ_LARGE_PAGE);
    return p->mem != NULL;
}

void nj_pool_fini(struct nj_pool *p)
{
    nj_pages_unmap(p->mem, p->obj_bytes * p->n_max);
    memset(p, 0, sizeof *p);
}

void nj_pool_put(struct nj_pool *p, void *obj)
{
    NJ_ASSERT((uint8_t *)obj >= p->mem && (uint8_t *)obj < p->mem + p->obj_bytes * p->n_touched);
    NJ_ASSERT(p->n_used > 0);
#ifdef NJ_CHECKED
    memset(obj, POISON, p->obj_bytes);
#endif
    memcpy(obj, &p->free_head, sizeof p->free_head);
    p->free_head = obj;
    p->n_used--;
}
