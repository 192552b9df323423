/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses Ethernet, ARP (RFC 826), IPv4 (RFC 791) and ICMP (RFC 792). TCP is in tcp_parse.c.
 *
 * Only the first segment of an mbuf is parsed. Headers are copied before they are read, since a
 * frame may start at any address. Each parser gets exactly the bytes of its header and payload, and
 * returns a drop reason (NJ_C_...) or OK.
 */
#include "wire/packet.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/compiler.h"
#include "telem/counters_packet.h"
#include "telem/counters_tcp.h"
#include "wire/csum.h"
#include "wire/icmp_compat.h"
#include "wire/icmp4_error_parse.h"
#include "wire/ip6.h"
#include "wire/ip6_parse.h"
#include "wire/tcp_parse.h"

#define OK NJ_COUNTERS_MAX

/* The part of a frame that is not parsed yet. */
struct parse_view {
    const struct rte_mbuf *m;
    const uint8_t *p;
    uint32_t n_bytes;
    uint32_t off; /* of `p`, from the start of the mbuf's data */
    uint8_t ecn;  /* of the IP header, after it was parsed */
};

static void advance(struct parse_view *v, uint32_t n_bytes)
{
    v->p += n_bytes;
    v->off += n_bytes;
    v->n_bytes -= n_bytes;
}

/* Did the device verify the checksum that `mask` selects? NONE means that the data is intact and
 * the field was never filled in, as between virtual machines of one host. */
static bool device_checked(const struct rte_mbuf *m, uint64_t mask, uint64_t good, uint64_t none)
{
    return (m->ol_flags & mask) == good || (m->ol_flags & mask) == none;
}

/* RFC 826, for Ethernet and IPv4 only. */
static __rte_noinline nj_counter parse_arp(const struct nj_iface *iface, const struct parse_view *v,
                                           const struct rte_ether_addr *eth_src,
                                           struct nj_packet *out)
{
    struct rte_arp_hdr h;

    if (v->n_bytes < sizeof h)
        return NJ_C_drop_arp_bad;
    memcpy(&h, v->p, sizeof h);

    if (h.arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
        h.arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) || h.arp_hlen != RTE_ETHER_ADDR_LEN ||
        h.arp_plen != sizeof h.arp_data.arp_sip)
        return NJ_C_drop_arp_bad;
    bool request = h.arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
    if (!request && h.arp_opcode != RTE_BE16(RTE_ARP_OP_REPLY))
        return NJ_C_drop_arp_bad;

    /* Reject multicast and zero MACs, and a sender MAC that differs from the Ethernet source. */
    if (!rte_is_valid_assigned_ether_addr(&h.arp_data.arp_sha) ||
        !rte_is_same_ether_addr(&h.arp_data.arp_sha, eth_src))
        return NJ_C_drop_arp_bad;
    /* An address probe (RFC 5227 2.1.1): its sender has no address yet. */
    bool probe = request && h.arp_data.arp_sip == 0;
    const struct nj_addr ip = nj_addr_from_v4(h.arp_data.arp_sip);
    /* Another host uses our address (RFC 5227 2.4). */
    bool conflict =
        nj_iface_has_addr(iface, &ip) && !rte_is_same_ether_addr(&h.arp_data.arp_sha, &iface->mac);
    if (!probe && !conflict && !nj_ip4_source_ok(iface, h.arp_data.arp_sip))
        return NJ_C_drop_arp_bad;

    out->kind = NJ_PACKET_ARP;
    out->arp.request = request;
    out->arp.mac = h.arp_data.arp_sha;
    out->arp.ip = ip;
    out->arp.target = nj_addr_from_v4(h.arp_data.arp_tip);
    return OK;
}

/* RFC 792: echo requests (type 8, code 0), and errors about our packets. */
static nj_counter parse_icmp(const struct nj_iface *iface, const struct parse_view *v,
                             struct nj_packet *out)
{
    struct rte_icmp_hdr h;

    if (v->n_bytes < sizeof h)
        return NJ_C_drop_icmp_bad;
    memcpy(&h, v->p, sizeof h);
    if (nj__csum_fold(nj__csum_add_bytes(0, v->p, v->n_bytes)) != 0xffff)
        return NJ_C_drop_icmp_bad;
    if (h.icmp_type != RTE_ICMP_TYPE_ECHO_REQUEST)
        return nj__icmp4_parse_error(v->p, v->n_bytes, out);
    if (h.icmp_code != 0)
        return NJ_C_drop_icmp_type;
    /* The reply has the length of the request and is sent in one packet. A device that joins
     * packets could deliver a longer one. */
    if (v->n_bytes + sizeof(struct rte_ipv4_hdr) > iface->mtu)
        return NJ_C_drop_icmp_bad;

    out->kind = NJ_PACKET_ICMP_ECHO;
    out->icmp.off = v->off;
    out->icmp.n_bytes = v->n_bytes;
    return OK;
}

static bool tcp_checksum_ok(const struct parse_view *v, const struct nj_packet *out)
{
    if (device_checked(v->m, RTE_MBUF_F_RX_L4_CKSUM_MASK, RTE_MBUF_F_RX_L4_CKSUM_GOOD,
                       RTE_MBUF_F_RX_L4_CKSUM_NONE))
        return true;
    uint64_t sum =
        nj__csum_pseudo_of(&out->ip_src, &out->ip_dst, IPPROTO_TCP, (uint16_t)v->n_bytes);
    return nj__csum_fold(nj__csum_add_bulk(sum, v->p, v->n_bytes)) == 0xffff;
}

static nj_counter parse_tcp(const struct parse_view *v, struct nj_packet *out)
{
    struct nj_seg *seg = &out->tcp;

    if (!nj__tcp_parse_header(v->p, v->n_bytes, seg))
        return NJ_C_drop_tcp_header;
    if (!tcp_checksum_ok(v, out))
        return NJ_C_drop_tcp_checksum;
    if (!nj__tcp_parse_options(v->p + sizeof(struct rte_tcp_hdr),
                               seg->payload_off - sizeof(struct rte_tcp_hdr),
                               seg->flags & NJ_TCP_SYN, &seg->opts))
        return NJ_C_drop_tcp_options;

    out->kind = NJ_PACKET_TCP;
    seg->payload_off += v->off;
    seg->tuple.remote = out->ip_src;
    seg->tuple.local = out->ip_dst;
    seg->ecn = v->ecn;
    return OK;
}

/* Validates the header and narrows `v` to the payload, without options and Ethernet padding. */
static nj_counter strip_ipv4(struct parse_view *v, struct rte_ipv4_hdr *h)
{
    if (v->n_bytes < sizeof *h)
        return NJ_C_drop_ip_header;
    memcpy(h, v->p, sizeof *h);

    uint32_t hdr_bytes = rte_ipv4_hdr_len(h);
    uint32_t total_bytes = rte_be_to_cpu_16(h->total_length);
    if (h->version_ihl >> 4 != IPVERSION || hdr_bytes < sizeof *h || total_bytes < hdr_bytes ||
        total_bytes > v->n_bytes)
        return NJ_C_drop_ip_header;
    if (!device_checked(v->m, RTE_MBUF_F_RX_IP_CKSUM_MASK, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
                        RTE_MBUF_F_RX_IP_CKSUM_NONE) &&
        nj__csum_fold(nj__csum_add_bytes(0, v->p, hdr_bytes)) != 0xffff)
        return NJ_C_drop_ip_checksum;
    if (h->time_to_live == 0)
        return NJ_C_drop_ip_header;

    v->n_bytes = total_bytes;
    v->ecn = h->type_of_service & NJ_ECN_CE;
    advance(v, hdr_bytes);
    return OK;
}

/* A fragment; `v` is the part after its header (RFC 791 3.2). The reassembled packet must fit in
 * one mbuf, like the packet of one frame. */
static nj_counter parse_fragment(const struct nj_iface *iface, const struct parse_view *v,
                                 const struct rte_ipv4_hdr *h, struct nj_packet *out)
{
    uint16_t field = rte_be_to_cpu_16(h->fragment_offset);
    uint32_t hdr_bytes = rte_ipv4_hdr_len(h);
    uint32_t first = (field & RTE_IPV4_HDR_OFFSET_MASK) * RTE_IPV4_HDR_OFFSET_UNITS;
    uint32_t end = first + v->n_bytes;
    bool more = field & RTE_IPV4_HDR_MF_FLAG;

    if (end == first || (more && v->n_bytes % RTE_IPV4_HDR_OFFSET_UNITS != 0) ||
        hdr_bytes + end > iface->mtu)
        return NJ_C_drop_ip_fragment;
    out->kind = NJ_PACKET_FRAGMENT;
    out->fragment = (struct nj_fragment){.id = rte_be_to_cpu_16(h->packet_id),
                                         .protocol = h->next_proto_id,
                                         .ecn = v->ecn,
                                         .more = more,
                                         .ip_off = (uint8_t)(v->off - hdr_bytes),
                                         .hdr_bytes = (uint16_t)hdr_bytes,
                                         .first = first,
                                         .end = end};
    return OK;
}

/* RFC 791, RFC 1122 3.2.1. */
static nj_counter parse_ipv4(const struct nj_iface *iface, struct parse_view *v,
                             struct nj_packet *out)
{
    struct rte_ipv4_hdr h;
    nj_counter why = strip_ipv4(v, &h);

    if (why != OK)
        return why;
    out->ip_src = nj_addr_from_v4(h.src_addr);
    out->ip_dst = nj_addr_from_v4(h.dst_addr);
    if (!nj_iface_has_addr(iface, &out->ip_dst))
        return NJ_C_drop_ip_dst;
    if (!nj_ip4_source_ok(iface, h.src_addr))
        return NJ_C_drop_ip_src;
    if (h.next_proto_id != IPPROTO_TCP && h.next_proto_id != IPPROTO_ICMP)
        return NJ_C_drop_ip_protocol;

    if (nj_unlikely(h.fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)))
        return parse_fragment(iface, v, &h, out);
    return h.next_proto_id == IPPROTO_TCP ? parse_tcp(v, out) : parse_icmp(iface, v, out);
}

/* The VLAN id of a frame, from the tag that the device stripped or the one after the addresses
 * (IEEE 802.1Q). 0: untagged, or a priority tag. A second or truncated tag remains and is an
 * unknown EtherType. */
static uint16_t strip_vlan(struct parse_view *v, rte_be16_t *ether_type)
{
    struct rte_vlan_hdr h;

    if (v->m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
        return v->m->vlan_tci & RTE_ETHER_MAX_VLAN_ID;
    if (*ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN) || v->n_bytes < sizeof h)
        return 0;
    memcpy(&h, v->p, sizeof h);
    advance(v, sizeof h);
    *ether_type = h.eth_proto;
    return rte_be_to_cpu_16(h.vlan_tci) & RTE_ETHER_MAX_VLAN_ID;
}

/* RFC 8200; the headers themselves are in ip6_parse.c. */
static nj_counter parse_ipv6(const struct nj_iface *iface, struct parse_view *v, bool group,
                             struct nj_packet *out)
{
    struct nj__ip6_payload load;
    nj_counter why = nj__ip6_parse(iface, v->p, v->n_bytes, out, &load);

    if (group && !nj_ip6_is_multicast(&out->ip_dst) && why != NJ_C_drop_ip_header) {
        out->kind = NJ_PACKET_DROP;
        return NJ_C_drop_eth_dst; /* as for IPv4: link-layer multicast */
    }
    if (why != OK) {
        if (out->kind == NJ_PACKET_PARAM_PROBLEM)
            out->problem.off += v->off;
        return why;
    }
    advance(v, load.off);
    v->n_bytes = load.n_bytes;
    v->ecn = load.ecn;
    if (load.protocol == IPPROTO_ICMPV6)
        return nj__icmp6_parse(iface, v->p, &load, v->off, out);
    return nj_ip6_is_multicast(&out->ip_dst) ? NJ_C_drop_ip_dst : parse_tcp(v, out);
}

/* Is it an IPv6 multicast frame? The IP destination then decides whether we joined the group (RFC
 * 2464 7). */
static bool is_ip6_multicast_frame(const struct nj_iface *iface, const struct rte_ether_hdr *h)
{
    return iface->ip6 && h->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) &&
           h->dst_addr.addr_bytes[0] == 0x33 && h->dst_addr.addr_bytes[1] == 0x33;
}

static nj_counter parse_eth(const struct nj_iface *iface, struct parse_view *v,
                            struct nj_packet *out)
{
    struct rte_ether_hdr h;

    if (v->n_bytes < sizeof h)
        return NJ_C_drop_eth_short;
    memcpy(&h, v->p, sizeof h);
    advance(v, sizeof h);

    uint16_t vlan = strip_vlan(v, &h.ether_type);
    bool ours = rte_is_same_ether_addr(&h.dst_addr, &iface->mac);
    if (!ours && !rte_is_broadcast_ether_addr(&h.dst_addr) && !is_ip6_multicast_frame(iface, &h))
        return NJ_C_drop_eth_dst;
    if (vlan != iface->vlan)
        return NJ_C_drop_vlan;
    switch (h.ether_type) {
    case RTE_BE16(RTE_ETHER_TYPE_ARP):
        return parse_arp(iface, v, &h.src_addr, out);
    case RTE_BE16(RTE_ETHER_TYPE_IPV4):
        /* Never reply to a link-layer broadcast (RFC 1122 3.3.6 and 3.2.2.6). */
        return ours ? parse_ipv4(iface, v, out) : NJ_C_drop_eth_dst;
    case RTE_BE16(RTE_ETHER_TYPE_IPV6):
        return iface->ip6 ? parse_ipv6(iface, v, !ours, out) : NJ_C_drop_eth_type;
    default:
        return NJ_C_drop_eth_type;
    }
}

void nj_packet_parse(const struct nj_iface *iface, const struct rte_mbuf *m, struct nj_packet *out)
{
    struct parse_view v = {m, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, 0, 0};

    out->kind = NJ_PACKET_DROP;
    /* TCP's queues link mbufs by `next`, so a packet must have one mbuf, even if the second would
     * only hold padding. */
    out->drop = nj_unlikely(m->nb_segs > 1) ? NJ_C_drop_eth_long : parse_eth(iface, &v, out);
}
