/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP fragments become packets again (RFC 791, RFC 1122 3.3.2), within a small budget: TCP avoids
 * fragments, so they are rare, or an attack.
 *
 * rte_ip_frag keeps the mbufs and joins them. It joins no overlaps, but forgets a packet once it
 * saw one, or a duplicate, and starts anew with the next fragment. So an entry of ours for each
 * packet filters the fragments: an exact duplicate is ignored, and an overlap rejects the packet
 * and all its later fragments (RFC 5722 4). One lcore only.
 */
#ifndef NJ_NET_IP4_REASSEMBLY_H
#define NJ_NET_IP4_REASSEMBLY_H

#include <rte_mbuf_core.h>

#include "base/types.h"
#include "telem/counters.h"
#include "wire/packet.h"

/* A segment of 1500 bytes over a link of 576 comes in three fragments. 32 packets of four pin 128
 * mbufs, with the most shards there can be 8,192, half of one receive pool. They do so for half a
 * second: fragments of one packet travel together. */
#define NJ_FRAG_PACKETS_MAX 32u
#define NJ_FRAG_PARTS_MAX   4u
/* Packets of one source address: who begins packets and does not end them has an eighth. Of an
 * honest one that many are under way only when fragments overtake each other between packets. */
#define NJ_FRAG_SOURCE_MAX  4u
#define NJ_FRAG_TIMEOUT     (500 * NJ_MS)

/* Arguments of rte_ip_frag_table_create() for such a table. It has two places per bucket entry,
 * four times as many as packets, so that two hashes rarely meet a full bucket. */
#define NJ_FRAG_BUCKETS        16u
#define NJ_FRAG_BUCKET_ENTRIES 4u

/* A packet in reassembly. */
struct nj_frag_queue {
    struct nj_addr src, dst;
    uint32_t id;
    uint8_t protocol;
    uint8_t n_parts;   /* 0: unused */
    bool rejects_rest; /* drop all fragments until the entry expires */
    bool ce;           /* a fragment met congestion (RFC 3168 5.3) */
    uint32_t n_bytes;  /* of the payload; UINT32_MAX: the last fragment has not come */
    nj_ns first_frag_at;
    struct {
        uint32_t first, end;
    } part[NJ_FRAG_PARTS_MAX];
};

struct rte_ip_frag_tbl;

struct nj_ip4_reasm {
    struct rte_ip_frag_tbl *table; /* NULL: every fragment is dropped */
    struct nj_counters *counters;
    nj_ns due_at; /* nj_ip4_reasm_tick() has something to give up */
    struct nj_frag_queue frag_queue[NJ_FRAG_PACKETS_MAX];
};

/* `table`: made with the numbers above, for times in nanoseconds; stays the caller's, who destroys
 * it, and what it still holds, after the last call. */
void nj_ip4_reasm_init(struct nj_ip4_reasm *f, struct rte_ip_frag_tbl *table,
                       struct nj_counters *counters);

/* A fragment came, `p` is its parse (NJ_PACKET_FRAGMENT). Takes `m` and counts it. When it was the
 * last one missing, the whole packet is returned, in one mbuf, counted as received and to be parsed
 * again; its IP header needs no check, the rest does. */
struct rte_mbuf *nj_ip4_reasm_input(struct nj_ip4_reasm *f, struct rte_mbuf *m,
                                    const struct nj_packet *p, nj_ns now);

/* Drop expired fragments. Cheap if none has expired. */
void nj_ip4_reasm_tick(struct nj_ip4_reasm *f, nj_ns now);

#endif
