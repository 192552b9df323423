/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emit headers. The caller provides enough room in the mbuf, and no function can fail. Lengths are
 * bytes, addresses as in base/types.h, other values in host byte order. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "wire/packet.h"

/* TCP's knowledge of the path to a peer when it sends a segment (RFC 4861 7.3.1). */
enum nj_reach {
    NJ_REACH_UNKNOWN,
    NJ_REACH_CONFIRMED, /* a segment sent within the last second was acknowledged */
    NJ_REACH_SUSPECT,   /* the retransmission timer has expired since the last acknowledgment */
};

/* Addresses and ECN for the IP header of a segment, and hints for the neighbour cache. */
struct nj_ip_meta {
    struct nj_addr src, dst;
    uint8_t ecn;     /* NJ_ECN_* */
    bool unverified; /* hint: a reply to a packet whose source may be spoofed */
    uint8_t reach;   /* hint: enum nj_reach */
};

/* Work that the device does for TCP segments; all false: none. */
struct nj_tx_offload {
    bool tcp_csum;
    bool ip_csum; /* also the IPv4 header checksum of those segments; only with tcp_csum */
    bool tso;     /* TCP segmentation offload; only with tcp_csum */
    uint32_t tso_bytes_max; /* maximum payload of a TSO packet */
    uint16_t tso_mbufs_max; /* maximum mbufs of its chain; all but the first hold tso_bytes_max */
};

/* Mbufs of a TSO packet, even if the device accepts more: 65,415 bytes of payload (the limit of
 * IP) fill 32, the headers take one, and the rest is for partly filled references. */
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
    uint16_t tso_mss;        /* not 0: segment size of TSO */
    bool has_payload_sum;    /* payload_sum is valid */
    uint64_t payload_sum;    /* the result of nj_csum_copy() for the payload */
    struct nj_tcp_opts opts; /* each set option is written, padded to 4 bytes */
};

/* Bytes of the options of `o`, a multiple of 4. */
uint32_t nj_tcp_opts_bytes(const struct nj_tcp_opts *o);

/*
 * Prepend the TCP header and its options to `m`, whose data is the payload (possibly chained), and
 * fill in the checksum over pseudo-header, header and payload. Needs NJ_TCP_HDR_BYTES +
 * nj_tcp_opts_bytes() of headroom. Work of the device according to `tx` is only requested in the
 * mbuf (RTE_MBUF_F_TX_*); the functions below extend the request. e->tso_mss requires tx->tso.
 */
void nj_tcp_prepend(struct rte_mbuf *m, const struct nj_tcp_emit *e,
                    const struct nj_tx_offload *tx);

#define NJ_TCP_HDR_BYTES_MAX (NJ_TCP_HDR_BYTES + NJ_TCP_OPTS_BYTES_MAX)

/* Cached TCP header of a burst of segments, at the end of `bytes`. */
struct nj_tcp_hdr_cache {
    uint8_t n_bytes;
    uint64_t sum; /* including the pseudo-header, without the fields that differ per segment */
    uint8_t bytes[NJ_TCP_HDR_BYTES_MAX];
};

/* Store the header of segment `m`, which was prepended for `e`. */
void nj_tcp_hdr_cache_save(struct nj_tcp_hdr_cache *head, const struct rte_mbuf *m,
                           const struct nj_tcp_emit *e);

/* Prepend the stored header to another payload with a known sum. Equivalent to nj_tcp_prepend()
 * with an `e` that differs only in the sequence number. Needs NJ_TCP_HDR_BYTES_MAX of headroom. */
void nj_tcp_hdr_cache_prepend(struct rte_mbuf *m, const struct nj_tcp_hdr_cache *head, uint32_t seq,
                              uint64_t payload_sum);

/* Prepend an IPv4 header: DF set, TTL 64, checksum filled in. `ident` goes into Identification. */
void nj_ipv4_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                     uint16_t ident);

/* Prepend an IPv6 header. Of the traffic class only ECN is set; the flow label is zero. */
void nj_ipv6_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                     uint8_t hop_limit);

/* Prepend the IP header for the family of the addresses. `ident`: for IPv4. */
void nj_ip_prepend(struct rte_mbuf *m, const struct nj_ip_meta *ip, uint8_t protocol,
                   uint16_t ident);

/* Prepend an Ethernet header. `type` is an EtherType in host order. */
void nj_eth_prepend(struct rte_mbuf *m, const struct rte_ether_addr *dst,
                    const struct rte_ether_addr *src, uint16_t type);

/* Prepend the Ethernet header of a frame from `from`, with its VLAN tag if it has one, at priority
 * 0 regardless of the peer's frames. */
void nj_eth_prepend_from_iface(struct rte_mbuf *m, const struct rte_ether_addr *dst,
                               const struct nj_iface *from, uint16_t type);

#define NJ_L2L3_BYTES_MAX 64u

/* Cached link and IP headers of a frame, at the end of `bytes`. */
struct nj_l2l3_cache {
    bool v4;
    uint8_t n_bytes, l2_bytes;
    uint64_t sum; /* of the IPv4 header, without the fields that differ per packet */
    uint8_t bytes[NJ_L2L3_BYTES_MAX];
};

/* Store the headers of frame `m`, which precede `n_segment` bytes. `v4`: the IP header is IPv4. */
void nj_l2l3_cache_save(struct nj_l2l3_cache *head, const struct rte_mbuf *m, uint32_t n_segment,
                        bool v4);

/* Prepend the stored headers to another segment of the same hosts and ECN. Equivalent to the
 * functions above. Needs NJ_L2L3_BYTES_MAX of headroom, all of which may be overwritten. */
void nj_l2l3_cache_prepend(struct rte_mbuf *m, const struct nj_l2l3_cache *head, uint16_t ident);

/* Fill the empty mbuf `m` with an ARP packet (without the Ethernet header) from `mac` at `ip`.
 * `target_mac` may be NULL for a request. RFC 826. */
void nj_arp_build(struct rte_mbuf *m, bool request, const struct rte_ether_addr *mac,
                  const struct nj_addr *ip, const struct rte_ether_addr *target_mac,
                  const struct nj_addr *target_ip);

/* Fill the empty mbuf `m` with the ICMP echo reply (without IP header) to the echo request of
 * `n_bytes` at `request`. The reply must fit: the caller checks against the tailroom. RFC 792. */
void nj_icmp_echo_reply_build(struct rte_mbuf *m, const uint8_t *request, uint32_t n_bytes);
