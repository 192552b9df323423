/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Authenticated encryption for the records of TLS 1.3 (RFC 8446 5.2, 9.1; RFC 5116): AES-GCM and
 * ChaCha20-Poly1305, over scattered pieces of memory.
 *
 * There are two back ends behind one table of functions. intel-ipsec-mb does AES-GCM where the CPU
 * has AVX-512, or AVX2 and VAES. OpenSSL's EVP does the rest.
 *
 * A key exists in two forms. The compact one is the key itself. The expanded one, of about 1 KiB,
 * has the round keys of AES and powers of the hash key; it is made on demand into memory of the
 * caller, which is a cache: it names the key that it was made from, and a use with another key
 * makes it again. So a stale expansion is never used.
 *
 * One thread uses a struct nj_tls_aead, and has one operation at a time. It shares no lock and no
 * memory with others, and reads no configuration of OpenSSL.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Cipher suites (RFC 8446 B.4). */
enum nj_tls_cipher {
    NJ_TLS_NO_CIPHER = 0,
    NJ_TLS_AES_128_GCM_SHA256 = 0x1301,
    NJ_TLS_AES_256_GCM_SHA384 = 0x1302,
    NJ_TLS_CHACHA20_POLY1305_SHA256 = 0x1303,
};

#define NJ_TLS_CIPHERS        3u
#define NJ_TLS_KEY_BYTES_MAX  32u
#define NJ_TLS_IV_BYTES       12u /* of each of these ciphers; RFC 8446 5.3 calls it N_MAX */
#define NJ_TLS_TAG_BYTES      16u
#define NJ_TLS_EXPANDED_ALIGN 64u

/* Which back end. AUTO: the fastest on this CPU. */
enum nj_tls_engine { NJ_TLS_ENGINE_AUTO, NJ_TLS_ENGINE_EVP, NJ_TLS_ENGINE_IPSEC_MB };

struct nj_tls_aead;

/* The name of a known suite in RFC 8446 B.4. */
static inline const char *nj_tls_cipher_name(uint32_t cipher)
{
    return cipher == NJ_TLS_AES_128_GCM_SHA256   ? "TLS_AES_128_GCM_SHA256"
           : cipher == NJ_TLS_AES_256_GCM_SHA384 ? "TLS_AES_256_GCM_SHA384"
                                                 : "TLS_CHACHA20_POLY1305_SHA256";
}

static inline bool nj_tls_cipher_is_known(uint32_t cipher)
{
    return cipher >= NJ_TLS_AES_128_GCM_SHA256 && cipher <= NJ_TLS_CHACHA20_POLY1305_SHA256;
}

/* Bytes of the key of a known cipher. */
static inline uint32_t nj_tls_key_bytes(enum nj_tls_cipher cipher)
{
    return cipher == NJ_TLS_AES_128_GCM_SHA256 ? 16 : 32;
}

/* The head of an expanded key. Aligned to NJ_TLS_EXPANDED_ALIGN, followed by what the back end
 * made. Memory of all zeros is an expanded key of nothing. */
struct nj_tls_expanded {
    uint8_t key[NJ_TLS_KEY_BYTES_MAX];
    uint16_t cipher; /* NJ_TLS_NO_CIPHER: nothing is expanded here */
    uint8_t unused[30];
};
_Static_assert(sizeof(struct nj_tls_expanded) == NJ_TLS_EXPANDED_ALIGN,
               "what follows the head is aligned, too");

/* An operation: one record. Private to the back ends; wiped at its end. */
struct nj_tls_aead_op {
    struct nj_tls_aead *aead;
    const struct nj__tls_aead_ops *ops;
    const struct nj_tls_expanded *expanded;
    void *evp;
    bool is_sealing, has_failed;
    _Alignas(64) uint8_t state[128];
};

/* The context of one thread. It is in memory that core dumps omit, except OpenSSL's part of it.
 * Returns NULL if there is no memory, or if this CPU or this OpenSSL lacks what `engine` needs. */
struct nj_tls_aead *nj_tls_aead_new(enum nj_tls_engine engine);
/* Wipes and frees. `a` may be NULL. */
void nj_tls_aead_free(struct nj_tls_aead *a);

/* Bytes of an expanded key of any cipher; a multiple of NJ_TLS_EXPANDED_ALIGN. */
uint32_t nj_tls_expanded_bytes(const struct nj_tls_aead *a);
/* Make `expanded` the expansion of `key`, which has nj_tls_key_bytes(cipher) bytes, in memory of
 * nj_tls_expanded_bytes() bytes: zeroed, or a former expansion by this `a`. It costs a comparison
 * if it is that already. Returns false if `cipher` is unknown, and
 * false with nothing expanded if OpenSSL failed. */
bool nj_tls_expand(struct nj_tls_aead *a, enum nj_tls_cipher cipher, const uint8_t *key,
                   struct nj_tls_expanded *expanded);
/* Loads what the next record needs into the cache. */
void nj_tls_expanded_prefetch(const struct nj_tls_aead *a, const struct nj_tls_expanded *e);
/* Overwrite an expanded key with zeros, also in `a`. */
void nj_tls_expanded_wipe(struct nj_tls_aead *a, struct nj_tls_expanded *expanded);

/*
 * Seal or open, from begin to end: begin, any number of updates, end. `expanded` stays as it is
 * until the end. `nonce` has NJ_TLS_IV_BYTES bytes; it must never be used twice with one key for
 * sealing. `aad` is the additional data, complete (`n_aad` may be 0).
 */
void nj_tls_aead_begin(struct nj_tls_aead_op *op, struct nj_tls_aead *a,
                       const struct nj_tls_expanded *expanded, bool is_sealing,
                       const uint8_t *nonce, const uint8_t *aad, uint32_t n_aad);
/* Encrypt or decrypt the next `n` bytes. `out` is `in`, or does not overlap it. What was decrypted
 * is not authentic before nj_tls_aead_end_open() has returned true. */
void nj_tls_aead_update(struct nj_tls_aead_op *op, uint8_t *out, const uint8_t *in, uint32_t n);
/* Write the tag, NJ_TLS_TAG_BYTES bytes. Returns false if OpenSSL failed: nothing of the output may
 * be sent. */
bool nj_tls_aead_end_seal(struct nj_tls_aead_op *op, uint8_t *tag);
/* Compare the tag in constant time. Returns false if it differs, or if OpenSSL failed: the output
 * must not be used. */
bool nj_tls_aead_end_open(struct nj_tls_aead_op *op, const uint8_t *tag);
