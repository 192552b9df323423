/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/request_timeouts.h"

#include "conn/abuse_reason_counts.h"
#include "conn/conn_life.h"
#include "conn/conn_timeouts.h"
#include "conn/session.h"
#include "http/response_head.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

/* Checks of a request within the smaller of its timeouts. Timeouts are up to 1/CHECKS_PER_TIMEOUT
 * late. */
#define CHECKS_PER_TIMEOUT 8u
#define CHECK_MAX          64u /* per step */

/* The event that a request waits for. */
enum txn_wait {
    TXN_WAIT_SERVER,
    TXN_WAIT_FILE,          /* a worker opens or reads the file */
    TXN_WAIT_BODY,          /* the peer sends body bytes */
    TXN_WAIT_STREAM_WINDOW, /* the peer opens the window of the stream, or of the connection */
    TXN_WAIT_CONN_WINDOW,
    TXN_WAIT_ACK, /* acknowledgements, which the connection's list checks */
};

static enum txn_wait txn_wait_of(const struct nj_txn *t)
{
    bool is_handlers = t->exchange && !nj_exchange_sends_file(t->exchange);
    bool waits_for_body =
        is_handlers && !t->request_whole && !nj_exchange_waits_for_handler(t->exchange);
    enum txn_wait ours = is_handlers ? TXN_WAIT_SERVER : TXN_WAIT_FILE;

    if (!t->head_sent_at && !t->exchange &&
        !t->wait) /* it was reset, and RST_STREAM is not sent yet */
        return TXN_WAIT_ACK;
    if (!t->head_sent_at)
        return waits_for_body ? TXN_WAIT_BODY : ours;
    switch (t->framing->blocked_by(t->stream)) {
    case NJ_BLOCKED_BY_BODY: /* a handler may wait for body bytes before it continues */
        if (nj_paced_is_waiting(&t->paced))
            return TXN_WAIT_SERVER;
        return waits_for_body ? TXN_WAIT_BODY : ours;
    case NJ_BLOCKED_BY_STREAM_WINDOW:
        return TXN_WAIT_STREAM_WINDOW;
    case NJ_BLOCKED_BY_CONN_WINDOW:
        return TXN_WAIT_CONN_WINDOW;
    case NJ_BLOCKED_BY_NOTHING:
        break;
    }
    return TXN_WAIT_ACK;
}

bool nj__txn_waits_for_peer(const struct nj_txn *t)
{
    enum txn_wait txn_wait = txn_wait_of(t);
    return txn_wait != TXN_WAIT_SERVER && txn_wait != TXN_WAIT_FILE;
}

static void note_progress(struct nj_txn *t, nj_ns now)
{
    t->progressed_at = now;
    t->progress_sent = t->paced.n_bytes;
    t->progress_received = t->exchange ? nj_exchange_body_bytes_received(t->exchange) : 0;
    t->progress_una = nj__conn_of(t)->tcb->snd_una;
    t->progress_throttled = t->paced.throttled_ns;
}

/* Has the peer acknowledged too little for send_timeout? */
static bool is_too_slow(struct nj_txn *t, uint64_t n_taken, nj_ns now)
{
    const struct nj_conns *cs = nj__conn_of(t)->conns;
    nj_ns time = now - t->progressed_at, throttled = t->paced.throttled_ns - t->progress_throttled;

    time = throttled < time ? time - throttled : 0;
    if (n_taken >= nj__min_bytes_due(cs, time, cs->cfg->http->min_rate)) {
        note_progress(t, now);
        return false;
    }
    return time >= cs->cfg->http->send_timeout;
}

/* Resets the stream, or the connection if this is its only stream. */
static void give_up_response(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = t->conn;

    nj__abuse_record(c->conns, NJ_C_send_timeout, nj__conn_remote(c));
    if (!t->framing->is_alone(t->stream)) {
        t->framing->reset(t->stream, NJ_RESET_CANCEL);
        nj__conn_mark_ready(c);
        return;
    }
    nj_count(c->conns->counters, NJ_C_conn_timeout);
    nj__conn_reset(c, now);
}

/* The peer is not at fault, so the connection is kept. */
static void give_up_file(struct nj_txn *t)
{
    struct nj_conn *c = t->conn;

    nj_count(c->conns->counters, NJ_C_file_timeout);
    if (t->head_sent_at) {
        t->framing->reset(t->stream, NJ_RESET_INTERNAL);
    } else {
        nj_file_server_cancel(t);
        nj_respond_error(t, 503, (struct nj_field){0});
    }
    nj__conn_mark_ready(c);
}

static void give_up_body(struct nj_txn *t, nj_counter why)
{
    struct nj_conn *c = t->conn;

    if (!nj_exchange_on_body_timeout(t->exchange))
        return;
    nj__abuse_record(c->conns, why, nj__conn_remote(c));
    nj__conn_mark_ready(c);
}

/* The server waits for body bytes. While a response is being sent the request may be a dialogue, in
 * which any byte is progress; else the body must arrive at min_upload_rate. So a body of N bytes
 * takes at most body_timeout + N / min_upload_rate of waiting time. */
static void check_body(struct nj_txn *t, bool progressed, nj_ns now)
{
    const struct nj_http_options *o = t->set->options;
    uint64_t rate = t->head_sent_at ? 0 : o->min_upload_rate;
    nj_ns time = now - t->progressed_at;
    bool enough = progressed;

    if (rate > 0)
        enough = nj_exchange_body_bytes_received(t->exchange) - t->progress_received >=
                 nj__bytes_at_rate(time, rate);
    if (enough)
        note_progress(t, now);
    else if (time >= o->body_timeout)
        give_up_body(t, progressed ||
                                nj_exchange_body_bytes_received(t->exchange) != t->progress_received
                            ? NJ_C_body_slow
                            : NJ_C_body_timeout);
}

/* The deadline holds whichever side is slow, until the response begins. */
static bool is_past_deadline(const struct nj_txn *t, nj_ns now)
{
    nj_ns deadline = nj__conn_of(t)->conns->cfg->http->body_deadline;
    return deadline > 0 && t->exchange && !nj_exchange_sends_file(t->exchange) &&
           !t->request_whole && !t->head_sent_at && now - t->arrived_at >= deadline;
}

static void check_txn(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = t->conn;
    const struct nj_conns *cs = c->conns;
    bool progressed = t->body_progressed;

    t->body_progressed = false;
    if (c->mid_frame && nj__conn_is_unfinished_overdue(c, now)) {
        nj__session_end_for_slowness(c);
        nj__conn_mark_ready(c);
        return;
    }
    if (is_past_deadline(t, now)) {
        give_up_body(t, NJ_C_body_slow);
        return;
    }
    enum txn_wait txn_wait = txn_wait_of(t);
    if (t->awaits_file !=
        (txn_wait == TXN_WAIT_FILE)) { /* waiting times for file and peer are kept apart */
        t->awaits_file = txn_wait == TXN_WAIT_FILE;
        note_progress(t, now);
    }
    switch (txn_wait) {
    case TXN_WAIT_SERVER:
    case TXN_WAIT_ACK:
        note_progress(t, now);
        break;
    case TXN_WAIT_FILE:
        if (t->paced.n_bytes != t->progress_sent)
            note_progress(t, now);
        else if (now - t->progressed_at >= cs->cfg->http->send_timeout)
            give_up_file(t);
        break;
    case TXN_WAIT_BODY:
        check_body(t, progressed, now);
        break;
    case TXN_WAIT_STREAM_WINDOW:
        if (is_too_slow(t, t->paced.n_bytes - t->progress_sent, now))
            give_up_response(t, now);
        break;
    case TXN_WAIT_CONN_WINDOW: /* streams share the connection window, and may wait for each other
                                */
        if (is_too_slow(t, c->tcb->snd_una - t->progress_una, now))
            give_up_response(t, now);
        break;
    }
}

static nj_ns check_interval(const struct nj_conns *cs)
{
    const struct nj_http_options *o = cs->cfg->http;
    return nj_min_u64(o->send_timeout, o->body_timeout) / CHECKS_PER_TIMEOUT;
}

void nj__txn_schedule_progress_check(struct nj_txn *t, nj_ns now)
{
    struct nj_conns *cs = nj__conn_of(t)->conns;

    nj_list_del(&t->node);
    t->recheck_at = now + check_interval(cs);
    nj_list_push_back(&cs->txns_watched, &t->node);
    nj__note_deadline(cs, t->recheck_at);
}

uint32_t nj__check_requests(struct nj_conns *cs, nj_ns now)
{
    uint32_t n = 0;

    for (; n < CHECK_MAX && !nj_list_empty(&cs->txns_watched); n++) {
        struct nj_txn *t = nj_container_of(cs->txns_watched.next, struct nj_txn, node);
        if (now < t->recheck_at)
            break;
        nj__txn_schedule_progress_check(t, now);
        if (nj_list_linked(&nj__conn_of(t)->node)) /* else it is about to be freed */
            check_txn(t, now);
    }
    return n;
}

nj_ns nj__request_checks_first_at(const struct nj_conns *cs)
{
    if (nj_list_empty(&cs->txns_watched))
        return NJ_NEVER;
    return nj_container_of(cs->txns_watched.next, struct nj_txn, node)->recheck_at;
}
