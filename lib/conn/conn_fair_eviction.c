/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of connections: counts connections by client and ends those of the largest client when the
 * table is nearly full. Follows max-min fairness; conn_fair_eviction.h has the rules. */
#include "conn/conn_fair_eviction.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "conn/conn.h"

/* Thresholds in 64ths of the connection table: counting starts, counting ends, idle connections are
 * closed. NJ_TCP_NEARLY_FULL_PART is above them: from there on connections are reset. */
#define COUNT_FROM  32u
#define COUNT_UNTIL 24u
#define TIGHT_FROM  56u

/* Connections tallied in one step, about 100 ns each, and connections scanned for a victim. */
#define COUNT_MAX 1024u
#define SCAN_MAX  256u
#define SCAN_FEW  32u /* scanned to find the largest client while it is unknown */

/* Minimum size of the table of counters: 20 newcomers collide with a given client with a
 * probability of 3e-4. */
#define COUNTS_MIN 65536u

static uint32_t part_of_places(const struct nj_conns *cs, uint32_t of_64)
{
    return (uint32_t)((uint64_t)cs->tcp->cfg.conns_max * of_64 / 64);
}

bool nj__conn_shares_init(struct nj_conns *cs)
{
    uint32_t n = COUNTS_MIN;

    while (n < cs->tcp->cfg.conns_max && n < 1u << 30)
        n *= 2;
    cs->shares.mask = n - 1;
    cs->shares.n = calloc(n, sizeof *cs->shares.n); /* not touched before counting starts */
    return cs->shares.n != NULL;
}

void nj__conn_shares_fini(struct nj_conns *cs)
{
    free(cs->shares.n);
    cs->shares.n = NULL;
}

/* --- counting ------------------------------------------------------------------------------ */

static uint32_t *count_of(const struct nj_conns *cs, const struct nj_addr *remote)
{
    return &cs->shares.n[nj__client_key(cs, remote) & cs->shares.mask];
}

static void update_largest(struct nj_conn_shares *sh, const uint32_t *n)
{
    if (*n > sh->n[sh->largest_at])
        sh->largest_at = (uint32_t)(n - sh->n);
}

/* Is the connection included in the counters? */
static bool is_counted(const struct nj_conn *c)
{
    const struct nj_conns *cs = c->conns;
    return cs->shares.counted_below > 0 && nj_pool_index(&cs->pool, c) < cs->shares.counted_below;
}

static void count_conn(struct nj_conn *c)
{
    const struct nj_addr *remote = nj__conn_remote(c);
    uint32_t *n = count_of(c->conns, remote);

    if (nj__is_trusted_proxy(c->conns, remote))
        return;
    ++*n;
    update_largest(&c->conns->shares, n);
}

void nj__conn_shares_remove(struct nj_conn *c)
{
    const struct nj_addr *remote = nj__conn_remote(c);

    if (nj_unlikely(is_counted(c)) && !nj__is_trusted_proxy(c->conns, remote))
        --*count_of(c->conns, remote);
}

void nj__conn_shares_restart_count(struct nj_conns *cs)
{
    struct nj_conn_shares *sh = &cs->shares;

    if (sh->counted_below > 0)
        memset(sh->n, 0, (sh->mask + 1) * sizeof *sh->n);
    sh->counted_below = sh->largest_at = sh->n_to_evict = 0;
}

/* Objects keep their slots in the pool. Connections made meanwhile in slots that were passed are
 * added when they are made. */
static uint32_t count_batch(struct nj_conns *cs)
{
    struct nj_conn_shares *sh = &cs->shares;
    uint32_t n = 0;

    for (; n < COUNT_MAX && sh->counted_below < cs->pool.n_touched; n++) {
        struct nj_conn *c = nj_pool_at(&cs->pool, sh->counted_below++);
        if (c->conns == cs)
            count_conn(c);
    }
    if (sh->counted_below >= cs->pool.n_touched)
        sh->counted_below = UINT32_MAX;
    return n;
}

/* --- eviction ------------------------------------------------------------------------------ */

/* After the eviction the newcomer's client holds at most as many as the other. The margin covers
 * collisions of hashes. */
static bool may_evict_for(uint32_t n_other, uint32_t n_own, bool is_idle)
{
    return n_other >= (is_idle ? NJ_SHARE_IDLE_MIN : NJ_SHARE_BUSY_MIN) && n_other >= n_own + 2;
}

/* No stream and no output is pending. */
static bool is_idle(const struct nj_conn *c)
{
    return c->waits_for != NJ_CONN_WAIT_PROGRESS;
}

/* May this connection be evicted? A connection on no list is about to be freed. */
static bool is_evictable(const struct nj_conns *cs, const struct nj_conn *c, bool gently)
{
    if (c->conns != cs || !nj_list_linked(&c->node) || c->tcb->state == NJ_TCP_CLOSED ||
        nj__is_trusted_proxy(cs, nj__conn_remote(c)))
        return false;
    if (!gently)
        return true;
    if (c->state == NJ_CONN_LINGER)
        return nj__conn_is_late(c); /* it has acknowledged all, and is reset */
    /* A request that came in this step is read before: HTTP/1 cannot say that it was not. */
    return is_idle(c) && !nj__conn_has_news(c);
}

static struct nj_conn *next_scanned(struct nj_conns *cs)
{
    struct nj_conn_shares *sh = &cs->shares;

    sh->scan_at = sh->scan_at + 1 < cs->pool.n_touched ? sh->scan_at + 1 : 0;
    return nj_pool_at(&cs->pool, sh->scan_at);
}

/* Of the next SCAN_MAX connections, chooses one of the largest client, an idle one if possible. */
static struct nj_conn *choose_victim(struct nj_conns *cs, uint32_t n_own, bool gently)
{
    struct nj_conn_shares *sh = &cs->shares;
    struct nj_conn *best = NULL;
    uint32_t most = 0;

    for (uint32_t i = 0; i < SCAN_MAX && i < cs->pool.n_touched; i++) {
        struct nj_conn *c = next_scanned(cs);
        if (!is_evictable(cs, c, gently))
            continue;
        const uint32_t *n = count_of(cs, nj__conn_remote(c));
        update_largest(sh, n);
        bool better = *n > most || (*n == most && best && is_idle(c) && !is_idle(best));
        if (!better || !may_evict_for(*n, n_own, is_idle(c)))
            continue;
        best = c;
        most = *n;
        if (is_idle(c) && *n == sh->n[sh->largest_at])
            break;
    }
    return best;
}

/* May the largest client lose a connection to a client with `n_own`? */
static bool largest_yields_to(struct nj_conn_shares *sh, uint32_t n_own)
{
    bool yes = may_evict_for(sh->n[sh->largest_at], n_own, true);

    sh->largest_stale |= !yes; /* another client may be the largest by now */
    return yes;
}

/* A client with `n_own` connections opens another one while the table is nearly full. */
static bool request_eviction(struct nj_conns *cs, uint32_t n_own)
{
    struct nj_conn_shares *sh = &cs->shares;

    if (!largest_yields_to(sh, n_own))
        return false;
    sh->evict_for_n = sh->n_to_evict == 0 || n_own < sh->evict_for_n ? n_own : sh->evict_for_n;
    sh->n_to_evict++;
    return true;
}

bool nj__conn_shares_is_nearly_full(const struct nj_conns *cs)
{
    return cs->tcp->tcbs.n_used > part_of_places(cs, TIGHT_FROM);
}

/* Other connections of this client. */
static uint32_t n_other_conns(const struct nj_conn *c)
{
    const struct nj_addr *remote = nj__conn_remote(c);
    return nj__is_trusted_proxy(c->conns, remote) ? 0 : *count_of(c->conns, remote) - 1;
}

void nj__conn_shares_add(struct nj_conn *c)
{
    if (nj_unlikely(is_counted(c)))
        count_conn(c);
}

void nj__conn_shares_request_room(const struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;

    if (nj_unlikely(is_counted(c)) && nj__conn_shares_is_nearly_full(cs) &&
        !nj_tcp_is_nearly_full(cs->tcp)) /* else TCP asked */
        request_eviction(cs, n_other_conns(c));
}

bool nj_conns_request_room(struct nj_conns *cs, const struct nj_addr *remote, bool proven)
{
    struct nj_conn_shares *sh = &cs->shares;

    if (sh->counted_below == 0)
        return false;
    uint32_t n_own = nj__is_trusted_proxy(cs, remote) ? 0 : *count_of(cs, remote);
    if (!proven) /* SYNs may be spoofed: nothing is evicted for an unproven address */
        return largest_yields_to(sh, n_own);
    return request_eviction(cs, n_own);
}

/* Held: connections | client, in connections | equal shares of `--max-connections`, once 7/8 are
 * used | `--preface-timeout`, `--idle-timeout`; 37 s for the rest of
 * an upload behind its response | conn_evicted, conn_timeout, conn_late_input */
struct nj_conn *nj__conn_shares_next_victim(struct nj_conns *cs, bool gently)
{
    struct nj_conn_shares *sh = &cs->shares;

    if (nj_likely(sh->n_to_evict == 0))
        return NULL;
    struct nj_conn *c = choose_victim(cs, sh->evict_for_n, gently);
    /* Without one, clients that still need one will ask again. */
    sh->n_to_evict = c ? sh->n_to_evict - 1 : 0;
    return c;
}

/* Updates the largest client. */
static void refresh_largest(struct nj_conns *cs)
{
    struct nj_conn_shares *sh = &cs->shares;

    sh->largest_stale = false;
    for (uint32_t i = 0; i < SCAN_FEW && i < cs->pool.n_touched; i++) {
        const struct nj_conn *c = next_scanned(cs);
        if (is_evictable(cs, c, false))
            update_largest(sh, count_of(cs, nj__conn_remote(c)));
    }
}

uint32_t nj__conn_shares_count(struct nj_conns *cs)
{
    struct nj_conn_shares *sh = &cs->shares;
    uint32_t n_used = cs->tcp->tcbs.n_used;

    if (nj_likely(sh->counted_below == 0 && n_used <= part_of_places(cs, COUNT_FROM)))
        return 0;
    if (n_used < part_of_places(cs, COUNT_UNTIL)) {
        nj__conn_shares_restart_count(cs);
        return 0;
    }
    uint32_t n = sh->counted_below != UINT32_MAX ? count_batch(cs) : 0;
    if (sh->largest_stale)
        refresh_largest(cs);
    return n;
}

bool nj__conn_shares_has_work(const struct nj_conns *cs)
{
    const struct nj_conn_shares *sh = &cs->shares;
    return (sh->counted_below > 0 && sh->counted_below != UINT32_MAX) || sh->n_to_evict > 0;
}
