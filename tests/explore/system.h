/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of the kernel functions under lib/strategy (base/futex_park.h,
 * strategy/os_thread_mutex.h) for the explorer's threads: locks, sleep, wake-ups and threads. The
 * world sets how often a sleep may end early or time out, and how often a thread may be refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/interleaving_points.h"

/* Places of the models, after those of lib/strategy. */
enum { EXPLORE_AT_SLEEP = NJ__N_PLACES + 1, EXPLORE_AT_WAKE, EXPLORE_AT_JOIN, EXPLORE_N_PLACES };

struct explore_system {
    uint8_t n_timeouts;   /* sleeps that time out, in sum */
    uint8_t n_early;      /* spurious wake-ups, in sum */
    uint8_t n_no_threads; /* thread creations that are refused, in sum */
};

/* In the world's begin(): none of these events happens. */
void explore_system_begin(void);
/* Allows these events from now on. */
void explore_system(struct explore_system is);
/* No thread was refused. */
bool explore_system_is_whole(void);
uint64_t explore_system_hash(void);
