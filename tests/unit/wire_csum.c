/* SPDX-License-Identifier: BSD-3-Clause */
/* The wide sum against the plain one, over lengths, places in memory and bytes of all kinds. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "wire/csum.h"

#define BYTES 20000u

/* Memory that ends with the data, so that a sanitizer sees one byte too many. */
static void expect_same(const uint8_t *bytes, uint32_t shift, uint32_t n)
{
    uint8_t *mem = malloc(shift + n ? shift + n : 1);
    uint64_t start = 0x1234567890ull;

    memcpy(mem + shift, bytes, n);
    cr_assert_eq(nj__csum_add_bulk(start, mem + shift, n),
                 nj__csum_add_bytes(start, mem + shift, n), "%u bytes at %u", n, shift);
    free(mem);
}

Test(wire_csum, wide_and_plain)
{
    uint64_t seed = 0x77e1;
    const char *given = getenv("NJ_TEST_SEED");
    static uint8_t bytes[BYTES];
    struct nj_prng r;

    if (given)
        seed = strtoull(given, NULL, 0);
    printf("seed %lu (NJ_TEST_SEED)\n", seed);
    nj_prng_init(&r, seed);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)nj_prng_next(&r);
    for (uint32_t n = 0; n <= 700; n++)
        expect_same(bytes, n % 33, n);
    for (uint32_t i = 0; i < 3000; i++)
        expect_same(bytes, nj_prng_below(&r, 64), nj_prng_below(&r, BYTES + 1));
    memset(bytes, 0xff, BYTES); /* as many carries as there can be */
    for (uint32_t i = 0; i < 300; i++)
        expect_same(bytes, nj_prng_below(&r, 64), nj_prng_below(&r, BYTES + 1));
}

/* A copy in pieces, as the send queue makes it: the bytes arrive, and their sum is that of all. */
Test(wire_csum, copied)
{
    static uint8_t bytes[BYTES];
    struct nj_prng r;

    nj_prng_init(&r, 0xc09);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)nj_prng_next(&r);
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t n = nj_prng_below(&r, i % 2 ? 700 : BYTES + 1), shift = nj_prng_below(&r, 64);
        uint32_t first = nj_prng_below(&r, n + 1);
        uint8_t *from = malloc(shift + n + 1), *to = malloc(n + 1);
        memcpy(from + shift, bytes, n);
        to[n] = 0xa5;
        uint64_t sum = nj_csum_copy(to, from + shift, first);
        sum = nj_csum_combine(sum, nj_csum_copy(to + first, from + shift + first, n - first),
                              first & 1);
        cr_assert_eq(memcmp(to, bytes, n), 0, "%u bytes, %u first", n, first);
        cr_assert_eq(to[n], 0xa5);
        cr_assert_eq(nj__csum_fold(sum), nj__csum_fold(nj__csum_add_bytes(0, bytes, n)),
                     "%u bytes, %u first", n, first);
        free(from);
        free(to);
    }
}

/* The plain sum is RFC 1071's own example. */
Test(wire_csum, example)
{
    static const uint8_t words[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    uint16_t sum = nj__csum_fold(nj__csum_add_bytes(0, words, sizeof words));
    cr_expect_eq(rte_be_to_cpu_16(sum), 0xddf2);
}
