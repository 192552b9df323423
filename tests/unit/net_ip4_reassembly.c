/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragments into a whole shard (sentence 119): complete packets are processed, and incomplete ones
 * are counted and freed. */
#include <criterion/criterion.h>

#include <stdio.h>

#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_ip_frag.h>

#include "base/prng.h"
#include "support/shard_rig.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/icmp_compat.h"

#define DATA_MAX 1480u

struct world {
    struct rig *r;
    struct rte_ip_frag_tbl *table;
    uint8_t icmp[DATA_MAX + 8];
    uint32_t n; /* bytes of icmp */
};

static struct rig *start(struct world *w, uint32_t n_shards)
{
    nj_test_eal();
    w->table = rte_ip_frag_table_create(NJ_FRAG_BUCKETS, NJ_FRAG_BUCKET_ENTRIES,
                                        NJ_FRAG_PACKETS_MAX, NJ_FRAG_TIMEOUT, SOCKET_ID_ANY);
    cr_assert_not_null(w->table);
    w->r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(w->r);
    c.frag_table = w->table;
    c.n_shards = n_shards;
    c.index = n_shards - 1;
    c.steering = n_shards > 1 ? NJ_STEER_ALWAYS : NJ_STEER_NONE;
    rig_new_with(w->r, &c);
    rig_arp(w->r, true, RIG_PEER_IP, &rig_peer_mac, RIG_IP);
    rig_settle(w->r);
    return w->r;
}

static void end(struct world *w)
{
    rte_ip_frag_table_destroy(w->table);
    rig_free(w->r); /* checks that every mbuf was returned */
}

/* An echo request of `n` bytes in all, whose data depends on its offset. */
static void echo(struct world *w, uint32_t n)
{
    struct rte_icmp_hdr h = {.icmp_type = RTE_ICMP_TYPE_ECHO_REQUEST, .icmp_ident = 7};

    w->n = n;
    for (uint32_t i = 0; i < n; i++)
        w->icmp[i] = (uint8_t)(i * 7 + (i >> 8));
    memcpy(w->icmp, &h, sizeof h);
    h.icmp_cksum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, w->icmp, n));
    memcpy(w->icmp, &h, sizeof h);
}

/* Bytes first..end of `payload` as a fragment of the packet `id`. */
static struct rte_mbuf *cut_from(struct world *w, uint32_t src, const uint8_t *payload,
                                 uint8_t protocol, uint16_t id, uint32_t first, uint32_t end,
                                 bool more, uint8_t ecn)
{
    struct rte_mbuf *m = nj_test_mbuf(w->r->rx_pool, payload + first, end - first);
    struct rte_ipv4_hdr h = {.version_ihl = RTE_IPV4_VHL_DEF,
                             .type_of_service = ecn,
                             .total_length = htons((uint16_t)(20 + end - first)),
                             .packet_id = htons(id),
                             .fragment_offset =
                                 htons((uint16_t)(first / 8 | (more ? RTE_IPV4_HDR_MF_FLAG : 0))),
                             .time_to_live = 64,
                             .next_proto_id = protocol,
                             .src_addr = htonl(src),
                             .dst_addr = htonl(RIG_IP)};
    h.hdr_checksum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, &h, sizeof h));
    memcpy(rte_pktmbuf_prepend(m, sizeof h), &h, sizeof h);
    nj_eth_prepend(m, &rig_mac, &rig_peer_mac, RTE_ETHER_TYPE_IPV4);
    if (end - first < 26) /* Ethernet padding */
        memset(rte_pktmbuf_append(m, 26), 0x55, 26);
    return m;
}

static struct rte_mbuf *cut(struct world *w, const uint8_t *payload, uint8_t protocol, uint16_t id,
                            uint32_t first, uint32_t end, bool more, uint8_t ecn)
{
    return cut_from(w, RIG_PEER_IP, payload, protocol, id, first, end, more, ecn);
}

/* A first fragment without the following ones. */
static void deliver_first(struct world *w, uint32_t src, uint16_t id)
{
    rig_queue(w->r, cut_from(w, src, w->icmp, IPPROTO_ICMP, id, 0, 8, true, 0));
    rig_settle(w->r);
}

static void deliver(struct world *w, uint16_t id, uint32_t first, uint32_t end)
{
    rig_queue(w->r, cut(w, w->icmp, IPPROTO_ICMP, id, first, end, end < w->n, 0));
    rig_settle(w->r);
}

/* The last frame that left is the answer to the echo. */
static bool answered(const struct world *w)
{
    const struct rig_frame *f = &w->r->out[(w->r->n_out - 1) % RIG_OUT_MAX];
    return f->n_bytes == 34 + w->n && f->bytes[34] == RTE_ICMP_TYPE_ECHO_REPLY &&
           memcmp(f->bytes + 38, w->icmp + 4, w->n - 4) == 0;
}

#define COUNTED(w, name) rig_count((w)->r, NJ_C_##name)

/* Sentence 119: all orders of four fragments. */
Test(net_ip4_reassembly, any_order)
{
    static const uint32_t at[5] = {0, 8, 552, 1104, 1480};
    struct world w;
    uint16_t id = 0;

    start(&w, 1);
    for (unsigned order = 0; order < 256; order++) {
        uint8_t o[4] = {order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6};
        if ((1u << o[0] | 1u << o[1] | 1u << o[2] | 1u << o[3]) != 15)
            continue;
        echo(&w, 1480);
        uint64_t before = w.r->n_out;
        id++;
        for (unsigned i = 0; i < 4; i++) {
            cr_assert_eq(w.r->n_out, before, "order %u: too early", order);
            deliver(&w, id, at[o[i]], at[o[i] + 1]);
        }
        cr_assert_eq(w.r->n_out, before + 1, "order %u", order);
        cr_assert(answered(&w), "order %u", order);
        w.r->now += 10 * NJ_MS; /* echo is limited */
    }
    cr_expect_eq(COUNTED(&w, rx_icmp), 24);
    cr_expect_eq(COUNTED(&w, rx_fragments), 96);
    cr_expect_eq(COUNTED(&w, rx_reassembled), 24);
    end(&w);
}

/* Sentence 119. */
Test(net_ip4_reassembly, duplicate)
{
    struct world w;
    start(&w, 1);
    echo(&w, 1000);
    deliver(&w, 1, 0, 480);
    deliver(&w, 1, 0, 480);
    deliver(&w, 1, 960, 1000);
    deliver(&w, 1, 960, 1000);
    cr_expect_eq(COUNTED(&w, drop_frag_duplicate), 2);
    deliver(&w, 1, 480, 960);
    cr_expect(answered(&w));
    end(&w);
}

/* RFC 5722 4: a packet with an overlap is dropped, for any other fragments. */
static void overlap(uint32_t first, uint32_t last, bool more)
{
    struct world w;
    start(&w, 1);
    echo(&w, 1000);
    uint64_t before = w.r->n_out;
    deliver(&w, 1, 0, 480);
    deliver(&w, 1, 800, 1000);
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_ICMP, 1, first, last, more, 0));
    rig_settle(w.r);
    cr_expect_eq(COUNTED(&w, drop_frag_overlap), 1, "%u..%u", first, last);
    deliver(&w, 1, 480, 800);
    cr_expect_eq(COUNTED(&w, drop_frag_overlap), 2, "%u..%u", first, last);
    cr_expect_eq(w.r->n_out, before);
    rig_run(w.r, NJ_SEC);
    cr_expect_eq(COUNTED(&w, frag_timeout), 2);
    for (uint32_t i = 0; i < 3; i++) /* afterwards the identification can be used again */
        deliver(&w, 1, i == 0 ? 0 : i == 1 ? 480 : 800, i == 0 ? 480 : i == 1 ? 800 : 1000);
    cr_expect(answered(&w));
    end(&w);
}

/* Sentence 119. */
Test(net_ip4_reassembly, overlap)
{
    overlap(472, 800, true);
    overlap(480, 808, true);
    overlap(8, 16, true);
    overlap(480, 1000, false);
    overlap(800, 1000, true);
    overlap(1000, 1008, true);  /* beyond the end */
    overlap(1000, 1001, false); /* another end */
    overlap(480, 488, false);
}

/* Sentence 119: memory is given back when the time is over, without another packet. */
Test(net_ip4_reassembly, timeout)
{
    struct world w;
    start(&w, 1);
    echo(&w, 1000);
    uint32_t n_free = rte_mempool_avail_count(w.r->rx_pool);
    deliver(&w, 1, 0, 480);
    deliver(&w, 1, 480, 960);
    cr_expect_eq(rte_mempool_avail_count(w.r->rx_pool), n_free - 2);
    cr_expect_leq(nj_shard_next_at(w.r->s), w.r->now + NJ_FRAG_TIMEOUT + 1);
    w.r->now += NJ_FRAG_TIMEOUT;
    rig_settle(w.r);
    cr_expect_eq(rte_mempool_avail_count(w.r->rx_pool), n_free - 2);
    w.r->now += 1;
    rig_settle(w.r);
    cr_expect_eq(rte_mempool_avail_count(w.r->rx_pool), n_free);
    cr_expect_eq(COUNTED(&w, frag_timeout), 2);
    deliver(&w, 1, 960, 1000); /* too late: the beginning of another */
    cr_expect_eq(COUNTED(&w, rx_icmp), 0);
    cr_expect_eq(rte_mempool_avail_count(w.r->rx_pool), n_free - 1);
    end(&w);
}

Test(net_ip4_reassembly, bounds)
{
    struct world w;
    start(&w, 1);
    echo(&w, 1000);
    for (uint32_t i = 0; i < 5; i++)
        deliver(&w, 1, 8 * i, 8 * i + 8);
    cr_expect_eq(COUNTED(&w, drop_frag_full), 1, "more fragments than we keep");
    deliver(&w, 1, 40, 1000);
    cr_expect_eq(COUNTED(&w, drop_frag_overlap), 1, "then it is spoiled");
    for (uint16_t id = 2; id < 2 + NJ_FRAG_PACKETS_MAX; id++)
        deliver_first(&w, RIG_PEER_IP + id, id);
    cr_expect_eq(COUNTED(&w, drop_frag_full), 2, "more packets than we keep");
    w.r->now += NJ_FRAG_TIMEOUT + 1;
    deliver(&w, 500, 0, 8);
    cr_expect_eq(COUNTED(&w, drop_frag_full), 2);
    cr_expect_eq(COUNTED(&w, frag_timeout), 4 + NJ_FRAG_PACKETS_MAX - 1);
    end(&w);
}

/* A source of incomplete packets uses its share, and leaves the others theirs: packets of another
 * source are reassembled all the time. */
Test(net_ip4_reassembly, share_of_a_source)
{
    struct world w;
    uint32_t n_whole = 0;

    start(&w, 1);
    echo(&w, 1000);
    for (uint16_t round = 0; round < 100; round++) {
        for (uint16_t i = 0; i < 40; i++)
            deliver_first(&w, RIG_PEER_IP + 7, (uint16_t)(1000 + 40 * round + i));
        uint64_t before = w.r->n_out;
        deliver(&w, round + 1, 0, 480);
        deliver(&w, round + 1, 480, 1000);
        n_whole += w.r->n_out == before + 1 && answered(&w);
        w.r->now += 20 * NJ_MS;
    }
    cr_expect_eq(n_whole, 100, "%u of 100", n_whole);
    cr_expect_gt(COUNTED(&w, drop_frag_share), 3900);
    cr_expect_eq(COUNTED(&w, drop_frag_full), 0);
    end(&w);
}

Test(net_ip4_reassembly, no_sense)
{
    struct world w;
    start(&w, 1);
    echo(&w, 1480);
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_ICMP, 1, 0, 12, true, 0));
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_ICMP, 1, 8, 8, false, 0));
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_ICMP, 1, 1480, 1488, true, 0));
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_UDP, 1, 0, 8, true, 0));
    rig_settle(w.r);
    cr_expect_eq(COUNTED(&w, drop_ip_fragment), 3);
    cr_expect_eq(COUNTED(&w, drop_ip_protocol), 1);
    end(&w);
}

Test(net_ip4_reassembly, without_a_table)
{
    struct world w = {.r = rig_new()};
    echo(&w, 1000);
    deliver(&w, 1, 0, 8);
    cr_expect_eq(COUNTED(&w, drop_ip_fragment), 1);
    rig_free(w.r);
}

/* A SYN in two pieces, as bytes of a TCP header. */
static void syn_in_pieces(struct world *w, uint16_t port, uint8_t ecn_first, uint8_t ecn_second,
                          bool spoil)
{
    uint8_t seg[64] = {0};
    struct rte_mbuf *m = rte_pktmbuf_alloc(w->r->rx_pool);
    struct nj_tcp_emit e = {.tuple = {rig_addr(RIG_IP), rig_addr(RIG_PEER_IP), RIG_PORT, port},
                            .seq = 9,
                            .flags = NJ_TCP_SYN,
                            .wnd = 1000,
                            .opts = {.has_mss = true, .mss = 1460}};
    nj_tcp_prepend(m, &e, &(struct nj_tx_offload){.tcp_csum = false});
    uint32_t n = m->pkt_len;
    memcpy(seg, rte_pktmbuf_mtod(m, void *), n);
    rte_pktmbuf_free(m);
    seg[n - 1] ^= spoil;
    struct rte_mbuf *two = cut(w, seg, IPPROTO_TCP, port, 16, n, false, ecn_second);
    two->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    struct rte_mbuf *one = cut(w, seg, IPPROTO_TCP, port, 0, 16, true, ecn_first);
    one->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    rig_queue(w->r, two);
    rig_queue(w->r, one);
    rig_settle(w->r);
}

/* A device's checksum result for a fragment does not apply to the packet. */
Test(net_ip4_reassembly, checksum_of_the_whole)
{
    struct world w;
    start(&w, 1);
    syn_in_pieces(&w, 1000, 0, 0, false);
    cr_expect_eq(COUNTED(&w, rx_tcp), 1);
    syn_in_pieces(&w, 1001, 0, 0, true);
    cr_expect_eq(COUNTED(&w, drop_tcp_checksum), 1);
    end(&w);
}

/* The table must compare the protocol: otherwise halves of two packets would be joined. */
Test(net_ip4_reassembly, two_protocols)
{
    struct world w;
    start(&w, 1);
    echo(&w, 64);
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_ICMP, 1, 0, 32, true, 0));
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_TCP, 1, 32, 64, false, 0));
    rig_settle(w.r);
    cr_expect_eq(COUNTED(&w, drop_frag_overlap), 1);
    deliver(&w, 1, 32, 64);
    cr_expect_eq(COUNTED(&w, drop_frag_overlap), 2, "it is spoiled");
    cr_expect_eq(COUNTED(&w, rx_reassembled), 0);
    rig_queue(w.r, cut(&w, w.icmp, IPPROTO_TCP, 2, 0, 32, true, 0));
    deliver(&w, 2, 32, 64);
    cr_expect_eq(COUNTED(&w, drop_frag_overlap), 3);
    cr_expect_eq(COUNTED(&w, rx_reassembled), 0);
    end(&w);
}

/* The shard that gets the fragments joins them, and the owner gets the packet. */
Test(net_ip4_reassembly, steering)
{
    struct world w;
    struct rig *r = start(&w, 2);
    for (uint16_t port = 1000; port < 1020; port++)
        syn_in_pieces(&w, port, 0, 0, false);
    cr_expect_gt(r->n_forwarded, 2);
    cr_expect_lt(r->n_forwarded, 18);
    cr_expect_eq(COUNTED(&w, rx_reassembled), 20);
    cr_expect_eq(COUNTED(&w, rx_tcp), 20 - r->n_forwarded);
    end(&w);
}

/* Straight to the joined packet: one fragment that met congestion marks all of it. */
Test(net_ip4_reassembly, congestion_mark)
{
    static const uint8_t ecn[][3] = {{NJ_ECN_ECT_0, NJ_ECN_ECT_0, NJ_ECN_ECT_0},
                                     {NJ_ECN_ECT_0, NJ_ECN_CE, NJ_ECN_CE},
                                     {NJ_ECN_CE, NJ_ECN_ECT_0, NJ_ECN_CE}};
    struct world w;
    struct rig *r = start(&w, 1);
    echo(&w, 1000);
    for (uint16_t i = 0; i < 3; i++) {
        struct rte_mbuf *whole = NULL;
        for (uint32_t part = 0; part < 2; part++) {
            struct rte_mbuf *m = cut(&w, w.icmp, IPPROTO_ICMP, i, part ? 480 : 0, part ? 1000 : 480,
                                     !part, ecn[i][part]);
            struct nj_packet p;
            nj_count(&r->s->counters, NJ_C_rx_packets); /* it came by another way */
            nj_packet_parse(&r->s->cfg.iface, m, &p);
            cr_assert_eq(p.kind, NJ_PACKET_FRAGMENT);
            whole = nj_ip4_reasm_input(&r->s->frags, m, &p, r->now);
        }
        cr_assert_not_null(whole);
        cr_expect_eq(*rte_pktmbuf_mtod_offset(whole, uint8_t *, 15), ecn[i][2], "case %u", i);
        nj_count(&r->s->counters, NJ_C_drop_icmp_type);
        rte_pktmbuf_free(whole);
    }
    end(&w);
}

/* Random fragments in any order: the counters balance (rig_step checks), and at the end no fragment
 * is kept. */
Test(net_ip4_reassembly, random_fragments)
{
    uint64_t seed = 0x5f3a;
    const char *given = getenv("NJ_TEST_SEED");
    struct nj_prng prng;
    struct world w;

    if (given)
        seed = strtoull(given, NULL, 0);
    printf("seed %lu (NJ_TEST_SEED)\n", seed);
    nj_prng_init(&prng, seed);
    start(&w, 1);
    echo(&w, 96);
    for (uint32_t i = 0; i < 50000; i++) {
        uint32_t first = 8 * nj_prng_below(&prng, 12);
        uint32_t n = 8 * (1 + nj_prng_below(&prng, 12 - first / 8));
        uint16_t id = (uint16_t)nj_prng_below(&prng, 48);
        bool more = first + n < 96 || nj_prng_below(&prng, 8) == 0;
        rig_queue(w.r, cut_from(&w, RIG_PEER_IP + id % 16, w.icmp, IPPROTO_ICMP, id, first,
                                first + n, more, 0));
        if (nj_prng_below(&prng, 8) == 0)
            rig_step(w.r);
        w.r->now += nj_prng_below(&prng, 10) * NJ_MS;
    }
    while (w.r->n_in > 0)
        rig_step(w.r);
    cr_expect_gt(COUNTED(&w, rx_icmp) + COUNTED(&w, drop_icmp_limit), 100);
    cr_expect_gt(COUNTED(&w, drop_frag_overlap), 1000);
    cr_expect_gt(COUNTED(&w, drop_frag_duplicate), 100);
    rig_run(w.r, NJ_SEC);
    cr_expect(nj_test_pool_full(w.r->rx_pool));
    end(&w);
}
