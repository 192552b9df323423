/* SPDX-License-Identifier: BSD-3-Clause */
/* Free lists of size classes per thread. A block that another thread frees goes to a lock-free
 * stack of its owner (Treiber), which the owner takes whole. Its data is at file scope, because
 * OpenSSL has one heap for the process (docs/adr/0028-where-openssls-heap-belongs.md). */
#include "tls/openssl_heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <openssl/crypto.h>

#include <nightjar/server.h>

#include "base/page_alloc.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_ASAN true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_ASAN true
#endif
#endif
#ifndef IS_ASAN
#define IS_ASAN false
#endif

/* Classes: four per power of two, from 32 bytes to BLOCK_MAX, with the head. */
#define BLOCK_MAX   ((size_t)32 << 10)
#define CLASSES     41u
#define CHUNK_BYTES ((size_t)512 << 10) /* mapped at once */

struct heap;

/* Before each allocation. */
struct head {
    struct heap *owner; /* NULL: a mapping of its own */
    size_t n_bytes;     /* with the head */
};

_Static_assert(sizeof(struct head) == 16, "allocations are aligned to 16 bytes");

/* A free block. */
struct block {
    struct head head;
    struct block *next;
};

struct heap {
    struct block *free[CLASSES];
    uint8_t *next, *end; /* the unused part of the last chunk */
    struct heap *next_idle;
    _Alignas(64) _Atomic(struct block *) returned; /* by other threads */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor runs when a thread ends */
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap *idle; /* heaps of threads that have ended */
static _Thread_local struct heap *mine;

/* --- size classes --------------------------------------------------------------------------- */

/* The class of `n` bytes, up to BLOCK_MAX; *size is the size of its blocks, a multiple of 16. */
static uint32_t class_of(size_t n, size_t *size)
{
    n = (n + 15) & ~(size_t)15;
    if (n <= 32) {
        *size = 32;
        return 0;
    }
    uint32_t log2 = 63u - (uint32_t)__builtin_clzll(n - 1); /* 2^log2 < n <= 2^(log2 + 1) */
    size_t step = (size_t)1 << (log2 - 2);
    size_t quarter = (n - 1 - ((size_t)1 << log2)) / step; /* 0..3 */
    *size = ((size_t)1 << log2) + (quarter + 1) * step;
    return 4 * (log2 - 5) + (uint32_t)quarter + 1;
}

/* --- heaps of threads ------------------------------------------------------------------------- */

static void thread_ends(void *heap)
{
    struct heap *h = heap;

    mine = NULL;
    pthread_mutex_lock(&idle_lock);
    h->next_idle = idle;
    idle = h;
    pthread_mutex_unlock(&idle_lock);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ends);
}

/* Destructors of a thread that ends may allocate and free: then it takes a heap again. */
static struct heap *take_heap(void)
{
    pthread_once(&once, make_key);
    pthread_mutex_lock(&idle_lock);
    struct heap *h = idle;
    if (h)
        idle = h->next_idle;
    pthread_mutex_unlock(&idle_lock);
    if (!h)
        h = nj_pages_map(sizeof *h, 0);
    if (h)
        pthread_setspecific(key, h);
    return mine = h;
}

static void put_own(struct heap *h, struct block *b)
{
    size_t size;
    uint32_t class = class_of(b->head.n_bytes, &size);

    b->next = h->free[class];
    h->free[class] = b;
}

static void take_returned(struct heap *h)
{
    struct block *b = atomic_exchange_explicit(&h->returned, NULL, memory_order_acquire);

    while (b) {
        struct block *next = b->next;
        put_own(h, b);
        b = next;
    }
}

static struct block *cut(struct heap *h, size_t size)
{
    if ((size_t)(h->end - h->next) < size) {
        uint8_t *chunk = nj_pages_map(CHUNK_BYTES, 0); /* the rest of the former one stays unused */
        if (!chunk)
            return NULL;
        h->next = chunk;
        h->end = chunk + CHUNK_BYTES;
    }
    struct block *b = (struct block *)(void *)h->next;
    h->next += size;
    b->head = (struct head){h, size};
    return b;
}

static struct head *map_alone(size_t n_bytes)
{
    struct head *head = nj_pages_map(n_bytes, 0);

    if (head)
        *head = (struct head){NULL, n_bytes};
    return head;
}

/* --- the interface -------------------------------------------------------------------------- */

void *nj__openssl_malloc(size_t n_bytes, const char *file, int line)
{
    size_t size, n = n_bytes + sizeof(struct head);

    if (n < n_bytes)
        return NULL;
    if (n > BLOCK_MAX) {
        struct head *head = map_alone(n);
        return head ? head + 1 : NULL;
    }
    struct heap *h = mine ? mine : take_heap();
    if (!h)
        return NULL;
    uint32_t class = class_of(n, &size);
    if (!h->free[class])
        take_returned(h);
    struct block *b = h->free[class];
    if (b)
        h->free[class] = b->next;
    else
        b = cut(h, size);
    return b ? &b->head + 1 : NULL;
}

void nj__openssl_free(void *p, const char *file, int line)
{
    if (!p)
        return;
    struct block *b = (struct block *)(void *)((struct head *)p - 1);
    struct heap *owner = b->head.owner;
    if (!owner) {
        nj_pages_unmap(b, b->head.n_bytes);
    } else if (owner == mine) {
        put_own(owner, b);
    } else {
        struct block *top = atomic_load_explicit(&owner->returned, memory_order_relaxed);
        do
            b->next = top;
        while (!atomic_compare_exchange_weak_explicit(&owner->returned, &top, b,
                                                      memory_order_release, memory_order_relaxed));
    }
}

void *nj__openssl_realloc(void *p, size_t n_bytes, const char *file, int line)
{
    if (!p)
        return nj__openssl_malloc(n_bytes, file, line);
    if (n_bytes == 0) {
        nj__openssl_free(p, file, line);
        return NULL;
    }
    size_t n_former = ((struct head *)p - 1)->n_bytes - sizeof(struct head);
    if (n_bytes <= n_former)
        return p;
    void *larger = nj__openssl_malloc(n_bytes, file, line);
    if (larger) {
        memcpy(larger, p, n_former);
        nj__openssl_free(p, file, line);
    }
    return larger;
}

int nj_openssl_exclude_from_dumps(void)
{
    if (IS_ASAN) /* it would not see errors, and leaks, of this memory */
        return 0;
    return CRYPTO_set_mem_functions(nj__openssl_malloc, nj__openssl_realloc, nj__openssl_free) == 1
               ? 0
               : NJ_ERR_INVALID;
}
