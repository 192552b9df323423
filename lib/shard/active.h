/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a connection that we open. nj_shard_connect() (shard.h) is the call for users. */
#ifndef NJ_SHARD_ACTIVE_H
#define NJ_SHARD_ACTIVE_H

#include "base/hash.h"
#include "base/limits.h"
#include "shard/steer.h"
#include "tcp/flow_table.h"

/*
 * Choose t->lport; the rest of the tuple is given. `counter` is the shard's own and moves on with
 * every port looked at. Returns how many were: while ports are plenty about n_shards, up to three
 * times as many where the key has neighbouring ports go to few shards. With a key that spreads
 * (steer.h) and a table of 128 entries less than 256: each block of 128 ports goes through the
 * whole table. 0: none of those that steer home is free; to know that takes a look at all of them,
 * 1 to 2 ms.
 */
uint32_t nj_active_port(const struct nj_steer *steer, const struct nj_flow_table *flows,
                        const struct nj_hash_key *key, uint32_t *counter, struct nj_tuple *t);

#endif
