/* SPDX-License-Identifier: BSD-3-Clause */
/* The Huffman code of HPACK (RFC 7541 5.2, Appendix B). Functions have no side effects. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NJ__HUFFMAN_EOS           256u
#define NJ__HUFFMAN_CODE_BITS_MAX 30u /* bits of a code */
#define NJ__HUFFMAN_LOOKUP_BITS   11u /* looked up at once: one or two symbols, 8 KiB */

/* Tables of a canonical Huffman code, built once from the code lengths: codes of equal length are
 * consecutive in the order of their symbols. */
struct nj__huffman {
    uint32_t lookup[1u << NJ__HUFFMAN_LOOKUP_BITS];
    /* By code length: the first code; one past the last code, left-aligned in 32 bits; the position
     * of the first symbol in `sorted`. */
    uint32_t first[NJ__HUFFMAN_CODE_BITS_MAX + 1];
    uint64_t code_end[NJ__HUFFMAN_CODE_BITS_MAX + 1];
    uint16_t sorted_at[NJ__HUFFMAN_CODE_BITS_MAX + 1];
    uint16_t sorted[NJ__HUFFMAN_EOS + 1];
    uint32_t code[NJ__HUFFMAN_EOS + 1];
};

void nj__huffman_init(struct nj__huffman *h);

/* Output bytes that nj__huffman_decode() needs for `n_bytes` of code: the shortest code has 5 bits,
 * and two symbols are written at a time. */
static inline size_t nj__huffman_decoded_max(size_t n_bytes)
{
    return n_bytes * 8 / 5 + 2;
}

/* Returns the length of the string, or -1 for a decoding error by RFC 7541 5.2. */
ptrdiff_t nj__huffman_decode(const struct nj__huffman *h, uint8_t *to, const uint8_t *from,
                             size_t n_bytes);

/* The length of a string's code in bytes. */
size_t nj__huffman_length(const uint8_t *from, size_t n_bytes);
/* Writes nj__huffman_length() bytes and returns the address after them. */
uint8_t *nj__huffman_encode(const struct nj__huffman *h, uint8_t *to, const uint8_t *from,
                            size_t n_bytes);
