/* SPDX-License-Identifier: BSD-3-Clause */
/* Floods of made-up neighbours, and the neighbours that are new meanwhile. */
#include <criterion/criterion.h>

#include "support/neigh_bench.h"
#include "telem/counters.h"

#define OWN 0x0a000001u /* 10.0.0.1/16 */

/* The neighbour with this number, of either family. Both links have 65,536 addresses at least. */
static struct nj_addr neighbour(bool v6, uint32_t number)
{
    struct nj_addr a = {.b = {0x20, 1, 0xd, 0xb8}};

    if (!v6)
        return nj_addr_from_v4(rte_cpu_to_be_32(OWN + number));
    number = rte_cpu_to_be_32(1 + number);
    memcpy(&a.b[12], &number, sizeof number);
    return a;
}

static struct bench *bench_new(void)
{
    struct bench *b = bench_alloc();

    b->iface.n_addrs = 2;
    b->iface.ip6 = true;
    b->iface.addr[0] = (struct nj_iface_addr){neighbour(false, 0), 16, NJ_ADDR_READY};
    b->iface.addr[1] = (struct nj_iface_addr){neighbour(true, 0), 64, NJ_ADDR_READY};
    b->now = 100 * NJ_SEC;
    return b;
}

/* It asks for our address, as before its first packet to us. */
static void asks(struct bench *b, bool v6, uint32_t number)
{
    struct nj_addr from = neighbour(v6, number);
    struct nj_packet p = {.kind = NJ_PACKET_ARP, .arp = {true, mac_a, from, b->iface.addr[0].ip}};

    if (v6)
        nj_neigh_learn(&b->n, &from, &mac_a, false, b->now);
    else
        nj_neigh_arp_input(&b->n, &p, false, b->now);
}

/* It answers our request. */
static void answers(struct bench *b, bool v6, uint32_t number)
{
    struct nj_addr from = neighbour(v6, number);
    struct nj_packet p = {.kind = NJ_PACKET_ARP, .arp = {false, mac_a, from, b->iface.addr[0].ip}};
    struct nj_nd nd = {.kind = NJ_ND_ADVERT,
                       .solicited = true,
                       .override = true,
                       .has_mac = true,
                       .mac = mac_a,
                       .target = from};

    if (v6)
        nj_neigh_advert_input(&b->n, &nd, b->now);
    else
        nj_neigh_arp_input(&b->n, &p, false, b->now);
}

/* We reply to its SYN. True: a request or the reply left at once. */
static bool sends_syn(struct bench *b, bool v6, uint32_t number)
{
    struct nj_addr to = neighbour(v6, number);
    uint32_t n = b->n_sent;

    nj_neigh_output(&b->n, nj_test_mbuf(b->mp, "r", 1), &to, NJ_NEIGH_REPLY, b->now);
    return b->n_sent > n;
}

/* The last frame that left is our reply to a SYN. */
static bool reply_left(const struct bench *b)
{
    return b->sent[(b->n_sent - 1) % SENT_MAX].mark == 'r';
}

static void pass(struct bench *b, nj_ns time)
{
    b->now += time;
    nj_neigh_tick(&b->n, b->now);
}

#define STRANGER 50000u

/* Requests for our address from invented ones of one family: a neighbour of either family that is
 * new, and knows our MAC address, is resolved and gets its reply. */
static void new_neighbour_in_a_flood(bool v6_flood, bool v6, uint32_t per_s)
{
    struct bench *b = bench_new();

    for (uint32_t i = 0; i < 2 * per_s; i++) {
        asks(b, v6_flood, 1 + i % 40000);
        pass(b, NJ_SEC / per_s);
    }
    for (uint32_t i = 0; i < 20; i++) {
        cr_assert(sends_syn(b, v6, STRANGER + i), "SYN %u got neither request nor reply", i);
        for (uint32_t k = 0; k < per_s / 200; k++) { /* within 5 ms */
            asks(b, v6_flood, 1 + (i * per_s + k) % 40000);
            pass(b, NJ_SEC / per_s);
        }
        b->n_sent = 0;
        answers(b, v6, STRANGER + i);
        cr_assert(b->n_sent == 1 && reply_left(b), "reply %u is lost", i);
        pass(b, 100 * NJ_MS);
    }
    bench_free(b);
}

Test(net_neighbour_floods, requests_from_invented_addresses)
{
    for (unsigned i = 0; i < 4; i++) {
        new_neighbour_in_a_flood(i & 1, i & 2, 500);
        new_neighbour_in_a_flood(i & 1, i & 2, 18000);
    }
}

/* 300 SYNs per second for this time, from 50 addresses of the link that do not answer. */
static void silent_addresses(struct bench *b, bool v6, nj_ns time)
{
    for (nj_ns end = b->now + time; b->now < end; pass(b, NJ_SEC / 300))
        sends_syn(b, v6, 1 + (uint32_t)(b->now / (NJ_SEC / 300) % 50));
}

/* A neighbour that is new gets a reply to one of its SYNs, which it sends after 0, 1 and 3 s. One
 * of the other family gets it at once. */
Test(net_neighbour_floods, syns_from_silent_addresses)
{
    static const nj_ns gap[] = {0, 1 * NJ_SEC, 2 * NJ_SEC};

    for (uint32_t i = 0; i < 20; i++) {
        struct bench *b = bench_new();
        bool v6 = i % 2, served = false;

        silent_addresses(b, v6, 5 * NJ_SEC + i * 53 * NJ_MS);
        for (unsigned k = 0; k < NJ_ARRAY_LEN(gap); k++) {
            silent_addresses(b, v6, gap[k]);
            served |= sends_syn(b, v6, STRANGER);
        }
        cr_expect(served, "locked out, %u", i);
        cr_expect(sends_syn(b, !v6, STRANGER));
        bench_free(b);
    }
}

/* The rate of requests and the packets that wait are bounded for any number of made-up addresses.
 */
Test(net_neighbour_floods, requests_within_bounds)
{
    for (unsigned v6 = 0; v6 < 2; v6++) {
        struct bench *b = bench_new();
        uint32_t n_asked = 0, used_max = 0;

        for (uint32_t i = 0; i < 50000; i++) { /* in 5 s */
            n_asked += sends_syn(b, v6, 1 + i);
            pass(b, 100 * NJ_US);
            uint32_t used = b->mp->size - rte_mempool_avail_count(b->mp);
            used_max = used > used_max ? used : used_max;
        }
        cr_expect_leq(n_asked, 6 * NJ_NEIGH_UNSOLICITED_PER_S, "%u", n_asked);
        cr_expect_geq(n_asked, 5 * NJ_NEIGH_UNSOLICITED_PER_S, "%u", n_asked);
        cr_expect_leq(used_max, NJ_NEIGH_UNSOLICITED_MAX);
        bench_free(b);
    }
}

/* ---- one set of the table ---- */

enum { SET = 8 }; /* its entries */

static const struct nj_neigh_entry *entry_of(const struct bench *b, const struct nj_addr *ip)
{
    for (unsigned i = 0; i < NJ_NEIGH_MAX; i++)
        if (b->n.entry[i].state != NJ_NEIGH_FREE && nj_addr_eq(&b->n.entry[i].ip, ip))
            return &b->n.entry[i];
    return NULL;
}

/* The first numbers of neighbours whose entries are in the set of neighbour 1. */
static void numbers_of_a_set(bool v6, uint32_t *number, unsigned n)
{
    struct bench *b = bench_new();
    const struct nj_addr first = neighbour(v6, 1);

    asks(b, v6, 1);
    long set = (entry_of(b, &first) - b->n.entry) / SET;
    for (uint32_t i = 1; n > 0; i++) {
        const struct nj_addr a = neighbour(v6, i);
        asks(b, v6, i);
        if ((entry_of(b, &a) - b->n.entry) / SET != set)
            continue;
        *number++ = i;
        n--;
    }
    bench_free(b);
}

/* Our own packet to it. */
static void sends(struct bench *b, bool v6, uint32_t number)
{
    const struct nj_addr to = neighbour(v6, number);

    nj_neigh_output(&b->n, nj_test_mbuf(b->mp, "o", 1), &to, NJ_NEIGH_OWN, b->now);
}

static bool is_known(const struct bench *b, bool v6, uint32_t number)
{
    const struct nj_addr a = neighbour(v6, number);
    return entry_of(b, &a) != NULL;
}

/* One set of the table is full: the server uses seven neighbours, and a packet of the server waits
 * for the eighth. Requests from invented addresses replace none of them. They replace a neighbour
 * that was not used for more than 10 s. */
Test(net_neighbour_floods, requests_do_not_replace_what_is_in_use)
{
    enum { INVENTED = 100, IDLE_S = 11 };

    for (unsigned v6 = 0; v6 < 2; v6++) {
        uint32_t number[SET + INVENTED];
        numbers_of_a_set(v6, number, NJ_ARRAY_LEN(number));
        struct bench *b = bench_new();
        for (unsigned i = 0; i < SET; i++) {
            if (i < SET - 1)
                asks(b, v6, number[i]);
            sends(b, v6, number[i]);
        }
        for (unsigned i = SET; i < SET + INVENTED; i++)
            asks(b, v6, number[i]);
        for (unsigned i = 0; i < SET; i++)
            cr_expect(is_known(b, v6, number[i]), "family %u: neighbour %u was replaced", v6, i);
        cr_expect_eq(nj_counter_read(&b->counters, NJ_C_arp_evicted), 0);
        b->n_sent = 0;
        answers(b, v6, number[SET - 1]);
        cr_expect(b->n_sent == 1 && b->sent[0].mark == 'o', "its packet leaves");
        b->now += IDLE_S * NJ_SEC;
        asks(b, v6, number[SET]);
        cr_expect(is_known(b, v6, number[SET]), "an idle one is replaced");
        bench_free(b);
    }
}
