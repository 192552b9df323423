/* SPDX-License-Identifier: BSD-3-Clause */
/* The context of a thread, expanded keys as a cache, and the calls of the back ends. */
#include "tls/aead.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/page_alloc.h"
#include "base/types.h"
#include "tls/aead_internal.h"

struct nj_tls_aead *nj_tls_aead_new(enum nj_tls_engine engine)
{
    struct nj_tls_aead *a = nj_pages_map(sizeof *a, 0);

    if (!a)
        return NULL;
    a->expanded_bytes = sizeof(struct nj_tls_expanded);
    if (!nj__tls_evp_init(a) || (engine != NJ_TLS_ENGINE_EVP && !nj__tls_ipsec_mb_init(a) &&
                                 engine == NJ_TLS_ENGINE_IPSEC_MB)) {
        nj_tls_aead_free(a);
        return NULL;
    }
    return a;
}

void nj_tls_aead_free(struct nj_tls_aead *a)
{
    if (!a)
        return;
    nj__tls_ipsec_mb_fini(a);
    nj__tls_evp_fini(a);
    nj_pages_unmap(a, sizeof *a);
}

uint32_t nj_tls_expanded_bytes(const struct nj_tls_aead *a)
{
    return a->expanded_bytes;
}

/* In constant time, 8 bytes at once; CRYPTO_memcmp() takes 11 ns for 32. */
static bool is_same_key(const uint8_t *a, const uint8_t *b, uint32_t n_key)
{
    uint64_t x, y, different = 0;

    for (uint32_t i = 0; i < n_key; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        different |= x ^ y;
    }
    return different == 0;
}

bool nj_tls_expand(struct nj_tls_aead *a, enum nj_tls_cipher cipher, const uint8_t *key,
                   struct nj_tls_expanded *e)
{
    uint32_t n_key = nj_tls_key_bytes(cipher);

    NJ_ASSERT((uintptr_t)e % NJ_TLS_EXPANDED_ALIGN == 0);
    if (nj_unlikely(!nj_tls_cipher_is_known(cipher)))
        return false;
    if (nj_likely(e->cipher == cipher && is_same_key(e->key, key, n_key)))
        return true;
    nj_tls_expanded_wipe(a, e);
    memcpy(e->key, key, n_key);
    e->cipher = (uint16_t)cipher;
    if (a->ops[nj__tls_cipher_index(cipher)]->expand(a, e))
        return true;
    nj_tls_expanded_wipe(a, e);
    return false;
}

/* A short record needs the round keys, which come first, and the last powers of the hash key. */
void nj_tls_expanded_prefetch(const struct nj_tls_aead *a, const struct nj_tls_expanded *e)
{
    const uint8_t *p = (const uint8_t *)e;
    const uint32_t n = a->expanded_bytes, n_end = nj_min_u32(n, 320);

    for (uint32_t at = 0; at < n_end; at += NJ_CACHE_LINE)
        __builtin_prefetch(p + at);
    for (uint32_t at = n - n_end; at < n; at += NJ_CACHE_LINE)
        __builtin_prefetch(p + at);
}

void nj_tls_expanded_wipe(struct nj_tls_aead *a, struct nj_tls_expanded *e)
{
    if (e->cipher != NJ_TLS_NO_CIPHER)
        a->ops[nj__tls_cipher_index(e->cipher)]->wipe(a, e);
    explicit_bzero(e, a->expanded_bytes);
}

void nj_tls_aead_begin(struct nj_tls_aead_op *op, struct nj_tls_aead *a,
                       const struct nj_tls_expanded *e, bool is_sealing, const uint8_t *nonce,
                       const uint8_t *aad, uint32_t n_aad)
{
    NJ_ASSERT(nj_tls_cipher_is_known(e->cipher));
    op->aead = a;
    op->ops = a->ops[nj__tls_cipher_index(e->cipher)];
    op->expanded = e;
    op->is_sealing = is_sealing;
    op->has_failed = false;
    op->ops->begin(op, nonce, aad, n_aad);
}

void nj_tls_aead_update(struct nj_tls_aead_op *op, uint8_t *out, const uint8_t *in, uint32_t n)
{
    if (n > 0)
        op->ops->update(op, out, in, n);
}

bool nj_tls_aead_end_seal(struct nj_tls_aead_op *op, uint8_t *tag)
{
    NJ_ASSERT(op->is_sealing);
    bool ok = op->ops->end_seal(op, tag);

    explicit_bzero(op->state, sizeof op->state);
    return ok && !op->has_failed;
}

bool nj_tls_aead_end_open(struct nj_tls_aead_op *op, const uint8_t *tag)
{
    NJ_ASSERT(!op->is_sealing);
    bool ok = op->ops->end_open(op, tag);

    explicit_bzero(op->state, sizeof op->state);
    return ok && !op->has_failed;
}
