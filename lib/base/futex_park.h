/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts a thread to sleep until another one wakes it: futex(2) with relative time-outs. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

/*
 * Sleeps while *n_wakes equals `seen`, at most `timeout_ns` (NJ_NEVER: no limit). The caller reads
 * `seen`, then checks for work, then parks: so no wake-up is lost. False: timed out. May return
 * early. Only one thread parks at a word. The word starts as an even number; its value has no other
 * meaning.
 */
bool nj_park(_Atomic uint32_t *n_wakes, uint32_t seen, nj_ns timeout_ns);
/* Counts a wake-up, and wakes the thread if it sleeps there; otherwise makes no system call. Does
 * not block. Any thread. */
void nj_unpark(_Atomic uint32_t *n_wakes);
