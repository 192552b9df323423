/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transitions of the state word (strategy/strategy_state.h) in the dual strategy. Two threads may
 * sleep in the strategy, on seats 0 and 1. The bits above those of the recruits are the taken
 * seats. SURE means that one of the sleepers was called and will arrive.
 *
 * Each function makes one successful compare-and-swap, except nj__state_leave_seat() without a
 * call.
 */
#pragma once

#include "strategy/strategy_state.h"

enum {
    NJ__SEAT_BIT = 4,
    NJ__N_SEATS = 2
}; /* the bits are NJ__SEAT_BIT << 0 and NJ__SEAT_BIT << 1 */

/* Results of the functions below; other values are the seat on which the thread sleeps. */
enum { NJ__SEAT_PRODUCE = -1, NJ__SEAT_LEAVE = -2 };

/* A recruit arrives (QUEUED), or a former producer has consumed its task (NJ__RECRUIT_NONE). The
 * thread produces if no thread does; else it sleeps if no thread sleeps; else it leaves, and the
 * producer calls produce() once more. */
int nj__state_join(nj__state_word *w, enum nj__recruit recruit);

/* The thread on that seat checks for a call. If there is one, it joins as above. */
int nj__state_leave_seat(nj__state_word *w, int seat);

/* As nj__state_try_idle(), and this thread takes the seat `*where`; NJ__SEAT_LEAVE: both are taken.
 * One change of the word: otherwise the thread could sleep while another one requests production
 * and relies on a queued recruit, which may wait for this thread. */
bool nj__state_take_seat(nj__state_word *w, int *where);

/* The producer leaves production to consume a task. True: a thread sleeps, and production is IDLE;
 * the caller calls nj__state_wake_seated(). False: no thread sleeps, and the caller still produces.
 * `*send`: a QUEUED recruit was recorded, and the caller sends it or calls
 * nj__state_undo_queued_recruit().
 */
bool nj__state_leave_seated(nj__state_word *w, bool *send);

/* If no thread produces or is SURE, marks a sleeper SURE. Returns its seat, on which the caller
 * wakes it; or -1. */
int nj__state_wake_seated(nj__state_word *w);
