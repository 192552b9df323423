/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit that several lcores share: one atomic word, the time at which everything that was asked
 * for so far will have passed at the limit's rate (the "theoretical arrival time" of GCRA). Whoever
 * asks for a lease is told when it may be used; those who ask are served in the order in which they
 * ask. No thread fills anything: credit is what time has passed.
 */
#ifndef NJ_SHAPE_GATE_H
#define NJ_SHAPE_GATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/types.h"
#include "shape/limit.h"

struct nj_gate {
    _Atomic uint64_t tat; /* in NJ_GATE_UNITS of a nanosecond */
};

/* Lease `n_bytes` at `bytes_per_s`. Returns from when on they may leave: `now` or earlier means at
 * once; later ones are to be waited for, or given back. bytes_per_s 0: at once, nothing changes. */
nj_ns nj_gate_lease(struct nj_gate *g, uint64_t bytes_per_s, uint64_t burst, uint64_t n_bytes,
                    nj_ns now);
/* What was leased and not used, at the rate it was leased at. */
void nj_gate_return(struct nj_gate *g, uint64_t bytes_per_s, uint64_t n_bytes);

#endif
