/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP part of a packet's parse, inside this layer (RFC 9293 3.1). */
#ifndef NJ_WIRE_TCP_PARSE_H
#define NJ_WIRE_TCP_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* The segment is the `n_bytes` at `p`. Fill in everything of `seg` but addresses and options, with
 * payload_off counted from `p`. False when the header is malformed. */
bool nj__tcp_parse_header(const uint8_t *p, uint32_t n_bytes, struct nj_seg *seg);

/* Fill in `opts` from the `n_bytes` of options at `p`. False when they are malformed. */
bool nj__tcp_parse_options(const uint8_t *p, uint32_t n_bytes, bool syn, struct nj_tcp_opts *opts);

#endif
