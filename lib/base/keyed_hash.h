/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two keyed hashes. nj_hash() is SipHash-2-4 (libsodium), for values that a peer must not predict,
 * such as initial sequence numbers. nj_mix_word() is faster and for hash tables only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NJ_HASH_KEY_BYTES 16

struct nj_hash_key {
    uint8_t b[NJ_HASH_KEY_BYTES]; /* from the system's random source, given at start */
};

/* 64-bit keyed hash of `n_bytes` at `data`. Pure; any thread. */
uint64_t nj_hash(const struct nj_hash_key *key, const void *data, size_t n_bytes);

/* Key of the table hash. A collision in a table must cost time only: no secret may depend on this
 * hash, and peers must not see its values. It folds both halves of 64 x 64 -> 128 bit products, so
 * collisions cannot be constructed without the key. */
struct nj_mix_key {
    uint64_t a, b;
};

/* Derive a table key. `what` separates the keys derived from one `key`. */
struct nj_mix_key nj_mix_key_derive(const struct nj_hash_key *key, const char *what);

static inline uint64_t nj_mix_word(const struct nj_mix_key *k, uint64_t h, uint64_t word)
{
    unsigned __int128 p = (unsigned __int128)(word ^ k->a) * (h ^ k->b);
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Hash `n_bytes` at `data` into `h`. */
static inline uint64_t nj_mix_bytes(const struct nj_mix_key *k, uint64_t h, const void *data,
                                    uint32_t n_bytes)
{
    const uint8_t *p = (const uint8_t *)data;
    uint64_t word = 0;

    h += n_bytes;
    if (n_bytes >= 8) {
        for (uint32_t i = 0; i + 8 < n_bytes; i += 8) {
            memcpy(&word, p + i, 8);
            h = nj_mix_word(k, h, word);
        }
        memcpy(&word, p + n_bytes - 8, 8);
    } else if (n_bytes >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n_bytes - 4, 4);
        word = first | (uint64_t)last << 32;
    } else {
        for (uint32_t i = 0; i < n_bytes; i++)
            word = word << 8 | p[i];
    }
    return nj_mix_word(k, h, word);
}
