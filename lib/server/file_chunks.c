/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces are counted as lent from when they are handed out until they were buried, after their last
 * reference was put. Then they are idle and can be lent again. A piece can be found while it is
 * being filled, so that it is read once; it is lent to the thread that fills it.
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
    bool is_filling;
    uint8_t *bytes; /* of the arena */
};

struct key {
    const struct nj__file *file;
    uint64_t offset;
    uint64_t n_room;
};

bool nj__chunks_init(struct nj__chunks *c, const struct nj_hash_key *key, uint64_t cache_bytes,
                     struct nj__shared *shared)
{
    uint64_t most = 4 * cache_bytes, idle = cache_bytes / 4;

    c->key = *key;
    c->shared = shared;
    c->bytes_max = most > NJ__CHUNK_BYTES_LEAST ? most : NJ__CHUNK_BYTES_LEAST;
    c->idle_max = idle > NJ__CHUNK_IDLE_LEAST ? idle : NJ__CHUNK_IDLE_LEAST;
    nj_list_init(&c->idle);
    for (uint32_t i = 0; i < NJ__CHUNK_BUCKETS; i++)
        nj_list_init(&c->buckets[i]);
    c->arena = nj__arena_new(c->bytes_max);
    return c->arena != NULL;
}

void nj__chunks_fini(struct nj__chunks *c)
{
    nj__arena_free(c->arena);
}

static void count_bytes(struct nj__chunks *c, int64_t by)
{
    c->n_bytes += (uint64_t)by;
    nj__file_stat_add(&c->shared->stats.chunk_bytes, by);
}

static void count_lent(struct nj__chunks *c, const struct piece *p, int by)
{
    atomic_fetch_add_explicit(&c->n_lent, (uint32_t)by, memory_order_relaxed);
    c->n_lent_bytes += (uint64_t)(by * (int64_t)p->n_room);
    nj__file_stat_add(&c->shared->stats.chunk_lent_bytes, by * (int64_t)p->n_room);
}

static void free_memory(struct nj__grave *g)
{
    free(nj_container_of(g, struct piece, grave));
}

static void free_piece(struct piece *p)
{
    nj_list_del(&p->chain);
    nj_list_del(&p->idle);
    nj_list_del(&p->of_file);
    count_bytes(p->chunks, -(int64_t)p->n_room);
    nj__arena_put(p->chunks->arena, p->bytes, p->n_room);
    nj__shared_free(p->chunks->shared, &p->grave);
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
    nj__file_stat_add(&c->shared->stats.chunk_returns, 1);
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

    nj__shared_push(p->chunks->shared, &p->grave);
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

void nj__chunks_forget(struct nj__file *f)
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

static uint32_t place_of(const struct nj__chunks *c, const struct key *key)
{
    return (uint32_t)(nj_hash(&c->key, key, sizeof *key) % NJ__CHUNK_BUCKETS);
}

/* Of a piece of `f` that can be found, or could until now. */
static uint32_t place_of_piece(const struct nj__chunks *c, const struct nj__file *f,
                               const struct piece *p)
{
    struct key key = {f, p->chunk.offset, p->n_room};

    return place_of(c, &key);
}

static struct piece *find(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                          uint32_t n_room)
{
    struct key key = {f, offset - offset % n_room, n_room};
    struct nj_list *bucket = &c->buckets[place_of(c, &key)];

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

/* False: it is on its way to be buried. */
static bool lend(struct piece *p)
{
    if (p->is_filling)
        return true; /* so far it is lent to its reader alone */
    if (!nj_list_linked(&p->idle))
        return take_if_held(&p->chunk.ref);
    nj_list_del(&p->idle);
    nj_ref_init(&p->chunk.ref, last_of_piece);
    count_lent(p->chunks, p, 1);
    return true;
}

/* The piece that is there, lent to the caller unless it is_filling. */
static struct piece *find_and_lend(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                                   uint32_t n_room)
{
    struct piece *p = find(c, f, offset, n_room);

    if (!p || lend(p))
        return p;
    /* Nobody holds it, and it has not been buried. */
    nj__shared_bury(c->shared);
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

/* Memory for a piece, in place of what nobody holds. Blocks that are lent may lie so that no large
 * one is free: then there is none, as if the budget were used up. */
static uint8_t *make_room(struct nj__chunks *c, uint32_t n_room)
{
    if (c->n_bytes + n_room > c->bytes_max)
        nj__shared_bury(c->shared);
    for (;;) {
        uint8_t *bytes =
            c->n_bytes + n_room <= c->bytes_max ? nj__arena_take(c->arena, n_room) : NULL;
        struct piece *p = oldest_idle(c);
        if (bytes || !p)
            return bytes;
        free_piece(p);
    }
}

/* A piece of the file at `offset`, lent to the caller, with nothing in it and not to be found. */
static struct piece *new_piece(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                               uint32_t n_room, uint8_t *bytes)
{
    struct piece *p = malloc(sizeof *p);
    if (!p) {
        nj__arena_put(c->arena, bytes, n_room);
        return NULL;
    }
    offset -= offset % n_room;
    uint64_t n_left = f->object.size_bytes - offset;
    p->chunk.offset = offset;
    p->chunk.n_bytes = n_left < n_room ? (uint32_t)n_left : n_room;
    p->chunk.bytes = p->bytes = bytes;
    p->grave.bury = bury_piece;
    p->grave.free = free_memory;
    p->chunks = c;
    p->n_room = n_room;
    p->file = NULL;
    p->is_filling = true;
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
    p->file = f;
    nj_list_push_back(&c->buckets[place_of_piece(c, f, p)], &p->chain);
    nj_list_push_back(&f->pieces, &p->of_file);
}

/* A small piece that lies in a larger one which is here needs no system call: that one, lent. */
static struct piece *lend_larger(struct nj__chunks *c, const struct nj__file *f,
                                 const struct piece *p)
{
    for (uint32_t n_room = 8 * p->n_room; n_room <= NJ_CHUNK_BYTES; n_room *= 8) {
        struct piece *larger = find_and_lend(c, f, p->chunk.offset, n_room);
        if (larger && !larger->is_filling)
            return larger;
    }
    return NULL;
}

/* What has to be done without the lock. */
struct fill {
    struct piece *piece; /* or NULL: nothing */
    struct piece *from;  /* a larger one that has its bytes, or NULL: they are in the file */
};

/* With the lock: a piece that is here goes into the job; else one has to be filled, or there is no
 * piece. */
static enum nj_file_result lend_or_begin(struct nj__chunks *c, struct nj__file *f,
                                         struct nj_file_job *job, struct fill *fill)
{
    struct nj_file_store_stats *stats = &c->shared->stats;
    uint32_t wish = job->n_bytes > NJ_CHUNK_SMALL_BYTES ? NJ_CHUNK_BYTES : NJ_CHUNK_SMALL_BYTES;
    uint32_t n_room = room_for(c, wish);

    for (uint32_t size = wish; size >= n_room; size /= 8) {
        struct piece *p = find_and_lend(c, f, job->offset, size);
        if (p && p->is_filling) {
            job->place = place_of_piece(c, f, p);
            job->seen = nj__chunks_fills(c, job->place);
            nj__file_stat_add(&stats->waits_for_read, 1);
            return NJ_FILE_BUSY;
        }
        if (p) {
            nj__file_stat_add(&stats->chunk_hits, 1);
            job->chunk = &p->chunk;
            return NJ_FILE_OK;
        }
    }
    if (f->has_changed) {
        nj__file_stat_add(&stats->changed, 1);
        return NJ_FILE_BROKEN;
    }
    uint8_t *bytes = make_room(c, n_room);
    if (!bytes) {
        job->seen = atomic_load_explicit(&stats->chunk_returns, memory_order_relaxed);
        nj__file_stat_add(&stats->waits, 1);
        return NJ_FILE_NO_MEMORY;
    }
    fill->piece = new_piece(c, f, job->offset, n_room, bytes);
    if (!fill->piece)
        return NJ_FILE_BROKEN; /* nobody could say when there is memory */
    fill->from = lend_larger(c, f, fill->piece);
    nj__file_stat_add(fill->from ? &stats->chunk_hits : &stats->reads, 1);
    nj__file_stat_add(&stats->read_bytes, fill->from ? 0 : fill->piece->chunk.n_bytes);
    publish(c, f, fill->piece);
    return NJ_FILE_OK;
}

static bool get_bytes(struct nj__file *f, const struct fill *fill)
{
    struct piece *p = fill->piece;
    const struct piece *from = fill->from;

    if (!from)
        return nj__file_read_piece(f, p->bytes, p->chunk.n_bytes, p->chunk.offset);
    memcpy(p->bytes, from->bytes + (p->chunk.offset - from->chunk.offset), p->chunk.n_bytes);
    return true;
}

/* From now on the piece is lent to whoever wants it; or there is none. Those who wanted it
 * meanwhile come again. */
static void end_fill(struct nj__chunks *c, struct nj__file *f, const struct fill *fill, bool ok)
{
    nj__shared_lock(c->shared);
    fill->piece->is_filling = false;
    if (!ok) {
        forget(fill->piece);
        nj__file_stat_add(&c->shared->stats.changed, 1);
    }
    atomic_fetch_add_explicit(&c->n_fills[place_of_piece(c, f, fill->piece)], 1,
                              memory_order_relaxed);
    nj__shared_unlock(c->shared);
    if (fill->from)
        nj_ref_put(&fill->from->chunk.ref);
    if (!ok)
        nj_ref_put(&fill->piece->chunk.ref);
}

enum nj_file_result nj__chunks_read(struct nj__chunks *c, struct nj__file *f,
                                    struct nj_file_job *job)
{
    struct fill fill = {NULL};

    nj__shared_lock(c->shared);
    enum nj_file_result r = lend_or_begin(c, f, job, &fill);
    nj__shared_unlock(c->shared);
    struct piece *p = fill.piece;
    if (!p)
        return r;

    bool ok = get_bytes(f, &fill);
    end_fill(c, f, &fill, ok);
    if (!ok)
        return NJ_FILE_BROKEN;
    job->chunk = &p->chunk;
    if (!fill.from && p->n_room == NJ_CHUNK_BYTES)
        posix_fadvise(f->fd, (off_t)(p->chunk.offset + p->n_room), NJ__CHUNK_AHEAD_BYTES,
                      POSIX_FADV_WILLNEED);
    return NJ_FILE_OK;
}

void nj__chunks_trim(struct nj__chunks *c)
{
    for (;;) {
        nj__shared_lock(c->shared);
        uint8_t *block = nj__arena_take_spare(c->arena);
        nj__shared_unlock(c->shared);
        if (!block)
            return;
        nj__arena_release(block);
        nj__shared_lock(c->shared);
        nj__arena_put_released(c->arena, block);
        nj__shared_unlock(c->shared);
    }
}
