/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments out: RFC 9293 3.7 and 3.8.6, resets of 3.10.7.1. */
#include <rte_mbuf.h>

#include "tcp/cc.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"
#include "wire/emit.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static struct rte_mbuf *fresh_mbuf(struct nj_tcp *tcp)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(tcp->cfg.mp);
    if (!m)
        nj_count(tcp->cfg.counters, NJ_C_mbuf_none);
    return m;
}

static void send_out(struct nj_tcp *tcp, struct rte_mbuf *m, const struct nj_tcp_emit *e, nj_ns now)
{
    nj_tcp_prepend(m, e);
    struct nj_ip_meta ip = {e->tuple.local, e->tuple.remote, e->ecn};
    tcp->cfg.emit(tcp->cfg.ctx, m, &ip, now);
}

/* Whatever we send tells the peer where we stand, so no ACK is owed afterwards. */
static void note_acked(struct nj_tcb *t)
{
    t->last_ack_sent = t->rcv_nxt;
    t->ack_now = false;
    t->x->delack_at = NJ_NEVER;
}

/* A segment of a synchronized connection: `n_bytes` of the send queue from `seq` on. */
static bool send_seg(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t seq, uint32_t n_bytes,
                     uint8_t flags, nj_ns now)
{
    struct rte_mbuf *m = fresh_mbuf(tcp);
    if (!m)
        return false;
    nj__sndq_fill(t, seq, n_bytes, m);
    struct nj_tcp_emit e = {
        .tuple = t->tuple,
        .seq = seq,
        .ack = t->rcv_nxt,
        .wnd = nj__tcp_wnd_field(t),
        .flags = flags | NJ_TCP_ACK,
        .opts = {.has_ts = t->ts_on, .ts_val = nj__tcp_ts_now(t, now), .ts_ecr = t->ts_recent},
    };
    note_acked(t);
    if (n_bytes > 0)
        t->x->last_send_at = now; /* for RFC 5681 4.1, where ACKs don't count */
    send_out(tcp, m, &e, now);
    return true;
}

/* SYN or SYN-ACK; the window in it is never scaled (RFC 7323 2.2). */
bool nj__tcp_send_syn(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    bool passive = t->state == NJ_TCP_SYN_RECEIVED;
    bool first = t->x->snd_max == t->x->iss;

    t->snd_nxt = t->x->snd_max = t->x->iss + 1;
    t->x->rexmit_at = now + t->x->rto;
    t->x->timed_seq = t->snd_nxt;
    t->x->timed_at = first ? now : 0; /* Karn: no sample from what was sent twice */

    struct rte_mbuf *m = fresh_mbuf(tcp);
    if (!m)
        return false; /* the retransmission timer tries again */
    uint32_t wnd = min_u32(NJ_RECV_WINDOW_BYTES, UINT16_MAX);
    struct nj_tcp_emit e = {
        .tuple = t->tuple,
        .seq = t->x->iss,
        .ack = passive ? t->rcv_nxt : 0,
        .wnd = (uint16_t)wnd,
        .flags = NJ_TCP_SYN | (passive ? NJ_TCP_ACK : 0),
        .opts = {.has_mss = true,
                 .mss = (uint16_t)(tcp->cfg.mtu - NJ_TCP_IP_TCP_BYTES),
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
    send_out(tcp, m, &e, now);
    return true;
}

/* The number of a segment without text that the peer's sequence check will take: where the peer is
 * if all has arrived, not where a time-out took us back to, and not beyond its window. */
static uint32_t acceptable_seq(const struct nj_tcb *t)
{
    uint32_t edge = t->snd_una + t->snd_wnd;
    bool beyond = t->state >= NJ_TCP_ESTABLISHED && nj_seq_lt(edge, t->x->snd_max);
    return beyond ? edge : t->x->snd_max;
}

bool nj__tcp_send_ack(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    return send_seg(tcp, t, acceptable_seq(t), 0, 0, now);
}

/* RFC 5961 7: so many per second and no more, from a random start. */
void nj__tcp_send_challenge(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (now - tcp->challenge_window_at >= NJ_SEC || tcp->challenge_window_at == 0) {
        tcp->challenge_window_at = now;
        tcp->n_challenges_left =
            NJ_TCP_CHALLENGES_PER_S / 2 + nj_prng_below(&tcp->prng, NJ_TCP_CHALLENGES_PER_S);
    }
    if (tcp->n_challenges_left == 0)
        return;
    tcp->n_challenges_left--;
    if (nj__tcp_send_ack(tcp, t, now))
        nj_count(tcp->cfg.counters, NJ_C_tcp_challenge_ack);
}

static void send_reset(struct nj_tcp *tcp, const struct nj_tuple *tuple, uint32_t seq, uint32_t ack,
                       uint8_t flags, nj_ns now)
{
    struct rte_mbuf *m = fresh_mbuf(tcp);
    if (!m)
        return;
    struct nj_tcp_emit e = {.tuple = *tuple, .seq = seq, .ack = ack, .flags = flags | NJ_TCP_RST};
    nj_count(tcp->cfg.counters, NJ_C_tcp_rst_out);
    send_out(tcp, m, &e, now);
}

void nj__tcp_send_rst(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    send_reset(tcp, &t->tuple, acceptable_seq(t), t->rcv_nxt, NJ_TCP_ACK, now);
}

void nj__tcp_reset_for(struct nj_tcp *tcp, const struct nj_seg *seg, nj_ns now)
{
    if (seg->flags & NJ_TCP_RST)
        return; /* never answer a RST with a RST */
    if (seg->flags & NJ_TCP_ACK)
        send_reset(tcp, &seg->tuple, seg->ack, 0, 0, now);
    else
        send_reset(tcp, &seg->tuple, 0, seg->seq + nj_seg_len(seg), NJ_TCP_ACK, now);
}

/* What a segment at `seq` may carry: the flags that go with `n_bytes` of the queue. */
static uint8_t flags_at(const struct nj_tcb *t, uint32_t seq, uint32_t n_bytes)
{
    bool reaches_end = seq - t->snd_una + n_bytes == t->x->sndq.n_bytes;
    uint8_t flags = n_bytes > 0 && reaches_end ? NJ_TCP_PSH : 0;
    return flags | (reaches_end && t->fin_queued ? NJ_TCP_FIN : 0);
}

bool nj__tcp_retransmit_one(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    uint32_t n = min_u32(t->x->sndq.n_bytes, t->snd_mss);
    n = min_u32(n, nj_tcb_flight(t));
    uint8_t flags = flags_at(t, t->snd_una, n);
    uint32_t end = t->snd_una + n + !!(flags & NJ_TCP_FIN);

    if (nj_seq_lt(t->x->snd_max, end)) { /* the FIN was queued but not yet sent */
        flags &= (uint8_t)~NJ_TCP_FIN;
        end--;
    }
    t->x->timed_at = 0; /* Karn */
    if (!send_seg(tcp, t, t->snd_una, n, flags, now))
        return false;
    nj_count(tcp->cfg.counters, NJ_C_tcp_retransmit);
    t->snd_nxt = nj_seq_max(t->snd_nxt, end);
    return true;
}

/* RFC 9293 3.8.6.1: one byte beyond a closed window, or what a nearly closed one lets through. */
bool nj__tcp_send_probe(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    uint32_t n = min_u32(t->snd_wnd ? t->snd_wnd : 1, min_u32(t->x->sndq.n_bytes, t->snd_mss));
    uint8_t flags = flags_at(t, t->snd_una, n);

    t->x->timed_at = 0;
    if (!send_seg(tcp, t, t->snd_una, n, flags, now))
        return false;
    uint32_t end = t->snd_una + n + !!(flags & NJ_TCP_FIN);
    t->x->snd_max = nj_seq_max(t->x->snd_max, end); /* an ACK of it is not an ACK of the future */
    if (t->snd_wnd > 0)
        t->snd_nxt = nj_seq_max(t->snd_nxt, end);
    return true;
}

/* Sender's silly window avoidance (RFC 9293 3.8.6.2.1). Nagle's rule is left out: the user fills
 * the queue once per burst, so a short segment is the end of what there is to say. */
static bool worth_sending(const struct nj_tcb *t, uint32_t n, uint32_t queued)
{
    return n == t->snd_mss || n == queued || n >= t->snd_wnd_max / 2;
}

/* How much of the queue may follow at snd_nxt; *queued is what there is. */
static uint32_t sendable(const struct nj_tcb *t, uint32_t *queued)
{
    uint32_t off = t->snd_nxt - t->snd_una;
    uint32_t wnd = min_u32(t->snd_wnd, t->cwnd);
    uint32_t room = wnd > off ? wnd - off : 0;

    *queued = t->x->sndq.n_bytes - off;
    return min_u32(min_u32(*queued, room), t->snd_mss);
}

static void note_sent(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_seq, nj_ns now)
{
    if (nj_seq_lt(t->snd_nxt, t->x->snd_max)) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_retransmit);
    } else if (t->x->timed_at == 0) {
        t->x->timed_at = now;
        t->x->timed_seq = t->snd_nxt + n_seq;
    }
    if (nj_tcb_flight(t) == 0) { /* RFC 6298 5.1; and R2 counts from here */
        t->x->rexmit_at = now + t->x->rto;
        t->x->progress_at = now;
    }
    t->snd_nxt += n_seq;
    t->x->snd_max = nj_seq_max(t->x->snd_max, t->snd_nxt);
    if (t->x->rexmit_at == NJ_NEVER)
        t->x->rexmit_at = now + t->x->rto;
}

static bool may_send(const struct nj_tcb *t)
{
    return t->state == NJ_TCP_ESTABLISHED || t->state == NJ_TCP_CLOSE_WAIT ||
           t->state == NJ_TCP_FIN_WAIT_1 || t->state == NJ_TCP_CLOSING ||
           t->state == NJ_TCP_LAST_ACK;
}

bool nj__tcp_send_due(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (!may_send(t))
        return true;
    if (t->snd_una == t->x->snd_max && t->x->last_send_at && now - t->x->last_send_at > t->x->rto)
        t->cc->on_idle(t);
    while (t->snd_nxt - t->snd_una <= t->x->sndq.n_bytes) { /* beyond: the FIN is out */
        uint32_t queued, n = sendable(t, &queued);
        bool fin = t->fin_queued && n == queued;
        if (n == 0 && !fin)
            break;
        if (!fin && !worth_sending(t, n, queued))
            break;
        if (tcp->cfg.room(tcp->cfg.ctx) == 0 ||
            !send_seg(tcp, t, t->snd_nxt, n, flags_at(t, t->snd_nxt, n), now))
            return false;
        note_sent(tcp, t, n + fin, now);
    }
    bool waiting = t->snd_nxt - t->snd_una < t->x->sndq.n_bytes;
    if (waiting && nj_tcb_flight(t) == 0 && t->x->rexmit_at == NJ_NEVER) {
        t->x->rexmit_at = now + t->x->rto; /* the window is shut: persist */
        t->x->progress_at = now;
    }
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
        bool done = nj__tcp_send_due(tcp, t, now);
        if (done && t->ack_now)
            done = tcp->cfg.room(tcp->cfg.ctx) > 0 && nj__tcp_send_ack(tcp, t, now);
        nj__tcp_rearm(tcp, t);
        nj__tcb_check(t);
        if (!done)
            nj__tcb_note_output(tcp, t);
        served++;
    }
    return served;
}
