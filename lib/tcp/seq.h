/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequence numbers (RFC 9293 3.4): arithmetic modulo 2^32, the length of a segment, the test of
 * whether it is acceptable. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* a - b as a signed distance; meaningful while the two are less than 2^31 apart. */
static inline int32_t nj_seq_diff(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

static inline bool nj_seq_lt(uint32_t a, uint32_t b)
{
    return nj_seq_diff(a, b) < 0;
}

static inline bool nj_seq_le(uint32_t a, uint32_t b)
{
    return nj_seq_diff(a, b) <= 0;
}

static inline uint32_t nj_seq_max(uint32_t a, uint32_t b)
{
    return nj_seq_lt(a, b) ? b : a;
}

/* first <= s < first + n */
static inline bool nj_seq_in(uint32_t s, uint32_t first, uint32_t n)
{
    return s - first < n;
}

/* SEG.LEN (RFC 9293 3.3.1): payload plus one for SYN and one for FIN. */
static inline uint32_t nj_seg_len(const struct nj_seg *s)
{
    return s->payload_bytes + !!(s->flags & NJ_TCP_SYN) + !!(s->flags & NJ_TCP_FIN);
}

/* Table 6 of RFC 9293 3.4; but at a closed window ACK, RST and URG count although the text has no
 * room (MUST-66). */
static inline bool nj_seq_acceptable(uint32_t seq, uint32_t len, uint32_t rcv_nxt, uint32_t wnd)
{
    if (wnd == 0)
        return seq == rcv_nxt;
    return nj_seq_in(seq, rcv_nxt, wnd) || (len > 0 && nj_seq_in(seq + len - 1, rcv_nxt, wnd));
}
