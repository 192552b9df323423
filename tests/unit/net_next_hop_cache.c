/* SPDX-License-Identifier: BSD-3-Clause */
/* The next hop that segments of one step share. The rig checks each frame, with its checksums, when
 * it is sent. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"
#include "telem/counters.h"

#define OTHER_IP (RIG_PEER_IP + 40)

static const struct rte_ether_addr second_mac = {{2, 0, 0, 0, 0, 0x22}};

static struct rig_peer *connect_from(struct rig *r, uint32_t ip, const struct rte_ether_addr *mac)
{
    rig_arp(r, true, ip, mac, RIG_IP);
    rig_settle(r);
    struct rig_peer *p = rig_syn_from(r, ip, 2000);
    rig_begin_h2(r, p);
    return p;
}

/* A peer at RIG_PEER_IP in the middle of a download. */
static struct rig_peer *downloading(struct rig *r)
{
    struct rig_peer *p = connect_from(r, RIG_PEER_IP, &rig_peer_mac);
    rig_get(r, p, 1, "/whole");
    rig_step(r);
    rig_step(r); /* the file was read */
    return p;
}

/* Frames that left since `from`, to this address: all of them go to `mac`, and no two in a row have
 * one identification. Returns how many they are. */
static uint32_t frames_to(const struct rig *r, uint64_t from, uint32_t ip,
                          const struct rte_ether_addr *mac)
{
    uint32_t n = 0;
    uint16_t last = 0;

    cr_assert_leq(r->n_out - from, RIG_OUT_MAX);
    for (uint64_t i = from; i < r->n_out; i++) {
        const struct rig_frame *f = &r->out[i % RIG_OUT_MAX];
        uint16_t ident = (uint16_t)(f->bytes[18] << 8 | f->bytes[19]);
        if (memcmp(f->bytes + 30, &(uint32_t){htonl(ip)}, 4) != 0)
            continue;
        cr_expect_eq(memcmp(f->bytes, mac, sizeof *mac), 0);
        cr_expect(n == 0 || ident != last);
        last = ident;
        n++;
    }
    return n;
}

static struct nj_neigh_entry *entry_of(struct rig *r, uint32_t ip)
{
    const struct nj_addr a = rig_addr(ip);

    for (uint32_t i = 0; i < NJ_NEIGH_MAX; i++)
        if (r->s->neigh.entry[i].state != NJ_NEIGH_FREE && nj_addr_eq(&r->s->neigh.entry[i].ip, &a))
            return &r->s->neigh.entry[i];
    cr_assert(false, "not known");
    abort();
}

/* The neighbour was probed without an answer: the next claim of its address is believed at once. */
static void make_silent(struct rig *r, uint32_t ip)
{
    struct nj_neigh_entry *e = entry_of(r, ip);
    e->state = NJ_NEIGH_PROBE;
    e->n_queries = 3;
    e->due_at = r->now + NJ_SEC;
}

Test(net_next_hop_cache, several_hosts_in_one_step)
{
    struct rig *r = rig_new();
    struct rig_peer *a = connect_from(r, RIG_PEER_IP, &rig_peer_mac);
    struct rig_peer *b = connect_from(r, OTHER_IP, &second_mac);

    rig_get(r, a, 1, "/whole");
    rig_get(r, b, 1, "/whole");
    rig_step(r);
    rig_step(r); /* the file was read */
    cr_expect_gt(frames_to(r, r->n_out - 20, RIG_PEER_IP, &rig_peer_mac), 5);
    cr_expect_gt(frames_to(r, r->n_out - 20, OTHER_IP, &second_mac), 5);
    rig_settle(r);
    cr_expect_gt(a->n_got, RIG_WHOLE);
    cr_expect_gt(b->n_got, RIG_WHOLE);
    rig_free(r);
}

Test(net_next_hop_cache, asked_for_in_each_step)
{
    struct rig *r = rig_new();

    downloading(r);
    cr_expect_gt(frames_to(r, r->n_out - 5, RIG_PEER_IP, &rig_peer_mac), 3);
    uint64_t before = r->n_out;
    make_silent(r, RIG_PEER_IP);
    rig_arp(r, true, RIG_PEER_IP, &second_mac, RIG_IP); /* it has moved */
    rig_step(r);
    cr_expect_gt(frames_to(r, before + 1, RIG_PEER_IP, &second_mac), 5);
    rig_free(r);
}

/* The neighbour moves between segments that are answered on arrival, and those that are sent later.
 */
Test(net_next_hop_cache, not_kept_while_packets_come)
{
    struct rig *r = rig_new();
    struct rig_peer *p = downloading(r);
    uint64_t before = r->n_out;

    rig_seg(r, p, p->snd_nxt + 10, NJ_TCP_ACK, "b", 1); /* a hole before it */
    rig_seg(r, p, p->snd_nxt + 20, NJ_TCP_ACK, "c", 1);
    rig_seg(r, p, p->snd_nxt + 30, NJ_TCP_ACK, "d", 1);
    make_silent(r, RIG_PEER_IP);
    rig_arp(r, true, RIG_PEER_IP, &second_mac, RIG_IP);
    rig_step(r);
    cr_expect_eq(memcmp(r->out[(before + 2) % RIG_OUT_MAX].bytes, &rig_peer_mac, 6), 0);
    cr_expect_gt(frames_to(r, before + 4, RIG_PEER_IP, &second_mac), 5);
    rig_free(r);
}

/* The peer's MAC address is unknown: waiting packets leave no entry in the cache. */
Test(net_next_hop_cache, neighbour_that_is_not_known)
{
    struct rig *r = rig_new();
    struct rig_peer *p = connect_from(r, RIG_PEER_IP, &rig_peer_mac);

    rig_get(r, p, 1, "/whole");
    rig_step(r);
    for (uint32_t i = 0; i < NJ_NEIGH_MAX; i++)
        r->s->neigh.entry[i].state = NJ_NEIGH_FREE;
    r->no_arp = true;
    uint64_t before = r->n_out;
    rig_step(r);
    cr_expect_eq(r->n_out, before + 1, "one question");
    cr_expect_eq(rig_arp_waiting(r), NJ_NEIGH_PENDING_MAX);
    r->no_arp = false;
    rig_run(r, 10 * NJ_SEC);
    cr_expect_gt(p->n_got, RIG_WHOLE);
    rig_free(r);
}

/* A peer that acknowledges nothing: the neighbour is probed at its known MAC address. */
Test(net_next_hop_cache, time_outs_make_it_ask)
{
    struct rig *r = rig_new();
    struct rig_peer *p = connect_from(r, RIG_PEER_IP, &rig_peer_mac);

    rig_run(r, 6 * NJ_SEC);
    p->manual = true;
    rig_get(r, p, 1, "/index.html");
    rig_step(r);
    rig_step(r);
    uint64_t before = r->n_out;
    cr_expect_eq(rig_count(r, NJ_C_neigh_probed), 0);
    rig_run(r, 2 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_neigh_probed), 1);
    uint32_t n_queries = 0;
    cr_assert_leq(r->n_out - before, RIG_OUT_MAX);
    for (uint64_t i = before; i < r->n_out; i++) {
        const struct rig_frame *f = &r->out[i % RIG_OUT_MAX];
        bool arp = memcmp(f->bytes + 12, "\x08\x06\0\1\x08\0\6\4\0\1", 10) == 0;
        n_queries += arp;
        cr_expect(!arp || memcmp(f->bytes, &rig_peer_mac, 6) == 0);
    }
    cr_expect_eq(n_queries, 1);
    rig_free(r);
}

/* Each acknowledgment of a peer restarts the neighbour's timer. */
Test(net_next_hop_cache, progress_confirms)
{
    struct rig *r = rig_new();
    struct rig_peer *p = connect_from(r, RIG_PEER_IP, &rig_peer_mac);
    nj_ns due = entry_of(r, RIG_PEER_IP)->due_at;

    rig_run(r, 6 * NJ_SEC);
    rig_get(r, p, 1, "/whole");
    rig_settle(r);
    cr_expect_gt(p->n_got, RIG_WHOLE);
    cr_expect_gt(entry_of(r, RIG_PEER_IP)->due_at, due + 5 * NJ_SEC);
    rig_free(r);
}
