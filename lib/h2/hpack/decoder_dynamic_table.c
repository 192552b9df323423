/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder's dynamic table (RFC 7541 2.3.2), stored as a log: bytes of a new entry are appended,
 * and eviction advances the start. When the store is full, live entries move to its start or to a
 * larger store. If decoded strings of the current block refer to the store, they move to another
 * one, and the old store is freed when the next block begins.
 */
#include "h2/hpack/hpack_internal.h"

#include <string.h>

#include "base/assert.h"

#define HEAD_BYTES offsetof(struct nj__hpack_store, bytes)

/* Sizes of stores: size classes of the allocator less its 16 bytes. n entries have at most
 * 4,096 - 32 n bytes and 8 bytes of description each: below 4,096 for any n, two thirds of the
 * largest store. */
static const uint16_t totals[] = {112, 240, 496, 1008, 2032, 4336, 6128};

#define TOTAL_MAX 6128u
_Static_assert(NJ__HPACK_TABLE_BYTES + HEAD_BYTES + sizeof(struct nj__hpack_entry) <=
                   TOTAL_MAX / 4 * 3,
               "the largest store has room for the largest table, and a quarter more");

static uint32_t n_stored_bytes(const struct nj__hpack_entry *e)
{
    return (e->name_index ? 0 : e->n_name) + (uint32_t)e->n_value;
}

void nj__hpack_evict(struct nj__hpack_decoder *in, uint32_t size_max)
{
    while (in->size > size_max) {
        const struct nj__hpack_entry *e = nj__hpack_entry_by_number(in->store, in->first++);
        in->size -= (uint16_t)(e->n_name + e->n_value + NJ__HPACK_ENTRY_BYTES);
    }
}

/* The smallest store of which `n_wanted` bytes are at most three quarters. */
static struct nj__hpack_store *store_new(struct nj__hpack_decoder *in, uint32_t n_wanted)
{
    size_t i = 0;
    while (n_wanted > totals[i] / 4u * 3)
        i++;
    struct nj__hpack_store *s = nj_alloc_take(in->shared->alloc, totals[i]);
    if (s)
        s->n_total = totals[i];
    return s;
}

/* Move live entries to the start of `to`, which may be the current store. */
static void move_entries(struct nj__hpack_decoder *in, struct nj__hpack_store *to)
{
    struct nj__hpack_store *from = in->store;
    uint32_t n = nj__hpack_n_entries(in);
    if (n > 0) {
        uint16_t begin = nj__hpack_entry_by_number(from, in->first)->at, by = begin - HEAD_BYTES;
        memmove(to->bytes, (uint8_t *)from + begin, in->used - begin);
        memmove(nj__hpack_entry_by_number(to, n - 1),
                nj__hpack_entry_by_number(from, in->next - 1u), n * sizeof(struct nj__hpack_entry));
        for (uint32_t k = 0; k < n; k++)
            nj__hpack_entry_by_number(to, k)->at -= by;
        in->used -= by;
    } else {
        in->used = HEAD_BYTES;
    }
    in->first = 0;
    in->next = (uint16_t)n;
}

static void store_release(struct nj__hpack_decoder *in)
{
    struct nj__hpack_store *old = in->store;
    if (old && in->strings_in_use) {
        old->next = in->shared->retired;
        in->shared->retired = old;
    } else {
        nj_alloc_free(in->shared->alloc, old);
    }
    in->strings_in_use = false;
}

/* Make room for an entry with `n_bytes` of strings. */
static bool make_room(struct nj__hpack_decoder *in, uint32_t n_bytes)
{
    uint32_t n = nj__hpack_n_entries(in), wanted = HEAD_BYTES + n_bytes;
    if (n > 0)
        wanted += in->used - nj__hpack_entry_by_number(in->store, in->first)->at;
    wanted += (n + 1) * (uint32_t)sizeof(struct nj__hpack_entry);
    if (in->store && !in->strings_in_use && wanted <= in->store->n_total / 4u * 3) {
        move_entries(in, in->store);
        return true;
    }
    struct nj__hpack_store *s = store_new(in, wanted);
    if (!s)
        return false;
    move_entries(in, s);
    store_release(in);
    in->store = s;
    return true;
}

static bool has_room(const struct nj__hpack_decoder *in, uint32_t n_bytes)
{
    return in->store && in->used + n_bytes + (in->next + 1u) * sizeof(struct nj__hpack_entry) <=
                            in->store->n_total;
}

bool nj__hpack_insert(struct nj__hpack_decoder *in, const struct nj__hpack_field *field,
                      uint8_t name_index, uint8_t token_flags)
{
    uint64_t size = (uint64_t)field->name.n_bytes + field->value.n_bytes + NJ__HPACK_ENTRY_BYTES;
    if (size > in->limit) { /* RFC 7541 4.4: not an error; the table becomes empty */
        nj__hpack_evict(in, 0);
        return true;
    }
    nj__hpack_evict(in, in->limit - (uint32_t)size);
    struct nj__hpack_entry entry = {.n_name = (uint16_t)field->name.n_bytes,
                                    .n_value = (uint16_t)field->value.n_bytes,
                                    .name_index = name_index,
                                    .token_flags = token_flags};
    uint32_t n_bytes = n_stored_bytes(&entry);
    /* The name may refer to an entry just evicted. Its bytes are intact, since make_room() does not
     * move entries within a store that decoded strings refer to. */
    if (!has_room(in, n_bytes) && !make_room(in, n_bytes))
        return false;
    NJ_ASSERT(has_room(in, n_bytes));
    entry.at = in->used;
    uint8_t *to = (uint8_t *)in->store + in->used;
    if (!name_index) {
        memcpy(to, field->name.p, entry.n_name);
        to += entry.n_name;
    }
    memcpy(to, field->value.p, entry.n_value);
    *nj__hpack_entry_by_number(in->store, in->next++) = entry;
    in->used += (uint16_t)n_bytes;
    in->size += (uint16_t)size;
    return true;
}
