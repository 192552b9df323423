/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "http/files/file_lookup_cache.h"
#include "sim.h"
#include "store/chunk_cache.h"
#include "store/verified_read.h"

#define FILES_MAX 256u
/* Hashes include addresses of files: the same ones in each process, if that range is free. */
#define PLACE     ((void *)0x200000000000)
/* beyond all descriptors of the process */
#define FD_BASE   1000000
/* another version has the bytes of another file */
#define VERSION   1000000u

struct file {
    struct nj__file file;
    struct sim_name name;
    uint32_t version;
};

/* A name with a failed read. */
struct failure {
    struct sim_name name;
    nj_ns at;
};

struct nj_file_store {
    struct sim *sim;
    struct nj_prng prng;
    struct nj_hash_key key;
    struct nj__store shared;
    struct nj__file_cache cache;
    struct nj__chunks chunks;
    uint32_t n_files, n_failures;
    nj_ns aged_at;
    struct file file[FILES_MAX]; /* in use if their name has a kind */
    struct failure failure[FILES_MAX];
};

/* --- names and bytes -------------------------------------------------------------------------- */

static uint64_t word(uint32_t id, uint64_t index)
{
    struct nj_prng p = {.state = ((uint64_t)id << 40) + index * 0xd1342543de82ef95u};
    return nj_prng_next(&p);
}

static void fill(uint32_t id, uint64_t off, uint8_t *out, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        uint64_t w = word(id, (off + i) / 8) >> 8 * ((off + i) % 8);
        for (unsigned left = 8 - (off + i) % 8; left > 0 && i < n_bytes; left--, w >>= 8)
            out[i++] = (uint8_t)w;
    }
}

size_t nj_sim_file_check(uint32_t id, uint32_t version, uint64_t off, const uint8_t *data,
                         size_t n_bytes)
{
    uint8_t want[256];

    for (size_t i = 0; i < n_bytes; i += sizeof want) {
        size_t n = n_bytes - i < sizeof want ? n_bytes - i : sizeof want;
        fill(id + version * VERSION, off + i, want, n);
        if (memcmp(want, data + i, n) == 0)
            continue;
        size_t same = 0;
        while (want[same] == data[i + same])
            same++;
        return i + same;
    }
    return n_bytes;
}

uint64_t nj_sim_version_size(const struct sim_name *n, uint32_t version)
{
    return n->kind == 'x' && version > 0 ? n->size / 2 : n->size;
}

/* Version v was modified v seconds after this time, which is a whole minute. */
#define FIRST_MODIFIED_S UINT64_C(1600000020)

uint32_t nj_sim_version_of(const char *modified, size_t n)
{
    unsigned version;
    return n > 6 && sscanf(modified + n - 6, "%2u GMT", &version) == 1 ? version : UINT32_MAX;
}

static bool is_same(const struct sim_name *a, const struct sim_name *b)
{
    return a->kind == b->kind && a->id == b->id && a->size == b->size;
}

/* Time at which the second version of a file replaces the first. */
static nj_ns changes_at(const struct sim *sim, const struct sim_name *n)
{
    if (n->kind != 'r' && n->kind != 'x')
        return NJ_NEVER;
    return sim->mix.start_at + word(n->id + 1, sim->seed) % (3 * NJ_SEC);
}

static uint32_t version_now(const struct sim *sim, const struct sim_name *n)
{
    return sim->now >= changes_at(sim, n);
}

static struct failure *failure_of(struct nj_file_store *s, const struct sim_name *n)
{
    for (uint32_t i = 0; i < s->n_failures; i++)
        if (is_same(&s->failure[i].name, n))
            return &s->failure[i];
    return NULL;
}

static void note_failure(struct nj_file_store *s, const struct sim_name *n)
{
    struct failure *f = failure_of(s, n);

    if (!f) {
        NJ_CHECK(s->n_failures < FILES_MAX);
        f = &s->failure[s->n_failures++];
        f->name = *n;
    }
    f->at = s->sim->now;
}

/* A shard caches the result of an OPEN for a while. */
bool nj_sim_may_have_broken(const struct sim *sim, const struct sim_name *n, nj_ns asked_at)
{
    const struct failure *f = failure_of(sim->store, n);
    nj_ns at = changes_at(sim, n);

    return (f && asked_at <= f->at + NJ_META_CACHE_TTL) ||
           (sim->now >= at && asked_at <= at + NJ_META_CACHE_TTL);
}

/* --- reads, in place of verified_read.c
 * ----------------------------------------------------------- */

static struct file *file_of(struct nj__file *f)
{
    return nj_container_of(f, struct file, file);
}

int32_t nj_sim_store_read(struct nj_file_store *s, int fd, uint8_t *out, uint32_t n_bytes,
                          uint64_t off)
{
    const struct file *f = &s->file[fd - FD_BASE];
    const struct sim_name *n = &f->name;
    uint32_t version = version_now(s->sim, n);
    uint64_t readable = n->kind == 't' ? n->size / 2 : nj_sim_version_size(n, version);

    NJ_CHECK(n->size > 0 && off + n_bytes <= n->size);
    bool fails =
        n->kind == 'e' && !s->sim->calm && nj_sim_chance(&s->prng, s->sim->mix.store.read_errors);
    if (fails || (off >= readable && n->kind == 't')) {
        note_failure(s, n);
        return -EIO;
    }
    if (off >= readable)
        return 0; /* the file ends before */
    if (n_bytes > readable - off)
        n_bytes = (uint32_t)(readable - off);
    fill(n->id + version * VERSION, off, out, n_bytes);
    return (int32_t)n_bytes;
}

bool nj__file_is_unchanged(struct nj__file *f)
{
    return version_now(nj_container_of(f->shared, struct nj_file_store, shared)->sim,
                       &file_of(f)->name) == file_of(f)->version;
}

void nj__file_mark_changed(struct nj__file *f)
{
    nj__store_lock(f->shared);
    f->has_changed = true;
    nj__store_unlock_and_free(f->shared);
}

/* Called by a worker. */
bool nj__file_read_chunk_verified(struct nj__file *f, uint8_t *out, uint64_t n_bytes,
                                  uint64_t n_room, uint64_t offset)
{
    struct nj_file_store *s = nj_container_of(f->shared, struct nj_file_store, shared);
    int32_t n = nj_sim_store_read(s, f->fd, out, (uint32_t)n_bytes, offset);
    bool ok = n == (int32_t)n_bytes && nj__file_is_unchanged(f);

    (void)n_room;
    if (ok)
        atomic_store(&f->needs_worker, false);
    else
        nj__file_mark_changed(f);
    return ok;
}

/* --- files, in place of file_store.c ---------------------------------------------------------- */

static void detach_file(struct nj__deferred *g)
{
    struct nj__file *f = nj_container_of(g, struct nj__file, deferred);

    nj__chunks_drop_file(f);
    nj_container_of(f->shared, struct nj_file_store, shared)->n_files--;
    nj__store_queue_free_at_unlock(f->shared, g);
}

static void free_file(struct nj__deferred *g)
{
    struct nj__file *f = nj_container_of(g, struct nj__file, deferred);

    if (f->memory)
        memset(f->memory, 0xdd,
               f->object.size_bytes); /* a reader after the free gets wrong bytes */
    free(f->memory);
    file_of(f)->name.kind = 0;
}

static void on_last_file_ref(struct nj_ref *ref)
{
    struct nj_file_object *o = nj_container_of(ref, struct nj_file_object, ref);
    struct nj__file *f = nj_container_of(o, struct nj__file, object);

    nj__store_defer_free(f->shared, &f->deferred);
}

/* Hashes include the address of a file: equal histories get equal addresses. */
static struct file *take_place(struct nj_file_store *s)
{
    for (uint32_t i = 0; i < FILES_MAX; i++)
        if (s->file[i].name.kind == 0)
            return &s->file[i];
    NJ_UNREACHABLE("more files than a seed has requests");
}

static struct nj__file *new_file(struct nj_file_store *s, const struct sim_name *n)
{
    struct file *file = take_place(s);
    struct nj__file *f = &file->file;
    uint32_t version = version_now(s->sim, n);

    *file = (struct file){.name = *n, .version = version};
    nj_ref_init(&f->object.ref, on_last_file_ref);
    f->object.size_bytes = nj_sim_version_size(n, version);
    f->object.version = (struct nj_file_version){
        .inode = (uint64_t)n->kind << 32 | n->id,
        .size_bytes = f->object.size_bytes,
        .mtime_ns = (int64_t)((FIRST_MODIFIED_S + version) * NJ_SEC),
        .ctime_ns = (int64_t)((FIRST_MODIFIED_S + version) * NJ_SEC),
    };
    f->deferred = (struct nj__deferred){.detach = detach_file, .free = free_file};
    f->shared = &s->shared;
    f->id = (struct nj__file_id){.version = f->object.version};
    f->fd = n->kind == 'w' ? -1 : FD_BASE + (int)(file - s->file);
    f->is_local = !nj_sim_chance(&s->prng, s->sim->mix.store.distant);
    atomic_init(&f->is_settled, true);
    nj_list_init(&f->hash_node);
    nj_list_init(&f->lru_node);
    nj_list_init(&f->open);
    nj_list_init(&f->chunk_list);
    if (n->kind == 'w') {
        f->memory = malloc(n->size + 1);
        NJ_CHECK(f->memory);
        fill(n->id, 0, f->memory, n->size);
        f->object.bytes = f->memory;
    }
    s->n_files++;
    return f;
}

/* Called with the lock. */
static struct nj__file *open_file(struct nj_file_store *s, const char *path,
                                  const struct sim_name *n)
{
    struct nj__file *f = nj__file_cache_find(&s->cache, path);

    if (f && !f->has_changed && file_of(f)->version == version_now(s->sim, n)) {
        nj__file_cache_touch(&s->cache, f);
        nj_ref_take(&f->object.ref);
        return f;
    }
    f = new_file(s, n);
    nj__file_cache_add(&s->cache, path, f);
    return f;
}

static enum nj_file_result open_object(struct nj_file_store *s, struct nj_file_job *job)
{
    struct sim_name n;
    unsigned long long size;

    if (sscanf(job->path, "%c-%u-%llu", &n.kind, &n.id, &size) != 3)
        return NJ_FILE_ABSENT;
    n.size = size;
    switch (n.kind) {
    case 'd':
        return NJ_FILE_IS_DIR;
    case 'p':
        return NJ_FILE_DENIED;
    case 'b':
        return NJ_FILE_BROKEN;
    case 'm':
        return NJ_FILE_NO_MEMORY;
    case 'w':
    case 'k':
    case 't':
    case 'e':
    case 'r':
    case 'x':
        break;
    default:
        return NJ_FILE_ABSENT;
    }
    nj__store_lock(&s->shared);
    job->object = &open_file(s, job->path, &n)->object;
    nj__store_unlock_and_free(&s->shared);
    job->current_at_ns = NJ_FILE_TIME_MAX;
    return NJ_FILE_OK;
}

void nj_file_store_do_job(void *store, struct nj_file_job *job)
{
    struct nj_file_store *s = store;

    if (job->op == NJ_FILE_READ) {
        struct nj__file *f = nj_container_of(job->object, struct nj__file, object);
        NJ_CHECK(job->n_bytes > 0 && job->n_bytes <= NJ_CHUNK_BYTES);
        NJ_CHECK(job->offset + job->n_bytes <= job->object->size_bytes);
        job->result = nj__chunks_do_read_blocking(&s->chunks, f, job);
    } else {
        job->result = open_object(s, job);
    }
}

void nj_file_store_free_unreferenced(void *store)
{
    struct nj_file_store *s = store;

    nj__store_lock(&s->shared);
    nj__store_unlink_unreferenced(&s->shared);
    nj__store_unlock_and_free(&s->shared);
}

bool nj_file_store_may_retry_read(struct nj_file_store *s, const struct nj_file_job *job)
{
    if (job->result == NJ_FILE_BUSY)
        return nj__chunks_count_ended_fills(&s->chunks, job->place) != job->seen;
    return atomic_load(&s->shared.stats.chunk_returns) != job->seen ||
           nj__store_has_deferred(&s->shared);
}

void nj_sim_store_age(struct nj_file_store *s)
{
    for (; s->sim->now - s->aged_at >= NJ_SEC; s->aged_at += NJ_SEC)
        nj__chunks_expire_readahead(&s->chunks);
}

struct nj__chunks *nj__file_store_chunks(struct nj_file_store *s)
{
    return &s->chunks;
}

const struct nj_file_store_stats *nj_file_store_stats(const struct nj_file_store *s)
{
    return &s->shared.stats;
}

/* --- life ------------------------------------------------------------------------------------- */

struct nj_file_store *nj_sim_store_new(struct sim *sim)
{
    struct nj_file_store *s =
        mmap(PLACE, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct sim_store_plan *plan = &sim->mix.store;

    NJ_CHECK(s != MAP_FAILED);
    s->sim = sim;
    s->aged_at = sim->now;
    nj_prng_init(&s->prng, sim->seed ^ 0xf11e5);
    memcpy(s->key.b, &sim->seed, sizeof sim->seed);
    NJ_CHECK(nj__store_init(&s->shared, plan->cache_bytes));
    nj__file_cache_init(&s->cache, &s->key, &s->shared, UINT32_MAX);
    NJ_CHECK(nj__chunks_init(&s->chunks, &s->key, plan->cache_bytes, &s->cache));
    if (plan->lent_max)
        s->chunks.lent_max = plan->lent_max;
    return s;
}

uint32_t nj_sim_store_free(struct nj_file_store *s)
{
    nj__store_lock(&s->shared);
    nj__file_cache_clear(&s->cache);
    nj__store_unlink_unreferenced(&s->shared);
    nj__chunks_clear(&s->chunks);
    nj__store_unlock_and_free(&s->shared);
    uint32_t n = s->n_files + s->chunks.n_lent;
    if (n > 0)
        return n;
    nj__chunks_fini(&s->chunks);
    nj__store_fini(&s->shared);
    munmap(s, sizeof *s);
    return 0;
}
