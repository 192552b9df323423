/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies that consist of lists: LRU, SIEVE, and the policies of the store before ADR 0020. */
#include <stddef.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "sim.h"

struct entry {
    struct nj_list node;
    bool is_in;
    uint8_t mark; /* in SIEVE, used since the hand passed it; in trial, hot */
};

struct lists {
    const struct sim_trace *t;
    struct entry *entries;
    uint64_t budget, n_bytes, n_hot_bytes;
    struct nj_list cold, hot; /* the oldest entry first */
    struct nj_list *hand;     /* of SIEVE: the next candidate for eviction */
};

static void *make(const struct sim_trace *t, uint64_t budget)
{
    struct lists *l = calloc(1, sizeof *l);

    NJ_CHECK(l);
    *l = (struct lists){.t = t, .budget = budget};
    l->entries = calloc(t->n_entries, sizeof *l->entries);
    NJ_CHECK(l->entries);
    nj_list_init(&l->cold);
    nj_list_init(&l->hot);
    l->hand = &l->cold;
    return l;
}

static void free_lists(void *self)
{
    struct lists *l = self;

    free(l->entries);
    free(l);
}

static struct entry *oldest(struct nj_list *list)
{
    return nj_container_of(list->next, struct entry, node);
}

static uint64_t bytes_of(const struct lists *l, const struct entry *e)
{
    return l->t->n_bytes[e - l->entries];
}

static void put(struct lists *l, struct entry *e, struct nj_list *list)
{
    nj_list_push_back(list, &e->node);
    l->n_bytes += bytes_of(l, e);
    e->is_in = true;
    e->mark = false;
}

static void drop(struct lists *l, struct entry *e)
{
    nj_list_del(&e->node);
    l->n_bytes -= bytes_of(l, e);
    if (e->mark)
        l->n_hot_bytes -= bytes_of(l, e);
    e->is_in = false;
    e->mark = 0;
}

static struct entry *entry_of(struct lists *l, uint32_t i)
{
    return &l->entries[l->t->lookups[i].entry];
}

/* --- LRU -------------------------------------------------------------------------------------- */

static bool lookup_lru(void *self, uint32_t i)
{
    struct lists *l = self;
    struct entry *e = entry_of(l, i);

    if (e->is_in) {
        nj_list_del(&e->node);
        nj_list_push_back(&l->cold, &e->node);
        return true;
    }
    while (l->n_bytes + bytes_of(l, e) > l->budget)
        drop(l, oldest(&l->cold));
    put(l, e, &l->cold);
    return false;
}

const struct sim_policy sim_lru = {"LRU", make, lookup_lru, free_lists};

/* --- the former store --------------------------------------------------------------------------
 */

static void move(struct lists *l, struct entry *e, bool hot)
{
    if (e->mark != hot)
        l->n_hot_bytes += hot ? bytes_of(l, e) : -bytes_of(l, e);
    e->mark = hot;
    nj_list_del(&e->node);
    nj_list_push_back(hot ? &l->hot : &l->cold, &e->node);
}

/* A miss appends the entry to the cold list, a hit to the hot list. The hot list has at most four
 * fifths of the budget; its oldest entries above that move to the end of the cold list. The victim
 * is the oldest cold entry, or the oldest hot entry if no entry is cold. */
static bool lookup_trial(void *self, uint32_t i)
{
    struct lists *l = self;
    struct entry *e = entry_of(l, i);

    if (e->is_in) {
        move(l, e, true);
        while (l->n_hot_bytes > l->budget / 5 * 4)
            move(l, oldest(&l->hot), false);
        return true;
    }
    put(l, e, &l->cold);
    while (l->n_bytes > l->budget)
        drop(l, oldest(nj_list_empty(&l->cold) ? &l->hot : &l->cold));
    return false;
}

const struct sim_policy sim_trial = {"trial", make, lookup_trial, free_lists};

/* The former store: the trial policy with four fifths of the budget for files of up to
 * SIM_WHOLE_BYTES, and LRU with one fifth for chunks of larger files. */
struct two {
    struct lists *small, *large;
};

static void *make_two(const struct sim_trace *t, uint64_t budget)
{
    struct two *two = malloc(sizeof *two);

    NJ_CHECK(two);
    two->small = make(t, budget / 5 * 4);
    two->large = make(t, budget / 5);
    return two;
}

static bool lookup_two(void *self, uint32_t i)
{
    struct two *two = self;
    const struct sim_trace *t = two->small->t;

    return t->is_large[t->lookups[i].entry] ? lookup_lru(two->large, i)
                                            : lookup_trial(two->small, i);
}

static void free_two(void *self)
{
    struct two *two = self;

    free_lists(two->small);
    free_lists(two->large);
    free(two);
}

const struct sim_policy sim_former = {"former", make_two, lookup_two, free_two};

/* --- SIEVE (Zhang et al., NSDI 2024) ---------------------------------------------------------- */

/* The hand moves from the oldest entry to the newest, and starts again at the oldest. */
static struct entry *sieve_victim(struct lists *l)
{
    for (;;) {
        if (l->hand == &l->cold)
            l->hand = l->cold.next;
        struct entry *e = nj_container_of(l->hand, struct entry, node);
        l->hand = l->hand->next;
        if (!e->mark)
            return e;
        e->mark = false;
    }
}

static bool lookup_sieve(void *self, uint32_t i)
{
    struct lists *l = self;
    struct entry *e = entry_of(l, i);

    if (e->is_in) {
        e->mark = true;
        return true;
    }
    while (l->n_bytes + bytes_of(l, e) > l->budget)
        drop(l, sieve_victim(l));
    put(l, e, &l->cold);
    return false;
}

const struct sim_policy sim_sieve = {"SIEVE", make, lookup_sieve, free_lists};
