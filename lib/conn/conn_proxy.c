/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/conn_proxy.h"

#include "base/page_alloc.h"
#include "conn/abuse_reason_counts.h"
#include "conn/conn_fair_eviction.h"
#include "conn/conn_held.h"
#include "conn/conn_life.h"
#include "conn/proxy_protocol.h"
#include "telem/counters_conn.h"

static size_t proxied_bytes(const struct nj_conns *cs)
{
    return cs->tcp->cfg.conns_max * sizeof cs->proxied[0];
}

bool nj__conn_proxy_init(struct nj_conns *cs)
{
    const struct nj_listeners *l = &cs->tcp->listeners;
    bool is_needed = false;

    for (uint32_t i = 0; i < l->n; i++)
        is_needed |= l->at[i].has_proxy;
    if (is_needed)
        cs->proxied = nj_pages_map(proxied_bytes(cs), 0); /* has addresses of clients */
    return cs->proxied || !is_needed;
}

void nj__conn_proxy_fini(struct nj_conns *cs)
{
    if (cs->proxied)
        nj_pages_unmap(cs->proxied, proxied_bytes(cs));
    cs->proxied = NULL;
}

/* --- the header ----------------------------------------------------------------------------- */

/* The connection is the client's from here on. Returns false if the policy refuses it. */
static bool set_source(struct nj_conn *c, const struct nj_proxy_header *h)
{
    struct nj_conns *cs = c->conns;

    nj__conn_forget_held(c);
    nj__conn_shares_remove(c);
    cs->proxied[nj_pool_index(&cs->pool, c)] = (struct nj_conn_source){h->source, h->port};
    c->is_proxied = true;
    nj__conn_shares_add(c);
    nj_count(cs->counters, NJ_C_conn_proxied);
    if (!nj__policy_admit_conn(c))
        return false;
    nj__conn_shares_request_room(c);
    return true;
}

static bool refuse(struct nj_conn *c, nj_counter why)
{
    nj__abuse_record(c->conns, why, nj__conn_remote(c));
    return false;
}

/* What follows the header is the protocol of the port. False: the connection must be reset. */
static bool end_header(struct nj_conn *c, const struct nj_proxy_header *h)
{
    if (h->has_source && !nj__is_trusted_proxy(c->conns, &c->tcb->flow.tuple.remote))
        return refuse(c, NJ_C_conn_proxy_untrusted); /* the policy changed meanwhile */
    nj_tcp_recv_discard(c->conns->tcp, c->tcb, h->n_bytes);
    c->user.on_events = nj__conn_process;
    c->is_tls = nj__conn_is_to_tls(c);
    return !h->has_source || set_source(c, h);
}

/* Returns false if the connection must be reset. */
static bool read_header(struct nj_conn *c)
{
    uint8_t head[NJ_PROXY_HEADER_BYTES_MAX];
    uint32_t n = nj_min_u32(nj_tcp_recv_bytes(c->tcb), sizeof head);
    struct nj_proxy_header h;

    if (n == 0 || !nj_tcp_recv_copy(c->tcb, 0, head, n))
        return true;
    switch (nj_proxy_parse(head, n, &h)) {
    case NJ_PROXY_MORE:
        c->input_waits = true;
        return !c->peer_fin || refuse(c, NJ_C_conn_proxy_malformed);
    case NJ_PROXY_MISSING:
        return refuse(c, NJ_C_conn_proxy_missing);
    case NJ_PROXY_MALFORMED:
        return refuse(c, NJ_C_conn_proxy_malformed);
    case NJ_PROXY_DONE:
        break;
    }
    return end_header(c, &h);
}

/* on_events until the header is complete. A connection that ends before goes on as any other. */
static void process_header(struct nj_conns *cs, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    struct nj_conn *c = nj_container_of(tcb->user, struct nj_conn, user);

    c->input_waits = false;
    if (events & NJ_TCP_EV_PEER_FIN)
        c->peer_fin = true;
    if (!(events & NJ_TCP_EV_DEAD) && c->state == NJ_CONN_SNIFF && !read_header(c))
        nj__conn_reset(c, now);
    else
        nj__conn_process(cs, tcb, events, now);
}

bool nj__conn_proxy_admit(struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;

    if (nj_likely(!cs->proxied) || !nj__conn_listener(c)->has_proxy)
        return true;
    if (!nj__is_trusted_proxy(cs, nj__conn_remote(c)))
        return refuse(c, NJ_C_conn_proxy_untrusted);
    c->user.on_events = process_header;
    c->is_tls = false;
    nj_tcp_expect_records(c->tcb); /* a header has to fit into the receive buffer, too */
    return true;
}
