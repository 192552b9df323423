/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one store, one of which is stuck in a system call: the work of the others meanwhile.
 */
#include "stuck_rig.h"

#include "base/compiler.h"
#include "store/verified_read.h"

TestSuite(store_file_stuck, .init = start_stuck, .fini = scratch_remove, .timeout = 60);

/* Jobs that do not need the same bytes complete. */
Test(store_file_stuck, a_read_holds_up_nobody_else)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f"), *p = open_large(&b, "g");
    struct other other = {.job = read_of(o, NJ_OBJECT_IN_MEMORY_MAX)};
    begin_other(&other, &b, "pread", false);

    write_file(&b, "a", "x", 1);
    expect_text(&b, "a", "x");
    cr_expect_eq(peek(&b, "none"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "f"), NJ_FILE_OK, "also of the same file");
    list_and_put(&b);
    read_and_put(&b, p, NJ_OBJECT_IN_MEMORY_MAX);
    read_and_put(&b, o, 0);
    nj_file_store_run_housekeeping(b.store);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(read_job(&b, o, NJ_OBJECT_IN_MEMORY_MAX + 5, SMALL), NJ_FILE_BUSY);
        cr_expect_not(nj_file_store_may_retry_read(b.store, &b.job));
    }
    cr_expect_eq(stats(&b)->waits_for_read, 3);
    cr_expect_eq(stats(&b)->waits, 0);
    cr_expect_eq(stats(&b)->reads, 3);

    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    cr_expect(nj_file_store_may_retry_read(b.store, &b.job));
    nj_file_store_do_job(b.store, &b.job);
    cr_assert_eq(b.job.result, NJ_FILE_OK);
    cr_expect_eq(b.job.chunk, other.job.chunk);
    cr_expect_eq(memcmp(b.job.chunk->bytes, "mark", 4), 0);
    cr_expect_eq(stats(&b)->reads, 3, "read once");
    put(b.job.chunk);
    put(other.job.chunk);
    nj_ref_put(&o->ref);
    nj_ref_put(&p->ref);
    end(&b);
}

/* Jobs that wait for the same chunk fail, too. */
Test(store_file_stuck, a_read_that_fails)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    struct other other = {.job = read_of(o, 0)};
    begin_other(&other, &b, "pread", false);
    cr_expect_eq(read_job(&b, o, 0, SMALL), NJ_FILE_BUSY);
    cr_expect_eq(end_other(&other, true), NJ_FILE_BROKEN);
    cr_assert_null(other.job.chunk);
    cr_expect(nj_file_store_may_retry_read(b.store, &b.job));
    nj_file_store_do_job(b.store, &b.job);
    cr_expect_eq(b.job.result, NJ_FILE_BROKEN);
    cr_expect_eq(stats(&b)->changed, 2);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->chunk_bytes, 0);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, 0);
    nj_ref_put(&o->ref);
    end(&b);
}

/* A disk that failed once: the jobs that read then fail, and the next OPEN returns a new file
 * object. */
Test(store_file_stuck, an_open_after_a_read_that_failed)
{
    struct bench b;
    begin(&b, 64 * MIB);
    nj_ref_put(&open_large(&b, "f")->ref);
    wait_for_tick(&b, "f");
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    struct other other = {.job = read_of(o, 0)};
    begin_other(&other, &b, "pread", false);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    cr_expect_eq(b.job.object, o, "it stays cached");
    nj_ref_put(&b.job.object->ref);
    cr_expect_eq(end_other(&other, true), NJ_FILE_BROKEN);

    cr_expect_eq(read_job(&b, o, 0, SMALL), NJ_FILE_BROKEN, "of this version no more is read");
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *again = b.job.object;
    cr_expect_neq(again, o);
    read_and_put(&b, again, 0);
    nj_ref_put(&again->ref);
    nj_ref_put(&o->ref);
    end(&b);
}

static void fail_preads(uint32_t n, int err)
{
    n_preads_fail = n;
    pread_errno = err;
}

/* The store retries a read for which the system lacks memory. When the retries are used up, the
 * next READ of the file starts again. A disk error breaks the file. */
Test(store_file_stuck, a_read_that_the_system_has_no_memory_for)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    write_file(&b, "small", "x", 1);
    count("nanosleep");
    read_and_put(&b, o, 0); /* it was changed just now: that is waited for once */
    n_calls = 0;
    fail_preads(NJ__FILE_READ_RETRIES, ENOMEM);
    read_and_put(&b, o, MIB);
    cr_expect_eq(n_calls, NJ__FILE_READ_RETRIES);
    fail_preads(NJ__FILE_READ_RETRIES, EAGAIN);
    expect_text(&b, "small", "x");
    fail_preads(NJ__FILE_READ_RETRIES + 1, ENOMEM);
    cr_expect_eq(read_job(&b, o, 2 * MIB, SMALL), NJ_FILE_BROKEN);
    cr_expect_eq(stats(&b)->changed, 0);
    read_and_put(&b, o, 2 * MIB);
    n_calls = 0;
    fail_preads(1, EIO);
    cr_expect_eq(read_job(&b, o, 3 * MIB, SMALL), NJ_FILE_BROKEN);
    cr_expect_eq(read_job(&b, o, 3 * MIB, SMALL), NJ_FILE_BROKEN);
    cr_expect_eq(n_calls, 0);
    cr_expect_eq(stats(&b)->changed, 2);
    nj_ref_put(&o->ref);
    end(&b);
}

/* A READ of a large chunk does not wait for a small one, nor a small one for a large one. */
Test(store_file_stuck, pieces_of_other_sizes)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    struct other large = {.job = read_of(o, NJ_OBJECT_IN_MEMORY_MAX)}, small = large;
    large.job.n_bytes = NJ_CHUNK_BYTES;
    begin_other(&large, &b, "pread", false);
    begin_other(&small, &b, "pread", false);
    cr_expect_eq(end_other(&large, false), NJ_FILE_OK);
    cr_expect_eq(read_job(&b, o, NJ_OBJECT_IN_MEMORY_MAX, SMALL), NJ_FILE_BUSY);
    read_and_put(&b, o, NJ_OBJECT_IN_MEMORY_MAX + SMALL);
    cr_expect_eq(stats(&b)->reads, 2, "that was in the large one");
    cr_expect_eq(end_other(&small, false), NJ_FILE_OK);
    cr_expect_eq(memcmp(small.job.chunk->bytes, "mark", 4), 0);
    put(large.job.chunk);
    put(small.job.chunk);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Two threads read the file; the second one to finish uses the object that the first one has
 * cached. */
Test(store_file_stuck, two_open_the_same)
{
    struct bench b;
    begin(&b, 64 * MIB);
    write_file(&b, "f", "text", 4);
    wait_for_tick(&b, "f");
    cr_assert_eq(chmod(at(&b, "f"), 0600), 0); /* the cached object is no longer valid */
    struct stat st;
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    atomic_store(&wall_ns,
                 (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec + 100000000);
    struct other other = {.job = open_of("f")};
    begin_other(&other, &b, "pread", false);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *mine = b.job.object;
    cr_expect_not(mine->is_racy);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 2);
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    cr_expect_eq(other.job.object, mine);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 1);
    cr_expect_eq(stats(&b)->cached_files, 1);
    cr_expect_eq(stats(&b)->whole_bytes, 4);
    nj_ref_put(&mine->ref);
    nj_ref_put(&other.job.object->ref);
    end(&b);
}

/* The thread that is late has the version that it opened; the next OPEN has the one that is there.
 */
Test(store_file_stuck, two_open_what_changes)
{
    struct bench b;
    char from[PATH_MAX];
    begin(&b, 64 * MIB);
    write_file(&b, "f", "old!", 4);
    write_file(&b, "new", "new!", 4);
    wait_for_tick(&b, "new");
    strcpy(from, at(&b, "new"));
    struct other other = {.job = open_of("f")};
    begin_other(&other, &b, "pread", false);
    cr_assert_eq(rename(from, at(&b, "f")), 0);
    expect_text(&b, "f", "new!");
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    cr_expect_eq(memcmp(other.job.object->bytes, "old!", 4), 0);
    expect_text(&b, "f", "new!");
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->cached_files, 2, "f and new");
    nj_ref_put(&other.job.object->ref);
    end(&b);
}

/* No thread reads a file that was changed in the current tick before the tick ends. */

Test(store_file_stuck, each_waits_for_the_tick)
{
    struct bench b;
    struct stat st;
    begin(&b, 64 * MIB);
    sparse_file(&b, "f", 2 * NJ_OBJECT_IN_MEMORY_MAX);
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    int64_t ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    atomic_store(&wall_ns, ctime_ns + 1000000);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    cr_assert(o->is_racy);
    struct other other = {.job = read_of(o, 0)};
    begin_other(&other, &b, "nanosleep", false);
    count("nanosleep");
    read_and_put(&b, o, MIB);
    cr_expect_eq(n_calls, 1);
    atomic_store(&wall_ns, ctime_ns + 20000001);
    read_and_put(&b, o, 2 * MIB);
    cr_expect_eq(n_calls, 1, "it is over");
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    put(other.job.chunk);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Whole seconds, as on ext4 with small inodes. */
static void drop_ns(struct stat *st)
{
    st->st_mtim.tv_nsec = st->st_ctim.tv_nsec = 0;
}

/* Where times are whole seconds, a second change leaves them as they are for longer. */
Test(store_file_stuck, a_tick_of_seconds)
{
    struct bench b;
    struct stat st;
    begin(&b, 64 * MIB);
    write_file(&b, "f", "text", 4);
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    on_stat = drop_ns;
    for (int past = 0; past < 2; past++) {
        atomic_store(&wall_ns,
                     (int64_t)st.st_ctim.tv_sec * 1000000000 + 2020000000 + (past ? 1 : -1));
        cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
        cr_expect_eq(b.job.object->is_racy, !past);
        nj_ref_put(&b.job.object->ref);
    }
    end(&b);
}

static void no_sleep(const struct timespec *wait)
{
    (void)wait;
}

static void read_after(struct bench *b, int64_t ctime_s, int64_t age_ns, uint32_t n_waits)
{
    struct nj_file_object *o = b->job.object;

    atomic_store(&wall_ns, ctime_s * 1000000000 + age_ns);
    count("nanosleep");
    read_and_put(b, o, MIB);
    cr_expect_eq(n_calls, n_waits, "%ld ns: %u", (long)age_ns, n_calls);
    nj_ref_put(&o->ref);
}

/* A worker waits for the end of a short tick, but not for that of a long one. */
Test(store_file_stuck, no_worker_waits_for_seconds)
{
    static const struct {
        int64_t age_ns;
        enum nj_file_result result;
        uint32_t n_waits;
    } rows[] = {
        {1000000, NJ_FILE_UNSETTLED, 0}, {1999999999, NJ_FILE_UNSETTLED, 0},
        {2000000000, NJ_FILE_OK, 1},     {2019999999, NJ_FILE_OK, 1},
        {2020000000, NJ_FILE_OK, 0},
    };
    struct bench b;
    struct stat st;
    begin(&b, 64 * MIB);
    sparse_file(&b, "f", 2 * NJ_OBJECT_IN_MEMORY_MAX);
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    on_stat = drop_ns;
    on_sleep = no_sleep;
    /* A file from the future has no end of its tick. Later it has one. */
    atomic_store(&wall_ns, (int64_t)st.st_ctim.tv_sec * 1000000000 - 1);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    read_after(&b, st.st_ctim.tv_sec, 1000000, 0);
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        atomic_store(&wall_ns, (int64_t)st.st_ctim.tv_sec * 1000000000 + rows[i].age_ns);
        cr_expect_eq(open_job(&b, "f"), rows[i].result, "row %zu", i);
        if (b.job.object)
            read_after(&b, st.st_ctim.tv_sec, rows[i].age_ns, rows[i].n_waits);
    }
    on_sleep = NULL;
    end(&b);
}

static struct {
    char path[PATH_MAX];
    struct stat st;
    uint32_t n_reads;
} changed;

/* The same times as before the change. */
static void freeze_times(struct stat *st)
{
    st->st_mtim = changed.st.st_mtim;
    st->st_ctim = changed.st.st_ctim;
}

/* Before the second read, which is of the second half. */
static void change_between(const char *call)
{
    if (strcmp(call, "pread") || ++changed.n_reads != 2)
        return;
    int fd = open(changed.path, O_WRONLY);
    cr_assert_eq(pwrite(fd, "new+new+", 8, 0), 8);
    next.close(fd);
}

/* A file that was changed in this tick is changed once more while it is read whole. */
Test(store_file_stuck, a_change_between_two_reads)
{
    struct bench b;
    begin(&b, 64 * MIB);
    write_file(&b, "f", "old-old-", 8);
    strcpy(changed.path, at(&b, "f"));
    cr_assert_eq(stat(changed.path, &changed.st), 0);
    atomic_store(&wall_ns, (int64_t)changed.st.st_ctim.tv_sec * 1000000000 +
                               changed.st.st_ctim.tv_nsec + 1000000);
    on_stat = freeze_times;
    on_call = change_between;
    pread_max = 4;
    expect_text(&b, "f", "new+new+");
    on_call = NULL;
    end(&b);
}

static void set_mode(struct bench *b, mode_t mode)
{
    cr_assert_eq(chmod(at(b, "f"), mode), 0);
}

/* Change the content, and set the mtime of `st`. */
static void rewrite(struct bench *b, const struct stat *st)
{
    int fd = open(at(b, "f"), O_WRONLY);

    cr_assert_eq(pwrite(fd, "x", 1, 0), 1);
    close(fd);
    set_mtime(b, "f", (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
}

/* An fstat() result from before a change of permissions is used late: fstat() is called again. The
 * change does not count as one that is still to come, which would explain a rewrite. */
Test(store_file_stuck, late_looks)
{
    struct bench b;
    struct stat st;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    struct other other = {.job = read_of(o, 0)};
    wait_for_tick(&b, "f"); /* times of two changes in one may be the same */
    begin_other(&other, &b, "fstat", true);
    set_mode(&b, 0600);
    read_and_put(&b, o, MIB);
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    put(other.job.chunk);

    wait_for_tick(&b, "f");
    rewrite(&b, &st);
    cr_expect_eq(read_job(&b, o, 2 * MIB, SMALL), NJ_FILE_BROKEN);
    nj_ref_put(&o->ref);
    end(&b);
}

/* One thread has read rewritten bytes. Another thread sees the earlier change of permissions late.
 * The first thread's check must not pass because of that. */
Test(store_file_stuck, a_late_look_beside_a_rewrite)
{
    struct bench b;
    struct stat st;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    struct other late = {.job = read_of(o, MIB)}, reader = {.job = read_of(o, 0)};
    wait_for_tick(&b, "f");
    set_mode(&b, 0600);
    begin_other(&late, &b, "fstat", true);
    wait_for_tick(&b, "f");
    rewrite(&b, &st);
    begin_other(&reader, &b, "fstat", false);
    cr_expect_eq(end_other(&late, false), NJ_FILE_OK);
    cr_expect_eq(end_other(&reader, false), NJ_FILE_BROKEN);
    put(late.job.chunk);
    nj_ref_put(&o->ref);
    end(&b);
}

/* After one thread has seen a rewrite, the READ of the other thread fails, whose fstat() was
 * earlier. */
Test(store_file_stuck, a_late_look_at_a_changed_file)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    struct other other = {.job = read_of(o, 0)};
    begin_other(&other, &b, "fstat", true);
    cr_assert_eq(truncate(at(&b, "f"), NJ_OBJECT_IN_MEMORY_MAX), 0);
    cr_expect_eq(read_job(&b, o, MIB, SMALL), NJ_FILE_BROKEN);
    cr_expect_eq(end_other(&other, false), NJ_FILE_BROKEN);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Deleted files are let go of, by one thread: if their disk does not answer, that one alone waits.
 */
Test(store_file_stuck, a_look_for_deleted_files)
{
    struct bench b;
    begin(&b, 64 * MIB);
    nj_ref_put(&open_large(&b, "f")->ref);
    nj_ref_put(&open_large(&b, "g")->ref);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 2);
    cr_assert_eq(unlink(at(&b, "f")), 0);
    atomic_fetch_add(&coarse_ahead_s, 17);
    struct other other = {.only_tidies = true};
    begin_other(&other, &b, "fstat", false);
    for (int i = 0; i < 40; i++) {
        atomic_fetch_add(&coarse_ahead_s, 1);
        count("fstat");
        nj_file_store_run_housekeeping(b.store);
        cr_expect_eq(n_calls, 0);
        cr_expect_eq(peek(&b, "g"), NJ_FILE_OK);
    }
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 2);
    end_other(&other, false);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 1);
    cr_assert_eq(unlink(at(&b, "g")), 0);
    for (int i = 0; i < 17; i++) {
        atomic_fetch_add(&coarse_ahead_s, 1);
        nj_file_store_run_housekeeping(b.store);
    }
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 0);
    end(&b);
}

static int fd_of(struct nj_file_object *o)
{
    return nj_container_of(o, struct nj__file, object)->fd;
}

/* A close(2) that blocks does not delay the close of other files. */
Test(store_file_stuck, a_file_that_is_being_closed)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o[] = {open_large(&b, "f"), open_large(&b, "g"), open_large(&b, "h")};
    int fd[] = {fd_of(o[0]), fd_of(o[1]), fd_of(o[2])};
    uint32_t n_open = 0;
    for (int i = 0; i < 3; i++) {
        char name[2] = {"fgh"[i]};
        cr_assert_eq(unlink(at(&b, name)), 0);
        cr_expect_eq(open_job(&b, name), NJ_FILE_ABSENT);
        nj_ref_put(&o[i]->ref);
    }
    struct other other = {.only_tidies = true};
    begin_other(&other, &b, "close", false);
    nj_file_store_free_unreferenced(b.store);
    for (int i = 0; i < 3; i++)
        n_open += fcntl(fd[i], F_GETFD) >= 0;
    cr_expect_eq(n_open, 1);
    end_other(&other, false);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(fcntl(fd[i], F_GETFD), -1);
    end(&b);
}

/* The same file system may not answer for the root's name. */
Test(store_file_stuck, a_look_at_the_root)
{
    struct bench b;
    begin(&b, 64 * MIB);
    write_file(&b, "a", "x", 1);
    atomic_fetch_add(&coarse_ahead_s, 2);
    struct other other = {.job = open_of("a")};
    begin_other(&other, &b, "stat", false);
    count("stat");
    for (int i = 0; i < 3; i++) {
        atomic_fetch_add(&coarse_ahead_s, 2);
        expect_text(&b, "a", "x");
    }
    cr_expect_eq(n_calls, 0);
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    nj_ref_put(&other.job.object->ref);
    end(&b);
}

/* One thread runs jobs while another one is in a system call. */
static struct {
    struct nj_file_store *store;
    struct nj_file_object *large;
    struct nj_file_chunk *first; /* a reference to it, so that other threads do not free it */
    sem_t ask, done;
    bool stop;
    struct {
        const char *call;
        uint32_t n;
    } seen[16];
} meanwhile;

static void *do_jobs(void *arg)
{
    (void)arg;
    for (;;) {
        while (sem_wait(&meanwhile.ask) < 0)
            ;
        if (meanwhile.stop)
            return NULL;
        struct nj_file_job job = open_of("kept"), read = read_of(meanwhile.large, 0);
        nj_file_store_do_job(meanwhile.store, &job);
        nj_file_store_do_job(meanwhile.store, &read);
        cr_assert_eq(job.result, NJ_FILE_OK);
        cr_assert_eq(read.result, NJ_FILE_OK);
        nj_ref_put(&job.object->ref);
        put(read.chunk);
        sem_post(&meanwhile.done);
    }
}

static uint32_t *count_of(const char *call)
{
    uint32_t i = 0;

    while (meanwhile.seen[i].call && strcmp(meanwhile.seen[i].call, call) != 0)
        i++;
    cr_assert_lt(i, NJ_ARRAY_LEN(meanwhile.seen));
    meanwhile.seen[i].call = call;
    return &meanwhile.seen[i].n;
}

static void let_others_work(const char *call)
{
    struct timespec until;

    ++*count_of(call);
    next.clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    sem_post(&meanwhile.ask);
    while (sem_timedwait(&meanwhile.done, &until) < 0)
        cr_assert_eq(errno, EINTR, "the lock is held in %s", call);
}

static void make_work(struct bench *b)
{
    static uint8_t data[200000];

    write_file(b, "kept", "x", 1);
    write_file(b, "whole", data, sizeof data);
    cr_assert_eq(mkdir(at(b, "d"), 0755), 0);
    cr_assert_eq(symlink("whole", at(b, "link")), 0);
    wait_for_tick(b, "whole");
    cr_assert_eq(peek(b, "kept"), NJ_FILE_OK);
    meanwhile.store = b->store;
    meanwhile.large = open_large(b, "large");
    cr_assert_eq(read_job(b, meanwhile.large, 0, SMALL), NJ_FILE_OK);
    meanwhile.first = b->job.chunk;
}

/* Descriptors run out, but for a quarter, and an open file of the cache is given up. */
static void run_out(struct bench *b)
{
    struct rlimit limit, few;
    int fds[40], n = 0;

    do
        fds[n] = dup(0);
    while (fds[n++] < 40 && n < 40);
    getrlimit(RLIMIT_NOFILE, &limit);
    few = (struct rlimit){(rlim_t)fds[n - 1] * 4 / 3, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    cr_expect_eq(peek(b, "gone"), NJ_FILE_OK);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n > 0)
        next.close(fds[--n]);
}

static void work(struct bench *b)
{
    struct stat st;
    struct nj_file_object *o;

    cr_expect_eq(peek(b, "whole"), NJ_FILE_OK);
    cr_expect_eq(peek(b, "link"), NJ_FILE_OK);
    list_and_put(b);
    o = open_large(b, "gone");
    cr_assert_eq(stat(at(b, "gone"), &st), 0);
    atomic_store(&wall_ns, (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec + 1000000);
    cr_assert_eq(open_job(b, "gone"), NJ_FILE_OK);
    cr_assert(b->job.object->is_racy);
    nj_ref_put(&o->ref);
    o = b->job.object;
    cr_assert_eq(read_job(b, o, MIB, NJ_CHUNK_BYTES), NJ_FILE_OK);
    put(b->job.chunk);
    read_and_put(b, o, MIB + SMALL); /* copied */
    atomic_store(&wall_ns, 0);
    nj_ref_put(&o->ref);
    run_out(b);
    cr_assert_eq(unlink(at(b, "gone")), 0);
    atomic_fetch_add(&coarse_ahead_s, 17);
    nj_file_store_run_housekeeping(b->store);
    cr_assert_eq(truncate(at(b, "whole"), 100000), 0);
    cr_expect_eq(peek(b, "whole"), NJ_FILE_OK); /* and the memory of the old object is freed */
    cr_assert_eq(unlink(at(b, "whole")), 0);
    cr_expect_eq(peek(b, "whole"), NJ_FILE_ABSENT);
}

Test(store_file_stuck, no_call_has_the_lock)
{
    static const char *const calls[] = {"pread",  "fstat",   "fstatat",    "stat",     "close",
                                        "munmap", "fadvise", "readlinkat", "nanosleep"};
    struct bench b;
    pthread_t thread;

    begin_with(&b, 64 * MIB, NJ_SYMLINKS_OWNER);
    make_work(&b);
    sem_init(&meanwhile.ask, 0, 0);
    sem_init(&meanwhile.done, 0, 0);
    cr_assert_eq(pthread_create(&thread, NULL, do_jobs, NULL), 0);
    on_call = let_others_work;
    work(&b);
    on_call = NULL;
    for (size_t i = 0; i < NJ_ARRAY_LEN(calls); i++)
        cr_expect_gt(*count_of(calls[i]), 0, "%s was not tried", calls[i]);
    meanwhile.stop = true;
    sem_post(&meanwhile.ask);
    pthread_join(thread, NULL);
    put(meanwhile.first);
    nj_ref_put(&meanwhile.large->ref);
    end(&b);
}
