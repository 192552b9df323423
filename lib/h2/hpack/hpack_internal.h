/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types and functions shared by the files of lib/h2/hpack (RFC 7541) and their tests:
 *
 *   static_table.c           the static table
 *   field_syntax.c           syntax of field names and values
 *   field_name.c             tokens of field names, and how fields of responses are indexed
 *   huffman.c                the Huffman code of strings
 *   decoder_dynamic_table.c  the decoder's dynamic table of one connection
 *   shared_context.c         state shared by the connections of a context
 *   decoder.c                decoding of header blocks
 *   field_cache.c            cache of encoded response fields, for all connections of a context
 *   encoder.c                encoding of header blocks
 */
#pragma once

#include <string.h>

#include "base/compiler.h"
#include "h2/h2_internal.h"
#include "h2/hpack/hpack.h"
#include "h2/hpack/huffman.h"

#define NJ__HPACK_N_STATIC    61u /* RFC 7541 Appendix A: 1 .. 61 */
#define NJ__HPACK_ENTRY_BYTES 32u /* RFC 7541 4.1: overhead of an entry */

/* ---- static_table.c ---- */

extern const struct nj__hpack_field nj__hpack_static[NJ__HPACK_N_STATIC + 1];

/* ---- field_syntax.c ---- */

/* The name is valid (RFC 9113 8.2.1, RFC 9110 5.1); pseudo-header names are valid, too. */
bool nj__hpack_is_name_valid(struct nj_str name);
/* The value is valid for a field with this token. */
bool nj__hpack_is_value_valid(enum nj__token token, struct nj_str value);

/* ---- field_name.c ---- */

/* The token of a name: enum nj__token, or NJ__TOKEN_HEADER_BASE plus enum nj_header. */
uint8_t nj__hpack_token_of(struct nj_str name);

/* How a field of a response is encoded. */
enum nj__hpack_indexing {
    NJ__HPACK_INDEX_REPEATED, /* indexed when it is sent a second time on the same connection */
    NJ__HPACK_INDEX,          /* indexed */
    NJ__HPACK_INDEX_DATE,     /* date: indexed, and the previous value is never sent again */
    NJ__HPACK_NO_INDEX,       /* without indexing */
    NJ__HPACK_NEVER_INDEX,    /* never indexed, also by intermediaries (RFC 7541 7.1.3) */
};

struct nj__hpack_name {
    const char *name;
    uint8_t n_bytes;
    uint8_t index; /* in the static table, or 0 */
    uint8_t use;   /* enum nj__hpack_indexing */
};

/* Names of response fields. Row 0 is for all other names. */
extern const struct nj__hpack_name nj__hpack_names[];
#define NJ__HPACK_ROW_STATUS   1u  /* ":status", which is not looked up by name */
#define NJ__HPACK_NAME_BUCKETS 64u /* buckets of the lookup by name */

/* The bucket of a name: a perfect hash of the names in nj__hpack_names. */
static inline uint32_t nj__hpack_response_name_bucket(struct nj_str name)
{
    uint32_t first = (uint8_t)name.p[0], last = (uint8_t)name.p[name.n_bytes - 1];
    return (name.n_bytes + 28 * first + 14 * last) % NJ__HPACK_NAME_BUCKETS;
}

void nj__hpack_response_names_init(uint8_t row_by_bucket[NJ__HPACK_NAME_BUCKETS]);

static inline uint64_t nj__hpack_load64(const void *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static inline uint32_t nj__hpack_load32(const void *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

/* An inline memcmp() == 0 for short strings, where a call would cost more. */
static inline bool nj__hpack_bytes_equal(const void *a, const void *b, size_t n)
{
    const uint8_t *p = a, *q = b;
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8)
            if (nj__hpack_load64(p + i) != nj__hpack_load64(q + i))
                return false;
        return nj__hpack_load64(p + n - 8) == nj__hpack_load64(q + n - 8);
    }
    if (n >= 4)
        return nj__hpack_load32(p) == nj__hpack_load32(q) &&
               nj__hpack_load32(p + n - 4) == nj__hpack_load32(q + n - 4);
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return false;
    return true;
}

/* ---- decoder_dynamic_table.c ---- */

/* An entry. Its bytes are the name, unless the static table has it, and the value. */
struct nj__hpack_entry {
    uint16_t at; /* offset within the store */
    uint16_t n_name, n_value;
    uint8_t name_index;  /* of the name in the static table, or 0 */
    uint8_t token_flags; /* the token, and the flags below */
};

#define NJ__HPACK_TOKEN_MASK     0x1fu
#define NJ__HPACK_NAME_MALFORMED 0x20u
#define NJ__HPACK_MALFORMED      0x40u /* the name or the value */

_Static_assert(NJ__TOKEN_HEADER_BASE + NJ_N_HEADERS <= NJ__HPACK_TOKEN_MASK + 1,
               "the mask has room for all tokens");

/*
 * Memory of a dynamic table. The bytes of entries grow from the start, their descriptions from the
 * end. Entries move only when the store is full, so decoded strings stay valid.
 */
struct nj__hpack_store {
    struct nj__hpack_store *next; /* in nj__hpack_shared.retired */
    uint16_t n_total;             /* bytes, including this header */
    uint8_t bytes[];
};

struct nj__hpack_decoder {
    struct nj__hpack_shared *shared;
    const uint8_t *at, *end;       /* the rest of the block */
    struct nj__hpack_store *store; /* NULL before the first entry */
    uint16_t first, next;          /* numbers of the oldest and of the next entry in the store */
    uint16_t used;                 /* bytes used at the start of the store */
    uint16_t size, limit;          /* RFC 7541 4.1, 4.2 */
    uint8_t n_updates;             /* size updates in this block */
    bool field_seen;               /* a field of this block was decoded */
    bool strings_in_use;           /* decoded strings of this block refer to the store */
};

static inline uint32_t nj__hpack_n_entries(const struct nj__hpack_decoder *in)
{
    return (uint32_t)in->next - in->first;
}

/* The entry with number `k`. */
static inline struct nj__hpack_entry *nj__hpack_entry_by_number(const struct nj__hpack_store *s,
                                                                uint32_t k)
{
    return (struct nj__hpack_entry *)((const uint8_t *)s + s->n_total) - 1 - k;
}

/* RFC 7541 4.3, 4.4: evict the oldest entries until the size is at most `size_max`. */
void nj__hpack_evict(struct nj__hpack_decoder *in, uint32_t size_max);
/* Add an entry; `token_flags` as in struct nj__hpack_entry. False: out of memory. */
bool nj__hpack_insert(struct nj__hpack_decoder *in, const struct nj__hpack_field *field,
                      uint8_t name_index, uint8_t token_flags);

/* ---- field_cache.c ---- */

/* A set-associative cache of response fields in the dynamic tables of peers. It has at most 1,024
 * fields of up to 1 KiB, about 2 KiB with their encoding: 2 MiB per context at worst. A field that
 * finds no place is sent as a literal. */
#define NJ__HPACK_CACHE_SETS      128u
#define NJ__HPACK_CACHE_WAYS      8u /* bounds a lookup, also under hash collisions made by peers */
#define NJ__HPACK_CACHE_FIELDS    (NJ__HPACK_CACHE_SETS * NJ__HPACK_CACHE_WAYS)
#define NJ__HPACK_CACHE_FIELD_MAX 1024u /* RFC 7541 4.1; of one field */
#define NJ__HPACK_NOT_CACHED      UINT16_MAX

struct nj__hpack_cached_field {
    uint8_t *bytes;     /* a literal with incremental indexing, then the value, then the name */
    uint32_t n_holders; /* connections whose peer has the field in its table */
    uint16_t n_encoded, n_value, n_name;
    uint16_t size; /* RFC 7541 4.1 */
    uint8_t row;   /* of nj__hpack_names */
    uint8_t slot;  /* slot of the last hit, see struct nj__hpack_encoder */
};

/* Add a field. Returns its position, or NJ__HPACK_NOT_CACHED. */
uint32_t nj__hpack_field_cache_add(struct nj__hpack_shared *shared, uint32_t hash, unsigned row,
                                   const struct nj_field *field);
void nj__hpack_field_cache_free(struct nj__hpack_shared *shared);

/* ---- encoder.c ---- */

/* RFC 7541 5.1. */
static inline uint8_t *nj__hpack_put_number(uint8_t *to, uint8_t upper, unsigned prefix, uint32_t v)
{
    uint32_t most = (1u << prefix) - 1;
    if (v < most) {
        *to++ = (uint8_t)(upper | v);
        return to;
    }
    *to++ = (uint8_t)(upper | most);
    for (v -= most; v >= 128; v >>= 7)
        *to++ = (uint8_t)(v | 128);
    *to++ = (uint8_t)v;
    return to;
}

/* The newest entries of the peer's table, the only ones that the encoder refers to. It may forget
 * older ones, since indexes count from the newest. Responses of one site have about ten constant
 * fields. */
#define NJ__HPACK_SLOTS 32u
#define NJ__HPACK_SEEN  8u /* fields with other names that were sent once */

struct nj__hpack_encoder {
    struct nj__hpack_shared *shared;
    uint16_t slots[NJ__HPACK_SLOTS]; /* ring of positions in the cache, or NJ__HPACK_SLOT_... */
    uint16_t seen[NJ__HPACK_SEEN];   /* upper bits of hashes */
    uint16_t size, limit;            /* of the entries in the slots; RFC 7541 4.2 */
    uint16_t size_update_min;        /* the least limit since the last block */
    bool size_update_due;            /* the next block begins with size updates */
    uint8_t head, n;                 /* the next slot, and the number of used slots before it */
    uint8_t seen_next;
    uint8_t date_slot; /* slot of the field with NJ__HPACK_INDEX_DATE, or NJ__HPACK_SLOTS: none */
};

#define NJ__HPACK_SLOT_EMPTY    UINT16_MAX
#define NJ__HPACK_SLOT_OLD_DATE (UINT16_MAX - 1u) /* an earlier date, of NJ__HPACK_DATE_SIZE */
#define NJ__HPACK_DATE_SIZE     (4u + 29u + NJ__HPACK_ENTRY_BYTES)

/* A direct-mapped cache of encoded header blocks, by stamp (h2.h): 40 KiB per context, enough for
 * most blocks that a busy lcore sends within a second. */
#define NJ__HPACK_CACHED_BLOCKS      256u
#define NJ__HPACK_CACHED_INDEXES_MAX 8u

struct nj__hpack_cached_block {
    uint64_t stamp;      /* 0: none */
    uint32_t n_replaced; /* as in struct nj__hpack_shared; if it differs, this block is stale */
    uint8_t n_bytes, n_indexes;
    uint8_t at[NJ__HPACK_CACHED_INDEXES_MAX]; /* offsets of octets that index the peer's table */
    uint16_t cached[NJ__HPACK_CACHED_INDEXES_MAX]; /* positions of the fields that they index */
    uint8_t bytes[NJ__HPACK_CACHED_BLOCK_MAX];
};

/* ---- shared_context.c ---- */

/* Memory for decoded strings of a block; chunks extend it for the duration of a block. */
#define NJ__HPACK_SCRATCH_BYTES 8192u

struct nj__hpack_scratch_chunk {
    struct nj__hpack_scratch_chunk *next;
    uint8_t bytes[];
};

struct nj__hpack_shared {
    struct nj_alloc *alloc;
    size_t n_bytes;                         /* of this structure and the field cache */
    uint8_t *scratch, *scratch_end;         /* free memory for decoded strings */
    struct nj__hpack_scratch_chunk *chunks; /* extensions of `own_scratch` */
    struct nj__hpack_store *retired;        /* replaced stores that decoded strings refer to */
    struct nj__huffman huffman;
    uint8_t row_by_bucket[NJ__HPACK_NAME_BUCKETS];
    struct nj_mix_key cache_key;
    uint16_t cache_last[NJ__HPACK_NAME_BUCKETS]; /* by row: position of the last hit */
    uint32_t cache_tags[NJ__HPACK_CACHE_FIELDS]; /* hashes; 0: empty */
    uint32_t n_replaced;                         /* number of fields replaced so far */
    struct nj__hpack_cached_field cached[NJ__HPACK_CACHE_FIELDS];
    struct nj__hpack_cached_block cached_blocks[NJ__HPACK_CACHED_BLOCKS];
    uint8_t own_scratch[NJ__HPACK_SCRATCH_BYTES];
};

/* Ensure room for `n_max` bytes; NULL: out of memory. nj__hpack_scratch_commit() then takes the
 * bytes that were written. */
uint8_t *nj__hpack_scratch_reserve(struct nj__hpack_shared *shared, size_t n_max);
static inline void nj__hpack_scratch_commit(struct nj__hpack_shared *shared, size_t n_bytes)
{
    shared->scratch += n_bytes;
}
/* Free the strings of earlier blocks, when a block begins. */
void nj__hpack_scratch_reset(struct nj__hpack_shared *shared);

/* ---- lookup in the field cache ---- */

/* The row of a name in nj__hpack_names; 0: none. */
static inline unsigned nj__hpack_response_name_row(const struct nj__hpack_shared *shared,
                                                   struct nj_str name)
{
    if (nj_unlikely(name.n_bytes == 0))
        return 0;
    unsigned row = shared->row_by_bucket[nj__hpack_response_name_bucket(name)];
    const struct nj__hpack_name *known = &nj__hpack_names[row];
    return known->n_bytes == name.n_bytes &&
                   nj__hpack_bytes_equal(known->name, name.p, name.n_bytes)
               ? row
               : 0;
}

/* A keyed hash of all octets, since peers can influence response fields by paths and ranges. */
static inline uint32_t nj__hpack_field_cache_hash(const struct nj__hpack_shared *shared,
                                                  unsigned row, const struct nj_field *field)
{
    const struct nj_mix_key *k = &shared->cache_key;
    uint64_t h = nj_mix_bytes(k, row, field->value.p, field->value.n_bytes);
    if (row == 0)
        h = nj_mix_bytes(k, h, field->name.p, field->name.n_bytes);
    return (uint32_t)(h >> 32) | 1; /* 0 is an empty place */
}

static inline uint32_t nj__hpack_hash_to_cache_set(uint32_t hash)
{
    return (hash >> 25) * NJ__HPACK_CACHE_WAYS;
}
_Static_assert(NJ__HPACK_CACHE_SETS == 1u << (32 - 25), "upper bits of a hash choose the set");

static inline bool nj__hpack_cached_field_equals(const struct nj__hpack_cached_field *k,
                                                 unsigned row, const struct nj_field *field)
{
    if (k->row != row || k->n_value != field->value.n_bytes)
        return false;
    const uint8_t *value = k->bytes + k->n_encoded;
    if (!nj__hpack_bytes_equal(value, field->value.p, k->n_value))
        return false;
    if (row > 0) /* the row determines the name */
        return true;
    return k->n_name == field->name.n_bytes &&
           nj__hpack_bytes_equal(value + k->n_value, field->name.p, k->n_name);
}

/* The position of the last hit by this name, if it equals the field, as for most fields; otherwise
 * NJ__HPACK_NOT_CACHED. */
static inline uint32_t nj__hpack_field_cache_try_last_hit(const struct nj__hpack_shared *shared,
                                                          unsigned row,
                                                          const struct nj_field *field)
{
    uint32_t i = shared->cache_last[row];
    bool again =
        shared->cache_tags[i] != 0 && nj__hpack_cached_field_equals(&shared->cached[i], row, field);
    return again ? i : NJ__HPACK_NOT_CACHED;
}

/* The position of the field, or NJ__HPACK_NOT_CACHED. */
static inline uint32_t nj__hpack_field_cache_find(const struct nj__hpack_shared *shared,
                                                  uint32_t hash, unsigned row,
                                                  const struct nj_field *field)
{
    uint32_t from = nj__hpack_hash_to_cache_set(hash);
    for (uint32_t i = from; i < from + NJ__HPACK_CACHE_WAYS; i++)
        if (shared->cache_tags[i] == hash &&
            nj__hpack_cached_field_equals(&shared->cached[i], row, field))
            return i;
    return NJ__HPACK_NOT_CACHED;
}
