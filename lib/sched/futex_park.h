/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread sleeps until another one wakes it: the kernel's futex, with relative time-outs. */
#ifndef NJ_SCHED_FUTEX_PARK_H
#define NJ_SCHED_FUTEX_PARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

/*
 * Sleep while *n_wakes is `seen`, at most `timeout_ns` (NJ_NEVER: without end). Read `seen` first,
 * then look for work, then park: so no wake-up is lost. False: the time is up. May return early.
 * One thread parks at a word. The word starts as an even number, and only its equality to `seen`
 * means something.
 */
bool nj_park(_Atomic uint32_t *n_wakes, uint32_t seen, nj_ns timeout_ns);
/* Count a wake-up, and wake the thread if it sleeps there; else this is no system call. Does not
 * block. */
void nj_unpark(_Atomic uint32_t *n_wakes);

#endif
