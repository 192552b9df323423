/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ciphers by OpenSSL's EVP. Each cipher and direction has one EVP_CIPHER_CTX, made at start, so
 * that no record allocates memory. It has the key of the latest operation; another key is
 * loaded when an operation begins with it. An expanded key is only its head here.
 *
 * The library context is private: it reads no openssl.cnf, and takes no lock that another thread
 * takes.
 */
#include "tls/aead_internal.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/page_alloc.h"

struct slot {
    EVP_CIPHER_CTX *ctx;
    uint8_t key[NJ_TLS_KEY_BYTES_MAX]; /* the one that is loaded */
    uint32_t n_key;
    bool is_loaded;
};

struct nj__tls_evp {
    OSSL_LIB_CTX *lib;
    struct slot slots[NJ_TLS_CIPHERS][2]; /* opening, sealing */
};

static bool has_key(const struct slot *s, const struct nj_tls_expanded *e)
{
    return s->is_loaded && CRYPTO_memcmp(s->key, e->key, s->n_key) == 0;
}

/* Load a key. The former one is overwritten in the context, since both have the same length. */
static bool load(struct slot *s, const uint8_t *key, const uint8_t *nonce, bool is_sealing)
{
    memcpy(s->key, key, s->n_key);
    s->is_loaded = EVP_CipherInit_ex(s->ctx, NULL, NULL, key, nonce, is_sealing) == 1;
    return s->is_loaded;
}

static bool expand(struct nj_tls_aead *a, struct nj_tls_expanded *e)
{
    return true;
}

static void wipe(struct nj_tls_aead *a, const struct nj_tls_expanded *e)
{
    static const uint8_t zeros[NJ_TLS_KEY_BYTES_MAX];

    for (uint32_t sealing = 0; sealing < 2; sealing++) {
        struct slot *s = &a->evp->slots[nj__tls_cipher_index(e->cipher)][sealing];
        if (has_key(s, e))
            (void)load(s, zeros, zeros, sealing);
    }
}

static void begin(struct nj_tls_aead_op *op, const uint8_t *nonce, const uint8_t *aad,
                  uint32_t n_aad)
{
    const struct nj_tls_expanded *e = op->expanded;
    struct slot *s = &op->aead->evp->slots[nj__tls_cipher_index(e->cipher)][op->is_sealing];
    int n_done;

    op->evp = s->ctx;
    if (has_key(s, e))
        op->has_failed = EVP_CipherInit_ex(s->ctx, NULL, NULL, NULL, nonce, op->is_sealing) != 1;
    else
        op->has_failed = !load(s, e->key, nonce, op->is_sealing);
    if (n_aad > 0 && EVP_CipherUpdate(s->ctx, NULL, &n_done, aad, (int)n_aad) != 1)
        op->has_failed = true;
}

static void update(struct nj_tls_aead_op *op, uint8_t *out, const uint8_t *in, uint32_t n)
{
    int n_done;

    if (EVP_CipherUpdate(op->evp, out, &n_done, in, (int)n) != 1 || n_done != (int)n)
        op->has_failed = true;
}

static bool end_seal(struct nj_tls_aead_op *op, uint8_t *tag)
{
    uint8_t none[EVP_MAX_BLOCK_LENGTH];
    int n_done;

    return EVP_CipherFinal_ex(op->evp, none, &n_done) == 1 && n_done == 0 &&
           EVP_CIPHER_CTX_ctrl(op->evp, EVP_CTRL_AEAD_GET_TAG, NJ_TLS_TAG_BYTES, tag) == 1;
}

/* EVP compares in constant time. */
static bool end_open(struct nj_tls_aead_op *op, const uint8_t *tag)
{
    uint8_t none[EVP_MAX_BLOCK_LENGTH], expected[NJ_TLS_TAG_BYTES];
    int n_done;

    memcpy(expected, tag, sizeof expected);
    return EVP_CIPHER_CTX_ctrl(op->evp, EVP_CTRL_AEAD_SET_TAG, NJ_TLS_TAG_BYTES, expected) == 1 &&
           EVP_CipherFinal_ex(op->evp, none, &n_done) == 1;
}

static const struct nj__tls_aead_ops ops = {expand, wipe, begin, update, end_seal, end_open};

static bool slot_init(struct slot *s, const EVP_CIPHER *cipher, bool is_sealing)
{
    static const uint8_t zeros[NJ_TLS_KEY_BYTES_MAX];

    s->n_key = (uint32_t)EVP_CIPHER_get_key_length(cipher);
    s->ctx = EVP_CIPHER_CTX_new();
    return s->ctx && EVP_CipherInit_ex(s->ctx, cipher, NULL, NULL, NULL, is_sealing) == 1 &&
           EVP_CIPHER_CTX_get_iv_length(s->ctx) == (int)NJ_TLS_IV_BYTES &&
           load(s, zeros, zeros, is_sealing);
}

bool nj__tls_evp_init(struct nj_tls_aead *a)
{
    static const char *const names[NJ_TLS_CIPHERS] = {"AES-128-GCM", "AES-256-GCM",
                                                      "ChaCha20-Poly1305"};
    struct nj__tls_evp *v = a->evp = nj_pages_map(sizeof *v, 0);

    if (!v || !(v->lib = OSSL_LIB_CTX_new()))
        return false;
    for (uint32_t i = 0; i < NJ_TLS_CIPHERS; i++) {
        EVP_CIPHER *cipher = EVP_CIPHER_fetch(v->lib, names[i], NULL);
        bool ok = cipher && slot_init(&v->slots[i][0], cipher, false) &&
                  slot_init(&v->slots[i][1], cipher, true);
        EVP_CIPHER_free(cipher); /* the contexts hold it */
        if (!ok)
            return false;
        a->ops[i] = &ops;
    }
    return true;
}

/* EVP_CIPHER_CTX_free() wipes the keys. */
void nj__tls_evp_fini(struct nj_tls_aead *a)
{
    struct nj__tls_evp *v = a->evp;

    if (!v)
        return;
    for (uint32_t i = 0; i < NJ_TLS_CIPHERS; i++) {
        EVP_CIPHER_CTX_free(v->slots[i][0].ctx);
        EVP_CIPHER_CTX_free(v->slots[i][1].ctx);
    }
    OSSL_LIB_CTX_free(v->lib);
    explicit_bzero(v, sizeof *v);
    nj_pages_unmap(v, sizeof *v);
    a->evp = NULL;
}
