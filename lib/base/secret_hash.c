/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/secret_hash.h"

#include <sodium/crypto_generichash.h>
#include <sodium/utils.h>

/* It fails for other lengths only. */
struct nj_secret_hash nj_secret_hash(const void *data, size_t n_bytes)
{
    struct nj_secret_hash h;

    (void)crypto_generichash(h.b, sizeof h.b, data, n_bytes, NULL, 0);
    return h;
}

bool nj_secret_hash_eq(const struct nj_secret_hash *x, const struct nj_secret_hash *y)
{
    return sodium_memcmp(x->b, y->b, sizeof x->b) == 0;
}
