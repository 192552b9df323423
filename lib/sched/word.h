/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a strategy in one word: what production does, and how many threads are on their way
 * to it.
 *
 *     IDLE         nobody produces
 *     PRODUCING    one thread does
 *     REPRODUCING  one thread does, and shall ask once more before it rests
 *
 * `pending` counts recruits: threads that were sent for and have not arrived. It is 0 or 1, or -1
 * for the moment in which a recruit has arrived before the one who sent it wrote that down.
 *
 * Each function is one successful compare-and-swap. Also where nothing is to be changed: so what a
 * caller did before (a task it queued) is visible to whoever changes the word next, and that one
 * will look.
 */
#ifndef NJ_SCHED_WORD_H
#define NJ_SCHED_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum nj__word_state { NJ__IDLE, NJ__PRODUCING, NJ__REPRODUCING };

typedef _Atomic uint32_t nj__word;

static inline uint32_t nj__word_of(enum nj__word_state state, int pending)
{
    return (uint32_t)state | (uint32_t)(pending + 1) << 8;
}

static inline enum nj__word_state nj__state_of(uint32_t word)
{
    return (enum nj__word_state)(word & 0xff);
}

static inline int nj__pending_of(uint32_t word)
{
    return (int)(word >> 8) - 1;
}

/* Somebody shall produce. True: pending was raised, and the caller has to send the recruit, or to
 * call nj__word_undo() when it cannot. */
bool nj__word_dispatch(nj__word *w);
void nj__word_undo(nj__word *w);

/* A thread would produce; a `recruit` is no longer pending then. True: it is the producer. False:
 * another one is, which will ask once more. */
bool nj__word_arrive(nj__word *w, bool recruit);

/* The producer found nothing. True: it may leave. False: somebody asked, it goes round again. */
bool nj__word_rest(nj__word *w);

/*
 * The producer would consume a task itself, if somebody takes over. True: production is IDLE now
 * and a recruit is pending, so it will be taken up. send(ctx) is called at most once, and only when
 * nobody is pending: it shall make a waiting thread arrive as a recruit, or return false.
 */
bool nj__word_leave(nj__word *w, bool (*send)(void *ctx), void *ctx);
/* The same when send() may only be called once production is IDLE: as it can take its time. */
bool nj__word_leave_first(nj__word *w);

/* The former producer has consumed its task. True: nobody took over, it produces again. */
bool nj__word_resume(nj__word *w);

#endif
