/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour cache: ARP (RFC 826, RFC 1122 2.3.2) and neighbour unreachability detection of IPv6
 * (RFC 4861 7.3). A set-associative table; claims of a new MAC address are verified first. */
#include "net/neighbours.h"

#include "telem/counters_packet.h"
#include "wire/emit.h"
#include "wire/icmp6.h"
#include "wire/ip6.h"

#define TICK                   (100 * NJ_MS)
#define QUERY_INTERVAL         (1 * NJ_SEC)   /* RFC 1122 2.3.2.1: at most one request per second */
#define QUERIES_MAX            3              /* for IPv6, too: RFC 4861 10 */
#define ENTRY_LIFETIME         (300 * NJ_SEC) /* then it is probed if in use, or else removed */
#define IN_USE_TIME            (60 * NJ_SEC)
#define BUSY_TIME              (10 * NJ_SEC) /* no unsolicited entry may replace one used since */
#define DEFEND_INTERVAL        (10 * NJ_SEC) /* RFC 5227 1.1, 2.4 (c) */
#define REACHABLE              (30 * NJ_SEC) /* RFC 4861 10, until a router says otherwise */
#define DELAY_FIRST_PROBE_TIME (5 * NJ_SEC)

/* After a claim of a new MAC address the neighbour gets two requests at the known MAC address, so
 * that one lost packet does not decide. Without a reply the claim is adopted after one second.
 * Claims cause at most one probe per CLAIM_PROBE_INTERVAL, so a failover takes at most two seconds.
 */
#define CLAIM_QUERIES        2
#define CLAIM_QUERY_INTERVAL (500 * NJ_MS)
#define CLAIM_PROBE_INTERVAL (1 * NJ_SEC)
/* A retransmission time-out of TCP starts a probe if the neighbour has been silent for this long.
 * Time-outs of remote peers probe the gateway, at this interval and with one packet. */
#define SUSPECT_AFTER        (5 * NJ_SEC)

static void drop_pending(struct nj_neigh *n, struct nj_neigh_entry *e, nj_counter why)
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

static bool is_resolved(const struct nj_neigh_entry *e)
{
    return e->state >= NJ_NEIGH_REACHABLE;
}

/* --- the table ----------------------------------------------------------------------------- */

/* Each family has a half of the table. */
#define HALF (NJ_NEIGH_MAX / 2)

static struct nj_neigh_entry *half_of(struct nj_neigh *n, const struct nj_addr *ip)
{
    return &n->entry[nj_addr_is_v4(ip) ? 0 : HALF];
}

/* Entries per set. An address maps to one set. */
#define SET_WAYS 8u

static struct nj_neigh_entry *set_of(struct nj_neigh *n, const struct nj_addr *ip)
{
    uint32_t word[4];
    memcpy(word, ip->b, sizeof word);
    bool v4 = (word[0] | word[1] | (word[2] ^ RTE_BE32(0xffff))) == 0; /* nj_addr_is_v4() */
    /* Neighbours mostly differ in the last byte, which affects only the highest bits. */
    uint64_t h = (word[0] ^ word[1] ^ word[2] ^ word[3]) * 0x9e3779b1u;
    return &n->entry[((h * (HALF / SET_WAYS) >> 32) + (v4 ? 0 : HALF / SET_WAYS)) * SET_WAYS];
}

static struct nj_neigh_entry *find_entry(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *set = set_of(n, ip);
    for (unsigned i = 0; i < SET_WAYS; i++)
        if (set[i].state != NJ_NEIGH_FREE && nj_addr_eq(&set[i].ip, ip))
            return &set[i];
    return NULL;
}

/* Eviction order, lowest first. RANK_NEVER_USED: a message of the neighbour made the entry, and the
 * shard has sent it nothing but replies. Anybody can send such messages, so these entries rank
 * lowest, however new they are. Otherwise unknown hosts could evict the gateway, or a pending
 * resolution.
 */
enum rank { RANK_FREE, RANK_NEVER_USED, RANK_UNSOLICITED, RANK_WANTED, RANK_USED, RANK_FIXED };

static enum rank eviction_rank(const struct nj_neigh_entry *e)
{
    if (e->state == NJ_NEIGH_FREE)
        return RANK_FREE;
    if (e->fixed)
        return RANK_FIXED;
    if (!is_resolved(e))
        return e->is_unsolicited ? RANK_UNSOLICITED : RANK_WANTED;
    return e->used_at == 0 ? RANK_NEVER_USED : RANK_USED;
}

/* Is `a` to be evicted before `b`? Among equals the least recently used one is, or heard. */
static bool is_evicted_before(const struct nj_neigh_entry *a, const struct nj_neigh_entry *b)
{
    enum rank of_a = eviction_rank(a), of_b = eviction_rank(b);

    if (of_a != of_b)
        return of_a < of_b;
    return a->used_at != b->used_at ? a->used_at < b->used_at : a->heard_at < b->heard_at;
}

/* A free entry of the set, or the one to be evicted. */
static struct nj_neigh_entry *eviction_victim(struct nj_neigh *n, const struct nj_addr *ip)
{
    struct nj_neigh_entry *set = set_of(n, ip), *e = &set[0];
    for (unsigned i = 1; i < SET_WAYS && e->state != NJ_NEIGH_FREE; i++)
        if (is_evicted_before(&set[i], e))
            e = &set[i];
    return e;
}

/* The entry is no longer unsolicited. */
static void clear_unsolicited(struct nj_neigh *n, struct nj_neigh_entry *e)
{
    if (nj_likely(!e->is_unsolicited))
        return;
    n->unsolicited[!is_v4(e)].n--;
    e->is_unsolicited = false;
}

static void evict(struct nj_neigh *n, struct nj_neigh_entry *e)
{
    nj_count(n->counters, NJ_C_arp_evicted);
    drop_pending(n, e, NJ_C_drop_tx_arp_queue);
    clear_unsolicited(n, e);
    e->state = NJ_NEIGH_FREE;
}

static __rte_noinline struct nj_neigh_entry *make_neigh_entry(struct nj_neigh *n,
                                                              const struct nj_addr *ip, nj_ns now)
{
    struct nj_neigh_entry *e = eviction_victim(n, ip);

    if (e->state != NJ_NEIGH_FREE)
        evict(n, e);
    *e = (struct nj_neigh_entry){.ip = *ip, .state = NJ_NEIGH_INCOMPLETE, .heard_at = now};
    return e;
}

/* May an unsolicited entry replace this one? Not one that was used recently, nor an unresolved one
 * whose reply may be in transit. */
static bool is_replaceable(const struct nj_neigh_entry *e, nj_ns now)
{
    switch (eviction_rank(e)) {
    case RANK_FREE:
    case RANK_NEVER_USED:
        return true;
    case RANK_UNSOLICITED:
        return now - e->heard_at >= NJ_NEIGH_REPLY_WAIT;
    case RANK_USED:
        return now - e->used_at >= BUSY_TIME && now - e->heard_at >= BUSY_TIME;
    case RANK_WANTED:
    case RANK_FIXED:
        break;
    }
    return false;
}

/* The limit of unsolicited entries is reached: evict the one of this family that was made first.
 * False: its reply may be in transit. */
static bool evict_oldest_unsolicited(struct nj_neigh *n, const struct nj_addr *ip, nj_ns now)
{
    struct nj_neigh_entry *half = half_of(n, ip), *oldest = NULL;

    for (unsigned i = 0; i < HALF; i++)
        if (half[i].is_unsolicited && (!oldest || half[i].heard_at < oldest->heard_at))
            oldest = &half[i];
    if (!oldest || !is_replaceable(oldest, now))
        return false;
    evict(n, oldest);
    return true;
}

/* Take a token for one more resolution. Tokens come evenly, not once per second: a flood must not
 * take them each time just before a peer that repeats its SYN after whole seconds. */
static bool take_token(nj_ns *full_at, nj_ns now)
{
    nj_ns at = *full_at > now ? *full_at : now;

    if (at - now > NJ_SEC - NJ_SEC / NJ_NEIGH_UNSOLICITED_PER_S)
        return false;
    *full_at = at + NJ_SEC / NJ_NEIGH_UNSOLICITED_PER_S;
    return true;
}

/* Create an entry for an unverified address. NULL: no entry may be replaced, or the limit is
 * reached. */
static __rte_noinline struct nj_neigh_entry *add_unsolicited(struct nj_neigh *n,
                                                             const struct nj_addr *ip, nj_ns now)
{
    unsigned family = !nj_addr_is_v4(ip);
    const struct nj_neigh_entry *e = eviction_victim(n, ip);
    bool full = n->unsolicited[family].n == NJ_NEIGH_UNSOLICITED_MAX && !e->is_unsolicited;

    if (!is_replaceable(e, now) || !take_token(&n->unsolicited[family].full_at, now) ||
        (full && !evict_oldest_unsolicited(n, ip, now)))
        return NULL;
    struct nj_neigh_entry *made = make_neigh_entry(n, ip, now);
    made->is_unsolicited = true;
    n->unsolicited[family].n++;
    return made;
}

/* Create an entry for the sender of a message, which anybody can send. NULL: no entry may be
 * replaced. Reply waits are not respected: the new entry ranks below those that wait, so a flood of
 * messages ends one of a set at most. */
static struct nj_neigh_entry *add_from_message(struct nj_neigh *n, const struct nj_addr *ip,
                                               nj_ns now)
{
    const struct nj_neigh_entry *e = eviction_victim(n, ip);

    if (eviction_rank(e) != RANK_UNSOLICITED && !is_replaceable(e, now))
        return NULL;
    return make_neigh_entry(n, ip, now);
}

_Static_assert(NJ_NEIGH_FIXED_MAX < SET_WAYS, "a set has room for other entries");

static void add_static(struct nj_neigh *n, const struct nj_iface_neighbour *known)
{
    struct nj_neigh_entry *e = make_neigh_entry(n, &known->ip, 0);

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
    n->retrans = QUERY_INTERVAL;
    for (unsigned i = 0; i < iface->n_fixed; i++)
        add_static(n, &iface->fixed[i]);
}

/* --- requests ----------------------------------------------------------------------------- */

struct rte_mbuf *nj_neigh_alloc_mbuf(struct nj_neigh *n)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(n->mp);
    if (!m)
        nj_count(n->counters, NJ_C_mbuf_none);
    return m;
}

static void send_own_frame(struct nj_neigh *n, struct rte_mbuf *m, const struct rte_ether_addr *dst,
                           uint16_t type)
{
    nj_eth_prepend_from_iface(m, dst, n->iface, type);
    nj_count(n->counters, NJ_C_tx_made);
    n->send(n->ctx, m);
}

void nj_neigh_send_ip6(struct nj_neigh *n, struct rte_mbuf *m, const struct rte_ether_addr *dst)
{
    send_own_frame(n, m, dst, RTE_ETHER_TYPE_IPV6);
}

static void send_arp(struct nj_neigh *n, bool request, const struct nj_addr *from,
                     const struct rte_ether_addr *dst, const struct rte_ether_addr *target_mac,
                     const struct nj_addr *target_ip)
{
    struct rte_mbuf *m = nj_neigh_alloc_mbuf(n);
    if (!m)
        return;
    nj_arp_build(m, request, &n->iface->mac, from, target_mac, target_ip);
    send_own_frame(n, m, dst, RTE_ETHER_TYPE_ARP);
}

static const struct rte_ether_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/* Unicast to a known MAC address, else multicast (RFC 4861 7.2.2, 7.3.3). */
static void send_solicit(struct nj_neigh *n, const struct nj_neigh_entry *e,
                         const struct nj_addr *from)
{
    struct nj_addr group = nj_ip6_solicited_node(&e->ip);
    const struct rte_ether_addr group_mac = nj_ip6_multicast_mac(&group);
    bool direct = is_resolved(e);
    struct rte_mbuf *m = nj_neigh_alloc_mbuf(n);

    if (!m)
        return;
    nj_nd_solicit_build(m, from, direct ? &e->ip : &group, &e->ip, &n->iface->mac, NULL);
    nj_neigh_send_ip6(n, m, direct ? &e->mac : &group_mac);
}

static void send_query(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    const struct nj_addr *from = nj_iface_source_for(n->iface, &e->ip);

    if (from && !is_v4(e)) {
        send_solicit(n, e, from);
    } else if (from) {
        /* Unicast; the last request is broadcast (RFC 1122 2.3.2.1). */
        bool direct = is_resolved(e) && e->n_queries < QUERIES_MAX - 1;
        send_arp(n, true, from, direct ? &e->mac : &broadcast, NULL, &e->ip);
    }
    e->n_queries++;
    e->due_at = now + (e->has_claim ? CLAIM_QUERY_INTERVAL
                       : is_v4(e)   ? QUERY_INTERVAL
                                    : n->retrans);
}

/* Probe the neighbour. Meanwhile packets still use the known MAC address. */
static void begin_probe(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    e->state = NJ_NEIGH_PROBE;
    e->n_queries = 0;
    send_query(n, e, now);
}

/* --- replies ------------------------------------------------------------------------------- */

static void send_resolved(struct nj_neigh *n, struct nj_neigh_entry *e, struct rte_mbuf *m)
{
    nj_eth_prepend_from_iface(m, &e->mac, n->iface,
                              is_v4(e) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
    n->send(n->ctx, m);
}

/* The MAC address is known: set the state and send the pending packets. */
static void enter_state(struct nj_neigh *n, struct nj_neigh_entry *e, enum nj_neigh_state state,
                        nj_ns now)
{
    e->state = state;
    e->n_queries = 0;
    e->has_claim = false;
    if (state == NJ_NEIGH_REACHABLE)
        e->due_at = now + (is_v4(e) ? ENTRY_LIFETIME : n->reachable);
    else if (state == NJ_NEIGH_STALE)
        e->due_at = now + ENTRY_LIFETIME;
    else
        e->due_at = now + DELAY_FIRST_PROBE_TIME;
    for (unsigned i = 0; i < e->n_pending; i++)
        send_resolved(n, e, e->pending[i]);
    e->n_pending = 0;
}

static void learn_mac(struct nj_neigh *n, struct nj_neigh_entry *e,
                      const struct rte_ether_addr *mac, enum nj_neigh_state state, nj_ns now)
{
    e->mac = *mac;
    e->heard_at = now;
    clear_unsolicited(n, e);
    nj_count(n->counters, NJ_C_arp_learned);
    enter_state(n, e, state, now);
}

static bool is_known_at(const struct nj_neigh_entry *e, const struct rte_ether_addr *mac)
{
    return is_resolved(e) && rte_is_same_ether_addr(&e->mac, mac);
}

static void report_lost(struct nj_neigh *n, const struct nj_addr *ip, bool silent, nj_ns now)
{
    if (n->lost && !nj_addr_is_v4(ip))
        n->lost(n->ctx, ip, silent, now);
}

/* No reply from the old MAC address: use the new one, and probe it. */
static void adopt_claim(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool resigned = e->router && !e->claim_is_router;

    nj_count(n->counters, NJ_C_neigh_moved);
    e->mac = e->claim;
    e->router = e->claim_is_router;
    e->has_claim = false;
    begin_probe(n, e, now);
    if (resigned)
        report_lost(n, &e->ip, false, now);
}

/* A message gives a known neighbour another MAC address. RFC 826 and RFC 4861 7.2.5 accept it at
 * once; this table probes the old address first (docs/adr/0013). Meanwhile the first claim is kept.
 * True if the other shards need the message. */
static bool check_claim(struct nj_neigh *n, struct nj_neigh_entry *e,
                        const struct rte_ether_addr *mac, bool router, nj_ns now)
{
    nj_count(n->counters, NJ_C_neigh_claimed);
    if (e->fixed || e->has_claim)
        return false;
    e->has_claim = true;
    e->claim = *mac;
    e->claim_is_router = router;
    if (e->state != NJ_NEIGH_PROBE) {
        e->state = NJ_NEIGH_PROBE;
        e->n_queries = 0;
        e->due_at = e->heard_at + CLAIM_PROBE_INTERVAL;
        if (now >= e->due_at)
            send_query(n, e, now);
    } else if (e->n_queries > CLAIM_QUERIES) { /* enough requests without a reply */
        adopt_claim(n, e, now);
    } else if (e->due_at > now + CLAIM_QUERY_INTERVAL) {
        e->due_at = now + CLAIM_QUERY_INTERVAL;
    }
    return true;
}

static void drop_packet(struct nj_neigh *n, struct rte_mbuf *m, nj_counter why)
{
    rte_pktmbuf_free(m);
    nj_count(n->counters, why);
}

/* Apply a reachability hint of TCP (RFC 4861 7.3.1). It does not end a probe: a peer can forge
 * progress by ACKs of data that never arrived. */
static void apply_tcp_hint(struct nj_neigh *n, struct nj_neigh_entry *e, enum nj_neigh_reason why,
                           nj_ns now)
{
    if (e->fixed || e->state == NJ_NEIGH_PROBE)
        return;
    if (why == NJ_NEIGH_CONFIRMED) {
        enter_state(n, e, NJ_NEIGH_REACHABLE, now);
    } else if (why == NJ_NEIGH_SUSPECT && now - e->heard_at >= SUSPECT_AFTER) {
        nj_count(n->counters, NJ_C_neigh_probed);
        begin_probe(n, e, now);
    }
}

void nj_neigh_output(struct nj_neigh *n, struct rte_mbuf *m, const struct nj_addr *ip,
                     enum nj_neigh_reason why, nj_ns now)
{
    struct nj_neigh_entry *e = find_entry(n, ip);
    bool new = !e;

    if (new &&why == NJ_NEIGH_REPLY && !(e = add_unsolicited(n, ip, now))) {
        drop_packet(n, m, NJ_C_drop_tx_unsolicited);
        return;
    }
    if (new && !e)
        e = make_neigh_entry(n, ip, now);
    if (why != NJ_NEIGH_REPLY) { /* a reply must not rank an entry as high as the gateway */
        clear_unsolicited(n, e);
        e->used_at = now;
    }
    if (nj_likely(is_resolved(e))) {
        apply_tcp_hint(n, e, why, now);
        if (e->state == NJ_NEIGH_STALE)
            enter_state(n, e, NJ_NEIGH_DELAY, now);
        send_resolved(n, e, m);
        return;
    }
    if (new)
        send_query(n, e, now);
    if (e->n_pending == NJ_NEIGH_PENDING_MAX) {
        drop_packet(n, m, NJ_C_drop_tx_arp_queue);
        return;
    }
    e->pending[e->n_pending++] = m;
}

/* True if the other shards need the message. */
static bool update_from_arp(struct nj_neigh *n, struct nj_neigh_entry *e,
                            const struct rte_ether_addr *mac, nj_ns now)
{
    if (is_resolved(e) && !is_known_at(e, mac))
        return check_claim(n, e, mac, false, now);
    if (!e->fixed)
        learn_mac(n, e, mac, NJ_NEIGH_REACHABLE, now);
    return true;
}

bool nj_neigh_report_conflict(struct nj_neigh *n, const struct nj_iface_addr *own,
                              const struct rte_ether_addr *mac, nj_ns now)
{
    nj_ns *last = &n->defended_at[own - n->iface->addr];

    if (*last && now - *last < DEFEND_INTERVAL)
        return false;
    *last = now;
    if (n->conflict)
        n->conflict(n->ctx, &own->ip, mac);
    return true;
}

static void announce(struct nj_neigh *n, const struct nj_addr *own)
{
    send_arp(n, true, own, &broadcast, NULL, own);
}

/* RFC 5227 2.4: another host sends ARP packets with our address. A server keeps its addresses, so
 * we defend it by announcements, at most one per DEFEND_INTERVAL: (c). */
static void defend_address(struct nj_neigh *n, const struct nj_iface_addr *own,
                           const struct rte_ether_addr *mac, bool answer, nj_ns now)
{
    nj_count(n->counters, NJ_C_arp_claimed);
    if (answer && nj_neigh_report_conflict(n, own, mac, now))
        announce(n, &own->ip);
}

bool nj_neigh_arp_input(struct nj_neigh *n, const struct nj_packet *p, bool answer, nj_ns now)
{
    const struct nj_iface_addr *own = nj_iface_find_addr(n->iface, &p->arp.ip);

    if (own) {
        defend_address(n, own, &p->arp.mac, answer, now);
        return false;
    }
    bool for_us = nj_iface_has_addr(n->iface, &p->arp.target);
    bool asks_us = p->arp.request && for_us;
    bool usable = nj_ip4_source_ok(n->iface, nj_addr_to_v4(&p->arp.ip)) &&
                  nj_ip_is_on_link(n->iface, &p->arp.ip);
    struct nj_neigh_entry *e = usable ? find_entry(n, &p->arp.ip) : NULL;

    /* RFC 826: refresh a known sender; add a new one only if it requests our address, because it is
     * about to send to us. Unsolicited replies add nothing. */
    if (usable && !e && asks_us)
        e = add_from_message(n, &p->arp.ip, now);
    bool news = e && update_from_arp(n, e, &p->arp.mac, now);
    if (asks_us && answer)
        send_arp(n, false, &p->arp.target, &p->arp.mac, &p->arp.mac, &p->arp.ip);
    /* A reply that another shard may wait for, or a neighbour's new MAC address (RFC 5227 3). */
    bool gratuitous = nj_addr_eq(&p->arp.ip, &p->arp.target);
    return e ? news : usable && (for_us || gratuitous);
}

bool nj_neigh_learn(struct nj_neigh *n, const struct nj_addr *ip, const struct rte_ether_addr *mac,
                    bool router, nj_ns now)
{
    struct nj_neigh_entry *e = find_entry(n, ip);

    if (!e)
        e = add_from_message(n, ip, now);
    if (!e) /* the tables of the other shards may have room */
        return true;
    if (is_resolved(e) && !is_known_at(e, mac))
        return check_claim(n, e, mac, e->router || router, now);
    e->router |= router;
    if (!is_resolved(e)) /* only one direction is proven */
        learn_mac(n, e, mac, NJ_NEIGH_STALE, now);
    return true;
}

/* RFC 4861 7.2.5 for an entry with a known MAC address, except that a new MAC address is a claim.
 */
static bool update_from_advert(struct nj_neigh *n, struct nj_neigh_entry *e, const struct nj_nd *nd,
                               nj_ns now)
{
    bool same = !nd->has_mac || is_known_at(e, &nd->mac);

    if (!same && nd->override)
        return check_claim(n, e, &nd->mac, nd->router, now);
    if (!same) { /* STALE, with the known MAC address */
        if (e->state == NJ_NEIGH_REACHABLE && !e->fixed)
            enter_state(n, e, NJ_NEIGH_STALE, now);
        return true;
    }
    if (nd->solicited && !e->fixed)
        learn_mac(n, e, &e->mac, NJ_NEIGH_REACHABLE, now);
    if (e->router && !nd->router)
        report_lost(n, &e->ip, false, now);
    e->router = nd->router;
    return true;
}

bool nj_neigh_advert_input(struct nj_neigh *n, const struct nj_nd *nd, nj_ns now)
{
    struct nj_neigh_entry *e = find_entry(n, &nd->target);

    if (!e)
        return true; /* not solicited by this shard (RFC 4861 7.2.5), perhaps by another */
    if (is_resolved(e))
        return update_from_advert(n, e, nd, now);
    if (nd->has_mac) {
        e->router = nd->router;
        learn_mac(n, e, &nd->mac, nd->solicited ? NJ_NEIGH_REACHABLE : NJ_NEIGH_STALE, now);
    }
    return true;
}

void nj_neigh_send_gratuitous_arp(struct nj_neigh *n)
{
    for (unsigned i = 0; i < n->iface->n_addrs; i++) {
        const struct nj_addr *own = &n->iface->addr[i].ip;
        if (nj_addr_is_v4(own))
            announce(n, own);
    }
}

/* --- time ---------------------------------------------------------------------------------- */

static void remove_entry(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool failed = e->state == NJ_NEIGH_INCOMPLETE || e->state == NJ_NEIGH_PROBE;
    const struct nj_addr ip = e->ip;

    drop_pending(n, e, NJ_C_drop_tx_arp_timeout);
    clear_unsolicited(n, e);
    e->state = NJ_NEIGH_FREE;
    if (failed)
        report_lost(n, &ip, true, now);
}

/* The timer of the entry's state has expired. */
static void on_entry_timeout(struct nj_neigh *n, struct nj_neigh_entry *e, nj_ns now)
{
    bool in_use = now - e->used_at < IN_USE_TIME;

    switch (e->state) {
    case NJ_NEIGH_REACHABLE:
        if (!is_v4(e)) {
            enter_state(n, e, NJ_NEIGH_STALE, now);
            return;
        }
        if (!in_use)
            break;
        begin_probe(n, e, now);
        return;
    case NJ_NEIGH_DELAY:
        begin_probe(n, e, now);
        return;
    case NJ_NEIGH_INCOMPLETE:
    case NJ_NEIGH_PROBE:
        if (e->has_claim && e->n_queries >= CLAIM_QUERIES) {
            adopt_claim(n, e, now);
            return;
        }
        /* An unused IPv4 neighbour is removed, as it would be without the probe. */
        if (e->has_claim ||
            (e->n_queries < QUERIES_MAX && (!is_v4(e) || in_use || !is_resolved(e)))) {
            send_query(n, e, now);
            return;
        }
        break;
    default: /* STALE: not used for a long time */
        break;
    }
    remove_entry(n, e, now);
}

void nj_neigh_tick(struct nj_neigh *n, nj_ns now)
{
    if (now < n->tick_at)
        return;
    n->tick_at = now + TICK;
    for (unsigned i = 0; i < NJ_NEIGH_MAX; i++)
        if (n->entry[i].state != NJ_NEIGH_FREE && now >= n->entry[i].due_at)
            on_entry_timeout(n, &n->entry[i], now);
}
