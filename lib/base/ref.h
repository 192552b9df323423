/* SPDX-License-Identifier: BSD-3-Clause */
/* An atomic reference count, shared by shards and worker threads. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/assert.h"

struct nj_ref {
    _Atomic uint32_t n;
    void (*last)(struct nj_ref *); /* called by the thread that puts the last one; must not block */
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

/* The last put sees every write that other threads made before their puts (release, then acquire).
 * The acquire load replaces a fence, because ThreadSanitizer does not model fences. */
static inline void nj_ref_put(struct nj_ref *r)
{
    if (atomic_fetch_sub_explicit(&r->n, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&r->n, memory_order_acquire);
        r->last(r);
    }
}
