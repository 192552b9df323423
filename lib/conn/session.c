/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of a connection, which is one of lib/h2 or lib/h1: its begin and end, bytes in, and
 * bytes out into TCP's send queue, over TLS as records. */
#include "conn/session.h"

#include "conn/abuse_reason_counts.h"
#include "conn/conn_tls.h"
#include "conn/send_room.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"

/* --- where a session writes ------------------------------------------------------------------ */

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

/* --- errors of HTTP/2 ------------------------------------------------------------------------ */

/* If HTTP/2 ended the connection for abuse or an error of the client, records the client. */
static void record_client_fault(const struct nj_conn *c)
{
    static const nj_counter reason[NJ_H2_N_ABUSES] = {
#define NJ_H2_ABUSE(NAME, name, text) [NJ_H2_ABUSE_##NAME] = NJ_C_h2_abuse_##name,
#include "h2/abuse_kinds.def"
#undef NJ_H2_ABUSE
    };
    if (c->state != NJ_CONN_H2)
        return;
    enum nj_h2_abuse abuse = nj_h2_abuse_reason(c->active->h2);

    if (abuse != NJ_H2_ABUSE_NONE)
        nj__abuse_record(c->conns, reason[abuse], nj__conn_remote(c));
    else if (nj_h2_has_protocol_error(c->active->h2))
        nj__abuse_attribute(c->conns, NJ_C_h2_error, nj__conn_remote(c));
}

void nj__session_fail(struct nj_conn *c)
{
    if (c->failed)
        return;
    c->failed = true;
    record_client_fault(c);
}

/* --- begin and end --------------------------------------------------------------------------- */

void nj__session_open(struct nj_conn *c, enum nj_conn_state protocol)
{
    struct nj_conns *cs = c->conns;
    struct nj_conn_active *active = c->active;

    nj_list_init(&active->peer.exchanges);
    c->state = (uint8_t)protocol;
    if (protocol == NJ_CONN_H2) {
        nj_count(cs->counters, NJ_C_conn_h2);
        active->h2 = nj_h2_open(cs->h2, c);
    } else {
        nj_count(cs->counters, NJ_C_conn_h1);
        active->h1 = nj_h1_open(cs->h1, c, c->is_tls, nj__is_trusted_proxy(cs, nj__conn_remote(c)));
    }
    c->failed |= !nj__conn_has_session(c);
}

void nj__session_close(struct nj_conn *c)
{
    if (!nj__conn_has_session(c))
        return;
    if (c->state == NJ_CONN_H2)
        nj_h2_close(c->active->h2);
    else
        nj_h1_close(c->active->h1);
    nj_conn_exchanges_detach(&c->active->peer);
    c->active->h2 = NULL;
}

/* --- bytes in -------------------------------------------------------------------------------- */

void nj__session_input_all(struct nj_conn *c, const uint8_t *data, uint32_t n)
{
    uint32_t used = nj__session_input(c, data, n);

    if (used < n)
        nj_h1_keep(c->active->h1, data + used, n - used);
}

/* --- bytes out ------------------------------------------------------------------------------- */

/* Lets the session write. False: it has to end. */
static bool write_out(struct nj_conn *c)
{
    const struct nj_byte_sink *sink = nj_likely(!c->is_tls) ? &clear_sink : &tls_sink;
    int result = nj_likely(c->state == NJ_CONN_H2) ? nj_h2_output(c->active->h2, sink, c)
                                                   : nj_h1_output(c->active->h1, sink, c);

    if (nj_likely(!c->is_tls))
        return result == 0;
    /* It waits there, not in the send queue: see nj__pressure_track(). */
    c->holds |= nj__session_buffered_bytes(c) > 0;
    return nj__conn_tls_flush(c) && result == 0;
}

void nj__session_output(struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;
    uint32_t had = nj_tcp_send_queue_mbufs(c->tcb);
    uint64_t n_body = nj_counter_read(cs->counters, NJ_C_body_bytes);
    enum nj_stage was = nj_stage(cs->stages, NJ_STAGE_H2);

    if (!write_out(c) && !c->failed) {
        nj__session_fail(c);
        write_out(c); /* the GOAWAY with the error */
    }
    nj_stage(cs->stages, was);
    uint32_t taken = nj_tcp_send_queue_mbufs(c->tcb) - had;
    cs->n_tx_mbufs_left -= taken < cs->n_tx_mbufs_left ? taken : cs->n_tx_mbufs_left;
    if (nj_counter_read(cs->counters, NJ_C_body_bytes) == n_body)
        return;
    c->body_unacked = true;
    c->active->body_end = nj_tcp_queued_end(c->tcb);
}

void nj__session_say_goodbye(struct nj_conn *c)
{
    if (c->state == NJ_CONN_H2) {
        nj_h2_goaway(c->active->h2);
        nj_h2_goaway(c->active->h2);
    }
    if (!write_out(c)) {
        nj__session_fail(c);
        write_out(c); /* the GOAWAY with the error */
    }
}

void nj__session_end_for_slowness(struct nj_conn *c)
{
    if (c->state == NJ_CONN_H2)
        nj_h2_end_for_abuse(c->active->h2, NJ_H2_ABUSE_SLOW);
    else
        nj_h1_end_for_timeout(c->active->h1);
}
