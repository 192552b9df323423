/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * W-TinyLFU (Einziger, Friedman, Manes, TinyLFU: A Highly Efficient Cache Admission Policy, ACM
 * Transactions on Storage 2017) with sizes by aggregated victims (Einziger, Eytan, Friedman, Manes,
 * Lightweight Robust Size Aware Cache Management, 2021): the main cache admits an entry that leaves
 * the window if its estimated frequency exceeds the sum of the frequencies of all entries that it
 * would evict.
 *
 * The window is LRU and has 1 % of the budget. The main cache is a segmented LRU whose protected
 * segment has four fifths. The frequency sketch has four rows of counters up to 15. It halves all
 * counters after every ten lookups per entry of average size that fits in the budget.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "sim.h"

#define ROWS        4u
#define COUNTER_MAX 15u
#define SAMPLE      10u
#define WINDOW_PART 100u
#define COUNTERS    4u /* minimum per row and entry that fits in the budget */

enum part { OUT, WINDOW, PROBATION, PROTECTED, N_PARTS };

struct entry {
    struct nj_list node;
    uint8_t part;
};

struct tinylfu {
    const struct sim_trace *t;
    struct entry *entries;
    uint64_t most[N_PARTS], n_bytes[N_PARTS], main_max;
    struct nj_list list[N_PARTS]; /* the oldest entry first */
    uint8_t *counters;            /* ROWS rows of n_counters, a power of two */
    uint32_t n_counters, n_counted, sample;
};

static void *make(const struct sim_trace *t, uint64_t budget)
{
    struct tinylfu *l = calloc(1, sizeof *l);

    NJ_CHECK(l);
    l->t = t;
    l->most[WINDOW] = budget / WINDOW_PART;
    l->main_max = budget - l->most[WINDOW];
    l->most[PROTECTED] = l->main_max / 5 * 4;
    uint64_t n = budget / (t->footprint / t->n_entries) + 1; /* entries that fit */
    for (l->n_counters = 64; l->n_counters < COUNTERS * n; l->n_counters *= 2)
        continue;
    l->sample = (uint32_t)(n * SAMPLE);
    l->counters = calloc(ROWS, l->n_counters);
    l->entries = calloc(t->n_entries, sizeof *l->entries);
    NJ_CHECK(l->counters && l->entries);
    for (int i = 0; i < N_PARTS; i++)
        nj_list_init(&l->list[i]);
    return l;
}

static void free_tinylfu(void *self)
{
    struct tinylfu *l = self;

    free(l->counters);
    free(l->entries);
    free(l);
}

/* --- the frequency sketch --------------------------------------------------------------------- */

static uint8_t *counter(struct tinylfu *l, uint32_t entry, uint32_t row)
{
    struct nj_prng r = {.state = ((uint64_t)row << 32 | entry) * UINT64_C(0x9e3779b97f4a7c15)};

    return &l->counters[row * l->n_counters + (nj_prng_next(&r) & (l->n_counters - 1))];
}

/* Estimated number of lookups of the entry: the least of its counters. */
static uint32_t estimate(struct tinylfu *l, const struct entry *e)
{
    uint32_t least = COUNTER_MAX;

    for (uint32_t row = 0; row < ROWS; row++) {
        uint8_t n = *counter(l, (uint32_t)(e - l->entries), row);
        least = n < least ? n : least;
    }
    return least;
}

static void count(struct tinylfu *l, uint32_t entry)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        uint8_t *n = counter(l, entry, row);
        *n += *n < COUNTER_MAX;
    }
    if (++l->n_counted < l->sample)
        return;
    for (uint32_t i = 0; i < ROWS * l->n_counters; i++)
        l->counters[i] /= 2;
    l->n_counted /= 2;
}

/* --- lists ------------------------------------------------------------------------------------ */

static uint64_t bytes_of(const struct tinylfu *l, const struct entry *e)
{
    return l->t->n_bytes[e - l->entries];
}

static void move(struct tinylfu *l, struct entry *e, enum part part)
{
    if (e->part != OUT) {
        nj_list_del(&e->node);
        l->n_bytes[e->part] -= bytes_of(l, e);
    }
    e->part = part;
    if (part == OUT)
        return;
    nj_list_push_back(&l->list[part], &e->node);
    l->n_bytes[part] += bytes_of(l, e);
}

static struct entry *oldest(struct tinylfu *l, enum part part)
{
    return nj_container_of(l->list[part].next, struct entry, node);
}

static void use(struct tinylfu *l, struct entry *e)
{
    move(l, e, e->part == WINDOW ? WINDOW : PROTECTED);
    while (l->n_bytes[PROTECTED] > l->most[PROTECTED])
        move(l, oldest(l, PROTECTED), PROBATION);
}

static uint64_t main_bytes(const struct tinylfu *l)
{
    return l->n_bytes[PROBATION] + l->n_bytes[PROTECTED];
}

/* The eviction order: all entries in probation, then all protected entries, the oldest first. */
static struct nj_list *next_victim(struct tinylfu *l, struct nj_list *at)
{
    at = at->next;
    return at == &l->list[PROBATION] ? l->list[PROTECTED].next : at;
}

/* Whether the main cache admits the entry: whether its frequency exceeds that of its victims. */
static bool is_admitted(struct tinylfu *l, const struct entry *e)
{
    uint64_t n_bytes = main_bytes(l);
    uint32_t frequency = estimate(l, e), of_victims = 0;
    struct nj_list *at = &l->list[PROBATION];

    while (n_bytes + bytes_of(l, e) > l->main_max) {
        at = next_victim(l, at);
        NJ_CHECK(at != &l->list[PROTECTED]);
        const struct entry *victim = nj_container_of(at, struct entry, node);
        of_victims += estimate(l, victim);
        if (of_victims >= frequency)
            return false;
        n_bytes -= bytes_of(l, victim);
    }
    return true;
}

static void leave_window(struct tinylfu *l, struct entry *e)
{
    if (!is_admitted(l, e)) {
        move(l, e, OUT);
        return;
    }
    while (main_bytes(l) + bytes_of(l, e) > l->main_max)
        move(l, oldest(l, nj_list_empty(&l->list[PROBATION]) ? PROTECTED : PROBATION), OUT);
    move(l, e, PROBATION);
}

static bool lookup(void *self, uint32_t i)
{
    struct tinylfu *l = self;
    uint32_t number = l->t->lookups[i].entry;
    struct entry *e = &l->entries[number];

    count(l, number);
    if (e->part != OUT) {
        use(l, e);
        return true;
    }
    move(l, e, WINDOW);
    while (l->n_bytes[WINDOW] > l->most[WINDOW])
        leave_window(l, oldest(l, WINDOW));
    return false;
}

const struct sim_policy sim_tinylfu = {"W-TinyLFU", make, lookup, free_tinylfu};
