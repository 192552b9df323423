/* SPDX-License-Identifier: BSD-3-Clause */
/* Round-trip estimate and retransmission time-out: RFC 6298. */
#include "tcp/tcp_internal.h"

static nj_ns clamp_rto(nj_ns rto)
{
    if (rto < NJ_TCP_RTO_MIN)
        return NJ_TCP_RTO_MIN;
    return rto > NJ_TCP_RTO_MAX ? NJ_TCP_RTO_MAX : rto;
}

void nj__tcp_rtt_sample(struct nj_tcb *t, nj_ns rtt)
{
    if (t->srtt == 0) { /* 2.2 */
        t->srtt = rtt ? rtt : 1;
        t->rttvar = rtt / 2;
    } else { /* 2.3: alpha = 1/8, beta = 1/4 */
        nj_ns err = rtt > t->srtt ? rtt - t->srtt : t->srtt - rtt;
        t->rttvar += err / 4 - t->rttvar / 4;
        t->srtt += rtt / 8 - t->srtt / 8;
        if (t->srtt == 0)
            t->srtt = 1;
    }
    nj_ns var = 4 * t->rttvar, tick = (nj_ns)1 << NJ_WHEEL_TICK_BITS;
    t->x->rto = clamp_rto(t->srtt + (var > tick ? var : tick));
}

void nj__tcp_rto_opened(struct nj_tcb *t, nj_ns now)
{
    if (t->x->timed_at)
        nj__tcp_rtt_sample(t, now - t->x->timed_at);
    else
        t->x->rto = t->x->n_backoffs ? NJ_TCP_RTO_SYN_LOST : NJ_TCP_RTO_INITIAL;
    t->x->timed_at = 0;
    t->x->n_backoffs = 0;
}

static void count_back_off(struct nj_tcb *t)
{
    if (t->x->n_backoffs < UINT8_MAX)
        t->x->n_backoffs++;
}

void nj__tcp_rto_back_off(struct nj_tcb *t)
{
    t->x->rto = clamp_rto(t->x->rto * 2); /* 5.5 */
    count_back_off(t);
}

nj_ns nj__tcp_persist_back_off(struct nj_tcb *t)
{
    count_back_off(t);
    unsigned shift =
        t->x->n_backoffs < 9 ? t->x->n_backoffs : 9; /* 200 ms << 9 is beyond the maximum */
    return clamp_rto(t->x->rto << shift);
}
