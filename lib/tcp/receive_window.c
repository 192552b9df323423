/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive window: RFC 9293 3.8.6. A promised right edge is never taken back. */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"

uint32_t nj__tcp_rcv_wnd(const struct nj_tcb *t)
{
    /* A FIN that was taken at a closed window stands past the edge. */
    return nj_seq_lt(t->rcv_nxt, t->rcv_adv) ? t->rcv_adv - t->rcv_nxt : 0;
}

enum nj_pressure nj__tcp_pressure(const struct nj_tcp *tcp)
{
    uint64_t held = tcp->n_held, max = tcp->cfg.held_max;

    if (max == 0 || held * 2 <= max)
        return NJ_PRESSURE_NONE;
    return held * 8 <= max * 7 ? NJ_PRESSURE_SOME : NJ_PRESSURE_HIGH;
}

/* The buffer of a connection. Four segments are the least: the window is told anew when it can grow
 * by two, and so never stays below two while the user reads. */
static uint32_t buffer_bytes(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t bytes = NJ_RECV_WINDOW_BYTES;

    switch (nj__tcp_pressure(tcp)) {
    case NJ_PRESSURE_NONE:
        break;
    case NJ_PRESSURE_SOME:
        bytes = NJ_RECV_WINDOW_BYTES / 4;
        break;
    case NJ_PRESSURE_HIGH:
        bytes = 4u * t->snd_mss;
        break;
    }
    return bytes < NJ_RECV_WINDOW_BYTES ? bytes : NJ_RECV_WINDOW_BYTES;
}

/* What we could promise: what the buffer holds, and no more than the field can say. */
static uint32_t free_bytes(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t used = t->x->rcvq.n_bytes, most = (uint32_t)UINT16_MAX << t->rcv_wscale;
    uint32_t buffer = buffer_bytes(tcp, t), room = used < buffer ? buffer - used : 0;
    return room < most ? room : most;
}

/* Receiver's silly window avoidance (RFC 9293 3.8.6.2.2): small steps are not worth telling. */
static uint32_t worth_telling(const struct nj_tcb *t)
{
    uint32_t half = NJ_RECV_WINDOW_BYTES / 2, two = 2u * t->snd_mss;
    return two < half ? two : half;
}

bool nj__tcp_window_update_due(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t edge = t->rcv_nxt + free_bytes(tcp, t);
    return nj_seq_diff(edge, t->rcv_adv) >= (int32_t)worth_telling(t);
}

uint16_t nj__tcp_wnd_field(const struct nj_tcp *tcp, struct nj_tcb *t)
{
    uint32_t edge = t->rcv_nxt + free_bytes(tcp, t);
    if (nj_seq_diff(edge, t->rcv_adv) < (int32_t)worth_telling(t))
        edge = t->rcv_nxt + nj__tcp_rcv_wnd(t); /* nor is the edge ever pulled back */

    /* Rounded up: rounding down would take back up to 2^wscale - 1 promised bytes (RFC 7323 2.4).
     * So the edge creeps forward with very short segments; NJ_RECV_MBUFS_MAX is the bound then. */
    uint32_t unit = 1u << t->rcv_wscale;
    uint32_t field = (edge - t->rcv_nxt + unit - 1) >> t->rcv_wscale;
    if (field > UINT16_MAX)
        field = UINT16_MAX;
    t->rcv_adv = nj_seq_max(t->rcv_adv, t->rcv_nxt + (field << t->rcv_wscale));
    return (uint16_t)field;
}
