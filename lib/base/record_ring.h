/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of any size from one thread to another: a ring of bytes with one producer and one
 * consumer, which read each other's position with acquire and release, and no read-modify-write.
 * When it is full the producer loses the record; it never waits. Its memory is not in core dumps.
 *
 * The producer writes several records and publishes them together, or only the first of them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct nj_record_ring {
    uint8_t *mem;
    uint64_t n_size;              /* a power of two */
    _Atomic uint64_t n_lost;      /* records, counted by the producer */
    uint64_t at NJ_CACHE_ALIGNED; /* the producer's own: where the next record begins */
    uint64_t n_free_to;           /* ... up to here it may write, as it knows */
    _Atomic uint64_t published;   /* written by the producer */
    _Atomic uint64_t consumed NJ_CACHE_ALIGNED; /* written by the consumer */
};

/* `n_size`: a power of two, 64 at least. The memory is touched, so that the producer meets no page
 * fault. False: none. One thread, before and after all use. */
bool nj_record_ring_open(struct nj_record_ring *r, uint64_t n_size);
void nj_record_ring_close(struct nj_record_ring *r);

/* --- the producer --- */

/* Room for a record of `n_bytes`, aligned to 8. NULL: the ring is full. */
void *nj_record_ring_add(struct nj_record_ring *r, uint32_t n_bytes);
/* Where the next record begins: behind all that were added. */
static inline uint64_t nj_record_ring_at(const struct nj_record_ring *r)
{
    return r->at;
}
/* Publish the records before `at`, and forget those behind it. */
void nj_record_ring_publish(struct nj_record_ring *r, uint64_t at);
void nj_record_ring_count_lost(struct nj_record_ring *r);

/* --- the consumer --- */

/* The oldest record, which stays until nj_record_ring_take(). NULL: none is published. */
const void *nj_record_ring_peek(struct nj_record_ring *r, uint32_t *n_bytes);
void nj_record_ring_take(struct nj_record_ring *r);
