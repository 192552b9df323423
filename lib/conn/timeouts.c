/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timeouts of connections and of requests.
 *
 * Each connection is on one list, chosen by the event it waits for. All connections of a list have
 * the same timeout, so the list is ordered by expiry, and an idle connection costs nothing. These
 * lists check progress of TCP only. Requests are on a list of their own and are checked LOOKS times
 * per timeout: for what the request waits, and if it waits for the peer, how many bytes the peer
 * sent or acknowledged. So each kind of timeout needs one timer, and no packet rearms it.
 *
 * A peer makes progress when it acknowledges min_rate on the average of send_timeout, and when it
 * sends a request body at min_upload_rate. Delays of the server (credit, files, handlers) do not
 * count against the peer. A request that waits for a file for send_timeout gets an error: memory
 * may be held by others, or the disk does not answer.
 */
#include "conn/abuse_counts.h"
#include "conn/conn.h"
#include "http/response_head.h"
#include "shard/shard_internal.h"
#include "tcp/seq.h"

#define LINGER_TIMEOUT (2 * NJ_SEC) /* all is acknowledged, the peer does not close */
#define QUIET_TIMEOUT  (1 * NJ_SEC) /* longest wait for an ACK that is not reported */

/* A connection rejoins its list at most once per GRAIN, so timeouts are up to this much late. */
#define GRAIN      (64 * NJ_MS)
#define SILENT_MAX 64u /* per list and step */

/* Checks of a request within the smaller of its timeouts. Timeouts are up to 1/LOOKS late. */
#define LOOKS    8u
#define LOOK_MAX 64u /* per step */

/* --- connections --------------------------------------------------------------------------- */

/* The event that the connection waits for. */
static enum nj_silent silent_as(const struct nj_conn *c)
{
    switch ((enum conn_state)c->state) {
    case SNIFF:
        return NJ_SILENT_NEW;
    case LINGER:
        return nj__conn_all_acked(c) ? NJ_SILENT_DONE : NJ_SILENT_STALLED;
    case H2:
        break;
    }
    if (nj_h2_streams(c->talk->h2) > 0)
        return NJ_SILENT_STALLED;
    if (nj_tcp_queued_mbufs(c->tcb) > 0)
        return c->tcb->acks_untold ? NJ_SILENT_QUIET : NJ_SILENT_STALLED;
    return c->unfinished ? NJ_SILENT_BEGUN : NJ_SILENT_IDLE;
}

static nj_ns shorter(nj_ns a, nj_ns b)
{
    return a < b ? a : b;
}

/* At most the timeout of any event it may prove to have waited for. */
static nj_ns trust(const struct nj_shard_config *c)
{
    return shorter(shorter(c->idle_timeout, c->header_timeout),
                   shorter(c->send_timeout, QUIET_TIMEOUT));
}

static nj_ns patience(const struct nj_shard *s, enum nj_silent silent)
{
    switch (silent) {
    case NJ_SILENT_NEW:
        return s->cfg.preface_timeout;
    case NJ_SILENT_IDLE:
        return s->cfg.idle_timeout;
    case NJ_SILENT_QUIET:
        return trust(&s->cfg);
    case NJ_SILENT_BEGUN:
        return s->cfg.header_timeout;
    case NJ_SILENT_STALLED:
        return s->cfg.send_timeout;
    case NJ_SILENT_DONE:
        return LINGER_TIMEOUT;
    case NJ_N_SILENT:
        break;
    }
    NJ_UNREACHABLE("silent");
}

static uint32_t grain_of(nj_ns now)
{
    return (uint32_t)(now / GRAIN + 1);
}

static nj_ns time_filed(const struct nj_conn *c)
{
    return c->since * GRAIN;
}

static uint64_t bytes_in(nj_ns time, uint64_t rate)
{
    uint64_t ms = time / NJ_MS;
    return rate / 1000 * ms + rate % 1000 * ms / 1000;
}

/* Bytes that a peer has to acknowledge within `time` at `rate`; at least 1. */
static uint64_t due_in(const struct nj_shard *s, nj_ns time, uint64_t rate)
{
    uint64_t ms = time / NJ_MS, all_ms = s->cfg.send_timeout / NJ_MS + 1;
    uint64_t least = NJ_SEND_BYTES_MIN * ms / all_ms + 1;
    uint64_t want = bytes_in(time, rate);
    return want > least ? want : least;
}

/* Does the peer acknowledge enough of the send queue? While the queue has room for output of
 * streams, the server may be the slow side, and no rate is required. */
static bool tcp_moves(const struct nj_conn *c, nj_ns now)
{
    if (!c->talk || nj_tcp_queued_mbufs(c->tcb) == 0)
        return true;
    bool ours = nj__conn_has_streams(c) && !nj__conn_is_full(c);
    uint64_t rate = ours ? 0 : c->shard->cfg.min_rate;
    nj_ns at = time_filed(c), time = now > at ? now - at : 0;
    return c->tcb->snd_una - c->talk->una_then >= due_in(c->shard, time, rate);
}

/* Was there progress since the wait began? */
static bool got_on(const struct nj_conn *c, nj_ns now)
{
    if (c->silent == NJ_SILENT_STALLED)
        return c->moved && tcp_moves(c, now);
    if (c->silent == NJ_SILENT_QUIET) /* all bytes queued at that time */
        return c->moved && nj_seq_le(c->talk->una_then, c->tcb->snd_una);
    return c->moved;
}

/* Appends the connection to a list. All waits of a list have the same timeout, so appending keeps
 * it ordered by expiry. */
static void enlist(struct nj_conn *c, enum nj_silent silent, uint32_t since)
{
    c->silent = (uint8_t)silent;
    c->since = since;
    if (c->talk)
        c->talk->una_then = silent == NJ_SILENT_QUIET ? nj_tcp_queued_end(c->tcb) : c->tcb->snd_una;
    nj_list_del(&c->node);
    nj_list_push_back(&c->shard->silent[silent], &c->node);
}

void nj__conn_file(struct nj_conn *c, nj_ns now)
{
    enum nj_silent silent = silent_as(c);
    uint32_t since = grain_of(now);

    bool stays = silent == c->silent && (!got_on(c, now) || since == c->since);
    c->moved = false;
    if (!stays)
        enlist(c, silent, since);
}

/* While streams are open, each request has its own timeout. A peer that sent FIN may be dead, and
 * shows that only when it is sent something. */
static bool is_patient_with(const struct nj_conn *c, nj_ns now)
{
    if (c->moved || silent_as(c) != (enum nj_silent)c->silent) /* changed within this step */
        return true;
    return c->silent == NJ_SILENT_STALLED && c->state == H2 && !c->peer_fin && tcp_moves(c, now);
}

/* The ACK is overdue or was not reported. If all is acknowledged, the connection has been idle
 * since then; behind connections that began to wait meanwhile it may expire late by up to the ACK
 * timeout. Otherwise its progress is measured from now on. */
static void end_quiet(struct nj_conn *c, nj_ns now)
{
    nj_tcp_tell_acks(c->tcb, true);
    enum nj_silent silent = silent_as(c);
    enlist(c, silent, silent == NJ_SILENT_STALLED ? grain_of(now) : c->since);
}

static uint32_t end_silent(struct nj_shard *s, enum nj_silent silent, nj_ns now)
{
    struct nj_list *list = &s->silent[silent];
    nj_ns wait = patience(s, silent);
    uint32_t n = 0;

    for (; n < SILENT_MAX && !nj_list_empty(list); n++) {
        struct nj_conn *c = nj_container_of(list->next, struct nj_conn, node);
        if (now < time_filed(c) + wait)
            break;
        if (silent == NJ_SILENT_QUIET) {
            end_quiet(c, now);
            continue;
        }
        if (!is_patient_with(c, now)) {
            nj__conn_end_silence(c, now);
            continue;
        }
        c->silent = NJ_N_SILENT; /* restart the wait, as far as TCP is concerned */
        nj__conn_file(c, now);
    }
    return n;
}

/* --- requests ------------------------------------------------------------------------------ */

/* The event that a request waits for. */
enum turn {
    OURS,
    FOR_FILE,   /* a worker opens or reads the file */
    FOR_BODY,   /* the peer sends body bytes */
    FOR_STREAM, /* the peer opens the window of the stream, or of the connection */
    FOR_CONN,
    FOR_TCP, /* acknowledgements, which the connection's list checks */
};

static enum turn turn_of(const struct nj_txn *t)
{
    bool is_handlers = t->exchange && !nj_exchange_sends_file(t->exchange);
    bool waits_for_body = is_handlers && !t->whole && !nj_exchange_is_ours(t->exchange);
    enum turn ours = is_handlers ? OURS : FOR_FILE;

    if (!t->head_at && !t->exchange && !t->wait) /* it was reset, and RST_STREAM is not sent yet */
        return FOR_TCP;
    if (!t->head_at)
        return waits_for_body ? FOR_BODY : ours;
    switch (nj_h2_hold(t->stream)) {
    case NJ_H2_HOLD_OURS: /* a handler may wait for body bytes before it continues */
        if (nj_paced_waits(&t->paced))
            return OURS;
        return waits_for_body ? FOR_BODY : ours;
    case NJ_H2_HOLD_STREAM:
        return FOR_STREAM;
    case NJ_H2_HOLD_CONN:
        return FOR_CONN;
    case NJ_H2_HOLD_NONE:
        break;
    }
    return FOR_TCP;
}

bool nj__txn_is_peers(const struct nj_txn *t)
{
    enum turn turn = turn_of(t);
    return turn != OURS && turn != FOR_FILE;
}

static void is_fine(struct nj_txn *t, nj_ns now)
{
    t->fine_at = now;
    t->fine_bytes = t->paced.n_bytes;
    t->fine_came = t->exchange ? nj_exchange_came(t->exchange) : 0;
    t->fine_una = t->conn->tcb->snd_una;
    t->fine_throttled = t->paced.throttled_ns;
}

/* Has the peer acknowledged too little for send_timeout? */
static bool is_too_slow(struct nj_txn *t, uint64_t n_taken, nj_ns now)
{
    const struct nj_shard *s = t->conn->shard;
    nj_ns time = now - t->fine_at, throttled = t->paced.throttled_ns - t->fine_throttled;

    time = throttled < time ? time - throttled : 0;
    if (n_taken >= due_in(s, time, s->cfg.min_rate)) {
        is_fine(t, now);
        return false;
    }
    return time >= s->cfg.send_timeout;
}

/* Resets the stream, or the connection if this is its only stream. */
static void give_up_response(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = t->conn;

    nj__abuse(c->shard, NJ_C_send_timeout, &c->tcb->flow.tuple.remote);
    if (nj_h2_first(c->talk->h2) != t->stream || nj_h2_next(t->stream)) {
        t->framing->reset(t->stream, NJ_RESET_CANCEL);
        nj__conn_note_work(c);
        return;
    }
    nj_count(&c->shard->counters, NJ_C_conn_timeout);
    nj__conn_reset(c, now);
}

/* The peer is not at fault, so the connection is kept. */
static void give_up_file(struct nj_txn *t)
{
    struct nj_conn *c = t->conn;

    nj_count(&c->shard->counters, NJ_C_file_timeout);
    if (t->head_at) {
        t->framing->reset(t->stream, NJ_RESET_INTERNAL);
    } else {
        nj_site_cancel(t->wait);
        nj_reply_error(t, 503, (struct nj_field){0});
    }
    nj__conn_note_work(c);
}

static void give_up_body(struct nj_txn *t, enum nj_counter why)
{
    struct nj_conn *c = t->conn;

    if (!nj_exchange_late(t->exchange))
        return;
    nj__abuse(c->shard, why, &c->tcb->flow.tuple.remote);
    nj__conn_note_work(c);
}

/* The server waits for body bytes. While a response is being sent the request may be a dialogue, in
 * which any byte is progress; else the body has to arrive at min_upload_rate. So a body of N bytes
 * takes at most body_timeout + N / min_upload_rate of waiting time. */
static void look_at_body(struct nj_txn *t, bool moved, nj_ns now)
{
    const struct nj_shard_config *c = &t->conn->shard->cfg;
    uint64_t rate = t->head_at ? 0 : c->min_upload_rate;
    nj_ns time = now - t->fine_at;
    bool enough = moved;

    if (rate > 0)
        enough = nj_exchange_came(t->exchange) - t->fine_came >= bytes_in(time, rate);
    if (enough)
        is_fine(t, now);
    else if (time >= c->body_timeout)
        give_up_body(t, moved || nj_exchange_came(t->exchange) != t->fine_came ? NJ_C_body_slow
                                                                               : NJ_C_body_timeout);
}

/* The deadline holds whichever side is slow, until the response begins. */
static bool is_past_deadline(const struct nj_txn *t, nj_ns now)
{
    nj_ns deadline = t->conn->shard->cfg.body_deadline;
    return deadline > 0 && t->exchange && !nj_exchange_sends_file(t->exchange) && !t->whole &&
           !t->head_at && now - t->came >= deadline;
}

/* A frame is incomplete for too long while streams make progress. Without streams the connection's
 * list would expire. */
static bool is_overdue(const struct nj_conn *c, nj_ns now)
{
    nj_ns since = nj_h2_unfinished_since(c->talk->h2, now);
    return since != NJ_NEVER && now - since >= c->shard->cfg.header_timeout;
}

static void look(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = t->conn;
    const struct nj_shard *s = c->shard;
    bool moved = t->body_moved;

    t->body_moved = false;
    if (c->unfinished && is_overdue(c, now)) {
        nj_h2_calm(c->talk->h2, NJ_H2_WASTE_SLOW);
        nj__conn_note_work(c);
        return;
    }
    if (is_past_deadline(t, now)) {
        give_up_body(t, NJ_C_body_slow);
        return;
    }
    enum turn turn = turn_of(t);
    if (t->for_file != (turn == FOR_FILE)) { /* waiting times for file and peer are kept apart */
        t->for_file = turn == FOR_FILE;
        is_fine(t, now);
    }
    switch (turn) {
    case OURS:
    case FOR_TCP:
        is_fine(t, now);
        break;
    case FOR_FILE:
        if (t->paced.n_bytes != t->fine_bytes)
            is_fine(t, now);
        else if (now - t->fine_at >= s->cfg.send_timeout)
            give_up_file(t);
        break;
    case FOR_BODY:
        look_at_body(t, moved, now);
        break;
    case FOR_STREAM:
        if (is_too_slow(t, t->paced.n_bytes - t->fine_bytes, now))
            give_up_response(t, now);
        break;
    case FOR_CONN: /* streams share the connection window, and may wait for each other */
        if (is_too_slow(t, c->tcb->snd_una - t->fine_una, now))
            give_up_response(t, now);
        break;
    }
}

static nj_ns look_every(const struct nj_shard *s)
{
    const struct nj_shard_config *c = &s->cfg;
    return shorter(c->send_timeout, c->body_timeout) / LOOKS;
}

void nj__txn_watch(struct nj_txn *t, nj_ns now)
{
    struct nj_shard *s = t->conn->shard;

    nj_list_del(&t->node);
    t->look_at = now + look_every(s);
    nj_list_push_back(&s->txns_watched, &t->node);
}

static uint32_t look_at_txns(struct nj_shard *s, nj_ns now)
{
    uint32_t n = 0;

    for (; n < LOOK_MAX && !nj_list_empty(&s->txns_watched); n++) {
        struct nj_txn *t = nj_container_of(s->txns_watched.next, struct nj_txn, node);
        if (now < t->look_at)
            break;
        nj__txn_watch(t, now);
        if (nj_list_linked(&t->conn->node)) /* else it is about to be freed */
            look(t, now);
    }
    return n;
}

/* --- timer --------------------------------------------------------------------------------- */

uint32_t nj__patience_tick(struct nj_shard *s, nj_ns now)
{
    uint32_t n = look_at_txns(s, now);

    for (enum nj_silent i = 0; i < NJ_N_SILENT; i++)
        n += end_silent(s, i, now);
    return n;
}

nj_ns nj__patience_next(const struct nj_shard *s)
{
    nj_ns next = NJ_NEVER;

    if (!nj_list_empty(&s->txns_watched))
        next = nj_container_of(s->txns_watched.next, struct nj_txn, node)->look_at;
    for (enum nj_silent i = 0; i < NJ_N_SILENT; i++) {
        const struct nj_list *list = &s->silent[i];
        if (nj_list_empty(list))
            continue;
        const struct nj_conn *c = nj_container_of(list->next, struct nj_conn, node);
        nj_ns at = time_filed(c) + patience(s, i);
        next = at < next ? at : next;
    }
    return next;
}
