/* SPDX-License-Identifier: BSD-3-Clause */
/* Anonymous mappings with transparent huge pages (madvise(2), MADV_HUGEPAGE). */
#include "base/page_alloc.h"

#include <stdint.h>
#include <sys/mman.h>

/* Large mappings are rounded up to whole large pages. */
static size_t round_to_pages(size_t n_bytes)
{
    if (n_bytes < NJ_LARGE_PAGE)
        return n_bytes;
    return (n_bytes + NJ_LARGE_PAGE - 1) / NJ_LARGE_PAGE * NJ_LARGE_PAGE;
}

static uint8_t *reserve_pages(size_t n_bytes)
{
    void *mem = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED)
        return NULL;
    madvise(mem, n_bytes, MADV_DONTDUMP); /* older kernels refuse; harmless */
    return mem;
}

static void unmap_excess(uint8_t *mem, size_t n_bytes)
{
    if (n_bytes > 0)
        munmap(mem, n_bytes);
}

void *nj_pages_map(size_t n_bytes, size_t n_small)
{
    if (n_bytes < NJ_LARGE_PAGE)
        return reserve_pages(n_bytes);
    size_t n = round_to_pages(n_bytes);
    uint8_t *mem = reserve_pages(n + NJ_LARGE_PAGE); /* the kernel aligns to small pages */
    if (!mem)
        return NULL;
    /* Keep the upper part: the kernel maps downward, so the next mapping borders on it. */
    size_t before = NJ_LARGE_PAGE - (uintptr_t)mem % NJ_LARGE_PAGE;
    unmap_excess(mem, before);
    mem += before;
    unmap_excess(mem + n, NJ_LARGE_PAGE - before);
    if (n_small < n)
        madvise(mem + n_small, n - n_small, MADV_HUGEPAGE); /* if refused: small pages */
    return mem;
}

void nj_pages_unmap(void *mem, size_t n_bytes)
{
    if (mem)
        munmap(mem, round_to_pages(n_bytes));
}
