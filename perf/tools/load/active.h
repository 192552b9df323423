/* SPDX-License-Identifier: BSD-3-Clause */
/* Active opens of a shard. */
#pragma once

#include "base/keyed_hash.h"
#include "net/rss_flow_owner.h"
#include "shard/shard.h"
#include "tcp/flow_table.h"

/*
 * Chooses t->lport; the rest of the tuple is given. `counter` belongs to the shard, and advances
 * with every examined port. Returns the number of examined ports. While most ports are free, that
 * is about n_shards, and up to three times as many if the key maps neighbouring ports to few
 * shards. With a key that spreads (rss_flow_owner.h) and a table of 128 entries it is less than
 * 256, because each block of 128 ports covers the whole table. 0: no port that steers to this shard
 * is free; this result requires an examination of all ports, which takes 1 to 2 ms.
 */
uint32_t active_port(const struct nj_steer *steer, const struct nj_flow_table *flows,
                     const struct nj_hash_key *key, uint32_t *counter, struct nj_tuple *t);

/*
 * Opens a connection from `local`, an address of the shard's interface. The port is chosen such
 * that replies come to this shard. `user` remains the caller's and receives NJ_TCP_EV_OPENED or
 * NJ_TCP_EV_DEAD. NULL: every port to that destination is in use, every connection object is in
 * use, or the shard is draining.
 */
struct nj_tcb *active_open(struct nj_shard *s, uint32_t *counter, const struct nj_addr *local,
                           const struct nj_addr *remote, uint16_t rport, struct nj_conn_user *user,
                           nj_ns now);
