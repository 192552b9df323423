/* SPDX-License-Identifier: BSD-3-Clause */
/* A store over a real folder in /tmp: what may be opened, what is kept, and what change does. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

#include "server/file_store.h"

#define MIB (1024u * 1024u)

struct bench {
    char base[64], root[80]; /* root is a folder in base */
    struct nj_file_store *store;
    struct nj_file_job job;
};

static void begin(struct bench *b, uint64_t cache_bytes)
{
    char err[256];
    memset(b, 0, sizeof *b);
    strcpy(b->base, "/tmp/nj-store-XXXXXX");
    cr_assert(mkdtemp(b->base));
    snprintf(b->root, sizeof b->root, "%s/root", b->base);
    cr_assert_eq(mkdir(b->root, 0755), 0);
    struct nj_file_store_options o = {.root = b->root, .cache_bytes = cache_bytes};
    cr_assert_eq(nj_file_store_open(&o, &b->store, err, sizeof err), 0, "%s", err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void end(struct bench *b)
{
    cr_expect_eq(nj_file_store_close(b->store), 0, "objects leaked");
    nftw(b->base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *at(struct bench *b, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", b->root, name);
    return path;
}

static void write_file(struct bench *b, const char *name, const void *data, size_t n_bytes)
{
    FILE *f = fopen(at(b, name), "w");
    cr_assert(f);
    cr_assert_eq(fwrite(data, 1, n_bytes, f), n_bytes);
    fclose(f);
}

static void sparse_file(struct bench *b, const char *name, off_t n_bytes)
{
    write_file(b, name, "", 0);
    cr_assert_eq(truncate(at(b, name), n_bytes), 0);
}

static enum nj_file_result open_job(struct bench *b, const char *name)
{
    memset(&b->job, 0, sizeof b->job);
    b->job.op = NJ_FILE_OPEN;
    strcpy(b->job.path, name);
    nj_file_store_run(b->store, &b->job);
    cr_assert_eq(b->job.object != NULL, b->job.result == NJ_FILE_OK);
    return b->job.result;
}

/* Open and let go. */
static enum nj_file_result peek(struct bench *b, const char *name)
{
    enum nj_file_result r = open_job(b, name);
    if (b->job.object)
        nj_ref_put(&b->job.object->ref);
    nj_file_store_tidy(b->store);
    return r;
}

static void expect_text(struct bench *b, const char *name, const char *want)
{
    cr_assert_eq(open_job(b, name), NJ_FILE_OK, "%s", name);
    cr_assert_eq(b->job.object->size_bytes, strlen(want));
    cr_assert(b->job.object->bytes);
    cr_expect_eq(memcmp(b->job.object->bytes, want, strlen(want)), 0, "%s", name);
    nj_ref_put(&b->job.object->ref);
}

static enum nj_file_result read_job(struct bench *b, struct nj_object *o, uint64_t offset,
                                    uint32_t n)
{
    b->job = (struct nj_file_job){.op = NJ_FILE_READ, .object = o, .offset = offset, .n_bytes = n};
    nj_file_store_run(b->store, &b->job);
    cr_assert_eq(b->job.chunk != NULL, b->job.result == NJ_FILE_OK);
    return b->job.result;
}

Test(server_file_store, root_errors)
{
    struct nj_file_store *s = NULL;
    char err[256];
    struct nj_file_store_options o = {.root = "/nonexistent/nj", .cache_bytes = 1};
    cr_expect_eq(nj_file_store_open(&o, &s, err, sizeof err), -ENOENT);
    cr_expect(strstr(err, "/nonexistent/nj") && strstr(err, "No such file"), "%s", err);
    o.root = "/etc/passwd";
    cr_expect_eq(nj_file_store_open(&o, &s, err, sizeof err), -ENOTDIR);
    cr_expect(strstr(err, "Not a directory"), "%s", err);
    cr_expect_null(s);
}

Test(server_file_store, kinds)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a.txt", "hello", 5);
    write_file(&b, "empty", "", 0);
    cr_assert_eq(mkdir(at(&b, "dir"), 0755), 0);
    write_file(&b, "dir/b", "nested", 6);
    cr_assert_eq(mkfifo(at(&b, "fifo"), 0644), 0);

    expect_text(&b, "a.txt", "hello");
    expect_text(&b, "dir/b", "nested");
    expect_text(&b, "empty", "");
    cr_expect_eq(peek(&b, "dir"), NJ_FILE_IS_DIR);
    cr_expect_eq(peek(&b, "none"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "a.txt/x"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "fifo"), NJ_FILE_ABSENT, "and it does not hang");
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cr_expect_eq(peek(&b, name), NJ_FILE_ABSENT);
    end(&b);
}

Test(server_file_store, links)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a.txt", "inside", 6);
    write_file(&b, "../secret", "outside", 7);
    cr_assert_eq(mkdir(at(&b, "d"), 0755), 0);
    cr_assert_eq(symlink("a.txt", at(&b, "in")), 0);
    cr_assert_eq(symlink("../a.txt", at(&b, "d/up")), 0);
    cr_assert_eq(symlink("../secret", at(&b, "out")), 0);
    cr_assert_eq(symlink("/etc/passwd", at(&b, "abs")), 0);
    cr_assert_eq(symlink("..", at(&b, "parent")), 0);
    cr_assert_eq(symlink("/proc/self/cwd", at(&b, "magic")), 0);
    cr_assert_eq(symlink("loop", at(&b, "loop")), 0);

    expect_text(&b, "in", "inside");
    expect_text(&b, "d/up", "inside");
    cr_expect_eq(peek(&b, "out"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "abs"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "parent/secret"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "magic/x"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "loop"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "../secret"), NJ_FILE_ABSENT, "even if the site let it through");
    end(&b);
}

Test(server_file_store, unreadable)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a", "x", 1);
    cr_assert_eq(chmod(at(&b, "a"), 0), 0);
    bool root = geteuid() == 0;
    if (root) /* root may read everything: be someone else for a moment */
        cr_assert_eq(chmod(b.base, 0755) | seteuid(65534), 0);
    cr_expect_eq(peek(&b, "a"), NJ_FILE_DENIED);
    if (root)
        cr_assert_eq(seteuid(0), 0);
    end(&b);
}

/* Writes that follow each other within one tick of the file clock, all of the same size.
 * (Linux 6.13 and later tell them apart by themselves on the usual file systems.) */
Test(server_file_store, sees_every_change)
{
    struct bench b;
    begin(&b, MIB);
    for (int i = 0; i < 200; i++) {
        char text[8];
        snprintf(text, sizeof text, "v%05d", i);
        if (i % 2) { /* replaced */
            write_file(&b, "new", text, 6);
            char from[PATH_MAX];
            strcpy(from, at(&b, "new"));
            cr_assert_eq(rename(from, at(&b, "f")), 0);
        } else { /* written over */
            write_file(&b, "f", text, 6);
        }
        expect_text(&b, "f", text);
    }
    cr_assert_eq(unlink(at(&b, "f")), 0);
    cr_expect_eq(peek(&b, "f"), NJ_FILE_ABSENT);
    end(&b);
}

/* A file of /etc was changed long before this test: it is read once. */
Test(server_file_store, keeps_what_is_unchanged)
{
    struct nj_file_store *s;
    char err[256];
    struct nj_file_store_options o = {.root = "/etc", .cache_bytes = MIB};
    cr_assert_eq(nj_file_store_open(&o, &s, err, sizeof err), 0, "%s", err);
    struct nj_file_job a = {.op = NJ_FILE_OPEN, .path = "passwd"}, c = a;
    nj_file_store_run(s, &a);
    nj_file_store_run(s, &c);
    cr_assert(a.result == NJ_FILE_OK && c.result == NJ_FILE_OK);
    cr_expect_eq(a.object, c.object);
    cr_expect_eq(nj_file_store_objects(s), 1);
    nj_ref_put(&a.object->ref);
    nj_ref_put(&c.object->ref);
    nj_file_store_tidy(s);
    cr_expect_eq(nj_file_store_objects(s), 1, "the cache holds it");
    cr_expect_eq(nj_file_store_close(s), 0);
}

Test(server_file_store, old_version_lives_while_held)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "f", "old", 3);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_object *old = b.job.object;
    write_file(&b, "f", "newer", 5);
    expect_text(&b, "f", "newer");
    nj_file_store_tidy(b.store);
    cr_expect_eq(memcmp(old->bytes, "old", 3), 0);
    nj_ref_put(&old->ref);
    end(&b);
}

Test(server_file_store, budget)
{
    struct bench b;
    static uint8_t data[100000];
    begin(&b, MIB);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        write_file(&b, name, data, sizeof data);
        cr_assert_eq(peek(&b, name), NJ_FILE_OK);
        cr_assert_leq(nj_file_store_stats(b.store)->cached_bytes, MIB);
        cr_assert_leq(nj_file_store_objects(b.store), 10);
    }
    cr_expect_eq(nj_file_store_objects(b.store), 10);
    /* Larger than the budget: served, not kept, and nothing else suffers. */
    sparse_file(&b, "huge", 2 * MIB);
    cr_expect_eq(peek(&b, "huge"), NJ_FILE_OK);
    cr_expect_eq(nj_file_store_objects(b.store), 10);
    /* Tiny files are bounded as well: each costs a page. */
    for (int i = 0; i < 600; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        write_file(&b, name, "", 0);
        cr_assert_eq(peek(&b, name), NJ_FILE_OK);
        cr_assert_leq(nj_file_store_objects(b.store), 256);
    }
    cr_expect_leq(nj_file_store_stats(b.store)->cached_bytes, MIB);
    end(&b);
}

Test(server_file_store, boundary_of_whole)
{
    struct bench b;
    begin(&b, 64 * MIB);
    sparse_file(&b, "whole", NJ_OBJECT_WHOLE_MAX);
    sparse_file(&b, "large", NJ_OBJECT_WHOLE_MAX + 1);
    cr_assert_eq(open_job(&b, "whole"), NJ_FILE_OK);
    cr_expect(b.job.object->bytes && b.job.object->size_bytes == NJ_OBJECT_WHOLE_MAX);
    cr_expect_eq(b.job.object->bytes[NJ_OBJECT_WHOLE_MAX - 1], 0);
    nj_ref_put(&b.job.object->ref);
    cr_assert_eq(open_job(&b, "large"), NJ_FILE_OK);
    struct nj_object *o = b.job.object;
    cr_expect(!o->bytes && o->size_bytes == NJ_OBJECT_WHOLE_MAX + 1);
    cr_assert_eq(read_job(&b, o, NJ_OBJECT_WHOLE_MAX, 1), NJ_FILE_OK);
    cr_expect(b.job.chunk->n_bytes == 1 && b.job.chunk->bytes[0] == 0);
    nj_ref_put(&b.job.chunk->ref);
    nj_ref_put(&o->ref);
    end(&b);
}

static struct nj_object *open_large(struct bench *b, const char *name)
{
    sparse_file(b, name, 2 * NJ_OBJECT_WHOLE_MAX);
    int fd = open(at(b, name), O_WRONLY);
    cr_assert_eq(pwrite(fd, "mark", 4, NJ_OBJECT_WHOLE_MAX), 4);
    close(fd);
    /* An old mtime: the writes of the test then change it for sure. */
    struct timeval old[2] = {{1000000000, 0}, {1000000000, 0}};
    cr_assert_eq(utimes(at(b, name), old), 0);
    cr_assert_eq(open_job(b, name), NJ_FILE_OK);
    return b->job.object;
}

Test(server_file_store, large_file)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_object *o = open_large(&b, "f");
    cr_assert_eq(read_job(&b, o, NJ_OBJECT_WHOLE_MAX - 2, NJ_CHUNK_BYTES), NJ_FILE_OK);
    cr_expect_eq(memcmp(b.job.chunk->bytes, "\0\0mark\0", 7), 0);
    nj_ref_put(&b.job.chunk->ref);
    /* Gone by name, or with other permissions: still the same bytes. */
    cr_assert_eq(chmod(at(&b, "f"), 0600), 0);
    cr_assert_eq(unlink(at(&b, "f")), 0);
    cr_assert_eq(read_job(&b, o, NJ_OBJECT_WHOLE_MAX, 4), NJ_FILE_OK);
    cr_expect_eq(memcmp(b.job.chunk->bytes, "mark", 4), 0);
    nj_ref_put(&b.job.chunk->ref);
    nj_ref_put(&o->ref);
    end(&b);
}

Test(server_file_store, large_file_that_changes)
{
    for (int i = 0; i < 3; i++) {
        struct bench b;
        begin(&b, 64 * MIB);
        struct nj_object *o = open_large(&b, "f");
        if (i == 0) /* grows */
            cr_assert_eq(truncate(at(&b, "f"), 3 * NJ_OBJECT_WHOLE_MAX), 0);
        else if (i == 1) /* shrinks below what is asked */
            cr_assert_eq(truncate(at(&b, "f"), 5), 0);
        else { /* other bytes, same size */
            int fd = open(at(&b, "f"), O_WRONLY);
            cr_assert_eq(pwrite(fd, "x", 1, 0), 1);
            close(fd);
        }
        cr_expect_eq(read_job(&b, o, 1000, NJ_CHUNK_BYTES), NJ_FILE_BROKEN, "case %d", i);
        nj_ref_put(&o->ref);
        end(&b);
    }
}

/* What peers hold is bounded: whole files to 256 MiB beyond the cache, chunks to 64 MiB
 * when the cache is small. */
Test(server_file_store, what_is_lent_is_bounded)
{
    enum { N = 20, CHUNKS = 256 };
    static struct nj_chunk *chunks[CHUNKS];
    struct nj_object *held[N];
    struct bench b;
    char name[8];
    begin(&b, MIB);
    uint32_t n_whole = 0;
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "f%u", i);
        sparse_file(&b, name, NJ_OBJECT_WHOLE_MAX);
        cr_assert_eq(open_job(&b, name), NJ_FILE_OK);
        held[i] = b.job.object;
        n_whole += held[i]->bytes != NULL;
    }
    cr_expect_eq(n_whole, 16);
    cr_assert_null(held[N - 1]->bytes);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        cr_assert_eq(read_job(&b, held[N - 1], 0, NJ_CHUNK_BYTES), NJ_FILE_OK);
        chunks[i] = b.job.chunk;
    }
    cr_expect_eq(read_job(&b, held[N - 1], 0, 1), NJ_FILE_NO_MEMORY);
    write_file(&b, "small", "x", 1);
    expect_text(&b, "small", "x");

    for (uint32_t i = 0; i < CHUNKS; i++)
        nj_ref_put(&chunks[i]->ref);
    for (uint32_t i = 0; i < N; i++)
        nj_ref_put(&held[i]->ref);
    nj_file_store_tidy(b.store);
    cr_assert_eq(open_job(&b, "f0"), NJ_FILE_OK);
    cr_expect_not_null(b.job.object->bytes, "there is room again");
    nj_ref_put(&b.job.object->ref);
    end(&b);
}

/* Descriptors run out: an error that passes, and those the cache keeps are given up first. */
Test(server_file_store, descriptors_run_out)
{
    struct bench b;
    struct rlimit limit;
    begin(&b, 64 * MIB);
    struct nj_object *held = open_large(&b, "held");
    struct nj_object *kept = open_large(&b, "kept");
    nj_ref_put(&kept->ref); /* only the cache has it now */
    write_file(&b, "a", "x", 1);

    int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit none = {(rlim_t)next, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_expect_eq(peek(&b, "a"), NJ_FILE_OK, "room was made");
    int filler = dup(0);
    cr_expect_eq(peek(&b, "none"), NJ_FILE_NO_MEMORY);
    close(filler);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    nj_ref_put(&held->ref);
    end(&b);
}

Test(server_file_store, close_tells_leaks)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a", "x", 1);
    cr_assert_eq(open_job(&b, "a"), NJ_FILE_OK);
    struct nj_object *o = b.job.object;
    cr_expect_eq(nj_file_store_objects(b.store), 1);
    nj_file_store_tidy(b.store);
    cr_expect_eq(nj_file_store_objects(b.store), 1);
    nj_ref_put(&o->ref);
    end(&b);
}

#define PIECE (256u * 1024u)

struct writer {
    char path[PATH_MAX];
    _Atomic bool stop;
    _Atomic uint32_t n_writes;
};

/* Grow and shrink the file, by whole pages so that no hole ever has zeros; every byte is 'a'. */
static void *write_and_shrink(void *arg)
{
    static uint8_t data[PIECE];
    struct writer *w = arg;
    int fd = open(w->path, O_WRONLY);

    memset(data, 'a', sizeof data);
    for (off_t at = 0; !atomic_load(&w->stop); at = (at + sizeof data) % (off_t)(8 * sizeof data)) {
        if ((at == 0 && ftruncate(fd, sizeof data) < 0) || pwrite(fd, data, sizeof data, at) < 0)
            abort();
        atomic_fetch_add(&w->n_writes, 1);
    }
    close(fd);
    return NULL;
}

/* Read whole while it changes: all of a version, or BROKEN; never bytes that were not there. */
Test(server_file_store, changes_while_read, .timeout = 60)
{
    static struct writer w;
    static uint8_t first[PIECE];
    struct bench b;
    pthread_t thread;
    uint32_t n_ok = 0;

    begin(&b, 64 * MIB);
    memset(first, 'a', sizeof first);
    write_file(&b, "f", first, sizeof first);
    strcpy(w.path, at(&b, "f"));
    pthread_create(&thread, NULL, write_and_shrink, &w);
    while (atomic_load(&w.n_writes) < 1000) {
        enum nj_file_result r = open_job(&b, "f");
        cr_assert(r == NJ_FILE_OK || r == NJ_FILE_BROKEN);
        if (r == NJ_FILE_OK) {
            const struct nj_object *o = b.job.object;
            cr_assert_null(memchr(o->bytes, 0, o->size_bytes));
            nj_ref_put(&b.job.object->ref);
            n_ok++;
        }
        nj_file_store_tidy(b.store);
    }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(peek(&b, "f"), NJ_FILE_OK, "it rests now (%u were read before)", n_ok);
    end(&b);
}
