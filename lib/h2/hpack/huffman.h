/* SPDX-License-Identifier: BSD-3-Clause */
/* The Huffman code of HPACK (RFC 7541 5.2, Appendix B). Pure. */
#ifndef NJ_H2_HPACK_HUFFMAN_H
#define NJ_H2_HPACK_HUFFMAN_H

#include <stddef.h>
#include <stdint.h>

#define NJ__HUFFMAN_EOS         256u
#define NJ__HUFFMAN_LONGEST     30u /* bits of a code */
#define NJ__HUFFMAN_LOOKUP_BITS 11u /* looked up at once: one or two symbols, 8 KiB */

/* Made once from the lengths of the codes, which say all: codes of one length follow each other in
 * the order of their symbols. */
struct nj__huffman {
    uint32_t lookup[1u << NJ__HUFFMAN_LOOKUP_BITS];
    /* By length: the first code, the one behind the last in the upper bits of 32, and where its
     * symbols begin in `sorted`. */
    uint32_t first[NJ__HUFFMAN_LONGEST + 1];
    uint64_t behind[NJ__HUFFMAN_LONGEST + 1];
    uint16_t begin[NJ__HUFFMAN_LONGEST + 1];
    uint16_t sorted[NJ__HUFFMAN_EOS + 1];
    uint32_t code[NJ__HUFFMAN_EOS + 1];
};

void nj__huffman_init(struct nj__huffman *h);

/* Room that nj__huffman_decode() wants for `n_bytes` of code: the shortest code has 5 bits, and it
 * writes two symbols at a time. */
static inline size_t nj__huffman_decoded_max(size_t n_bytes)
{
    return n_bytes * 8 / 5 + 2;
}

/* Returns the length of the string, or -1 where RFC 7541 5.2 sees an error. */
ptrdiff_t nj__huffman_decode(const struct nj__huffman *h, uint8_t *to, const uint8_t *from,
                             size_t n_bytes);

/* Bytes that the code of a string takes. */
size_t nj__huffman_length(const uint8_t *from, size_t n_bytes);
/* Writes exactly as many and returns where they end. */
uint8_t *nj__huffman_encode(const struct nj__huffman *h, uint8_t *to, const uint8_t *from,
                            size_t n_bytes);

#endif
