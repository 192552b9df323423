/* SPDX-License-Identifier: BSD-3-Clause */
/* Probing for a larger path MTU (RFC 4821 7, RFC 8899 5). */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define MTU_TUNNEL 1400u /* passes through most tunnels over Ethernet */

/* Probe sizes: first the initial MSS, since the cause may have been an outage; then those of
 * tunnels. */
static uint32_t probe_size(const struct nj_tcb *t)
{
    const uint32_t size[] = {t->mss_max, nj__tcp_mss_for_mtu(t, MTU_TUNNEL),
                             nj__tcp_mss_for_mtu(t, NJ_TCP_MTU_BLACK_HOLE)};
    uint32_t n = size[t->mtu_probes_lost % NJ_ARRAY_LEN(size)];

    return n > t->snd_mss && n < t->mss_max ? n : t->mss_max;
}

/* RFC 4821 7.5 - 7.6: only while no loss is known, and with enough data after it to detect its
 * loss. Only with SACK, since otherwise the loss would cost a recovery. */
uint32_t nj__mtu_probe_bytes(const struct nj_tcb *t, uint32_t n, nj_ns now)
{
    const struct nj_xfer *x = t->x;
    uint32_t size = probe_size(t);
    /* The outcome is lost if the run was joined or split; an ACK ends the probe in any case. */
    bool under_way = x->mtu_probe && nj_seq_lt(t->snd_una, x->mtu_probe_end);

    if (!t->sack_on || under_way || now < x->mtu_probe_at || x->ca != NJ_CA_OPEN ||
        x->n_sacked > 0 || x->n_lost > 0 || x->n_backoffs > 0 || x->cwr_due)
        return 0;
    return n >= size + NJ_TCP_MTU_PROBE_AHEAD * t->snd_mss ? size : 0;
}

void nj__mtu_probe_sent(struct nj_tcb *t, uint32_t n, nj_ns now)
{
    struct nj_xfer *x = t->x;

    x->mtu_probe = (uint16_t)n;
    x->mtu_probe_end = t->snd_nxt;
    x->mtu_probe_at = now + NJ_TCP_MTU_PROBE_WAIT;
}

void nj__mtu_probe_acked(struct nj_tcp *tcp, struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    if (t->snd_mss < x->mtu_probe) {
        t->snd_mss = t->mss_acked = x->mtu_probe;
        nj_count(tcp->cfg.counters, NJ_C_tcp_mtu_raised);
    }
    if (t->snd_mss < t->mss_max) /* a smaller size, after larger ones were lost */
        x->mtu_probe_at += NJ_TCP_MTU_RAISE_WAIT;
    x->mtu_probe = 0;
    t->mtu_probes_lost = 0;
}

void nj__mtu_probe_lost(struct nj_tcb *t)
{
    t->x->mtu_probe = 0;
    if (t->mtu_probes_lost + 1u < NJ_TCP_MTU_PROBES_MAX) {
        t->mtu_probes_lost++;
    } else {
        t->mtu_probes_lost = 0;
        t->x->mtu_probe_at += NJ_TCP_MTU_RAISE_WAIT;
    }
}
