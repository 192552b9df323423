/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Page allocator: reserves address space, which the kernel backs when it is touched. Large blocks
 * use transparent huge pages if the kernel allows them (transparent_hugepage: always or madvise).
 * The state of 100,000 connections is accessed in random order: with pages of 4 KiB nearly every
 * access would miss the TLB, which costs as much as the cache miss that follows.
 *
 * Core dumps omit this memory (docs/adr/0014-what-a-core-dump-leaves-out.md). Keys and the bytes
 * of peers are therefore allocated here.
 */
#pragma once

#include <stddef.h>

#define NJ_LARGE_PAGE ((size_t)2 << 20)

/* Map zeroed memory. Blocks of NJ_LARGE_PAGE or more are aligned to NJ_LARGE_PAGE, and use large
 * pages after the first `n_small` bytes (a multiple of NJ_LARGE_PAGE, or all). A large `n_small`
 * saves memory if few bytes are touched. Returns NULL if the kernel refuses. Any thread. */
void *nj_pages_map(size_t n_bytes, size_t n_small);
/* Unmap. `n_bytes` as in nj_pages_map(). `mem` may be NULL. */
void nj_pages_unmap(void *mem, size_t n_bytes);
