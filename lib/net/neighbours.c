/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour cache: ARP (RFC 826, RFC 1122 2.3.2) and neighbour unreachability detection of IPv6
 * (RFC 4861 7.3). A set-associative table; claims of a new MAC address are verified first. */
#include "net/neighbours.h"

#include "wire/emit.h"
#include "wire/icmp6.h"
#include "wire/ip6.h"

#define TICK        (100 * NJ_MS)
#define ASK_EVERY   (1 * NJ_SEC)   /* RFC 1122 2.3.2.1: at most one request per second */
#define ASK_MAX     3              /* for IPv6, too: RFC 4861 10 */
#define LIFE        (300 * NJ_SEC) /* then it is probed if in use, or else removed */
#define IN_USE      (60 * NJ_SEC)
#define BUSY        (10 * NJ_SEC) /* recent use: an unsolicited entry may not replace it */
#define REACHABLE   (30 * NJ_SEC) /* RFC 4861 10, until a router says otherwise */
#define DELAY_FIRST (5 * NJ_SEC)

/* After a claim of a new MAC address the neighbour gets two requests at the known MAC address, so
 * that one lost packet does not decide. Without a reply the claim is adopted after one second.
 * Claims cause at most one probe per CLAIM_EVERY, so a failover takes at most two seconds. */
#define CLAIM_ASKS      2
#define CLAIM_ASK_EVERY (500 * NJ_MS)
#define CLAIM_EVERY     (1 * NJ_SEC)
/* A retransmission time-out of TCP starts a probe if the neighbour has been silent for this long.
 * Time-outs of remote peers probe the gateway, at this interval and with one packet. */
#define DOUBT_AFTER     (5 * NJ_SEC)

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

static bool is_v4(const struct nj_neigh_entry *e)
{
    return nj_addr_is_v4(&e->ip);
}

static bool resolved(const struct nj_neigh_entry *e)
{
    return e->state >= NJ_NEIGH_REACHABLE;
}

/* --- the table ----------------------------------------------------------------------------- */

/* Entries per set. An address maps to one set. */
#define WAYS 8u

static struct nj_neigh_entry *set_of(struct nj_neigh *n, const struct nj_addr *ip)
{
    uint32_t word[4];
    memcpy(word, ip->b, sizeof word);
    /* Neighbours mostly differ in the last byte, which affects only the highest bits. */
    uint64_t h = (word[0] ^ word[1] ^ word[2] ^ word[3]) * 0x9e3779b1u;
    return &n->entry[(h * (NJ_NEIGH_MAX / WAYS) >> 32) * WAYS];
}

static struct nj_neigh_entry *find(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *set = set_of(n, ip);
    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].state != NJ_NEIGH_FREE && nj_addr_eq(&set[i].ip, ip))
            return &set[i];
    return NULL;
}

/* Eviction order, lowest first. An entry without outgoing packets ranks low, however new it is:
 * otherwise unknown hosts could evict the gateway, or the pending resolution of it. */
static unsigned worth(const struct nj_neigh_entry *e)
{
    if (e->state == NJ_NEIGH_FREE)
        return 0;
    if (e->fixed)
        return 5;
    if (!resolved(e))
        return e->stranger ? 1 : 3;
    return e->used_at == 0 ? 2 : 4;
}

/* A free entry of the set, or the one with the lowest rank; among equals the least recently used.
 */
static struct nj_neigh_entry *worst_of_set(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *set = set_of(n, ip), *e = &set[0];
    for (unsigned i = 1; i < WAYS && e->state != NJ_NEIGH_FREE; i++)
        if (worth(&set[i]) < worth(e) ||
            (worth(&set[i]) == worth(e) && set[i].used_at < e->used_at))
            e = &set[i];
    return e;
}

/* The entry is no longer unsolicited. */
static void settle(struct nj_neigh *n, struct nj_neigh_entry *e)
{
    n->n_strangers -= e->stranger;
    e->stranger = false;
}

static struct nj_neigh_entry *make(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *e = worst_of_set(n, ip);

    if (e->state != NJ_NEIGH_FREE) {
        nj_count(n->counters, NJ_C_arp_evicted);
        drop_pending(n, e, NJ_C_drop_tx_arp_queue);
        settle(n, e);
    }
    *e = (struct nj_neigh_entry){.ip = *ip, .state = NJ_NEIGH_INCOMPLETE};
    return e;
}

/* Create an entry for an unverified address. It replaces neither a recently used entry nor another
 * unresolved one, whose reply may be in transit. NULL: no such entry, or the limit is reached. */
static struct nj_neigh_entry *make_stranger(struct nj_neigh *n, const struct nj_addr *ip, nj_ns now)
{
    const struct nj_neigh_entry *e = worst_of_set(n, ip);
    bool idle = resolved(e) && now - e->used_at >= BUSY && now - e->heard_at >= BUSY;

    if ((e->state != NJ_NEIGH_FREE && !idle) || n->n_strangers == NJ_NEIGH_STRANGERS_MAX ||
        !nj_rate_ok(&n->stranger_rate, NJ_NEIGH_STRANGERS_PER_S, now))
        return NULL;
    struct nj_neigh_entry *made = make(n, ip);
    made->stranger = true;
    n->n_strangers++;
    return made;
}

_Static_assert(NJ_NEIGH_FIXED_MAX < WAYS, "a set has room for other entries");

static void fix(struct nj_neigh *n, const struct nj_iface_neighbour *known)
{
    struct nj_neigh_entry *e = make(n, &known->ip);

    e->fixed = true;
    e->mac = known->mac;
    e->state = NJ_NEIGH_REACHABLE;
    e->due_at = NJ_NEVER;
}

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
    n->reachable = REACHABLE;
    n->retrans = ASK_EVERY;
    for (unsigned i = 0; i < iface->n_fixed; i++)
        fix(n, &iface->fixed[i]);
}

/* --- requests ----------------------------------------------------------------------------- */

struct rte_mbuf *nj_neigh_mbuf(struct nj_neigh *n)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(n->mp);
    if (!m)
        nj_count(n->counters, NJ_C_mbuf_none);
    return m;
}

static void send_made(struct nj_neigh *n, struct rte_mbuf *m, const struct rte_ether_addr *dst,
                      uint16_t type)
{
    nj_link_prepend(m, dst, n->iface, type);
    nj_count(n->counters, NJ_C_tx_made);
    n->send(n->ctx, m);
}

void nj_neigh_send6(struct nj_neigh *n, struct rte_mbuf *m, const struct rte_ether_addr *dst)
{
    send_made(n, m, dst, RTE_ETHER_TYPE_IPV6);
}

static void send_arp(struct nj_neigh *n, bool request, const struct nj_addr *from,
                     const struct rte_ether_addr *dst, const struct rte_ether_addr *target_mac,
                     const struct nj_addr *target_ip)
{
    struct rte_mbuf *m = nj_neigh_mbuf(n);
    if (!m)
        return;
    nj_arp_build(m, request, &n->iface->mac, from, target_mac, target_ip);
    send_made(n, m, dst, RTE_ETHER_TYPE_ARP);
}

static const struct rte_ether_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/* Unicast to a known MAC address, else multicast (RFC 4861 7.2.2, 7.3.3). */
static void solicit(struct nj_neigh *n, const struct nj_neigh_entry *e, const struct nj_addr *from)
{
    struct nj_addr group = nj_ip6_solicited_node(&e->ip);
    const struct rte_ether_addr group_mac = nj_ip6_multicast_mac(&group);
    bool direct = resolved(e);
    struct rte_mbuf *m = nj_neigh_mbuf(n);

    if (!m)
        return;
    nj_nd_solicit_build(m, from, direct ? &e->ip : &group, &e->ip, &n->iface->mac, NULL);
    nj_neigh_send6(n, m, direct ? &e->mac : &group_mac);
}

static void ask(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    const struct nj_addr *from = nj_iface_source(n->iface, &e->ip);

    if (from && !is_v4(e)) {
        solicit(n, e, from);
    } else if (from) {
        /* Unicast; the last request is broadcast (RFC 1122 2.3.2.1). */
        bool direct = resolved(e) && e->n_asked < ASK_MAX - 1;
        send_arp(n, true, from, direct ? &e->mac : &broadcast, NULL, &e->ip);
    }
    e->n_asked++;
    e->due_at = now + (e->claimed ? CLAIM_ASK_EVERY : is_v4(e) ? ASK_EVERY : n->retrans);
}

/* Probe the neighbour. Meanwhile packets still use the known MAC address. */
static void doubt(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    e->state = NJ_NEIGH_PROBE;
    e->n_asked = 0;
    ask(n, e, now);
}

/* --- replies ------------------------------------------------------------------------------- */

static void finish(struct nj_neigh *n, struct nj_neigh_entry *e, struct rte_mbuf *m)
{
    nj_link_prepend(m, &e->mac, n->iface, is_v4(e) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
    n->send(n->ctx, m);
}

/* The MAC address is known: set the state and send the pending packets. */
static void enter(struct nj_neigh *n, struct nj_neigh_entry *e, enum nj_neigh_state state,
                  nj_ns now)
{
    e->state = state;
    e->n_asked = 0;
    e->claimed = false;
    if (state == NJ_NEIGH_REACHABLE)
        e->due_at = now + (is_v4(e) ? LIFE : n->reachable);
    else if (state == NJ_NEIGH_STALE)
        e->due_at = now + LIFE;
    else
        e->due_at = now + DELAY_FIRST;
    for (unsigned i = 0; i < e->n_pending; i++)
        finish(n, e, e->pending[i]);
    e->n_pending = 0;
}

static void learn(struct nj_neigh *n, struct nj_neigh_entry *e, const struct rte_ether_addr *mac,
                  enum nj_neigh_state state, nj_ns now)
{
    e->mac = *mac;
    e->heard_at = now;
    settle(n, e);
    nj_count(n->counters, NJ_C_arp_learned);
    enter(n, e, state, now);
}

static bool is_known_at(const struct nj_neigh_entry *e, const struct rte_ether_addr *mac)
{
    return resolved(e) && rte_is_same_ether_addr(&e->mac, mac);
}

static void tell_lost(struct nj_neigh *n, const struct nj_addr *ip, bool silent, nj_ns now)
{
    if (n->lost && !nj_addr_is_v4(ip))
        n->lost(n->ctx, ip, silent, now);
}

/* No reply from the old MAC address: use the new one, and probe it. */
static void move(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool resigned = e->router && !e->claim_router;

    nj_count(n->counters, NJ_C_neigh_moved);
    e->mac = e->claim;
    e->router = e->claim_router;
    e->claimed = false;
    doubt(n, e, now);
    if (resigned)
        tell_lost(n, &e->ip, false, now);
}

/* A message gives a known neighbour another MAC address. RFC 826 and RFC 4861 7.2.5 accept it at
 * once; this table probes the old address first (docs/adr/0013). Meanwhile the first claim is kept.
 * True if the other shards need the message. */
static bool claim(struct nj_neigh *n, struct nj_neigh_entry *e, const struct rte_ether_addr *mac,
                  bool router, nj_ns now)
{
    nj_count(n->counters, NJ_C_neigh_claimed);
    if (e->fixed || e->claimed)
        return false;
    e->claimed = true;
    e->claim = *mac;
    e->claim_router = router;
    if (e->state != NJ_NEIGH_PROBE) {
        e->state = NJ_NEIGH_PROBE;
        e->n_asked = 0;
        e->due_at = e->heard_at + CLAIM_EVERY;
        if (now >= e->due_at)
            ask(n, e, now);
    } else if (e->n_asked > CLAIM_ASKS) { /* enough requests without a reply */
        move(n, e, now);
    } else if (e->due_at > now + CLAIM_ASK_EVERY) {
        e->due_at = now + CLAIM_ASK_EVERY;
    }
    return true;
}

static void drop(struct nj_neigh *n, struct rte_mbuf *m, enum nj_counter why)
{
    rte_pktmbuf_free(m);
    nj_count(n->counters, why);
}

/* Apply a reachability hint of TCP (RFC 4861 7.3.1). It does not end a probe: a peer can forge
 * progress by ACKs of data that never arrived. */
static void take_word(struct nj_neigh *n, struct nj_neigh_entry *e, enum nj_neigh_why why,
                      nj_ns now)
{
    if (e->fixed || e->state == NJ_NEIGH_PROBE)
        return;
    if (why == NJ_NEIGH_PROVEN) {
        enter(n, e, NJ_NEIGH_REACHABLE, now);
    } else if (why == NJ_NEIGH_DOUBTED && now - e->heard_at >= DOUBT_AFTER) {
        nj_count(n->counters, NJ_C_neigh_doubted);
        doubt(n, e, now);
    }
}

void nj_neigh_output(struct nj_neigh *n, struct rte_mbuf *m, const struct nj_addr *ip,
                     enum nj_neigh_why why, nj_ns now)
{
    struct nj_neigh_entry *e = find(n, ip);
    bool new = !e;

    if (new &&why == NJ_NEIGH_REPLY && !(e = make_stranger(n, ip, now))) {
        drop(n, m, NJ_C_drop_tx_stranger);
        return;
    }
    if (new && !e)
        e = make(n, ip);
    if (why != NJ_NEIGH_REPLY) { /* a reply must not rank an entry as high as the gateway */
        settle(n, e);
        e->used_at = now;
    }
    if (nj_likely(resolved(e))) {
        take_word(n, e, why, now);
        if (e->state == NJ_NEIGH_STALE)
            enter(n, e, NJ_NEIGH_DELAY, now);
        finish(n, e, m);
        return;
    }
    if (new)
        ask(n, e, now);
    if (e->n_pending == NJ_NEIGH_PENDING_MAX) {
        drop(n, m, NJ_C_drop_tx_arp_queue);
        return;
    }
    e->pending[e->n_pending++] = m;
}

/* True if the other shards need the message. */
static bool take_arp(struct nj_neigh *n, struct nj_neigh_entry *e, const struct rte_ether_addr *mac,
                     nj_ns now)
{
    if (resolved(e) && !is_known_at(e, mac))
        return claim(n, e, mac, false, now);
    if (!e->fixed)
        learn(n, e, mac, NJ_NEIGH_REACHABLE, now);
    return true;
}

bool nj_neigh_arp(struct nj_neigh *n, const struct nj_packet *p, bool answer, nj_ns now)
{
    bool for_us = nj_iface_has(n->iface, &p->arp.target);
    bool asks_us = p->arp.request && for_us;
    bool usable =
        nj_ip_source_ok(n->iface, nj_addr_to_v4(&p->arp.ip)) && nj_ip_on_link(n->iface, &p->arp.ip);
    struct nj_neigh_entry *e = usable ? find(n, &p->arp.ip) : NULL;

    /* RFC 826: refresh a known sender; add a new one only if it requests our address, because it is
     * about to send to us. Unsolicited replies add nothing. */
    if (usable && !e && asks_us)
        e = make(n, &p->arp.ip);
    bool news = e && take_arp(n, e, &p->arp.mac, now);
    if (asks_us && answer)
        send_arp(n, false, &p->arp.target, &p->arp.mac, &p->arp.mac, &p->arp.ip);
    /* A reply that another shard may wait for, or a neighbour's new MAC address (RFC 5227 3). */
    bool gratuitous = nj_addr_eq(&p->arp.ip, &p->arp.target);
    return e ? news : usable && (for_us || gratuitous);
}

bool nj_neigh_heard(struct nj_neigh *n, const struct nj_addr *ip, const struct rte_ether_addr *mac,
                    bool router, nj_ns now)
{
    struct nj_neigh_entry *e = find(n, ip);

    if (!e)
        e = make(n, ip);
    if (resolved(e) && !is_known_at(e, mac))
        return claim(n, e, mac, e->router || router, now);
    e->router |= router;
    if (!resolved(e)) /* only one direction is proven */
        learn(n, e, mac, NJ_NEIGH_STALE, now);
    return true;
}

/* RFC 4861 7.2.5 for an entry with a known MAC address, except that a new MAC address is a claim.
 */
static bool update(struct nj_neigh *n, struct nj_neigh_entry *e, const struct nj_nd *nd, nj_ns now)
{
    bool same = !nd->has_mac || is_known_at(e, &nd->mac);

    if (!same && nd->override)
        return claim(n, e, &nd->mac, nd->router, now);
    if (!same) { /* STALE, with the known MAC address */
        if (e->state == NJ_NEIGH_REACHABLE && !e->fixed)
            enter(n, e, NJ_NEIGH_STALE, now);
        return true;
    }
    if (nd->solicited && !e->fixed)
        learn(n, e, &e->mac, NJ_NEIGH_REACHABLE, now);
    if (e->router && !nd->router)
        tell_lost(n, &e->ip, false, now);
    e->router = nd->router;
    return true;
}

bool nj_neigh_advert(struct nj_neigh *n, const struct nj_nd *nd, nj_ns now)
{
    struct nj_neigh_entry *e = find(n, &nd->target);

    if (!e)
        return true; /* not solicited by this shard (RFC 4861 7.2.5), perhaps by another */
    if (resolved(e))
        return update(n, e, nd, now);
    if (nd->has_mac) {
        e->router = nd->router;
        learn(n, e, &nd->mac, nd->solicited ? NJ_NEIGH_REACHABLE : NJ_NEIGH_STALE, now);
    }
    return true;
}

void nj_neigh_announce(struct nj_neigh *n)
{
    for (unsigned i = 0; i < n->iface->n_addrs; i++) {
        const struct nj_addr *own = &n->iface->addr[i].ip;
        if (nj_addr_is_v4(own))
            send_arp(n, true, own, &broadcast, NULL, own);
    }
}

/* --- time ---------------------------------------------------------------------------------- */

static void forget(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool failed = e->state == NJ_NEIGH_INCOMPLETE || e->state == NJ_NEIGH_PROBE;
    const struct nj_addr ip = e->ip;

    drop_pending(n, e, NJ_C_drop_tx_arp_timeout);
    settle(n, e);
    e->state = NJ_NEIGH_FREE;
    if (failed)
        tell_lost(n, &ip, true, now);
}

/* The timer of the entry's state has expired. */
static void due(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool in_use = now - e->used_at < IN_USE;

    switch (e->state) {
    case NJ_NEIGH_REACHABLE:
        if (!is_v4(e)) {
            enter(n, e, NJ_NEIGH_STALE, now);
            return;
        }
        if (!in_use)
            break;
        doubt(n, e, now);
        return;
    case NJ_NEIGH_DELAY:
        doubt(n, e, now);
        return;
    case NJ_NEIGH_INCOMPLETE:
    case NJ_NEIGH_PROBE:
        if (e->claimed && e->n_asked >= CLAIM_ASKS) {
            move(n, e, now);
            return;
        }
        /* An unused IPv4 neighbour is removed, as it would be without the probe. */
        if (e->claimed || (e->n_asked < ASK_MAX && (!is_v4(e) || in_use || !resolved(e)))) {
            ask(n, e, now);
            return;
        }
        break;
    default: /* STALE: not used for a long time */
        break;
    }
    forget(n, e, now);
}

void nj_neigh_tick(struct nj_neigh *n, nj_ns now)
{
    if (now < n->tick_at)
        return;
    n->tick_at = now + TICK;
    for (unsigned i = 0; i < NJ_NEIGH_MAX; i++)
        if (n->entry[i].state != NJ_NEIGH_FREE && now >= n->entry[i].due_at)
            due(n, &n->entry[i], now);
}
