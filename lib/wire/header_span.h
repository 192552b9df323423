/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long the headers of a frame are, and whose it is, for captures: frames of both directions, of
 * any kind, and possibly malformed. No checksum is checked. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

/* As many bytes of a frame have all its headers: 802.1Q twice, IPv6 with extension headers, TCP. */
#define NJ_HEADER_SPAN_MAX 256u

struct nj_header_span {
    /* From the first byte of the frame to the end of the header of TCP, of UDP, or of ICMP without
     * what it quotes. ARP and neighbour discovery: the whole message. Other protocols: the headers
     * before them. */
    uint32_t n_bytes;
    bool has_addrs; /* of IP; of ARP and neighbour discovery also those that the message is about */
    struct nj_addr src, dst;
};

/* `n`: bytes at `frame`, NJ_HEADER_SPAN_MAX or the whole frame. n_bytes is at most `n`. */
struct nj_header_span nj_header_span(const uint8_t *frame, uint32_t n);
