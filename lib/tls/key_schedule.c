/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HKDF-Expand (RFC 5869 2.3) by HMAC of OpenSSL 3, whose EVP_KDF would allocate a context for each
 * derivation. Contract: key_schedule.h.
 */
#include "tls/key_schedule.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/assert.h"
#include "base/page_alloc.h"
#include "base/types.h"

#define PREFIX        "tls13 "
#define PREFIX_BYTES  6u
/* HkdfLabel: length of the output, label and context, each with a length of one byte. */
#define INFO_BYTES    (2u + 1u + 255u + 1u + 255u)
#define EXPAND_BLOCKS 255u /* RFC 5869 2.3 */

struct nj_tls_kdf {
    OSSL_LIB_CTX *lib;
    EVP_MAC_CTX *sha256, *sha384;
};

static EVP_MAC_CTX *hmac_new(OSSL_LIB_CTX *lib, char *digest)
{
    static const uint8_t zeros[NJ_TLS_SECRET_BYTES_MAX];
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_END};
    EVP_MAC *mac = EVP_MAC_fetch(lib, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;

    EVP_MAC_free(mac); /* the context holds it */
    if (ctx && EVP_MAC_init(ctx, zeros, sizeof zeros, params) != 1) {
        EVP_MAC_CTX_free(ctx);
        ctx = NULL;
    }
    return ctx;
}

struct nj_tls_kdf *nj_tls_kdf_new(void)
{
    struct nj_tls_kdf *kdf = nj_pages_map(sizeof *kdf, 0);

    if (!kdf)
        return NULL;
    kdf->lib = OSSL_LIB_CTX_new();
    if (kdf->lib) {
        kdf->sha256 = hmac_new(kdf->lib, "SHA256");
        kdf->sha384 = hmac_new(kdf->lib, "SHA384");
    }
    if (!kdf->sha256 || !kdf->sha384) {
        nj_tls_kdf_free(kdf);
        return NULL;
    }
    return kdf;
}

void nj_tls_kdf_free(struct nj_tls_kdf *kdf)
{
    if (!kdf)
        return;
    EVP_MAC_CTX_free(kdf->sha256);
    EVP_MAC_CTX_free(kdf->sha384);
    OSSL_LIB_CTX_free(kdf->lib);
    nj_pages_unmap(kdf, sizeof *kdf);
}

/* T(i) = HMAC(PRK, T(i - 1) | info | i), RFC 5869 2.3. */
static bool expand(EVP_MAC_CTX *hmac, const uint8_t *prk, uint32_t n_hash, const uint8_t *info,
                   uint32_t n_info, uint8_t *out, uint32_t n_out)
{
    uint8_t block[NJ_TLS_SECRET_BYTES_MAX];
    bool ok = true;

    for (uint32_t at = 0, i = 1; at < n_out && ok; at += n_hash, i++) {
        uint8_t counter = (uint8_t)i;
        size_t n_block;
        ok = EVP_MAC_init(hmac, prk, n_hash, NULL) == 1 &&
             (i == 1 || EVP_MAC_update(hmac, block, n_hash) == 1) &&
             EVP_MAC_update(hmac, info, n_info) == 1 && EVP_MAC_update(hmac, &counter, 1) == 1 &&
             EVP_MAC_final(hmac, block, &n_block, sizeof block) == 1 && n_block == n_hash;
        if (ok)
            memcpy(out + at, block, nj_min_u32(n_hash, n_out - at));
    }
    explicit_bzero(block, sizeof block);
    return ok;
}

bool nj_tls_hkdf_expand_label(struct nj_tls_kdf *kdf, enum nj_tls_cipher cipher,
                              const uint8_t *secret, const char *label, const uint8_t *context,
                              uint32_t n_context, uint8_t *out, uint32_t n_out)
{
    static const uint8_t zeros[NJ_TLS_SECRET_BYTES_MAX];
    EVP_MAC_CTX *hmac = cipher == NJ_TLS_AES_256_GCM_SHA384 ? kdf->sha384 : kdf->sha256;
    uint32_t n_hash = nj_tls_secret_bytes(cipher), n = 0;
    size_t n_label = strlen(label);
    uint8_t info[INFO_BYTES];

    NJ_ASSERT(nj_tls_cipher_is_known(cipher));
    if (n_label > NJ_TLS_LABEL_BYTES_MAX || n_context > 255 || n_out > EXPAND_BLOCKS * n_hash) {
        memset(out, 0, n_out);
        return false;
    }
    info[n++] = (uint8_t)(n_out >> 8);
    info[n++] = (uint8_t)n_out;
    info[n++] = (uint8_t)(PREFIX_BYTES + n_label);
    memcpy(info + n, PREFIX, PREFIX_BYTES);
    memcpy(info + n + PREFIX_BYTES, label, n_label);
    n += PREFIX_BYTES + (uint32_t)n_label;
    info[n++] = (uint8_t)n_context;
    if (n_context > 0)
        memcpy(info + n, context, n_context);
    n += n_context;
    bool ok = expand(hmac, secret, n_hash, info, n, out, n_out);
    /* Overwrites what the context has of the secret. */
    ok = EVP_MAC_init(hmac, zeros, n_hash, NULL) == 1 && ok;
    explicit_bzero(info, sizeof info);
    if (!ok)
        explicit_bzero(out, n_out);
    return ok;
}

/* RFC 8446 7.3, from k->secret. */
static bool derive_key_and_iv(struct nj_tls_keys *k, struct nj_tls_kdf *kdf)
{
    bool ok =
        nj_tls_hkdf_expand_label(kdf, k->cipher, k->secret, "key", NULL, 0, k->key,
                                 nj_tls_key_bytes(k->cipher)) &&
        nj_tls_hkdf_expand_label(kdf, k->cipher, k->secret, "iv", NULL, 0, k->iv, NJ_TLS_IV_BYTES);

    if (!ok)
        nj_tls_keys_wipe(k);
    return ok;
}

bool nj_tls_keys_derive(struct nj_tls_keys *k, struct nj_tls_kdf *kdf, enum nj_tls_cipher cipher,
                        const uint8_t *secret)
{
    *k = (struct nj_tls_keys){.cipher = (uint16_t)cipher};
    memcpy(k->secret, secret, nj_tls_secret_bytes(cipher));
    return derive_key_and_iv(k, kdf);
}

bool nj_tls_keys_derive_next(struct nj_tls_keys *next, struct nj_tls_kdf *kdf,
                             const struct nj_tls_keys *k)
{
    *next = (struct nj_tls_keys){.cipher = k->cipher};
    if (!nj_tls_hkdf_expand_label(kdf, k->cipher, k->secret, "traffic upd", NULL, 0, next->secret,
                                  nj_tls_secret_bytes(k->cipher))) {
        nj_tls_keys_wipe(next);
        return false;
    }
    return derive_key_and_iv(next, kdf);
}

void nj_tls_keys_wipe(struct nj_tls_keys *k)
{
    explicit_bzero(k, sizeof *k);
}
