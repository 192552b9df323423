/* SPDX-License-Identifier: BSD-3-Clause */
/* Where headers end, and whose frame it is. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/addr.h"
#include "wire/header_span.h"

static uint8_t frame[2000];
static uint32_t n_frame;

static void add(const void *bytes, uint32_t n)
{
    memcpy(frame + n_frame, bytes, n);
    n_frame += n;
}

static void ether(uint16_t type, uint32_t n_tags)
{
    memset(frame, 0, sizeof frame);
    n_frame = 12;
    for (uint32_t i = 0; i < n_tags; i++)
        add((const uint8_t[]){0x81, 0x00, 0, 5}, 4);
    add((const uint8_t[]){(uint8_t)(type >> 8), (uint8_t)type}, 2);
}

/* From 198.18.0.1 to 198.18.0.2, with `words` words of options. */
static void ip4(uint8_t protocol, uint32_t words, uint16_t fragment)
{
    uint8_t h[60] = {(uint8_t)(0x45 + words),
                     0,
                     5,
                     0,
                     0,
                     0,
                     (uint8_t)(fragment >> 8),
                     (uint8_t)fragment,
                     64,
                     protocol,
                     0,
                     0,
                     198,
                     18,
                     0,
                     1,
                     198,
                     18,
                     0,
                     2};

    add(h, 20 + 4 * words);
}

static void ip6(uint8_t next, uint16_t n_payload)
{
    uint8_t h[40] = {0x60,
                     0,
                     0,
                     0,
                     (uint8_t)(n_payload >> 8),
                     (uint8_t)n_payload,
                     next,
                     64,
                     0x20,
                     0x01,
                     0x0d,
                     0xb8,
                     [23] = 1,
                     [24] = 0x20,
                     0x01,
                     0x0d,
                     0xb8,
                     [39] = 2};

    add(h, sizeof h);
}

static void tcp(uint32_t n_header)
{
    uint8_t h[60] = {[12] = (uint8_t)(n_header / 4 << 4)};

    add(h, n_header);
}

static struct nj_header_span span(void)
{
    return nj_header_span(frame, NJ_HEADER_SPAN_MAX);
}

static void expect_addrs(const char *src, const char *dst)
{
    struct nj_header_span s = span();
    struct nj_addr a = addr(src), b = addr(dst);

    cr_expect(s.has_addrs && nj_addr_eq(&s.src, &a) && nj_addr_eq(&s.dst, &b));
}

Test(wire_header_span, tcp)
{
    for (uint32_t tags = 0; tags <= 2; tags++) {
        ether(0x0800, tags);
        ip4(6, 0, 0);
        tcp(32);
        cr_expect_eq(span().n_bytes, 14 + 4 * tags + 20 + 32);
        expect_addrs("198.18.0.1", "198.18.0.2");
        ether(0x86dd, tags);
        ip6(6, 1000);
        tcp(60);
        cr_expect_eq(span().n_bytes, 14 + 4 * tags + 40 + 60);
        expect_addrs("2001:db8::1", "2001:db8::2");
    }
    ether(0x0800, 0);
    ip4(6, 10, 0x4000); /* do not fragment */
    tcp(20);
    cr_expect_eq(span().n_bytes, 14 + 60 + 20);
    frame[14 + 60 + 12] = 0; /* a header of TCP that is too short */
    cr_expect_eq(span().n_bytes, 14 + 60 + 20);
}

Test(wire_header_span, others)
{
    ether(0x0800, 0);
    ip4(6, 0, 0x0010); /* the second fragment: bytes of the segment, no header */
    cr_expect_eq(span().n_bytes, 34);
    ether(0x0800, 0);
    ip4(1, 0, 0); /* an error quotes a packet, which is not taken */
    cr_expect_eq(span().n_bytes, 34 + 8);
    ether(0x0800, 0);
    ip4(17, 0, 0);
    cr_expect_eq(span().n_bytes, 34 + 8);
    ether(0x0800, 0);
    ip4(47, 0, 0);
    cr_expect_eq(span().n_bytes, 34);
    ether(0x88cc, 0);
    cr_expect(span().n_bytes == 14 && !span().has_addrs);
    ether(0x0806, 0);
    uint8_t arp[28] = {[14] = 198, 18, 0, 7, [24] = 198, 18, 0, 8};
    add(arp, sizeof arp);
    cr_expect_eq(span().n_bytes, 42);
    expect_addrs("198.18.0.7", "198.18.0.8");
}

Test(wire_header_span, ip6_with_extensions)
{
    ether(0x86dd, 0);
    ip6(0, 100);
    add((const uint8_t[16]){60, 1}, 16); /* hop by hop */
    add((const uint8_t[8]){44, 0}, 8);   /* destination options */
    add((const uint8_t[8]){6, 0}, 8);    /* the first fragment */
    tcp(20);
    cr_expect_eq(span().n_bytes, 14 + 40 + 32 + 20);
    frame[14 + 40 + 24 + 3] = 8; /* the next fragment */
    cr_expect_eq(span().n_bytes, 14 + 40 + 32);
    ether(0x86dd, 0);
    ip6(43, 2000);
    add((const uint8_t[2]){6, 255}, 2);
    cr_expect_eq(span().n_bytes, NJ_HEADER_SPAN_MAX, "more headers than are looked at");
}

Test(wire_header_span, neighbour_discovery_is_about_an_address)
{
    uint8_t nd[32] = {135, [8] = 0x20, 0x01, 0x0d, 0xb8, [23] = 9};

    ether(0x86dd, 0);
    ip6(58, sizeof nd);
    add(nd, sizeof nd);
    cr_expect_eq(span().n_bytes, 14 + 40 + 32);
    expect_addrs("2001:db8::1", "2001:db8::9");
    frame[14 + 40] = 136;
    expect_addrs("2001:db8::9", "2001:db8::2");
    frame[14 + 40] = 128; /* echo: its data are the client's */
    cr_expect_eq(span().n_bytes, 14 + 40 + 8);
}

/* Any bytes, and any end of the frame. */
Test(wire_header_span, stays_in_the_frame)
{
    static const uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x8100};

    struct nj_prng random = {.state = 1};
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t n = (uint32_t)nj_prng_next(&random) % (NJ_HEADER_SPAN_MAX + 1);
        uint8_t *p = malloc(n + !n);
        for (uint32_t i = 0; i < n; i++)
            p[i] = (uint8_t)(nj_prng_next(&random) % 4 ? nj_prng_next(&random) : 0);
        if (n >= 14) {
            uint16_t type = types[round % NJ_ARRAY_LEN(types)];
            p[12] = (uint8_t)(type >> 8);
            p[13] = (uint8_t)type;
        }
        cr_assert_leq(nj_header_span(p, n).n_bytes, n);
        free(p);
    }
}
