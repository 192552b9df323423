/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that a shard opens, as a client. */
#ifndef NJ_PERF_LOAD_ACTIVE_H
#define NJ_PERF_LOAD_ACTIVE_H

#include "base/keyed_hash.h"
#include "net/rss_flow_owner.h"
#include "shard/shard.h"
#include "tcp/flow_table.h"

/*
 * Choose t->lport; the rest of the tuple is given. `counter` is of the shard alone, and moves on
 * with every port looked at. Returns how many were: while ports are plenty about n_shards, up to
 * three times as many where the key has neighbouring ports go to few shards. With a key that
 * spreads (rss_flow_owner.h) and a table of 128 entries less than 256: each block of 128 ports goes
 * through the whole table. 0: none of those that steer home is free; to know that takes a look at
 * all of them, 1 to 2 ms.
 */
uint32_t active_port(const struct nj_steer *steer, const struct nj_flow_table *flows,
                     const struct nj_hash_key *key, uint32_t *counter, struct nj_tuple *t);

/*
 * Open a connection from `local`, an address of the shard's interface; the port is chosen such that
 * replies come to this shard. `user` stays the caller's and hears NJ_TCP_EV_OPENED or
 * NJ_TCP_EV_DEAD. NULL: every port to that place is in use (counted as connect_no_port), every
 * connection object is (connect_full), or the shard is draining.
 */
struct nj_tcb *active_open(struct nj_shard *s, uint32_t *counter, const struct nj_addr *local,
                           const struct nj_addr *remote, uint16_t rport, struct nj_conn_user *user,
                           nj_ns now);

#endif
