/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmission control block (TCB): the state of one connection (RFC 9293 3.3.1).
 *
 *      snd_una                       snd_nxt                      rcv_nxt           rcv_adv
 *   ------|-----------------------------|--------->      -------------|----------------|------->
 *    acked| in flight, SACKed or lost   | never sent      delivered   | advertised     |
 *         | (send queue, runs of sent)  |                 (rcvq)      | window (reasm) |
 *
 * snd_nxt never moves back: data to be retransmitted is marked as lost in the scoreboard.
 */
#pragma once

#include <stddef.h>

#include <rte_mbuf_core.h>

#include "base/compiler.h"
#include "base/held_shares.h"
#include "base/list.h"
#include "base/timer_wheel.h"
#include "base/types.h"
#include "tcp/flow_table.h"
#include "wire/packet.h"

enum nj_tcp_state {
#define NJ_TCP_STATE(name) NJ_TCP_##name,
#include "tcp/state.def"
#undef NJ_TCP_STATE
};

extern const char *const nj_tcp_state_name[];

/* Events since the last nj_tcp_next_ready(). */
#define NJ_TCP_EV_OPENED   0x01u /* reached ESTABLISHED */
#define NJ_TCP_EV_READABLE 0x02u /* nj_tcp_recv_peek() has bytes */
#define NJ_TCP_EV_WRITABLE                                                                         \
    0x04u /* acknowledged bytes left the queue: see nj_tcp_set_ack_events() */
#define NJ_TCP_EV_PEER_FIN 0x08u /* all the peer's data is in the receive queue */
#define NJ_TCP_EV_DEAD     0x10u /* the connection is over: release it */

/* Bytes in a list of mbufs, linked by mbuf->next. */
struct nj_mbuf_queue {
    struct rte_mbuf *head, *tail;
    uint32_t n_bytes, n_mbufs;
};

/* A position in the send queue. */
struct nj_sndq_cursor {
    struct rte_mbuf *m; /* holds the byte at seq, `off` bytes in, or ends before it; NULL: unset */
    uint32_t off, seq;
};

struct nj_sent_run;
struct nj_tcb;

#define NJ_CC_PRIV_BYTES 64u

/* States of loss recovery (RFC 5681, RFC 9937, RFC 8985). */
enum nj_ca {
    NJ_CA_OPEN,     /* no loss is known; holes may be reordering */
    NJ_CA_CWR,      /* congestion window reduction after ECN-Echo (RFC 3168) */
    NJ_CA_RECOVERY, /* fast recovery: lost data is retransmitted, the window shrinks */
    NJ_CA_LOSS,     /* after a time-out: slow start from one segment */
};

/* State of an active connection: data in transit in either direction, a pending event, or a due
 * ACK. An idle connection has none. The fields of the common path come first: see
 * nj_tcp_prefetch_tcb_refs(). */
struct nj_xfer {
    struct nj_tcb *tcb;
    struct nj_list ready;   /* member of nj_tcp.ready or .unfinished: it waits for the user */
    struct nj_list pending; /* member of nj_tcp.pending while output may be due */

    /* Deadlines; NJ_NEVER = off. */
    nj_ns rexmit_at; /* retransmission, or persist when nothing may be sent */
    nj_ns pto_at;    /* tail loss probe (RFC 8985 7) */
    nj_ns reo_at;    /* reordering timer (RFC 8985 6.2 step 5) */
    nj_ns delack_at;
    nj_ns close_at;      /* TIME_WAIT with a user, any other state without one */
    nj_ns next_burst_at; /* time of the next burst after a time-out */

    /* The send queue. */
    struct nj_mbuf_queue sndq;       /* from snd_una on; n_bytes does not count SYN or FIN */
    uint32_t sndq_head_off;          /* bytes of sndq.head that are acknowledged already */
    uint32_t n_runs;                 /* of sent */
    struct nj_sndq_cursor cursor[2]; /* position of new data, and of retransmissions */

    /* Unacknowledged data: runs by sequence number, see scoreboard.h. */
    struct nj_list sent;
    struct nj_sent_run *lost_hint; /* no run before this one is lost; NULL: not known */
    struct nj_list by_send_time; /* runs in flight in the order of RFC 8985 6.2: see scoreboard.h */
    struct nj_list *overtaken;   /* the last run that RACK has passed, or the head of the list */
    uint32_t n_flight, n_sacked, n_lost; /* bytes by state; the sum is snd_nxt - snd_una */

    /* Recovery. */
    uint8_t ca;                   /* enum nj_ca */
    uint8_t dupacks;              /* consecutive duplicate ACKs, without SACK */
    uint8_t n_backoffs;           /* consecutive time-outs */
    uint8_t frto;                 /* current step of RFC 5682 2.1; 0: none */
    bool send_one_anyway;         /* one segment may exceed cwnd: recovery began */
    bool tlp_out, tlp_was_rexmit; /* a TLP is in flight; it was a retransmission */
    bool limited;                 /* limited_seq is valid */
    bool cwr_due;                 /* set CWR on the next new data (RFC 3168 6.1.2) */
    bool used;                    /* data was sent since this struct was attached */
    bool ce_seen;                 /* CE received: set ECE until the peer's CWR */
    uint32_t high_seq;            /* recovery ends when this is acknowledged */
    /* Bytes in flight before the current ACK; 0 outside its processing. */
    uint32_t flight_before_ack;
    uint32_t echo;        /* TSecr of the current ACK; 0: none or not usable */
    uint32_t limited_seq; /* the sender was cwnd-limited up to this number */
    uint32_t tlp_end;
    uint32_t undo_cwnd; /* cwnd before the reduction; 0: nothing to undo */

    /* RACK (RFC 8985 5.2): the most recently sent segment that was delivered. */
    nj_ns rack_at, rack_rtt;
    uint32_t rack_end, rack_fack;
    uint32_t dsack_round;
    uint8_t reo_mult, reo_persist;
    bool reordering, dsack_round_on;

    /* Time (RFC 6298). */
    nj_ns rto, last_send_at;
    nj_ns progress_at; /* last time the peer acknowledged something new, or answered a probe */

    /* Receive side. */
    nj_ns text_at;             /* last arrival of payload; 0: none yet */
    struct nj_mbuf_queue rcvq; /* in order, for the user; n_mbufs counts reasm too */
    struct rte_mbuf *reasm;    /* out of order, by sequence number; see receive_queue.c */
    uint32_t reasm_bytes;
    uint16_t n_held_since_merge; /* mbufs added since all were last merged */
    uint16_t rcv_mss;            /* longest payload received so far */
    uint8_t n_quick_acks;        /* quick ACKs sent, up to NJ_TCP_QUICK_ACKS */
    uint8_t n_recent_blocks;
    struct nj_sack_block dsack; /* D-SACK to be reported; empty: none */
    /* Blocks of the last ACK, already processed. */
    struct nj_sack_block last_sack[NJ_SACK_BLOCKS_MAX];
    uint32_t fin_seq; /* sequence number of the peer's FIN, when fin_seen */

    /* --- cold fields: losses and opening --------------------------------------------------- */

    uint64_t cc[NJ_CC_PRIV_BYTES / 8];           /* private state of the congestion control */
    uint32_t prr_delivered, prr_out, prr_flight; /* RFC 9937 6 */
    uint32_t undo_ssthresh, undo_una;            /* saved together with undo_cwnd */
    int32_t undo_bytes;         /* retransmitted since, less those reported by D-SACK */
    nj_ns reopened_at;          /* last retransmission because the peer's window opened */
    nj_ns zero_window_probe_at; /* first unanswered zero-window probe */
    nj_ns syn_at;               /* when the SYN was sent; 0: it was retransmitted (Karn) */
    uint32_t undo_ts;           /* our timestamp at the first retransmission; 0: none yet */
    uint32_t iss, irs;
    uint32_t sack_at[NJ_SACK_BLOCKS_MAX]; /* a byte of each recently changed block, latest first */
    uint16_t icmp_mtu_pending;            /* from ICMP; applied if a time-out confirms it */
    uint8_t n_syns;                       /* SYNs or SYN-ACKs sent, up to UINT8_MAX */
    bool syn_lost;                        /* a SYN or SYN-ACK was lost: see nj_cc_init_state() */
    /* A probe for a larger path MTU (RFC 4821): one segment of mtu_probe bytes, up to
     * mtu_probe_end, is in flight. 0: none. */
    uint16_t mtu_probe;
    uint32_t mtu_probe_end;
    nj_ns mtu_probe_at; /* earliest next probe; see nj_tcb.mtu_wait_cs */

    /* The user's accounts of what the connection holds: rcvq.n_mbufs, memory of the user, and
     * sndq.n_mbufs. TCP only initialises them, and keeps this struct while they are not 0. */
    struct nj_holder held_mbufs, held_memory, held_output;
};

static_assert(sizeof(struct nj_xfer) <= 10 * NJ_CACHE_LINE, "each busy connection has one");

/* Three cache lines. Segments of an open connection need the first two; the third holds times. */
struct nj_tcb {
    struct nj_flow flow; /* first: the flow table leads here */
    uint8_t state;       /* enum nj_tcp_state */
    uint8_t events;
    uint8_t snd_wscale : 4, rcv_wscale : 4; /* shifts for windows we receive and windows we send */
    uint8_t n_keepalives;                   /* probes since the peer was heard */
    bool ts_on : 1;                         /* timestamps negotiated (RFC 7323) */
    bool sack_on : 1;                       /* SACK negotiated (RFC 2018) */
    bool ecn_on : 1;                        /* ECN negotiated (RFC 3168) */
    bool ack_now : 1;                       /* an ACK is due at the end of this burst */
    bool fin_queued : 1;                    /* FIN follows the last byte of the send queue */
    bool fin_received : 1;                  /* rcv_nxt has passed the peer's FIN */
    bool fin_seen : 1;
    bool is_orphan : 1;          /* orphan: new data is answered with RST */
    bool ack_events_off : 1;     /* no EV_WRITABLE */
    bool expects_records : 1;    /* see nj_tcp_expect_records() */
    uint8_t mtu_probes_lost : 2; /* since the last one that arrived, below NJ_TCP_MTU_PROBES_MAX */
    uint16_t min_rtt_s;          /* when min_rtt_us was measured, in seconds modulo 2^16 */
    uint32_t rcv_nxt, rcv_adv, last_ack_sent;

    uint32_t snd_una, snd_nxt;
    uint32_t snd_wnd, snd_wl1, snd_wnd_max; /* SND.WL2 of RFC 9293 always equals snd_una */
    uint32_t ack_min;   /* least acceptable SEG.ACK: ISS + 1, or later SND.UNA - MAX.SND.WND */
    uint16_t snd_mss;   /* largest payload of one segment, options of each segment deducted */
    uint16_t mss_acked; /* the longest segment that was acknowledged */
    uint16_t mss_max;   /* initial snd_mss: the limit of peer and link */
    struct nj_xfer *x;  /* NULL while idle */
    uint32_t cwnd, ssthresh;
    uint32_t ts_recent, ts_offset; /* RFC 7323 */
    void *user;

    uint32_t srtt_us, rttvar_us, min_rtt_us; /* 0: no sample yet */
    uint32_t w_max;        /* CUBIC: the window of the last congestion event; 0: there was none */
    uint32_t ts_recent_s;  /* when ts_recent was taken, in seconds */
    uint16_t challenge_ms; /* last challenge ACK (RFC 5961 7), modulo 2^16 */
    uint16_t mtu_wait_cs; /* while idle: mtu_probe_at - heard_at in units of NJ_TCP_MTU_WAIT_UNIT */
    nj_ns heard_at;       /* last valid segment of the peer */
    struct nj_timer timer;
};
_Static_assert(offsetof(struct nj_tcb, flow) == 0, "the head comes first");
_Static_assert(offsetof(struct nj_tcb, snd_una) == NJ_CACHE_LINE, "receiving is the first line");
_Static_assert(offsetof(struct nj_tcb, srtt_us) == 2 * NJ_CACHE_LINE, "two lines are hot");
_Static_assert(sizeof(struct nj_tcb) == 3 * NJ_CACHE_LINE, "what an idle connection costs");

/* Prefetch a connection in three stages, each at least one cache miss after the last: the block,
 * the objects that it points to, and the objects that an ACK frees. */
static inline void nj_tcp_prefetch_block(const struct nj_flow *flow)
{
    for (size_t at = 0; at < sizeof(struct nj_tcb); at += NJ_CACHE_LINE)
        rte_prefetch0((const uint8_t *)flow + at);
}

static inline void nj_tcp_prefetch_tcb_refs(const struct nj_flow *flow)
{
    const struct nj_tcb *t = (const struct nj_tcb *)flow;

    if (flow->kind != NJ_FLOW_TCB)
        return;
    rte_prefetch0(t->user);
    for (size_t at = 0; t->x && at < offsetof(struct nj_xfer, cc); at += NJ_CACHE_LINE)
        rte_prefetch0((const uint8_t *)t->x + at);
}

static inline void nj_tcp_prefetch_unacked(const struct nj_flow *flow)
{
    const struct nj_xfer *x = flow->kind == NJ_FLOW_TCB ? ((const struct nj_tcb *)flow)->x : NULL;

    if (!x || !x->sndq.head)
        return;
    rte_prefetch0(x->sent.next);
    rte_prefetch0(x->sndq.head);
    rte_prefetch0((const uint8_t *)x->sndq.head + NJ_CACHE_LINE);
}

/* The control block of this flow; NULL when it has none. */
static inline struct nj_tcb *nj_flow_tcb(struct nj_flow *flow)
{
    return flow && flow->kind == NJ_FLOW_TCB ? (struct nj_tcb *)flow : NULL;
}
