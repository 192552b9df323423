/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 neighbours that are claimed to have moved (docs/adr/0013), and confirmations by TCP. */
#include <criterion/criterion.h>

#include "shard_ndp_rig.h"

#include "telem/counters.h"

/* A neighbour at mac_a that answers solicitations until `dies`, and its successor at mac_b that
 * answers from then on. */
static void live(struct bench *b, nj_ns time, nj_ns dies)
{
    for (nj_ns end = b->now + time; b->now < end;) {
        run(b, 10 * NJ_MS);
        uint32_t n = b->n_sent;
        b->n_sent = 0;
        for (uint32_t i = 0; i < n; i++) {
            const struct sent *s = &b->sent[i];
            bool all = !nj_addr_eq(&s->ip_dst, &s->target), a = b->now < dies;
            if (s->type == 135 && nj_addr_eq(&s->target, &peer) &&
                (all || same_mac(&s->dst, a ? &mac_a : &mac_b)))
                advert(b, &peer, a ? &mac_a : &mac_b, S | O);
        }
    }
}

static bool goes_to(struct bench *b, const struct rte_ether_addr *mac)
{
    b->n_sent = 0;
    send_to(b, &peer, 99);
    cr_assert_eq(b->n_sent, 1);
    bool is = sent(b, 0)->type != 135 && same_mac(&sent(b, 0)->dst, mac);
    b->n_sent = 0;
    return is;
}

/* After forged advertisements and solicitations of any kind the neighbour is probed at its known
 * MAC address. */
Test(net_nd_host, forged_claims_change_nothing)
{
    for (unsigned how = 0; how < 3; how++) {
        struct bench *b = bench_ready(false);
        send_to(b, &peer, 1);
        advert(b, &peer, &mac_a, S);
        for (unsigned i = 0; i < 400; i++) {
            if (how == 2)
                solicit(b, &peer, &own, &mac_b, NULL);
            else
                advert(b, &peer, &mac_b, how == 0 ? O : S | O);
            live(b, 10 * NJ_MS, NJ_NEVER);
            cr_assert(goes_to(b, &mac_a), "how %u, after %u claims", how, i + 1);
        }
        cr_expect_geq(count(b, NJ_C_neigh_claimed), 1);
        cr_expect_eq(count(b, NJ_C_neigh_moved), 0);
        bench_free(b);
    }
}

/* RFC 4861 7.2.6: the neighbour has a new MAC address, and announces it. */
Test(net_nd_host, neighbours_that_really_move)
{
    for (nj_ns heard = 0; heard < 40 * NJ_SEC; heard = heard * 2 + 250 * NJ_MS) {
        struct bench *b = bench_ready(false);
        send_to(b, &peer, 1);
        advert(b, &peer, &mac_a, S);
        live(b, heard, NJ_NEVER);
        advert(b, &peer, &mac_b, O);
        live(b, 2200 * NJ_MS, 0);
        cr_expect(goes_to(b, &mac_b), "heard %lu ns before", heard);
        live(b, 10 * NJ_SEC, 0);
        cr_expect(goes_to(b, &mac_b));
        cr_expect_eq(count(b, NJ_C_neigh_moved), 1);
        bench_free(b);
    }
}

/* A forged claim about a host, that it is no router, does not remove the router; a true one does.
 */
Test(net_nd_host, claims_about_routers)
{
    for (unsigned real = 0; real < 2; real++) {
        struct bench *b = bench_ready(false);
        advertise(b, &router, 1800, NULL, 0, 0);
        b->now += 3 * NJ_SEC;
        advert(b, &router, &mac_a, O);
        cr_expect_eq(b->d.n_routers, 1);
        if (!real)
            advert(b, &router, &mac_b, S | R);
        run(b, 1500 * NJ_MS);
        cr_expect_eq(b->d.n_routers, !real);
        bench_free(b);
    }
}

/* A neighbour that TCP confirms is not probed, for any duration of use. */
Test(net_nd_host, progress_confirms)
{
    for (unsigned proven = 0; proven < 2; proven++) {
        struct bench *b = bench_ready(false);
        send_to(b, &peer, 1);
        advert(b, &peer, &mac_a, S);
        b->n_sent = 0;
        for (unsigned i = 0; i < 60 && n_of(b, 135, NULL) == 0; i++) {
            b->n_sent = 0;
            nj_neigh_output(&b->n, nj_test_mbuf(b->mp, "t", 1), &peer,
                            proven ? NJ_NEIGH_CONFIRMED : NJ_NEIGH_OWN, b->now);
            run(b, NJ_SEC);
        }
        cr_expect_eq(n_of(b, 135, NULL) == 0, proven);
        bench_free(b);
    }
}
