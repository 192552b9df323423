/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of HPACK, and by their tests:
 *
 *   decoder.c      header blocks that come
 *   dynamic_table.c   the dynamic table of one connection, as the peer fills it
 *   encoder.c     header blocks that go
 *   block_cache.c    fields of our responses, kept once for all connections of a core
 *   static_table.c   the static table, names with a meaning, and what a field may consist of
 *   shared_context.c  what the connections of a core have in common
 *   huffman.c       the code of strings
 */
#ifndef NJ_H2_HPACK_HPACK_INTERNAL_H
#define NJ_H2_HPACK_HPACK_INTERNAL_H

#include <string.h>

#include "base/attr.h"
#include "h2/h2_internal.h"
#include "h2/hpack/hpack.h"
#include "h2/hpack/huffman.h"

#define NJ__HPACK_STATIC      61u /* RFC 7541 Appendix A: 1 .. 61 */
#define NJ__HPACK_ENTRY_BYTES 32u /* RFC 7541 4.1: what an entry counts beside its strings */

/* ---- static_table.c ---- */

extern const struct nj__hpack_field nj__hpack_static[NJ__HPACK_STATIC + 1];

/* enum nj__token; NJ__TOKEN_KNOWN and above: plus enum nj_header. */
uint8_t nj__hpack_token(struct nj_str name);
/* A name that a field may have (RFC 9113 8.2.1, RFC 9110 5.1), pseudo fields included. */
bool nj__hpack_name_ok(struct nj_str name);
/* A value that a field with this token may have. */
bool nj__hpack_value_ok(enum nj__token token, struct nj_str value);

/* What becomes of a field of ours. */
enum nj__hpack_use {
    NJ__HPACK_MAYBE,  /* into the table when it comes again on the same connection */
    NJ__HPACK_IN,     /* into the table */
    NJ__HPACK_LATEST, /* into the table, and the one before it will not come again */
    NJ__HPACK_APART,  /* stays out */
    NJ__HPACK_SECRET, /* stays out, and of any table on its way (RFC 7541 7.1.3) */
};

struct nj__hpack_name {
    const char *name;
    uint8_t n_bytes;
    uint8_t index; /* in the static table, or 0 */
    uint8_t use;   /* enum nj__hpack_use */
};

/* Row 0 stands for all names that we don't know. */
extern const struct nj__hpack_name nj__hpack_names[];
#define NJ__HPACK_ROW_STATUS 1u  /* ":status", which nobody looks up */
#define NJ__HPACK_ROWS_AT    64u /* places that rows are looked up in */

/* Where to look for the row of a name: no two of those that are known have one place. */
static inline uint32_t nj__hpack_row_at(struct nj_str name)
{
    uint32_t first = (uint8_t)name.p[0], last = (uint8_t)name.p[name.n_bytes - 1];
    return (name.n_bytes + 28 * first + 14 * last) % NJ__HPACK_ROWS_AT;
}

void nj__hpack_name_rows(uint8_t row_at[NJ__HPACK_ROWS_AT]);

static inline uint64_t nj__hpack_word(const void *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

static inline uint32_t nj__hpack_half(const void *p)
{
    uint32_t w;
    memcpy(&w, p, 4);
    return w;
}

/* Strings this short are compared here: a call costs more. */
static inline bool nj__hpack_same(const void *a, const void *b, size_t n)
{
    const uint8_t *p = a, *q = b;
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8)
            if (nj__hpack_word(p + i) != nj__hpack_word(q + i))
                return false;
        return nj__hpack_word(p + n - 8) == nj__hpack_word(q + n - 8);
    }
    if (n >= 4)
        return nj__hpack_half(p) == nj__hpack_half(q) &&
               nj__hpack_half(p + n - 4) == nj__hpack_half(q + n - 4);
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return false;
    return true;
}

/* ---- dynamic_table.c ---- */

/* An entry. Its bytes are the name, unless that is one of the static table, and the value. */
struct nj__hpack_entry {
    uint16_t at; /* from the beginning of the store */
    uint16_t n_name, n_value;
    uint8_t name_index; /* of the static table, or 0 */
    uint8_t mark;       /* enum nj__token and what follows */
};

#define NJ__HPACK_TOKEN    0x1fu
#define NJ__HPACK_NAME_BAD 0x20u
#define NJ__HPACK_BAD      0x40u /* the name or the value */

_Static_assert(NJ__TOKEN_KNOWN + NJ_N_HEADERS <= NJ__HPACK_TOKEN + 1, "a mark has room for tokens");

/*
 * Bytes of entries from its beginning, in the order they came, and what describes them from its
 * end. Nothing moves but when it is full, so strings that were shown stay where they are.
 */
struct nj__hpack_store {
    struct nj__hpack_store *next; /* of those given up within a block */
    uint16_t n_total;             /* with this head */
    uint8_t bytes[];
};

struct nj__hpack_in {
    struct nj__hpack_shared *shared;
    const uint8_t *at, *end;       /* the rest of the block */
    struct nj__hpack_store *store; /* NULL as long as there is no entry */
    uint16_t first, next;          /* entries, numbered since the store was made */
    uint16_t used;                 /* bytes of the store, from its beginning */
    uint16_t size, limit;          /* RFC 7541 4.1, 4.2 */
    uint8_t n_updates;             /* of the limit, in this block */
    bool begun;                    /* a field of this block came */
    bool shown;                    /* strings of the store were shown in this block */
};

static inline uint32_t nj__hpack_entries(const struct nj__hpack_in *in)
{
    return (uint32_t)in->next - in->first;
}

/* Entry `k` of those numbered. */
static inline struct nj__hpack_entry *nj__hpack_entry(const struct nj__hpack_store *s, uint32_t k)
{
    return (struct nj__hpack_entry *)((const uint8_t *)s + s->n_total) - 1 - k;
}

/* RFC 7541 4.3, 4.4: drop the oldest until the rest has this size at most. */
void nj__hpack_evict(struct nj__hpack_in *in, uint32_t size_max);
/* A new entry; `mark` as above. false when memory ran out. */
bool nj__hpack_insert(struct nj__hpack_in *in, const struct nj__hpack_field *field,
                      uint8_t name_index, uint8_t mark);

/* ---- block_cache.c ---- */

/* Fields of responses that stand in the tables of peers: 1,024 at most, of up to 1 KiB each, which
 * come to about 2 KiB with what goes out for them: 2 MiB of a core at worst. A field that finds no
 * place goes out as it is, which is right and longer. */
#define NJ__HPACK_KEPT_SETS  128u
#define NJ__HPACK_KEPT_WAYS  8u /* that a field is looked for in, whatever hashes the peers find */
#define NJ__HPACK_KEPT       (NJ__HPACK_KEPT_SETS * NJ__HPACK_KEPT_WAYS)
#define NJ__HPACK_KEPT_BYTES 1024u /* RFC 7541 4.1; of one field */
#define NJ__HPACK_NOT_KEPT   UINT16_MAX

struct nj__hpack_kept {
    uint8_t *bytes;     /* a literal with incremental indexing, then the value, then the name */
    uint32_t n_holders; /* connections whose peers have it */
    uint16_t n_encoded, n_value, n_name;
    uint16_t size; /* RFC 7541 4.1 */
    uint8_t row;   /* of nj__hpack_names */
    uint8_t slot;  /* where it was found last, see struct nj__hpack_out */
};

/* Keep it. Returns which one it is, or NJ__HPACK_NOT_KEPT. */
uint32_t nj__hpack_kept_add(struct nj__hpack_shared *shared, uint32_t hash, unsigned row,
                            const struct nj_field *field);
void nj__hpack_kept_clear(struct nj__hpack_shared *shared);

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

/* The newest entries of the peer's table, of which we speak; older ones are forgotten, which is
 * ours to do: no index counts them. Responses of one site have some ten fields that stay the same.
 */
#define NJ__HPACK_SLOTS 32u
#define NJ__HPACK_SEEN  8u /* fields of no known name that came once */

struct nj__hpack_out {
    struct nj__hpack_shared *shared;
    uint16_t slots[NJ__HPACK_SLOTS]; /* which of the kept, or one of: */
    uint16_t seen[NJ__HPACK_SEEN];
    uint16_t size, limit; /* of what the slots hold; RFC 7541 4.2 */
    uint16_t update_min;  /* limits to be told with the next block: the least, and the last is */
    bool update;          /* `limit` */
    uint8_t head, n;      /* the slot that comes next, and those in use before it */
    uint8_t seen_next;
    uint8_t latest; /* the slot of NJ__HPACK_LATEST, or NJ__HPACK_SLOTS */
};

#define NJ__HPACK_SLOT_EMPTY  UINT16_MAX
#define NJ__HPACK_SLOT_PAST   (UINT16_MAX - 1u) /* a date that is over, of ... */
#define NJ__HPACK_LATEST_SIZE (4u + 29u + NJ__HPACK_ENTRY_BYTES)

/* Heads of responses that came with a stamp (h2.h), as they went out last; what the peers of a
 * busy core are sent within a second, or the most of it. Of a head with the stamp `s` at most one
 * is noted, at `s` modulo their number: 40 KiB of a core. */
#define NJ__HPACK_HEADS     256u
#define NJ__HPACK_HEAD_KEPT 8u

struct nj__hpack_head {
    uint64_t stamp;      /* 0: none */
    uint32_t n_replaced; /* as in struct nj__hpack_shared: when it differs, `kept` are others */
    uint8_t n_bytes, n_kept;
    uint8_t at[NJ__HPACK_HEAD_KEPT];    /* octets that are indexes in the peer's table ... */
    uint16_t kept[NJ__HPACK_HEAD_KEPT]; /* ... of these fields: all that a table decides */
    uint8_t bytes[NJ__HPACK_AGAIN_MAX];
};

/* ---- shared_context.c ---- */

/* Decoded strings of a block; more is taken for as long as a block needs it. */
#define NJ__HPACK_SCRATCH_BYTES 8192u

struct nj__hpack_chunk {
    struct nj__hpack_chunk *next;
    uint8_t bytes[];
};

struct nj__hpack_shared {
    struct nj__h2_alloc *alloc;
    size_t n_bytes;                  /* of this and what is kept */
    uint8_t *scratch, *scratch_end;  /* free room */
    struct nj__hpack_chunk *chunks;  /* beyond `own` */
    struct nj__hpack_store *retired; /* with strings that may still be looked at */
    struct nj__huffman huffman;
    uint8_t row_at[NJ__HPACK_ROWS_AT];
    struct nj_mix_key kept_key;
    uint16_t kept_last[NJ__HPACK_ROWS_AT]; /* by row: which was found last */
    uint32_t kept_tags[NJ__HPACK_KEPT];    /* hashes; 0: empty */
    uint32_t n_replaced;                   /* of the kept, by others */
    struct nj__hpack_kept kept[NJ__HPACK_KEPT];
    struct nj__hpack_head heads[NJ__HPACK_HEADS];
    uint8_t own[NJ__HPACK_SCRATCH_BYTES];
};

/* Room for that many bytes, or NULL. It is taken when nj__hpack_scratch_take() tells how many it
 * were. */
uint8_t *nj__hpack_scratch(struct nj__hpack_shared *shared, size_t n_max);
static inline void nj__hpack_scratch_take(struct nj__hpack_shared *shared, size_t n_bytes)
{
    shared->scratch += n_bytes;
}
/* A block begins: nobody looks at strings of those before it. */
void nj__hpack_shared_begin(struct nj__hpack_shared *shared);

/* ---- to find a field of ours ---- */

/* The row of a name. */
static inline unsigned nj__hpack_name_row(const struct nj__hpack_shared *shared, struct nj_str name)
{
    if (nj_unlikely(name.n_bytes == 0))
        return 0;
    unsigned row = shared->row_at[nj__hpack_row_at(name)];
    const struct nj__hpack_name *known = &nj__hpack_names[row];
    return known->n_bytes == name.n_bytes && nj__hpack_same(known->name, name.p, name.n_bytes) ? row
                                                                                               : 0;
}

/* Of all octets, with the key: what peers have us say they may choose, by paths and ranges. */
static inline uint32_t nj__hpack_kept_hash(const struct nj__hpack_shared *shared, unsigned row,
                                           const struct nj_field *field)
{
    const struct nj_mix_key *k = &shared->kept_key;
    uint64_t h = nj_mix_bytes(k, row, field->value.p, field->value.n_bytes);
    if (row == 0)
        h = nj_mix_bytes(k, h, field->name.p, field->name.n_bytes);
    return (uint32_t)(h >> 32) | 1; /* 0 is an empty place */
}

static inline uint32_t nj__hpack_set_of(uint32_t hash)
{
    return (hash >> 25) * NJ__HPACK_KEPT_WAYS;
}
_Static_assert(NJ__HPACK_KEPT_SETS == 1u << (32 - 25), "upper bits of a hash choose the set");

static inline bool nj__hpack_is_field(const struct nj__hpack_kept *k, unsigned row,
                                      const struct nj_field *field)
{
    if (k->row != row || k->n_value != field->value.n_bytes)
        return false;
    const uint8_t *value = k->bytes + k->n_encoded;
    if (!nj__hpack_same(value, field->value.p, k->n_value))
        return false;
    if (row > 0) /* which is the name */
        return true;
    return k->n_name == field->name.n_bytes &&
           nj__hpack_same(value + k->n_value, field->name.p, k->n_name);
}

/* The one that was found last by this name, if it is that: most fields of responses are. Or
 * NJ__HPACK_NOT_KEPT. */
static inline uint32_t nj__hpack_kept_again(const struct nj__hpack_shared *shared, unsigned row,
                                            const struct nj_field *field)
{
    uint32_t i = shared->kept_last[row];
    bool again = shared->kept_tags[i] != 0 && nj__hpack_is_field(&shared->kept[i], row, field);
    return again ? i : NJ__HPACK_NOT_KEPT;
}

/* Which of the kept it is, or NJ__HPACK_NOT_KEPT. */
static inline uint32_t nj__hpack_kept_find(const struct nj__hpack_shared *shared, uint32_t hash,
                                           unsigned row, const struct nj_field *field)
{
    uint32_t from = nj__hpack_set_of(hash);
    for (uint32_t i = from; i < from + NJ__HPACK_KEPT_WAYS; i++)
        if (shared->kept_tags[i] == hash && nj__hpack_is_field(&shared->kept[i], row, field))
            return i;
    return NJ__HPACK_NOT_KEPT;
}

#endif
