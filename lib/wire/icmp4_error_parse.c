/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses ICMP errors about our TCP segments (RFC 792, RFC 1122 3.2.2, RFC 1191). */
#include "wire/icmp4_error_parse.h"

#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include <rte_ip.h>

#include "base/compiler.h"
#include "telem/counters_packet.h"

#define OK NJ_COUNTERS_MAX

/* RFC 792: type, code, checksum, 32 bits that depend on the type, then the quote. */
#define HEADER_BYTES 8u
#define MTU_AT       6u /* RFC 1191 4 */

/* Bytes of the TCP header that every error quotes: ports, sequence number (RFC 1122 3.2.2). */
#define QUOTED_TCP_BYTES 8u

/* Kind of error by code of Destination Unreachable (RFC 792, RFC 1122 3.2.2.1, RFC 1812 5.2.7.1).
 */
static const enum nj_icmp_error_kind unreachable_kind[] = {
    [ICMP_NET_UNREACH] = NJ_ICMP_SOFT_ERROR,    [ICMP_HOST_UNREACH] = NJ_ICMP_SOFT_ERROR,
    [ICMP_PROT_UNREACH] = NJ_ICMP_HARD_ERROR,   [ICMP_PORT_UNREACH] = NJ_ICMP_HARD_ERROR,
    [ICMP_FRAG_NEEDED] = NJ_ICMP_TOO_BIG,       [ICMP_SR_FAILED] = NJ_ICMP_SOFT_ERROR,
    [ICMP_NET_UNKNOWN] = NJ_ICMP_SOFT_ERROR,    [ICMP_HOST_UNKNOWN] = NJ_ICMP_SOFT_ERROR,
    [ICMP_HOST_ISOLATED] = NJ_ICMP_SOFT_ERROR,  [ICMP_NET_ANO] = NJ_ICMP_HARD_ERROR,
    [ICMP_HOST_ANO] = NJ_ICMP_HARD_ERROR,       [ICMP_NET_UNR_TOS] = NJ_ICMP_SOFT_ERROR,
    [ICMP_HOST_UNR_TOS] = NJ_ICMP_SOFT_ERROR,   [ICMP_PKT_FILTERED] = NJ_ICMP_HARD_ERROR,
    [ICMP_PREC_VIOLATION] = NJ_ICMP_SOFT_ERROR, [ICMP_PREC_CUTOFF] = NJ_ICMP_SOFT_ERROR,
};

/* Source quench (RFC 6633) and redirects are not acted on. */
static bool classify_error4(uint8_t type, uint8_t code, enum nj_icmp_error_kind *error_kind)
{
    switch (type) {
    case ICMP_DEST_UNREACH:
        if (code >= NJ_ARRAY_LEN(unreachable_kind))
            return false;
        *error_kind = unreachable_kind[code];
        return true;
    case ICMP_TIME_EXCEEDED: /* may be transient, like both of these (RFC 1122 4.2.3.9) */
    case ICMP_PARAMETERPROB:
        *error_kind = NJ_ICMP_SOFT_ERROR;
        return true;
    default:
        return false;
    }
}

nj_counter nj__icmp4_parse_error(const uint8_t *p, uint32_t n_bytes, struct nj_packet *out)
{
    struct nj_icmp_error e = {.mtu = 0};
    struct rte_ipv4_hdr ip;
    uint16_t mtu, ports[2];
    uint32_t seq;

    if (!classify_error4(p[0], p[1], &e.error_kind))
        return NJ_C_drop_icmp_type;
    memcpy(&mtu, p + MTU_AT, sizeof mtu);
    if (e.error_kind == NJ_ICMP_TOO_BIG)
        e.mtu = rte_be_to_cpu_16(mtu);

    if (n_bytes < HEADER_BYTES + sizeof ip)
        return NJ_C_drop_icmp_bad;
    memcpy(&ip, p + HEADER_BYTES, sizeof ip);
    uint32_t hdr_bytes = rte_ipv4_hdr_len(&ip);
    if (ip.version_ihl >> 4 != IPVERSION || hdr_bytes < sizeof ip ||
        n_bytes < HEADER_BYTES + hdr_bytes + QUOTED_TCP_BYTES)
        return NJ_C_drop_icmp_bad;
    /* An error is sent to the source of the quoted packet (RFC 792), so both addresses must be
     * equal. The quoted checksums are not verified: routers change forwarded headers. */
    if (ip.src_addr != nj_addr_to_v4(&out->ip_dst) || ip.next_proto_id != IPPROTO_TCP ||
        (ip.fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)))
        return NJ_C_drop_icmp_error;

    const uint8_t *tcp = p + HEADER_BYTES + hdr_bytes;
    memcpy(ports, tcp, sizeof ports);
    memcpy(&seq, tcp + sizeof ports, sizeof seq);
    e.tuple = (struct nj_tuple){.remote = nj_addr_from_v4(ip.dst_addr),
                                .local = nj_addr_from_v4(ip.src_addr),
                                .rport = rte_be_to_cpu_16(ports[1]),
                                .lport = rte_be_to_cpu_16(ports[0])};
    e.seq = rte_be_to_cpu_32(seq);
    out->kind = NJ_PACKET_ICMP_ERROR;
    out->icmp_error = e;
    return OK;
}
