/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segment arrival (RFC 9293 3.10.7): selects the rules by state and acts on their verdict. The
 * synchronized states are in input_synchronized.c.
 */
#include <rte_mbuf.h>

#include "tcp/cc/congestion.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

/* Initialise the receive sequence space and the options from a SYN. */
static void take_syn(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg, nj_ns now)
{
    t->x->irs = seg->seq;
    t->rcv_nxt = seg->seq + 1;
    t->rcv_adv = t->last_ack_sent = t->rcv_nxt;
    nj__tcp_apply_syn_options(tcp, t, &seg->opts, now);
}

/* The accept filter runs first: a refused peer gets no SYN-ACK and no cookie, and cannot learn
 * whether a connection exists. */
static enum nj_tcp_verdict check_accept_filter(const struct nj_tcp *tcp, struct nj_tcp_arrival *a)
{
    if (!tcp->cfg.accept_filter)
        return NJ_VERDICT_PASS;
    switch (tcp->cfg.accept_filter(tcp->cfg.ctx, &a->seg.tuple.remote)) {
    case NJ_TCP_ACCEPT_ALLOW:
        return NJ_VERDICT_PASS;
    case NJ_TCP_ACCEPT_RESET:
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_denied);
    case NJ_TCP_ACCEPT_DROP:
        break;
    }
    return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_denied);
}

/* While two processes share the port: is the segment one of the other process? Not if it carries
 * our cookie: only we can complete that handshake. */
static __attribute__((noinline)) bool is_for_peer_process(struct nj_tcp *tcp,
                                                          struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    bool is_ack = (seg->flags & (NJ_TCP_SYN | NJ_TCP_ACK | NJ_TCP_RST)) == NJ_TCP_ACK;

    if (is_ack && nj__cookie_is_expected(tcp, now) && nj__cookie_is_valid(tcp, seg, now))
        return false;
    return tcp->cfg.is_for_peer_process(tcp->cfg.ctx, a->m, &a->why);
}

/* RFC 9293 3.10.7.1, 3.10.7.2: CLOSED and LISTEN. *t becomes the connection that a cookie opened.
 */
static enum nj_tcp_verdict input_listen(struct nj_tcp *tcp, struct nj_tcp_arrival *a,
                                        struct nj_tcb **t, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    enum nj_tcp_verdict v;

    if (nj_unlikely(tcp->shared) && is_for_peer_process(tcp, a, now))
        return NJ_VERDICT_DROP;
    if (seg->flags & NJ_TCP_RST)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_closed);
    if (!nj__tcp_is_listening(tcp, &seg->tuple))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_closed);
    if ((v = check_accept_filter(tcp, a)) != NJ_VERDICT_PASS)
        return v;
    if (seg->flags & NJ_TCP_ACK) {
        if (!(seg->flags & NJ_TCP_SYN) && nj__cookie_is_expected(tcp, now))
            return nj__cookie_input(tcp, a, t, now);
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_closed);
    }
    if ((seg->flags & (NJ_TCP_SYN | NJ_TCP_FIN)) != NJ_TCP_SYN)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_flags);
    if ((v = nj__tcp_check_syn_room(tcp, a)) != NJ_VERDICT_PASS)
        return v;
    /* Text on a SYN is not acknowledged: the peer sends it again. */
    if (!nj__syn_backlog_full(tcp))
        nj__syn_new(tcp, a, now);
    else if (!nj__cookie_send(tcp, seg, now))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_backlog);
    return NJ_VERDICT_GONE; /* no control block to be served */
}

/* RFC 9293 3.10.7.3, and 3.5 for simultaneous open. */
static enum nj_tcp_verdict input_syn_sent(struct nj_tcp *tcp, struct nj_tcb *t,
                                          struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    bool acks = seg->flags & NJ_TCP_ACK;

    if (acks && (nj_seq_le(seg->ack, t->x->iss) || nj_seq_lt(t->snd_nxt, seg->ack)))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_ack);
    if (seg->flags & NJ_TCP_RST) {
        if (!acks)
            return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_flags);
        nj_count(tcp->cfg.counters, NJ_C_tcp_reset_in);
        nj__tcb_end(tcp, t);
        return NJ_VERDICT_GONE;
    }
    if (!(seg->flags & NJ_TCP_SYN))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_flags);

    take_syn(tcp, t, seg, now);
    if (!acks) { /* simultaneous open */
        nj__tcb_set_state(tcp, t, NJ_TCP_SYN_RECEIVED);
        nj__tcp_send_syn(tcp, t, now);
        return NJ_VERDICT_DONE;
    }
    t->ecn_on =
        tcp->cfg.ecn && t->x->syn_at && (seg->flags & (NJ_TCP_ECE | NJ_TCP_CWR)) == NJ_TCP_ECE;
    nj__tcp_rto_handshake_done(t, now);
    t->snd_una = seg->ack;
    t->x->rexmit_at = NJ_NEVER;
    t->x->progress_at = now;
    t->snd_wnd = t->snd_wnd_max = seg->wnd; /* not scaled in a SYN */
    t->snd_wl1 = seg->seq;
    nj__tcb_set_state(tcp, t, NJ_TCP_ESTABLISHED);
    tcp->cfg.cc->opened(t);
    t->ack_now = true;
    nj__tcb_note_output(tcp, t);
    nj_count(tcp->cfg.counters, NJ_C_tcp_connected);
    nj_tcp_note_ready(tcp, t, NJ_TCP_EV_OPENED);
    return NJ_VERDICT_DONE; /* the peer retransmits text of a SYN-ACK */
}

/* RFC 5961 7: rate limits of challenge ACKs. The limit per second is randomised, so that a peer
 * cannot count ACKs sent to others (CVE-2016-5696). A limit per flow, also for minisocks, protects
 * other flows. Half of the budget is reserved for flows with a control block, since a spoofed SYN
 * suffices to make a half-open one. */
static bool may_challenge(struct nj_tcp *tcp, struct nj_flow *f, nj_ns now)
{
    struct nj_tcb *t = nj_flow_tcb(f);
    uint16_t ms = (uint16_t)(now / NJ_MS);

    if (t ? (uint16_t)(ms - t->challenge_ms) < NJ_TCP_CHALLENGE_INTERVAL / NJ_MS
          : !nj__flow_may_ack_stray(f, now))
        return false;
    if (now - tcp->challenge_window_at >= NJ_SEC || tcp->challenge_window_at == 0) {
        tcp->challenge_window_at = now;
        tcp->n_challenges_left =
            NJ_TCP_CHALLENGES_PER_S / 2 + nj_prng_below(&tcp->prng, NJ_TCP_CHALLENGES_PER_S);
        tcp->n_challenges_reserved = tcp->n_challenges_left / 2;
    }
    if (tcp->n_challenges_left <= (t ? 0 : tcp->n_challenges_reserved))
        return false;
    tcp->n_challenges_left--;
    if (t)
        t->challenge_ms = ms;
    return true;
}

static bool send_minisock_ack(struct nj_tcp *tcp, const struct nj_minisock *b, nj_ns now)
{
    unsigned shift = b->flow.flags & NJ_MINISOCK_WSCALE ? NJ_TCP_WSCALE : 0;
    uint32_t wnd =
        (NJ_TCP_SYN_WINDOW + (1u << shift) - 1) >> shift; /* rounded up: see receive_window.c */
    struct nj_tcp_emit e = {
        .tuple = b->flow.tuple,
        .seq = b->snd_nxt,
        .ack = b->rcv_nxt,
        .wnd = (uint16_t)wnd,
        .flags = NJ_TCP_ACK,
    };
    nj__flow_fill_timestamp(tcp, &b->flow, &e.opts, now);
    return nj__tcp_send_no_tcb(tcp, &e, now);
}

static bool send_ack(struct nj_tcp *tcp, struct nj_flow *f, nj_ns now)
{
    struct nj_tcb *t = nj_flow_tcb(f);
    return t ? nj__tcp_send_ack(tcp, t, now) : send_minisock_ack(tcp, (struct nj_minisock *)f, now);
}

/* Act on the verdict. Only this function counts, answers and frees input. */
static void act_on_verdict(struct nj_tcp *tcp, struct nj_flow *f, struct nj_tcp_arrival *a,
                           enum nj_tcp_verdict v, nj_ns now)
{
    bool dropped = v != NJ_VERDICT_PASS && v != NJ_VERDICT_DONE && v != NJ_VERDICT_GONE;
    struct nj_tcb *t = v == NJ_VERDICT_GONE ? NULL : nj_flow_tcb(f);

    nj_count(tcp->cfg.counters, dropped ? a->why : NJ_C_rx_tcp);
    if (v == NJ_VERDICT_DROP_ACK)
        send_ack(tcp, f, now);
    else if (v == NJ_VERDICT_DROP_CHALLENGE && may_challenge(tcp, f, now) && send_ack(tcp, f, now))
        nj_count(tcp->cfg.counters, NJ_C_tcp_challenge_ack);
    else if (v == NJ_VERDICT_DROP_RST)
        nj__tcp_send_rst_for(tcp, f, &a->seg, now);
    if (a->m)
        rte_pktmbuf_free(a->m);
    if (t && !nj__tcb_try_time_wait_minisock(tcp, t, now)) {
        nj__tcp_rearm_timer(tcp, t);
        nj__tcb_assert_valid(t);
    }
}

/* May the segment replace this connection, which is in TIME-WAIT but still has a user? */
static bool is_replaceable_by(const struct nj_tcp *tcp, const struct nj_tcb *t,
                              const struct nj_seg *seg)
{
    return t->state == NJ_TCP_TIME_WAIT && nj__tcp_is_listening(tcp, &seg->tuple) &&
           nj__time_wait_may_reuse(seg, t->rcv_nxt, t->ts_on, t->ts_recent);
}

static enum nj_tcp_verdict input_tcb(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_tcp_arrival *a,
                                     nj_ns now)
{
    nj__tcb_attach_xfer(tcp, t);
    if (t->state == NJ_TCP_SYN_SENT)
        return input_syn_sent(tcp, t, a, now);
    if (!is_replaceable_by(tcp, t, &a->seg))
        return nj__tcp_input_synchronized(tcp, t, a, now);
    enum nj_tcp_verdict v = nj__time_wait_check_reopen_room(tcp, a, t->ts_on);
    if (v != NJ_VERDICT_PASS)
        return v;
    a->follows = true;
    a->iss_min = t->snd_nxt + 1;
    nj__tcb_end(tcp, t);
    return NJ_VERDICT_ANEW;
}

/* *t: the new control block, if the segment completes the handshake. */
static enum nj_tcp_verdict input_syn_received(struct nj_tcp *tcp, struct nj_syn *s,
                                              struct nj_tcp_arrival *a, struct nj_tcb **t,
                                              nj_ns now)
{
    enum nj_tcp_verdict v = nj__syn_input(tcp, s, a, now);
    if (v != NJ_VERDICT_PASS)
        return v;
    nj__tcp_evict_if_nearly_full(tcp, a);
    *t = nj__syn_make_tcb(tcp, s, now);
    if (!*t) /* the peer's next segment tries again */
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_full);
    return NJ_VERDICT_PASS;
}

void nj_tcp_input(struct nj_tcp *tcp, struct nj_flow *f, struct rte_mbuf *m,
                  const struct nj_seg *seg, nj_ns now)
{
    struct nj_tcp_arrival a = {.seg = *seg, .m = m};
    struct nj_tcb *opened = NULL;
    enum nj_tcp_verdict v;

    if (!f)
        v = NJ_VERDICT_ANEW;
    else if (f->kind == NJ_FLOW_SYN)
        v = input_syn_received(tcp, (struct nj_syn *)f, &a, &opened, now);
    else if (f->kind == NJ_FLOW_TIME_WAIT)
        v = nj__time_wait_input(tcp, (struct nj_time_wait *)f, &a, now);
    else
        v = input_tcb(tcp, nj_flow_tcb(f), &a, now);
    if (v == NJ_VERDICT_ANEW) {
        f = NULL; /* no longer exists */
        v = input_listen(tcp, &a, &opened, now);
    }
    if (opened) { /* it also runs through the other steps */
        f = &opened->flow;
        v = nj__tcp_input_synchronized(tcp, opened, &a, now);
    }
    act_on_verdict(tcp, f, &a, v, now);
}
