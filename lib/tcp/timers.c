/* SPDX-License-Identifier: BSD-3-Clause */
/* Timer expiry: retransmission and user timeout (RFC 9293 3.10.8, RFC 6298 5), zero-window probes
 * (RFC 9293 3.8.6.1), tail loss probes (RFC 8985 7.3) and keepalives (RFC 9293 3.8.4). Each
 * connection has one timer, armed for its earliest deadline (xfer.c). */
#include "tcp/loss/recovery_state.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

/* The handshake's SYN or SYN-ACK was not answered. False: the block is gone. */
static bool on_syn_timeout(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    bool active = t->state == NJ_TCP_SYN_SENT;
    if (active ? now - t->x->progress_at >= NJ_TCP_SYN_R2
               : t->x->n_backoffs >= NJ_TCP_SYNACK_RETRIES) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_aborted);
        nj__tcb_end(tcp, t);
        return false;
    }
    nj__tcp_rto_back_off(t);
    nj_count(tcp->cfg.counters, NJ_C_tcp_retransmit);
    nj__tcp_send_syn(tcp, t, now);
    return true;
}

/* RFC 6298 5.4 - 5.7. */
static void on_rto(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    nj_count(tcp->cfg.counters, NJ_C_tcp_rto);
    nj__pmtu_timed_out(tcp, t);
    nj__recovery_timed_out(tcp, t, now);
    nj__tcp_rto_back_off(t);
    nj__tcb_note_output(tcp, t);
    t->x->rexmit_at = now + t->x->rto;
}

/* RFC 8985 7.3: send the probe and restart the retransmission timer. */
static void on_pto(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    t->x->pto_at = NJ_NEVER;
    if (!nj__tcp_send_tlp(tcp, t, now))
        return;
    nj_count(tcp->cfg.counters, NJ_C_tcp_tlp);
    t->x->rexmit_at = now + t->x->rto;
}

static void on_persist(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->x->zero_window_probe_at <= t->x->progress_at)
        t->x->zero_window_probe_at = now; /* the first unanswered probe */
    nj_count(tcp->cfg.counters, NJ_C_tcp_probe);
    nj__tcp_send_window_probe(tcp, t, now);
    t->x->rexmit_at = now + nj__tcp_persist_back_off(t);
}

/* RFC 9293 3.8.3: R2, or the configured user timeout (RFC 9293 3.9.1). */
static nj_ns user_timeout(const struct nj_tcp *tcp)
{
    return tcp->cfg.user_timeout ? tcp->cfg.user_timeout : NJ_TCP_R2;
}

/* Start of the peer's silence: its last progress, or the first unanswered probe. A peer that
 * answers probes may keep its window closed for ever (RFC 9293 3.8.6.1). */
static nj_ns unanswered_since(const struct nj_tcb *t, bool probing)
{
    const struct nj_xfer *x = t->x;
    return !probing                                   ? x->progress_at
           : x->zero_window_probe_at > x->progress_at ? x->zero_window_probe_at
                                                      : NJ_NEVER;
}

/* False: the block is gone. */
static bool on_rexmit_timeout(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    bool probing = t->snd_una == t->snd_nxt || t->snd_wnd == 0;
    if (t->state == NJ_TCP_SYN_SENT || t->state == NJ_TCP_SYN_RECEIVED)
        return on_syn_timeout(tcp, t, now);
    nj_ns since = unanswered_since(t, probing);
    if (since != NJ_NEVER && now - since >= user_timeout(tcp)) {
        nj_tcp_abort(tcp, t, now);
        return false;
    }
    if (probing)
        on_persist(tcp, t, now);
    else
        on_rto(tcp, t, now);
    return true;
}

struct tick {
    struct nj_tcp *tcp;
    nj_ns now;
};

/* Run the deadlines of struct nj_xfer. False: the block is gone. */
static bool on_deadlines(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (now >= x->delack_at) {
        x->delack_at = NJ_NEVER;
        t->ack_now = true;
        nj__tcb_note_output(tcp, t);
    }
    if (now >= x->next_burst_at) {
        x->next_burst_at = NJ_NEVER;
        nj__tcb_note_output(tcp, t);
    }
    if (now >= x->reo_at) {
        nj__recovery_reo_timeout(tcp, t, now);
        nj__tcb_note_output(tcp, t);
    }
    if (now >= x->rexmit_at) {
        if (!on_rexmit_timeout(tcp, t, now))
            return false;
    } else if (now >= x->pto_at) {
        on_pto(tcp, t, now);
    }
    return true;
}

/* close_at has passed. If our FIN is not acknowledged, send RST: the peer's stream is incomplete.
 */
static void on_expiry(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->state != NJ_TCP_FIN_WAIT_2 && t->state != NJ_TCP_TIME_WAIT) {
        nj_tcp_abort(tcp, t, now);
        return;
    }
    nj_count(tcp->cfg.counters, NJ_C_tcp_closed);
    nj__tcb_end(tcp, t);
}

/* RFC 9293 3.8.4: send a keepalive with an acknowledged number, which the peer must answer. False:
 * the block is gone. */
static bool send_keepalive(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->n_keepalives == NJ_TCP_KEEPALIVE_PROBES) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_keepalive_dead);
        nj_tcp_abort(tcp, t, now);
        return false;
    }
    t->n_keepalives++;
    nj_count(tcp->cfg.counters, NJ_C_tcp_keepalive);
    nj__tcb_attach_xfer(tcp, t);
    nj__tcp_send_keepalive(tcp, t, now);
    nj__tcb_detach_xfer(tcp, t);
    return true;
}

/* False: the block is gone. */
static bool on_idle(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (now < nj__tcb_idle_at(tcp, t))
        return true;
    if (!t->x)
        return send_keepalive(tcp, t, now);
    if (nj_list_linked(&t->x->ready) || nj_list_linked(&t->x->pending))
        t->heard_at = now; /* about to be processed: postpone */
    else
        nj__tcb_detach_xfer(tcp, t);
    return true;
}

static void on_timer(void *ctx, struct nj_timer *timer)
{
    const struct tick *tick = ctx;
    struct nj_tcp *tcp = tick->tcp;
    struct nj_tcb *t = nj_container_of(timer, struct nj_tcb, timer);

    if (t->x && tick->now >= t->x->close_at) {
        on_expiry(tcp, t, tick->now);
        return;
    }
    if (t->x && !on_deadlines(tcp, t, tick->now))
        return;
    if (on_idle(tcp, t, tick->now))
        nj__tcp_rearm_timer(tcp, t);
}

void nj_tcp_tick(struct nj_tcp *tcp, nj_ns now)
{
    struct tick tick = {tcp, now};
    nj_wheel_advance(&tcp->wheel, now, on_timer, &tick);
    nj__syn_tick(tcp, now);
    nj__time_wait_tick(tcp);
}

nj_ns nj_tcp_next_deadline(const struct nj_tcp *tcp)
{
    if (!nj_list_empty(&tcp->pending) || !nj_list_empty(&tcp->ready) ||
        !nj_list_empty(&tcp->unfinished))
        return 0;
    nj_ns next = nj_wheel_next_due(&tcp->wheel), syn = nj__syn_next_deadline(tcp),
          tw = nj__time_wait_next_deadline(tcp);
    next = syn < next ? syn : next;
    return tw < next ? tw : next;
}
