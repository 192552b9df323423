/* SPDX-License-Identifier: BSD-3-Clause */
/* Max-min fairness of connections when the table is nearly full. */
#include <criterion/criterion.h>

#define RIG_PEERS   1100
#define RIG_GOT_MAX 4096u
#include "support/shard_rig.h"
#include "telem/counters.h"

#define PLACES 96u                    /* 1/32 of them are reserved for handshakes */
#define GREEDY 0xc6120005u            /* 198.18.0.5 */
#define OTHER  0xc6120010u            /* and above: clients with one connection each */
#define FULL   (PLACES - PLACES / 32) /* new connections are refused from here on */
#define TIGHT  (PLACES * 7 / 8)       /* idle connections are closed from here on */

static struct rig *start_keyed(uint32_t places, uint8_t key)
{
    struct rig *r = rig_alloc(16384, 16384);
    struct nj_shard_config c = rig_config(r);
    c.conns_max = c.half_open_max = places;
    c.conns.client_key = (struct nj_hash_key){{key, 8, 9}};
    return rig_new_with(r, &c);
}

static struct rig *start_with(uint32_t places)
{
    return start_keyed(places, 7);
}

static struct rig_peer *open_h2(struct rig *r, uint32_t ip, uint16_t port)
{
    struct rig_peer *p = rig_syn_from(r, ip, port);
    rig_begin_h2(r, p);
    return p;
}

/* One client opens as many connections as it can. */
static void hoard(struct rig *r, uint32_t n, struct rig_peer **out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = open_h2(r, GREEDY, (uint16_t)(1000 + i));
}

static bool is_served(struct rig *r, struct rig_peer *p)
{
    rig_get(r, p, 1, "/index.html");
    rig_settle(r);
    return !p->got_rst && !p->got_fin && rig_h2_frames(p, 0, NULL) > 0;
}

static uint32_t n_ended(struct rig_peer *const *p, uint32_t n)
{
    uint32_t n_ended = 0;
    for (uint32_t i = 0; i < n; i++)
        n_ended += p[i]->got_rst || p[i]->got_fin;
    return n_ended;
}

/* One address fills the table; forty other clients connect, and each is served. */
Test(conn_conn_fair_eviction, one_client_takes_all_and_others_are_served)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[120], *other[40];
    uint32_t n_served = 0;

    hoard(r, 120, greedy);
    cr_assert_eq(r->s->tcp.tcbs.n_used, FULL, "%u", r->s->tcp.tcbs.n_used);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0, "no other client needs an entry");
    for (uint32_t i = 0; i < 40; i++) {
        other[i] = open_h2(r, OTHER + i, 2000);
        n_served += is_served(r, other[i]);
    }
    cr_expect_eq(n_served, 40, "%u of 40 were served", n_served);
    cr_expect_eq(n_ended(other, 40), 0);
    cr_expect_geq(rig_count(r, NJ_C_conn_evicted), 40);
    rig_free(r);
}

/* ... also when its connections have responses that it does not read. */
Test(conn_conn_fair_eviction, one_client_is_busy_on_all_places)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[FULL];
    uint32_t n_served = 0;

    hoard(r, FULL, greedy);
    for (uint32_t i = 0; i < FULL; i++) {
        greedy[i]->manual = true;
        rig_get(r, greedy[i], 1, "/whole");
    }
    rig_settle(r);
    for (uint32_t i = 0; i < 20; i++)
        n_served += is_served(r, open_h2(r, OTHER + i, 2000));
    cr_expect_eq(n_served, 20, "%u of 20 were served", n_served);
    rig_free(r);
}

/* With a small table, clients must not collide in a counter. With one counter per entry, another
 * client collided with the greedy one under two of these eight keys. */
Test(conn_conn_fair_eviction, few_places_do_not_mix_clients_up)
{
    for (uint8_t key = 0; key < 8; key++) {
        struct rig *r = start_keyed(PLACES, key);
        struct rig_peer *greedy[FULL];

        hoard(r, FULL, greedy);
        for (uint32_t i = 0; i < 40; i++)
            cr_expect(is_served(r, open_h2(r, OTHER + i, 2000)), "key %u, client %u", key, i);
        rig_free(r);
    }
}

/* A client that reopens every lost connection does not evict clients that hold fewer. */
Test(conn_conn_fair_eviction, opening_again_does_not_help)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[FULL], *other[40];

    hoard(r, FULL, greedy);
    for (uint32_t i = 0; i < 40; i++) {
        other[i] = open_h2(r, OTHER + i, 2000);
        for (uint32_t k = 0; k < 3; k++)
            open_h2(r, GREEDY, (uint16_t)(3000 + 3 * i + k));
    }
    cr_expect_eq(n_ended(other, 40), 0);
    for (uint32_t i = 0; i < 40; i++)
        cr_expect(is_served(r, other[i]), "%u", i);
    rig_free(r);
}

/* While entries are free, idle connections are closed with GOAWAY; busy ones stay. */
Test(conn_conn_fair_eviction, idle_ones_are_told_to_leave_first)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[TIGHT];
    const uint8_t *goaway;
    uint32_t n_told = 0;

    hoard(r, TIGHT, greedy);
    for (uint32_t i = 0; i < TIGHT; i += 2) {
        greedy[i]->manual = true;
        rig_get(r, greedy[i], 1, "/whole");
    }
    rig_settle(r);
    for (uint32_t i = 0; i < 5; i++)
        cr_expect(is_served(r, open_h2(r, OTHER + i, 2000)), "%u", i);
    for (uint32_t i = 0; i < TIGHT; i++) {
        bool told = greedy[i]->got_fin && rig_h2_frames(greedy[i], 7, &goaway) == 2;
        cr_expect_not(greedy[i]->got_rst, "%u", i);
        cr_expect(!told || i % 2 == 1, "%u was at work", i);
        n_told += told;
    }
    cr_expect_geq(n_told, 4, "%u", n_told);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), n_told);
    rig_free(r);
}

/* A peer acknowledges the FIN and never closes: its entry is freed anyway. */
Test(conn_conn_fair_eviction, who_does_not_close_is_reset)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[FULL];
    uint32_t n_told = 0;

    hoard(r, TIGHT, greedy);
    for (uint32_t i = 0; i < 8; i++)
        open_h2(r, OTHER + i, 2000);
    n_told = n_ended(greedy, TIGHT);
    cr_assert_geq(n_told, 7, "%u", n_told);
    rig_run(r, 3 * NJ_SEC);
    cr_expect_eq(r->s->tcp.n_orphans, 0, "%u", r->s->tcp.n_orphans);
    cr_expect_leq(r->s->tcp.tcbs.n_used, TIGHT + 1, "%u", r->s->tcp.tcbs.n_used);
    rig_free(r);
}

/* A client fills the table with connections that have ended and that it still sends on: these give
 * way before idle ones of a client that holds fewer. */
Test(conn_conn_fair_eviction, who_sends_behind_the_end_yields)
{
    static const char upload[] = "POST /index.html HTTP/1.1\r\nHost: a.test\r\n"
                                 "Content-Length: 10485760\r\n\r\n";
    enum { N_INNOCENT = 10, N_GREEDY = TIGHT - N_INNOCENT, N_NEW = 5 };
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[N_GREEDY], *innocent[N_INNOCENT];

    for (uint32_t i = 0; i < N_INNOCENT; i++)
        innocent[i] = open_h2(r, OTHER, (uint16_t)(2000 + i));
    for (uint32_t i = 0; i < N_GREEDY; i++) {
        greedy[i] = rig_syn_from(r, GREEDY, (uint16_t)(1000 + i));
        rig_settle(r);
        rig_send(r, greedy[i], upload, sizeof upload - 1);
        rig_settle(r);
        rig_send(r, greedy[i], "1", 1);
    }
    rig_settle(r);
    cr_assert_eq(r->s->conns.pool.n_used, TIGHT, "%u", r->s->conns.pool.n_used);
    for (uint32_t i = 0; i < N_NEW; i++)
        cr_expect(is_served(r, open_h2(r, OTHER + 1 + i, 2000)), "%u", i);
    uint32_t n_reset = 0;
    for (uint32_t i = 0; i < N_GREEDY; i++)
        n_reset += greedy[i]->got_rst;
    cr_expect_eq(n_ended(innocent, N_INNOCENT), 0);
    cr_expect_eq(n_reset, N_NEW, "%u", n_reset);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), N_NEW);
    rig_free(r);
}

/* SYNs may be spoofed: before the handshake completes, nothing is evicted. */
Test(conn_conn_fair_eviction, nobody_yields_to_a_syn)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[FULL];

    hoard(r, FULL, greedy);
    for (uint32_t i = 0; i < 50; i++)
        rig_syn_from(r, OTHER + i, 2000)->manual = true;
    rig_settle(r);
    cr_expect_eq(n_ended(greedy, FULL), 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0);
    rig_free(r);
}

/* All clients hold one: nothing is evicted, and a newcomer has to retry. */
Test(conn_conn_fair_eviction, equals_do_not_yield)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *p[FULL];

    for (uint32_t i = 0; i < FULL; i++)
        p[i] = open_h2(r, OTHER + i, 2000);
    struct rig_peer *late = rig_syn_from(r, OTHER + 500, 2000);
    rig_settle(r);
    cr_expect(!late->got_synack && !late->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_full), 1);
    cr_expect_eq(n_ended(p, FULL), 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0);
    rig_free(r);
}

/* A /64 is one client, whichever addresses it uses. */
Test(conn_conn_fair_eviction, addresses_of_one_network_are_one_client)
{
    struct rig *r = rig_alloc(16384, 16384);
    struct nj_shard_config c = rig_config(r);
    struct nj_addr us = {{0x20, 1, 0xd, 0xb8, [15] = 2}}, from = {{0x20, 1, 0xd, 0xb8, [15] = 9}};

    c.conns_max = c.half_open_max = PLACES;
    c.iface.ip6 = true;
    c.iface.n_addrs = 2;
    c.iface.addr[1] = (struct nj_iface_addr){us, 32, 0};
    rig_new_with(r, &c);
    rig_run(r, 6 * NJ_SEC); /* duplicate address detection */
    for (uint32_t i = 0; i < FULL; i++) {
        from.b[14] = (uint8_t)(i % 8 + 1);
        rig_begin_h2(r, rig_syn_between(r, &from, &us, (uint16_t)(1000 + i)));
    }
    cr_assert_eq(r->s->tcp.tcbs.n_used, FULL, "%u", r->s->tcp.tcbs.n_used);
    from.b[7] = 1; /* another /64 */
    struct rig_peer *other = rig_syn_between(r, &from, &us, 1000);
    rig_begin_h2(r, other);
    cr_expect(is_served(r, other));
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 1);
    rig_free(r);
}

/* 198.18.0.5 is a trusted proxy. */
static uint32_t proxies(const void *ctx, const struct nj_addr *a)
{
    return nj_addr_to_v4(a) == htonl(GREEDY) ? 1 : 0;
}

/* Connections of a trusted proxy are charged to no client, and a proxy can connect like a client.
 */
Test(conn_conn_fair_eviction, trusted_proxies)
{
    struct nj_policy p = nj_policy_none;
    struct rig *r = rig_alloc(16384, 16384);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *proxy[FULL / 2], *other[FULL];

    p.trusted = 1;
    p.lists = proxies;
    p.classes[0].caps.conns_max = 60;
    c.conns.policy = &p;
    c.conns_max = c.half_open_max = PLACES;
    rig_new_with(r, &c);
    for (uint32_t i = 0; i < 60; i++)
        other[i] = open_h2(r, OTHER, (uint16_t)(2000 + i));
    hoard(r, FULL - 60, proxy);
    for (uint32_t i = 0; i < 40; i++) {
        struct rig_peer *more = open_h2(r, GREEDY, (uint16_t)(4000 + i));
        cr_expect(is_served(r, more), "%u", i);
    }
    cr_expect_eq(n_ended(proxy, FULL - 60), 0);
    cr_expect_geq(n_ended(other, 60), 40);
    cr_expect_eq(rig_count(r, NJ_C_conn_client_full), 0);
    rig_free(r);
}

/* Counting ends when the table has free entries again. */
Test(conn_conn_fair_eviction, counting_ends_with_the_need)
{
    struct rig *r = start_with(PLACES);
    struct rig_peer *greedy[FULL];

    hoard(r, FULL, greedy);
    cr_expect_eq(r->s->conns.shares.counted_below, UINT32_MAX);
    for (uint32_t i = 0; i < FULL; i++)
        rig_fin(r, greedy[i]);
    rig_settle(r);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(r->s->conns.shares.counted_below, 0);
    for (uint32_t i = 0; i <= r->s->conns.shares.mask; i++)
        cr_expect_eq(r->s->conns.shares.n[i], 0, "%u", i);
    rig_free(r);
}

/* A thousand clients behind one address, alone on a server with default limits: no connection is
 * refused or evicted. */
Test(conn_conn_fair_eviction, a_thousand_behind_one_address)
{
    struct rig *r = start_with(65536); /* the rig scans its tables in each step */
    struct rig_peer *p[1000];
    uint32_t n_served = 0;
    uint8_t hello[128];

    p[0] = rig_syn_from(r, GREEDY, 999);
    rig_settle(r); /* resolves its MAC address */
    for (uint32_t i = 1; i < 1000; i++)
        p[i] = rig_syn_from(r, GREEDY, (uint16_t)(999 + i));
    rig_settle(r);
    for (uint32_t i = 0; i < 1000; i++)
        rig_send(r, p[i], hello, rig_h2_hello(hello));
    rig_settle(r);
    for (uint32_t i = 0; i < 1000; i++)
        rig_get(r, p[i], 1, "/index.html");
    rig_settle(r);
    for (uint32_t i = 0; i < 1000; i++)
        n_served += rig_h2_frames(p[i], 0, NULL) > 0;
    cr_expect_eq(n_served, 1000, "%u", n_served);
    cr_expect_eq(n_ended(p, 1000), 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_full), 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_client_full), 0);
    rig_free(r);
}
