/* SPDX-License-Identifier: BSD-3-Clause */
/* The root of fibers without a strategy. */
#pragma once

#include "sched/fiber_internal.h"

/* Run fn(arg) on a free stack until it ends or parks. */
static inline enum nj_fiber_started fiber_start(struct nj_fibers *fs, void (*fn)(void *arg),
                                                void *arg)
{
    nj__fibers_bind(fs);
    return nj__fiber_start_for_class(fs, fn, arg, NULL);
}

/* Resume at most `n_max` woken or due fibers. Returns the number that ran. */
static inline uint32_t fibers_run(struct nj_fibers *fs, nj_ns now, uint32_t n_max)
{
    uint32_t n = nj__fibers_wake_due(fs, now);

    n = n < n_max ? n : n_max;
    for (uint32_t i = 0; i < n; i++)
        nj__fiber_resume(nj__fibers_pop_runnable(fs));
    return n;
}
