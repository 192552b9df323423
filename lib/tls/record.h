/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record layer of TLS 1.3 (RFC 8446 5): the size of a record, and records sealed and opened.
 * Plaintext and ciphertext may lie in several pieces of memory, such as mbufs.
 *
 * Pure; one thread per struct nj_tls_aead. Errors of the peer are numbers of enum nj_tls_alert, for
 * the alert that ends the connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tls/aead.h"
#include "tls/alert.h"
#include "tls/key_schedule.h"

#define NJ_TLS_HEADER_BYTES     5u
#define NJ_TLS_CONTENT_MAX      16384u                     /* RFC 8446 5.1 */
#define NJ_TLS_INNER_MAX        (NJ_TLS_CONTENT_MAX + 1)   /* with type and padding, 5.4 */
#define NJ_TLS_CIPHERTEXT_MAX   (NJ_TLS_CONTENT_MAX + 256) /* 5.2 */
#define NJ_TLS_RECORD_BYTES_MAX (NJ_TLS_HEADER_BYTES + NJ_TLS_CIPHERTEXT_MAX)
/* What a record of ours adds to its content: header, type and tag. No padding. */
#define NJ_TLS_RECORD_OVERHEAD  (NJ_TLS_HEADER_BYTES + 1 + NJ_TLS_TAG_BYTES)
/* Room into which each record can be opened. */
#define NJ_TLS_OPEN_ROOM        (NJ_TLS_CIPHERTEXT_MAX - NJ_TLS_TAG_BYTES)

/* Records that one key of AES-GCM may seal: 2^24.5 (RFC 8446 5.5). ChaCha20-Poly1305 is limited by
 * the record number alone. */
#define NJ_TLS_GCM_RECORDS_MAX 23726566ull
/* From this many on the sender's key has to be updated. It leaves 6.9 million records. */
#define NJ_TLS_GCM_UPDATE_AT   (1ull << 24)

/* Pieces of input and of output. Empty ones are allowed. */
struct nj_tls_src {
    const uint8_t *p;
    uint32_t n_bytes;
};

struct nj_tls_dst {
    uint8_t *p;
    uint32_t n_bytes;
};

/* Reasons why nothing usable was written. */
enum nj_tls_refusal {
    NJ_TLS_NO_ROOM = -1,      /* the output is too small: nothing was done */
    NJ_TLS_TOO_LONG = -2,     /* more content than the limit: nothing was done */
    NJ_TLS_KEY_USED_UP = -3,  /* the key has sealed as many records as it may: nothing was done */
    NJ_TLS_CLOSED = -4,       /* this direction has ended: nothing was done */
    NJ_TLS_ENGINE_FAILED = -5 /* OpenSSL failed: the output must not be sent, the connection ends */
};

/*
 * Bytes of the record that begins at `p`, including its header; `n_bytes` are there. Returns 0:
 * more bytes are needed; negative: the alert with which to end the connection, as -alert.
 * NJ_TLS_UNEXPECTED_MESSAGE: none of the types 20 to 23, which the first byte tells.
 * NJ_TLS_RECORD_OVERFLOW: more than 2^14 + 256 bytes of ciphertext, or 2^14 of a plaintext record.
 * legacy_record_version is ignored (RFC 8446 5.1).
 */
int nj_tls_record_size(const uint8_t *p, uint32_t n_bytes);

#define NJ_TLS_PLAIN_ALERT_BYTES (NJ_TLS_HEADER_BYTES + 2)
/* Writes a record with a fatal alert, not encrypted: for a handshake before its keys (6.2). */
void nj_tls_plain_alert(enum nj_tls_alert alert, uint8_t out[NJ_TLS_PLAIN_ALERT_BYTES]);

/* Whether the key has sealed, or opened, so many records that it has to be updated (RFC 8446 5.5).
 */
bool nj_tls_needs_key_update(const struct nj_tls_keys *k);

/*
 * Seal one record: the content is the bytes of all `src`, at most NJ_TLS_CONTENT_MAX. It is written
 * to the beginning of the pieces of `dst`, which do not overlap those of `src`. `expanded` is a
 * cache (nj_tls_expand()). The record number is used up before the first byte is written.
 * Returns the bytes of the record, NJ_TLS_RECORD_OVERHEAD more than the content, or an enum
 * nj_tls_refusal.
 */
int nj_tls_record_seal(struct nj_tls_aead *a, struct nj_tls_keys *k,
                       struct nj_tls_expanded *expanded, enum nj_tls_content_type type,
                       const struct nj_tls_src *src, uint32_t n_src, const struct nj_tls_dst *dst,
                       uint32_t n_dst);

struct nj_tls_opened {
    uint32_t n_bytes; /* of content at the beginning of the output */
    uint8_t type;     /* enum nj_tls_content_type, but not NJ_TLS_CHANGE_CIPHER_SPEC */
};

/*
 * Open one record, which the pieces of `src` hold exactly, as nj_tls_record_size() tells its size.
 * `out` has room for the ciphertext without the tag (NJ_TLS_OPEN_ROOM is always enough). It does
 * not overlap `src`, except that it may be the ciphertext itself, src[0].p + NJ_TLS_HEADER_BYTES,
 * if there is one piece.
 *
 * Returns 0, or the alert with which to end the connection; then `out` is zeros as far as it was
 * written, and *opened is undefined. NJ_TLS_BAD_RECORD_MAC: not authentic, or too short to be.
 * NJ_TLS_RECORD_OVERFLOW: more than 2^14 bytes of content and padding. NJ_TLS_UNEXPECTED_MESSAGE:
 * the record is not of type application_data, has no inner type, or one that is not allowed (RFC
 * 8446 5, 5.4). NJ_TLS_INTERNAL_ERROR: OpenSSL failed, or `src` or `n_room` are not as said above.
 */
int nj_tls_record_open(struct nj_tls_aead *a, struct nj_tls_keys *k,
                       struct nj_tls_expanded *expanded, const struct nj_tls_src *src,
                       uint32_t n_src, uint8_t *out, uint32_t n_room, struct nj_tls_opened *opened);
