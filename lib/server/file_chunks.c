/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces are counted as lent from when they are handed out until the worker has buried them, which
 * it does to those whose last reference was put. Then they are idle and can be lent again.
 */
#include "server/file_chunks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/attr.h"
#include "server/file_read.h"

struct piece {
    struct nj_chunk chunk;
    struct nj__grave grave;
    struct nj__chunks *chunks;
    struct nj_list chain, idle; /* in its bucket, while it can be found; while nobody holds it */
    struct nj_list of_file;
    struct nj__file *file; /* NULL: can't be found any more */
    uint32_t n_room;
    uint8_t bytes[];
};

struct key {
    const struct nj__file *file;
    uint64_t offset;
    uint64_t n_room;
};

void nj__chunks_init(struct nj__chunks *c, const struct nj_hash_key *key, uint64_t cache_bytes,
                     struct nj__graveyard *dead, struct nj_file_store_stats *stats)
{
    uint64_t most = 4 * cache_bytes, idle = cache_bytes / 4;

    c->key = *key;
    c->dead = dead;
    c->stats = stats;
    c->bytes_max = most > NJ__CHUNK_BYTES_LEAST ? most : NJ__CHUNK_BYTES_LEAST;
    c->idle_max = idle > NJ__CHUNK_IDLE_LEAST ? idle : NJ__CHUNK_IDLE_LEAST;
    nj_list_init(&c->idle);
    for (uint32_t i = 0; i < NJ__CHUNK_BUCKETS; i++)
        nj_list_init(&c->buckets[i]);
}

static void count_bytes(struct nj__chunks *c, int64_t by)
{
    c->n_bytes += (uint64_t)by;
    nj__file_stat_add(&c->stats->chunk_bytes, by);
}

static void count_lent(struct nj__chunks *c, const struct piece *p, int by)
{
    uint32_t n = atomic_load_explicit(&c->n_lent, memory_order_relaxed);
    atomic_store_explicit(&c->n_lent, n + (uint32_t)by, memory_order_relaxed);
    c->n_lent_bytes += (uint64_t)(by * (int64_t)p->n_room);
    nj__file_stat_add(&c->stats->chunk_lent_bytes, by * (int64_t)p->n_room);
}

static void free_piece(struct piece *p)
{
    nj_list_del(&p->chain);
    nj_list_del(&p->idle);
    nj_list_del(&p->of_file);
    count_bytes(p->chunks, -(int64_t)p->n_room);
    free(p);
}

static struct piece *oldest_idle(struct nj__chunks *c)
{
    return nj_list_empty(&c->idle) ? NULL : nj_container_of(c->idle.next, struct piece, idle);
}

static void bury_piece(struct nj__grave *g)
{
    struct piece *p = nj_container_of(g, struct piece, grave);
    struct nj__chunks *c = p->chunks;

    count_lent(c, p, -1);
    nj__file_stat_add(&c->stats->chunk_returns, 1);
    if (!p->file) {
        free_piece(p);
        return;
    }
    nj_list_push_back(&c->idle, &p->idle);
    while (c->n_bytes - c->n_lent_bytes > c->idle_max)
        free_piece(oldest_idle(c));
}

/* On whatever thread had the last reference: no system call here. */
static void last_of_piece(struct nj_ref *ref)
{
    struct nj_chunk *chunk = nj_container_of(ref, struct nj_chunk, ref);
    struct piece *p = nj_container_of(chunk, struct piece, chunk);

    nj__graveyard_push(p->chunks->dead, &p->grave);
}

/* It can't be found any more; who holds it goes on. */
static void forget(struct piece *p)
{
    nj_list_del(&p->chain);
    nj_list_del(&p->of_file);
    p->file = NULL;
    if (nj_list_linked(&p->idle))
        free_piece(p);
}

void nj__chunks_forget(struct nj__chunks *c, struct nj__file *f)
{
    while (!nj_list_empty(&f->pieces))
        forget(nj_container_of(f->pieces.next, struct piece, of_file));
}

void nj__chunks_clear(struct nj__chunks *c)
{
    struct piece *p;

    while ((p = oldest_idle(c)))
        free_piece(p);
}

static struct nj_list *bucket_of(struct nj__chunks *c, const struct key *key)
{
    return &c->buckets[nj_hash(&c->key, key, sizeof *key) % NJ__CHUNK_BUCKETS];
}

static struct piece *find(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                          uint32_t n_room)
{
    struct key key = {f, offset - offset % n_room, n_room};
    struct nj_list *bucket = bucket_of(c, &key);

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct piece *p = nj_container_of(l, struct piece, chain);
        if (p->file == f && p->chunk.offset == key.offset && p->n_room == n_room)
            return p;
    }
    return NULL;
}

/* One more reference to what someone may be about to let go of for good. */
static bool take_if_held(struct nj_ref *r)
{
    uint32_t n = atomic_load_explicit(&r->n, memory_order_relaxed);

    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&r->n, &n, n + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static bool lend(struct piece *p)
{
    if (!nj_list_linked(&p->idle))
        return take_if_held(&p->chunk.ref);
    nj_list_del(&p->idle);
    nj_ref_init(&p->chunk.ref, last_of_piece);
    count_lent(p->chunks, p, 1);
    return true;
}

static struct piece *find_and_lend(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                                   uint32_t n_room)
{
    struct piece *p = find(c, f, offset, n_room);

    if (!p || lend(p))
        return p;
    /* Nobody holds it, and it has not been buried. */
    nj__graveyard_clear(c->dead);
    p = find(c, f, offset, n_room);
    if (!p || lend(p))
        return p;
    forget(p); /* whoever put it last has not even reached the graveyard */
    return NULL;
}

/* The size of a new piece for who would like one of `wish`. */
static uint32_t room_for(const struct nj__chunks *c, uint32_t wish)
{
    uint32_t most = NJ__CHUNK_TINY_BYTES;

    if (c->n_lent_bytes <= c->bytes_max / 4)
        most = NJ_CHUNK_BYTES;
    else if (c->n_lent_bytes <= c->bytes_max / 2)
        most = NJ_CHUNK_SMALL_BYTES;
    return wish < most ? wish : most;
}

static bool make_room(struct nj__chunks *c, uint32_t n_room)
{
    if (c->n_bytes + n_room > c->bytes_max)
        nj__graveyard_clear(c->dead);
    while (c->n_bytes + n_room > c->bytes_max) {
        struct piece *p = oldest_idle(c);
        if (!p)
            return false;
        free_piece(p);
    }
    return true;
}

/* A piece of the file at `offset`, lent to the caller, with nothing in it and not to be found. */
static struct piece *new_piece(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                               uint32_t n_room)
{
    struct piece *p = malloc(sizeof *p + n_room);
    if (!p)
        return NULL;
    offset -= offset % n_room;
    uint64_t n_left = f->object.size_bytes - offset;
    p->chunk.offset = offset;
    p->chunk.n_bytes = n_left < n_room ? (uint32_t)n_left : n_room;
    p->chunk.bytes = p->bytes;
    p->grave.bury = bury_piece;
    p->chunks = c;
    p->n_room = n_room;
    p->file = NULL;
    nj_list_init(&p->chain);
    nj_list_init(&p->idle);
    nj_list_init(&p->of_file);
    nj_ref_init(&p->chunk.ref, last_of_piece);
    count_bytes(c, n_room);
    count_lent(c, p, 1);
    return p;
}

static void publish(struct nj__chunks *c, struct nj__file *f, struct piece *p)
{
    struct key key = {f, p->chunk.offset, p->n_room};

    p->file = f;
    nj_list_push_back(bucket_of(c, &key), &p->chain);
    nj_list_push_back(&f->pieces, &p->of_file);
}

/* A small piece that lies in a larger one which is here needs no system call. */
static bool copy_from_larger(struct nj__chunks *c, const struct nj__file *f, struct piece *p)
{
    for (uint32_t n_room = 8 * p->n_room; n_room <= NJ_CHUNK_BYTES; n_room *= 8) {
        const struct piece *larger = find(c, f, p->chunk.offset, n_room);
        if (!larger)
            continue;
        memcpy(p->bytes, larger->bytes + (p->chunk.offset - larger->chunk.offset),
               p->chunk.n_bytes);
        return true;
    }
    return false;
}

static bool fill(struct nj__chunks *c, struct nj__file *f, struct piece *p)
{
    if (copy_from_larger(c, f, p)) {
        nj__file_stat_add(&c->stats->chunk_hits, 1);
        return true;
    }
    nj__file_stat_add(&c->stats->reads, 1);
    nj__file_stat_add(&c->stats->read_bytes, p->chunk.n_bytes);
    if (!nj__file_read_piece(f, p->bytes, p->chunk.n_bytes, p->chunk.offset))
        return false;
    if (p->n_room == NJ_CHUNK_BYTES)
        posix_fadvise(f->fd, (off_t)(p->chunk.offset + p->n_room), NJ__CHUNK_AHEAD_BYTES,
                      POSIX_FADV_WILLNEED);
    return true;
}

enum nj_file_result nj__chunks_get(struct nj__chunks *c, struct nj__file *f, uint64_t offset,
                                   uint32_t n_bytes, struct nj_chunk **out)
{
    uint32_t wish = n_bytes > NJ_CHUNK_SMALL_BYTES ? NJ_CHUNK_BYTES : NJ_CHUNK_SMALL_BYTES;
    uint32_t n_room = room_for(c, wish);

    for (uint32_t size = wish; size >= n_room; size /= 8) {
        struct piece *p = find_and_lend(c, f, offset, size);
        if (p) {
            nj__file_stat_add(&c->stats->chunk_hits, 1);
            *out = &p->chunk;
            return NJ_FILE_OK;
        }
    }
    if (!make_room(c, n_room)) {
        nj__file_stat_add(&c->stats->waits, 1);
        return NJ_FILE_NO_MEMORY;
    }
    struct piece *p = new_piece(c, f, offset, n_room);
    if (!p)
        return NJ_FILE_BROKEN; /* nobody could say when there is some */
    if (!fill(c, f, p)) {
        nj__file_stat_add(&c->stats->changed, 1);
        nj_ref_put(&p->chunk.ref);
        return NJ_FILE_BROKEN;
    }
    publish(c, f, p);
    *out = &p->chunk;
    return NJ_FILE_OK;
}
