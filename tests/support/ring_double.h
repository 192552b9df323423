/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk of the test's in place of lib/store/io_uring.c: what is the same for all such disks. The
 * program that includes this has `disk`, and defines the reads and the wake-ups. */
#ifndef NJ_TESTS_RING_DOUBLE_H
#define NJ_TESTS_RING_DOUBLE_H

#include "store/io_uring.h"

int nj__ring_open(struct nj__ring **out, uint32_t n_max, const struct nj__arena_memory *memory)
{
    (void)n_max, (void)memory;
    *out = (struct nj__ring *)&disk;
    return 0;
}

void nj__ring_close(struct nj__ring *r)
{
    (void)r;
}

bool nj__ring_is_registered(const struct nj__ring *r)
{
    (void)r;
    return false;
}

#endif
