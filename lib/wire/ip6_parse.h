/* SPDX-License-Identifier: BSD-3-Clause */
/* The IPv6 part of a packet's parse, inside this layer (RFC 8200). */
#ifndef NJ_WIRE_IP6_PARSE_H
#define NJ_WIRE_IP6_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* Extension headers of one packet. Real ones have none or two; RFC 8504 5.3 lets a host set a
 * bound. */
#define NJ__IP6_EXT_MAX 6u

/* What the headers of an IPv6 packet say, and what stands behind them. */
struct nj__ip6_payload {
    uint32_t off, n_bytes; /* of the upper protocol, from the IPv6 header on */
    uint8_t protocol;
    uint8_t hop_limit;
    uint8_t ecn;
    bool router_alert; /* RFC 2711, among the hop-by-hop options */
};

/*
 * The packet begins at `p` and ends at latest after `n_bytes`. Fills in addresses of `out`, and
 * `load`. Returns NJ_N_COUNTERS when it is for us and may go on; else the reason of the drop, and
 * `out->kind` is NJ_PACKET_PARAM_PROBLEM when its sender is to be told, with problem.off counted
 * from `p`.
 */
enum nj_counter nj__ip6_parse(const struct nj_iface *iface, const uint8_t *p, uint32_t n_bytes,
                              struct nj_packet *out, struct nj__ip6_payload *load);

/* The ICMPv6 message at `p` (RFC 4443, RFC 4861), `off` bytes from the start of the mbuf's data.
 * Addresses of `out` are set. Returns as above. */
enum nj_counter nj__icmp6_parse(const struct nj_iface *iface, const uint8_t *p,
                                const struct nj__ip6_payload *load, uint32_t off,
                                struct nj_packet *out);

#endif
