/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that a device with checksum offload and TSO makes of one packet. Like a driver, it
 * reads only the mbuf's flags and lengths. */
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>

struct nj_cutter {
    const struct rte_mbuf *m;
    uint32_t hdr_bytes, at; /* at: of the payload, up to where it is cut */
    uint32_t n;             /* pieces so far */
};

/* `m` begins with its IP header; it stays the caller's, and is only read. */
void nj_cutter_init(struct nj_cutter *c, const struct rte_mbuf *m);
/* The next packet as sent on the wire, from `pool`; NULL after the last. */
struct rte_mbuf *nj_cutter_next(struct nj_cutter *c, struct rte_mempool *pool);
