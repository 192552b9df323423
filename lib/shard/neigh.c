/* SPDX-License-Identifier: BSD-3-Clause */
#include "shard/neigh.h"

#include "wire/emit.h"

#define TICK      (100 * NJ_MS)
#define ASK_EVERY (1 * NJ_SEC) /* RFC 1122 2.3.2.1: at most one question per second */
#define ASK_MAX   3
#define LIFE      (300 * NJ_SEC) /* then it is asked again while in use, or forgotten */
#define IN_USE    (60 * NJ_SEC)

void nj_neigh_init(struct nj_neigh *n, const struct nj_iface *iface, struct rte_mempool *mp,
                   struct nj_counters *counters, void (*send)(void *ctx, struct rte_mbuf *m),
                   void *ctx)
{
    memset(n, 0, sizeof *n);
    n->iface = iface;
    n->mp = mp;
    n->counters = counters;
    n->send = send;
    n->ctx = ctx;
}

static void drop_pending(struct nj_neigh *n, struct nj_neigh_entry *e, enum nj_counter why)
{
    for (unsigned i = 0; i < e->n_pending; i++) {
        rte_pktmbuf_free(e->pending[i]);
        nj_count(n->counters, why);
    }
    e->n_pending = 0;
}

void nj_neigh_fini(struct nj_neigh *n)
{
    for (unsigned i = 0; i < NJ_NEIGH_MAX; i++)
        drop_pending(n, &n->entry[i], NJ_C_drop_tx_down);
}

/* A set of the table: entries of one address are among these. */
#define WAYS 8u

static struct nj_neigh_entry *set_of(struct nj_neigh *n, const struct nj_addr *ip)
{
    uint32_t h = nj_addr_to_v4(ip) * 0x9e3779b1u;
    return &n->entry[(h >> 16) % (NJ_NEIGH_MAX / WAYS) * WAYS];
}

static struct nj_neigh_entry *find(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *set = set_of(n, ip);
    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].used && nj_addr_eq(&set[i].ip, ip))
            return &set[i];
    return NULL;
}

/* A new entry. In a full set the unresolved one goes first, then the one unused for longest; one
 * that was never sent to counts as that, however new it is: else strangers who ask for us would
 * push out the gateway. */
static struct nj_neigh_entry *make(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *set = set_of(n, ip), *e = &set[0];
    for (unsigned i = 1; i < WAYS && e->used; i++) {
        bool worse = !set[i].used || (e->resolved && !set[i].resolved) ||
                     (e->resolved == set[i].resolved && set[i].used_at < e->used_at);
        if (worse)
            e = &set[i];
    }
    if (e->used) {
        nj_count(n->counters, NJ_C_arp_evicted);
        drop_pending(n, e, NJ_C_drop_tx_arp_queue);
    }
    *e = (struct nj_neigh_entry){.ip = *ip, .used = true};
    return e;
}

static void send_arp(struct nj_neigh *n, bool request, const struct nj_addr *from,
                     const struct rte_ether_addr *dst, const struct rte_ether_addr *target_mac,
                     const struct nj_addr *target_ip)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(n->mp);
    if (!m) {
        nj_count(n->counters, NJ_C_mbuf_none);
        return;
    }
    nj_arp_build(m, request, &n->iface->mac, from, target_mac, target_ip);
    nj_eth_prepend(m, dst, &n->iface->mac, RTE_ETHER_TYPE_ARP);
    nj_count(n->counters, NJ_C_tx_made);
    n->send(n->ctx, m);
}

static const struct rte_ether_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/* A known neighbour is asked directly, an unknown one by broadcast (RFC 1122 2.3.2.1). */
static void ask(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool direct = e->resolved && e->n_asked < ASK_MAX - 1;
    const struct nj_addr *from = nj_iface_source(n->iface, &e->ip);
    if (from)
        send_arp(n, true, from, direct ? &e->mac : &broadcast, NULL, &e->ip);
    e->n_asked++;
    e->due_at = now + ASK_EVERY;
}

static void finish(struct nj_neigh *n, struct nj_neigh_entry *e, struct rte_mbuf *m)
{
    nj_eth_prepend(m, &e->mac, &n->iface->mac, RTE_ETHER_TYPE_IPV4);
    n->send(n->ctx, m);
}

void nj_neigh_output(struct nj_neigh *n, struct rte_mbuf *m, const struct nj_addr *ip, nj_ns now)
{
    struct nj_neigh_entry *e = find(n, ip);

    if (nj_likely(e && e->resolved)) {
        e->used_at = now;
        finish(n, e, m);
        return;
    }
    if (!e) {
        e = make(n, ip);
        e->used_at = now;
        ask(n, e, now);
    }
    if (e->n_pending == NJ_NEIGH_PENDING_MAX) {
        rte_pktmbuf_free(m);
        nj_count(n->counters, NJ_C_drop_tx_arp_queue);
        return;
    }
    e->pending[e->n_pending++] = m;
}

static void learn(struct nj_neigh *n, struct nj_neigh_entry *e, const struct rte_ether_addr *mac,
                  nj_ns now)
{
    e->mac = *mac;
    e->resolved = true;
    e->n_asked = 0;
    e->due_at = now + LIFE;
    nj_count(n->counters, NJ_C_arp_learned);
    for (unsigned i = 0; i < e->n_pending; i++)
        finish(n, e, e->pending[i]);
    e->n_pending = 0;
}

bool nj_neigh_arp(struct nj_neigh *n, const struct nj_packet *p, bool answer, nj_ns now)
{
    bool for_us = nj_iface_has(n->iface, &p->arp.target);
    bool asks_us = p->arp.request && for_us;
    bool usable =
        nj_ip_source_ok(n->iface, nj_addr_to_v4(&p->arp.ip)) && nj_ip_on_link(n->iface, &p->arp.ip);
    struct nj_neigh_entry *e = usable ? find(n, &p->arp.ip) : NULL;

    /* RFC 826: known senders are refreshed; a new one is added only when it asks for us, since it
     * is about to talk to us. Answers nobody asked for add nothing. */
    if (usable && !e && asks_us)
        e = make(n, &p->arp.ip);
    if (e)
        learn(n, e, &p->arp.mac, now);
    if (asks_us && answer)
        send_arp(n, false, &p->arp.target, &p->arp.mac, &p->arp.mac, &p->arp.ip);
    return e || (usable && for_us); /* an answer that another shard may wait for */
}

void nj_neigh_announce(struct nj_neigh *n)
{
    for (unsigned i = 0; i < n->iface->n_addrs; i++) {
        const struct nj_addr *own = &n->iface->addr[i].ip;
        if (nj_addr_is_v4(own))
            send_arp(n, true, own, &broadcast, NULL, own);
    }
}

void nj_neigh_tick(struct nj_neigh *n, nj_ns now)
{
    if (now < n->tick_at)
        return;
    n->tick_at = now + TICK;
    for (unsigned i = 0; i < NJ_NEIGH_MAX; i++) {
        struct nj_neigh_entry *e = &n->entry[i];
        if (!e->used || now < e->due_at)
            continue;
        bool wanted = !e->resolved || now - e->used_at < IN_USE;
        if (wanted && e->n_asked < ASK_MAX) {
            ask(n, e, now);
            continue;
        }
        drop_pending(n, e, NJ_C_drop_tx_arp_timeout);
        e->used = false;
    }
}
