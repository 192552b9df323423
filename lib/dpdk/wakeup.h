/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wakes a sleeping lcore: by other lcores with packets for it, by workers with completed tasks, and
 * by the supervisor.
 *
 * The lcore announces its sleep (nj_wakeup_arm), checks all its inputs once more, and sleeps if
 * they are empty (nj_wakeup_wait). A producer fills an input, a ring or an atomic variable, and
 * then calls nj_wakeup_signal(). While the lcore polls, that call costs a fence and a load, and no
 * system call.
 *
 * No wake-up is lost. The lcore has a full fence between its store to `asleep` and its check. The
 * producer has a full fence between filling the input and its load of `asleep`. One fence is first:
 *   - the lcore's: the producer's load follows the lcore's store. If the load returns 1, the
 *     producer changes it to 0 and writes to the eventfd, which ends the lcore's sleep. If it
 *     returns 0, another producer was faster and its write wakes the lcore, or the lcore is awake
 *     and has disarmed: then the lcore arms again before it sleeps.
 *   - the producer's: the lcore's check follows it, and finds the input.
 * The lcore may sleep several times without arming again while `asleep` is still 1: each check
 * followed the fence, and every later producer finds the 1.
 * An input that the lcore has already handled causes one spurious wake-up. A producer that has
 * changed the 1 to 0 may write to the eventfd later. No other producer writes until then, but the
 * lcore finds the 0, arms again and checks again.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_atomic.h>

#include "base/compiler.h"
#include "base/types.h"

struct nj_wakeup {
    _Atomic uint32_t asleep; /* 1: the lcore sleeps, or is about to */
    int fd;                  /* eventfd */
} NJ_CACHE_ALIGNED;

/* False: no eventfd; errno has the reason. */
bool nj_wakeup_open(struct nj_wakeup *w);
/* After the last call of nj_wakeup_wait() and nj_wakeup_signal(). */
void nj_wakeup_close(struct nj_wakeup *w);

/* Announce a sleep, and withdraw that. The sleeping thread only. */
void nj_wakeup_arm(struct nj_wakeup *w);
void nj_wakeup_disarm(struct nj_wakeup *w);

/* Has no thread woken the sleeper since it armed? */
static inline bool nj_wakeup_is_armed(const struct nj_wakeup *w)
{
    return atomic_load_explicit(&w->asleep, memory_order_relaxed) != 0;
}

/* Sleeps until a wake-up, until `fd` or `other` (-1: none) is readable, a signal arrives or `time`
 * has passed. Returns poll()'s events of `fd`. The sleeping thread only. */
short nj_wakeup_wait(struct nj_wakeup *w, int fd, int other, nj_ns time);

void nj__wakeup_write(struct nj_wakeup *w);

/* Wakes the lcore if it sleeps. To be called after filling its input. Any thread. */
static inline void nj_wakeup_signal(struct nj_wakeup *w)
{
    rte_smp_mb();
    if (nj_unlikely(nj_wakeup_is_armed(w)))
        nj__wakeup_write(w);
}
