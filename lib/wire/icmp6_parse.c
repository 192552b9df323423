/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses ICMPv6 (RFC 4443): errors, echo, neighbour discovery (RFC 4861) and multicast listener
 * queries (RFC 3810). */
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>

#include "base/big_endian.h"
#include "telem/counters_packet.h"
#include "wire/csum.h"
#include "wire/icmp6.h"
#include "wire/icmp6_type.h"
#include "wire/ip6.h"
#include "wire/ip6_parse.h"

#define OK NJ_COUNTERS_MAX

struct message {
    const uint8_t *p;
    uint32_t n_bytes;
    const struct nj__ip6_payload *ip;
    bool to_multicast;
};

static struct nj_addr get_addr(const void *p)
{
    struct nj_addr a;
    memcpy(a.b, p, sizeof a.b);
    return a;
}

/* --- errors -------------------------------------------------------------------------------- */

/* Classify as soft or hard error for TCP (RFC 5461 2). */
static bool classify_error(const uint8_t *p, struct nj_icmp_error *e)
{
    uint8_t code = p[1];

    switch (p[0]) {
    case NJ__ICMP6_UNREACHABLE:
        e->error_kind = code == 1 || code == 4 || code == 5 || code == 6 ? NJ_ICMP_HARD_ERROR
                                                                         : NJ_ICMP_SOFT_ERROR;
        return code <= 6;
    case NJ__ICMP6_TOO_BIG: /* the code is ignored (RFC 4443 3.2) */
        e->error_kind = NJ_ICMP_TOO_BIG;
        e->mtu = nj_get_be32(p + 4);
        return true;
    case NJ__ICMP6_TIME_EXCEEDED:
        e->error_kind = NJ_ICMP_SOFT_ERROR;
        return code <= 1;
    case NJ__ICMP6_PARAM_PROBLEM:
        e->error_kind = code == 1 ? NJ_ICMP_HARD_ERROR : NJ_ICMP_SOFT_ERROR;
        return code <= 2;
    default:
        return false;
    }
}

/* RFC 4443 2.4: the error quotes as much of our packet as fits. We send no extension headers
 * before TCP, so the quote has none. */
static nj_counter parse_error(const struct message *m, struct nj_packet *out)
{
    struct rte_ipv6_hdr quoted;
    struct nj_icmp_error e = {0};
    const uint8_t *tcp = m->p + NJ__ICMP6_HDR_BYTES + sizeof quoted;

    if (m->to_multicast || m->n_bytes < NJ__ICMP6_HDR_BYTES + sizeof quoted + 8)
        return NJ_C_drop_icmp_bad;
    memcpy(&quoted, m->p + NJ__ICMP6_HDR_BYTES, sizeof quoted);
    if (!classify_error(m->p, &e) || rte_be_to_cpu_32(quoted.vtc_flow) >> 28 != 6)
        return NJ_C_drop_icmp_bad;
    if (quoted.proto != IPPROTO_TCP)
        return NJ_C_drop_icmp_type;
    e.tuple.local = get_addr(&quoted.src_addr);
    e.tuple.remote = get_addr(&quoted.dst_addr);
    /* The error must be addressed to the sender of the quoted packet. */
    if (!nj_addr_eq(&e.tuple.local, &out->ip_dst) || nj_addr_is_v4(&e.tuple.remote))
        return NJ_C_drop_icmp_bad;
    e.tuple.lport = nj_get_be16(tcp);
    e.tuple.rport = nj_get_be16(tcp + 2);
    e.seq = nj_get_be32(tcp + 4);
    out->kind = NJ_PACKET_ICMP_ERROR;
    out->icmp_error = e;
    return OK;
}

/* --- neighbour discovery ------------------------------------------------------------------- */

/* Parses the options after the first `at` bytes. False if a length is 0 or exceeds the message
 * (RFC 4861 7.1), or a MAC address is not a unicast address. */
static bool read_options(const struct message *m, uint32_t at, uint8_t mac_kind, struct nj_nd *nd)
{
    while (at < m->n_bytes) {
        const uint8_t *o = m->p + at;
        if (m->n_bytes - at < 8 || o[1] == 0 || o[1] * 8u > m->n_bytes - at)
            return false;
        if (o[0] == mac_kind && o[1] == 1) {
            memcpy(&nd->mac, o + 2, sizeof nd->mac);
            nd->has_mac = true;
            if (!rte_is_valid_assigned_ether_addr(&nd->mac))
                return false;
        }
        if (o[0] == NJ__ND_OPT_NONCE && o[1] == 1) {
            memcpy(nd->nonce, o + 2, sizeof nd->nonce);
            nd->has_nonce = true;
        }
        at += o[1] * 8u;
    }
    return true;
}

/* RFC 4861 7.1.1. */
static bool parse_solicit(const struct message *m, const struct nj_packet *out, struct nj_nd *nd)
{
    nd->kind = NJ_ND_SOLICIT;
    if (m->n_bytes < NJ__ND_ADVERT_BYTES)
        return false;
    nd->target = get_addr(m->p + 8);
    if (nj_ip6_is_multicast(&nd->target) ||
        !read_options(m, NJ__ND_ADVERT_BYTES, NJ__ND_OPT_SOURCE_MAC, nd))
        return false;
    struct nj_addr group = nj_ip6_solicited_node(&nd->target);
    bool anonymous = nj_ip6_is_unspecified(&out->ip_src);
    return !anonymous || (!nd->has_mac && nj_addr_eq(&out->ip_dst, &group));
}

/* RFC 4861 7.1.2. */
static bool parse_advert(const struct message *m, struct nj_nd *nd)
{
    nd->kind = NJ_ND_ADVERT;
    if (m->n_bytes < NJ__ND_ADVERT_BYTES)
        return false;
    nd->router = m->p[4] & 0x80;
    nd->solicited = m->p[4] & 0x40;
    nd->override = m->p[4] & 0x20;
    nd->target = get_addr(m->p + 8);
    return !nj_ip6_is_multicast(&nd->target) && !(m->to_multicast && nd->solicited) &&
           read_options(m, NJ__ND_ADVERT_BYTES, NJ__ND_OPT_TARGET_MAC, nd);
}

/* RFC 4861 6.1.2. */
static bool parse_router_advert(const struct message *m, const struct nj_packet *out,
                                struct nj_nd *nd)
{
    nd->kind = NJ_ND_ROUTER_ADVERT;
    return m->n_bytes >= NJ__ND_ROUTER_ADVERT_BYTES && nj_ip6_is_link_local(&out->ip_src) &&
           read_options(m, NJ__ND_ROUTER_ADVERT_BYTES, NJ__ND_OPT_SOURCE_MAC, nd);
}

static nj_counter parse_nd(const struct message *m, uint32_t off, struct nj_packet *out)
{
    struct nj_nd *nd = &out->nd;
    bool ok = false;

    *nd = (struct nj_nd){.off = off, .n_bytes = m->n_bytes};
    if (m->p[0] == NJ__ICMP6_NEIGH_SOLICIT)
        ok = parse_solicit(m, out, nd);
    else if (m->p[0] == NJ__ICMP6_NEIGH_ADVERT)
        ok = parse_advert(m, nd);
    else
        ok = parse_router_advert(m, out, nd);
    /* A router would have decremented the hop limit, so the packet is from this link (RFC 4861
     * 7.1). */
    if (!ok || m->ip->hop_limit != 255 || m->p[1] != 0)
        return NJ_C_drop_nd_bad;
    out->kind = NJ_PACKET_ND;
    return OK;
}

/* RFC 3810 5.1.14, 6.2, and RFC 2710 5 for the older form. */
static nj_counter parse_mld_query(const struct message *m, uint32_t off, struct nj_packet *out)
{
    if (m->n_bytes < NJ__MLD_BYTES || m->ip->hop_limit != 1 || !m->ip->router_alert ||
        !nj_ip6_is_link_local(&out->ip_src))
        return NJ_C_drop_nd_bad;
    out->nd = (struct nj_nd){.kind = NJ_ND_LISTENER_QUERY,
                             .off = off,
                             .n_bytes = m->n_bytes,
                             .mldv1_query = m->n_bytes < NJ__MLD2_QUERY_BYTES,
                             .delay_ms = nj_get_be16(m->p + 4),
                             .target = get_addr(m->p + 8)};
    /* Values from 32768 on are floating-point numbers (RFC 3810 5.1.3); a minute suffices. */
    if (out->nd.delay_ms >= 32768)
        out->nd.delay_ms = 32767;
    out->kind = NJ_PACKET_ND;
    return OK;
}

void nj_ra_parse(struct nj_ra *ra, const uint8_t *msg, uint32_t n_bytes)
{
    memset(ra, 0, sizeof *ra);
    ra->lifetime_s = nj_get_be16(msg + 6);
    ra->reachable_ms = nj_get_be32(msg + 8);
    ra->retrans_ms = nj_get_be32(msg + 12);
    for (uint32_t at = NJ__ND_ROUTER_ADVERT_BYTES; at < n_bytes; at += msg[at + 1] * 8u) {
        const uint8_t *o = msg + at;
        if (o[0] == NJ__ND_OPT_MTU && o[1] == 1)
            ra->mtu = nj_get_be32(o + 4);
        if (o[0] != NJ__ND_OPT_PREFIX || o[1] != 4 || ra->n_prefixes == NJ_RA_PREFIXES_MAX)
            continue;
        ra->prefix[ra->n_prefixes++] = (struct nj_ra_prefix){
            .prefix = get_addr(o + 16),
            .bits = o[2],
            .on_link = o[3] & 0x80,
            .autonomous = o[3] & 0x40,
            .valid_s = nj_get_be32(o + 4),
            .preferred_s = nj_get_be32(o + 8),
        };
    }
}

/* --- other messages ------------------------------------------------------------------------ */

/* RFC 4443 4.1. Echo requests to a group are ignored, since replies would amplify. */
static nj_counter parse_echo(const struct nj_iface *iface, const struct message *m, uint32_t off,
                             struct nj_packet *out)
{
    if (m->p[1] != 0 || m->to_multicast)
        return NJ_C_drop_icmp_type;
    if (m->n_bytes + NJ_IP6_HDR_BYTES > nj_iface_mtu(iface, &out->ip_src))
        return NJ_C_drop_icmp_bad; /* the reply has the same length and is sent in one packet */
    out->kind = NJ_PACKET_ICMP_ECHO;
    out->icmp.off = off;
    out->icmp.n_bytes = m->n_bytes;
    return OK;
}

nj_counter nj__icmp6_parse(const struct nj_iface *iface, const uint8_t *p,
                           const struct nj__ip6_payload *load, uint32_t off, struct nj_packet *out)
{
    struct message m = {p, load->n_bytes, load, nj_ip6_is_multicast(&out->ip_dst)};

    if (m.n_bytes < NJ__ICMP6_HDR_BYTES)
        return NJ_C_drop_icmp_bad;
    uint64_t sum = nj__csum_pseudo6(&out->ip_src, &out->ip_dst, IPPROTO_ICMPV6, m.n_bytes);
    if (nj__csum_fold(nj__csum_add_bytes(sum, p, m.n_bytes)) != 0xffff)
        return NJ_C_drop_icmp_bad;
    switch (p[0]) {
    case NJ__ICMP6_ECHO_REQUEST:
        return parse_echo(iface, &m, off, out);
    case NJ__ICMP6_NEIGH_SOLICIT:
    case NJ__ICMP6_NEIGH_ADVERT:
    case NJ__ICMP6_ROUTER_ADVERT:
        return parse_nd(&m, off, out);
    case NJ__ICMP6_MLD_QUERY:
        return parse_mld_query(&m, off, out);
    case NJ__ICMP6_UNREACHABLE:
    case NJ__ICMP6_TOO_BIG:
    case NJ__ICMP6_TIME_EXCEEDED:
    case NJ__ICMP6_PARAM_PROBLEM:
        return parse_error(&m, out);
    default:
        return NJ_C_drop_icmp_type;
    }
}
