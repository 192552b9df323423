/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of connections, computed from what is there.
 *
 * While at least half of the places for connections are free, nobody is counted and nobody is
 * limited. Above that, connections are counted by client (an IPv4 address, an IPv6 /64; the
 * policy's prefixes). When the table is nearly full, each connection of a client that holds less
 * takes the place of one of the client that holds most, until they hold equally many (max-min
 * fairness): first idle connections get GOAWAY and FIN; when no place is left, one is reset.
 *
 * The decision is the shard's own: what is scarce are the objects of this shard, and a client whose
 * ports lead all of its connections to one shard holds that one only.
 *
 * Counts are kept by a keyed hash of the client, at least one word per place, so a connection holds
 * nothing for it. Two clients whose hashes meet are counted as one. One lcore only.
 */
#ifndef NJ_CONN_CONN_SHARES_H
#define NJ_CONN_CONN_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

struct nj_conn;
struct nj_shard;

struct nj_shares {
    uint32_t *n; /* connections, by hash of the client */
    uint32_t mask;
    uint32_t counted;    /* those at lower places of shard->conns are counted; 0: none is */
    uint32_t worst;      /* where n is largest, as far as was seen */
    uint32_t look_at;    /* the next place to look at for one that yields */
    uint32_t n_wanted;   /* places that clients within their share ask for */
    uint32_t wanted_for; /* connections of the one of them that holds least */
    bool unsure;         /* somebody else than `worst` may hold most */
};

/* False when memory is refused. */
bool nj__shares_init(struct nj_shard *s);
void nj__shares_fini(struct nj_shard *s);
/* A connection object was made, and it goes; tcb->flow is valid for both. */
void nj__shares_add(struct nj_conn *c);
void nj__shares_remove(struct nj_conn *c);
/* The prefixes of clients may have changed: count anew. */
void nj__shares_restart(struct nj_shard *s);
/* For nj_tcp_config.yields. */
bool nj__shares_yields(void *shard, const struct nj_addr *remote, bool proven);
/* Once per step: count some, and have somebody yield who has to. Returns how many. */
uint32_t nj__shares_run(struct nj_shard *s, nj_ns now);
/* Are places so few that idle connections are asked for theirs? */
bool nj__shares_tight(const struct nj_shard *s);
/* It has to be called again at once. */
bool nj__shares_busy(const struct nj_shard *s);

#endif
