/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies the operator's policy to connections: which peers may connect, and how many connections
 * each client may have. Also carries out the change from one policy to the next, and commands of
 * management. */
#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "conn/conn_life.h"
#include "http/site/site_response.h"
#include "site/site_table.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"
#include "telem/counters_tcp.h"

/* Client table of a shard that has none in common with others, as in tests. */
#define OWN_CLIENTS_MAX  4096u
/* Connections, and requests, checked per step after a policy change: 50 ns each, unless the policy
 * has long lists of networks. */
#define RECHECK_MAX      1024u
/* Sites that are looked at in the time of a check. */
#define LOOKS_OF_A_CHECK 8u

bool nj__policy_init(struct nj_conns *cs, nj_ns now)
{
    struct nj_shape_config c = {
        .shared = cs->cfg->shape,
        .policy = cs->cfg->policy ? cs->cfg->policy : &nj_policy_none,
        .counters = cs->counters,
        .paced_max = cs->txns.pool.n_max + 1, /* a response counts in two classes while it moves */
    };
    if (!c.shared)
        c.shared = cs->own_shared = nj_shape_shared_new(OWN_CLIENTS_MAX);
    if (!c.shared)
        return false;
    cs->txns.clients = nj_shape_clients(c.shared);
    cs->txns.shape = nj_shape_new(&c, now);
    atomic_store_explicit(&cs->policy_wanted, c.policy, memory_order_relaxed);
    atomic_store_explicit(&cs->policy_version, c.policy->version, memory_order_relaxed);
    cs->recheck_at = cs->recheck_txn_at = UINT32_MAX;
    return cs->txns.shape != NULL;
}

void nj__policy_fini(struct nj_conns *cs)
{
    if (cs->txns.shape)
        nj_shape_free(cs->txns.shape);
    if (cs->own_shared)
        nj_shape_shared_free(cs->own_shared);
    cs->txns.shape = NULL;
    cs->own_shared = NULL;
}

/* --- connections --------------------------------------------------------------------------- */

static enum nj_tcp_accept filter_action(const struct nj_conns *cs, const struct nj_addr *remote)
{
    const struct nj_policy *p = nj_shape_policy(cs->txns.shape);

    if (nj_likely(!nj_policy_filters_conns(p)))
        return NJ_TCP_ACCEPT_ALLOW;
    switch (nj_policy_decide_conn(p, remote)) {
    case NJ_ACTION_DROP:
        return NJ_TCP_ACCEPT_DROP;
    case NJ_ACTION_RESET:
        return NJ_TCP_ACCEPT_RESET;
    case NJ_ACTION_SERVE: /* the other actions apply to requests */
    case NJ_ACTION_FORBID:
    case NJ_ACTION_TOO_MANY:
        break;
    }
    return NJ_TCP_ACCEPT_ALLOW;
}

/* TCP counts what is refused. */
enum nj_tcp_accept nj_conns_accept_filter(struct nj_conns *cs, const struct nj_addr *remote)
{
    enum nj_tcp_accept action = filter_action(cs, remote);

    if (nj_unlikely(action != NJ_TCP_ACCEPT_ALLOW))
        nj__abuse_attribute(cs, NJ_C_drop_tcp_denied, remote);
    return action;
}

/* Connections are counted for their client only while a limit is set, so an idle connection without
 * a limit costs nothing. Connections that were open when the limit was set are not counted. */
static bool take_client_slot(struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;
    const struct nj_policy *p = nj_shape_policy(cs->txns.shape);
    const struct nj_client_caps *caps = &p->classes[0].caps;
    const struct nj_addr *remote = nj__conn_remote(c);

    if (caps->conns_max == 0 || nj_policy_trusts(p, remote))
        return true;
    struct nj_client *client =
        nj_txns_get_client(&cs->txns, nj_policy_conn_key(p, &cs->cfg->client_key, remote), remote);
    if (nj_client_conn_begin(client, caps)) {
        c->client = client;
        return true;
    }
    nj_txns_put_client(&cs->txns, client);
    return false;
}

bool nj__policy_admit_conn(struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;

    if (filter_action(cs, nj__conn_remote(c)) !=
        NJ_TCP_ACCEPT_ALLOW) { /* the policy changed during the handshake */
        nj__abuse_record(cs, NJ_C_conn_denied, nj__conn_remote(c));
        return false;
    }
    if (take_client_slot(c))
        return true;
    nj__abuse_record(cs, NJ_C_conn_client_full, nj__conn_remote(c));
    return false;
}

/* Does the policy accept both the peer, and the source that a proxy has named? */
static bool is_still_admitted(const struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;

    return filter_action(cs, nj__conn_remote(c)) == NJ_TCP_ACCEPT_ALLOW &&
           (!c->is_proxied || filter_action(cs, &c->tcb->flow.tuple.remote) == NJ_TCP_ACCEPT_ALLOW);
}

/* Checks the next batch of the connections that were open when the policy changed. Objects keep
 * their slots in the pool; connections made meanwhile are checked when they are made. */
static uint32_t recheck_conns(struct nj_conns *cs, nj_ns now)
{
    uint32_t n = 0;

    for (; n < RECHECK_MAX && cs->recheck_at < cs->pool.n_touched; n++) {
        struct nj_conn *c = nj_pool_at(&cs->pool, cs->recheck_at++);
        if (c->conns != cs || c->tcb->state == NJ_TCP_CLOSED || is_still_admitted(c))
            continue;
        nj__abuse_record(cs, NJ_C_conn_denied, nj__conn_remote(c));
        nj__conn_reset(c, now);
    }
    if (cs->recheck_at >= cs->pool.n_touched)
        cs->recheck_at = UINT32_MAX;
    return n;
}

/* Ends the response, and its connection if it has no other. */
static void end_forbidden(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = nj__conn_of(t);

    nj__abuse_record(c->conns, NJ_C_request_refused, &t->remote);
    if (t->framing->is_alone(t->stream)) {
        nj__conn_reset(c, now);
        return;
    }
    t->framing->reset(t->stream, NJ_RESET_CANCEL);
    nj__conn_mark_ready(c);
}

/* Does the site deny the client now? Of long responses from files the site and path are kept. A
 * path that was cut may be another's. */
static bool is_denied_by_site(const struct nj_policy *p, const struct nj_txn *t,
                              struct nj_site_search *at)
{
    const struct nj_txn_path *kept = p->sites ? nj_txn_kept_path(t) : NULL;

    if (!kept || kept->site == 0 || kept->is_cut)
        return false;
    const struct nj_str path = {kept->text, kept->n_bytes};
    const struct nj_site_rules *rules = nj_sites_find_again(p->sites, kept->site, path, at);
    return rules && nj_site_denies(t, rules);
}

/* Checks the next batch of the requests that were open when the policy changed. One that has ended
 * has no stream. */
static uint32_t recheck_txns(struct nj_conns *cs, nj_ns now)
{
    const struct nj_pool *pool = &cs->txns.pool;
    const struct nj_policy *policy = nj_shape_policy(cs->txns.shape);
    struct nj_site_search at = {0};
    uint32_t n = 0;

    for (; n + at.n_looks / LOOKS_OF_A_CHECK < RECHECK_MAX && cs->recheck_txn_at < pool->n_touched;
         n++) {
        struct nj_txn *t = nj_pool_at(pool, cs->recheck_txn_at++);
        if (t->set == &cs->txns && t->stream && t->admitted &&
            nj_list_linked(&nj__conn_of(t)->node) &&
            (nj_policy_forbids(policy, &t->remote, nj_paced_class(&t->paced)) ||
             nj_policy_blocks(policy, &t->client_addr) || is_denied_by_site(policy, t, &at)))
            end_forbidden(t, now);
    }
    if (cs->recheck_txn_at >= pool->n_touched)
        cs->recheck_txn_at = UINT32_MAX;
    return n;
}

/* --- change -------------------------------------------------------------------------------- */

void nj_conns_set_policy(struct nj_conns *cs, const struct nj_policy *policy)
{
    atomic_store_explicit(&cs->policy_wanted, policy ? policy : &nj_policy_none,
                          memory_order_release);
}

uint64_t nj_conns_policy_version(const struct nj_conns *cs)
{
    return atomic_load_explicit(&cs->policy_version, memory_order_acquire);
}

static const struct nj_policy *wanted_policy(const struct nj_conns *cs)
{
    return atomic_load_explicit(&cs->policy_wanted, memory_order_acquire);
}

static void wake(void *ctx, void *waiter)
{
    (void)ctx;
    nj__conn_wake_response(waiter);
}

/* Timeouts may be shorter now, so they are looked at soon. */
static void adopt_http(struct nj_conns *cs, const struct nj_http_options *http)
{
    if (!http || http == cs->cfg->http)
        return;
    cs->cfg->http = cs->txns.options = http;
    cs->cfg->preface_timeout = http->preface_timeout;
    cs->cfg->idle_timeout = http->idle_timeout;
    cs->timeouts_at = 0;
}

uint32_t nj_conns_adopt_policy_and_run_shaper(struct nj_conns *cs, nj_ns now)
{
    const struct nj_policy *p = wanted_policy(cs);
    uint32_t n = 0;

    if (nj_unlikely(p != nj_shape_policy(cs->txns.shape))) {
        adopt_http(cs, p->http);
        nj_shape_set_policy(cs->txns.shape, p, now);
        cs->recheck_at = nj_policy_filters_conns(p) ? 0 : UINT32_MAX;
        cs->recheck_txn_at = nj_policy_forbids_any(p) || p->sites ? 0 : UINT32_MAX;
        nj__conn_shares_restart_count(cs);
    }
    if (nj_unlikely(cs->recheck_at != UINT32_MAX))
        n = recheck_conns(cs, now);
    if (nj_unlikely(nj_command_ring_has_any(&cs->commands)))
        n += nj_command_ring_run(&cs->commands, cs, now);
    n += nj_shape_run(cs->txns.shape, now, wake, cs);
    if (nj_unlikely(cs->recheck_txn_at != UINT32_MAX) && nj_shape_is_migrated(cs->txns.shape))
        n += recheck_txns(cs, now);
    uint64_t version = atomic_load_explicit(&cs->policy_version, memory_order_relaxed);
    if (nj_unlikely(version != p->version) && nj_shape_is_migrated(cs->txns.shape))
        atomic_store_explicit(&cs->policy_version, p->version, memory_order_release);
    return n;
}

nj_ns nj_conns_policy_next_at(const struct nj_conns *cs)
{
    bool changes = wanted_policy(cs) != nj_shape_policy(cs->txns.shape) ||
                   (cs->recheck_at & cs->recheck_txn_at) != UINT32_MAX;
    changes |= nj_command_ring_has_any(&cs->commands);
    return changes ? 0 : nj_shape_next_at(cs->txns.shape);
}
