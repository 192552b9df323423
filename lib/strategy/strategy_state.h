/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a strategy in one word: the state of production, and the recruits. The states are
 * those of Jetty's execution strategies. Any thread; lock-free.
 *
 *     IDLE         no thread produces
 *     PRODUCING    one thread produces
 *     REPRODUCING  one thread produces, and must call the producer once more before it goes idle
 *
 * A recruit is a request for a thread that has not arrived yet. There is at most one of each kind:
 *
 *     QUEUED  runs when the executor has a thread for it, perhaps never
 *     SURE    a waiting thread was given the recruit and will arrive; or the sender still searches
 *             such a thread, and takes production back if there is none
 *
 * Each function makes one successful compare-and-swap, except nj__state_try_resume() when another
 * thread produces and nj__state_try_leave() when production was requested. It does so even if the
 * word does not change. So earlier writes of the caller (a queued task) are visible to the thread
 * that changes the word next, and that thread calls the producer.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum nj__production { NJ__STATE_IDLE, NJ__STATE_PRODUCING, NJ__STATE_REPRODUCING };

typedef _Atomic uint32_t nj__state_word;

enum nj__recruit { NJ__RECRUIT_NONE = 0, NJ__RECRUIT_QUEUED = 1, NJ__RECRUIT_SURE = 2 };

/* `recruits`: a bit mask of enum nj__recruit. */
static inline uint32_t nj__state_pack(enum nj__production state, uint32_t recruits)
{
    return (uint32_t)state | recruits << 8;
}

static inline enum nj__production nj__state_production(uint32_t word)
{
    return (enum nj__production)(word & 0xff);
}

static inline uint32_t nj__state_recruit_mask(uint32_t word)
{
    return word >> 8;
}

/* Requests production by another thread. True: a QUEUED recruit was recorded; the caller sends it,
 * or calls nj__state_undo_queued_recruit() if it cannot. */
bool nj__state_request_production(nj__state_word *w);
void nj__state_undo_queued_recruit(nj__state_word *w);

/* A thread offers to produce: the recruit of this kind, which is cleared, or NJ__RECRUIT_NONE.
 * True: it is the producer. False: another thread produces, and will call the producer once more.
 */
bool nj__state_try_become_producer(nj__state_word *w, enum nj__recruit recruit);

/* The producer found no task. True: production is IDLE, and the thread leaves. False: production
 * was requested meanwhile, and the thread continues. */
bool nj__state_try_idle(nj__state_word *w);

/*
 * The producer leaves production to consume a task. Production becomes IDLE before a recruit is
 * sent, because a recruit that arrives in PRODUCING would have nothing to do. True: a recruit of
 * that kind was recorded; the caller sends it, or calls nj__state_undo_queued_recruit() (QUEUED) or
 * nj__state_undo_recruit_and_resume() (SURE). False: such a recruit is already on its way.
 */
bool nj__state_leave_and_recruit(nj__state_word *w, enum nj__recruit recruit);

/* The same without a recruit, when there is nothing to produce. False: production was requested
 * meanwhile; the word is unchanged. */
bool nj__state_try_leave(nj__state_word *w);

/* No waiting thread took the SURE recruit. True: the caller produces again. False: another thread
 * does. */
bool nj__state_undo_recruit_and_resume(nj__state_word *w);

/* The former producer has consumed its task. True: no thread took over, and it produces again.
 * False: another thread produces; with `asks` that thread will call the producer once more. */
bool nj__state_try_resume(nj__state_word *w, bool asks);
