/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocator for what peers make a shard hold: connections, streams, buffers. Blocks of many sizes,
 * counted against a bound. One thread makes all calls on an allocator and on its blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NJ_ALLOC_CLASSES     18u
#define NJ_ALLOC_SMALL_STEPS 65u /* lookup by 16 bytes, up to 1024 */

struct nj_alloc {
    void *free_head[NJ_ALLOC_CLASSES];
    uint8_t *bump[NJ_ALLOC_CLASSES], *bump_end[NJ_ALLOC_CLASSES]; /* part of a run not yet cut */
    uint8_t *slabs; /* list linked through the first word; runs are cut from the first slab */
    size_t slab_used;
    size_t bytes_used;
    size_t bytes_max;        /* its users refuse new connections and buffers of input beyond */
    uint64_t fail_countdown; /* for tests: the n-th allocation from now fails; 0: none */
    uint8_t small_class[NJ_ALLOC_SMALL_STEPS];
};

void nj_alloc_init(struct nj_alloc *a, size_t bytes_max);
/* Every block must have been freed. An allocator of zeros is accepted. */
void nj_alloc_fini(struct nj_alloc *a);
/* As malloc, realloc and free of C; blocks are aligned to 16 bytes. */
void *nj_alloc_take(struct nj_alloc *a, size_t n_bytes);
void *nj_alloc_zero(struct nj_alloc *a, size_t n_bytes);
void *nj_alloc_resize(struct nj_alloc *a, void *p, size_t n_bytes);
void nj_alloc_free(struct nj_alloc *a, void *p);

/* Would `n_bytes` more exceed the bound? */
static inline bool nj_alloc_would_exceed(const struct nj_alloc *a, size_t n_bytes)
{
    return a->bytes_used + n_bytes > a->bytes_max;
}

/* Is more than 3/4 of the bound in use? */
static inline bool nj_alloc_is_short(const struct nj_alloc *a)
{
    return a->bytes_used > a->bytes_max / 4 * 3;
}
