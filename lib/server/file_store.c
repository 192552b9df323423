/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, reading and freeing of files on the worker's thread. */
#include "server/file_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/pages.h"
#include "http/listing.h"
#include "http/negotiate.h"
#include "server/file_cache.h"
#include "server/file_chunks.h"
#include "server/file_list.h"
#include "server/file_read.h"
#include "server/file_rights.h"
#include "server/file_root.h"

/* Contents of whole files beyond the cache's budget, held for peers who are slow to take them. When
 * that is used up, files larger than a chunk are read in chunks. */
#define LENT_BYTES_MAX  (256u * 1024u * 1024u)
/* From here on contents get pages of their own, which go back to the system when they are freed. */
#define OWN_PAGES_BYTES (128u * 1024u)
/* Descriptors that large files leave: for the others' moment of being looked at (a walk over links
 * holds up to 64 folders), lists of folders, the policy, the log and telemetry. */
#define SPARE_FDS       96u

struct nj_file_store {
    struct nj__root root;
    bool as_others;
    struct nj_file_store_stats stats;
    _Atomic uint32_t n_files; /* written by the worker only */
    struct nj__graveyard dead;
    uint64_t n_whole_bytes; /* of contents in memory, cached or only lent */
    struct nj__file_cache cache;
    time_t looked_at_s;
    struct nj__chunks chunks;
};

int nj_file_store_open(const struct nj_file_store_options *options, struct nj_file_store **out,
                       char *err, size_t n_err)
{
    struct nj_hash_key key;
    struct nj__root root;
    int rc = nj__root_open(&root, options->root, options->symlinks, err, n_err);
    if (rc < 0)
        return rc;

    struct nj_file_store *s = nj_pages_map(sizeof *s, 0); /* has keys */
    if (!s || getrandom(key.b, sizeof key.b, 0) != sizeof key.b) {
        nj_pages_unmap(s, sizeof *s);
        nj__root_close(&root);
        snprintf(err, n_err, "%s: can't set up the file cache: out of memory", options->root);
        return -ENOMEM;
    }
    s->root = root;
    s->as_others = options->as_others;
    nj__file_cache_init(&s->cache, &key, options->cache_bytes, &s->stats);
    nj__chunks_init(&s->chunks, &key, options->cache_bytes, &s->dead, &s->stats);
    explicit_bzero(&key, sizeof key);
    *out = s;
    return 0;
}

static void count_files(struct nj_file_store *s, int by)
{
    uint32_t n = atomic_load_explicit(&s->n_files, memory_order_relaxed);
    atomic_store_explicit(&s->n_files, n + (uint32_t)by, memory_order_relaxed);
}

uint32_t nj_file_store_objects(const struct nj_file_store *s)
{
    return atomic_load_explicit(&s->n_files, memory_order_relaxed) +
           atomic_load_explicit(&s->chunks.n_lent, memory_order_relaxed);
}

bool nj_file_store_has_room(struct nj_file_store *s, uint64_t seen)
{
    return atomic_load_explicit(&s->stats.chunk_returns, memory_order_relaxed) != seen ||
           !nj__graveyard_is_empty(&s->dead);
}

const struct nj_file_store_stats *nj_file_store_stats(const struct nj_file_store *s)
{
    return &s->stats;
}

static bool is_deleted(const struct nj__file *f)
{
    struct stat st;

    return fstat(f->fd, &st) == 0 && st.st_nlink == 0;
}

static void drop_deleted(struct nj_file_store *s, int64_t now_s)
{
    struct nj__file *f;

    while ((f = nj__file_cache_due(&s->cache, now_s))) {
        if (is_deleted(f))
            nj__file_cache_drop(&s->cache, f);
        nj_ref_put(&f->object.ref);
    }
}

void nj_file_store_tidy(void *store)
{
    struct nj_file_store *s = store;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != s->looked_at_s)
        drop_deleted(s, now.tv_sec);
    s->looked_at_s = now.tv_sec;
    nj__graveyard_clear(&s->dead);
}

/* Files. */

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

static void count_whole(struct nj_file_store *s, int64_t by)
{
    s->n_whole_bytes += (uint64_t)by;
    nj__file_stat_add(&s->stats.whole_bytes, by);
}

static void bury_file(struct nj__grave *g)
{
    struct nj__file *f = nj_container_of(g, struct nj__file, grave);

    nj__chunks_forget(&f->store->chunks, f);
    count_files(f->store, -1);
    if (f->fd >= 0)
        close(f->fd);
    if (f->memory)
        count_whole(f->store, -(int64_t)f->id.size);
    free_memory(f->memory, f->id.size);
    free(f);
}

/* On whatever thread had the last reference: no system call here. */
static void last_of_file(struct nj_ref *ref)
{
    struct nj_object *o = nj_container_of(ref, struct nj_object, ref);
    struct nj__file *f = nj_container_of(o, struct nj__file, object);

    nj__graveyard_push(&f->store->dead, &f->grave);
}

static struct nj__file *new_file(struct nj_file_store *s, const struct nj__file_id *id)
{
    struct nj__file *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    nj_ref_init(&f->object.ref, last_of_file);
    f->object.size_bytes = id->size;
    f->object.mtime_ns = id->mtime_ns;
    f->grave.bury = bury_file;
    f->store = s;
    f->id = *id;
    f->fd = -1;
    nj_list_init(&f->chain);
    nj_list_init(&f->used);
    nj_list_init(&f->open);
    nj_list_init(&f->pieces);
    count_files(s, 1);
    return f;
}

/* Read a small file whole. `id` is its identity before. OK with *out, or the reason. */
static enum nj_file_result read_whole(struct nj_file_store *s, int fd, const struct nj__file_id *id,
                                      struct nj__file **out)
{
    bool racy = nj__file_is_racy(id);
    struct nj__file *f = new_file(s, id);
    if (!f)
        return NJ_FILE_NO_MEMORY;
    f->memory = new_memory(id->size);
    if (!f->memory) {
        nj_ref_put(&f->object.ref);
        return NJ_FILE_NO_MEMORY;
    }
    count_whole(s, (int64_t)id->size);
    struct stat st;
    bool ok = nj__file_read(fd, f->memory, id->size, 0) && fstat(fd, &st) == 0;
    if (ok) {
        struct nj__file_id after = nj__file_id(&st);
        ok = nj__file_id_eq(&after, id);
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

/* Descriptors wait in the cache and in the graveyard. False: there was nothing to give up. */
static bool give_up_descriptors(struct nj_file_store *s)
{
    uint32_t n = nj_file_store_objects(s);

    nj__file_cache_drop_open(&s->cache);
    nj__graveyard_clear(&s->dead);
    return nj_file_store_objects(s) < n;
}

/* The lowest free one is given out: so many are in use as its number says. */
static bool is_to_spare(int fd)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    rlim_t spare = limit.rlim_cur / 4 < SPARE_FDS ? limit.rlim_cur / 4 : SPARE_FDS;
    return (rlim_t)fd >= limit.rlim_cur - spare;
}

/* Readers of large files have all descriptors but those that others need from moment to moment.
 * False: this one has to be one of those. */
static bool may_keep_open(struct nj_file_store *s, int *fd)
{
    if (!is_to_spare(*fd))
        return true;
    int lower = give_up_descriptors(s) ? fcntl(*fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (lower < 0)
        return false;
    close(*fd);
    *fd = lower;
    return !is_to_spare(lower);
}

/* Takes `fd` on success. */
static enum nj_file_result keep_open(struct nj_file_store *s, int fd, const struct nj__file_id *id,
                                     struct nj__file **out)
{
    struct nj__file *f = new_file(s, id);
    if (!f)
        return NJ_FILE_NO_MEMORY;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    f->fd = fd;
    f->seen = *id;
    f->object.is_racy = nj__file_is_racy(id);
    *out = f;
    return NJ_FILE_OK;
}

static bool goes_in_whole(const struct nj_file_store *s, uint64_t n_bytes)
{
    if (n_bytes <= NJ_CHUNK_BYTES)
        return true;
    return n_bytes <= NJ_OBJECT_WHOLE_MAX &&
           s->n_whole_bytes + n_bytes <= s->cache.cost_max + LENT_BYTES_MAX;
}

/* Make an object of an open regular file. Closes `fd` unless the object keeps it. */
static enum nj_file_result load(struct nj_file_store *s, int fd, const struct stat *st,
                                struct nj__file **out)
{
    struct nj__file_id id = nj__file_id(st);
    enum nj_file_result r = NJ_FILE_BROKEN;

    /* A file that changes while it is read gets a second chance, not a third. */
    for (int i = 0; i < 2 && r == NJ_FILE_BROKEN; i++) {
        struct stat now;
        if (i > 0 && fstat(fd, &now) == 0)
            id = nj__file_id(&now);
        if (!goes_in_whole(s, id.size)) {
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

static enum nj_file_result result_of_errno(int err)
{
    switch (err) {
    case EACCES:
    case EPERM:
        return NJ_FILE_DENIED;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return NJ_FILE_NO_MEMORY;
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:  /* too many links, or a magic one */
    case EXDEV:  /* the name leaves the root */
    case ENXIO:  /* a socket */
    case ENODEV: /* a device without a driver */
    case EINVAL:
        return NJ_FILE_ABSENT;
    default:
        return NJ_FILE_BROKEN;
    }
}

static int open_file(struct nj_file_store *s, const char *path)
{
    uint64_t flags = O_RDONLY | O_NONBLOCK | O_NOCTTY; /* a FIFO or a terminal can't hold us */
    int fd = nj__root_get(&s->root, path, flags);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && give_up_descriptors(s))
        fd = nj__root_get(&s->root, path, flags);
    return fd;
}

/* The object kept for `path`, if it is still the file that is open now; else it is let go. */
static struct nj__file *still_good(struct nj_file_store *s, const char *path, const struct stat *st)
{
    struct nj__file *kept = nj__file_cache_find(&s->cache, path);
    if (!kept)
        return NULL;
    struct nj__file_id now = nj__file_id(st);
    if (!kept->object.is_racy && nj__file_id_eq(&kept->id, &now)) {
        nj__file_cache_used(&s->cache, kept);
        return kept;
    }
    nj__file_cache_drop(&s->cache, kept);
    return NULL;
}

/* There is no such file any more, or nobody may read it. */
static void let_go(struct nj_file_store *s, const char *path, enum nj_file_result r)
{
    struct nj__file *kept = nj__file_cache_find(&s->cache, path);

    if (kept && r != NJ_FILE_NO_MEMORY)
        nj__file_cache_drop(&s->cache, kept);
}

/* A folder that may be entered: what is in it may be readable though its list of names is not. */
static bool is_open_folder(struct nj_file_store *s, const char *path)
{
    char inside[NJ_PATH_MAX];
    int n = snprintf(inside, sizeof inside, "%s/.", path);

    if (n < 0 || (size_t)n >= sizeof inside)
        return false;
    int fd = nj__root_get(&s->root, inside, O_PATH | O_DIRECTORY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Open a regular file and look at it. */
static enum nj_file_result open_regular(struct nj_file_store *s, const char *path, int *out,
                                        struct stat *st)
{
    enum nj_file_result r = NJ_FILE_OK;
    int fd = open_file(s, path);
    if (fd < 0) {
        r = result_of_errno(errno);
        return r == NJ_FILE_DENIED && is_open_folder(s, path) ? NJ_FILE_IS_DIR : r;
    }

    if (fstat(fd, st) < 0)
        r = NJ_FILE_BROKEN;
    else if (!S_ISREG(st->st_mode))
        r = S_ISDIR(st->st_mode) ? NJ_FILE_IS_DIR : NJ_FILE_ABSENT;
    if (r == NJ_FILE_OK)
        *out = fd;
    else
        close(fd);
    return r;
}

/* A sibling counts that was not changed before the file was. Some tools that give it the time of
 * its original, brotli(1) among them, only know whole seconds. */
static bool is_fresh(const struct stat *sibling, const struct stat *file)
{
    const struct timespec *a = &sibling->st_mtim, *b = &file->st_mtim;

    if (a->tv_sec != b->tv_sec)
        return a->tv_sec > b->tv_sec;
    return a->tv_nsec >= b->tv_nsec || a->tv_nsec == 0;
}

static uint8_t find_siblings(struct nj_file_store *s, const char *path, const struct stat *st)
{
    uint8_t found = 0;

    for (uint32_t i = 0; i < NJ_N_CODINGS; i++) {
        char name[NJ_PATH_MAX];
        struct stat sibling;
        int fd, n = snprintf(name, sizeof name, "%s%s", path, nj_coding_suffix(i).p);
        if (n < 0 || (size_t)n >= sizeof name || open_regular(s, name, &fd, &sibling) != NJ_FILE_OK)
            continue;
        close(fd);
        if (is_fresh(&sibling, st))
            found |= (uint8_t)(1u << i);
    }
    return found;
}

static enum nj_file_result open_object(struct nj_file_store *s, struct nj_file_job *job)
{
    struct stat st;
    int fd;
    enum nj_file_result r = open_regular(s, job->path, &fd, &st);
    if (r != NJ_FILE_OK) {
        let_go(s, job->path, r);
        return r;
    }
    struct nj__file *f = still_good(s, job->path, &st);
    nj__file_stat_add(f ? &s->stats.hits : &s->stats.misses, 1);
    if (f) {
        close(fd);
        nj_ref_take(&f->object.ref);
    } else {
        r = load(s, fd, &st, &f);
        if (r != NJ_FILE_OK)
            return r;
        nj__file_cache_add(&s->cache, job->path, f);
    }
    job->object = &f->object;
    if (job->wants_siblings)
        job->siblings = find_siblings(s, job->path, &st);
    return r;
}

/* Listings. */

/* A page in memory, made for this job; no cache of ours keeps it. */
static enum nj_file_result new_page(struct nj_file_store *s, const struct nj_listing *l, bool json,
                                    struct nj_object **out)
{
    struct nj__file_id id = {.size = nj_listing_render(l, json, NULL, 0)};
    if (s->n_whole_bytes + id.size > s->cache.cost_max + LENT_BYTES_MAX)
        return NJ_FILE_NO_MEMORY;
    struct nj__file *f = new_file(s, &id);
    if (!f)
        return NJ_FILE_NO_MEMORY;
    f->memory = new_memory(id.size);
    if (!f->memory) {
        nj_ref_put(&f->object.ref);
        return NJ_FILE_NO_MEMORY;
    }
    count_whole(s, (int64_t)id.size);
    nj_listing_render(l, json, (char *)f->memory, id.size);
    f->object.bytes = f->memory;
    f->object.mtime_ns = NJ_OBJECT_NO_TIME;
    *out = &f->object;
    return NJ_FILE_OK;
}

static enum nj_file_result list_folder(struct nj_file_store *s, struct nj_file_job *job)
{
    struct nj_listing l;
    nj__file_stat_add(&s->stats.listings, 1);
    int err = nj__list_read(&s->root, job->path, &l);

    if ((err == EMFILE || err == ENFILE) && give_up_descriptors(s)) {
        nj__list_free(&l);
        err = nj__list_read(&s->root, job->path, &l);
    }
    enum nj_file_result r = err ? result_of_errno(err) : new_page(s, &l, job->json, &job->object);
    nj__list_free(&l);
    return r;
}

/* Chunks. */

static enum nj_file_result read_chunk(struct nj_file_store *s, struct nj_file_job *job)
{
    struct nj__file *f = nj_container_of(job->object, struct nj__file, object);

    NJ_ASSERT(f->store == s && f->fd >= 0);
    NJ_ASSERT(job->n_bytes > 0 && job->n_bytes <= NJ_CHUNK_BYTES);
    NJ_ASSERT(job->offset < f->object.size_bytes);
    job->seen = atomic_load_explicit(&s->stats.chunk_returns, memory_order_relaxed);
    return nj__chunks_get(&s->chunks, f, job->offset, job->n_bytes, &job->chunk);
}

static bool may_look(const struct nj_file_store *s)
{
    return !s->as_others || nj_file_rights_use_others();
}

void nj_file_store_run(void *store, struct nj_file_job *job)
{
    struct nj_file_store *s = store;

    switch (job->op) {
    case NJ_FILE_OPEN:
        job->object = NULL;
        job->siblings = 0;
        job->result = may_look(s) ? open_object(s, job) : NJ_FILE_DENIED;
        return;
    case NJ_FILE_LIST:
        job->object = NULL;
        job->result = may_look(s) ? list_folder(s, job) : NJ_FILE_DENIED;
        return;
    case NJ_FILE_READ:
        job->chunk = NULL;
        job->result = read_chunk(s, job);
        return;
    }
    NJ_UNREACHABLE("an operation");
}

uint32_t nj_file_store_close(struct nj_file_store *s)
{
    nj__file_cache_clear(&s->cache);
    nj__graveyard_clear(&s->dead);
    nj__chunks_clear(&s->chunks);
    nj__root_close(&s->root);
    uint32_t n = nj_file_store_objects(s);
    if (n == 0)
        nj_pages_unmap(s, sizeof *s);
    return n;
}
