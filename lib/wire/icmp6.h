/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMPv6 messages that we send: echo replies, parameter problems, neighbour discovery (RFC 4861)
 * and multicast listener reports (RFC 3810, RFC 2710). Also parses router advertisements.
 *
 * Except for the echo reply, each function fills an empty mbuf with an IPv6 packet without the
 * Ethernet header. None can fail: the largest packet is below 1,280 bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "wire/packet.h"

/* Prefixes that are read of a router advertisement. Links have one or two. */
#define NJ_RA_PREFIXES_MAX 4u

#define NJ_LIFETIME_FOREVER UINT32_MAX

struct nj_ra_prefix {
    struct nj_addr prefix;
    uint8_t bits;
    bool on_link, autonomous;
    uint32_t valid_s, preferred_s; /* NJ_LIFETIME_FOREVER: no end */
};

/* A router advertisement (RFC 4861 4.2). */
struct nj_ra {
    uint16_t lifetime_s;               /* as a default router; 0: it is not one */
    uint32_t reachable_ms, retrans_ms; /* 0: unspecified */
    uint32_t mtu;                      /* 0: unspecified */
    uint32_t n_prefixes;
    struct nj_ra_prefix prefix[NJ_RA_PREFIXES_MAX];
};

/* Parse the advertisement of `n_bytes` at `msg`, which nj_packet_parse() has validated. */
void nj_ra_parse(struct nj_ra *ra, const uint8_t *msg, uint32_t n_bytes);

/* Fill the empty mbuf `m` with the reply (without IP header) to the echo request at `request`, to
 * be sent from `src` to `dst`. RFC 4443 4.2. */
void nj_icmp6_echo_reply_build(struct rte_mbuf *m, const struct nj_addr *src,
                               const struct nj_addr *dst, const uint8_t *request, uint32_t n_bytes);

/* Parameter problem about the packet of `n_bytes` at `packet`, quoted up to a total of 1,280 bytes
 * (RFC 4443 3.4). */
void nj_icmp6_param_problem_build(struct rte_mbuf *m, const struct nj_addr *src,
                                  const struct nj_addr *dst, uint8_t code, uint32_t pointer,
                                  const uint8_t *packet, uint32_t n_bytes);

/* Neighbour solicitation for `target`. With unspecified `src` it is a DAD probe (RFC 4862 5.4.2):
 * `nonce` identifies our own probe (RFC 7527 4.1). Otherwise `nonce` is NULL, and `mac` is sent. */
void nj_nd_solicit_build(struct rte_mbuf *m, const struct nj_addr *src, const struct nj_addr *dst,
                         const struct nj_addr *target, const struct rte_ether_addr *mac,
                         const uint8_t *nonce);

/* Neighbour advertisement: `target` is at `mac` (RFC 4861 4.4). */
void nj_nd_advertise_build(struct rte_mbuf *m, const struct nj_addr *src, const struct nj_addr *dst,
                           const struct nj_addr *target, const struct rte_ether_addr *mac,
                           bool solicited);

/* Router solicitation (RFC 4861 4.1). */
void nj_nd_router_solicit_build(struct rte_mbuf *m, const struct nj_addr *src,
                                const struct rte_ether_addr *mac);

/* Report that we listen to `n` groups, at most NJ_ADDRS_MAX. `joined`: unsolicited, after joining;
 * else in reply to a query (RFC 3810 5.2). */
void nj_mld2_report_build(struct rte_mbuf *m, const struct nj_addr *src,
                          const struct nj_addr *groups, uint32_t n, bool joined);

/* The same for one group, in the format of RFC 2710. */
void nj_mld1_report_build(struct rte_mbuf *m, const struct nj_addr *src,
                          const struct nj_addr *group);
