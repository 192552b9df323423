/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake disk instead of lib/store/io_uring.c: the common part of all such disks. The program that
 * includes this defines `disk`, the reads and the wake-ups. */
#pragma once

#include "store/io_uring.h"

int nj__uring_open(struct nj__uring **out, uint32_t n_max, const struct nj__arena_memory *memory)
{
    (void)n_max, (void)memory;
    *out = (struct nj__uring *)&disk;
    return 0;
}

void nj__uring_close(struct nj__uring *r)
{
    (void)r;
}

bool nj__uring_has_registered_buffers(const struct nj__uring *r)
{
    (void)r;
    return false;
}
