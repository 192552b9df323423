/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole frames: one good frame of each kind, then one change after the other and its verdict. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/mbuf_env.h"
#include "tcp/seq.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/packet.h"

enum { ETH = 0, IP = 14, L4 = 34 };
#define NONE NJ_COUNTERS_MAX

struct frame {
    uint8_t b[1600];
    uint32_t n;
};

/* From 10.0.0.2 (02::bb) to 10.0.0.1 (02::aa), checksums right. */
static const uint8_t arp[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,  0xbb, 8, 6,
                              0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0,  0,    0, 0xbb,
                              10,   0,    0,    2,    0,    0,    0, 0, 0, 0, 10, 0,    0, 1};
static const uint8_t echo[] = {2, 0,  0, 0, 0, 0xaa, 2,  0, 0, 0, 0,   0xbb, 8,   0,   0x45, 0,
                               0, 33, 0, 1, 0, 0,    64, 1, 0, 0, 10,  0,    0,   2,   10,   0,
                               0, 1,  8, 0, 0, 0,    0,  7, 0, 1, 'p', 'i',  'n', 'g', '!'};
static const uint8_t syn[] = {
    2, 0,  0, 0, 0,    0xaa, 2,    0,    0, 0,  0, 0xbb, 8, 0,    0x45, 0,    0,    48, 0, 1, 0x40,
    0, 64, 6, 0, 0,    10,   0,    0,    2, 10, 0, 0,    1, 0x9c, 0x40, 0x01, 0xbb, 1,  2, 3, 4,
    0, 0,  0, 0, 0x70, 2,    0xff, 0xff, 0, 0,  0, 0,    2, 4,    0x05, 0xb4, 1,    3,  3, 7};
static const uint8_t data[] = {
    2, 0,    0, 0,  0, 0xaa, 2, 0,  0,    0,    0, 0xbb, 8, 0, 0x45, 0,    0,    43,   0,
    1, 0x40, 0, 64, 6, 0,    0, 10, 0,    0,    2, 10,   0, 0, 1,    0x9c, 0x40, 0x01, 0xbb,
    1, 2,    3, 5,  9, 8,    7, 6,  0x50, 0x18, 1, 0,    0, 0, 0,    0,    'a',  'b',  'c'};
static const uint8_t unreachable[] = {
    2,  0, 0, 0, 0,  0xaa, 2,    0, 0,    0,    0,    0xbb, 8,  0, 0x45, 0, 0, 56,
    0,  1, 0, 0, 64, 1,    0,    0, 10,   0,    0,    2,    10, 0, 0,    1, 3, 1,
    0,  0, 0, 0, 0,  0,    0x45, 0, 0,    40,   0,    1,    0,  0, 64,   6, 0, 0,
    10, 0, 0, 1, 10, 0,    0,    2, 0x01, 0xbb, 0x9c, 0x40, 1,  2, 3,    4};

static struct nj_iface test_iface(void)
{
    const uint8_t octets[4] = {10, 0, 0, 1};
    uint32_t be;
    memcpy(&be, octets, 4);
    return (struct nj_iface){.mac = {{2, 0, 0, 0, 0, 0xaa}},
                             .mtu = 1500,
                             .n_addrs = 1,
                             .addr = {{nj_addr_from_v4(be), 24, 0}}};
}

static uint32_t ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    const uint8_t octets[4] = {a, b, c, d};
    uint32_t be;
    memcpy(&be, octets, 4);
    return be;
}

static void put_csum(uint8_t *at, uint64_t sum)
{
    uint16_t c = (uint16_t)~nj__csum_fold(sum);
    memcpy(at, &c, 2);
}

/* Make both checksums right, as far as the lengths in the frame allow. */
static void fix_sums(struct frame *f)
{
    uint32_t hdr = (f->b[IP] & 15) * 4u, total = (uint32_t)f->b[IP + 2] << 8 | f->b[IP + 3];
    uint32_t src, dst;

    if (f->b[12] != 8 || f->b[13] != 0 || f->n < L4 || hdr < 20 || IP + hdr > f->n)
        return;
    memset(&f->b[IP + 10], 0, 2);
    put_csum(&f->b[IP + 10], nj__csum_add_bytes(0, &f->b[IP], hdr));
    if (total < hdr || IP + total > f->n)
        return;

    uint8_t *l4 = &f->b[IP + hdr];
    uint32_t n = total - hdr, at = f->b[IP + 9] == 6 ? 16 : 2;
    if (n < at + 2)
        return;
    memset(l4 + at, 0, 2);
    memcpy(&src, &f->b[IP + 12], 4);
    memcpy(&dst, &f->b[IP + 16], 4);
    uint64_t pseudo = at == 16 ? nj__csum_pseudo(src, dst, 6, (uint16_t)n) : 0;
    put_csum(l4 + at, nj__csum_add_bytes(pseudo, l4, n));
}

static struct frame frame_of(const uint8_t *b, size_t n)
{
    struct frame f = {.n = (uint32_t)n};
    memcpy(f.b, b, n);
    fix_sums(&f);
    return f;
}
#define FRAME(which) frame_of(which, sizeof which)

/* Parse in memory that ends where the frame ends, at an odd address. */
static nj_counter parse_flags(const struct frame *f, uint64_t ol_flags, struct nj_packet *p)
{
    struct nj_iface iface = test_iface();
    uint8_t *mem = malloc(f->n + 1);
    struct rte_mbuf m = {.buf_addr = mem,
                         .data_off = 1,
                         .data_len = (uint16_t)f->n,
                         .pkt_len = f->n,
                         .nb_segs = 1,
                         .ol_flags = ol_flags};
    memcpy(mem + 1, f->b, f->n);
    memset(p, 0xaa, sizeof *p);
    nj_packet_parse(&iface, &m, p);
    free(mem);
    return p->kind == NJ_PACKET_DROP ? p->drop : NONE;
}

static nj_counter parse(const struct frame *f, struct nj_packet *p)
{
    return parse_flags(f, 0, p);
}

Test(wire_packet, good_frames)
{
    struct nj_packet p;
    struct frame f = FRAME(arp);

    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.kind, NJ_PACKET_ARP);
    cr_expect(p.arp.request);
    cr_expect_eq(nj_addr_to_v4(&p.arp.ip), ip4(10, 0, 0, 2));
    cr_expect_eq(nj_addr_to_v4(&p.arp.target), ip4(10, 0, 0, 1));

    f = FRAME(echo);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.kind, NJ_PACKET_ICMP_ECHO);
    cr_expect_eq(p.icmp.off, L4);
    cr_expect_eq(p.icmp.n_bytes, 13);
    cr_expect_eq(nj_addr_to_v4(&p.ip_src), ip4(10, 0, 0, 2));
    cr_expect_eq(nj_addr_to_v4(&p.ip_dst), ip4(10, 0, 0, 1));

    f = FRAME(syn);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.kind, NJ_PACKET_TCP);
    cr_expect_eq(p.tcp.flags, NJ_TCP_SYN);
    cr_expect(p.tcp.opts.has_mss && p.tcp.opts.mss == 1460);
    cr_expect(p.tcp.opts.has_wscale && p.tcp.opts.wscale == 7);
    cr_expect_eq(nj_seg_len(&p.tcp), 1);

    f = FRAME(data);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.tcp.payload_off, L4 + 20);
    cr_expect_eq(p.tcp.payload_bytes, 3);
    cr_expect_eq(p.tcp.tuple.rport, 40000);
    cr_expect_eq(p.tcp.tuple.lport, 443);
}

/* One byte of a good frame set to another value, checksums made right again or left wrong. */
struct change {
    const char *what;
    const uint8_t *frame;
    uint32_t n, at;
    uint8_t value;
    bool fix;
    nj_counter verdict;
};
#define OF(f) (f), sizeof(f)

static const struct change changes[] = {
    {"other MAC", OF(data), 5, 1, true, NJ_C_drop_eth_dst},
    {"multicast MAC", OF(data), 0, 3, true, NJ_C_drop_eth_dst},
    {"ARP to our MAC", OF(arp), 13, 6, true, NONE},
    {"IPv6", OF(data), 12, 0x86, true, NJ_C_drop_eth_type},
    {"VLAN tag, of VLAN 0x500", OF(data), 12, 0x81, true, NJ_C_drop_vlan},
    {"IEEE 802.3 length", OF(arp), 12, 0, true, NJ_C_drop_eth_type},
    {"IP version", OF(data), IP, 0x65, true, NJ_C_drop_ip_header},
    {"IP header of 16 bytes", OF(data), IP, 0x44, true, NJ_C_drop_ip_header},
    {"IP header beyond the packet", OF(data), IP, 0x4f, true, NJ_C_drop_ip_header},
    {"IP longer than the frame", OF(data), IP + 3, 44, true, NJ_C_drop_ip_header},
    {"IP much longer than the frame", OF(data), IP + 2, 0xff, true, NJ_C_drop_ip_header},
    {"IP shorter than its header", OF(data), IP + 3, 19, true, NJ_C_drop_ip_header},
    {"TTL 0", OF(data), IP + 8, 0, true, NJ_C_drop_ip_header},
    {"TTL 1", OF(data), IP + 8, 1, true, NONE},
    {"IP checksum", OF(data), IP + 8, 63, false, NJ_C_drop_ip_checksum},
    {"to another host", OF(data), IP + 19, 3, true, NJ_C_drop_ip_dst},
    {"to the subnet's broadcast", OF(echo), IP + 19, 255, true, NJ_C_drop_ip_dst},
    {"from 0/8", OF(data), IP + 12, 0, true, NJ_C_drop_ip_src},
    {"from loopback", OF(data), IP + 12, 127, true, NJ_C_drop_ip_src},
    {"from multicast", OF(data), IP + 12, 224, true, NJ_C_drop_ip_src},
    {"from 240/4", OF(data), IP + 12, 240, true, NJ_C_drop_ip_src},
    {"from broadcast", OF(data), IP + 15, 255, true, NJ_C_drop_ip_src},
    {"from ourselves", OF(data), IP + 15, 1, true, NJ_C_drop_ip_src},
    {"more fragments, 23 bytes", OF(data), IP + 6, 0x20, true, NJ_C_drop_ip_fragment},
    {"fragment offset", OF(data), IP + 7, 1, true, NONE},
    {"fragment offset, high bits", OF(data), IP + 6, 0x10, true, NJ_C_drop_ip_fragment},
    {"no DF", OF(data), IP + 6, 0, true, NONE},
    {"UDP", OF(data), IP + 9, 17, true, NJ_C_drop_ip_protocol},
    {"ICMP checksum", OF(echo), L4 + 10, 0, false, NJ_C_drop_icmp_bad},
    {"ICMP of 7 bytes", OF(echo), IP + 3, 27, true, NJ_C_drop_icmp_bad},
    {"ICMP echo reply", OF(echo), L4, 0, true, NJ_C_drop_icmp_type},
    {"ICMP unreachable, nothing quoted", OF(echo), L4, 3, true, NJ_C_drop_icmp_bad},
    {"ICMP echo code 1", OF(echo), L4 + 1, 1, true, NJ_C_drop_icmp_type},
    {"TCP of 19 bytes", OF(data), IP + 3, 39, true, NJ_C_drop_tcp_header},
    {"TCP data offset 4", OF(data), L4 + 12, 0x40, true, NJ_C_drop_tcp_header},
    {"TCP data offset 6", OF(data), L4 + 12, 0x60, true, NJ_C_drop_tcp_header},
    {"TCP checksum", OF(data), L4 + 20, 'A', false, NJ_C_drop_tcp_checksum},
    {"TCP option length 0", OF(syn), L4 + 21, 0, true, NJ_C_drop_tcp_options},
    {"TCP option length 1", OF(syn), L4 + 21, 1, true, NJ_C_drop_tcp_options},
    {"TCP option too long", OF(syn), L4 + 21, 9, true, NJ_C_drop_tcp_options},
    {"TCP MSS of 3", OF(syn), L4 + 21, 3, true, NJ_C_drop_tcp_options},
    {"TCP options cut at a kind", OF(syn), L4 + 25, 1, true, NJ_C_drop_tcp_options},
    {"TCP with ECN bits", OF(syn), L4 + 13, 0xc2, true, NONE},
    {"TCP urgent pointer", OF(data), L4 + 18, 0xff, true, NONE},
    {"ARP hardware type", OF(arp), IP + 1, 6, true, NJ_C_drop_arp_bad},
    {"ARP protocol type", OF(arp), IP + 2, 0x86, true, NJ_C_drop_arp_bad},
    {"ARP hardware length", OF(arp), IP + 4, 8, true, NJ_C_drop_arp_bad},
    {"ARP protocol length", OF(arp), IP + 5, 16, true, NJ_C_drop_arp_bad},
    {"ARP operation 0", OF(arp), IP + 7, 0, true, NJ_C_drop_arp_bad},
    {"ARP operation 3", OF(arp), IP + 7, 3, true, NJ_C_drop_arp_bad},
    {"ARP operation 257", OF(arp), IP + 6, 1, true, NJ_C_drop_arp_bad},
    {"ARP reply", OF(arp), IP + 7, 2, true, NONE},
    {"ARP for another MAC", OF(arp), IP + 13, 0xbc, true, NJ_C_drop_arp_bad},
    {"ARP for another address", OF(arp), IP + 27, 77, true, NONE},
    {"ARP from broadcast", OF(arp), IP + 17, 255, true, NJ_C_drop_arp_bad},
    {"ARP from our address", OF(arp), IP + 17, 1, true, NONE},
};

/* Sentences 58, 60, 121, 123. */
Test(wire_packet, each_change_has_its_verdict)
{
    for (unsigned i = 0; i < NJ_ARRAY_LEN(changes); i++) {
        const struct change *c = &changes[i];
        struct nj_packet p;
        struct frame f = frame_of(c->frame, c->n);

        f.b[c->at] = c->value;
        if (c->fix)
            fix_sums(&f);
        nj_counter got = parse(&f, &p);
        cr_expect_eq(got, c->verdict, "%s: %s", c->what,
                     got == NONE ? "accepted" : nj_counter_info[got].name);
    }
}

/* Sentence 58; RFC 1071: 0x0000 and 0xffff are both zero, and a sender may use either. */
Test(wire_packet, checksum_of_zero)
{
    struct nj_packet p;
    struct frame f;
    uint32_t n_found = 0;

    for (uint32_t i = 0; i < 65536; i++) {
        f = frame_of(data, sizeof data);
        f.b[L4 + 20] = (uint8_t)(i >> 8);
        f.b[L4 + 21] = (uint8_t)i;
        fix_sums(&f);
        if (f.b[L4 + 16] || f.b[L4 + 17])
            continue;
        n_found++;
        cr_expect_eq(parse(&f, &p), NONE);
        f.b[L4 + 16] = f.b[L4 + 17] = 0xff;
        cr_expect_eq(parse(&f, &p), NONE);
        f.b[L4 + 17] = 0xfe;
        cr_expect_eq(parse(&f, &p), NJ_C_drop_tcp_checksum);
    }
    cr_expect_gt(n_found, 0);
}

/* Sentence 61; RFC 9293 3.8.5: urgent pointers before, at and beyond the end of the text. */
Test(wire_packet, urgent_pointers)
{
    static const uint16_t pointer[] = {0, 1, 2, 3, 4, 1000, 65535};
    struct nj_packet p;

    for (unsigned i = 0; i < NJ_ARRAY_LEN(pointer); i++) {
        struct frame f = frame_of(data, sizeof data);
        f.b[L4 + 13] |= NJ_TCP_URG;
        f.b[L4 + 18] = (uint8_t)(pointer[i] >> 8);
        f.b[L4 + 19] = (uint8_t)pointer[i];
        fix_sums(&f);
        cr_assert_eq(parse(&f, &p), NONE);
        cr_expect_eq(p.tcp.payload_off, L4 + 20);
        cr_expect_eq(p.tcp.payload_bytes, 3, "all three bytes are text");
    }
}

/* Sentence 121: a frame to the broadcast MAC address is not answered, for any IP address in it. */
Test(wire_packet, broadcast_frames)
{
    struct nj_packet p;
    struct frame f[] = {FRAME(data), FRAME(echo)};

    for (unsigned i = 0; i < NJ_ARRAY_LEN(f); i++) {
        memset(f[i].b, 0xff, 6);
        cr_expect_eq(parse(&f[i], &p), NJ_C_drop_eth_dst);
    }
}

Test(wire_packet, arp_senders)
{
    struct nj_packet p;
    struct frame f = FRAME(arp);

    memset(&f.b[IP + 14], 0, 4); /* RFC 5227 probe */
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(nj_addr_to_v4(&p.arp.ip), 0);
    f.b[IP + 7] = 2; /* but a reply from the unspecified address is not */
    cr_expect_eq(parse(&f, &p), NJ_C_drop_arp_bad);

    static const struct rte_ether_addr bad[] = {
        {{0}}, {{3, 0, 0, 0, 0, 1}}, {{255, 255, 255, 255, 255, 255}}};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        f = FRAME(arp);
        memcpy(&f.b[6], &bad[i], 6);
        memcpy(&f.b[IP + 8], &bad[i], 6);
        cr_expect_eq(parse(&f, &p), NJ_C_drop_arp_bad, "sender %u", i);
    }
}

/* RFC 5227 2.4: another host with our address is a conflict, our own frame that came back is not.
 */
Test(wire_packet, arp_with_our_address)
{
    struct nj_packet p;
    struct frame f = FRAME(arp);

    memcpy(&f.b[IP + 14], (const uint8_t[]){10, 0, 0, 1}, 4);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.kind, NJ_PACKET_ARP);
    cr_expect_eq(nj_addr_to_v4(&p.arp.ip), ip4(10, 0, 0, 1));
    f.b[6 + 5] = f.b[IP + 8 + 5] = 0xaa;
    cr_expect_eq(parse(&f, &p), NJ_C_drop_arp_bad);
}

/* Every shorter frame is a drop, and for the reason of the header that was cut. */
Test(wire_packet, cut_frames)
{
    struct frame all[] = {FRAME(arp), FRAME(echo), FRAME(syn), FRAME(data)};

    for (unsigned i = 0; i < NJ_ARRAY_LEN(all); i++) {
        struct frame f = all[i];
        for (f.n = 0; f.n < all[i].n; f.n++) {
            struct nj_packet p;
            nj_counter want = f.n < 14 ? NJ_C_drop_eth_short
                              : i == 0 ? NJ_C_drop_arp_bad
                                       : NJ_C_drop_ip_header;
            cr_expect_eq(parse(&f, &p), want, "frame %u cut to %u", i, f.n);
        }
    }
}

/* Sentence 59. */
Test(wire_packet, padding_is_ignored)
{
    struct nj_packet p;
    struct frame f = FRAME(data);

    f.n += 3;
    memset(&f.b[f.n - 3], 0x55, 3);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.tcp.payload_bytes, 3);
    f = FRAME(echo);
    f.n = 60;
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.icmp.n_bytes, 13);
}

/* Sentence 122. */
Test(wire_packet, ip_options_are_skipped)
{
    struct nj_packet p;
    struct frame f = FRAME(data);

    memmove(&f.b[L4 + 8], &f.b[L4], f.n - L4);
    memcpy(&f.b[L4], (const uint8_t[]){7, 7, 4, 0, 0, 0, 0, 0}, 8); /* record route */
    f.b[IP] = 0x47;
    f.b[IP + 3] += 8;
    f.n += 8;
    fix_sums(&f);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.tcp.payload_off, L4 + 28);
    cr_expect_eq(p.tcp.payload_bytes, 3);
    cr_expect_eq(p.tcp.tuple.lport, 443);
}

/* Sentence 58. */
Test(wire_packet, device_checksums)
{
    struct nj_packet p;
    struct frame f = FRAME(data);

    f.b[IP + 10] ^= 1;
    f.b[L4 + 16] ^= 1;
    uint64_t ip_good = RTE_MBUF_F_RX_IP_CKSUM_GOOD, l4_good = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    cr_expect_eq(parse_flags(&f, 0, &p), NJ_C_drop_ip_checksum);
    cr_expect_eq(parse_flags(&f, l4_good, &p), NJ_C_drop_ip_checksum);
    cr_expect_eq(parse_flags(&f, ip_good, &p), NJ_C_drop_tcp_checksum);
    cr_expect_eq(parse_flags(&f, ip_good | l4_good, &p), NONE);
    cr_expect_eq(parse_flags(&f, ip_good | RTE_MBUF_F_RX_L4_CKSUM_BAD, &p), NJ_C_drop_tcp_checksum);
    cr_expect_eq(parse_flags(&f, RTE_MBUF_F_RX_IP_CKSUM_NONE | RTE_MBUF_F_RX_L4_CKSUM_NONE, &p),
                 NONE);
}

/* Devices are configured to store a frame in one segment. A chained mbuf is dropped, also when only
 * padding is in the second segment: TCP's queues use `next` of the mbuf. */
Test(wire_packet, chained)
{
    struct rte_mempool *pool = nj_test_pool(2);
    struct nj_iface iface = test_iface();
    struct frame f = FRAME(data);

    f.n += 4; /* padding */
    for (uint32_t cut = 0; cut <= f.n; cut++) {
        struct nj_packet p;
        struct rte_mbuf *m = nj_test_mbuf(pool, f.b, cut);
        cr_assert_eq(rte_pktmbuf_chain(m, nj_test_mbuf(pool, f.b + cut, f.n - cut)), 0);
        nj_packet_parse(&iface, m, &p);
        cr_expect(p.kind == NJ_PACKET_DROP && p.drop == NJ_C_drop_eth_long, "cut at %u", cut);
        rte_pktmbuf_free(m);
    }
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_packet, echo_larger_than_a_packet)
{
    struct nj_packet p;
    struct frame f = FRAME(echo);

    for (uint32_t total = 1500; total <= 1501; total++) {
        f.n = IP + total;
        f.b[IP + 2] = (uint8_t)(total >> 8);
        f.b[IP + 3] = (uint8_t)total;
        fix_sums(&f);
        cr_expect_eq(parse(&f, &p), total == 1500 ? NONE : NJ_C_drop_icmp_bad);
    }
}

Test(wire_packet, sources_and_links)
{
    struct nj_iface i = test_iface();
    struct nj_addr a = nj_addr_from_v4(ip4(10, 0, 0, 77)), b = nj_addr_from_v4(ip4(10, 0, 1, 77)),
                   six = {{1}};

    cr_expect(nj_ip4_source_ok(&i, ip4(10, 0, 0, 0)));
    cr_expect(nj_ip4_source_ok(&i, ip4(10, 0, 1, 255)));
    cr_expect_not(nj_ip4_source_ok(&i, ip4(10, 0, 0, 255)));
    cr_expect_not(nj_ip4_source_ok(&i, ip4(255, 255, 255, 255)));
    cr_expect(nj_ip4_source_ok(&i, ip4(223, 255, 255, 255)));
    cr_expect(nj_ip_is_on_link(&i, &a));
    cr_expect_not(nj_ip_is_on_link(&i, &b));
    cr_expect_not(nj_ip_is_on_link(&i, &six));

    i.addr[0].prefix_bits = 0;
    cr_expect(nj_ip_is_on_link(&i, &b));
    cr_expect(nj_ip4_source_ok(&i, ip4(10, 0, 0, 255)));
    i.addr[0].prefix_bits = 31; /* the pair 10.0.0.0 and 10.0.0.1, no broadcast */
    i.addr[0].ip = nj_addr_from_v4(ip4(10, 0, 0, 0));
    cr_expect(nj_ip4_source_ok(&i, ip4(10, 0, 0, 1)));
    i.addr[0].prefix_bits = 32;
    cr_expect_not(nj_ip_is_on_link(&i, &a));
    cr_expect(nj_ip_is_on_link(&i, &i.addr[0].ip));
}

/* Accepted fields must be within the frame. */
static void check_sane(const struct frame *f, const struct nj_packet *p)
{
    switch (p->kind) {
    case NJ_PACKET_DROP:
    case NJ_PACKET_PARAM_PROBLEM:
    case NJ_PACKET_ND: /* of IPv6: not spoken here */
        cr_assert_eq(p->kind, NJ_PACKET_DROP);
        cr_assert(p->drop < NJ_COUNTERS_MAX);
        cr_assert_eq(nj_counter_info[p->drop].kind, NJ_KIND_RX_DROP);
        break;
    case NJ_PACKET_ARP:
    case NJ_PACKET_ICMP_ERROR:
        break;
    case NJ_PACKET_ICMP_ECHO:
        cr_assert(p->icmp.n_bytes >= 8 && p->icmp.off + p->icmp.n_bytes <= f->n);
        break;
    case NJ_PACKET_FRAGMENT:
        cr_assert(p->fragment.first < p->fragment.end && p->fragment.ip_off == IP);
        cr_assert(IP + p->fragment.hdr_bytes + p->fragment.end - p->fragment.first <= f->n);
        break;
    case NJ_PACKET_TCP:
        cr_assert(p->tcp.payload_off >= L4 + 20 && p->tcp.payload_bytes <= f->n &&
                  p->tcp.payload_off + p->tcp.payload_bytes <= f->n);
        break;
    default:
        cr_assert_fail("kind %d", p->kind);
    }
}

static void mutate(struct nj_prng *r, struct frame *f)
{
    switch (nj_prng_below(r, 4)) {
    case 0: /* noise */
        f->n = nj_prng_below(r, 200);
        for (uint32_t i = 0; i < f->n; i++)
            f->b[i] = (uint8_t)nj_prng_next(r);
        return;
    case 1: /* cut or grown */
        f->n = nj_prng_below(r, 2 * f->n);
        break;
    default:
        break;
    }
    for (uint32_t n = nj_prng_below(r, 4); n > 0; n--)
        f->b[nj_prng_below(r, f->n + 1)] = (uint8_t)nj_prng_next(r);
}

Test(wire_packet, mutated_frames)
{
    const uint64_t seed = 0xf8a3e;
    const struct frame good[] = {FRAME(arp), FRAME(echo), FRAME(syn), FRAME(data),
                                 FRAME(unreachable)};
    unsigned kinds[NJ_PACKET_TCP + 1] = {0}, verdicts[NJ_COUNTERS_MAX] = {0}, n_verdicts = 0;
    struct nj_prng r;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (unsigned run = 0; run < 20000; run++) {
        struct nj_packet p;
        struct frame f = good[nj_prng_below(&r, NJ_ARRAY_LEN(good))];
        mutate(&r, &f);
        if (nj_prng_below(&r, 4)) /* or most would end at a checksum */
            fix_sums(&f);
        parse(&f, &p);
        check_sane(&f, &p);
        kinds[p.kind]++;
        if (p.kind == NJ_PACKET_DROP)
            n_verdicts += verdicts[p.drop]++ == 0;
    }
    static const enum nj_packet_kind all[] = {NJ_PACKET_DROP, NJ_PACKET_ARP, NJ_PACKET_ICMP_ECHO,
                                              NJ_PACKET_TCP};
    for (unsigned k = 0; k < NJ_ARRAY_LEN(all); k++)
        cr_expect_gt(kinds[all[k]], 0, "no packet of kind %u", all[k]);
    cr_expect_geq(n_verdicts, 14, "%u different verdicts", n_verdicts); /* the test is no stub */
}
