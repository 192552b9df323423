/* SPDX-License-Identifier: BSD-3-Clause */
/* Toeplitz steering, against a hash written bit by bit from its definition; that one is checked
 * with the verification suite that Microsoft publishes for its own key. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>

#include <rte_byteorder.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "net/rss_flow_owner.h"
#include "support/rss_key.h"

static const struct nj_rss_key ms_key = {
    {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
     0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
     0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa}};

/* The default key of many drivers: both directions of a flow have the same hash, and the key is
 * public. */
static struct nj_rss_key symmetric_key(void)
{
    struct nj_rss_key key;
    for (unsigned i = 0; i < NJ_RSS_KEY_BYTES; i++)
        key.b[i] = i % 2 ? 0x5a : 0x6d;
    return key;
}

/* For each set bit of the input: xor in the 32 bits of the key that begin there. */
static uint32_t toeplitz(const struct nj_rss_key *key, const uint8_t *in, unsigned n)
{
    uint32_t hash = 0;
    for (unsigned bit = 0; bit < 8 * n; bit++) {
        if (!(in[bit / 8] >> (7 - bit % 8) & 1))
            continue;
        for (unsigned k = 0; k < 32; k++) {
            unsigned at = bit + k;
            hash ^= (uint32_t)(key->b[at / 8] >> (7 - at % 8) & 1) << (31 - k);
        }
    }
    return hash;
}

static void bytes_of(const struct nj_tuple *t, uint8_t out[12])
{
    memcpy(out, &t->remote.b[12], 4);
    memcpy(out + 4, &t->local.b[12], 4);
    out[8] = (uint8_t)(t->rport >> 8);
    out[9] = (uint8_t)t->rport;
    out[10] = (uint8_t)(t->lport >> 8);
    out[11] = (uint8_t)t->lport;
}

static struct nj_tuple tuple(uint32_t remote, uint32_t local, uint16_t rport, uint16_t lport)
{
    return (struct nj_tuple){nj_addr_from_v4(rte_cpu_to_be_32(remote)),
                             nj_addr_from_v4(rte_cpu_to_be_32(local)), rport, lport};
}

static const struct {
    uint32_t src, dst;
    uint16_t sport, dport;
    uint32_t hash;
} suite[] = {
    {0x420995bb, 0xa18e6450, 2794, 1766, 0x51ccc178},
    {0xc75c6f02, 0x41458c53, 14230, 4739, 0xc626b0ea},
    {0x1813c65f, 0x0c16cfb8, 12898, 38024, 0x5c2b394a},
    {0x261bcd1e, 0xd18ea306, 48228, 2217, 0xafc7327f},
    {0x9927a3bf, 0xcabc7f02, 44251, 1303, 0x10e828a2},
};

static struct nj_steer steer_of(uint32_t self, uint32_t n_shards, uint32_t reta)
{
    struct nj_steer s;
    nj_steer_init(&s, &test_rss_key, NJ_STEER_ALWAYS, self, n_shards, reta);
    return s;
}

Test(net_rss_flow_owner, reference_is_right)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(suite); i++) {
        struct nj_tuple t = tuple(suite[i].src, suite[i].dst, suite[i].sport, suite[i].dport);
        uint8_t in[12];
        bytes_of(&t, in);
        cr_expect_eq(toeplitz(&ms_key, in, 12), suite[i].hash, "row %zu", i);
    }
}

Test(net_rss_flow_owner, same_as_a_nic_with_our_key)
{
    struct nj_steer s = steer_of(0, 2, 128);
    struct nj_prng prng;
    nj_prng_init(&prng, 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t a = nj_prng_next(&prng), p = nj_prng_next(&prng);
        struct nj_tuple t =
            tuple((uint32_t)a, (uint32_t)(a >> 32), (uint16_t)p, (uint16_t)(p >> 16));
        uint8_t in[12];
        bytes_of(&t, in);
        cr_assert_eq(nj_steer_hash(&s, &t), toeplitz(&test_rss_key, in, 12));
    }
}

/* Straight from the suite. */
Test(net_rss_flow_owner, same_as_published)
{
    struct nj_steer s;
    nj_steer_init(&s, &ms_key, NJ_STEER_ALWAYS, 0, 2, 128);
    for (size_t i = 0; i < NJ_ARRAY_LEN(suite); i++) {
        struct nj_tuple t = tuple(suite[i].src, suite[i].dst, suite[i].sport, suite[i].dport);
        cr_expect_eq(nj_steer_hash(&s, &t), suite[i].hash, "row %zu", i);
    }
}

/* 32 bytes of addresses and 4 of ports, as the sender wrote them. */
static void bytes_of6(const struct nj_tuple *t, uint8_t out[36])
{
    memcpy(out, t->remote.b, 16);
    memcpy(out + 16, t->local.b, 16);
    out[32] = (uint8_t)(t->rport >> 8);
    out[33] = (uint8_t)t->rport;
    out[34] = (uint8_t)(t->lport >> 8);
    out[35] = (uint8_t)t->lport;
}

/* The rows for TCP over IPv6 of the same suite. */
static const struct {
    const char *src, *dst;
    uint16_t sport, dport;
    uint32_t hash;
} suite6[] = {
    {"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x40207d3d},
    {"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0xdde51bbf},
    {"3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024, 0x02d1feef},
};

Test(net_rss_flow_owner, ipv6)
{
    struct nj_steer s = steer_of(0, 2, 128);
    for (size_t i = 0; i < NJ_ARRAY_LEN(suite6); i++) {
        struct nj_tuple t = {.rport = suite6[i].sport, .lport = suite6[i].dport};
        uint8_t in[36];
        cr_assert_eq(inet_pton(AF_INET6, suite6[i].src, t.remote.b), 1);
        cr_assert_eq(inet_pton(AF_INET6, suite6[i].dst, t.local.b), 1);
        bytes_of6(&t, in);
        cr_expect_eq(toeplitz(&ms_key, in, sizeof in), suite6[i].hash, "row %zu", i);
        cr_expect_eq(nj_steer_hash(&s, &t), toeplitz(&test_rss_key, in, sizeof in));
    }
}

/* Source ports that were chosen for one key, so that all of them have one owner, are spread with
 * another key. */
Test(net_rss_flow_owner, the_key_decides_the_owner)
{
    const struct nj_rss_key known = symmetric_key();
    struct nj_steer then, now;
    uint32_t share[8] = {0}, n = 0;

    nj_steer_init(&then, &known, NJ_STEER_ALWAYS, 0, 8, 128);
    nj_steer_init(&now, &test_rss_key, NJ_STEER_ALWAYS, 0, 8, 128);
    for (uint32_t port = 1024; port < 65536; port++) {
        struct nj_tuple t = tuple(0xc6120001, 0xc6120002, (uint16_t)port, 80);
        if (nj_steer_owner(&then, &t) != 3)
            continue;
        share[nj_steer_owner(&now, &t)]++;
        n++;
    }
    cr_assert_gt(n, 4000);
    for (uint32_t i = 0; i < 8; i++)
        cr_expect(share[i] > n / 16 && share[i] < n / 4, "shard %u: %u of %u", i, share[i], n);
}

/* Checks nj_rss_key_spreads() port by port. */
static bool spreads(const struct nj_rss_key *key)
{
    struct nj_prng prng;
    struct nj_steer s;

    nj_prng_init(&prng, 5);
    nj_steer_init(&s, key, NJ_STEER_ALWAYS, 0, 1, NJ_RETA_MAX);
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct nj_tuple t = tuple((uint32_t)nj_prng_next(&prng), 0xc6120002, 4711, 0);
        uint8_t few[128] = {0}, all[NJ_RETA_MAX] = {0};
        uint32_t n_few = 0, n_all = 0;
        if (v6)
            for (unsigned i = 0; i < 16; i += 8) {
                uint64_t a = nj_prng_next(&prng), b = nj_prng_next(&prng);
                memcpy(&t.remote.b[i], &a, 8);
                memcpy(&t.local.b[i], &b, 8);
            }
        for (uint32_t port = 32768; port < 65536; port++) {
            t.lport = (uint16_t)port;
            uint32_t h = nj_steer_hash(&s, &t);
            n_all += !all[h % NJ_RETA_MAX]++;
            if (port < 32768 + 128)
                n_few += !few[h % 128]++;
        }
        if (n_few < 128 || n_all < NJ_RETA_MAX)
            return false;
    }
    return true;
}

Test(net_rss_flow_owner, keys_that_spread)
{
    struct nj_rss_key key = symmetric_key();
    struct nj_prng prng;
    uint32_t n = 0;

    cr_expect(nj_rss_key_spreads(&test_rss_key) && spreads(&test_rss_key));
    cr_expect(!nj_rss_key_spreads(&key) && !spreads(&key));
    nj_prng_init(&prng, 3);
    for (uint32_t k = 0; k < 200; k++) {
        for (unsigned i = 0; i < NJ_RSS_KEY_BYTES; i += 8) {
            uint64_t random = nj_prng_next(&prng);
            memcpy(&key.b[i], &random, 8);
        }
        cr_assert_eq(nj_rss_key_spreads(&key), spreads(&key), "key %u", k);
        n += spreads(&key);
    }
    cr_expect(n > 20 && n < 80, "%u of 200", n);
}

/* Clients as they are: few addresses, ports that count up. */
Test(net_rss_flow_owner, fair_shares)
{
    for (uint32_t n = 1; n <= 16; n++) {
        struct nj_steer s = steer_of(n - 1, n, 128), other = steer_of(0, n, 128);
        uint32_t share[16] = {0};
        for (uint32_t client = 1; client <= 4; client++) {
            for (uint32_t port = 32768; port < 32768 + 4096; port++) {
                struct nj_tuple t = tuple(0xc6120000 + client, 0xc6120002, (uint16_t)port, 80);
                uint32_t owner = nj_steer_owner(&s, &t);
                cr_assert_lt(owner, n);
                cr_assert_eq(owner, nj_steer_owner(&other, &t), "all shards agree");
                share[owner]++;
            }
        }
        for (uint32_t i = 0; i < n; i++)
            cr_expect(share[i] > 16384 / n / 2 && share[i] < 16384 / n * 2, "%u of %u: %u", i, n,
                      share[i]);
    }
}
