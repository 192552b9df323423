/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table of chunks with an S3-FIFO budget (cache_policy.h). A chunk counts as lent from its
 * first reference until the deferred free of its last one has run; then it is idle. A chunk can be
 * found during its fill, so that it is read once; until the end of the fill only the filling thread
 * references it.
 *
 * An idle readahead chunk stays pinned until its first use: evicted before, it would be read twice.
 */
#include "store/chunk_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "store/verified_read.h"

struct chunk_entry {
    struct nj_file_chunk chunk;
    struct nj__deferred deferred;
    struct nj__chunks *chunks;
    struct nj_list hash_node; /* in its bucket; unlinked: it cannot be found */
    struct nj_list file_node;
    struct nj__cache_item cached; /* pinned while lent or in the readahead list */
    struct nj_list ahead;         /* node of the readahead list, until the first use */
    uint32_t readahead_since;     /* c->now_s when it entered that list */
    struct nj__file *file;        /* NULL: it cannot be found */
    uint32_t n_room;
    uint32_t place; /* its bucket */
    bool is_filling;
    bool is_idle;   /* it has no references */
    bool is_used;   /* it was lent to a reader */
    uint8_t *bytes; /* of the arena */
};

bool nj__chunks_init(struct nj__chunks *c, const struct nj_hash_key *key, uint64_t cache_bytes,
                     struct nj__file_cache *cache)
{
    c->key = key;
    c->cache = cache;
    c->shared = cache->shared;
    c->lent_max = cache_bytes > NJ__CHUNK_BUDGET_MIN ? cache_bytes : NJ__CHUNK_BUDGET_MIN;
    for (uint32_t i = 0; i < NJ__CHUNK_BUCKETS; i++)
        nj_list_init(&c->buckets[i]);
    nj_list_init(&c->ahead);
    c->arena = nj__arena_new(c->lent_max);
    return c->arena != NULL;
}

void nj__chunks_fini(struct nj__chunks *c)
{
    nj__arena_free(c->arena);
}

static void count_bytes(struct nj__chunks *c, int64_t by)
{
    nj__file_stat_add(&c->shared->stats.chunk_bytes, by);
}

static void count_lent(struct nj__chunks *c, const struct chunk_entry *p, int by)
{
    nj_add_relaxed(&c->n_lent, (uint32_t)by);
    c->n_lent_bytes += (uint64_t)(by * (int64_t)p->n_room);
    nj__file_stat_add(&c->shared->stats.chunk_lent_bytes, by * (int64_t)p->n_room);
}

static void free_memory(struct nj__deferred *g)
{
    free(nj_container_of(g, struct chunk_entry, deferred));
}

/* Unlink the chunk from the table and its file: it cannot be found any more. */
static void unlink_from_file(struct chunk_entry *p)
{
    struct nj__file *f = p->file;

    nj_list_del(&p->hash_node);
    nj_list_del(&p->file_node);
    p->file = NULL;
    if (f && nj_list_empty(&f->chunk_list))
        nj__file_cache_mark_chunkless(p->chunks->cache, f);
}

/* Is there budget for one more readahead chunk? */
static bool has_readahead_room(const struct nj__chunks *c)
{
    uint64_t n = nj_load_relaxed(&c->shared->stats.ahead_bytes);
    return n + NJ_CHUNK_BYTES <= c->lent_max / NJ__CHUNK_AHEAD_DIV;
}

static void add_readahead(struct nj__chunks *c, struct chunk_entry *p)
{
    p->readahead_since = c->now_s;
    nj_list_push_back(&c->ahead, &p->ahead);
    nj__file_stat_add(&c->shared->stats.ahead_bytes, p->n_room);
}

/* The chunk was used for the first time, has expired, or is about to be freed. */
static void end_readahead(struct nj__chunks *c, struct chunk_entry *p)
{
    if (!nj_list_linked(&p->ahead))
        return;
    nj_list_del(&p->ahead);
    nj__file_stat_add(&c->shared->stats.ahead_bytes, -(int64_t)p->n_room);
    if (p->is_idle)
        nj__cache_policy_unpin(&c->shared->policy, &p->cached.entry);
}

static struct chunk_entry *oldest_readahead(const struct nj__chunks *c)
{
    return nj_list_empty(&c->ahead) ? NULL
                                    : nj_container_of(c->ahead.next, struct chunk_entry, ahead);
}

static void free_chunk_entry(struct chunk_entry *p)
{
    struct nj__chunks *c = p->chunks;

    end_readahead(c, p);
    unlink_from_file(p);
    nj__cache_policy_remove(&c->shared->policy, &p->cached.entry);
    count_bytes(c, -(int64_t)p->n_room);
    if (!p->is_used)
        nj__file_stat_add(&c->shared->stats.unused_bytes, p->chunk.n_bytes);
    nj__arena_put(c->arena, p->bytes, p->n_room);
    nj__store_queue_free_at_unlock(c->shared, &p->deferred);
}

static void evict(struct nj__cache_item *cached)
{
    free_chunk_entry(nj_container_of(cached, struct chunk_entry, cached));
}

/* Lent chunks may exceed the budget. The policy then evicts a chunk right after its last reference
 * is dropped. */
static void detach_chunk(struct nj__deferred *g)
{
    struct chunk_entry *p = nj_container_of(g, struct chunk_entry, deferred);
    struct nj__chunks *c = p->chunks;

    count_lent(c, p, -1);
    nj__file_stat_add(&c->shared->stats.chunk_returns, 1);
    p->is_idle = true;
    if (!nj_list_linked(&p->ahead))
        nj__cache_policy_unpin(&c->shared->policy, &p->cached.entry);
    if (!p->file)
        free_chunk_entry(p);
    nj__store_make_room(c->shared, 0);
}

/* Runs on any thread, lcores included: no system calls. */
static void on_last_chunk_ref(struct nj_ref *ref)
{
    struct nj_file_chunk *chunk = nj_container_of(ref, struct nj_file_chunk, ref);
    struct chunk_entry *p = nj_container_of(chunk, struct chunk_entry, chunk);

    nj__store_defer_free(p->chunks->shared, &p->deferred);
}

/* Existing references stay valid. */
static void drop_entry(struct chunk_entry *p)
{
    if (p->is_idle)
        free_chunk_entry(p);
    else
        unlink_from_file(p);
}

void nj__chunks_drop_file(struct nj__file *f)
{
    while (!nj_list_empty(&f->chunk_list))
        drop_entry(nj_container_of(f->chunk_list.next, struct chunk_entry, file_node));
}

void nj__chunks_clear(struct nj__chunks *c)
{
    for (uint32_t i = 0; i < NJ__CHUNK_BUCKETS; i++)
        while (!nj_list_empty(&c->buckets[i]))
            drop_entry(nj_container_of(c->buckets[i].next, struct chunk_entry, hash_node));
}

/* Bucket of a chunk. */
static uint32_t bucket_index(const struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                             uint32_t n_room)
{
    struct {
        const struct nj__file *file;
        uint64_t offset, n_room;
    } key = {f, offset, n_room};

    return (uint32_t)(nj_hash(c->key, &key, sizeof key) % NJ__CHUNK_BUCKETS);
}

static struct chunk_entry *find(struct nj__chunks *c, const struct nj__file *f, uint64_t offset,
                                uint32_t n_room)
{
    offset -= offset % n_room;
    struct nj_list *bucket = &c->buckets[bucket_index(c, f, offset, n_room)];

    for (struct nj_list *l = bucket->next; l != bucket; l = l->next) {
        struct chunk_entry *p = nj_container_of(l, struct chunk_entry, hash_node);
        if (p->file == f && p->chunk.offset == offset && p->n_room == n_room)
            return p;
    }
    return NULL;
}

/* Take a reference unless the count is zero (kref_get_unless_zero() of Linux). */
static bool ref_unless_zero(struct nj_ref *r)
{
    uint32_t n = nj_load_relaxed(&r->n);

    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&r->n, &n, n + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* Returns false if its last reference was dropped and the deferred free is pending. */
static bool lend(struct chunk_entry *p)
{
    if (p->is_filling)
        return true; /* only the filling thread references it */
    if (!p->is_idle)
        return ref_unless_zero(&p->chunk.ref);
    end_readahead(p->chunks, p);
    p->is_idle = false;
    nj__cache_policy_pin(&p->cached.entry);
    nj_ref_init(&p->chunk.ref, on_last_chunk_ref);
    count_lent(p->chunks, p, 1);
    return true;
}

/* Find a chunk and reference it for the caller, unless it is being filled. */
static struct chunk_entry *find_and_lend(struct nj__chunks *c, const struct nj__file *f,
                                         uint64_t offset, uint32_t n_room)
{
    struct chunk_entry *p = find(c, f, offset, n_room);

    if (!p || lend(p))
        return p;
    /* It has no references, and its deferred free is pending. */
    nj__store_unlink_unreferenced(c->shared);
    p = find(c, f, offset, n_room);
    if (!p || lend(p))
        return p;
    drop_entry(p); /* the thread that dropped it has not queued it yet */
    return NULL;
}

static uint32_t preferred_bytes(const struct nj_file_job *job)
{
    return job->n_bytes > NJ_CHUNK_SMALL_BYTES ? NJ_CHUNK_BYTES : NJ_CHUNK_SMALL_BYTES;
}

/* The size of a new chunk, given the size that the READ prefers. */
static uint32_t allowed_bytes(const struct nj__chunks *c, uint32_t wish)
{
    uint32_t most = NJ__CHUNK_TINY_BYTES;

    if (c->n_lent_bytes <= c->lent_max / 4)
        most = NJ_CHUNK_BYTES;
    else if (c->n_lent_bytes <= c->lent_max / 2)
        most = NJ_CHUNK_SMALL_BYTES;
    return wish < most ? wish : most;
}

/* Lent chunks may fragment the arena. After this number of evictions without a free large block, a
 * smaller size is tried. */
#define EVICTIONS_MAX 8u

/* READs take precedence over unused readahead. Returns false if there is none. */
static bool evict_readahead(struct nj__chunks *c)
{
    for (struct nj_list *l = c->ahead.next; l != &c->ahead; l = l->next) {
        struct chunk_entry *p = nj_container_of(l, struct chunk_entry, ahead);
        if (p->is_idle) {
            free_chunk_entry(p);
            nj__file_stat_add(&c->shared->stats.evictions, 1);
            return true;
        }
    }
    return false;
}

/* Allocate memory for a chunk, evicting idle entries. */
static uint8_t *make_room(struct nj__chunks *c, uint32_t n_room)
{
    uint64_t most = c->shared->policy.n_bytes_max;

    if (!nj__cache_policy_fits(&c->shared->policy, n_room))
        nj__store_unlink_unreferenced(c->shared);
    if (c->n_lent_bytes + n_room > c->lent_max)
        return NULL;
    nj__store_make_room(c->shared, n_room < most ? n_room : most);
    uint8_t *bytes = nj__arena_take(c->arena, n_room);
    bool is_tiny = n_room == NJ__CHUNK_TINY_BYTES; /* fits in any evicted chunk */
    for (uint32_t i = 0; !bytes && (is_tiny || i < EVICTIONS_MAX); i++) {
        if (!nj__store_evict_one(c->shared) && !evict_readahead(c))
            break;
        bytes = nj__arena_take(c->arena, n_room);
    }
    return bytes;
}

/* An empty chunk of the file at `offset`, referenced by the caller and not in the table yet. */
static struct chunk_entry *new_chunk(struct nj__chunks *c, const struct nj__file *f,
                                     uint64_t offset, uint32_t n_room, uint8_t *bytes)
{
    struct chunk_entry *p = malloc(sizeof *p);
    if (!p) {
        nj__arena_put(c->arena, bytes, n_room);
        return NULL;
    }
    offset -= offset % n_room;
    uint64_t n_left = f->object.size_bytes - offset;
    p->chunk.offset = offset;
    p->chunk.n_bytes = n_left < n_room ? (uint32_t)n_left : n_room;
    p->chunk.bytes = p->bytes = bytes;
    p->deferred = (struct nj__deferred){.detach = detach_chunk, .free = free_memory};
    p->chunks = c;
    p->n_room = n_room;
    p->file = NULL;
    p->is_filling = true;
    p->is_used = false;
    p->is_idle = false;
    p->cached = (struct nj__cache_item){.evict = evict};
    nj_list_init(&p->hash_node);
    nj_list_init(&p->file_node);
    nj_list_init(&p->ahead);
    nj_ref_init(&p->chunk.ref, on_last_chunk_ref);
    count_bytes(c, n_room);
    count_lent(c, p, 1);
    return p;
}

/* Identity of the chunk, stable when its file is opened again. */
static uint64_t fingerprint(const struct nj__chunks *c, const struct nj__file *f,
                            const struct chunk_entry *p)
{
    uint64_t what[] = {nj_file_version_hash(&f->id.version), p->chunk.offset, p->n_room};
    return nj_hash(c->key, what, sizeof what);
}

static void publish(struct nj__chunks *c, struct nj__file *f, struct chunk_entry *p)
{
    struct nj__cache_policy *policy = &c->shared->policy;

    p->file = f;
    p->place = bucket_index(c, f, p->chunk.offset, p->n_room);
    nj_list_push_back(&c->buckets[p->place], &p->hash_node);
    nj__file_cache_mark_chunked(c->cache, f);
    nj_list_push_back(&f->chunk_list, &p->file_node);
    nj__cache_policy_pin(&p->cached.entry);
    nj__cache_policy_add(policy, &p->cached.entry, fingerprint(c, f, p), p->n_room);
}

/* A cached larger chunk that contains the new one, referenced; its bytes are copied, not read. */
static struct chunk_entry *lend_larger(struct nj__chunks *c, const struct nj__file *f,
                                       const struct chunk_entry *p)
{
    for (uint32_t n_room = 8 * p->n_room; n_room <= NJ_CHUNK_BYTES; n_room *= 8) {
        struct chunk_entry *larger = find_and_lend(c, f, p->chunk.offset, n_room);
        if (larger && !larger->is_filling) {
            larger->is_used = true;
            return larger;
        }
    }
    return NULL;
}

/* Find a chunk for the READ: of the preferred size, or smaller. */
static struct chunk_entry *find_any_size(struct nj__chunks *c, const struct nj__file *f,
                                         const struct nj_file_job *job)
{
    for (uint32_t size = preferred_bytes(job); size >= NJ__CHUNK_TINY_BYTES; size /= 8) {
        struct chunk_entry *p = find_and_lend(c, f, job->offset, size);
        if (p)
            return p;
    }
    return NULL;
}

/* With the lock: give the chunk to the job, or BUSY if it is being filled. */
static enum nj_file_result finish_lookup(struct nj__chunks *c, struct nj_file_job *job,
                                         struct chunk_entry *p)
{
    struct nj_file_store_stats *stats = &c->shared->stats;

    if (p->is_filling) {
        job->place = p->place;
        job->seen = nj__chunks_count_ended_fills(c, job->place);
        nj__file_stat_add(&stats->waits_for_read, 1);
        return NJ_FILE_BUSY;
    }
    nj__file_stat_add(&stats->chunk_hits, 1);
    if (p->is_used) /* the first one is the one that it was read for */
        nj__cache_policy_touch(&p->cached.entry);
    p->is_used = true;
    end_readahead(c, p);
    job->chunk = &p->chunk;
    return NJ_FILE_OK;
}

static enum nj_file_result fail_no_memory(const struct nj__chunks *c, struct nj_file_job *job)
{
    struct nj_file_store_stats *stats = &c->shared->stats;

    job->seen = nj_load_relaxed(&stats->chunk_returns);
    nj__file_stat_add(&stats->waits, 1);
    return NJ_FILE_NO_MEMORY;
}

static void set_fill(struct nj__chunk_fill *fill, struct chunk_entry *p, struct chunk_entry *from)
{
    *fill = (struct nj__chunk_fill){
        .chunk = p,
        .from = from,
        .out = p->bytes,
        .n_room = p->n_room,
        .n_bytes = p->chunk.n_bytes,
        .offset = p->chunk.offset,
        .place = p->place,
    };
}

/* With the lock: give a cached chunk to the job, or start a fill, or fail. */
static enum nj_file_result lend_or_begin(struct nj__chunks *c, struct nj__file *f,
                                         struct nj_file_job *job, struct nj__chunk_fill *fill)
{
    struct nj_file_store_stats *stats = &c->shared->stats;
    uint32_t n_room = allowed_bytes(c, preferred_bytes(job));
    struct chunk_entry *p = find_any_size(c, f, job);

    if (p)
        return finish_lookup(c, job, p);
    if (f->has_changed) {
        nj__file_stat_add(&stats->changed, 1);
        return NJ_FILE_BROKEN;
    }
    uint8_t *bytes = make_room(c, n_room);
    for (; !bytes && n_room > NJ__CHUNK_TINY_BYTES; bytes = make_room(c, n_room))
        n_room /= 8;
    if (!bytes)
        return fail_no_memory(c, job);
    p = new_chunk(c, f, job->offset, n_room, bytes);
    if (!p)
        return NJ_FILE_BROKEN; /* no event would announce free memory */
    struct chunk_entry *from = lend_larger(c, f, p);
    nj__file_stat_add(from ? &stats->chunk_hits : &stats->reads, 1);
    nj__file_stat_add(&stats->read_bytes, from ? 0 : p->chunk.n_bytes);
    publish(c, f, p);
    set_fill(fill, p, from);
    return NJ_FILE_OK;
}

bool nj__chunks_lookup(struct nj__chunks *c, struct nj__file *f, struct nj_file_job *job)
{
    nj__store_lock(c->shared);
    struct chunk_entry *p = find_any_size(c, f, job);
    if (p)
        job->result = finish_lookup(c, job, p);
    nj__store_unlock_and_free(c->shared);
    return p;
}

enum nj_file_result nj__chunks_lookup_or_begin_fill(struct nj__chunks *c, struct nj__file *f,
                                                    struct nj_file_job *job,
                                                    struct nj__chunk_fill *fill)
{
    *fill = (struct nj__chunk_fill){.chunk = NULL};
    nj__store_lock(c->shared);
    enum nj_file_result r = lend_or_begin(c, f, job, fill);
    nj__store_unlock_and_free(c->shared);
    return r;
}

/* READs that got BUSY see the fill counter change and retry. */
enum nj_file_result nj__chunks_end_fill(struct nj__chunks *c, const struct nj__chunk_fill *fill,
                                        bool ok, struct nj_file_job *job)
{
    struct chunk_entry *p = fill->chunk;

    nj__store_lock(c->shared);
    p->is_filling = false;
    p->is_used = ok && job;
    if (!ok)
        drop_entry(p);
    nj_add_relaxed(&c->n_fills[p->place], 1);
    nj__store_unlock_and_free(c->shared);
    if (fill->from)
        nj_ref_put(&fill->from->chunk.ref);
    if (ok && job) {
        job->chunk = &p->chunk;
        return NJ_FILE_OK;
    }
    nj_ref_put(&p->chunk.ref);
    return NJ_FILE_BROKEN;
}

void nj__chunks_copy_fill(const struct nj__chunk_fill *fill)
{
    const struct chunk_entry *from = fill->from;
    memcpy(fill->out, from->bytes + (fill->offset - from->chunk.offset), fill->n_bytes);
}

/* Readahead uses only free or idle memory. */
static struct chunk_entry *new_readahead(struct nj__chunks *c, const struct nj__file *f,
                                         uint64_t offset)
{
    if (f->has_changed || allowed_bytes(c, NJ_CHUNK_BYTES) < NJ_CHUNK_BYTES ||
        !has_readahead_room(c))
        return NULL;
    uint8_t *bytes = make_room(c, NJ_CHUNK_BYTES);
    return bytes ? new_chunk(c, f, offset, NJ_CHUNK_BYTES, bytes) : NULL;
}

bool nj__chunks_begin_readahead(struct nj__chunks *c, struct nj__file *f, uint64_t offset,
                                uint64_t end, struct nj__chunk_fill *fill)
{
    struct nj_file_store_stats *stats = &c->shared->stats;
    struct chunk_entry *p = NULL;

    NJ_ASSERT(offset % NJ_CHUNK_BYTES == 0 && end <= f->object.size_bytes);
    nj__store_lock(c->shared);
    while (offset < end && find(c, f, offset, NJ_CHUNK_BYTES))
        offset += NJ_CHUNK_BYTES;
    if (offset < end)
        p = new_readahead(c, f, offset);
    if (p) {
        publish(c, f, p);
        add_readahead(c, p);
        set_fill(fill, p, NULL);
        nj__file_stat_add(&stats->reads, 1);
        nj__file_stat_add(&stats->ahead, 1);
        nj__file_stat_add(&stats->read_bytes, p->chunk.n_bytes);
    }
    nj__store_unlock_and_free(c->shared);
    return p;
}

void nj__chunks_expire_readahead(struct nj__chunks *c)
{
    struct chunk_entry *p;

    nj__store_lock(c->shared);
    c->now_s++;
    while ((p = oldest_readahead(c)) && c->now_s - p->readahead_since > NJ__CHUNK_AHEAD_S)
        end_readahead(c, p);
    nj__store_make_room(c->shared, 0);
    nj__store_unlock_and_free(c->shared);
}

enum nj_file_result nj__chunks_do_read_blocking(struct nj__chunks *c, struct nj__file *f,
                                                struct nj_file_job *job)
{
    struct nj__chunk_fill fill;
    enum nj_file_result r = nj__chunks_lookup_or_begin_fill(c, f, job, &fill);
    bool ok = true;

    if (!fill.chunk)
        return r;
    if (fill.from)
        nj__chunks_copy_fill(&fill);
    else
        ok = nj__file_read_chunk_verified(f, fill.out, fill.n_bytes, fill.n_room, fill.offset);
    r = nj__chunks_end_fill(c, &fill, ok, job);
    if (ok && !fill.from && fill.n_room == NJ_CHUNK_BYTES)
        posix_fadvise(f->fd, (off_t)(fill.offset + fill.n_room), NJ__CHUNK_AHEAD_BYTES,
                      POSIX_FADV_WILLNEED);
    return r;
}

void nj__chunks_run_nonblocking_frees(struct nj__chunks *c)
{
    if (!nj__store_has_deferred(c->shared))
        return;
    nj__store_lock(c->shared);
    nj__store_unlink_unreferenced(c->shared);
    nj__store_unlock_and_free(c->shared);
}

int nj__chunks_populate_block(struct nj__chunks *c)
{
    nj__store_lock(c->shared);
    uint8_t *block = nj__arena_take_unpopulated(c->arena);
    nj__store_unlock_and_free(c->shared);
    if (!block)
        return -EAGAIN;
    int rc = nj__arena_populate(block);
    nj__store_lock(c->shared);
    if (rc == 0)
        nj__arena_put_populated(c->arena, block);
    else
        nj__arena_put_unbacked(c->arena, block);
    nj__store_unlock_and_free(c->shared);
    return rc;
}

void nj__chunks_release_free_memory(struct nj__chunks *c)
{
    for (;;) {
        nj__store_lock(c->shared);
        uint8_t *block = nj__arena_take_surplus(c->arena);
        nj__store_unlock_and_free(c->shared);
        if (!block)
            return;
        nj__arena_release_block_pages(block);
        nj__store_lock(c->shared);
        nj__arena_put_unbacked(c->arena, block);
        nj__store_unlock_and_free(c->shared);
    }
}
