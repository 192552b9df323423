/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes ICMPv6, neighbour discovery and MLD messages (RFC 4443, RFC 4861, RFC 3810). Each is
 * written to a local buffer, then checksummed and copied. */
#include <netinet/in.h>
#include <string.h>

#include "base/assert.h"
#include "base/big_endian.h"
#include "wire/csum.h"
#include "wire/emit.h"
#include "wire/icmp6.h"
#include "wire/icmp6_type.h"
#include "wire/ip6.h"

/* Our longest message is a report of NJ_ADDRS_MAX groups: 8 + 12 * 20 bytes. */
#define MESSAGE_MAX 256u

struct message {
    uint8_t b[MESSAGE_MAX];
    uint16_t n_bytes;
};

static void put_msg_bytes(struct message *m, const void *data, size_t n_bytes)
{
    NJ_ASSERT(m->n_bytes + n_bytes <= sizeof m->b);
    memcpy(m->b + m->n_bytes, data, n_bytes);
    m->n_bytes += (uint16_t)n_bytes;
}

/* Type, code, checksum to be filled in, and 32 bits that depend on the type. */
static struct message begin_message(uint8_t type, uint8_t code, uint32_t word)
{
    struct message m = {.n_bytes = 0};
    uint8_t head[NJ__ICMP6_HDR_BYTES] = {type, code};

    nj_put_be32(head + 4, word);
    put_msg_bytes(&m, head, sizeof head);
    return m;
}

static void put_option(struct message *m, uint8_t kind, const void *six_bytes)
{
    const uint8_t head[2] = {kind, 1};
    put_msg_bytes(m, head, sizeof head);
    put_msg_bytes(m, six_bytes, 6);
}

static uint8_t *append(struct rte_mbuf *m, const void *data, uint32_t n_bytes)
{
    uint8_t *to = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)n_bytes);
    NJ_ASSERT(to);
    memcpy(to, data, n_bytes);
    return to;
}

/* The message at `p` is complete except for its checksum (RFC 4443 2.3). */
static void put_checksum(uint8_t *p, uint32_t n_bytes, const struct nj_addr *src,
                         const struct nj_addr *dst)
{
    memset(p + 2, 0, 2);
    uint64_t sum = nj__csum_pseudo6(src, dst, IPPROTO_ICMPV6, n_bytes);
    uint16_t sum16 = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(sum, p, n_bytes));
    memcpy(p + 2, &sum16, 2);
}

static void finish_packet(struct rte_mbuf *m, struct message *msg, const struct nj_addr *src,
                          const struct nj_addr *dst, uint8_t hop_limit)
{
    NJ_ASSERT(rte_pktmbuf_pkt_len(m) == 0);
    put_checksum(msg->b, msg->n_bytes, src, dst);
    append(m, msg->b, msg->n_bytes);
    nj_ipv6_prepend(m, &(struct nj_ip_meta){.src = *src, .dst = *dst}, IPPROTO_ICMPV6, hop_limit);
}

void nj_icmp6_echo_reply_build(struct rte_mbuf *m, const struct nj_addr *src,
                               const struct nj_addr *dst, const uint8_t *request, uint32_t n_bytes)
{
    NJ_ASSERT(rte_pktmbuf_pkt_len(m) == 0);
    uint8_t *p = append(m, request, n_bytes);
    p[0] = NJ__ICMP6_ECHO_REPLY;
    p[1] = 0;
    put_checksum(p, n_bytes, src, dst);
}

void nj_icmp6_param_problem_build(struct rte_mbuf *m, const struct nj_addr *src,
                                  const struct nj_addr *dst, uint8_t code, uint32_t pointer,
                                  const uint8_t *packet, uint32_t n_bytes)
{
    struct message head = begin_message(NJ__ICMP6_PARAM_PROBLEM, code, pointer);
    const uint32_t room = NJ_IP6_MTU_MIN - NJ_IP6_HDR_BYTES - NJ__ICMP6_HDR_BYTES;

    NJ_ASSERT(rte_pktmbuf_pkt_len(m) == 0);
    n_bytes = n_bytes < room ? n_bytes : room;
    uint8_t *p = append(m, head.b, head.n_bytes);
    append(m, packet, n_bytes);
    put_checksum(p, head.n_bytes + n_bytes, src, dst);
    nj_ipv6_prepend(m, &(struct nj_ip_meta){.src = *src, .dst = *dst}, IPPROTO_ICMPV6,
                    NJ_IP6_HOP_LIMIT);
}

void nj_nd_solicit_build(struct rte_mbuf *m, const struct nj_addr *src, const struct nj_addr *dst,
                         const struct nj_addr *target, const struct rte_ether_addr *mac,
                         const uint8_t *nonce)
{
    struct message msg = begin_message(NJ__ICMP6_NEIGH_SOLICIT, 0, 0);

    put_msg_bytes(&msg, target->b, sizeof target->b);
    if (nonce)
        put_option(&msg, NJ__ND_OPT_NONCE, nonce);
    else
        put_option(&msg, NJ__ND_OPT_SOURCE_MAC, mac->addr_bytes);
    finish_packet(m, &msg, src, dst, 255);
}

void nj_nd_advertise_build(struct rte_mbuf *m, const struct nj_addr *src, const struct nj_addr *dst,
                           const struct nj_addr *target, const struct rte_ether_addr *mac,
                           bool solicited)
{
    const uint32_t override = 1u << 29;
    struct message msg =
        begin_message(NJ__ICMP6_NEIGH_ADVERT, 0, override | (solicited ? 1u << 30 : 0));

    put_msg_bytes(&msg, target->b, sizeof target->b);
    put_option(&msg, NJ__ND_OPT_TARGET_MAC, mac->addr_bytes);
    finish_packet(m, &msg, src, dst, 255);
}

void nj_nd_router_solicit_build(struct rte_mbuf *m, const struct nj_addr *src,
                                const struct rte_ether_addr *mac)
{
    struct message msg = begin_message(NJ__ICMP6_ROUTER_SOLICIT, 0, 0);
    struct nj_addr routers = nj_ip6_all_routers();

    put_option(&msg, NJ__ND_OPT_SOURCE_MAC, mac->addr_bytes);
    finish_packet(m, &msg, src, &routers, 255);
}

/* Reports have hop limit 1 and a router alert, so that routers that do not forward the group's
 * multicast process them too (RFC 3810 5, RFC 2710 3). */
static void finish_report(struct rte_mbuf *m, struct message *msg, const struct nj_addr *src,
                          const struct nj_addr *dst)
{
    /* Next header, length 8, router alert "MLD" (RFC 2711 2.1), PadN of 2. */
    static const uint8_t hop_by_hop[8] = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};

    NJ_ASSERT(rte_pktmbuf_pkt_len(m) == 0);
    put_checksum(msg->b, msg->n_bytes, src, dst);
    append(m, hop_by_hop, sizeof hop_by_hop);
    append(m, msg->b, msg->n_bytes);
    nj_ipv6_prepend(m, &(struct nj_ip_meta){.src = *src, .dst = *dst}, IPPROTO_HOPOPTS, 1);
}

void nj_mld2_report_build(struct rte_mbuf *m, const struct nj_addr *src,
                          const struct nj_addr *groups, uint32_t n, bool joined)
{
    enum { MODE_IS_EXCLUDE = 2, CHANGE_TO_EXCLUDE = 4 };
    static const struct nj_addr listeners = {{0xff, 2, [15] = 0x16}}; /* MLDv2 routers */
    struct message msg = begin_message(NJ__ICMP6_MLD2_REPORT, 0, n);

    NJ_ASSERT(n <= NJ_ADDRS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t record[4] = {joined ? CHANGE_TO_EXCLUDE : MODE_IS_EXCLUDE};
        put_msg_bytes(&msg, record, sizeof record); /* excludes no source: receive from all */
        put_msg_bytes(&msg, groups[i].b, sizeof groups[i].b);
    }
    finish_report(m, &msg, src, &listeners);
}

void nj_mld1_report_build(struct rte_mbuf *m, const struct nj_addr *src,
                          const struct nj_addr *group)
{
    struct message msg = begin_message(NJ__ICMP6_MLD1_REPORT, 0, 0);

    put_msg_bytes(&msg, group->b, sizeof group->b);
    finish_report(m, &msg, src, group);
}
