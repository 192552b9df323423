/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for chunks: blocks do not overlap, are merged, and return their pages to the system. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/prng.h"
#include "store/chunk_buddy_arena.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static const uint32_t sizes[] = {4 * KIB, 32 * KIB, 256 * KIB};

Test(store_chunk_buddy_arena, divides_and_becomes_one_again)
{
    struct nj__arena *a = nj__arena_new(1);
    cr_assert_eq(nj__arena_memory_range(a).n_bytes, 2 * MIB, "whole large pages");

    for (size_t size = 0; size < 3; size++) {
        uint32_t n = 2 * MIB / sizes[size];
        uint8_t **block = calloc(n, sizeof *block);
        for (uint32_t i = 0; i < n; i++) {
            block[i] = nj__arena_take(a, sizes[size]);
            cr_assert(block[i], "%zu: %u", size, i);
            cr_expect_eq((uintptr_t)block[i] % sizes[size], 0);
        }
        for (size_t other = 0; other < 3; other++)
            cr_expect_null(nj__arena_take(a, sizes[other]));
        for (uint32_t i = 0; i < n; i++)
            nj__arena_put(a, block[i * 5 % n], sizes[size]); /* 5 and a power of two: all of them */
        free(block);
    }
    nj__arena_free(a);
}

/* An already divided block is used first. */
Test(store_chunk_buddy_arena, small_blocks_stay_together)
{
    struct nj__arena *a = nj__arena_new(2 * MIB);
    uint8_t *small[64];

    for (int i = 0; i < 64; i++)
        small[i] = nj__arena_take(a, 4 * KIB);
    for (int i = 0; i < 7; i++)
        cr_expect(nj__arena_take(a, 256 * KIB), "%d", i);
    cr_expect_null(nj__arena_take(a, 4 * KIB));
    for (int i = 0; i < 63; i++)
        nj__arena_put(a, small[i], 4 * KIB);
    cr_expect_null(nj__arena_take(a, 256 * KIB));
    nj__arena_put(a, small[63], 4 * KIB);
    cr_expect(nj__arena_take(a, 256 * KIB));
    nj__arena_free(a);
}

Test(store_chunk_buddy_arena, random, .timeout = 60)
{
    enum { BLOCKS = 2000 };
    struct {
        uint8_t *at;
        uint32_t n_bytes, mark;
    } block[BLOCKS];
    uint32_t n = 0;
    const char *given = getenv("NJ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261124;
    struct nj_prng prng;
    struct nj__arena *a = nj__arena_new(16 * MIB);

    printf("NJ_SEED=%lu\n", (unsigned long)seed);
    nj_prng_init(&prng, seed);
    for (uint32_t i = 0; i < 30000; i++) {
        if (n > 0 && (n == BLOCKS || nj_prng_below(&prng, 2))) {
            uint32_t k = nj_prng_below(&prng, n), got[2];
            memcpy(&got[0], block[k].at, 4);
            memcpy(&got[1], block[k].at + block[k].n_bytes - 4, 4);
            cr_assert(got[0] == block[k].mark && got[1] == block[k].mark, "NJ_SEED=%lu: %u",
                      (unsigned long)seed, i);
            nj__arena_put(a, block[k].at, block[k].n_bytes);
            block[k] = block[--n];
            continue;
        }
        uint32_t n_bytes = sizes[nj_prng_below(&prng, 3)];
        uint8_t *at = nj__arena_take(a, n_bytes);
        if (!at)
            continue;
        memcpy(at, &i, 4);
        memcpy(at + n_bytes - 4, &i, 4);
        block[n].at = at;
        block[n].n_bytes = n_bytes;
        block[n++].mark = i;
    }
    while (n > 0) {
        n--;
        nj__arena_put(a, block[n].at, block[n].n_bytes);
    }
    for (n = 0; nj__arena_take(a, 256 * KIB); n++)
        ;
    cr_expect_eq(n, 64, "NJ_SEED=%lu", (unsigned long)seed);
    nj__arena_free(a);
}

/* Pages that are in memory, of 4 KiB. */
static size_t n_resident(const struct nj__arena *a)
{
    struct nj__arena_memory m = nj__arena_memory_range(a);
    unsigned char *is = calloc(m.n_bytes / 4096, 1);
    size_t n = 0;

    cr_assert_eq(mincore(m.at, m.n_bytes, is), 0);
    for (size_t i = 0; i < m.n_bytes / 4096; i++)
        n += is[i] & 1;
    free(is);
    return n;
}

/* A limited number of blocks gets pages before the first use; these blocks are then used like
 * others. */
Test(store_chunk_buddy_arena, has_some_ready)
{
    enum { BLOCKS = NJ__ARENA_HIGH_WATER + 32 };
    struct nj__arena *a = nj__arena_new((uint64_t)BLOCKS * 256 * KIB);
    uint8_t *block;
    uint32_t n = 0;

    cr_expect(nj__arena_needs_pages(a));
    for (; (block = nj__arena_take_unpopulated(a)); n++) {
        int rc = nj__arena_populate(block);
        if (rc == -EINVAL)
            cr_skip("before Linux 5.14");
        cr_assert_eq(rc, 0);
        nj__arena_put_populated(a, block);
        cr_expect_eq(nj__arena_needs_pages(a), n + 1 < NJ__ARENA_LOW_WATER);
    }
    cr_expect_eq(n, NJ__ARENA_HIGH_WATER);
    cr_expect_geq(n_resident(a), NJ__ARENA_HIGH_WATER * 64u);
    cr_expect_leq(n_resident(a), (NJ__ARENA_HIGH_WATER + 8) * 64u, "at most a large page more");
    size_t n_before = n_resident(a);
    for (n = 0; n < NJ__ARENA_HIGH_WATER; n++) {
        block = nj__arena_take(a, 256 * KIB);
        memset(block, 1, 256 * KIB);
    }
    cr_expect_eq(n_resident(a), n_before, "they are the first to be used");
    for (; nj__arena_take(a, 256 * KIB); n++)
        ;
    cr_expect_eq(n, BLOCKS);
    cr_expect_not(nj__arena_needs_pages(a), "there are no other blocks");
    nj__arena_free(a);
}

Test(store_chunk_buddy_arena, gives_pages_back)
{
    enum { BLOCKS = NJ__ARENA_KEEP_MAX + 64 };
    static uint8_t *block[BLOCKS];
    struct nj__arena *a = nj__arena_new((uint64_t)BLOCKS * 256 * KIB);
    uint32_t n = 0;

    if (nj__arena_memory_range(a).is_huge)
        cr_skip("hugepages stay");
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block[i] = nj__arena_take(a, 256 * KIB);
        memset(block[i], 1, 256 * KIB);
    }
    cr_expect_eq(n_resident(a), BLOCKS * 64u);
    cr_expect_null(nj__arena_take_surplus(a));
    for (uint32_t i = 0; i < BLOCKS; i++)
        nj__arena_put(a, block[i], 256 * KIB);
    for (uint8_t *spare; (spare = nj__arena_take_surplus(a)); n++) {
        nj__arena_release_block_pages(spare);
        nj__arena_put_unbacked(a, spare);
    }
    cr_expect_eq(n, 64);
    cr_expect_eq(n_resident(a), NJ__ARENA_KEEP_MAX * 64u);
    for (n = 0; nj__arena_take(a, 256 * KIB); n++)
        ;
    cr_expect_eq(n, BLOCKS);
    nj__arena_free(a);
}
