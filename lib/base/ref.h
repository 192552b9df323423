/* SPDX-License-Identifier: BSD-3-Clause */
/* A reference count that several shards and workers may share. */
#ifndef NJ_BASE_REF_H
#define NJ_BASE_REF_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/assert.h"

struct nj_ref {
    _Atomic uint32_t n;
    void (*last)(struct nj_ref *); /* called by whoever puts the last reference; must not block */
};

static inline void nj_ref_init(struct nj_ref *r, void (*last)(struct nj_ref *))
{
    atomic_init(&r->n, 1);
    r->last = last;
}

static inline void nj_ref_take(struct nj_ref *r)
{
    uint32_t old = atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed);
    NJ_ASSERT(old > 0 && old < UINT32_MAX);
    (void)old;
}

/* The last put sees every write made by the others before their puts (release, then acquire). The
 * load stands where a fence could stand too; unlike a fence, ThreadSanitizer understands it. */
static inline void nj_ref_put(struct nj_ref *r)
{
    if (atomic_fetch_sub_explicit(&r->n, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&r->n, memory_order_acquire);
        r->last(r);
    }
}

#endif
