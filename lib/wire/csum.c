/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum over chained mbufs; see csum.h. */
#include "wire/csum.h"

uint64_t nj__csum_add_mbuf(uint64_t sum, const struct rte_mbuf *m)
{
    bool odd = false;

    for (; m; m = m->next) {
        uint64_t part = nj__csum_add(0, rte_pktmbuf_mtod(m, const void *), m->data_len);
        /* Bytes at an odd offset are the other half of their word (RFC 1071 2B). */
        sum += odd ? rte_bswap16(nj__csum_fold(part)) : part;
        odd ^= m->data_len & 1;
    }
    return sum;
}
