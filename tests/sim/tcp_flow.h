/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection between the two hosts, with the applications at both ends: their plan
 * (tcp_plan.c) and its execution (tcp_app.c).
 *
 * Traffic consists of rounds, in each of which each end sends a number of bytes. In lockstep the
 * opener requests and the other end responds; otherwise both stream. A byte depends on its position
 * in the stream.
 */
#pragma once

#include "tcp_track.h"

struct tsim;
struct tsim_flow;
struct nj_tcb;

#define TSIM_FLOWS_MAX 6u

enum tsim_side_state {
    TSIM_ABSENT,  /* waits for the peer to connect */
    TSIM_WAITING, /* connects at its start time */
    TSIM_OPENING,
    TSIM_OPEN,
    TSIM_OVER, /* the control block was released */
};

/* One end. */
struct tsim_side {
    struct tsim_flow *flow;
    unsigned host;
    /* Plan. */
    nj_ns start_at;
    uint64_t per_round;   /* bytes */
    nj_ns think;          /* before each round */
    uint32_t piece;       /* maximum bytes of one write */
    bool refer;           /* queues references, not copies */
    bool polite;          /* closes only after the peer */
    bool leaves;          /* releases the connection as soon as it has read everything and closed */
    uint64_t abort_after; /* bytes read; NJ_NEVER: does not */
    uint32_t sip;         /* maximum bytes of one read */
    uint64_t stall_after, stall_gap; /* bytes read before the first pause, and between pauses */
    nj_ns stall_for;
    uint32_t n_stalls;
    bool slow; /* pauses its reading */
    /* State. */
    enum tsim_side_state state;
    struct nj_tcb *tcb;
    uint64_t sent, got;
    uint32_t n_rounds_begun;
    bool closed, peer_fin, aborted, died;
    nj_ns write_at, stalled_until, retry_at; /* 0: not set */
    nj_ns opened_at, done_at, over_at;       /* done: the last byte was read */
    nj_ns rto_seen;                          /* at the end of the last step */
};

struct tsim_flow {
    struct tsim *sim;
    uint32_t index;
    uint16_t port[2]; /* by host */
    bool both_open;
    bool lockstep;
    uint32_t n_rounds;
    uint32_t salt[2]; /* start of each direction in the pattern */
    struct tsim_side side[2];
    struct tsim_track track[2]; /* by sender */
    uint32_t wire_ack[2];       /* the last one sent, by sender: see TSIM_DIVIDE */
};

void nj_tsim_plan(struct tsim_flow *f, struct tsim *sim, uint32_t index);

static inline uint64_t nj_tsim_total(const struct tsim_flow *f, unsigned host)
{
    return f->n_rounds * f->side[host].per_round;
}

/* The bytes of a direction from `pos` on; *n is reduced to the number that are contiguous. */
const uint8_t *nj_tsim_bytes(const struct tsim_flow *f, unsigned from, uint64_t pos, uint32_t *n);

/* Time of its next action of its own. */
nj_ns nj_tsim_side_next(const struct tsim_side *s);
void nj_tsim_side_alarm(struct tsim_side *s);
/* Handle events of a connection of this host. */
void nj_tsim_turn(struct tsim *sim, unsigned host, struct nj_tcb *tcb, uint8_t events);
/* Have both ends finished? */
bool nj_tsim_flow_done(const struct tsim_flow *f);
/* After the end: did each end get the expected bytes? */
void nj_tsim_flow_check(const struct tsim_flow *f);
