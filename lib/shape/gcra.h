/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit that several lcores share: one atomic word, the time at which everything that was asked
 * for so far will have passed at the limit's rate (the "theoretical arrival time" of GCRA). Whoever
 * asks for a lease is told when it may be used; those who ask are served in the order in which they
 * ask. No thread fills anything: credit is what time has passed.
 *
 * Leases of at most the burst never let more than burst + rate * w leave within any time w.
 * Why times and not counts of bytes: docs/adr/0009-leases-are-times.md.
 */
#ifndef NJ_SHAPE_GCRA_H
#define NJ_SHAPE_GCRA_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/types.h"
#include "shape/rate_limit.h"

/* A sixteenth of a nanosecond: at 100 Gbit/s two segments take 3,738 of them, and the word goes
 * around after 36 years. */
#define NJ_GATE_UNITS 16u

struct nj_gate {
    _Atomic uint64_t tat; /* in NJ_GATE_UNITS of a nanosecond */
};

/* Units that `n_bytes` take at `bytes_per_s` > 0: rounded up, so that no rounding adds to a rate;
 * rounded down, for what goes the other way. At most 9 years. */
uint64_t nj_gate_cost(uint64_t bytes_per_s, uint64_t n_bytes);
uint64_t nj_gate_worth(uint64_t bytes_per_s, uint64_t n_bytes);

/* Lease `n_bytes` at `bytes_per_s`. Returns from when on they may leave: `now` or earlier means at
 * once; later ones are to be waited for, or given back. bytes_per_s 0: at once, nothing changes. */
nj_ns nj_gate_lease(struct nj_gate *g, uint64_t bytes_per_s, uint64_t burst, uint64_t n_bytes,
                    nj_ns now);
/* What was leased and not used, at the rate it was leased at. Credit that is back is worth no more
 * than the burst, however long it was away. */
void nj_gate_return(struct nj_gate *g, uint64_t bytes_per_s, uint64_t n_bytes);
/* The rate has changed: whatever is owed from a slower past shrinks to one burst of now. */
void nj_gate_forgive(struct nj_gate *g, uint64_t bytes_per_s, uint64_t burst, nj_ns now);

#endif
