/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Belady's MIN, which knows the trace: what is asked for latest goes first, and what would be it
 * does not come in. With entries of several sizes it is no bound in the strict sense.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "sim.h"

#define NEVER UINT32_MAX

struct item {
    uint32_t next, entry; /* the look that wants it */
};

struct offline {
    const struct sim_trace *t;
    uint32_t *next_of_look; /* the next look for the same entry */
    uint32_t *next;         /* of each entry that is in; 0: it is not */
    struct item *heap;      /* the latest first; with items that are out of date */
    uint32_t n_heap;
    uint64_t budget, n_bytes;
};

static void *make(const struct sim_trace *t, uint64_t budget)
{
    struct offline *o = calloc(1, sizeof *o);

    NJ_CHECK(o);
    *o = (struct offline){.t = t, .budget = budget};
    o->next_of_look = malloc(t->n_looks * sizeof *o->next_of_look);
    o->next = malloc(t->n_entries * sizeof *o->next);
    o->heap = malloc((t->n_looks + 1) * sizeof *o->heap);
    NJ_CHECK(o->next_of_look && o->next && o->heap);
    for (uint32_t i = 0; i < t->n_entries; i++)
        o->next[i] = NEVER;
    for (uint32_t i = t->n_looks; i-- > 0;) {
        o->next_of_look[i] = o->next[t->looks[i].entry];
        o->next[t->looks[i].entry] = i;
    }
    for (uint32_t i = 0; i < t->n_entries; i++)
        o->next[i] = 0;
    return o;
}

static void free_offline(void *self)
{
    struct offline *o = self;

    free(o->next_of_look);
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
        return; /* it was used since */
    o->next[top.entry] = 0;
    o->n_bytes -= o->t->n_bytes[top.entry];
}

static bool look(void *self, uint32_t i)
{
    struct offline *o = self;
    uint32_t entry = o->t->looks[i].entry, next = o->next_of_look[i];
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

const struct sim_policy sim_offline = {"Belady", make, look, free_offline};
