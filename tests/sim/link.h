/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire between server and client, and all that can happen to a packet on it. */
#ifndef NJ_TESTS_SIM_LINK_H
#define NJ_TESTS_SIM_LINK_H

#include <rte_mbuf.h>

#include "base/prng.h"
#include "base/types.h"

struct sim;

enum sim_side { SIM_SERVER, SIM_CLIENT };

#define SIM_FRAME_MAX 1514u

/* A packet on its way. */
struct sim_frame {
    bool corrupted;
    uint32_t n_bytes;
    uint8_t bytes[];
};

struct sim_link_stats {
    uint64_t sent, lost, duplicated, reordered, corrupted, queue_full, no_mbuf;
};

struct sim_link {
    struct nj_prng prng;
    nj_ns busy_until[2], in_order_until[2]; /* by sender */
    nj_ns burst_until;
    struct sim_link_stats stats;
};

/* Put a copy of `m` on the wire. */
void nj_sim_link_send(struct sim *sim, enum sim_side from, const struct rte_mbuf *m);

#endif
