/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keyed hash (SipHash-2-4, from libsodium) for everything a peer may try to collide or predict:
 * flow table buckets and initial sequence numbers.
 */
#ifndef NJ_BASE_HASH_H
#define NJ_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define NJ_HASH_KEY_BYTES 16

struct nj_hash_key {
    uint8_t b[NJ_HASH_KEY_BYTES]; /* from the system's random source, given at start */
};

/* 64-bit keyed hash of `n_bytes` at `data`. Pure; any thread. */
uint64_t nj_hash(const struct nj_hash_key *key, const void *data, size_t n_bytes);

#endif
