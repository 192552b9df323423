/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of neighbours without a shard, and its parsed output. */
#pragma once

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "net/nd_host.h"
#include "support/mbuf_env.h"

#define SENT_MAX 256

static const struct rte_ether_addr mac_own = {{2, 0, 0, 0, 0, 1}};
static const struct rte_ether_addr mac_a = {{2, 0, 0, 0, 0, 0xa}};
static const struct rte_ether_addr mac_b = {{2, 0, 0, 0, 0, 0xb}};

/* A frame that left. */
struct sent {
    struct rte_ether_addr dst;
    bool arp, request;             /* of ARP */
    uint32_t target4;              /* ... in host order */
    struct nj_addr ip_src, ip_dst; /* of IPv6 */
    uint8_t type;                  /* of ICMPv6; 0: something else */
    struct nj_addr target;         /* of neighbour discovery */
    uint8_t flags;                 /* of an advertisement */
    uint8_t nonce[6];
    uint8_t mark; /* last byte */
};

struct bench {
    struct nj_neigh n;
    struct nj_nd_host d;
    struct nj_counters counters;
    struct nj_iface iface;
    struct rte_mempool *mp;
    uint32_t n_sent;
    struct sent sent[SENT_MAX]; /* the last ones */
    nj_ns now;
};

static inline void bench_take_arp(struct sent *s, struct rte_mbuf *m)
{
    struct nj_iface other = {.mac = s->dst};
    struct nj_packet p;

    nj_packet_parse(&other, m, &p);
    cr_assert_eq(p.kind, NJ_PACKET_ARP);
    s->arp = true;
    s->request = p.arp.request;
    s->target4 = rte_be_to_cpu_32(nj_addr_to_v4(&p.arp.target));
}

static inline void bench_take_ip6(struct sent *s, const uint8_t *p)
{
    uint32_t up = 54;

    memcpy(&s->ip_src, p + 22, 16);
    memcpy(&s->ip_dst, p + 38, 16);
    up += p[20] == IPPROTO_HOPOPTS ? 8 : 0;
    s->type = p[up];
    if (s->type == 135 || s->type == 136) {
        s->flags = p[up + 4];
        memcpy(&s->target, p + up + 8, 16);
        memcpy(s->nonce, p + up + 26, 6);
    }
}

static inline void bench_on_send(void *ctx, struct rte_mbuf *m)
{
    struct bench *b = ctx;
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    struct sent *s = &b->sent[b->n_sent++ % SENT_MAX];

    *s = (struct sent){.mark = p[m->pkt_len - 1]};
    memcpy(&s->dst, p, 6);
    cr_assert_eq(memcmp(p + 6, &mac_own, 6), 0);
    if (memcmp(p + 12, "\x08\x06", 2) == 0)
        bench_take_arp(s, m);
    else if (memcmp(p + 12, "\x86\xdd", 2) == 0 && m->pkt_len > 54)
        bench_take_ip6(s, p);
    rte_pktmbuf_free(m);
}

static inline struct bench *bench_alloc(void)
{
    struct bench *b = aligned_alloc(NJ_CACHE_LINE, RTE_CACHE_LINE_ROUNDUP(sizeof *b));
    memset(b, 0, sizeof *b);
    b->mp = nj_test_pool(512);
    b->iface = (struct nj_iface){.mac = mac_own, .mtu = 1500, .n_addrs = 1};
    nj_neigh_init(&b->n, &b->iface, b->mp, &b->counters, bench_on_send, b);
    return b;
}

static inline void bench_free(struct bench *b)
{
    nj_neigh_fini(&b->n);
    cr_expect(nj_test_pool_full(b->mp));
    free(b);
}

static inline uint64_t count(const struct bench *b, nj_counter c)
{
    return nj_counter_read(&b->counters, c);
}

static inline const struct sent *sent(const struct bench *b, uint32_t i)
{
    cr_assert_lt(i, b->n_sent);
    return &b->sent[i];
}
