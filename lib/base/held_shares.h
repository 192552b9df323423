/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Account of what peers make a shard hold, of one resource that can run out: units by client, and
 * by holder (a connection). Max-min fairness: when the resource is short, the holders of clients
 * that have more than an equal share give up theirs, and those of the other clients never do.
 *
 * A client is a 64-bit key, reduced to an entry of a table. Clients whose keys have the same entry
 * count as one client. One thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Entries of the table, 4 bytes each, touched when they are used. A new client has the entry of one
 * of 64 others with a probability of 1e-3. */
#define NJ_HELD_CLIENTS 65536u

/* Zeroed by its owner before its first use, except that `node` is initialised. */
struct nj_holder {
    struct nj_list node; /* member of nj_held_shares.holders while n > 0 */
    uint16_t entry;      /* of its client; valid while n > 0 */
    uint16_t n;          /* units that it holds */
    uint32_t since_ms;   /* since when it waits; ms modulo 2^32, set by the caller */
};

struct nj_held_shares {
    uint32_t *of_client; /* units by entry */
    uint32_t n_clients;  /* entries that are not 0 */
    uint32_t n_held;     /* units of all holders */
    struct nj_list holders;
};

/* Returns false when memory is refused. */
bool nj_held_shares_init(struct nj_held_shares *a);
void nj_held_shares_fini(struct nj_held_shares *a);

/* The holder holds `n` units now, of which UINT16_MAX count, for the client of `key`; 0: it is
 * removed from the account. A holder that had none becomes the last one of the list. */
void nj_held_set(struct nj_held_shares *a, struct nj_holder *h, uint64_t key, uint32_t n);

/* Units that the client of `key` holds. */
uint32_t nj_held_of(const struct nj_held_shares *a, uint64_t key);

/* Looks at the first `n_scan` holders, which go to the end of the list. Of the client that has
 * most, returns the holder that has most, if the client has more than an equal share of `n_shared`
 * units; else NULL. Holders that wait since a time after `until_ms` are passed over. */
struct nj_holder *nj_held_worst(struct nj_held_shares *a, uint32_t n_shared, uint32_t n_scan,
                                uint32_t until_ms);
