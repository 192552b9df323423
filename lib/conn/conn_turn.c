/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection: TCP below, HTTP above, and the state before its protocol is known.
 *
 *   SNIFF --preface, HTTP/1--> H2, H1 --finished / error--> LINGER --all is acknowledged;
 *     `--HTTP/1 is off: 505, garbage: nothing---------------^        FIN, or 2 s--> gone
 *
 * At a port of PROXY headers, conn_proxy.c has the events of a connection in SNIFF first.
 *
 * LINGER has sent FIN and discards what it still reads: an immediate reset could overtake our last
 * bytes on their way to the peer. A client whose upload was answered early may send the rest before
 * it reads the response (RFC 9112 9.6): while it does, the 2 s become 5 s since its last byte, for
 * LATE_TIME_MAX; then it is reset. Not so while the server drains. Who sends LATE_BYTES_MAX is
 * reset. A peer that acknowledges nothing is reset after send_timeout. A peer that acknowledges
 * slowly is reset send_timeout after LINGER_PROGRESS_MAX (conn_life.c): TCP alone would wait for as
 * long as the peer answers probes.
 */
#include <string.h>

#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "conn/conn_life.h"
#include "conn/conn_timeouts.h"
#include "conn/conn_tls.h"
#include "conn/preface_detect.h"
#include "conn/send_room.h"
#include "conn/session.h"
#include "tcp/seq.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

/* What a client may send after our FIN, acknowledged or not; and how long, once it has acknowledged
 * it. */
#define LATE_BYTES_MAX (256u << 20)
#define LATE_TIME_MAX  (30 * NJ_SEC)

static const char http1_reply[] =
    "HTTP/1.1 505 HTTP Version Not Supported\r\n"
    "content-type: text/plain; charset=utf-8\r\n"
    "content-length: 79\r\n"
    "connection: close\r\n"
    "\r\n"
    "This server speaks HTTP/2 only. Try: curl --http2-prior-knowledge, or nghttp.\r\n";

/* --- bytes in ------------------------------------------------------------------------------ */

/* The first bytes are of this protocol. Returns how many of `data` were used. */
static uint32_t begin_session(struct nj_conn *c, enum nj_conn_state protocol, uint32_t used)
{
    struct nj_conn_active *active = c->active;

    nj__session_open(c, protocol);
    if (c->conns->draining && protocol == NJ_CONN_H2 && active->h2)
        nj__drain_new(c->conns, active->h2);
    if (c->failed || active->n_head == used) /* all are in `data` */
        return 0;
    nj__session_input_all(c, active->head, active->n_head);
    return used;
}

/* Detects the protocol from the first bytes. Returns how many bytes of `data` were used. */
static uint32_t sniff(struct nj_conn *c, const uint8_t *data, uint32_t n, nj_ns now)
{
    struct nj_conns *cs = c->conns;
    struct nj_conn_active *active = nj__conn_active(c);
    uint32_t used = nj_min_u32(n, NJ_SNIFF_BYTES - active->n_head);
    bool speaks_h1 = c->is_tls ? nj__conn_tls_speaks_http1(c) : !cs->cfg->http->no_http1;

    memcpy(active->head + active->n_head, data, used);
    active->n_head = (uint8_t)(active->n_head + used);
    switch (c->is_tls && speaks_h1 ? NJ_SNIFF_HTTP1
                                   : nj_sniff(active->head, active->n_head, speaks_h1)) {
    case NJ_SNIFF_MORE:
        break;
    case NJ_SNIFF_H2:
        return begin_session(c, NJ_CONN_H2, used);
    case NJ_SNIFF_HTTP1:
        if (speaks_h1)
            return begin_session(c, NJ_CONN_H1, used);
        nj__abuse_record(cs, NJ_C_conn_http1, nj__conn_remote(c));
        if (!c->is_tls) /* it would not be a record */
            nj_tcp_send_copy(cs->tcp, c->tcb, (const uint8_t *)http1_reply, sizeof http1_reply - 1);
        nj__conn_begin_linger(c, now);
        break;
    case NJ_SNIFF_GARBAGE:
        nj__abuse_record(cs, NJ_C_conn_unknown, nj__conn_remote(c));
        nj__conn_begin_linger(c, now);
        break;
    }
    return used;
}

/* Reads what the session has copied. */
static bool read_kept(struct nj_conn *c)
{
    if (!nj__conn_has_kept(c) || !nj__conn_may_read(c))
        return false;
    nj__session_input(c, (const uint8_t *)"", 0);
    return true;
}

/* Returns false if nothing was received. */
static bool read_input(struct nj_conn *c, nj_ns now)
{
    struct nj_tcp *tcp = c->conns->tcp;
    const uint8_t *data;
    uint32_t n, n_mbufs = 0;

    if (!nj__conn_has_input(c))
        return false;
    while (nj__conn_may_read(c) && (n = nj_tcp_recv_peek(c->tcb, &data)) > 0) {
        if (n_mbufs++ == NJ_READ_MBUFS_MAX) {
            nj_tcp_note_unfinished(tcp, c->tcb);
            break;
        }
        if (c->state == NJ_CONN_SNIFF)
            n = sniff(c, data, n, now);
        else if (nj__conn_has_session(c))
            n = nj__session_input(c, data, n);
        if (n > 0)
            nj_tcp_recv_take(tcp, c->tcb, n);
    }
    return true;
}

static void input_record(struct nj_conn *c, const uint8_t *data, uint32_t n, nj_ns now)
{
    while (n > 0 && c->state == NJ_CONN_SNIFF) {
        uint32_t used = sniff(c, data, n, now);
        data += used;
        n -= used;
    }
    if (n > 0 && !c->failed && nj__conn_speaks_http(c))
        nj__session_input_all(c, data, n);
}

/* As read_input(), from records of TLS. Returns false if nothing could be read. */
static bool read_tls_input(struct nj_conn *c, nj_ns now)
{
    struct nj_tls_src plain;
    uint32_t n_records = 0; /* the rest has another turn, as in cleartext */
    bool has_read = read_kept(c);

    if (!nj__conn_tls_begin_read(c))
        return has_read;
    while (n_records++ < NJ_READ_MBUFS_MAX && nj__conn_may_read(c) &&
           nj__conn_tls_read_record(c, &plain, now))
        input_record(c, plain.p, plain.n_bytes, now);
    nj__conn_tls_end_read(c);
    return true;
}

/* What the peer sends behind our FIN was discarded. */
static void track_late_input(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_active *active = c->active;

    if (!active || !active->may_be_late || !nj__conn_is_fin_acked(c))
        return;
    if (active->late_since == 0)
        active->late_since = now;
    c->progressed |= nj__conn_is_late(c);
}

/* Input that is read counts as progress on a connection without streams, except for bytes of a
 * frame, head or record that was incomplete the last time: it has to end within its timeout. */
static void track_input(struct nj_conn *c, bool is_read, nj_ns now)
{
    nj_ns of_frame = NJ_NEVER, of_record = NJ_NEVER;

    if (c->state == NJ_CONN_LINGER) {
        if (is_read)
            track_late_input(c, now);
        return;
    }
    if (nj__conn_has_session(c))
        of_frame = nj__session_unfinished_since(c, now);
    if (nj_unlikely(c->is_tls))
        of_record = nj__conn_tls_unfinished_record_since(c, now);
    nj_ns since = nj_min_u64(of_frame, of_record);
    c->mid_frame = since != NJ_NEVER;
    c->progressed |= is_read && nj__conn_n_requests(c) == 0 && (since == NJ_NEVER || since == now);
    if (c->mid_frame && nj__conn_is_unfinished_overdue(c, now))
        nj__session_end_for_slowness(c);
}

/* --- bytes out ----------------------------------------------------------------------------- */

/* Will the peer neither send a request nor wait for a response? The last response of HTTP/1 may
 * wait for room although its request has ended. */
static bool has_peer_left(const struct nj_conn *c)
{
    return c->peer_fin && !nj__conn_has_unread(c) && nj__conn_n_requests(c) == 0 &&
           (c->state != NJ_CONN_H1 || nj__session_is_idle(c));
}

static void write_output(struct nj_conn *c, nj_ns now)
{
    if (!nj__conn_speaks_http(c))
        return;
    bool has_session = nj__conn_has_session(c);
    bool may_write = nj_likely(!c->conns->tx_short) || !c->failed || nj__conn_has_send_share(c);
    if (has_session && may_write) /* the GOAWAY of a failed connection asks for no room */
        nj__session_output(c);
    if (nj_unlikely(c->conns->draining) && c->state == NJ_CONN_H1 && has_session)
        nj_h1_drain(c->active->h1, nj__conn_has_unread(c));
    if (c->failed || has_peer_left(c) || nj__session_is_finished(c))
        nj__conn_begin_linger(c, now);
}

/* When everything is queued and TCP may send all of it, the ACK is not reported. This holds only
 * for a peer that had no ACKs outstanding before: its ACK is expected to come
 * (conn_timeouts.c). */
static void choose_ack_events(struct nj_conn *c)
{
    bool quiet = nj__conn_has_session(c) && !c->failed && !c->peer_fin && nj__session_is_idle(c) &&
                 !nj__conn_has_unread(c) && nj_tcp_windows_allow_all(c->tcb) &&
                 c->waits_for != NJ_CONN_WAIT_PROGRESS;

    nj_tcp_set_ack_events(c->tcb, !quiet);
}

/* The peer acknowledged bytes. They count as progress of streams only if they belong to bodies. On
 * a LINGER connection they count only until progress_until. */
static void track_acked(struct nj_conn *c, nj_ns now)
{
    bool of_body = c->body_unacked; /* else these were answers to PING and other control frames */

    c->body_unacked = of_body && nj_seq_lt(c->tcb->snd_una, c->active->body_end);
    if (c->state == NJ_CONN_LINGER)
        c->progressed |= !c->active || now < c->active->progress_until;
    else
        c->progressed |= of_body || nj__conn_n_requests(c) == 0;
}

/* A FIN may come from a peer that sends no further requests and still reads, or from a closed
 * socket, which resets when it is sent something. A handler may wait long before it sends; PING
 * finds out. */
static void ping_after_fin(struct nj_conn *c)
{
    if (c->state != NJ_CONN_H2 || nj__conn_n_requests(c) == 0)
        return;
    nj_h2_ping(c->active->h2);
    nj__conn_mark_ready(c);
}

static void wait_for_event(struct nj_conn *c, nj_ns now)
{
    nj__conn_update_timeout_list(c, now);
    if (nj_unlikely(c->conns->tx_short))
        nj__pressure_wait(c);
}

/* Did the peer send too much behind our FIN, or for too long? */
static bool is_too_late(const struct nj_conn *c, nj_ns now)
{
    const struct nj_conn_active *active = c->active;

    return active && (c->tcb->rcv_nxt - active->late_from >= LATE_BYTES_MAX ||
                      (active->late_since > 0 && now - active->late_since >= LATE_TIME_MAX));
}

/* Returns false if the connection goes on to linger. */
static bool end_linger(struct nj_conn *c, nj_ns now)
{
    if (c->peer_fin && nj__conn_is_fin_acked(c) && !nj__conn_has_unread(c)) {
        nj__conn_free(c, now); /* both sides are finished */
        return true;
    }
    if (!is_too_late(c, now))
        return false;
    nj__abuse_record(c->conns, NJ_C_conn_late_input, nj__conn_remote(c));
    nj__conn_reset(c, now);
    return true;
}

void nj__conn_process(struct nj_conns *cs, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    struct nj_conn *c = nj_container_of(tcb->user, struct nj_conn, user);

    if (events & NJ_TCP_EV_DEAD) {
        nj__conn_free(c, now);
        return;
    }
    if (events & NJ_TCP_EV_PEER_FIN)
        c->peer_fin = true;
    if (events & NJ_TCP_EV_WRITABLE)
        track_acked(c, now);
    cs->processing = c;
    bool is_read = nj_unlikely(c->is_tls) ? read_tls_input(c, now) : read_input(c, now);
    if (is_read || c->input_waits)
        track_input(c, is_read, now);
    if (c->peer_fin && !nj__conn_has_unread(c))
        nj__conn_abort_request_bodies(c);
    nj__conn_serve_requests(c, now);
    cs->processing = NULL;
    write_output(c, now);
    if (events & NJ_TCP_EV_PEER_FIN)
        ping_after_fin(c);
    if (c->state == NJ_CONN_SNIFF &&
        (c->failed || (c->peer_fin && !nj__conn_tls_is_with_worker(c))))
        nj__conn_begin_linger(c, now);
    choose_ack_events(c);
    nj__pressure_track(c, now);
    if (nj_unlikely(c->state == NJ_CONN_LINGER) && end_linger(c, now))
        return;
    if (nj__conn_has_unread(c) && nj__conn_may_read(c))
        nj_tcp_note_unfinished(cs->tcp, tcb); /* output made room, or it is to be discarded */
    else
        wait_for_event(c, now);
}

/* --- end ----------------------------------------------------------------------------------- */

void nj__conn_close(struct nj_conn *c, nj_ns now)
{
    if (nj__conn_has_session(c))
        nj__session_say_goodbye(c);
    nj__conn_begin_linger(c, now);
    nj__conn_update_timeout_list(c, now);
}

/* Is its PROXY header incomplete? Then conn_proxy.c has its events. */
static bool awaits_proxy_header(const struct nj_conn *c)
{
    return c->user.on_events != nj__conn_process && c->state == NJ_CONN_SNIFF;
}

void nj__conn_expire(struct nj_conn *c, nj_ns now)
{
    struct nj_conns *cs = c->conns;

    if (c->state == NJ_CONN_LINGER && nj__conn_is_fin_acked(c)) {
        if (nj__conn_shares_is_nearly_full(cs)) /* TCP would keep its TCB for a minute */
            nj__conn_reset(c, now);
        else
            nj__conn_free(c, now);
        return;
    }
    /* HTTP/1 cannot tell a closed socket from a client that waits for a slow handler. */
    if (awaits_proxy_header(c))
        nj__abuse_record(cs, NJ_C_conn_proxy_timeout, nj__conn_remote(c));
    else if (c->waits_for == NJ_CONN_WAIT_PROGRESS && !(c->peer_fin && c->state == NJ_CONN_H1))
        nj__abuse_record(cs, NJ_C_conn_timeout, nj__conn_remote(c));
    else
        nj_count(cs->counters, NJ_C_conn_timeout);
    if (c->waits_for == NJ_CONN_WAIT_IDLE || c->waits_for == NJ_CONN_WAIT_FRAME) {
        if (c->waits_for == NJ_CONN_WAIT_FRAME)
            nj__session_end_for_slowness(c);
        nj__conn_close(c, now);
    } else {
        nj__conn_reset(c, now);
    }
}
