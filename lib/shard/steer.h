/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which shard owns a flow: the Toeplitz hash of the four-tuple, through a redirection table, as
 * a NIC's RSS computes it. A NIC that is told the same key and table brings packets to the right
 * shard by itself; for other devices the shards hand packets over to each other.
 */
#ifndef NJ_SHARD_STEER_H
#define NJ_SHARD_STEER_H

#include <stdint.h>

#include "base/types.h"

#define NJ_RSS_KEY_BYTES 40u
#define NJ_RETA_MAX      512u

/* How much a shard trusts the device to have brought it only its own flows. */
enum nj_steering {
    NJ_STEER_NONE,   /* one shard: everything is its own */
    NJ_STEER_MISS,   /* RSS: look at the owner only when a flow is not in the table */
    NJ_STEER_ALWAYS, /* no RSS: look at every TCP packet */
};

struct nj_steer {
    enum nj_steering mode;
    uint32_t self, n_shards;
    uint32_t reta_size;                    /* a power of two, at most NJ_RETA_MAX */
    uint8_t owner[NJ_RETA_MAX];            /* reta entry -> shard */
    uint32_t key_be[NJ_RSS_KEY_BYTES / 4]; /* as rte_softrss_be() wants it */
};

/* The key that NICs are given. It repeats every 16 bits, so both directions of a flow hash alike.
 */
extern const uint8_t nj_rss_key[NJ_RSS_KEY_BYTES];

/* Entry i of the table belongs to shard i mod n_shards. */
void nj_steer_init(struct nj_steer *s, enum nj_steering mode, uint32_t self, uint32_t n_shards,
                   uint32_t reta_size);

/* The Toeplitz hash over source, destination and ports as the sender wrote them. Pure. */
uint32_t nj_steer_hash(const struct nj_steer *s, const struct nj_tuple *received);

static inline uint32_t nj_steer_owner(const struct nj_steer *s, const struct nj_tuple *received)
{
    return s->owner[nj_steer_hash(s, received) & (s->reta_size - 1)];
}

#endif
