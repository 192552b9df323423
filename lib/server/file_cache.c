/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache by path, and the identity of a file. */
#include "server/file_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

static int64_t to_ns(const struct timespec *ts)
{
    return (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

struct nj__file_id nj__file_id(const struct stat *st)
{
    return (struct nj__file_id){
        .dev = st->st_dev,
        .inode = st->st_ino,
        .size = (uint64_t)st->st_size,
        .mtime_ns = to_ns(&st->st_mtim),
        .ctime_ns = to_ns(&st->st_ctim),
        .mode = st->st_mode,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .n_links = st->st_nlink,
    };
}

bool nj__file_id_eq(const struct nj__file_id *a, const struct nj__file_id *b)
{
    return a->dev == b->dev && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

void nj__file_cache_init(struct nj__file_cache *c, const struct nj_hash_key *key, uint64_t cost_max,
                         struct nj__shared *shared)
{
    c->key = *key;
    c->cost = c->cost_hot = 0;
    c->cost_max = cost_max;
    c->shared = shared;
    nj_list_init(&c->trial);
    nj_list_init(&c->hot);
    nj_list_init(&c->open);
    for (uint32_t i = 0; i < NJ__FILE_BUCKETS; i++)
        nj_list_init(&c->buckets[i]);
}

struct nj__file *nj__file_cache_find(struct nj__file_cache *c, const char *path)
{
    uint64_t hash = nj_hash(&c->key, path, strlen(path));
    struct nj_list *bucket = &c->buckets[hash % NJ__FILE_BUCKETS];

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct nj__file *f = nj_container_of(l, struct nj__file, chain);
        if (f->hash == hash && strcmp(f->path, path) == 0)
            return f;
    }
    return NULL;
}

/* To the end of one of the lists. */
static void move_to(struct nj__file_cache *c, struct nj__file *f, bool hot)
{
    if (f->is_hot != hot)
        c->cost_hot += hot ? f->cost : -f->cost;
    f->is_hot = hot;
    nj_list_del(&f->used);
    nj_list_push_back(hot ? &c->hot : &c->trial, &f->used);
}

static struct nj__file *oldest(struct nj_list *list)
{
    return nj_list_empty(list) ? NULL : nj_container_of(list->next, struct nj__file, used);
}

void nj__file_cache_used(struct nj__file_cache *c, struct nj__file *f)
{
    move_to(c, f, true);
    while (c->cost_hot > c->cost_max / 5 * 4)
        move_to(c, oldest(&c->hot), false);
}

/* Memory the file pins, whole pages: this also bounds the number of tiny files. */
static uint64_t cost_of(const struct nj__file *f, size_t n_path)
{
    if (f->fd >= 0)
        return NJ__FILE_LARGE_COST;
    return (f->object.size_bytes + sizeof *f + n_path + 4095) / 4096 * 4096;
}

void nj__file_cache_drop(struct nj__file_cache *c, struct nj__file *f)
{
    if (!f->path)
        return;
    nj_list_del(&f->chain);
    nj_list_del(&f->used);
    nj_list_del(&f->open);
    c->cost -= f->cost;
    c->cost_hot -= f->is_hot ? f->cost : 0;
    nj__file_stat_add(&c->shared->stats.cached_files, -1);
    nj__file_stat_add(&c->shared->stats.cached_bytes, -(int64_t)f->cost);
    free(f->path);
    f->path = NULL;
    f->is_hot = false;
    nj_ref_put(&f->object.ref);
}

void nj__file_cache_add(struct nj__file_cache *c, const char *path, struct nj__file *f)
{
    size_t n_path = strlen(path);
    struct nj__file *old = nj__file_cache_find(c, path);

    if (old)
        nj__file_cache_drop(c, old);
    f->cost = cost_of(f, n_path);
    f->path = f->cost <= c->cost_max ? strdup(path) : NULL;
    if (!f->path)
        return;
    f->hash = nj_hash(&c->key, path, n_path);
    f->is_hot = false;
    c->cost += f->cost;
    nj__file_stat_add(&c->shared->stats.cached_files, 1);
    nj__file_stat_add(&c->shared->stats.cached_bytes, (int64_t)f->cost);
    nj_ref_take(&f->object.ref);
    nj_list_push_back(&c->buckets[f->hash % NJ__FILE_BUCKETS], &f->chain);
    nj_list_push_back(&c->trial, &f->used);
    f->looked_s = INT64_MIN / 2;
    if (f->fd >= 0)
        nj_list_push_back(&c->open, &f->open);
    while (c->cost > c->cost_max) {
        nj__file_cache_drop(c, nj_list_empty(&c->trial) ? oldest(&c->hot) : oldest(&c->trial));
        nj__file_stat_add(&c->shared->stats.evictions, 1);
    }
}

static struct nj__file *first_open(struct nj__file_cache *c)
{
    return nj_list_empty(&c->open) ? NULL : nj_container_of(c->open.next, struct nj__file, open);
}

void nj__file_cache_drop_open(struct nj__file_cache *c)
{
    struct nj__file *f;

    while ((f = first_open(c)))
        nj__file_cache_drop(c, f);
}

struct nj__file *nj__file_cache_due(struct nj__file_cache *c, int64_t now_s)
{
    struct nj__file *f = first_open(c);

    if (!f || now_s - f->looked_s < NJ__FILE_LOOK_S)
        return NULL;
    f->looked_s = now_s;
    nj_list_del(&f->open);
    nj_list_push_back(&c->open, &f->open);
    nj_ref_take(&f->object.ref);
    return f;
}

void nj__file_cache_clear(struct nj__file_cache *c)
{
    struct nj__file *f;

    while ((f = oldest(&c->trial)) || (f = oldest(&c->hot)))
        nj__file_cache_drop(c, f);
}
