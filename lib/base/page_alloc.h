/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory by pages: address space that is touched only when used. What is large comes as large
 * pages where the kernel gives them (transparent_hugepage: always or madvise), for the state of
 * 100,000 connections is looked at in no order: among pages of 4 KiB nearly each look is a walk
 * through page tables, which costs as much as the miss of the cache behind it.
 *
 * None of it is in a core dump (docs/adr/0014-what-a-core-dump-leaves-out.md): what holds keys or
 * bytes of peers is taken from here.
 */
#ifndef NJ_BASE_PAGE_ALLOC_H
#define NJ_BASE_PAGE_ALLOC_H

#include <stddef.h>

#define NJ_LARGE_PAGE ((size_t)2 << 20)

/* Zeroed memory. From NJ_LARGE_PAGE on it is aligned to that, and what is behind its first
 * `n_small` bytes, whole large pages or all, comes as large pages: where little is used, little is
 * touched. NULL when it is refused. */
void *nj_pages_map(size_t n_bytes, size_t n_small);
/* The same `n_bytes`; NULL is fine. */
void nj_pages_unmap(void *mem, size_t n_bytes);

#endif
