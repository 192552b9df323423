/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timeouts of requests.
 *
 * Requests are on a list and are checked some times per timeout: for what the request waits, and if
 * it waits for the peer, how many bytes the peer sent or acknowledged. So each kind of timeout
 * needs one timer, and no packet rearms it.
 *
 * A peer makes progress when it acknowledges min_rate on the average of send_timeout, and when it
 * sends a request body at min_upload_rate. Delays of the server (credit, files, handlers) do not
 * count against the peer. A request that waits for a file for send_timeout gets an error: memory
 * may be held by others, or the disk does not answer. All calls belong to the shard's lcore.
 */
#pragma once

#include "conn/conn.h"

/* Schedules the next check of the transaction's progress. */
void nj__txn_schedule_progress_check(struct nj_txn *t, nj_ns now);
/* Does the transaction wait for its peer? */
bool nj__txn_waits_for_peer(const struct nj_txn *t);
/* Checks the requests that are due. Returns how many. */
uint32_t nj__check_requests(struct nj_conns *cs, nj_ns now);
/* When the next check is due. */
nj_ns nj__request_checks_first_at(const struct nj_conns *cs);
