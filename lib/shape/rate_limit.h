/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody may send: the whole server, a class, a client of it, a request. */
#ifndef NJ_SHAPE_RATE_LIMIT_H
#define NJ_SHAPE_RATE_LIMIT_H

#include <stdint.h>

/* A wake of a paced response carries at least so much, unless less is left: two full segments of
 * Ethernet. And at most so much, so that turns stay short. */
#define NJ_QUANTUM_MIN_BYTES 2920u
#define NJ_QUANTUM_MAX_BYTES (32u * 1024u)

/* Bytes of response bodies per second; heads are free. All 0: no limit. */
struct nj_limit {
    uint64_t rate;    /* it is sure of this much while its siblings want theirs, too, and what is
                       * left is shared in proportion to this; 0: as its siblings on the average */
    uint64_t ceiling; /* it never gets more; 0: as much as its parent has */
    uint64_t burst;   /* what may go at once after a pause; 0: 50 ms of the ceiling, at least
                       * 2 * NJ_QUANTUM_MIN_BYTES */
};

#endif
