/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of networks against a linear search. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "dpdk/address_list_lookup.h"
#include "support/addr.h"
#include "support/mbuf_env.h"

static char why[256];

static void init(void)
{
    nj_test_eal();
}

TestSuite(dpdk_address_list_lookup, .init = init, .timeout = 100);

static bool bit(const struct nj_addr *a, unsigned i)
{
    return a->b[i / 8] >> (7 - i % 8) & 1;
}

static uint32_t search(const struct nj_network *net, uint32_t n, const struct nj_addr *a)
{
    uint32_t lists = 0;

    for (uint32_t i = 0; i < n; i++) {
        unsigned k = 0;
        bool v4 = net[i].bits >= 96 && nj_addr_is_v4(&net[i].addr);
        while (k < net[i].bits && bit(&net[i].addr, k) == bit(a, k))
            k++;
        if (k == net[i].bits && v4 == nj_addr_is_v4(a))
            lists |= net[i].lists;
    }
    return lists;
}

Test(dpdk_address_list_lookup, some)
{
    struct nj_network net[] = {
        {addr("192.0.2.0"), 96 + 24, 1},
        {addr("192.0.2.128"), 96 + 25, 2},
        {addr("192.0.2.129"), 128, 1 << 15},
        {addr("2001:db8::"), 32, 4},
        {addr("::"), 0, 8},
        {addr("192.0.2.0"), 96 + 24, 16},
    };
    struct nj_acl *acl = nj_acl_new(net, NJ_ARRAY_LEN(net), why, sizeof why);

    cr_assert(acl, "%s", why);
    cr_expect_eq(nj_acl_lookup(acl, &(struct nj_addr){{0}}), 8);
    const struct {
        const char *a;
        uint32_t lists;
    } rows[] = {{"192.0.2.1", 17},     {"192.0.2.128", 19}, {"192.0.2.129", 19 | 1 << 15},
                {"192.0.3.1", 0},      {"0.0.0.0", 0},      {"255.255.255.255", 0},
                {"2001:db8:1::1", 12}, {"2001:db9::1", 8}};
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_addr a = addr(rows[i].a);
        cr_expect_eq(nj_acl_lookup(acl, &a), rows[i].lists, "%s", rows[i].a);
    }
    nj_acl_free(acl);
}

Test(dpdk_address_list_lookup, none)
{
    struct nj_acl *acl = nj_acl_new(NULL, 0, why, sizeof why);
    struct nj_addr a = addr("192.0.2.1");

    cr_assert(acl, "%s", why);
    cr_expect_eq(nj_acl_lookup(acl, &a), 0);
    nj_acl_free(acl);
}

static struct nj_addr random_addr(struct nj_prng *r)
{
    struct nj_addr a;

    for (unsigned i = 0; i < 16; i++) /* crowded, so that networks contain each other */
        a.b[i] = (uint8_t)(nj_prng_below(r, 3) ? nj_prng_below(r, 4) : nj_prng_next(r));
    uint32_t v4;
    memcpy(&v4, &a.b[12], 4);
    return nj_prng_below(r, 2) ? nj_addr_from_v4(v4) : a;
}

static struct nj_network random_network(struct nj_prng *r)
{
    struct nj_network net = {.addr = random_addr(r),
                             .lists = (uint16_t)(1u << nj_prng_below(r, 16))};
    unsigned first = nj_addr_is_v4(&net.addr) ? 96 : 0;

    net.bits = (uint8_t)(first + 8 + nj_prng_below(r, 121 - first));
    for (unsigned i = net.bits; i < 128; i++)
        net.addr.b[i / 8] &= (uint8_t) ~(1u << (7 - i % 8));
    return net;
}

static void compare(struct nj_prng *r, uint32_t n)
{
    struct nj_network *net = calloc(n, sizeof *net), *copy = calloc(n, sizeof *net);

    for (uint32_t i = 0; i < n; i++)
        net[i] = copy[i] = random_network(r);
    struct nj_acl *acl = nj_acl_new(net, n, why, sizeof why);
    cr_assert(acl, "%s", why);
    for (uint32_t i = 0; i < 20000; i++) {
        struct nj_addr a = random_addr(r);
        if (i % 2) { /* near one of them */
            a = copy[nj_prng_below(r, n)].addr;
            a.b[15] ^= (uint8_t)nj_prng_below(r, 4);
        }
        cr_assert_eq(nj_acl_lookup(acl, &a), search(copy, n, &a), "%u networks", n);
    }
    nj_acl_free(acl);
    free(net);
    free(copy);
}

Test(dpdk_address_list_lookup, random_networks)
{
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    struct nj_prng r;

    printf("seed %lu (NJ_TEST_SEED)\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    for (uint32_t round = 0; round < 20; round++)
        compare(&r, 1 + nj_prng_below(&r, 100));
    compare(&r, 2000);
}
