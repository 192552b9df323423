/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emit headers. The caller provides enough room in the mbuf, and no function can fail. Lengths are
 * bytes, addresses as in base/types.h, other values in host byte order. Any thread.
 */
#ifndef NJ_WIRE_EMIT_H
#define NJ_WIRE_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "wire/packet.h"

/* What TCP knows of the path to a peer when it sends a segment (RFC 4861 7.3.1). */
enum nj_reach {
    NJ_REACH_UNKNOWN,
    NJ_REACH_CONFIRMED, /* a segment that was sent there within the last second has arrived */
    NJ_REACH_SUSPECT,   /* the last word of the retransmission timer was a time-out */
};

/* Addresses and ECN for the IP header of a segment, and hints for the neighbour cache. */
struct nj_ip_meta {
    struct nj_addr src, dst;
    uint8_t ecn;     /* NJ_ECN_* */
    bool unverified; /* hint: a reply to a packet whose source may be spoofed */
    uint8_t reach;   /* hint: enum nj_reach */
};

/* What the device finishes in the TCP segments that it is given; all false: nothing. */
struct nj_tx_offload {
    bool tcp_csum;
    bool ip_csum;           /* of those segments, with tcp_csum only */
    bool tso;               /* cut large segments, with tcp_csum only */
    uint32_t tso_bytes_max; /* payload of a segment that is to be cut */
    uint16_t tso_mbufs_max; /* it may be chained of; tso_bytes_max fit all but the first of them */
};

/* Mbufs of one packet, where the device would take more: 65,415 bytes of payload (what IP allows)
 * fill 32, the headers have one, and the rest is for references that don't fill theirs. */
#define NJ_TSO_MBUFS_MAX 40u

#define NJ_TCP_HDR_BYTES      20u
#define NJ_TCP_OPTS_BYTES_MAX 40u

/* A TCP header to be written. */
struct nj_tcp_emit {
    struct nj_tuple tuple; /* local = source */
    uint32_t seq, ack;
    uint16_t wnd; /* already scaled down */
    uint8_t flags;
    uint8_t ecn;             /* for the IP header */
    uint8_t reach;           /* enum nj_reach, see nj_ip_meta */
    uint16_t tso_mss;        /* not 0: the device cuts the payload into pieces of so many bytes */
    bool has_payload_sum;    /* payload_sum is valid: */
    uint64_t payload_sum;    /* the result of nj_csum_copy() for the payload */
    struct nj_tcp_opts opts; /* each one that is set is written, padded to 4 bytes */
};

/* Bytes that the options of `o` will take, a multiple of 4. */
uint32_t nj_tcp_opts_bytes(const struct nj_tcp_opts *o);

/*
 * Prepend the TCP header and its options to `m`, whose data is the payload (it may be chained), and
 * fill in the checksum over pseudo-header, header and payload.
 * Needs NJ_TCP_HDR_BYTES + nj_tcp_opts_bytes() of headroom. What `tx` says that the device does is
 * only prepared: the mbuf tells it how (RTE_MBUF_F_TX_*), and the functions below add to that.
 * e->tso_mss wants tx->tso.
 */
void nj_tcp_prepend(struct rte_mbuf *m, const struct nj_tcp_emit *e,
                    const struct nj_tx_offload *tx);

#define NJ_TCP_HDR_BYTES_MAX (NJ_TCP_HDR_BYTES + NJ_TCP_OPTS_BYTES_MAX)

/* Cached TCP header of a burst of segments, at the end of `bytes`. */
struct nj_tcp_hdr_cache {
    uint8_t n_bytes;
    uint64_t sum; /* with that of the pseudo-header, without what differs in each segment */
    uint8_t bytes[NJ_TCP_HDR_BYTES_MAX];
};

/* Keep that of the segment `m`, which was prepended for `e`. */
void nj_tcp_hdr_cache_save(struct nj_tcp_hdr_cache *head, const struct rte_mbuf *m,
                           const struct nj_tcp_emit *e);

/* Prepend it to another payload, whose sum is known: as nj_tcp_prepend() does with an `e` that has
 * this number and is the same otherwise. Needs NJ_TCP_HDR_BYTES_MAX of headroom. */
void nj_tcp_hdr_cache_prepend(struct rte_mbuf *m, const struct nj_tcp_hdr_cache *head, uint32_t seq,
                              uint64_t payload_sum);

/* Prepend an IPv4 header: DF set, TTL 64, checksum filled in. `ident` goes into Identification. */
void nj_ipv4_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                     uint16_t ident);

/* Prepend an IPv6 header. ECN is all that is set of the traffic class; the flow label is zero. */
void nj_ipv6_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                     uint8_t hop_limit);

/* Prepend the IP header of the family that the addresses are of. `ident`: for IPv4. */
void nj_ip_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                   uint16_t ident);

/* Prepend an Ethernet header. `type` is an EtherType in host order. */
void nj_eth_prepend(struct rte_mbuf *m, const struct rte_ether_addr *dst,
                    const struct rte_ether_addr *src, uint16_t type);

/* Prepend the Ethernet header of a frame from `from`: with its tag, at priority 0 whatever the
 * peer's frames have, when it is in a VLAN. */
void nj_link_prepend(struct rte_mbuf *m, const struct rte_ether_addr *dst,
                     const struct nj_iface *from, uint16_t type);

#define NJ_L2L3_BYTES_MAX 64u

/* Cached link and IP headers of a frame, at the end of `bytes`. */
struct nj_l2l3_cache {
    bool v4;
    uint8_t n_bytes, l2_bytes;
    uint64_t sum; /* of the IPv4 header, without what differs from packet to packet */
    uint8_t bytes[NJ_L2L3_BYTES_MAX];
};

/* Keep that of the frame `m`, which `n_segment` bytes follow. `v4`: the IP header is IPv4's. */
void nj_l2l3_cache_save(struct nj_l2l3_cache *head, const struct rte_mbuf *m, uint32_t n_segment,
                        bool v4);

/* Prepend it to another segment of the same hosts and ECN, as the functions above would have done.
 * Needs NJ_L2L3_BYTES_MAX of headroom, all of which may be written to. */
void nj_l2l3_cache_prepend(struct rte_mbuf *m, const struct nj_l2l3_cache *head, uint16_t ident);

/* Fill the empty mbuf `m` with an ARP packet (without the Ethernet header) from `mac` at `ip`.
 * `target_mac` may be NULL for a request. RFC 826. */
void nj_arp_build(struct rte_mbuf *m, bool request, const struct rte_ether_addr *mac,
                  const struct nj_addr *ip, const struct rte_ether_addr *target_mac,
                  const struct nj_addr *target_ip);

/* Fill the empty mbuf `m` with the ICMP echo reply (without IP header) to the echo request of
 * `n_bytes` at `request`. The reply must fit: the caller checks against the tailroom. RFC 792. */
void nj_icmp_echo_reply_build(struct rte_mbuf *m, const uint8_t *request, uint32_t n_bytes);

#endif
