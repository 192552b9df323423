/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timeouts of connections.
 *
 * Each connection is on one list, chosen by the event it waits for. All connections of a list have
 * the same timeout, so the list is ordered by expiry, and an idle connection costs nothing. These
 * lists check progress of TCP only: requests have timeouts of their own (request_timeouts.h). All
 * calls belong to the shard's lcore.
 */
#pragma once

#include "conn/conn.h"

/* Puts the connection on the list of what it waits for. Called after each time it was served. */
void nj__conn_update_timeout_list(struct nj_conn *c, nj_ns now);
/* Restarts due waits of a list whose connections made progress, and returns the first connection
 * that made none, which the caller has to end; NULL: no more are due. `*n_seen`, 0 in the first
 * call, counts those that were due, up to a limit per step. */
struct nj_conn *nj__conn_next_expired(struct nj_conns *cs, enum nj_conn_wait waits_for,
                                      uint32_t *n_seen, nj_ns now);
/* When the first member of a list is due. */
nj_ns nj__conn_timeouts_first_at(const struct nj_conns *cs);
/* A frame, a header block, the preface or a record of TLS is incomplete for too long. */
bool nj__conn_is_unfinished_overdue(const struct nj_conn *c, nj_ns now);

/* Bytes that a peer must acknowledge within `time` at `rate` bytes per second; at least 1. */
uint64_t nj__min_bytes_due(const struct nj_conns *cs, nj_ns time, uint64_t rate);
/* Bytes that take `time` at `rate` bytes per second. */
uint64_t nj__bytes_at_rate(nj_ns time, uint64_t rate);

/* Called when something is appended to a list. */
static inline void nj__note_deadline(struct nj_conns *cs, nj_ns at)
{
    cs->timeouts_at = nj_min_u64(cs->timeouts_at, at);
}
