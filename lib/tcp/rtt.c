/* SPDX-License-Identifier: BSD-3-Clause */
/* Round-trip time estimation and the retransmission time-out. Follows RFC 6298. */
#include "tcp/tcp_internal.h"

static nj_ns at_most_max(nj_ns rto)
{
    return rto > NJ_TCP_RTO_MAX ? NJ_TCP_RTO_MAX : rto;
}

/* RFC 6298 2.3. The floor is in the place of the clock granularity G: it applies to the variance,
 * not to the sum as in RFC 6298 2.4 (docs/adr/0004). */
static nj_ns rto_of(const struct nj_tcb *t)
{
    nj_ns var = 4 * (nj_ns)t->rttvar_us * NJ_US;

    var = var > NJ_TCP_RTO_VAR_MIN ? var : NJ_TCP_RTO_VAR_MIN;
    return at_most_max((nj_ns)t->srtt_us * NJ_US + var);
}

void nj__tcp_rtt_sample(struct nj_tcb *t, nj_ns rtt)
{
    uint32_t us =
        rtt < NJ_TCP_RTO_MAX ? (uint32_t)(rtt / NJ_US) : (uint32_t)(NJ_TCP_RTO_MAX / NJ_US);

    us += us == 0;
    if (t->srtt_us == 0) { /* RFC 6298 2.2 */
        t->srtt_us = us;
        t->rttvar_us = us / 2;
    } else { /* RFC 6298 2.3: alpha = 1/8, beta = 1/4 */
        uint32_t err = us > t->srtt_us ? us - t->srtt_us : t->srtt_us - us;
        t->rttvar_us += err / 4 - t->rttvar_us / 4;
        t->srtt_us += us / 8 - t->srtt_us / 8;
        t->srtt_us += t->srtt_us == 0;
    }
    t->x->rto = rto_of(t);
}

nj_ns nj__tcp_rto_base(const struct nj_tcb *t)
{
    return t->srtt_us ? rto_of(t) : NJ_TCP_RTO_INITIAL;
}

void nj__tcp_rto_halve_on_ack(struct nj_tcb *t)
{
    nj_ns twice = 2 * nj__tcp_rto_base(t), half = t->x->rto / 2;
    if (t->x->rto > twice)
        t->x->rto = half > twice ? half : twice;
}

void nj__tcp_rto_handshake_done(struct nj_tcb *t, nj_ns now)
{
    /* More than one SYN was retransmitted, and by a time-out, not only for a repeated SYN of the
     * peer. */
    t->x->syn_lost = t->x->n_backoffs > 0 && t->x->n_syns > 2;
    if (t->x->syn_at) {
        nj__tcp_rtt_sample(t, now - t->x->syn_at);
        t->min_rtt_us = t->srtt_us;
        t->min_rtt_s = (uint16_t)(now / NJ_SEC);
    } else {
        t->x->rto = t->x->n_backoffs ? NJ_TCP_RTO_SYN_LOST : NJ_TCP_RTO_INITIAL;
    }
    t->x->n_backoffs = 0;
}

static void count_back_off(struct nj_tcb *t)
{
    if (t->x->n_backoffs < UINT8_MAX)
        t->x->n_backoffs++;
}

void nj__tcp_rto_back_off(struct nj_tcb *t)
{
    t->x->rto = at_most_max(t->x->rto * 2); /* RFC 6298 5.5 */
    count_back_off(t);
}

nj_ns nj__tcp_persist_back_off(struct nj_tcb *t)
{
    count_back_off(t);
    unsigned shift =
        t->x->n_backoffs < 9 ? t->x->n_backoffs : 9; /* 200 ms << 9 is beyond the maximum */
    return at_most_max(t->x->rto << shift);
}
