/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Concurrent file reads by io_uring(7). All functions are for one thread, except nj__uring_wake().
 *
 * Descriptors with O_DIRECT bypass the page cache. Other reads run on kernel threads
 * (IOSQE_ASYNC), since they copy. An arena in hugepages is registered with the kernel, which saves
 * a page lookup for each read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/chunk_buddy_arena.h"

/* Kernel threads (io-wq) for reads through the page cache. */
#define NJ__URING_IOWQ_MAX 4u

struct nj__uring;

struct nj__uring_read {
    int fd;
    bool is_direct; /* the descriptor has O_DIRECT: all three are multiples of 4096 then */
    uint8_t *out;   /* in the arena */
    uint32_t n_bytes;
    uint64_t offset;
};

struct nj__uring_done {
    void *user;
    int32_t result; /* bytes, or a negative errno */
};

/* Create a ring for `n_max` concurrent reads. Returns 0 or a negative errno: the kernel lacks
 * io_uring or denies it. */
int nj__uring_open(struct nj__uring **out, uint32_t n_max, const struct nj__arena_memory *memory);
/* Precondition: no reads are in progress. NULL is allowed. */
void nj__uring_close(struct nj__uring *r);
bool nj__uring_has_registered_buffers(const struct nj__uring *r);

/* Queue a read; the next reap or wait submits it. Precondition: fewer than n_max in progress. */
void nj__uring_read(struct nj__uring *r, const struct nj__uring_read *read, void *user);
/* Submit queued reads and take up to `n` completions. Never blocks. */
uint32_t nj__uring_submit_and_reap(struct nj__uring *r, struct nj__uring_done *done, uint32_t n);
/*
 * Sleep until a read completes or nj__uring_wake() is called. Call nj__uring_mark_asleep() first,
 * then check all queues once more, then nj__uring_wait().
 */
void nj__uring_mark_asleep(struct nj__uring *r);
void nj__uring_wait(struct nj__uring *r);
/* Any thread, after it has queued work. No system call if the ring's thread is awake. */
void nj__uring_wake(struct nj__uring *r);
