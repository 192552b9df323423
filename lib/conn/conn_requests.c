/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of a connection, answered by the file server or by handlers of routes. Requests of
 * routes are queued in order of arrival; each time a connection is served it begins some of them
 * (deficit round robin over connections, in time).
 */
#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "conn/conn_life.h"
#include "conn/conn_tls.h"
#include "conn/request_timeouts.h"
#include "http/dispatch.h"
#include "http/request_admission.h"

#define CREDIT_MAX_NS (10 * NJ_MS) /* largest debt of a connection */

/* Cost of resetting a request that a worker runs, in glitches (h2.h), in addition to the 2 of any
 * reset. A connection ends after about 170 such resets in a row. */
#define RESET_RUNNING_COST 4u

/* --- framing operations --------------------------------------------------------------------- */

static void mark_ready(struct nj_h2_stream *st)
{
    nj__conn_mark_ready(nj_h2_user(nj_h2_stream_conn(st)));
}

static int respond(void *stream, uint16_t status, const struct nj_field *fields, uint32_t n_fields,
                   uint64_t stamp, struct nj_body *body)
{
    mark_ready(stream);
    return nj_h2_respond(stream, status, fields, n_fields, stamp, body);
}

static bool respond_cached(void *stream, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    mark_ready(stream);
    return nj_h2_respond_cached(stream, status, stamp, body);
}

static int trailers(void *stream, const struct nj_field *fields, size_t n_fields)
{
    return nj_h2_set_trailers(stream, fields, n_fields);
}

static void resume(void *stream)
{
    mark_ready(stream);
    nj_h2_resume(stream);
}

static void consume(void *stream, size_t n_bytes)
{
    mark_ready(stream); /* a WINDOW_UPDATE may be due */
    nj_h2_consume(stream, n_bytes);
}

static void reset(void *stream, enum nj_reset why)
{
    static const uint32_t code[] = {
        [NJ_RESET_INTERNAL] = NJ_H2_INTERNAL_ERROR,
        [NJ_RESET_REFUSED] = NJ_H2_REFUSED_STREAM,
        [NJ_RESET_CANCEL] = NJ_H2_CANCEL,
        [NJ_RESET_ENHANCE_CALM] = NJ_H2_ENHANCE_YOUR_CALM,
    };

    mark_ready(stream);
    nj_h2_reset_stream(stream, code[why]);
}

static void send_continue(void *stream)
{
    mark_ready(stream);
    nj_h2_send_continue(stream);
}

static void prioritize(void *stream, uint8_t urgency, bool incremental)
{
    nj_h2_prioritize(stream, urgency, incremental);
}

#define FRAMING                                                                                    \
    .respond = respond, .respond_cached = respond_cached, .trailers = trailers,                    \
    .resume = resume, .consume = consume, .reset = reset,                            \
    .send_continue = send_continue, .prioritize = prioritize

static const struct nj_framing framing = {FRAMING};
static const struct nj_framing tls_framing = {FRAMING, .tls_suite = nj__conn_tls_suite,
                                              .client_cert = nj__conn_tls_cert};

static void abuse(void *conns, nj_counter why, const struct nj_addr *client)
{
    nj__abuse_attribute(conns, why, client);
}

static void leave_stack_queue(struct nj_txn *t)
{
    nj__admission_dequeue(nj__conn_of(t)->conns, t);
}

/* Offers a request of a route again: it becomes the next one of its connection. */
static void requeue_request_first(struct nj_txn *t)
{
    struct nj_conn *c = t->conn;
    struct nj_conn_active *active = c->active;
    struct nj_list *node = nj_exchange_node(t->exchange);

    nj_list_del(node);
    nj_list_push_back(active->next_request ? active->next_request : &active->peer.exchanges,
                      node); /* before it */
    active->next_request = node;
    nj_tcp_note_ready(c->conns->tcp, c->tcb, 0); /* it may have been served in this step already */
}

void nj__conn_wake_response(void *txn)
{
    struct nj_txn *t = txn;
    t->framing->resume(t->stream);
}

const struct nj_txn_events nj__txn_events = {
    .abuse = abuse,
    .requeue = requeue_request_first,
    .watch_progress = nj__txn_schedule_progress_check,
    .leave_stack_queue = leave_stack_queue,
    .wake = nj__conn_wake_response,
};

/* --- events of HTTP/2 ---------------------------------------------------------------------- */

static struct nj_txn *txn_of(const struct nj_h2_stream *st)
{
    return nj_h2_stream_user(st);
}

static struct nj_txn_origin origin(struct nj_conn *c, struct nj_h2_stream *st)
{
    return (struct nj_txn_origin){
        .framing = c->is_tls ? &tls_framing : &framing,
        .stream = st,
        .stream_id = nj_h2_stream_id(st),
        .conn = c,
        .conn_number = c->active->number,
        .remote = &c->tcb->flow.tuple.remote,
        .rport = c->tcb->flow.tuple.rport,
    };
}

static void request(struct nj_conn *c, struct nj_h2_stream *st, const struct nj_request_head *head)
{
    struct nj_conns *cs = c->conns;
    struct nj_txn_origin from = origin(c, st);
    struct nj_target target; /* read once, for policy, routes and files */
    struct nj_txn *t;

    nj_file_server_parse_target(cs->site, head->path, &target);
    bool is_served = nj_txn_begin(&cs->txns, &from, head, target.path, &t);
    nj_h2_stream_set_user(st, t);
    if (!is_served)
        return;
    struct nj_exchange *x =
        nj_http_dispatch(cs->site, cs->handlers.exchanges, t, head, &target, c->active->peer.n);
    if (!x)
        return;
    nj_exchange_attach_to_conn(x, &c->active->peer);
    if (!c->active->next_request)
        c->active->next_request = nj_exchange_node(x);
}

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *head)
{
    struct nj_conn *c = user;
    enum nj_stage was = nj_stage(c->conns->stages, NJ_STAGE_HANDLER);

    c->progressed = true;
    request(c, st, head);
    nj_stage(c->conns->stages, was);
}

/* Advances to the following request that has not been offered. */
static void advance_next_request(struct nj_conn_active *active)
{
    struct nj_list *next = active->next_request->next;
    active->next_request = next == &active->peer.exchanges ? NULL : next;
}

/* Resetting a request that a worker runs costs extra: it makes the server do the most work for the
 * least effort. */
static void on_stream_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct nj_conn *c = user;
    struct nj_txn *t = txn_of(st);
    struct nj_exchange *x = t ? t->exchange : NULL;

    c->progressed = true;
    if (!t) /* no nj_txn was free */
        return;
    if (x && c->active->next_request == nj_exchange_node(x))
        advance_next_request(c->active);
    nj_txn_end(t, complete);
    if (x && nj_exchange_is_on_worker(x) && nj_h2_was_reset_by_peer(st))
        nj_h2_add_glitches(c->active->h2, RESET_RUNNING_COST);
}

static void on_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n_bytes)
{
    struct nj_conn *c = user;
    struct nj_txn *t = txn_of(st);

    c->progressed = true;
    if (t)
        t->body_progressed = true;
    if (t && t->exchange)
        nj_exchange_receive_body(t->exchange, data, n_bytes);
    else
        nj_h2_consume(st, n_bytes);
}

static void on_end(void *user, struct nj_h2_stream *st)
{
    struct nj_conn *c = user;
    struct nj_txn *t = txn_of(st);

    c->progressed = true;
    if (t)
        t->request_whole = true;
    if (t && t->exchange)
        nj_exchange_on_body_end(t->exchange);
}

static void on_refused(void *user, struct nj_h2_stream *st, const struct nj_request_head *head,
                       uint16_t status)
{
    struct nj_conn *c = user;
    struct nj_txn_origin from = origin(c, st);

    nj_txns_refuse_and_log(&c->conns->txns, &from, head, status);
}

static void on_refusal_counted(void *user, nj_counter why)
{
    const struct nj_conn *c = user;

    nj__abuse_attribute(c->conns, why, &c->tcb->flow.tuple.remote);
}

const struct nj_h2_events nj__conn_h2_events = {
    .on_request = on_request,
    .on_stream_close = on_stream_close,
    .on_refused = on_refused,
    .on_refusal_counted = on_refusal_counted,
};

const struct nj_h2_events nj__conn_h2_route_events = {
    .on_request = on_request,
    .on_stream_close = on_stream_close,
    .on_data = on_data,
    .on_end = on_end,
    .on_refused = on_refused,
    .on_refusal_counted = on_refusal_counted,
};

/* --- rounds over connections --------------------------------------------------------------- */

/* Begins requests of the connection, within its share of the round. */
void nj__conn_serve_requests(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_active *active = c->active;

    if (c->state == NJ_CONN_H2 && active->next_request) {
        uint32_t most = c->conns->cfg->round_tasks ? c->conns->cfg->round_tasks : NJ_ROUND_TASKS;
        active->round_credit_ns =
            active->round_credit_ns < 0 ? active->round_credit_ns + NJ_ROUND_NS : NJ_ROUND_NS;
        for (uint32_t n = 0; active->next_request && active->round_credit_ns > 0 && n < most; n++) {
            struct nj_exchange *x = nj_exchange_of_node(active->next_request);
            advance_next_request(active);
            if (nj__admission_admit_request(c->conns, x) != NJ_ADMIT_NOW)
                continue; /* later requests may not need what this one waits for */
            nj_ns took = nj__handlers_schedule_request(c->conns, x);
            active->round_credit_ns -= (int32_t)(took < CREDIT_MAX_NS ? took : CREDIT_MAX_NS);
        }
        if (active->next_request)
            nj_tcp_note_ready(c->conns->tcp, c->tcb, 0); /* after connections that wait already */
    }
    nj__handlers_deliver_responses(c->conns, now);
}

void nj__conn_abort_request_bodies(struct nj_conn *c)
{
    if (c->state != NJ_CONN_H2)
        return;
    struct nj_list *all = &c->active->peer.exchanges;
    for (struct nj_list *n = all->next; n != all; n = n->next)
        nj_exchange_cancel_if_body_partial(nj_exchange_of_node(n));
}
