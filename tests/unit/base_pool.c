/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed-size objects: bounds, zeroing, reuse. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/compiler.h"
#include "base/pool.h"
#include "base/prng.h"

Test(base_pool, objects_are_zeroed_aligned_and_bounded)
{
    struct nj_pool p;
    uint8_t *obj[5];

    cr_assert(nj_pool_init(&p, 100, 5));
    for (unsigned i = 0; i < 5; i++) {
        obj[i] = nj_pool_take(&p);
        cr_assert_not_null(obj[i]);
        cr_assert_eq((uintptr_t)obj[i] % NJ_CACHE_LINE, 0);
        for (unsigned j = 0; j < 100; j++)
            cr_assert_eq(obj[i][j], 0);
        memset(obj[i], 0xff, 100);
    }
    cr_expect_null(nj_pool_take(&p));
    cr_expect_eq(p.n_used, 5);
    nj_pool_put(&p, obj[3]);
    nj_pool_put(&p, obj[1]);
    uint8_t *again = nj_pool_take(&p);
    cr_expect_eq(again, obj[1], "last in, first out");
    for (unsigned j = 0; j < 100; j++)
        cr_assert_eq(again[j], 0);
    cr_expect_eq(nj_pool_take(&p), obj[3]);
    cr_expect_null(nj_pool_take(&p));
    nj_pool_fini(&p);
}

Test(base_pool, touches_only_what_it_needs)
{
    struct nj_pool p;
    cr_assert(nj_pool_init(&p, 4096, 1000000)); /* 4 GB of addresses */
    for (unsigned i = 0; i < 1000; i++)
        nj_pool_put(&p, nj_pool_take(&p));
    cr_expect_eq(p.n_touched, 1);
    nj_pool_fini(&p);
}

Test(base_pool, random_takes_and_puts)
{
    const uint64_t seed = 0x9001;
    struct nj_pool p;
    struct nj_prng r;
    uint64_t *obj[64] = {0};
    uint32_t n = 0;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    cr_assert(nj_pool_init(&p, sizeof(uint64_t) * 9, 40));
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t k = nj_prng_below(&r, 64);
        if (obj[k]) {
            cr_assert_eq(obj[k][8], k, "another write hit this object");
            nj_pool_put(&p, obj[k]);
            obj[k] = NULL;
            n--;
        } else if ((obj[k] = nj_pool_take(&p))) {
            cr_assert_eq(obj[k][8], 0);
            obj[k][8] = k;
            n++;
        } else {
            cr_assert_eq(n, 40);
        }
        cr_assert_eq(p.n_used, n);
    }
    nj_pool_fini(&p);
}

Test(base_pool, one_for_nothing)
{
    struct nj_pool p;

    cr_assert(nj_pool_init(&p, 64, 0));
    cr_expect_null(nj_pool_take(&p));
    nj_pool_fini(&p);
}
