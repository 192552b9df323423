/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv4 packets as bytes. Written apart from lib/wire, which is under test here too: this side puts
 * together what a script says, right or wrong, and takes apart what was sent with every check.
 */
#include <netinet/in.h>
#include <string.h>

#include "wire/packet.h"

#include "script/script.h"

#define IP_BYTES  20u
#define TCP_BYTES 20u

static void w16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void w32(uint8_t *p, uint32_t v)
{
    w16(p, v >> 16);
    w16(p + 2, v);
}

static uint32_t r16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t r32(const uint8_t *p)
{
    return r16(p) << 16 | r16(p + 2);
}

/* RFC 1071, the plain way. */
static uint32_t sum(const uint8_t *p, size_t n, uint32_t acc)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        acc += r16(p + i);
    if (n & 1)
        acc += (uint32_t)p[n - 1] << 8;
    while (acc >> 16)
        acc = (acc & 0xffff) + (acc >> 16);
    return acc;
}

static uint32_t tcp_sum(const uint8_t *ip, size_t n_tcp)
{
    return sum(ip + IP_BYTES, n_tcp, sum(ip + 12, 8, IPPROTO_TCP + (uint32_t)n_tcp));
}

static size_t build_option(uint8_t *to, const struct opt *o)
{
    if (o->kind == OPT_EOL || o->kind == OPT_NOP) {
        *to = o->kind;
        return 1;
    }
    to[0] = o->kind;
    to[1] = o->n_bytes;
    if (o->kind == OPT_MSS)
        w16(to + 2, o->a);
    else if (o->kind == OPT_WSCALE)
        to[2] = (uint8_t)o->a;
    else if (o->kind == OPT_TS) {
        w32(to + 2, o->a);
        w32(to + 6, o->b);
    }
    for (unsigned i = 0; i < o->n_sack; i++) {
        w32(to + 2 + 8 * i, o->sack[i][0]);
        w32(to + 6 + 8 * i, o->sack[i][1]);
    }
    return o->n_bytes < 2 ? 2 : o->n_bytes;
}

/* Filled up to a multiple of four; 41 bytes or more are cut to what the header can say. */
static size_t build_options(uint8_t to[40], const struct pkt *p)
{
    uint8_t all[SCRIPT_OPTS_MAX * 256] = {0};
    size_t n = 0;

    for (uint32_t i = 0; i < p->n_opts && n < 40; i++)
        n += build_option(all + n, &p->opt[i]);
    n = n > 40 ? 40 : (n + 3) & ~(size_t)3;
    memcpy(to, all, n);
    return n;
}

static void build_ip(uint8_t *to, size_t n, uint8_t protocol, int ecn, uint32_t src, uint32_t dst)
{
    memset(to, 0, IP_BYTES);
    to[0] = 0x45;
    to[1] = ecn > 0 ? (uint8_t)ecn : 0;
    w16(to + 2, (uint32_t)n);
    to[6] = 0x40; /* don't fragment */
    to[8] = 255;
    to[9] = protocol;
    w32(to + 12, src);
    w32(to + 16, dst);
    w16(to + 10, ~sum(to, IP_BYTES, 0));
}

/* What a router says about a segment of ours: its IP header and the first twenty bytes behind it.
 */
static size_t build_icmp(uint8_t *to, const struct pkt *p, const struct wire_ends *ends)
{
    size_t n = IP_BYTES + 8 + IP_BYTES + TCP_BYTES;
    uint8_t *icmp = to + IP_BYTES, *quote = icmp + 8, *tcp = quote + IP_BYTES;

    build_ip(to, n, IPPROTO_ICMP, 0, ends->src, ends->dst);
    memset(icmp, 0, n - IP_BYTES);
    icmp[0] = p->icmp_type;
    icmp[1] = p->icmp_code;
    w16(icmp + 6, p->icmp_mtu);
    build_ip(quote, IP_BYTES + TCP_BYTES + p->n_bytes, IPPROTO_TCP, 0, ends->dst, ends->src);
    w16(tcp, ends->dport);
    w16(tcp + 2, ends->sport);
    w32(tcp + 4, p->seq);
    tcp[12] = 0x50;
    tcp[13] = NJ_TCP_ACK;
    w16(icmp + 2, ~sum(icmp, n - IP_BYTES, 0));
    return n;
}

size_t wire_build(uint8_t *to, const struct pkt *p, const struct wire_ends *ends,
                  const uint8_t *payload)
{
    if (p->is_icmp)
        return build_icmp(to, p, ends);
    uint8_t *tcp = to + IP_BYTES;
    size_t n_hdr = TCP_BYTES + build_options(tcp + TCP_BYTES, p);
    size_t n_tcp = n_hdr + p->n_bytes;

    build_ip(to, IP_BYTES + n_tcp, IPPROTO_TCP, p->ecn, ends->src, ends->dst);
    w16(tcp, ends->sport);
    w16(tcp + 2, ends->dport);
    w32(tcp + 4, p->seq);
    w32(tcp + 8, p->ack);
    tcp[12] = (uint8_t)(n_hdr / 4 << 4);
    tcp[13] = p->flags;
    w16(tcp + 14, p->win);
    w16(tcp + 16, 0);
    w16(tcp + 18, p->urg);
    if (p->n_bytes)
        memcpy(tcp + n_hdr, payload, p->n_bytes);
    w16(tcp + 16, ~tcp_sum(to, n_tcp) ^ (p->bad_sum ? 0x5555u : 0));
    return IP_BYTES + n_tcp;
}

/* --- what was sent -----------------------------------------------------------------------------
 */

static void parse_option(const uint8_t *p, struct opt *o)
{
    *o = (struct opt){.kind = p[0], .n_bytes = p[1]};
    if (o->kind == OPT_MSS && o->n_bytes == 4)
        o->a = r16(p + 2);
    else if (o->kind == OPT_WSCALE && o->n_bytes == 3)
        o->a = p[2];
    else if (o->kind == OPT_TS && o->n_bytes == 10) {
        o->a = r32(p + 2);
        o->b = r32(p + 6);
    } else if (o->kind == OPT_SACK) {
        o->n_sack = (uint8_t)((o->n_bytes - 2) / 8);
        for (unsigned i = 0; i < o->n_sack && i < NJ_ARRAY_LEN(o->sack); i++) {
            o->sack[i][0] = r32(p + 2 + 8 * i);
            o->sack[i][1] = r32(p + 6 + 8 * i);
        }
    }
}

static bool parse_options(const uint8_t *p, size_t n, struct pkt *to)
{
    for (size_t i = 0; i < n;) {
        struct opt *o = &to->opt[to->n_opts++];
        if (p[i] == OPT_EOL || p[i] == OPT_NOP) {
            *o = (struct opt){.kind = p[i], .n_bytes = 1};
            i++;
            continue;
        }
        if (i + 1 >= n || p[i + 1] < 2 || i + p[i + 1] > n)
            return false;
        parse_option(p + i, o);
        i += p[i + 1];
    }
    return true;
}

const char *wire_parse(const uint8_t *b, size_t n, struct pkt *p)
{
    memset(p, 0, sizeof *p);
    if (n < IP_BYTES + TCP_BYTES || b[0] != 0x45 || r16(b + 2) != n || b[9] != IPPROTO_TCP)
        return "it is no IPv4 packet with a TCP segment";
    if (sum(b, IP_BYTES, 0) != 0xffff)
        return "the checksum of its IP header is wrong";
    if (tcp_sum(b, n - IP_BYTES) != 0xffff)
        return "its TCP checksum is wrong";
    if (!(b[6] & 0x40))
        return "it may be fragmented (DF is not set)";
    const uint8_t *tcp = b + IP_BYTES;
    size_t n_hdr = (size_t)(tcp[12] >> 4) * 4;
    if (n_hdr < TCP_BYTES || IP_BYTES + n_hdr > n)
        return "its TCP header is longer than itself";
    p->ecn = b[1] & 3;
    p->sport = (uint16_t)r16(tcp);
    p->dport = (uint16_t)r16(tcp + 2);
    p->seq = r32(tcp + 4);
    p->ack = r32(tcp + 8);
    p->flags = tcp[13];
    p->win = r16(tcp + 14);
    p->has_win = true;
    p->urg = r16(tcp + 18);
    p->payload_off = (uint32_t)(IP_BYTES + n_hdr);
    p->n_bytes = (uint32_t)(n - p->payload_off);
    if (!parse_options(tcp + TCP_BYTES, n_hdr - TCP_BYTES, p))
        return "its TCP options are malformed";
    return NULL;
}
