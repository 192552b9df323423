/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All accesses of the simulator to internals of lib/tcp: its features, its constants, and calls
 * that may change. Adapt this file if fields of struct nj_tcb move.
 */
#pragma once

#include "tcp/cc/congestion.h"
#include "tcp/seq.h"
#include "tcp/tcp.h"

/* --- features of lib/tcp; 1: seeds draw them ------------------------------------------------- */

#define TSIM_HAS_PMTUD       1 /* handles ICMP "too big": links narrower than the hosts assume */
#define TSIM_HAS_BLACK_HOLES 1 /* ... and detects such links without ICMP */

/* --- constants of lib/tcp used by invariants ------------------------------------------------- */

#define TSIM_MSS_FLOOR        216u          /* minimum of the peer's MSS */
#define TSIM_RTO_LEAST        (200 * NJ_MS) /* minimum time-out */
/* 1: time-outs are not before `rto` of struct nj_xfer. Seeds 409 and 504 fail with it. */
#define TSIM_RTO_EXACT        0
#define TSIM_TICK             (2 * NJ_MS) /* tolerated earliness: ticks of the timer wheel */
#define TSIM_IW_SEGS          10u         /* RFC 6928 */
#define TSIM_IW_BYTES         14600u
/* New data allowed beyond the congestion window: limited transmit (RFC 3042), tail loss probe (RFC
 * 8985). */
#define TSIM_OVER_CWND_SEGS   3u
/* Challenge ACKs within any second (RFC 5961 7). */
#define TSIM_CHALLENGES_PER_S 150u

/* --- state of a connection ------------------------------------------------------------------- */

struct tsim_look {
    enum nj_tcp_state state;
    uint32_t snd_una, snd_max, rcv_nxt, rcv_wnd; /* rcv_wnd: advertised bytes from rcv_nxt on */
    uint32_t snd_wnd_max;
    uint32_t cwnd, ssthresh, mss;
    uint32_t pipe;     /* bytes in flight as the algorithm counts them */
    uint32_t pipe_max; /* their limit: cwnd, or the start of the reduction by PRR (RFC 9937) */
    uint32_t sacked;
    bool in_recovery;
    nj_ns rto;
    bool ts_on;
    uint32_t ts_recent;
};

static inline struct tsim_look nj_tsim_look(const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x; /* an idle connection has none */
    /* Without SACK each duplicate ACK means that a segment has left (RFC 6582). */
    uint32_t left = x && !t->sack_on ? x->dupacks * t->snd_mss : 0;
    uint32_t pipe = x && x->n_flight > left ? x->n_flight - left : 0;
    return (struct tsim_look){
        .state = (enum nj_tcp_state)t->state,
        .snd_una = t->snd_una,
        .snd_max = t->snd_nxt,
        .rcv_nxt = t->rcv_nxt,
        .rcv_wnd = nj_seq_lt(t->rcv_nxt, t->rcv_adv) ? t->rcv_adv - t->rcv_nxt : 0,
        .snd_wnd_max = t->snd_wnd_max,
        .cwnd = t->cwnd,
        .ssthresh = t->ssthresh,
        .mss = t->snd_mss,
        .pipe = pipe,
        .pipe_max = x && x->ca != NJ_CA_OPEN && x->prr_flight > t->cwnd ? x->prr_flight : t->cwnd,
        .sacked = x ? x->n_sacked : 0,
        .in_recovery = x && x->ca != NJ_CA_OPEN,
        .rto = x ? x->rto : 0,
        .ts_on = t->ts_on,
        .ts_recent = t->ts_recent,
    };
}

/* --- calls of the user ----------------------------------------------------------------------- */

static inline void nj_tsim_set_user(struct nj_tcb *t, void *user)
{
    t->user = user;
}

static inline void *nj_tsim_user(const struct nj_tcb *t)
{
    return t->user;
}

static inline const struct nj_tuple *nj_tsim_tuple(const struct nj_tcb *t)
{
    return &t->flow.tuple;
}

/* --- the whole struct nj_tcp ----------------------------------------------------------------- */

static inline void nj_tsim_input(struct nj_tcp *tcp, struct rte_mbuf *m, const struct nj_seg *seg,
                                 nj_ns now)
{
    uint32_t hash = nj_flow_hash(&tcp->flows, &seg->tuple);
    nj_tcp_input(tcp, nj_flow_find(&tcp->flows, hash, &seg->tuple), m, seg, now);
}

/* False: ignored. */
static inline bool nj_tsim_icmp(struct nj_tcp *tcp, const struct nj_icmp_error *e)
{
    uint32_t hash = nj_flow_hash(&tcp->flows, &e->tuple);
    struct nj_tcb *t = nj_flow_tcb(nj_flow_find(&tcp->flows, hash, &e->tuple));
    return t && nj_tcp_icmp(tcp, t, e);
}
static inline void nj_tsim_configure(struct nj_tcp_config *c, bool newreno, bool ecn)
{
    c->cc = newreno ? &nj_cc_newreno : &nj_cc_cubic;
    c->ecn = ecn;
}

static inline uint32_t nj_tsim_time_waits(const struct nj_tcp *tcp)
{
    return tcp->n_time_wait;
}

static inline uint32_t nj_tsim_half_open(const struct nj_tcp *tcp)
{
    return tcp->n_half_open;
}

/* Control blocks of any kind, and timers. */
static inline uint32_t nj_tsim_blocks(const struct nj_tcp *tcp)
{
    return tcp->tcbs.n_used;
}

static inline uint32_t nj_tsim_timers(const struct nj_tcp *tcp)
{
    return tcp->wheel.n_timers;
}

static inline uint32_t nj_tsim_held(const struct nj_tcp *tcp)
{
    return tcp->n_held;
}
