/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/tcp say to each other. */
#ifndef NJ_TCP_TCP_INTERNAL_H
#define NJ_TCP_TCP_INTERNAL_H

#include <rte_prefetch.h>

#include "tcp/mbuf_priv.h"
#include "tcp/tcp.h"

/* Timers and counts, with their sources. */
#define NJ_TCP_RTO_INITIAL      (1 * NJ_SEC)  /* RFC 6298 2.1 */
#define NJ_TCP_RTO_SYN_LOST     (3 * NJ_SEC)  /* RFC 6298 5.7 */
#define NJ_TCP_RTO_MIN          (200 * NJ_MS) /* below the 1 s of RFC 6298 2.4: ADR 4 */
#define NJ_TCP_RTO_MAX          (60 * NJ_SEC) /* RFC 6298 2.5 */
#define NJ_TCP_TLP_ACK_DELAY    (40 * NJ_MS)  /* so late may a lone segment be acknowledged */
#define NJ_TCP_TLP_SLACK        (2 * NJ_MS)   /* two ticks of the wheel: ours, and the peer's */
/* After a time-out at most so many segments leave at once, the next ones so much later: what was
 * lost may be many short ones, which cwnd, in bytes, does not bound. The initial window of RFC 6928
 * 2 is the largest burst that a sender may begin with; one of them per tick of the wheel is 116
 * Mbit/s. */
#define NJ_TCP_LOSS_BURST       10u
#define NJ_TCP_LOSS_BURST_GAP   (1 * NJ_MS)
#define NJ_TCP_DELACK           (40 * NJ_MS) /* RFC 9293 3.8.6.3 allows 500 ms */
/* From so many held mbufs on, each payload is copied to the end of the last one if it fits. Then
 * two neighbours carry more than one buffer of 2,176 bytes holds, and 248 mbufs (all but one part
 * in GATHER_PART, see reassembly.c) more than the window of 256 KiB: no promised byte is refused
 * for want of mbufs, unless it is out of order, or others hold the mbufs. */
#define NJ_TCP_DEAR_MBUFS       (NJ_RECV_MBUFS_MAX / 2)
#define NJ_TCP_GATHER_PART      32u
#define NJ_TCP_QUICK_ACKS       10u            /* the peer's first flight, RFC 6928 2 */
#define NJ_TCP_R2               (120 * NJ_SEC) /* RFC 9293 3.8.3 R2: at least 100 s */
#define NJ_TCP_SYN_R2           (180 * NJ_SEC) /* RFC 9293 3.8.3: at least 3 minutes for SYN */
#define NJ_TCP_FIN_WAIT_2_MAX   (60 * NJ_SEC)  /* without a user, as in Linux */
/* Without a user until its FIN is acknowledged, whatever progress it makes. What is queued are two
 * congestion windows, which a peer that wants them takes in a few round trips, with a dozen of
 * time-outs in between; of the least queue, NJ_SENDQ_BYTES_MIN, 220 bytes per second are enough. */
#define NJ_TCP_ORPHAN_MAX       (300 * NJ_SEC)
#define NJ_TCP_IDLE_AFTER       (1 * NJ_SEC)  /* then a connection gives back what it can */
#define NJ_TCP_KEEPALIVE_EVERY  (75 * NJ_SEC) /* as in Linux and the BSDs */
#define NJ_TCP_KEEPALIVE_PROBES 9u
/* Probes for a larger path MTU after it was taken for smaller: the next one not before a second
 * after one was lost, and after three (RFC 8899 5.1.2, MAX_PROBES) not before ten minutes
 * (PMTU_RAISE_TIMER there; RFC 1191 6.3, after an ICMP message). One is sent where so many full
 * segments may follow it at once, so that its loss shows, and is repaired, within a round trip. */
#define NJ_TCP_PROBE_EVERY      (1 * NJ_SEC)
#define NJ_TCP_PROBES_MAX       3u
#define NJ_TCP_PROBE_RAISE      (600 * NJ_SEC)
#define NJ_TCP_PROBE_WAIT_UNIT  (10 * NJ_MS) /* what is left of these while idle, in 16 bits */
#define NJ_TCP_PROBE_FOLLOWERS  3u
#define NJ_TCP_MTU_MIN          552u /* least claim that is believed over IPv4, as in Linux */
#define NJ_TCP_BLACK_HOLE_RTOS  2u   /* consecutive time-outs that make us doubt the segment size */
#define NJ_TCP_ORPHAN_SHARE     4u   /* this part of all connections may finish without a user */
#define NJ_TCP_PAWS_IDLE        (24 * 24 * 3600 * NJ_SEC) /* RFC 7323 5.5: 24 days */
#define NJ_TCP_STRAY_ACK_EVERY  (100 * NJ_MS) /* the least interval of keepalives worth the name */
#define NJ_TCP_MSS_MIN          216u          /* smaller MSS offers are attacks on our CPU */
#define NJ_TCP_WSCALE           3u            /* NJ_RECV_WINDOW_BYTES >> 3 fits 16 bits */
#define NJ_TCP_CHALLENGES_PER_S 100u          /* RFC 5961 7, on the average */
#define NJ_TCP_CHALLENGE_EVERY  (500 * NJ_MS) /* and per connection, as in Linux */
#define NJ_TCP_SYN_WINDOW       65535u        /* what our SYN-ACK promises, never scaled */
#define NJ_TCP_FULL_PART        32u           /* of the blocks are kept from new SYNs */
#define NJ_TCP_COOKIE_ROOM      128u          /* packets that a flood of SYNs leaves room for */
#define NJ_TCP_TS_BYTES         12u           /* timestamp option, padded */

/* What a step of segment processing says; only nj_tcp_input() acts on it. */
enum nj_tcp_verdict {
    PASS,           /* go on with the next step */
    DONE,           /* accepted, nothing more to do */
    DROP,           /* dropped silently */
    DROP_ACK,       /* dropped, and the peer is told where we stand */
    DROP_CHALLENGE, /* dropped, with a challenge ACK (RFC 5961) */
    DROP_RST,       /* dropped, answered with RST */
    GONE,           /* accepted, and the flow no longer exists */
    ANEW,           /* the flow no longer exists, and the segment is for the listener */
};

/* A segment on its way through the steps. */
struct nj_tcp_arrival {
    struct nj_seg seg;   /* trimmed to the window after step 4 */
    bool had_text;       /* or a FIN, before it was trimmed */
    struct rte_mbuf *m;  /* NULL once it was queued */
    enum nj_counter why; /* for the DROP verdicts */
    bool follows;        /* a SYN that replaces a connection in TIME-WAIT, */
    uint32_t iss_floor;  /* beyond whose numbers the new one begins */
};

static inline enum nj_tcp_verdict nj__tcp_drop(struct nj_tcp_arrival *a, enum nj_tcp_verdict v,
                                               enum nj_counter why)
{
    a->why = why;
    return v;
}

/* input_steps.c: RFC 9293 3.10.7.4. */
enum nj_tcp_verdict nj__tcp_synchronized(struct nj_tcp *, struct nj_tcb *, struct nj_tcp_arrival *,
                                         nj_ns now);
/* The parts of it that SYN-SENT needs too. */
void nj__tcp_peer_options(struct nj_tcp *, struct nj_tcb *, const struct nj_tcp_opts *, nj_ns now);

/* input.c */
bool nj__tcp_listening(const struct nj_tcp *, uint16_t port);
/* May a SYN open anything now? PASS, or why not. */
enum nj_tcp_verdict nj__tcp_admits(const struct nj_tcp *, struct nj_tcp_arrival *);
/* A handshake is complete. Where few blocks are left, somebody has to yield. */
void nj__tcp_ask_room(const struct nj_tcp *, const struct nj_tcp_arrival *);

/* minisock.c: flows of any kind, and those without a control block. */
void nj__flow_init(struct nj_flow *, enum nj_flow_kind, nj_ns now);
/* May a segment out of place be answered, or was one a moment ago? Two ends that answer each
 * other's answers would never stop. */
bool nj__flow_may_answer(struct nj_flow *, nj_ns now);
/* A segment out of place: answered, but not too often. */
enum nj_tcp_verdict nj__bare_stray(struct nj_bare *, struct nj_tcp_arrival *, enum nj_counter why,
                                   nj_ns now);
/* RFC 7323 5.3 R1. */
enum nj_tcp_verdict nj__bare_paws(struct nj_bare *, struct nj_tcp_arrival *, nj_ns now);
bool nj__bare_send_ack(struct nj_tcp *, const struct nj_bare *, nj_ns now);
/* The timestamp option of a segment of this flow, if the handshake agreed on one. */
void nj__flow_timestamp(const struct nj_tcp *, const struct nj_flow *, struct nj_tcp_opts *,
                        nj_ns now);

/* syn.c: SYN-RECEIVED after a passive open. */
bool nj__syn_backlog_full(const struct nj_tcp *);
/* What we agree to of the options of a SYN; tuple, hash and our own number are not touched. */
void nj__syn_read(const struct nj_tcp *, const struct nj_seg *, struct nj_bare *);
bool nj__syn_send_answer(struct nj_tcp *, const struct nj_bare *, uint32_t ts_val, nj_ns now);
/* The backlog is not full. The SYN is answered. */
struct nj_flow *nj__syn_new(struct nj_tcp *, const struct nj_tcp_arrival *, nj_ns now);
void nj__syn_abort(struct nj_tcp *, struct nj_syn *, nj_ns now); /* with a RST */
/* PASS: the segment completes the handshake. */
enum nj_tcp_verdict nj__syn_input(struct nj_tcp *, struct nj_syn *, struct nj_tcp_arrival *,
                                  nj_ns now);
/* A control block, still in SYN-RECEIVED, takes the place of `syn`. NULL when there is none: then
 * nothing has changed. */
struct nj_tcb *nj__syn_promote(struct nj_tcp *, struct nj_syn *, nj_ns now);
void nj__syn_tick(struct nj_tcp *, nj_ns now);
nj_ns nj__syn_next(const struct nj_tcp *);

/* syn_cookie.c: SYN-RECEIVED without any memory of it. */
bool nj__cookie_send(struct nj_tcp *, const struct nj_seg *syn, nj_ns now);
/* Has any been sent that may still come back? */
bool nj__cookie_expected(const struct nj_tcp *, nj_ns now);
/* An ACK for no flow: PASS and a control block in SYN-RECEIVED when it brings a cookie back. */
enum nj_tcp_verdict nj__cookie_input(struct nj_tcp *, struct nj_tcp_arrival *, struct nj_tcb **,
                                     nj_ns now);

/* time_wait.c: TIME-WAIT after the user let go. */
void nj__time_wait_take_over(struct nj_tcp *, const struct nj_tcb *, nj_ns now);
bool nj__time_wait_replaced_by(const struct nj_seg *, uint32_t rcv_nxt, bool ts_on,
                               uint32_t ts_recent);
/* ... but may it be answered now? If not it waits, and so does the old connection. */
enum nj_tcp_verdict nj__time_wait_admits(const struct nj_tcp *, struct nj_tcp_arrival *,
                                         bool ts_on);
enum nj_tcp_verdict nj__time_wait_input(struct nj_tcp *, struct nj_time_wait *,
                                        struct nj_tcp_arrival *, nj_ns now);
void nj__time_wait_tick(struct nj_tcp *);
nj_ns nj__time_wait_next(const struct nj_tcp *);

/* What a handshake that we answered has settled. */
struct nj_handshake {
    uint32_t iss, irs;
    struct nj_tcp_opts opts; /* of the peer's SYN, as far as we agreed */
    bool ecn;
    nj_ns sent_at;   /* of the SYN-ACK, when it was sent once; else 0 */
    uint8_t n_waits; /* time-outs of it */
    uint8_t n_sent;  /* SYN-ACKs */
};

/* tcb.c: life of a block. */
/* `old`: the flow whose place it takes, or NULL when the tuple is new to the table. */
struct nj_tcb *nj__tcb_new(struct nj_tcp *, const struct nj_tuple *, const struct nj_flow *old,
                           uint32_t iss, nj_ns now);
/* In SYN-RECEIVED, as if it had been there all the time: the ACK may now be taken. One of `old` and
 * `tuple` is NULL. */
struct nj_tcb *nj__tcb_from_handshake(struct nj_tcp *, const struct nj_flow *old,
                                      const struct nj_tuple *, const struct nj_handshake *,
                                      nj_ns now);
void nj__tcb_free(struct nj_tcp *, struct nj_tcb *);
void nj__tcb_set_state(struct nj_tcp *, struct nj_tcb *, enum nj_tcp_state);
/* The connection ends here and now; its user, if any, gets EV_DEAD, else the block is freed. */
void nj__tcb_end(struct nj_tcp *, struct nj_tcb *);
void nj__tcb_enter_time_wait(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* Nothing is left to do but to wait, and nobody is there who wants to hear of it: the block goes,
 * and the small object of time_wait.c stays. True when it did. */
bool nj__tcb_settle(struct nj_tcp *, struct nj_tcb *, nj_ns now);
void nj__tcb_check(const struct nj_tcb *);
static inline void nj__tcb_note_output(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (!nj_list_linked(&t->x->pending))
        nj_list_push_back(&tcp->pending, &t->x->pending);
}

/* idle.c */
/* Have a struct nj_xfer, whatever it takes. */
void nj__tcb_wake(struct nj_tcp *, struct nj_tcb *);
/* When it may give it back, or asks whether the peer is there. */
nj_ns nj__tcp_idle_deadline(const struct nj_tcp *, const struct nj_tcb *);
/* False: the block is gone. */
bool nj__tcp_idle_tick(struct nj_tcp *, struct nj_tcb *, nj_ns now);

/* path.c: what fits. */
uint16_t nj__tcp_our_mss(const struct nj_tcp *, const struct nj_tuple *);
/* What the options of the peer's SYN allow, clamped to what is sane. */
uint16_t nj__tcp_peer_mss(const struct nj_tcp *, const struct nj_tuple *,
                          const struct nj_tcp_opts *);
/* The length of a segment that is longer than snd_mss, to be sent now as a probe for a larger path
 * MTU, of the `n` new bytes that may go; 0: there is no reason or no room for one. To be asked
 * where snd_mss < mss_max. */
uint32_t nj__path_probe(const struct nj_tcb *, uint32_t n, nj_ns now);
/* It was sent, as the last run, and alone in it. */
void nj__path_probe_sent(struct nj_tcb *, uint32_t n, nj_ns now);
/* Is the run that probe? */
static inline bool nj__path_is_probe(const struct nj_xfer *x, uint32_t end, bool again)
{
    return x->mtu_probe != 0 && end == x->mtu_probe_end && !again;
}
void nj__path_probe_arrived(struct nj_tcp *, struct nj_tcb *);
void nj__path_probe_lost(struct nj_tcb *);
/* A time-out, before it is acted upon: may it be the size of the segments? */
void nj__tcp_path_timed_out(struct nj_tcp *, struct nj_tcb *);

/* initial_seq.c */
uint32_t nj__tcp_ts_offset(const struct nj_tcp *, const struct nj_tuple *);
uint32_t nj__tcp_isn(const struct nj_tcp *, const struct nj_tuple *, nj_ns now);

/* output.c */
bool nj__tcp_send_syn(struct nj_tcp *, struct nj_tcb *, nj_ns now);
bool nj__tcp_send_ack(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* A segment without text, for no control block. False when there is no mbuf. */
bool nj__tcp_send_bare(struct nj_tcp *, const struct nj_tcp_emit *, nj_ns now);
/* RST-ACK for this flow. */
void nj__tcp_send_rst_at(struct nj_tcp *, const struct nj_flow *, uint32_t seq, uint32_t ack,
                         nj_ns now);
/* The same with the numbers of a control block. */
void nj__tcp_send_rst(struct nj_tcp *, const struct nj_tcb *, nj_ns now);
/* RST in answer to a segment (RFC 9293 3.10.7.1). `flow`: the one it belongs to, or NULL. */
void nj__tcp_reset_for(struct nj_tcp *, const struct nj_flow *flow, const struct nj_seg *,
                       nj_ns now);
void nj__tcp_send_keepalive(struct nj_tcp *, struct nj_tcb *, nj_ns now);
bool nj__tcp_send_probe(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* False when nothing could be sent. */
bool nj__tcp_send_tlp(struct nj_tcp *, struct nj_tcb *, nj_ns now);
/* Is there data that was never sent, and room for some in the peer's window? */
bool nj__tcp_has_new_data(const struct nj_tcb *);

/* window.c */
uint32_t nj__tcp_rcv_wnd(const struct nj_tcb *); /* what we promised, from rcv_nxt on */
/* The window field of the next segment. */
uint16_t nj__tcp_wnd_field(const struct nj_tcp *, struct nj_tcb *);
bool nj__tcp_window_update_due(const struct nj_tcp *, const struct nj_tcb *);

/* How short received mbufs are, by what all connections hold of cfg.held_max. A connection gets no
 * more than a quarter of what is left (nj__rcv_may_hold), so k of them at their bound hold
 * k / (k + 4) of it: four make SOME, 28 make HIGH. */
enum nj_pressure {
    NJ_PRESSURE_NONE,
    NJ_PRESSURE_SOME, /* more than 1/2: offer less */
    NJ_PRESSURE_HIGH, /* more than 7/8: offer the least that keeps a stream going */
};
enum nj_pressure nj__tcp_pressure(const struct nj_tcp *);

/* rtt.c: RFC 6298. */
void nj__tcp_rtt_sample(struct nj_tcb *, nj_ns rtt);
void nj__tcp_rto_back_off(struct nj_tcb *);
/* New data was acknowledged: down again, but not below twice the estimate (RFC 6298 5, Karn): that
 * takes a new sample, which a peer without timestamps may not give for a long time. */
void nj__tcp_rto_relax(struct nj_tcb *);
/* As the samples so far have it, without back-off. */
nj_ns nj__tcp_rto_now(const struct nj_tcb *);
/* Time until the next probe. The RTO stays: a closed window says nothing about the network. */
nj_ns nj__tcp_persist_back_off(struct nj_tcb *);
/* The handshake is over: take its round trip, or start from what RFC 6298 2.1 and 5.7 say. */
void nj__tcp_rto_opened(struct nj_tcb *, nj_ns now);
/* The clock of our timestamps, before the offset that each tuple has. */
static inline uint32_t nj__tcp_clock_ms(nj_ns now)
{
    return (uint32_t)(now / NJ_MS);
}
static inline uint32_t nj__tcp_ts_now(const struct nj_tcb *t, nj_ns now)
{
    return nj__tcp_clock_ms(now) + t->ts_offset;
}

/* The smoothed round trip, 0 before the first sample. */
static inline nj_ns nj__srtt(const struct nj_tcb *t)
{
    return (nj_ns)t->srtt_us * NJ_US;
}

/* timers.c */
void nj__tcp_rearm(struct nj_tcp *, struct nj_tcb *);

/* mbuf_cache.c: mbufs to write into. */
/* Fill up, if the pool has so many; with one, if it has few and none is here. Returns how many are
 * here now; 0: the pool is empty. */
uint32_t nj__fresh_stock(struct nj_tcp *);
struct rte_mbuf *nj__fresh_stocked(struct nj_tcp *);
void nj__fresh_return(struct nj_tcp *); /* to the pool */
/* One of them, or NULL, which is counted as mbuf_none. Its neighbour's place is fetched meanwhile:
 * the mbufs of a large pool are in no cache. */
static inline struct rte_mbuf *nj__fresh(struct nj_tcp *tcp)
{
    if (tcp->n_fresh < 2)
        return tcp->n_fresh ? tcp->fresh[--tcp->n_fresh] : nj__fresh_stocked(tcp);
    rte_prefetch0(rte_pktmbuf_mtod(tcp->fresh[tcp->n_fresh - 2], void *));
    return tcp->fresh[--tcp->n_fresh];
}

/* send_queue.c: the send queue. */
void nj__sndq_acked(struct nj_tcb *, uint32_t n_bytes);
/* Fill the empty mbuf `m` with `n_bytes` of the queue, from the byte with sequence number `seq` on.
 * `summed`: returns their sum, as nj_tcp_emit wants it. */
uint64_t nj__sndq_fill(struct nj_tcb *, uint32_t seq, uint32_t n_bytes, struct rte_mbuf *m,
                       bool summed);
/* The same for a segment that the device cuts: mbufs are chained to `head`, which stay within
 * cfg.tx.tso_mbufs_max if n_bytes is within tso_bytes_max. False when there are not enough of them;
 * `head` is only fit to be freed then. */
bool nj__sndq_chain(struct nj_tcp *, struct nj_tcb *, uint32_t seq, uint32_t n_bytes,
                    struct rte_mbuf *head);
void nj__mbuf_queue_free(struct nj_mbuf_queue *);

/* ack_policy.c: when text is acknowledged, and what the network did to it on its way. */
void nj__ack_text(struct nj_tcb *, const struct nj_seg *, bool filled_hole, nj_ns now);
/* Look at the ECN field and CWR of a segment with text (RFC 3168 6.1.3). */
void nj__ecn_arrived(struct nj_tcb *, const struct nj_seg *);
/* Do our ACKs carry ECE? Those of a connection that sends them do until the peer's CWR. */
static inline bool nj__ecn_echo(const struct nj_tcb *t)
{
    return t->ecn_on && t->x->ce_seen;
}

/* sack_input.c: what our ACKs say besides the number. The bytes [first, end) arrived ahead of their
 * turn, or fill a hole; to be called before they are queued. */
void nj__sack_arrived(struct nj_tcb *, uint32_t first, uint32_t end);
/* The bytes [first, end) stand before rcv_nxt: the next ACK says that they came again. */
void nj__sack_duplicate(struct nj_tcb *, uint32_t first, uint32_t end);
/* The blocks for a segment with `n_payload` bytes, and not more than fit with them into snd_mss;
 * none unless sack_on. Returns their number. What came twice counts as reported then, so the
 * segment has to be sent. */
uint32_t nj__sack_blocks(struct nj_tcb *, struct nj_tcp_opts *, uint32_t n_payload);

/* reassembly.c: out-of-order data. False when it was refused: then `m` stays the caller's. */
bool nj__reasm_insert(struct nj_tcp *, struct nj_tcb *, struct rte_mbuf *m, const struct nj_seg *);
/* May this connection hold one mbuf more? Dynamic thresholds (Choudhury and Hahne 1998): each may
 * have a quarter of what is left, so a few may have much, many have little each, and something is
 * always left for the next one. */
bool nj__rcv_may_hold(const struct nj_tcp *, const struct nj_tcb *);
/* Is there room for `n_bytes` more in order? In one mbuf more, or in those that are held: what lies
 * in them is copied together for that, so what peek showed is not valid any more. */
bool nj__rcv_make_room(struct nj_tcp *, struct nj_tcb *, uint32_t n_bytes);
/* Move what has become in-order to the receive queue. Returns the bytes moved. */
uint32_t nj__reasm_pull(struct nj_tcp *, struct nj_tcb *);
/* One past the last byte that has arrived, in order or not. */
uint32_t nj__reasm_end(const struct nj_tcb *);
/* Throw away what is furthest ahead; the peer sends it again. False when there is nothing. */
bool nj__reasm_drop_last(struct nj_tcp *, struct nj_tcb *);
void nj__reasm_free(struct nj_tcb *);
/* Append the payload of `m` to the receive queue. */
void nj__rcvq_push(struct nj_tcp *, struct nj_tcb *, struct rte_mbuf *m, uint32_t off,
                   uint32_t n_bytes);

#endif
