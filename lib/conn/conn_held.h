/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a connection holds of resources that can run out, counted for its client: received mbufs,
 * memory of its session, and mbufs of its send queue while these are short. All calls belong to the
 * shard's lcore.
 */
#pragma once

#include "conn/conn.h"

/* Mbufs to send from which on buffered output is looked for. */
#define NJ_LONG_QUEUE 4u

/* Counts anew. */
void nj__conn_count_held(struct nj_conn *c, nj_ns now);

/* Records what the connection holds: after it was served, and after its session was closed.
 *
 * What is held after the connection was served waits for the peer: for the rest of a record, for
 * the segments before it, or for the peer to read our output. Buffered output is not looked for
 * while the send queue is shorter than NJ_LONG_QUEUE, which blocks it only if mbufs are short, or
 * if the connection is of TLS: then c->holds is set. */
static inline void nj__conn_track_held(struct nj_conn *c, nj_ns now)
{
    const struct nj_xfer *x = c->tcb->x;

    if (nj_unlikely(c->mid_frame || c->holds || c->conns->tx_short ||
                    (x && (x->rcvq.n_mbufs > 0 || x->sndq.n_mbufs >= NJ_LONG_QUEUE))))
        nj__conn_count_held(c, now);
}

/* The connection ends: it holds nothing any more. */
void nj__conn_forget_held(struct nj_conn *c);
