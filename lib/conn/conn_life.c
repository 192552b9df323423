/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/conn_life.h"

#include "conn/conn_fair_eviction.h"
#include "conn/conn_held.h"
#include "conn/conn_timeouts.h"
#include "conn/conn_tls.h"
#include "conn/session.h"

/* Time during which acknowledged bytes count as progress. */
#define LINGER_PROGRESS_MAX (240 * NJ_SEC)

struct nj_conn *nj__conn_new(struct nj_conns *cs, struct nj_tcb *tcb, nj_ns now)
{
    struct nj_conn *c = nj_pool_take(&cs->pool);
    if (!c)
        return NULL;
    c->conns = cs;
    c->tcb = tcb;
    c->is_tls = nj__conn_is_to_tls(c);
    c->waits_for = NJ_N_CONN_WAITS; /* on no list */
    nj_list_init(&c->node);
    if (c->is_tls)
        nj_tcp_expect_records(tcb);
    tcb->user = &c->user;
    nj__conn_update_timeout_list(c, now);
    nj__conn_shares_add(c);
    return c;
}

struct nj_conn_active *nj__conn_active(struct nj_conn *c)
{
    if (c->active)
        return c->active;
    struct nj_conn_active *active = c->active = nj_pool_take(&c->conns->active_pool);
    NJ_CHECK(active); /* the pool holds as many of these as connections */
    active->conn = c;
    active->number = ++c->conns->n_spoke;
    nj_list_init(&active->unacked);
    nj_list_init(&active->tx_wait);
    return active;
}

/* Removes it from every list, whatever it waits for. */
static void remove_from_lists(struct nj_conn *c)
{
    nj_list_del(&c->node);
    if (c->active) {
        nj_list_del(&c->active->unacked);
        nj_list_del(&c->active->tx_wait);
    }
    nj__conn_forget_held(c);
}

void nj__conn_reset(struct nj_conn *c, nj_ns now)
{
    remove_from_lists(c);
    nj_tcp_abort(c->conns->tcp, c->tcb, now);
}

/* The server closes first, and reads on until the peer does (RFC 9112 9.6). With TLS it sends
 * close_notify before (RFC 9112 9.8). */
void nj__conn_begin_linger(struct nj_conn *c, nj_ns now)
{
    bool resets = nj__conn_has_session(c) && nj__session_must_reset(c);
    bool rest_may_come = !c->failed && nj__conn_has_session(c) && nj__session_rest_may_come(c);

    nj__session_close(c);
    if (nj_unlikely(c->is_tls))
        nj__conn_tls_close(c);
    c->state = NJ_CONN_LINGER;
    nj__conn_track_held(c, now); /* perhaps it has no further event for a long time */
    c->progressed = true;
    nj_tcp_set_ack_events(c->tcb, true);
    if (c->active) {
        c->active->progress_until = now + LINGER_PROGRESS_MAX;
        c->active->late_since = 0;
        c->active->late_from = c->tcb->rcv_nxt;
        c->active->may_be_late = rest_may_come;
    }
    nj_tcp_close(c->conns->tcp, c->tcb, now);
    if (nj_unlikely(resets || (c->is_tls && nj__conn_tls_is_broken(c))))
        nj__conn_reset(c, now);
}

void nj__conn_free(struct nj_conn *c, nj_ns now)
{
    struct nj_conns *cs = c->conns;
    nj__session_close(c);
    remove_from_lists(c);
    if (c->active)
        nj_pool_put(&cs->active_pool, c->active);
    nj__conn_shares_remove(c);
    if (c->is_tls)
        nj__conn_tls_free(c);
    nj_tcp_release(cs->tcp, c->tcb, now);
    if (c->client) {
        nj_client_conn_end(c->client);
        nj_txns_put_client(&cs->txns, c->client);
    }
    c->conns = NULL; /* marks a free object for recheck_conns() */
    nj_pool_put(&cs->pool, c);
}
