/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of IPv6 neighbours, the host's own side of neighbour discovery, and packets for both. */
#pragma once

#include <criterion/criterion.h>

#include "support/neigh_bench.h"
#include "wire/ip6.h"

#define START (1000 * NJ_SEC)

static const struct nj_addr own = {{0x20, 1, 0x0d, 0xb8, [15] = 1}};
static const struct nj_addr peer = {{0x20, 1, 0x0d, 0xb8, [15] = 9}};
static const struct nj_addr far = {{0x20, 1, 0x0d, 0xb8, 0xff, [15] = 9}};
static const struct nj_addr router = {{0xfe, 0x80, [15] = 0xfe}};
static const struct nj_addr router2 = {{0xfe, 0x80, [15] = 0xfd}};
static const struct nj_addr nobody;

static inline void on_lost(void *ctx, const struct nj_addr *ip, bool silent, nj_ns now)
{
    nj_nd_host_replace_lost_router(&((struct bench *)ctx)->d, ip, silent, now);
}

static inline struct bench *bench_with(bool sends_unsolicited, bool slaac,
                                       const struct nj_addr *gateway)
{
    struct bench *b = bench_alloc();
    b->now = START;
    b->iface.ip6 = true;
    b->iface.addr[0] = (struct nj_iface_addr){own, 64, 0};
    b->iface.has_gateway6 = gateway != NULL;
    b->iface.gateway6 = gateway ? *gateway : nobody;
    struct nj_nd_host_config c = {
        .sends_unsolicited = sends_unsolicited, .slaac = slaac, .key = {{7}}};
    b->n.lost = on_lost;
    nj_nd_host_init(&b->d, &c, &b->iface, &b->n, b->now);
    return b;
}

static inline void run(struct bench *b, nj_ns time)
{
    for (nj_ns end = b->now + time; b->now < end; b->now += 10 * NJ_MS) {
        nj_neigh_tick(&b->n, b->now);
        nj_nd_host_tick(&b->d, b->now);
    }
}

/* Addresses checked, routers solicited, groups reported; nothing further is sent. */
static inline struct bench *bench_ready(bool slaac)
{
    struct bench *b = bench_with(true, slaac, NULL);
    run(b, 15 * NJ_SEC);
    b->n_sent = 0;
    return b;
}

/* Packets sent of this type (and about this target). */
static inline uint32_t n_of(const struct bench *b, uint8_t type, const struct nj_addr *target)
{
    uint32_t n = 0;
    cr_assert_lt(b->n_sent, SENT_MAX);
    for (uint32_t i = 0; i < b->n_sent; i++)
        n += b->sent[i].type == type && (!target || nj_addr_eq(&b->sent[i].target, target));
    return n;
}

static inline enum nj_addr_state state_of(const struct bench *b, const struct nj_addr *ip)
{
    for (unsigned i = 0; i < b->iface.n_addrs; i++)
        if (nj_addr_eq(&b->iface.addr[i].ip, ip))
            return b->iface.addr[i].state;
    return NJ_ADDR_EXPIRED;
}

static inline bool solicit(struct bench *b, const struct nj_addr *src, const struct nj_addr *target,
                           const struct rte_ether_addr *mac, const uint8_t *nonce)
{
    struct nj_packet p = {.kind = NJ_PACKET_ND, .ip_src = *src};
    p.ip_dst = nj_ip6_solicited_node(target);
    p.nd = (struct nj_nd){.kind = NJ_ND_SOLICIT, .target = *target, .has_mac = mac != NULL};
    if (mac)
        p.nd.mac = *mac;
    p.nd.has_nonce = nonce != NULL;
    if (nonce)
        memcpy(p.nd.nonce, nonce, sizeof p.nd.nonce);
    return nj_nd_host_input(&b->d, &p, NULL, true, b->now);
}

enum { S = 1, O = 2, R = 4 };

static inline bool advert(struct bench *b, const struct nj_addr *target,
                          const struct rte_ether_addr *mac, unsigned flags)
{
    struct nj_packet p = {.kind = NJ_PACKET_ND, .ip_src = *target, .ip_dst = own};
    p.nd = (struct nj_nd){.kind = NJ_ND_ADVERT,
                          .target = *target,
                          .solicited = flags & S,
                          .override = flags & O,
                          .router = flags & R,
                          .has_mac = mac != NULL};
    if (mac)
        p.nd.mac = *mac;
    return nj_nd_host_input(&b->d, &p, NULL, true, b->now);
}

/* A router advertisement, optionally with a prefix. */
static inline void advertise(struct bench *b, const struct nj_addr *from, uint16_t lifetime_s,
                             const struct nj_addr *prefix, uint32_t valid_s, uint32_t mtu)
{
    uint8_t msg[56] = {134, 0, 0, 0, 64, 0, (uint8_t)(lifetime_s >> 8), (uint8_t)lifetime_s};
    uint32_t n = 16;

    if (prefix) {
        const uint8_t option[16] = {3,
                                    4,
                                    64,
                                    0xc0,
                                    (uint8_t)(valid_s >> 24),
                                    (uint8_t)(valid_s >> 16),
                                    (uint8_t)(valid_s >> 8),
                                    (uint8_t)valid_s};
        memcpy(msg + n, option, 16);
        memcpy(msg + n + 16, prefix->b, 16);
        n += 32;
    }
    if (mtu) {
        const uint8_t option[8] = {5, 1, 0, 0, 0, 0, (uint8_t)(mtu >> 8), (uint8_t)mtu};
        memcpy(msg + n, option, 8);
        n += 8;
    }
    struct nj_packet p = {.kind = NJ_PACKET_ND, .ip_src = *from, .ip_dst = nj_ip6_all_nodes()};
    p.nd = (struct nj_nd){.kind = NJ_ND_ROUTER_ADVERT, .has_mac = true, .mac = mac_b, .n_bytes = n};
    cr_expect(nj_nd_host_input(&b->d, &p, msg, true, b->now), "shown to the other shards");
}

static inline void send_to(struct bench *b, const struct nj_addr *ip, uint8_t mark)
{
    nj_neigh_output(&b->n, nj_test_mbuf(b->mp, &mark, 1), ip, NJ_NEIGH_OWN, b->now);
}

static inline bool same_mac(const struct rte_ether_addr *a, const struct rte_ether_addr *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
