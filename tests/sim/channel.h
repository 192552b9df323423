/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire between two ends and all that can happen to a packet on it: rate, queue, delay, loss,
 * reordering, damage. It decides; the simulators carry the bytes.
 */
#ifndef NJ_TESTS_SIM_CHANNEL_H
#define NJ_TESTS_SIM_CHANNEL_H

#include "base/prng.h"
#include "base/types.h"

#define SIM_PPM       1000000u
#define SIM_FRAME_MAX 1514u

/* What one direction does. Chances are parts per million of packets. */
struct sim_faults {
    uint32_t loss, duplicate, reorder, corrupt, truncate;
    nj_ns delay, jitter;                /* jitter keeps the order, reordering does not */
    nj_ns reorder_max;                  /* extra delay of a packet that is overtaken */
    uint32_t ns_per_byte;               /* 0: as fast as you like */
    nj_ns queue_max;                    /* of a slow link; what waits longer is dropped */
    nj_ns mark_above;                   /* what waits longer is marked, if it can be; 0: no marks */
    uint32_t burst;                     /* chance that a burst of loss begins with this packet */
    nj_ns burst_max;                    /* its length at most */
    uint32_t to_bad, to_good, bad_loss; /* Gilbert-Elliott: two states, loss in the bad one */
    nj_ns blackout_at, blackout_for;
};

struct sim_channel_stats {
    uint64_t sent, lost, duplicated, reordered, corrupted, truncated, marked, queue_full, no_mbuf;
};

struct sim_channel {
    struct nj_prng prng;
    struct sim_faults faults[2];            /* by sender */
    nj_ns busy_until[2], in_order_until[2]; /* by sender */
    nj_ns burst_until;                      /* hits both */
    bool bad[2];                            /* Gilbert-Elliott's state */
    struct sim_channel_stats stats;
};

/* What the channel does to a packet. */
struct sim_passage {
    nj_ns at;          /* when it arrives; NJ_NEVER: it does not */
    const char *fate;  /* in a word; "" when nothing happens */
    uint32_t n_bytes;  /* that arrive */
    uint32_t flip_bit; /* the bit that is turned over; UINT32_MAX: none */
    bool mark;         /* the queue was long (RFC 3168) */
};

/* A packet on its way. */
struct sim_frame {
    bool corrupted;
    uint32_t n_bytes;
    uint8_t bytes[];
};

/* A packet of `n_bytes` enters. In calm weather only rate, queue and delay count. */
void nj_sim_channel_pass(struct sim_channel *c, unsigned from, uint32_t n_bytes, nj_ns now,
                         bool calm, struct sim_passage *p);
/* Shall the packet that entered last enter once more? */
bool nj_sim_channel_repeats(struct sim_channel *c, unsigned from, bool calm);

/* A copy of the packet as it will arrive; the caller's to free. */
struct sim_frame *nj_sim_frame_new(const uint8_t *bytes, const struct sim_passage *p);

static inline bool nj_sim_chance(struct nj_prng *p, uint32_t ppm)
{
    return ppm > 0 && nj_prng_below(p, SIM_PPM) < ppm;
}

#endif
