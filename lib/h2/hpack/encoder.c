/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HPACK encoder (RFC 7541 2.3, 6). The peer's dynamic table is mirrored as a ring of positions
 * in the field cache (field_cache.c). A field is encoded as an index, as a copy of its encoding in
 * the cache, or as a literal without Huffman code, which would cost more than it saves.
 */
#include "h2/hpack/hpack_internal.h"

#include <string.h>

#include "base/compiler.h"

#define NUMBER_BYTES 6u /* RFC 7541 5.1: of 32 bits, at most */

struct nj__hpack_encoder *nj__hpack_encoder_new(struct nj__hpack_shared *shared)
{
    struct nj__hpack_encoder *out = nj_alloc_zero(shared->alloc, sizeof *out);
    if (!out)
        return NULL;
    out->shared = shared;
    out->limit = NJ__HPACK_TABLE_BYTES;
    out->date_slot = NJ__HPACK_SLOTS;
    memset(out->slots, 0xff, sizeof out->slots); /* NJ__HPACK_SLOT_EMPTY */
    return out;
}

/* ---- the peer's dynamic table ---- */

static void evict_oldest(struct nj__hpack_encoder *out)
{
    uint8_t slot = (uint8_t)(out->head - out->n--) % NJ__HPACK_SLOTS;
    uint16_t which = out->slots[slot];
    out->slots[slot] = NJ__HPACK_SLOT_EMPTY;
    if (which == NJ__HPACK_SLOT_OLD_DATE) {
        out->size -= NJ__HPACK_DATE_SIZE;
        return;
    }
    out->size -= out->shared->cached[which].size;
    out->shared->cached[which].n_holders--;
    if (slot == out->date_slot)
        out->date_slot = NJ__HPACK_SLOTS;
}

/* The peer evicts by the same rule (RFC 7541 4.3, 4.4); entries that it has in addition are older.
 */
static void evict(struct nj__hpack_encoder *out, uint32_t size_max)
{
    while (out->size > size_max)
        evict_oldest(out);
}

void nj__hpack_encoder_free(struct nj__hpack_encoder *out)
{
    if (!out)
        return;
    evict(out, 0);
    nj_alloc_free(out->shared->alloc, out);
}

/* Release the previous date, which is never sent again, so its cache entry can be reused. */
static void release_date(struct nj__hpack_encoder *out)
{
    if (out->date_slot == NJ__HPACK_SLOTS)
        return;
    out->shared->cached[out->slots[out->date_slot]].n_holders--;
    out->slots[out->date_slot] = NJ__HPACK_SLOT_OLD_DATE;
    out->date_slot = NJ__HPACK_SLOTS;
}

static void table_push(struct nj__hpack_encoder *out, uint32_t which, bool is_date)
{
    struct nj__hpack_cached_field *k = &out->shared->cached[which];
    if (is_date)
        release_date(out);
    evict(out, (uint32_t)out->limit - k->size);
    if (out->n == NJ__HPACK_SLOTS)
        evict_oldest(out);
    uint8_t slot = out->head;
    out->slots[slot] = (uint16_t)which;
    out->head = (slot + 1) % NJ__HPACK_SLOTS;
    out->n++;
    out->size += k->size;
    k->n_holders++;
    k->slot = slot;
    if (is_date)
        out->date_slot = slot;
}

/* The index of a field in the peer's table, or 0. Connections with equal requests have it in the
 * same slot, so the slot of the last hit is tried first. */
static uint32_t index_of(const struct nj__hpack_encoder *out, uint32_t which)
{
    struct nj__hpack_cached_field *k = &out->shared->cached[which];
    if (nj_unlikely(out->slots[k->slot] != which)) {
        uint8_t slot = 0;
        while (slot < NJ__HPACK_SLOTS && out->slots[slot] != which)
            slot++;
        if (slot == NJ__HPACK_SLOTS)
            return 0;
        k->slot = slot;
    }
    return NJ__HPACK_N_STATIC + (uint8_t)(out->head - k->slot - 1) % NJ__HPACK_SLOTS + 1;
}

/* ---- limits of the peer ---- */

void nj__hpack_encoder_limit(struct nj__hpack_encoder *out, uint32_t n_bytes)
{
    uint16_t limit = n_bytes < NJ__HPACK_TABLE_BYTES ? (uint16_t)n_bytes : NJ__HPACK_TABLE_BYTES;
    if (limit == out->limit)
        return; /* a pending change remains pending */
    if (!out->size_update_due || limit < out->size_update_min)
        out->size_update_min = limit;
    out->size_update_due = true;
    out->limit = limit;
    evict(out, limit);
}

/* ---- blocks ---- */

/* An inline memcpy() for short strings. */
static inline void copy(uint8_t *to, const char *from, size_t n)
{
    if (n < 8 || n > 40) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i + 8 < n; i += 8)
        memcpy(to + i, from + i, 8);
    memcpy(to + n - 8, from + n - 8, 8);
}

static inline uint8_t *put_string(uint8_t *to, struct nj_str s)
{
    to = nj__hpack_put_number(to, 0, 7, s.n_bytes);
    copy(to, s.p, s.n_bytes);
    return to + s.n_bytes;
}

/* RFC 7541 6.2.2, 6.2.3. */
static uint8_t *put_literal(uint8_t *to, const struct nj__hpack_name *name,
                            const struct nj_field *field)
{
    to = nj__hpack_put_number(to, name->use == NJ__HPACK_NEVER_INDEX ? 0x10 : 0, 4, name->index);
    if (!name->index)
        to = put_string(to, field->name);
    return put_string(to, field->value);
}

/* multipart/byteranges: each response has its own boundary, so the value is not indexed. */
static bool is_one_time(const struct nj_field *field)
{
    return field->value.n_bytes > 10 && memcmp(field->value.p, "multipart/", 10) == 0;
}

/* A field whose name has no row of its own was sent before on this connection. */
static bool was_seen_before(struct nj__hpack_encoder *out, uint32_t hash)
{
    uint16_t mark = (uint16_t)(hash >> 9);
    for (uint32_t i = 0; i < NJ__HPACK_SEEN; i++)
        if (out->seen[i] == mark)
            return true;
    out->seen[out->seen_next] = mark;
    out->seen_next = (out->seen_next + 1) % NJ__HPACK_SEEN;
    return false;
}

/* The cache position of a field to be added to the peer's table, or NJ__HPACK_NOT_CACHED. */
static uint32_t field_to_insert(struct nj__hpack_encoder *out, uint32_t which, uint32_t hash,
                                unsigned row, const struct nj_field *field)
{
    enum nj__hpack_indexing use = nj__hpack_names[row].use;
    if (use == NJ__HPACK_INDEX_REPEATED && !was_seen_before(out, hash))
        return NJ__HPACK_NOT_CACHED;
    if (which != NJ__HPACK_NOT_CACHED)
        return which;
    if (is_one_time(field))
        return which;
    return nj__hpack_field_cache_add(out->shared, hash, row, field);
}

/* Encode a field that is not in the peer's table, and add it there if its name calls for it. */
static uint8_t *put_unindexed(struct nj__hpack_encoder *out, uint8_t *to, uint32_t which,
                              uint32_t hash, unsigned row, const struct nj_field *field)
{
    const struct nj__hpack_name *name = &nj__hpack_names[row];
    which = field_to_insert(out, which, hash, row, field);
    if (which == NJ__HPACK_NOT_CACHED)
        return put_literal(to, name, field);
    const struct nj__hpack_cached_field *k = &out->shared->cached[which];
    memcpy(to, k->bytes, k->n_encoded);
    to += k->n_encoded;
    table_push(out, which, name->use == NJ__HPACK_INDEX_DATE);
    return to;
}

static uint8_t *put_index(uint8_t *to, uint32_t index)
{
    *to++ = (uint8_t)(0x80 | index); /* 93 at most: no more than this octet */
    return to;
}

/* Encode a field that is not the last hit by its name, or is not in this peer's table. */
static __attribute__((noinline)) uint8_t *find_and_put(struct nj__hpack_encoder *out, uint8_t *to,
                                                       uint32_t which, unsigned row,
                                                       const struct nj_field *field)
{
    uint32_t hash = nj__hpack_field_cache_hash(out->shared, row, field), index = 0;
    if (which == NJ__HPACK_NOT_CACHED &&
        (which = nj__hpack_field_cache_find(out->shared, hash, row, field)) !=
            NJ__HPACK_NOT_CACHED) {
        out->shared->cache_last[row] = (uint16_t)which;
        index = index_of(out, which);
    }
    return index > 0 ? put_index(to, index) : put_unindexed(out, to, which, hash, row, field);
}

/* Encode a field that may be in the peer's table. */
static inline uint8_t *put_cached(struct nj__hpack_encoder *out, uint8_t *to, unsigned row,
                                  const struct nj_field *field)
{
    uint32_t which = nj__hpack_field_cache_try_last_hit(out->shared, row, field);
    uint32_t index = nj_likely(which != NJ__HPACK_NOT_CACHED) ? index_of(out, which) : 0;
    return nj_likely(index > 0) ? put_index(to, index) : find_and_put(out, to, which, row, field);
}

static inline uint8_t *put_field(struct nj__hpack_encoder *out, uint8_t *to, unsigned row,
                                 const struct nj_field *field)
{
    const struct nj__hpack_name *name = &nj__hpack_names[row];
    uint64_t size = (uint64_t)field->name.n_bytes + field->value.n_bytes + NJ__HPACK_ENTRY_BYTES;
    if (name->use >= NJ__HPACK_NO_INDEX || size > out->limit || size > NJ__HPACK_CACHE_FIELD_MAX ||
        (name->use == NJ__HPACK_INDEX_DATE && size != NJ__HPACK_DATE_SIZE))
        return put_literal(to, name, field);
    return put_cached(out, to, row, field);
}

static uint8_t *put_status(struct nj__hpack_encoder *out, uint8_t *to, uint16_t status)
{
    static const uint16_t in_static[] = {200, 204, 206, 304, 400, 404, 500};
    for (uint8_t i = 0; i < NJ_ARRAY_LEN(in_static); i++) {
        if (status == in_static[i]) {
            *to++ = 0x80 | (8 + i);
            return to;
        }
    }
    char digits[NJ_U64_DIGITS_MAX];
    char *p = nj_put_digits_backward(digits + sizeof digits, status);
    const struct nj_field field = {NJ_STR(":status"), {p, (uint32_t)(digits + sizeof digits - p)}};
    return put_field(out, to, NJ__HPACK_ROW_STATUS, &field);
}

/* RFC 7541 4.2: the smallest limit since the last block, then the current one. */
static uint8_t *put_updates(struct nj__hpack_encoder *out, uint8_t *to)
{
    if (out->size_update_min < out->limit)
        to = nj__hpack_put_number(to, 0x20, 5, out->size_update_min);
    out->size_update_due = false;
    return nj__hpack_put_number(to, 0x20, 5, out->limit);
}

/* ---- cache of encoded blocks ---- */

static struct nj__hpack_cached_block *cached_block_at(struct nj__hpack_shared *shared,
                                                      uint64_t stamp)
{
    return &shared->cached_blocks[stamp % NJ__HPACK_CACHED_BLOCKS];
}

static bool is_cached(const struct nj__hpack_shared *shared,
                      const struct nj__hpack_cached_block *head, uint64_t stamp)
{
    return head->stamp == stamp && head->n_replaced == shared->n_replaced;
}

static bool record(struct nj__hpack_cached_block *head, const uint8_t *from, const uint8_t *to)
{
    size_t n = (size_t)(to - from);
    if (n > sizeof head->bytes - head->n_bytes)
        return false;
    memcpy(head->bytes + head->n_bytes, from, n);
    head->n_bytes += (uint8_t)n;
    return true;
}

/* Begin to cache a block. NULL: it is in the cache, and this peer lacks one of its fields; or the
 * static table does not have its status, which is rare. */
static struct nj__hpack_cached_block *record_begin(struct nj__hpack_shared *shared, uint64_t stamp,
                                                   const uint8_t *status, const uint8_t *end)
{
    struct nj__hpack_cached_block *head = cached_block_at(shared, stamp);
    if (is_cached(shared, head, stamp) || status == end || !(*status & 0x80) ||
        *status > (0x80 | NJ__HPACK_N_STATIC))
        return NULL;
    head->stamp = 0;
    head->n_replaced = shared->n_replaced;
    head->n_bytes = head->n_indexes = 0;
    return record(head, status, end) ? head : NULL;
}

/* False: the block can't be cached, since the field is added to the peer's table or may be at the
 * next time, or is never indexed. */
static bool record_field(const struct nj__hpack_encoder *out, struct nj__hpack_cached_block *head,
                         unsigned row, const uint8_t *from, const uint8_t *to)
{
    if (*from & 0x80) {
        if (head->n_indexes == NJ__HPACK_CACHED_INDEXES_MAX)
            return false;
        uint8_t back = (*from & 0x7f) - NJ__HPACK_N_STATIC;
        head->at[head->n_indexes] = head->n_bytes;
        head->cached[head->n_indexes++] = out->slots[(uint8_t)(out->head - back) % NJ__HPACK_SLOTS];
    } else if (nj__hpack_names[row].use != NJ__HPACK_NO_INDEX) {
        return false;
    }
    return record(head, from, to);
}

size_t nj__hpack_put_cached_block(const struct nj__hpack_encoder *out, uint8_t *to, uint64_t stamp)
{
    const struct nj__hpack_cached_block *head = cached_block_at(out->shared, stamp);
    if (nj_unlikely(out->size_update_due || !is_cached(out->shared, head, stamp)))
        return 0;
    memcpy(to, head->bytes, sizeof head->bytes); /* a constant size is faster */
    for (uint32_t i = 0; i < head->n_indexes; i++) {
        uint32_t index = index_of(out, head->cached[i]);
        if (nj_unlikely(index == 0))
            return 0;
        put_index(to + head->at[i], index);
    }
    return head->n_bytes;
}

size_t nj__hpack_bound(const struct nj_field *fields, size_t n_fields)
{
    size_t n = 2 * NUMBER_BYTES + NUMBER_BYTES + NJ_U64_DIGITS_MAX; /* updates, status */
    for (size_t i = 0; i < n_fields; i++)
        n += 1 + NUMBER_BYTES + fields[i].name.n_bytes + NUMBER_BYTES + fields[i].value.n_bytes;
    return n;
}

size_t nj__hpack_encode(struct nj__hpack_encoder *out, uint8_t *to, uint16_t status,
                        const struct nj_field *fields, size_t n_fields, uint64_t stamp)
{
    uint8_t *at = to;
    if (nj_unlikely(out->size_update_due))
        at = put_updates(out, at);
    uint8_t *from = at;
    if (status > 0)
        at = put_status(out, at, status);
    struct nj__hpack_cached_block *head = stamp ? record_begin(out->shared, stamp, from, at) : NULL;
    for (size_t i = 0; i < n_fields; i++) {
        uint8_t *field = at;
        unsigned row = nj__hpack_response_name_row(out->shared, fields[i].name);
        at = put_field(out, at, row, &fields[i]);
        if (head && !record_field(out, head, row, field, at))
            head = NULL;
    }
    if (head)
        head->stamp = stamp;
    return (size_t)(at - to);
}
