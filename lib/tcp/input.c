/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A segment arrives: RFC 9293 3.10.7. This file decides which state's rules apply and acts on their
 * verdict; the synchronized states are in input_steps.c.
 */
#include <rte_mbuf.h>

#include "tcp/cc.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

static bool listening(const struct nj_tcp *tcp, uint16_t port)
{
    for (uint32_t i = 0; i < tcp->n_listen; i++)
        if (tcp->listen[i] == port)
            return true;
    return false;
}

/* What the SYN said, and where its sequence space begins. */
static void take_syn(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg, nj_ns now)
{
    t->x->irs = seg->seq;
    t->rcv_nxt = seg->seq + 1;
    t->rcv_adv = t->last_ack_sent = t->rcv_nxt;
    nj__tcp_peer_options(tcp, t, &seg->opts, now);
}

/* Room for one more half-open connection. Where the backlog is full, the oldest goes, once it is
 * older than most handshakes take: a burst of forged SYNs closes the door for that long, and not
 * until the last of them was given up (RFC 4987 3.4). */
static bool backlog_room(struct nj_tcp *tcp, nj_ns now)
{
    if (tcp->n_half_open < tcp->cfg.half_open_max)
        return true;
    if (nj_list_empty(&tcp->half_open))
        return false;
    struct nj_tcb *t = nj_container_of(tcp->half_open.next, struct nj_tcb, aged);
    if (now - t->x->progress_at < NJ_TCP_HALF_OPEN_MIN)
        return false;
    nj_count(tcp->cfg.counters, NJ_C_tcp_half_open_cut);
    nj__tcb_end(tcp, t);
    return true;
}

/* 3.10.7.1 CLOSED and 3.10.7.2 LISTEN. `iss_floor`: the new connection must begin beyond it, when
 * `reuse` says that it follows one of the same tuple in TIME_WAIT. */
static enum nj_tcp_verdict seg_in_listen(struct nj_tcp *tcp, struct nj_tcp_arrival *a, bool reuse,
                                         uint32_t iss_floor, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;

    if (seg->flags & NJ_TCP_RST)
        return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_closed);
    if (!listening(tcp, seg->tuple.lport) || (seg->flags & NJ_TCP_ACK))
        return nj__tcp_drop(a, DROP_RST, NJ_C_drop_tcp_closed);
    if ((seg->flags & (NJ_TCP_SYN | NJ_TCP_FIN)) != NJ_TCP_SYN)
        return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_flags);
    if (tcp->draining)
        return nj__tcp_drop(a, DROP_RST, NJ_C_drop_tcp_draining);
    if (!backlog_room(tcp, now))
        return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_backlog);

    struct nj_tcb *t = nj__tcb_new(tcp, &seg->tuple, now);
    if (!t)
        return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_full);
    if (reuse && nj_seq_lt(t->x->iss, iss_floor))
        t->snd_una = t->snd_nxt = t->x->high_seq = t->x->iss = iss_floor;
    take_syn(tcp, t, seg, now);
    nj__tcb_set_state(tcp, t, NJ_TCP_SYN_RECEIVED);
    nj__tcp_send_syn(tcp, t, now);
    nj__tcp_rearm(tcp, t);
    return DONE; /* text on a SYN is not acknowledged: the peer sends it again */
}

/* 3.10.7.3 */
static enum nj_tcp_verdict seg_in_syn_sent(struct nj_tcp *tcp, struct nj_tcb *t,
                                           struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    bool acks = seg->flags & NJ_TCP_ACK;

    if (acks && (nj_seq_le(seg->ack, t->x->iss) || nj_seq_lt(t->snd_nxt, seg->ack)))
        return nj__tcp_drop(a, DROP_RST, NJ_C_drop_tcp_ack);
    if (seg->flags & NJ_TCP_RST) {
        if (!acks)
            return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_flags);
        nj_count(tcp->cfg.counters, NJ_C_tcp_reset_in);
        nj__tcb_end(tcp, t);
        return GONE;
    }
    if (!(seg->flags & NJ_TCP_SYN))
        return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_flags);

    take_syn(tcp, t, seg, now);
    if (!acks) { /* simultaneous open */
        nj__tcb_set_state(tcp, t, NJ_TCP_SYN_RECEIVED);
        nj__tcp_send_syn(tcp, t, now);
        return DONE;
    }
    t->ecn_on =
        tcp->cfg.ecn && t->x->syn_at && (seg->flags & (NJ_TCP_ECE | NJ_TCP_CWR)) == NJ_TCP_ECE;
    nj__tcp_rto_opened(t, now);
    t->snd_una = seg->ack;
    t->x->rexmit_at = NJ_NEVER;
    t->x->progress_at = now;
    t->snd_wnd = t->snd_wnd_max = seg->wnd; /* not scaled in a SYN */
    t->snd_wl1 = seg->seq;
    t->snd_wl2 = seg->ack;
    nj__tcb_set_state(tcp, t, NJ_TCP_ESTABLISHED);
    tcp->cfg.cc->opened(t);
    t->ack_now = true;
    nj__tcb_note_output(tcp, t);
    nj_count(tcp->cfg.counters, NJ_C_tcp_connected);
    nj_tcp_note_ready(tcp, t, NJ_TCP_EV_OPENED);
    return DONE; /* text on a SYN-ACK comes again, as above */
}

/* RFC 6191, RFC 9293 3.6.1: a SYN that can't be an old duplicate may replace a TIME_WAIT. */
static bool replaces_time_wait(const struct nj_tcb *t, const struct nj_seg *seg)
{
    if (t->state != NJ_TCP_TIME_WAIT ||
        (seg->flags & (NJ_TCP_SYN | NJ_TCP_ACK | NJ_TCP_RST | NJ_TCP_FIN)) != NJ_TCP_SYN)
        return false;
    if (t->ts_on && seg->opts.has_ts && seg->opts.ts_val != t->ts_recent)
        return nj_seq_lt(t->ts_recent, seg->opts.ts_val);
    return nj_seq_lt(t->rcv_nxt, seg->seq);
}

/* The only place where input is counted, answered and freed. */
static void act(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_tcp_arrival *a,
                enum nj_tcp_verdict v, nj_ns now)
{
    bool dropped = v != PASS && v != DONE && v != GONE;

    nj_count(tcp->cfg.counters, dropped ? a->why : NJ_C_rx_tcp);
    if (v == DROP_ACK)
        nj__tcp_send_ack(tcp, t, now);
    else if (v == DROP_CHALLENGE)
        nj__tcp_send_challenge(tcp, t, now);
    else if (v == DROP_RST)
        nj__tcp_reset_for(tcp, &a->seg, now);
    if (a->m)
        rte_pktmbuf_free(a->m);
    if (t && v != GONE) {
        nj__tcp_rearm(tcp, t);
        nj__tcb_check(t);
    }
}

void nj_tcp_input(struct nj_tcp *tcp, struct nj_tcb *t, struct rte_mbuf *m,
                  const struct nj_seg *seg, nj_ns now)
{
    struct nj_tcp_arrival a = {.seg = *seg, .m = m};
    enum nj_tcp_verdict v;
    uint32_t iss_floor = 0;
    bool reuse = t && replaces_time_wait(t, seg) && listening(tcp, seg->tuple.lport);

    if (reuse) {
        iss_floor = t->snd_nxt + 1;
        nj__tcb_end(tcp, t);
        t = NULL;
    }
    if (t)
        nj__tcb_wake(tcp, t);
    if (!t)
        v = seg_in_listen(tcp, &a, reuse, iss_floor, now);
    else if (t->state == NJ_TCP_SYN_SENT)
        v = seg_in_syn_sent(tcp, t, &a, now);
    else
        v = nj__tcp_synchronized(tcp, t, &a, now);
    act(tcp, t, &a, v, now);
}
