/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP part of packet parsing (RFC 9293 3.1). Internal to lib/wire. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* Parse the segment of `n_bytes` at `p`. Fills in `seg` except addresses and options, with
 * payload_off counted from `p`. False if the header is malformed. */
bool nj__tcp_parse_header(const uint8_t *p, uint32_t n_bytes, struct nj_seg *seg);

/* Parse `n_bytes` of options at `p`. False if they are malformed. */
bool nj__tcp_parse_options(const uint8_t *p, uint32_t n_bytes, bool syn, struct nj_tcp_opts *opts);
