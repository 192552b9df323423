/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Path MTU discovery by ICMP (RFC 1191, RFC 8201), hardened against forged messages (RFC 5927).
 * Without ICMP, time-outs reduce the segment size. mtu_probe.c raises it again.
 */
#include "base/compiler.h"
#include "tcp/loss/recovery_state.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

/* The plateau table of RFC 1191 7, for routers that report no MTU. */
static const uint16_t plateau[] = {17914, 8166, 4352, 2002, 1492, 1006, 508, 296};

#define MTU_V4_MIN 68u   /* RFC 791: a smaller claim is invalid */
#define MTU_V6_MIN 1280u /* RFC 8200 5; RFC 8201 4 */
#define MTU_LAST   576u  /* accepted by every IPv4 host (RFC 791) */

/* Reduce snd_mss and retransmit all data in flight, without a congestion response. */
static void reduce_mss(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t mtu)
{
    uint32_t mss = nj__tcp_mss_for_mtu(t, mtu);

    t->x->icmp_mtu_pending = 0;
    if (mss >= t->snd_mss)
        return;
    t->snd_mss = (uint16_t)mss;
    if (t->mss_acked > mss)
        t->mss_acked = (uint16_t)mss;
    nj_count(tcp->cfg.counters, NJ_C_tcp_mtu_shrunk);
    nj__scoreboard_lose_until(tcp, t, t->snd_nxt);
    nj__scoreboard_resegment(tcp, t);
    t->mtu_probes_lost = 0;
    t->x->mtu_probe_at = 0;
    nj__tcb_note_output(tcp, t);
}

static uint32_t claimed_mtu(const struct nj_tcb *t, const struct nj_icmp_error *e)
{
    uint32_t now =
        t->snd_mss + nj__tcp_hdr_bytes(&t->flow.tuple) + (t->ts_on ? NJ_TCP_TS_BYTES : 0);

    if (e->mtu != 0)
        return e->mtu;
    for (unsigned i = 0; i < NJ_ARRAY_LEN(plateau); i++)
        if (plateau[i] < now)
            return plateau[i];
    return plateau[NJ_ARRAY_LEN(plateau) - 1];
}

/* Reduce by a router's message: the next probe waits ten minutes (RFC 1191 6.3). */
static void shrink_by_icmp(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t mtu, nj_ns now)
{
    uint16_t mss = t->snd_mss;

    reduce_mss(tcp, t, mtu);
    if (t->snd_mss == mss)
        return;
    t->x->mtu_probe_at = now + NJ_TCP_MTU_RAISE_WAIT;
}

/* RFC 5927 7.2: if segments of that length were acknowledged, the claim is applied only when a
 * time-out confirms it. */
static void on_too_big(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_icmp_error *e)
{
    uint32_t mtu = claimed_mtu(t, e);
    bool v4 = nj_addr_is_v4(&t->flow.tuple.remote);

    if (mtu < (v4 ? MTU_V4_MIN : MTU_V6_MIN))
        return;
    if (v4 && mtu < NJ_TCP_MTU_MIN) { /* forged, or of an obsolete link */
        nj_count(tcp->cfg.counters, NJ_C_tcp_mtu_floor);
        mtu = NJ_TCP_MTU_MIN;
    }
    if (nj__tcp_mss_for_mtu(t, mtu) < t->mss_acked)
        t->x->icmp_mtu_pending = (uint16_t)(mtu < UINT16_MAX ? mtu : UINT16_MAX);
    else
        shrink_by_icmp(tcp, t, mtu, t->x->last_send_at); /* the time of the quoted segment */
}

bool nj_tcp_icmp(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_icmp_error *e)
{
    /* RFC 5927 4.1: it must quote data in flight. An idle connection has none. */
    if (!t->x || !nj_seq_in(e->seq, t->snd_una, t->snd_nxt - t->snd_una))
        return false;
    if (e->error_kind == NJ_ICMP_TOO_BIG && t->state >= NJ_TCP_ESTABLISHED) {
        on_too_big(tcp, t, e);
        nj__tcp_rearm_timer(tcp, t);
    } else if (e->error_kind == NJ_ICMP_HARD_ERROR && t->state == NJ_TCP_SYN_SENT) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_aborted); /* RFC 5927 5.2: hard only in SYN-SENT */
        nj__tcb_end(tcp, t);
    } /* else a soft error: the timers decide (RFC 9293 3.9.2.2) */
    return true;
}

/* RFC 9293 3.7.2: black hole detection, for long segments that are lost without ICMP. */
void nj__pmtu_timed_out(struct nj_tcp *tcp, struct nj_tcb *t)
{
    uint32_t long_mss = nj__tcp_mss_for_mtu(t, NJ_TCP_MTU_BLACK_HOLE);
    bool v4 = nj_addr_is_v4(&t->flow.tuple.remote);

    if (t->x->icmp_mtu_pending) {
        shrink_by_icmp(tcp, t, t->x->icmp_mtu_pending, t->x->last_send_at);
        return;
    }
    bool proven = t->mss_acked >= t->snd_mss; /* then another cause is more likely */
    if (t->x->n_backoffs < (proven ? 2 : 1) * NJ_TCP_BLACK_HOLE_RTOS)
        return;
    if (t->snd_mss > long_mss)
        reduce_mss(tcp, t, NJ_TCP_MTU_BLACK_HOLE);
    else if (v4)
        reduce_mss(tcp, t, MTU_LAST);
}
