/* SPDX-License-Identifier: BSD-3-Clause */
/* What one seed brings to the simulator of TCP. Each seed draws a subset of all faults (swarm
 * testing): what is always there at once hides what only happens alone. */
#ifndef NJ_TESTS_SIM_TCP_MIX_H
#define NJ_TESTS_SIM_TCP_MIX_H

#include "channel.h"

/* What the bad end of the two does to segments it sends; bits of tsim_mix.evil. */
#define TSIM_DIVIDE     0x01u /* one ACK becomes many small ones */
#define TSIM_OPTIMISTIC 0x02u /* ACKs of what has not arrived: nothing else is promised then */
#define TSIM_LIE_SACK   0x04u /* SACK blocks of all shapes, true or not; reneging is one of them */
#define TSIM_SHRINK     0x08u /* windows are pulled back */
#define TSIM_TS_JUMP    0x10u /* timestamps jump */
#define TSIM_CRUMBLE    0x20u /* segments are cut into pieces, down to one byte */

/* One of the two hosts. */
struct tsim_host_mix {
    uint16_t mtu;
    nj_ns step_gap;    /* two steps are at least so far apart */
    bool tight;        /* few mbufs */
    uint32_t tx_short; /* chance that the device takes nothing in a step */
    uint32_t held_max; /* received mbufs; 0: any number */
};

struct tsim_mix {
    struct sim_faults net[2]; /* by sender */
    struct tsim_host_mix host[2];
    uint16_t path_mtu;              /* in the middle; 0: wide enough */
    bool icmp;                      /* ... and it says so */
    bool no_ts, no_wscale, no_sack; /* options that the middle takes off SYNs */
    uint16_t mss_clamp;             /* what the middle writes into SYNs; 0: nothing */
    uint32_t evil;                  /* TSIM_* bits */
    uint32_t evil_host;
    uint32_t evil_chance; /* per segment */
    nj_ns ts_jump_at;
    uint32_t ts_jump;
    nj_ns attack_every, flood_every; /* forged segments, forged SYNs; 0: none */
    /* For the table of throughput: what host 1 sends the first time is lost by its place in the
     * stream, so that two algorithms meet the same losses; and so many last segments are lost. */
    uint32_t loss_by_place, tail_drop;
    uint32_t n_flows;
    uint64_t bytes_budget; /* over all flows and both directions */
    bool v6, newreno, ecn;
    nj_ns start_at, calm_at; /* virtual time begins; faults end */
    nj_ns time_wait;
};

void nj_tsim_mix_draw(struct tsim_mix *mix, uint64_t seed);

#endif
