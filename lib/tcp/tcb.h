/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmission control block: everything we know about one connection (RFC 9293 3.3.1).
 *
 *      snd_una                       snd_nxt                      rcv_nxt           rcv_adv
 *   ------|-----------------------------|--------->      -------------|----------------|------->
 *    acked| in flight, SACKed or lost   | never sent      delivered   | we promised to |
 *         | (send queue, runs of sent)  |                 (rcvq)      | take (reasm)   |
 *
 * snd_nxt never falls back: what has to be sent again is marked as lost in the list of runs.
 */
#ifndef NJ_TCP_TCB_H
#define NJ_TCP_TCB_H

#include <stddef.h>

#include <rte_mbuf_core.h>

#include "base/attr.h"
#include "base/list.h"
#include "base/types.h"
#include "sched/timer_wheel.h"
#include "tcp/flow_table.h"
#include "wire/packet.h"

enum nj_tcp_state {
#define NJ_TCP_STATE(name) NJ_TCP_##name,
#include "tcp/state.def"
#undef NJ_TCP_STATE
};

extern const char *const nj_tcp_state_name[];

/* What happened since the user last looked (nj_tcp_next_ready). */
#define NJ_TCP_EV_OPENED   0x01u /* reached ESTABLISHED */
#define NJ_TCP_EV_READABLE 0x02u /* nj_tcp_recv_peek() has bytes */
#define NJ_TCP_EV_WRITABLE 0x04u /* acknowledged bytes left the queue: see nj_tcp_tell_acks() */
#define NJ_TCP_EV_PEER_FIN 0x08u /* the peer will send no more, all of it is in the queue */
#define NJ_TCP_EV_DEAD     0x10u /* the connection is over: release it */

/* A run of bytes in a list of mbufs, linked by mbuf->next. */
struct nj_mbuf_queue {
    struct rte_mbuf *head, *tail;
    uint32_t n_bytes, n_mbufs;
};

/* A place in the send queue. */
struct nj_sndq_cursor {
    struct rte_mbuf
        *m; /* holds the byte at seq, `off` bytes in, or ends before it; NULL: nowhere */
    uint32_t off, seq;
};

struct nj_sent;
struct nj_tcb;

#define NJ_CC_PRIV_BYTES 64u

/* What is known of the losses of a connection (RFC 5681, RFC 9937, RFC 8985). */
enum nj_ca {
    NJ_CA_OPEN,     /* nothing is missing, or it may still be reordering */
    NJ_CA_CWR,      /* the network marked a packet (RFC 3168): the window shrinks */
    NJ_CA_RECOVERY, /* something was lost: it is sent again while the window shrinks */
    NJ_CA_LOSS,     /* a time-out: what was in flight is sent again from one segment on */
};

/* What a connection has only while something is going on: bytes on their way in either direction,
 * an event for the user, an ACK that is owed. An idle connection has none. What a segment without
 * adventures needs comes first: see nj_tcp_prefetch(). */
struct nj_xfer {
    struct nj_tcb *tcb;
    struct nj_list ready;   /* member of nj_tcp.ready while events wait for the user */
    struct nj_list pending; /* member of nj_tcp.pending while output may be due */

    /* Deadlines; NJ_NEVER = off. */
    nj_ns rexmit_at; /* retransmission, or persist when nothing may be sent */
    nj_ns pto_at;    /* tail loss probe (RFC 8985 7) */
    nj_ns reo_at;    /* what is missing is lost from then on (RFC 8985 6.2 step 5) */
    nj_ns delack_at;
    nj_ns close_at; /* TIME_WAIT with a user, any other state without one */
    nj_ns burst_at; /* after a time-out: the next burst goes then */

    /* The send queue. */
    struct nj_mbuf_queue sndq;       /* from snd_una on; n_bytes does not count SYN or FIN */
    uint32_t sndq_head_off;          /* bytes of sndq.head that are acknowledged already */
    uint32_t n_runs;                 /* of sent */
    struct nj_sndq_cursor cursor[2]; /* where new data goes on, and old data that goes again */

    /* What was sent and not yet acknowledged: runs by sequence number, see scoreboard.h. */
    struct nj_list sent;
    struct nj_sent *lost_hint; /* no run before this one is lost; NULL: not known */
    struct nj_list by_time;    /* those that fly, in the order of RFC 8985 6.2: see scoreboard.h */
    struct nj_list *overtaken; /* RACK has overtaken by_time up to this node; or its head */
    uint32_t n_flight, n_sacked, n_lost; /* bytes by fate; the sum is snd_nxt - snd_una */

    /* Recovery. */
    uint8_t ca;              /* enum nj_ca */
    uint8_t dupacks;         /* without SACK */
    uint8_t n_backoffs;      /* consecutive time-outs */
    uint8_t frto;            /* RFC 5682: the step of its section 2.1 we are in; 0: none */
    bool send_one;           /* one segment may go whatever the window says: recovery began */
    bool tlp_out, tlp_again; /* a probe is out; it repeated old data */
    bool limited;            /* limited_seq means something */
    bool cwr_due;            /* tell the peer that we slowed down (RFC 3168 6.1.2) */
    bool used;            /* something was sent: there is more to remember than an idle one keeps */
    bool ce_seen;         /* the network marked what the peer sent: say so until CWR */
    uint32_t high_seq;    /* recovery ends when this is acknowledged */
    uint32_t flight_was;  /* in flight when the ACK came that is being looked at; else 0 */
    uint32_t echo;        /* of our timestamps, in that ACK; 0: none, or it tells nothing */
    uint32_t limited_seq; /* what was sent before this filled the congestion window */
    uint32_t tlp_end;
    uint32_t undo_cwnd; /* the window as it was before; 0: nothing to undo */

    /* RACK (RFC 8985 5.2): the segment that was sent last of all that have arrived. */
    nj_ns rack_at, rack_rtt;
    uint32_t rack_end, rack_fack;
    uint32_t dsack_round;
    uint8_t reo_mult, reo_persist;
    bool reordering, dsack_round_on;

    /* Time (RFC 6298). */
    nj_ns rto, last_send_at;
    nj_ns progress_at; /* last time the peer acknowledged something new, or answered a probe */

    /* Receive side. */
    nj_ns text_at;             /* when text came last; 0: none yet */
    struct nj_mbuf_queue rcvq; /* in order, for the user; n_mbufs counts reasm too */
    struct rte_mbuf *reasm;    /* out of order, by sequence number; see reassembly.c */
    uint32_t reasm_bytes;
    uint16_t n_held_since; /* mbufs that were held since all were last gathered */
    uint16_t rcv_mss;      /* the longest text of a segment so far */
    uint8_t n_quick_acks;  /* of NJ_TCP_QUICK_ACKS */
    uint8_t n_sack_at;
    struct nj_sack_block dsack; /* arrived twice and not reported yet; empty: nothing */
    struct nj_sack_block sack_seen[NJ_SACK_BLOCKS_MAX]; /* of the last ACK: done with */
    uint32_t fin_seq; /* where an early FIN stands, when fin_seen */

    /* ---- from here on: losses, and what is looked at once or twice ---- */

    uint64_t cc[NJ_CC_PRIV_BYTES / 8]; /* what the algorithm of congestion control keeps */
    uint32_t prr_delivered, prr_out, prr_flight; /* RFC 9937 6 */
    uint32_t undo_ssthresh, undo_una;            /* as they were, with undo_cwnd */
    int32_t undo_bytes; /* sent again since and not yet reported as duplicates */
    nj_ns reopened_at;  /* the peer opened its window, and all was sent again */
    nj_ns probed_at;    /* the first probe since then */
    nj_ns syn_at;       /* when the only SYN was sent; 0: there were more */
    uint32_t undo_ts;   /* our timestamp clock when the first was sent again; 0: none yet */
    uint32_t iss, irs;
    uint32_t sack_at[NJ_SACK_BLOCKS_MAX]; /* a byte of each block that changed, the latest first */
    uint16_t mtu_claimed; /* an ICMP message said so; believed when a time-out agrees */
    uint8_t n_syns;       /* SYNs or SYN-ACKs sent, up to UINT8_MAX */
    bool syn_lost;        /* so many of them that one got lost: see nj_cc_opened() */
    /* A probe for a larger path MTU (RFC 4821): one segment of mtu_probe bytes, up to
     * mtu_probe_end, is in flight. 0: none. */
    uint16_t mtu_probe;
    uint32_t mtu_probe_end;
    nj_ns mtu_probe_at; /* no probe before; see nj_tcb.mtu_wait_cs */
};

static_assert(sizeof(struct nj_xfer) <= 9 * NJ_CACHE_LINE, "each busy connection has one");

/* Three cache lines. The first two are what a segment of an open connection needs; the third is
 * time. */
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
    bool fin_queued : 1;   /* the user closed: FIN follows the last byte of the send queue */
    bool fin_received : 1; /* rcv_nxt has passed the peer's FIN */
    bool fin_seen : 1;
    bool user_gone : 1;          /* nobody reads any more: new data is answered with RST */
    bool acks_untold : 1;        /* the user does not wait for EV_WRITABLE */
    uint8_t mtu_probes_lost : 2; /* since the last one that arrived, below NJ_TCP_PROBES_MAX */
    uint16_t min_rtt_s;          /* when min_rtt_us was measured, in seconds modulo 2^16 */
    uint32_t rcv_nxt, rcv_adv, last_ack_sent;

    uint32_t snd_una, snd_nxt;
    uint32_t snd_wnd, snd_wl1, snd_wl2, snd_wnd_max;
    uint16_t snd_mss;        /* largest payload of one segment, options of each segment deducted */
    uint16_t mss_proven;     /* the longest segment that was acknowledged */
    uint16_t mss_max;        /* what snd_mss began with: what peer and link allow */
    uint16_t user_timeout_s; /* RFC 9293 3.9.1; 0: the configuration's */
    struct nj_xfer *x;       /* NULL while idle */
    uint32_t cwnd, ssthresh;
    uint32_t ts_recent, ts_offset; /* RFC 7323 */
    void *user;

    uint32_t srtt_us, rttvar_us, min_rtt_us; /* 0: no sample yet */
    uint32_t w_max;        /* CUBIC: the window of the last congestion event; 0: there was none */
    uint32_t ts_recent_s;  /* when ts_recent was taken, in seconds */
    uint16_t challenge_ms; /* last challenge ACK (RFC 5961 7), modulo 2^16 */
    uint16_t mtu_wait_cs;  /* while idle: no probe of the path MTU for so long after heard_at, in
                              units of NJ_TCP_PROBE_WAIT_UNIT */
    nj_ns heard_at;        /* last segment that was the peer's: see note_heard() */
    struct nj_timer timer;
};
_Static_assert(offsetof(struct nj_tcb, flow) == 0, "the head comes first");
_Static_assert(offsetof(struct nj_tcb, snd_una) == NJ_CACHE_LINE, "receiving is the first line");
_Static_assert(offsetof(struct nj_tcb, srtt_us) == 2 * NJ_CACHE_LINE, "two lines are hot");
_Static_assert(sizeof(struct nj_tcb) == 3 * NJ_CACHE_LINE, "what an idle connection costs");

/* Three steps of having a connection in the cache when a segment of it is looked at: its block;
 * that being there, what the block leads to; and what an ACK sets free. Between them stands the
 * time of a miss. */
static inline void nj_tcp_prefetch_block(const struct nj_flow *flow)
{
    for (size_t at = 0; at < sizeof(struct nj_tcb); at += NJ_CACHE_LINE)
        rte_prefetch0((const uint8_t *)flow + at);
}

static inline void nj_tcp_prefetch(const struct nj_flow *flow)
{
    const struct nj_tcb *t = (const struct nj_tcb *)flow;

    if (flow->kind != NJ_FLOW_TCB)
        return;
    rte_prefetch0(t->user);
    for (size_t at = 0; t->x && at < offsetof(struct nj_xfer, cc); at += NJ_CACHE_LINE)
        rte_prefetch0((const uint8_t *)t->x + at);
}

static inline void nj_tcp_prefetch_sent(const struct nj_flow *flow)
{
    const struct nj_xfer *x = flow->kind == NJ_FLOW_TCB ? ((const struct nj_tcb *)flow)->x : NULL;

    if (!x || !x->sndq.head)
        return;
    rte_prefetch0(x->sent.next);
    rte_prefetch0(x->sndq.head);
    rte_prefetch0((const uint8_t *)x->sndq.head + NJ_CACHE_LINE);
}

/* The control block of this flow; NULL when there is none (yet, or any more). */
static inline struct nj_tcb *nj_flow_tcb(struct nj_flow *flow)
{
    return flow && flow->kind == NJ_FLOW_TCB ? (struct nj_tcb *)flow : NULL;
}
#endif
