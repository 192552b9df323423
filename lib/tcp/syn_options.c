/* SPDX-License-Identifier: BSD-3-Clause */
/* The MSS (RFC 9293 3.7.1), and the options of a SYN (RFC 7323, RFC 2018). */
#include "tcp/tcp_internal.h"

uint16_t nj__tcp_our_mss(const struct nj_tcp *tcp, const struct nj_tuple *tuple)
{
    return (uint16_t)(tcp->cfg.mtu - nj__tcp_hdr_bytes(tuple));
}

/* RFC 9293 3.7.1 MUST-15: the default is 536 for IPv4 and 1220 for IPv6. */
uint16_t nj__tcp_peer_mss(const struct nj_tcp *tcp, const struct nj_tuple *tuple,
                          const struct nj_tcp_opts *o)
{
    uint32_t ours = nj__tcp_our_mss(tcp, tuple);
    uint32_t mss = o->has_mss ? o->mss : nj_addr_is_v4(&tuple->remote) ? 536 : 1220;

    if (mss < NJ_TCP_MSS_MIN)
        mss = NJ_TCP_MSS_MIN;
    return (uint16_t)(mss < ours ? mss : ours);
}

uint32_t nj__tcp_mss_for_mtu(const struct nj_tcb *t, uint32_t mtu)
{
    uint32_t hdr = nj__tcp_hdr_bytes(&t->flow.tuple) + (t->ts_on ? NJ_TCP_TS_BYTES : 0);
    uint32_t mss = mtu > hdr ? mtu - hdr : 0;
    return mss < NJ_TCP_MSS_MIN ? NJ_TCP_MSS_MIN : mss;
}

/* Options of the peer's SYN: RFC 9293 3.7.1 (MSS), RFC 7323 2.2, 2.3 and 3.2, RFC 2018 2 (SACK). */
void nj__tcp_apply_syn_options(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_tcp_opts *o,
                               nj_ns now)
{
    uint16_t mss = nj__tcp_peer_mss(tcp, &t->flow.tuple, o);

    t->ts_on = o->has_ts;
    t->sack_on = o->sack_permitted;
    t->ts_recent = o->ts_val;
    t->ts_recent_s = (uint32_t)(now / NJ_SEC);
    t->snd_mss = t->mss_max = (uint16_t)(mss - (t->ts_on ? NJ_TCP_TS_BYTES : 0));
    t->snd_wscale = o->has_wscale ? (o->wscale < 14 ? o->wscale : 14) : 0;
    t->rcv_wscale = o->has_wscale ? NJ_TCP_WSCALE : 0;
}
