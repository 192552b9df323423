/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/conn_timeouts.h"

#include "conn/conn_tls.h"
#include "conn/send_room.h"
#include "conn/session.h"
#include "tcp/seq.h"

#define LINGER_TIMEOUT (2 * NJ_SEC) /* all is acknowledged, the peer does not close */
#define LATE_TIMEOUT   (5 * NJ_SEC) /* the same; since it last sent something */
#define ACK_TIMEOUT    (1 * NJ_SEC) /* longest wait for an ACK that is not reported */

/* A connection rejoins its list at most once per GRAIN, so timeouts are up to this much late. */
#define GRAIN      (64 * NJ_MS)
#define EXPIRE_MAX 64u /* per list and step */

/* The event that the connection waits for. */
static enum nj_conn_wait wait_of(const struct nj_conn *c)
{
    switch ((enum nj_conn_state)c->state) {
    case NJ_CONN_SNIFF:
        return NJ_CONN_WAIT_PREFACE;
    case NJ_CONN_LINGER:
        if (!nj__conn_is_fin_acked(c))
            return NJ_CONN_WAIT_PROGRESS;
        return nj__conn_is_late(c) ? NJ_CONN_WAIT_LATE_FIN : NJ_CONN_WAIT_FIN;
    case NJ_CONN_H2:
    case NJ_CONN_H1:
        break;
    }
    if (nj__conn_n_requests(c) > 0)
        return NJ_CONN_WAIT_PROGRESS;
    if (nj_tcp_send_queue_mbufs(c->tcb) > 0)
        return c->tcb->ack_events_off ? NJ_CONN_WAIT_ACK : NJ_CONN_WAIT_PROGRESS;
    return c->mid_frame ? NJ_CONN_WAIT_FRAME : NJ_CONN_WAIT_IDLE;
}

/* At most the timeout of any event it may prove to have waited for. */
static nj_ns ack_timeout(const struct nj_conns_config *c)
{
    return nj_min_u64(nj_min_u64(c->idle_timeout, c->http->header_timeout),
                      nj_min_u64(c->http->send_timeout, ACK_TIMEOUT));
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
        return cs->cfg->http->header_timeout;
    case NJ_CONN_WAIT_PROGRESS:
        return cs->cfg->http->send_timeout;
    case NJ_CONN_WAIT_FIN:
        return LINGER_TIMEOUT;
    case NJ_CONN_WAIT_LATE_FIN:
        return LATE_TIMEOUT;
    case NJ_N_CONN_WAITS:
        break;
    }
    NJ_UNREACHABLE("silent");
}

static uint32_t grain_of(nj_ns now)
{
    return (uint32_t)(now / GRAIN + 1);
}

static nj_ns wait_start(const struct nj_conn *c)
{
    return c->since * GRAIN;
}

uint64_t nj__bytes_at_rate(nj_ns time, uint64_t rate)
{
    uint64_t ms = time / NJ_MS;
    return rate / 1000 * ms + rate % 1000 * ms / 1000;
}

uint64_t nj__min_bytes_due(const struct nj_conns *cs, nj_ns time, uint64_t rate)
{
    uint64_t ms = time / NJ_MS, all_ms = cs->cfg->http->send_timeout / NJ_MS + 1;
    uint64_t least = NJ_SEND_BYTES_MIN * ms / all_ms + 1;
    uint64_t want = nj__bytes_at_rate(time, rate);
    return want > least ? want : least;
}

/* Does the peer acknowledge enough of the send queue? While the queue has room for output of
 * streams, the server may be the slow side, and no rate is required. */
static inline bool has_tcp_progress(const struct nj_conn *c, nj_ns now)
{
    if (!c->active || nj_tcp_send_queue_mbufs(c->tcb) == 0)
        return true;
    bool ours = nj__conn_n_requests(c) > 0 && !nj__conn_is_send_full(c);
    uint64_t rate = ours ? 0 : c->conns->cfg->http->min_rate;
    nj_ns at = wait_start(c), time = now > at ? now - at : 0;
    return c->tcb->snd_una - c->active->wait_una >= nj__min_bytes_due(c->conns, time, rate);
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
    nj__note_deadline(c->conns, wait_start(c) + timeout_of(c->conns, waits_for));
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
    if (c->waits_for == NJ_CONN_WAIT_IDLE && c->state == NJ_CONN_H1 && nj__conn_has_news(c))
        return true; /* a request came in this step: HTTP/1 cannot tell the client to repeat it */
    return c->waits_for == NJ_CONN_WAIT_PROGRESS && nj__conn_speaks_http(c) && !c->peer_fin &&
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

struct nj_conn *nj__conn_next_expired(struct nj_conns *cs, enum nj_conn_wait waits_for,
                                      uint32_t *n_seen, nj_ns now)
{
    struct nj_list *list = &cs->waits_for[waits_for];
    nj_ns wait = timeout_of(cs, waits_for);

    while (*n_seen < EXPIRE_MAX && !nj_list_empty(list)) {
        struct nj_conn *c = nj_container_of(list->next, struct nj_conn, node);
        if (now < wait_start(c) + wait)
            break;
        ++*n_seen;
        if (waits_for == NJ_CONN_WAIT_ACK) {
            end_ack_wait(c, now);
            continue;
        }
        if (!may_wait_longer(c, now))
            return c;
        c->waits_for = NJ_N_CONN_WAITS; /* restart the wait, as far as TCP is concerned */
        nj__conn_update_timeout_list(c, now);
    }
    return NULL;
}

nj_ns nj__conn_timeouts_first_at(const struct nj_conns *cs)
{
    nj_ns next = NJ_NEVER;

    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++) {
        const struct nj_list *list = &cs->waits_for[i];
        if (nj_list_empty(list))
            continue;
        const struct nj_conn *c = nj_container_of(list->next, struct nj_conn, node);
        next = nj_min_u64(next, wait_start(c) + timeout_of(cs, i));
    }
    return next;
}

static bool is_overdue(nj_ns since, nj_ns timeout, nj_ns now)
{
    return since != NJ_NEVER && now - since >= timeout;
}

/* While streams make progress; without streams the connection's list would expire. A record of TLS
 * may have 16 KiB of a body: at --min-upload-rate these take half of body_timeout. */
bool nj__conn_is_unfinished_overdue(const struct nj_conn *c, nj_ns now)
{
    const struct nj_http_options *o = c->conns->cfg->http;

    if (!nj__conn_has_session(c)) /* preface_timeout applies */
        return false;
    if (is_overdue(nj__session_unfinished_since(c, now), o->header_timeout, now))
        return true;
    return c->is_tls &&
           is_overdue(nj__conn_tls_unfinished_record_since(c, now),
                      nj__conn_n_requests(c) > 0 ? o->body_timeout : o->header_timeout, now);
}
