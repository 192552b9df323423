/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches the results of file lookups in a chained hash table with two LRU lists, one of files and
 * one of negative entries. Entries expire after one second. */
#include "http/files/file_lookup_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/pool.h"

#define N_BUCKETS 1024u
/* Expired entries of each list that a sweep drops: bounds its time. Each addition sweeps, so they
 * go twice as fast as entries come. */
#define SWEEP_MAX 2

struct entry {
    struct nj_list chain, lru;
    uint64_t hash;
    nj_ns expires_at;
    struct nj_file_meta meta;
    uint32_t n_bytes;
    char name[NJ_PATH_MAX]; /* not terminated */
};

struct lru_list {
    struct nj_list lru; /* least recently used first */
    uint32_t n, n_max;
};

struct nj_lookup_cache {
    struct nj_pool entries;
    struct lru_list files, absent;
    uint64_t cost; /* sum over all files */
    struct nj_list buckets[N_BUCKETS];
};

struct nj_lookup_cache *nj_lookup_cache_new(void)
{
    struct nj_lookup_cache *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    /* One more than the bounds: an entry is added before the bound is enforced. */
    if (!nj_pool_init(&t->entries, sizeof(struct entry),
                      NJ_META_CACHE_FILES_MAX + NJ_META_CACHE_ABSENT_MAX + 1)) {
        free(t);
        return NULL;
    }
    t->files.n_max = NJ_META_CACHE_FILES_MAX;
    t->absent.n_max = NJ_META_CACHE_ABSENT_MAX;
    nj_list_init(&t->files.lru);
    nj_list_init(&t->absent.lru);
    for (uint32_t i = 0; i < N_BUCKETS; i++)
        nj_list_init(&t->buckets[i]);
    return t;
}

static uint64_t cost_of(const struct nj_file_object *object)
{
    if (!object)
        return 0;
    return object->bytes ? object->size_bytes : NJ_META_CACHE_LARGE_COST;
}

static struct lru_list *list_of(struct nj_lookup_cache *t, const struct entry *e)
{
    return e->meta.object ? &t->files : &t->absent;
}

static void drop(struct nj_lookup_cache *t, struct entry *e)
{
    list_of(t, e)->n--;
    t->cost -= cost_of(e->meta.object);
    nj_list_del(&e->chain);
    nj_list_del(&e->lru);
    if (e->meta.object)
        nj_ref_put(&e->meta.object->ref);
    nj_pool_put(&t->entries, e);
}

static struct entry *oldest(struct lru_list *k)
{
    return nj_list_empty(&k->lru) ? NULL : nj_container_of(k->lru.next, struct entry, lru);
}

void nj_lookup_cache_free(struct nj_lookup_cache *t)
{
    struct entry *e;

    if (!t)
        return;
    while ((e = oldest(&t->files)) || (e = oldest(&t->absent)))
        drop(t, e);
    NJ_ASSERT(t->cost == 0 && t->entries.n_used == 0);
    nj_pool_fini(&t->entries);
    free(t);
}

static struct nj_list *bucket_of(struct nj_lookup_cache *t, uint64_t hash)
{
    return &t->buckets[hash % N_BUCKETS];
}

static struct entry *find_entry(struct nj_lookup_cache *t, const struct nj_file_name *name)
{
    struct nj_list *bucket = bucket_of(t, name->hash);

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct entry *e = nj_container_of(l, struct entry, chain);
        if (e->hash == name->hash && e->n_bytes == name->n_bytes &&
            memcmp(e->name, name->p, name->n_bytes) == 0)
            return e;
    }
    return NULL;
}

struct nj_file_meta *nj_lookup_cache_find(struct nj_lookup_cache *t,
                                          const struct nj_file_name *name, nj_ns now)
{
    struct entry *e = find_entry(t, name);

    if (!e || e->expires_at <= now)
        return NULL;
    struct nj_list *lru = &list_of(t, e)->lru;
    nj_list_del(&e->lru);
    nj_list_push_back(lru, &e->lru);
    return &e->meta;
}

/* Checking the least recently used entry suffices: if it is valid, it was stored less than a second
 * ago, so every other entry was used within that second. */
static void sweep(struct nj_lookup_cache *t, struct lru_list *k, nj_ns now)
{
    for (int i = 0; i < SWEEP_MAX; i++) {
        struct entry *e = oldest(k);
        if (!e || e->expires_at > now)
            return;
        drop(t, e);
    }
}

void nj_lookup_cache_sweep(struct nj_lookup_cache *t, nj_ns now)
{
    sweep(t, &t->files, now);
    sweep(t, &t->absent, now);
}

static bool is_cacheable(enum nj_file_result result)
{
    return result == NJ_FILE_OK || result == NJ_FILE_IS_DIR || result == NJ_FILE_ABSENT ||
           result == NJ_FILE_DENIED;
}

void nj_lookup_cache_put(struct nj_lookup_cache *t, const struct nj_file_name *name,
                         const struct nj_file_meta *meta, nj_ns now)
{
    struct nj_file_object *object = meta->object;

    NJ_ASSERT(name->n_bytes < NJ_PATH_MAX);
    NJ_ASSERT((meta->result == NJ_FILE_OK) == (object != NULL));

    nj_lookup_cache_sweep(t, now);
    struct entry *e = find_entry(t, name);
    if (e)
        drop(t, e);
    if (!is_cacheable(meta->result))
        return;
    e = nj_pool_take(&t->entries);
    NJ_CHECK(e); /* the bounds leave one free */
    e->hash = name->hash;
    e->expires_at = now + NJ_META_CACHE_TTL;
    e->meta = *meta;
    e->n_bytes = name->n_bytes;
    memcpy(e->name, name->p, name->n_bytes);
    if (object)
        nj_ref_take(&object->ref);

    struct lru_list *k = list_of(t, e);
    k->n++;
    t->cost += cost_of(object);
    nj_list_push_back(bucket_of(t, e->hash), &e->chain);
    nj_list_push_back(&k->lru, &e->lru);
    while (k->n > k->n_max || (t->cost > NJ_META_CACHE_BYTES_MAX && k->n > 1 && object))
        drop(t, oldest(k));
}
