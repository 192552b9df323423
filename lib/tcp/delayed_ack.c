/* SPDX-License-Identifier: BSD-3-Clause */
/* When received text is acknowledged (delayed ACKs: RFC 9293 3.8.6.3, RFC 5681 4.2). */
#include "tcp/tcp_internal.h"

#define FULL_SIZE_MIN 536u /* RFC 9293 3.7.1: default MSS of IPv4 */

/* The size of a full-sized segment: the longest that the peer has sent, since its MSS may be lower
 * than ours. The minimum prevents small segments from being acknowledged more often than bulk data.
 */
static uint32_t full_size(const struct nj_tcb *t)
{
    return t->x->rcv_mss > FULL_SIZE_MIN ? t->x->rcv_mss : FULL_SIZE_MIN;
}

/* Quick ACKs: while the peer is in slow start, at the beginning and after an idle RTO (RFC 5681
 * 4.1), each segment is acknowledged at once. Ten ACKs cover the initial window of RFC 6928; after
 * that an ACK for every second segment is enough. Only full segments without PSH qualify, since
 * more data follows them. A request is short or pushed, and its response carries the ACK. */
static bool is_due_at_once(struct nj_tcb *t, const struct nj_seg *seg, nj_ns now)
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

void nj__ack_schedule(struct nj_tcb *t, const struct nj_seg *seg, bool filled_hole, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (seg->payload_bytes > x->rcv_mss)
        x->rcv_mss = (uint16_t)seg->payload_bytes;
    bool now_due = is_due_at_once(t, seg, now) || filled_hole;
    if (now_due || t->rcv_nxt - t->last_ack_sent >= 2 * full_size(t))
        t->ack_now = true;
    else if (x->delack_at == NJ_NEVER)
        x->delack_at = now + NJ_TCP_DELAYED_ACK;
}
