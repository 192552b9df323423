/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AES-GCM by intel-ipsec-mb, whose functions are called directly, one record at a time. They keep
 * no state outside of the caller's memory, and are faster than OpenSSL 3.0 only with AVX-512 or
 * VAES.
 */
#include "tls/aead_internal.h"

#ifdef NJ_TLS_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "base/types.h"

/* AES without the CPU's instructions: version 2 of the library (Debian 13) has none. */
#ifndef IMB_FEATURE_AESNI_EMU
#define IMB_FEATURE_AESNI_EMU 0
#endif

_Static_assert(sizeof(struct gcm_context_data) <= sizeof((struct nj_tls_aead_op *)0)->state,
               "the state of an operation");

#define EXPANDED_BYTES                                                                             \
    ((sizeof(struct gcm_key_data) + NJ_TLS_EXPANDED_ALIGN - 1) & ~(NJ_TLS_EXPANDED_ALIGN - 1))

static struct gcm_context_data *context_of(struct nj_tls_aead_op *op)
{
    return (struct gcm_context_data *)op->state;
}

static const struct gcm_key_data *key_of(const struct nj_tls_aead_op *op)
{
    return (const struct gcm_key_data *)(op->expanded + 1);
}

static const IMB_MGR *mgr_of(const struct nj_tls_aead_op *op)
{
    return op->aead->mb_mgr;
}

static void wipe(struct nj_tls_aead *a, const struct nj_tls_expanded *e)
{
}

/* The operations with keys of that many bits. The library names its functions by them. */
#define OPS(BITS)                                                                                  \
    static bool expand_##BITS(struct nj_tls_aead *a, struct nj_tls_expanded *e)                    \
    {                                                                                              \
        IMB_AES##BITS##_GCM_PRE((const IMB_MGR *)a->mb_mgr, e->key,                                \
                                (struct gcm_key_data *)(e + 1));                                   \
        return true;                                                                               \
    }                                                                                              \
    static void begin_##BITS(struct nj_tls_aead_op *op, const uint8_t *nonce, const uint8_t *aad,  \
                             uint32_t n_aad)                                                       \
    {                                                                                              \
        IMB_AES##BITS##_GCM_INIT(mgr_of(op), key_of(op), context_of(op), nonce, aad, n_aad);       \
    }                                                                                              \
    static void update_##BITS(struct nj_tls_aead_op *op, uint8_t *out, const uint8_t *in,          \
                              uint32_t n)                                                          \
    {                                                                                              \
        if (op->is_sealing)                                                                        \
            IMB_AES##BITS##_GCM_ENC_UPDATE(mgr_of(op), key_of(op), context_of(op), out, in, n);    \
        else                                                                                       \
            IMB_AES##BITS##_GCM_DEC_UPDATE(mgr_of(op), key_of(op), context_of(op), out, in, n);    \
    }                                                                                              \
    static bool end_seal_##BITS(struct nj_tls_aead_op *op, uint8_t *tag)                           \
    {                                                                                              \
        IMB_AES##BITS##_GCM_ENC_FINALIZE(mgr_of(op), key_of(op), context_of(op), tag,              \
                                         NJ_TLS_TAG_BYTES);                                        \
        return true;                                                                               \
    }                                                                                              \
    static bool end_open_##BITS(struct nj_tls_aead_op *op, const uint8_t *tag)                     \
    {                                                                                              \
        uint8_t computed[NJ_TLS_TAG_BYTES] = {0};                                                  \
        IMB_AES##BITS##_GCM_DEC_FINALIZE(mgr_of(op), key_of(op), context_of(op), computed,         \
                                         sizeof computed);                                         \
        return CRYPTO_memcmp(computed, tag, sizeof computed) == 0;                                 \
    }                                                                                              \
    static const struct nj__tls_aead_ops ops_##BITS = {                                            \
        expand_##BITS, wipe, begin_##BITS, update_##BITS, end_seal_##BITS, end_open_##BITS};

OPS(128)
OPS(256)

static bool is_suitable(uint64_t features)
{
    const uint64_t vaes = IMB_FEATURE_AVX2 | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;
    bool is_wide =
        (features & IMB_FEATURE_AVX512_SKX) == IMB_FEATURE_AVX512_SKX || (features & vaes) == vaes;
    /* The library tests itself when the manager is made. */
    bool is_broken = features & IMB_FEATURE_SELF_TEST && !(features & IMB_FEATURE_SELF_TEST_PASS);

    return is_wide && !is_broken && !(features & IMB_FEATURE_AESNI_EMU);
}

bool nj__tls_ipsec_mb_init(struct nj_tls_aead *a)
{
    IMB_MGR *mgr = alloc_mb_mgr(0);
    IMB_ARCH arch = IMB_ARCH_NONE;

    if (!mgr)
        return false;
    init_mb_mgr_auto(mgr, &arch);
    if (arch == IMB_ARCH_NONE || imb_get_errno(mgr) != 0 || !is_suitable(mgr->features)) {
        free_mb_mgr(mgr);
        return false;
    }
    a->mb_mgr = mgr;
    a->ops[nj__tls_cipher_index(NJ_TLS_AES_128_GCM_SHA256)] = &ops_128;
    a->ops[nj__tls_cipher_index(NJ_TLS_AES_256_GCM_SHA384)] = &ops_256;
    a->expanded_bytes =
        nj_max_u32(a->expanded_bytes, sizeof(struct nj_tls_expanded) + EXPANDED_BYTES);
    return true;
}

void nj__tls_ipsec_mb_fini(struct nj_tls_aead *a)
{
    if (a->mb_mgr)
        free_mb_mgr(a->mb_mgr);
    a->mb_mgr = NULL;
}

#else

bool nj__tls_ipsec_mb_init(struct nj_tls_aead *a)
{
    return false;
}

void nj__tls_ipsec_mb_fini(struct nj_tls_aead *a)
{
}

#endif
