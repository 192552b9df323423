/* SPDX-License-Identifier: BSD-3-Clause */
/* The shards' clock: the time stamp counter in nanoseconds, the same on all lcores. Any thread. */
#pragma once

#include <rte_cycles.h>

#include "base/types.h"

struct nj_tsc_clock {
    uint64_t tsc_base;
    uint64_t ns_per_cycle_q32; /* fixed point, 32 fractional bits */
};

static inline void nj_tsc_clock_init(struct nj_tsc_clock *c)
{
    c->tsc_base = rte_rdtsc();
    c->ns_per_cycle_q32 = (uint64_t)(((unsigned __int128)NJ_SEC << 32) / rte_get_tsc_hz());
}

/* The time of that many cycles. */
static inline nj_ns nj_tsc_clock_duration(const struct nj_tsc_clock *c, uint64_t cycles)
{
    return (nj_ns)((unsigned __int128)cycles * c->ns_per_cycle_q32 >> 32);
}

/* The clock starts at one second, so that 0 is never a valid time. */
static inline nj_ns nj_tsc_clock_to_ns(const struct nj_tsc_clock *c, uint64_t tsc)
{
    return NJ_SEC + nj_tsc_clock_duration(c, tsc - c->tsc_base);
}

static inline nj_ns nj_tsc_clock_now(const struct nj_tsc_clock *c)
{
    return nj_tsc_clock_to_ns(c, rte_rdtsc());
}
