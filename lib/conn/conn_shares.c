/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of connections: counts connections by client and ends those of the largest client when the
 * table is nearly full. Follows max-min fairness; conn_shares.h has the rules. */
#include "conn/conn_shares.h"

#include <stdlib.h>

#include "base/attr.h"
#include "conn/abuse_counts.h"
#include "conn/conn.h"
#include "shard/shard_internal.h"

/* Thresholds in 64ths of the connection table: counting starts, counting ends, idle connections are
 * closed. NJ_TCP_FULL_PART is above them: from there on connections are reset. */
#define COUNT_FROM  32u
#define COUNT_UNTIL 24u
#define TIGHT_FROM  56u

/* Connections tallied in one step, about 100 ns each, and connections scanned for a victim. */
#define COUNT_MAX 1024u
#define LOOK_MAX  256u
#define LOOK_FEW  32u /* scanned to find the largest client while it is unknown */

/* Minimum size of the table of counters: 20 newcomers collide with a given client with a
 * probability of 3e-4. */
#define COUNTS_MIN 65536u

static uint32_t part(const struct nj_shard *s, uint32_t of_64)
{
    return (uint32_t)((uint64_t)s->cfg.conns_max * of_64 / 64);
}

bool nj__shares_init(struct nj_shard *s)
{
    uint32_t n = COUNTS_MIN;

    while (n < s->cfg.conns_max && n < 1u << 30)
        n *= 2;
    s->shares.mask = n - 1;
    s->shares.n = calloc(n, sizeof *s->shares.n); /* not touched before counting starts */
    return s->shares.n != NULL;
}

void nj__shares_fini(struct nj_shard *s)
{
    free(s->shares.n);
    s->shares.n = NULL;
}

/* --- counting ------------------------------------------------------------------------------ */

static uint32_t *count_of(const struct nj_shard *s, const struct nj_addr *remote)
{
    const struct nj_policy *p = nj_shape_policy(s->txns.shape);
    return &s->shares.n[nj_policy_client_of(p, &s->cfg.client_key, remote) & s->shares.mask];
}

/* A trusted proxy's connections belong to many clients: no client is charged for them. */
static bool is_shared(const struct nj_shard *s, const struct nj_addr *remote)
{
    return nj_policy_trusts(nj_shape_policy(s->txns.shape), remote);
}

static void note_most(struct nj_shares *sh, const uint32_t *n)
{
    if (*n > sh->n[sh->worst])
        sh->worst = (uint32_t)(n - sh->n);
}

/* Is the connection included in the counters? */
static bool is_passed(const struct nj_conn *c)
{
    const struct nj_shard *s = c->shard;
    return s->shares.counted > 0 && nj_pool_place(&s->conns, c) < s->shares.counted;
}

static void count(struct nj_conn *c)
{
    const struct nj_addr *remote = &c->tcb->flow.tuple.remote;
    uint32_t *n = count_of(c->shard, remote);

    if (is_shared(c->shard, remote))
        return;
    ++*n;
    note_most(&c->shard->shares, n);
}

void nj__shares_remove(struct nj_conn *c)
{
    const struct nj_addr *remote = &c->tcb->flow.tuple.remote;

    if (nj_unlikely(is_passed(c)) && !is_shared(c->shard, remote))
        --*count_of(c->shard, remote);
}

void nj__shares_restart(struct nj_shard *s)
{
    struct nj_shares *sh = &s->shares;

    if (sh->counted > 0)
        memset(sh->n, 0, (sh->mask + 1) * sizeof *sh->n);
    sh->counted = sh->worst = sh->n_wanted = 0;
}

/* Objects keep their slots in the pool. Connections made meanwhile in slots that were passed are
 * added when they are made. */
static uint32_t count_some(struct nj_shard *s)
{
    struct nj_shares *sh = &s->shares;
    uint32_t n = 0;

    for (; n < COUNT_MAX && sh->counted < s->conns.n_touched; n++) {
        struct nj_conn *c = nj_pool_at(&s->conns, sh->counted++);
        if (c->shard == s)
            count(c);
    }
    if (sh->counted >= s->conns.n_touched)
        sh->counted = UINT32_MAX;
    return n;
}

/* --- eviction ------------------------------------------------------------------------------ */

/* After the eviction the newcomer's client holds at most as many as the other. The margin covers
 * collisions of hashes. */
static bool yields_to(uint32_t n_other, uint32_t n_own, bool is_idle)
{
    return n_other >= (is_idle ? NJ_SHARE_IDLE_MIN : NJ_SHARE_BUSY_MIN) && n_other >= n_own + 2;
}

/* No stream and no output is pending. */
static bool is_idle(const struct nj_conn *c)
{
    return c->silent != NJ_SILENT_STALLED;
}

/* May this connection be evicted? A connection on no list is about to be freed. */
static bool is_open(const struct nj_shard *s, const struct nj_conn *c, bool gently)
{
    if (c->shard != s || !nj_list_linked(&c->node) || c->tcb->state == NJ_TCP_CLOSED ||
        is_shared(s, &c->tcb->flow.tuple.remote))
        return false;
    return !gently || (is_idle(c) && c->state != LINGER);
}

static struct nj_conn *next_place(struct nj_shard *s)
{
    struct nj_shares *sh = &s->shares;

    sh->look_at = sh->look_at + 1 < s->conns.n_touched ? sh->look_at + 1 : 0;
    return nj_pool_at(&s->conns, sh->look_at);
}

/* Of the next LOOK_MAX connections, chooses one of the largest client, an idle one if possible. */
static struct nj_conn *who_yields(struct nj_shard *s, uint32_t n_own, bool gently)
{
    struct nj_shares *sh = &s->shares;
    struct nj_conn *best = NULL;
    uint32_t most = 0;

    for (uint32_t i = 0; i < LOOK_MAX && i < s->conns.n_touched; i++) {
        struct nj_conn *c = next_place(s);
        if (!is_open(s, c, gently))
            continue;
        const uint32_t *n = count_of(s, &c->tcb->flow.tuple.remote);
        note_most(sh, n);
        bool better = *n > most || (*n == most && best && is_idle(c) && !is_idle(best));
        if (!better || !yields_to(*n, n_own, is_idle(c)))
            continue;
        best = c;
        most = *n;
        if (is_idle(c) && *n == sh->n[sh->worst])
            break;
    }
    return best;
}

/* May the largest client lose a connection to a client with `n_own`? */
static bool some_yield(struct nj_shares *sh, uint32_t n_own)
{
    bool yes = yields_to(sh->n[sh->worst], n_own, true);

    sh->unsure |= !yes; /* another client may be the largest by now */
    return yes;
}

/* A client with `n_own` connections opens another one while the table is nearly full. */
static bool want(struct nj_shard *s, uint32_t n_own)
{
    struct nj_shares *sh = &s->shares;

    if (!some_yield(sh, n_own))
        return false;
    sh->wanted_for = sh->n_wanted == 0 || n_own < sh->wanted_for ? n_own : sh->wanted_for;
    sh->n_wanted++;
    return true;
}

bool nj__shares_tight(const struct nj_shard *s)
{
    return s->tcp.tcbs.n_used > part(s, TIGHT_FROM);
}

/* Other connections of this client. */
static uint32_t n_besides(const struct nj_conn *c)
{
    const struct nj_addr *remote = &c->tcb->flow.tuple.remote;
    return is_shared(c->shard, remote) ? 0 : *count_of(c->shard, remote) - 1;
}

void nj__shares_add(struct nj_conn *c)
{
    struct nj_shard *s = c->shard;

    if (nj_likely(!is_passed(c)))
        return;
    count(c);
    if (nj__shares_tight(s) && !nj_tcp_few_left(&s->tcp)) /* else TCP asked */
        want(s, n_besides(c));
}

bool nj__shares_yields(void *shard, const struct nj_addr *remote, bool proven)
{
    struct nj_shard *s = shard;
    struct nj_shares *sh = &s->shares;

    if (sh->counted == 0)
        return false;
    uint32_t n_own = is_shared(s, remote) ? 0 : *count_of(s, remote);
    if (!proven) /* SYNs may be spoofed: nothing is evicted for an unproven address */
        return some_yield(sh, n_own);
    return want(s, n_own);
}

/* Evicts one connection per request: with FIN while the table has free entries, else with RST. */
static uint32_t yield_some(struct nj_shard *s, nj_ns now)
{
    struct nj_shares *sh = &s->shares;
    bool gently = !nj_tcp_few_left(&s->tcp);
    uint32_t n = 0;

    for (; sh->n_wanted > 0; sh->n_wanted--, n++) {
        struct nj_conn *c = who_yields(s, sh->wanted_for, gently);
        if (!c) { /* clients that still need one will ask again */
            sh->n_wanted = 0;
            break;
        }
        nj__abuse(s, NJ_C_conn_yielded, &c->tcb->flow.tuple.remote);
        if (gently)
            nj__conn_leave(c, now);
        else
            nj__conn_reset(c, now);
    }
    return n;
}

/* Updates the largest client. */
static void look_around(struct nj_shard *s)
{
    struct nj_shares *sh = &s->shares;

    sh->unsure = false;
    for (uint32_t i = 0; i < LOOK_FEW && i < s->conns.n_touched; i++) {
        const struct nj_conn *c = next_place(s);
        if (is_open(s, c, false))
            note_most(sh, count_of(s, &c->tcb->flow.tuple.remote));
    }
}

uint32_t nj__shares_run(struct nj_shard *s, nj_ns now)
{
    struct nj_shares *sh = &s->shares;
    uint32_t n_used = s->tcp.tcbs.n_used;

    if (nj_likely(sh->counted == 0 && n_used <= part(s, COUNT_FROM)))
        return 0;
    if (n_used < part(s, COUNT_UNTIL)) {
        nj__shares_restart(s);
        return 0;
    }
    uint32_t n = sh->counted != UINT32_MAX ? count_some(s) : 0;
    if (sh->unsure)
        look_around(s);
    return n + yield_some(s, now);
}

bool nj__shares_busy(const struct nj_shard *s)
{
    const struct nj_shares *sh = &s->shares;
    return (sh->counted > 0 && sh->counted != UINT32_MAX) || sh->n_wanted > 0;
}
