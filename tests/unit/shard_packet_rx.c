/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in and out of a whole shard: ICMP, next hops, a full device. The counters balance for any
 * input. */
#include <criterion/criterion.h>
#include <stdio.h>

#include <rte_icmp.h>
#include <rte_ip.h>

#include "base/prng.h"
#include "support/shard_rig.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/icmp_compat.h"

#define FAR_IP 0x08080808u

static uint32_t echo_frame(uint8_t out[128], const struct rte_ether_addr *dst, uint32_t from,
                           uint32_t to)
{
    struct rte_ether_hdr eth = {*dst, rig_peer_mac, RTE_BE16(RTE_ETHER_TYPE_IPV4)};
    struct rte_ipv4_hdr ip = {.version_ihl = RTE_IPV4_VHL_DEF,
                              .total_length = RTE_BE16(20 + 8 + 4),
                              .time_to_live = 64,
                              .next_proto_id = IPPROTO_ICMP,
                              .src_addr = htonl(from),
                              .dst_addr = htonl(to)};
    struct {
        struct rte_icmp_hdr hdr;
        uint8_t data[4];
    } icmp = {{.icmp_type = RTE_ICMP_TYPE_ECHO_REQUEST, .icmp_ident = 5}, "abc"};

    ip.hdr_checksum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, &ip, sizeof ip));
    icmp.hdr.icmp_cksum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, &icmp, sizeof icmp));
    memcpy(out, &eth, 14);
    memcpy(out + 14, &ip, 20);
    memcpy(out + 34, &icmp, sizeof icmp);
    return 34 + sizeof icmp;
}

static void ping(struct rig *r, const struct rte_ether_addr *dst, uint32_t from, uint32_t to)
{
    uint8_t f[128];
    cr_assert(rig_frame(r, f, echo_frame(f, dst, from, to)));
}

static const struct rig_frame *last_out(const struct rig *r)
{
    return &r->out[(r->n_out - 1) % RIG_OUT_MAX];
}

/* Sentence 97. */
Test(shard_packet_rx, echo)
{
    struct rig *r = rig_new();
    ping(r, &rig_mac, RIG_PEER_IP, RIG_IP);
    rig_settle(r);
    const struct rig_frame *f = last_out(r);
    cr_assert_eq(f->n_bytes, 46);
    cr_expect_eq(f->bytes[34], RTE_ICMP_TYPE_ECHO_REPLY);
    cr_expect_eq(memcmp(f->bytes + 42, "abc", 4), 0);
    cr_expect_eq(memcmp(f->bytes + 30, &(uint32_t){htonl(RIG_PEER_IP)}, 4), 0);
    cr_expect_eq(nj__csum_fold(nj__csum_add_bytes(0, f->bytes + 14, 20)), 0xffff);
    cr_expect_eq(nj__csum_fold(nj__csum_add_bytes(0, f->bytes + 34, 12)), 0xffff);
    cr_expect_eq(rig_count(r, NJ_C_rx_icmp), 1);
    rig_free(r);
}

/* Sentence 97. */
Test(shard_packet_rx, echo_is_limited)
{
    struct rig *r = rig_new();
    for (int i = 0; i < 1500; i++) {
        ping(r, &rig_mac, RIG_PEER_IP, RIG_IP);
        rig_step(r);
    }
    cr_expect_eq(rig_count(r, NJ_C_rx_icmp), 1000);
    cr_expect_eq(rig_count(r, NJ_C_drop_icmp_limit), 500);
    r->now += NJ_SEC;
    ping(r, &rig_mac, RIG_PEER_IP, RIG_IP);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_rx_icmp), 1001);
    rig_free(r);
}

/* Sentences 97, 121. */
Test(shard_packet_rx, broadcasts_are_not_answered)
{
    static const struct rte_ether_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    struct rig *r = rig_new();
    rig_settle(r);
    uint64_t before = r->n_out;
    ping(r, &all, RIG_PEER_IP, RIG_IP);
    ping(r, &rig_mac, RIG_PEER_IP, 0xc61200ff);
    ping(r, &rig_mac, RIG_PEER_IP, 0xffffffff);
    ping(r, &rig_mac, 0xc61200ff, RIG_IP);
    ping(r, &rig_mac, 0xe0000001, RIG_IP);
    rig_settle(r);
    cr_expect_eq(r->n_out, before);
    cr_expect_eq(rig_count(r, NJ_C_drop_eth_dst), 1);
    cr_expect_eq(rig_count(r, NJ_C_drop_ip_dst), 2);
    cr_expect_eq(rig_count(r, NJ_C_drop_ip_src), 2);
    rig_free(r);
}

Test(shard_packet_rx, off_the_link)
{
    struct rig *r = rig_new();
    ping(r, &rig_mac, FAR_IP, RIG_IP);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_drop_tx_no_route), 1);
    rig_free(r);

    r = rig_alloc(64, 512);
    struct nj_shard_config c = rig_config(r);
    static const struct rte_ether_addr gw = {{2, 0, 0, 0, 0, 0xfe}};
    c.iface.has_gateway = true;
    c.iface.gateway = rig_addr(0xc61200fe);
    rig_new_with(r, &c);
    rig_arp(r, true, 0xc61200fe, &gw, RIG_IP);
    ping(r, &rig_mac, FAR_IP, RIG_IP);
    rig_settle(r);
    const struct rig_frame *f = last_out(r);
    cr_expect_eq(memcmp(f->bytes, &gw, 6), 0, "to the gateway's MAC");
    cr_expect_eq(memcmp(f->bytes + 30, &(uint32_t){htonl(FAR_IP)}, 4), 0);
    rig_free(r);
}

Test(shard_packet_rx, full_device)
{
    struct rig *r = rig_new();
    ping(r, &rig_mac, RIG_PEER_IP, RIG_IP);
    rig_settle(r);
    uint64_t before = r->n_out;
    r->tx_room = 0;
    for (int i = 0; i < 300; i++)
        ping(r, &rig_mac, RIG_PEER_IP, RIG_IP);
    for (int i = 0; i < 20; i++)
        rig_step(r);
    cr_expect_eq(r->n_out, before);
    cr_expect_eq(r->s->n_txq, 300);
    cr_expect_eq(nj_shard_next_at(r->s), 0);
    cr_expect(nj_shard_has_unfinished_work(r->s));
    r->tx_room = 7; /* the device has room at times */
    rig_step(r);
    cr_expect_eq(r->n_out, before + 7);
    r->tx_room = UINT32_MAX;
    rig_settle(r);
    cr_expect_eq(r->n_out, before + 300);
    cr_expect(!nj_shard_has_unfinished_work(r->s));

    r->tx_room = 0;
    r->now += 2 * NJ_SEC;
    for (int i = 0; i < 600; i++)
        ping(r, &rig_mac, RIG_PEER_IP, RIG_IP);
    for (int i = 0; i < 30; i++)
        rig_step(r);
    cr_expect_eq(r->s->n_txq, NJ_TXQ_MAX);
    cr_expect_eq(rig_count(r, NJ_C_drop_tx_full), 600 - NJ_TXQ_MAX);
    rig_free(r); /* the queued packets count as drop_tx_down now */
}

/* TCP waits for room in the queue and loses nothing. */
Test(shard_packet_rx, full_device_and_tcp)
{
    struct rig *r = rig_new();
    struct rig_peer *p[20];
    for (uint16_t i = 0; i < 20; i++) {
        p[i] = rig_connect_h2(r, 1000 + i);
        rig_get(r, p[i], 1, "/whole");
    }
    for (int i = 0; i < 20000; i++) {
        r->tx_room = i % 3 ? 0 : 5;
        rig_step(r);
        cr_assert_leq(r->s->n_txq, NJ_TXQ_MAX - 1);
        r->now += NJ_MS / 2;
    }
    r->tx_room = UINT32_MAX;
    rig_run(r, NJ_SEC);
    for (int i = 0; i < 20; i++)
        cr_expect_gt(p[i]->n_got, RIG_WHOLE);
    cr_expect_eq(rig_count(r, NJ_C_drop_tx_full), 0);
    rig_free(r);
}

/* SYNs from unused on-link addresses: few are resolved, and a host that sends ARP first is answered
 * at once. A segment out of order after the SYN, or a RST off by one, proves nothing about the
 * address. */
static void made_up_neighbours(uint32_t stray_seq, uint8_t stray_flags)
{
    enum { N = 200 };
    struct rig *r = rig_new();
    struct rig_peer *known = rig_connect_h2(r, 1000);

    r->no_arp = true;
    uint64_t had = r->n_out;
    for (uint32_t i = 0; i < N; i++) {
        struct rig_peer nobody = {.rcv_wnd = 65535};
        nobody.tuple = (struct nj_tuple){
            .local = rig_addr(RIG_PEER_IP + 20 + i),
            .remote = rig_addr(RIG_IP),
            .lport = 1000,
            .rport = RIG_PORT,
        };
        rig_seg_mss(r, &nobody, 1, NJ_TCP_SYN, NULL, 0, 1460);
        if (stray_flags)
            rig_seg(r, &nobody, stray_seq, stray_flags, NULL, 0);
        rig_step(r);
    }
    cr_expect_eq(r->n_out - had, NJ_NEIGH_UNSOLICITED_MAX, "%lu questions", r->n_out - had);
    cr_expect_geq(rig_count(r, NJ_C_drop_tx_unsolicited), N - NJ_NEIGH_UNSOLICITED_MAX);
    rig_get(r, known, 1, "/index.html");
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_responses), 1);
    rig_arp(r, true, RIG_PEER_IP + 240, &rig_peer_mac, RIG_IP);
    rig_settle(r);
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP + 240, 2000);
    rig_settle(r);
    cr_expect(p->got_synack);
    rig_free(r);
}

Test(shard_packet_rx, syns_from_made_up_neighbours)
{
    made_up_neighbours(0, 0);
    made_up_neighbours(0x40000000, NJ_TCP_ACK);
    made_up_neighbours(3, NJ_TCP_RST);
}

/* Two shards: packets of the other shard are forwarded, and those refused by its ring counted. */
Test(shard_packet_rx, steering)
{
    struct rig *r = rig_alloc(2048, 2048);
    struct nj_shard_config c = rig_config(r);
    c.n_shards = 2;
    c.index = 1;
    c.steering = NJ_STEER_ALWAYS;
    rig_new_with(r, &c);
    rig_arp(r, true, RIG_PEER_IP, &rig_peer_mac, RIG_IP);
    rig_settle(r);
    for (uint16_t i = 0; i < 100; i++)
        rig_syn_from(r, RIG_PEER_IP, 1000 + i);
    for (int i = 0; i < 10; i++)
        rig_step(r);
    cr_expect_gt(r->n_forwarded, 20);
    cr_expect_lt(r->n_forwarded, 80);
    cr_expect_eq(rig_count(r, NJ_C_rx_steered_out), r->n_forwarded);
    cr_expect_eq(rig_count(r, NJ_C_rx_tcp),
                 100u - r->n_forwarded + rig_count(r, NJ_C_tcp_accepted));
    r->forward_full = true;
    uint32_t before = r->n_forwarded;
    for (uint32_t i = 0; i < RIG_PEERS; i++)
        if (r->peer[i].used)
            rig_seg(r, &r->peer[i], 1, NJ_TCP_RST, NULL, 0);
    for (int i = 0; i < 10; i++)
        rig_step(r);
    cr_expect_eq(r->n_forwarded, before);
    cr_expect_eq(rig_count(r, NJ_C_drop_steer_full), before);

    /* forwarded packets are not looked up again */
    uint64_t had = rig_count(r, NJ_C_rx_tcp) + rig_count(r, NJ_C_drop_tcp_closed);
    for (uint32_t i = 0; i < RIG_PEERS; i++)
        if (r->peer[i].used && !r->peer[i].got_synack) {
            rig_seg(r, &r->peer[i], 1, NJ_TCP_ACK, NULL, 0);
            r->steered[r->n_steered++] = r->in[--r->n_in];
        }
    uint32_t n = r->n_steered;
    for (int i = 0; i < 10; i++)
        rig_step(r);
    cr_expect_eq(rig_count(r, NJ_C_rx_steered_in), n);
    cr_expect_eq(rig_count(r, NJ_C_rx_tcp) + rig_count(r, NJ_C_drop_tcp_closed), had + n);
    rig_free(r);
}

Test(shard_packet_rx, arp_is_shown_to_other_shards)
{
    struct rig *r = rig_alloc(256, 256);
    struct nj_shard_config c = rig_config(r);
    c.n_shards = 2;
    c.steering = NJ_STEER_ON_MISS;
    rig_new_with(r, &c);
    rig_settle(r);
    uint64_t before = r->n_out;
    rig_arp(r, false, RIG_PEER_IP, &rig_peer_mac, RIG_IP); /* the other shard asked */
    rig_settle(r);
    cr_expect_eq(r->n_shared, 1);
    r->steered[r->n_steered++] = rig_arp_frame(r, true, RIG_PEER_IP, &rig_peer_mac, RIG_IP);
    rig_settle(r);
    cr_expect_eq(r->n_shared, 1, "a copy is not shown again");
    cr_expect_eq(r->n_out, before, "nor answered");
    cr_expect_eq(rig_count(r, NJ_C_arp_learned), 1);
    rig_free(r);
}

/* Valid and corrupted frames of all kinds: no packet is uncounted or leaked. */
static void mutate(struct nj_prng *prng, struct rte_mbuf *m)
{
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    uint32_t n_hits = nj_prng_below(prng, 4);

    for (uint32_t i = 0; i < n_hits && m->data_len > 0; i++) {
        uint32_t span = m->data_len < 64 ? m->data_len : 64;
        p[nj_prng_below(prng, span)] = (uint8_t)nj_prng_next(prng);
    }
    if (nj_prng_below(prng, 8) == 0)
        rte_pktmbuf_trim(m, (uint16_t)nj_prng_below(prng, m->data_len + 1u));
    if (nj_prng_below(prng, 2))
        m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

static void one_frame(struct rig *r, struct nj_prng *prng)
{
    uint8_t bytes[256];
    struct rig_peer *p = &r->peer[nj_prng_below(prng, RIG_PEERS / 2)];

    switch (nj_prng_below(prng, 6)) {
    case 0:
        for (uint32_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)nj_prng_next(prng);
        rig_frame(r, bytes, nj_prng_below(prng, sizeof bytes));
        break;
    case 1:
        ping(r, &rig_mac, nj_prng_below(prng, 2) ? RIG_PEER_IP : FAR_IP, RIG_IP);
        break;
    case 2:
        rig_arp(r, nj_prng_below(prng, 2), 0xc6120000 + nj_prng_below(prng, 4096), &rig_peer_mac,
                RIG_IP + nj_prng_below(prng, 2));
        break;
    case 3:
        p->used = false;
        rig_syn_from(r, RIG_PEER_IP, (uint16_t)(1000 + nj_prng_below(prng, 2000)));
        break;
    case 4:
        if (p->used && p->got_synack && !p->got_rst)
            rig_send(r, p, bytes, p->n_got == 0 ? rig_h2_hello(bytes) : 9);
        break;
    default:
        if (p->used && p->got_synack)
            rig_seg(r, p, p->snd_nxt + nj_prng_below(prng, 3) - 1, (uint8_t)nj_prng_next(prng),
                    bytes, nj_prng_below(prng, 100));
        break;
    }
}

Test(shard_packet_rx, books_balance, .timeout = 60)
{
    uint64_t seed = 20240607;
    const char *given = getenv("NJ_TEST_SEED");
    if (given)
        seed = strtoull(given, NULL, 0);
    printf("seed %lu (NJ_TEST_SEED)\n", seed);
    struct nj_prng prng;
    nj_prng_init(&prng, seed);
    struct rig *r = rig_new();

    memset(r->out, 0, sizeof r->out);
    for (uint32_t n = 0; n < 20000;) {
        uint32_t burst = 1 + nj_prng_below(&prng, 40);
        for (uint32_t i = 0; i < burst; i++, n++) {
            uint32_t had = r->n_in;
            one_frame(r, &prng);
            if (r->n_in > had && nj_prng_below(&prng, 3) == 0)
                mutate(&prng, r->in[r->n_in - 1]);
        }
        r->no_arp = nj_prng_below(&prng, 10) == 0;
        r->tx_room = nj_prng_below(&prng, 5) ? UINT32_MAX : nj_prng_below(&prng, 10);
        rig_step(r);
        r->now += nj_prng_below(&prng, 20) ? NJ_MS : NJ_SEC;
    }
    r->tx_room = UINT32_MAX;
    while (r->n_in > 0)
        rig_step(r);
    cr_expect_gt(rig_count(r, NJ_C_rx_packets), 10000);
    cr_expect_gt(rig_count(r, NJ_C_tcp_accepted), 100);
    cr_expect_gt(rig_count(r, NJ_C_conn_h2), 20);
    rig_free(r);
}

Test(shard_packet_rx, begin_and_end)
{
    rig_free(rig_new());
}

/* nj_shard_next_at() includes every timer. */
Test(shard_packet_rx, next_knows_every_part)
{
    struct rig *r = rig_new();
    nj_ns soon = 0;

    rig_settle(r);
    soon = r->now + NJ_MS;
    cr_assert_gt(nj_shard_next_at(r->s), soon);
    nj_ns *const tick[] = {&r->s->neigh.tick_at, &r->s->ndp.tick_at, &r->s->frags.due_at};
    for (size_t i = 0; i < NJ_ARRAY_LEN(tick); i++) {
        nj_ns was = *tick[i];
        *tick[i] = soon;
        cr_expect_eq(nj_shard_next_at(r->s), soon, "part %zu", i);
        *tick[i] = was;
    }
    rig_free(r);
}
