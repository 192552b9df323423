/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical timing wheel of one shard: three levels of 256 slots, one tick = 2^20 ns (1.05 ms).
 * It spans 4.9 hours; a timer with a later deadline waits in the last slot and is inserted again.
 *
 * Re-arming is lazy: moving a deadline later only writes the deadline. The node stays in its slot
 * and is inserted again when that slot is due. A TCP connection moves its deadline with every ACK
 * and its timer rarely fires, so this is the cheap direction.
 *
 * A timer never fires early, and at most one tick late if nj_wheel_advance() is called in time. One
 * thread. The wheel never allocates; a timer is embedded in the object that owns it.
 */
#pragma once

#include "base/list.h"
#include "base/types.h"

#define NJ_WHEEL_LEVELS    3
#define NJ_WHEEL_SLOT_BITS 8
#define NJ_WHEEL_SLOTS     (1u << NJ_WHEEL_SLOT_BITS)
#define NJ_WHEEL_TICK_BITS 20

struct nj_timer {
    struct nj_list node;
    nj_ns deadline;
    uint64_t slot_tick; /* the tick at which its slot is due */
};

struct nj_wheel {
    uint64_t tick; /* ticks up to here have been handled */
    uint32_t n_timers;
    struct nj_list slot[NJ_WHEEL_LEVELS][NJ_WHEEL_SLOTS];
};

void nj_wheel_init(struct nj_wheel *w, nj_ns now);

/* Initialises a timer, not armed. */
void nj_timer_init(struct nj_timer *t);
/* Arms the timer for `deadline` or up to a tick later; replaces an earlier deadline. O(1). */
void nj_timer_arm(struct nj_wheel *w, struct nj_timer *t, nj_ns deadline);
void nj_timer_disarm(struct nj_wheel *w, struct nj_timer *t);

static inline bool nj_timer_armed(const struct nj_timer *t)
{
    return nj_list_linked(&t->node);
}

/* Calls `fire` for each timer that is due at `now` and disarms it before; `fire` may arm, disarm or
 * free any timer. */
void nj_wheel_advance(struct nj_wheel *w, nj_ns now, void (*fire)(void *ctx, struct nj_timer *t),
                      void *ctx);

/* A time before which no timer fires; NJ_NEVER: no timer is armed. */
nj_ns nj_wheel_next_due(const struct nj_wheel *w);
