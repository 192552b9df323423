/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates of transfers as differences of snapshots. Contract: transfer_rates.h.
 *
 * An entry has two earlier values, which are at least SPAN apart, since several readers may ask at
 * short intervals: a difference over some milliseconds would tell about bursts, not about the rate.
 */
#include "mgmt/transfer_rates.h"

#include "base/compiler.h"
#include "base/page_alloc.h"

#define ENTRIES 65536u /* 48 bytes each, touched as they are used */
#define PROBES  8u     /* entries that a transfer may have */
#define SPAN    NJ_SEC
#define MIN     (SPAN / 2) /* shortest time between two values that make a rate */

struct entry {
    struct nj_transfer_id id;
    struct {
        uint64_t n_bytes;
        nj_ns at; /* 0: none */
    } older, newer;
};

struct nj_transfer_rates {
    struct entry entry[ENTRIES];
};

struct nj_transfer_rates *nj_transfer_rates_new(void)
{
    return nj_pages_map(sizeof(struct nj_transfer_rates), 0);
}

void nj_transfer_rates_free(struct nj_transfer_rates *r)
{
    nj_pages_unmap(r, sizeof *r);
}

static bool is_same(const struct nj_transfer_id *a, const struct nj_transfer_id *b)
{
    return a->txn == b->txn && a->place == b->place && a->shard == b->shard;
}

/* The entry of a transfer, or the one that was noted least recently of those that it may have.
 * Peers do not choose ids, so no keyed hash is needed. */
static struct entry *find(struct nj_transfer_rates *r, const struct nj_transfer_id *id)
{
    uint64_t hash = (id->txn ^ (uint64_t)id->place << 20 ^ id->shard) * 0x9e3779b97f4a7c15u;
    struct entry *oldest = NULL;

    for (uint32_t i = 0; i < PROBES; i++) {
        struct entry *e = &r->entry[((hash >> 40) + i) % ENTRIES];
        if (e->newer.at && is_same(&e->id, id))
            return e;
        if (!oldest || e->newer.at < oldest->newer.at)
            oldest = e;
    }
    return oldest;
}

static uint64_t per_second(uint64_t n_bytes, nj_ns time)
{
    return time ? (uint64_t)((unsigned __int128)n_bytes * NJ_SEC / time) : 0;
}

uint64_t nj_transfer_rates_note(struct nj_transfer_rates *r, const struct nj_transfer *t,
                                nj_ns taken_at, bool *is_average)
{
    struct entry *e = find(r, &t->id);

    if (!e->newer.at || !is_same(&e->id, &t->id)) {
        *e = (struct entry){.id = t->id, .newer = {t->n_done, taken_at}};
        *is_average = true;
        return per_second(t->n_done, t->age);
    }
    bool is_recent = taken_at - e->newer.at < MIN;
    uint64_t from = is_recent ? e->older.n_bytes : e->newer.n_bytes;
    nj_ns since = is_recent ? e->older.at : e->newer.at;
    if (taken_at - e->newer.at >= SPAN) {
        e->older = e->newer;
        e->newer.n_bytes = t->n_done;
        e->newer.at = taken_at;
    }
    *is_average = since == 0;
    return since == 0 ? per_second(t->n_done, t->age)
                      : per_second(t->n_done - from, taken_at - since);
}
