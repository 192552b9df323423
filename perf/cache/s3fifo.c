/* SPDX-License-Identifier: BSD-3-Clause */
/* S3-FIFO, the server's policy: adapts lib/store/cache_policy.c to struct sim_policy. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/keyed_hash.h"
#include "sim.h"
#include "store/cache_policy.h"

struct s3fifo {
    const struct sim_trace *t;
    struct nj__cache_policy policy;
    struct nj__cache_entry *entries;
    struct nj_mix_key key;
};

static void *make(const struct sim_trace *t, uint64_t budget)
{
    struct s3fifo *s = calloc(1, sizeof *s);
    const struct nj_hash_key key = {{1, 2, 3}};

    NJ_CHECK(s);
    s->t = t;
    s->key = nj_mix_key_derive(&key, "cache");
    s->entries = calloc(t->n_entries, sizeof *s->entries);
    NJ_CHECK(s->entries && nj__cache_policy_init(&s->policy, budget));
    return s;
}

static void free_s3fifo(void *self)
{
    struct s3fifo *s = self;

    for (uint32_t i = 0; i < s->t->n_entries; i++)
        nj__cache_policy_remove(&s->policy, &s->entries[i]);
    nj__cache_policy_fini(&s->policy);
    free(s->entries);
    free(s);
}

static bool lookup(void *self, uint32_t i)
{
    struct s3fifo *s = self;
    uint32_t number = s->t->lookups[i].entry, n_bytes = s->t->n_bytes[number];
    struct nj__cache_entry *e = &s->entries[number];

    if (e->queue != NJ__CACHE_NO_QUEUE) {
        nj__cache_policy_touch(e);
        return true;
    }
    while (nj__cache_policy_pop_victim(&s->policy, n_bytes))
        continue; /* free_s3fifo() frees all entries */
    NJ_CHECK(nj__cache_policy_fits(&s->policy, n_bytes));
    nj__cache_policy_add(&s->policy, e, nj_mix_bytes(&s->key, 0, &number, sizeof number), n_bytes);
    return false;
}

const struct sim_policy sim_s3fifo = {"S3-FIFO", make, lookup, free_s3fifo};
