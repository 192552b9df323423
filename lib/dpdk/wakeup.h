/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How others wake an lcore that sleeps: other lcores that have packets for it, workers that are
 * done with its jobs, the supervisor.
 *
 * The lcore says that it will sleep (nj_waker_arm), looks once more at everything that others may
 * have left for it, and sleeps if that was nothing (nj_waker_wait). The others leave something, in
 * a ring or in an atomic variable, and then call nj_waker_wake(): while the lcore polls, that costs
 * them a fence and a load, and no system call.
 *
 * No wake-up is lost. Between its write of `asleep` and its look the lcore has a full fence, and so
 * has a waker between what it leaves and its load of `asleep`. One of the two fences is the first:
 *   - the lcore's: the waker's load comes after the lcore's write. If it finds the 1, it changes
 *     that to 0 and writes to the eventfd, and the lcore does not sleep until it has read that. If
 *     it finds a 0, another waker was faster, and its write to the eventfd wakes the lcore, or the
 *     lcore is awake and has taken its 1 back: then it arms again before it sleeps.
 *   - the waker's: the lcore's look comes after it, and finds what was left.
 * The lcore may sleep several times without arming again, as long as it finds the 1 still there:
 * each look was after the fence, and what comes after the last one finds the 1.
 * What was left in vain, as the lcore had seen it already, wakes it once too often, and that is
 * all. A waker that has changed the 1 to 0 writes to the eventfd some time later: until then
 * nobody else does, but the lcore, when it finds the 0, arms again and looks again.
 */
#ifndef NJ_DPDK_WAKEUP_H
#define NJ_DPDK_WAKEUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_atomic.h>

#include "base/attr.h"
#include "base/types.h"

struct nj_waker {
    _Atomic uint32_t asleep; /* 1: the lcore sleeps, or is about to */
    int fd;                  /* eventfd */
} NJ_CACHE_ALIGNED;

/* False: the system has no descriptor for it (errno). */
bool nj_waker_open(struct nj_waker *w);
/* When nobody sleeps and nobody wakes any more. */
void nj_waker_close(struct nj_waker *w);

/* The sleeper's: it is about to sleep, and takes that back. */
void nj_waker_arm(struct nj_waker *w);
void nj_waker_disarm(struct nj_waker *w);

/* Nobody has woken the sleeper since it armed. */
static inline bool nj_waker_armed(const struct nj_waker *w)
{
    return atomic_load_explicit(&w->asleep, memory_order_relaxed) != 0;
}

/* Sleeps until somebody wakes, `fd` (-1: none) has something to read, a signal comes or `time` is
 * over. Returns poll()'s events of `fd`. */
short nj_waker_wait(struct nj_waker *w, int fd, nj_ns time);

void nj__waker_ring(struct nj_waker *w);

/* Something was left for the lcore. Any thread. */
static inline void nj_waker_wake(struct nj_waker *w)
{
    rte_smp_mb();
    if (nj_unlikely(nj_waker_armed(w)))
        nj__waker_ring(w);
}

#endif
