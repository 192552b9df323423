/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of congestion control algorithms (RFC 5681): a const table of functions each. They
 * set only cwnd, ssthresh, w_max (all in bytes) and their private state; they never send.
 *
 * The private state is x->cc. It may be all zeros at any call: a connection that resumes from idle
 * has a new struct nj_xfer, and only cwnd, ssthresh and w_max are preserved.
 */
#pragma once

#include "tcp/tcb.h"

/* No window is larger: RFC 7323 2.3 allows a peer 2^30 bytes. */
#define NJ_CC_CWND_MAX      (1u << 30)
/* ssthresh of a connection that has not seen congestion yet (RFC 5681 3.1: arbitrarily high). */
#define NJ_CC_SSTHRESH_NONE NJ_CC_CWND_MAX

/* An acknowledgment of new data outside recovery. snd_una has been advanced already. */
struct nj_cc_ack {
    nj_ns now;
    uint32_t n_bytes; /* that snd_una moved over */
    uint32_t rtt_us;  /* of the newest covered segment that was sent only once; 0: none */
    bool limited;     /* the sender was limited by cwnd */
};

struct nj_cc_ops {
    const char *name;
    /* The handshake is complete: set the initial window. */
    void (*opened)(struct nj_tcb *);
    /* An acknowledgment outside recovery: grow cwnd. */
    void (*acked)(struct nj_tcb *, const struct nj_cc_ack *);
    /* Congestion: a loss, or ECN-Echo. Sets ssthresh; the caller moves cwnd. */
    void (*lost)(struct nj_tcb *, nj_ns now);
    /* The first retransmission time-out of a series. Sets ssthresh; the caller sets cwnd to one
     * segment. */
    void (*timed_out)(struct nj_tcb *, nj_ns now);
    /* The last lost() or timed_out() was spurious; the caller restores cwnd and ssthresh. */
    void (*undone)(struct nj_tcb *);
    /* Nothing was sent for `idle`, which is longer than an RTO. */
    void (*idle)(struct nj_tcb *, nj_ns now, nj_ns idle);
};

extern const struct nj_cc_ops nj_cc_newreno, nj_cc_cubic;

static inline uint32_t nj_tcb_flight(const struct nj_tcb *t)
{
    return t->snd_nxt - t->snd_una;
}

/* FlightSize of RFC 5681 equation (4) and RFC 9438 4.6. At most cwnd, since limited transmit does
 * not count; less if the application did not use the window. */
static inline uint32_t nj_cc_flight(const struct nj_tcb *t)
{
    uint32_t now = nj_tcb_flight(t), was = t->x->flight_before_ack;
    uint32_t flight = was > now ? was : now;
    return flight < t->cwnd ? flight : t->cwnd;
}

/* --- shared by the algorithms ---------------------------------------------------------------- */

/* RFC 6928 2: ten segments, or 14600 bytes where segments are larger than Ethernet's. */
static inline uint32_t nj_cc_initial_window(const struct nj_tcb *t)
{
    uint32_t two = 2u * t->snd_mss, most = two > 14600 ? two : 14600;
    return 10u * t->snd_mss < most ? 10u * t->snd_mss : most;
}

static inline void nj_cc_add_to_cwnd(struct nj_tcb *t, uint32_t n_bytes)
{
    uint32_t room = t->cwnd < NJ_CC_CWND_MAX ? NJ_CC_CWND_MAX - t->cwnd : 0;
    t->cwnd += n_bytes < room ? n_bytes : room;
}

/* RFC 5681 3.1: one segment when the SYN or SYN-ACK was lost. RFC 6928 2: not after a single
 * retransmission, which may be spurious with an initial RTO of 1 s (nj__tcp_rto_handshake_done). */
static inline void nj_cc_init_state(struct nj_tcb *t)
{
    t->cwnd = t->x->syn_lost ? t->snd_mss : nj_cc_initial_window(t);
    t->ssthresh = NJ_CC_SSTHRESH_NONE;
    t->w_max = 0;
    memset(t->x->cc, 0, sizeof t->x->cc);
}

/* RFC 5681 4.1: after an idle RTO no ACKs pace the sending, so cwnd returns to the restart window.
 * ssthresh keeps 3/4 of the old cwnd (RFC 7661 4.4.2), so that slow start leads back. False:
 * nothing had to change. */
static inline bool nj_cc_restart_idle(struct nj_tcb *t)
{
    uint32_t restart = nj_cc_initial_window(t), most = t->cwnd / 4 * 3;

    if (t->cwnd <= restart)
        return false;
    t->ssthresh = t->ssthresh > most ? t->ssthresh : most;
    t->cwnd = restart;
    return true;
}
