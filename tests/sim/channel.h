/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link between two ends with its faults: rate, queue, delay, loss, reordering, damage. It decides
 * on each packet; the simulators carry the bytes.
 */
#pragma once

#include "base/prng.h"
#include "base/types.h"

#define SIM_PPM       1000000u
#define SIM_FRAME_MAX 1514u

/* Faults of one direction. Probabilities are in parts per million of packets. */
struct sim_faults {
    uint32_t loss, duplicate, reorder, corrupt, truncate;
    nj_ns delay, jitter;  /* jitter keeps the order, unlike reordering */
    nj_ns reorder_max;    /* extra delay of an overtaken packet */
    uint32_t ns_per_byte; /* 0: unlimited rate */
    nj_ns queue_max;      /* of a slow link; longer waits are dropped */
    nj_ns mark_above;     /* longer waits are marked if the packet allows it; 0: no marks */
    uint32_t burst;       /* probability that a burst of losses starts with this packet */
    nj_ns burst_max;      /* its maximum length */
    uint32_t to_bad, to_good,
        bad_loss; /* Gilbert-Elliott: state changes, and loss in the bad state */
    nj_ns blackout_at, blackout_for;
};

struct sim_channel_stats {
    uint64_t sent, lost, duplicated, reordered, corrupted, truncated, marked, queue_full, no_mbuf;
};

struct sim_channel {
    struct nj_prng prng;
    struct sim_faults faults[2];            /* by sender */
    nj_ns busy_until[2], in_order_until[2]; /* by sender */
    nj_ns burst_until;                      /* for both directions */
    bool bad[2];                            /* state of Gilbert-Elliott */
    struct sim_channel_stats stats;
};

/* The decision about a packet. */
struct sim_passage {
    nj_ns at;          /* time of arrival; NJ_NEVER: lost */
    const char *fate;  /* its fate in one word; "" for an ordinary delivery */
    uint32_t n_bytes;  /* bytes that arrive */
    uint32_t flip_bit; /* an inverted bit; UINT32_MAX: none */
    bool mark;         /* congestion experienced (RFC 3168) */
};

/* A packet in transit. */
struct sim_frame {
    bool corrupted;
    uint32_t n_bytes;
    uint8_t bytes[];
};

/* Send a packet of `n_bytes`. `calm`: only rate, queue and delay apply. */
void nj_sim_channel_pass(struct sim_channel *c, unsigned from, uint32_t n_bytes, nj_ns now,
                         bool calm, struct sim_passage *p);
/* Is the last packet to be duplicated? */
bool nj_sim_channel_repeats(struct sim_channel *c, unsigned from, bool calm);

/* A copy of the packet as it arrives, to be freed by the caller. */
struct sim_frame *nj_sim_frame_new(const uint8_t *bytes, const struct sim_passage *p);

static inline bool nj_sim_chance(struct nj_prng *p, uint32_t ppm)
{
    return ppm > 0 && nj_prng_below(p, SIM_PPM) < ppm;
}
