/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleep and wake-up of a thread by futex(2). The lowest bit of the word means that its thread
 * sleeps or is about to; each wake-up adds 2. Only the sleeping thread sets and clears the bit, by
 * a compare-and-swap against the value that it has seen. An earlier wake-up makes that fail. A
 * later one finds the bit and calls the kernel, which does not put a thread to sleep if the word
 * has changed.
 */
#include "base/futex_park.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/interleaving_points.h"

#define ASLEEP    1u
#define WAKE_UNIT 2u

bool nj_park(_Atomic uint32_t *n_wakes, uint32_t seen, nj_ns timeout_ns)
{
    struct timespec ts = {(time_t)(timeout_ns / NJ_SEC), (long)(timeout_ns % NJ_SEC)};
    uint32_t now = seen;

    NJ__SCHED_POINT(NJ__AT_SLEEP, 0);
    if (!atomic_compare_exchange_strong_explicit(n_wakes, &now, seen | ASLEEP, memory_order_relaxed,
                                                 memory_order_relaxed))
        return true;
    long r = syscall(SYS_futex, n_wakes, FUTEX_WAIT_PRIVATE, seen | ASLEEP,
                     timeout_ns == NJ_NEVER ? NULL : &ts, NULL, 0);
    bool late = r < 0 && errno == ETIMEDOUT;
    NJ__SCHED_POINT(NJ__AT_SLEEP, 1);
    atomic_fetch_and_explicit(n_wakes, ~ASLEEP, memory_order_relaxed);
    return !late;
}

void nj_unpark(_Atomic uint32_t *n_wakes)
{
    NJ__SCHED_POINT(NJ__AT_WAKE, 0);
    if (atomic_fetch_add_explicit(n_wakes, WAKE_UNIT, memory_order_release) & ASLEEP)
        syscall(SYS_futex, n_wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
