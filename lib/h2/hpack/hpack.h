/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPACK, both ways (RFC 7541), for the engine of this folder.
 *
 * Made for many connections on one core: what a connection keeps is small and lies together, and
 * what connections have in common (Huffman codes, the fields of our responses) is kept once, in the
 * core. A connection at rest that has said nothing holds neither table.
 *
 * All calls on one nj__hpack_shared and on what goes with it belong to one lcore.
 */
#ifndef NJ_H2_HPACK_HPACK_H
#define NJ_H2_HPACK_HPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/hash.h"
#include "base/request_head.h"

struct nj__h2_alloc;
struct nj__hpack_shared; /* one per core: see the end */

#define NJ__HPACK_TABLE_BYTES 4096u /* of either dynamic table: the default of RFC 9113 6.5.2 */

/* ---- names the engine knows ---- */

/* Names with a meaning for RFC 9113 8.2 and 8.3; all others are NJ__TOKEN_OTHER. */
enum nj__token {
    NJ__TOKEN_OTHER,
    NJ__TOKEN_METHOD,
    NJ__TOKEN_SCHEME,
    NJ__TOKEN_AUTHORITY,
    NJ__TOKEN_PATH,
    NJ__TOKEN_STATUS,       /* and other pseudo fields that no request may have: */
    NJ__TOKEN_PSEUDO_OTHER, /* ":protocol" among them */
    NJ__TOKEN_HOST,
    NJ__TOKEN_CONTENT_LENGTH,
    NJ__TOKEN_TE,
    NJ__TOKEN_PRIORITY, /* RFC 9218 */
    NJ__TOKEN_EXPECT,   /* RFC 9110 10.1.1 */
    /* connection, proxy-connection, keep-alive, transfer-encoding, upgrade */
    NJ__TOKEN_OF_CONNECTION,
    NJ__TOKEN_KNOWN /* and above: plus enum nj_header */
};

/* ---- in ---- */

struct nj__hpack_field {
    /* Live until the next nj__hpack_block() of any connection of the core, or until `data` ends:
     * what was neither compressed nor encoded is shown where it stands. */
    struct nj_str name, value;
    uint8_t token; /* enum nj__token */
    /* By RFC 9113 8.2.1: a name with an octet it must not have, or a value with a control character
     * other than HTAB, or with blank at an end. For the pseudo fields of requests and host: a value
     * that is empty or has what their syntax does not (RFC 3986 3, RFC 9110 9.1). Found once for a
     * field of the dynamic table, when it gets there. */
    bool malformed;
};

struct nj__hpack_in; /* one connection's */

/* NULL when memory ran out. */
struct nj__hpack_in *nj__hpack_in_new(struct nj__hpack_shared *shared);
void nj__hpack_in_free(struct nj__hpack_in *in);

/* A whole header block, HEADERS and its CONTINUATIONs joined. `data` lives as long as its strings
 * are looked at. One block at a time is decoded on a core. */
void nj__hpack_block(struct nj__hpack_in *in, const uint8_t *data, size_t n_bytes);
/*
 * Its next field. 1; 0 behind the last; BROKEN when the block can't be decoded, which ends the
 * connection with COMPRESSION_ERROR (RFC 9113 4.3); or NO_MEMORY. After these two nothing may be
 * asked any more.
 */
enum { NJ__HPACK_BROKEN = -1, NJ__HPACK_NO_MEMORY = -2 };
int nj__hpack_next(struct nj__hpack_in *in, struct nj__hpack_field *field);

/* ---- out ---- */

struct nj__hpack_out; /* one connection's */

struct nj__hpack_out *nj__hpack_out_new(struct nj__hpack_shared *shared);
void nj__hpack_out_free(struct nj__hpack_out *out);

/* The peer's SETTINGS_HEADER_TABLE_SIZE: the next block begins with the update that RFC 7541 4.2
 * asks for. */
void nj__hpack_out_limit(struct nj__hpack_out *out, uint32_t n_bytes);

/* Bytes that the block of these fields takes at most, with its status (0: trailers, none). */
size_t nj__hpack_bound(const struct nj_field *fields, size_t n_fields);
/* The block, at `to`; returns its length. Fields that change from response to response (etag,
 * content-length, set-cookie and the like) stay out of the table. With a `stamp` that is not 0 it
 * is noted how it was encoded, for nj__hpack_again(); status and fields are the same each time. */
size_t nj__hpack_encode(struct nj__hpack_out *out, uint8_t *to, uint16_t status,
                        const struct nj_field *fields, size_t n_fields, uint64_t stamp);
/* The block with that stamp, of NJ__HPACK_AGAIN_MAX bytes at most, whichever connection it was
 * encoded for; up to so many are written. 0: it was not noted, or something of it has to get into
 * this peer's table, and nj__hpack_encode() is to be asked. */
#define NJ__HPACK_AGAIN_MAX 120u
size_t nj__hpack_again(const struct nj__hpack_out *out, uint8_t *to, uint64_t stamp);

/* ---- of the core ---- */

struct nj__hpack_shared;

/* `key`: secret, or peers can choose which fields push each other out. */
struct nj__hpack_shared *nj__hpack_shared_new(struct nj__h2_alloc *alloc,
                                              const struct nj_hash_key *key);
/* When both tables of every connection were freed. */
void nj__hpack_shared_free(struct nj__hpack_shared *shared);
/* No string of a block is looked at any more: give back what they took. Returns the bytes of
 * `alloc` that are left with the core: none of them is a connection's. */
size_t nj__hpack_shared_rest(struct nj__hpack_shared *shared);

#endif
