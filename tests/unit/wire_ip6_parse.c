/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 frames: extension headers, unknown options, sources and destinations, ICMPv6 errors, and
 * sentence 118: neighbour discovery only with valid options and a hop limit of 255. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/mbuf_env.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/emit.h"
#include "wire/icmp6.h"
#include "wire/ip6.h"

#define NONE NJ_COUNTERS_MAX
enum { ETH = 14, IP = 14, NEXT = IP + 6, HOPS = IP + 7, SRC = IP + 8, DST = IP + 24, UP = IP + 40 };

static const struct rte_ether_addr our_mac = {{2, 0, 0, 0, 0, 0xaa}};
static const struct rte_ether_addr peer_mac = {{2, 0, 0, 0, 0, 0xbb}};
static const struct nj_addr us = {{0x20, 1, 0x0d, 0xb8, [15] = 1}};
static const struct nj_addr peer = {{0x20, 1, 0x0d, 0xb8, [15] = 2}};
static const struct nj_addr our_ll = {{0xfe, 0x80, [15] = 0xaa}};
static const struct nj_addr peer_ll = {{0xfe, 0x80, [15] = 0xbb}};
static const struct nj_addr tentative = {{0x20, 1, 0x0d, 0xb8, [15] = 0x77}};
static const struct nj_addr nobody;

static const struct nj_iface iface = {
    .mac = {{2, 0, 0, 0, 0, 0xaa}},
    .mtu = 1500,
    .ip6 = true,
    .n_addrs = 4,
    .addr = {{{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, 24, 0},
             {{{0x20, 1, 0x0d, 0xb8, [15] = 1}}, 64, 0},
             {{{0xfe, 0x80, [15] = 0xaa}}, 64, 0},
             {{{0x20, 1, 0x0d, 0xb8, [15] = 0x77}}, 64, NJ_ADDR_TENTATIVE}},
};

struct frame {
    uint8_t b[1600];
    uint32_t n;
};

static void put(struct frame *f, const void *data, size_t n)
{
    memcpy(f->b + f->n, data, n);
    f->n += (uint32_t)n;
}

static struct frame begin(const struct nj_addr *src, const struct nj_addr *dst, uint8_t next,
                          uint8_t hops)
{
    struct frame f = {.n = 0};
    const uint8_t head[8] = {0x60, 0, 0, 0, 0, 0, next, hops};
    struct rte_ether_addr mac = nj_ip6_is_multicast(dst) ? nj_ip6_multicast_mac(dst) : our_mac;

    put(&f, &mac, 6);
    put(&f, &peer_mac, 6);
    put(&f, "\x86\xdd", 2);
    put(&f, head, sizeof head);
    put(&f, src, 16);
    put(&f, dst, 16);
    return f;
}

/* Where the checksum of the upper protocol that begins at `up` is. */
static uint32_t sum_at(const struct frame *f, uint32_t up, uint8_t protocol)
{
    uint32_t at = up + (protocol == IPPROTO_TCP ? 16 : 2);
    return at + 2 <= f->n ? at : 0;
}

/* Set the payload length, and the checksum of the header at `up`. */
static void finish(struct frame *f, uint32_t up, uint8_t protocol)
{
    struct nj_addr src, dst;
    uint32_t at = sum_at(f, up, protocol), n = f->n - IP - 40;

    f->b[IP + 4] = (uint8_t)(n >> 8);
    f->b[IP + 5] = (uint8_t)n;
    if (at == 0)
        return;
    memcpy(&src, f->b + SRC, 16);
    memcpy(&dst, f->b + DST, 16);
    memset(f->b + at, 0, 2);
    uint64_t sum = nj__csum_pseudo6(&src, &dst, protocol, f->n - up);
    uint16_t c = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(sum, f->b + up, f->n - up));
    memcpy(f->b + at, &c, 2);
}

static const uint8_t tcp_syn[20] = {0x9c, 0x40, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff};
static const uint8_t ping[12] = {128, 0, 0, 0, 0, 7, 0, 1, 'p', 'i', 'n', 'g'};

/* A SYN behind these extension headers; the first is of kind `next`, the last names TCP itself. */
static struct frame syn_behind(uint8_t next, const void *ext, size_t n)
{
    struct frame f = begin(&peer, &us, next, 64);
    put(&f, ext, n);
    uint32_t up = f.n;
    put(&f, tcp_syn, sizeof tcp_syn);
    finish(&f, up, IPPROTO_TCP);
    return f;
}

static struct frame icmp(const struct nj_addr *src, const struct nj_addr *dst, uint8_t hops,
                         const void *msg, size_t n)
{
    struct frame f = begin(src, dst, IPPROTO_ICMPV6, hops);
    put(&f, msg, n);
    finish(&f, UP, IPPROTO_ICMPV6);
    return f;
}

/* In memory that ends where the frame ends, at an odd address. */
static nj_counter parse(const struct frame *f, struct nj_packet *p)
{
    uint8_t *mem = malloc(f->n + 1);
    struct rte_mbuf m = {
        .buf_addr = mem, .data_off = 1, .data_len = (uint16_t)f->n, .pkt_len = f->n, .nb_segs = 1};
    memcpy(mem + 1, f->b, f->n);
    memset(p, 0xaa, sizeof *p);
    nj_packet_parse(&iface, &m, p);
    free(mem);
    return p->kind <= NJ_PACKET_PARAM_PROBLEM ? p->drop : NONE;
}

Test(wire_ip6_parse, tcp_and_echo)
{
    struct nj_packet p;
    struct frame f = syn_behind(IPPROTO_TCP, "", 0);

    f.b[IP] = 0x60;
    f.b[IP + 1] = 0x30; /* traffic class 3: congestion experienced */
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.kind, NJ_PACKET_TCP);
    cr_expect(nj_addr_eq(&p.tcp.tuple.remote, &peer) && nj_addr_eq(&p.tcp.tuple.local, &us));
    cr_expect_eq(p.tcp.tuple.rport, 40000);
    cr_expect_eq(p.tcp.ecn, NJ_ECN_CE);
    cr_expect_eq(p.tcp.payload_off, UP + 20);
    f.b[UP + 4] ^= 1;
    cr_expect_eq(parse(&f, &p), NJ_C_drop_tcp_checksum);

    f = icmp(&peer, &us, 64, ping, sizeof ping);
    put(&f, "padding", 7);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect_eq(p.kind, NJ_PACKET_ICMP_ECHO);
    cr_expect(p.icmp.off == UP && p.icmp.n_bytes == sizeof ping);
    f.b[UP + 8] ^= 1;
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_bad);
}

#define A(...)   (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define H4(next) (next), 0, 1, 4, 0, 0, 0, 0 /* eight bytes of padding options */

/* Extension headers between IPv6 and TCP; `pointer` 0: no ICMPv6 error is sent. */
static const struct {
    const char *what;
    uint8_t first;
    const uint8_t *ext;
    size_t n;
    nj_counter verdict;
    uint8_t code;
    uint32_t pointer;
} ext_rows[] = {
    {"hop-by-hop, padded", 0, A(H4(6)), NONE, 0, 0},
    {"hop-by-hop with Pad1 only", 0, A(6, 0, 0, 0, 0, 0, 0, 0), NONE, 0, 0},
    {"all of them", 0, A(H4(60), H4(43), 44, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 1, 2, 3, 4, H4(6)),
     NONE, 0, 0},
    {"router alert", 0, A(6, 0, 5, 2, 0, 0, 1, 0), NONE, 0, 0},
    {"unknown option: skip", 60, A(6, 0, 0x1e, 4, 0, 0, 0, 0), NONE, 0, 0},
    {"unknown option: drop", 60, A(6, 0, 0x5e, 4, 0, 0, 0, 0), NJ_C_drop_ip6_ext, 0, 0},
    {"unknown option: tell", 60, A(6, 0, 0x9e, 4, 0, 0, 0, 0), NJ_C_drop_ip6_ext, 2, 42},
    {"unknown option: tell one", 60, A(6, 0, 0, 0xde, 3, 0, 0, 0), NJ_C_drop_ip6_ext, 2, 43},
    {"jumbo payload", 0, A(6, 0, 0xc2, 4, 0, 1, 0, 0), NJ_C_drop_ip6_ext, 2, 42},
    {"option beyond its header", 60, A(6, 0, 1, 5, 0, 0, 0, 0), NJ_C_drop_ip6_ext, 0, 0},
    {"option without length", 60, A(6, 0, 1, 3, 0, 0, 0, 1), NJ_C_drop_ip6_ext, 0, 0},
    {"header beyond the packet", 60, A(6, 4, 1, 4, 0, 0, 0, 0), NJ_C_drop_ip6_ext, 0, 0},
    {"hop-by-hop not first", 60, A(H4(0), H4(6)), NJ_C_drop_ip6_ext, 1, 40},
    {"two hop-by-hops", 0, A(H4(0), H4(6)), NJ_C_drop_ip6_ext, 1, 40},
    {"routing, none left", 43, A(6, 0, 2, 0, 0, 0, 0, 0), NONE, 0, 0},
    {"routing type 0, none left", 43, A(6, 0, 0, 0, 0, 0, 0, 0), NONE, 0, 0},
    {"routing type 0", 43, A(6, 0, 0, 1, 0, 0, 0, 0), NJ_C_drop_ip6_ext, 0, 42},
    {"routing type 4", 43, A(6, 0, 4, 1, 0, 0, 0, 0), NJ_C_drop_ip6_ext, 0, 42},
    {"whole fragment", 44, A(6, 0, 0, 0, 1, 2, 3, 4), NONE, 0, 0},
    {"first fragment", 44, A(6, 0, 0, 1, 1, 2, 3, 4), NJ_C_drop_ip_fragment, 0, 0},
    {"last fragment", 44, A(6, 0, 0, 8, 1, 2, 3, 4), NJ_C_drop_ip_fragment, 0, 0},
    {"far fragment", 44, A(6, 0, 1, 0, 1, 2, 3, 4), NJ_C_drop_ip_fragment, 0, 0},
    {"fragment after an option that causes an error", 60,
     A(44, 0, 0x9e, 4, 0, 0, 0, 0, 6, 0, 0, 1, 1, 2, 3, 4), NJ_C_drop_ip6_ext, 0, 0},
    {"UDP", 17, A(0), NJ_C_drop_ip_protocol, 1, 6},
    {"UDP behind options", 60, A(H4(17)), NJ_C_drop_ip_protocol, 1, 40},
    {"no next header", 59, A(0), NJ_C_drop_ip_protocol, 0, 0},
    {"encrypted", 50, A(0), NJ_C_drop_ip_protocol, 1, 6},
    {"six headers", 60, A(H4(60), H4(60), H4(60), H4(60), H4(60), H4(6)), NONE, 0, 0},
    {"seven headers", 60, A(H4(60), H4(60), H4(60), H4(60), H4(60), H4(60), H4(6)),
     NJ_C_drop_ip6_ext, 0, 0},
};

/* Sentence 122: RFC 8200 4, RFC 5095, RFC 6946, RFC 4443 3.4. */
Test(wire_ip6_parse, extension_headers)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(ext_rows); i++) {
        struct nj_packet p;
        struct frame f = syn_behind(ext_rows[i].first, ext_rows[i].ext, ext_rows[i].n);
        bool told = ext_rows[i].pointer > 0;

        cr_expect_eq(parse(&f, &p), ext_rows[i].verdict, "%s", ext_rows[i].what);
        cr_expect_eq(p.kind == NJ_PACKET_PARAM_PROBLEM, told, "%s", ext_rows[i].what);
        if (told && p.kind == NJ_PACKET_PARAM_PROBLEM) {
            cr_expect_eq(p.problem.code, ext_rows[i].code, "%s", ext_rows[i].what);
            cr_expect_eq(p.problem.pointer, ext_rows[i].pointer, "%s", ext_rows[i].what);
            cr_expect(p.problem.off == IP && p.problem.n_bytes == f.n - IP);
        }
        if (ext_rows[i].verdict == NONE)
            cr_expect_eq(p.tcp.payload_off, f.n, "%s", ext_rows[i].what);
    }
}

/* RFC 4443 2.4 e: no error about an error, about a packet to a group (except one kind), or without
 * a source address. */
Test(wire_ip6_parse, whom_errors_are_told)
{
    static const uint8_t unknown[8] = {IPPROTO_ICMPV6, 0, 0x9e, 4}; /* always an error */
    static const uint8_t single[8] = {IPPROTO_ICMPV6, 0, 0xde, 4};  /* not for a group */
    const struct nj_addr all = nj_ip6_all_nodes();
    const struct {
        const struct nj_addr *src, *dst;
        const uint8_t *option;
        uint8_t type;
        bool told;
    } row[] = {
        {&peer, &us, unknown, 128, true},     {&peer, &us, unknown, 1, false},
        {&peer, &us, unknown, 4, false},      {&peer, &us, single, 128, true},
        {&peer, &all, unknown, 128, true},    {&peer, &all, single, 128, false},
        {&nobody, &all, unknown, 135, false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(row); i++) {
        struct nj_packet p;
        struct frame f = begin(row[i].src, row[i].dst, IPPROTO_DSTOPTS, 64);
        const uint8_t msg[48] = {row[i].type};
        put(&f, row[i].option, 8);
        put(&f, msg, sizeof msg);
        finish(&f, UP + 8, IPPROTO_ICMPV6);
        cr_expect_eq(parse(&f, &p), NJ_C_drop_ip6_ext, "row %zu", i);
        cr_expect_eq(p.kind == NJ_PACKET_PARAM_PROBLEM, row[i].told, "row %zu", i);
    }
}

/* Sentence 121. */
Test(wire_ip6_parse, header_and_addresses)
{
    static const struct nj_addr mapped = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
    static const struct nj_addr loopback = {{[15] = 1}}, group = {{0xff, 2, [15] = 0xfb}};
    const struct nj_addr all = nj_ip6_all_nodes();
    const struct {
        const char *what;
        const struct nj_addr *src, *dst;
        nj_counter verdict;
    } row[] = {
        {"good", &peer, &us, NONE},
        {"to our link-local", &peer_ll, &our_ll, NONE},
        {"to another host", &us, &peer, NJ_C_drop_ip_dst},
        {"to a tentative address", &peer, &tentative, NJ_C_drop_ip_dst},
        {"to our IPv4 address", &peer, &mapped, NJ_C_drop_ip_dst},
        {"to a group of others", &peer, &group, NJ_C_drop_ip_dst},
        {"TCP to all nodes", &peer, &all, NJ_C_drop_ip_dst},
        {"from nobody", &nobody, &us, NJ_C_drop_ip_src},
        {"from ourselves", &us, &us, NJ_C_drop_ip_src},
        {"from a group", &group, &us, NJ_C_drop_ip_src},
        {"from loopback", &loopback, &us, NJ_C_drop_ip_src},
        {"from an IPv4 address", &mapped, &us, NJ_C_drop_ip_src},
    };
    struct nj_packet p;
    struct frame f;

    for (size_t i = 0; i < NJ_ARRAY_LEN(row); i++) {
        f = begin(row[i].src, row[i].dst, IPPROTO_TCP, 64);
        put(&f, tcp_syn, sizeof tcp_syn);
        finish(&f, UP, IPPROTO_TCP);
        cr_expect_eq(parse(&f, &p), row[i].verdict, "%s: %u", row[i].what, p.drop);
    }
    const struct frame good = syn_behind(IPPROTO_TCP, "", 0);
    for (f = good, f.n = ETH; f.n < good.n; f.n++)
        cr_expect_eq(parse(&f, &p), NJ_C_drop_ip_header, "cut to %u", f.n);
    f = good;
    f.b[IP] = 0x40;
    cr_expect_eq(parse(&f, &p), NJ_C_drop_ip_header);
    f = good;
    f.b[HOPS] = 0;
    cr_expect_eq(parse(&f, &p), NJ_C_drop_ip_header);
    f = good; /* a packet of one host, to a group */
    memset(f.b, 0xff, 6);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_eth_dst);
    f = good;
    memcpy(f.b, "\x33\x33\0\0\0\1", 6);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_eth_dst);
    f = icmp(&peer, &all, 64, ping, sizeof ping);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_type, "no echo to a group");
}

/* --- ICMPv6 errors ------------------------------------------------------------------------- */

static struct frame error(uint8_t type, uint8_t code, uint32_t word, const struct nj_addr *src,
                          const struct nj_addr *dst, uint8_t protocol, uint32_t quoted)
{
    struct frame f = begin(&peer_ll, &us, IPPROTO_ICMPV6, 64);
    const uint8_t head[8] = {type,
                             code,
                             0,
                             0,
                             (uint8_t)(word >> 24),
                             (uint8_t)(word >> 16),
                             (uint8_t)(word >> 8),
                             (uint8_t)word};
    const uint8_t ip[8] = {0x60, 0, 0, 0, 5, 0xc8, protocol, 60};
    const uint8_t tcp[20] = {0, 80, 0x9c, 0x40, 9, 8, 7, 6};

    put(&f, head, 8);
    put(&f, ip, 8);
    put(&f, src, 16);
    put(&f, dst, 16);
    put(&f, tcp, quoted);
    finish(&f, UP, IPPROTO_ICMPV6);
    return f;
}

/* Sentence 94. */
Test(wire_ip6_parse, errors_about_segments_of_ours)
{
    static const struct {
        uint8_t type, code;
        enum nj_icmp_error_kind error_kind;
    } row[] = {
        {1, 0, NJ_ICMP_SOFT_ERROR}, {1, 1, NJ_ICMP_HARD_ERROR}, {1, 2, NJ_ICMP_SOFT_ERROR},
        {1, 3, NJ_ICMP_SOFT_ERROR}, {1, 4, NJ_ICMP_HARD_ERROR}, {1, 6, NJ_ICMP_HARD_ERROR},
        {2, 0, NJ_ICMP_TOO_BIG},    {2, 9, NJ_ICMP_TOO_BIG},    {3, 0, NJ_ICMP_SOFT_ERROR},
        {3, 1, NJ_ICMP_SOFT_ERROR}, {4, 0, NJ_ICMP_SOFT_ERROR}, {4, 1, NJ_ICMP_HARD_ERROR},
    };
    struct nj_packet p;
    struct frame f;

    for (size_t i = 0; i < NJ_ARRAY_LEN(row); i++) {
        f = error(row[i].type, row[i].code, 1280, &us, &peer, IPPROTO_TCP, 20);
        cr_assert_eq(parse(&f, &p), NONE, "row %zu", i);
        cr_expect_eq(p.kind, NJ_PACKET_ICMP_ERROR);
        cr_expect_eq(p.icmp_error.error_kind, row[i].error_kind, "row %zu", i);
        cr_expect_eq(p.icmp_error.mtu, row[i].type == 2 ? 1280 : 0);
        cr_expect(nj_addr_eq(&p.icmp_error.tuple.local, &us));
        cr_expect(nj_addr_eq(&p.icmp_error.tuple.remote, &peer));
        cr_expect_eq(p.icmp_error.tuple.lport, 80);
        cr_expect_eq(p.icmp_error.tuple.rport, 40000);
        cr_expect_eq(p.icmp_error.seq, 0x09080706);
    }
    f = error(1, 4, 0, &us, &peer, IPPROTO_TCP, 8);
    cr_expect_eq(parse(&f, &p), NONE, "ports and sequence number are enough");
    f = error(1, 4, 0, &us, &peer, IPPROTO_TCP, 7);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_bad);
    f = error(1, 7, 0, &us, &peer, IPPROTO_TCP, 20);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_bad);
    f = error(5, 0, 0, &us, &peer, IPPROTO_TCP, 20);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_type);
    f = error(1, 4, 0, &us, &peer, IPPROTO_UDP, 20);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_type);
    f = error(1, 4, 0, &our_ll, &peer, IPPROTO_TCP, 20);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_bad, "about another address than it came to");
    f = error(1, 4, 0, &us, &iface.addr[0].ip, IPPROTO_TCP, 20);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_bad, "IPv4 in IPv6");
    f = error(1, 4, 0, &us, &peer, IPPROTO_TCP, 20);
    f.b[UP + 8] = 0x45;
    finish(&f, UP, IPPROTO_ICMPV6);
    cr_expect_eq(parse(&f, &p), NJ_C_drop_icmp_bad);
}

/* --- neighbour discovery, sentence 118 ------------------------------------------------------- */

/* NS for `us` from peer, with its MAC; NA from peer about itself; RA with prefix, MTU and MAC. */
static const uint8_t ns[32] = {135, [8] = 0x20, 1, 0x0d, 0xb8, [23] = 1, 1, 1, 2, 0, 0, 0, 0, 0xbb};
static const uint8_t na[32] = {
    136, 0, 0, 0, 0x60, [8] = 0x20, 1, 0x0d, 0xb8, [23] = 2, 2, 1, 2, 0, 0, 0, 0, 0xbb};
static const uint8_t ra[64] = {134,
                               0,
                               0,
                               0,
                               64,
                               0,
                               7,
                               8,
                               0,
                               0,
                               0x75,
                               0x30,
                               0,
                               0,
                               3,
                               0xe8,
                               /* prefix */ 3,
                               4,
                               64,
                               0xc0,
                               0,
                               1,
                               0x51,
                               0x80,
                               0,
                               0,
                               0x38,
                               0x40,
                               0,
                               0,
                               0,
                               0,
                               0x20,
                               1,
                               0x0d,
                               0xb8,
                               0,
                               5,
                               [48] = 5,
                               1,
                               0,
                               0,
                               0,
                               0,
                               5,
                               0xdc,
                               /* MAC */ 1,
                               1,
                               2,
                               0,
                               0,
                               0,
                               0,
                               0xbb};

/* Sentence 118. */
Test(wire_ip6_parse, discovery_that_is_good)
{
    const struct nj_addr group = nj_ip6_solicited_node(&us), all = nj_ip6_all_nodes();
    struct nj_packet p;
    struct frame f = icmp(&peer, &group, 255, ns, sizeof ns);

    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect(p.kind == NJ_PACKET_ND && p.nd.kind == NJ_ND_SOLICIT);
    cr_expect(nj_addr_eq(&p.nd.target, &us) && nj_addr_eq(&p.ip_src, &peer));
    cr_expect(p.nd.has_mac && rte_is_same_ether_addr(&p.nd.mac, &peer_mac) && !p.nd.has_nonce);

    f = icmp(&peer, &us, 255, na, sizeof na);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect(p.nd.kind == NJ_ND_ADVERT && p.nd.solicited && p.nd.override && !p.nd.router);
    cr_expect(p.nd.has_mac && nj_addr_eq(&p.nd.target, &peer));

    f = icmp(&peer_ll, &all, 255, ra, sizeof ra);
    cr_assert_eq(parse(&f, &p), NONE);
    cr_expect(p.nd.kind == NJ_ND_ROUTER_ADVERT && p.nd.has_mac);
    struct nj_ra r;
    nj_ra_parse(&r, f.b + p.nd.off, p.nd.n_bytes);
    cr_expect_eq(r.lifetime_s, 1800);
    cr_expect_eq(r.reachable_ms, 30000);
    cr_expect_eq(r.retrans_ms, 1000);
    cr_expect_eq(r.mtu, 1500);
    cr_assert_eq(r.n_prefixes, 1);
    cr_expect(r.prefix[0].on_link && r.prefix[0].autonomous && r.prefix[0].bits == 64);
    cr_expect_eq(r.prefix[0].valid_s, 86400);
    cr_expect_eq(r.prefix[0].preferred_s, 14400);

    const uint8_t probe[32] = {135, [8] = 0x20, 1, 0x0d, 0xb8, [23] = 0x77, 14,
                               1,   1,          2, 3,    4,    5,           6};
    const struct nj_addr probed = nj_ip6_solicited_node(&tentative);
    f = icmp(&nobody, &probed, 255, probe, sizeof probe);
    cr_assert_eq(parse(&f, &p), NONE, "about a tentative address, by its group");
    cr_expect(p.nd.has_nonce && p.nd.nonce[5] == 6);
}

/* Sentence 118. */
Test(wire_ip6_parse, discovery_that_is_not, .timeout = 30)
{
    const struct nj_addr group = nj_ip6_solicited_node(&us), all = nj_ip6_all_nodes();
    const struct {
        const char *what;
        const struct nj_addr *src, *dst;
        const uint8_t *msg;
        uint32_t n;
        uint8_t hops;
        uint32_t at; /* this byte is set ... */
        uint8_t to;
        nj_counter verdict;
    } row[] = {
        {"NS, hop limit 254", &peer, &group, ns, 32, 254, 0, 135, NJ_C_drop_nd_bad},
        {"NS, code 1", &peer, &group, ns, 32, 255, 1, 1, NJ_C_drop_nd_bad},
        {"NS of 23 bytes", &peer, &group, ns, 23, 255, 0, 135, NJ_C_drop_nd_bad},
        {"NS without options", &peer, &group, ns, 24, 255, 0, 135, NONE},
        {"NS, target a group", &peer, &group, ns, 32, 255, 8, 0xff, NJ_C_drop_nd_bad},
        {"NS, option of length 0", &peer, &group, ns, 32, 255, 25, 0, NJ_C_drop_nd_bad},
        {"NS, option too long", &peer, &group, ns, 32, 255, 25, 2, NJ_C_drop_nd_bad},
        {"NS, option cut", &peer, &group, ns, 31, 255, 0, 135, NJ_C_drop_nd_bad},
        {"NS, MAC of a group", &peer, &group, ns, 32, 255, 26, 3, NJ_C_drop_nd_bad},
        {"NS, unknown option", &peer, &group, ns, 32, 255, 24, 99, NONE},
        {"NS from nobody with MAC", &nobody, &group, ns, 32, 255, 0, 135, NJ_C_drop_nd_bad},
        {"NS from nobody", &nobody, &group, ns, 24, 255, 0, 135, NONE},
        {"NS from nobody to us", &nobody, &us, ns, 24, 255, 0, 135, NJ_C_drop_nd_bad},
        {"NS from nobody to all", &nobody, &all, ns, 24, 255, 0, 135, NJ_C_drop_nd_bad},
        {"NA, hop limit 64", &peer, &us, na, 32, 64, 0, 136, NJ_C_drop_nd_bad},
        {"NA, code 1", &peer, &us, na, 32, 255, 1, 1, NJ_C_drop_nd_bad},
        {"NA of 23 bytes", &peer, &us, na, 23, 255, 0, 136, NJ_C_drop_nd_bad},
        {"NA, target a group", &peer, &us, na, 32, 255, 8, 0xff, NJ_C_drop_nd_bad},
        {"NA, solicited to all", &peer, &all, na, 32, 255, 0, 136, NJ_C_drop_nd_bad},
        {"NA, unsolicited to all", &peer, &all, na, 32, 255, 4, 0x20, NONE},
        {"NA, option of length 0", &peer, &us, na, 32, 255, 25, 0, NJ_C_drop_nd_bad},
        {"NA from nobody", &nobody, &us, na, 32, 255, 0, 136, NJ_C_drop_ip_src},
        {"RA, hop limit 254", &peer_ll, &all, ra, 64, 254, 0, 134, NJ_C_drop_nd_bad},
        {"RA, code 1", &peer_ll, &all, ra, 64, 255, 1, 1, NJ_C_drop_nd_bad},
        {"RA from a global address", &peer, &all, ra, 64, 255, 0, 134, NJ_C_drop_nd_bad},
        {"RA of 15 bytes", &peer_ll, &all, ra, 15, 255, 0, 134, NJ_C_drop_nd_bad},
        {"RA without options", &peer_ll, &all, ra, 16, 255, 0, 134, NONE},
        {"RA, option of length 0", &peer_ll, &all, ra, 64, 255, 17, 0, NJ_C_drop_nd_bad},
        {"RS", &peer_ll, &all, ra, 16, 255, 0, 133, NJ_C_drop_icmp_type},
        {"redirect", &peer_ll, &us, ns, 32, 255, 0, 137, NJ_C_drop_icmp_type},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(row); i++) {
        struct nj_packet p;
        uint8_t msg[64];
        memcpy(msg, row[i].msg, row[i].n);
        msg[row[i].at] = row[i].to;
        struct frame f = icmp(row[i].src, row[i].dst, row[i].hops, msg, row[i].n);
        cr_expect_eq(parse(&f, &p), row[i].verdict, "%s: %u", row[i].what, p.drop);
    }
}

/* RFC 3810 6.2: link-local source, hop limit 1, router alert. */
Test(wire_ip6_parse, listener_queries)
{
    const struct nj_addr all = nj_ip6_all_nodes();
    static const uint8_t alert[8] = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};
    static const uint8_t query[28] = {130, 0, 0, 0, 0x27, 0x10};
    for (unsigned flaw = 0; flaw < 5; flaw++) {
        struct nj_packet p;
        struct frame f = begin(flaw == 1 ? &peer : &peer_ll, &all,
                               flaw == 2 ? IPPROTO_ICMPV6 : IPPROTO_HOPOPTS, flaw == 3 ? 2 : 1);
        if (flaw != 2)
            put(&f, alert, sizeof alert);
        uint32_t up = f.n;
        put(&f, query, flaw == 4 ? 24 : 28);
        finish(&f, up, IPPROTO_ICMPV6);
        nj_counter got = parse(&f, &p);
        cr_expect_eq(got, flaw == 0 || flaw == 4 ? NONE : NJ_C_drop_nd_bad, "flaw %u", flaw);
        if (got == NONE) {
            cr_expect(p.nd.kind == NJ_ND_LISTENER_QUERY && p.nd.mldv1_query == (flaw == 4));
            cr_expect_eq(p.nd.delay_ms, 10000);
        }
    }
}

/* For all bytes, the accepted fields are within the frame. */
Test(wire_ip6_parse, mutated, .timeout = 30)
{
    const uint64_t seed = 0x6666;
    const struct nj_addr group = nj_ip6_solicited_node(&us), all = nj_ip6_all_nodes();
    const struct frame good[] = {
        syn_behind(0, ext_rows[2].ext, ext_rows[2].n),
        icmp(&peer, &us, 64, ping, sizeof ping),
        icmp(&peer, &group, 255, ns, sizeof ns),
        icmp(&peer, &us, 255, na, sizeof na),
        icmp(&peer_ll, &all, 255, ra, sizeof ra),
        error(2, 0, 1280, &us, &peer, IPPROTO_TCP, 20),
    };
    unsigned kinds[NJ_PACKET_TCP + 1] = {0};
    struct nj_prng r;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (unsigned run = 0; run < 30000; run++) {
        struct nj_packet p;
        struct frame f = good[nj_prng_below(&r, NJ_ARRAY_LEN(good))];
        for (uint32_t k = nj_prng_below(&r, 3); k > 0; k--)
            f.b[12 + nj_prng_below(&r, f.n - 12)] = (uint8_t)nj_prng_next(&r);
        if (nj_prng_below(&r, 8) == 0)
            f.n = nj_prng_below(&r, f.n + 1);
        if (nj_prng_below(&r, 4) && f.n >= UP && f.b[NEXT] == IPPROTO_ICMPV6)
            finish(&f, UP, IPPROTO_ICMPV6);
        parse(&f, &p);
        kinds[p.kind]++;
        if (p.kind == NJ_PACKET_ND)
            cr_assert(p.nd.n_bytes >= 16 && p.nd.off + p.nd.n_bytes <= f.n);
        if (p.kind == NJ_PACKET_ICMP_ECHO)
            cr_assert(p.icmp.n_bytes >= 8 && p.icmp.off + p.icmp.n_bytes <= f.n);
        if (p.kind == NJ_PACKET_PARAM_PROBLEM)
            cr_assert(p.problem.off + p.problem.n_bytes <= f.n &&
                      p.problem.pointer < p.problem.n_bytes);
        if (p.kind == NJ_PACKET_ND && p.nd.kind == NJ_ND_ROUTER_ADVERT) {
            struct nj_ra got;
            nj_ra_parse(&got, f.b + p.nd.off, p.nd.n_bytes);
            cr_assert_leq(got.n_prefixes, NJ_RA_PREFIXES_MAX);
        }
    }
    for (unsigned k = 0; k < NJ_ARRAY_LEN(kinds); k++)
        cr_expect(kinds[k] > 0 || k == NJ_PACKET_ARP || k == NJ_PACKET_FRAGMENT,
                  "no packet of kind %u", k);
}
