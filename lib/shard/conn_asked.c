/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked on a connection: by the site, or by the handler of a route. Requests of routes are
 * noted in the order they come; each connection's turn begins some of them.
 */
#include "shard/ask.h"
#include "shard/conn.h"
#include "shard/shard_internal.h"

#define CREDIT_MAX_NS (10 * NJ_MS) /* a connection pays back no more than this */

/* In glitches (h2.h), beside the 2 that any reset costs: a connection ends after some 170 resets of
 * requests that a worker was busy with, in a row. */
#define RESET_RUNNING_COST 4u

/* --- what HTTP/2 says ---------------------------------------------------------------------- */

static void request_site(struct nj_ask *a, const struct nj_request_head *req,
                         const struct nj_target *target)
{
    const struct nj_shard *s = a->conn->shard;
    struct nj_http_request r = {req, target, a->who};

    if (s->cfg.body_max && req->content_length > s->cfg.body_max) {
        nj__ask_refuse(a, 413);
        return;
    }
    if (!nj__ask_hoards(a, nj_site_left(s->site)))
        a->wait = nj_site_request(s->site, &r, a, s->now);
}

static void request(struct nj_conn *c, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    struct nj_exchange *x;
    struct nj_target target; /* one reading of it, for policy, routes and files */

    nj_site_target(c->shard->site, req->path, &target);
    struct nj_ask *a = nj__ask_begin(c, st, req, target.path);
    if (!a)
        return;
    if (!nj__handlers_request(c->shard, st, req, &target, &x)) {
        request_site(a, req, &target);
        return;
    }
    if (!x)
        return;
    a->exchange = x;
    nj_exchange_join(x, &c->talk->peer);
    if (!c->talk->asked)
        c->talk->asked = nj_exchange_node(x);
}

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    struct nj_conn *c = user;
    enum nj_stage was = nj_stage(&c->shard->stages, NJ_STAGE_HANDLER);

    c->moved = true;
    request(c, st, req);
    nj_stage(&c->shard->stages, was);
}

/* The next that has not been offered, after this one. */
static void pass_asked(struct nj_talk *talk)
{
    struct nj_list *next = talk->asked->next;
    talk->asked = next == &talk->peer.exchanges ? NULL : next;
}

/* The stream of a route's request is over. A peer that leaves work behind which nobody stops pays
 * for it: it can have us do the most with the least. Returns whether the handler still runs. */
static bool leave_exchange(struct nj_conn *c, struct nj_h2_stream *st, struct nj_ask *a)
{
    struct nj_exchange *x = a->exchange;

    if (c->talk->asked == nj_exchange_node(x))
        pass_asked(c->talk);
    bool runs = nj_exchange_gone(x, a);
    if (runs && nj_exchange_is_away(x) && nj_h2_stream_was_reset(st))
        nj_h2_charge(c->talk->h2, RESET_RUNNING_COST);
    return runs;
}

static void on_stream_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct nj_conn *c = user;
    struct nj_ask *a = nj__ask_of(st);

    c->moved = true;
    if (!a) /* there was no record left */
        return;
    bool runs = a->exchange && leave_exchange(c, st, a);
    if (a->wait)
        nj_site_cancel(a->wait);
    nj__ask_end(a, complete, runs);
}

static void on_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n_bytes)
{
    struct nj_conn *c = user;
    struct nj_ask *a = nj__ask_of(st);

    c->moved = true;
    if (a)
        a->body_moved = true;
    if (a && a->exchange)
        nj_exchange_data(a->exchange, data, n_bytes);
    else
        nj_h2_consume(st, n_bytes);
}

static void on_end(void *user, struct nj_h2_stream *st)
{
    struct nj_conn *c = user;
    struct nj_ask *a = nj__ask_of(st);

    c->moved = true;
    if (a)
        a->whole = true;
    if (a && a->exchange)
        nj_exchange_body_end(a->exchange);
}

static void on_refused(void *user, struct nj_h2_stream *st, const struct nj_request_head *req,
                       uint16_t status)
{
    nj__ask_refused(user, st, req, status);
}

const struct nj_h2_events nj__conn_h2_events = {
    .on_request = on_request,
    .on_stream_close = on_stream_close,
    .on_refused = on_refused,
};

const struct nj_h2_events nj__conn_h2_route_events = {
    .on_request = on_request,
    .on_stream_close = on_stream_close,
    .on_data = on_data,
    .on_end = on_end,
    .on_refused = on_refused,
};

/* --- turns --------------------------------------------------------------------------------- */

/* A connection's turn: what it asked for is begun, but not more than its share. */
void nj__conn_serve(struct nj_conn *c, nj_ns now)
{
    struct nj_talk *talk = c->talk;

    if (c->state == H2 && talk->asked) {
        uint32_t most = c->shard->cfg.round_tasks ? c->shard->cfg.round_tasks : NJ_ROUND_TASKS;
        talk->credit_ns = talk->credit_ns < 0 ? talk->credit_ns + NJ_ROUND_NS : NJ_ROUND_NS;
        for (uint32_t n = 0; talk->asked && talk->credit_ns > 0 && n < most; n++) {
            struct nj_exchange *x = nj_exchange_of_node(talk->asked);
            pass_asked(talk);
            if (nj__handlers_may_begin(c->shard, x) != NJ_BEGIN_NOW)
                continue; /* those behind it may not need what it waits for */
            nj_ns took = nj__handlers_offer(c->shard, x);
            talk->credit_ns -= (int32_t)(took < CREDIT_MAX_NS ? took : CREDIT_MAX_NS);
        }
        if (talk->asked)
            nj_tcp_note_ready(&c->shard->tcp, c->tcb, 0); /* behind those that wait already */
    }
    nj__handlers_settle(c->shard, now);
}

void nj__conn_ask_again(struct nj_ask *a)
{
    struct nj_conn *c = a->conn;
    struct nj_talk *talk = c->talk;
    struct nj_list *node = nj_exchange_node(a->exchange);

    nj_list_del(node);
    nj_list_push_back(talk->asked ? talk->asked : &talk->peer.exchanges, node); /* before it */
    talk->asked = node;
    nj_tcp_note_ready(&c->shard->tcp, c->tcb, 0); /* its turn of this step may be over */
}

void nj__conn_cut_bodies(struct nj_conn *c)
{
    if (c->state != H2)
        return;
    struct nj_list *all = &c->talk->peer.exchanges;
    for (struct nj_list *n = all->next; n != all; n = n->next)
        nj_exchange_cut(nj_exchange_of_node(n));
}
