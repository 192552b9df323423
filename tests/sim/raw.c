/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw.h"

#include <string.h>

#include <netinet/in.h>

#include "base/assert.h"
#include "channel.h"

#define IPV4_BYTES 20u
#define IPV6_BYTES 40u

uint16_t nj_sim_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

void nj_sim_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

uint32_t nj_sim_get32(const uint8_t *p)
{
    return (uint32_t)nj_sim_get16(p) << 16 | nj_sim_get16(p + 2);
}

void nj_sim_put32(uint8_t *p, uint32_t v)
{
    nj_sim_put16(p, (uint16_t)(v >> 16));
    nj_sim_put16(p + 2, (uint16_t)v);
}

/* Finds the TCP header and the end of the packet; 0: unknown format. */
static uint32_t find_tcp(const uint8_t *f, uint32_t n_bytes, struct sim_raw *r)
{
    const uint8_t *ip = f + SIM_ETH_BYTES;
    uint16_t type = n_bytes >= SIM_ETH_BYTES + IPV4_BYTES ? nj_sim_get16(f + 12) : 0;

    r->ip = SIM_ETH_BYTES;
    if (type == 0x0800 && ip[0] == 0x45 && ip[9] == IPPROTO_TCP) {
        r->ecn = ip[1] & 3;
        r->end = r->ip + nj_sim_get16(ip + 2);
        return r->ip + IPV4_BYTES;
    }
    if (type == 0x86dd && n_bytes >= SIM_ETH_BYTES + IPV6_BYTES && ip[0] >> 4 == 6 &&
        ip[6] == IPPROTO_TCP) {
        r->v6 = true;
        r->ecn = ip[1] >> 4 & 3;
        r->end = r->ip + IPV6_BYTES + nj_sim_get16(ip + 4);
        return r->ip + IPV6_BYTES;
    }
    return 0;
}

bool nj_sim_raw_parse(const uint8_t *f, uint32_t n_bytes, struct sim_raw *r)
{
    *r = (struct sim_raw){0};
    r->tcp = find_tcp(f, n_bytes, r);
    if (r->tcp == 0 || r->end > n_bytes || r->tcp + SIM_TCP_BYTES > r->end)
        return false;
    const uint8_t *t = f + r->tcp;
    r->opts = r->tcp + SIM_TCP_BYTES;
    r->data = r->tcp + (uint32_t)(t[12] >> 4) * 4;
    if (r->data < r->opts || r->data > r->end)
        return false;
    r->n_data = r->end - r->data;
    r->sport = nj_sim_get16(t);
    r->dport = nj_sim_get16(t + 2);
    r->seq = nj_sim_get32(t + 4);
    r->ack = nj_sim_get32(t + 8);
    r->flags = t[13];
    r->wnd = nj_sim_get16(t + 14);
    return true;
}

static void take_option(const uint8_t *f, uint32_t at, struct sim_raw_opts *o)
{
    switch (f[at]) {
    case 2:
        o->mss_at = at;
        o->mss = nj_sim_get16(f + at + 2);
        break;
    case 3:
        o->wscale_at = at;
        o->wscale = f[at + 2];
        break;
    case 4:
        o->sack_ok_at = at;
        break;
    case 5:
        o->sack_at = at;
        o->n_sack = (uint8_t)((f[at + 1] - 2) / 8);
        break;
    case 8:
        o->ts_at = at;
        o->ts_val = nj_sim_get32(f + at + 2);
        o->ts_ecr = nj_sim_get32(f + at + 6);
        break;
    }
}

void nj_sim_raw_opts(const uint8_t *f, const struct sim_raw *r, struct sim_raw_opts *o)
{
    *o = (struct sim_raw_opts){0};
    for (uint32_t at = r->opts; at < r->data && f[at] != 0;) {
        if (f[at] == 1) {
            at++;
            continue;
        }
        if (at + 2 > r->data || f[at + 1] < 2 || at + f[at + 1] > r->data)
            return;
        take_option(f, at, o);
        at += f[at + 1];
    }
}

/* RFC 1071, two bytes at a time: independent of lib/wire. */
static uint32_t sum(uint32_t s, const uint8_t *p, uint32_t n_bytes)
{
    for (; n_bytes > 1; p += 2, n_bytes -= 2)
        s += nj_sim_get16(p);
    return n_bytes ? s + ((uint32_t)p[0] << 8) : s;
}

static uint16_t fold(uint32_t s)
{
    s = (s >> 16) + (s & UINT16_MAX);
    return (uint16_t) ~((s >> 16) + s);
}

uint16_t nj_sim_sum16(const uint8_t *p, uint32_t n_bytes)
{
    return fold(sum(0, p, n_bytes));
}

void nj_sim_raw_seal(uint8_t *f, uint32_t n_bytes)
{
    uint8_t *ip = f + SIM_ETH_BYTES;
    bool v6 = nj_sim_get16(f + 12) == 0x86dd;
    uint32_t hdr = v6 ? IPV6_BYTES : IPV4_BYTES, n = n_bytes - SIM_ETH_BYTES - hdr;
    uint8_t *tcp = ip + hdr;

    if (v6) {
        nj_sim_put16(ip + 4, (uint16_t)n);
    } else {
        nj_sim_put16(ip + 2, (uint16_t)(n + hdr));
        nj_sim_put16(ip + 10, 0);
        nj_sim_put16(ip + 10, nj_sim_sum16(ip, hdr));
    }
    nj_sim_put16(tcp + 16, 0);
    uint32_t s = sum(IPPROTO_TCP + n, v6 ? ip + 8 : ip + 12, v6 ? 32 : 8);
    nj_sim_put16(tcp + 16, fold(sum(s, tcp, n)));
}

/* RFC 792, RFC 1191: writes "fragmentation needed" at `ip`, with the quote after the header. */
static uint32_t too_big_v4(uint16_t mtu, uint8_t *ip, const uint8_t *cause)
{
    ip[0] = 0x45;
    nj_sim_put16(ip + 2, 20 + 8 + 28);
    ip[8] = 64;
    ip[9] = IPPROTO_ICMP;
    memcpy(ip + 12, cause + 12, 3); /* an unused address of the same network */
    ip[15] = 254;
    memcpy(ip + 16, cause + 12, 4);
    nj_sim_put16(ip + 10, nj_sim_sum16(ip, 20));
    ip[20] = 3;
    ip[21] = 4;
    nj_sim_put16(ip + 26, mtu);
    memcpy(ip + 28, cause, 28);
    nj_sim_put16(ip + 22, nj_sim_sum16(ip + 20, 8 + 28));
    return 20 + 8 + 28;
}

/* RFC 4443 3.2: "packet too big". Its checksum covers a pseudo-header, which is written
 * temporarily before the addresses in place of the header's first bytes. */
static uint32_t too_big_v6(uint16_t mtu, uint8_t *ip, const uint8_t *cause)
{
    uint32_t n = 8 + 60;

    ip[6] = IPPROTO_ICMPV6;
    nj_sim_put16(ip + 4, (uint16_t)n);
    memcpy(ip + 8, cause + 8, 15);
    ip[23] = 254;
    memcpy(ip + 24, cause + 8, 16);
    ip[40] = 2;
    nj_sim_put32(ip + 44, mtu);
    memcpy(ip + 48, cause, 60);
    ip[7] = IPPROTO_ICMPV6; /* for the checksum: length in 4 and 5, protocol in 7 */
    ip[6] = 0;
    nj_sim_put16(ip + 42, nj_sim_sum16(ip, 40 + n));
    ip[0] = 0x60;
    ip[6] = IPPROTO_ICMPV6;
    ip[7] = 64;
    return 40 + n;
}

uint32_t nj_sim_raw_too_big(const uint8_t *frame, uint16_t mtu, uint8_t icmp[SIM_TOO_BIG_MAX])
{
    const bool v6 = nj_sim_get16(frame + 12) == 0x86dd;

    memset(icmp, 0, SIM_TOO_BIG_MAX);
    memcpy(icmp, frame + 6, 6);
    memcpy(icmp + 6, frame, 6);
    memcpy(icmp + 12, frame + 12, 2);
    return SIM_ETH_BYTES +
           (v6 ? too_big_v6 : too_big_v4)(mtu, icmp + SIM_ETH_BYTES, frame + SIM_ETH_BYTES);
}

void nj_sim_flatten(const struct rte_mbuf *m, uint8_t *out)
{
    uint32_t n = 0;
    for (const struct rte_mbuf *s = m; s; s = s->next) {
        NJ_CHECK(n + s->data_len <= SIM_FRAME_MAX);
        memcpy(out + n, rte_pktmbuf_mtod(s, const uint8_t *), s->data_len);
        n += s->data_len;
    }
    NJ_CHECK(n == m->pkt_len);
}
