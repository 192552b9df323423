/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors as whole frames: a good one, the meaning of each type and code, and each kind of
 * invalid frame. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/packet.h"

enum { IP = 14, ICMP = 34, QUOTE = 42, TCP = 62, ALL = 70 };
#define NONE NJ_COUNTERS_MAX

/* A router (10.0.0.2) says that fragmentation is needed to reach 192.0.2.9:40000 from 10.0.0.1:443.
 * Of the quoted TCP header there are 8 bytes, and the quoted packet had been 1500 long. */
static const uint8_t good[ALL] = {
    2,    0,    0,    0,    0,    0xaa, 2,    0,    0, 0, 0, 0xbb, 8, 0, /* Ethernet */
    0x45, 0,    0,    56,   0,    1,    0,    0,    9, 1, 0, 0,          /* IPv4 */
    10,   0,    0,    2,    10,   0,    0,    1,                         /* addresses */
    3,    4,    0,    0,    0,    0,    0x05, 0x14,                      /* ICMP, 1300 */
    0x45, 0,    0x05, 0xdc, 0,    7,    0x40, 0,    1, 6, 0, 0,          /* quoted IPv4 */
    10,   0,    0,    1,    192,  0,    2,    9,                         /* addresses */
    0x01, 0xbb, 0x9c, 0x40, 0xfe, 0xdc, 0xba, 0x98};                     /* TCP */

static void fix_sums(uint8_t *b, uint32_t n)
{
    memset(b + IP + 10, 0, 2);
    uint16_t sum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, b + IP, 20));
    memcpy(b + IP + 10, &sum, 2);
    if (n < ICMP + 4)
        return;
    memset(b + ICMP + 2, 0, 2);
    sum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, b + ICMP, n - ICMP));
    memcpy(b + ICMP + 2, &sum, 2);
}

/* Parse in memory that ends with the frame, at an odd address. */
static nj_counter parse(const uint8_t *b, uint32_t n, struct nj_packet *p)
{
    struct nj_iface iface = {.mac = {{2, 0, 0, 0, 0, 0xaa}},
                             .n_addrs = 1,
                             .addr = {{nj_addr_from_v4(htonl(0x0a000001)), 24, NJ_ADDR_READY}},
                             .mtu = 1500};
    uint8_t *mem = malloc(n + 1);
    struct rte_mbuf m = {
        .buf_addr = mem, .data_off = 1, .data_len = (uint16_t)n, .pkt_len = n, .nb_segs = 1};
    memcpy(mem + 1, b, n);
    memset(p, 0xaa, sizeof *p);
    nj_packet_parse(&iface, &m, p);
    free(mem);
    return p->kind == NJ_PACKET_DROP ? p->drop : NONE;
}

/* The good frame with one byte changed, checksums right. */
static nj_counter parse_with(uint32_t at, uint8_t value, struct nj_packet *p)
{
    uint8_t b[ALL];
    memcpy(b, good, ALL);
    b[at] = value;
    fix_sums(b, ALL);
    return parse(b, ALL, p);
}

Test(wire_icmp4_error_parse, what_is_quoted)
{
    struct nj_packet p;

    cr_assert_eq(parse_with(0, good[0], &p), NONE);
    cr_assert_eq(p.kind, NJ_PACKET_ICMP_ERROR);
    const struct nj_icmp_error *e = &p.icmp_error;
    cr_expect_eq(e->error_kind, NJ_ICMP_TOO_BIG);
    cr_expect_eq(e->mtu, 1300);
    cr_expect_eq(e->seq, 0xfedcba98);
    struct nj_tuple t = {nj_addr_from_v4(htonl(0xc0000209)), nj_addr_from_v4(htonl(0x0a000001)),
                         40000, 443};
    cr_expect(nj_tuple_eq(&e->tuple, &t), "as in a segment from the peer");
}

/* RFC 792, RFC 1122 3.2.2.1. */
Test(wire_icmp4_error_parse, types_and_codes)
{
    static const struct {
        uint8_t type, code_first, code_last;
        nj_counter verdict;
        enum nj_icmp_error_kind error_kind;
    } cases[] = {
        {3, 0, 1, NONE, NJ_ICMP_SOFT_ERROR},   {3, 2, 3, NONE, NJ_ICMP_HARD_ERROR},
        {3, 4, 4, NONE, NJ_ICMP_TOO_BIG},      {3, 5, 8, NONE, NJ_ICMP_SOFT_ERROR},
        {3, 9, 10, NONE, NJ_ICMP_HARD_ERROR},  {3, 11, 12, NONE, NJ_ICMP_SOFT_ERROR},
        {3, 13, 13, NONE, NJ_ICMP_HARD_ERROR}, {3, 14, 15, NONE, NJ_ICMP_SOFT_ERROR},
        {3, 16, 255, NJ_C_drop_icmp_type, 0},  {11, 0, 1, NONE, NJ_ICMP_SOFT_ERROR},
        {12, 0, 2, NONE, NJ_ICMP_SOFT_ERROR},  {0, 0, 255, NJ_C_drop_icmp_type, 0},
        {4, 0, 255, NJ_C_drop_icmp_type, 0}, /* source quench, RFC 6633 */
        {5, 0, 255, NJ_C_drop_icmp_type, 0}, /* redirect */
        {8, 1, 255, NJ_C_drop_icmp_type, 0},   {13, 0, 255, NJ_C_drop_icmp_type, 0},
    };
    for (unsigned i = 0; i < NJ_ARRAY_LEN(cases); i++)
        for (unsigned code = cases[i].code_first; code <= cases[i].code_last; code++) {
            struct nj_packet p;
            uint8_t b[ALL];
            memcpy(b, good, ALL);
            b[ICMP] = cases[i].type;
            b[ICMP + 1] = (uint8_t)code;
            fix_sums(b, ALL);
            cr_assert_eq(parse(b, ALL, &p), cases[i].verdict, "%u/%u", cases[i].type, code);
            if (cases[i].verdict != NONE)
                continue;
            cr_expect_eq(p.icmp_error.error_kind, cases[i].error_kind, "%u/%u", cases[i].type,
                         code);
            cr_expect_eq(p.icmp_error.mtu, p.icmp_error.error_kind == NJ_ICMP_TOO_BIG ? 1300 : 0);
        }
}

Test(wire_icmp4_error_parse, each_change_has_its_verdict)
{
    static const struct {
        const char *what;
        uint32_t at;
        uint8_t value;
        nj_counter verdict;
    } cases[] = {
        {"quoted version", QUOTE, 0x65, NJ_C_drop_icmp_bad},
        {"quoted header of 16 bytes", QUOTE, 0x44, NJ_C_drop_icmp_bad},
        {"quoted header of 24 bytes: 4 of TCP", QUOTE, 0x46, NJ_C_drop_icmp_bad},
        {"quoted UDP", QUOTE + 9, 17, NJ_C_drop_icmp_error},
        {"quoted later fragment", QUOTE + 7, 1, NJ_C_drop_icmp_error},
        {"quoted first fragment", QUOTE + 6, 0x20, NONE},
        {"quoted TTL 0", QUOTE + 8, 0, NONE},
        {"quoted source is not us", QUOTE + 15, 3, NJ_C_drop_icmp_error},
        {"from another router", IP + 15, 77, NONE},
        {"from the link's broadcast", IP + 15, 255, NJ_C_drop_ip_src},
        {"to another", IP + 19, 2, NJ_C_drop_ip_dst},
        {"MTU 0 of an old router", ICMP + 6, 0, NONE},
    };
    for (unsigned i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct nj_packet p;
        nj_counter got = parse_with(cases[i].at, cases[i].value, &p);
        cr_expect_eq(got, cases[i].verdict, "%s: %s", cases[i].what,
                     got == NONE ? "accepted" : nj_counter_info[got].name);
    }
}

Test(wire_icmp4_error_parse, checksum)
{
    struct nj_packet p;
    uint8_t b[ALL];

    for (uint32_t at = ICMP; at < ALL; at++) {
        memcpy(b, good, ALL);
        fix_sums(b, ALL);
        b[at] ^= 0x10;
        cr_expect_eq(parse(b, ALL, &p), NJ_C_drop_icmp_bad, "byte %u", at);
    }
}

/* Frames cut at each length, with correct IP length and checksums. */
Test(wire_icmp4_error_parse, cut)
{
    for (uint32_t n = ICMP; n <= ALL; n++) {
        struct nj_packet p;
        uint8_t b[ALL];
        memcpy(b, good, ALL);
        b[IP + 3] = (uint8_t)(n - IP);
        fix_sums(b, n);
        cr_expect_eq(parse(b, n, &p), n < ALL ? NJ_C_drop_icmp_bad : NONE, "%u bytes", n);
    }
}

/* IP options in the quoted header are passed over, and more of TCP does no harm. */
Test(wire_icmp4_error_parse, quoted_options)
{
    struct nj_packet p;
    uint8_t b[ALL + 12] = {0};

    memcpy(b, good, TCP);
    memcpy(b + TCP + 4, good + TCP, ALL - TCP);
    b[QUOTE] = 0x46;
    b[IP + 3] = sizeof b - IP;
    fix_sums(b, sizeof b);
    cr_assert_eq(parse(b, sizeof b, &p), NONE);
    cr_expect_eq(p.icmp_error.tuple.rport, 40000);
    cr_expect_eq(p.icmp_error.seq, 0xfedcba98);
}
