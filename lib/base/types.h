/* SPDX-License-Identifier: BSD-3-Clause */
/* Types that every layer uses: time, minimum and maximum, IP addresses, four-tuples. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Nanoseconds of the shard's monotonic clock, with an arbitrary origin. The caller of the shard
 * reads it once per step; protocol code receives it as an argument. */
typedef uint64_t nj_ns;

#define NJ_US    ((nj_ns)1000)
#define NJ_MS    ((nj_ns)1000 * NJ_US)
#define NJ_SEC   ((nj_ns)1000 * NJ_MS)
#define NJ_NEVER UINT64_MAX

static inline uint32_t nj_min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint64_t nj_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint32_t nj_max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint64_t nj_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* An IP address, network byte order. IPv4 addresses are v4-mapped (::ffff:a.b.c.d), so that keys,
 * tables and logs have one form for both families. */
struct nj_addr {
    uint8_t b[16];
};

/* `v4_be`: the four octets in network byte order. */
static inline struct nj_addr nj_addr_from_v4(uint32_t v4_be)
{
    struct nj_addr a = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};
    memcpy(&a.b[12], &v4_be, 4);
    return a;
}

/* The IPv4 octets of a v4-mapped address, network byte order. */
static inline uint32_t nj_addr_to_v4(const struct nj_addr *a)
{
    uint32_t v4_be;
    memcpy(&v4_be, &a->b[12], 4);
    return v4_be;
}

/* Is it an IPv4 address (::ffff:0:0/96)? The parser drops IPv6 packets with such addresses;
 * otherwise a peer could address an IPv4 connection through IPv6. */
static inline bool nj_addr_is_v4(const struct nj_addr *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(a->b, mapped, sizeof mapped) == 0;
}

/* The network prefix of `bits` bits; the host bits are 0. */
static inline struct nj_addr nj_addr_network(const struct nj_addr *a, unsigned bits)
{
    struct nj_addr net = *a;
    for (unsigned i = bits / 8; i < sizeof net.b; i++)
        net.b[i] &= (uint8_t)(i == bits / 8 ? 0xff00u >> bits % 8 : 0);
    return net;
}

static inline bool nj_addr_eq(const struct nj_addr *a, const struct nj_addr *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A network: the addresses whose first `bits` bits, of 128, are those of `addr`; its other bits are
 * 0. An IPv4 /24 has 96 + 24 bits. 0 bits: all addresses, of both families. */
struct nj_net {
    struct nj_addr addr;
    uint8_t bits;
};

static inline bool nj_net_has(const struct nj_net *net, const struct nj_addr *a)
{
    struct nj_addr masked = nj_addr_network(a, net->bits);
    return nj_addr_eq(&masked, &net->addr);
}

static inline bool nj_net_eq(const struct nj_net *a, const struct nj_net *b)
{
    return a->bits == b->bits && nj_addr_eq(&a->addr, &b->addr);
}

/* The four-tuple of a TCP connection. "local" is this server. Ports in host byte order. */
struct nj_tuple {
    struct nj_addr remote, local;
    uint16_t rport, lport;
};

static inline bool nj_tuple_eq(const struct nj_tuple *a, const struct nj_tuple *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
_Static_assert(sizeof(struct nj_tuple) == 36, "no padding: tuples are hashed and compared whole");
