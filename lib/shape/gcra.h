/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate limit common to several lcores: the generic cell rate algorithm (GCRA).
 *
 * The state is one atomic word, the theoretical arrival time (TAT): when all leased bytes have
 * passed at the limit's rate. A lease returns the time from which it may be used; leases are
 * granted in the order of the calls. No thread refills anything: credit is elapsed time.
 *
 * Leases of at most the burst never allow more than burst + rate * w bytes within any time w.
 * docs/adr/0009-leases-are-times.md says why leases are times, not byte counts. Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/types.h"

/* Units per nanosecond. At 100 Gbit/s two segments take 3,738 units; the word overflows after 36
 * years. */
#define NJ_GCRA_UNITS 16u

struct nj_gcra {
    _Atomic uint64_t tat; /* theoretical arrival time, in 1/NJ_GCRA_UNITS ns */
};

/* Time of `n_bytes` at `bytes_per_s` > 0, in units. cost rounds up, so that rounding never adds to
 * a rate; worth rounds down, for returned bytes. At most 9 years. */
uint64_t nj_gcra_cost_up(uint64_t bytes_per_s, uint64_t n_bytes);
uint64_t nj_gcra_cost_down(uint64_t bytes_per_s, uint64_t n_bytes);

/* Leases `n_bytes` at `bytes_per_s`. Returns the time from which they may be sent; `now` or
 * earlier: at once. A later lease is to be waited for, or returned. With bytes_per_s 0 it returns
 * `now` and has no effect. */
nj_ns nj_gcra_reserve_bytes(struct nj_gcra *g, uint64_t bytes_per_s, uint64_t burst,
                            uint64_t n_bytes, nj_ns now);
/* Returns unused bytes of a lease, at the rate of the lease. Returned credit is worth at most the
 * burst, whenever it is returned. */
void nj_gcra_return(struct nj_gcra *g, uint64_t bytes_per_s, uint64_t n_bytes);
/* Called when the rate has changed: debt from a lower rate is reduced to one burst at the new rate.
 */
void nj_gcra_clamp(struct nj_gcra *g, uint64_t bytes_per_s, uint64_t burst, nj_ns now);
