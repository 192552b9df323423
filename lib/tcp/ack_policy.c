/* SPDX-License-Identifier: BSD-3-Clause */
/* When text is acknowledged: RFC 9293 3.8.6.3, RFC 5681 4.2; congestion marks: RFC 3168 6.1.3. */
#include "tcp/tcp_internal.h"

#define FULL_SIZE_MIN 536u /* RFC 9293 3.7.1: what IPv4 carries without asking */

/* What counts as a full-sized segment: the longest that the peer has sent, for its MSS may be lower
 * than ours. Not less than every path carries, or small talk would be acknowledged twice as often
 * as bulk. */
static uint32_t full_size(const struct nj_tcb *t)
{
    return t->x->rcv_mss > FULL_SIZE_MIN ? t->x->rcv_mss : FULL_SIZE_MIN;
}

/* While the peer is in slow start every ACK lets it double: at the start, and after a silence so
 * long that it begins anew (RFC 5681 4.1). Ten of them cover the initial window of RFC 6928; from
 * then on there are enough segments on their way for every second one to do. Only a full segment
 * without PSH asks for this: it tells that more is to come, while a request is short or pushed, and
 * its answer carries the ACK. */
static bool quick(struct nj_tcb *t, const struct nj_seg *seg, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (x->text_at && now - x->text_at > x->rto)
        x->n_quick_acks = 0;
    x->text_at = now;
    if (seg->payload_bytes < full_size(t) || (seg->flags & NJ_TCP_PSH) ||
        x->n_quick_acks >= NJ_TCP_QUICK_ACKS)
        return false;
    x->n_quick_acks++;
    return true;
}

void nj__ack_text(struct nj_tcb *t, const struct nj_seg *seg, bool filled_hole, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (seg->payload_bytes > x->rcv_mss)
        x->rcv_mss = (uint16_t)seg->payload_bytes;
    bool now_due = quick(t, seg, now) || filled_hole;
    if (now_due || t->rcv_nxt - t->last_ack_sent >= 2 * full_size(t))
        t->ack_now = true;
    else if (x->delack_at == NJ_NEVER)
        x->delack_at = now + NJ_TCP_DELACK;
}

void nj__ecn_arrived(struct nj_tcb *t, const struct nj_seg *seg)
{
    bool was = t->x->ce_seen;

    if (!t->ecn_on)
        return;
    if (seg->flags & NJ_TCP_CWR)
        t->x->ce_seen = false;
    if (seg->ecn == NJ_ECN_CE) /* after CWR: a mark on that very segment is a new one */
        t->x->ce_seen = true;
    if (t->x->ce_seen != was)
        t->ack_now = true; /* the sooner the peer slows down, or stops hearing of it, the better */
}
