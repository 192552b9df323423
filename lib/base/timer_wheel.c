/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical timing wheel, scheme 7 of Varghese and Lauck, Hashed and Hierarchical Timing Wheels
 * (SOSP 1987). Timers are re-armed lazily, see timer_wheel.h.
 */
#include "base/timer_wheel.h"

#include "base/compiler.h"

#define SLOT_MASK (NJ_WHEEL_SLOTS - 1u)

static uint64_t tick_at_or_after(nj_ns t)
{
    nj_ns tick_ns = (nj_ns)1 << NJ_WHEEL_TICK_BITS;
    return (t >> NJ_WHEEL_TICK_BITS) + ((t & (tick_ns - 1)) != 0);
}

void nj_wheel_init(struct nj_wheel *w, nj_ns now)
{
    w->tick = now >> NJ_WHEEL_TICK_BITS;
    w->n_timers = 0;
    for (unsigned l = 0; l < NJ_WHEEL_LEVELS; l++)
        for (unsigned s = 0; s < NJ_WHEEL_SLOTS; s++)
            nj_list_init(&w->slot[l][s]);
}

void nj_timer_init(struct nj_timer *t)
{
    nj_list_init(&t->node);
    t->deadline = NJ_NEVER;
    t->slot_tick = 0;
}

/* Inserts the timer into the slot of its deadline, relative to the current tick. */
static void insert(struct nj_wheel *w, struct nj_timer *t)
{
    uint64_t due = tick_at_or_after(t->deadline);
    if (due <= w->tick)
        due = w->tick + 1;
    uint64_t ahead = due - w->tick;
    unsigned level = 0;
    /* A deadline a full turn away uses the slot of the current tick, which is already empty. */
    while (level < NJ_WHEEL_LEVELS - 1 && ahead > (uint64_t)1 << (NJ_WHEEL_SLOT_BITS * (level + 1)))
        level++;
    uint64_t span = (uint64_t)1 << (NJ_WHEEL_SLOT_BITS * NJ_WHEEL_LEVELS);
    if (ahead > span)
        due = w->tick + span;

    /* A slot of a higher level is due at its first tick. */
    unsigned shift = NJ_WHEEL_SLOT_BITS * level;
    t->slot_tick = due >> shift << shift;
    nj_list_push_back(&w->slot[level][(due >> shift) & SLOT_MASK], &t->node);
}

void nj_timer_arm(struct nj_wheel *w, struct nj_timer *t, nj_ns deadline)
{
    t->deadline = deadline;
    if (nj_timer_armed(t)) {
        if (tick_at_or_after(deadline) >= t->slot_tick)
            return; /* later than its slot: inserted again when the slot is due */
        nj_list_del(&t->node);
    } else {
        w->n_timers++;
    }
    insert(w, t);
}

void nj_timer_disarm(struct nj_wheel *w, struct nj_timer *t)
{
    if (!nj_timer_armed(t))
        return;
    nj_list_del(&t->node);
    w->n_timers--;
}

/* Moves the timers of the slot of `level` that starts at the current tick to lower levels. */
static void cascade(struct nj_wheel *w, unsigned level)
{
    struct nj_list batch;
    struct nj_list *n;

    nj_list_init(&batch);
    nj_list_splice(&batch, &w->slot[level][(w->tick >> (NJ_WHEEL_SLOT_BITS * level)) & SLOT_MASK]);
    /* A timer due at the current tick goes to the level-0 slot that is handled next. */
    w->tick--;
    while ((n = nj_list_pop(&batch)))
        insert(w, nj_container_of(n, struct nj_timer, node));
    w->tick++;
}

static void fire_slot(struct nj_wheel *w, struct nj_list *slot,
                      void (*fire)(void *ctx, struct nj_timer *t), void *ctx)
{
    nj_ns tick_time = w->tick << NJ_WHEEL_TICK_BITS;
    struct nj_list batch;
    struct nj_list *n;

    nj_list_init(&batch);
    nj_list_splice(&batch, slot);
    while ((n = nj_list_pop(&batch))) {
        struct nj_timer *t = nj_container_of(n, struct nj_timer, node);
        __builtin_prefetch(batch.next);
        if (t->deadline > tick_time) {
            insert(w, t); /* was re-armed lazily */
        } else {
            w->n_timers--;
            fire(ctx, t);
        }
    }
}

void nj_wheel_advance(struct nj_wheel *w, nj_ns now, void (*fire)(void *ctx, struct nj_timer *t),
                      void *ctx)
{
    uint64_t last = now >> NJ_WHEEL_TICK_BITS;

    while (w->tick < last) {
        if (w->n_timers == 0) {
            w->tick = last;
            return;
        }
        w->tick++;
        for (unsigned level = NJ_WHEEL_LEVELS - 1; level > 0; level--) {
            uint64_t below = ((uint64_t)1 << (NJ_WHEEL_SLOT_BITS * level)) - 1;
            if ((w->tick & below) == 0)
                cascade(w, level);
        }
        fire_slot(w, &w->slot[0][w->tick & SLOT_MASK], fire, ctx);
    }
}

nj_ns nj_wheel_next_due(const struct nj_wheel *w)
{
    if (w->n_timers == 0)
        return NJ_NEVER;
    uint64_t best = UINT64_MAX;
    for (unsigned level = 0; level < NJ_WHEEL_LEVELS; level++) {
        unsigned shift = NJ_WHEEL_SLOT_BITS * level;
        for (uint64_t i = 1; i <= NJ_WHEEL_SLOTS; i++) {
            uint64_t at = (w->tick >> shift) + i;
            if (nj_list_empty(&w->slot[level][at & SLOT_MASK]))
                continue;
            if (at << shift < best)
                best = at << shift;
            break;
        }
    }
    return best << NJ_WHEEL_TICK_BITS;
}
