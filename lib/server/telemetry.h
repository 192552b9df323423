/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_telemetry commands:
 *   /nightjar/stats   every counter, summed over the shards
 *   /nightjar/shards    per shard: lcore, steering, cycles, packets, drops by reason, what it holds
 *   /nightjar/shards,N  the same of one
 *   /nightjar/memory    what connections are made of: sizes, how many are in use, how many were
 *   /nightjar/memory,N  the same of one shard
 */
#ifndef NJ_SERVER_TELEMETRY_H
#define NJ_SERVER_TELEMETRY_H

struct nj_server;

/* Make the commands answer for this server; NULL makes them answer with nothing. */
void nj_telemetry_attach(const struct nj_server *server);

#endif
