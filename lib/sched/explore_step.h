/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where another thread may come in between: in front of each access to a word that threads share.
 *
 * Nothing in production. Tests compile the same files with -DNJ_STEPS and supply nj__step(): the
 * explorer gives the processor to another thread there, the stress test waits a moment.
 */
#ifndef NJ_SCHED_EXPLORE_STEP_H
#define NJ_SCHED_EXPLORE_STEP_H

#include <stdint.h>

enum nj__place {
    NJ__AT_WORD_READ,
    NJ__AT_DISPATCH,
    NJ__AT_DISPATCH_UNDO,
    NJ__AT_ARRIVAL,
    NJ__AT_REST,
    NJ__AT_RECRUIT,
    NJ__AT_PAUSE,
    NJ__AT_RETAKE,
    NJ__AT_RESUME,
    NJ__AT_JOIN,
    NJ__AT_GET_UP,
    NJ__AT_SEATED, /* a thread of the dual strategy is about to sleep */
    NJ__AT_LEAVE_TO_SEATED,
    NJ__AT_CALL,
    NJ__AT_PRODUCE,
    NJ__AT_EXECUTE,
    NJ__AT_TRY_EXECUTE,
    NJ__AT_RUN,
    NJ__AT_HOLD,    /* a reference is taken, `seen` were there */
    NJ__AT_DROP,    /* ... and given back */
    NJ__AT_STOPPED, /* is it stopped? */
    NJ__AT_STOP,
    NJ__AT_RESTART, /* the owner looks whether it may, and begins anew */
    NJ__AT_SLEEP,
    NJ__AT_WAKE,
    NJ__AT_SEAT,       /* a reserved thread sits down */
    NJ__AT_SEAT_LOOK,  /* ... looks whether it was given something */
    NJ__AT_SEAT_LEAVE, /* ... has waited long enough */
    NJ__AT_SEAT_FREE,  /* ... gets up */
    NJ__AT_SEAT_COUNT, /* the count of seats changes */
    NJ__AT_HAND_OVER,
    NJ__AT_ROUSE,
    NJ__AT_POOL_LOCK,    /* the pool's lock, taken or tried */
    NJ__AT_POOL_RELEASE, /* ... let go of */
    NJ__AT_POOL_NEWS,    /* what others left for whoever has the lock */
    NJ__AT_POOL_FLAG,    /* what whoever has the lock says to others */
    NJ__AT_IDLE_LOOK,    /* a thread is about to sleep */
    NJ__N_PLACES
};

#ifdef NJ_STEPS
/* `seen`: what decides what happens next and is known to this thread only. */
void nj__step(enum nj__place place, uint64_t seen);
#define NJ__STEP(place, seen) nj__step(place, seen)
#else
#define NJ__STEP(place, seen) ((void)(seen))
#endif

#endif
