/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive window: RFC 9293 3.8.6. A promised right edge is never taken back. */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"

uint32_t nj__tcp_rcv_wnd(const struct nj_tcb *t)
{
    return t->rcv_adv - t->rcv_nxt;
}

static uint32_t free_bytes(const struct nj_tcb *t)
{
    uint32_t used = t->rcvq.n_bytes;
    return used < NJ_RECV_WINDOW_BYTES ? NJ_RECV_WINDOW_BYTES - used : 0;
}

/* Receiver's silly window avoidance (RFC 9293 3.8.6.2.2): small steps are not worth telling. */
static uint32_t worth_telling(const struct nj_tcb *t)
{
    uint32_t half = NJ_RECV_WINDOW_BYTES / 2, two = 2u * t->peer_mss;
    return two < half ? two : half;
}

bool nj__tcp_window_update_due(const struct nj_tcb *t)
{
    uint32_t edge = t->rcv_nxt + free_bytes(t);
    return nj_seq_diff(edge, t->rcv_adv) >= (int32_t)worth_telling(t);
}

uint16_t nj__tcp_wnd_field(struct nj_tcb *t)
{
    uint32_t edge = t->rcv_nxt + free_bytes(t);
    if (nj_seq_diff(edge, t->rcv_adv) < (int32_t)worth_telling(t))
        edge = t->rcv_adv; /* nor is the edge ever pulled back */

    /* Rounded up: rounding down would take back up to 2^wscale - 1 promised bytes (RFC 7323 2.4).
     */
    uint32_t unit = 1u << t->rcv_wscale;
    uint32_t field = (edge - t->rcv_nxt + unit - 1) >> t->rcv_wscale;
    if (field > UINT16_MAX)
        field = UINT16_MAX;
    t->rcv_adv = nj_seq_max(t->rcv_adv, t->rcv_nxt + (field << t->rcv_wscale));
    return (uint16_t)field;
}
