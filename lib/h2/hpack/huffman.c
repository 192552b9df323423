/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Huffman code of RFC 7541 5.2, Appendix B. The decoder looks up 11 bits at a time, which yield
 * one or two frequent symbols; longer codes belong to rare octets and are found by code length.
 */
#include "h2/hpack/huffman.h"

#include <string.h>

#include "base/compiler.h"

#define N_SYMBOLS   (NJ__HUFFMAN_EOS + 1)
#define LOOKUP_BITS NJ__HUFFMAN_LOOKUP_BITS

/* RFC 7541 Appendix B: bits of the code of each symbol. */
static const uint8_t n_bits_of[N_SYMBOLS] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
};

/* An entry of `lookup`: two symbols (8 bits each), their total code length (8), the code length of
 * the first (4), and the number of symbols (4). 0: the code is longer than the lookup. */
static uint32_t entry_of(unsigned a, unsigned b, unsigned n_bits, unsigned n_first, unsigned n)
{
    return a | b << 8 | n_bits << 16 | n_first << 24 | n << 28;
}

#define ENTRY_BITS(e)  ((e) >> 16 & 0xff)
#define ENTRY_FIRST(e) ((e) >> 24 & 0xf)
#define ENTRY_COUNT(e) ((e) >> 28)

static void sort_codes(struct nj__huffman *h)
{
    uint32_t code = 0;
    uint16_t n = 0;
    for (unsigned len = 1; len <= NJ__HUFFMAN_CODE_BITS_MAX; len++) {
        code <<= 1;
        h->first[len] = code;
        h->sorted_at[len] = n;
        for (uint16_t s = 0; s < N_SYMBOLS; s++) {
            if (n_bits_of[s] != len)
                continue;
            h->sorted[n++] = s;
            h->code[s] = code++;
        }
        h->code_end[len] = (uint64_t)code << (32 - len);
    }
}

/* The symbol whose code begins at the top of `bits` and has at least `len` bits; stores its length.
 */
static unsigned symbol_at(const struct nj__huffman *h, uint32_t bits, unsigned len,
                          unsigned *n_bits)
{
    while (bits >= h->code_end[len])
        len++;
    *n_bits = len;
    return h->sorted[h->sorted_at[len] + (bits >> (32 - len)) - h->first[len]];
}

static uint32_t make_entry(const struct nj__huffman *h, uint32_t bits)
{
    unsigned n_first, n_second;
    unsigned a = symbol_at(h, bits, 1, &n_first);
    if (n_first > LOOKUP_BITS)
        return 0;
    unsigned b = symbol_at(h, bits << n_first, 1, &n_second);
    if (n_first + n_second > LOOKUP_BITS)
        return entry_of(a, 0, n_first, n_first, 1);
    return entry_of(a, b, n_first + n_second, n_first, 2);
}

void nj__huffman_init(struct nj__huffman *h)
{
    memset(h, 0, sizeof *h);
    sort_codes(h);
    for (uint32_t i = 0; i < 1u << LOOKUP_BITS; i++)
        h->lookup[i] = make_entry(h, i << (32 - LOOKUP_BITS));
}

/* Code that was read and not yet decoded is in the upper `n_bits_read` bits of `bits`. The bits
 * below are either the following code or 0. */
struct bit_reader {
    const uint8_t *at, *end;
    uint64_t bits;
    unsigned n_bits_read;
};

static void skip_bits(struct bit_reader *r, unsigned n_bits)
{
    r->bits <<= n_bits;
    r->n_bits_read -= n_bits;
}

/* Write the symbols of an entry; two bytes are written also for one symbol. */
static uint8_t *put_symbols(uint8_t *to, uint32_t entry)
{
    to[0] = (uint8_t)entry;
    to[1] = (uint8_t)(entry >> 8);
    return to + ENTRY_COUNT(entry);
}

/* Decode all symbols that are certain to lie within the bits read. NULL: EOS was found. */
static inline uint8_t *decode_whole(const struct nj__huffman *h, struct bit_reader *r, uint8_t *to)
{
    for (;;) {
        uint32_t e = h->lookup[r->bits >> (64 - LOOKUP_BITS)];
        if (nj_likely(e != 0)) {
            if (r->n_bits_read < LOOKUP_BITS)
                return to;
            to = put_symbols(to, e);
            skip_bits(r, ENTRY_BITS(e));
            continue;
        }
        if (r->n_bits_read < NJ__HUFFMAN_CODE_BITS_MAX)
            return to;
        unsigned n_bits, s = symbol_at(h, (uint32_t)(r->bits >> 32), LOOKUP_BITS + 1, &n_bits);
        if (s == NJ__HUFFMAN_EOS)
            return NULL;
        *to++ = (uint8_t)s;
        skip_bits(r, n_bits);
    }
}

/* Decode while at least eight bytes of input remain. */
static uint8_t *decode_wide(const struct nj__huffman *h, struct bit_reader *r, uint8_t *to)
{
    while (to && r->end - r->at >= 8) {
        uint64_t next;
        memcpy(&next, r->at, 8);
        r->bits |= __builtin_bswap64(next) >> r->n_bits_read;
        r->at += (63 - r->n_bits_read) >> 3;
        r->n_bits_read |= 56;
        to = decode_whole(h, r, to);
    }
    return to;
}

static void read_bytes(struct bit_reader *r)
{
    while (r->n_bits_read <= 56 && r->at < r->end) {
        r->bits |= (uint64_t)*r->at++ << (56 - r->n_bits_read);
        r->n_bits_read += 8;
    }
}

/* Decode the last symbols, which are followed by ones as padding. */
static uint8_t *decode_last(const struct nj__huffman *h, struct bit_reader *r, uint8_t *to)
{
    while (r->n_bits_read > 0) {
        uint64_t bits = r->bits | UINT64_MAX >> r->n_bits_read;
        if (bits == UINT64_MAX) /* only padding, or an error that the caller detects */
            break;
        uint32_t e = h->lookup[bits >> (64 - LOOKUP_BITS)];
        unsigned n_bits = ENTRY_FIRST(e), s = e & 0xff;
        if (!e)
            s = symbol_at(h, (uint32_t)(bits >> 32), LOOKUP_BITS + 1, &n_bits);
        if (n_bits > r->n_bits_read)
            break;
        if (s == NJ__HUFFMAN_EOS)
            return NULL;
        *to++ = (uint8_t)s;
        skip_bits(r, n_bits);
    }
    return to;
}

ptrdiff_t nj__huffman_decode(const struct nj__huffman *h, uint8_t *to, const uint8_t *from,
                             size_t n_bytes)
{
    struct bit_reader r = {.at = from, .end = from + n_bytes};
    uint8_t *at = decode_wide(h, &r, to);
    while (at && r.at < r.end) {
        read_bytes(&r);
        at = decode_whole(h, &r, at);
    }
    /* decode_whole() stops early at a code longer than the lookup. */
    if (at)
        at = decode_last(h, &r, at);
    /* RFC 7541 5.2: padding is a prefix of EOS and shorter than an octet. */
    if (!at || r.n_bits_read > 7 || (r.bits | UINT64_MAX >> r.n_bits_read) != UINT64_MAX)
        return -1;
    return at - to;
}

size_t nj__huffman_length(const uint8_t *from, size_t n_bytes)
{
    size_t n_bits = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n_bits += n_bits_of[from[i]];
    return (n_bits + 7) / 8;
}

uint8_t *nj__huffman_encode(const struct nj__huffman *h, uint8_t *to, const uint8_t *from,
                            size_t n_bytes)
{
    uint64_t bits = 0; /* the lower n_bits of it */
    unsigned n_bits = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        bits = bits << n_bits_of[from[i]] | h->code[from[i]];
        n_bits += n_bits_of[from[i]];
        for (; n_bits >= 8; n_bits -= 8)
            *to++ = (uint8_t)(bits >> (n_bits - 8));
    }
    if (n_bits > 0) /* padded with ones */
        *to++ = (uint8_t)(bits << (8 - n_bits) | 0xff >> n_bits);
    return to;
}
