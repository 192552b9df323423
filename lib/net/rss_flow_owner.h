/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which shard owns a flow: the Toeplitz hash of the four-tuple, through a redirection table, as
 * a NIC's RSS computes it. A NIC with the same key and table delivers packets to the right
 * shard; with other devices the shards hand packets over to each other. Pure after init.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

#define NJ_RSS_KEY_BYTES 40u
#define NJ_RETA_MAX      2048u /* of the ice driver; most have 128 or 512 entries */

/* The hash key, also programmed into the NIC. Secret: with it, a peer can choose source ports that
 * map all its connections to one shard. */
struct nj_rss_key {
    uint8_t b[NJ_RSS_KEY_BYTES];
};

/* Are the owners of connections to one place spread over the whole table by our port alone, and by
 * 128 ports in a row over a table of 128 entries? Random keys are not all so, one of five or so:
 * a connection that is opened to come home (perf/tools/load/active.h) may find no port with
 * others. */
bool nj_rss_key_spreads(const struct nj_rss_key *key);

/* When a shard checks the owner of a received flow. */
enum nj_steer_mode {
    NJ_STEER_NONE,    /* one shard: everything is its own */
    NJ_STEER_ON_MISS, /* RSS: look at the owner only when a flow is not in the table */
    NJ_STEER_ALWAYS,  /* no RSS: look at every TCP packet */
};

struct nj_steer {
    enum nj_steer_mode mode;
    uint32_t self, n_shards;
    uint32_t reta_size;                    /* a power of two, at most NJ_RETA_MAX */
    uint8_t owner[NJ_RETA_MAX];            /* reta entry -> shard */
    uint32_t key_be[NJ_RSS_KEY_BYTES / 4]; /* as rte_softrss_be() wants it */
};

/* Entry i of the table belongs to shard i mod n_shards. `key` is that of all shards, and not zero
 * where there are several. */
void nj_steer_init(struct nj_steer *s, const struct nj_rss_key *key, enum nj_steer_mode mode,
                   uint32_t self, uint32_t n_shards, uint32_t reta_size);

/* The Toeplitz hash over source, destination and ports as the sender wrote them. Pure. */
uint32_t nj_steer_hash(const struct nj_steer *s, const struct nj_tuple *received);

static inline uint32_t nj_steer_owner(const struct nj_steer *s, const struct nj_tuple *received)
{
    return s->owner[nj_steer_hash(s, received) & (s->reta_size - 1)];
}
