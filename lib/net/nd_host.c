/* SPDX-License-Identifier: BSD-3-Clause */
/* The host side of IPv6 neighbour discovery: duplicate address detection and SLAAC (RFC 4862),
 * router discovery (RFC 4861 6.3), and reports of multicast groups (RFC 3810, RFC 2710). */
#include "net/nd_host.h"

#include "base/assert.h"
#include "telem/counters_packet.h"
#include "wire/icmp6.h"
#include "wire/ip6.h"

#define TICK                       (100 * NJ_MS)
#define MAX_RTR_SOLICITATION_DELAY (1 * NJ_SEC) /* RFC 4861 10 */
#define MAX_RTR_SOLICITATIONS      3u
#define RTR_SOLICITATION_INTERVAL  (4 * NJ_SEC)
#define MLD_ROBUSTNESS             2u /* RFC 3810 9.1: robustness */
#define MLD_REPORT_INTERVAL        (1 * NJ_SEC)
#define IDGEN_RETRIES              3u /* RFC 7217 7 */
#define TWO_HOURS_S                7200u
#define RETRANS_MIN_MS             100u     /* the length of a tick ... */
#define RETRANS_MAX_MS             10000u   /* ... and a bound beyond which resolution would fail */
#define REACHABLE_MAX_MS           3600000u /* RFC 4861 6.2.1 */

static const struct nj_addr link_local_prefix = {{0xfe, 0x80}};

/* A pseudo-random number below `n` for `what`: equal in all shards, unpredictable for others. */
static uint64_t keyed_draw_below(const struct nj_nd_host *d, const char *what,
                                 const struct nj_addr *ip, uint64_t n)
{
    struct {
        char what[8];
        struct nj_addr ip;
    } in = {.ip = *ip};
    strncpy(in.what, what, sizeof in.what - 1);
    return nj_hash(&d->cfg.key, &in, sizeof in) % n;
}

static void nonce_of(const struct nj_nd_host *d, const struct nj_addr *ip,
                     uint8_t out[NJ_ND_NONCE_BYTES])
{
    uint64_t n = keyed_draw_below(d, "nonce", ip, UINT64_MAX);
    memcpy(out, &n, NJ_ND_NONCE_BYTES);
}

static void set_state(struct nj_nd_host *d, unsigned i, enum nj_addr_state state)
{
    __atomic_store_n(&d->iface->addr[i].state, (uint8_t)state, __ATOMIC_RELEASE);
}

static bool is_v6(const struct nj_nd_host *d, unsigned i)
{
    return !nj_addr_is_v4(&d->iface->addr[i].ip);
}

/* Our link-local address when it may be used, or NULL. */
static const struct nj_addr *ready_link_local(const struct nj_nd_host *d)
{
    for (unsigned i = 0; i < d->iface->n_addrs; i++)
        if (nj_ip6_is_link_local(&d->iface->addr[i].ip) && d->iface->addr[i].state == NJ_ADDR_READY)
            return &d->iface->addr[i].ip;
    return NULL;
}

/* --- our addresses ------------------------------------------------------------------------- */

static void begin_dad(struct nj_nd_host *d, unsigned i, nj_ns now)
{
    const struct nj_addr *ip = &d->iface->addr[i].ip;

    set_state(d, i, NJ_ADDR_TENTATIVE);
    d->addr[i].probe_sent = false;
    /* A delay, for hosts that start at the same time (RFC 4862 5.4.2). */
    d->addr[i].due_at = now + keyed_draw_below(d, "delay", ip, MAX_RTR_SOLICITATION_DELAY);
}

/* The index for a new address, or NJ_ADDRS_MAX. */
static unsigned free_addr_slot(const struct nj_nd_host *d)
{
    for (unsigned i = 0; i < d->iface->n_addrs; i++)
        if (d->iface->addr[i].state == NJ_ADDR_EXPIRED)
            return i;
    return d->iface->n_addrs;
}

/* Returns the index, or NJ_ADDRS_MAX if the table is full. */
static unsigned add_address(struct nj_nd_host *d, const struct nj_addr *ip, uint8_t bits, nj_ns now)
{
    unsigned i = free_addr_slot(d);
    const struct nj_iface_addr a = {*ip, bits, NJ_ADDR_TENTATIVE};

    if (i == NJ_ADDRS_MAX)
        return i;
    nj_iface_addr_publish(&d->iface->addr[i], &a);
    if (i == d->iface->n_addrs)
        __atomic_store_n(&d->iface->n_addrs, (uint8_t)(i + 1), __ATOMIC_RELEASE);
    d->addr[i] = (struct nj_nd_host_addr){.expires_at = NJ_NEVER};
    begin_dad(d, i, now);
    return i;
}

struct nj_addr nj_nd_host_make_addr(const struct nj_addr *prefix, const struct rte_ether_addr *mac,
                                    uint8_t n_conflicts)
{
    static const struct nj_hash_key no_secret = {{0}};
    struct nj_addr ip = *prefix;
    uint8_t in[8 + RTE_ETHER_ADDR_LEN + 1];

    memcpy(in, prefix->b, 8);
    memcpy(in + 8, mac->addr_bytes, RTE_ETHER_ADDR_LEN);
    in[sizeof in - 1] = n_conflicts;
    uint64_t id = nj_hash(&no_secret, in, sizeof in);
    memcpy(&ip.b[8], &id, sizeof id);
    return ip;
}

/* Returns the index, or NJ_ADDRS_MAX if the table is full. */
static unsigned make_address(struct nj_nd_host *d, const struct nj_addr *prefix, uint8_t bits,
                             nj_ns now)
{
    const struct nj_addr ip = nj_nd_host_make_addr(prefix, &d->iface->mac, 0);
    unsigned i = nj_iface_find_addr(d->iface, &ip) ? NJ_ADDRS_MAX : add_address(d, &ip, bits, now);

    if (i != NJ_ADDRS_MAX)
        d->addr[i].is_generated = true;
    return i;
}

void nj_nd_host_init(struct nj_nd_host *d, const struct nj_nd_host_config *cfg,
                     struct nj_iface *iface, struct nj_neigh *neigh, nj_ns now)
{
    memset(d, 0, sizeof *d);
    d->cfg = *cfg;
    d->iface = iface;
    d->neigh = neigh;
    d->static_gateway = iface->has_gateway6;
    d->solicit_at = d->report_at = NJ_NEVER;
    d->tick_at = NJ_NEVER;
    if (!iface->ip6)
        return;
    d->tick_at = now;
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        d->addr[i].expires_at = NJ_NEVER;
        if (is_v6(d, i))
            begin_dad(d, i, now);
    }
    make_address(d, &link_local_prefix, 64, now);
    for (unsigned i = 0; d->cfg.no_dad && i < iface->n_addrs; i++)
        if (is_v6(d, i)) {
            d->addr[i].probe_sent = true;
            d->addr[i].due_at = now;
        }
}

/* The address is a duplicate (RFC 4862 5.4.5). Generate another one if possible (RFC 7217 6). */
static void handle_conflict(struct nj_nd_host *d, unsigned i, nj_ns now)
{
    struct nj_nd_host_addr *a = &d->addr[i];
    struct nj_iface_addr now_is = d->iface->addr[i];

    nj_count(d->neigh->counters, NJ_C_nd_duplicate);
    if (!a->is_generated || a->n_conflicts == IDGEN_RETRIES) {
        set_state(d, i, NJ_ADDR_DUPLICATE);
        return;
    }
    now_is.ip = nj_nd_host_make_addr(&now_is.ip, &d->iface->mac, ++a->n_conflicts);
    nj_iface_addr_publish(&d->iface->addr[i], &now_is);
    begin_dad(d, i, now);
}

/* Is it our own solicitation, looped back (RFC 7527 4.2)? */
static bool is_our_probe(const struct nj_nd_host *d, const struct nj_nd *nd)
{
    uint8_t nonce[NJ_ND_NONCE_BYTES];

    nonce_of(d, &nd->target, nonce);
    return nd->has_nonce && memcmp(nonce, nd->nonce, sizeof nonce) == 0;
}

/* Advertise to all nodes, or to the sender of the solicitation. */
static void advertise(struct nj_nd_host *d, const struct nj_addr *target,
                      const struct nj_addr *solicitor, nj_ns now)
{
    struct nj_addr all = nj_ip6_all_nodes();
    const struct rte_ether_addr all_mac = nj_ip6_multicast_mac(&all);
    struct rte_mbuf *m = nj_neigh_alloc_mbuf(d->neigh);

    if (!m)
        return;
    nj_nd_advertise_build(m, target, solicitor ? solicitor : &all, target, &d->iface->mac,
                          solicitor != NULL);
    if (solicitor) {
        nj_count(d->neigh->counters, NJ_C_tx_made);
        nj_neigh_output(d->neigh, m, solicitor, NJ_NEIGH_REPLY, now);
    } else {
        nj_neigh_send_ip6(d->neigh, m, &all_mac);
    }
}

/* --- groups -------------------------------------------------------------------------------- */

static uint32_t collect_groups(const struct nj_nd_host *d, struct nj_addr out[NJ_ADDRS_MAX])
{
    uint32_t n = 0;

    for (unsigned i = 0; i < d->iface->n_addrs; i++) {
        if (!is_v6(d, i) || d->iface->addr[i].state == NJ_ADDR_EXPIRED)
            continue;
        struct nj_addr g = nj_ip6_solicited_node(&d->iface->addr[i].ip);
        uint32_t k = 0;
        while (k < n && !nj_addr_eq(&out[k], &g))
            k++;
        if (k == n)
            out[n++] = g;
    }
    return n;
}

static void send_report(struct nj_nd_host *d, const struct nj_addr *groups, uint32_t n, bool joined,
                        bool old)
{
    static const struct nj_addr nobody;
    const struct nj_addr routers = {{0xff, 2, [15] = 0x16}};
    const struct nj_addr *from = ready_link_local(d);

    from = from ? from : &nobody; /* RFC 3590 4: for snooping switches */
    for (uint32_t i = 0; i < (old ? n : 1u); i++) {
        const struct nj_addr *to = old ? &groups[i] : &routers;
        const struct rte_ether_addr mac = nj_ip6_multicast_mac(to);
        struct rte_mbuf *m = nj_neigh_alloc_mbuf(d->neigh);
        if (!m)
            return;
        if (old)
            nj_mld1_report_build(m, from, &groups[i]);
        else
            nj_mld2_report_build(m, from, groups, n, joined);
        nj_neigh_send_ip6(d->neigh, m, &mac);
    }
}

static void send_reports(struct nj_nd_host *d, nj_ns now)
{
    struct nj_addr groups[NJ_ADDRS_MAX];
    uint32_t n = collect_groups(d, groups);
    bool joined = d->joins_left > 0;

    d->joins_left -= joined;
    d->report_at = d->joins_left > 0 ? now + MLD_REPORT_INTERVAL : NJ_NEVER;
    if (n > 0)
        send_report(d, groups, n, joined, d->report_mldv1);
}

/* RFC 3810 5.1.10, 6.2: respond within the maximum response delay. Every response lists all
 * groups: there are few. */
static void handle_query(struct nj_nd_host *d, const struct nj_packet *p, nj_ns now)
{
    nj_ns at = now + keyed_draw_below(d, "query", &p->nd.target, p->nd.delay_ms + 1u) * NJ_MS;

    d->report_mldv1 = p->nd.mldv1_query;
    if (at < d->report_at)
        d->report_at = at;
}

/* --- the checks ---------------------------------------------------------------------------- */

static void send_dad_probe(struct nj_nd_host *d, unsigned i)
{
    static const struct nj_addr nobody;
    const struct nj_addr *ip = &d->iface->addr[i].ip;
    struct nj_addr group = nj_ip6_solicited_node(ip);
    const struct rte_ether_addr mac = nj_ip6_multicast_mac(&group);
    uint8_t nonce[NJ_ND_NONCE_BYTES];

    send_report(d, &group, 1, true, false);
    struct rte_mbuf *m = nj_neigh_alloc_mbuf(d->neigh);
    if (!m)
        return;
    nonce_of(d, ip, nonce);
    nj_nd_solicit_build(m, &nobody, &group, ip, NULL, nonce);
    nj_neigh_send_ip6(d->neigh, m, &mac);
}

/* Duplicate address detection succeeded: the address is usable. */
static void accept_address(struct nj_nd_host *d, unsigned i, nj_ns now)
{
    const struct nj_addr *ip = &d->iface->addr[i].ip;

    set_state(d, i, NJ_ADDR_READY);
    if (!d->cfg.sends_unsolicited)
        return;
    advertise(d, ip, NULL, now);
    d->joins_left = MLD_ROBUSTNESS;
    d->report_at = now;
    if (nj_ip6_is_link_local(ip)) {
        d->n_solicits_left = d->static_gateway && !d->cfg.slaac ? 0 : MAX_RTR_SOLICITATIONS;
        d->solicit_at = now;
    }
}

static void check_address(struct nj_nd_host *d, unsigned i, nj_ns now)
{
    struct nj_nd_host_addr *a = &d->addr[i];

    if (d->iface->addr[i].state == NJ_ADDR_TENTATIVE && now >= a->due_at) {
        if (a->probe_sent) {
            accept_address(d, i, now);
        } else {
            a->probe_sent = true;
            a->due_at = now + d->neigh->retrans; /* one solicitation: RFC 4862 5.1 */
            if (d->cfg.sends_unsolicited)
                send_dad_probe(d, i);
        }
    }
    if (now >= a->expires_at && d->iface->addr[i].state != NJ_ADDR_EXPIRED) {
        set_state(d, i, NJ_ADDR_EXPIRED);
        a->expires_at = NJ_NEVER;
    }
}

/* --- routers ------------------------------------------------------------------------------- */

static void set_gateway_from_routers(struct nj_nd_host *d)
{
    if (d->static_gateway)
        return;
    d->iface->has_gateway6 = d->n_routers > 0;
    if (d->n_routers > 0)
        d->iface->gateway6 = d->router[0].ip;
}

static void remove_router(struct nj_nd_host *d, uint32_t i)
{
    d->n_routers--;
    memmove(&d->router[i], &d->router[i + 1], (d->n_routers - i) * sizeof d->router[0]);
}

/* RFC 4861 6.3.4. A full list accepts no new router. */
static void update_router(struct nj_nd_host *d, const struct nj_addr *ip, uint16_t lifetime_s,
                          nj_ns now)
{
    uint32_t i = 0;

    while (i < d->n_routers && !nj_addr_eq(&d->router[i].ip, ip))
        i++;
    if (lifetime_s == 0 && i < d->n_routers)
        remove_router(d, i);
    if (lifetime_s > 0 && i < NJ_ROUTERS_MAX) {
        d->router[i] = (struct nj_router){*ip, now + lifetime_s * NJ_SEC};
        d->n_routers += i == d->n_routers;
    }
    set_gateway_from_routers(d);
}

void nj_nd_host_replace_lost_router(struct nj_nd_host *d, const struct nj_addr *ip, bool silent,
                                    nj_ns now)
{
    if (!silent) { /* RFC 4861 7.2.5 */
        update_router(d, ip, 0, now);
        return;
    }
    if (d->n_routers < 2 || !nj_addr_eq(&d->router[0].ip, ip))
        return;
    /* RFC 4861 6.3.6: move the router to the end of the list. */
    struct nj_router first = d->router[0];
    remove_router(d, 0);
    d->router[d->n_routers++] = first;
    set_gateway_from_routers(d);
}

static nj_ns expiry_after(nj_ns now, uint32_t seconds)
{
    return seconds == NJ_LIFETIME_FOREVER ? NJ_NEVER : now + seconds * NJ_SEC;
}

/* RFC 4862 5.5.3 e: extend the lifetime of a known address. An unauthenticated advertisement may
 * not reduce it below two hours. */
static void renew_lifetime(struct nj_nd_host *d, unsigned i, uint32_t valid_s, nj_ns now)
{
    struct nj_nd_host_addr *a = &d->addr[i];
    nj_ns told = expiry_after(now, valid_s), two_hours = now + TWO_HOURS_S * NJ_SEC;

    if (valid_s > TWO_HOURS_S || told > a->expires_at)
        a->expires_at = told;
    else if (a->expires_at > two_hours)
        a->expires_at = two_hours;
}

/* The index of the SLAAC address in this prefix, or NJ_ADDRS_MAX. */
static unsigned slot_of_prefix(const struct nj_nd_host *d, const struct nj_addr *prefix)
{
    for (unsigned i = 0; i < d->iface->n_addrs; i++)
        if (d->addr[i].slaac && d->iface->addr[i].state != NJ_ADDR_EXPIRED &&
            nj_ip6_same_prefix(&d->iface->addr[i].ip, prefix, 64))
            return i;
    return NJ_ADDRS_MAX;
}

static void handle_prefix(struct nj_nd_host *d, const struct nj_ra_prefix *p, nj_ns now)
{
    bool usable = d->cfg.slaac && p->autonomous && p->bits == 64 && p->preferred_s <= p->valid_s &&
                  !nj_ip6_is_link_local(&p->prefix) && !nj_ip6_is_multicast(&p->prefix) &&
                  !nj_addr_is_v4(&p->prefix);
    if (!usable)
        return;
    unsigned i = slot_of_prefix(d, &p->prefix);
    if (i < NJ_ADDRS_MAX) {
        renew_lifetime(d, i, p->valid_s, now);
        return;
    }
    i = p->valid_s > 0 ? make_address(d, &p->prefix, p->on_link ? 64 : 128, now) : NJ_ADDRS_MAX;
    if (i < NJ_ADDRS_MAX) {
        d->addr[i].slaac = true;
        d->addr[i].expires_at = expiry_after(now, p->valid_s);
    }
}

/* ReachableTime is not randomised as RFC 4861 6.3.2 requires: the table has few neighbours. */
static void handle_router_advert(struct nj_nd_host *d, const struct nj_packet *p,
                                 const uint8_t *msg, nj_ns now)
{
    struct nj_ra ra;

    nj_ra_parse(&ra, msg, p->nd.n_bytes);
    if (p->nd.has_mac)
        nj_neigh_learn(d->neigh, &p->ip_src, &p->nd.mac, true, now);
    update_router(d, &p->ip_src, ra.lifetime_s, now);
    if (ra.lifetime_s > 0)
        d->n_solicits_left = 0; /* RFC 4861 6.3.7 */
    if (ra.reachable_ms > 0 && ra.reachable_ms <= REACHABLE_MAX_MS)
        d->neigh->reachable = ra.reachable_ms * NJ_MS;
    if (ra.retrans_ms >= RETRANS_MIN_MS && ra.retrans_ms <= RETRANS_MAX_MS)
        d->neigh->retrans = ra.retrans_ms * NJ_MS;
    if (ra.mtu >= NJ_IP6_MTU_MIN && ra.mtu <= d->iface->mtu)
        d->iface->mtu6 = (uint16_t)ra.mtu;
    for (uint32_t i = 0; i < ra.n_prefixes; i++)
        handle_prefix(d, &ra.prefix[i], now);
}

static void solicit_routers(struct nj_nd_host *d, nj_ns now)
{
    struct nj_addr routers = nj_ip6_all_routers();
    const struct rte_ether_addr mac = nj_ip6_multicast_mac(&routers);
    const struct nj_addr *from = ready_link_local(d);

    d->solicit_at = now + RTR_SOLICITATION_INTERVAL;
    if (d->n_solicits_left == 0 || !from) {
        d->solicit_at = NJ_NEVER;
        return;
    }
    d->n_solicits_left--;
    struct rte_mbuf *m = nj_neigh_alloc_mbuf(d->neigh);
    if (!m)
        return;
    nj_nd_router_solicit_build(m, from, &d->iface->mac);
    nj_neigh_send_ip6(d->neigh, m, &mac);
}

/* --- input --------------------------------------------------------------------------------- */

/* RFC 4861 7.2.3, and RFC 4862 5.4.3 for a tentative address. */
static bool handle_solicit(struct nj_nd_host *d, const struct nj_packet *p, bool answer, nj_ns now)
{
    const struct nj_iface_addr *own = nj_iface_find_addr(d->iface, &p->nd.target);
    bool anonymous = nj_ip6_is_unspecified(&p->ip_src);

    if (!own || own->state == NJ_ADDR_DUPLICATE)
        return false;
    if (own->state == NJ_ADDR_TENTATIVE) {
        if (anonymous && !is_our_probe(d, &p->nd))
            handle_conflict(d, (unsigned)(own - d->iface->addr), now);
        return anonymous;
    }
    bool news = p->nd.has_mac && nj_neigh_learn(d->neigh, &p->ip_src, &p->nd.mac, false, now);
    if (answer && !(anonymous && is_our_probe(d, &p->nd)))
        advertise(d, &p->nd.target, anonymous ? NULL : &p->ip_src, now);
    return news;
}

static bool handle_advert(struct nj_nd_host *d, const struct nj_packet *p, nj_ns now)
{
    const struct nj_iface_addr *own = nj_iface_find_addr(d->iface, &p->nd.target);

    if (own && p->nd.has_mac && rte_is_same_ether_addr(&p->nd.mac, &d->iface->mac))
        return false; /* our own advertisement, looped back */
    if (own && own->state == NJ_ADDR_TENTATIVE) {
        handle_conflict(d, (unsigned)(own - d->iface->addr), now);
        return true;
    }
    if (own) { /* not during detection: the address stays in use (RFC 4862 5.4.4) */
        nj_count(d->neigh->counters, NJ_C_nd_claimed);
        nj_neigh_report_conflict(d->neigh, own, p->nd.has_mac ? &p->nd.mac : NULL, now);
        return false;
    }
    return nj_neigh_advert_input(d->neigh, &p->nd, now);
}

bool nj_nd_host_input(struct nj_nd_host *d, const struct nj_packet *p, const uint8_t *msg,
                      bool answer, nj_ns now)
{
    switch (p->nd.kind) {
    case NJ_ND_SOLICIT:
        return handle_solicit(d, p, answer, now);
    case NJ_ND_ADVERT:
        return handle_advert(d, p, now);
    case NJ_ND_ROUTER_ADVERT:
        handle_router_advert(d, p, msg, now);
        return true;
    case NJ_ND_LISTENER_QUERY:
        if (d->cfg.sends_unsolicited)
            handle_query(d, p, now);
        return true;
    }
    NJ_UNREACHABLE("kind of neighbour discovery");
}

void nj_nd_host_tick(struct nj_nd_host *d, nj_ns now)
{
    if (now < d->tick_at)
        return;
    d->tick_at = now + TICK;
    for (unsigned i = 0; i < d->iface->n_addrs; i++)
        if (is_v6(d, i))
            check_address(d, i, now);
    for (uint32_t i = d->n_routers; i-- > 0;) {
        if (now < d->router[i].expires_at)
            continue;
        remove_router(d, i);
        set_gateway_from_routers(d);
    }
    if (now >= d->report_at)
        send_reports(d, now);
    if (now >= d->solicit_at)
        solicit_routers(d, now);
}
