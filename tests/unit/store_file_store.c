/* SPDX-License-Identifier: BSD-3-Clause */
/* A store over a real folder in /tmp: which files it opens and keeps, and the effect of changes. */
#include "store_rig.h"

#include <signal.h>

TestSuite(store_file_store, .fini = scratch_remove);

Test(store_file_store, root_errors)
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

Test(store_file_store, kinds)
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

Test(store_file_store, unreadable)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a", "x", 1);
    cr_assert_eq(chmod(at(&b, "a"), 0), 0);
    bool root = geteuid() == 0;
    if (root) /* root may read everything: be someone else for a moment */
        cr_assert_eq(chmod(scratch, 0755) | seteuid(65534), 0);
    cr_expect_eq(peek(&b, "a"), NJ_FILE_DENIED);
    if (root)
        cr_assert_eq(seteuid(0), 0);
    end(&b);
}

/* Writes within one tick of the file clock, all of the same size. (Linux 6.13 and later give them
 * different times on the usual file systems.) */
Test(store_file_store, sees_every_change)
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
Test(store_file_store, keeps_what_is_unchanged)
{
    struct nj_file_store *s;
    char err[256];
    struct nj_file_store_options o = {.root = "/etc", .cache_bytes = MIB};
    cr_assert_eq(nj_file_store_open(&o, &s, err, sizeof err), 0, "%s", err);
    struct nj_file_job a = {.op = NJ_FILE_OPEN, .path = "passwd"}, c = a;
    nj_file_store_do_job(s, &a);
    nj_file_store_do_job(s, &c);
    cr_assert(a.result == NJ_FILE_OK && c.result == NJ_FILE_OK);
    cr_expect_eq(a.object, c.object);
    cr_expect_eq(nj_file_store_count_held_objects(s), 1);
    nj_ref_put(&a.object->ref);
    nj_ref_put(&c.object->ref);
    nj_file_store_run_housekeeping(s);
    cr_expect_eq(nj_file_store_count_held_objects(s), 1, "the cache holds it");
    cr_expect_eq(nj_file_store_close(s), 0);
}

Test(store_file_store, old_version_lives_while_held)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "f", "old", 3);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *old = b.job.object;
    write_file(&b, "f", "newer", 5);
    expect_text(&b, "f", "newer");
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(memcmp(old->bytes, "old", 3), 0);
    nj_ref_put(&old->ref);
    end(&b);
}

Test(store_file_store, budget)
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
        cr_assert_leq(nj_file_store_count_held_objects(b.store), 10);
    }
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 10);
    /* Larger than the budget: served, not kept, and without effect on other files. */
    sparse_file(&b, "huge", 2 * MIB);
    cr_expect_eq(peek(&b, "huge"), NJ_FILE_OK);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 10);
    /* Tiny files are bounded as well: each costs a page. */
    for (int i = 0; i < 600; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        write_file(&b, name, "", 0);
        cr_assert_eq(peek(&b, name), NJ_FILE_OK);
        cr_assert_leq(nj_file_store_count_held_objects(b.store), 256);
    }
    cr_expect_leq(nj_file_store_stats(b.store)->cached_bytes, MIB);
    end(&b);
}

Test(store_file_store, boundary_of_whole)
{
    struct bench b;
    begin(&b, 64 * MIB);
    sparse_file(&b, "whole", NJ_OBJECT_IN_MEMORY_MAX);
    sparse_file(&b, "large", NJ_OBJECT_IN_MEMORY_MAX + 1);
    cr_assert_eq(open_job(&b, "whole"), NJ_FILE_OK);
    cr_expect(b.job.object->bytes && b.job.object->size_bytes == NJ_OBJECT_IN_MEMORY_MAX);
    cr_expect_eq(b.job.object->bytes[NJ_OBJECT_IN_MEMORY_MAX - 1], 0);
    nj_ref_put(&b.job.object->ref);
    cr_assert_eq(open_job(&b, "large"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    cr_expect(!o->bytes && o->size_bytes == NJ_OBJECT_IN_MEMORY_MAX + 1);
    nj_ref_put(&o->ref);
    end(&b);
}

/* The memory of whole files that peers hold is bounded: to 256 MiB beyond the cache. */
Test(store_file_store, what_is_lent_is_bounded)
{
    enum { N = 20 };
    struct nj_file_object *held[N];
    struct bench b;
    char name[8];
    begin(&b, MIB);
    uint32_t n_whole = 0;
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "f%u", i);
        sparse_file(&b, name, NJ_OBJECT_IN_MEMORY_MAX);
        cr_assert_eq(open_job(&b, name), NJ_FILE_OK);
        held[i] = b.job.object;
        n_whole += held[i]->bytes != NULL;
    }
    cr_expect_eq(n_whole, 16);
    cr_assert_null(held[N - 1]->bytes);
    cr_assert_eq(read_job(&b, held[N - 1], 0, NJ_CHUNK_BYTES), NJ_FILE_OK);
    nj_ref_put(&b.job.chunk->ref);
    write_file(&b, "small", "x", 1);
    expect_text(&b, "small", "x");

    for (uint32_t i = 0; i < N; i++)
        nj_ref_put(&held[i]->ref);
    nj_file_store_run_housekeeping(b.store);
    cr_assert_eq(open_job(&b, "f0"), NJ_FILE_OK);
    cr_expect_not_null(b.job.object->bytes, "there is room again");
    nj_ref_put(&b.job.object->ref);
    end(&b);
}

/* No descriptor is free from here on. The limit before, which the test sets again. */
static struct rlimit take_descriptors(void)
{
    struct rlimit limit;
    int next = dup(0);

    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit none = {(rlim_t)next, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    return limit;
}

/* Without free descriptors an open fails temporarily. The store closes descriptors of cached files
 * first. */
Test(store_file_store, descriptors_run_out)
{
    struct bench b;
    struct rlimit limit;
    begin(&b, 64 * MIB);
    struct nj_file_object *held = open_large(&b, "held");
    struct nj_file_object *kept = open_large(&b, "kept");
    nj_ref_put(&kept->ref); /* only the cache has it now */
    write_file(&b, "a", "x", 1);
    write_file(&b, "small", "x", 1);
    wait_for_tick(&b, "small");
    uint64_t n_misses = stats(&b)->misses;

    limit = take_descriptors();
    cr_expect_eq(peek(&b, "a"), NJ_FILE_OK, "room was made");
    int filler = dup(0);
    cr_expect_eq(peek(&b, "none"), NJ_FILE_NO_MEMORY);
    close(filler);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(peek(&b, "small"), NJ_FILE_OK);
    cr_expect_eq(stats(&b)->misses, n_misses + 1, "small ones stay");
    nj_ref_put(&held->ref);
    end(&b);
}

/* Reads some of a large file; returns whether that was in memory. */
static bool touch(struct bench *b, uint32_t i)
{
    uint64_t n = stats(b)->chunk_hits;
    char name[16];

    snprintf(name, sizeof name, "%u", i);
    cr_assert_eq(open_job(b, name), NJ_FILE_OK);
    struct nj_file_object *o = b->job.object;
    cr_assert_eq(read_job(b, o, 0, NJ_CHUNK_SMALL_BYTES), NJ_FILE_OK);
    nj_ref_put(&b->job.chunk->ref);
    nj_ref_put(&o->ref);
    nj_file_store_free_unreferenced(b->store);
    return stats(b)->chunk_hits > n;
}

/* Without free descriptors most cached chunks of large files stay, and all chunks that were
 * requested again. A file that is being read stays shared. */
Test(store_file_store, few_descriptors_are_given_up)
{
    enum { N = 40, GIVEN_UP = 8 };
    struct bench b;
    struct rlimit limit;
    char name[16];
    uint32_t n_hits = 0;
    begin(&b, 64 * MIB);
    for (uint32_t i = 0; i <= N; i++) {
        snprintf(name, sizeof name, "%u", i);
        nj_ref_put(&open_large(&b, name)->ref);
    }
    wait_for_tick(&b, name);
    cr_assert_eq(open_job(&b, name), NJ_FILE_OK);
    struct nj_file_object *held = b.job.object;
    for (uint32_t i = 0; i < N; i++)
        cr_expect_not(touch(&b, i));
    for (uint32_t i = 0; i < N; i += 2)
        cr_expect(touch(&b, i));

    limit = take_descriptors();
    cr_expect_eq(peek(&b, "none"), NJ_FILE_ABSENT, "room was made");
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (uint32_t i = 0; i < N; i++) {
        bool is_hit = touch(&b, i);
        cr_expect(i % 2 || is_hit, "%u was requested twice", i);
        n_hits += is_hit;
    }
    cr_expect_eq(n_hits, N - GIVEN_UP);
    cr_assert_eq(open_job(&b, name), NJ_FILE_OK);
    cr_expect_eq(b.job.object, held);
    nj_ref_put(&held->ref);
    nj_ref_put(&held->ref);
    end(&b);
}

/* Of 128 descriptors a quarter is for other uses, and an eighth of the rest is for files outside
 * the cache. */
Test(store_file_store, open_files_that_are_kept)
{
    enum { N = 100 };
    struct bench b;
    struct rlimit limit, few;
    char name[16];
    getrlimit(RLIMIT_NOFILE, &limit);
    few = (struct rlimit){128, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    begin(&b, 64 * MIB);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%u", i);
        nj_ref_put(&open_large(&b, name)->ref);
    }
    cr_expect_eq(stats(&b)->cached_files, 96 - 12);
    end(&b);
}

/* While large files are read, in any number, a descriptor is left to check another file. */
Test(store_file_store, large_files_leave_descriptors)
{
    enum { N = 100 };
    struct bench b;
    struct rlimit limit;
    struct nj_file_object *held[N];
    char name[16];
    uint32_t n = 0;
    begin(&b, 64 * MIB);
    write_file(&b, "small", "x", 1);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%u", i);
        sparse_file(&b, name, 2 * NJ_OBJECT_IN_MEMORY_MAX);
    }

    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit few = {64, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (;;) {
        snprintf(name, sizeof name, "%u", n);
        if (open_job(&b, name) != NJ_FILE_OK)
            break;
        cr_assert_lt(n + 1, N, "no more than there are descriptors");
        held[n++] = b.job.object;
    }
    cr_expect_eq(b.job.result, NJ_FILE_NO_MEMORY);
    int next = dup(0);
    close(next);
    cr_expect_eq(next, 48, "a quarter is left");
    cr_expect_eq(peek(&b, "small"), NJ_FILE_OK);
    cr_expect_eq(peek(&b, "none"), NJ_FILE_ABSENT);
    nj_ref_put(&held[--n]->ref);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(peek(&b, "99"), NJ_FILE_OK, "there is room again");
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n > 0)
        nj_ref_put(&held[--n]->ref);
    end(&b);
}

/* Large files are opened until they may have no more of 800 descriptors. The next one that is free.
 */
static int next_after_large(uint32_t n_threads, enum nj_symlinks symlinks)
{
    enum { N = 720 };
    static struct nj_file_object *held[N];
    struct nj_file_store_options o = {
        .cache_bytes = MIB, .n_threads = n_threads, .symlinks = symlinks};
    struct rlimit limit, few;
    struct bench b;
    char name[16], err[256];
    uint32_t n = 0;

    begin(&b, MIB);
    cr_assert_eq(nj_file_store_close(b.store), 0);
    o.root = b.root;
    cr_assert_eq(nj_file_store_open(&o, &b.store, err, sizeof err), 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    few = (struct rlimit){800, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (;; n++) {
        cr_assert_lt(n, N);
        snprintf(name, sizeof name, "%u", n);
        sparse_file(&b, name, 2 * NJ_OBJECT_IN_MEMORY_MAX);
        if (open_job(&b, name) != NJ_FILE_OK)
            break;
        held[n] = b.job.object;
    }
    cr_expect_eq(b.job.result, NJ_FILE_NO_MEMORY);
    int next = dup(0);
    close(next);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n > 0)
        nj_ref_put(&held[--n]->ref);
    end(&b);
    return next;
}

/* Each thread may use some of the remaining descriptors. */
Test(store_file_store, descriptors_of_threads)
{
    cr_expect_eq(next_after_large(0, NJ_SYMLINKS_BENEATH), 800 - 96);
    cr_expect_eq(next_after_large(1, NJ_SYMLINKS_BENEATH), 800 - 96);
    cr_expect_eq(next_after_large(2, NJ_SYMLINKS_BENEATH), 800 - 100);
    cr_expect_eq(next_after_large(64, NJ_SYMLINKS_BENEATH), 800 - 200, "a quarter");
    cr_expect_eq(next_after_large(1, NJ_SYMLINKS_OWNER), 800 - 96);
    cr_expect_eq(next_after_large(2, NJ_SYMLINKS_OWNER), 800 - 164, "a walk over links");
}

/* A deleted file is closed when a request does not find its name. */
Test(store_file_store, what_is_gone_is_not_kept)
{
    struct bench b;
    begin(&b, 64 * MIB);
    nj_ref_put(&open_large(&b, "a")->ref);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 1);
    unlink(at(&b, "a"));
    cr_expect_eq(peek(&b, "a"), NJ_FILE_ABSENT);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 0);
    end(&b);
}

Test(store_file_store, close_tells_leaks)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a", "x", 1);
    cr_assert_eq(open_job(&b, "a"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 1);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 1);
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
Test(store_file_store, changes_while_read, .timeout = 60)
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
            const struct nj_file_object *o = b.job.object;
            cr_assert_null(memchr(o->bytes, 0, o->size_bytes));
            nj_ref_put(&b.job.object->ref);
            n_ok++;
        }
        nj_file_store_run_housekeeping(b.store);
    }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(peek(&b, "f"), NJ_FILE_OK, "it rests now (%u were read before)", n_ok);
    end(&b);
}

/* A write lease (F_SETLEASE of fcntl(2)). The open of another descriptor sends SIGIO to the holder,
 * which here is this process. */
static int lease(const char *path)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int fd = open(path, O_RDWR);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0, "%s: %s", path, strerror(errno));
    return fd;
}

Test(store_file_store, leased)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "f", "text", 4);
    expect_text(&b, "f", "text");
    int fd = lease(at(&b, "f"));
    cr_expect_eq(peek(&b, "f"), NJ_FILE_LEASED);
    close(fd);
    expect_text(&b, "f", "text");
    end(&b);
}

static void *return_lease(void *fd)
{
    sigset_t set;
    int sig;

    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigwait(&set, &sig);
    close(*(int *)fd);
    return NULL;
}

/* The holder returns it when it is asked, as Samba does. */
Test(store_file_store, lease_that_is_returned)
{
    struct bench b;
    pthread_t holder;
    begin(&b, MIB);
    write_file(&b, "f", "text", 4);
    int fd = lease(at(&b, "f"));
    cr_assert_eq(pthread_create(&holder, NULL, return_lease, &fd), 0);
    expect_text(&b, "f", "text");
    pthread_join(holder, NULL);
    end(&b);
}
