/* SPDX-License-Identifier: BSD-3-Clause */
/* Several addresses of two families: which are ours, which are on the link, and the next hop of the
 * others. */
#include <criterion/criterion.h>

#include <rte_byteorder.h>

#include "wire/iface.h"
#include "wire/ip6.h"

static struct nj_addr v4(uint32_t ip)
{
    return nj_addr_from_v4(rte_cpu_to_be_32(ip));
}

static struct nj_addr v6(uint8_t net, uint8_t host)
{
    return (struct nj_addr){{0x20, 1, 0x0d, 0xb8, [7] = net, [15] = host}};
}

static struct nj_iface several(void)
{
    const struct nj_addr ll = {{0xfe, 0x80, [15] = 1}};
    return (struct nj_iface){.mtu = 1500,
                             .ip6 = true,
                             .n_addrs = 6,
                             .addr = {{v4(0x0a000001), 24, NJ_ADDR_READY},
                                      {v4(0x0a000101), 24, NJ_ADDR_READY},
                                      {v6(1, 1), 64, NJ_ADDR_READY},
                                      {v6(2, 1), 64, NJ_ADDR_TENTATIVE},
                                      {v6(3, 1), 64, NJ_ADDR_EXPIRED},
                                      {ll, 64, NJ_ADDR_READY}}};
}

static void expect_source(const struct nj_iface *i, struct nj_addr to, struct nj_addr from)
{
    const struct nj_addr *got = nj_iface_source_for(i, &to);
    cr_expect(got && nj_addr_eq(got, &from));
}

Test(wire_iface, which_are_ours)
{
    struct nj_iface i = several();
    struct nj_addr a = v4(0x0a000101), b = v6(1, 1), c = v6(2, 1), d = v6(3, 1), e = v6(1, 2);

    cr_expect(nj_iface_has_addr(&i, &a) && nj_iface_has_addr(&i, &b));
    cr_expect(nj_iface_find_addr(&i, &c) && !nj_iface_has_addr(&i, &c), "tentative");
    cr_expect(!nj_iface_find_addr(&i, &d), "expired");
    cr_expect(!nj_iface_find_addr(&i, &e));
}

Test(wire_iface, where_questions_come_from)
{
    struct nj_iface i = several();

    expect_source(&i, v4(0x0a000009), v4(0x0a000001));
    expect_source(&i, v4(0x0a000109), v4(0x0a000101));
    expect_source(&i, v4(0x0a000209), v4(0x0a000001));
    expect_source(&i, v6(1, 9), v6(1, 1));
    expect_source(&i, v6(2, 9), v6(1, 1)); /* the one on its prefix may not be used yet */
    expect_source(&i, (struct nj_addr){{0xfe, 0x80, [15] = 9}}, i.addr[5].ip);
    i.n_addrs = 2;
    struct nj_addr to = v6(1, 9);
    cr_expect_null(nj_iface_source_for(&i, &to));
}

Test(wire_iface, next_hops)
{
    struct nj_iface i = several();
    struct nj_addr near4 = v4(0x0a000107), far4 = v4(0x08080808), near6 = v6(1, 7), far6 = v6(9, 9);
    struct nj_addr old6 = v6(3, 7);

    cr_expect(nj_addr_eq(nj_ip_next_hop(&i, &near4), &near4));
    cr_expect(nj_addr_eq(nj_ip_next_hop(&i, &near6), &near6));
    cr_expect_null(nj_ip_next_hop(&i, &far4));
    cr_expect_null(nj_ip_next_hop(&i, &far6));
    cr_expect_null(nj_ip_next_hop(&i, &old6), "its prefix went with the address");
    i.has_gateway = i.has_gateway6 = true;
    i.gateway = v4(0x0a0000fe);
    i.gateway6 = v6(1, 0xfe);
    cr_expect(nj_addr_eq(nj_ip_next_hop(&i, &far4), &i.gateway));
    cr_expect(nj_addr_eq(nj_ip_next_hop(&i, &far6), &i.gateway6));
    cr_expect(nj_addr_eq(nj_ip_next_hop(&i, &near6), &near6));
}

/* The longest prefix has precedence, from any source; of two equal ones that of the link. */
Test(wire_iface, static_routes)
{
    struct nj_iface i = several();
    const struct {
        struct nj_addr to;
        const struct nj_addr *hop;
    } rows[] = {
        {v4(0x0a020304), &i.route[0].hop}, /* 10/8 */
        {v4(0x0a028001), &i.route[1].hop}, /* 10.2.128/17 */
        {v4(0x0a000107), NULL},            /* 10.0.1/24 of the link is longer than 10/8 */
        {v4(0x0a000085), &i.route[2].hop}, /* 10.0.0.128/25 is longer than the link */
        {v4(0x0a000185), NULL},            /* the same prefix as the link has */
        {v4(0x0b000001), &i.gateway},      /* by no route */
        {v6(7, 1), &i.route[4].hop},
        {v6(1, 9), NULL},
        {v6(9, 9), &i.gateway6},
    };

    i.has_gateway = i.has_gateway6 = true;
    i.gateway = v4(0x0a0000fe);
    i.gateway6 = v6(1, 0xfe);
    i.n_routes = 5;
    i.route[0] = (struct nj_ip_route){v4(0x0a000000), v4(0x0a000009), 96 + 8};
    i.route[1] = (struct nj_ip_route){v4(0x0a028000), v4(0x0a00000a), 96 + 17};
    i.route[2] = (struct nj_ip_route){v4(0x0a000080), v4(0x0a00000b), 96 + 25};
    i.route[3] = (struct nj_ip_route){v4(0x0a000100), v4(0x0a00000c), 96 + 24};
    i.route[4] = (struct nj_ip_route){v6(7, 0), v6(1, 0xd), 64};
    for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const struct nj_addr *hop = nj_ip_next_hop(&i, &rows[k].to);
        cr_expect(hop && nj_addr_eq(hop, rows[k].hop ? rows[k].hop : &rows[k].to), "row %u", k);
    }
}

/* Directed broadcasts of each subnet are none of a host's. */
Test(wire_iface, sources)
{
    struct nj_iface i = several();
    const uint32_t bad[] = {0x0a0000ff, 0x0a0001ff, 0x0a000001, 0x0a000101};
    for (unsigned k = 0; k < 4; k++)
        cr_expect(!nj_ip4_source_ok(&i, rte_cpu_to_be_32(bad[k])), "%u", k);
    cr_expect(nj_ip4_source_ok(&i, rte_cpu_to_be_32(0x0a0002ff)));
}

Test(wire_iface, prefixes)
{
    struct nj_addr a = v6(1, 1), b = v6(1, 1);
    for (unsigned bit = 0; bit < 128; bit++) {
        b = a;
        b.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        cr_expect(nj_ip6_same_prefix(&a, &b, bit), "bit %u", bit);
        cr_expect(!nj_ip6_same_prefix(&a, &b, bit + 1), "bit %u", bit);
    }
}
