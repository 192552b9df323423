/* SPDX-License-Identifier: BSD-3-Clause */
/* Emit TCP, IP, Ethernet, ARP and ICMP headers (RFC 9293 3.1, RFC 791, RFC 8200). Headers are built
 * in a local struct and copied, because the destination may be unaligned. */
#include "wire/emit.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "wire/csum.h"
#include "wire/icmp_compat.h"
#include "wire/ip6.h"
#include "wire/tcp_opt.h"

_Static_assert(sizeof(struct rte_tcp_hdr) == NJ_TCP_HDR_BYTES, "the header file says 20");
_Static_assert(RTE_PKTMBUF_HEADROOM >= NJ_TCP_HDR_BYTES + NJ_TCP_OPTS_BYTES_MAX + NJ_L2L3_BYTES_MAX,
               "headers are written in front of the largest TCP header");

static uint8_t *prepend_room(struct rte_mbuf *m, uint16_t n_bytes)
{
    uint8_t *to = (uint8_t *)rte_pktmbuf_prepend(m, n_bytes);
    NJ_ASSERT(to);
    return to;
}

static inline void prepend(struct rte_mbuf *m, const void *hdr, uint16_t n_bytes)
{
    memcpy(prepend_room(m, n_bytes), hdr, n_bytes);
}

static uint8_t *put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
    return put_u16(put_u16(p, (uint16_t)(v >> 16)), (uint16_t)v);
}

/* Padding precedes an option, so that its last byte ends a 32-bit word and no EOL is needed.
 * SACK-permitted replaces the padding of timestamps. */
uint32_t nj_tcp_opts_bytes(const struct nj_tcp_opts *o)
{
    uint32_t n = 0;

    if (o->has_mss)
        n += NJ__OPT_MSS_BYTES;
    if (o->has_ts)
        n += 2 + NJ__OPT_TS_BYTES;
    else if (o->sack_permitted)
        n += 2 + NJ__OPT_SACK_PERMITTED_BYTES;
    if (o->has_wscale)
        n += 1 + NJ__OPT_WSCALE_BYTES;
    if (o->n_sack)
        n += 4 + o->n_sack * NJ__OPT_SACK_BLOCK_BYTES;
    return n;
}

/* Writes the options that nj_tcp_opts_bytes() counted; returns the end. */
static uint8_t *put_options(uint8_t *p, const struct nj_tcp_opts *o)
{
    if (o->has_mss) {
        *p++ = NJ__OPT_MSS;
        *p++ = NJ__OPT_MSS_BYTES;
        p = put_u16(p, o->mss);
    }
    if (o->has_ts || o->sack_permitted) {
        bool pad_before = !(o->has_ts && o->sack_permitted);
        if (pad_before) {
            *p++ = NJ__OPT_NOP;
            *p++ = NJ__OPT_NOP;
        }
        if (o->sack_permitted) {
            *p++ = NJ__OPT_SACK_PERMITTED;
            *p++ = NJ__OPT_SACK_PERMITTED_BYTES;
        }
        if (o->has_ts) {
            *p++ = NJ__OPT_TS;
            *p++ = NJ__OPT_TS_BYTES;
            p = put_u32(put_u32(p, o->ts_val), o->ts_ecr);
        }
    }
    if (o->has_wscale) {
        *p++ = NJ__OPT_NOP;
        *p++ = NJ__OPT_WSCALE;
        *p++ = NJ__OPT_WSCALE_BYTES;
        *p++ = o->wscale;
    }
    if (o->n_sack) {
        *p++ = NJ__OPT_NOP;
        *p++ = NJ__OPT_NOP;
        *p++ = NJ__OPT_SACK;
        *p++ = (uint8_t)(2 + o->n_sack * NJ__OPT_SACK_BLOCK_BYTES);
        for (uint32_t i = 0; i < o->n_sack && i < NJ_SACK_BLOCKS_MAX; i++)
            p = put_u32(put_u32(p, o->sack[i].first), o->sack[i].end);
    }
    return p;
}

/* Requests checksum offload, with the sum of the pseudo-header in the checksum field. With TSO the
 * device adds the length of each segment. */
static uint16_t prepare_offload(struct rte_mbuf *m, const struct nj_tcp_emit *e,
                                const struct nj_tx_offload *tx, uint16_t hdr_bytes)
{
    bool cut = e->tso_mss != 0;
    uint16_t seg_bytes = cut ? 0 : (uint16_t)(hdr_bytes + rte_pktmbuf_pkt_len(m));

    NJ_ASSERT(!cut || (tx->tso && rte_pktmbuf_pkt_len(m) <= tx->tso_bytes_max));
    bool v4 = nj_addr_is_v4(&e->tuple.local);
    m->ol_flags |= (v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6) | RTE_MBUF_F_TX_TCP_CKSUM;
    if (tx->ip_csum && v4)
        m->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
    if (cut)
        m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
    m->l4_len = hdr_bytes;
    m->tso_segsz = e->tso_mss;
    return nj__csum_fold(
        nj__csum_pseudo_of(&e->tuple.local, &e->tuple.remote, IPPROTO_TCP, seg_bytes));
}

/* put_options() for the usual case of timestamps only. Also returns the sum. */
static inline uint64_t put_timestamps(uint8_t *to, const struct nj_tcp_opts *o)
{
    const uint32_t word[] = {
        RTE_BE32(NJ__OPT_NOP << 24 | NJ__OPT_NOP << 16 | NJ__OPT_TS << 8 | NJ__OPT_TS_BYTES),
        rte_cpu_to_be_32(o->ts_val), rte_cpu_to_be_32(o->ts_ecr)};
    memcpy(to, word, sizeof word);
    return (uint64_t)word[0] + word[1] + word[2];
}

/* Writes the header without its checksum to `to`; returns its sum. Words are added before they are
 * stored: loads across recent smaller stores would stall. */
static uint64_t put_header(uint8_t *to, const struct nj_tcp_emit *e, uint16_t hdr_bytes)
{
    const struct nj_tcp_opts *o = &e->opts;
    const uint32_t word[] = {
        rte_cpu_to_be_32((uint32_t)e->tuple.lport << 16 | e->tuple.rport),
        rte_cpu_to_be_32(e->seq),
        rte_cpu_to_be_32(e->ack),
        rte_cpu_to_be_32((uint32_t)hdr_bytes / 4 << 28 | (uint32_t)e->flags << 16 | e->wnd),
        0, /* checksum, urgent pointer */
    };
    uint64_t sum = (uint64_t)word[0] + word[1] + word[2] + word[3];

    memcpy(to, word, sizeof word);
    to += sizeof word;
    if (nj_likely(o->has_ts && !o->sack_permitted &&
                  hdr_bytes == NJ_TCP_HDR_BYTES + 2 + NJ__OPT_TS_BYTES))
        return sum + put_timestamps(to, o);
    uint8_t *end = put_options(to, o);
    NJ_ASSERT(end == to + hdr_bytes - sizeof word);
    return nj__csum_add_bytes(sum, to, (size_t)(end - to));
}

/* The header has an even length, so the sum of the payload is added unchanged. */
static uint16_t software_csum(const struct rte_mbuf *m, const struct nj_tcp_emit *e,
                              uint16_t hdr_bytes, uint64_t sum)
{
    sum += nj__csum_pseudo_of(&e->tuple.local, &e->tuple.remote, IPPROTO_TCP,
                              (uint16_t)(hdr_bytes + rte_pktmbuf_pkt_len(m)));
    return (uint16_t)~nj__csum_fold(e->has_payload_sum ? sum + e->payload_sum
                                                       : nj__csum_add_mbuf(sum, m));
}

void nj_tcp_prepend(struct rte_mbuf *m, const struct nj_tcp_emit *e, const struct nj_tx_offload *tx)
{
    uint16_t hdr_bytes = (uint16_t)(NJ_TCP_HDR_BYTES + nj_tcp_opts_bytes(&e->opts));
    uint8_t *to = (uint8_t *)rte_pktmbuf_mtod(m, char *) - hdr_bytes;

    NJ_ASSERT(hdr_bytes + rte_pktmbuf_pkt_len(m) <= UINT16_MAX &&
              hdr_bytes <= NJ_TCP_HDR_BYTES + NJ_TCP_OPTS_BYTES_MAX);
    NJ_ASSERT(rte_pktmbuf_headroom(m) >= hdr_bytes);
    uint64_t sum = put_header(to, e, hdr_bytes);
    uint16_t cksum =
        tx->tcp_csum ? prepare_offload(m, e, tx, hdr_bytes) : software_csum(m, e, hdr_bytes, sum);
    memcpy(to + offsetof(struct rte_tcp_hdr, cksum), &cksum, sizeof cksum);
    prepend_room(m, hdr_bytes);
}

void nj_tcp_hdr_cache_save(struct nj_tcp_hdr_cache *head, const struct rte_mbuf *m,
                           const struct nj_tcp_emit *e)
{
    static const uint8_t none[sizeof(uint32_t)];
    uint32_t n = NJ_TCP_HDR_BYTES + nj_tcp_opts_bytes(&e->opts);
    uint8_t *to = head->bytes + sizeof head->bytes - n;

    memcpy(to, rte_pktmbuf_mtod(m, const void *), n);
    memcpy(to + offsetof(struct rte_tcp_hdr, sent_seq), none, sizeof(uint32_t));
    memcpy(to + offsetof(struct rte_tcp_hdr, cksum), none, sizeof(uint16_t));
    head->n_bytes = (uint8_t)n;
    head->sum = nj__csum_pseudo_of(&e->tuple.local, &e->tuple.remote, IPPROTO_TCP, 0);
    head->sum = nj__csum_add_bytes(head->sum, to, n);
}

void nj_tcp_hdr_cache_prepend(struct rte_mbuf *m, const struct nj_tcp_hdr_cache *head, uint32_t seq,
                              uint64_t payload_sum)
{
    uint32_t number = rte_cpu_to_be_32(seq), n_bytes = head->n_bytes + rte_pktmbuf_pkt_len(m);
    uint64_t sum = head->sum + payload_sum + number + rte_cpu_to_be_16((uint16_t)n_bytes);
    uint16_t cksum = (uint16_t)~nj__csum_fold(sum);

    NJ_ASSERT(n_bytes <= UINT16_MAX);
    NJ_ASSERT(rte_pktmbuf_headroom(m) >= NJ_TCP_HDR_BYTES_MAX);
    /* A copy of constant length is faster than one of the exact length. */
    memcpy(rte_pktmbuf_mtod(m, uint8_t *) - NJ_TCP_HDR_BYTES_MAX, head->bytes,
           NJ_TCP_HDR_BYTES_MAX);
    uint8_t *to = prepend_room(m, head->n_bytes);
    memcpy(to + offsetof(struct rte_tcp_hdr, sent_seq), &number, sizeof number);
    memcpy(to + offsetof(struct rte_tcp_hdr, cksum), &cksum, sizeof cksum);
}

void nj_ipv4_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                     uint16_t ident)
{
    uint32_t total_bytes = sizeof(struct rte_ipv4_hdr) + rte_pktmbuf_pkt_len(m);
    struct rte_ipv4_hdr h = {
        .version_ihl = RTE_IPV4_VHL_DEF,
        .type_of_service = ip->ecn,
        .total_length = rte_cpu_to_be_16((uint16_t)total_bytes),
        .packet_id = rte_cpu_to_be_16(ident),
        .fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
        .time_to_live = 64,
        .next_proto_id = protocol,
        .src_addr = nj_addr_to_v4(&ip->src),
        .dst_addr = nj_addr_to_v4(&ip->dst),
    };

    NJ_ASSERT(total_bytes <= UINT16_MAX);
    if (!(m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM))
        h.hdr_checksum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, &h, sizeof h));
    if (m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM)
        m->l3_len = sizeof h;
    prepend(m, &h, sizeof h);
}

void nj_ipv6_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                     uint8_t hop_limit)
{
    uint32_t payload_bytes = rte_pktmbuf_pkt_len(m);
    struct rte_ipv6_hdr h = {
        .vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)ip->ecn << RTE_IPV6_HDR_TC_SHIFT),
        .payload_len = rte_cpu_to_be_16((uint16_t)payload_bytes),
        .proto = protocol,
        .hop_limits = hop_limit,
    };

    NJ_ASSERT(payload_bytes <= UINT16_MAX);
    memcpy(&h.src_addr, ip->src.b, sizeof h.src_addr);
    memcpy(&h.dst_addr, ip->dst.b, sizeof h.dst_addr);
    if (m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM)
        m->l3_len = sizeof h;
    prepend(m, &h, sizeof h);
}

void nj_ip_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                   uint16_t ident)
{
    if (nj_addr_is_v4(&ip->dst))
        nj_ipv4_prepend(m, ip, protocol, ident);
    else
        nj_ipv6_prepend(m, ip, protocol, NJ_IP6_HOP_LIMIT);
}

void nj_eth_prepend(struct rte_mbuf *m, const struct rte_ether_addr *dst,
                    const struct rte_ether_addr *src, uint16_t type)
{
    struct rte_ether_hdr h = {
        .dst_addr = *dst,
        .src_addr = *src,
        .ether_type = rte_cpu_to_be_16(type),
    };
    prepend(m, &h, sizeof h);
}

void nj_eth_prepend_from_iface(struct rte_mbuf *m, const struct rte_ether_addr *dst,
                               const struct nj_iface *from, uint16_t type)
{
    uint32_t n_bytes = rte_pktmbuf_pkt_len(m);

    if (from->vlan != 0) {
        /* The EtherType of the payload moves behind the tag. */
        struct rte_vlan_hdr tag = {rte_cpu_to_be_16(from->vlan), rte_cpu_to_be_16(type)};
        prepend(m, &tag, sizeof tag);
        type = RTE_ETHER_TYPE_VLAN;
    }
    nj_eth_prepend(m, dst, &from->mac, type);
    if (m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM)
        m->l2_len = rte_pktmbuf_pkt_len(m) - n_bytes;
}

void nj_l2l3_cache_save(struct nj_l2l3_cache *head, const struct rte_mbuf *m, uint32_t n_segment,
                        bool v4)
{
    uint32_t n_ip = v4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
    uint32_t n = rte_pktmbuf_pkt_len(m) - n_segment;
    uint8_t *to = head->bytes + sizeof head->bytes - n;

    NJ_ASSERT(n_ip <= n && n <= sizeof head->bytes);
    memcpy(to, rte_pktmbuf_mtod(m, const void *), n);
    head->v4 = v4;
    head->n_bytes = (uint8_t)n;
    head->l2_bytes = (uint8_t)(n - n_ip);
    if (v4) {
        struct rte_ipv4_hdr h;
        memcpy(&h, to + head->l2_bytes, sizeof h);
        h.total_length = h.packet_id = h.hdr_checksum = 0;
        head->sum = nj__csum_add_bytes(0, &h, sizeof h);
    }
}

/* Writes the varying fields of the IPv4 header at `ip`: total length, identification and
 * checksum. */
static void put_ip4_length_and_id(uint8_t *ip, const struct rte_mbuf *m,
                                  const struct nj_l2l3_cache *head, uint16_t ident)
{
    uint32_t n_bytes = rte_pktmbuf_pkt_len(m) - head->l2_bytes;
    const uint16_t word[] = {rte_cpu_to_be_16((uint16_t)n_bytes), rte_cpu_to_be_16(ident)};
    uint16_t cksum = 0;

    if (!(m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM))
        cksum = (uint16_t)~nj__csum_fold(head->sum + word[0] + word[1]);
    memcpy(ip + offsetof(struct rte_ipv4_hdr, total_length), word, sizeof word);
    memcpy(ip + offsetof(struct rte_ipv4_hdr, hdr_checksum), &cksum, sizeof cksum);
}

void nj_l2l3_cache_prepend(struct rte_mbuf *m, const struct nj_l2l3_cache *head, uint16_t ident)
{
    uint32_t n_segment = rte_pktmbuf_pkt_len(m);
    uint16_t payload_len = rte_cpu_to_be_16((uint16_t)n_segment);

    NJ_ASSERT(head->n_bytes - head->l2_bytes + n_segment <= UINT16_MAX);
    NJ_ASSERT(rte_pktmbuf_headroom(m) >= NJ_L2L3_BYTES_MAX);
    /* A copy of constant length is faster than one of the exact length. */
    memcpy(rte_pktmbuf_mtod(m, uint8_t *) - NJ_L2L3_BYTES_MAX, head->bytes, NJ_L2L3_BYTES_MAX);
    uint8_t *ip = prepend_room(m, head->n_bytes) + head->l2_bytes;
    if (head->v4)
        put_ip4_length_and_id(ip, m, head, ident);
    else
        memcpy(ip + offsetof(struct rte_ipv6_hdr, payload_len), &payload_len, sizeof payload_len);
    if (m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM) {
        m->l2_len = head->l2_bytes;
        m->l3_len = head->n_bytes - head->l2_bytes;
    }
}

/* Appends `n_bytes` to the empty mbuf `m` and returns their address. */
static uint8_t *fill(struct rte_mbuf *m, const void *data, uint16_t n_bytes)
{
    NJ_ASSERT(rte_pktmbuf_pkt_len(m) == 0);
    uint8_t *to = (uint8_t *)rte_pktmbuf_append(m, n_bytes);
    NJ_ASSERT(to);
    return memcpy(to, data, n_bytes);
}

void nj_arp_build(struct rte_mbuf *m, bool request, const struct rte_ether_addr *mac,
                  const struct nj_addr *ip, const struct rte_ether_addr *target_mac,
                  const struct nj_addr *target_ip)
{
    struct rte_arp_hdr h = {
        .arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
        .arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
        .arp_hlen = RTE_ETHER_ADDR_LEN,
        .arp_plen = sizeof(uint32_t),
        .arp_opcode = request ? RTE_BE16(RTE_ARP_OP_REQUEST) : RTE_BE16(RTE_ARP_OP_REPLY),
        .arp_data =
            {
                .arp_sha = *mac,
                .arp_sip = nj_addr_to_v4(ip),
                .arp_tip = nj_addr_to_v4(target_ip),
            },
    };
    if (target_mac)
        h.arp_data.arp_tha = *target_mac;
    fill(m, &h, sizeof h);
}

void nj_icmp_echo_reply_build(struct rte_mbuf *m, const uint8_t *request, uint32_t n_bytes)
{
    struct rte_icmp_hdr h;

    NJ_ASSERT(n_bytes >= sizeof h && n_bytes <= UINT16_MAX);
    uint8_t *to = fill(m, request, (uint16_t)n_bytes);
    memcpy(&h, to, sizeof h);
    h.icmp_type = RTE_ICMP_TYPE_ECHO_REPLY;
    h.icmp_code = 0;
    h.icmp_cksum = 0;
    memcpy(to, &h, sizeof h);
    h.icmp_cksum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, to, n_bytes));
    memcpy(to, &h, sizeof h);
}
