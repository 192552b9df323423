/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss detection and loss recovery: marks runs of the scoreboard as lost, and sets cwnd.
 *
 *   rack.c            RACK-TLP (RFC 8985): time-based loss detection, tail loss probes
 *   recovery_state.c  the states of enum nj_ca, PRR (RFC 9937), F-RTO (RFC 5682), undo (RFC 4015)
 *
 * output.c sends. All times are absolute nj_ns, all windows bytes.
 */
#pragma once

#include "tcp/loss/rack_delivery.h"
#include "tcp/loss/scoreboard.h"

/* --- rack.c ---------------------------------------------------------------------------------- */

/* Mark lost runs, and set reo_at for those that may be lost later (steps 4 and 5). Returns true
 * when a run was newly marked. */
bool nj__rack_mark_lost(struct nj_tcb *, nj_ns now);
/* Time-out: mark the first segment and all runs that are old enough as lost (RFC 8985 6.3). */
void nj__rack_timed_out(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* A D-SACK arrived: widen the reordering window (step 4, RACK_update_reo_wnd). */
void nj__rack_widen_window(struct nj_tcb *);
/* A recovery has ended: after 16 of them the reordering window is reset. */
void nj__rack_recovery_ended(struct nj_xfer *);
/* Set pto_at (RFC 8985 7.2). Not later than rexmit_at. */
void nj__tlp_schedule(struct nj_tcb *, nj_ns now);
/* Process an ACK while a probe is outstanding (7.4). Returns true when the probe repaired a loss.
 */
bool nj__tlp_acked(struct nj_tcb *, const struct nj_seg *, const struct nj_ack_result *);

/* --- recovery_state.c ------------------------------------------------------------------------- */

/* Estimated bytes in the network (pipe of RFC 6675). */
uint32_t nj__pipe(const struct nj_tcb *);
/* React to an ACK that the scoreboard has processed. `una_before`: snd_una before it. */
void nj__recovery_update_on_ack(struct nj_tcp *, struct nj_tcb *, const struct nj_seg *,
                                const struct nj_ack_result *, uint32_t una_before, nj_ns now);
/* D-SACK: the peer received `b` twice (RFC 2883). */
void nj__recovery_dsack(struct nj_tcb *, const struct nj_sack_block *b, struct nj_ack_result *);
/* A duplicate ACK, without SACK (RFC 5681 2). */
void nj__recovery_dupack(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* The reordering timer (reo_at) has expired. */
void nj__recovery_reo_timeout(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* The retransmission timer has expired (RFC 6298 5.4, RFC 5681 3.1). */
void nj__recovery_timed_out(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* `n_bytes` were sent. `again`: as a retransmission. */
void nj__recovery_count_sent(struct nj_tcb *, uint32_t n_bytes, bool again, nj_ns now);
