/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: one frame of any bytes through nj_packet_parse().
 *
 * A fuzzer cannot guess checksums, so the first byte states whether the device verified them;
 * otherwise nothing after the IPv4 header would be reached. Corpus files start with that byte: 0
 * for "verify", 1 for IP, 2 for TCP, 3 for both. ICMP is always verified.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "telem/counters.h"
#include "wire/icmp6.h"
#include "wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 10.0.0.1/24, 2001:db8::1/64 and fe80::aa at 02::aa, as in the corpus. */
static const struct nj_iface iface = {
    .mac = {{2, 0, 0, 0, 0, 0xaa}},
    .mtu = 1500,
    .ip6 = true,
    .n_addrs = 3,
    .addr = {{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}}, 24, 0},
             {{{0x20, 1, 0x0d, 0xb8, [15] = 1}}, 64, 0},
             {{{0xfe, 0x80, [15] = 0xaa}}, 64, 0}},
};

static void check(const struct nj_packet *p, const uint8_t *frame, size_t n_bytes)
{
    switch (p->kind) {
    case NJ_PACKET_DROP:
        NJ_CHECK(p->drop < NJ_COUNTERS_MAX && nj_counter_info[p->drop].kind == NJ_KIND_RX_DROP);
        return;
    case NJ_PACKET_PARAM_PROBLEM:
        NJ_CHECK(p->drop < NJ_COUNTERS_MAX && nj_counter_info[p->drop].kind == NJ_KIND_RX_DROP);
        NJ_CHECK(p->problem.off + p->problem.n_bytes <= n_bytes);
        NJ_CHECK(p->problem.n_bytes >= 40 && p->problem.pointer < p->problem.n_bytes);
        return;
    case NJ_PACKET_ARP:
        return;
    case NJ_PACKET_ND:
        NJ_CHECK(p->nd.n_bytes >= 8 && p->nd.off + p->nd.n_bytes <= n_bytes);
        if (p->nd.kind == NJ_ND_ROUTER_ADVERT) {
            struct nj_ra ra;
            nj_ra_parse(&ra, frame + p->nd.off, p->nd.n_bytes);
            NJ_CHECK(ra.n_prefixes <= NJ_RA_PREFIXES_MAX);
        }
        return;
    case NJ_PACKET_ICMP_ERROR:
        return;
    case NJ_PACKET_ICMP_ECHO:
        NJ_CHECK(p->icmp.n_bytes >= 8 && p->icmp.off + p->icmp.n_bytes <= n_bytes);
        return;
    case NJ_PACKET_FRAGMENT:
        NJ_CHECK(p->fragment.first < p->fragment.end);
        NJ_CHECK(p->fragment.hdr_bytes + p->fragment.end <= iface.mtu);
        NJ_CHECK(p->fragment.ip_off + p->fragment.hdr_bytes + p->fragment.end - p->fragment.first <=
                 n_bytes);
        return;
    case NJ_PACKET_TCP:
        NJ_CHECK(p->tcp.payload_bytes <= n_bytes);
        NJ_CHECK(p->tcp.payload_off + p->tcp.payload_bytes <= n_bytes);
        return;
    }
    NJ_UNREACHABLE("kind of packet");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > UINT16_MAX)
        return 0;
    size_t n_bytes = size - 1;
    /* A copy of exact size for AddressSanitizer. */
    uint8_t *frame = malloc(n_bytes ? n_bytes : 1);
    NJ_CHECK(frame);
    memcpy(frame, data + 1, n_bytes);

    struct rte_mbuf m = {
        .buf_addr = frame,
        .data_len = (uint16_t)n_bytes,
        .pkt_len = (uint32_t)n_bytes,
        .nb_segs = 1,
        .ol_flags = (data[0] & 1 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : 0) |
                    (data[0] & 2 ? RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0),
    };
    struct nj_packet p;
    memset(&p, 0xaa, sizeof p);
    nj_packet_parse(&iface, &m, &p);
    check(&p, frame, n_bytes);
    free(frame);
    return 0;
}
