/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of ICMPv6 messages and of neighbour discovery options. */
#pragma once

#define NJ__ICMP6_HDR_BYTES 8u

enum nj__icmp6_type {
    NJ__ICMP6_UNREACHABLE = 1,
    NJ__ICMP6_TOO_BIG = 2,
    NJ__ICMP6_TIME_EXCEEDED = 3,
    NJ__ICMP6_PARAM_PROBLEM = 4,
    NJ__ICMP6_ECHO_REQUEST = 128,
    NJ__ICMP6_ECHO_REPLY = 129,
    NJ__ICMP6_MLD_QUERY = 130,
    NJ__ICMP6_MLD1_REPORT = 131,
    NJ__ICMP6_ROUTER_SOLICIT = 133,
    NJ__ICMP6_ROUTER_ADVERT = 134,
    NJ__ICMP6_NEIGH_SOLICIT = 135,
    NJ__ICMP6_NEIGH_ADVERT = 136,
    NJ__ICMP6_MLD2_REPORT = 143,
};

/* RFC 4861 4.6, RFC 3971 5.3.2. Their lengths are counted in units of eight bytes. */
enum nj__nd_opt {
    NJ__ND_OPT_SOURCE_MAC = 1,
    NJ__ND_OPT_TARGET_MAC = 2,
    NJ__ND_OPT_PREFIX = 3,
    NJ__ND_OPT_MTU = 5,
    NJ__ND_OPT_NONCE = 14,
};

#define NJ__ND_ADVERT_BYTES        24u /* also for a solicitation */
#define NJ__ND_ROUTER_ADVERT_BYTES 16u
#define NJ__MLD_BYTES              24u
#define NJ__MLD2_QUERY_BYTES       28u
