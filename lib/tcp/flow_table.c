/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/flow_table.h"

#include <sys/mman.h>

#include "base/assert.h"
#include "tcp/tcb.h"

bool nj_flow_init(struct nj_flow_table *f, const struct nj_pool *tcbs,
                  const struct nj_hash_key *key)
{
    uint32_t n = 16;
    while (n < 2 * tcbs->n_max)
        n *= 2;
    void *mem = mmap(NULL, n * sizeof *f->entry, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED)
        return false;
    f->entry = mem;
    f->mask = n - 1;
    f->key = *key;
    f->tcbs = tcbs;
    return true;
}

void nj_flow_fini(struct nj_flow_table *f)
{
    if (f->entry)
        munmap(f->entry, ((size_t)f->mask + 1) * sizeof *f->entry);
    f->entry = NULL;
}

static struct nj_tcb *block(const struct nj_flow_table *f, const struct nj_flow_entry *e)
{
    return (struct nj_tcb *)(f->tcbs->mem + f->tcbs->obj_bytes * (e->idx_plus_1 - 1));
}

struct nj_tcb *nj_flow_at(const struct nj_flow_table *f, uint32_t i)
{
    return f->entry[i].idx_plus_1 ? block(f, &f->entry[i]) : NULL;
}

struct nj_tcb *nj_flow_find(const struct nj_flow_table *f, uint32_t hash, const struct nj_tuple *t)
{
    for (uint32_t i = hash & f->mask;; i = (i + 1) & f->mask) {
        const struct nj_flow_entry *e = &f->entry[i];
        if (e->idx_plus_1 == 0)
            return NULL;
        if (e->hash == hash && nj_tuple_eq(&block(f, e)->tuple, t))
            return block(f, e);
    }
}

void nj_flow_insert(struct nj_flow_table *f, struct nj_tcb *tcb)
{
    uint32_t i = tcb->flow_hash & f->mask;
    while (f->entry[i].idx_plus_1 != 0)
        i = (i + 1) & f->mask;
    size_t idx = (size_t)((uint8_t *)tcb - f->tcbs->mem) / f->tcbs->obj_bytes;
    f->entry[i] = (struct nj_flow_entry){tcb->flow_hash, (uint32_t)idx + 1};
}

/* Close the gap, so that no probe ever ends at a tombstone: every entry after the gap that could
 * not be reached across it moves back into it. */
static void close_gap(struct nj_flow_table *f, uint32_t gap)
{
    for (uint32_t i = (gap + 1) & f->mask; f->entry[i].idx_plus_1 != 0; i = (i + 1) & f->mask) {
        uint32_t home = f->entry[i].hash & f->mask;
        uint32_t from_home = (i - home) & f->mask, from_gap = (i - gap) & f->mask;
        if (from_home < from_gap)
            continue;
        f->entry[gap] = f->entry[i];
        gap = i;
    }
    f->entry[gap].idx_plus_1 = 0;
}

void nj_flow_remove(struct nj_flow_table *f, const struct nj_tcb *tcb)
{
    for (uint32_t i = tcb->flow_hash & f->mask;; i = (i + 1) & f->mask) {
        NJ_ASSERT(f->entry[i].idx_plus_1 != 0);
        if (f->entry[i].hash == tcb->flow_hash && block(f, &f->entry[i]) == tcb) {
            close_gap(f, i);
            return;
        }
    }
}
