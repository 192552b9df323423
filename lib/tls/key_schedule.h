/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic keys (RFC 8446 7.1 to 7.3): a traffic secret gives the key and the IV of one direction,
 * and the secret that follows it at a KeyUpdate.
 *
 * One thread uses a struct nj_tls_kdf. It shares no lock with others and reads no configuration of
 * OpenSSL.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tls/aead.h"

#define NJ_TLS_SECRET_BYTES_MAX 48u  /* of SHA-384 */
#define NJ_TLS_LABEL_BYTES_MAX  249u /* 255 with the "tls13 " before it (RFC 8446 7.1) */

/* The compact keys of one direction: all that an idle connection keeps. Whoever has one places it
 * in memory that core dumps omit (base/page_alloc.h). Copies of it are wiped, and never used beside
 * the original: they would use its record numbers again. */
struct nj_tls_keys {
    uint64_t record_number; /* of the next record (RFC 8446 5.3) */
    uint8_t secret[NJ_TLS_SECRET_BYTES_MAX];
    uint8_t key[NJ_TLS_KEY_BYTES_MAX];
    uint8_t iv[NJ_TLS_IV_BYTES];
    uint16_t cipher; /* NJ_TLS_NO_CIPHER: no keys */
};
_Static_assert(sizeof(struct nj_tls_keys) <= 120, "memory of an idle connection, twice");

/* Bytes of the hash of a known cipher, and of its traffic secrets. */
static inline uint32_t nj_tls_secret_bytes(enum nj_tls_cipher cipher)
{
    return cipher == NJ_TLS_AES_256_GCM_SHA384 ? 48 : 32;
}

/* HMAC contexts of one thread. Returns NULL if there is no memory, or OpenSSL has no HMAC. */
struct nj_tls_kdf *nj_tls_kdf_new(void);
/* `kdf` may be NULL. */
void nj_tls_kdf_free(struct nj_tls_kdf *kdf);

/*
 * HKDF-Expand-Label (RFC 8446 7.1) with the hash of `cipher`. `secret` has
 * nj_tls_secret_bytes(cipher) bytes, `label` (without "tls13 ") at most NJ_TLS_LABEL_BYTES_MAX,
 * `context` at most 255, `out` at most 255 times the bytes of the hash. Returns false if OpenSSL
 * failed or a length is greater; `out` is then zeros.
 */
bool nj_tls_hkdf_expand_label(struct nj_tls_kdf *kdf, enum nj_tls_cipher cipher,
                              const uint8_t *secret, const char *label, const uint8_t *context,
                              uint32_t n_context, uint8_t *out, uint32_t n_out);

/* Make the keys of a traffic secret of nj_tls_secret_bytes(cipher) bytes, which is copied (RFC 8446
 * 7.3). The record number becomes 0. Returns false if OpenSSL failed; `k` is then wiped. */
bool nj_tls_keys_derive(struct nj_tls_keys *k, struct nj_tls_kdf *kdf, enum nj_tls_cipher cipher,
                        const uint8_t *secret);
/* Make the keys that follow those of `k` at a KeyUpdate (RFC 8446 7.2), in `next`, which is not
 * `k`. Returns false if OpenSSL failed; `next` is then wiped. */
bool nj_tls_keys_derive_next(struct nj_tls_keys *next, struct nj_tls_kdf *kdf,
                             const struct nj_tls_keys *k);
void nj_tls_keys_wipe(struct nj_tls_keys *k);
