/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is counted for each site. A shard has an array of these; its lcore writes them, and any
 * thread may read and gets a recent value of each. A site has the same place in all shards, and
 * keeps it when the configuration is read again (config/policy_snapshots.h).
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

/* Places of sites: 1 to NJ_SITE_COUNTS_OWN, by the first name, and NJ_SITE_COUNTS_REST for all
 * further ones. Requests without a site are not counted. */
#define NJ_SITE_COUNTS_OWN  1000u
#define NJ_SITE_COUNTS_REST (NJ_SITE_COUNTS_OWN + 1)
#define NJ_SITE_COUNTS_MAX  (NJ_SITE_COUNTS_OWN + 2)

/* Indices of struct nj_site_counts.n. Those from 2 to 5 are requests that ended, by the class of
 * the status; 200 to 299 is 2. */
enum {
    NJ_SITE_N_UNANSWERED, /* requests that ended without a response */
    NJ_SITE_N_BEGUN,      /* requests */
    NJ_SITE_N_2XX,
    NJ_SITE_N_5XX = 5,
    NJ_SITE_N_BYTES, /* of bodies of responses that ended */
};

struct nj_site_counts {
    uint64_t n[8];
} NJ_CACHE_ALIGNED;

/* The lcore of the shard only. */
static inline void nj_site_count(struct nj_site_counts *c, unsigned which, uint64_t n)
{
    __atomic_store_n(&c->n[which], __atomic_load_n(&c->n[which], __ATOMIC_RELAXED) + n,
                     __ATOMIC_RELAXED);
}

/* Any thread. */
static inline uint64_t nj_site_count_read(const struct nj_site_counts *c, unsigned which)
{
    return __atomic_load_n(&c->n[which], __ATOMIC_RELAXED);
}
