/* SPDX-License-Identifier: BSD-3-Clause */
/* S3-FIFO eviction (Yang et al., SOSP 2023): two FIFO queues and a ghost table. The ghost table is
 * set-associative and holds 32-bit fingerprints with the clock of their eviction. */
#include "store/cache_policy.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/page_alloc.h"

#define PAGE_BYTES 4096u
#define WAYS       8u /* ghosts in a bucket */

_Static_assert(WAYS * sizeof(struct nj__cache_ghost) == NJ_CACHE_LINE, "a look, a cache line");

static uint64_t ghost_bytes(const struct nj__cache_policy *p)
{
    return p->n_buckets * NJ_CACHE_LINE;
}

bool nj__cache_policy_init(struct nj__cache_policy *p, uint64_t n_bytes_max)
{
    NJ_CHECK(n_bytes_max >= PAGE_BYTES);
    *p = (struct nj__cache_policy){
        .n_bytes_max = n_bytes_max,
        .small_max = n_bytes_max / NJ__CACHE_SMALL_DIV,
    };
    uint64_t n_pages = (n_bytes_max - p->small_max) / NJ__CACHE_GHOST_AGE_DIV / PAGE_BYTES;
    p->ghost_window = n_pages < UINT32_MAX / 2 ? (uint32_t)n_pages : UINT32_MAX / 2;
    p->n_buckets = n_bytes_max / NJ__CACHE_GHOSTS_DIV / NJ_CACHE_LINE + 1;
    nj_list_init(&p->small.list);
    nj_list_init(&p->main.list);
    nj_list_init(&p->aside);
    p->ghosts = nj_pages_map(ghost_bytes(p), 0);
    return p->ghosts != NULL;
}

void nj__cache_policy_fini(struct nj__cache_policy *p)
{
    NJ_ASSERT(p->n_entries == 0);
    nj_pages_unmap(p->ghosts, ghost_bytes(p));
    p->ghosts = NULL;
}

/* --- ghosts ----------------------------------------------------------------------------------- */

static struct nj__cache_ghost *bucket_of(struct nj__cache_policy *p, uint64_t fingerprint)
{
    uint64_t i = (uint64_t)(((unsigned __int128)fingerprint * p->n_buckets) >> 64);

    return &p->ghosts[i * WAYS];
}

/* The tag in a bucket. The upper half of the fingerprint selects the bucket. */
static uint32_t ghost_tag(uint64_t fingerprint)
{
    return (uint32_t)fingerprint | 1u;
}

static uint32_t ghost_age(const struct nj__cache_policy *p, const struct nj__cache_ghost *g)
{
    return g->fingerprint ? p->ghost_clock - g->stamp : UINT32_MAX;
}

/* Replaces the oldest ghost of the bucket. */
static void add_ghost(struct nj__cache_policy *p, const struct nj__cache_entry *e)
{
    struct nj__cache_ghost *oldest = bucket_of(p, e->fingerprint);

    for (struct nj__cache_ghost *g = oldest + 1, *end = oldest + WAYS; g < end; g++)
        if (ghost_age(p, g) > ghost_age(p, oldest))
            oldest = g;
    *oldest = (struct nj__cache_ghost){ghost_tag(e->fingerprint), p->ghost_clock};
    uint64_t n = (uint64_t)p->n_rest_bytes + e->n_bytes;
    p->ghost_clock += (uint32_t)(n / PAGE_BYTES);
    p->n_rest_bytes = n % PAGE_BYTES;
}

/* Remove the ghost of this fingerprint. Returns true if there was one and it has not expired. */
static bool take_ghost(struct nj__cache_policy *p, uint64_t fingerprint)
{
    struct nj__cache_ghost *bucket = bucket_of(p, fingerprint);

    for (uint32_t i = 0; i < WAYS; i++) {
        struct nj__cache_ghost *g = &bucket[i];
        if (g->fingerprint != ghost_tag(fingerprint))
            continue;
        bool is_young = ghost_age(p, g) <= p->ghost_window;
        g->fingerprint = 0;
        return is_young;
    }
    return false;
}

/* --- queues ----------------------------------------------------------------------------------- */

static struct nj__cache_fifo *queue_of(struct nj__cache_policy *p, const struct nj__cache_entry *e)
{
    return e->queue == NJ__CACHE_SMALL_QUEUE ? &p->small : &p->main;
}

static void enqueue(struct nj__cache_policy *p, struct nj__cache_entry *e,
                    enum nj__cache_queue queue)
{
    e->queue = queue;
    struct nj__cache_fifo *q = queue_of(p, e);
    q->n_bytes += e->n_bytes;
    nj_list_push_back(&q->list, &e->node);
}

static void dequeue(struct nj__cache_policy *p, struct nj__cache_entry *e)
{
    queue_of(p, e)->n_bytes -= e->n_bytes;
    nj_list_del(&e->node);
    e->queue = NJ__CACHE_NO_QUEUE;
    e->is_aside = false;
}

void nj__cache_policy_add(struct nj__cache_policy *p, struct nj__cache_entry *e,
                          uint64_t fingerprint, uint32_t n_bytes)
{
    NJ_ASSERT(e->queue == NJ__CACHE_NO_QUEUE);
    e->fingerprint = fingerprint;
    e->n_bytes = n_bytes;
    e->n_uses = 0;
    p->n_entries++;
    enqueue(p, e, take_ghost(p, fingerprint) ? NJ__CACHE_MAIN_QUEUE : NJ__CACHE_SMALL_QUEUE);
}

void nj__cache_policy_remove(struct nj__cache_policy *p, struct nj__cache_entry *e)
{
    if (e->queue == NJ__CACHE_NO_QUEUE)
        return;
    dequeue(p, e);
    p->n_entries--;
}

void nj__cache_policy_pin(struct nj__cache_entry *e)
{
    NJ_ASSERT(!e->is_pinned);
    e->is_pinned = true;
}

/* An entry in `aside` returns to the head of its queue and is the next candidate. */
void nj__cache_policy_unpin(struct nj__cache_policy *p, struct nj__cache_entry *e)
{
    NJ_ASSERT(e->is_pinned);
    e->is_pinned = false;
    if (!e->is_aside)
        return;
    e->is_aside = false;
    nj_list_del(&e->node);
    nj_list_push_back(queue_of(p, e)->list.next, &e->node);
}

static struct nj__cache_entry *oldest_entry(struct nj__cache_fifo *q)
{
    return nj_list_empty(&q->list) ? NULL
                                   : nj_container_of(q->list.next, struct nj__cache_entry, node);
}

/* The next candidate for eviction, or NULL. Pinned entries on the way move to the list `aside`. */
static struct nj__cache_entry *next_candidate(struct nj__cache_policy *p)
{
    for (;;) {
        struct nj__cache_entry *e = NULL;
        if (p->small.n_bytes > p->small_max)
            e = oldest_entry(&p->small);
        if (!e)
            e = oldest_entry(&p->main);
        if (!e)
            e = oldest_entry(&p->small);
        if (!e || !e->is_pinned)
            return e;
        nj_list_del(&e->node);
        nj_list_push_back(&p->aside, &e->node);
        e->is_aside = true;
    }
}

/* Requeue an entry that was used. Returns false if it was not used. */
static bool requeue_if_used(struct nj__cache_policy *p, struct nj__cache_entry *e)
{
    if (e->n_uses == 0)
        return false;
    e->n_uses = e->queue == NJ__CACHE_MAIN_QUEUE ? e->n_uses - 1 : 0;
    dequeue(p, e);
    enqueue(p, e, NJ__CACHE_MAIN_QUEUE);
    return true;
}

struct nj__cache_entry *nj__cache_policy_pop_victim(struct nj__cache_policy *p, uint64_t n_bytes)
{
    struct nj__cache_entry *e;

    if (n_bytes > p->n_bytes_max || nj__cache_policy_fits(p, n_bytes))
        return NULL;
    for (uint32_t i = 0; (e = next_candidate(p)); i++)
        if (i == NJ__CACHE_SCAN_MAX || !requeue_if_used(p, e))
            break;
    if (!e)
        return NULL;
    if (e->queue == NJ__CACHE_SMALL_QUEUE)
        add_ghost(p, e);
    nj__cache_policy_remove(p, e);
    return e;
}
