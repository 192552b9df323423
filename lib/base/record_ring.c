/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of records with one producer and one consumer. Contract: record_ring.h. */
#include "base/record_ring.h"

#include <string.h>

#include "base/page_alloc.h"
#include "base/relaxed_atomics.h"

#define ALIGN 8u
#define SKIP  UINT32_MAX /* in place of a size: the next record is at the beginning */

/* Before each record. A record does not cross the end of the memory. */
struct head {
    uint32_t n_bytes, unused;
};

bool nj_record_ring_open(struct nj_record_ring *r, uint64_t n_size)
{
    *r = (struct nj_record_ring){.n_size = n_size, .n_free_to = n_size};
    r->mem = nj_pages_map(n_size, 0);
    if (r->mem)
        memset(r->mem, 0, n_size);
    return r->mem != NULL;
}

void nj_record_ring_close(struct nj_record_ring *r)
{
    nj_pages_unmap(r->mem, r->n_size);
    *r = (struct nj_record_ring){0};
}

static struct head *head_at(const struct nj_record_ring *r, uint64_t at)
{
    return (struct head *)(void *)(r->mem + (at & (r->n_size - 1)));
}

static uint64_t size_of(uint32_t n_bytes)
{
    return (sizeof(struct head) + (uint64_t)n_bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static bool has_room(struct nj_record_ring *r, uint64_t n)
{
    if (r->at + n <= r->n_free_to)
        return true;
    r->n_free_to = atomic_load_explicit(&r->consumed, memory_order_acquire) + r->n_size;
    return r->at + n <= r->n_free_to;
}

void *nj_record_ring_add(struct nj_record_ring *r, uint32_t n_bytes)
{
    uint64_t n = size_of(n_bytes), to_end = r->n_size - (r->at & (r->n_size - 1));
    uint64_t n_skip = n > to_end ? to_end : 0;

    if (!has_room(r, n_skip + n))
        return NULL;
    if (n_skip > 0)
        head_at(r, r->at)->n_bytes = SKIP;
    r->at += n_skip;
    struct head *h = head_at(r, r->at);
    h->n_bytes = n_bytes;
    r->at += n;
    return h + 1;
}

void nj_record_ring_publish(struct nj_record_ring *r, uint64_t at)
{
    r->at = at;
    atomic_store_explicit(&r->published, at, memory_order_release);
}

void nj_record_ring_count_lost(struct nj_record_ring *r)
{
    nj_add_single_writer(&r->n_lost, 1);
}

const void *nj_record_ring_peek(struct nj_record_ring *r, uint32_t *n_bytes)
{
    uint64_t at = nj_load_relaxed(&r->consumed);
    uint64_t published = atomic_load_explicit(&r->published, memory_order_acquire);

    if (at == published)
        return NULL;
    const struct head *h = head_at(r, at);
    if (h->n_bytes == SKIP) {
        at += r->n_size - (at & (r->n_size - 1));
        atomic_store_explicit(&r->consumed, at, memory_order_release);
        h = head_at(r, at);
    }
    *n_bytes = h->n_bytes;
    return h + 1;
}

void nj_record_ring_take(struct nj_record_ring *r)
{
    uint64_t at = nj_load_relaxed(&r->consumed);

    at += size_of(head_at(r, at)->n_bytes);
    atomic_store_explicit(&r->consumed, at, memory_order_release);
}
