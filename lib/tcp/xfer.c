/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an active connection, struct nj_xfer: it is freed some time after the last byte, and
 * a new one is attached with the next segment or call. The state of the path stays in struct
 * nj_tcb. This file also arms the connection's timer for the earliest deadline, and keeps the list
 * of connections that have events for the user.
 */
#include "base/assert.h"
#include "tcp/tcp_internal.h"

void nj__tcb_attach_xfer(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (t->x)
        return;
    struct nj_xfer *x = nj_pool_take(&tcp->xfers);
    NJ_ASSERT(x != NULL); /* there are as many as control blocks */
    t->x = x;
    x->tcb = t;
    nj_list_init(&x->ready);
    nj_list_init(&x->pending);
    nj_list_init(&x->held_mbufs.node);
    nj_list_init(&x->held_memory.node);
    nj_list_init(&x->held_output.node);

    nj_list_init(&x->sent);
    nj_list_init(&x->by_send_time);
    x->overtaken = &x->by_send_time;
    x->rexmit_at = x->pto_at = x->reo_at = x->delack_at = x->close_at = x->next_burst_at = NJ_NEVER;
    x->high_seq = t->snd_una - 1;
    x->rack_fack = t->snd_una;
    x->reo_mult = 1;
    x->rto = nj__tcp_rto_base(t);
    x->mtu_probe_at = t->heard_at + t->mtu_wait_cs * NJ_TCP_MTU_WAIT_UNIT;
    x->last_send_at = t->heard_at; /* the window may be stale: see nj_cc_ops.idle */
}

/* Is nothing in flight, queued or due in either direction? */
static bool is_quiescent(const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x;
    bool open = t->state == NJ_TCP_ESTABLISHED || t->state == NJ_TCP_CLOSE_WAIT ||
                t->state == NJ_TCP_FIN_WAIT_2;

    return open && t->snd_una == t->snd_nxt && !x->sndq.head && !x->rcvq.head && !x->reasm &&
           x->held_mbufs.n == 0 && x->held_memory.n == 0 && x->held_output.n == 0 && !t->ack_now &&
           x->delack_at == NJ_NEVER && x->rexmit_at == NJ_NEVER && x->close_at == NJ_NEVER &&
           t->fin_seen == t->fin_received && !nj__ecn_must_echo(t);
}

/* A connection that never sent has no state to keep, so it may become idle at once. */
static nj_ns shrink_at(const struct nj_tcb *t)
{
    nj_ns wait = t->x->rto > NJ_TCP_IDLE_AFTER ? t->x->rto : NJ_TCP_IDLE_AFTER;
    return t->heard_at + (t->x->used ? wait : 0);
}

nj_ns nj__tcb_idle_at(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    if (t->x && is_quiescent(t))
        return shrink_at(t);
    if (t->x || tcp->cfg.keepalive == 0)
        return NJ_NEVER;
    return t->heard_at + tcp->cfg.keepalive + t->n_keepalives * NJ_TCP_KEEPALIVE_INTERVAL;
}

_Static_assert((NJ_TCP_MTU_RAISE_WAIT + NJ_TCP_MTU_PROBE_WAIT) / NJ_TCP_MTU_WAIT_UNIT <= UINT16_MAX,
               "the longest time between two probes fits");

/* RFC 8899 5.1.2: the remaining wait before the next probe. */
static uint16_t probe_wait(const struct nj_tcb *t)
{
    nj_ns at = t->x->mtu_probe_at;
    nj_ns left = at > t->heard_at ? (at - t->heard_at) / NJ_TCP_MTU_WAIT_UNIT : 0;

    return (uint16_t)(left < UINT16_MAX ? left : UINT16_MAX);
}

void nj__tcb_detach_xfer(struct nj_tcp *tcp, struct nj_tcb *t)
{
    NJ_ASSERT(is_quiescent(t));
    NJ_ASSERT(nj_list_empty(&t->x->sent) && t->x->held_mbufs.n == 0);
    t->mtu_wait_cs = probe_wait(t);
    nj_pool_put(&tcp->xfers, t->x);
    t->x = NULL;
}

/* ---- the timer ---- */

static nj_ns next_deadline(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x;
    nj_ns idle = nj__tcb_idle_at(tcp, t);

    if (!x)
        return idle;
    nj_ns d = nj_min_u64(nj_min_u64(x->rexmit_at, x->pto_at), nj_min_u64(x->reo_at, x->delack_at));
    return nj_min_u64(nj_min_u64(d, x->next_burst_at), nj_min_u64(idle, x->close_at));
}

void nj__tcp_rearm_timer(struct nj_tcp *tcp, struct nj_tcb *t)
{
    nj_ns d = next_deadline(tcp, t);
    if (d == NJ_NEVER)
        nj_timer_disarm(&tcp->wheel, &t->timer);
    else if (d != t->timer.deadline || !nj_timer_armed(&t->timer))
        nj_timer_arm(&tcp->wheel, &t->timer, d);
}

/* ---- events ---- */

void nj_tcp_note_ready(struct nj_tcp *tcp, struct nj_tcb *t, uint8_t events)
{
    nj__tcb_attach_xfer(tcp, t);
    t->events |= events;
    if (events & NJ_TCP_EV_DEAD)
        nj_list_del(&t->x->ready); /* its end does not wait for a turn */
    if (!nj_list_linked(&t->x->ready))
        nj_list_push_back(&tcp->ready, &t->x->ready);
}

void nj_tcp_note_unfinished(struct nj_tcp *tcp, struct nj_tcb *t)
{
    nj__tcb_attach_xfer(tcp, t);
    if (!nj_list_linked(&t->x->ready))
        nj_list_push_back(&tcp->unfinished, &t->x->ready);
}

void nj_tcp_take_ready_batch(struct nj_tcp *tcp, struct nj_list *batch)
{
    struct nj_list *n;

    nj_list_splice(batch, &tcp->ready);
    for (uint32_t i = 0; i < NJ_TCP_UNFINISHED_MAX && (n = nj_list_pop(&tcp->unfinished)); i++)
        nj_list_push_back(batch, n);
}

struct nj_tcb *nj_tcp_next_ready(struct nj_list *batch, uint8_t *events)
{
    struct nj_list *n = nj_list_pop(batch);
    if (!n)
        return NULL;
    struct nj_tcb *t = nj_container_of(n, struct nj_xfer, ready)->tcb;
    *events = t->events;
    t->events = 0;
    return t;
}

const struct nj_tcb *nj_tcp_ready_node_tcb(const struct nj_list *node)
{
    return nj_container_of(node, const struct nj_xfer, ready)->tcb;
}
