/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of connections: max-min fairness between the clients of one shard.
 *
 * While at least half of the connection table is free, connections are not limited.
 * Above that, connections count for their client (an IPv4 address, an IPv6 /64, or the policy's
 * prefixes). When the table is nearly full, each new connection of a client that holds fewer takes
 * the place of one of the client that holds most, until both hold equally many. Idle connections
 * are closed with GOAWAY and FIN first, and those that have ended and still get input are reset;
 * when no entry is left, any is reset. A connection that begins with a PROXY header asks for a
 * place when the header has named its client.
 *
 * Each shard decides alone: the scarce objects are the shard's own. A client whose ports all map to
 * one shard can fill that shard only.
 *
 * Counters are indexed by a keyed hash of the client, at least one word per entry, so a connection
 * stores nothing. Two clients whose hashes collide share a counter. All calls belong to the shard's
 * lcore.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nj_conn;
struct nj_conns;

struct nj_conn_shares {
    uint32_t *n; /* connections, by hash of the client */
    uint32_t mask;
    uint32_t counted_below; /* slots of conns->pool below this are included in n; 0: none */
    uint32_t largest_at;    /* index of the highest n seen */
    uint32_t scan_at;       /* next slot to scan for a victim */
    uint32_t n_to_evict;    /* evictions requested by clients within their share */
    uint32_t evict_for_n;   /* connections of the smallest client that requested one */
    bool largest_stale;     /* another client may hold more than `largest_at` */
};

/* Returns false when memory is refused. */
bool nj__conn_shares_init(struct nj_conns *cs);
void nj__conn_shares_fini(struct nj_conns *cs);
/* Called when a connection object is made, and before it is freed. tcb->flow is valid in both. */
void nj__conn_shares_add(struct nj_conn *c);
void nj__conn_shares_remove(struct nj_conn *c);
/* A new connection, whose client is known: asks for a place of a client that holds more, once the
 * table is nearly full. */
void nj__conn_shares_request_room(const struct nj_conn *c);
/* The prefixes that define clients may have changed: starts counting again. */
void nj__conn_shares_restart_count(struct nj_conns *cs);
/* Once per step: includes a batch of connections in the counters. Returns how many. */
uint32_t nj__conn_shares_count(struct nj_conns *cs);
/* After that: a connection to evict, for one request of a client within its share; NULL: none. To
 * be called until it returns NULL. The caller ends the connection. `gently`: with GOAWAY and FIN,
 * so only an idle one is chosen, or one that is late and is to be reset: nj__conn_is_late(). */
struct nj_conn *nj__conn_shares_next_victim(struct nj_conns *cs, bool gently);
/* Is the table so full that idle connections are closed? */
bool nj__conn_shares_is_nearly_full(const struct nj_conns *cs);
/* nj__conn_shares_count() has to be called again at once. */
bool nj__conn_shares_has_work(const struct nj_conns *cs);
