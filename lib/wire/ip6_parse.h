/* SPDX-License-Identifier: BSD-3-Clause */
/* The IPv6 part of packet parsing (RFC 8200). Internal to lib/wire. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "telem/count.h"
#include "wire/packet.h"

/* Maximum number of extension headers of a packet. Real packets have none or two; RFC 8504 5.3
 * allows a limit. */
#define NJ__IP6_EXT_MAX 6u

/* Results of the IPv6 headers, and the payload after them. */
struct nj__ip6_payload {
    uint32_t off, n_bytes; /* of the payload, from the IPv6 header on */
    uint8_t protocol;
    uint8_t hop_limit;
    uint8_t ecn;
    bool router_alert; /* RFC 2711, among the hop-by-hop options */
};

/*
 * Parse the packet at `p`, which ends at `n_bytes` or before. Fills in addresses of `out`, and
 * `load`. Returns NJ_COUNTERS_MAX if the packet is for this host and valid; otherwise the drop
 * reason. `out->kind` is NJ_PACKET_PARAM_PROBLEM if the sender must be notified, with problem.off
 * counted from `p`.
 */
nj_counter nj__ip6_parse(const struct nj_iface *iface, const uint8_t *p, uint32_t n_bytes,
                         struct nj_packet *out, struct nj__ip6_payload *load);

/* The ICMPv6 message at `p` (RFC 4443, RFC 4861), `off` bytes from the start of the mbuf's data.
 * Addresses of `out` are set. Returns as above. */
nj_counter nj__icmp6_parse(const struct nj_iface *iface, const uint8_t *p,
                           const struct nj__ip6_payload *load, uint32_t off, struct nj_packet *out);
