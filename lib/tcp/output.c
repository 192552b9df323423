/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends segments: data and ACKs (RFC 9293 3.7 and 3.8.6), SYNs, resets (3.10.7.1) and probes.
 * Segments of one connection leave in bursts, or as one TSO packet that the device cuts. */
#include <rte_mbuf.h>

#include "base/assert.h"
#include "tcp/cc/congestion.h"
#include "tcp/loss/recovery_state.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"
#include "wire/emit.h"

static void emit(struct nj_tcp *tcp, struct rte_mbuf *m, const struct nj_tcp_emit *e,
                 bool unverified, nj_ns now)
{
    struct nj_ip_meta ip = {e->tuple.local, e->tuple.remote, e->ecn, unverified, e->reach};
    tcp->cfg.emit(tcp->cfg.ctx, m, &ip, now);
}

static void send_out(struct nj_tcp *tcp, struct rte_mbuf *m, const struct nj_tcp_emit *e,
                     bool unverified, nj_ns now)
{
    nj_tcp_prepend(m, e, &tcp->cfg.tx);
    emit(tcp, m, e, unverified, now);
}

/* Segments without a control block: answers to unknown peers and half-open connections, whose
 * address is unverified; also resets, and ACKs in TIME-WAIT, which may be lost. */
bool nj__tcp_send_no_tcb(struct nj_tcp *tcp, const struct nj_tcp_emit *e, nj_ns now)
{
    struct rte_mbuf *m = nj__mbuf_get(tcp);
    if (m)
        send_out(tcp, m, e, true, now);
    return m != NULL;
}

/* Every segment carries an up-to-date ACK, so no ACK is due afterwards. */
static void note_acked(struct nj_tcb *t)
{
    t->last_ack_sent = t->rcv_nxt;
    t->ack_now = false;
    t->x->delack_at = NJ_NEVER;
}

/* The payload of a segment and its checksum, unless the device computes that. More than snd_mss
 * bytes make a TSO packet. NULL: no mbufs. */
static struct rte_mbuf *make_payload(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t seq,
                                     uint32_t n_bytes, uint64_t *sum)
{
    struct rte_mbuf *m = nj__mbuf_get(tcp);

    if (m && n_bytes <= t->snd_mss) {
        *sum = nj__sndq_copy(t, seq, n_bytes, m, !tcp->cfg.tx.tcp_csum);
    } else if (m && !nj__sndq_chain(tcp, t, seq, n_bytes, m)) {
        rte_pktmbuf_free(m);
        m = NULL;
    }
    return m;
}

/* Reachability of the neighbour, from RACK's latest delivered segment and from time-outs. */
static enum nj_reach reachability(const struct nj_tcb *t, nj_ns now)
{
    const struct nj_xfer *x = t->x;

    if (x->n_backoffs > 0)
        return t->snd_una == t->snd_nxt ? NJ_REACH_UNKNOWN : NJ_REACH_SUSPECT;
    return now - x->rack_at < NJ_SEC && x->rack_at ? NJ_REACH_CONFIRMED : NJ_REACH_UNKNOWN;
}

/* Fill in the header fields that the segments of a burst have in common. */
static void prepare_header(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_tcp_emit *e,
                           uint32_t seq, uint32_t n_bytes, nj_ns now)
{
    *e = (struct nj_tcp_emit){
        .tuple = t->flow.tuple,
        .ack = t->rcv_nxt,
        .wnd = nj__tcp_next_window_field(tcp, t),
        .flags = NJ_TCP_ACK | (nj__ecn_must_echo(t) ? NJ_TCP_ECE : 0),
        .tso_mss = tcp->cfg.tx.tso && n_bytes > t->snd_mss ? t->snd_mss : 0,
        .has_payload_sum = !tcp->cfg.tx.tcp_csum,
        .reach = reachability(t, now),
        .opts = {.has_ts = t->ts_on, .ts_val = nj__tcp_ts_now(t, now), .ts_ecr = t->ts_recent},
    };
    if (t->ecn_on && n_bytes > 0 && seq == t->snd_nxt) { /* RFC 3168 6.1.5: not retransmissions */
        e->ecn = NJ_ECN_ECT_0;
        e->flags |= t->x->cwr_due ? NJ_TCP_CWR : 0;
        t->x->cwr_due = false;
    }
    note_acked(t);
    if (n_bytes > 0)
        t->x->last_send_at = now; /* for RFC 5681 4.1, where ACKs don't count */
    if (e->tso_mss)
        nj_count(tcp->cfg.counters, NJ_C_tcp_tso);
}

/* Send `n_bytes` of the send queue from `seq` on, with `flags` on the last segment. The device cuts
 * the segments (TSO), or this function does. The caller has limited n_bytes by the available mbufs.
 */
static bool send_segments(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t seq, uint32_t n_bytes,
                          uint8_t flags, nj_ns now)
{
    uint32_t most = tcp->cfg.tx.tso ? UINT32_MAX : t->snd_mss;
    bool first = true, last;
    struct nj_tcp_hdr_cache head;
    struct nj_tcp_emit e;

    do {
        uint32_t n = nj_min_u32(n_bytes, most);
        uint64_t sum = 0;
        struct rte_mbuf *m = make_payload(tcp, t, seq, n, &sum);
        if (!m) {
            NJ_ASSERT(first);
            return false;
        }
        if (first)
            prepare_header(tcp, t, &e, seq, n_bytes, now);
        last = n == n_bytes;
        if (last) { /* full segments have no room for SACK blocks */
            e.flags |= flags;
            nj__sack_write_blocks(t, &e.opts, n);
        }
        e.seq = seq;
        e.payload_sum = sum;
        if (first || last || !e.has_payload_sum)
            nj_tcp_prepend(m, &e, &tcp->cfg.tx);
        else
            nj_tcp_hdr_cache_prepend(m, &head, seq, sum);
        if (first && !last && e.has_payload_sum)
            nj_tcp_hdr_cache_save(&head, m, &e);
        emit(tcp, m, &e, false, now);
        first = false;
        seq += n;
        n_bytes -= n;
    } while (!last);
    return true;
}

/* SYN or SYN-ACK; the window in it is never scaled (RFC 7323 2.2). */
bool nj__tcp_send_syn(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    bool passive = t->state == NJ_TCP_SYN_RECEIVED;
    bool first = t->snd_nxt == t->x->iss;

    t->snd_nxt = t->x->iss + 1;
    t->x->rexmit_at = now + t->x->rto;
    t->x->syn_at = first ? now : 0; /* Karn: no sample from a retransmission */
    t->x->n_syns += t->x->n_syns < UINT8_MAX;

    struct rte_mbuf *m = nj__mbuf_get(tcp);
    if (!m)
        return false; /* the retransmission timer tries again */
    uint32_t wnd = NJ_TCP_SYN_WINDOW;
    /* RFC 3168 6.1.1; not on a retransmitted SYN: the first may have been dropped because of it. */
    uint8_t ecn = !passive && first && tcp->cfg.ecn ? NJ_TCP_ECE | NJ_TCP_CWR : 0;
    struct nj_tcp_emit e = {
        .tuple = t->flow.tuple,
        .seq = t->x->iss,
        .ack = passive ? t->rcv_nxt : 0,
        .wnd = (uint16_t)wnd,
        .flags = NJ_TCP_SYN | (passive ? NJ_TCP_ACK : 0) | ecn,
        .opts = {.has_mss = true,
                 .mss = nj__tcp_our_mss(tcp, &t->flow.tuple),
                 .sack_permitted = !passive || t->sack_on,
                 .has_wscale = !passive || t->rcv_wscale > 0,
                 .wscale = NJ_TCP_WSCALE,
                 .has_ts = !passive || t->ts_on,
                 .ts_val = nj__tcp_ts_now(t, now),
                 .ts_ecr = passive ? t->ts_recent : 0},
    };
    if (passive) {
        t->rcv_adv = nj_seq_max(t->rcv_adv, t->rcv_nxt + wnd);
        note_acked(t);
    }
    send_out(tcp, m, &e, false, now);
    return true;
}

/* A sequence number that the peer accepts for a segment without text: snd_nxt, but not beyond its
 * window. */
static uint32_t acceptable_seq(const struct nj_tcb *t)
{
    uint32_t edge = t->snd_una + t->snd_wnd;
    bool beyond = t->state >= NJ_TCP_ESTABLISHED && nj_seq_lt(edge, t->snd_nxt);
    return beyond ? edge : t->snd_nxt;
}

bool nj__tcp_send_ack(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    return send_segments(tcp, t, acceptable_seq(t), 0, 0, now);
}

void nj__tcp_send_keepalive(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    send_segments(tcp, t, t->snd_una - 1, 0, 0, now);
}

/* RFC 7323 3.2: a RST carries timestamps if they were negotiated, with TSecr 0 without ACK. */
static void send_reset(struct nj_tcp *tcp, const struct nj_flow *flow, struct nj_tcp_emit *e,
                       nj_ns now)
{
    if (flow)
        nj__flow_fill_timestamp(tcp, flow, &e->opts, now);
    if (!(e->flags & NJ_TCP_ACK))
        e->opts.ts_ecr = 0;
    e->flags |= NJ_TCP_RST;
    if (nj__tcp_send_no_tcb(tcp, e, now))
        nj_count(tcp->cfg.counters, NJ_C_tcp_rst_out);
}

void nj__tcp_send_rst_at(struct nj_tcp *tcp, const struct nj_flow *flow, uint32_t seq, uint32_t ack,
                         nj_ns now)
{
    struct nj_tcp_emit e = {.tuple = flow->tuple, .seq = seq, .ack = ack, .flags = NJ_TCP_ACK};
    send_reset(tcp, flow, &e, now);
}

void nj__tcp_send_rst(struct nj_tcp *tcp, const struct nj_tcb *t, nj_ns now)
{
    nj__tcp_send_rst_at(tcp, &t->flow, acceptable_seq(t), t->rcv_nxt, now);
}

/* RFC 9293 3.5.2 and 3.10.7.1. */
void nj__tcp_send_rst_for(struct nj_tcp *tcp, const struct nj_flow *flow, const struct nj_seg *seg,
                          nj_ns now)
{
    struct nj_tcp_emit e = {.tuple = seg->tuple};

    if (seg->flags & NJ_TCP_RST)
        return; /* never answer a RST with a RST (RFC 9293 3.5.2) */
    if (seg->flags & NJ_TCP_ACK) {
        e.seq = seg->ack;
    } else {
        e.ack = seg->seq + nj_seg_len(seg);
        e.flags = NJ_TCP_ACK;
    }
    send_reset(tcp, flow, &e, now);
}

/* PSH and FIN of a segment with `n_bytes` of the queue at `seq`. */
static uint8_t flags_at(const struct nj_tcb *t, uint32_t seq, uint32_t n_bytes)
{
    bool reaches_end = seq - t->snd_una + n_bytes == t->x->sndq.n_bytes;
    uint8_t flags = n_bytes > 0 && reaches_end ? NJ_TCP_PSH : 0;
    return flags | (reaches_end && t->fin_queued ? NJ_TCP_FIN : 0);
}

/* RFC 9293 3.8.6.1: send one byte beyond a closed window, or the bytes that a nearly closed one
 * admits. */
bool nj__tcp_send_window_probe(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    uint32_t n =
        nj_min_u32(t->snd_wnd ? t->snd_wnd : 1, nj_min_u32(t->x->sndq.n_bytes, t->snd_mss));
    bool fresh = t->snd_nxt == t->snd_una; /* else a retransmission */
    uint8_t flags = flags_at(t, t->snd_una, n);
    uint32_t n_seq = n + !!(flags & NJ_TCP_FIN);

    if (!fresh && n_seq > t->snd_nxt - t->snd_una)
        flags &= (uint8_t)~NJ_TCP_FIN; /* it was queued but not yet sent */
    if (!send_segments(tcp, t, t->snd_una, n, flags, now))
        return false;
    if (fresh && n_seq > 0) /* so that its ACK is acceptable */
        nj__scoreboard_append(tcp, t, n_seq, now);
    else if (!fresh)
        nj_sent_run_first(t->x)->again = true; /* Karn: no sample */
    return true;
}

/* Sender's silly window syndrome avoidance (RFC 9293 3.8.6.2.1). Nagle's algorithm (RFC 9293 3.7.4)
 * is not used: the user fills the queue once per burst, so a short segment ends the available data.
 */
static bool avoids_silly_window(const struct nj_tcb *t, uint32_t n, uint32_t queued)
{
    return n >= t->snd_mss || n == queued || n >= t->snd_wnd_max / 2;
}

static uint32_t cwnd_room(const struct nj_tcb *t)
{
    uint32_t pipe = nj__pipe(t), room = t->cwnd > pipe ? t->cwnd - pipe : 0;
    return t->x->send_one_anyway && room < t->snd_mss ? t->snd_mss : room;
}

static void after_send(struct nj_tcb *t, uint32_t n_seq, bool again, nj_ns now)
{
    struct nj_xfer *x = t->x;

    nj__recovery_count_sent(t, n_seq, again, now);
    x->send_one_anyway = false;
    x->used = true;
    if (x->rexmit_at == NJ_NEVER) /* RFC 6298 5.1 */
        x->rexmit_at = now + x->rto;
}

uint32_t nj_tcp_send_wanted(const struct nj_tcb *t)
{
    if (!t->x)
        return t->snd_mss;
    uint32_t n = nj_min_u32(nj__tcp_peer_room(t, t->snd_nxt), cwnd_room(t)) + t->snd_mss,
             has = nj__tcp_unsent(t);
    return n > has ? n - has : 0;
}

enum nj_tcp_limit nj_tcp_limited_by(const struct nj_tcb *t)
{
    if (!t->x)
        return NJ_TCP_LIMIT_NONE;
    uint32_t unsent = nj__tcp_unsent(t), peer = nj__tcp_peer_room(t, t->snd_nxt),
             cwnd = cwnd_room(t), n = nj_min_u32(unsent, nj_min_u32(peer, cwnd));
    if (t->x->n_lost > 0)
        return NJ_TCP_LIMIT_CWND;
    if (unsent == 0 || (n > 0 && avoids_silly_window(t, n, unsent)))
        return NJ_TCP_LIMIT_NONE;
    return peer <= cwnd ? NJ_TCP_LIMIT_PEER : NJ_TCP_LIMIT_CWND;
}

enum sending { SENDING_DONE, SENDING_NOTHING, SENDING_NO_ROOM };

/* Maximum bytes of one send: a TSO packet, or a burst limited by `room` packets and `burst`
 * segments. */
static uint32_t max_bytes_per_send(const struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t room,
                                   uint32_t burst)
{
    uint32_t mss = t->snd_mss;
    uint32_t n =
        tcp->cfg.tx.tso ? tcp->cfg.tx.tso_bytes_max / mss : nj_min_u32(room, NJ_TCP_MBUF_CACHE_MAX);
    return t->x->send_one_anyway || n == 0 ? mss : nj_min_u32(n, burst) * mss;
}

static uint32_t segments(const struct nj_tcb *t, uint32_t n_bytes)
{
    return n_bytes > t->snd_mss ? (n_bytes + t->snd_mss - 1) / t->snd_mss : 1;
}

/* Limit the `n` bytes of a burst by the available mbufs, but not below one segment: sending it
 * reports the shortage. */
static uint32_t limit_by_mbufs(struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t n)
{
    uint32_t mss = t->snd_mss;

    if (n <= mss || tcp->cfg.tx.tso || n <= tcp->n_mbuf_cache * mss)
        return n;
    uint32_t ready = nj__mbuf_cache_fill(tcp);
    return nj_min_u32(n, ready > 0 ? ready * mss : mss);
}

/* Limit `n` by the mbufs, and round it down to full segments unless it is `all`. */
static uint32_t round_to_segments(struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t n,
                                  uint32_t all)
{
    n = limit_by_mbufs(tcp, t, n);
    return n > t->snd_mss && n < all ? n - n % t->snd_mss : n;
}

/* Retransmit (RFC 9293 3.8.1) from the start of `r`: `n` bytes, of which `old` were sent before,
 * and the FIN if it follows. If the old data reaches snd_nxt, new data fills the segment. */
static enum sending send_again(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent_run *r,
                               uint32_t old, uint32_t n, nj_ns now)
{
    uint32_t left = t->x->sndq.n_bytes - (r->seq - t->snd_una);
    uint32_t end = r->seq + old, more = 0;

    old = nj_min_u32(n, old);
    if (end == t->snd_nxt && nj__scoreboard_can_append(tcp, t))
        more = n - old;
    n = nj_min_u32(old + more, left);
    bool fin = n == left && nj_seq_lt(r->seq + n, end);
    uint8_t flags = flags_at(t, r->seq, n) & (uint8_t)(fin ? UINT8_MAX : ~NJ_TCP_FIN);
    if (!send_segments(tcp, t, r->seq, n, flags, now))
        return SENDING_NO_ROOM;
    nj_count_n(tcp->cfg.counters, NJ_C_tcp_retransmit, segments(t, n));
    more = n > old ? n - old : 0;
    nj__scoreboard_rexmitted(tcp, t, r, r->seq + n - more + fin, now);
    if (more)
        nj__scoreboard_append(tcp, t, more, now);
    after_send(t, n + fin, true, now);
    return SENDING_DONE;
}

static enum sending send_lost(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent_run *r,
                              uint32_t unit, nj_ns now)
{
    uint32_t room = cwnd_room(t), window = nj__tcp_peer_room(t, r->seq);
    uint32_t n = nj_min_u32(nj_min_u32(room, window), unit);

    uint32_t lost = nj__scoreboard_rexmit_max(t, r);
    if (room < nj_min_u32(lost, t->snd_mss) || window == 0)
        return SENDING_NOTHING;
    n = nj_min_u32(n, segments(t, lost) * t->snd_mss); /* new data fills one segment at most */
    return send_again(tcp, t, r, lost, round_to_segments(tcp, t, n, lost), now);
}

/* New data is sent with nothing in flight: the retransmission timer and R2 start here, also after
 * zero-window probes. */
static void restart_rto_clock(struct nj_xfer *x, nj_ns now)
{
    x->rexmit_at = NJ_NEVER;
    x->progress_at = now;
}

/* Send a path MTU probe: one segment of `n` bytes, more than snd_mss. */
static enum sending send_mtu_probe(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n, nj_ns now)
{
    uint16_t mss = t->snd_mss;
    bool first = t->snd_una == t->snd_nxt;

    t->snd_mss = (uint16_t)n; /* for this one */
    bool sent = send_segments(tcp, t, t->snd_nxt, n, 0, now);
    if (sent)
        nj__scoreboard_append(tcp, t, n, now);
    t->snd_mss = mss;
    if (!sent)
        return SENDING_NO_ROOM;
    if (first)
        restart_rto_clock(t->x, now);
    nj__mtu_probe_sent(t, n, now);
    after_send(t, n, false, now);
    return SENDING_DONE;
}

static enum sending send_new(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t unit, nj_ns now)
{
    struct nj_xfer *x = t->x;
    uint32_t queued = nj__tcp_unsent(t), off = t->snd_nxt - t->snd_una;
    uint32_t room = nj_min_u32(nj__tcp_peer_room(t, t->snd_nxt), cwnd_room(t));

    if (x->cwr_due) /* RFC 3168 6.1.2: CWR on one segment; TSO would copy it */
        unit = t->snd_mss;
    uint32_t n = round_to_segments(tcp, t, nj_min_u32(nj_min_u32(queued, room), unit), queued);
    bool fin = t->fin_queued && n == queued && off <= x->sndq.n_bytes;

    if (n == 0 && !fin)
        return SENDING_NOTHING;
    if ((!fin && !avoids_silly_window(t, n, queued)) || !nj__scoreboard_can_append(tcp, t))
        return SENDING_NOTHING;
    bool may_probe =
        queued > 1 && t->snd_mss < t->mss_max &&
        nj__scoreboard_has_free_runs(tcp, t, 2); /* for the probe, and for later data */
    uint32_t probe = may_probe ? nj__mtu_probe_bytes(t, nj_min_u32(queued - 1, room), now)
                               : 0; /* less the last byte: no FIN, no PSH */
    if (probe)
        return send_mtu_probe(tcp, t, probe, now);
    if (!send_segments(tcp, t, t->snd_nxt, n, flags_at(t, t->snd_nxt, n), now))
        return SENDING_NO_ROOM;
    if (off == 0)
        restart_rto_clock(x, now);
    nj__scoreboard_append(tcp, t, n + fin, now);
    after_send(t, n + fin, false, now);
    return SENDING_DONE;
}

static bool may_send(const struct nj_tcb *t)
{
    return t->state == NJ_TCP_ESTABLISHED || t->state == NJ_TCP_CLOSE_WAIT ||
           t->state == NJ_TCP_FIN_WAIT_1 || t->state == NJ_TCP_CLOSING ||
           t->state == NJ_TCP_LAST_ACK;
}

/* Record whether cwnd limits the sender: an unused window must not grow (RFC 7661). In slow start
 * half a window is enough, since the window doubles. */
static void note_cwnd_limited(struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;
    bool held = nj__tcp_has_new_data_in_window(t) && cwnd_room(t) < t->snd_mss;

    if (!held && (t->cwnd >= t->ssthresh || nj__pipe(t) < t->cwnd / 2))
        return;
    x->limited = true;
    x->limited_seq = t->snd_nxt;
}

/* Send the next segments, lost data first. If mbufs are too few for a TSO packet, try one segment.
 */
static enum sending send_next(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent_run *lost,
                              uint32_t room, uint32_t burst, nj_ns now)
{
    uint32_t unit = max_bytes_per_send(tcp, t, room, burst);
    enum sending s = lost ? send_lost(tcp, t, lost, unit, now) : send_new(tcp, t, unit, now);

    if (s != SENDING_NO_ROOM || unit == t->snd_mss || !tcp->cfg.tx.tso)
        return s;
    unit = t->snd_mss;
    return lost ? send_lost(tcp, t, lost, unit, now) : send_new(tcp, t, unit, now);
}

/* Maximum number of segments of a burst. Lost segments may be short, and windows count bytes. The
 * limit is ten after a time-out. In RECOVERY it is the number of full segments in the window, if
 * that is larger. */
static uint32_t burst_max(const struct nj_tcb *t)
{
    if (t->x->ca < NJ_CA_RECOVERY)
        return UINT32_MAX;
    uint32_t n_full = t->x->ca == NJ_CA_LOSS ? 0 : cwnd_room(t) / t->snd_mss;
    return n_full > NJ_TCP_LOSS_BURST ? n_full : NJ_TCP_LOSS_BURST;
}

/* The burst limit is reached. The rest is sent by timer if the window has room for a full segment,
 * else with the next ACK. */
static void end_burst(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (x->n_lost == 0 && nj__tcp_unsent(t) == 0)
        return;
    nj_count(tcp->cfg.counters, NJ_C_tcp_burst_cut);
    if (cwnd_room(t) >= t->snd_mss)
        x->next_burst_at = now + NJ_TCP_LOSS_BURST_GAP;
}

/* Send all that the windows allow. False: mbufs or device room are missing; try again later. */
static bool send_due(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    uint32_t nxt = t->snd_nxt, burst = burst_max(t);
    enum sending s;

    if (!may_send(t))
        return true;
    if (x->ca >= NJ_CA_RECOVERY && x->next_burst_at != NJ_NEVER && now < x->next_burst_at)
        return true;
    x->next_burst_at = NJ_NEVER;
    if (t->snd_una == t->snd_nxt && x->last_send_at && now - x->last_send_at > x->rto)
        tcp->cfg.cc->idle(t, now, now - x->last_send_at);
    do {
        struct nj_sent_run *lost = x->frto == 2 ? NULL : nj__scoreboard_first_lost(x);
        if (!lost && nj__tcp_unsent(t) == 0 && !t->fin_queued)
            break;
        uint32_t room = tcp->cfg.room(tcp->cfg.ctx);
        if (room == 0)
            return false;
        uint32_t flight = x->n_flight;
        s = send_next(tcp, t, lost, room, burst, now);
        if (s == SENDING_NO_ROOM)
            return false;
        if (s == SENDING_DONE && x->ca >= NJ_CA_RECOVERY)
            burst -= nj_min_u32(burst, segments(t, x->n_flight - flight));
    } while (s == SENDING_DONE && burst > 0);
    if (burst == 0)
        end_burst(tcp, t, now);
    note_cwnd_limited(t);
    if (t->snd_nxt != nxt)
        nj__tlp_schedule(t, now);
    if (nj__tcp_unsent(t) > 0 && t->snd_nxt == t->snd_una && x->rexmit_at == NJ_NEVER) {
        x->rexmit_at = now + x->rto; /* the window is shut: persist */
        x->progress_at = now;
    }
    return true;
}

/* RFC 8985 7.3: send one new segment if the peer's window allows it, else retransmit the last. */
bool nj__tcp_send_tlp(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sent_run *last = nj_sent_run_last(x);
    bool fresh = nj__tcp_has_new_data_in_window(t);
    enum sending s = SENDING_NOTHING;

    if (!last || last->fate != NJ_RUN_IN_FLIGHT || t->snd_wnd == 0 ||
        tcp->cfg.room(tcp->cfg.ctx) == 0)
        return false; /* zero-window probes take over */
    if (fresh) {
        x->send_one_anyway = true;
        s = send_new(tcp, t, t->snd_mss, now);
        x->send_one_anyway = false;
    }
    if (s != SENDING_DONE) {
        fresh = false;
        last = nj__scoreboard_split_tail(tcp, t, t->snd_mss);
        uint32_t window = nj__tcp_peer_room(t, last->seq); /* it may have shrunk */
        uint32_t old = last->end - last->seq, n = nj_min_u32(window, t->snd_mss);
        s = window ? send_again(tcp, t, last, old, n, now) : SENDING_NOTHING;
    }
    if (s != SENDING_DONE)
        return false;
    x->tlp_out = true;
    x->tlp_was_rexmit = !fresh;
    x->tlp_end = t->snd_nxt;
    return true;
}

/* Serve the pending connections in turn. One that lacks mbufs or device room stays pending. */
uint32_t nj_tcp_output_pending(struct nj_tcp *tcp, nj_ns now)
{
    struct nj_list batch, *n;
    uint32_t served = 0;

    nj_list_init(&batch);
    nj_list_splice(&batch, &tcp->pending);
    while ((n = nj_list_pop(&batch))) {
        struct nj_tcb *t = nj_container_of(n, struct nj_xfer, pending)->tcb;
        bool done = send_due(tcp, t, now);
        if (done && t->ack_now)
            done = tcp->cfg.room(tcp->cfg.ctx) > 0 && nj__tcp_send_ack(tcp, t, now);
        served++;
        if (nj__tcb_try_time_wait_minisock(tcp, t, now))
            continue;
        nj__tcp_rearm_timer(tcp, t);
        nj__tcb_assert_valid(t);
        if (!done)
            nj__tcb_note_output(tcp, t);
    }
    return served;
}
