/* SPDX-License-Identifier: BSD-3-Clause */
/* Emitted packets: exact bytes where they are known from another source, and every packet parsed.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include <netinet/in.h>

#include "base/prng.h"
#include "support/mbuf_env.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/emit.h"

static const struct rte_ether_addr peer_mac = {{2, 0, 0, 0, 0, 0xbb}};

static struct nj_addr v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    const uint8_t octets[4] = {a, b, c, d};
    uint32_t be;
    memcpy(&be, octets, 4);
    return nj_addr_from_v4(be);
}

static struct nj_iface test_iface(void)
{
    return (struct nj_iface){.mac = {{2, 0, 0, 0, 0, 0xaa}},
                             .mtu = 1500,
                             .n_addrs = 1,
                             .addr = {{v4(10, 0, 0, 1), 24, 0}}};
}

/* The checksum as in RFC 1071, two bytes at a time and in host order. */
static uint16_t slow_csum(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)sum;
}

static void random_bytes(struct nj_prng *r, void *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)to)[i] = (uint8_t)nj_prng_next(r);
}

/* `n` bytes as a chain that is cut at random, with empty segments in it. */
static struct rte_mbuf *random_chain(struct rte_mempool *pool, struct nj_prng *r,
                                     const uint8_t *bytes, uint32_t n)
{
    struct rte_mbuf *head = NULL;
    for (unsigned i = 0; i < 5; i++) {
        uint32_t part = i == 4 ? n : nj_prng_below(r, n + 1);
        struct rte_mbuf *m = nj_test_mbuf(pool, bytes, part);
        cr_assert_not_null(m);
        bytes += part;
        n -= part;
        if (!head)
            head = m;
        else
            cr_assert_eq(rte_pktmbuf_chain(head, m), 0);
    }
    return head;
}

Test(wire_csum, agrees_with_the_slow_way)
{
    const uint64_t seed = 0xc5;
    struct rte_mempool *pool = nj_test_pool(8);
    struct nj_prng r;
    uint8_t bytes[1600];

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (unsigned run = 0; run < 3000; run++) {
        uint32_t n = nj_prng_below(&r, sizeof bytes + 1);
        bool dense = nj_prng_below(&r, 2); /* words near 0xffff, for the carries */
        for (uint32_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(dense ? 0xff - nj_prng_below(&r, 2) : nj_prng_next(&r));
        uint16_t want = rte_cpu_to_be_16(slow_csum(bytes, n));
        cr_assert_eq(nj__csum_fold(nj__csum_add_bytes(0, bytes, n)), want);
        struct rte_mbuf *m = random_chain(pool, &r, bytes, n);
        cr_assert_eq(nj__csum_fold(nj__csum_add_mbuf(0, m)), want, "run %u", run);
        rte_pktmbuf_free(m);
    }
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_emit, ipv4_header_bytes)
{
    struct rte_mempool *pool = nj_test_pool(1);
    struct rte_mbuf *m = nj_test_mbuf(pool, "data", 4);
    struct nj_addr src = v4(10, 0, 0, 1), dst = v4(192, 168, 7, 9);
    /* Checksum worked out by hand: ~(4500+18+1234+4000+4006+a00+1+c0a8+709, carries added). */
    static const uint8_t want[] = {0x45, 0, 0, 24, 0x12, 0x34, 0x40, 0, 64,  6,   0x56, 0xfa,
                                   10,   0, 0, 1,  192,  168,  7,    9, 'd', 'a', 't',  'a'};

    nj_ipv4_prepend(m, &(struct nj_ip_meta){.src = src, .dst = dst}, IPPROTO_TCP, 0x1234);
    cr_assert_eq(m->pkt_len, sizeof want);
    cr_expect_arr_eq(rte_pktmbuf_mtod(m, uint8_t *), want, sizeof want);
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_emit, arp_bytes)
{
    struct rte_mempool *pool = nj_test_pool(2);
    struct nj_iface iface = test_iface();
    struct nj_addr target = v4(10, 0, 0, 2);
    uint8_t want[28] = {0,  1, 8, 0, 6, 4, 0, 1, 2, 0, 0,  0, 0, 0xaa,
                        10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};
    struct rte_mbuf *ask = rte_pktmbuf_alloc(pool), *answer = rte_pktmbuf_alloc(pool);

    nj_arp_build(ask, true, &iface.mac, &iface.addr[0].ip, NULL, &target);
    cr_assert_eq(ask->pkt_len, sizeof want);
    cr_expect_arr_eq(rte_pktmbuf_mtod(ask, uint8_t *), want, sizeof want);

    want[7] = 2;
    memcpy(&want[18], &peer_mac, 6);
    nj_arp_build(answer, false, &iface.mac, &iface.addr[0].ip, &peer_mac, &target);
    cr_expect_arr_eq(rte_pktmbuf_mtod(answer, uint8_t *), want, sizeof want);
    rte_pktmbuf_free(ask);
    rte_pktmbuf_free(answer);
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_emit, icmp_echo_reply)
{
    struct rte_mempool *pool = nj_test_pool(1);
    /* Odd length; the checksum is for the reply to overwrite. */
    static const uint8_t request[] = {8, 0, 0xff, 0xff, 1, 2, 3, 4, 'x', 'y', 'z'};
    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

    nj_icmp_echo_reply_build(m, request, sizeof request);
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    cr_assert_eq(m->pkt_len, sizeof request);
    cr_expect_eq(p[0], 0);
    cr_expect_arr_eq(p + 4, request + 4, sizeof request - 4);
    cr_expect_eq(slow_csum(p, sizeof request), 0xffff);
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_emit, options_are_aligned)
{
    for (unsigned set = 0; set < 16; set++) {
        struct nj_tcp_opts o = {.has_mss = set & 1,
                                .has_wscale = set & 2,
                                .has_ts = set & 4,
                                .sack_permitted = set & 8};
        uint32_t n = nj_tcp_opts_bytes(&o);
        cr_expect_eq(n % 4, 0);
        cr_expect_leq(n, 20); /* the length in a SYN of Linux */
        cr_expect_eq(n == 0, set == 0);
    }
}

static struct nj_prng announced(uint64_t seed)
{
    struct nj_prng r;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    return r;
}

static uint32_t random_peer_ip(struct nj_prng *r, const struct nj_iface *iface)
{
    for (;;) {
        uint32_t ip = (uint32_t)nj_prng_next(r);
        if (nj_ip4_source_ok(iface, ip))
            return ip;
    }
}

/* Without padding that is not set: compared with memcmp(). */
static void random_segment(struct nj_prng *r, const struct nj_iface *iface, struct nj_tcp_emit *e)
{
    uint64_t bits = nj_prng_next(r);

    memset(e, 0, sizeof *e);
    e->tuple.local = nj_addr_from_v4(random_peer_ip(r, iface));
    e->tuple.remote = iface->addr[0].ip;
    e->tuple.lport = (uint16_t)(1 + nj_prng_below(r, 65535));
    e->tuple.rport = (uint16_t)(1 + nj_prng_below(r, 65535));
    e->seq = (uint32_t)nj_prng_next(r);
    e->ack = (uint32_t)nj_prng_next(r);
    e->wnd = (uint16_t)nj_prng_next(r);
    e->flags = (uint8_t)nj_prng_next(r);
    if (e->flags & NJ_TCP_SYN) {
        e->opts.has_mss = bits & 1;
        e->opts.has_wscale = bits & 2;
        e->opts.sack_permitted = bits & 4;
    } else {
        e->opts.n_sack = (uint8_t)nj_prng_below(r, NJ_SACK_BLOCKS_MAX); /* beside timestamps: 3 */
        for (uint32_t i = 0; i < e->opts.n_sack; i++)
            e->opts.sack[i] =
                (struct nj_sack_block){(uint32_t)nj_prng_next(r), (uint32_t)nj_prng_next(r)};
    }
    e->ecn = bits >> 4 & NJ_ECN_CE;
    e->opts.has_ts = bits & 8;
    if (e->opts.has_mss)
        e->opts.mss = (uint16_t)nj_prng_next(r);
    if (e->opts.has_wscale)
        e->opts.wscale = (uint8_t)nj_prng_next(r);
    if (e->opts.has_ts) {
        e->opts.ts_val = (uint32_t)nj_prng_next(r);
        e->opts.ts_ecr = (uint32_t)nj_prng_next(r);
    }
}

/* The sender's view of `e` against the receiver's of `p`. */
static void expect_same(const struct nj_tcp_emit *e, const struct nj_packet *p)
{
    const struct nj_seg *s = &p->tcp;

    cr_expect(nj_addr_eq(&p->ip_src, &e->tuple.local));
    cr_expect(nj_addr_eq(&p->ip_dst, &e->tuple.remote));
    cr_expect(nj_addr_eq(&s->tuple.remote, &e->tuple.local));
    cr_expect(nj_addr_eq(&s->tuple.local, &e->tuple.remote));
    cr_expect_eq(s->tuple.rport, e->tuple.lport);
    cr_expect_eq(s->tuple.lport, e->tuple.rport);
    cr_expect_eq(s->seq, e->seq);
    cr_expect_eq(s->ack, e->ack);
    cr_expect_eq(s->wnd, e->wnd);
    cr_expect_eq(s->flags, e->flags);
    cr_expect_eq(s->ecn, e->ecn);
    cr_expect_eq(memcmp(&s->opts, &e->opts, sizeof s->opts), 0);
}

Test(wire_emit, round_trip)
{
    struct rte_mempool *pool = nj_test_pool(8);
    struct nj_iface iface = test_iface();
    struct nj_prng r = announced(0x1234abcd);
    uint8_t bytes[1400];

    for (unsigned run = 0; run < 3000; run++) {
        struct nj_tcp_emit e;
        struct nj_packet p;
        uint32_t n = nj_prng_below(&r, 4) == 0 ? 0 : nj_prng_below(&r, sizeof bytes + 1);
        random_bytes(&r, bytes, n);
        random_segment(&r, &iface, &e);

        struct rte_mbuf *m = random_chain(pool, &r, bytes, n);
        nj_tcp_prepend(m, &e, &(struct nj_tx_offload){.tcp_csum = false});
        nj_ipv4_prepend(
            m, &(struct nj_ip_meta){.src = e.tuple.local, .dst = e.tuple.remote, .ecn = e.ecn},
            IPPROTO_TCP, (uint16_t)run);
        nj_eth_prepend(m, &iface.mac, &peer_mac, RTE_ETHER_TYPE_IPV4);
        cr_assert_eq(rte_pktmbuf_linearize(m), 0);

        nj_packet_parse(&iface, m, &p);
        cr_assert_eq(p.kind, NJ_PACKET_TCP, "run %u: kind %d, drop %d", run, p.kind, p.drop);
        expect_same(&e, &p);
        cr_assert_eq(p.tcp.payload_bytes, n);
        cr_assert_eq(memcmp(rte_pktmbuf_mtod_offset(m, uint8_t *, p.tcp.payload_off), bytes, n), 0);
        rte_pktmbuf_free(m);
    }
    cr_expect(nj_test_pool_full(pool));
}

/* A segment with the headers of its frame, written one by one. */
static struct rte_mbuf *frame(struct rte_mempool *pool, const struct nj_iface *iface,
                              const struct nj_tcp_emit *e, const struct nj_tx_offload *tx,
                              uint32_t n_payload, uint16_t ident, uint32_t *n_segment)
{
    static const uint8_t payload[1400];
    bool v4 = nj_addr_is_v4(&e->tuple.local);
    struct rte_mbuf *m = nj_test_mbuf(pool, payload, n_payload);
    struct nj_ip_meta ip = {.src = e->tuple.local, .dst = e->tuple.remote, .ecn = e->ecn};

    nj_tcp_prepend(m, e, tx);
    *n_segment = rte_pktmbuf_pkt_len(m);
    nj_ip_prepend(m, &ip, IPPROTO_TCP, ident);
    nj_eth_prepend_from_iface(m, &peer_mac, iface, v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
    return m;
}

static void expect_same_frame(unsigned run, const struct rte_mbuf *m, const struct rte_mbuf *want)
{
    cr_assert_eq(m->pkt_len, want->pkt_len, "run %u", run);
    cr_assert_eq(m->data_len, want->data_len, "run %u", run);
    cr_assert_eq(memcmp(rte_pktmbuf_mtod(m, void *), rte_pktmbuf_mtod(want, void *), want->pkt_len),
                 0, "run %u", run);
}

/* A cached header gives exactly the same frame of a segment. */
Test(wire_emit, head_once_more)
{
    struct rte_mempool *pool = nj_test_pool(3);
    struct nj_prng r = announced(0x4ead);

    for (unsigned run = 0; run < 3000; run++) {
        struct nj_iface iface = test_iface();
        iface.vlan = nj_prng_below(&r, 2) ? 7 : 0;
        struct nj_tx_offload tx = {.tcp_csum = nj_prng_below(&r, 2)};
        tx.ip_csum = tx.tcp_csum && nj_prng_below(&r, 2);
        struct nj_tcp_emit e = {.flags = NJ_TCP_ACK, .opts.has_ts = nj_prng_below(&r, 2)};
        random_bytes(&r, &e.tuple, sizeof e.tuple);
        if (nj_prng_below(&r, 2)) {
            e.tuple.local = nj_addr_from_v4((uint32_t)nj_prng_next(&r));
            e.tuple.remote = nj_addr_from_v4((uint32_t)nj_prng_next(&r));
        }
        bool v4 = nj_addr_is_v4(&e.tuple.local);
        e.ecn = (uint8_t)nj_prng_below(&r, 4);
        uint32_t n_segment, n = nj_prng_below(&r, 1400);
        uint16_t ident = (uint16_t)nj_prng_next(&r);

        struct nj_l2l3_cache head;
        struct rte_mbuf *first = frame(pool, &iface, &e, &tx, nj_prng_below(&r, 1400),
                                       (uint16_t)nj_prng_next(&r), &n_segment);
        nj_l2l3_cache_save(&head, first, n_segment, v4);
        struct rte_mbuf *want = frame(pool, &iface, &e, &tx, n, ident, &n_segment);
        struct rte_mbuf *m = nj_test_mbuf(pool, "", 0);
        memcpy(rte_pktmbuf_append(m, (uint16_t)n_segment),
               rte_pktmbuf_mtod_offset(want, void *, want->pkt_len - n_segment), n_segment);
        m->ol_flags = want->ol_flags;
        m->l4_len = want->l4_len;
        nj_l2l3_cache_prepend(m, &head, ident);
        expect_same_frame(run, m, want);
        cr_assert_eq(m->tx_offload, want->tx_offload);
        rte_pktmbuf_free(first);
        rte_pktmbuf_free(want);
        rte_pktmbuf_free(m);
    }
    cr_expect(nj_test_pool_full(pool));
}

/* The same of a TCP header, for another number and payload. */
Test(wire_emit, tcp_head_once_more)
{
    struct rte_mempool *pool = nj_test_pool(3);
    struct nj_iface iface = test_iface();
    struct nj_prng r = announced(0x7c9);
    uint8_t bytes[1400];

    for (unsigned run = 0; run < 3000; run++) {
        struct nj_tcp_emit e;
        struct nj_tcp_hdr_cache head;
        uint32_t n = nj_prng_below(&r, sizeof bytes + 1);
        random_segment(&r, &iface, &e);
        if (nj_prng_below(&r, 2)) { /* IPv6 */
            random_bytes(&r, &e.tuple.local, sizeof e.tuple.local);
            random_bytes(&r, &e.tuple.remote, sizeof e.tuple.remote);
        }
        random_bytes(&r, bytes, sizeof bytes);
        struct rte_mbuf *first = nj_test_mbuf(pool, bytes, nj_prng_below(&r, 1400));
        nj_tcp_prepend(first, &e, &(struct nj_tx_offload){.tcp_csum = false});
        nj_tcp_hdr_cache_save(&head, first, &e);

        e.seq = (uint32_t)nj_prng_next(&r);
        random_bytes(&r, bytes, sizeof bytes);
        struct rte_mbuf *want = nj_test_mbuf(pool, bytes, n), *m = nj_test_mbuf(pool, bytes, n);
        nj_tcp_prepend(want, &e, &(struct nj_tx_offload){.tcp_csum = false});
        nj_tcp_hdr_cache_prepend(m, &head, e.seq, nj__csum_add_bytes(0, bytes, n));
        expect_same_frame(run, m, want);
        rte_pktmbuf_free(first);
        rte_pktmbuf_free(want);
        rte_pktmbuf_free(m);
    }
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_emit, arp_and_echo_round_trip)
{
    struct rte_mempool *pool = nj_test_pool(1);
    struct nj_iface us = test_iface();
    struct nj_addr peer_ip = v4(10, 0, 0, 2), our_ip = us.addr[0].ip;
    struct nj_packet p;

    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
    nj_arp_build(m, true, &peer_mac, &peer_ip, NULL, &our_ip);
    nj_eth_prepend(m, &(struct rte_ether_addr){{255, 255, 255, 255, 255, 255}}, &peer_mac,
                   RTE_ETHER_TYPE_ARP);
    nj_packet_parse(&us, m, &p);
    cr_assert_eq(p.kind, NJ_PACKET_ARP);
    cr_expect(p.arp.request);
    cr_expect(rte_is_same_ether_addr(&p.arp.mac, &peer_mac));
    cr_expect(nj_addr_eq(&p.arp.ip, &peer_ip));
    cr_expect(nj_addr_eq(&p.arp.target, &our_ip));
    rte_pktmbuf_free(m);

    m = rte_pktmbuf_alloc(pool);
    nj_icmp_echo_reply_build(m, (const uint8_t[]){8, 0, 0, 0, 0, 1, 0, 2, 9}, 9);
    nj_ipv4_prepend(m, &(struct nj_ip_meta){.src = peer_ip, .dst = our_ip}, IPPROTO_ICMP, 1);
    nj_eth_prepend(m, &us.mac, &peer_mac, RTE_ETHER_TYPE_IPV4);
    nj_packet_parse(&us, m, &p);
    cr_expect_eq(p.kind, NJ_PACKET_DROP);
    cr_expect_eq(p.drop, NJ_C_drop_icmp_type); /* well formed, but a reply */
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(pool));
}
