/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control as an open set: a const table of functions per algorithm. They only move
 * cwnd, ssthresh, w_max and their own fields; sending is somebody else's job.
 *
 * An algorithm keeps what it likes in x->cc, and must cope with finding zeros there at any time: a
 * connection that comes back from idle has a fresh struct nj_xfer, and only cwnd, ssthresh and
 * w_max are as they were.
 */
#ifndef NJ_TCP_CC_CONGESTION_H
#define NJ_TCP_CC_CONGESTION_H

#include "tcp/tcb.h"

/* No window is larger: RFC 7323 2.3 allows a peer 2^30 bytes. */
#define NJ_CC_CWND_MAX      (1u << 30)
/* ssthresh of a connection that has not seen congestion yet (RFC 5681 3.1: arbitrarily high). */
#define NJ_CC_SSTHRESH_NONE NJ_CC_CWND_MAX

/* What an acknowledgment of new data told, outside recovery. snd_una has moved already. */
struct nj_cc_ack {
    nj_ns now;
    uint32_t n_bytes; /* that snd_una moved over */
    uint32_t rtt_us;  /* of the newest segment it covers that was sent just once; 0: none */
    bool limited;     /* the congestion window was what held us back */
};

struct nj_cc_ops {
    const char *name;
    /* The handshake is over: the initial window, and nothing known of the path. */
    void (*opened)(struct nj_tcb *);
    /* An acknowledgment outside recovery: the window grows. */
    void (*acked)(struct nj_tcb *, const struct nj_cc_ack *);
    /* Congestion: a loss, or ECN-Echo. Sets ssthresh; the caller moves cwnd. */
    void (*lost)(struct nj_tcb *, nj_ns now);
    /* The first retransmission time-out of a series. Sets ssthresh; the caller sets cwnd to one
     * segment. */
    void (*timed_out)(struct nj_tcb *, nj_ns now);
    /* The last lost() or timed_out() was a mistake; the caller restores cwnd and ssthresh. */
    void (*undone)(struct nj_tcb *);
    /* Nothing was sent for `idle`, which is longer than an RTO. */
    void (*idle)(struct nj_tcb *, nj_ns now, nj_ns idle);
};

extern const struct nj_cc_ops nj_cc_newreno, nj_cc_cubic;

static inline uint32_t nj_tcb_flight(const struct nj_tcb *t)
{
    return t->snd_nxt - t->snd_una;
}

/* FlightSize of RFC 5681 equation (4) and RFC 9438 4.6: limited transmit has sent more than the
 * window, and that must not count; an application that sent less has a window that proves nothing.
 */
static inline uint32_t nj_cc_flight(const struct nj_tcb *t)
{
    uint32_t now = nj_tcb_flight(t), was = t->x->flight_was;
    uint32_t flight = was > now ? was : now;
    return flight < t->cwnd ? flight : t->cwnd;
}

/* --- what the algorithms share ------------------------------------------------------------------
 */

/* RFC 6928 2: ten segments, or 14600 bytes where segments are larger than Ethernet's. */
static inline uint32_t nj_cc_initial_window(const struct nj_tcb *t)
{
    uint32_t two = 2u * t->snd_mss, most = two > 14600 ? two : 14600;
    return 10u * t->snd_mss < most ? 10u * t->snd_mss : most;
}

static inline void nj_cc_grow(struct nj_tcb *t, uint32_t n_bytes)
{
    uint32_t room = t->cwnd < NJ_CC_CWND_MAX ? NJ_CC_CWND_MAX - t->cwnd : 0;
    t->cwnd += n_bytes < room ? n_bytes : room;
}

/* RFC 5681 3.1: one segment when the SYN or SYN-ACK was lost. RFC 6928 2: not when just one was
 * sent again, for with an initial time-out of 1 s that may have been too early
 * (nj__tcp_rto_opened). */
static inline void nj_cc_opened(struct nj_tcb *t)
{
    t->cwnd = t->x->syn_lost ? t->snd_mss : nj_cc_initial_window(t);
    t->ssthresh = NJ_CC_SSTHRESH_NONE;
    t->w_max = 0;
    memset(t->x->cc, 0, sizeof t->x->cc);
}

/* RFC 5681 4.1: after an RTO without sending, the ACKs that would pace the window's worth of data
 * have drained away, so start over with a window that may be sent at once. ssthresh remembers where
 * we were (RFC 7661 4.4.2), so that the way back is slow start's. False: nothing had to change. */
static inline bool nj_cc_restart(struct nj_tcb *t)
{
    uint32_t restart = nj_cc_initial_window(t), most = t->cwnd / 4 * 3;

    if (t->cwnd <= restart)
        return false;
    t->ssthresh = t->ssthresh > most ? t->ssthresh : most;
    t->cwnd = restart;
    return true;
}

#endif
