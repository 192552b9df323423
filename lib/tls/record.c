/* SPDX-License-Identifier: BSD-3-Clause */
/* Records (RFC 8446 5): one pass over the pieces, through the AEAD's operation. */
#include "tls/record.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/big_endian.h"
#include "base/compiler.h"
#include "base/types.h"
#include "tls/record_internal.h"

#define LEGACY_VERSION 0x0303u /* RFC 8446 5.1 */

uint64_t nj__tls_src_bytes(const struct nj_tls_src *src, uint32_t n_src)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < n_src; i++)
        n += src[i].n_bytes;
    return n;
}

uint64_t nj__tls_dst_bytes(const struct nj_tls_dst *dst, uint32_t n_dst)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < n_dst; i++)
        n += dst[i].n_bytes;
    return n;
}

int nj_tls_record_size(const uint8_t *p, uint32_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    if (p[0] < NJ_TLS_CHANGE_CIPHER_SPEC || p[0] > NJ_TLS_APPLICATION_DATA)
        return -NJ_TLS_UNEXPECTED_MESSAGE;
    if (n_bytes < NJ_TLS_HEADER_BYTES)
        return 0;
    uint32_t n = nj_get_be16(p + 3);
    uint32_t n_max = p[0] == NJ_TLS_APPLICATION_DATA ? NJ_TLS_CIPHERTEXT_MAX : NJ_TLS_CONTENT_MAX;
    return n > n_max ? -NJ_TLS_RECORD_OVERFLOW : (int)(NJ_TLS_HEADER_BYTES + n);
}

void nj_tls_plain_alert(enum nj_tls_alert alert, uint8_t out[NJ_TLS_PLAIN_ALERT_BYTES])
{
    const uint8_t record[NJ_TLS_PLAIN_ALERT_BYTES] = {NJ_TLS_ALERT,  3, 3, 0, 2, NJ_TLS_LEVEL_FATAL,
                                                      (uint8_t)alert};

    memcpy(out, record, sizeof record);
}

static bool is_gcm(const struct nj_tls_keys *k)
{
    return k->cipher != NJ_TLS_CHACHA20_POLY1305_SHA256;
}

bool nj_tls_needs_key_update(const struct nj_tls_keys *k)
{
    return is_gcm(k) && k->record_number >= NJ_TLS_GCM_UPDATE_AT;
}

/* A nonce and the additional data are each written with one store of 16 bytes, from which the CPU
 * forwards to the load of 16 bytes that follows at once. Smaller stores would make it wait for each
 * about 10 ns. */
typedef uint64_t two_words __attribute__((vector_size(16)));

#define WORDS_BYTES 16u
_Static_assert(offsetof(struct nj_tls_keys, iv) + WORDS_BYTES <= sizeof(struct nj_tls_keys),
               "bytes after the IV that may be read, too");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words below");

/* RFC 8446 5.3: the record number, padded on the left, XOR the IV. */
static void make_nonce(uint8_t nonce[WORDS_BYTES], const struct nj_tls_keys *k,
                       uint64_t record_number)
{
    const uint64_t be = __builtin_bswap64(record_number);
    const two_words number = {be << 32, be >> 32};
    two_words v;

    memcpy(&v, k->iv, sizeof v);
    v ^= number;
    memcpy(nonce, &v, sizeof v);
}

/* The additional data (RFC 8446 5.2), a header. */
static void make_aad(uint8_t aad[WORDS_BYTES], const uint8_t *header)
{
    const uint64_t be = (uint64_t)header[4] << 32 | (uint64_t)header[3] << 24;
    const two_words v = {be | (uint32_t)header[2] << 16 | (uint32_t)header[1] << 8 | header[0], 0};

    memcpy(aad, &v, sizeof v);
}

/* The contiguous bytes at the position, at least 1; there are some. */
static const uint8_t *next_src(struct nj__tls_reader *r, uint32_t *n)
{
    while (r->at == r->src->n_bytes) {
        NJ_ASSERT(r->n_src > 1);
        r->src++;
        r->n_src--;
        r->at = 0;
    }
    *n = r->src->n_bytes - r->at;
    return r->src->p + r->at;
}

static uint8_t *next_dst(struct nj__tls_writer *w, uint32_t *n)
{
    while (w->at == w->dst->n_bytes) {
        NJ_ASSERT(w->n_dst > 1);
        w->dst++;
        w->n_dst--;
        w->at = 0;
    }
    *n = w->dst->n_bytes - w->at;
    return w->dst->p + w->at;
}

static void read_bytes(struct nj__tls_reader *r, uint8_t *to, uint32_t n)
{
    for (uint32_t n_here; n > 0; to += n_here, n -= n_here, r->at += n_here) {
        const uint8_t *p = next_src(r, &n_here);
        n_here = nj_min_u32(n, n_here);
        memcpy(to, p, n_here);
    }
}

static void write_bytes(struct nj__tls_writer *w, const uint8_t *from, uint32_t n)
{
    for (uint32_t n_here; n > 0; from += n_here, n -= n_here, w->at += n_here) {
        uint8_t *p = next_dst(w, &n_here);
        n_here = nj_min_u32(n, n_here);
        memcpy(p, from, n_here);
    }
}

/* Encrypt `n` contiguous bytes. */
static void encrypt(struct nj_tls_aead_op *op, struct nj__tls_writer *w, const uint8_t *from,
                    uint32_t n)
{
    for (uint32_t n_here; n > 0; from += n_here, n -= n_here, w->at += n_here) {
        uint8_t *p = next_dst(w, &n_here);
        n_here = nj_min_u32(n, n_here);
        nj_tls_aead_update(op, p, from, n_here);
    }
}

int nj__tls_seal_next(struct nj_tls_aead *a, struct nj_tls_keys *k, struct nj_tls_expanded *e,
                      enum nj_tls_content_type type, struct nj__tls_reader *in, uint32_t n_content,
                      struct nj__tls_writer *out)
{
    const uint32_t n_ciphertext = n_content + 1 + NJ_TLS_TAG_BYTES;
    const uint8_t inner_type = (uint8_t)type;
    const uint8_t header[NJ_TLS_HEADER_BYTES] = {
        NJ_TLS_APPLICATION_DATA, LEGACY_VERSION >> 8, LEGACY_VERSION & 0xff,
        (uint8_t)(n_ciphertext >> 8), (uint8_t)n_ciphertext};
    uint8_t aad[WORDS_BYTES], nonce[WORDS_BYTES], tag[NJ_TLS_TAG_BYTES];
    struct nj_tls_aead_op op;

    if (k->record_number >= (is_gcm(k) ? NJ_TLS_GCM_RECORDS_MAX : UINT64_MAX))
        return NJ_TLS_KEY_USED_UP;
    if (!nj_tls_expand(a, k->cipher, k->key, e))
        return NJ_TLS_ENGINE_FAILED;
    make_nonce(nonce, k, k->record_number++);
    make_aad(aad, header);
    nj_tls_aead_begin(&op, a, e, true, nonce, aad, NJ_TLS_HEADER_BYTES);
    write_bytes(out, header, sizeof header);
    for (uint32_t n_left = n_content, n_here; n_left > 0; n_left -= n_here, in->at += n_here) {
        const uint8_t *p = next_src(in, &n_here);
        n_here = nj_min_u32(n_left, n_here);
        encrypt(&op, out, p, n_here);
    }
    encrypt(&op, out, &inner_type, 1);
    if (!nj_tls_aead_end_seal(&op, tag))
        return NJ_TLS_ENGINE_FAILED;
    write_bytes(out, tag, sizeof tag);
    return (int)(NJ_TLS_HEADER_BYTES + n_ciphertext);
}

int nj_tls_record_seal(struct nj_tls_aead *a, struct nj_tls_keys *k, struct nj_tls_expanded *e,
                       enum nj_tls_content_type type, const struct nj_tls_src *src, uint32_t n_src,
                       const struct nj_tls_dst *dst, uint32_t n_dst)
{
    uint64_t n_content = nj__tls_src_bytes(src, n_src);
    struct nj__tls_reader in = {src, n_src, 0};
    struct nj__tls_writer out = {dst, n_dst, 0};

    if (n_content > NJ_TLS_CONTENT_MAX)
        return NJ_TLS_TOO_LONG;
    if (nj__tls_dst_bytes(dst, n_dst) < n_content + NJ_TLS_RECORD_OVERHEAD)
        return NJ_TLS_NO_ROOM;
    return nj__tls_seal_next(a, k, e, type, &in, (uint32_t)n_content, &out);
}

/* Bytes before the zeros at the end. A record may be all padding: eight are looked at at once. */
static uint32_t without_padding(const uint8_t *p, uint32_t n)
{
    for (uint64_t v; n >= 8; n -= 8) {
        memcpy(&v, p + n - 8, 8);
        if (v != 0)
            break;
    }
    while (n > 0 && p[n - 1] == 0)
        n--;
    return n;
}

/* Decrypt the record at `in`, after its header. Returns 0 or an alert. */
static int decrypt(struct nj_tls_aead *a, const struct nj_tls_keys *k,
                   const struct nj_tls_expanded *e, uint64_t record_number, const uint8_t *header,
                   struct nj__tls_reader *in, uint8_t *out, uint32_t n_inner)
{
    uint8_t aad[WORDS_BYTES], nonce[WORDS_BYTES], tag[NJ_TLS_TAG_BYTES];
    struct nj_tls_aead_op op;

    make_nonce(nonce, k, record_number);
    make_aad(aad, header);
    nj_tls_aead_begin(&op, a, e, false, nonce, aad, NJ_TLS_HEADER_BYTES);
    for (uint32_t at = 0, n_here; at < n_inner; at += n_here, in->at += n_here) {
        const uint8_t *p = next_src(in, &n_here);
        n_here = nj_min_u32(n_inner - at, n_here);
        nj_tls_aead_update(&op, out + at, p, n_here);
    }
    read_bytes(in, tag, sizeof tag);
    if (nj_likely(nj_tls_aead_end_open(&op, tag)))
        return 0;
    memset(out, 0, n_inner);
    return NJ_TLS_BAD_RECORD_MAC;
}

/* RFC 8446 5.4: what is in the plaintext. */
static int read_inner(const uint8_t *p, uint32_t n_inner, struct nj_tls_opened *opened)
{
    if (n_inner > NJ_TLS_INNER_MAX)
        return NJ_TLS_RECORD_OVERFLOW;
    uint32_t n = without_padding(p, n_inner);
    if (n == 0)
        return NJ_TLS_UNEXPECTED_MESSAGE;
    opened->type = p[n - 1];
    opened->n_bytes = n - 1;
    /* A ChangeCipherSpec is never protected (RFC 8446 5). */
    return opened->type <= NJ_TLS_CHANGE_CIPHER_SPEC || opened->type > NJ_TLS_APPLICATION_DATA
               ? NJ_TLS_UNEXPECTED_MESSAGE
               : 0;
}

int nj_tls_record_open(struct nj_tls_aead *a, struct nj_tls_keys *k, struct nj_tls_expanded *e,
                       const struct nj_tls_src *src, uint32_t n_src, uint8_t *out, uint32_t n_room,
                       struct nj_tls_opened *opened)
{
    uint64_t n_all = nj__tls_src_bytes(src, n_src);
    struct nj__tls_reader in = {src, n_src, 0};
    uint8_t header[NJ_TLS_HEADER_BYTES];

    if (n_all < NJ_TLS_HEADER_BYTES)
        return NJ_TLS_INTERNAL_ERROR;
    read_bytes(&in, header, sizeof header);
    int size = nj_tls_record_size(header, sizeof header);
    if (size < 0)
        return -size;
    if (header[0] != NJ_TLS_APPLICATION_DATA)
        return NJ_TLS_UNEXPECTED_MESSAGE;
    if ((uint64_t)size != n_all)
        return NJ_TLS_INTERNAL_ERROR;
    if ((uint32_t)size < NJ_TLS_HEADER_BYTES + NJ_TLS_TAG_BYTES)
        return NJ_TLS_BAD_RECORD_MAC;
    uint32_t n_inner = (uint32_t)size - NJ_TLS_HEADER_BYTES - NJ_TLS_TAG_BYTES;
    if (n_inner > n_room || k->record_number == UINT64_MAX ||
        !nj_tls_expand(a, k->cipher, k->key, e))
        return NJ_TLS_INTERNAL_ERROR;
    int alert = decrypt(a, k, e, k->record_number++, header, &in, out, n_inner);
    if (alert == 0 && (alert = read_inner(out, n_inner, opened)) != 0)
        memset(out, 0, n_inner);
    return alert;
}
