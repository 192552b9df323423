/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that a shard opens: their ports, the shard of the replies, and the events. */
#include <criterion/criterion.h>

#include "active.h"
#include "base/prng.h"
#include "support/shard_rig.h"
#include "telem/counters.h"

#define SERVER_IP 0xc6120009u

static const struct nj_hash_key key_a = {{1}}, key_b = {{2}};

/* A flow table without anything in it. */
struct ports {
    struct nj_pool tcbs;
    struct nj_flow_table flows;
    struct nj_steer steer;
};

static void ports_init(struct ports *p, uint32_t self, uint32_t n_shards, uint32_t reta)
{
    const struct nj_pool *const pools[NJ_FLOW_KINDS] = {&p->tcbs, &p->tcbs, &p->tcbs};

    cr_assert(nj_pool_init(&p->tcbs, sizeof(struct nj_tcb), 16));
    cr_assert(nj_flow_init(&p->flows, pools, &key_a));
    nj_steer_init(&p->steer, &test_rss_key, NJ_STEER_ALWAYS, self, n_shards, reta);
}

static void ports_fini(struct ports *p)
{
    nj_flow_fini(&p->flows);
    nj_pool_fini(&p->tcbs);
}

static struct nj_tuple to(uint32_t ip, uint16_t port)
{
    return (struct nj_tuple){.remote = rig_addr(ip), .local = rig_addr(RIG_IP), .rport = port};
}

Test(perf_load_active, ports_steer_home_within_few_tries)
{
    static const uint32_t n_shards[] = {1, 2, 3, 7, 16, 64};
    struct nj_prng prng;

    nj_prng_init(&prng, 11);
    for (size_t k = 0; k < NJ_ARRAY_LEN(n_shards); k++) {
        struct ports p;
        uint32_t n = n_shards[k], counter = 0, most = 0, sum = 0;
        ports_init(&p, n - 1, n, 128);
        for (uint32_t i = 0; i < 4096; i++) {
            struct nj_tuple t = to((uint32_t)nj_prng_next(&prng), (uint16_t)nj_prng_next(&prng));
            if (i % 2) { /* IPv6 */
                uint64_t a[2] = {nj_prng_next(&prng), nj_prng_next(&prng)};
                memcpy(t.remote.b, a, sizeof a);
                memcpy(t.local.b, a, sizeof a[0]);
            }
            uint32_t tries = active_port(&p.steer, &p.flows, &key_a, &counter, &t);
            cr_assert_eq(nj_steer_owner(&p.steer, &t), n - 1);
            cr_assert_geq(t.lport, NJ_ACTIVE_PORT_MIN);
            most = tries > most ? tries : most;
            sum += tries;
        }
        cr_expect_leq(sum, 4096 * n * 3, "%u shards: %u tries on average", n, sum / 4096);
        cr_expect_leq(most, 256, "%u shards: %u tries", n, most); /* twice the whole table */
        ports_fini(&p);
    }
}

/* RFC 6056 3.3.3: each destination has a first port of its own, which depends on the key, and ports
 * count up. */
Test(perf_load_active, ports_count_up_from_a_secret_start)
{
    struct ports p;
    ports_init(&p, 0, 1, 128);
    uint32_t n_far = 0;
    for (uint16_t port = 1; port <= 64; port++) {
        uint32_t one = 0, other = 0;
        struct nj_tuple t = to(SERVER_IP, port), next = t, keyed = t, place = to(SERVER_IP, 1000);
        active_port(&p.steer, &p.flows, &key_a, &one, &t);
        active_port(&p.steer, &p.flows, &key_a, &one, &next);
        cr_expect_eq(next.lport - NJ_ACTIVE_PORT_MIN,
                     (t.lport + 1 - NJ_ACTIVE_PORT_MIN) % NJ_ACTIVE_PORTS);
        active_port(&p.steer, &p.flows, &key_b, &other, &keyed);
        other = 0;
        active_port(&p.steer, &p.flows, &key_a, &other, &place);
        n_far += abs(keyed.lport - t.lport) > 256;
        n_far += abs(place.lport - t.lport) > 256;
    }
    cr_expect_gt(n_far, 110, "of 128 pairs %u are far apart", n_far);
    ports_fini(&p);
}

/* ---- whole shards ---- */

struct tester {
    struct nj_conn_user user;
    struct nj_tcb *tcb;
    uint32_t n_news;
    uint8_t events;
    uint8_t got[16];
    uint32_t n_got;
};

static void on_news(struct nj_conns *cs, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    struct tester *u = nj_container_of(tcb->user, struct tester, user);
    const uint8_t *data;
    uint32_t n;

    u->n_news++;
    u->events |= events;
    cr_assert_eq(u->tcb, tcb);
    if (events & NJ_TCP_EV_DEAD) {
        u->tcb = NULL;
        nj_tcp_release(cs->tcp, tcb, now);
        return;
    }
    while ((n = nj_tcp_recv_peek(tcb, &data)) > 0) {
        cr_assert_leq(u->n_got + n, sizeof u->got);
        memcpy(u->got + u->n_got, data, n);
        u->n_got += n;
        nj_tcp_recv_take(cs->tcp, tcb, n);
    }
}

static struct rig *rig_of(uint32_t index, uint32_t n_shards, uint32_t conns_max)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);
    c.steering = n_shards > 1 ? NJ_STEER_ALWAYS : NJ_STEER_NONE;
    c.index = index;
    c.n_shards = n_shards;
    c.conns_max = conns_max;
    r = rig_new_with(r, &c);
    rig_arp(r, true, SERVER_IP, &rig_peer_mac, RIG_IP); /* no packet has to wait for ARP */
    rig_settle(r);
    return r;
}

static struct nj_tcb *open_one(struct rig *r, struct tester *u, uint16_t port)
{
    static uint32_t counter;
    struct nj_addr local = rig_addr(RIG_IP), remote = rig_addr(SERVER_IP);
    u->user.on_events = on_news;
    u->tcb = active_open(r->s, &counter, &local, &remote, port, &u->user, r->now);
    return u->tcb;
}

/* The listener's answer to a SYN. */
static struct rig_peer answer(const struct nj_tcb *t)
{
    struct rig_peer p = {.manual = true, .rcv_wnd = 65535, .rcv_nxt = t->snd_nxt, .snd_nxt = 5000};
    p.tuple = (struct nj_tuple){t->flow.tuple.local, t->flow.tuple.remote, t->flow.tuple.lport,
                                t->flow.tuple.rport};
    return p;
}

static void deliver(struct rig *r, const struct nj_tcb *t)
{
    struct rig_peer p = answer(t);
    rig_seg_mss(r, &p, p.snd_nxt, NJ_TCP_SYN | NJ_TCP_ACK, NULL, 0, 1460);
}

Test(perf_load_active, the_user_hears_of_everything)
{
    struct rig *r = rig_of(0, 1, 64);
    struct tester u = {0};
    struct nj_tcb *t = open_one(r, &u, 443);

    cr_assert(t);
    rig_settle(r);
    cr_expect_eq(u.n_news, 0, "no event yet");
    struct rig_peer p = answer(t);
    deliver(r, t);
    rig_settle(r);
    cr_expect_eq(u.events, NJ_TCP_EV_OPENED);
    cr_expect_eq(rig_count(r, NJ_C_tcp_connected), 1);
    p.snd_nxt++;
    rig_send(r, &p, "hello", 5);
    rig_settle(r);
    cr_expect(u.events & NJ_TCP_EV_READABLE);
    cr_expect(u.n_got == 5 && memcmp(u.got, "hello", 5) == 0);

    cr_assert(nj_tcp_send_copy(&r->s->tcp, t, (const uint8_t *)"hi", 2));
    rig_settle(r);
    p.rcv_nxt += 2;
    rig_ack(r, &p);
    rig_settle(r);
    cr_expect(u.events & NJ_TCP_EV_WRITABLE);
    rig_fin(r, &p);
    rig_settle(r);
    cr_expect(u.events & NJ_TCP_EV_PEER_FIN);
    cr_expect(!(u.events & NJ_TCP_EV_DEAD));
    rig_seg(r, &p, p.snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(r);
    cr_expect(u.events & NJ_TCP_EV_DEAD);
    cr_expect_null(u.tcb);
    cr_expect_eq(nj_tcp_conns(&r->s->tcp), 0);
    rig_free(r);
}

Test(perf_load_active, a_refused_connection_is_dead)
{
    struct rig *r = rig_of(0, 1, 64);
    struct tester u = {0};
    struct nj_tcb *t = open_one(r, &u, 443);

    struct rig_peer p = answer(t);
    rig_settle(r);
    rig_seg(r, &p, 0, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(r);
    cr_expect(u.events & NJ_TCP_EV_DEAD);
    cr_expect_eq(nj_tcp_conns(&r->s->tcp), 0);
    rig_free(r);
}

Test(perf_load_active, the_server_and_others_live_side_by_side)
{
    struct rig *r = rig_of(0, 1, 64);
    struct tester u = {0};
    struct nj_tcb *t = open_one(r, &u, 443);

    struct rig_peer *client = rig_connect_h2(r, 1000);
    rig_get(r, client, 1, "/index.html");
    deliver(r, t);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_status_2xx), 1);
    cr_expect_eq(u.events, NJ_TCP_EV_OPENED);
    nj_conns_drain(&r->s->conns, r->now);
    rig_run(r, 2 * NJ_SEC);
    cr_expect(client->got_fin, "GOAWAY and the end for the server's");
    cr_expect_not_null(u.tcb, "others are not the server's to end");
    struct tester late = {0};
    cr_expect_null(open_one(r, &late, 444), "not while draining");
    nj_tcp_abort_all(&r->s->tcp, r->now);
    rig_settle(r);
    cr_expect(u.events & NJ_TCP_EV_DEAD);
    rig_free(r);
}

/* Every reply that a device without RSS delivers to the right shard stays there. Another shard
 * finds the owner. */
Test(perf_load_active, replies_come_home)
{
    enum { N = 200 };
    static struct tester u[2][N];
    struct rig *r[2] = {rig_of(0, 2, N), rig_of(1, 2, N)};

    for (uint32_t i = 0; i < 2; i++) {
        for (uint16_t k = 0; k < N; k++) {
            struct nj_tcb *t = open_one(r[i], &u[i][k], (uint16_t)(80 + k % 4));
            cr_assert(t);
            deliver(r[i], t);
            rig_settle(r[i]);
            cr_assert_eq(u[i][k].events, NJ_TCP_EV_OPENED);
            uint32_t n_before = r[!i]->n_forwarded;
            deliver(r[!i], t);
            rig_settle(r[!i]);
            cr_assert_eq(r[!i]->n_forwarded, n_before + 1, "the other shard forwards it");
        }
        cr_expect_eq(rig_count(r[i], NJ_C_tcp_connected), N);
    }
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(rig_count(r[i], NJ_C_rx_steered_out), N, "only packets of the other shard");
        rig_free(r[i]);
    }
}

Test(perf_load_active, ports_run_out)
{
    enum { N_SHARDS = 64, N = 2048 };
    static struct tester u[N];
    struct rig *r = rig_of(5, N_SHARDS, N);
    uint32_t n = 0;

    while (n < N && open_one(r, &u[n], 80)) {
        n++;
        rig_step(r);
    }
    cr_expect_eq(n, NJ_ACTIVE_PORTS / N_SHARDS, "all that steer home: %u", n);
    cr_expect_not_null(open_one(r, &u[n], 81), "another place has ports of its own");

    uint16_t freed = u[7].tcb->flow.tuple.lport;
    nj_tcp_release(&r->s->tcp, u[7].tcb, r->now);
    rig_step(r);
    cr_assert_not_null(open_one(r, &u[7], 80));
    cr_expect_eq(u[7].tcb->flow.tuple.lport, freed, "the only one that is free");
    rig_free(r);
}

Test(perf_load_active, blocks_run_out)
{
    struct rig *r = rig_of(0, 1, 2);
    struct tester u[3] = {0};

    cr_expect(open_one(r, &u[0], 80) && open_one(r, &u[1], 80));
    cr_expect_null(open_one(r, &u[2], 80));
    rig_settle(r);
    rig_free(r);
}
