/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection: TCP below, HTTP/2 above, and the state before it is known to be HTTP/2.
 *
 *   SNIFF --preface--> H2 --finished / error--> LINGER --all is acknowledged; FIN, or 2 s--> gone
 *     `--HTTP/1.x: 505, garbage: nothing-------^
 *
 * LINGER has sent FIN and discards what it still reads: an immediate reset could overtake our last
 * bytes on their way to the peer. A peer that acknowledges nothing is reset after send_timeout. A
 * peer that acknowledges slowly is reset send_timeout after LINGER_PROGRESS_MAX (conn_life.c): TCP
 * alone would wait for as long as the peer answers probes.
 */
#include <string.h>

#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "conn/conn_life.h"
#include "conn/conn_timeouts.h"
#include "conn/conn_tls.h"
#include "conn/preface_detect.h"
#include "conn/send_room.h"
#include "tcp/seq.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

static const char http1_reply[] =
    "HTTP/1.1 505 HTTP Version Not Supported\r\n"
    "content-type: text/plain; charset=utf-8\r\n"
    "content-length: 79\r\n"
    "connection: close\r\n"
    "\r\n"
    "This server speaks HTTP/2 only. Try: curl --http2-prior-knowledge, or nghttp.\r\n";

static struct nj_h2 *h2_of(const struct nj_conn *c)
{
    return c->active ? c->active->h2 : NULL;
}

/* --- the sink of HTTP/2 -------------------------------------------------------------------- */

static uint32_t sink_room(void *ctx)
{
    const struct nj_conn *c = ctx;
    uint32_t room = nj__conn_send_room(c);
    if (nj_unlikely(c->conns->tx_short))
        return nj__conn_may_send(c) ? nj_min_u32(room, NJ_SEND_ROOM_MIN) : 0;
    return room;
}

static bool sink_copy(void *ctx, const uint8_t *data, uint32_t n_bytes)
{
    struct nj_conn *c = ctx;
    enum nj_stage was = nj_stage(c->conns->stages, NJ_STAGE_TCP);
    /* At the end of a connection HTTP/2 writes without asking for room; then GOAWAY may be lost. */
    bool taken = n_bytes <= nj_tcp_send_room(c->tcb) &&
                 nj_tcp_send_copy(c->conns->tcp, c->tcb, data, n_bytes);
    nj_stage(c->conns->stages, was);
    return taken;
}

static bool sink_refer(void *ctx, const struct nj_slice *slice)
{
    struct nj_conn *c = ctx;
    return nj_tcp_send_refer(c->conns->tcp, c->tcb, slice);
}

static const struct nj_byte_sink clear_sink = {sink_room, sink_copy, sink_refer};

static uint32_t tls_room(void *ctx)
{
    return nj__conn_tls_room(ctx, sink_room(ctx));
}

static const struct nj_byte_sink tls_sink = {tls_room, nj__conn_tls_copy, nj__conn_tls_refer};

/* Lets HTTP/2 write. Returns what nj_h2_output() does. */
static int write_h2(struct nj_conn *c)
{
    if (nj_likely(!c->is_tls))
        return nj_h2_output(c->active->h2, &clear_sink, c);
    int result = nj_h2_output(c->active->h2, &tls_sink, c);
    /* It waits there, not in the send queue: see nj__pressure_track(). */
    c->holds |= nj_h2_buffered_bytes(c->active->h2) > 0;
    return nj__conn_tls_flush(c) ? result : -1;
}

/* --- errors of HTTP/2 ------------------------------------------------------------------------ */

/* If HTTP/2 ended the connection for abuse or an error of the client, records the client. */
static void record_client_fault(const struct nj_conn *c)
{
    static const nj_counter reason[NJ_H2_N_ABUSES] = {
#define NJ_H2_ABUSE(NAME, name, text) [NJ_H2_ABUSE_##NAME] = NJ_C_h2_abuse_##name,
#include "h2/abuse_kinds.def"
#undef NJ_H2_ABUSE
    };
    enum nj_h2_abuse abuse = nj_h2_abuse_reason(c->active->h2);

    if (abuse != NJ_H2_ABUSE_NONE)
        nj__abuse_record(c->conns, reason[abuse], &c->tcb->flow.tuple.remote);
    else if (nj_h2_has_protocol_error(c->active->h2))
        nj__abuse_attribute(c->conns, NJ_C_h2_error, &c->tcb->flow.tuple.remote);
}

static void mark_failed(struct nj_conn *c)
{
    if (c->failed)
        return;
    c->failed = true;
    record_client_fault(c);
}

/* --- bytes in ------------------------------------------------------------------------------ */

static void input_h2(struct nj_conn *c, const uint8_t *data, uint32_t n)
{
    enum nj_stage was = nj_stage(c->conns->stages, NJ_STAGE_H2);

    nj_h2_decay_glitches(c->active->h2, c->conns->now);
    if (nj_h2_input(c->active->h2, data, n) != 0)
        mark_failed(c);
    nj_stage(c->conns->stages, was);
}

static void open_h2(struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;
    struct nj_conn_active *active = c->active;

    nj_count(cs->counters, NJ_C_conn_h2);
    nj_list_init(&active->peer.exchanges);
    active->h2 = nj_h2_open(cs->h2, c);
    if (active->h2 && cs->draining)
        nj__drain_new(cs, active->h2);
    if (active->h2)
        input_h2(c, active->head, active->n_head);
    else
        c->failed = true;
    c->state = NJ_CONN_H2;
}

/* Detects the protocol from the first bytes. Returns how many bytes of `data` were used. */
static uint32_t sniff(struct nj_conn *c, const uint8_t *data, uint32_t n, nj_ns now)
{
    struct nj_conns *cs = c->conns;
    struct nj_conn_active *active = nj__conn_active(c);
    uint32_t free_head = NJ_SNIFF_BYTES - active->n_head;
    uint32_t used = n < free_head ? n : free_head;

    memcpy(active->head + active->n_head, data, used);
    active->n_head = (uint8_t)(active->n_head + used);
    switch (nj_sniff(active->head, active->n_head)) {
    case NJ_SNIFF_MORE:
        break;
    case NJ_SNIFF_H2:
        open_h2(c);
        break;
    case NJ_SNIFF_HTTP1:
        nj__abuse_record(cs, NJ_C_conn_http1, &c->tcb->flow.tuple.remote);
        if (!c->is_tls) /* it would not be a record */
            nj_tcp_send_copy(cs->tcp, c->tcb, (const uint8_t *)http1_reply, sizeof http1_reply - 1);
        nj__conn_begin_linger(c, now);
        break;
    case NJ_SNIFF_GARBAGE:
        nj__abuse_record(cs, NJ_C_conn_unknown, &c->tcb->flow.tuple.remote);
        nj__conn_begin_linger(c, now);
        break;
    }
    return used;
}

static void input(struct nj_conn *c, const uint8_t *data, uint32_t n, nj_ns now)
{
    while (n > 0 && c->state == NJ_CONN_SNIFF) {
        uint32_t used = sniff(c, data, n, now);
        if (c->failed) /* perhaps without a session */
            return;
        data += used;
        n -= used;
    }
    if (n > 0 && c->state == NJ_CONN_H2)
        input_h2(c, data, n);
}

static void read_input(struct nj_conn *c, nj_ns now)
{
    struct nj_tcp *tcp = c->conns->tcp;
    const uint8_t *data;
    uint32_t n, n_mbufs = 0;

    while (nj__conn_may_read(c) && (n = nj_tcp_recv_peek(c->tcb, &data)) > 0) {
        if (n_mbufs++ == NJ_READ_MBUFS_MAX) {
            nj_tcp_note_ready(tcp, c->tcb, 0);
            return;
        }
        if (c->state == NJ_CONN_SNIFF)
            n = sniff(c, data, n, now);
        else if (c->state == NJ_CONN_H2)
            input_h2(c, data, n);
        nj_tcp_recv_take(tcp, c->tcb, n);
    }
}

/* As read_input(), from records of TLS. Returns false if nothing could be read. */
static bool read_tls_input(struct nj_conn *c, nj_ns now)
{
    struct nj_tls_src plain;
    uint32_t n_records = 0; /* the rest has another turn, as in cleartext */

    if (!nj__conn_tls_begin_read(c))
        return false;
    while (n_records++ < NJ_READ_MBUFS_MAX && nj__conn_may_read(c) &&
           nj__conn_tls_read_record(c, &plain, now))
        input(c, plain.p, plain.n_bytes, now);
    nj__conn_tls_end_read(c);
    return true;
}

/* Input that is read counts as progress on a connection without streams, except for bytes of a
 * frame or record that was incomplete the last time: it has to end within its timeout. */
static void track_input(struct nj_conn *c, bool is_read, nj_ns now)
{
    nj_ns of_frame = NJ_NEVER, of_record = NJ_NEVER;

    if (c->state == NJ_CONN_LINGER)
        return;
    if (c->state == NJ_CONN_H2 && c->active->h2)
        of_frame = nj_h2_unfinished_frame_since(c->active->h2, now);
    if (nj_unlikely(c->is_tls))
        of_record = nj__conn_tls_unfinished_record_since(c, now);
    nj_ns since = nj_min_u64(of_frame, of_record);
    c->mid_frame = since != NJ_NEVER;
    c->progressed |= is_read && !nj__conn_has_streams(c) && (since == NJ_NEVER || since == now);
    if (c->mid_frame && nj__conn_is_unfinished_overdue(c, now))
        nj_h2_end_for_abuse(c->active->h2, NJ_H2_ABUSE_SLOW);
}

/* --- bytes out ----------------------------------------------------------------------------- */

/* Lets HTTP/2 write. The mbufs it uses are not available to the next connection. */
static void output_h2(struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;
    uint32_t had = nj_tcp_send_queue_mbufs(c->tcb);
    uint64_t n_body = nj_counter_read(cs->counters, NJ_C_body_bytes);
    enum nj_stage was = nj_stage(cs->stages, NJ_STAGE_H2);

    if (write_h2(c) != 0 && !c->failed) {
        mark_failed(c);
        write_h2(c); /* the GOAWAY with the error */
    }
    nj_stage(cs->stages, was);
    uint32_t taken = nj_tcp_send_queue_mbufs(c->tcb) - had;
    cs->n_tx_mbufs_left -= taken < cs->n_tx_mbufs_left ? taken : cs->n_tx_mbufs_left;
    if (nj_counter_read(cs->counters, NJ_C_body_bytes) == n_body)
        return;
    c->body_unacked = true;
    c->active->body_end = nj_tcp_queued_end(c->tcb);
}

static void write_output(struct nj_conn *c, nj_ns now)
{
    if (c->state != NJ_CONN_H2)
        return;
    struct nj_h2 *h2 = h2_of(c);
    bool may_write = nj_likely(!c->conns->tx_short) || !c->failed || nj__conn_has_send_share(c);
    if (h2 && may_write) /* the GOAWAY of a failed connection asks for no room */
        output_h2(c);
    bool peer_left = c->peer_fin && !nj__conn_has_input(c) && (!h2 || nj_h2_n_streams(h2) == 0);
    if (c->failed || peer_left || nj_h2_is_finished(h2))
        nj__conn_begin_linger(c, now);
}

/* When everything is queued and TCP may send all of it, the ACK is not reported. This holds only
 * for a peer that had no ACKs outstanding before: its ACK is expected to come
 * (conn_timeouts.c). */
static void choose_ack_events(struct nj_conn *c)
{
    bool quiet = c->state == NJ_CONN_H2 && !c->failed && !c->peer_fin && nj_h2_is_idle(h2_of(c)) &&
                 !nj__conn_has_input(c) && nj_tcp_windows_allow_all(c->tcb) &&
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
        c->progressed |= of_body || !nj__conn_has_streams(c);
}

/* A FIN may come from a peer that sends no further requests and still reads, or from a closed
 * socket, which resets when it is sent something. A handler may wait long before it sends; PING
 * finds out. */
static void ping_after_fin(struct nj_conn *c)
{
    if (c->state != NJ_CONN_H2 || nj_h2_n_streams(h2_of(c)) == 0)
        return;
    nj_h2_ping(h2_of(c));
    nj__conn_mark_ready(c);
}

static void wait_for_event(struct nj_conn *c, nj_ns now)
{
    nj__conn_update_timeout_list(c, now);
    if (nj_unlikely(c->conns->tx_short))
        nj__pressure_wait(c);
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
    bool is_read = nj__conn_has_input(c);
    if (nj_unlikely(c->is_tls))
        is_read = read_tls_input(c, now);
    else if (is_read)
        read_input(c, now);
    if (is_read || c->input_waits)
        track_input(c, is_read, now);
    if (c->peer_fin && !nj__conn_has_input(c))
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
    if (nj__conn_has_input(c) && nj__conn_may_read(c))
        nj_tcp_note_ready(cs->tcp, tcb, 0); /* output made room, or the input is to be discarded */
    else if (c->state == NJ_CONN_LINGER && c->peer_fin && nj__conn_is_fin_acked(c))
        nj__conn_free(c, now); /* both sides are finished */
    else
        wait_for_event(c, now);
}

/* --- end ----------------------------------------------------------------------------------- */

void nj__conn_close(struct nj_conn *c, nj_ns now)
{
    struct nj_h2 *h2 = c->state == NJ_CONN_H2 ? h2_of(c) : NULL;

    if (h2) {
        nj_h2_goaway(h2);
        nj_h2_goaway(h2);
        if (write_h2(c) != 0) {
            mark_failed(c);
            write_h2(c); /* the GOAWAY with the error */
        }
    }
    nj__conn_begin_linger(c, now);
    nj__conn_update_timeout_list(c, now);
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
    if (c->waits_for == NJ_CONN_WAIT_PROGRESS)
        nj__abuse_record(cs, NJ_C_conn_timeout, &c->tcb->flow.tuple.remote);
    else
        nj_count(cs->counters, NJ_C_conn_timeout);
    if (c->waits_for == NJ_CONN_WAIT_IDLE || c->waits_for == NJ_CONN_WAIT_FRAME) {
        if (c->waits_for == NJ_CONN_WAIT_FRAME)
            nj_h2_end_for_abuse(c->active->h2, NJ_H2_ABUSE_SLOW);
        nj__conn_close(c, now);
    } else {
        nj__conn_reset(c, now);
    }
}
