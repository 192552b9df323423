/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slow start (RFC 5681 3.1), with HyStart++ (RFC 9406) until the first loss. HyStart++ leaves slow
 * start when the round-trip time grows, before a loss. An ACK train longer than half a round trip
 * has the same effect (ADR 8).
 */
#pragma once

#include "tcp/cc/congestion.h"

/* RFC 9406 4.3 */
#define NJ_HYSTART_MIN_RTT_THRESH_US  4000u
#define NJ_HYSTART_MAX_RTT_THRESH_US  16000u
#define NJ_HYSTART_MIN_RTT_DIVISOR    8u
#define NJ_HYSTART_N_RTT_SAMPLE       8u
#define NJ_HYSTART_CSS_GROWTH_DIVISOR 4u
#define NJ_HYSTART_CSS_ROUNDS         5u

/* Maximum gap between the ACKs of a train: this time, and this part of a round trip, since on a
 * short path the pause between two windows is as short. Trains of windows below SEGS_MIN are
 * ignored. */
#define NJ_HYSTART_ACK_TRAIN_GAP_US  2000u
#define NJ_HYSTART_TRAIN_GAP_DIVISOR 8u
#define NJ_HYSTART_TRAIN_SEGS_MIN    16u

/* L of RFC 3465: the maximum growth of cwnd per acknowledgment, in segments. The first slow start
 * uses the 8 of RFC 9406 4.3 for unpaced senders. Receivers with GRO acknowledge eight or more
 * segments at once, and L = 2 would limit the growth to a quarter per round trip. The cost is a
 * burst of at most 16 segments. Later slow starts use the 2 of RFC 3465 2.3, or 1 after a time-out,
 * when one ACK may cover data that left the network long ago. */
#define NJ_CC_L_FIRST     8u
#define NJ_CC_L_LATER     2u
#define NJ_CC_L_AFTER_RTO 1u

/* All zeros is the beginning of slow start. */
struct nj_hystart {
    uint32_t round_end; /* the round is over when this is acknowledged */
    uint32_t last_min_us, cur_min_us, css_base_us;
    uint32_t ack_at_us; /* the latest ACK, modulo 2^32 us */
    uint32_t busy_us;   /* duration of ACK trains in this round */
    uint8_t n_samples;  /* of this round, up to NJ_HYSTART_N_RTT_SAMPLE */
    uint8_t css_rounds; /* completed rounds of conservative slow start */
    bool running, in_css;
};

/* Process an acknowledgment while cwnd < ssthresh: grow cwnd; set ssthresh to cwnd when HyStart++
 * ends slow start. */
void nj__slow_start(struct nj_tcb *, struct nj_hystart *, const struct nj_cc_ack *, bool after_rto);
