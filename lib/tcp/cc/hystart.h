/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slow start, with HyStart++ (RFC 9406) in the first one: where the round trips grow, a queue is
 * filling, and it is better to stop doubling now than to learn the limit by losing half a window.
 * And where ACKs keep coming for half of a round trip, doubling would overfill the path (ADR 8).
 */
#ifndef NJ_TCP_CC_HYSTART_H
#define NJ_TCP_CC_HYSTART_H

#include "tcp/cc/congestion.h"

/* RFC 9406 4.3 */
#define NJ_HYSTART_MIN_RTT_THRESH_US  4000u
#define NJ_HYSTART_MAX_RTT_THRESH_US  16000u
#define NJ_HYSTART_MIN_RTT_DIVISOR    8u
#define NJ_HYSTART_N_RTT_SAMPLE       8u
#define NJ_HYSTART_CSS_GROWTH_DIVISOR 4u
#define NJ_HYSTART_CSS_ROUNDS         5u

/* ACKs no further apart belong together: they tell how long the path takes to carry a window. Nor
 * further than this part of a round trip: on a short path the silence between two windows is no
 * longer than that. A window of fewer segments fills nothing. */
#define NJ_HYSTART_TRAIN_GAP_US      2000u
#define NJ_HYSTART_TRAIN_GAP_DIVISOR 8u
#define NJ_HYSTART_TRAIN_SEGS_MIN    16u

/* The most segments by which one acknowledgment may open the window, L of RFC 3465.
 *
 * The first slow start takes the 8 of RFC 9406 4.3 for senders that do not pace: receivers that
 * merge segments before they look at them (every kernel with GRO, and ourselves) acknowledge eight
 * and more at once, and L = 2 would make of doubling a growth by a quarter. What it may cost, a
 * burst of 16 segments, is little more than the ten that open every connection. Later slow starts
 * know the path to be a congested one and keep to the 2 of RFC 3465 2.3, or the 1 it wants after a
 * time-out, when one ACK may cover what has left the network long ago. */
#define NJ_CC_L_FIRST     8u
#define NJ_CC_L_LATER     2u
#define NJ_CC_L_AFTER_RTO 1u

/* All zeros is the beginning of slow start. */
struct nj_hystart {
    uint32_t round_end; /* the round is over when this is acknowledged */
    uint32_t last_min_us, cur_min_us, css_base_us;
    uint32_t ack_at_us; /* the latest ACK, modulo 2^32 us */
    uint32_t busy_us;   /* of this round, in trains */
    uint8_t n_samples;  /* of this round, up to NJ_HYSTART_N_RTT_SAMPLE */
    uint8_t css_rounds; /* rounds of conservative slow start that are over */
    bool running, in_css;
};

/* An acknowledgment while cwnd < ssthresh. The window grows; when HyStart++ has seen enough,
 * ssthresh falls to the window. */
void nj__slow_start(struct nj_tcb *, struct nj_hystart *, const struct nj_cc_ack *, bool after_rto);

#endif
