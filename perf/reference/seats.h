/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of the state word (sched/word.h) in the dual strategy. Two threads may sleep in the
 * strategy, on seats 0 and 1. The bits above those of the recruits say which seats are taken. SURE
 * says that one of the sleepers was called, and will arrive.
 *
 * Each function is one successful compare-and-swap, but for nj__word_get_up() where nobody called.
 */
#ifndef NJ_REFERENCE_SEATS_H
#define NJ_REFERENCE_SEATS_H

#include "sched/strategy_state.h"

enum { NJ__SEAT = 4, NJ__SEATS = 2 }; /* the bits are NJ__SEAT << 0 and NJ__SEAT << 1 */

/* Or the seat on which it sleeps. */
enum { NJ__PRODUCES = -1, NJ__LEAVES = -2 };

/* A recruit arrives (QUEUED), or a former producer has consumed its task (NJ__NO_RECRUIT). It
 * produces if nobody does; else it sleeps if no other thread does; else it leaves, and the producer
 * will ask once more. */
int nj__word_join(nj__word *w, enum nj__recruit recruit);

/* The one on that seat looks whether one of them was called. Then it is as if it joined. */
int nj__word_get_up(nj__word *w, int seat);

/* As nj__word_rest(), and this thread sleeps on the seat `*where` from then on; NJ__LEAVES: both
 * are taken. In one change of the word: else it could sleep while somebody asks for production and
 * counts on a recruit in the queue, which may wait for this very thread. */
bool nj__word_sit(nj__word *w, int *where);

/* The producer would consume a task itself. True: a seat is taken, and production is IDLE; the
 * caller has to call nj__word_call(). False: there is none, the caller is still the producer.
 * `*send`: a QUEUED recruit was written down, and the caller has to send it, or to call
 * nj__word_undo(). */
bool nj__word_leave_to_seated(nj__word *w, bool *send);

/* If nobody produces and none is on its way, one that sleeps is SURE now. Its seat, on which the
 * caller has to wake it, or -1. */
int nj__word_call(nj__word *w);

#endif
