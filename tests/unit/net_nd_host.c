/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 neighbours and ourselves, with time as an argument: sentences 117 (the table) and 118 (the
 * checks of our addresses), routers, prefixes, groups. */
#include <criterion/criterion.h>

#include "base/compiler.h"
#include "shard_ndp_rig.h"
#include "telem/counters.h"
#include "wire/emit.h"
#include "wire/icmp6.h"

static struct nj_addr link_local(void)
{
    const struct nj_addr fe80 = {{0xfe, 0x80}};
    return nj_nd_host_make_addr(&fe80, &mac_own, 0);
}

/* --- our addresses (RFC 4862 5.4) ------------------------------------------------------------ */

/* Sentence 118. */
Test(net_nd_host, addresses_are_checked_first)
{
    struct bench *b = bench_with(true, false, NULL);
    const struct nj_addr ll = link_local();

    cr_expect_eq(state_of(b, &own), NJ_ADDR_TENTATIVE);
    cr_expect_eq(state_of(b, &ll), NJ_ADDR_TENTATIVE, "there is a link-local one");
    cr_expect(!nj_iface_has_addr(&b->iface, &own));
    run(b, 1100 * NJ_MS); /* the first solicitation is sent within a second */
    cr_expect_eq(n_of(b, 135, &own), 1);
    cr_expect_eq(n_of(b, 135, &ll), 1);
    cr_expect_geq(n_of(b, 143, NULL), 2, "the groups were joined before");
    for (uint32_t i = 0; i < b->n_sent; i++) {
        if (b->sent[i].type != 135)
            continue;
        struct nj_addr group = nj_ip6_solicited_node(&b->sent[i].target);
        const struct rte_ether_addr mac = nj_ip6_multicast_mac(&group);
        cr_expect(nj_addr_eq(&b->sent[i].ip_src, &nobody));
        cr_expect(nj_addr_eq(&b->sent[i].ip_dst, &group) && same_mac(&b->sent[i].dst, &mac));
    }
    run(b, 1200 * NJ_MS);
    cr_expect_eq(state_of(b, &own), NJ_ADDR_READY);
    cr_expect_eq(state_of(b, &ll), NJ_ADDR_READY);
    cr_expect_eq(n_of(b, 136, &own), 1, "told to all");
    cr_expect_eq(n_of(b, 135, &own), 1, "one question");
    bench_free(b);
}

/* During an upgrade: the process that ran before has checked them. */
Test(net_nd_host, addresses_that_were_checked_before)
{
    struct bench *b = bench_with(true, false, NULL);
    struct nj_nd_host_config c = b->d.cfg;
    const struct nj_addr ll = link_local();

    b->iface.n_addrs = 1;
    c.no_dad = true;
    nj_nd_host_init(&b->d, &c, &b->iface, &b->n, b->now);
    nj_nd_host_tick(&b->d, b->now);
    cr_expect_eq(state_of(b, &own), NJ_ADDR_READY);
    cr_expect_eq(state_of(b, &ll), NJ_ADDR_READY);
    run(b, 5 * NJ_SEC);
    cr_expect_eq(n_of(b, 135, NULL), 0, "a probe");
    bench_free(b);
}

Test(net_nd_host, only_one_shard_speaks)
{
    struct bench *b = bench_with(false, false, NULL);
    run(b, 15 * NJ_SEC);
    cr_expect_eq(state_of(b, &own), NJ_ADDR_READY);
    cr_expect_eq(b->n_sent, 0);
    cr_expect(solicit(b, &peer, &own, &mac_a, NULL));
    cr_expect_eq(n_of(b, 136, &own), 1, "but each answers what it received");
    bench_free(b);
}

/* Sentence 118: another node that also solicits the address, or claims it, keeps it. */
Test(net_nd_host, duplicates_are_given_up)
{
    for (unsigned how = 0; how < 5; how++) {
        struct bench *b = bench_with(how != 2, false, NULL);
        static const uint8_t other_nonce[6] = {1, 2, 3, 4, 5, 6};
        run(b, 1100 * NJ_MS);
        bool news = false;
        switch (how) {
        case 0:
        case 2:
            news = advert(b, &own, &mac_a, O);
            break;
        case 1:
            news = solicit(b, &nobody, &own, NULL, NULL);
            break;
        case 3:
            news = solicit(b, &nobody, &own, NULL, other_nonce);
            break;
        default: /* a solicitation from a host with an address is no claim (RFC 4862 5.4.3) */
            solicit(b, &peer, &own, &mac_a, NULL);
            break;
        }
        bool dup = how < 4;
        cr_expect_eq(news, dup, "the other shards must see it: %u", how);
        run(b, 10 * NJ_SEC);
        cr_expect_eq(state_of(b, &own), dup ? NJ_ADDR_DUPLICATE : NJ_ADDR_READY, "how %u", how);
        cr_expect_eq(count(b, NJ_C_nd_duplicate), dup);
        b->n_sent = 0;
        solicit(b, &peer, &own, &mac_a, NULL);
        cr_expect_eq(n_of(b, 136, &own), !dup, "how %u", how);
        bench_free(b);
    }
}

/* A link that sends us our own question back (RFC 7527). */
Test(net_nd_host, our_own_question_is_no_claim)
{
    struct bench *b = bench_with(true, false, NULL);
    run(b, 1100 * NJ_MS);
    for (uint32_t i = 0; i < b->n_sent; i++)
        if (b->sent[i].type == 135)
            solicit(b, &nobody, &b->sent[i].target, NULL, b->sent[i].nonce);
    run(b, 10 * NJ_SEC);
    cr_expect_eq(state_of(b, &own), NJ_ADDR_READY);
    cr_expect_eq(count(b, NJ_C_nd_duplicate), 0);
    bench_free(b);
}

/* RFC 7217 6: instead of an address that the host generated, three others are tried. */
Test(net_nd_host, another_address_is_made)
{
    struct bench *b = bench_with(true, false, NULL);
    struct nj_addr ll = link_local();
    for (uint8_t n = 0; n < 3; n++) {
        run(b, 500 * NJ_MS);
        advert(b, &ll, &mac_a, O);
        struct nj_addr next = nj_nd_host_make_addr(&ll, &mac_own, n + 1);
        cr_expect(!nj_addr_eq(&ll, &next) && nj_ip6_same_prefix(&ll, &next, 64));
        cr_expect_eq(state_of(b, &ll), NJ_ADDR_EXPIRED, "gone");
        cr_expect_eq(state_of(b, &next), NJ_ADDR_TENTATIVE);
        ll = next;
    }
    run(b, 20 * NJ_SEC); /* the last one is free */
    cr_expect_eq(state_of(b, &ll), NJ_ADDR_READY);
    cr_expect_eq(n_of(b, 133, NULL), 3);
    cr_expect_eq(count(b, NJ_C_nd_duplicate), 3);
    bench_free(b);

    b = bench_with(true, false, NULL);
    for (uint8_t n = 0; n <= 3; n++) {
        ll = nj_nd_host_make_addr(&ll, &mac_own, n);
        advert(b, &ll, &mac_a, O);
    }
    run(b, 20 * NJ_SEC);
    cr_expect_eq(state_of(b, &ll), NJ_ADDR_DUPLICATE);
    cr_expect_eq(state_of(b, &own), NJ_ADDR_READY, "a configured address stays");
    cr_expect_eq(n_of(b, 133, NULL), 0);
    bench_free(b);
}

static uint32_t n_conflicts;

static void on_conflict(void *ctx, const struct nj_addr *ip, const struct rte_ether_addr *mac)
{
    (void)ctx;
    cr_expect(nj_addr_eq(ip, &own) && rte_is_same_ether_addr(mac, &mac_a));
    n_conflicts++;
}

/* It is counted and reported (RFC 4862 5.4.4). */
Test(net_nd_host, a_late_claim_changes_nothing)
{
    struct bench *b = bench_ready(false);
    b->n.conflict = on_conflict;
    advert(b, &own, &mac_a, O);
    cr_expect_eq(n_conflicts, 1);
    cr_expect_eq(state_of(b, &own), NJ_ADDR_READY);
    cr_expect_eq(count(b, NJ_C_nd_claimed), 1);
    advert(b, &own, &mac_own, O); /* our own, come back */
    cr_expect_eq(count(b, NJ_C_nd_claimed), 1);
    bench_free(b);
}

/* --- questions about us (RFC 4861 7.2.3, 7.2.4) ---------------------------------------------- */

/* Sentence 118. */
Test(net_nd_host, questions_are_answered)
{
    struct bench *b = bench_ready(false);
    const struct nj_addr all = nj_ip6_all_nodes(), other = {{0x20, 1, 0x0d, 0xb8, [15] = 5}};

    cr_expect(solicit(b, &peer, &own, &mac_a, NULL));
    cr_assert_eq(b->n_sent, 1);
    cr_expect(same_mac(&sent(b, 0)->dst, &mac_a) && nj_addr_eq(&sent(b, 0)->ip_dst, &peer));
    cr_expect_eq(sent(b, 0)->flags, 0x60, "solicited, override");
    cr_expect(nj_addr_eq(&sent(b, 0)->target, &own));
    solicit(b, &nobody, &own, NULL, NULL); /* another node checks our address */
    cr_assert_eq(b->n_sent, 2);
    cr_expect(nj_addr_eq(&sent(b, 1)->ip_dst, &all));
    cr_expect_eq(sent(b, 1)->flags, 0x20);
    cr_expect(!solicit(b, &peer, &other, &mac_a, NULL));
    cr_expect_eq(b->n_sent, 2);
    bench_free(b);
}

/* --- the table (RFC 4861 7.2, 7.3) ----------------------------------------------------------- */

/* Sentence 117. */
Test(net_nd_host, packets_wait_for_the_answer)
{
    struct bench *b = bench_ready(false);
    struct nj_addr group = nj_ip6_solicited_node(&peer);
    const struct rte_ether_addr mac = nj_ip6_multicast_mac(&group);

    advert(b, &peer, &mac_b, S | O); /* unsolicited: not believed */
    for (uint8_t i = 0; i < 6; i++)
        send_to(b, &peer, i);
    cr_assert_eq(b->n_sent, 1);
    cr_expect(sent(b, 0)->type == 135 && nj_addr_eq(&sent(b, 0)->target, &peer));
    cr_expect(nj_addr_eq(&sent(b, 0)->ip_src, &own) && same_mac(&sent(b, 0)->dst, &mac));
    cr_expect_eq(count(b, NJ_C_drop_tx_arp_queue), 2);
    advert(b, &peer, NULL, S); /* without a MAC address it is of no use */
    cr_expect_eq(b->n_sent, 1);
    advert(b, &peer, &mac_a, S);
    cr_assert_eq(b->n_sent, 5);
    for (uint8_t i = 0; i < 4; i++)
        cr_expect(sent(b, 1 + i)->mark == i && same_mac(&sent(b, 1 + i)->dst, &mac_a));
    bench_free(b);
}

/* Sentence 117. */
Test(net_nd_host, asks_thrice_then_gives_up)
{
    struct bench *b = bench_ready(false);
    send_to(b, &peer, 1);
    run(b, 900 * NJ_MS);
    cr_expect_eq(n_of(b, 135, &peer), 1);
    run(b, 2 * NJ_SEC);
    cr_expect_eq(n_of(b, 135, &peer), 3);
    cr_expect_eq(count(b, NJ_C_drop_tx_arp_timeout), 0);
    run(b, 2 * NJ_SEC);
    cr_expect_eq(n_of(b, 135, &peer), 3);
    cr_expect_eq(count(b, NJ_C_drop_tx_arp_timeout), 1);
    cr_expect(nj_test_pool_full(b->mp));
    bench_free(b);
}

/* Sentence 117: REACHABLE 30 s, STALE, DELAY 5 s once it is used, PROBE: three questions to the
 * one MAC. */
Test(net_nd_host, silent_neighbours_are_found_out)
{
    struct bench *b = bench_ready(false);
    send_to(b, &peer, 1);
    advert(b, &peer, &mac_a, S);
    b->n_sent = 0;
    run(b, 40 * NJ_SEC);
    cr_expect_eq(b->n_sent, 0, "an unused entry is not probed");
    send_to(b, &peer, 2);
    cr_expect_eq(b->n_sent, 1, "believed meanwhile");
    run(b, 4800 * NJ_MS);
    cr_expect_eq(b->n_sent, 1);
    run(b, 400 * NJ_MS);
    cr_assert_eq(b->n_sent, 2);
    cr_expect(same_mac(&sent(b, 1)->dst, &mac_a) && nj_addr_eq(&sent(b, 1)->ip_dst, &peer));
    advert(b, &peer, &mac_a, S); /* it lives */
    run(b, 40 * NJ_SEC);
    cr_expect_eq(b->n_sent, 2);
    send_to(b, &peer, 3);
    run(b, 9 * NJ_SEC); /* and now it does not */
    cr_expect_eq(n_of(b, 135, &peer), 4);
    b->n_sent = 0;
    send_to(b, &peer, 4);
    cr_assert_eq(b->n_sent, 1);
    cr_expect_eq(sent(b, 0)->type, 135);
    cr_expect(!nj_addr_eq(&sent(b, 0)->ip_dst, &peer), "from the beginning, by its group");
    bench_free(b);
}

static uint8_t entry_state(struct bench *b, const struct nj_addr *ip, struct rte_ether_addr *mac)
{
    for (unsigned i = 0; i < NJ_NEIGH_MAX; i++)
        if (b->n.entry[i].state != NJ_NEIGH_FREE && nj_addr_eq(&b->n.entry[i].ip, ip)) {
            *mac = b->n.entry[i].mac;
            return b->n.entry[i].state;
        }
    return NJ_NEIGH_FREE;
}

/* Sentence 118: RFC 4861 7.2.5 for an entry that is REACHABLE at mac_a; but another MAC address is
 * not believed before the old one was probed (docs/adr/0013). */
Test(net_nd_host, flags_of_advertisements)
{
    static const struct {
        const struct rte_ether_addr *mac, *then;
        unsigned flags;
        uint8_t state;
    } row[] = {
        {&mac_b, &mac_a, 0, NJ_NEIGH_STALE},     {&mac_b, &mac_a, S, NJ_NEIGH_STALE},
        {&mac_b, &mac_a, O, NJ_NEIGH_PROBE},     {&mac_b, &mac_a, S | O, NJ_NEIGH_PROBE},
        {&mac_a, &mac_a, 0, NJ_NEIGH_REACHABLE}, {&mac_a, &mac_a, O, NJ_NEIGH_REACHABLE},
        {NULL, &mac_a, S, NJ_NEIGH_REACHABLE},   {NULL, &mac_a, O, NJ_NEIGH_REACHABLE},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(row); i++) {
        struct bench *b = bench_ready(false);
        struct rte_ether_addr mac = {{0}};
        send_to(b, &peer, 1);
        advert(b, &peer, &mac_a, S);
        cr_assert_eq(entry_state(b, &peer, &mac), NJ_NEIGH_REACHABLE);
        advert(b, &peer, row[i].mac, row[i].flags);
        cr_expect_eq(entry_state(b, &peer, &mac), row[i].state, "row %zu", i);
        cr_expect(same_mac(&mac, row[i].then), "row %zu", i);
        bench_free(b);
    }
}

/* The MAC address in a solicitation is STALE. An unsolicited advertisement of an unknown neighbour
 * has no effect. */
Test(net_nd_host, what_is_learned_from_whom)
{
    struct bench *b = bench_ready(false);
    struct rte_ether_addr mac = {{0}};

    solicit(b, &peer, &own, &mac_a, NULL);
    cr_expect_eq(entry_state(b, &peer, &mac), NJ_NEIGH_DELAY, "the answer used it");
    solicit(b, &peer, &own, &mac_b, NULL);
    cr_expect(entry_state(b, &peer, &mac) == NJ_NEIGH_PROBE && same_mac(&mac, &mac_a), "asked");
    advert(b, &router, &mac_a, S | O);
    cr_expect_eq(entry_state(b, &router, &mac), NJ_NEIGH_FREE);
    bench_free(b);
}

/* Solicitations from made-up neighbours. Those without a MAC address are resolved within limits
 * (RFC 6583 7.1). Those with one do not evict neighbours in use. */
static void made_up_neighbours(const struct rte_ether_addr *mac)
{
    struct bench *b = bench_ready(false);
    struct nj_addr from = peer;
    uint32_t n_asked = 0;

    solicit(b, &router, &own, &mac_b, NULL);
    send_to(b, &router, 1);
    for (uint32_t i = 0; i < 20000; i++) {
        b->n_sent = 0;
        memcpy(&from.b[10], &i, sizeof i);
        solicit(b, &from, &own, mac, NULL);
        n_asked += n_of(b, 135, NULL);
        b->now += 10 * NJ_US;
    }
    cr_expect_eq(n_asked, mac ? 0 : NJ_NEIGH_UNSOLICITED_MAX);
    cr_expect_geq(count(b, NJ_C_drop_tx_unsolicited) + NJ_NEIGH_UNSOLICITED_MAX, mac ? 0 : 20000);
    b->n_sent = 0;
    send_to(b, &router, 2);
    cr_assert_eq(b->n_sent, 1);
    cr_expect(sent(b, 0)->mark == 2 && same_mac(&sent(b, 0)->dst, &mac_b));
    bench_free(b);
}

Test(net_nd_host, made_up_neighbours_that_tell_no_mac)
{
    made_up_neighbours(NULL);
}

Test(net_nd_host, made_up_neighbours_that_tell_one)
{
    made_up_neighbours(&mac_a);
}

/* --- routers (RFC 4861 6.3) ------------------------------------------------------------------ */

Test(net_nd_host, routers_are_asked_for)
{
    struct bench *b = bench_with(true, false, NULL);
    run(b, 20 * NJ_SEC);
    cr_expect_eq(n_of(b, 133, NULL), 3);
    bench_free(b);

    b = bench_with(true, false, NULL);
    run(b, 2500 * NJ_MS);
    cr_expect_eq(n_of(b, 133, NULL), 1);
    advertise(b, &router, 1800, NULL, 0, 0);
    run(b, 20 * NJ_SEC);
    cr_expect_eq(n_of(b, 133, NULL), 1, "one answered");
    bench_free(b);

    b = bench_with(true, false, &peer); /* a gateway that is configured stays */
    run(b, 20 * NJ_SEC);
    advertise(b, &router, 1800, NULL, 0, 0);
    cr_expect_eq(n_of(b, 133, NULL), 0);
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &peer));
    bench_free(b);
}

Test(net_nd_host, routers_come_and_go)
{
    struct bench *b = bench_ready(false);

    cr_expect_null(nj_ip_next_hop(&b->iface, &far));
    advertise(b, &router, 60, NULL, 0, 0);
    advertise(b, &router2, 600, NULL, 0, 0);
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &router));
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &peer), &peer), "on the link");
    run(b, 61 * NJ_SEC);
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &router2), "its time was over");
    advertise(b, &router, 600, NULL, 0, 0);
    advertise(b, &router2, 0, NULL, 0, 0); /* its last advertisement */
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &router));
    for (uint8_t i = 0; i < 10; i++) { /* more than we remember */
        struct nj_addr more = router;
        more.b[14] = i + 1;
        advertise(b, &more, 600, NULL, 0, 0);
    }
    cr_expect_eq(b->d.n_routers, NJ_ROUTERS_MAX);
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &router));
    bench_free(b);
}

Test(net_nd_host, a_silent_router_is_left)
{
    struct bench *b = bench_ready(false);

    advertise(b, &router, 1800, NULL, 0, 0);
    advertise(b, &router2, 1800, NULL, 0, 0);
    send_to(b, &router, 1); /* STALE: believed, and probed in 5 s */
    run(b, 10 * NJ_SEC);
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &router2));
    send_to(b, &router2, 1);
    advert(b, &router2, &mac_b, S); /* it advertises that it is no router any more */
    cr_expect(nj_addr_eq(nj_ip_next_hop(&b->iface, &far), &router));
    cr_expect_eq(b->d.n_routers, 1);
    bench_free(b);
}

Test(net_nd_host, what_routers_say_of_the_link)
{
    struct bench *b = bench_ready(false);
    advertise(b, &router, 1800, NULL, 0, 1279);
    cr_expect_eq(nj_iface_mtu(&b->iface, &peer), 1500);
    advertise(b, &router, 1800, NULL, 0, 9000);
    cr_expect_eq(nj_iface_mtu(&b->iface, &peer), 1500);
    advertise(b, &router, 1800, NULL, 0, 1400);
    cr_expect_eq(nj_iface_mtu(&b->iface, &peer), 1400);
    const struct nj_addr v4 = nj_addr_from_v4(1);
    cr_expect_eq(nj_iface_mtu(&b->iface, &v4), 1500);
    bench_free(b);
}

/* --- prefixes (RFC 4862 5.5) ----------------------------------------------------------------- */

static const struct nj_addr prefix = {{0x20, 1, 0x0d, 0xb8, 0, 5}};

Test(net_nd_host, addresses_from_routers)
{
    struct bench *b = bench_ready(true);
    const struct nj_addr mine = nj_nd_host_make_addr(&prefix, &mac_own, 0);

    advertise(b, &router, 1800, &prefix, 3600, 0);
    cr_expect_eq(state_of(b, &mine), NJ_ADDR_TENTATIVE);
    run(b, 2300 * NJ_MS);
    cr_expect_eq(n_of(b, 135, &mine), 1);
    cr_expect_eq(state_of(b, &mine), NJ_ADDR_READY);
    run(b, 3700 * NJ_SEC);
    cr_expect_eq(state_of(b, &mine), NJ_ADDR_EXPIRED);
    cr_expect(!nj_iface_has_addr(&b->iface, &mine));
    advertise(b, &router, 1800, &prefix, 3600, 0); /* and again, in the same place */
    run(b, 3 * NJ_SEC);
    cr_expect_eq(state_of(b, &mine), NJ_ADDR_READY);
    cr_expect_eq(b->iface.n_addrs, 3);
    for (uint8_t i = 0; i < 30; i++) { /* a bound, for any router advertisements */
        struct nj_addr more = prefix;
        more.b[6] = i + 1;
        advertise(b, &router, 1800, &more, 3600, 0);
    }
    cr_expect_eq(b->iface.n_addrs, NJ_ADDRS_MAX);
    bench_free(b);

    b = bench_ready(false); /* unsolicited */
    advertise(b, &router, 1800, &prefix, 3600, 0);
    cr_expect_eq(b->iface.n_addrs, 2);
    bench_free(b);
}

/* RFC 4862 5.5.3 e. */
Test(net_nd_host, two_hours)
{
    static const struct {
        uint32_t has, told, left;
    } row[] = {{86400, 172800, 172800}, {86400, 60, 7200},  {86400, 0, 7200},  {86400, 7300, 7300},
               {3600, 60, 3600},        {3600, 5400, 5400}, {3600, 7300, 7300}};
    for (size_t i = 0; i < NJ_ARRAY_LEN(row); i++) {
        struct bench *b = bench_ready(true);
        const struct nj_addr mine = nj_nd_host_make_addr(&prefix, &mac_own, 0);
        advertise(b, &router, 1800, &prefix, row[i].has, 0);
        advertise(b, &router, 1800, &prefix, row[i].told, 0);
        const struct nj_iface_addr *a = nj_iface_find_addr(&b->iface, &mine);
        cr_assert_not_null(a);
        nj_ns left = b->d.addr[a - b->iface.addr].expires_at - b->now;
        cr_expect_eq(left / NJ_SEC, row[i].left, "row %zu: %lu", i, left / NJ_SEC);
        bench_free(b);
    }
}

/* --- groups (RFC 3810, RFC 2710) ------------------------------------------------------------- */

static void query(struct bench *b, bool old)
{
    struct nj_packet p = {.kind = NJ_PACKET_ND, .ip_src = router, .ip_dst = nj_ip6_all_nodes()};
    p.nd = (struct nj_nd){.kind = NJ_ND_LISTENER_QUERY, .mldv1_query = old, .delay_ms = 1000};
    cr_expect(nj_nd_host_input(&b->d, &p, NULL, true, b->now));
}

Test(net_nd_host, groups_are_reported)
{
    struct bench *b = bench_ready(false);
    const struct nj_addr ll = link_local();

    query(b, false);
    run(b, 1200 * NJ_MS);
    cr_assert_eq(b->n_sent, 1);
    cr_expect_eq(sent(b, 0)->type, 143);
    cr_expect(nj_addr_eq(&sent(b, 0)->ip_src, &ll));
    query(b, true);
    run(b, 1200 * NJ_MS);
    cr_assert_eq(b->n_sent, 3, "one for each group");
    cr_expect_eq(sent(b, 1)->type, 131);
    run(b, 300 * NJ_SEC);
    cr_expect_eq(b->n_sent, 3);
    bench_free(b);
}
