/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is lost, how fast to send it again, and when it was all a mistake.
 *
 *   rack.c      RACK-TLP (RFC 8985): time tells what is lost; a probe when the tail stays silent
 *   recovery.c  the states of enum nj_ca, PRR (RFC 9937), F-RTO (RFC 5682), undo (RFC 4015)
 *
 * Both only mark runs of the scoreboard and move cwnd; output.c sends.
 */
#ifndef NJ_TCP_LOSS_RECOVERY_H
#define NJ_TCP_LOSS_RECOVERY_H

#include "tcp/loss/scoreboard.h"

/* --- rack.c ---------------------------------------------------------------------------------- */

/* A run has arrived: RFC 8985 6.2 steps 1 - 3. */
void nj__rack_update(struct nj_tcb *, const struct nj_sent *, nj_ns now);
/* Mark what is lost by now, and set reo_at for what may be (steps 4 and 5). True when something is
 * lost that was not before. */
bool nj__rack_detect(struct nj_tcb *, nj_ns now);
/* A time-out: mark as lost the first segment and what is old enough (RFC 8985 6.3). */
void nj__rack_timed_out(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* The reordering window grows with what the peer got twice (step 4, RACK_update_reo_wnd). */
void nj__rack_dsack(struct nj_tcb *);
/* A recovery has ended: the window shrinks again after some of them. */
void nj__rack_recovered(struct nj_xfer *);
/* Set pto_at (RFC 8985 7.2). Not later than rexmit_at. */
void nj__tlp_schedule(struct nj_tcb *, nj_ns now);
/* The cumulative ACK against an outstanding probe (7.4). True when the probe repaired a loss. */
bool nj__tlp_acked(struct nj_tcb *, const struct nj_seg *, const struct nj_ack_news *);

/* --- recovery.c ------------------------------------------------------------------------------ */

/* Bytes in the network, as far as can be told (RFC 6675 pipe). */
uint32_t nj__pipe(const struct nj_tcb *);
/* The scoreboard has taken in an ACK: act on what it told. `una_before`: snd_una then. */
void nj__recovery_acked(struct nj_tcp *, struct nj_tcb *, const struct nj_seg *,
                        const struct nj_ack_news *, uint32_t una_before, nj_ns now);
/* The peer got `b` twice (RFC 2883). */
void nj__recovery_dsack(struct nj_tcb *, const struct nj_sack_block *b, struct nj_ack_news *);
/* Without SACK: an ACK that repeats the last one (RFC 5681 2). */
void nj__recovery_dupack(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* reo_at has come. */
void nj__recovery_reordered_out(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* The retransmission timer has run out (RFC 6298 5.4, RFC 5681 3.1). */
void nj__recovery_timed_out(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* `n_bytes` were sent, again or for the first time. */
void nj__recovery_sent(struct nj_tcb *, uint32_t n_bytes, bool again, nj_ns now);

#endif
