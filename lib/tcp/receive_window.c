/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive window (RFC 9293 3.8.6). The advertised right edge never moves back. */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"

#define RECORD_BYTES_MAX (5u + 16384u + 256u) /* of TLS 1.3: RFC 8446 5.2 */

uint32_t nj__tcp_rcv_wnd(const struct nj_tcb *t)
{
    /* A FIN accepted at a closed window is beyond the edge. */
    return nj_seq_lt(t->rcv_nxt, t->rcv_adv) ? t->rcv_adv - t->rcv_nxt : 0;
}

enum nj_rcv_pressure nj__rcv_pressure(const struct nj_tcp *tcp)
{
    uint64_t held = tcp->n_held, max = tcp->cfg.held_max;

    if (max == 0 || held * 2 <= max)
        return NJ_RCV_PRESSURE_NONE;
    return held * 8 <= max * 7 ? NJ_RCV_PRESSURE_SOME : NJ_RCV_PRESSURE_HIGH;
}

/* Receiver's silly window syndrome avoidance (RFC 9293 3.8.6.2.2): the least step to advertise. */
static uint32_t min_window_step(const struct nj_tcb *t)
{
    uint32_t half = NJ_RECV_WINDOW_BYTES / 2, two = 2u * t->snd_mss;
    return two < half ? two : half;
}

/* Receive buffer of a connection. The minimum is four segments: an update is sent when the window
 * can grow by two, so it does not stay below two while the user reads. The user of records reads
 * none in part, so the window must not close within one. */
static uint32_t buffer_bytes(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t bytes = NJ_RECV_WINDOW_BYTES;

    switch (nj__rcv_pressure(tcp)) {
    case NJ_RCV_PRESSURE_NONE:
        break;
    case NJ_RCV_PRESSURE_SOME:
        bytes = NJ_RECV_WINDOW_BYTES / 4;
        break;
    case NJ_RCV_PRESSURE_HIGH:
        bytes = 4u * t->snd_mss;
        if (t->expects_records && bytes < RECORD_BYTES_MAX + min_window_step(t))
            bytes = RECORD_BYTES_MAX + min_window_step(t);
        break;
    }
    return bytes < NJ_RECV_WINDOW_BYTES ? bytes : NJ_RECV_WINDOW_BYTES;
}

/* The largest window that can be advertised: free buffer space, limited by the field. */
static uint32_t free_bytes(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t used = t->x->rcvq.n_bytes, most = (uint32_t)UINT16_MAX << t->rcv_wscale;
    uint32_t buffer = buffer_bytes(tcp, t), room = used < buffer ? buffer - used : 0;
    return room < most ? room : most;
}

bool nj__tcp_is_window_update_due(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t edge = t->rcv_nxt + free_bytes(tcp, t);
    return nj_seq_diff(edge, t->rcv_adv) >= (int32_t)min_window_step(t);
}

uint16_t nj__tcp_next_window_field(const struct nj_tcp *tcp, struct nj_tcb *t)
{
    uint32_t edge = t->rcv_nxt + free_bytes(tcp, t);
    if (nj_seq_diff(edge, t->rcv_adv) < (int32_t)min_window_step(t))
        edge = t->rcv_nxt + nj__tcp_rcv_wnd(t); /* keep the edge */

    /* Rounded up: rounding down would move the edge back by up to 2^wscale - 1 bytes (RFC 7323
     * 2.4). With very short segments the edge creeps forward; NJ_RECV_MBUFS_MAX bounds that. */
    uint32_t unit = 1u << t->rcv_wscale;
    uint32_t field = (edge - t->rcv_nxt + unit - 1) >> t->rcv_wscale;
    if (field > UINT16_MAX)
        field = UINT16_MAX;
    t->rcv_adv = nj_seq_max(t->rcv_adv, t->rcv_nxt + (field << t->rcv_wscale));
    return (uint16_t)field;
}
