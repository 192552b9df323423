/* SPDX-License-Identifier: BSD-3-Clause */
/* Records between two threads: order, sizes, the end of the memory, and what is lost. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/record_ring.h"
#include "base/types.h"

#define SIZE   4096u
#define N_MANY 200000u

static bool add(struct nj_record_ring *r, uint32_t value, uint32_t n_bytes)
{
    uint8_t *to = nj_record_ring_add(r, n_bytes);

    if (!to)
        return false;
    cr_assert_eq((uintptr_t)to % 8, 0);
    memset(to, (int)(value & 0xff), n_bytes);
    return true;
}

static void publish(struct nj_record_ring *r)
{
    nj_record_ring_publish(r, nj_record_ring_at(r));
}

static void expect(struct nj_record_ring *r, uint32_t value, uint32_t n_bytes)
{
    uint32_t n = 0;
    const uint8_t *p = nj_record_ring_peek(r, &n);

    cr_assert(p && n == n_bytes);
    for (uint32_t i = 0; i < n; i++)
        cr_assert_eq(p[i], (uint8_t)value);
    nj_record_ring_take(r);
}

Test(base_record_ring, keeps_order_across_the_end)
{
    struct nj_record_ring r;
    uint32_t n;

    cr_assert(nj_record_ring_open(&r, SIZE));
    cr_expect_null(nj_record_ring_peek(&r, &n));
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t n_bytes = i * 37 % 1000;
        cr_assert(add(&r, i, n_bytes));
        cr_assert(add(&r, i + 1, 8));
        cr_expect_null(nj_record_ring_peek(&r, &n), "not published");
        publish(&r);
        expect(&r, i, n_bytes);
        expect(&r, i + 1, 8);
        cr_expect_null(nj_record_ring_peek(&r, &n));
    }
    nj_record_ring_close(&r);
}

Test(base_record_ring, full)
{
    struct nj_record_ring r;
    uint32_t n = 0;

    cr_assert(nj_record_ring_open(&r, SIZE));
    cr_expect_null(nj_record_ring_add(&r, SIZE), "larger than the ring, with its head");
    cr_expect_null(nj_record_ring_add(&r, UINT32_MAX));
    for (; add(&r, n, 100); n++)
        ;
    cr_expect_eq(n, SIZE / 112);
    nj_record_ring_count_lost(&r);
    publish(&r);
    expect(&r, 0, 100);
    cr_expect(add(&r, n, 64));
    cr_expect_not(add(&r, n, 100));
    publish(&r);
    for (uint32_t i = 1; i < n; i++)
        expect(&r, i, 100);
    expect(&r, n, 64);
    cr_expect_eq(r.n_lost, 1);
    nj_record_ring_close(&r);
}

/* Of several records, only the first are kept, also if the others are behind the end. */
Test(base_record_ring, forgets_what_is_not_published)
{
    struct nj_record_ring r;
    uint32_t n;

    cr_assert(nj_record_ring_open(&r, SIZE));
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert(add(&r, i, 300));
        uint64_t at = nj_record_ring_at(&r);
        cr_assert(add(&r, 99, 700));
        cr_assert(add(&r, 98, 700));
        nj_record_ring_publish(&r, at);
        expect(&r, i, 300);
        cr_expect_null(nj_record_ring_peek(&r, &n));
    }
    nj_record_ring_close(&r);
}

static void *produce(void *ring)
{
    struct nj_record_ring *r = ring;

    for (uint32_t i = 0; i < N_MANY; i++) {
        uint32_t n_bytes = 4 + i % 200, *to;
        while (!(to = nj_record_ring_add(r, n_bytes)))
            sched_yield();
        memset(to, (int)i, n_bytes);
        memcpy(to, &i, sizeof i);
        publish(r);
    }
    return NULL;
}

Test(base_record_ring, two_threads)
{
    struct nj_record_ring r;
    pthread_t producer;

    cr_assert(nj_record_ring_open(&r, SIZE));
    cr_assert_eq(pthread_create(&producer, NULL, produce, &r), 0);
    for (uint32_t i = 0; i < N_MANY; i++) {
        uint32_t n, value;
        const uint8_t *p;
        while (!(p = nj_record_ring_peek(&r, &n)))
            sched_yield();
        memcpy(&value, p, sizeof value);
        cr_assert(value == i && n == 4 + i % 200 && (n == 4 || p[n - 1] == (uint8_t)i));
        nj_record_ring_take(&r);
    }
    pthread_join(producer, NULL);
    nj_record_ring_close(&r);
}
