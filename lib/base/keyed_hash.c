/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 by libsodium, and keys for the fast table hash. Contract: keyed_hash.h. */
#include "base/keyed_hash.h"

#include <sodium/crypto_shorthash.h>

_Static_assert(NJ_HASH_KEY_BYTES == crypto_shorthash_KEYBYTES, "SipHash-2-4 key");

uint64_t nj_hash(const struct nj_hash_key *key, const void *data, size_t n_bytes)
{
    uint8_t out[crypto_shorthash_BYTES];
    uint64_t h;

    crypto_shorthash(out, data, n_bytes, key->b);
    memcpy(&h, out, sizeof h);
    return h;
}

struct nj_mix_key nj_mix_key_derive(const struct nj_hash_key *key, const char *what)
{
    struct nj_mix_key k = {nj_hash(key, what, strlen(what)), 0};

    k.b = nj_hash(key, &k.a, sizeof k.a);
    return k;
}
