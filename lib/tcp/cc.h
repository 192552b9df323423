/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control as an open set: a const table of functions per algorithm. They only move
 * cwnd, ssthresh and their own fields of the control block; sending is somebody else's job.
 */
#ifndef NJ_TCP_CC_H
#define NJ_TCP_CC_H

#include "tcp/tcb.h"

/* What an acknowledgment told, outside recovery. */
struct nj_cc_ack {
    nj_ns now;
    uint32_t n_bytes; /* delivered: acknowledged or selectively acknowledged for the first time */
    uint32_t rtt_us;  /* of the newest segment it covers that was sent just once; 0: none */
    bool limited;     /* the congestion window was what held us back */
};

struct nj_cc_ops {
    const char *name;
    void (*init)(struct nj_tcb *);
    /* `n_bytes` of new data were acknowledged outside recovery; `limited` tells whether the window
     * was what held us back. */
    void (*on_ack)(struct nj_tcb *, uint32_t n_bytes, bool limited);
    void (*on_recovery_begin)(struct nj_tcb *);
    void (*on_dupack)(struct nj_tcb *);                        /* in recovery */
    void (*on_partial_ack)(struct nj_tcb *, uint32_t n_bytes); /* in recovery */
    void (*on_recovery_end)(struct nj_tcb *);
    void (*on_rto)(struct nj_tcb *, bool first); /* first: of a series of time-outs */
    void (*on_idle)(struct nj_tcb *);            /* nothing was sent for longer than an RTO */
};

extern const struct nj_cc_ops nj_cc_newreno;

static inline uint32_t nj_tcb_flight(const struct nj_tcb *t)
{
    return t->x->snd_max - t->snd_una;
}

#endif
