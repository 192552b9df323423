/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of OpenSSL: blocks do not overlap, keep their bytes, are aligned, reused, and are in no
 * core dump; threads free blocks of each other. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "base/types.h"
#include "tls/openssl_heap.h"

#define SLOTS 256u
#if defined(__SANITIZE_THREAD__) /* 40,000 take 48 s */
#define STEPS 8000u
#else
#define STEPS 40000u
#endif
#define THREADS 4u

struct slot {
    uint8_t *p;
    uint32_t n, mark;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot shared[SLOTS]; /* between threads */

static void *take(size_t n)
{
    return nj__openssl_malloc(n, __FILE__, __LINE__);
}

static void give(void *p)
{
    nj__openssl_free(p, __FILE__, __LINE__);
}

static void *resize(void *p, size_t n)
{
    return nj__openssl_realloc(p, n, __FILE__, __LINE__);
}

static uint32_t length(struct nj_prng *r)
{
    static const uint32_t max[] = {16, 64, 300, 4096, 33000, 100000};

    return nj_prng_below(r, max[nj_prng_below(r, NJ_ARRAY_LEN(max))] + 1);
}

/* False: a byte that the owner of the slot wrote has changed. */
static bool is_whole(const struct slot *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (s->p[i] != (uint8_t)(s->mark + i))
            return false;
    return true;
}

static void fill(struct slot *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->p[i] = (uint8_t)(s->mark + i);
}

/* Ends, begins or resizes an allocation. Returns false if memory was not kept. */
static bool change(struct slot *s, struct nj_prng *r)
{
    uint32_t n = length(r), n_former = s->n;

    if (s->p && !is_whole(s, s->n))
        return false;
    if (s->p && nj_prng_below(r, 2)) {
        give(s->p);
        *s = (struct slot){0};
        return true;
    }
    bool begins = !s->p;
    s->p = begins ? take(n) : resize(s->p, n);
    s->n = n;
    if (!s->p)
        return n == 0 && !begins; /* resized to nothing */
    if ((uintptr_t)s->p % 16 != 0 || (!begins && !is_whole(s, nj_min_u32(n, n_former))))
        return false;
    s->mark = (uint32_t)nj_prng_next(r);
    fill(s);
    return true;
}

static void end_all(struct slot *slot)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        give(slot[i].p);
        slot[i] = (struct slot){0};
    }
}

Test(tls_openssl_heap, random_allocations_keep_their_bytes)
{
    static struct slot slot[SLOTS];
    struct nj_prng r;

    nj_prng_init(&r, 1);
    for (uint32_t i = 0; i < STEPS; i++)
        cr_assert(change(&slot[nj_prng_below(&r, SLOTS)], &r), "step %u", i);
    end_all(slot);
}

static void *thread_of_many(void *seed)
{
    struct nj_prng r;
    struct slot s;

    nj_prng_init(&r, (uint64_t)(uintptr_t)seed);
    for (uint32_t i = 0; i < STEPS / 2; i++) {
        uint32_t at = nj_prng_below(&r, SLOTS);
        pthread_mutex_lock(&lock);
        s = shared[at];
        shared[at] = (struct slot){0};
        pthread_mutex_unlock(&lock);
        if (!change(&s, &r))
            return seed;
        pthread_mutex_lock(&lock);
        struct slot other = shared[at];
        shared[at] = s;
        pthread_mutex_unlock(&lock);
        give(other.p);
    }
    return NULL;
}

Test(tls_openssl_heap, threads_free_blocks_of_each_other)
{
    pthread_t thread[THREADS];
    void *failed;

    for (uintptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, thread_of_many, (void *)(i + 1)), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        cr_expect_null(failed, "thread of seed %lu", (unsigned long)(uintptr_t)failed);
    }
    end_all(shared);
}

static void *take_one(void *n)
{
    return take(*(size_t *)n);
}

static void *take_in_a_thread(size_t n)
{
    pthread_t thread;
    void *p;

    cr_assert_eq(pthread_create(&thread, NULL, take_one, &n), 0);
    pthread_join(thread, &p);
    cr_assert_not_null(p);
    return p;
}

Test(tls_openssl_heap, freed_blocks_are_used_again)
{
    for (size_t n = 0; n < 32000; n = n * 9 / 8 + 1) {
        void *p = take(n);
        give(p);
        cr_expect_eq(take(n), p, "%zu bytes", n);
        give(p);
    }
    /* A thread that begins has the heap of the one that has ended, with what others have freed. */
    void *p = take_in_a_thread(500);
    give(p);
    cr_expect_eq(take_in_a_thread(500), p);
    give(p);
}

Test(tls_openssl_heap, sizes_that_do_not_exist)
{
    cr_expect_null(take(SIZE_MAX));
    cr_expect_null(take(SIZE_MAX / 2));
    void *p = take(10);
    cr_expect_null(resize(p, SIZE_MAX / 2));
    cr_expect_null(resize(p, 0)); /* frees it */
    cr_expect_eq(take(10), p);
    give(p);
    give(NULL);
    p = resize(NULL, 10);
    cr_expect_not_null(p);
    give(p);
}
