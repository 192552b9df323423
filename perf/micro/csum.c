/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ./dev bench csum: nanoseconds of a checksum, plain and vectorised ("wide"), with the data in the
 * cache; of a copy; and of a copy with its checksum, in two passes and in one. Prints the medians
 * of the rounds. Each round measures all functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "wire/csum.h"

#define ROUNDS      201
#define ROUND_BYTES (1u << 20)

static uint8_t from[16384 + 64], to[16384 + 64];

static uint64_t plain(uint32_t n)
{
    return nj__csum_add_bytes(0, from + 2, n);
}

static uint64_t wide(uint32_t n)
{
    return nj__csum_add_bulk(0, from + 2, n);
}

static uint64_t copy(uint32_t n)
{
    memcpy(to + 2, from + 2, n);
    return to[n];
}

static uint64_t copy_then_sum(uint32_t n)
{
    memcpy(to + 2, from + 2, n);
    return nj__csum_add_bulk(0, to + 2, n);
}

static uint64_t copy_and_sum(uint32_t n)
{
    return nj_csum_copy(to + 2, from + 2, n);
}

static const struct {
    const char *name;
    uint64_t (*run)(uint32_t n);
} ways[] = {{"plain", plain},
            {"wide", wide},
            {"copy", copy},
            {"copy, then wide", copy_then_sum},
            {"copy and sum", copy_and_sum}};

static double once(uint64_t (*run)(uint32_t), uint32_t n)
{
    struct timespec a, b;
    uint64_t sum = 0;
    uint32_t times = ROUND_BYTES / n;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint32_t i = 0; i < times; i++) {
        sum += run(n);
        __asm__ volatile("" : "+r"(sum) : : "memory"); /* the compiler must compute each sum */
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / times;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

int main(void)
{
    static const uint32_t sizes[] = {64, 256, 1448, 16384};
    static double ns[NJ_ARRAY_LEN(ways)][ROUNDS];

    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 31 + (i >> 7));
    printf("%-8s", "bytes");
    for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++)
        printf("%18s", ways[w].name);
    printf("   plain/wide\n");
    for (size_t s = 0; s < NJ_ARRAY_LEN(sizes); s++) {
        for (int r = 0; r < ROUNDS; r++)
            for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++)
                ns[w][r] = once(ways[w].run, sizes[s]);
        printf("%-8u", sizes[s]);
        for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++) {
            qsort(ns[w], ROUNDS, sizeof ns[w][0], by_value);
            printf("%15.1f ns", ns[w][ROUNDS / 2]);
        }
        printf("%13.2f\n", ns[0][ROUNDS / 2] / ns[1][ROUNDS / 2]);
    }
    return 0;
}
