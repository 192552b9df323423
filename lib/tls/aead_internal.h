/* SPDX-License-Identifier: BSD-3-Clause */
/* What the back ends of aead.h share. Tests replace back ends by means of this header. */
#pragma once

#include "tls/aead.h"

/* A back end. Functions that return nothing set op->has_failed if they fail. */
struct nj__tls_aead_ops {
    /* Expand expanded->key of expanded->cipher to what follows the head. */
    bool (*expand)(struct nj_tls_aead *a, struct nj_tls_expanded *expanded);
    /* Remove what is kept of this key outside of `expanded`. */
    void (*wipe)(struct nj_tls_aead *a, const struct nj_tls_expanded *expanded);
    void (*begin)(struct nj_tls_aead_op *op, const uint8_t *nonce, const uint8_t *aad,
                  uint32_t n_aad);
    void (*update)(struct nj_tls_aead_op *op, uint8_t *out, const uint8_t *in, uint32_t n);
    /* As the functions of aead.h. */
    bool (*end_seal)(struct nj_tls_aead_op *op, uint8_t *tag);
    bool (*end_open)(struct nj_tls_aead_op *op, const uint8_t *tag);
};

struct nj__tls_evp;

struct nj_tls_aead {
    const struct nj__tls_aead_ops *ops[NJ_TLS_CIPHERS]; /* by nj__tls_cipher_index() */
    uint32_t expanded_bytes;                            /* including the head */
    struct nj__tls_evp *evp;
    void *mb_mgr; /* an IMB_MGR; NULL: not used */
};

static inline uint32_t nj__tls_cipher_index(uint32_t cipher)
{
    return cipher - NJ_TLS_AES_128_GCM_SHA256;
}

/* OpenSSL's EVP, for all ciphers. Returns false if it is not to be had. */
bool nj__tls_evp_init(struct nj_tls_aead *a);
void nj__tls_evp_fini(struct nj_tls_aead *a);

/* intel-ipsec-mb, for AES-GCM. Returns false, without an effect, where it is not built in or the
 * CPU is not one that it is meant for. */
bool nj__tls_ipsec_mb_init(struct nj_tls_aead *a);
void nj__tls_ipsec_mb_fini(struct nj_tls_aead *a);
