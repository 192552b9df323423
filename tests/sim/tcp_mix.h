/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters that a seed gives the simulator of TCP. Each seed draws a subset of all faults (swarm
 * testing): faults that are always combined hide failures that occur only with one of them. */
#pragma once

#include "channel.h"

/* Misbehaviour of the bad host; bits of tsim_mix.evil. */
#define TSIM_DIVIDE     0x01u /* divides one ACK into many small ones */
#define TSIM_OPTIMISTIC 0x02u /* acknowledges data before it arrives; no guarantees hold then */
#define TSIM_LIE_SACK   0x04u /* SACK blocks of any form, true or not, including reneging */
#define TSIM_SHRINK     0x08u /* shrinks windows */
#define TSIM_TS_JUMP    0x10u /* timestamps jump */
#define TSIM_CRUMBLE    0x20u /* splits segments, down to one byte */

/* Parameters of one host. */
struct tsim_host_mix {
    uint16_t mtu;
    nj_ns step_gap;    /* minimum time between two steps */
    bool tight;        /* few mbufs */
    uint32_t tx_short; /* probability that the device takes no packet in a step */
    uint32_t held_max; /* received mbufs; 0: unlimited */
};

struct tsim_mix {
    struct sim_faults net[2]; /* by sender */
    struct tsim_host_mix host[2];
    uint16_t path_mtu;              /* between the hosts; 0: not limited */
    bool icmp;                      /* ... and the router sends ICMP */
    bool no_ts, no_wscale, no_sack; /* options removed from SYNs */
    uint16_t mss_clamp;             /* MSS written into SYNs; 0: none */
    uint32_t evil;                  /* TSIM_* bits */
    uint32_t evil_host;
    uint32_t evil_chance; /* per segment */
    nj_ns ts_jump_at;
    uint32_t ts_jump;
    nj_ns attack_every, flood_every; /* forged segments, forged SYNs; 0: none */
    /* For the table of throughput: first transmissions of host 1 are lost by their position in the
     * stream, so that two algorithms meet the same losses; and this many last segments are lost. */
    uint32_t loss_by_place, tail_drop;
    uint32_t n_flows;
    uint64_t bytes_budget; /* over all flows and both directions */
    bool v6, newreno, ecn;
    nj_ns start_at, calm_at; /* start of virtual time; end of all faults */
    nj_ns time_wait;
};

void nj_tsim_mix_draw(struct tsim_mix *mix, uint64_t seed);
