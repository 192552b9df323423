/* SPDX-License-Identifier: BSD-3-Clause */
#include "sched/park.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool nj__park(_Atomic uint32_t *n_wakes, uint32_t seen, nj_ns timeout_ns)
{
    struct timespec ts = {(time_t)(timeout_ns / NJ_SEC), (long)(timeout_ns % NJ_SEC)};
    long r = syscall(SYS_futex, n_wakes, FUTEX_WAIT_PRIVATE, seen,
                     timeout_ns == NJ_NEVER ? NULL : &ts, NULL, 0);

    return !(r < 0 && errno == ETIMEDOUT);
}

void nj__unpark(_Atomic uint32_t *n_wakes)
{
    atomic_fetch_add_explicit(n_wakes, 1, memory_order_release);
    syscall(SYS_futex, n_wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
