/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP: which requests are answered, which neighbours are learned, how often requests are sent, and
 * which packets wait meanwhile. */
#include <criterion/criterion.h>

#include "support/neigh_bench.h"
#include "telem/counters.h"

#define OWN 0x0a000001u /* 10.0.0.1/16 */

static const struct rte_ether_addr mac_all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

static struct nj_addr addr(uint32_t ip)
{
    return nj_addr_from_v4(rte_cpu_to_be_32(ip));
}

static struct bench *bench_new(void)
{
    struct bench *b = bench_alloc();
    b->iface.addr[0] = (struct nj_iface_addr){addr(OWN), 16, 0};
    return b;
}

static bool arp(struct bench *b, bool request, uint32_t from, const struct rte_ether_addr *mac,
                uint32_t target, bool answer, nj_ns now)
{
    struct nj_packet p = {.kind = NJ_PACKET_ARP, .arp = {request, *mac, addr(from), addr(target)}};
    return nj_neigh_arp_input(&b->n, &p, answer, now);
}

static void send_to(struct bench *b, uint32_t ip, uint8_t mark, nj_ns now)
{
    struct nj_addr to = addr(ip);
    nj_neigh_output(&b->n, nj_test_mbuf(b->mp, &mark, 1), &to, NJ_NEIGH_OWN, now);
}

/* A reply to a packet whose source address is `ip`. */
static void reply_to(struct bench *b, uint32_t ip, uint8_t mark, nj_ns now)
{
    struct nj_addr to = addr(ip);
    nj_neigh_output(&b->n, nj_test_mbuf(b->mp, &mark, 1), &to, NJ_NEIGH_REPLY, now);
}

static void run(struct bench *b, nj_ns from, nj_ns to)
{
    for (nj_ns now = from; now <= to; now += 10 * NJ_MS)
        nj_neigh_tick(&b->n, now);
}

static uint32_t n_questions(const struct bench *b)
{
    uint32_t n = 0;
    cr_assert_leq(b->n_sent, SENT_MAX);
    for (uint32_t i = 0; i < b->n_sent; i++)
        n += b->sent[i].arp && b->sent[i].request;
    return n;
}

/* Sentence 117. */
Test(net_neighbours, request_is_answered_and_learned)
{
    struct bench *b = bench_new();
    cr_expect(arp(b, true, OWN + 9, &mac_a, OWN, true, NJ_SEC));
    cr_assert_eq(b->n_sent, 1);
    cr_expect(sent(b, 0)->arp && !sent(b, 0)->request);
    cr_expect(rte_is_same_ether_addr(&sent(b, 0)->dst, &mac_a));
    cr_expect_eq(sent(b, 0)->target4, OWN + 9);
    send_to(b, OWN + 9, 7, NJ_SEC);
    cr_assert_eq(b->n_sent, 2);
    cr_expect(!sent(b, 1)->arp && sent(b, 1)->mark == 7);
    cr_expect(rte_is_same_ether_addr(&sent(b, 1)->dst, &mac_a));
    bench_free(b);
}

Test(net_neighbours, others_are_not_learned)
{
    struct bench *b = bench_new();
    cr_expect(!arp(b, true, OWN + 9, &mac_a, OWN + 8, true, NJ_SEC), "asks for another host");
    arp(b, false, OWN + 10, &mac_a, OWN, true, NJ_SEC);
    arp(b, false, OWN + 11, &mac_a, OWN + 11, true, NJ_SEC);
    arp(b, true, 0x0b000001, &mac_a, OWN, false, NJ_SEC); /* off the link */
    arp(b, true, 0, &mac_a, OWN, false, NJ_SEC);          /* a probe */
    cr_expect_eq(count(b, NJ_C_arp_learned), 0);
    for (uint32_t i = 0; i < NJ_NEIGH_MAX; i++)
        cr_expect(b->n.entry[i].state == NJ_NEIGH_FREE);
    cr_expect_eq(b->n_sent, 0);
    bench_free(b);
}

/* An answer without a waiting packet here may be one that another shard waits for. */
Test(net_neighbours, what_the_other_shards_see)
{
    struct bench *b = bench_new();
    cr_expect(arp(b, false, OWN + 9, &mac_a, OWN, true, NJ_SEC), "an answer to us");
    cr_expect(arp(b, true, OWN + 9, &mac_a, OWN, true, NJ_SEC), "a question to us");
    cr_expect(arp(b, true, OWN + 9, &mac_a, OWN + 1, true, NJ_SEC), "of a known neighbour");
    cr_expect(!arp(b, true, OWN + 5, &mac_a, OWN + 1, true, NJ_SEC), "not our business");
    cr_expect(!arp(b, false, 0x0b000001, &mac_a, OWN, true, NJ_SEC), "off the link");
    bench_free(b);
}

/* A copy that another shard showed is learned, and answered by that one. */
Test(net_neighbours, copy_is_learned_not_answered)
{
    struct bench *b = bench_new();
    arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
    cr_expect_eq(b->n_sent, 0);
    cr_expect_eq(count(b, NJ_C_arp_learned), 1);
    bench_free(b);
}

/* --- claims that a neighbour has moved ------------------------------------------------- */

/* Its MAC address, where packets to it go. */
static struct rte_ether_addr mac_of(struct bench *b, uint32_t ip, nj_ns now)
{
    b->n_sent = 0;
    send_to(b, ip, 99, now);
    cr_assert_eq(b->n_sent, 1);
    cr_assert(!sent(b, 0)->arp, "its MAC address is not known");
    struct rte_ether_addr mac = sent(b, 0)->dst;
    b->n_sent = 0;
    return mac;
}

static bool goes_to(struct bench *b, const struct rte_ether_addr *mac, nj_ns now)
{
    struct rte_ether_addr is = mac_of(b, OWN + 9, now);
    return rte_is_same_ether_addr(&is, mac);
}

/* A neighbour at mac_a that answers each request until `dies_at`, and its successor at mac_b that
 * answers from `succeeds_at` on. Time advances by 10 ms. */
static void live(struct bench *b, nj_ns from, nj_ns to, nj_ns dies_at, nj_ns succeeds_at)
{
    for (nj_ns now = from; now < to; now += 10 * NJ_MS) {
        nj_neigh_tick(&b->n, now);
        uint32_t n = b->n_sent;
        b->n_sent = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (!b->sent[i].arp || !b->sent[i].request || b->sent[i].target4 != OWN + 9)
                continue;
            bool all = rte_is_same_ether_addr(&b->sent[i].dst, &mac_all);
            if (now < dies_at && (all || rte_is_same_ether_addr(&b->sent[i].dst, &mac_a)))
                arp(b, false, OWN + 9, &mac_a, OWN, true, now);
            if (now >= succeeds_at && (all || rte_is_same_ether_addr(&b->sent[i].dst, &mac_b)))
                arp(b, false, OWN + 9, &mac_b, OWN, true, now);
        }
    }
}

/* A forged reply, request or announcement: the neighbour is probed at its known MAC address, and
 * answers. No packet is sent to another MAC address. */
Test(net_neighbours, forged_claims_change_nothing)
{
    for (unsigned how = 0; how < 3; how++) {
        struct bench *b = bench_new();
        nj_ns now = 10 * NJ_SEC;
        arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
        for (unsigned i = 0; i < 400; i++, now += 10 * NJ_MS) {
            bool question = how == 1;
            arp(b, question, OWN + 9, &mac_b, how == 2 ? OWN + 9 : OWN, false, now);
            live(b, now, now + 10 * NJ_MS, NJ_NEVER, NJ_NEVER);
            cr_assert(goes_to(b, &mac_a, now), "how %u, after %u claims", how, i + 1);
        }
        cr_expect_geq(count(b, NJ_C_neigh_claimed), 1);
        cr_expect_eq(count(b, NJ_C_neigh_moved), 0);
        bench_free(b);
    }
}

/* For any number of claims the neighbour is probed once a second. */
Test(net_neighbours, claims_make_us_ask_within_bounds)
{
    struct bench *b = bench_new();
    uint32_t n_asked = 0, n_shown = 0;

    arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
    for (nj_ns now = 10 * NJ_SEC; now < 20 * NJ_SEC; now += NJ_MS) {
        struct rte_ether_addr forged = mac_b;
        forged.addr_bytes[4] = (uint8_t)(now / NJ_MS);
        n_shown += arp(b, false, OWN + 9, &forged, OWN, false, now);
        nj_neigh_tick(&b->n, now);
        if (b->n_sent > 0) {
            cr_expect(rte_is_same_ether_addr(&sent(b, 0)->dst, &mac_a));
            n_asked += b->n_sent;
            b->n_sent = 0;
            arp(b, false, OWN + 9, &mac_a, OWN, false, now);
        }
    }
    cr_expect_geq(n_asked, 5, "%u questions", n_asked);
    cr_expect_leq(n_asked, 11, "%u questions", n_asked);
    cr_expect_leq(n_shown, 22, "%u were replicated to the other shards", n_shown);
    bench_free(b);
}

/* A gateway fails, and another one takes its address and announces it (RFC 5227 3): packets go
 * there within two seconds, for any time of the old gateway's last packet. */
Test(net_neighbours, failover_with_an_announcement)
{
    for (nj_ns heard = 0; heard <= 3 * NJ_SEC; heard += 250 * NJ_MS) {
        struct bench *b = bench_new();
        nj_ns failed = 20 * NJ_SEC;
        send_to(b, OWN + 9, 1, failed - heard);
        arp(b, false, OWN + 9, &mac_a, OWN, true, failed - heard);
        arp(b, true, OWN + 9, &mac_b, OWN + 9, true, failed);
        cr_expect(goes_to(b, &mac_a, failed), "not yet believed");
        live(b, failed, failed + 2200 * NJ_MS, failed, failed);
        cr_expect(goes_to(b, &mac_b, failed + 2200 * NJ_MS), "heard %lu ns before", heard);
        cr_expect_eq(count(b, NJ_C_neigh_moved), 1);
        live(b, failed + 2200 * NJ_MS, failed + 20 * NJ_SEC, failed, failed);
        cr_expect(goes_to(b, &mac_b, failed + 20 * NJ_SEC), "and stay there");
        cr_expect_eq(count(b, NJ_C_neigh_moved), 1);
        bench_free(b);
    }
}

/* A claim is believed because the old MAC address is silent, but the new MAC address has no host:
 * that is detected, and a request is broadcast. */
Test(net_neighbours, a_claim_of_nobody)
{
    struct bench *b = bench_new();
    nj_ns now = 20 * NJ_SEC;
    struct rte_ether_addr nobody = {{2, 0, 0, 0, 0, 0xcc}};

    send_to(b, OWN + 9, 1, now);
    arp(b, false, OWN + 9, &mac_a, OWN, true, now);
    arp(b, false, OWN + 9, &nobody, OWN, true, now + 5 * NJ_SEC);
    for (nj_ns t = now + 5 * NJ_SEC; t < now + 11 * NJ_SEC; t += 100 * NJ_MS) {
        live(b, t, t + 100 * NJ_MS, now + 5 * NJ_SEC, now + 5 * NJ_SEC);
        send_to(b, OWN + 9, 2, t);
    }
    cr_expect(goes_to(b, &mac_b, now + 11 * NJ_SEC));
    bench_free(b);
}

/* The neighbour is known, and not in use: it is probed all the same. */
Test(net_neighbours, a_claim_for_an_idle_neighbour)
{
    struct bench *b = bench_new();
    arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
    arp(b, false, OWN + 9, &mac_b, OWN + 9, false, 100 * NJ_SEC);
    cr_assert_eq(b->n_sent, 1);
    cr_expect(sent(b, 0)->arp && sent(b, 0)->request);
    cr_expect(rte_is_same_ether_addr(&sent(b, 0)->dst, &mac_a));
    live(b, 100 * NJ_SEC, 102 * NJ_SEC, 0, 0);
    cr_expect(goes_to(b, &mac_b, 102 * NJ_SEC));
    bench_free(b);
}

/* --- our own address ------------------------------------------------------------------------- */

struct conflicts {
    struct bench *b;
    uint32_t n;
};

static struct conflicts seen;

static void on_conflict(void *ctx, const struct nj_addr *ip, const struct rte_ether_addr *mac)
{
    const struct nj_addr own = addr(OWN);

    cr_assert_eq(ctx, seen.b);
    cr_expect(nj_addr_eq(ip, &own) && rte_is_same_ether_addr(mac, &mac_b));
    seen.n++;
}

/* RFC 5227 2.4 (c): another host announces our address, or sends requests and replies with it. We
 * announce it and report that, once per 10 s. Nothing is learned. */
Test(net_neighbours, our_address_is_defended)
{
    struct bench *b = bench_new();
    uint32_t n_sent = 0;

    seen = (struct conflicts){.b = b};
    b->n.conflict = on_conflict;
    for (nj_ns now = NJ_SEC; now < 31 * NJ_SEC; now += NJ_SEC) {
        cr_expect_not(arp(b, now / NJ_SEC % 2, OWN, &mac_b, OWN + now / NJ_SEC % 3, true, now));
        for (; n_sent < b->n_sent; n_sent++) {
            cr_expect(sent(b, n_sent)->arp && sent(b, n_sent)->request);
            cr_expect_eq(sent(b, n_sent)->target4, OWN);
            cr_expect(rte_is_same_ether_addr(&sent(b, n_sent)->dst, &mac_all));
        }
    }
    cr_expect_eq(n_sent, 3);
    cr_expect_eq(seen.n, 3);
    cr_expect_eq(count(b, NJ_C_arp_claimed), 30);
    cr_expect_eq(count(b, NJ_C_arp_learned), 0);
    arp(b, true, OWN, &mac_b, OWN, false, 60 * NJ_SEC); /* one that another shard answers */
    cr_expect_eq(b->n_sent, n_sent);
    bench_free(b);
}

static void send_as(struct bench *b, uint32_t ip, enum nj_neigh_reason why, nj_ns now)
{
    struct nj_addr to = addr(ip);
    nj_neigh_output(&b->n, nj_test_mbuf(b->mp, "t", 1), &to, why, now);
}

/* TCP gets acknowledgments through a neighbour: no probe is needed (RFC 4861 7.3.1). */
Test(net_neighbours, progress_confirms)
{
    for (unsigned proven = 0; proven < 2; proven++) {
        struct bench *b = bench_new();
        arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
        for (nj_ns now = NJ_SEC; now < 400 * NJ_SEC; now += NJ_SEC) {
            run(b, now, now + NJ_SEC);
            send_as(b, OWN + 9, proven ? NJ_NEIGH_CONFIRMED : NJ_NEIGH_OWN, now);
            uint32_t n_asked = n_questions(b);
            cr_assert(!proven || n_asked == 0, "asked after %lu s", now / NJ_SEC);
            if (n_asked > 0)
                break;
            b->n_sent = 0;
            cr_assert(proven || now < 303 * NJ_SEC, "never asked");
        }
        bench_free(b);
    }
}

/* TCP has time-outs: the neighbour is probed, and packets are sent to it until the probe fails.
 * Then a request is broadcast, and the host that has the address now gets the packets. */
Test(net_neighbours, failover_without_an_announcement)
{
    struct bench *b = bench_new();
    nj_ns now = 20 * NJ_SEC;

    send_to(b, OWN + 9, 1, NJ_SEC);
    arp(b, false, OWN + 9, &mac_a, OWN, true, NJ_SEC);
    b->n_sent = 0;
    send_as(b, OWN + 9, NJ_NEIGH_SUSPECT, now);
    cr_assert_eq(b->n_sent, 2);
    cr_expect(sent(b, 0)->arp && sent(b, 0)->request);
    cr_expect(rte_is_same_ether_addr(&sent(b, 0)->dst, &mac_a));
    cr_expect(!sent(b, 1)->arp && rte_is_same_ether_addr(&sent(b, 1)->dst, &mac_a));
    cr_expect_eq(count(b, NJ_C_neigh_probed), 1);
    live(b, now, now + 3 * NJ_SEC, 0, 0);
    cr_expect(goes_to(b, &mac_b, now + 3 * NJ_SEC));
    bench_free(b);
}

/* Many peers behind a working gateway have time-outs: it is probed at a limited rate. */
Test(net_neighbours, doubts_within_bounds)
{
    struct bench *b = bench_new();
    uint32_t n_asked = 0;

    arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
    for (nj_ns now = NJ_SEC; now < 31 * NJ_SEC; now += 10 * NJ_MS) {
        send_as(b, OWN + 9, NJ_NEIGH_SUSPECT, now);
        n_asked += n_questions(b);
        live(b, now, now + 10 * NJ_MS, NJ_NEVER, NJ_NEVER);
    }
    cr_expect_eq(n_asked, count(b, NJ_C_neigh_probed));
    cr_expect_geq(n_asked, 5, "%u questions", n_asked);
    cr_expect_leq(n_asked, 6, "%u questions", n_asked);
    bench_free(b);
}

/* A peer may fake progress by ACKs of data that never arrived: that does not answer a probe. */
Test(net_neighbours, pretended_progress)
{
    struct bench *b = bench_new();
    nj_ns now = 20 * NJ_SEC;

    arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
    arp(b, true, OWN + 9, &mac_b, OWN + 9, false, now);
    for (; now < 22 * NJ_SEC; now += 10 * NJ_MS) {
        live(b, now, now + 10 * NJ_MS, 0, 0);
        send_as(b, OWN + 9, NJ_NEIGH_CONFIRMED, now);
        b->n_sent = 0;
    }
    cr_expect(goes_to(b, &mac_b, now));
    bench_free(b);
}

/* --- neighbours that are configured ---------------------------------------------------------- */

static struct bench *bench_fixed(void)
{
    struct bench *b = bench_new();
    b->iface.n_fixed = NJ_NEIGH_FIXED_MAX;
    for (uint32_t i = 0; i < NJ_NEIGH_FIXED_MAX; i++)
        b->iface.fixed[i] = (struct nj_iface_neighbour){addr(OWN + 9 + i), mac_a};
    nj_neigh_init(&b->n, &b->iface, b->mp, &b->counters, bench_on_send, b);
    return b;
}

/* No packet changes fixed neighbours. They are not probed, and do not expire. */
Test(net_neighbours, fixed_neighbours)
{
    struct bench *b = bench_fixed();
    cr_expect(goes_to(b, &mac_a, NJ_SEC), "known from the start");
    cr_expect(!arp(b, false, OWN + 9, &mac_b, OWN, true, 2 * NJ_SEC));
    cr_expect(!arp(b, true, OWN + 9, &mac_b, OWN + 9, true, 2 * NJ_SEC));
    cr_expect(!arp(b, true, OWN + 9, &mac_b, OWN, false, 2 * NJ_SEC));
    cr_expect_eq(count(b, NJ_C_neigh_claimed), 3);
    arp(b, false, OWN + 9, &mac_a, OWN, true, 3 * NJ_SEC);
    for (nj_ns now = 10 * NJ_SEC; now < 1000 * NJ_SEC; now += NJ_SEC) {
        nj_neigh_tick(&b->n, now);
        send_as(b, OWN + 9, NJ_NEIGH_SUSPECT, now);
        cr_assert(goes_to(b, &mac_a, now));
    }
    cr_expect_eq(n_questions(b), 0);
    bench_free(b);
}

/* For any number of other neighbours the fixed ones keep their entries. */
Test(net_neighbours, fixed_neighbours_in_a_full_table)
{
    struct bench *b = bench_fixed();
    for (uint32_t i = 0; i < 20 * NJ_NEIGH_MAX; i++) {
        nj_ns now = (1 + i) * NJ_MS;
        arp(b, true, OWN + 100 + i, &mac_b, OWN, false, now);
        send_to(b, OWN + 100 + i, 1, now);
        reply_to(b, OWN + 30000 + i, 1, now + 20 * NJ_SEC);
    }
    for (uint32_t i = 0; i < NJ_NEIGH_FIXED_MAX; i++) {
        struct rte_ether_addr mac = mac_of(b, OWN + 9 + i, 50 * NJ_SEC);
        cr_expect(rte_is_same_ether_addr(&mac, &mac_a), "%u", i);
    }
    bench_free(b);
}

/* Sentence 117. */
Test(net_neighbours, packets_wait_in_order_and_bounded)
{
    struct bench *b = bench_new();
    for (uint8_t i = 0; i < 6; i++)
        send_to(b, OWN + 9, i, NJ_SEC);
    cr_assert_eq(b->n_sent, 1, "one question");
    cr_expect(sent(b, 0)->arp && sent(b, 0)->request && sent(b, 0)->target4 == OWN + 9);
    cr_expect(rte_is_same_ether_addr(&sent(b, 0)->dst, &mac_all));
    cr_expect_eq(count(b, NJ_C_drop_tx_arp_queue), 2);
    arp(b, false, OWN + 9, &mac_a, OWN, true, NJ_SEC);
    cr_assert_eq(b->n_sent, 5);
    for (uint8_t i = 0; i < 4; i++) {
        cr_expect_eq(sent(b, 1 + i)->mark, i);
        cr_expect(rte_is_same_ether_addr(&sent(b, 1 + i)->dst, &mac_a));
    }
    bench_free(b);
}

/* Sentence 117. */
Test(net_neighbours, asks_thrice_then_gives_up)
{
    struct bench *b = bench_new();
    run(b, NJ_SEC, NJ_SEC);
    send_to(b, OWN + 9, 1, NJ_SEC);
    send_to(b, OWN + 9, 2, NJ_SEC);
    run(b, NJ_SEC, NJ_SEC + 990 * NJ_MS);
    cr_expect_eq(b->n_sent, 1, "not before a second has passed");
    run(b, 2 * NJ_SEC, 2 * NJ_SEC + 150 * NJ_MS);
    cr_expect_eq(b->n_sent, 2);
    run(b, 2 * NJ_SEC, 3 * NJ_SEC + 300 * NJ_MS);
    cr_expect_eq(b->n_sent, 3);
    cr_expect_eq(count(b, NJ_C_drop_tx_arp_timeout), 0);
    run(b, 3 * NJ_SEC, 5 * NJ_SEC);
    cr_expect_eq(b->n_sent, 3);
    cr_expect_eq(count(b, NJ_C_drop_tx_arp_timeout), 2);
    cr_expect(nj_test_pool_full(b->mp));
    send_to(b, OWN + 9, 3, 6 * NJ_SEC); /* from the beginning */
    cr_expect_eq(b->n_sent, 4);
    bench_free(b);
}

/* Sentence 117. */
Test(net_neighbours, asked_again_while_in_use)
{
    struct bench *b = bench_new();
    arp(b, true, OWN + 9, &mac_a, OWN, false, NJ_SEC);
    run(b, NJ_SEC, 290 * NJ_SEC);
    send_to(b, OWN + 9, 1, 290 * NJ_SEC);
    run(b, 290 * NJ_SEC, 301 * NJ_SEC + 150 * NJ_MS);
    cr_assert_eq(b->n_sent, 2);
    cr_expect(sent(b, 1)->arp && sent(b, 1)->request);
    cr_expect(rte_is_same_ether_addr(&sent(b, 1)->dst, &mac_a), "asked directly");
    send_to(b, OWN + 9, 2, 301 * NJ_SEC);
    cr_expect_eq(sent(b, 2)->mark, 2, "the old answer is good meanwhile");
    arp(b, false, OWN + 9, &mac_a, OWN, false, 302 * NJ_SEC);
    run(b, 302 * NJ_SEC, 500 * NJ_SEC);
    cr_expect_eq(b->n_sent, 3);
    run(b, 500 * NJ_SEC, 603 * NJ_SEC); /* not used any more: forgotten */
    cr_expect_eq(b->n_sent, 3);
    send_to(b, OWN + 9, 3, 603 * NJ_SEC);
    cr_expect(sent(b, 3)->arp && sent(b, 3)->request);
    bench_free(b);
}

/* All hosts of a /24 fit into the table. */
Test(net_neighbours, all_of_a_link_are_known)
{
    struct bench *b = bench_new();
    for (uint32_t i = 1; i <= 100; i++)
        arp(b, true, OWN + i, &mac_a, OWN, false, NJ_SEC);
    cr_expect_eq(count(b, NJ_C_arp_evicted), 0);
    bench_free(b);
}

/* A flood of unknown hosts, which send requests or are requested: neighbours in use stay. */
static void flood(bool they_ask)
{
    struct bench *b = bench_new();
    nj_ns now = NJ_SEC;
    arp(b, true, OWN + 9, &mac_a, OWN, false, now);
    send_to(b, OWN + 9, 1, now);
    for (uint32_t i = 0; i < 20000; i++) {
        now += 100 * NJ_US;
        if (they_ask)
            arp(b, true, OWN + 100 + i, &mac_b, OWN, false, now);
        else
            send_to(b, OWN + 100 + i, 2, now);
    }
    b->n_sent = 0;
    send_to(b, OWN + 9, 3, now);
    cr_assert_eq(b->n_sent, 1);
    cr_expect(!sent(b, 0)->arp && sent(b, 0)->mark == 3);
    cr_expect_gt(count(b, NJ_C_arp_evicted), 1000);
    bench_free(b);
}

Test(net_neighbours, strangers_that_ask)
{
    flood(true);
}

Test(net_neighbours, strangers_asked_for)
{
    flood(false);
}

/* Packets from made-up addresses of the link, 10,000 per second, each of which needs a reply. The
 * rate of requests and the number of waiting packets are limited, and known neighbours stay in the
 * table. */
Test(net_neighbours, made_up_neighbours)
{
    struct bench *b = bench_new();
    nj_ns now = 100 * NJ_SEC;
    uint32_t all = 0, n_asked = 0, used_max = 0;

    for (uint32_t i = 0; i < 9 * 10000; i++) {
        now += 100 * NJ_US;
        if (i < 32) /* these sent requests to us, and got no packet yet */
            arp(b, true, OWN + 1000 + i, &mac_a, OWN, false, now);
        nj_neigh_tick(&b->n, now);
        reply_to(b, OWN + 2000 + i % 60000, 1, now);
        all++;
        n_asked += n_questions(b);
        b->n_sent = 0;
        uint32_t used = b->mp->size - rte_mempool_avail_count(b->mp);
        used_max = used > used_max ? used : used_max;
    }
    cr_expect_leq(n_asked, (9 + 1) * NJ_NEIGH_UNSOLICITED_PER_S, "%u questions", n_asked);
    cr_expect_geq(n_asked, 9 * NJ_NEIGH_UNSOLICITED_PER_S, "%u questions", n_asked);
    cr_expect_leq(used_max, NJ_NEIGH_UNSOLICITED_MAX * NJ_NEIGH_PENDING_MAX);
    cr_expect_geq(count(b, NJ_C_drop_tx_unsolicited), all - n_asked);
    for (uint32_t i = 0; i < 32; i++)
        reply_to(b, OWN + 1000 + i, 2, now);
    cr_expect_eq(b->n_sent, 32);
    cr_expect_eq(n_questions(b), 0);
    b->n_sent = 0;
    send_to(b, OWN + 200, 3, now); /* a connection of our own: requested at once */
    cr_expect_eq(n_questions(b), 1);
    arp(b, true, OWN + 201, &mac_a, OWN, true, now); /* a new neighbour introduces itself */
    reply_to(b, OWN + 201, 4, now);
    cr_expect_eq(b->n_sent, 3);
    cr_expect(sent(b, 2)->mark == 4 && !sent(b, 2)->arp);
    bench_free(b);
}

/* Neighbours that answer do not use up the limit: it bounds the rate of requests, not the entries.
 */
Test(net_neighbours, neighbours_that_answer)
{
    struct bench *b = bench_new();
    nj_ns now = 100 * NJ_SEC;

    for (uint32_t i = 0; i < 2 * NJ_NEIGH_UNSOLICITED_PER_S; i++) {
        now += NJ_US;
        reply_to(b, OWN + 100 + i, 1, now);
        arp(b, false, OWN + 100 + i, &mac_a, OWN, false, now);
    }
    cr_expect_gt(n_questions(b), NJ_NEIGH_UNSOLICITED_MAX);
    cr_expect_leq(n_questions(b), NJ_NEIGH_UNSOLICITED_PER_S);
    cr_expect_eq(b->n.unsolicited[0].n, 0);
    b->n_sent = 0;
    for (uint32_t i = 0; i < 50; i++)
        reply_to(b, OWN + 1000 + i, 1, now + NJ_SEC);
    cr_expect_gt(n_questions(b), 0, "a second later");
    bench_free(b);
}

/* In a table full of neighbours an idle one is evicted, and none that was in use recently. */
Test(net_neighbours, strangers_and_a_full_table)
{
    struct bench *b = bench_new();
    nj_ns now = 100 * NJ_SEC;

    for (uint32_t i = 0; i < 2 * NJ_NEIGH_MAX; i++) {
        send_to(b, OWN + 100 + i, 1, now);
        arp(b, false, OWN + 100 + i, &mac_a, OWN, false, now);
    }
    b->n_sent = 0;
    for (uint32_t i = 0; i < 50; i++)
        reply_to(b, OWN + 2000 + i, 1, now + 9 * NJ_SEC);
    cr_expect_eq(b->n_sent, 0);
    for (uint32_t i = 0; i < 50; i++)
        reply_to(b, OWN + 2000 + i, 1, now + 11 * NJ_SEC);
    cr_expect_gt(n_questions(b), 20);
    bench_free(b);
}

/* An unsolicited entry that a connection then uses is no longer unsolicited. */
Test(net_neighbours, strangers_that_are_wanted)
{
    struct bench *b = bench_new();
    nj_ns now = 100 * NJ_SEC;

    reply_to(b, OWN + 9, 1, now);
    cr_expect_eq(b->n.unsolicited[0].n, 1);
    send_to(b, OWN + 9, 2, now);
    cr_expect_eq(b->n.unsolicited[0].n, 0);
    arp(b, false, OWN + 9, &mac_a, OWN, false, now);
    cr_assert_eq(b->n_sent, 3);
    cr_expect(sent(b, 1)->mark == 1 && sent(b, 2)->mark == 2);
    reply_to(b, OWN + 10, 1, now);
    run(b, now, now + 4 * NJ_SEC);
    cr_expect_eq(b->n.unsolicited[0].n, 0, "given up");
    bench_free(b);
}

Test(net_neighbours, no_mbuf_for_a_question)
{
    struct bench *b = bench_new();
    struct rte_mbuf *all[512];
    uint32_t n = 0;
    struct nj_addr to = addr(OWN + 9);
    struct rte_mbuf *m = nj_test_mbuf(b->mp, "x", 1);

    while ((all[n] = rte_pktmbuf_alloc(b->mp)))
        n++;
    nj_neigh_output(&b->n, m, &to, NJ_NEIGH_OWN, NJ_SEC);
    cr_expect_eq(count(b, NJ_C_mbuf_none), 1);
    rte_pktmbuf_free_bulk(all, n);
    run(b, NJ_SEC, 2 * NJ_SEC + 150 * NJ_MS);
    cr_expect_eq(b->n_sent, 1, "it is requested a second later");
    bench_free(b);
}
