/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments out: RFC 9293 3.7 and 3.8.6, resets of 3.10.7.1. */
#include <rte_mbuf.h>

#include "base/assert.h"
#include "tcp/cc/congestion.h"
#include "tcp/loss/recovery.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"
#include "wire/emit.h"

static void emit(struct nj_tcp *tcp, struct rte_mbuf *m, const struct nj_tcp_emit *e, bool unproven,
                 nj_ns now)
{
    struct nj_ip_meta ip = {e->tuple.local, e->tuple.remote, e->ecn, unproven, e->reach};
    tcp->cfg.emit(tcp->cfg.ctx, m, &ip, now);
}

static void send_out(struct nj_tcp *tcp, struct rte_mbuf *m, const struct nj_tcp_emit *e,
                     bool unproven, nj_ns now)
{
    nj_tcp_prepend(m, e, &tcp->cfg.tx);
    emit(tcp, m, e, unproven, now);
}

/* Without a control block: what answers strangers and half-open connections, where nothing proves
 * that the peer has its address; and resets, and ACKs in TIME-WAIT, which nobody depends on. */
bool nj__tcp_send_bare(struct nj_tcp *tcp, const struct nj_tcp_emit *e, nj_ns now)
{
    struct rte_mbuf *m = nj__fresh(tcp);
    if (m)
        send_out(tcp, m, e, true, now);
    return m != NULL;
}

/* Whatever we send tells the peer where we stand, so no ACK is owed afterwards. */
static void note_acked(struct nj_tcb *t)
{
    t->last_ack_sent = t->rcv_nxt;
    t->ack_now = false;
    t->x->delack_at = NJ_NEVER;
}

/* A segment without headers, and its sum unless that is the device's work; more than the MSS is for
 * the device to cut, too. NULL: no mbufs. */
static struct rte_mbuf *payload(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t seq,
                                uint32_t n_bytes, uint64_t *sum)
{
    struct rte_mbuf *m = nj__fresh(tcp);

    if (m && n_bytes <= t->snd_mss) {
        *sum = nj__sndq_fill(t, seq, n_bytes, m, !tcp->cfg.tx.tcp_csum);
    } else if (m && !nj__sndq_chain(tcp, t, seq, n_bytes, m)) {
        rte_pktmbuf_free(m);
        m = NULL;
    }
    return m;
}

/* RACK knows when the last segment was sent that arrived. */
static enum nj_reach reach(const struct nj_tcb *t, nj_ns now)
{
    const struct nj_xfer *x = t->x;

    if (x->n_backoffs > 0)
        return t->snd_una == t->snd_nxt ? NJ_REACH_UNKNOWN : NJ_REACH_DOUBTED;
    return now - x->rack_at < NJ_SEC && x->rack_at ? NJ_REACH_PROVEN : NJ_REACH_UNKNOWN;
}

/* What the headers of a train have in common. Whatever it is sent for, its ACK is up to date. */
static void begin_train(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_tcp_emit *e, uint32_t seq,
                        uint32_t n_bytes, nj_ns now)
{
    *e = (struct nj_tcp_emit){
        .tuple = t->flow.tuple,
        .ack = t->rcv_nxt,
        .wnd = nj__tcp_wnd_field(tcp, t),
        .flags = NJ_TCP_ACK | (nj__ecn_echo(t) ? NJ_TCP_ECE : 0),
        .tso_mss = tcp->cfg.tx.tso && n_bytes > t->snd_mss ? t->snd_mss : 0,
        .summed = !tcp->cfg.tx.tcp_csum,
        .reach = reach(t, now),
        .opts = {.has_ts = t->ts_on, .ts_val = nj__tcp_ts_now(t, now), .ts_ecr = t->ts_recent},
    };
    if (t->ecn_on && n_bytes > 0 && seq == t->snd_nxt) { /* RFC 3168 6.1.5: not what goes again */
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

/* Segments of a synchronized connection: `n_bytes` of the send queue from `seq` on, with `flags` on
 * the last of them. The device cuts them, or we do; whole() has seen to it that there are mbufs. */
static bool send_train(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t seq, uint32_t n_bytes,
                       uint8_t flags, nj_ns now)
{
    uint32_t most = tcp->cfg.tx.tso ? UINT32_MAX : t->snd_mss;
    bool first = true, last;
    struct nj_tcp_head head;
    struct nj_tcp_emit e;

    do {
        uint32_t n = nj_min_u32(n_bytes, most);
        uint64_t sum = 0;
        struct rte_mbuf *m = payload(tcp, t, seq, n, &sum);
        if (!m) {
            NJ_ASSERT(first);
            return false;
        }
        if (first)
            begin_train(tcp, t, &e, seq, n_bytes, now);
        last = n == n_bytes;
        if (last) { /* the others are full, and have no room for blocks */
            e.flags |= flags;
            nj__sack_blocks(t, &e.opts, n);
        }
        e.seq = seq;
        e.payload_sum = sum;
        if (first || last || !e.summed)
            nj_tcp_prepend(m, &e, &tcp->cfg.tx);
        else
            nj_tcp_head_prepend(m, &head, seq, sum);
        if (first && !last && e.summed)
            nj_tcp_head_keep(&head, m, &e);
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
    t->x->syn_at = first ? now : 0; /* Karn: no sample from what was sent twice */
    t->x->n_syns += t->x->n_syns < UINT8_MAX;

    struct rte_mbuf *m = nj__fresh(tcp);
    if (!m)
        return false; /* the retransmission timer tries again */
    uint32_t wnd = NJ_TCP_SYN_WINDOW;
    /* RFC 3168 6.1.1; not on a second SYN: the first may have been refused for it. */
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

/* The number of a segment without text that the peer's sequence check will take: where the peer is
 * if all has arrived, and not beyond its window. */
static uint32_t acceptable_seq(const struct nj_tcb *t)
{
    uint32_t edge = t->snd_una + t->snd_wnd;
    bool beyond = t->state >= NJ_TCP_ESTABLISHED && nj_seq_lt(edge, t->snd_nxt);
    return beyond ? edge : t->snd_nxt;
}

bool nj__tcp_send_ack(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    return send_train(tcp, t, acceptable_seq(t), 0, 0, now);
}

void nj__tcp_send_keepalive(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    send_train(tcp, t, t->snd_una - 1, 0, 0, now);
}

/* RFC 7323 3.2: a RST, too, carries timestamps where they were agreed on, and echoes none when it
 * acknowledges nothing. */
static void send_reset(struct nj_tcp *tcp, const struct nj_flow *flow, struct nj_tcp_emit *e,
                       nj_ns now)
{
    if (flow)
        nj__flow_timestamp(tcp, flow, &e->opts, now);
    if (!(e->flags & NJ_TCP_ACK))
        e->opts.ts_ecr = 0;
    e->flags |= NJ_TCP_RST;
    if (nj__tcp_send_bare(tcp, e, now))
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
void nj__tcp_reset_for(struct nj_tcp *tcp, const struct nj_flow *flow, const struct nj_seg *seg,
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

/* What a segment at `seq` may carry: the flags that go with `n_bytes` of the queue. */
static uint8_t flags_at(const struct nj_tcb *t, uint32_t seq, uint32_t n_bytes)
{
    bool reaches_end = seq - t->snd_una + n_bytes == t->x->sndq.n_bytes;
    uint8_t flags = n_bytes > 0 && reaches_end ? NJ_TCP_PSH : 0;
    return flags | (reaches_end && t->fin_queued ? NJ_TCP_FIN : 0);
}

/* RFC 9293 3.8.6.1: one byte beyond a closed window, or what a nearly closed one lets through. */
bool nj__tcp_send_probe(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    uint32_t n =
        nj_min_u32(t->snd_wnd ? t->snd_wnd : 1, nj_min_u32(t->x->sndq.n_bytes, t->snd_mss));
    bool fresh = t->snd_nxt == t->snd_una; /* else it is an old byte once more */
    uint8_t flags = flags_at(t, t->snd_una, n);
    uint32_t n_seq = n + !!(flags & NJ_TCP_FIN);

    if (!fresh && n_seq > t->snd_nxt - t->snd_una)
        flags &= (uint8_t)~NJ_TCP_FIN; /* it was queued but not yet sent */
    if (!send_train(tcp, t, t->snd_una, n, flags, now))
        return false;
    if (fresh && n_seq > 0) /* an ACK of it is not an ACK of the future */
        nj__sent_push(tcp, t, n_seq, now);
    else if (!fresh)
        nj_sent_first(t->x)->again = true; /* Karn: no round trip is measured by it */
    return true;
}

/* Sender's silly window avoidance (RFC 9293 3.8.6.2.1). Nagle's rule is left out (RFC 9293 3.7.4):
 * the user fills the queue once per burst, so a short segment is the end of what it has to say. */
static bool worth_sending(const struct nj_tcb *t, uint32_t n, uint32_t queued)
{
    return n >= t->snd_mss || n == queued || n >= t->snd_wnd_max / 2;
}

/* Bytes of the queue that were never sent. */
static uint32_t unsent(const struct nj_tcb *t)
{
    uint32_t off = t->snd_nxt - t->snd_una; /* one beyond the queue when the FIN is out */
    return off < t->x->sndq.n_bytes ? t->x->sndq.n_bytes - off : 0;
}

/* What the peer's window has left from `seq` on. */
static uint32_t peer_room(const struct nj_tcb *t, uint32_t seq)
{
    uint32_t off = seq - t->snd_una;
    return off < t->snd_wnd ? t->snd_wnd - off : 0;
}

bool nj__tcp_has_new_data(const struct nj_tcb *t)
{
    return unsent(t) > 0 && peer_room(t, t->snd_nxt) > 0;
}

static uint32_t cwnd_room(const struct nj_tcb *t)
{
    uint32_t pipe = nj__pipe(t), room = t->cwnd > pipe ? t->cwnd - pipe : 0;
    return t->x->send_one && room < t->snd_mss ? t->snd_mss : room;
}

static void note_sent(struct nj_tcb *t, uint32_t n_seq, bool again, nj_ns now)
{
    struct nj_xfer *x = t->x;

    nj__recovery_sent(t, n_seq, again, now);
    x->send_one = false;
    x->used = true;
    if (x->rexmit_at == NJ_NEVER) /* RFC 6298 5.1 */
        x->rexmit_at = now + x->rto;
}

enum sending { SENT, NOTHING, NO_ROOM };

/* The most that may go at once, with room for `room` packets and `burst` segments: what the device
 * cuts into full segments, or a train of them. */
static uint32_t unit_max(const struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t room,
                         uint32_t burst)
{
    uint32_t mss = t->snd_mss;
    uint32_t n =
        tcp->cfg.tx.tso ? tcp->cfg.tx.tso_bytes_max / mss : nj_min_u32(room, NJ_TCP_FRESH_MAX);
    return t->x->send_one || n == 0 ? mss : nj_min_u32(n, burst) * mss;
}

static uint32_t segments(const struct nj_tcb *t, uint32_t n_bytes)
{
    return n_bytes > t->snd_mss ? (n_bytes + t->snd_mss - 1) / t->snd_mss : 1;
}

/* Of the `n` bytes of a train, those that find mbufs. If there is none at all, the attempt to send
 * the first one will tell. */
static uint32_t with_mbufs(struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t n)
{
    uint32_t mss = t->snd_mss;

    if (n <= mss || tcp->cfg.tx.tso || n <= tcp->n_fresh * mss)
        return n;
    uint32_t ready = nj__fresh_stock(tcp);
    return nj_min_u32(n, ready > 0 ? ready * mss : mss);
}

/* `n` bytes, cut so that they make full segments unless they are `all` there are, and find mbufs.
 */
static uint32_t whole(struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t n, uint32_t all)
{
    n = with_mbufs(tcp, t, n);
    return n > t->snd_mss && n < all ? n - n % t->snd_mss : n;
}

/* `n` bytes from the beginning of `r` once more (RFC 9293 3.8.1), of which `old` are numbers that
 * were sent before, and the FIN if it stands right behind them. New data fills up what is left of
 * the segment when the old data reaches snd_nxt. */
static enum sending send_again(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent *r,
                               uint32_t old, uint32_t n, nj_ns now)
{
    uint32_t left = t->x->sndq.n_bytes - (r->seq - t->snd_una);
    uint32_t end = r->seq + old, more = 0;

    old = nj_min_u32(n, old);
    if (end == t->snd_nxt && nj__sent_has_room(tcp, t))
        more = n - old;
    n = nj_min_u32(old + more, left);
    bool fin = n == left && nj_seq_lt(r->seq + n, end);
    uint8_t flags = flags_at(t, r->seq, n) & (uint8_t)(fin ? UINT8_MAX : ~NJ_TCP_FIN);
    if (!send_train(tcp, t, r->seq, n, flags, now))
        return NO_ROOM;
    nj_count_n(tcp->cfg.counters, NJ_C_tcp_retransmit, segments(t, n));
    more = n > old ? n - old : 0;
    nj__sent_again(tcp, t, r, r->seq + n - more + fin, now);
    if (more)
        nj__sent_push(tcp, t, more, now);
    note_sent(t, n + fin, true, now);
    return SENT;
}

static enum sending send_lost(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent *r,
                              uint32_t unit, nj_ns now)
{
    uint32_t room = cwnd_room(t), window = peer_room(t, r->seq);
    uint32_t n = nj_min_u32(nj_min_u32(room, window), unit);

    uint32_t lost = nj__sent_again_max(t, r);
    if (room < nj_min_u32(lost, t->snd_mss) || window == 0)
        return NOTHING;
    n = nj_min_u32(n, segments(t, lost) * t->snd_mss); /* new data fills up one segment, not more */
    return send_again(tcp, t, r, lost, whole(tcp, t, n, lost), now);
}

/* New data goes while nothing is in flight: the timer and R2 count from here, whatever was probed
 * before. */
static void begin_flight(struct nj_xfer *x, nj_ns now)
{
    x->rexmit_at = NJ_NEVER;
    x->progress_at = now;
}

/* One segment of `n` bytes, more than snd_mss, to see whether the path carries it. */
static enum sending send_mtu_probe(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n, nj_ns now)
{
    uint16_t mss = t->snd_mss;
    bool first = t->snd_una == t->snd_nxt;

    t->snd_mss = (uint16_t)n; /* for this one */
    bool sent = send_train(tcp, t, t->snd_nxt, n, 0, now);
    if (sent)
        nj__sent_push(tcp, t, n, now);
    t->snd_mss = mss;
    if (!sent)
        return NO_ROOM;
    if (first)
        begin_flight(t->x, now);
    nj__path_probe_sent(t, n, now);
    note_sent(t, n, false, now);
    return SENT;
}

static enum sending send_new(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t unit, nj_ns now)
{
    struct nj_xfer *x = t->x;
    uint32_t queued = unsent(t), off = t->snd_nxt - t->snd_una;
    uint32_t room = nj_min_u32(peer_room(t, t->snd_nxt), cwnd_room(t));

    if (x->cwr_due) /* RFC 3168 6.1.2: in one segment; devices copy it into each that they cut */
        unit = t->snd_mss;
    uint32_t n = whole(tcp, t, nj_min_u32(nj_min_u32(queued, room), unit), queued);
    bool fin = t->fin_queued && n == queued && off <= x->sndq.n_bytes;

    if (n == 0 && !fin)
        return NOTHING;
    if ((!fin && !worth_sending(t, n, queued)) || !nj__sent_has_room(tcp, t))
        return NOTHING;
    bool may_probe = queued > 1 && t->snd_mss < t->mss_max &&
                     nj__sent_has_runs(tcp, t, 2); /* for it, and for what follows */
    uint32_t probe = may_probe ? nj__path_probe(t, nj_min_u32(queued - 1, room), now)
                               : 0; /* less the last byte: no FIN, no PSH */
    if (probe)
        return send_mtu_probe(tcp, t, probe, now);
    if (!send_train(tcp, t, t->snd_nxt, n, flags_at(t, t->snd_nxt, n), now))
        return NO_ROOM;
    if (off == 0)
        begin_flight(x, now);
    nj__sent_push(tcp, t, n + fin, now);
    note_sent(t, n + fin, false, now);
    return SENT;
}

static bool may_send(const struct nj_tcb *t)
{
    return t->state == NJ_TCP_ESTABLISHED || t->state == NJ_TCP_CLOSE_WAIT ||
           t->state == NJ_TCP_FIN_WAIT_1 || t->state == NJ_TCP_CLOSING ||
           t->state == NJ_TCP_LAST_ACK;
}

/* Remember whether it is the congestion window that holds us back: one that is not used does not
 * grow (RFC 7661). In slow start a window half full will do, it doubles. */
static void note_limited(struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;
    bool held = nj__tcp_has_new_data(t) && cwnd_room(t) < t->snd_mss;

    if (!held && (t->cwnd >= t->ssthresh || nj__pipe(t) < t->cwnd / 2))
        return;
    x->limited = true;
    x->limited_seq = t->snd_nxt;
}

/* The next segments: what was lost goes first. With too few mbufs for all that the device could cut
 * there may be enough for one. */
static enum sending send_next(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent *lost,
                              uint32_t room, uint32_t burst, nj_ns now)
{
    uint32_t unit = unit_max(tcp, t, room, burst);
    enum sending s = lost ? send_lost(tcp, t, lost, unit, now) : send_new(tcp, t, unit, now);

    if (s != NO_ROOM || unit == t->snd_mss || !tcp->cfg.tx.tso)
        return s;
    unit = t->snd_mss;
    return lost ? send_lost(tcp, t, lost, unit, now) : send_new(tcp, t, unit, now);
}

/* Segments that may go at once. Lost segments may be short, and the windows count bytes: after a
 * time-out ten go, and in a recovery without one as many as full ones would fit the window. */
static uint32_t burst_max(const struct nj_tcb *t)
{
    if (t->x->ca < NJ_CA_RECOVERY)
        return UINT32_MAX;
    uint32_t n_full = t->x->ca == NJ_CA_LOSS ? 0 : cwnd_room(t) / t->snd_mss;
    return n_full > NJ_TCP_LOSS_BURST ? n_full : NJ_TCP_LOSS_BURST;
}

/* As many segments as may go at once have gone. More of them wait a moment if the windows have room
 * for a full one, else for an ACK: many short ones are not worth a timer. */
static void end_burst(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (x->n_lost == 0 && unsent(t) == 0)
        return;
    nj_count(tcp->cfg.counters, NJ_C_tcp_burst_cut);
    if (cwnd_room(t) >= t->snd_mss)
        x->burst_at = now + NJ_TCP_LOSS_BURST_GAP;
}

/* Everything the windows allow. False when it has to be tried again later. */
static bool send_due(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    uint32_t nxt = t->snd_nxt, burst = burst_max(t);
    enum sending s;

    if (!may_send(t))
        return true;
    if (x->ca >= NJ_CA_RECOVERY && x->burst_at != NJ_NEVER && now < x->burst_at)
        return true;
    x->burst_at = NJ_NEVER;
    if (t->snd_una == t->snd_nxt && x->last_send_at && now - x->last_send_at > x->rto)
        tcp->cfg.cc->idle(t, now, now - x->last_send_at);
    do {
        struct nj_sent *lost = x->frto == 2 ? NULL : nj__sent_first_lost(x);
        if (!lost && unsent(t) == 0 && !t->fin_queued)
            break;
        uint32_t room = tcp->cfg.room(tcp->cfg.ctx);
        if (room == 0)
            return false;
        uint32_t flight = x->n_flight;
        s = send_next(tcp, t, lost, room, burst, now);
        if (s == NO_ROOM)
            return false;
        if (s == SENT && x->ca >= NJ_CA_RECOVERY)
            burst -= nj_min_u32(burst, segments(t, x->n_flight - flight));
    } while (s == SENT && burst > 0);
    if (burst == 0)
        end_burst(tcp, t, now);
    note_limited(t);
    if (t->snd_nxt != nxt)
        nj__tlp_schedule(t, now);
    if (unsent(t) > 0 && t->snd_nxt == t->snd_una && x->rexmit_at == NJ_NEVER) {
        x->rexmit_at = now + x->rto; /* the window is shut: persist */
        x->progress_at = now;
    }
    return true;
}

/* RFC 8985 7.3: one new segment if the peer has room for it, else the last one again. */
bool nj__tcp_send_tlp(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sent *last = nj_sent_last(x);
    bool fresh = nj__tcp_has_new_data(t);
    enum sending s = NOTHING;

    if (!last || last->fate != NJ_FLYING || t->snd_wnd == 0 || tcp->cfg.room(tcp->cfg.ctx) == 0)
        return false; /* a closed window has probes of its own */
    if (fresh) {
        x->send_one = true;
        s = send_new(tcp, t, t->snd_mss, now);
        x->send_one = false;
    }
    if (s != SENT) {
        fresh = false;
        last = nj__sent_tail(tcp, t, t->snd_mss);
        uint32_t window = peer_room(t, last->seq); /* it may have shrunk */
        uint32_t old = last->end - last->seq, n = nj_min_u32(window, t->snd_mss);
        s = window ? send_again(tcp, t, last, old, n, now) : NOTHING;
    }
    if (s != SENT)
        return false;
    x->tlp_out = true;
    x->tlp_again = !fresh;
    x->tlp_end = t->snd_nxt;
    return true;
}

/* Connections are served in turn; one that could not finish for want of mbufs or device room stays
 * for the next step. */
uint32_t nj_tcp_output(struct nj_tcp *tcp, nj_ns now)
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
        if (nj__tcb_settle(tcp, t, now))
            continue;
        nj__tcp_rearm(tcp, t);
        nj__tcb_check(t);
        if (!done)
            nj__tcb_note_output(tcp, t);
    }
    return served;
}
