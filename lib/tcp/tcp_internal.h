/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types and functions shared by the files of lib/tcp:
 *
 *   flow_table.c, seq.h      connections by tuple; sequence numbers
 *   initial_seq.c            initial sequence numbers, timestamp offsets
 *   listen.c                 ports that listen, and room for another connection
 *   syn_options.c            MSS, and the options of a SYN
 *   mbuf_cache.c             empty mbufs for outgoing data
 *   rtt.c                    round trip, and retransmission time-out
 *   cc/                      congestion control
 *   receive_window.c         window that we advertise
 *   receive_queue.c          received data, in order and out of order
 *   delayed_ack.c            when received text is acknowledged
 *   loss/sack_option.c       SACK option of our ACKs
 *   minisock.c               connections without a control block
 *   time_wait.c              TIME-WAIT without a user
 *   xfer.c                   state of an active connection, its timer and events
 *   send_queue.c             data to be sent, until it is acknowledged
 *   mtu_probe.c              probing for a larger path MTU
 *   loss/                    rack_delivery.c, scoreboard.c, rack.c, recovery_state.c
 *   tcb.c                    life cycle of a control block
 *   pmtu.c                   path MTU discovery by ICMP, black holes
 *   output.c                 sends segments
 *   syn.c, syn_cookie.c      SYN-RECEIVED after a passive open, with and without state
 *   user_calls.c             open, close, abort, release
 *   input_synchronized.c     segment arrival in synchronized states
 *   input.c                  segment arrival
 *   timers.c                 timer expiry
 *   tcp.c                    begin and end of struct nj_tcp, and counts
 *
 * Each file calls only files that stand above it in this list.
 *
 * All functions run on the shard's lcore. `t->x` must be attached (nj__tcb_attach_xfer) unless the
 * comment says otherwise.
 */
#pragma once

#include <rte_prefetch.h>

#include "tcp/mbuf_priv.h"
#include "tcp/tcp.h"
#include "telem/count.h"

/* Timers and counts, with their sources. */
#define NJ_TCP_RTO_INITIAL        (1 * NJ_SEC)  /* RFC 6298 2.1 */
#define NJ_TCP_RTO_SYN_LOST       (3 * NJ_SEC)  /* RFC 6298 5.7 */
#define NJ_TCP_RTO_VAR_MIN        (200 * NJ_MS) /* instead of the 1 s of RFC 6298 2.4: ADR 4 */
#define NJ_TCP_RTO_MAX            (60 * NJ_SEC) /* RFC 6298 2.5 */
#define NJ_TCP_TLP_ACK_DELAY      (40 * NJ_MS)  /* delayed ACK of a lone segment */
#define NJ_TCP_TLP_SLACK          (2 * NJ_MS)   /* two ticks of the wheel: ours, and the peer's */
/* Burst limit after a time-out: number of segments, and the gap to the next burst. Lost segments
 * may be many and short, and cwnd counts bytes. Ten segments are the initial window of RFC 6928 2;
 * one such burst per tick of the wheel is 116 Mbit/s. */
#define NJ_TCP_LOSS_BURST         10u
#define NJ_TCP_LOSS_BURST_GAP     (1 * NJ_MS)
#define NJ_TCP_DELAYED_ACK        (40 * NJ_MS) /* RFC 9293 3.8.6.3 allows 500 ms */
/* From this number of held mbufs on, each payload is copied to the end of the last mbuf if it fits
 * as a whole. A record of TLS that is incomplete waits in 12 mbufs if the segments have 1,448
 * bytes, and in 20 at most: 4, and 16 with 1,089 bytes each. Two
 * neighbours then carry more than one buffer of 2,176 bytes holds. So 248 mbufs (all but one part
 * in NJ_TCP_MERGE_PART, see receive_queue.c) carry more than the window of 256 KiB.
 * In-order bytes within the window are then refused only if other connections hold the mbufs. */
#define NJ_TCP_COALESCE_ALL_MBUFS 4u
#define NJ_TCP_MERGE_PART         32u
/* A connection with fewer mbufs may hold out-of-order segments while others hold up to 7/8. */
#define NJ_TCP_REASM_MBUFS_MIN    16u
#define NJ_TCP_QUICK_ACKS         10u            /* the peer's first flight, RFC 6928 2 */
#define NJ_TCP_R2                 (120 * NJ_SEC) /* RFC 9293 3.8.3 R2: at least 100 s */
#define NJ_TCP_SYN_R2             (180 * NJ_SEC) /* RFC 9293 3.8.3: at least 3 minutes for SYN */
#define NJ_TCP_FIN_WAIT_2_MAX     (60 * NJ_SEC)  /* without a user, as in Linux */
/* Maximum life of an orphan before its FIN is acknowledged, whatever its progress. A send queue of
 * two congestion windows takes a few round trips, with a dozen time-outs at worst. The smallest
 * queue, NJ_SENDQ_BYTES_MIN, needs 220 bytes per second. */
#define NJ_TCP_ORPHAN_MAX         (300 * NJ_SEC)
#define NJ_TCP_IDLE_AFTER         (1 * NJ_SEC)  /* then its struct nj_xfer is freed */
#define NJ_TCP_KEEPALIVE_INTERVAL (75 * NJ_SEC) /* as in Linux and the BSDs */
#define NJ_TCP_KEEPALIVE_PROBES   9u
/* Probes for a larger path MTU. The wait is one second after a lost probe. After three lost probes
 * (RFC 8899 5.1.2, MAX_PROBES) or an ICMP message (RFC 1191 6.3) it is ten minutes
 * (PMTU_RAISE_TIMER). A probe needs this number of full segments to follow it at once, so that its
 * loss is detected and repaired within a round trip. */
#define NJ_TCP_MTU_PROBE_WAIT     (1 * NJ_SEC)
#define NJ_TCP_MTU_PROBES_MAX     3u
#define NJ_TCP_MTU_RAISE_WAIT     (600 * NJ_SEC)
#define NJ_TCP_MTU_WAIT_UNIT      (10 * NJ_MS) /* unit of nj_tcb.mtu_wait_cs */
#define NJ_TCP_MTU_PROBE_AHEAD    3u
#define NJ_TCP_MTU_MIN            552u /* smallest MTU accepted from ICMPv4, as in Linux */
#define NJ_TCP_BLACK_HOLE_RTOS    2u   /* consecutive time-outs that indicate an MTU black hole */
#define NJ_TCP_ORPHAN_SHARE       4u   /* orphans: at most this part of all connections */
#define NJ_TCP_PAWS_IDLE          (24 * 24 * 3600 * NJ_SEC) /* RFC 7323 5.5: 24 days */
#define NJ_TCP_STRAY_ACK_INTERVAL (100 * NJ_MS) /* the shortest plausible keepalive interval */
#define NJ_TCP_MSS_MIN            216u          /* smaller MSS offers would waste CPU */
#define NJ_TCP_WSCALE             3u            /* NJ_RECV_WINDOW_BYTES >> 3 fits 16 bits */
#define NJ_TCP_CHALLENGES_PER_S   100u          /* RFC 5961 7, on the average */
#define NJ_TCP_CHALLENGE_INTERVAL (500 * NJ_MS) /* and per connection, as in Linux */
#define NJ_TCP_SYN_WINDOW         65535u        /* window of our SYN-ACK, never scaled */
#define NJ_TCP_NEARLY_FULL_PART   32u           /* part of the blocks refused to new SYNs */
#define NJ_TCP_COOKIE_TX_RESERVE  128u          /* transmit slots reserved from SYN cookies */
#define NJ_TCP_TS_BYTES           12u           /* timestamp option, padded */

/* Result of a step of segment processing. Only nj_tcp_input() acts on it. */
enum nj_tcp_verdict {
    NJ_VERDICT_PASS,           /* go on with the next step */
    NJ_VERDICT_DONE,           /* accepted, nothing more to do */
    NJ_VERDICT_DROP,           /* dropped silently */
    NJ_VERDICT_DROP_ACK,       /* dropped, answered with an ACK */
    NJ_VERDICT_DROP_CHALLENGE, /* dropped, with a challenge ACK (RFC 5961) */
    NJ_VERDICT_DROP_RST,       /* dropped, answered with RST */
    NJ_VERDICT_GONE,           /* accepted, and the flow no longer exists */
    NJ_VERDICT_ANEW,           /* the flow no longer exists; process the segment in LISTEN */
};

/* A segment during its processing. */
struct nj_tcp_arrival {
    struct nj_seg seg;  /* trimmed to the window after step 4 */
    bool had_text;      /* or a FIN, before it was trimmed */
    struct rte_mbuf *m; /* NULL once it was queued */
    nj_counter why;     /* of a verdict NJ_VERDICT_DROP... */
    bool follows;       /* a SYN that replaces a connection in TIME-WAIT; */
    uint32_t iss_min;   /* then the least initial sequence number */
};

/* Note in `a` why the segment is dropped. Returns `v`, which is one of NJ_VERDICT_DROP...; nothing
 * is dropped, answered or counted before nj_tcp_input() acts on it. */
static inline enum nj_tcp_verdict nj__tcp_note_why(struct nj_tcp_arrival *a, enum nj_tcp_verdict v,
                                                   nj_counter why)
{
    a->why = why;
    return v;
}

/* input_synchronized.c: RFC 9293 3.10.7.4. */
enum nj_tcp_verdict nj__tcp_input_synchronized(struct nj_tcp *, struct nj_tcb *,
                                               struct nj_tcp_arrival *, nj_ns now);

/* listen.c */
bool nj__tcp_is_listening(const struct nj_tcp *, const struct nj_tuple *);
/* Are as many connections in SYN-RECEIVED as cfg.half_open_max allows? */
bool nj__syn_backlog_full(const struct nj_tcp *);
/* Returns NJ_VERDICT_PASS if a SYN may open a connection now, else the verdict for it. */
enum nj_tcp_verdict nj__tcp_check_syn_room(const struct nj_tcp *, struct nj_tcp_arrival *);
/* A handshake completes: if few control blocks are left, request the eviction of a connection. */
void nj__tcp_evict_if_nearly_full(const struct nj_tcp *, const struct nj_tcp_arrival *);

/* minisock.c: flows of any kind, and those without a control block. */
void nj__flow_init_kind(struct nj_flow *, enum nj_flow_kind, nj_ns now);
/* Rate limit of ACKs for unacceptable segments, against ACK loops. True: send one, and the interval
 * restarts. */
bool nj__flow_may_ack_stray(struct nj_flow *, nj_ns now);
/* Verdict for an unacceptable segment: a rate-limited ACK. */
enum nj_tcp_verdict nj__minisock_reject_stray(struct nj_minisock *, struct nj_tcp_arrival *,
                                              nj_counter why, nj_ns now);
/* RFC 7323 5.3 R1. */
enum nj_tcp_verdict nj__minisock_check_paws(struct nj_minisock *, struct nj_tcp_arrival *,
                                            nj_ns now);
/* Fill in the timestamp option of an outgoing segment, if negotiated. */
void nj__flow_fill_timestamp(const struct nj_tcp *, const struct nj_flow *, struct nj_tcp_opts *,
                             nj_ns now);

/* syn.c: SYN-RECEIVED after a passive open. */
/* Read the peer's number and the options we accept from a SYN. Leaves tuple, hash and snd_nxt. */
void nj__syn_parse(const struct nj_tcp *, const struct nj_seg *, struct nj_minisock *);
bool nj__syn_send_synack(struct nj_tcp *, const struct nj_minisock *, uint32_t ts_val, nj_ns now);
/* Enter SYN-RECEIVED and send the SYN-ACK. The backlog must not be full. */
struct nj_flow *nj__syn_new(struct nj_tcp *, const struct nj_tcp_arrival *, nj_ns now);
void nj__syn_abort(struct nj_tcp *, struct nj_syn *, nj_ns now); /* with a RST */
/* NJ_VERDICT_PASS: the segment completes the handshake. */
enum nj_tcp_verdict nj__syn_input(struct nj_tcp *, struct nj_syn *, struct nj_tcp_arrival *,
                                  nj_ns now);
/* Replace `syn` by a control block in SYN-RECEIVED. Returns NULL, with nothing changed, when no
 * block is free. */
struct nj_tcb *nj__syn_make_tcb(struct nj_tcp *, struct nj_syn *, nj_ns now);
void nj__syn_tick(struct nj_tcp *, nj_ns now);
nj_ns nj__syn_next_deadline(const struct nj_tcp *);

/* syn_cookie.c: SYN-RECEIVED without state. */
bool nj__cookie_send(struct nj_tcp *, const struct nj_seg *syn, nj_ns now);
/* Was a cookie sent that is still valid? */
bool nj__cookie_is_expected(const struct nj_tcp *, nj_ns now);
/* Does this segment, which matches no flow, carry a valid cookie? */
bool nj__cookie_is_valid(const struct nj_tcp *, const struct nj_seg *, nj_ns now);
/* An ACK that matches no flow. If it carries a valid cookie, returns NJ_VERDICT_PASS and a control
 * block in SYN-RECEIVED. */
enum nj_tcp_verdict nj__cookie_input(struct nj_tcp *, struct nj_tcp_arrival *, struct nj_tcb **,
                                     nj_ns now);

/* time_wait.c: TIME-WAIT without a user. */
void nj__time_wait_from_tcb(struct nj_tcp *, const struct nj_tcb *, nj_ns now);
bool nj__time_wait_may_reuse(const struct nj_seg *, uint32_t rcv_nxt, bool ts_on,
                             uint32_t ts_recent);
/* May such a SYN be answered now? If not, the old connection stays in TIME-WAIT. */
enum nj_tcp_verdict nj__time_wait_check_reopen_room(const struct nj_tcp *, struct nj_tcp_arrival *,
                                                    bool ts_on);
enum nj_tcp_verdict nj__time_wait_input(struct nj_tcp *, struct nj_time_wait *,
                                        struct nj_tcp_arrival *, nj_ns now);
void nj__time_wait_tick(struct nj_tcp *);
nj_ns nj__time_wait_next_deadline(const struct nj_tcp *);

/* Parameters of a completed passive handshake. */
struct nj_handshake {
    uint32_t iss, irs;
    struct nj_tcp_opts opts; /* of the peer's SYN, those accepted */
    bool ecn;
    nj_ns sent_at;   /* of the SYN-ACK, when it was sent once; else 0 */
    uint8_t n_waits; /* time-outs of it */
    uint8_t n_sent;  /* SYN-ACKs */
};

/* tcb.c: life cycle of a control block. */
/* `old`: the flow to be replaced in the flow table, or NULL for a new entry. */
struct nj_tcb *nj__tcb_new(struct nj_tcp *, const struct nj_tuple *, const struct nj_flow *old,
                           uint32_t iss, nj_ns now);
/* A block in SYN-RECEIVED, ready to process the handshake's ACK. One of `old` and `tuple` is NULL.
 */
struct nj_tcb *nj__tcb_new_syn_received(struct nj_tcp *, const struct nj_flow *old,
                                        const struct nj_tuple *, const struct nj_handshake *,
                                        nj_ns now);
void nj__tcb_free(struct nj_tcp *, struct nj_tcb *);
/* Free the data in both queues and out of order, and the records of sent segments. Does nothing if
 * t->x is not attached. */
void nj__tcb_free_queues(struct nj_tcp *, struct nj_tcb *);
void nj__tcb_set_state(struct nj_tcp *, struct nj_tcb *, enum nj_tcp_state);
/* End the connection. Its user, if any, gets EV_DEAD; otherwise the block is freed. */
void nj__tcb_end(struct nj_tcp *, struct nj_tcb *);
void nj__tcb_enter_time_wait(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* If the connection is in TIME-WAIT without a user or a due ACK, free the block and keep a struct
 * nj_time_wait. Returns true if so. */
bool nj__tcb_try_time_wait_minisock(struct nj_tcp *, struct nj_tcb *, nj_ns now);
void nj__tcb_assert_valid(const struct nj_tcb *);
static inline void nj__tcb_note_output(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (!nj_list_linked(&t->x->pending))
        nj_list_push_back(&tcp->pending, &t->x->pending);
}

/* xfer.c */
/* Attach a struct nj_xfer if there is none. Cannot fail. */
void nj__tcb_attach_xfer(struct nj_tcp *, struct nj_tcb *);
/* Free it. Nothing may be in flight, queued or due. */
void nj__tcb_detach_xfer(struct nj_tcp *, struct nj_tcb *);
/* When to detach it, or, if there is none, to send the next keepalive. NJ_NEVER: not before
 * something else happens. */
nj_ns nj__tcb_idle_at(const struct nj_tcp *, const struct nj_tcb *);
/* Arm the connection's timer for its earliest deadline. */
void nj__tcp_rearm_timer(struct nj_tcp *, struct nj_tcb *);
/* Must ACKs carry ECE (RFC 3168 6.1.3)? From CE until the peer's CWR, as input_synchronized.c notes
 * in ce_seen. */
static inline bool nj__ecn_must_echo(const struct nj_tcb *t)
{
    return t->ecn_on && t->x->ce_seen;
}

/* syn_options.c */
uint16_t nj__tcp_our_mss(const struct nj_tcp *, const struct nj_tuple *);
/* The peer's MSS option or its default, clamped to [NJ_TCP_MSS_MIN, our MSS]. */
uint16_t nj__tcp_peer_mss(const struct nj_tcp *, const struct nj_tuple *,
                          const struct nj_tcp_opts *);
/* Apply the options of the peer's SYN. */
void nj__tcp_apply_syn_options(struct nj_tcp *, struct nj_tcb *, const struct nj_tcp_opts *,
                               nj_ns now);
/* Length of the IP and TCP headers without options. */
static inline uint32_t nj__tcp_hdr_bytes(const struct nj_tuple *tuple)
{
    return nj_addr_is_v4(&tuple->remote) ? 40 : 60;
}
/* The segment size for a path MTU. */
uint32_t nj__tcp_mss_for_mtu(const struct nj_tcb *, uint32_t mtu);

/* mtu_probe.c */
#define NJ_TCP_MTU_BLACK_HOLE 1280u /* passes through nearly all paths */
/* Payload length of a path MTU probe to be sent now, longer than snd_mss, if `n` new bytes may be
 * sent; 0: none. Call it only when snd_mss < mss_max. */
uint32_t nj__mtu_probe_bytes(const struct nj_tcb *, uint32_t n, nj_ns now);
/* The probe was sent, and is alone in the last run. */
void nj__mtu_probe_sent(struct nj_tcb *, uint32_t n, nj_ns now);
/* Is this run the outstanding probe? */
static inline bool nj__mtu_is_probe(const struct nj_xfer *x, uint32_t end, bool again)
{
    return x->mtu_probe != 0 && end == x->mtu_probe_end && !again;
}
void nj__mtu_probe_acked(struct nj_tcp *, struct nj_tcb *);
void nj__mtu_probe_lost(struct nj_tcb *);

/* pmtu.c */
/* Called first on a time-out: reduces snd_mss if the segment size may be the cause. */
void nj__pmtu_timed_out(struct nj_tcp *, struct nj_tcb *);

/* initial_seq.c */
uint32_t nj__tcp_ts_offset_of_tuple(const struct nj_tcp *, const struct nj_tuple *);
uint32_t nj__tcp_isn(const struct nj_tcp *, const struct nj_tuple *, nj_ns now);

/* output.c */
bool nj__tcp_send_syn(struct nj_tcp *, struct nj_tcb *, nj_ns now);
bool nj__tcp_send_ack(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* Send a segment without text and without a control block. False when there is no mbuf. */
bool nj__tcp_send_no_tcb(struct nj_tcp *, const struct nj_tcp_emit *, nj_ns now);
/* Send RST-ACK for this flow. */
void nj__tcp_send_rst_at(struct nj_tcp *, const struct nj_flow *, uint32_t seq, uint32_t ack,
                         nj_ns now);
/* The same with the numbers of a control block. */
void nj__tcp_send_rst(struct nj_tcp *, const struct nj_tcb *, nj_ns now);
/* RST in answer to a segment (RFC 9293 3.10.7.1). `flow`: the one it belongs to, or NULL. */
void nj__tcp_send_rst_for(struct nj_tcp *, const struct nj_flow *flow, const struct nj_seg *,
                          nj_ns now);
void nj__tcp_send_keepalive(struct nj_tcp *, struct nj_tcb *, nj_ns now);
bool nj__tcp_send_window_probe(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* False when nothing could be sent. */
bool nj__tcp_send_tlp(struct nj_tcp *, struct nj_tcb *, nj_ns now);

/* receive_window.c */
uint32_t nj__tcp_rcv_wnd(const struct nj_tcb *); /* RCV.WND: advertised and not used */
/* The window field of the next segment; advances rcv_adv. */
uint16_t nj__tcp_next_window_field(const struct nj_tcp *, struct nj_tcb *);
bool nj__tcp_is_window_update_due(const struct nj_tcp *, const struct nj_tcb *);

/* Shortage of received mbufs: the part of cfg.held_max that all connections hold. A connection may
 * hold a quarter of the rest (nj__rcv_may_hold), so k connections at their bound hold k / (k + 4):
 * four make SOME, 28 make HIGH. */
enum nj_rcv_pressure {
    NJ_RCV_PRESSURE_NONE,
    NJ_RCV_PRESSURE_SOME, /* more than half of held_max: windows are smaller (receive_window.c) */
    NJ_RCV_PRESSURE_HIGH, /* more than 7/8 of held_max: windows are minimal */
};
enum nj_rcv_pressure nj__rcv_pressure(const struct nj_tcp *);

/* rtt.c: RFC 6298. */
void nj__tcp_rtt_sample(struct nj_tcb *, nj_ns rtt);
void nj__tcp_rto_back_off(struct nj_tcb *);
/* New data was acknowledged: halve the RTO, but not below twice the estimate (RFC 6298 5, Karn).
 * Without timestamps a new sample may be long in coming. */
void nj__tcp_rto_halve_on_ack(struct nj_tcb *);
/* The RTO from the samples so far, without back-off. */
nj_ns nj__tcp_rto_base(const struct nj_tcb *);
/* Time until the next zero-window probe. Leaves the RTO as it is. */
nj_ns nj__tcp_persist_back_off(struct nj_tcb *);
/* The handshake is complete: take its round trip as sample, or set the RTO by RFC 6298 2.1 and 5.7.
 */
void nj__tcp_rto_handshake_done(struct nj_tcb *, nj_ns now);
/* Our timestamp clock in ms, without the offset of the tuple. */
static inline uint32_t nj__tcp_ts_clock_ms(nj_ns now)
{
    return (uint32_t)(now / NJ_MS);
}
static inline uint32_t nj__tcp_ts_now(const struct nj_tcb *t, nj_ns now)
{
    return nj__tcp_ts_clock_ms(now) + t->ts_offset;
}

/* The smoothed round trip, 0 before the first sample. */
static inline nj_ns nj__srtt(const struct nj_tcb *t)
{
    return (nj_ns)t->srtt_us * NJ_US;
}

/* mbuf_cache.c: empty mbufs, allocated in bulk. */
/* Fill the cache; if the pool has too few and the cache is empty, allocate one. Returns the number
 * in the cache; 0: the pool is empty. */
uint32_t nj__mbuf_cache_fill(struct nj_tcp *);
struct rte_mbuf *nj__mbuf_cache_refill_get(struct nj_tcp *);
void nj__mbuf_cache_drain(struct nj_tcp *); /* to the pool */
/* Get an mbuf, or NULL, which is counted as mbuf_none. Prefetches the data of the next one. */
static inline struct rte_mbuf *nj__mbuf_get(struct nj_tcp *tcp)
{
    if (tcp->n_mbuf_cache < 2)
        return tcp->n_mbuf_cache ? tcp->fresh[--tcp->n_mbuf_cache] : nj__mbuf_cache_refill_get(tcp);
    rte_prefetch0(rte_pktmbuf_mtod(tcp->fresh[tcp->n_mbuf_cache - 2], void *));
    return tcp->fresh[--tcp->n_mbuf_cache];
}

/* send_queue.c */
void nj__sndq_drop_acked(struct nj_tcb *, uint32_t n_bytes);
/* Copy `n_bytes` of the queue, from sequence number `seq` on, to the empty mbuf `m`. `summed`:
 * returns their checksum for nj_tcp_emit. */
uint64_t nj__sndq_copy(struct nj_tcb *, uint32_t seq, uint32_t n_bytes, struct rte_mbuf *m,
                       bool summed);
/* The same for TSO: chains mbufs to `head`, at most cfg.tx.tso_mbufs_max if n_bytes is within
 * tso_bytes_max. Returns false when mbufs run out; the caller must then free `head`. */
bool nj__sndq_chain(struct nj_tcp *, struct nj_tcb *, uint32_t seq, uint32_t n_bytes,
                    struct rte_mbuf *head);
void nj__mbuf_queue_free(struct nj_mbuf_queue *);

/* Bytes of the queue that were never sent. */
static inline uint32_t nj__tcp_unsent(const struct nj_tcb *t)
{
    uint32_t off = t->snd_nxt - t->snd_una; /* one beyond the queue when the FIN is out */
    return off < t->x->sndq.n_bytes ? t->x->sndq.n_bytes - off : 0;
}

/* Bytes of the peer's window from `seq` on. */
static inline uint32_t nj__tcp_peer_room(const struct nj_tcb *t, uint32_t seq)
{
    uint32_t off = seq - t->snd_una;
    return off < t->snd_wnd ? t->snd_wnd - off : 0;
}

/* Is there data that was never sent, and room for some in the peer's window? */
static inline bool nj__tcp_has_new_data_in_window(const struct nj_tcb *t)
{
    return nj__tcp_unsent(t) > 0 && nj__tcp_peer_room(t, t->snd_nxt) > 0;
}

/* delayed_ack.c */
void nj__ack_schedule(struct nj_tcb *, const struct nj_seg *, bool filled_hole, nj_ns now);

/* sack_option.c: the SACK option of our ACKs. [first, end) arrived out of order or fills a hole.
 * Call it before the bytes are queued. */
void nj__sack_note_block(struct nj_tcb *, uint32_t first, uint32_t end);
/* [first, end) is a duplicate: the next ACK reports it as D-SACK. */
void nj__sack_note_dsack(struct nj_tcb *, uint32_t first, uint32_t end);
/* Write the SACK blocks that fit into snd_mss beside `n_payload` bytes; none without sack_on.
 * Returns their number. The D-SACK counts as reported, so the segment must be sent. */
uint32_t nj__sack_write_blocks(struct nj_tcb *, struct nj_tcp_opts *, uint32_t n_payload);

/* receive_queue.c: out-of-order data. False when it was refused: then `m` stays the
 * caller's. */
bool nj__reasm_insert(struct nj_tcp *, struct nj_tcb *, struct rte_mbuf *m, const struct nj_seg *);
/* May this connection hold one more mbuf? Dynamic thresholds (Choudhury and Hahne 1998): each
 * connection may hold a quarter of the remaining mbufs, so a few may hold many and some always
 * remain for the next. */
bool nj__rcv_may_hold(const struct nj_tcp *, const struct nj_tcb *);
/* Is there room for `n_bytes` more in order, in a new mbuf or in those held? Merges held mbufs if
 * needed, which invalidates the pointer of nj_tcp_recv_peek(). */
bool nj__rcv_merge_for_room(struct nj_tcp *, struct nj_tcb *, uint32_t n_bytes);
/* Move bytes that are now in order to the receive queue. Returns their number. */
uint32_t nj__reasm_move_ready(struct nj_tcp *, struct nj_tcb *);
/* One past the last byte that has arrived, in order or not. */
uint32_t nj__rcv_highest_end_seq(const struct nj_tcb *);
/* Drop the last mbuf of the out-of-order list; the peer retransmits it. False: the list is empty.
 */
bool nj__reasm_drop_last(struct nj_tcp *, struct nj_tcb *);
void nj__reasm_free(struct nj_tcb *);
/* Append the payload of `m` to the receive queue. */
void nj__rcvq_append(struct nj_tcp *, struct nj_tcb *, struct rte_mbuf *m, uint32_t off,
                     uint32_t n_bytes);
