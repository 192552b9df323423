/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet parser: one pass per frame, from the Ethernet header to the TCP options, with every
 * length checked. Results are in host byte order; offsets refer to the mbuf. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/types.h"
#include "telem/count.h"
#include "wire/iface.h"

/* TCP flags (RFC 9293 3.1), with their values in the header. */
#define NJ_TCP_FIN 0x01u
#define NJ_TCP_SYN 0x02u
#define NJ_TCP_RST 0x04u
#define NJ_TCP_PSH 0x08u
#define NJ_TCP_ACK 0x10u
#define NJ_TCP_URG 0x20u
#define NJ_TCP_ECE 0x40u
#define NJ_TCP_CWR 0x80u

/* The ECN field of an IP header (RFC 3168 5). */
#define NJ_ECN_NOT_ECT 0u
#define NJ_ECN_ECT_1   1u
#define NJ_ECN_ECT_0   2u
#define NJ_ECN_CE      3u

/* A run of received bytes, first <= s < end (RFC 2018 3). */
struct nj_sack_block {
    uint32_t first, end;
};

#define NJ_SACK_BLOCKS_MAX 4u /* limit of 40 bytes of options */

/* Supported options (RFC 9293 3.2, RFC 7323, RFC 2018). */
struct nj_tcp_opts {
    bool has_mss, has_wscale, has_ts, sack_permitted;
    uint8_t wscale; /* as sent; callers clamp to 14 (RFC 7323 2.3) */
    uint8_t n_sack;
    uint16_t mss; /* as sent */
    uint32_t ts_val, ts_ecr;
    struct nj_sack_block sack[NJ_SACK_BLOCKS_MAX]; /* as sent, in any order */
};

/* A TCP segment (the SEG.* variables of RFC 9293 3.3.1). */
struct nj_seg {
    struct nj_tuple tuple; /* remote = the sender */
    uint32_t seq, ack;
    uint16_t wnd; /* unscaled, as sent */
    uint8_t flags;
    uint8_t ecn;            /* of the IP header that carried it */
    uint32_t payload_off;   /* from the start of the mbuf's data */
    uint32_t payload_bytes; /* without SYN and FIN */
    struct nj_tcp_opts opts;
};

/* An ICMP error about one of our TCP segments (RFC 792, RFC 4443), with the quoted data. It may be
 * forged: check the quoted sequence number before acting on it (RFC 5927). */
enum nj_icmp_error_kind {
    NJ_ICMP_SOFT_ERROR, /* net, host, time exceeded, ...: may be transient */
    NJ_ICMP_HARD_ERROR, /* protocol or port unreachable, prohibited */
    NJ_ICMP_TOO_BIG,    /* fragmentation needed, packet too big */
};

struct nj_icmp_error {
    enum nj_icmp_error_kind error_kind;
    struct nj_tuple tuple; /* local = this host, the sender of the quoted segment */
    uint32_t seq;          /* of the quoted segment */
    uint32_t mtu;          /* TOO_BIG: of the next hop; 0 from routers older than RFC 1191 */
};

/* Neighbour discovery (RFC 4861) and multicast listener queries (RFC 3810). */
enum nj_nd_kind { NJ_ND_SOLICIT, NJ_ND_ADVERT, NJ_ND_ROUTER_ADVERT, NJ_ND_LISTENER_QUERY };

#define NJ_ND_NONCE_BYTES 6u

struct nj_nd {
    enum nj_nd_kind kind;
    bool router, solicited, override; /* ADVERT */
    bool has_mac, has_nonce;
    bool mldv1_query;          /* LISTENER_QUERY: version 1 (RFC 2710) */
    struct rte_ether_addr mac; /* of the sender; ADVERT: of the target */
    uint8_t nonce[NJ_ND_NONCE_BYTES];
    uint16_t delay_ms; /* LISTENER_QUERY: maximum response delay */
    /* SOLICIT, ADVERT: the address; LISTENER_QUERY: the group, or zero for all. */
    struct nj_addr target;
    uint32_t off, n_bytes; /* the whole message, from the start of the mbuf's data */
};

/* A fragment of an IPv4 packet to this host, of a supported protocol. */
struct nj_fragment {
    uint32_t id;
    uint8_t protocol, ecn;
    bool more;           /* not the last fragment */
    uint8_t ip_off;      /* of the IP header, from the start of the mbuf's data */
    uint16_t hdr_bytes;  /* of the IP header, including options */
    uint32_t first, end; /* range of the payload, first <= i < end */
};

enum nj_packet_kind {
    NJ_PACKET_DROP,
    NJ_PACKET_PARAM_PROBLEM, /* as DROP, with a parameter problem to send (RFC 4443 3.4) */
    NJ_PACKET_ARP,
    NJ_PACKET_ND,
    NJ_PACKET_ICMP_ECHO,
    NJ_PACKET_ICMP_ERROR,
    NJ_PACKET_FRAGMENT,
    NJ_PACKET_TCP,
};

/* A parsed packet. */
struct nj_packet {
    enum nj_packet_kind kind;
    nj_counter drop;               /* reason, for kinds DROP and PROBLEM */
    struct nj_addr ip_src, ip_dst; /* not set for ARP */
    union {
        struct nj_seg tcp;
        struct {
            bool request;              /* else a reply */
            struct rte_ether_addr mac; /* sender */
            struct nj_addr ip, target; /* sender's and target protocol address */
        } arp;
        struct {
            uint32_t off, n_bytes; /* the whole ICMP message, from the start of the mbuf's data */
        } icmp;
        struct nj_icmp_error icmp_error;
        struct nj_nd nd;
        struct {
            uint32_t off, n_bytes; /* the IPv6 packet, from the start of the mbuf's data */
            uint32_t pointer;      /* the offset of the erroneous byte */
            uint8_t code;
        } problem;
        struct nj_fragment fragment;
    };
};

/*
 * Parse one frame. `m` is not changed. Chained mbufs are dropped as drop_eth_long (devices are
 * configured so that a frame of the MTU fits in one).
 * Checksums are verified in software unless the device reports them as valid, or the data as intact
 * without one (RTE_MBUF_F_RX_*_CKSUM_GOOD, _NONE). Ethernet padding is ignored (sentence 59 of our
 * TCP list).
 * ARP is delivered for any target address, also from another host with one of our addresses as its
 * own, and neighbour discovery in any of our groups. Safe for
 * any bytes.
 */
void nj_packet_parse(const struct nj_iface *iface, const struct rte_mbuf *m, struct nj_packet *out);
