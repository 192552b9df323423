/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection between the two hosts and the applications at its ends: what they mean to do
 * (tcp_plan.c) and what they do (tcp_app.c).
 *
 * Traffic comes in rounds: in each, each end sends so many bytes. In lockstep the opener asks and
 * the other answers; else both stream. The bytes follow from their position in the stream.
 */
#ifndef NJ_TESTS_SIM_TCP_FLOW_H
#define NJ_TESTS_SIM_TCP_FLOW_H

#include "tcp_track.h"

struct tsim;
struct tsim_flow;
struct nj_tcb;

#define TSIM_FLOWS_MAX 6u

enum tsim_side_state {
    TSIM_ABSENT,  /* waits for the peer to come */
    TSIM_WAITING, /* will open when its time comes */
    TSIM_OPENING,
    TSIM_OPEN,
    TSIM_OVER, /* the control block was given back */
};

/* One end. */
struct tsim_side {
    struct tsim_flow *flow;
    unsigned host;
    /* The plan. */
    nj_ns start_at;
    uint64_t per_round;              /* bytes */
    nj_ns think;                     /* before each round */
    uint32_t piece;                  /* bytes of one write at most */
    bool refer;                      /* queue references, not copies */
    bool polite;                     /* closes only after the peer */
    bool leaves;                     /* lets go as soon as it has all it wants and has closed */
    uint64_t abort_after;            /* bytes read; NJ_NEVER: not */
    uint32_t sip;                    /* bytes of one read at most */
    uint64_t stall_after, stall_gap; /* bytes read before it stops reading, and between stops */
    nj_ns stall_for;
    uint32_t n_stalls;
    bool slow; /* it stops now and then */
    /* What happens. */
    enum tsim_side_state state;
    struct nj_tcb *tcb;
    uint64_t sent, got;
    uint32_t n_rounds_begun;
    bool closed, peer_fin, aborted, died;
    nj_ns write_at, stalled_until, retry_at; /* 0: not set */
    nj_ns opened_at, done_at, over_at;       /* done: read the last byte */
    nj_ns rto_seen;                          /* at the end of the last step */
};

struct tsim_flow {
    struct tsim *sim;
    uint32_t index;
    uint16_t port[2]; /* by host */
    bool both_open;
    bool lockstep;
    uint32_t n_rounds;
    uint32_t salt[2]; /* where in the pattern each direction begins */
    struct tsim_side side[2];
    struct tsim_track track[2]; /* by sender */
    uint32_t wire_ack[2];       /* the last one that left, by sender: see TSIM_DIVIDE */
};

void nj_tsim_plan(struct tsim_flow *f, struct tsim *sim, uint32_t index);

static inline uint64_t nj_tsim_total(const struct tsim_flow *f, unsigned host)
{
    return f->n_rounds * f->side[host].per_round;
}

/* The bytes of a direction from `pos` on; *n is cut to how many stand there in one piece. */
const uint8_t *nj_tsim_bytes(const struct tsim_flow *f, unsigned from, uint64_t pos, uint32_t *n);

/* When it has something to do by itself. */
nj_ns nj_tsim_side_next(const struct tsim_side *s);
void nj_tsim_side_alarm(struct tsim_side *s);
/* TCP has news of a connection of this host. */
void nj_tsim_turn(struct tsim *sim, unsigned host, struct nj_tcb *tcb, uint8_t events);
/* Neither end has anything left to do. */
bool nj_tsim_flow_done(const struct tsim_flow *f);
/* All is done: did each end get what it should? */
void nj_tsim_flow_check(const struct tsim_flow *f);

#endif
