/* SPDX-License-Identifier: BSD-3-Clause */
/* Large files in chunks: sharing, bounds, and the effect of changes. */
#include "store_rig.h"

#include <sched.h>
#include <sys/mman.h>

TestSuite(store_chunk_cache, .fini = scratch_remove);

#define SMALL NJ_CHUNK_SMALL_BYTES

static struct nj_file_chunk *get(struct bench *b, struct nj_file_object *o, uint64_t offset,
                                 uint32_t n)
{
    cr_assert_eq(read_job(b, o, offset, n), NJ_FILE_OK, "at %lu", (unsigned long)offset);
    return b->job.chunk;
}

static void put(struct nj_file_chunk *c)
{
    nj_ref_put(&c->ref);
}

Test(store_chunk_cache, large_file)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    struct nj_file_chunk *c = get(&b, o, NJ_OBJECT_IN_MEMORY_MAX + 2, NJ_CHUNK_BYTES);
    cr_expect_eq(c->offset, NJ_OBJECT_IN_MEMORY_MAX, "chunks begin at multiples of their size");
    cr_expect_eq(c->n_bytes, NJ_CHUNK_BYTES);
    cr_expect_eq(memcmp(c->bytes, "mark\0\0", 6), 0);
    put(c);
    /* Deleted, or with other permissions: the bytes are the same. */
    cr_assert_eq(chmod(at(&b, "f"), 0600), 0);
    c = get(&b, o, 0, SMALL);
    put(c);
    cr_assert_eq(unlink(at(&b, "f")), 0);
    c = get(&b, o, 2 * NJ_OBJECT_IN_MEMORY_MAX - 1, 1);
    cr_expect_eq(c->n_bytes, SMALL);
    put(c);
    cr_expect_eq(stats(&b)->reads, 3);
    nj_ref_put(&o->ref);
    end(&b);
}

Test(store_chunk_cache, end_of_file)
{
    struct bench b;
    begin(&b, 64 * MIB);
    sparse_file(&b, "f", NJ_OBJECT_IN_MEMORY_MAX + 1);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    struct nj_file_chunk *c = get(&b, o, NJ_OBJECT_IN_MEMORY_MAX, 1);
    cr_expect_eq(c->n_bytes, 1);
    put(c);
    nj_ref_put(&o->ref);
    end(&b);
}

Test(store_chunk_cache, who_reads_the_same_shares)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    struct nj_file_chunk *a = get(&b, o, 1000, NJ_CHUNK_BYTES);
    struct nj_file_chunk *c = get(&b, o, 200000, NJ_CHUNK_BYTES);
    cr_expect_eq(a, c, "held by another reader");
    put(a);
    put(c);
    c = get(&b, o, 5, NJ_CHUNK_BYTES);
    cr_expect_eq(a, c, "just released");
    put(c);
    nj_file_store_run_housekeeping(b.store);
    c = get(&b, o, 5, NJ_CHUNK_BYTES);
    cr_expect_eq(a, c, "unreferenced since the housekeeping");
    cr_expect_eq(stats(&b)->reads, 1);

    struct nj_file_chunk *small = get(&b, o, 70000, SMALL);
    cr_expect_eq(small->n_bytes, SMALL, "a small read pins a small chunk");
    cr_expect_eq(small->offset, 2 * SMALL);
    cr_expect_eq(stats(&b)->reads, 1, "it was in memory");
    put(small);
    small = get(&b, o, NJ_OBJECT_IN_MEMORY_MAX, SMALL);
    cr_expect_eq(memcmp(small->bytes, "mark\0", 5), 0);
    cr_expect_eq(stats(&b)->reads, 2);
    put(small);
    put(c);
    nj_ref_put(&o->ref);
    end(&b);
}

Test(store_chunk_cache, another_version_has_other_pieces)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *old = open_large(&b, "f");
    struct nj_file_chunk *a = get(&b, old, NJ_OBJECT_IN_MEMORY_MAX, SMALL);
    write_file(&b, "g", "new", 3);
    cr_assert_eq(truncate(at(&b, "g"), 2 * NJ_OBJECT_IN_MEMORY_MAX), 0);
    char from[PATH_MAX];
    strcpy(from, at(&b, "g"));
    cr_assert_eq(rename(from, at(&b, "f")), 0);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *new = b.job.object;
    cr_assert_neq(old, new);
    struct nj_file_chunk *c = get(&b, new, 0, SMALL);
    cr_expect_eq(memcmp(c->bytes, "new\0", 4), 0);
    put(c);
    c = get(&b, old, 0, SMALL);
    cr_expect_eq(memcmp(c->bytes, "\0\0\0\0", 4), 0, "the old version is readable");
    put(c);
    put(a);
    nj_ref_put(&old->ref);
    nj_ref_put(&new->ref);
    end(&b);
}

/* Sizes go down as more is lent, and then there is an end: 128 MiB with the least cache. */
Test(store_chunk_cache, what_is_lent_is_bounded)
{
    enum { MOST = 20000 };
    static struct nj_file_chunk *chunks[MOST];
    struct bench b;
    uint32_t n = 0, n_of_size[3] = {0};
    uint64_t lent = 0;

    begin(&b, MIB);
    sparse_file(&b, "f", 8192ll * MIB);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    while (n < MOST &&
           read_job(&b, o, (uint64_t)n * NJ_CHUNK_BYTES, NJ_CHUNK_BYTES) == NJ_FILE_OK) {
        chunks[n++] = b.job.chunk;
        uint32_t size = b.job.chunk->n_bytes;
        lent += size;
        n_of_size[size == NJ_CHUNK_BYTES ? 0 : size == SMALL ? 1 : 2]++;
        cr_assert_leq(stats(&b)->chunk_bytes, 128 * MIB);
    }
    cr_expect_eq(b.job.result, NJ_FILE_NO_MEMORY);
    cr_expect_eq(lent, 128 * MIB);
    cr_expect_eq(n_of_size[0], 129, "32 MiB, and the one that went beyond");
    cr_expect_geq(n_of_size[1], 1000);
    cr_expect_geq(n_of_size[2], 16000);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, lent);
    cr_expect_not(nj_file_store_may_retry_read(b.store, &b.job));
    struct nj_file_job refused = b.job;

    put(chunks[--n]);
    cr_expect(nj_file_store_may_retry_read(b.store, &refused), "also before it is buried");
    nj_file_store_run_housekeeping(b.store);
    cr_expect(nj_file_store_may_retry_read(b.store, &refused), "and after");
    nj_file_store_do_job(b.store, &refused);
    cr_assert_eq(refused.result, NJ_FILE_OK);
    chunks[n++] = refused.chunk;
    while (n > 0)
        put(chunks[--n]);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, 0);
    cr_expect_leq(stats(&b)->chunk_bytes, 8 * MIB, "idle ones are few");
    nj_ref_put(&o->ref);
    end(&b);
}

/* Slow downloads of as many files, with the least cache, which is too small for chunks of 32 KiB:
 * each download gets one chunk after the other, and their bytes are right. */
Test(store_chunk_cache, thousands_of_files, .timeout = 120)
{
#if defined(__SANITIZE_THREAD__) /* 10,000 take 18 s */
    enum { N = 5000 };
#else
    enum { N = 6000 };
#endif
    _Static_assert(N * (uint64_t)SMALL > 128 * MIB, "chunks have to become smaller");
    static struct nj_file_object *files[N];
    static struct nj_file_chunk *held[N];
    struct rlimit limit;
    struct bench b;
    char name[16];
    uint32_t n = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    uint32_t n_files = limit.rlim_max > N + 100 ? N : (uint32_t)limit.rlim_max - 100;
    begin(&b, MIB);
    for (; n < n_files; n++) {
        snprintf(name, sizeof name, "f%u", n);
        sparse_file(&b, name, 2 * NJ_OBJECT_IN_MEMORY_MAX);
        int fd = open(at(&b, name), O_WRONLY);
        cr_assert_eq(pwrite(fd, &n, sizeof n, NJ_OBJECT_IN_MEMORY_MAX), sizeof n);
        close(fd);
        set_mtime(&b, name, 1000000000000000000);
    }
    wait_for_tick(&b, name); /* else each first READ waits for one */
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "f%u", i);
        cr_assert_eq(open_job(&b, name), NJ_FILE_OK, "%s", name);
        files[i] = b.job.object;
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < n; i++) {
            uint64_t offset = NJ_OBJECT_IN_MEMORY_MAX + (uint64_t)round * 4096;
            struct nj_file_chunk *next = get(&b, files[i], offset, SMALL);
            if (round == 0)
                cr_assert_eq(memcmp(next->bytes, &i, sizeof i), 0, "file %u", i);
            if (held[i])
                put(held[i]);
            held[i] = next;
        }
        nj_file_store_run_housekeeping(b.store);
        cr_expect_leq(stats(&b)->chunk_bytes, 128 * MIB);
    }
    cr_expect_eq(stats(&b)->waits, 0);
    for (uint32_t i = 0; i < n; i++) {
        put(held[i]);
        nj_ref_put(&files[i]->ref);
    }
    end(&b);
}

struct change {
    const char *what;
    void (*make)(struct bench *b);
    enum nj_file_result result;
};

static void overwrite(struct bench *b)
{
    int fd = open(at(b, "f"), O_WRONLY);
    cr_assert_eq(pwrite(fd, "x", 1, 0), 1);
    close(fd);
}

static void grow(struct bench *b)
{
    cr_assert_eq(truncate(at(b, "f"), 3 * NJ_OBJECT_IN_MEMORY_MAX), 0);
}

static void shrink(struct bench *b)
{
    cr_assert_eq(truncate(at(b, "f"), 5), 0);
}

static void rewrite_and_set_back(struct bench *b)
{
    struct stat st;
    cr_assert_eq(stat(at(b, "f"), &st), 0);
    overwrite(b);
    set_mtime(b, "f", (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
}

static void change_mode(struct bench *b)
{
    struct stat st;
    cr_assert_eq(stat(at(b, "f"), &st), 0);
    cr_assert_eq(chmod(at(b, "f"), st.st_mode ^ S_IXUSR), 0);
}

static void add_link(struct bench *b)
{
    char from[PATH_MAX];
    strcpy(from, at(b, "f"));
    cr_assert_eq(link(from, at(b, "g")), 0);
}

static void replace(struct bench *b)
{
    char from[PATH_MAX];
    write_file(b, "new", "other", 5);
    strcpy(from, at(b, "new"));
    cr_assert_eq(rename(from, at(b, "f")), 0);
}

static void delete (struct bench *b)
{
    cr_assert_eq(unlink(at(b, "f")), 0);
}

static void mode_and_set_back(struct bench *b)
{
    change_mode(b);
    cr_assert_eq(read_job(b, b->job.object, 8 * NJ_CHUNK_BYTES, SMALL), NJ_FILE_OK);
    put(b->job.chunk);
    rewrite_and_set_back(b);
}

Test(store_chunk_cache, changes)
{
    static const struct change changes[] = {
        {"written over", overwrite, NJ_FILE_BROKEN},
        {"grown", grow, NJ_FILE_BROKEN},
        {"shrunk below the requested offset", shrink, NJ_FILE_BROKEN},
        {"written over, mtime set back", rewrite_and_set_back, NJ_FILE_BROKEN},
        {"an explained change is accepted once", mode_and_set_back, NJ_FILE_BROKEN},
        {"other permissions", change_mode, NJ_FILE_OK},
        {"another name besides", add_link, NJ_FILE_OK},
        {"replaced", replace, NJ_FILE_OK},
        {"deleted", delete, NJ_FILE_OK},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct bench b;
        begin(&b, 64 * MIB);
        struct nj_file_object *o = open_large(&b, "f");
        struct nj_file_chunk *held = get(&b, o, NJ_OBJECT_IN_MEMORY_MAX, SMALL);
        b.job.object = o;
        changes[i].make(&b);
        enum nj_file_result r = read_job(&b, o, 1000, NJ_CHUNK_BYTES);
        cr_expect_eq(r, changes[i].result, "%s", changes[i].what);
        if (r == NJ_FILE_OK) {
            cr_expect_eq(*byte_at(&b, 1000), 0);
            put(b.job.chunk);
        }
        cr_expect_eq(memcmp(held->bytes, "mark", 4), 0, "a held chunk is unchanged");
        put(held);
        nj_ref_put(&o->ref);
        end(&b);
    }
}

/* A file that was found changed stays broken, even if its times are set back later. */
Test(store_chunk_cache, broken_stays_broken)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    grow(&b);
    cr_expect_eq(read_job(&b, o, 0, SMALL), NJ_FILE_BROKEN);
    cr_assert_eq(truncate(at(&b, "f"), 2 * NJ_OBJECT_IN_MEMORY_MAX), 0);
    set_mtime(&b, "f", 1000000000000000000);
    cr_expect_eq(read_job(&b, o, 0, SMALL), NJ_FILE_BROKEN);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Two changes within one tick of the clock have the same times. So a file that was changed in the
 * current tick is not read before the tick ends. (Linux 6.13 and later give them different times on
 * the usual file systems, so that the test below cannot fail there.) */
Test(store_chunk_cache, waits_for_the_tick_to_end)
{
    struct stat then, now;
    struct bench b;
    begin(&b, 64 * MIB);
    sparse_file(&b, "f", 2 * NJ_OBJECT_IN_MEMORY_MAX);
    cr_assert_eq(stat(at(&b, "f"), &then), 0); /* there, a change after stat() gets a time in ns: */
    cr_assert_eq(chmod(at(&b, "f"), 0600), 0); /* one that is ahead of the coarse clock */
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    put(get(&b, o, 0, SMALL));
    write_file(&b, "clock", "", 0);
    cr_assert_eq(stat(at(&b, "clock"), &now), 0);
    cr_assert_eq(stat(at(&b, "f"), &then), 0);
    int64_t ns = (now.st_ctim.tv_sec - then.st_ctim.tv_sec) * INT64_C(1000000000) +
                 now.st_ctim.tv_nsec - then.st_ctim.tv_nsec;
    cr_expect_geq(ns, 10000000, "longer than the slowest tick");
    nj_ref_put(&o->ref);
    end(&b);
}

/* A file that is written to all the time: the same number here, then there. Both were in it at the
 * same time only if the first one is the same or one ahead. */
struct writer {
    char path[PATH_MAX];
    _Atomic bool stop;
    _Atomic uint32_t n_writes;
};

static void *write_versions(void *arg)
{
    struct writer *w = arg;
    int fd = open(w->path, O_WRONLY);

    for (uint32_t v = 1; !atomic_load(&w->stop); v++) {
        if (pwrite(fd, &v, sizeof v, 0) != sizeof v ||
            pwrite(fd, &v, sizeof v, NJ_CHUNK_BYTES) != sizeof v)
            abort();
        atomic_store(&w->n_writes, v);
    }
    close(fd);
    return NULL;
}

Test(store_chunk_cache, never_of_two_versions, .timeout = 60)
{
    static struct writer w;
    struct bench b;
    pthread_t thread;

    begin(&b, 64 * MIB);
    sparse_file(&b, "f", 2 * NJ_OBJECT_IN_MEMORY_MAX);
    strcpy(w.path, at(&b, "f"));
    pthread_create(&thread, NULL, write_versions, &w);
    while (atomic_load(&w.n_writes) < 200)
        ;
    for (uint32_t round = 0; round < 50; round++) {
        struct nj_file_chunk *c[2] = {NULL, NULL};
        uint32_t v[2];
        cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
        struct nj_file_object *o = b.job.object;
        for (uint32_t i = 0; i < 2; i++)
            if (read_job(&b, o, i * NJ_CHUNK_BYTES, NJ_CHUNK_BYTES) == NJ_FILE_OK)
                c[i] = b.job.chunk;
        for (uint32_t i = 0; i < 2; i++)
            if (c[i])
                memcpy(&v[i], c[i]->bytes, sizeof v[i]);
        if (c[0] && c[1])
            cr_expect_leq(v[0] - v[1], 1, "%u here, %u there", v[0], v[1]);
        for (uint32_t i = 0; i < 2; i++)
            if (c[i])
                put(c[i]);
        nj_ref_put(&o->ref);
        nj_file_store_run_housekeeping(b.store);
    }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    end(&b);
}

/* Pages of the file beyond `offset` that the kernel has in memory. */
static uint32_t pages_after(struct bench *b, const char *name, off_t offset)
{
    unsigned char in[256];
    uint32_t n = 0;
    int fd = open(at(b, name), O_RDONLY);
    void *p = mmap(NULL, sizeof in * 4096, PROT_READ, MAP_SHARED, fd, offset);
    cr_assert_neq(p, MAP_FAILED);
    cr_assert_eq(mincore(p, sizeof in * 4096, in), 0);
    for (size_t i = 0; i < sizeof in; i++)
        n += in[i] & 1;
    munmap(p, sizeof in * 4096);
    close(fd);
    return n;
}

Test(store_chunk_cache, reads_ahead, .timeout = 30)
{
    static uint8_t data[MIB];
    struct bench b;
    begin(&b, 64 * MIB);
    memset(data, 'r', sizeof data);
    int fd = open(at(&b, "f"), O_WRONLY | O_CREAT, 0644);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(write(fd, data, sizeof data), (ssize_t)sizeof data);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    if (pages_after(&b, "f", 8 * MIB + NJ_CHUNK_BYTES) > 0) {
        end(&b); /* tmpfs has no disk to read ahead from */
        return;
    }
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    put(get(&b, o, 8 * MIB, NJ_CHUNK_BYTES));
    /* The next megabyte is read ahead; the disk may still be reading. */
    while (pages_after(&b, "f", 8 * MIB + NJ_CHUNK_BYTES) < 256)
        sched_yield();
    nj_ref_put(&o->ref);
    end(&b);
}

/* Small chunks fill the memory, and one in eight is lent or was requested twice: there is no room
 * for a large chunk, and a smaller one is used. */
static void among_small_ones(bool is_lent)
{
    enum { PIECES = 4096, SPARSE = 8 };
    static struct nj_file_chunk *held[PIECES / SPARSE];
    struct bench b;

    begin(&b, 128 * MIB);
    sparse_file(&b, "f", 1024 * (off_t)MIB);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    for (uint64_t i = 0; i < PIECES; i++) {
        struct nj_file_chunk *c = get(&b, o, i * SMALL, SMALL);
        if (is_lent && i % SPARSE == 0)
            held[i / SPARSE] = c;
        else
            put(c);
        nj_file_store_free_unreferenced(b.store);
    }
    for (uint64_t i = 0; !is_lent && i < PIECES; i += SPARSE) {
        put(get(&b, o, i * SMALL, SMALL));
        nj_file_store_free_unreferenced(b.store);
    }
    uint64_t n_before = stats(&b)->evictions;
    put(get(&b, o, 512 * (uint64_t)MIB, NJ_CHUNK_BYTES));
    cr_expect_lt(stats(&b)->evictions - n_before, 40);
    for (uint32_t i = 0; is_lent && i < PIECES / SPARSE; i++)
        put(held[i]);
    nj_file_store_run_housekeeping(b.store);
    nj_ref_put(&o->ref);
    end(&b);
}

Test(store_chunk_cache, among_small_ones_that_are_lent)
{
    among_small_ones(true);
}

Test(store_chunk_cache, among_small_ones_that_are_wanted)
{
    among_small_ones(false);
}
