/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a strategy in one word: what production does, and which threads are on their way to
 * it.
 *
 *     IDLE         nobody produces
 *     PRODUCING    one thread does
 *     REPRODUCING  one thread does, and shall ask once more before it rests
 *
 * Recruits are threads that were sent for and have not arrived. There is at most one of each kind:
 *
 *     QUEUED  it comes when the executor has a thread for it, perhaps never
 *     SURE    a waiting thread has been given the recruit, and will arrive; or the sender is still
 *             looking for such a thread, and takes production back if there is none
 *
 * Each function is one successful compare-and-swap, but for nj__word_resume() where another thread
 * produces and nj__word_pause() where somebody asked. Also where nothing is to be changed: so what
 * a caller did before (a task it queued) is visible to whoever changes the word next, and that one
 * will look.
 */
#ifndef NJ_SCHED_STRATEGY_STATE_H
#define NJ_SCHED_STRATEGY_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum nj__word_state { NJ__IDLE, NJ__PRODUCING, NJ__REPRODUCING };

typedef _Atomic uint32_t nj__word;

enum nj__recruit { NJ__NO_RECRUIT = 0, NJ__QUEUED = 1, NJ__SURE = 2 };

/* `recruits`: enum nj__recruit, of several kinds together their sum. */
static inline uint32_t nj__word_of(enum nj__word_state state, uint32_t recruits)
{
    return (uint32_t)state | recruits << 8;
}

static inline enum nj__word_state nj__state_of(uint32_t word)
{
    return (enum nj__word_state)(word & 0xff);
}

static inline uint32_t nj__recruits_of(uint32_t word)
{
    return word >> 8;
}

/* Somebody shall produce. True: a QUEUED recruit was written down, and the caller has to send it,
 * or to call nj__word_undo() when it cannot. */
bool nj__word_dispatch(nj__word *w);
void nj__word_undo(nj__word *w);

/* A thread would produce: a recruit, which is on its way no longer, or NJ__NO_RECRUIT. True: it is
 * the producer. False: another one is, which will ask once more. */
bool nj__word_arrive(nj__word *w, enum nj__recruit recruit);

/* The producer found nothing. True: it may leave. False: somebody asked, it goes round again. */
bool nj__word_rest(nj__word *w);

/*
 * The producer would consume a task itself. Production is IDLE now, before anybody is sent for: a
 * recruit that came while it is PRODUCING would find nothing to do. True: a recruit of that kind
 * was written down, and the caller has to send it, or to call nj__word_undo() (QUEUED) or
 * nj__word_retake() (SURE). False: one is on its way.
 */
bool nj__word_leave(nj__word *w, enum nj__recruit recruit);

/* The same without a recruit, where production has nothing to do. False: somebody asked for it
 * meanwhile, and nothing has changed. */
bool nj__word_pause(nj__word *w);

/* No SURE recruit can be had. True: the caller produces again. False: another thread does. */
bool nj__word_retake(nj__word *w);

/* The former producer has consumed its task. True: nobody took over, it produces again. Else
 * nothing changes; but with `asks` the one that produces will ask once more. */
bool nj__word_resume(nj__word *w, bool asks);

#endif
