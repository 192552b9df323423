/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPACK state shared by all connections of a context (RFC 7541): caches, tables, and scratch memory
 * for the decoded strings of the current header block.
 */
#include "h2/hpack/hpack_internal.h"

/* Minimum size of a chunk. 128 KiB of Huffman code decode to 205 KiB, which is 13 chunks. */
#define CHUNK_BYTES (16u * 1024u - 64u)

static void scratch_rewind(struct nj__hpack_shared *shared)
{
    shared->scratch = shared->own_scratch;
    shared->scratch_end = shared->own_scratch + sizeof shared->own_scratch;
}

struct nj__hpack_shared *nj__hpack_shared_new(struct nj_alloc *alloc, const struct nj_hash_key *key)
{
    size_t before = alloc->bytes_used;
    struct nj__hpack_shared *shared = nj_alloc_zero(alloc, sizeof *shared);
    if (!shared)
        return NULL;
    shared->alloc = alloc;
    shared->cache_key = nj_mix_key_derive(key, "fields");
    shared->n_bytes = alloc->bytes_used - before;
    nj__huffman_init(&shared->huffman);
    nj__hpack_response_names_init(shared->row_by_bucket);
    scratch_rewind(shared);
    return shared;
}

void nj__hpack_scratch_reset(struct nj__hpack_shared *shared)
{
    while (shared->chunks) {
        struct nj__hpack_scratch_chunk *next = shared->chunks->next;
        nj_alloc_free(shared->alloc, shared->chunks);
        shared->chunks = next;
    }
    while (shared->retired) {
        struct nj__hpack_store *next = shared->retired->next;
        nj_alloc_free(shared->alloc, shared->retired);
        shared->retired = next;
    }
    scratch_rewind(shared);
}

size_t nj__hpack_shared_free_scratch(struct nj__hpack_shared *shared)
{
    nj__hpack_scratch_reset(shared);
    return shared->n_bytes;
}

void nj__hpack_shared_free(struct nj__hpack_shared *shared)
{
    if (!shared)
        return;
    nj__hpack_scratch_reset(shared);
    nj__hpack_field_cache_free(shared);
    nj_alloc_free(shared->alloc, shared);
}

uint8_t *nj__hpack_scratch_reserve(struct nj__hpack_shared *shared, size_t n_max)
{
    if (nj_likely((size_t)(shared->scratch_end - shared->scratch) >= n_max))
        return shared->scratch;
    size_t n = n_max > CHUNK_BYTES ? n_max : CHUNK_BYTES;
    struct nj__hpack_scratch_chunk *chunk = nj_alloc_take(shared->alloc, sizeof *chunk + n);
    if (!chunk)
        return NULL;
    chunk->next = shared->chunks;
    shared->chunks = chunk;
    shared->scratch = chunk->bytes;
    shared->scratch_end = chunk->bytes + n;
    return shared->scratch;
}
