/* SPDX-License-Identifier: BSD-3-Clause */
/* Time-outs: RFC 9293 3.10.8, RFC 6298 5, zero-window probes of RFC 9293 3.8.6.1. */
#include "tcp/cc.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

nj_ns nj__tcp_next_deadline(const struct nj_tcb *t)
{
    nj_ns d = t->x->rexmit_at < t->x->delack_at ? t->x->rexmit_at : t->x->delack_at;
    return d < t->close_at ? d : t->close_at;
}

void nj__tcp_rearm(struct nj_tcp *tcp, struct nj_tcb *t)
{
    nj_ns d = nj__tcp_next_deadline(t);
    if (d == NJ_NEVER)
        nj_timer_disarm(&tcp->wheel, &t->timer);
    else if (d != t->timer.deadline || !nj_timer_armed(&t->timer))
        nj_timer_arm(&tcp->wheel, &t->timer, d);
}

/* The handshake's SYN or SYN-ACK was not answered. False: the block is gone. */
static bool on_syn_timeout(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    bool active = t->state == NJ_TCP_SYN_SENT;
    if (active ? now - t->x->progress_at >= NJ_TCP_SYN_R2
               : t->x->n_backoffs >= NJ_TCP_SYNACK_TRIES) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_aborted);
        nj__tcb_end(tcp, t);
        return false;
    }
    nj__tcp_rto_back_off(t);
    nj_count(tcp->cfg.counters, NJ_C_tcp_retransmit);
    nj__tcp_send_syn(tcp, t, now);
    return true;
}

/* RFC 6298 5.4 - 5.7: back to the first unacknowledged byte, and from there on as the congestion
 * window opens again. */
static void on_rto(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    nj_count(tcp->cfg.counters, NJ_C_tcp_rto);
    t->cc->on_rto(t, t->x->n_backoffs == 0);
    t->x->in_recovery = false;
    t->x->dupacks = 0;
    t->x->recover = t->x->snd_max; /* RFC 6582 3.2 step 5 */
    nj__tcp_rto_back_off(t);
    t->snd_nxt = t->snd_una;
    nj__tcp_retransmit_one(tcp, t, now);
    nj__tcb_note_output(tcp, t);
    t->x->rexmit_at = now + t->x->rto;
}

static void on_persist(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    nj_count(tcp->cfg.counters, NJ_C_tcp_probe);
    nj__tcp_send_probe(tcp, t, now);
    t->x->rexmit_at = now + nj__tcp_persist_back_off(t);
}

/* False: the block is gone. */
static bool on_rexmit_timeout(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->state == NJ_TCP_SYN_SENT || t->state == NJ_TCP_SYN_RECEIVED)
        return on_syn_timeout(tcp, t, now);
    if (now - t->x->progress_at >= NJ_TCP_R2) {
        nj_tcp_abort(tcp, t, now);
        return false;
    }
    if (nj_tcb_flight(t) == 0 || t->snd_wnd == 0)
        on_persist(tcp, t, now);
    else
        on_rto(tcp, t, now);
    return true;
}

struct tick {
    struct nj_tcp *tcp;
    nj_ns now;
};

static void fire(void *ctx, struct nj_timer *timer)
{
    const struct tick *tick = ctx;
    struct nj_tcp *tcp = tick->tcp;
    struct nj_tcb *t = nj_container_of(timer, struct nj_tcb, timer);

    if (tick->now >= t->close_at) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_closed);
        nj__tcb_end(tcp, t);
        return;
    }
    if (tick->now >= t->x->delack_at) {
        t->x->delack_at = NJ_NEVER;
        t->ack_now = true;
        nj__tcb_note_output(tcp, t);
    }
    if (tick->now >= t->x->rexmit_at && !on_rexmit_timeout(tcp, t, tick->now))
        return;
    nj__tcp_rearm(tcp, t);
}

void nj_tcp_tick(struct nj_tcp *tcp, nj_ns now)
{
    struct tick tick = {tcp, now};
    nj_wheel_advance(&tcp->wheel, now, fire, &tick);
}

nj_ns nj_tcp_next(const struct nj_tcp *tcp)
{
    if (!nj_list_empty(&tcp->pending) || !nj_list_empty(&tcp->ready))
        return 0;
    return nj_wheel_next(&tcp->wheel);
}
