/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet checksum (RFC 1071), for this layer and for callers that sum while copying.
 *
 * It replaces DPDK's rte_raw_cksum_mbuf(), which in 22.11 truncates the sum of a segment at an odd
 * offset to 16 bits before it folds the carries; our payloads are chained at any offset. It also
 * adds eight bytes at a time instead of two.
 *
 * Sums are kept in the byte order of memory, which is irrelevant until the end (RFC 1071 2B). A
 * 64-bit sum of 32-bit words cannot overflow before 16 GiB.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "base/types.h"

/* Add `n_bytes` at `data`, at an even offset of the summed data. */
static inline uint64_t nj__csum_add_bytes(uint64_t sum, const void *data, size_t n_bytes)
{
    const uint8_t *p = data;

    for (; n_bytes >= 8; p += 8, n_bytes -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        sum += (v & UINT32_MAX) + (v >> 32);
    }
    if (n_bytes > 0) {
        uint64_t v = 0;
        memcpy(&v, p, n_bytes);
        sum += (v & UINT32_MAX) + (v >> 32);
    }
    return sum;
}

/* The sum as a 16-bit word. It is 0xffff if the data contains its own valid checksum. The
 * complement is stored in a header. */
static inline uint16_t nj__csum_fold(uint64_t sum)
{
    sum = (sum >> 32) + (sum & UINT32_MAX);
    sum = (sum >> 32) + (sum & UINT32_MAX);
    sum = (sum >> 16) + (sum & UINT16_MAX);
    sum = (sum >> 16) + (sum & UINT16_MAX);
    return (uint16_t)sum;
}

/* Sum of the IPv4 pseudo-header (RFC 9293 3.1). Addresses as in the packet, the rest host order. */
static inline uint64_t nj__csum_pseudo(uint32_t src_be, uint32_t dst_be, uint8_t protocol,
                                       uint16_t n_bytes)
{
    return (uint64_t)src_be + dst_be + rte_cpu_to_be_16(protocol) + rte_cpu_to_be_16(n_bytes);
}

/* Sum of the IPv6 pseudo-header (RFC 8200 8.1). */
static inline uint64_t nj__csum_pseudo6(const struct nj_addr *src, const struct nj_addr *dst,
                                        uint8_t protocol, uint32_t n_bytes)
{
    uint64_t sum = nj__csum_add_bytes(nj__csum_add_bytes(0, src->b, 16), dst->b, 16);
    return sum + rte_cpu_to_be_32(protocol) + rte_cpu_to_be_32(n_bytes);
}

/* The pseudo-header for the family of the addresses. */
static inline uint64_t nj__csum_pseudo_of(const struct nj_addr *src, const struct nj_addr *dst,
                                          uint8_t protocol, uint16_t n_bytes)
{
    const uint32_t src4_be = nj_addr_to_v4(src), dst4_be = nj_addr_to_v4(dst);

    return nj_addr_is_v4(dst) ? nj__csum_pseudo(src4_be, dst4_be, protocol, n_bytes)
                              : nj__csum_pseudo6(src, dst, protocol, n_bytes);
}

/* Add the sum of the following data. At an odd offset its bytes are in the other halves of their
 * words (RFC 1071 2B). */
static inline uint64_t nj_csum_combine(uint64_t sum, uint64_t next, bool odd)
{
    return sum + (odd ? rte_bswap16(nj__csum_fold(next)) : next);
}

/* The identical sum for payloads, with the widest vector registers of the CPU. */
uint64_t nj__csum_add_bulk(uint64_t sum, const void *data, size_t n_bytes);

/* Copy `n_bytes` to a non-overlapping place and return their sum. */
uint64_t nj_csum_copy(void *to, const void *from, size_t n_bytes);

/* Add all data of an mbuf chain, with segments of any length. */
uint64_t nj__csum_add_mbuf(uint64_t sum, const struct rte_mbuf *m);
