/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors for IPv4, inside this layer (RFC 792, RFC 1122 3.2.2, RFC 1191). */
#ifndef NJ_WIRE_ICMP4_PARSE_H
#define NJ_WIRE_ICMP4_PARSE_H

#include "wire/packet.h"

/*
 * The message is the `n_bytes` at `p`, its checksum is right, and its outer addresses stand in
 * `out`. When it is an error about a TCP segment that we sent, fill in `out` and return
 * NJ_N_COUNTERS, else the reason to drop it.
 */
enum nj_counter nj__icmp4_parse_error(const uint8_t *p, uint32_t n_bytes, struct nj_packet *out);

#endif
