/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors for IPv4, inside this layer (RFC 792, RFC 1122 3.2.2, RFC 1191). */
#pragma once

#include "telem/count.h"
#include "wire/packet.h"

/*
 * Parse the message of `n_bytes` at `p`, whose checksum is valid and whose outer addresses are set
 * in `out`. For an error about a TCP segment that we sent, fill in `out` and return
 * NJ_COUNTERS_MAX, otherwise return the drop reason.
 */
nj_counter nj__icmp4_parse_error(const uint8_t *p, uint32_t n_bytes, struct nj_packet *out);
