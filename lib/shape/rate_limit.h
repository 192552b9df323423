/* SPDX-License-Identifier: BSD-3-Clause */
/* Rate limits of bytes: of the server, of a class, of a client in it, and of a response. As in the
 * hierarchical token bucket (HTB), a limit has a guaranteed rate and a ceiling. */
#pragma once

#include <stdint.h>

/* Bounds of a quantum, the bytes granted per wake. The minimum is two full Ethernet segments,
 * unless less is left to send. The maximum keeps rounds short. */
#define NJ_QUANTUM_MIN_BYTES 2920u
#define NJ_QUANTUM_MAX_BYTES (32u * 1024u)

/* Bytes of response bodies per second; heads are not limited. All 0: no limit. */
struct nj_limit {
    uint64_t rate;    /* guaranteed while siblings have demand; the remainder is divided in
                         proportion to this; 0: the average of the siblings */
    uint64_t ceiling; /* never exceeded; 0: the ceiling of the parent */
    uint64_t burst;   /* bytes sent at once after a pause; 0: 50 ms of the ceiling, at least 2 *
                         NJ_QUANTUM_MIN_BYTES */
};
