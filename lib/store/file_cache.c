/* SPDX-License-Identifier: BSD-3-Clause */
/* The file cache: a hash table by path, and lists for the eviction of open files (CLOCK).
 * It also converts the result of stat(2). */
#include "store/file_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/relaxed_atomics.h"
#include "base/compiler.h"

/* File systems have times beyond int64_t (XFS: to 2486; Btrfs and tmpfs: any). */
static int64_t to_ns(const struct timespec *ts)
{
    int64_t ns;

    if (__builtin_mul_overflow(ts->tv_sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, ts->tv_nsec, &ns))
        return ts->tv_sec < 0 ? NJ_FILE_TIME_MIN : NJ_FILE_TIME_MAX;
    return ns;
}

struct nj__file_id nj__file_id(const struct stat *st)
{
    return (struct nj__file_id){
        .version = {.dev = st->st_dev,
                    .inode = st->st_ino,
                    .size_bytes = (uint64_t)st->st_size,
                    .mtime_ns = to_ns(&st->st_mtim),
                    .ctime_ns = to_ns(&st->st_ctim)},
        .mode = st->st_mode,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .n_links = st->st_nlink,
    };
}

void nj__file_cache_init(struct nj__file_cache *c, const struct nj_hash_key *key,
                         struct nj__store *shared, uint32_t open_max)
{
    c->key = key;
    c->shared = shared;
    c->n_chunkless = c->n_open = 0;
    c->open_max = open_max;
    nj_list_init(&c->chunkless);
    nj_list_init(&c->chunked);
    nj_list_init(&c->open);
    for (uint32_t i = 0; i < NJ__FILE_BUCKETS; i++)
        nj_list_init(&c->buckets[i]);
}

struct nj__file *nj__file_cache_find(struct nj__file_cache *c, const char *path)
{
    uint64_t hash = nj_hash(c->key, path, strlen(path));
    struct nj_list *bucket = &c->buckets[hash % NJ__FILE_BUCKETS];

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct nj__file *f = nj_container_of(l, struct nj__file, hash_node);
        if (f->hash == hash && strcmp(f->path, path) == 0)
            return f;
    }
    return NULL;
}

/* Memory of a small file in whole pages. Rounding up bounds the number of tiny files. */
static uint64_t cost_of(const struct nj__file *f, size_t n_path)
{
    return (f->object.size_bytes + sizeof *f + n_path + 4095) / 4096 * 4096;
}

static void leave_lru(struct nj__file_cache *c, struct nj__file *f)
{
    nj_list_del(&f->lru_node);
    c->n_chunkless -= f->is_chunkless;
    f->is_chunkless = false;
}

void nj__file_cache_mark_chunked(struct nj__file_cache *c, struct nj__file *f)
{
    if (!f->is_chunkless)
        return;
    leave_lru(c, f);
    nj_list_push_back(&c->chunked, &f->lru_node);
}

/* Append the file to the list; the first file is evicted if the list is full. */
void nj__file_cache_mark_chunkless(struct nj__file_cache *c, struct nj__file *f)
{
    leave_lru(c, f);
    if (!f->path)
        return;
    f->is_chunkless = true;
    nj_list_push_back(&c->chunkless, &f->lru_node);
    if (++c->n_chunkless > NJ__FILE_CHUNKLESS_MAX) {
        nj__file_cache_remove(c, nj_container_of(c->chunkless.next, struct nj__file, lru_node));
        nj__file_stat_add(&c->shared->stats.evictions, 1);
    }
}

void nj__file_cache_touch(struct nj__file_cache *c, struct nj__file *f)
{
    nj__cache_policy_touch(&f->cached.entry);
    if (f->is_chunkless)
        nj__file_cache_mark_chunkless(c, f);
}

void nj__file_cache_remove(struct nj__file_cache *c, struct nj__file *f)
{
    if (!f->path)
        return;
    nj_list_del(&f->hash_node);
    nj_list_del(&f->open);
    leave_lru(c, f);
    c->n_open -= f->fd >= 0;
    nj__cache_policy_remove(&c->shared->policy, &f->cached.entry);
    nj__file_stat_add(&c->shared->stats.cached_files, -1);
    nj__file_stat_add(&c->shared->stats.cached_bytes, -(int64_t)f->cost);
    free(f->path);
    f->path = NULL;
    nj_ref_put(&f->object.ref);
}

static void evict(struct nj__cache_item *cached)
{
    struct nj__file *f = nj_container_of(cached, struct nj__file, cached);
    nj__file_cache_remove(f->cache, f);
}

/* Returns false if the file does not fit into the budget. */
static bool make_room_for(struct nj__file_cache *c, struct nj__file *f, size_t n_path)
{
    struct nj__cache_policy *p = &c->shared->policy;

    f->cost = f->fd < 0 ? cost_of(f, n_path) : 0;
    return f->fd >= 0 || (f->cost <= p->n_bytes_max && nj__store_make_room(c->shared, f->cost));
}

void nj__file_cache_add(struct nj__file_cache *c, const char *path, struct nj__file *f)
{
    size_t n_path = strlen(path);
    struct nj__file *old = nj__file_cache_find(c, path);

    if (old)
        nj__file_cache_remove(c, old);
    f->path = make_room_for(c, f, n_path) ? strdup(path) : NULL;
    if (!f->path)
        return;
    f->hash = nj_hash(c->key, path, n_path);
    f->cache = c;
    nj__file_stat_add(&c->shared->stats.cached_files, 1);
    nj__file_stat_add(&c->shared->stats.cached_bytes, (int64_t)f->cost);
    nj_ref_take(&f->object.ref);
    nj_list_push_back(&c->buckets[f->hash % NJ__FILE_BUCKETS], &f->hash_node);
    f->checked_s = INT64_MIN / 2;
    if (f->fd >= 0) {
        nj_list_push_back(&c->open, &f->open);
        nj__file_cache_mark_chunkless(c, f);
        if (++c->n_open > c->open_max)
            nj__file_cache_evict_large(c, 1);
        return;
    }
    f->cached.evict = evict;
    nj__cache_policy_add(&c->shared->policy, &f->cached.entry, f->hash, (uint32_t)f->cost);
}

static struct nj__file *first_open(struct nj__file_cache *c)
{
    return nj_list_empty(&c->open) ? NULL : nj_container_of(c->open.next, struct nj__file, open);
}

/* Referenced by others than the cache: its eviction would close nothing. The second reference of a
 * file is only taken with the lock. */
static bool is_held(const struct nj__file *f)
{
    return nj_load_relaxed(&f->object.ref.n) > 1;
}

/* The first unused file, else the least used one of those examined. Examined files move to the back
 * of the list. Returns NULL if all are referenced. */
static struct nj__file *least_useful(struct nj_list *list)
{
    struct nj__file *least = NULL;

    for (uint32_t i = 0; i < NJ__FILE_SCAN_MAX && !nj_list_empty(list); i++) {
        struct nj__file *f = nj_container_of(list->next, struct nj__file, lru_node);
        nj_list_del(&f->lru_node);
        nj_list_push_back(list, &f->lru_node);
        if (is_held(f))
            continue;
        if (f->cached.entry.n_uses == 0)
            return f;
        f->cached.entry.n_uses--;
        if (!least || f->cached.entry.n_uses < least->cached.entry.n_uses)
            least = f;
    }
    return least;
}

bool nj__file_cache_evict_large(struct nj__file_cache *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct nj__file *f = least_useful(&c->chunkless);
        if (!f)
            f = least_useful(&c->chunked);
        if (!f)
            return i > 0;
        nj__file_cache_remove(c, f);
        nj__file_stat_add(&c->shared->stats.evictions, 1);
    }
    return true;
}

struct nj__file *nj__file_cache_next_delete_check(struct nj__file_cache *c, int64_t now_s)
{
    struct nj__file *f = first_open(c);

    if (!f || now_s - f->checked_s < NJ__FILE_CHECK_S)
        return NULL;
    f->checked_s = now_s;
    nj_list_del(&f->open);
    nj_list_push_back(&c->open, &f->open);
    nj_ref_take(&f->object.ref);
    return f;
}

void nj__file_cache_clear(struct nj__file_cache *c)
{
    for (uint32_t i = 0; i < NJ__FILE_BUCKETS; i++)
        while (!nj_list_empty(&c->buckets[i]))
            nj__file_cache_remove(c,
                                  nj_container_of(c->buckets[i].next, struct nj__file, hash_node));
}
