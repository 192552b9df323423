/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum (RFC 1071) over long data and chained mbufs. Contract: csum.h. */
#include "wire/csum.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Bytes per iteration. Shorter data does not repay the start-up cost. */
#define WIDE_BYTES 128u
#define WIDE_MIN   (2 * WIDE_BYTES)

#define LOAD(p, i)     _mm256_loadu_si256((const __m256i *)(const void *)((p) + 32 * (i)))
#define STORE(p, i, v) _mm256_storeu_si256((__m256i *)(void *)((p) + 32 * (i)), v)

/* Sums whole iterations of `n_bytes`, and copies them to `to` unless it is NULL. Each 64-bit lane
 * adds both halves of its word, so it overflows no earlier than the scalar loop. */
__attribute__((target("avx2"), always_inline)) static inline uint64_t
rounds(uint64_t sum, bool copied, uint8_t *to, const uint8_t *p, size_t n_bytes)
{
    const __m256i low = _mm256_set1_epi64x(UINT32_MAX);
    __m256i lows = _mm256_setzero_si256(), highs = lows;
    uint64_t lane[4];

    for (; n_bytes >= WIDE_BYTES; p += WIDE_BYTES, n_bytes -= WIDE_BYTES) {
        __m256i a = LOAD(p, 0), b = LOAD(p, 1), c = LOAD(p, 2), d = LOAD(p, 3);
        if (copied) {
            STORE(to, 0, a);
            STORE(to, 1, b);
            STORE(to, 2, c);
            STORE(to, 3, d);
            to += WIDE_BYTES;
        }
        lows = _mm256_add_epi64(
            lows, _mm256_add_epi64(_mm256_and_si256(a, low), _mm256_and_si256(b, low)));
        highs = _mm256_add_epi64(
            highs, _mm256_add_epi64(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32)));
        lows = _mm256_add_epi64(
            lows, _mm256_add_epi64(_mm256_and_si256(c, low), _mm256_and_si256(d, low)));
        highs = _mm256_add_epi64(
            highs, _mm256_add_epi64(_mm256_srli_epi64(c, 32), _mm256_srli_epi64(d, 32)));
    }
    _mm256_storeu_si256((__m256i *)(void *)lane, _mm256_add_epi64(lows, highs));
    return sum + lane[0] + lane[1] + lane[2] + lane[3];
}

__attribute__((target("avx2"))) static uint64_t add_rounds(uint64_t sum, const uint8_t *p,
                                                           size_t n_bytes)
{
    return rounds(sum, false, NULL, p, n_bytes);
}

__attribute__((target("avx2"))) static uint64_t copy_rounds(uint8_t *to, const uint8_t *p,
                                                            size_t n_bytes)
{
    return rounds(0, true, to, p, n_bytes);
}

/* The test is one load: libgcc has detected the CPU's features before main(). */
uint64_t nj__csum_add_bulk(uint64_t sum, const void *data, size_t n_bytes)
{
    const uint8_t *p = data;

    if (n_bytes >= WIDE_MIN && __builtin_cpu_supports("avx2")) {
        sum = add_rounds(sum, p, n_bytes);
        p += n_bytes & ~(size_t)(WIDE_BYTES - 1);
        n_bytes &= WIDE_BYTES - 1;
    }
    return nj__csum_add_bytes(sum, p, n_bytes);
}

uint64_t nj_csum_copy(void *to, const void *from, size_t n_bytes)
{
    size_t n_wide = 0;
    uint64_t sum = 0;

    if (n_bytes >= WIDE_MIN && __builtin_cpu_supports("avx2")) {
        n_wide = n_bytes & ~(size_t)(WIDE_BYTES - 1);
        sum = copy_rounds(to, from, n_wide);
    }
    uint8_t *rest = (uint8_t *)to + n_wide;
    memcpy(rest, (const uint8_t *)from + n_wide, n_bytes - n_wide);
    return nj__csum_add_bytes(sum, rest, n_bytes - n_wide);
}

#else

uint64_t nj_csum_copy(void *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
    return nj__csum_add_bytes(0, to, n_bytes);
}

uint64_t nj__csum_add_bulk(uint64_t sum, const void *data, size_t n_bytes)
{
    return nj__csum_add_bytes(sum, data, n_bytes);
}

#endif

uint64_t nj__csum_add_mbuf(uint64_t sum, const struct rte_mbuf *m)
{
    bool odd = false;

    for (; m; m = m->next) {
        uint64_t part = nj__csum_add_bulk(0, rte_pktmbuf_mtod(m, const void *), m->data_len);
        sum = nj_csum_combine(sum, part, odd);
        odd ^= m->data_len & 1;
    }
    return sum;
}
