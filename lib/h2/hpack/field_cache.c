/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set-associative cache of response fields that are in the dynamic tables of peers, each with
 * its encoding as a literal with incremental indexing (RFC 7541 6.2.1). A lookup compares the last
 * hit by the same name, then the eight entries of the set that a keyed hash selects.
 */
#include "h2/hpack/hpack_internal.h"

#include <string.h>

#include "base/assert.h"

/* An empty entry of the set, or one whose field is in no peer's table. */
static uint32_t choose_place(const struct nj__hpack_shared *shared, uint32_t hash)
{
    uint32_t from = nj__hpack_hash_to_cache_set(hash), idle = NJ__HPACK_NOT_CACHED;
    for (uint32_t i = from; i < from + NJ__HPACK_CACHE_WAYS; i++) {
        if (shared->cache_tags[i] == 0)
            return i;
        if (shared->cached[i].n_holders == 0)
            idle = i;
    }
    return idle;
}

static uint8_t *put_string(const struct nj__huffman *h, uint8_t *to, struct nj_str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t n = nj__huffman_length(p, s.n_bytes);
    if (n < s.n_bytes)
        return nj__huffman_encode(h, nj__hpack_put_number(to, 0x80, 7, (uint32_t)n), p, s.n_bytes);
    to = nj__hpack_put_number(to, 0, 7, s.n_bytes);
    memcpy(to, p, s.n_bytes);
    return to + s.n_bytes;
}

/* RFC 7541 6.2.1, with Huffman code where that is shorter. */
static uint16_t encode_insert(const struct nj__hpack_shared *shared, uint8_t *to, unsigned row,
                              const struct nj_field *field)
{
    uint8_t *at = to, index = nj__hpack_names[row].index;
    *at++ = 0x40 | index;
    if (!index)
        at = put_string(&shared->huffman, at, field->name);
    at = put_string(&shared->huffman, at, field->value);
    return (uint16_t)(at - to);
}

uint32_t nj__hpack_field_cache_add(struct nj__hpack_shared *shared, uint32_t hash, unsigned row,
                                   const struct nj_field *field)
{
    uint8_t encoded[NJ__HPACK_CACHE_FIELD_MAX]; /* at most 5 bytes more than name and value */
    uint32_t i = choose_place(shared, hash), n_value = field->value.n_bytes,
             n_name = field->name.n_bytes;
    NJ_ASSERT(n_value + n_name + NJ__HPACK_ENTRY_BYTES <= NJ__HPACK_CACHE_FIELD_MAX);
    if (i == NJ__HPACK_NOT_CACHED)
        return i;
    uint16_t n_encoded = encode_insert(shared, encoded, row, field);
    size_t before = shared->alloc->bytes_used;
    uint8_t *bytes = nj_alloc_take(shared->alloc, n_encoded + n_value + n_name);
    if (!bytes)
        return NJ__HPACK_NOT_CACHED;
    nj_alloc_free(shared->alloc, shared->cached[i].bytes);
    shared->n_bytes += shared->alloc->bytes_used - before;
    memcpy(bytes, encoded, n_encoded);
    memcpy(bytes + n_encoded, field->value.p, n_value);
    memcpy(bytes + n_encoded + n_value, field->name.p, n_name);
    shared->n_replaced += shared->cache_tags[i] != 0;
    shared->cache_tags[i] = hash;
    shared->cached[i] = (struct nj__hpack_cached_field){
        .bytes = bytes,
        .n_encoded = n_encoded,
        .n_value = (uint16_t)n_value,
        .n_name = (uint16_t)n_name,
        .size = (uint16_t)(n_value + n_name + NJ__HPACK_ENTRY_BYTES),
        .row = (uint8_t)row};
    return i;
}

void nj__hpack_field_cache_free(struct nj__hpack_shared *shared)
{
    for (uint32_t i = 0; i < NJ__HPACK_CACHE_FIELDS; i++) {
        NJ_ASSERT(shared->cached[i].n_holders == 0);
        nj_alloc_free(shared->alloc, shared->cached[i].bytes);
    }
}
