/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPACK decoder and encoder (RFC 7541) for lib/h2.
 *
 * Designed for many connections per lcore: the state of a connection is small and contiguous.
 * Huffman tables and the fields of our responses are shared by all connections. A connection
 * allocates its decoder and encoder at first use.
 *
 * One lcore makes all calls on an nj__hpack_shared and its decoders and encoders. Lengths are
 * bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/header_field.h"
#include "base/keyed_hash.h"

struct nj_alloc;
struct nj__hpack_shared; /* one per context: see the end */

#define NJ__HPACK_TABLE_BYTES 4096u /* of either dynamic table: the default of RFC 9113 6.5.2 */

/* ---- tokens of field names ---- */

/* Field names with a meaning in RFC 9113 8.2 and 8.3; all others are NJ__TOKEN_OTHER. */
enum nj__token {
    NJ__TOKEN_OTHER,
    NJ__TOKEN_METHOD,
    NJ__TOKEN_SCHEME,
    NJ__TOKEN_AUTHORITY,
    NJ__TOKEN_PATH,
    NJ__TOKEN_STATUS,       /* not allowed in requests */
    NJ__TOKEN_PSEUDO_OTHER, /* likewise; includes ":protocol" */
    NJ__TOKEN_HOST,
    NJ__TOKEN_CONTENT_LENGTH,
    NJ__TOKEN_TE,
    NJ__TOKEN_PRIORITY, /* RFC 9218 */
    NJ__TOKEN_EXPECT,   /* RFC 9110 10.1.1 */
    /* connection, proxy-connection, keep-alive, transfer-encoding, upgrade */
    NJ__TOKEN_CONN_SPECIFIC,
    NJ__TOKEN_HEADER_BASE /* and above: plus enum nj_header */
};

/* ---- decoder ---- */

struct nj__hpack_field {
    /* Valid until the next nj__hpack_decode_begin() of any connection of the context, and no longer
     * than `data`: literal strings without Huffman code refer to it. */
    struct nj_str name, value;
    uint8_t token; /* enum nj__token */
    /* By RFC 9113 8.2.1: the name has a forbidden octet, or the value has a control character other
     * than HTAB, or begins or ends with a blank. Also a request pseudo-header or host whose value
     * is empty or violates its syntax (RFC 3986 3, RFC 9110 9.1). Fields of the dynamic table are
     * checked once, on insertion. */
    bool malformed;
};

struct nj__hpack_decoder; /* one per connection */

/* NULL: out of memory. */
struct nj__hpack_decoder *nj__hpack_decoder_new(struct nj__hpack_shared *shared);
void nj__hpack_decoder_free(struct nj__hpack_decoder *in);

/* Begin to decode a complete header block, the joined fragments of HEADERS and CONTINUATION. `data`
 * must outlive the use of the decoded strings. A context decodes one block at a time. */
void nj__hpack_decode_begin(struct nj__hpack_decoder *in, const uint8_t *data, size_t n_bytes);
/*
 * Decode the next field. Returns 1; 0 after the last field; BROKEN if the block can't be decoded,
 * a connection error COMPRESSION_ERROR (RFC 9113 4.3); or NO_MEMORY. After an error the decoder may
 * only be freed.
 */
enum { NJ__HPACK_BROKEN = -1, NJ__HPACK_NO_MEMORY = -2 };
int nj__hpack_decode_next(struct nj__hpack_decoder *in, struct nj__hpack_field *field);

/* ---- encoder ---- */

struct nj__hpack_encoder; /* one per connection */

struct nj__hpack_encoder *nj__hpack_encoder_new(struct nj__hpack_shared *shared);
void nj__hpack_encoder_free(struct nj__hpack_encoder *out);

/* Apply the peer's SETTINGS_HEADER_TABLE_SIZE. The next block begins with the size update required
 * by RFC 7541 4.2. */
void nj__hpack_encoder_limit(struct nj__hpack_encoder *out, uint32_t n_bytes);

/* Upper bound of the encoded bytes of these fields and :status. */
size_t nj__hpack_bound(const struct nj_field *fields, size_t n_fields);
/* Encode a block at `to` and return its length. `status` 0: trailers, without :status. Fields that
 * differ between responses (etag, content-length, set-cookie and similar) are not indexed. With a
 * `stamp` other than 0 the block is cached for nj__hpack_put_cached_block(); equal stamps require
 * equal status and fields. */
size_t nj__hpack_encode(struct nj__hpack_encoder *out, uint8_t *to, uint16_t status,
                        const struct nj_field *fields, size_t n_fields, uint64_t stamp);
/* Write the cached block of a stamp, encoded for any connection, and return its length. Up to
 * NJ__HPACK_CACHED_BLOCK_MAX bytes at `to` may be written. 0: the block is not cached, or one of
 * its fields is missing in this peer's table; the caller then uses nj__hpack_encode(). */
#define NJ__HPACK_CACHED_BLOCK_MAX 120u
size_t nj__hpack_put_cached_block(const struct nj__hpack_encoder *out, uint8_t *to, uint64_t stamp);

/* ---- shared by the connections of a context ---- */

struct nj__hpack_shared;

/* `key` is secret; otherwise peers could choose fields that evict each other. */
struct nj__hpack_shared *nj__hpack_shared_new(struct nj_alloc *alloc,
                                              const struct nj_hash_key *key);
/* All decoders and encoders must have been freed. */
void nj__hpack_shared_free(struct nj__hpack_shared *shared);
/* Free the memory of decoded strings, which become invalid. Returns the bytes of `alloc` that the
 * shared state itself uses. */
size_t nj__hpack_shared_free_scratch(struct nj__hpack_shared *shared);
