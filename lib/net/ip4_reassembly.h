/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv4 reassembly (RFC 791, RFC 1122 3.3.2) with bounded memory: TCP avoids fragments, so they are
 * rare or an attack.
 *
 * rte_ip_frag keeps and joins the mbufs. It does not join overlaps, but it forgets a packet after
 * an overlap or duplicate, and starts again with the next fragment. Therefore an entry per packet
 * filters the fragments: an exact duplicate is ignored, and an overlap rejects the packet and all
 * its later fragments (RFC 5722 4). One lcore only.
 */
#pragma once

#include <rte_mbuf_core.h>

#include "base/types.h"
#include "telem/count.h"
#include "wire/packet.h"

/* A segment of 1500 bytes needs three fragments on a link with an MTU of 576. 32 packets of four
 * fragments pin 128 mbufs, with the maximum number of shards 8,192, half of one receive pool. They
 * expire after half a second: fragments of one packet travel together. */
#define NJ_FRAG_PACKETS_MAX 32u
#define NJ_FRAG_PARTS_MAX   4u
/* Packets per source address: a source of incomplete packets gets an eighth of the table. An
 * honest source has that many only if fragments of several packets are reordered. */
#define NJ_FRAG_SOURCE_MAX  4u
#define NJ_FRAG_TIMEOUT     (500 * NJ_MS)

/* Arguments of rte_ip_frag_table_create(). The table has two slots per bucket entry, four times as
 * many as packets, so that both hashes of a packet rarely meet full buckets. */
#define NJ_FRAG_BUCKETS        16u
#define NJ_FRAG_BUCKET_ENTRIES 4u

/* A packet in reassembly. */
struct nj_frag_queue {
    struct nj_addr src, dst;
    uint32_t id;
    uint8_t protocol;
    uint8_t n_parts;   /* 0: unused */
    bool rejects_rest; /* drop all fragments until the entry expires */
    bool ce;           /* a fragment was marked with congestion experienced (RFC 3168 5.3) */
    uint32_t n_bytes;  /* of the payload; UINT32_MAX: the last fragment is missing */
    nj_ns first_frag_at;
    struct {
        uint32_t first, end;
    } part[NJ_FRAG_PARTS_MAX];
};

struct rte_ip_frag_tbl;

struct nj_ip4_reasm {
    struct rte_ip_frag_tbl *table; /* NULL: every fragment is dropped */
    struct nj_counters *counters;
    nj_ns due_at; /* nj_ip4_reasm_tick() has fragments to drop */
    struct nj_frag_queue frag_queue[NJ_FRAG_PACKETS_MAX];
};

/* `table`: created with the numbers above, for times in nanoseconds. It remains the caller's, who
 * destroys it, with the fragments in it, after the last call. */
void nj_ip4_reasm_init(struct nj_ip4_reasm *f, struct rte_ip_frag_tbl *table,
                       struct nj_counters *counters);

/* Process a fragment; `p` is its parse (NJ_PACKET_FRAGMENT). Takes ownership of `m` and counts it.
 * The last missing fragment returns the whole packet in one mbuf, counted as received. The caller
 * parses it again; its IP header needs no verification, the payload does. */
struct rte_mbuf *nj_ip4_reasm_input(struct nj_ip4_reasm *f, struct rte_mbuf *m,
                                    const struct nj_packet *p, nj_ns now);

/* Drop expired fragments. Cheap if none has expired. */
void nj_ip4_reasm_tick(struct nj_ip4_reasm *f, nj_ns now);
