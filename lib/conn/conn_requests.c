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
#include "conn/request_trace.h"
#include "conn/session.h"
#include "http/dispatch.h"
#include "http/request_admission.h"
#include "http/response_head.h"
#include "http/site/site_response.h"

#define CREDIT_MAX_NS (10 * NJ_MS) /* largest debt of a connection */

/* Cost of resetting a request that a worker runs, in glitches (h2.h), in addition to the 2 of any
 * reset. A connection ends after about 170 such resets in a row. */
#define RESET_RUNNING_COST 4u

/* --- framing operations of HTTP/2 ----------------------------------------------------------- */

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
        [NJ_RESET_SILENT] = NJ_H2_REFUSED_STREAM,
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

static enum nj_blocked_by blocked_by(const void *stream)
{
    return nj_h2_stream_blocked_by(stream);
}

static bool is_alone(const void *stream)
{
    const struct nj_h2 *h2 = nj_h2_stream_conn(stream);

    return nj_h2_first_stream(h2) == stream && !nj_h2_next_stream(stream);
}

static bool is_reset(const void *stream)
{
    return nj_h2_stream_is_reset(stream);
}

static uint64_t id(const void *stream)
{
    const struct nj_conn *c = nj_h2_user(nj_h2_stream_conn(stream));

    return nj_txn_id_of(c->active->number, nj_h2_stream_id(stream));
}

#define H2_FRAMING                                                                                 \
    .respond = respond, .respond_cached = respond_cached, .trailers = trailers, .resume = resume,  \
    .consume = consume, .reset = reset, .send_continue = send_continue, .prioritize = prioritize,  \
    .blocked_by = blocked_by, .is_alone = is_alone, .is_reset = is_reset, .id = id
#define TLS                                                                                        \
    .tls_suite = nj__conn_tls_suite, .client_cert = nj__conn_tls_cert,                             \
    .identity = nj__conn_tls_identity

static const struct nj_framing h2_framing = {H2_FRAMING};
static const struct nj_framing h2_tls_framing = {H2_FRAMING, TLS};

/* --- framing operations of HTTP/1: `h1` is the connection, with its open request ------------- */

static void mark_ready_h1(void *h1)
{
    nj__conn_mark_ready(nj_h1_user(h1));
}

static int respond_h1(void *h1, uint16_t status, const struct nj_field *fields, uint32_t n_fields,
                      uint64_t stamp, struct nj_body *body)
{
    mark_ready_h1(h1);
    return nj_h1_respond(h1, status, fields, n_fields, stamp, body);
}

static bool respond_cached_h1(void *h1, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    mark_ready_h1(h1);
    return nj_h1_respond_cached(h1, status, stamp, body);
}

static int trailers_h1(void *h1, const struct nj_field *fields, size_t n_fields)
{
    return nj_h1_set_trailers(h1, fields, n_fields);
}

static void resume_h1(void *h1)
{
    mark_ready_h1(h1);
    nj_h1_resume(h1);
}

static void consume_h1(void *h1, size_t n_bytes)
{
    mark_ready_h1(h1); /* more of the body may be read */
    nj_h1_consume(h1, n_bytes);
}

/* HTTP/1 has no code for `why`. That the server lacks room is said by 503, unless the response has
 * begun. */
static void reset_h1(void *h1, enum nj_reset why)
{
    struct nj_txn *t = nj_h1_request_user(h1); /* NULL while the request begins */
    bool is_full = why == NJ_RESET_REFUSED || why == NJ_RESET_ENHANCE_CALM;

    mark_ready_h1(h1);
    if (is_full && t && !t->head_sent_at) {
        nj_h1_drain(h1, false); /* the rest of the request is not read */
        nj_file_server_cancel(t);
        nj_respond_error(t, 503, (struct nj_field){0});
    } else {
        nj_h1_reset(h1);
    }
}

static void send_continue_h1(void *h1)
{
    mark_ready_h1(h1);
    nj_h1_send_continue(h1);
}

/* A connection has one response at a time. */
static void prioritize_h1(void *h1, uint8_t urgency, bool incremental)
{
    (void)h1;
    (void)urgency;
    (void)incremental;
}

static enum nj_blocked_by blocked_by_h1(const void *h1)
{
    return nj_h1_is_blocked_by_body(h1) ? NJ_BLOCKED_BY_BODY : NJ_BLOCKED_BY_NOTHING;
}

static bool is_alone_h1(const void *h1)
{
    (void)h1;
    return true;
}

static bool is_reset_h1(const void *h1)
{
    return nj_h1_is_reset(h1);
}

static uint64_t id_h1(const void *h1)
{
    const struct nj_conn *c = nj_h1_user(h1);

    return nj_txn_id_of(c->active->number, nj_h1_request_number(h1));
}

#define H1_FRAMING                                                                                 \
    .respond = respond_h1, .respond_cached = respond_cached_h1, .trailers = trailers_h1,           \
    .resume = resume_h1, .consume = consume_h1, .reset = reset_h1,                                 \
    .send_continue = send_continue_h1, .prioritize = prioritize_h1, .blocked_by = blocked_by_h1,   \
    .is_alone = is_alone_h1, .is_reset = is_reset_h1, .id = id_h1

static const struct nj_framing h1_framing = {H1_FRAMING};
static const struct nj_framing h1_tls_framing = {H1_FRAMING, TLS};

/* --- events of transactions ---------------------------------------------------------------- */

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

/* --- events of both protocols -------------------------------------------------------------- */

static struct nj_txn_origin origin(struct nj_conn *c, const struct nj_framing *framing,
                                   void *stream, uint32_t stream_id)
{
    return (struct nj_txn_origin){
        .framing = framing,
        .stream = stream,
        .stream_id = stream_id,
        .conn = c,
        .conn_number = c->active->number,
        .remote = nj__conn_remote(c),
        .rport = nj__conn_rport(c),
        .peer = &c->tcb->flow.tuple.remote,
    };
}

/* Begins a transaction, and answers or queues it. NULL: no nj_txn was free, and it was answered. */
static inline struct nj_txn *begin_request(struct nj_conn *c, const struct nj_txn_origin *from,
                                           const struct nj_request_head *head)
{
    struct nj_conns *cs = c->conns;
    enum nj_stage was = nj_stage(cs->stages, NJ_STAGE_HANDLER);
    struct nj_target target; /* read once, for policy, routes and files */
    struct nj_exchange *x = NULL;
    struct nj_txn *t;

    c->progressed = true;
    nj_file_server_parse_target(cs->site, head->path, &target);
    if (nj_txn_begin(&cs->txns, from, head, target.path, &t) && !nj_site_answer(t, head, &target))
        x = nj_http_dispatch(cs->site, cs->handlers.exchanges, t, head, &target, c->active->peer.n);
    if (x) {
        nj_exchange_attach_to_conn(x, &c->active->peer);
        if (!c->active->next_request)
            c->active->next_request = nj_exchange_node(x);
    }
    if (nj_unlikely(cs->trace) && t)
        nj__trace_request_begin(cs, t, head);
    nj_stage(cs->stages, was);
    return t;
}

/* Advances to the following request that has not been offered. */
static void advance_next_request(struct nj_conn_active *active)
{
    struct nj_list *next = active->next_request->next;
    active->next_request = next == &active->peer.exchanges ? NULL : next;
}

/* Returns true if a worker still runs the handler. */
static bool end_request(struct nj_conn *c, struct nj_txn *t, bool complete)
{
    struct nj_exchange *x = t ? t->exchange : NULL;

    c->progressed = true;
    if (!t) /* no nj_txn was free */
        return false;
    if (x && c->active->next_request == nj_exchange_node(x))
        advance_next_request(c->active);
    if (nj_unlikely(c->conns->trace))
        nj__trace_request_end(c->conns, t, complete);
    nj_txn_end(t, complete);
    return x && nj_exchange_is_on_worker(x);
}

/* Returns false if nobody reads the body. */
static bool receive_body(struct nj_conn *c, struct nj_txn *t, const uint8_t *data, size_t n_bytes)
{
    c->progressed = true;
    if (t)
        t->body_progressed = true;
    if (!t || !t->exchange)
        return false;
    nj_exchange_receive_body(t->exchange, data, n_bytes);
    return true;
}

static void end_body(struct nj_conn *c, struct nj_txn *t)
{
    c->progressed = true;
    if (t)
        t->request_whole = true;
    if (t && t->exchange)
        nj_exchange_on_body_end(t->exchange);
}

static void on_refusal_counted(void *user, nj_counter why)
{
    const struct nj_conn *c = user;

    nj__abuse_attribute(c->conns, why, nj__conn_remote(c));
}

/* --- events of HTTP/2 ---------------------------------------------------------------------- */

static struct nj_txn_origin h2_origin(struct nj_conn *c, struct nj_h2_stream *st)
{
    return origin(c, c->is_tls ? &h2_tls_framing : &h2_framing, st, nj_h2_stream_id(st));
}

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *head)
{
    struct nj_txn_origin from = h2_origin(user, st);

    nj_h2_stream_set_user(st, begin_request(user, &from, head));
}

/* Resetting a request that a worker runs costs extra: it makes the server do the most work for the
 * least effort. */
static void on_stream_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct nj_conn *c = user;

    if (end_request(c, nj_h2_stream_user(st), complete) && nj_h2_was_reset_by_peer(st))
        nj_h2_add_glitches(c->active->h2, RESET_RUNNING_COST);
}

static void on_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n_bytes)
{
    if (!receive_body(user, nj_h2_stream_user(st), data, n_bytes))
        nj_h2_consume(st, n_bytes);
}

static void on_end(void *user, struct nj_h2_stream *st)
{
    end_body(user, nj_h2_stream_user(st));
}

static void on_refused(void *user, struct nj_h2_stream *st, const struct nj_request_head *head,
                       uint16_t status)
{
    struct nj_conn *c = user;
    struct nj_txn_origin from = h2_origin(c, st);

    nj_txns_refuse_and_log(&c->conns->txns, &from, head, status);
}

#define H2_EVENTS                                                                                  \
    .on_request = on_request, .on_stream_close = on_stream_close, .on_refused = on_refused,        \
    .on_refusal_counted = on_refusal_counted

const struct nj_h2_events nj__conn_h2_events = {H2_EVENTS};
const struct nj_h2_events nj__conn_h2_route_events = {H2_EVENTS, .on_data = on_data,
                                                      .on_end = on_end};

/* --- events of HTTP/1 ---------------------------------------------------------------------- */

static struct nj_txn_origin h1_origin(struct nj_conn *c, struct nj_h1 *h1)
{
    return origin(c, c->is_tls ? &h1_tls_framing : &h1_framing, h1, nj_h1_request_number(h1));
}

static void on_request_h1(void *user, struct nj_h1 *h1, const struct nj_request_head *head)
{
    struct nj_txn_origin from = h1_origin(user, h1);

    nj_h1_set_request_user(h1, begin_request(user, &from, head));
}

static void on_close_h1(void *user, struct nj_h1 *h1, bool complete)
{
    end_request(user, nj_h1_request_user(h1), complete);
}

static void on_data_h1(void *user, struct nj_h1 *h1, const uint8_t *data, size_t n_bytes)
{
    if (!receive_body(user, nj_h1_request_user(h1), data, n_bytes))
        nj_h1_consume(h1, n_bytes);
}

static void on_end_h1(void *user, struct nj_h1 *h1)
{
    end_body(user, nj_h1_request_user(h1));
}

static void on_refused_h1(void *user, struct nj_h1 *h1, const struct nj_request_head *head,
                          uint16_t status)
{
    struct nj_conn *c = user;
    struct nj_txn_origin from = h1_origin(c, h1);
    struct nj_txn *t = nj_h1_request_user(h1);

    if (t) /* its body is malformed */
        nj_respond_error(t, status, (struct nj_field){0});
    else
        nj_txns_refuse_and_log(&c->conns->txns, &from, head, status);
}

#define H1_EVENTS                                                                                  \
    .on_request = on_request_h1, .on_close = on_close_h1, .on_refused = on_refused_h1,             \
    .on_refusal_counted = on_refusal_counted

const struct nj_h1_events nj__conn_h1_events = {H1_EVENTS};
const struct nj_h1_events nj__conn_h1_route_events = {H1_EVENTS, .on_data = on_data_h1,
                                                      .on_end = on_end_h1};

/* --- rounds over connections --------------------------------------------------------------- */

/* Begins requests of the connection, within its share of the round. */
void nj__conn_serve_requests(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_active *active = c->active;

    if (nj__conn_speaks_http(c) && active->next_request) {
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
    if (!nj__conn_speaks_http(c))
        return;
    struct nj_list *all = &c->active->peer.exchanges;
    for (struct nj_list *n = all->next; n != all; n = n->next)
        nj_exchange_cancel_if_body_partial(nj_exchange_of_node(n));
}
