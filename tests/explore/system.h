/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lib/sched has of the kernel (sched/park.h, sched/thread.h), for the explorer's threads:
 * locks, sleep and wake-ups, threads. Sleep may end too early or by its time-out, and a thread may
 * be refused, as often as the world says.
 */
#ifndef NJ_TESTS_SYSTEM_H
#define NJ_TESTS_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/explore_step.h"

/* Places of the models, behind those of lib/sched. */
enum { EXPLORE_AT_SLEEP = NJ__N_PLACES + 1, EXPLORE_AT_WAKE, EXPLORE_AT_JOIN, EXPLORE_N_PLACES };

struct explore_system {
    uint8_t n_timeouts;   /* so often, in sum, has somebody slept for too long */
    uint8_t n_early;      /* ... or wakes up for no reason */
    uint8_t n_no_threads; /* so often is a thread refused */
};

/* In the world's begin(): nothing of this happens. */
void explore_system_begin(void);
/* From now on. */
void explore_system(struct explore_system is);
/* No thread was refused. */
bool explore_system_is_whole(void);
uint64_t explore_system_hash(void);

#endif
