/* SPDX-License-Identifier: BSD-3-Clause */
/* What one seed brings: the faults of its network, the habits of its clients and of its files. */
#ifndef NJ_TESTS_SIM_MIX_H
#define NJ_TESTS_SIM_MIX_H

#include "base/prng.h"
#include "base/types.h"

#define SIM_PPM 1000000u

struct sim_mix {
    const char *name;
    /* The link, the same in both directions. Parts per million of packets. */
    uint32_t loss, duplicate, reorder, corrupt;
    nj_ns delay, jitter;  /* jitter keeps the order, reordering does not */
    nj_ns reorder_max;    /* extra delay of a packet that is overtaken */
    uint32_t ns_per_byte; /* 0: as fast as you like */
    nj_ns queue_max;      /* of a slow link; what waits longer is dropped */
    uint32_t burst;       /* chance that a burst of loss begins with this packet */
    nj_ns burst_max;      /* its length at most */
    nj_ns blackout_at, blackout_for;
    bool harsh; /* a connection may time out here: dead is then an answer */

    /* The server host. */
    uint32_t tx_short;    /* chance that the device takes only part of a burst */
    uint32_t spurious;    /* chance that an idle shard is stepped all the same */
    uint32_t steer_queue; /* packets between shards */
    bool tight;           /* few transmit mbufs */
    nj_ns time_wait;
    nj_ns drain_at; /* stop the server in the middle of it; NJ_NEVER: when all is done */

    /* Files. */
    nj_ns file_delay; /* at most */
    uint32_t file_queue;
    uint32_t file_refuse; /* chance that a job is refused though there is room */

    /* Clients. */
    uint32_t n_conns, n_requests; /* at most */
    bool odd_clients;             /* resets, stalls, uploads, HTTP/1, garbage, silence */
    bool odd_files;               /* missing, forbidden, broken ones */
    uint32_t bytes_budget;        /* of bodies, over all connections */
    uint16_t client_mtu;

    nj_ns start_at, calm_at; /* virtual time begins; faults end */
};

/* Four of five seeds: 5 % loss, 5 % duplicated, 5 % reordered. The fifth draws its own network.
 * Files and clients vary with all. */
void nj_sim_mix_draw(struct sim_mix *mix, uint64_t seed);

static inline bool nj_sim_chance(struct nj_prng *p, uint32_t ppm)
{
    return ppm > 0 && nj_prng_below(p, SIM_PPM) < ppm;
}

#endif
