/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical timing wheel of one shard: three levels of 256 slots, one tick = 2^20 ns (1.05 ms).
 * It spans 4.9 hours; a later deadline waits in the last slot and is filed again.
 *
 * Re-arming is lazy: moving a deadline later only writes the deadline; the node stays in its slot
 * and is filed again when that slot comes up. A TCP connection moves its deadline with every ACK
 * and fires once in a blue moon, so this is the cheap direction.
 *
 * A timer never fires early and at most one tick late, provided nj_wheel_advance() is called.
 */
#ifndef NJ_SCHED_TIMER_WHEEL_H
#define NJ_SCHED_TIMER_WHEEL_H

#include "base/list.h"
#include "base/types.h"

#define NJ_WHEEL_LEVELS    3
#define NJ_WHEEL_SLOT_BITS 8
#define NJ_WHEEL_SLOTS     (1u << NJ_WHEEL_SLOT_BITS)
#define NJ_WHEEL_TICK_BITS 20

struct nj_timer {
    struct nj_list node;
    nj_ns deadline;
    uint64_t filed_tick; /* the tick at which its slot comes up */
};

struct nj_wheel {
    uint64_t tick; /* ticks up to here have been handled */
    uint32_t n_timers;
    struct nj_list slot[NJ_WHEEL_LEVELS][NJ_WHEEL_SLOTS];
};

void nj_wheel_init(struct nj_wheel *w, nj_ns now);

/* Prepare a timer; it is not armed. */
void nj_timer_init(struct nj_timer *t);
/* Fire at `deadline` or up to a tick later; replaces an earlier arming. O(1). */
void nj_timer_arm(struct nj_wheel *w, struct nj_timer *t, nj_ns deadline);
void nj_timer_disarm(struct nj_wheel *w, struct nj_timer *t);

static inline bool nj_timer_armed(const struct nj_timer *t)
{
    return nj_list_linked(&t->node);
}

/* Call `fire` for each timer due at `now`, disarmed before the call; it may arm, disarm or free
 * any timer. */
void nj_wheel_advance(struct nj_wheel *w, nj_ns now, void (*fire)(void *ctx, struct nj_timer *t),
                      void *ctx);

/* A time before which nothing fires: sleep or jump there. NJ_NEVER when no timer is armed. */
nj_ns nj_wheel_next(const struct nj_wheel *w);

#endif
