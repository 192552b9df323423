/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks of the operating system (clock_gettime(2)), for threads that are not lcores. Any thread.
 */
#pragma once

#include <time.h>

#include "base/types.h"

static inline nj_ns nj_os_clock_gettime_ns(clockid_t which)
{
    struct timespec ts;

    clock_gettime(which, &ts);
    return (nj_ns)ts.tv_sec * NJ_SEC + (nj_ns)ts.tv_nsec;
}

/* The time `wait_ms` from now, for sem_timedwait(3) and pthread_timedjoin_np(3). */
static inline struct timespec nj_os_clock_deadline(uint32_t wait_ms)
{
    nj_ns at = nj_os_clock_gettime_ns(CLOCK_REALTIME) + wait_ms * NJ_MS;

    return (struct timespec){(time_t)(at / NJ_SEC), (long)(at % NJ_SEC)};
}
