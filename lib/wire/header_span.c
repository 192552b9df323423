/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/header_span.h"

#include <netinet/in.h>

#include "base/big_endian.h"

#define ETHER_BYTES 14u
#define TAG_BYTES   4u
#define ARP_BYTES   28u
#define IP4_BYTES   20u
#define IP6_BYTES   40u
#define TAGS_MAX    2u
#define ICMP_BYTES  8u

#define TYPE_IP4    0x0800u
#define TYPE_ARP    0x0806u
#define TYPE_TAG    0x8100u
#define TYPE_TAG_AD 0x88a8u
#define TYPE_IP6    0x86ddu

#define ND_FIRST   133u
#define ND_LAST    137u
#define ND_SOLICIT 135u
#define ND_ADVERT  136u

struct frame {
    const uint8_t *p;
    uint32_t n;
    struct nj_header_span span;
};

/* The headers reach to `end`; false: the frame ends before. */
static bool reach(struct frame *f, uint32_t end)
{
    f->span.n_bytes = nj_min_u32(end, f->n);
    return end <= f->n;
}

static struct nj_addr addr4(const uint8_t *p)
{
    uint32_t be;

    memcpy(&be, p, sizeof be);
    return nj_addr_from_v4(be);
}

static struct nj_addr addr6(const uint8_t *p)
{
    struct nj_addr a;

    memcpy(a.b, p, sizeof a.b);
    return a;
}

static void read_arp(struct frame *f, uint32_t at)
{
    if (!reach(f, at + ARP_BYTES))
        return;
    f->span.has_addrs = true;
    f->span.src = addr4(f->p + at + 14);
    f->span.dst = addr4(f->p + at + 24);
}

static void read_icmp6(struct frame *f, uint32_t at, uint32_t end)
{
    if (!reach(f, at + ICMP_BYTES))
        return;
    uint8_t type = f->p[at];
    if (type < ND_FIRST || type > ND_LAST)
        return;
    reach(f, nj_max_u32(at + ICMP_BYTES, end));
    if (at + ICMP_BYTES + 16 > f->n)
        return;
    if (type == ND_SOLICIT)
        f->span.dst = addr6(f->p + at + ICMP_BYTES);
    else if (type == ND_ADVERT)
        f->span.src = addr6(f->p + at + ICMP_BYTES);
}

/* `end`: of the IP packet. */
static void read_transport(struct frame *f, uint8_t protocol, uint32_t at, uint32_t end)
{
    switch (protocol) {
    case IPPROTO_TCP:
        if (reach(f, at + 20))
            reach(f, at + nj_max_u32(20, 4u * (f->p[at + 12] >> 4)));
        break;
    case IPPROTO_UDP:
    case IPPROTO_ICMP:
        reach(f, at + 8);
        break;
    case IPPROTO_ICMPV6:
        read_icmp6(f, at, end);
        break;
    default:
        break;
    }
}

static void read_ip4(struct frame *f, uint32_t at)
{
    if (!reach(f, at + IP4_BYTES))
        return;
    const uint8_t *ip = f->p + at;
    uint32_t n_bytes = 4u * (ip[0] & 0x0fu);
    f->span.has_addrs = true;
    f->span.src = addr4(ip + 12);
    f->span.dst = addr4(ip + 16);
    if (n_bytes < IP4_BYTES || !reach(f, at + n_bytes))
        return;
    if ((nj_get_be16(ip + 6) & 0x1fffu) == 0) /* else a fragment that has only payload */
        read_transport(f, ip[9], at + n_bytes, at + nj_get_be16(ip + 2));
}

static bool is_extension(uint8_t next)
{
    return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
           next == IPPROTO_FRAGMENT;
}

static void read_ip6(struct frame *f, uint32_t at)
{
    if (!reach(f, at + IP6_BYTES))
        return;
    const uint8_t *ip = f->p + at;
    uint32_t end = at + IP6_BYTES + nj_get_be16(ip + 4);
    uint8_t next = ip[6];
    f->span.has_addrs = true;
    f->span.src = addr6(ip + 8);
    f->span.dst = addr6(ip + 24);
    at += IP6_BYTES;
    while (is_extension(next)) {
        bool is_fragment = next == IPPROTO_FRAGMENT;
        if (!reach(f, at + 8))
            return;
        if (is_fragment && (nj_get_be16(f->p + at + 2) & 0xfff8u) != 0)
            return;
        next = f->p[at];
        at += is_fragment ? 8u : 8u * (f->p[at + 1] + 1u);
        if (!reach(f, at))
            return;
    }
    read_transport(f, next, at, end);
}

struct nj_header_span nj_header_span(const uint8_t *frame, uint32_t n)
{
    struct frame f = {.p = frame, .n = n};
    uint32_t at = ETHER_BYTES;

    if (!reach(&f, at))
        return f.span;
    uint16_t type = nj_get_be16(frame + 12);
    for (uint32_t i = 0; i < TAGS_MAX && (type == TYPE_TAG || type == TYPE_TAG_AD); i++) {
        at += TAG_BYTES;
        if (!reach(&f, at))
            return f.span;
        type = nj_get_be16(frame + at - 2);
    }
    if (type == TYPE_ARP)
        read_arp(&f, at);
    else if (type == TYPE_IP4)
        read_ip4(&f, at);
    else if (type == TYPE_IP6)
        read_ip6(&f, at);
    return f.span;
}
