/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of files by io_uring(7), many at once. All of it is for one thread, but nj__ring_wake().
 *
 * Reads go past the page cache where a descriptor has O_DIRECT; others are done by threads of the
 * kernel's, as copying is work. Memory of the arena is registered where it lies in hugepages: then
 * the kernel need not look up its pages for each read.
 */
#ifndef NJ_STORE_IO_URING_H
#define NJ_STORE_IO_URING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/chunk_arena.h"

/* Of the kernel's, for reads through the page cache. */
#define NJ__RING_COPIERS 4u

struct nj__ring;

struct nj__ring_read {
    int fd;
    bool is_direct; /* the descriptor has O_DIRECT: all three are multiples of 4096 then */
    uint8_t *out;   /* in the arena */
    uint32_t n_bytes;
    uint64_t offset;
};

struct nj__ring_done {
    void *user;
    int32_t result; /* bytes, or a negative errno */
};

/* For `n_max` reads at once. 0, or a negative errno: the kernel has no io_uring, or does not let
 * us.
 */
int nj__ring_open(struct nj__ring **out, uint32_t n_max, const struct nj__arena_memory *memory);
/* When nothing is under way. NULL is fine. */
void nj__ring_close(struct nj__ring *r);
bool nj__ring_is_registered(const struct nj__ring *r);

/* There is room: fewer than n_max are under way. It begins with the next call of reap or wait. */
void nj__ring_read(struct nj__ring *r, const struct nj__ring_read *read, void *user);
/* Begin what is to begin; take up to `n` that are done. Does not wait. */
uint32_t nj__ring_reap(struct nj__ring *r, struct nj__ring_done *done, uint32_t n);
/*
 * Sleep until a read is done, or somebody wakes it. The caller has called nj__ring_will_wait(), and
 * then has looked once more at what others may have left for it.
 */
void nj__ring_will_wait(struct nj__ring *r);
void nj__ring_wait(struct nj__ring *r);
/* Any thread, after it has left something: no system call while the ring's thread is awake. */
void nj__ring_wake(struct nj__ring *r);

#endif
