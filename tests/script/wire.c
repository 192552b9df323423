/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP packets as bytes, of both families. Independent of lib/wire, which is also under test: builds
 * the packets of a script, valid or not, and parses sent packets with every check.
 */
#include <netinet/in.h>
#include <string.h>

#include "wire/packet.h"

#include "script/script.h"

#define IP4_BYTES 20u
#define IP6_BYTES 40u
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

/* RFC 1071, straightforward. */
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

/* Over the pseudo-header (RFC 9293 3.1, RFC 8200 8.1) and what follows the IP header. */
static uint32_t l4_sum(const uint8_t *ip, uint8_t protocol, size_t n_l4)
{
    bool v6 = ip[0] >> 4 == 6;
    uint32_t acc = protocol + (uint32_t)n_l4;
    acc = v6 ? sum(ip + 8, 32, acc) : sum(ip + 12, 8, acc);
    return sum(ip + (v6 ? IP6_BYTES : IP4_BYTES), n_l4, acc);
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

/* Padded to a multiple of four; truncated at 41 bytes or more, the limit of the header. */
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

/* Header of a packet with `n_l4` bytes of payload; returns its length. */
static size_t build_ip(uint8_t *to, size_t n_l4, uint8_t protocol, int ecn,
                       const struct nj_addr *src, const struct nj_addr *dst)
{
    uint8_t tos = ecn > 0 ? (uint8_t)ecn : 0;

    if (!nj_addr_is_v4(src)) {
        w32(to, 6u << 28 | (uint32_t)tos << 20);
        w16(to + 4, (uint32_t)n_l4);
        to[6] = protocol;
        to[7] = 255;
        memcpy(to + 8, src, sizeof *src);
        memcpy(to + 24, dst, sizeof *dst);
        return IP6_BYTES;
    }
    memset(to, 0, IP4_BYTES);
    to[0] = 0x45;
    to[1] = tos;
    w16(to + 2, (uint32_t)(IP4_BYTES + n_l4));
    to[6] = 0x40; /* don't fragment */
    to[8] = 255;
    to[9] = protocol;
    memcpy(to + 12, src->b + 12, 4);
    memcpy(to + 16, dst->b + 12, 4);
    w16(to + 10, ~sum(to, IP4_BYTES, 0));
    return IP4_BYTES;
}

/* The type in ICMPv6 (RFC 4443 3): scripts use the names of RFC 792. */
static void icmp6_kind(const struct pkt *p, uint8_t *type, uint8_t *code)
{
    static const struct {
        uint8_t code4, type, code;
    } kinds[] = {{0, 1, 0}, {1, 1, 3}, {2, 4, 1}, {3, 1, 4}, {4, 2, 0}, {13, 1, 1}};

    *type = 1;
    *code = 0;
    for (unsigned i = 0; i < NJ_ARRAY_LEN(kinds); i++) {
        if (kinds[i].code4 == p->icmp_code) {
            *type = kinds[i].type;
            *code = kinds[i].code;
        }
    }
}

/* An ICMP error about one of our segments: its IP header and the following twenty bytes. */
static size_t build_icmp(uint8_t *to, const struct pkt *p, const struct wire_ends *ends)
{
    bool v6 = !nj_addr_is_v4(&ends->src);
    size_t n_ip = v6 ? IP6_BYTES : IP4_BYTES, n = 8 + n_ip + TCP_BYTES;
    uint8_t protocol = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
    uint8_t *icmp = to + n_ip, *quote = icmp + 8, *tcp = quote + n_ip;

    build_ip(to, n, protocol, 0, &ends->src, &ends->dst);
    memset(icmp, 0, n);
    icmp[0] = p->icmp_type;
    icmp[1] = p->icmp_code;
    if (v6)
        icmp6_kind(p, &icmp[0], &icmp[1]);
    w16(icmp + 6, p->icmp_mtu);
    build_ip(quote, TCP_BYTES + p->n_bytes, IPPROTO_TCP, 0, &ends->dst, &ends->src);
    w16(tcp, ends->dport);
    w16(tcp + 2, ends->sport);
    w32(tcp + 4, p->seq);
    tcp[12] = 0x50;
    tcp[13] = NJ_TCP_ACK;
    w16(icmp + 2, v6 ? ~l4_sum(to, protocol, n) : ~sum(icmp, n, 0));
    return n_ip + n;
}

size_t wire_build(uint8_t *to, const struct pkt *p, const struct wire_ends *ends,
                  const uint8_t *payload)
{
    if (p->is_icmp)
        return build_icmp(to, p, ends);
    size_t n_ip = nj_addr_is_v4(&ends->src) ? IP4_BYTES : IP6_BYTES;
    uint8_t *tcp = to + n_ip;
    size_t n_hdr = TCP_BYTES + build_options(tcp + TCP_BYTES, p);
    size_t n_tcp = n_hdr + p->n_bytes;

    build_ip(to, n_tcp, IPPROTO_TCP, p->ecn, &ends->src, &ends->dst);
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
    w16(tcp + 16, ~l4_sum(to, IPPROTO_TCP, n_tcp) ^ (p->bad_sum ? 0x5555u : 0));
    return n_ip + n_tcp;
}

/* --- sent packets ----------------------------------------------------------------------------- */

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

/* NULL, or the error in the IP header; *n_ip is its length. */
static const char *parse_ip(const uint8_t *b, size_t n, struct pkt *p, size_t *n_ip)
{
    bool v6 = n > 0 && b[0] >> 4 == 6;

    *n_ip = v6 ? IP6_BYTES : IP4_BYTES;
    if (n < *n_ip + TCP_BYTES)
        return "it is shorter than its headers";
    if (v6) {
        p->ecn = b[1] >> 4 & 3;
        return b[6] == IPPROTO_TCP && r16(b + 4) + IP6_BYTES == n ? NULL : "its IPv6 header lies";
    }
    p->ecn = b[1] & 3;
    if (b[0] != 0x45 || r16(b + 2) != n || b[9] != IPPROTO_TCP)
        return "it is no IP packet with a TCP segment";
    if (sum(b, IP4_BYTES, 0) != 0xffff)
        return "the checksum of its IP header is wrong";
    return b[6] & 0x40 ? NULL : "it may be fragmented (DF is not set)";
}

const char *wire_parse(const uint8_t *b, size_t n, struct pkt *p)
{
    size_t n_ip;

    memset(p, 0, sizeof *p);
    const char *wrong = parse_ip(b, n, p, &n_ip);
    if (wrong)
        return wrong;
    if (l4_sum(b, IPPROTO_TCP, n - n_ip) != 0xffff)
        return "its TCP checksum is wrong";
    const uint8_t *tcp = b + n_ip;
    size_t n_hdr = (size_t)(tcp[12] >> 4) * 4;
    if (n_hdr < TCP_BYTES || n_ip + n_hdr > n)
        return "its TCP header is longer than itself";
    p->sport = (uint16_t)r16(tcp);
    p->dport = (uint16_t)r16(tcp + 2);
    p->seq = r32(tcp + 4);
    p->ack = r32(tcp + 8);
    p->flags = tcp[13];
    p->win = r16(tcp + 14);
    p->has_win = true;
    p->urg = r16(tcp + 18);
    p->payload_off = (uint32_t)(n_ip + n_hdr);
    p->n_bytes = (uint32_t)(n - p->payload_off);
    if (!parse_options(tcp + TCP_BYTES, n_hdr - TCP_BYTES, p))
        return "its TCP options are malformed";
    return NULL;
}
