/* SPDX-License-Identifier: BSD-3-Clause */
/* User calls (RFC 9293 3.10.1 - 3.10.6): open, close, abort and release. SEND is in send_queue.c,
 * RECEIVE in receive_queue.c, and events for the user are in xfer.c. */
#include "base/assert.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

/* RFC 9293 3.10.1, active. */
struct nj_tcb *nj_tcp_connect(struct nj_tcp *tcp, const struct nj_tuple *tuple, nj_ns now)
{
    if (nj_flow_find(&tcp->flows, nj_flow_hash(&tcp->flows, tuple), tuple))
        return NULL;
    struct nj_tcb *t = nj__tcb_new(tcp, tuple, NULL, nj__tcp_isn(tcp, tuple, now), now);
    if (!t)
        return NULL;
    t->events = NJ_TCP_EV_OPENED; /* a user exists: see nj__tcb_end() */
    nj__tcb_set_state(tcp, t, NJ_TCP_SYN_SENT);
    nj__tcp_send_syn(tcp, t, now);
    nj__tcp_rearm_timer(tcp, t);
    return t;
}

/* RFC 9293 3.10.4. */
void nj_tcp_close(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    switch ((enum nj_tcp_state)t->state) {
    case NJ_TCP_SYN_SENT:
        nj__tcb_end(tcp, t);
        return;
    case NJ_TCP_SYN_RECEIVED: /* the FIN waits for the peer's ACK: see complete_handshake() */
        break;
    case NJ_TCP_ESTABLISHED:
        nj__tcb_set_state(tcp, t, NJ_TCP_FIN_WAIT_1);
        break;
    case NJ_TCP_CLOSE_WAIT:
        nj__tcb_set_state(tcp, t, NJ_TCP_LAST_ACK);
        break;
    case NJ_TCP_CLOSED:
    case NJ_TCP_FIN_WAIT_1:
    case NJ_TCP_FIN_WAIT_2:
    case NJ_TCP_CLOSING:
    case NJ_TCP_LAST_ACK:
    case NJ_TCP_TIME_WAIT:
        return; /* closed already */
    }
    (void)now;
    nj__tcb_attach_xfer(tcp, t);
    t->fin_queued = true;
    nj__tcb_note_output(tcp, t);
}

/* RFC 9293 3.10.5. */
void nj_tcp_abort(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->state == NJ_TCP_CLOSED)
        return;
    nj__tcb_attach_xfer(tcp, t);
    if (t->state != NJ_TCP_SYN_SENT && t->state != NJ_TCP_TIME_WAIT)
        nj__tcp_send_rst(tcp, t, now);
    nj_count(tcp->cfg.counters, NJ_C_tcp_aborted);
    nj__tcb_end(tcp, t);
}

/* Aborting removes the entry, and another entry may move to its slot: do not advance then. */
void nj_tcp_abort_all(struct nj_tcp *tcp, nj_ns now)
{
    for (uint32_t i = 0; i <= tcp->flows.mask;) {
        struct nj_flow *f = nj_flow_at(&tcp->flows, i);
        struct nj_tcb *t = nj_flow_tcb(f);
        if (t && t->state != NJ_TCP_TIME_WAIT)
            nj_tcp_abort(tcp, t, now);
        else if (f && f->kind == NJ_FLOW_SYN)
            nj__syn_abort(tcp, (struct nj_syn *)f, now);
        else
            i++;
    }
}

void nj_tcp_release(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    NJ_ASSERT(!t->is_orphan);
    nj__tcb_attach_xfer(tcp, t);
    t->user = NULL;
    nj_list_del(&t->x->ready);
    if (t->state == NJ_TCP_CLOSED) {
        nj__tcb_free(tcp, t);
        return;
    }
    t->is_orphan = true;
    tcp->n_orphans++;
    tcp->n_fin_acked_orphans += t->state == NJ_TCP_FIN_WAIT_2;
    /* Orphans still hold send queues, and peers can create many: limit their number. */
    bool too_many = t->state != NJ_TCP_TIME_WAIT &&
                    tcp->n_orphans > tcp->cfg.conns_max / NJ_TCP_ORPHAN_SHARE + 1;
    if (!t->fin_queued || t->x->rcvq.n_bytes > 0 || too_many) {
        nj_tcp_abort(tcp, t, now);
        return;
    }
    if (t->state != NJ_TCP_TIME_WAIT) {
        bool waits = t->state == NJ_TCP_FIN_WAIT_2; /* for the peer's FIN alone */
        t->x->close_at = now + (waits ? NJ_TCP_FIN_WAIT_2_MAX : NJ_TCP_ORPHAN_MAX);
        nj__tcp_rearm_timer(tcp, t);
    }
    nj__tcb_try_time_wait_minisock(tcp, t, now);
}
