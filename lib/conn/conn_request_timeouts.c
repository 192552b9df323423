/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timeouts of connections and of requests.
 *
 * Each connection is on one list, chosen by the event it waits for. All connections of a list have
 * the same timeout, so the list is ordered by expiry, and an idle connection costs nothing. These
 * lists check progress of TCP only. Requests are on a list of their own and are checked
 * CHECKS_PER_TIMEOUT times per timeout: for what the request waits, and if it waits for the peer,
 * how many bytes the peer sent or acknowledged. So each kind of timeout needs one timer, and no
 * packet rearms it.
 *
 * A peer makes progress when it acknowledges min_rate on the average of send_timeout, and when it
 * sends a request body at min_upload_rate. Delays of the server (credit, files, handlers) do not
 * count against the peer. A request that waits for a file for send_timeout gets an error: memory
 * may be held by others, or the disk does not answer.
 */
#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "http/response_head.h"
#include "tcp/seq.h"

#define LINGER_TIMEOUT (2 * NJ_SEC) /* all is acknowledged, the peer does not close */
#define ACK_TIMEOUT    (1 * NJ_SEC) /* longest wait for an ACK that is not reported */

/* A connection rejoins its list at most once per GRAIN, so timeouts are up to this much late. */
#define GRAIN      (64 * NJ_MS)
#define EXPIRE_MAX 64u /* per list and step */

/* Checks of a request within the smaller of its timeouts. Timeouts are up to 1/CHECKS_PER_TIMEOUT
 * late. */
#define CHECKS_PER_TIMEOUT 8u
#define CHECK_MAX          64u /* per step */

/* --- connections --------------------------------------------------------------------------- */

/* The event that the connection waits for. */
static enum nj_conn_wait wait_of(const struct nj_conn *c)
{
    switch ((enum conn_state)c->state) {
    case SNIFF:
        return NJ_CONN_WAIT_PREFACE;
    case LINGER:
        return nj__conn_is_fin_acked(c) ? NJ_CONN_WAIT_FIN : NJ_CONN_WAIT_PROGRESS;
    case H2:
        break;
    }
    if (nj_h2_n_streams(c->active->h2) > 0)
        return NJ_CONN_WAIT_PROGRESS;
    if (nj_tcp_send_queue_mbufs(c->tcb) > 0)
        return c->tcb->ack_events_off ? NJ_CONN_WAIT_ACK : NJ_CONN_WAIT_PROGRESS;
    return c->mid_frame ? NJ_CONN_WAIT_FRAME : NJ_CONN_WAIT_IDLE;
}

/* At most the timeout of any event it may prove to have waited for. */
static nj_ns ack_timeout(const struct nj_conns_config *c)
{
    return nj_min_u64(nj_min_u64(c->idle_timeout, c->header_timeout),
                      nj_min_u64(c->send_timeout, ACK_TIMEOUT));
}

static nj_ns timeout_of(const struct nj_conns *cs, enum nj_conn_wait waits_for)
{
    switch (waits_for) {
    case NJ_CONN_WAIT_PREFACE:
        return cs->cfg->preface_timeout;
    case NJ_CONN_WAIT_IDLE:
        return cs->cfg->idle_timeout;
    case NJ_CONN_WAIT_ACK:
        return ack_timeout(cs->cfg);
    case NJ_CONN_WAIT_FRAME:
        return cs->cfg->header_timeout;
    case NJ_CONN_WAIT_PROGRESS:
        return cs->cfg->send_timeout;
    case NJ_CONN_WAIT_FIN:
        return LINGER_TIMEOUT;
    case NJ_N_CONN_WAITS:
        break;
    }
    NJ_UNREACHABLE("silent");
}

/* Called when something is appended to a list. */
static void note_deadline(struct nj_conns *cs, nj_ns at)
{
    cs->timeouts_at = nj_min_u64(cs->timeouts_at, at);
}

static uint32_t grain_of(nj_ns now)
{
    return (uint32_t)(now / GRAIN + 1);
}

static nj_ns wait_start(const struct nj_conn *c)
{
    return c->since * GRAIN;
}

static uint64_t bytes_at_rate(nj_ns time, uint64_t rate)
{
    uint64_t ms = time / NJ_MS;
    return rate / 1000 * ms + rate % 1000 * ms / 1000;
}

/* Bytes that a peer must acknowledge within `time` at `rate`; at least 1. */
static uint64_t min_bytes_due(const struct nj_conns *cs, nj_ns time, uint64_t rate)
{
    uint64_t ms = time / NJ_MS, all_ms = cs->cfg->send_timeout / NJ_MS + 1;
    uint64_t least = NJ_SEND_BYTES_MIN * ms / all_ms + 1;
    uint64_t want = bytes_at_rate(time, rate);
    return want > least ? want : least;
}

/* Does the peer acknowledge enough of the send queue? While the queue has room for output of
 * streams, the server may be the slow side, and no rate is required. */
static bool has_tcp_progress(const struct nj_conn *c, nj_ns now)
{
    if (!c->active || nj_tcp_send_queue_mbufs(c->tcb) == 0)
        return true;
    bool ours = nj__conn_has_streams(c) && !nj__conn_is_send_full(c);
    uint64_t rate = ours ? 0 : c->conns->cfg->min_rate;
    nj_ns at = wait_start(c), time = now > at ? now - at : 0;
    return c->tcb->snd_una - c->active->wait_una >= min_bytes_due(c->conns, time, rate);
}

/* Was there progress since the wait began? */
static bool has_progressed(const struct nj_conn *c, nj_ns now)
{
    if (c->waits_for == NJ_CONN_WAIT_PROGRESS)
        return c->progressed && has_tcp_progress(c, now);
    if (c->waits_for == NJ_CONN_WAIT_ACK) /* all bytes queued at that time */
        return c->progressed && nj_seq_le(c->active->wait_una, c->tcb->snd_una);
    return c->progressed;
}

/* Appends the connection to a list. All waits of a list have the same timeout, so appending keeps
 * it ordered by expiry. */
static void start_wait(struct nj_conn *c, enum nj_conn_wait waits_for, uint32_t since)
{
    c->waits_for = (uint8_t)waits_for;
    c->since = since;
    if (c->active)
        c->active->wait_una =
            waits_for == NJ_CONN_WAIT_ACK ? nj_tcp_queued_end(c->tcb) : c->tcb->snd_una;
    nj_list_del(&c->node);
    nj_list_push_back(&c->conns->waits_for[waits_for], &c->node);
    note_deadline(c->conns, wait_start(c) + timeout_of(c->conns, waits_for));
}

void nj__conn_update_timeout_list(struct nj_conn *c, nj_ns now)
{
    enum nj_conn_wait waits_for = wait_of(c);
    uint32_t since = grain_of(now);

    bool stays = waits_for == c->waits_for && (!has_progressed(c, now) || since == c->since);
    c->progressed = false;
    if (!stays)
        start_wait(c, waits_for, since);
}

/* While streams are open, each request has its own timeout. A peer that sent FIN may be dead, and
 * shows that only when it is sent something. */
static bool may_wait_longer(const struct nj_conn *c, nj_ns now)
{
    if (c->progressed ||
        wait_of(c) != (enum nj_conn_wait)c->waits_for) /* changed within this step */
        return true;
    return c->waits_for == NJ_CONN_WAIT_PROGRESS && c->state == H2 && !c->peer_fin &&
           has_tcp_progress(c, now);
}

/* The ACK is overdue or was not reported. If all is acknowledged, the connection has been idle
 * since then; behind connections that began to wait meanwhile it may expire late by up to the ACK
 * timeout, also if these go on meanwhile. Otherwise its progress is measured from now on. */
static void end_ack_wait(struct nj_conn *c, nj_ns now)
{
    nj_tcp_set_ack_events(c->tcb, true);
    enum nj_conn_wait waits_for = wait_of(c);
    start_wait(c, waits_for, waits_for == NJ_CONN_WAIT_PROGRESS ? grain_of(now) : c->since);
}

static uint32_t expire_conns(struct nj_conns *cs, enum nj_conn_wait waits_for, nj_ns now)
{
    struct nj_list *list = &cs->waits_for[waits_for];
    nj_ns wait = timeout_of(cs, waits_for);
    uint32_t n = 0;

    for (; n < EXPIRE_MAX && !nj_list_empty(list); n++) {
        struct nj_conn *c = nj_container_of(list->next, struct nj_conn, node);
        if (now < wait_start(c) + wait)
            break;
        if (waits_for == NJ_CONN_WAIT_ACK) {
            end_ack_wait(c, now);
            continue;
        }
        if (!may_wait_longer(c, now)) {
            nj__conn_expire(c, now);
            continue;
        }
        c->waits_for = NJ_N_CONN_WAITS; /* restart the wait, as far as TCP is concerned */
        nj__conn_update_timeout_list(c, now);
    }
    return n;
}

/* --- requests ------------------------------------------------------------------------------ */

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
        is_handlers && !t->request_whole && !nj_exchange_handler_must_act(t->exchange);
    enum txn_wait ours = is_handlers ? TXN_WAIT_SERVER : TXN_WAIT_FILE;

    if (!t->head_sent_at && !t->exchange &&
        !t->wait) /* it was reset, and RST_STREAM is not sent yet */
        return TXN_WAIT_ACK;
    if (!t->head_sent_at)
        return waits_for_body ? TXN_WAIT_BODY : ours;
    switch (nj_h2_stream_blocked_by(t->stream)) {
    case NJ_H2_BLOCKED_BY_BODY: /* a handler may wait for body bytes before it continues */
        if (nj_paced_is_waiting(&t->paced))
            return TXN_WAIT_SERVER;
        return waits_for_body ? TXN_WAIT_BODY : ours;
    case NJ_H2_BLOCKED_BY_STREAM_WINDOW:
        return TXN_WAIT_STREAM_WINDOW;
    case NJ_H2_BLOCKED_BY_CONN_WINDOW:
        return TXN_WAIT_CONN_WINDOW;
    case NJ_H2_BLOCKED_BY_NOTHING:
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
    t->progress_una = t->conn->tcb->snd_una;
    t->progress_throttled = t->paced.throttled_ns;
}

/* Has the peer acknowledged too little for send_timeout? */
static bool is_too_slow(struct nj_txn *t, uint64_t n_taken, nj_ns now)
{
    const struct nj_conns *cs = t->conn->conns;
    nj_ns time = now - t->progressed_at, throttled = t->paced.throttled_ns - t->progress_throttled;

    time = throttled < time ? time - throttled : 0;
    if (n_taken >= min_bytes_due(cs, time, cs->cfg->min_rate)) {
        note_progress(t, now);
        return false;
    }
    return time >= cs->cfg->send_timeout;
}

/* Resets the stream, or the connection if this is its only stream. */
static void give_up_response(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = t->conn;

    nj__abuse_record(c->conns, NJ_C_send_timeout, &c->tcb->flow.tuple.remote);
    if (nj_h2_first_stream(c->active->h2) != t->stream || nj_h2_next_stream(t->stream)) {
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
        nj_file_server_cancel(t->wait);
        nj_respond_error(t, 503, (struct nj_field){0});
    }
    nj__conn_mark_ready(c);
}

static void give_up_body(struct nj_txn *t, enum nj_counter why)
{
    struct nj_conn *c = t->conn;

    if (!nj_exchange_on_body_timeout(t->exchange))
        return;
    nj__abuse_record(c->conns, why, &c->tcb->flow.tuple.remote);
    nj__conn_mark_ready(c);
}

/* The server waits for body bytes. While a response is being sent the request may be a dialogue, in
 * which any byte is progress; else the body must arrive at min_upload_rate. So a body of N bytes
 * takes at most body_timeout + N / min_upload_rate of waiting time. */
static void check_body(struct nj_txn *t, bool progressed, nj_ns now)
{
    const struct nj_conns_config *c = t->conn->conns->cfg;
    uint64_t rate = t->head_sent_at ? 0 : c->min_upload_rate;
    nj_ns time = now - t->progressed_at;
    bool enough = progressed;

    if (rate > 0)
        enough = nj_exchange_body_bytes_received(t->exchange) - t->progress_received >=
                 bytes_at_rate(time, rate);
    if (enough)
        note_progress(t, now);
    else if (time >= c->body_timeout)
        give_up_body(t, progressed ||
                                nj_exchange_body_bytes_received(t->exchange) != t->progress_received
                            ? NJ_C_body_slow
                            : NJ_C_body_timeout);
}

/* The deadline holds whichever side is slow, until the response begins. */
static bool is_past_deadline(const struct nj_txn *t, nj_ns now)
{
    nj_ns deadline = t->conn->conns->cfg->body_deadline;
    return deadline > 0 && t->exchange && !nj_exchange_sends_file(t->exchange) &&
           !t->request_whole && !t->head_sent_at && now - t->arrived_at >= deadline;
}

static bool is_overdue(nj_ns since, nj_ns timeout, nj_ns now)
{
    return since != NJ_NEVER && now - since >= timeout;
}

/* While streams make progress; without streams the connection's list would expire. A record of TLS
 * may have 16 KiB of a body: at --min-upload-rate these take half of body_timeout. */
bool nj__conn_is_unfinished_overdue(const struct nj_conn *c, nj_ns now)
{
    const struct nj_conns_config *cfg = c->conns->cfg;

    if (c->state != H2 || !c->active->h2) /* preface_timeout applies */
        return false;
    if (is_overdue(nj_h2_unfinished_frame_since(c->active->h2, now), cfg->header_timeout, now))
        return true;
    return c->is_tls &&
           is_overdue(nj__conn_tls_unfinished_record_since(c, now),
                      nj__conn_has_streams(c) ? cfg->body_timeout : cfg->header_timeout, now);
}

static void check_txn(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = t->conn;
    const struct nj_conns *cs = c->conns;
    bool progressed = t->body_progressed;

    t->body_progressed = false;
    if (c->mid_frame && nj__conn_is_unfinished_overdue(c, now)) {
        nj_h2_end_for_abuse(c->active->h2, NJ_H2_ABUSE_SLOW);
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
        else if (now - t->progressed_at >= cs->cfg->send_timeout)
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
    const struct nj_conns_config *c = cs->cfg;
    return nj_min_u64(c->send_timeout, c->body_timeout) / CHECKS_PER_TIMEOUT;
}

void nj__txn_schedule_progress_check(struct nj_txn *t, nj_ns now)
{
    struct nj_conns *cs = t->conn->conns;

    nj_list_del(&t->node);
    t->recheck_at = now + check_interval(cs);
    nj_list_push_back(&cs->txns_watched, &t->node);
    note_deadline(cs, t->recheck_at);
}

static uint32_t check_txns(struct nj_conns *cs, nj_ns now)
{
    uint32_t n = 0;

    for (; n < CHECK_MAX && !nj_list_empty(&cs->txns_watched); n++) {
        struct nj_txn *t = nj_container_of(cs->txns_watched.next, struct nj_txn, node);
        if (now < t->recheck_at)
            break;
        nj__txn_schedule_progress_check(t, now);
        if (nj_list_linked(&t->conn->node)) /* else it is about to be freed */
            check_txn(t, now);
    }
    return n;
}

/* --- timer --------------------------------------------------------------------------------- */

/* When is the first member of a list due? */
static nj_ns first_due_at(const struct nj_conns *cs)
{
    nj_ns next = NJ_NEVER;

    if (!nj_list_empty(&cs->txns_watched))
        next = nj_container_of(cs->txns_watched.next, struct nj_txn, node)->recheck_at;
    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++) {
        const struct nj_list *list = &cs->waits_for[i];
        if (nj_list_empty(list))
            continue;
        const struct nj_conn *c = nj_container_of(list->next, struct nj_conn, node);
        nj_ns at = wait_start(c) + timeout_of(cs, i);
        next = at < next ? at : next;
    }
    return next;
}

uint32_t nj__timeouts_tick(struct nj_conns *cs, nj_ns now)
{
    if (nj_likely(now < cs->timeouts_at))
        return 0;
    uint32_t n = check_txns(cs, now);

    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++)
        n += expire_conns(cs, i, now);
    cs->timeouts_at = first_due_at(cs);
    return n;
}

/* A connection that was due behind the first of its list may have become the first: see
 * end_ack_wait(). */
nj_ns nj__timeouts_next_at(const struct nj_conns *cs)
{
    return nj_max_u64(first_due_at(cs), cs->timeouts_at);
}
