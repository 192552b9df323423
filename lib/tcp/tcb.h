/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmission control block: everything we know about one connection (RFC 9293 3.3.1).
 *
 *      snd_una        snd_nxt      snd_max                       rcv_nxt           rcv_adv
 *   ------|--------------|------------|--------->      -------------|----------------|------->
 *    acked| in flight    | was sent,  | never sent      delivered   | we promised to |
 *         | (send queue) | goes again |                 (rcvq)      | take (reasm)   |
 *
 * snd_nxt falls back to snd_una on a time-out and snd_max remembers how far we had been; outside
 * recovery the two are equal.
 */
#ifndef NJ_TCP_TCB_H
#define NJ_TCP_TCB_H

#include <stddef.h>

#include <rte_mbuf_core.h>

#include "base/attr.h"
#include "base/list.h"
#include "base/types.h"
#include "sched/timer_wheel.h"

enum nj_tcp_state {
#define NJ_TCP_STATE(name) NJ_TCP_##name,
#include "tcp/state.def"
#undef NJ_TCP_STATE
};

extern const char *const nj_tcp_state_name[];

/* What happened since the user last looked (nj_tcp_next_ready). */
#define NJ_TCP_EV_OPENED   0x01u /* reached ESTABLISHED */
#define NJ_TCP_EV_READABLE 0x02u /* nj_tcp_recv_peek() has bytes */
#define NJ_TCP_EV_WRITABLE 0x04u /* acknowledged bytes left the send queue */
#define NJ_TCP_EV_PEER_FIN 0x08u /* the peer will send no more, all of it is in the queue */
#define NJ_TCP_EV_DEAD     0x10u /* the connection is over: release it */

/* A run of bytes in a list of mbufs, linked by mbuf->next. */
struct nj_mbuf_queue {
    struct rte_mbuf *head, *tail;
    uint32_t n_bytes, n_mbufs;
};

struct nj_cc_ops;
struct nj_tcb;

#define NJ_CC_PRIV_BYTES 64u

/* What a connection has only while something is going on: bytes on their way in either direction,
 * an event for the user, an ACK that is owed. An idle connection has none. */
struct nj_xfer {
    struct nj_tcb *tcb;
    struct nj_list ready;   /* member of nj_tcp.ready while events wait for the user */
    struct nj_list pending; /* member of nj_tcp.pending while output may be due */

    /* Deadlines; NJ_NEVER = off. */
    nj_ns rexmit_at; /* retransmission, or persist when nothing may be sent */
    nj_ns delack_at;

    /* Send side. */
    uint32_t iss, snd_max, recover;
    uint8_t dupacks;
    bool in_recovery;          /* fast recovery (RFC 6582) */
    struct nj_mbuf_queue sndq; /* from snd_una on; n_bytes does not count SYN or FIN */
    uint32_t sndq_head_off;    /* bytes of sndq.head that are acknowledged already */
    struct rte_mbuf *cursor;   /* the mbuf of sndq that holds the byte at cursor_seq */
    uint32_t cursor_off, cursor_seq;
    uint32_t cc_acked;                 /* bytes counted towards the next increase */
    uint64_t cc[NJ_CC_PRIV_BYTES / 8]; /* what the algorithm of congestion control keeps */
    nj_ns last_send_at;

    /* Round trip and retransmission (RFC 6298). */
    nj_ns rto;
    nj_ns timed_at; /* when the byte before timed_seq was sent; 0: nothing is timed */
    uint32_t timed_seq;
    uint8_t n_backoffs; /* consecutive time-outs */
    nj_ns progress_at;  /* last time the peer acknowledged something new, or answered a probe */

    /* Receive side. */
    uint32_t irs;
    uint32_t fin_seq;          /* where an early FIN stands, when fin_seen */
    nj_ns stray_ack_at;        /* last answer to an empty segment outside the window */
    struct nj_mbuf_queue rcvq; /* in order, for the user; n_mbufs counts reasm too */
    struct rte_mbuf *reasm;    /* out of order, by sequence number; see reasm.c */
    uint32_t reasm_bytes;
};

struct nj_tcb {
    /* Demultiplexing, and what nearly every segment reads. */
    struct nj_tuple tuple;
    uint32_t flow_hash;
    uint8_t state; /* enum nj_tcp_state */
    uint8_t events;
    uint8_t snd_wscale, rcv_wscale; /* shifts for windows we receive and windows we send */
    bool ts_on;                     /* timestamps negotiated (RFC 7323) */
    bool ack_now;                   /* an ACK is due at the end of this burst */
    bool fin_queued;   /* the user closed: FIN follows the last byte of the send queue */
    bool fin_received; /* rcv_nxt has passed the peer's FIN */
    bool fin_seen;
    bool user_gone; /* nobody reads any more: new data is answered with RST */

    uint32_t snd_una, snd_nxt;
    uint32_t snd_wnd, snd_wl1, snd_wl2, snd_wnd_max;
    uint32_t rcv_nxt, rcv_adv, last_ack_sent;
    uint16_t snd_mss;  /* largest payload of one segment, options of each segment deducted */
    uint16_t peer_mss; /* as the peer's SYN said, or the default */
    uint32_t cwnd, ssthresh;
    uint32_t w_max; /* CUBIC: the window of the last congestion event; 0: there was none */
    struct nj_xfer *x;
    void *user;

    uint32_t ts_recent, ts_offset; /* RFC 7323 */
    nj_ns ts_recent_at;
    nj_ns srtt, rttvar;
    const struct nj_cc_ops *cc;
    nj_ns close_at; /* TIME_WAIT, or FIN_WAIT_2 without a user */
    struct nj_timer timer;
    struct nj_list aged; /* member of nj_tcp.half_open or nj_tcp.time_wait */
};

#endif
