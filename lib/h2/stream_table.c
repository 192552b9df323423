/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash table of open streams, and what is remembered of the others (RFC 9113 5.1, 5.1.1). A
 * stream that is not in the table and whose id is not above the highest is closed; it uses no
 * memory.
 */
#include "h2/h2_internal.h"

/* The table has at least as many buckets as streams, and ids are consecutive: chains are short. */
#define TABLE_GROWTH_FACTOR 4u

static struct nj_h2_stream **table_slot(const struct nj_h2 *h, uint32_t id)
{
    return &h->table[(id >> 1) & h->table_mask];
}

struct nj_h2_stream *nj__h2_find_stream(const struct nj_h2 *h, uint32_t id)
{
    struct nj_h2_stream *st = *table_slot(h, id);

    while (st && (uint32_t)st->id != id)
        st = st->hash_next;
    return st;
}

static void insert(struct nj_h2 *h, struct nj_h2_stream *st)
{
    struct nj_h2_stream **at = table_slot(h, (uint32_t)st->id);
    st->hash_next = *at;
    *at = st;
}

static bool grow(struct nj_h2 *h)
{
    uint32_t n_had = h->table_mask + 1, n = n_had * TABLE_GROWTH_FACTOR;
    struct nj_h2_stream **had = h->table;
    struct nj_h2_stream **table = nj_alloc_zero(h->core->alloc, n * sizeof *table);

    if (!table)
        return false;
    h->table = table;
    h->table_mask = n - 1;
    for (uint32_t i = 0; i < n_had; i++) {
        for (struct nj_h2_stream *st = had[i], *next; st; st = next) {
            next = st->hash_next;
            insert(h, st);
        }
    }
    if (had != h->inline_table)
        nj_alloc_free(h->core->alloc, had);
    return true;
}

bool nj__h2_table_put(struct nj_h2 *h, struct nj_h2_stream *st)
{
    if (h->n_open > h->table_mask && !grow(h))
        return false;
    insert(h, st);
    h->n_open++;
    return true;
}

/* Remember the final state of a stream for frames that arrive later. */
static void record_end(struct nj_h2 *h, const struct nj_h2_stream *st)
{
    uint32_t back = (h->id_high - (uint32_t)st->id) / 2;

    if (back >= NJ__H2_IDS_TRACKED)
        return;
    if (st->reset_received)
        h->id_reset |= UINT64_C(1) << back;
    else if (st->end_received)
        h->id_ended |= UINT64_C(1) << back;
}

void nj__h2_table_remove(struct nj_h2 *h, struct nj_h2_stream *st)
{
    struct nj_h2_stream **at = table_slot(h, (uint32_t)st->id);

    record_end(h, st);
    while (*at != st)
        at = &(*at)->hash_next;
    *at = st->hash_next;
    if (--h->n_open > 0 || h->table == h->inline_table)
        return;
    nj_alloc_free(h->core->alloc, h->table);
    h->table = h->inline_table;
    h->table_mask = NJ_ARRAY_LEN(h->inline_table) - 1;
    for (size_t i = 0; i < NJ_ARRAY_LEN(h->inline_table); i++)
        h->inline_table[i] = NULL;
}

/* ---- stream ids ---- */

/* Stream ids increase, and a skipped id can't be used later. Ids older than the last
 * NJ__H2_IDS_TRACKED are treated as closed streams. */
bool nj__h2_enter_id(struct nj_h2 *h, uint32_t id)
{
    if (id <= h->id_high)
        return (h->id_high - id) / 2 >= NJ__H2_IDS_TRACKED || nj__h2_id_bit(h, h->id_seen, id);
    uint32_t up = (id - h->id_high + 1) / 2; /* +1: before the first, id_high is 0 */
    bool near = up < NJ__H2_IDS_TRACKED;
    h->id_seen = (near ? h->id_seen << up : 0) | 1;
    h->id_ended = near ? h->id_ended << up : 0;
    h->id_reset = near ? h->id_reset << up : 0;
    h->id_high = id;
    return true;
}
