/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of IPv6 addresses (RFC 4291 2), and addresses derived from others.
 *
 * The addresses in struct rte_ipv6_hdr are byte arrays in DPDK 22.11 and structs of the same 16
 * bytes since 24.11: `&hdr->src_addr` is their first byte in both.
 */
#pragma once

#include <rte_ether.h>

#include "base/types.h"

#define NJ_IP6_HDR_BYTES 40u
#define NJ_IP6_MTU_MIN   1280u /* RFC 8200 5 */
#define NJ_IP6_HOP_LIMIT 64u   /* of sent packets, unless a protocol requires another */

static inline bool nj_ip6_is_multicast(const struct nj_addr *a)
{
    return a->b[0] == 0xff;
}

static inline bool nj_ip6_is_link_local(const struct nj_addr *a)
{
    return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static inline bool nj_ip6_is_unspecified(const struct nj_addr *a)
{
    static const struct nj_addr zero;
    return nj_addr_eq(a, &zero);
}

static inline bool nj_ip6_is_loopback(const struct nj_addr *a)
{
    static const struct nj_addr one = {{[15] = 1}};
    return nj_addr_eq(a, &one);
}

/* ff02::1, every host of the link. */
static inline struct nj_addr nj_ip6_all_nodes(void)
{
    return (struct nj_addr){{0xff, 2, [15] = 1}};
}

/* ff02::2, every router of the link. */
static inline struct nj_addr nj_ip6_all_routers(void)
{
    return (struct nj_addr){{0xff, 2, [15] = 2}};
}

/* The solicited-node multicast address (RFC 4291 2.7.1): ff02::1:ff00:0/104 and 24 bits of `a`. */
static inline struct nj_addr nj_ip6_solicited_node(const struct nj_addr *a)
{
    return (struct nj_addr){
        {0xff, 2, [11] = 1, [12] = 0xff, [13] = a->b[13], [14] = a->b[14], [15] = a->b[15]}};
}

/* The Ethernet address of a multicast group (RFC 2464 7). */
static inline struct rte_ether_addr nj_ip6_multicast_mac(const struct nj_addr *a)
{
    return (struct rte_ether_addr){{0x33, 0x33, a->b[12], a->b[13], a->b[14], a->b[15]}};
}

/* Do the first `n_bits` (0..128) of both agree? */
static inline bool nj_ip6_same_prefix(const struct nj_addr *a, const struct nj_addr *b,
                                      unsigned n_bits)
{
    unsigned whole = n_bits / 8, rest = n_bits % 8;

    if (memcmp(a->b, b->b, whole) != 0)
        return false;
    return rest == 0 || (a->b[whole] ^ b->b[whole]) >> (8 - rest) == 0;
}
