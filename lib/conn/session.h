/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a connection speaks, HTTP/2 or HTTP/1: one set of questions and acts for both. A connection
 * in the state NJ_CONN_H2 or NJ_CONN_H1 has a session, unless memory was refused; then it has
 * failed, and ends in the same turn.
 *
 * All calls belong to the shard's lcore. Those of the second part need a session.
 */
#pragma once

#include "conn/conn.h"

static inline bool nj__conn_speaks_http(const struct nj_conn *c)
{
    return c->state == NJ_CONN_H2 || c->state == NJ_CONN_H1;
}

static inline bool nj__conn_has_session(const struct nj_conn *c)
{
    return nj__conn_speaks_http(c) && c->active->h2; /* or h1, which has the same place */
}

/* Number of open requests. While some are open, only progress of a stream counts: a request, a
 * body, or acknowledged response bytes. A PING is not progress. */
static inline uint32_t nj__conn_n_requests(const struct nj_conn *c)
{
    if (nj_likely(c->state == NJ_CONN_H2))
        return c->active->h2 ? nj_h2_n_streams(c->active->h2) : 0;
    return c->state == NJ_CONN_H1 && c->active->h1 ? nj_h1_n_requests(c->active->h1) : 0;
}

/* The session has copied bytes that it could not use yet: those behind a request, in a record. */
static inline bool nj__conn_has_kept(const struct nj_conn *c)
{
    return c->state == NJ_CONN_H1 && c->active->h1 && nj_h1_has_kept(c->active->h1);
}

static inline void nj__session_prefetch(const struct nj_conn *c)
{
    if (c->state == NJ_CONN_H2 && c->active->h2)
        nj_h2_prefetch(c->active->h2);
    else if (c->state == NJ_CONN_H1 && c->active->h1)
        nj_h1_prefetch(c->active->h1);
}

/* Received bytes are left to be read. */
static inline bool nj__conn_has_unread(const struct nj_conn *c)
{
    return nj__conn_has_input(c) || nj__conn_has_kept(c);
}

/* Begins a session. Sets c->failed if memory is refused. */
void nj__session_open(struct nj_conn *c, enum nj_conn_state protocol);
/* Ends the session, if there is one, and its requests. */
void nj__session_close(struct nj_conn *c);

/* ---- of a session ---- */

/* Nothing remains to be sent or received. */
static inline bool nj__session_is_finished(const struct nj_conn *c)
{
    return nj_likely(c->state == NJ_CONN_H2) ? nj_h2_is_finished(c->active->h2)
                                             : nj_h1_is_finished(c->active->h1);
}

/* The end must be an RST: a FIN would make an incomplete response look complete. */
static inline bool nj__session_must_reset(const struct nj_conn *c)
{
    return c->state == NJ_CONN_H1 && nj_h1_must_reset(c->active->h1);
}

/* The client may still send the rest of an upload that was answered before its end. */
static inline bool nj__session_rest_may_come(const struct nj_conn *c)
{
    return c->state == NJ_CONN_H1 && nj_h1_rest_may_come(c->active->h1);
}

/* No request is open and no output is queued. */
static inline bool nj__session_is_idle(const struct nj_conn *c)
{
    return nj_likely(c->state == NJ_CONN_H2) ? nj_h2_is_idle(c->active->h2)
                                             : nj_h1_is_idle(c->active->h1);
}

/* When the peer began what is incomplete: a frame, a header block, a head, a trailer section, the
 * rest of a body behind its response. NJ_NEVER: nothing. */
static inline nj_ns nj__session_unfinished_since(const struct nj_conn *c, nj_ns now)
{
    return nj_likely(c->state == NJ_CONN_H2) ? nj_h2_unfinished_frame_since(c->active->h2, now)
                                             : nj_h1_unfinished_since(c->active->h1, now);
}

static inline uint32_t nj__session_buffered_bytes(const struct nj_conn *c)
{
    return nj_likely(c->state == NJ_CONN_H2) ? nj_h2_buffered_bytes(c->active->h2)
                                             : nj_h1_buffered_bytes(c->active->h1);
}

/* An error ends the session, or memory was refused: c->failed, and the client is recorded. */
void nj__session_fail(struct nj_conn *c);
/* Reads bytes of the peer. Returns how many were used; HTTP/1 leaves those behind a request. */
static inline uint32_t nj__session_input(struct nj_conn *c, const uint8_t *data, uint32_t n)
{
    enum nj_stage was = nj_stage(c->conns->stages, NJ_STAGE_H2);

    if (nj_likely(c->state == NJ_CONN_H2)) {
        nj_h2_decay_glitches(c->active->h2, c->conns->now);
        if (nj_unlikely(nj_h2_input(c->active->h2, data, n) != 0))
            nj__session_fail(c);
    } else {
        n = nj_h1_input(c->active->h1, data, n);
    }
    nj_stage(c->conns->stages, was);
    return n;
}

/* The same for bytes that the caller cannot keep: the session copies what it does not use. */
void nj__session_input_all(struct nj_conn *c, const uint8_t *data, uint32_t n);
/* Writes what it may into the send queue. The mbufs it uses are not available to the next
 * connection. If memory was refused or an error ended the session, c->failed. */
void nj__session_output(struct nj_conn *c);
/* The peer is too slow: the session ends with the next output. */
void nj__session_end_for_slowness(struct nj_conn *c);
/* Says that the connection ends, and writes it: GOAWAY. */
void nj__session_say_goodbye(struct nj_conn *c);
