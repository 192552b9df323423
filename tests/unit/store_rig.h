/* SPDX-License-Identifier: BSD-3-Clause */
/* A file store over a real folder in /tmp, for the tests of its parts. */
#pragma once

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "store/file_store.h"
#include "support/scratch.h"

#define MIB (1024u * 1024u)

struct bench {
    char root[80]; /* a folder in the scratch folder */
    struct nj_file_store *store;
    struct nj_file_job job;
};

static inline void begin_with(struct bench *b, uint64_t cache_bytes, enum nj_symlinks symlinks)
{
    char err[256];
    memset(b, 0, sizeof *b);
    scratch_make();
    snprintf(b->root, sizeof b->root, "%s/root", scratch);
    cr_assert_eq(mkdir(b->root, 0755), 0);
    struct nj_file_store_options o = {
        .root = b->root, .cache_bytes = cache_bytes, .symlinks = symlinks};
    cr_assert_eq(nj_file_store_open(&o, &b->store, err, sizeof err), 0, "%s", err);
}

static inline void begin(struct bench *b, uint64_t cache_bytes)
{
    begin_with(b, cache_bytes, NJ_SYMLINKS_BENEATH);
}

static inline void end(struct bench *b)
{
    cr_expect_eq(nj_file_store_close(b->store), 0, "objects leaked");
    scratch_remove();
}

static inline const char *at(struct bench *b, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", b->root, name);
    return path;
}

static inline void write_file(struct bench *b, const char *name, const void *data, size_t n_bytes)
{
    FILE *f = fopen(at(b, name), "w");
    cr_assert(f);
    cr_assert_eq(fwrite(data, 1, n_bytes, f), n_bytes);
    fclose(f);
}

static inline void sparse_file(struct bench *b, const char *name, off_t n_bytes)
{
    write_file(b, name, "", 0);
    cr_assert_eq(truncate(at(b, name), n_bytes), 0);
}

static inline enum nj_file_result open_job(struct bench *b, const char *name)
{
    memset(&b->job, 0, sizeof b->job);
    b->job.op = NJ_FILE_OPEN;
    strcpy(b->job.path, name);
    nj_file_store_do_job(b->store, &b->job);
    cr_assert_eq(b->job.object != NULL, b->job.result == NJ_FILE_OK);
    return b->job.result;
}

/* Open and let go. */
static inline enum nj_file_result peek(struct bench *b, const char *name)
{
    enum nj_file_result r = open_job(b, name);
    if (b->job.object)
        nj_ref_put(&b->job.object->ref);
    nj_file_store_run_housekeeping(b->store);
    return r;
}

static inline void expect_text(struct bench *b, const char *name, const char *want)
{
    cr_assert_eq(open_job(b, name), NJ_FILE_OK, "%s", name);
    cr_assert_eq(b->job.object->size_bytes, strlen(want));
    cr_assert(b->job.object->bytes);
    cr_expect_eq(memcmp(b->job.object->bytes, want, strlen(want)), 0, "%s", name);
    nj_ref_put(&b->job.object->ref);
}

/* A READ; its chunk, if there is one, covers the first requested byte. */
static inline enum nj_file_result read_job(struct bench *b, struct nj_file_object *o,
                                           uint64_t offset, uint32_t n)
{
    b->job = (struct nj_file_job){.op = NJ_FILE_READ, .object = o, .offset = offset, .n_bytes = n};
    nj_file_store_do_job(b->store, &b->job);
    cr_assert_eq(b->job.chunk != NULL, b->job.result == NJ_FILE_OK);
    const struct nj_file_chunk *c = b->job.chunk;
    cr_assert(!c || (c->offset <= offset && c->offset + c->n_bytes > offset));
    return b->job.result;
}

/* The byte at `offset` in the result of the last READ. */
static inline const uint8_t *byte_at(const struct bench *b, uint64_t offset)
{
    return b->job.chunk->bytes + (offset - b->job.chunk->offset);
}

static inline void set_mtime(struct bench *b, const char *name, int64_t ns)
{
    struct timespec ts[2] = {{0, UTIME_OMIT}, {ns / 1000000000, ns % 1000000000}};
    cr_assert_eq(utimensat(AT_FDCWD, at(b, name), ts, 0), 0);
}

/* Wait until the last change of `name` is not recent any more. */
static inline void wait_for_tick(struct bench *b, const char *name)
{
    bool is_racy;
    do {
        cr_assert_eq(open_job(b, name), NJ_FILE_OK);
        is_racy = b->job.object->is_racy;
        nj_ref_put(&b->job.object->ref);
        nj_file_store_run_housekeeping(b->store);
    } while (is_racy);
}

/* An old file of 32 MiB of zeros with "mark" in the middle. */
static inline struct nj_file_object *open_large(struct bench *b, const char *name)
{
    sparse_file(b, name, 2 * NJ_OBJECT_IN_MEMORY_MAX);
    int fd = open(at(b, name), O_WRONLY);
    cr_assert_eq(pwrite(fd, "mark", 4, NJ_OBJECT_IN_MEMORY_MAX), 4);
    close(fd);
    set_mtime(b, name, 1000000000000000000);
    cr_assert_eq(open_job(b, name), NJ_FILE_OK);
    return b->job.object;
}

static inline const struct nj_file_store_stats *stats(struct bench *b)
{
    return nj_file_store_stats(b->store);
}
