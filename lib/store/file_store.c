/* SPDX-License-Identifier: BSD-3-Clause */
/* The file store: does OPEN, LIST and READ jobs with openat2(2), fstat(2) and pread(2). Cached
 * copies are validated by identity and timestamps on each OPEN. */
#include "store/file_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "base/page_alloc.h"
#include "http/files/dir_listing.h"
#include "http/proto/negotiate.h"
#include "store/chunk_cache.h"
#include "store/dir_reader.h"
#include "store/file_cache.h"
#include "store/open_result.h"
#include "store/verified_read.h"
#include "rights/thread_file_rights.h"
#include "store/file_root.h"
#include "store/fd_budget.h"
#include "threads/os_clock.h"

/* Whole files in memory beyond the cache's budget, referenced by slow clients. Above this limit,
 * files larger than a chunk are read in chunks. */
#define LENT_BYTES_MAX    (256u * 1024u * 1024u)
/* Contents of at least this size are mapped, so that a free returns their pages to the system. */
#define OWN_PAGES_BYTES   (128u * 1024u)
/* Maximum wait between two attempts to open a file with a lease; all waits take less than twice as
 * long. */
#define LEASE_WAIT_MAX_MS 128u
/* Files evicted at once when descriptors run out. */
#define FDS_EVICTED       8u

struct nj_file_store {
    struct nj_hash_key key; /* here alone: see base/page_alloc.h */
    struct nj__root root;
    bool drop_rights;
    uint32_t n_reserved_fds;
    struct nj__store shared;
    _Atomic uint32_t n_files;
    _Atomic uint64_t n_closed; /* files closed */
    struct nj__file_cache cache;
    _Atomic int64_t checked_at_s; /* last check for deleted files; INT64_MAX during a check */
    struct nj__chunks chunks;
};

int nj_file_store_open(const struct nj_file_store_options *options, struct nj_file_store **out,
                       char *err, size_t n_err)
{
    struct nj__root root;
    int rc = nj__root_open(&root, options->root, options->symlinks, err, n_err);
    if (rc < 0)
        return rc;

    struct nj_file_store *s = nj_pages_map(sizeof *s, 0); /* has keys */
    if (!s || getrandom(s->key.b, sizeof s->key.b, 0) != sizeof s->key.b) {
        nj_pages_unmap(s, sizeof *s);
        nj__root_close(&root);
        snprintf(err, n_err, "%s: can't set up the file cache: out of memory", options->root);
        return -ENOMEM;
    }
    s->root = root;
    s->drop_rights = options->drop_rights;
    s->n_reserved_fds = nj__fds_reserved(options);
    uint64_t n_bytes =
        options->cache_bytes > NJ__CACHE_BYTES_MIN ? options->cache_bytes : NJ__CACHE_BYTES_MIN;
    bool ok = nj__store_init(&s->shared, n_bytes);
    nj__file_cache_init(&s->cache, &s->key, &s->shared, nj__fds_cached_max(s->n_reserved_fds));
    ok = nj__chunks_init(&s->chunks, &s->key, n_bytes, &s->cache) && ok;
    if (!ok) {
        nj__chunks_fini(&s->chunks);
        nj__store_fini(&s->shared);
        nj__root_close(&s->root);
        nj_pages_unmap(s, sizeof *s);
        snprintf(err, n_err, "%s: no memory for files: choose a smaller --cache", options->root);
        return -ENOMEM;
    }
    *out = s;
    return 0;
}

bool nj_file_store_has_hugepages(const struct nj_file_store *s)
{
    return nj__arena_memory_range(s->chunks.arena).is_huge;
}

struct nj__chunks *nj__file_store_chunks(struct nj_file_store *s)
{
    return &s->chunks;
}

uint32_t nj_file_store_count_held_objects(const struct nj_file_store *s)
{
    return nj_load_relaxed(&s->n_files) + nj_load_relaxed(&s->chunks.n_lent);
}

bool nj_file_store_may_retry_read(struct nj_file_store *s, const struct nj_file_job *job)
{
    if (job->result == NJ_FILE_BUSY)
        return nj__chunks_count_ended_fills(&s->chunks, job->place) != job->seen;
    return nj_load_relaxed(&s->shared.stats.chunk_returns) != job->seen ||
           nj__store_has_deferred(&s->shared);
}

const struct nj_file_store_stats *nj_file_store_stats(const struct nj_file_store *s)
{
    return &s->shared.stats;
}

static bool is_deleted(const struct nj__file *f)
{
    struct stat st;

    return fstat(f->fd, &st) == 0 && st.st_nlink == 0;
}

static void drop_from_cache(struct nj_file_store *s, struct nj__file *f)
{
    nj__store_lock(&s->shared);
    nj__file_cache_remove(&s->cache, f);
    nj__store_unlock_and_free(&s->shared);
}

static struct nj__file *next_to_check(struct nj_file_store *s, int64_t now_s)
{
    nj__store_lock(&s->shared);
    struct nj__file *f = nj__file_cache_next_delete_check(&s->cache, now_s);
    nj__store_unlock_and_free(&s->shared);
    return f;
}

/* One thread at a time: a disk that does not respond blocks only one. */
static void drop_deleted(struct nj_file_store *s, int64_t now_s)
{
    int64_t then = nj_load_relaxed(&s->checked_at_s);
    struct nj__file *f;

    if (now_s <= then ||
        !atomic_compare_exchange_strong_explicit(&s->checked_at_s, &then, INT64_MAX,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    while ((f = next_to_check(s, now_s))) {
        if (is_deleted(f))
            drop_from_cache(s, f);
        nj_ref_put(&f->object.ref);
    }
    nj_store_relaxed(&s->checked_at_s, now_s);
}

void nj_file_store_free_unreferenced(void *store)
{
    struct nj_file_store *s = store;

    nj__chunks_run_nonblocking_frees(&s->chunks);
    nj__store_run_blocking_frees(&s->shared);
}

void nj_file_store_run_housekeeping(void *store)
{
    struct nj_file_store *s = store;

    nj__chunks_expire_readahead(&s->chunks);
    drop_deleted(s, (int64_t)(nj_os_clock_gettime_ns(CLOCK_MONOTONIC_COARSE) / NJ_SEC));
    nj_file_store_free_unreferenced(s);
    nj__chunks_release_free_memory(&s->chunks);
}

/* --- files ------------------------------------------------------------------------------------ */

/* An empty file has bytes too: not NULL. */
static uint8_t *new_memory(uint64_t n_bytes)
{
    if (n_bytes < OWN_PAGES_BYTES)
        return malloc(n_bytes > 0 ? n_bytes : 1);
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void free_memory(uint8_t *memory, uint64_t n_bytes)
{
    if (memory && n_bytes >= OWN_PAGES_BYTES)
        munmap(memory, n_bytes);
    else
        free(memory);
}

/* Count `n_bytes` more of contents in memory. Returns false, without counting, if the total would
 * exceed `most`. */
static bool reserve(struct nj_file_store *s, uint64_t n_bytes, uint64_t most)
{
    _Atomic uint64_t *all = &s->shared.stats.whole_bytes;
    uint64_t n = nj_load_relaxed(all);

    do {
        uint64_t others = nj_load_relaxed(&s->shared.stats.chunk_bytes);
        if (most != UINT64_MAX && n + n_bytes + others > most)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(all, &n, n + n_bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static struct nj_file_store *store_of(const struct nj__file *f)
{
    return nj_container_of(f->shared, struct nj_file_store, shared);
}

static void detach_file(struct nj__deferred *g)
{
    struct nj__file *f = nj_container_of(g, struct nj__file, deferred);

    nj__chunks_drop_file(f);
    nj_add_relaxed(&store_of(f)->n_files, -1u);
    if (f->memory)
        nj__file_stat_add(&f->shared->stats.whole_bytes, -(int64_t)f->id.version.size_bytes);
    nj__store_queue_free_at_unlock(f->shared, g);
}

static void free_file(struct nj__deferred *g)
{
    struct nj__file *f = nj_container_of(g, struct nj__file, deferred);

    if (f->fd >= 0) {
        close(f->fd);
        nj_add_relaxed(&store_of(f)->n_closed, 1);
    }
    free_memory(f->memory, f->id.version.size_bytes);
    free(f);
}

/* Runs on any thread, lcores included: no system calls. */
static void on_last_file_ref(struct nj_ref *ref)
{
    struct nj_file_object *o = nj_container_of(ref, struct nj_file_object, ref);
    struct nj__file *f = nj_container_of(o, struct nj__file, object);

    nj__store_defer_free(f->shared, &f->deferred);
}

static struct nj__file *new_file(struct nj_file_store *s, const struct nj__file_id *id)
{
    struct nj__file *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    nj_ref_init(&f->object.ref, on_last_file_ref);
    f->object.size_bytes = id->version.size_bytes;
    f->object.version = id->version;
    f->deferred.detach = detach_file;
    f->deferred.free = free_file;
    f->deferred.may_block = true;
    f->shared = &s->shared;
    f->id = *id;
    f->fd = -1;
    nj_list_init(&f->hash_node);
    nj_list_init(&f->lru_node);
    nj_list_init(&f->open);
    nj_list_init(&f->chunk_list);
    nj_add_relaxed(&s->n_files, 1);
    return f;
}

/* A file with memory for its contents; id->version.size_bytes bytes are reserved. Returns NULL
 * without memory, and releases the reservation. */
static struct nj__file *new_whole(struct nj_file_store *s, const struct nj__file_id *id)
{
    struct nj__file *f = new_file(s, id);

    if (f)
        f->memory = new_memory(id->version.size_bytes);
    if (f && f->memory)
        return f;
    nj__file_stat_add(&s->shared.stats.whole_bytes, -(int64_t)id->version.size_bytes);
    if (f)
        nj_ref_put(&f->object.ref);
    return NULL;
}

/* Read a whole file. `id` is its identity before the read; its bytes are reserved. */
static enum nj_file_result read_whole(struct nj_file_store *s, int fd, const struct nj__file_id *id,
                                      struct nj__file **out)
{
    bool racy = nj__file_is_racy(&id->version);
    struct nj__file *f = new_whole(s, id);
    if (!f)
        return NJ_FILE_NO_MEMORY;
    struct stat st;
    bool ok = nj__file_pread_exact(fd, f->memory, id->version.size_bytes, 0);
    /* A change during the read may have left the times as they are, but not the bytes. */
    ok = ok && (!racy || nj__file_still_has(fd, f->memory, id->version.size_bytes)) &&
         fstat(fd, &st) == 0;
    if (ok) {
        struct nj__file_id after = nj__file_id(&st);
        ok = nj_file_version_eq(&after.version, &id->version);
    }
    if (!ok) {
        nj_ref_put(&f->object.ref);
        return NJ_FILE_BROKEN;
    }
    f->object.bytes = f->memory;
    f->object.is_racy = racy;
    *out = f;
    return NJ_FILE_OK;
}

/* Evict some of the least used open files. Returns true if all have been examined. */
static bool evict_open_files(struct nj_file_store *s, uint32_t n_looks)
{
    nj__store_lock(&s->shared);
    bool is_round = n_looks >= s->cache.n_open;
    nj__file_cache_evict_large(&s->cache, FDS_EVICTED);
    nj__store_unlock_and_free(&s->shared);
    return is_round;
}

/* Close files that wait for their free, then cached ones. Returns false if all are in use. */
static bool free_descriptors(struct nj_file_store *s)
{
    uint64_t n = atomic_load(&s->n_closed);
    bool is_round = false;

    nj_file_store_free_unreferenced(s);
    for (uint32_t i = 1; !is_round && atomic_load(&s->n_closed) == n; i++) {
        is_round = evict_open_files(s, i * NJ__FILE_SCAN_MAX);
        nj_file_store_free_unreferenced(s);
    }
    return atomic_load(&s->n_closed) != n;
}

/* Large files may use all descriptors but the reserved ones. Returns false if only a reserved one
 * is free. */
static bool may_keep_open(struct nj_file_store *s, int *fd)
{
    if (!nj__fds_is_reserved(*fd, s->n_reserved_fds))
        return true;
    int lower = free_descriptors(s) ? fcntl(*fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (lower < 0)
        return false;
    close(*fd);
    *fd = lower;
    return !nj__fds_is_reserved(lower, s->n_reserved_fds);
}

/* Takes ownership of `fd` on success. A file that changes all the time is not settled at any OPEN:
 * its readers would keep the workers asleep. */
static enum nj_file_result keep_open(struct nj_file_store *s, int fd, const struct nj__file_id *id,
                                     struct nj__file **out)
{
    if (nj__file_is_unsettled(&id->version))
        return NJ_FILE_UNSETTLED;
    struct nj__file *f = new_file(s, id);
    if (!f)
        return NJ_FILE_NO_MEMORY;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    f->fd = fd;
    f->seen = *id;
    f->object.is_racy = nj__file_is_racy(&id->version);
    f->is_local = nj__file_is_local(fd);
    atomic_init(&f->is_settled, !f->object.is_racy);
    *out = f;
    return NJ_FILE_OK;
}

static uint64_t whole_bytes_max(const struct nj_file_store *s)
{
    return s->shared.policy.n_bytes_max + LENT_BYTES_MAX;
}

/* Is the file to be read whole? If so, its bytes are reserved. */
static bool reserve_whole(struct nj_file_store *s, uint64_t n_bytes)
{
    if (n_bytes <= NJ_CHUNK_BYTES)
        return reserve(s, n_bytes, UINT64_MAX);
    return n_bytes <= NJ_OBJECT_IN_MEMORY_MAX && reserve(s, n_bytes, whole_bytes_max(s));
}

/* Make an object of an open regular file. Closes `fd` unless the object keeps it. */
static enum nj_file_result load(struct nj_file_store *s, int fd, const struct stat *st,
                                struct nj__file **out)
{
    struct nj__file_id id = nj__file_id(st);
    enum nj_file_result r = NJ_FILE_BROKEN;

    /* A file that changes while it is read is read again, once. */
    for (int i = 0; i < 2 && r == NJ_FILE_BROKEN; i++) {
        struct stat now;
        if (i > 0 && fstat(fd, &now) == 0)
            id = nj__file_id(&now);
        if (!reserve_whole(s, id.version.size_bytes)) {
            r = may_keep_open(s, &fd) ? keep_open(s, fd, &id, out) : NJ_FILE_NO_MEMORY;
            if (r == NJ_FILE_OK)
                return r;
        } else {
            r = read_whole(s, fd, &id, out);
        }
    }
    close(fd);
    return r;
}

static int open_file(struct nj_file_store *s, const char *path)
{
    uint64_t flags = O_RDONLY | O_NONBLOCK | O_NOCTTY; /* a FIFO or a terminal must not block */
    int fd = nj__root_openat(&s->root, path, flags);

    while (fd < 0 && (errno == EMFILE || errno == ENFILE) && free_descriptors(s))
        fd = nj__root_openat(&s->root, path, flags);
    return fd;
}

/* Another process may hold a write lease of the file (F_SETLEASE of fcntl(2)), as Samba does. The
 * first open asks it to return the lease, which usually takes some milliseconds: only then the next
 * one succeeds. */
static int open_leased_file(struct nj_file_store *s, const char *path)
{
    int fd = open_file(s, path);

    for (uint32_t ms = 1; fd < 0 && errno == EAGAIN && ms <= LEASE_WAIT_MAX_MS; ms *= 2) {
        const struct timespec wait = {.tv_nsec = ms * NJ_MS};
        nanosleep(&wait, NULL);
        fd = open_file(s, path);
    }
    return fd;
}

/* With the lock: the cached file of `path`, with a reference for the caller, if it matches `now`
 * and is readable; else it is removed from the cache. */
static struct nj__file *find_valid(struct nj_file_store *s, const char *path,
                                   const struct nj_file_version *now)
{
    struct nj__file *kept = nj__file_cache_find(&s->cache, path);
    if (!kept)
        return NULL;
    if (!kept->object.is_racy && !kept->has_changed && nj_file_version_eq(&kept->id.version, now)) {
        nj__file_cache_touch(&s->cache, kept);
        nj_ref_take(&kept->object.ref);
        return kept;
    }
    nj__file_cache_remove(&s->cache, kept);
    return NULL;
}

static struct nj__file *find(struct nj_file_store *s, const char *path, const struct stat *st)
{
    struct nj__file_id now = nj__file_id(st);

    nj__store_lock(&s->shared);
    struct nj__file *f = find_valid(s, path, &now.version);
    nj__store_unlock_and_free(&s->shared);
    nj__file_stat_add(f ? &s->shared.stats.hits : &s->shared.stats.misses, 1);
    return f;
}

/* Cache and return a new file; or drop it for the same file if another thread cached that. */
static struct nj__file *add_to_cache(struct nj_file_store *s, const char *path, struct nj__file *f)
{
    nj__store_lock(&s->shared);
    struct nj__file *other = find_valid(s, path, &f->id.version);
    if (!other)
        nj__file_cache_add(&s->cache, path, f);
    nj__store_unlock_and_free(&s->shared);
    if (!other)
        return f;
    nj_ref_put(&f->object.ref);
    return other;
}

/* The file is gone or unreadable: remove its cached copy. */
static void drop_failed(struct nj_file_store *s, const char *path, enum nj_file_result r)
{
    if (r == NJ_FILE_NO_MEMORY)
        return;
    nj__store_lock(&s->shared);
    struct nj__file *kept = nj__file_cache_find(&s->cache, path);
    if (kept)
        nj__file_cache_remove(&s->cache, kept);
    nj__store_unlock_and_free(&s->shared);
}

/* May the folder be entered? Its files may be readable though its names cannot be listed. */
static bool is_open_folder(struct nj_file_store *s, const char *path)
{
    char inside[NJ_PATH_MAX];
    int n = snprintf(inside, sizeof inside, "%s/.", path);

    if (n < 0 || (size_t)n >= sizeof inside)
        return false;
    int fd = nj__root_openat(&s->root, inside, O_PATH | O_DIRECTORY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Look at the open file `fd`, or at the errno of its open. Closes `fd` unless the result is OK. */
static enum nj_file_result check_regular(struct nj_file_store *s, const char *path, int fd,
                                         struct stat *st)
{
    enum nj_file_result r = NJ_FILE_OK;

    if (fd < 0) {
        r = nj__open_result_of_errno(errno);
        return r == NJ_FILE_DENIED && is_open_folder(s, path) ? NJ_FILE_IS_DIR : r;
    }

    if (fstat(fd, st) < 0)
        r = NJ_FILE_BROKEN;
    else if (!S_ISREG(st->st_mode))
        r = S_ISDIR(st->st_mode) ? NJ_FILE_IS_DIR : NJ_FILE_ABSENT;
    if (r != NJ_FILE_OK)
        close(fd);
    return r;
}

static void find_siblings(struct nj_file_store *s, const struct nj_file_version *file,
                          struct nj_file_job *job)
{
    for (uint32_t i = 0; i < NJ_N_CODINGS; i++) {
        char name[NJ_PATH_MAX];
        struct stat st;
        int n = snprintf(name, sizeof name, "%s%s", job->path, nj_coding_suffix[i].p);
        if (n < 0 || (size_t)n >= sizeof name)
            continue;
        int fd = open_file(s, name);
        if (check_regular(s, name, fd, &st) != NJ_FILE_OK)
            continue;
        close(fd);
        struct nj__file_id sibling = nj__file_id(&st);
        if (!nj_file_version_is_made_from(&sibling.version, file)) {
            nj__file_stat_add(&s->shared.stats.stale_siblings, 1);
            continue;
        }
        job->siblings |= (uint8_t)(1u << i);
        job->sibling_hash[i] = nj_file_version_hash(&sibling.version);
    }
}

static enum nj_file_result open_object(struct nj_file_store *s, struct nj_file_job *job)
{
    struct stat st;
    int64_t now_ns = (int64_t)nj_os_clock_gettime_ns(CLOCK_REALTIME);
    int fd = open_leased_file(s, job->path);
    enum nj_file_result r = check_regular(s, job->path, fd, &st);
    if (r != NJ_FILE_OK) {
        drop_failed(s, job->path, r);
        return r;
    }
    struct nj__file *f = find(s, job->path, &st);
    if (f) {
        close(fd);
    } else {
        r = load(s, fd, &st, &f);
        if (r != NJ_FILE_OK)
            return r;
        f = add_to_cache(s, job->path, f);
    }
    job->object = &f->object;
    job->current_at_ns = nj__file_current_at(&f->id.version, now_ns);
    if (job->wants_siblings)
        find_siblings(s, &f->id.version, job);
    return r;
}

/* --- listings --------------------------------------------------------------------------------- */

/* An uncached page in memory. */
static enum nj_file_result new_page(struct nj_file_store *s, const struct nj_listing *l, bool json,
                                    struct nj_file_object **out)
{
    struct nj__file_id id = {.version = NJ_FILE_NO_VERSION};
    id.version.size_bytes = nj_listing_render(l, json, NULL, 0);
    if (id.version.size_bytes > NJ_DIR_PAGE_BYTES)
        return NJ_FILE_BROKEN;
    if (!reserve(s, id.version.size_bytes, whole_bytes_max(s)))
        return NJ_FILE_NO_MEMORY;
    struct nj__file *f = new_whole(s, &id);
    if (!f)
        return NJ_FILE_NO_MEMORY;
    nj_listing_render(l, json, (char *)f->memory, id.version.size_bytes);
    f->object.bytes = f->memory;
    *out = &f->object;
    return NJ_FILE_OK;
}

static enum nj_file_result list_folder(struct nj_file_store *s, struct nj_file_job *job)
{
    struct nj_listing l;
    nj__file_stat_add(&s->shared.stats.listings, 1);
    int err = nj__dir_read(&s->root, job->path, &l);

    while ((err == EMFILE || err == ENFILE) && free_descriptors(s)) {
        nj__dir_free(&l);
        err = nj__dir_read(&s->root, job->path, &l);
    }
    if (job->path[0] == '/')
        l.path = job->path + strlen(job->path) + 1;
    enum nj_file_result r =
        err ? nj__open_result_of_errno(err) : new_page(s, &l, job->json, &job->object);
    if (r == NJ_FILE_BROKEN)
        nj__file_stat_add(&s->shared.stats.listings_failed, 1);
    nj__dir_free(&l);
    return r;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static enum nj_file_result read_chunk(struct nj_file_store *s, struct nj_file_job *job)
{
    struct nj__file *f = nj_container_of(job->object, struct nj__file, object);

    NJ_ASSERT(f->shared == &s->shared && f->fd >= 0);
    NJ_ASSERT(job->n_bytes > 0 && job->n_bytes <= NJ_CHUNK_BYTES);
    NJ_ASSERT(job->offset < f->object.size_bytes);
    return nj__chunks_do_read_blocking(&s->chunks, f, job);
}

static bool drop_rights(const struct nj_file_store *s)
{
    return !s->drop_rights || nj_file_rights_drop();
}

/* The process may have become root again during the job. */
static void discard_if_rights_are_back(const struct nj_file_store *s, struct nj_file_job *job)
{
    if (!s->drop_rights || job->result != NJ_FILE_OK || nj_file_rights_are_dropped())
        return;
    nj_ref_put(&job->object->ref);
    job->object = NULL;
    job->result = NJ_FILE_BROKEN;
}

void nj_file_store_do_job(void *store, struct nj_file_job *job)
{
    struct nj_file_store *s = store;

    switch (job->op) {
    case NJ_FILE_OPEN:
        job->object = NULL;
        job->siblings = 0;
        job->result = drop_rights(s) ? open_object(s, job) : NJ_FILE_DENIED;
        discard_if_rights_are_back(s, job);
        return;
    case NJ_FILE_LIST:
        job->object = NULL;
        job->result = drop_rights(s) ? list_folder(s, job) : NJ_FILE_DENIED;
        discard_if_rights_are_back(s, job);
        return;
    case NJ_FILE_READ:
        job->chunk = NULL;
        job->result = read_chunk(s, job);
        return;
    }
    NJ_UNREACHABLE("an operation");
}

bool nj_file_store_is_root(const struct nj_file_store *s, const struct stat *folder)
{
    struct stat st;

    return fstat(s->root.fd, &st) == 0 && st.st_dev == folder->st_dev &&
           st.st_ino == folder->st_ino;
}

uint32_t nj_file_store_close(struct nj_file_store *s)
{
    nj__store_lock(&s->shared);
    nj__file_cache_clear(&s->cache);
    nj__store_unlink_unreferenced(&s->shared);
    nj__chunks_clear(&s->chunks);
    nj__store_unlock_and_free(&s->shared);
    nj__store_run_blocking_frees(&s->shared);
    nj__root_close(&s->root);
    uint32_t n = nj_file_store_count_held_objects(s);
    if (n == 0) {
        nj__chunks_fini(&s->chunks);
        nj__store_fini(&s->shared);
        nj_pages_unmap(s, sizeof *s);
    }
    return n;
}
