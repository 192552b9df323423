/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Belady's MIN, which knows the whole trace. It evicts the entry whose next lookup is the latest;
 * that may be the entry of the current lookup. It keeps no entry without a further lookup. With
 * entries of different sizes MIN is not a strict bound.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "sim.h"

#define NEVER UINT32_MAX

struct item {
    uint32_t next, entry; /* next: the next lookup of `entry` */
};

struct offline {
    const struct sim_trace *t;
    uint32_t *next_of_lookup; /* of each lookup: the next lookup of the same entry */
    uint32_t *next;           /* of each entry in the cache: its next lookup; 0: not in it */
    struct item *heap;        /* the latest lookup first; may contain outdated items */
    uint32_t n_heap;
    uint64_t budget, n_bytes;
};

static void *make(const struct sim_trace *t, uint64_t budget)
{
    struct offline *o = calloc(1, sizeof *o);

    NJ_CHECK(o);
    *o = (struct offline){.t = t, .budget = budget};
    o->next_of_lookup = malloc(t->n_lookups * sizeof *o->next_of_lookup);
    o->next = malloc(t->n_entries * sizeof *o->next);
    o->heap = malloc((t->n_lookups + 1) * sizeof *o->heap);
    NJ_CHECK(o->next_of_lookup && o->next && o->heap);
    for (uint32_t i = 0; i < t->n_entries; i++)
        o->next[i] = NEVER;
    for (uint32_t i = t->n_lookups; i-- > 0;) {
        o->next_of_lookup[i] = o->next[t->lookups[i].entry];
        o->next[t->lookups[i].entry] = i;
    }
    for (uint32_t i = 0; i < t->n_entries; i++)
        o->next[i] = 0;
    return o;
}

static void free_offline(void *self)
{
    struct offline *o = self;

    free(o->next_of_lookup);
    free(o->next);
    free(o->heap);
    free(o);
}

static void push(struct offline *o, struct item item)
{
    uint32_t at = ++o->n_heap;

    for (; at > 1 && o->heap[at / 2].next < item.next; at /= 2)
        o->heap[at] = o->heap[at / 2];
    o->heap[at] = item;
}

static void pop(struct offline *o)
{
    struct item last = o->heap[o->n_heap--];
    uint32_t at = 1;

    for (uint32_t child; (child = 2 * at) <= o->n_heap; at = child) {
        if (child < o->n_heap && o->heap[child + 1].next > o->heap[child].next)
            child++;
        if (o->heap[child].next <= last.next)
            break;
        o->heap[at] = o->heap[child];
    }
    o->heap[at] = last;
}

static void drop_latest(struct offline *o)
{
    struct item top = o->heap[1];

    pop(o);
    if (o->next[top.entry] != top.next)
        return; /* outdated: the entry was used since */
    o->next[top.entry] = 0;
    o->n_bytes -= o->t->n_bytes[top.entry];
}

static bool lookup(void *self, uint32_t i)
{
    struct offline *o = self;
    uint32_t entry = o->t->lookups[i].entry, next = o->next_of_lookup[i];
    bool was_in = o->next[entry] != 0;

    if (was_in)
        o->n_bytes -= o->t->n_bytes[entry];
    o->next[entry] = 0;
    if (next == NEVER)
        return was_in;
    o->next[entry] = next;
    o->n_bytes += o->t->n_bytes[entry];
    push(o, (struct item){next, entry});
    while (o->n_bytes > o->budget)
        drop_latest(o);
    return was_in;
}

const struct sim_policy sim_offline = {"Belady", make, lookup, free_offline};
