/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling points, as in CHESS (Musuvathi et al., OSDI 2008): one before each access to a word
 * that threads share.
 *
 * They are empty in production. Tests compile the same files with -DNJ_SCHED_POINTS and supply
 * nj__sched_point(). The explorer switches threads there; the stress test delays the thread.
 */
#pragma once

#include <stdint.h>

enum nj__place {
    NJ__AT_WORD_READ,
    NJ__AT_DISPATCH,
    NJ__AT_UNDO_QUEUED,
    NJ__AT_ARRIVAL,
    NJ__AT_TRY_IDLE,
    NJ__AT_RECRUIT,
    NJ__AT_PAUSE,
    NJ__AT_RETAKE,
    NJ__AT_RESUME,
    NJ__AT_JOIN,
    NJ__AT_LEAVE_SEAT,
    NJ__AT_SEATED, /* a thread of the dual strategy is about to sleep */
    NJ__AT_LEAVE_TO_SEATED,
    NJ__AT_WAKE_SEATED,
    NJ__AT_PRODUCE,
    NJ__AT_EXECUTE,
    NJ__AT_TRY_EXECUTE,
    NJ__AT_RUN,
    NJ__AT_REF_GET, /* a reference is taken; `seen`: the count before */
    NJ__AT_REF_PUT, /* ... and released */
    NJ__AT_STOPPED, /* reads whether it is stopped */
    NJ__AT_STOP,
    NJ__AT_RESTART, /* the owner restarts a stopped strategy */
    NJ__AT_SLEEP,
    NJ__AT_WAKE,
    NJ__AT_SEAT,       /* a reserved thread takes a seat */
    NJ__AT_SEAT_LOOK,  /* ... checks its seat for a task */
    NJ__AT_SEAT_LEAVE, /* ... gives up its seat */
    NJ__AT_SEAT_FREE,  /* ... frees its seat */
    NJ__AT_SEAT_COUNT, /* the count of seats changes */
    NJ__AT_HAND_OVER,
    NJ__AT_RELEASE,
    NJ__AT_POOL_LOCK,    /* the pool's lock, taken or tried */
    NJ__AT_POOL_RELEASE, /* ... released */
    NJ__AT_POOL_REQUEST, /* requests for the holder of the lock */
    NJ__AT_POOL_FLAG,    /* flags that the holder of the lock sets */
    NJ__AT_IDLE_LOOK,    /* a thread is about to sleep */
    NJ__N_PLACES
};

#ifdef NJ_SCHED_POINTS
/* `seen`: the thread-local value that decides the next step. */
void nj__sched_point(enum nj__place place, uint64_t seen);
#define NJ__SCHED_POINT(place, seen) nj__sched_point(place, seen)
#else
#define NJ__SCHED_POINT(place, seen) ((void)(seen))
#endif
