/* SPDX-License-Identifier: BSD-3-Clause */
/* Header blocks into our decoder and nghttp2's at the same time: both see the same fields, or both
 * an error. */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "h2/hpack/hpack_internal.h"

static const struct nj_hash_key hpack_key = {{3, 1, 4}};

#define BOTH_SHOWN 512 /* strings that are looked at again at the end of the block */

struct both_string {
    const char *p;
    uint32_t n_bytes, sum;
};

struct both {
    struct nj__hpack_decoder *in;
    nghttp2_hd_inflater *inflater;
    struct both_string shown[BOTH_SHOWN];
    unsigned n_shown;
    unsigned n_fields; /* of the last block */
    bool broken;       /* the connection would be over */
};

/* A pair of decoders. False: out of memory. */
static inline bool both_init(struct both *b, struct nj__hpack_shared *shared)
{
    memset(b, 0, sizeof *b);
    b->in = nj__hpack_decoder_new(shared);
    NJ_CHECK(nghttp2_hd_inflate_new(&b->inflater) == 0);
    return b->in != NULL;
}

static inline void both_fini(struct both *b)
{
    nj__hpack_decoder_free(b->in);
    nghttp2_hd_inflate_del(b->inflater);
}

static inline uint32_t both_sum(const char *p, uint32_t n_bytes)
{
    uint32_t sum = n_bytes;
    for (uint32_t i = 0; i < n_bytes; i++)
        sum = sum * 31 + (uint8_t)p[i];
    return sum;
}

static inline void both_show(struct both *b, struct nj_str s)
{
    if (b->n_shown < BOTH_SHOWN)
        b->shown[b->n_shown++] = (struct both_string){s.p, s.n_bytes, both_sum(s.p, s.n_bytes)};
}

static inline bool both_same(struct nj_str s, const uint8_t *p, size_t n)
{
    return s.n_bytes == n && (n == 0 || memcmp(s.p, p, n) == 0);
}

static inline bool both_value_ok(const struct nj__hpack_field *f)
{
    const uint8_t *p = (const uint8_t *)f->value.p;
    size_t n = f->value.n_bytes;
    switch (f->token) {
    case NJ__TOKEN_METHOD:
        return nghttp2_check_method(p, n);
    case NJ__TOKEN_PATH:
        return n > 0 && nghttp2_check_path(p, n);
    case NJ__TOKEN_AUTHORITY:
    case NJ__TOKEN_HOST:
        return n > 0 && nghttp2_check_authority(p, n);
    case NJ__TOKEN_SCHEME:
        for (size_t i = 0; i < n; i++) {
            bool letter = (p[i] | 32) >= 'a' && (p[i] | 32) <= 'z';
            if (!letter && (i == 0 || !strchr("0123456789+-.", p[i]) || p[i] == 0))
                return false;
        }
        return n > 0;
    default:
        return nghttp2_check_header_value_rfc9113(p, n);
    }
}

static inline void both_check_field(struct both *b, const struct nj__hpack_field *f)
{
    bool name_ok = nghttp2_check_header_name((const uint8_t *)f->name.p, f->name.n_bytes);
    if (f->token == NJ__TOKEN_PSEUDO_OTHER) /* no request may have them, well-formed or not */
        name_ok = nj__hpack_is_name_valid(f->name);
    NJ_CHECK(f->token == nj__hpack_token_of(f->name));
    NJ_CHECK(f->malformed == !(name_ok && both_value_ok(f)));
    NJ_CHECK(b->in->size <= b->in->limit);
    both_show(b, f->name);
    both_show(b, f->value);
}

/* nghttp2's next field: as nj__hpack_decode_next(). */
static inline int both_theirs(struct both *b, const uint8_t **at, const uint8_t *end,
                              nghttp2_nv *nv)
{
    for (;;) {
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(b->inflater, nv, &flags, *at, (size_t)(end - *at), 1);
        if (n < 0)
            return -1;
        *at += n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            return 1;
        if (flags & NGHTTP2_HD_INFLATE_FINAL) {
            nghttp2_hd_inflate_end_headers(b->inflater);
            return 0;
        }
    }
}

/* A block. Returns the last result of nj__hpack_decode_next(): 0, -1, or -2 when memory ran out. */
static inline int both_block(struct both *b, const uint8_t *data, size_t n_bytes)
{
    const uint8_t *at = data;
    struct nj__hpack_field f;
    nghttp2_nv nv;
    int rv;
    b->n_shown = b->n_fields = 0;
    nj__hpack_decode_begin(b->in, data, n_bytes);
    while ((rv = nj__hpack_decode_next(b->in, &f)) == 1) {
        NJ_CHECK(both_theirs(b, &at, data + n_bytes, &nv) == 1);
        NJ_CHECK(both_same(f.name, nv.name, nv.namelen));
        NJ_CHECK(both_same(f.value, nv.value, nv.valuelen));
        both_check_field(b, &f);
        b->n_fields++;
    }
    /* RFC 7541 4.2 has no use for a third update; nghttp2 lets it pass. */
    if (rv == 0 || (rv == -1 && b->in->n_updates < 3))
        NJ_CHECK(both_theirs(b, &at, data + n_bytes, &nv) == rv);
    for (unsigned i = 0; i < b->n_shown; i++)
        NJ_CHECK(both_sum(b->shown[i].p, b->shown[i].n_bytes) == b->shown[i].sum);
    b->broken = rv < 0;
    return rv;
}
