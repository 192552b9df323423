/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Idle connections: their struct nj_xfer is freed some time after the last byte, and a new one is
 * attached with the next segment or call. The state of the path stays in struct nj_tcb. Keepalive
 * follows RFC 9293 3.8.4.
 */
#include "base/assert.h"
#include "tcp/loss/recovery.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

void nj__tcb_wake(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (t->x)
        return;
    struct nj_xfer *x = nj_pool_take(&tcp->xfers);
    NJ_ASSERT(x != NULL); /* there are as many as control blocks */
    t->x = x;
    x->tcb = t;
    nj_list_init(&x->ready);
    nj_list_init(&x->pending);
    nj_list_init(&x->sent);
    nj_list_init(&x->by_time);
    x->overtaken = &x->by_time;
    x->rexmit_at = x->pto_at = x->reo_at = x->delack_at = x->close_at = x->burst_at = NJ_NEVER;
    x->high_seq = t->snd_una - 1;
    x->rack_fack = t->snd_una;
    x->reo_mult = 1;
    x->rto = nj__tcp_rto_now(t);
    x->mtu_probe_at = t->heard_at + t->mtu_wait_cs * NJ_TCP_PROBE_WAIT_UNIT;
    x->last_send_at = t->heard_at; /* the window may be stale: see nj_cc_ops.idle */
}

/* Is nothing in flight, queued or due in either direction? */
static bool at_rest(const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x;
    bool open = t->state == NJ_TCP_ESTABLISHED || t->state == NJ_TCP_CLOSE_WAIT ||
                t->state == NJ_TCP_FIN_WAIT_2;

    return open && t->snd_una == t->snd_nxt && !x->sndq.head && !x->rcvq.head && !x->reasm &&
           !t->ack_now && x->delack_at == NJ_NEVER && x->rexmit_at == NJ_NEVER &&
           x->close_at == NJ_NEVER && t->fin_seen == t->fin_received && !nj__ecn_echo(t);
}

/* A connection that never sent has no state to keep, so it may become idle at once. */
static nj_ns rest_ends(const struct nj_tcb *t)
{
    nj_ns wait = t->x->rto > NJ_TCP_IDLE_AFTER ? t->x->rto : NJ_TCP_IDLE_AFTER;
    return t->heard_at + (t->x->used ? wait : 0);
}

nj_ns nj__tcp_idle_deadline(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    if (t->x && at_rest(t))
        return rest_ends(t);
    if (t->x || tcp->cfg.keepalive == 0)
        return NJ_NEVER;
    return t->heard_at + tcp->cfg.keepalive + t->n_keepalives * NJ_TCP_KEEPALIVE_EVERY;
}

_Static_assert((NJ_TCP_PROBE_RAISE + NJ_TCP_PROBE_EVERY) / NJ_TCP_PROBE_WAIT_UNIT <= UINT16_MAX,
               "the longest time between two probes fits");

/* RFC 8899 5.1.2: the remaining wait before the next probe. */
static uint16_t probe_wait(const struct nj_tcb *t)
{
    nj_ns at = t->x->mtu_probe_at;
    nj_ns left = at > t->heard_at ? (at - t->heard_at) / NJ_TCP_PROBE_WAIT_UNIT : 0;

    return (uint16_t)(left < UINT16_MAX ? left : UINT16_MAX);
}

static void fall_asleep(struct nj_tcp *tcp, struct nj_tcb *t)
{
    NJ_ASSERT(at_rest(t));
    NJ_ASSERT(nj_list_empty(&t->x->sent));
    t->mtu_wait_cs = probe_wait(t);
    nj_pool_put(&tcp->xfers, t->x);
    t->x = NULL;
}

/* RFC 9293 3.8.4: send a keepalive with an acknowledged number, which the peer must answer. False:
 * the block is gone. */
static bool ask(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->n_keepalives == NJ_TCP_KEEPALIVE_PROBES) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_keepalive_dead);
        nj_tcp_abort(tcp, t, now);
        return false;
    }
    t->n_keepalives++;
    nj_count(tcp->cfg.counters, NJ_C_tcp_keepalive);
    nj__tcb_wake(tcp, t);
    nj__tcp_send_keepalive(tcp, t, now);
    fall_asleep(tcp, t);
    return true;
}

bool nj__tcp_idle_tick(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (now < nj__tcp_idle_deadline(tcp, t))
        return true;
    if (!t->x)
        return ask(tcp, t, now);
    if (nj_list_linked(&t->x->ready) || nj_list_linked(&t->x->pending))
        t->heard_at = now; /* about to be processed: postpone */
    else
        fall_asleep(tcp, t);
    return true;
}
