/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader and system calls: which of them it leaves to other threads. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "reader_rig.h"

TestSuite(store_file_reader_system, .init = start_world, .fini = scratch_remove, .timeout = 60);

static _Atomic uint32_t n_frees; /* close(2) and munmap(2) by it */

static void count_free(void)
{
    char name[16];
    if (pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
        strcmp(name, "nj-reader") == 0)
        atomic_fetch_add(&n_frees, 1);
}

int close(int fd)
{
    count_free();
    return (int)syscall(SYS_close, fd);
}

int munmap(void *p, size_t n_bytes)
{
    count_free();
    return (int)syscall(SYS_munmap, p, n_bytes);
}

/* The reader leaves close(2) and munmap(2), which may block, to other threads, also when it drops
 * the last reference or finds the dropped file. */
Test(store_file_reader_system, closes_no_file)
{
    sparse_file(&w.b, "whole", MIB);
    cr_assert_eq(open_job(&w.b, "whole"), NJ_FILE_OK);
    struct nj_file_object *whole = w.b.job.object, *large = open_large(&w.b, "large");
    int fd = nj_container_of(large, struct nj__file, object)->fd;

    cr_assert(whole->bytes && fd >= 0);
    cache(1);
    cr_assert_eq(unlink(at(&w.b, "whole")), 0);
    cr_assert_eq(unlink(at(&w.b, "large")), 0);
    cr_expect_eq(open_job(&w.b, "whole"), NJ_FILE_ABSENT);
    cr_expect_eq(open_job(&w.b, "large"), NJ_FILE_ABSENT);
    atomic_store(&n_frees, 0);
    nj_ref_put(&whole->ref);
    nj_ref_put(&large->ref);
    read_cached(1);
    read_cached(1); /* the reader has looked at the dead after the first one */
    cr_expect_eq(stats(&w.b)->whole_bytes, 0, "they were buried");
    cr_expect_eq(n_frees, 0);
    cr_expect_neq(fcntl(fd, F_GETFD), -1);
    nj_file_store_free_unreferenced(w.b.store);
    cr_expect_eq(fcntl(fd, F_GETFD), -1);
    end_world();
}

static bool is_resident(const uint8_t *at)
{
    unsigned char is[PIECE / 4096];
    bool all = true;

    cr_assert_eq(mincore((void *)(uintptr_t)at, PIECE, is), 0);
    for (size_t i = 0; i < sizeof is; i++)
        all &= is[i] & 1;
    return all;
}

/* The memory for a read is populated before the read begins. So the kernel does not allocate or
 * clear pages in the reader's thread. */
Test(store_file_reader_system, reads_into_memory_that_is_there)
{
    enum { N = 8 };
    static struct nj_file_job job[N];
    const struct nj__arena *a = nj__file_store_chunks(w.b.store)->arena;

    cr_assert(nj__arena_needs_pages(a));
    if (nj__arena_populate(nj__arena_memory_range(a).at) == -EINVAL) { /* before Linux 5.14 */
        end_world();
        return;
    }
    cache(0);
    while (nj__arena_needs_pages(a)) /* a thread of the reader's sees to it */
        sched_yield();
    for (uint32_t i = 0; i < N; i++)
        ask_for(&job[i], 1 + i, NULL);
    await_pending(1 + N);
    for (uint32_t i = 0; i < N; i++) {
        pthread_mutex_lock(&disk.lock);
        const uint8_t *out = disk.all[1 + i].read.out;
        pthread_mutex_unlock(&disk.lock);
        cr_expect(is_resident(out), "%u", i);
        finish(1 + i, ALL);
        take_home(await_one());
    }
    end_world();
}

/* End reads with `result` until a job completes. */
static struct nj_file_job *fail_until_home(int32_t result)
{
    struct nj_file_job *home;

    for (uint32_t n = n_pending() - 1; poll_some(&home, 1) == 0; sched_yield())
        if (n_pending() > n)
            finish(n++, result);
    return home;
}

static struct nj__file *file(void)
{
    return nj_container_of(w.object, struct nj__file, object);
}

/* A read for which the system lacks memory is not retried endlessly, and the file stays valid. The
 * job's owner retries it, now with the workers. */
Test(store_file_reader_system, what_it_cannot_read_now)
{
    static const int32_t results[] = {-EAGAIN, -ENOMEM, -EINTR};
    struct nj_file_job job[2];

    atomic_store(&file()->is_settled, true);
    for (size_t i = 0; i < NJ_ARRAY_LEN(results); i++) {
        uint32_t n = n_pending();
        ask_for(&job[0], i, &job[0]);
        await_pending(n + 1);
        ask_for(&job[1], i, &job[1]);
        struct nj_file_job *home[2] = {fail_until_home(results[i]), await_one()};
        cr_expect_eq(n_pending(), n + 17);
        cr_expect_neq(home[0], home[1]);
        for (int k = 0; k < 2; k++) {
            cr_expect_eq(home[k]->result, NJ_FILE_BUSY);
            cr_expect_null(home[k]->chunk);
            cr_expect(nj_file_store_may_retry_read(w.b.store, home[k]));
            cr_expect_not(nj_file_reader_job_cannot_block(home[k]));
        }
        for (int k = 0; k < 2; k++) {
            nj_file_store_do_job(w.b.store, home[k]);
            take_home(home[k]);
            cr_expect(nj_file_reader_job_cannot_block(home[k]), "as before");
        }
        cache(10 + i);
    }
    cr_expect_eq(stats(&w.b)->changed, 0);
    cr_expect_eq(nj_file_reader_stats(w.reader)->n_failed, 0);
    cr_expect_eq(nj_file_reader_stats(w.reader)->n_to_workers, NJ_ARRAY_LEN(results));
    end_world();
}

/* The other waiting jobs for that file are returned as busy, too. Cached chunks are lent. */
Test(store_file_reader_system, those_behind_what_it_cannot_read)
{
    enum { MORE = 5, N = NJ_FILE_READS_CLIENT_MAX + MORE };
    static struct nj_file_job job[N];
    uint32_t n_busy = 0;
    char client;

    cache(100);
    for (uint32_t i = 0; i < N; i++)
        ask_for(&job[i], i, &client);
    await_pending(1 + NJ_FILE_READS_CLIENT_MAX);
    n_busy += fail_until_home(-ENOMEM)->result == NJ_FILE_BUSY;
    for (uint32_t i = 0; i < MORE; i++)
        n_busy += await_one()->result == NJ_FILE_BUSY;
    cr_expect_eq(n_busy, 1 + MORE);
    read_cached(100);
    for (uint32_t i = 1; i < NJ_FILE_READS_CLIENT_MAX; i++) {
        finish(i, ALL);
        take_home(await_one());
    }
    end_world();
}

/* A slow read that makes progress is not returned as busy. */
Test(store_file_reader_system, a_read_in_many_parts)
{
    enum { PARTS = PIECE / 4096 };
    struct nj_file_job job;

    ask_for(&job, 0, NULL);
    for (uint32_t i = 0; i < PARTS; i++) {
        await_pending(i + 1);
        finish(i, 4096);
    }
    cr_assert_eq(await_one(), &job);
    take_home(&job);
    end_world();
}

/* --- a worker that runs a task where it is submitted --- */

static struct nj_task *at_home;

static bool submit_and_run(void *ctx, struct nj_task *task)
{
    (void)ctx;
    cr_assert_null(at_home);
    task->ops->run(task);
    at_home = task;
    return true;
}

static void flush_none(void *ctx)
{
    (void)ctx;
}

static uint32_t poll_one(void *ctx, struct nj_task **tasks, uint32_t n)
{
    uint32_t n_home = at_home && n > 0;

    (void)ctx;
    if (n_home > 0)
        tasks[0] = at_home;
    at_home = n_home > 0 ? NULL : at_home;
    return n_home;
}

/* A worker does a READ for which the reader has no memory. The lane's caller sees no error. */
Test(store_file_reader_system, what_a_worker_reads_instead)
{
    static struct nj_file_client lane;
    struct nj_worker_ops worker = {.submit = submit_and_run, .flush = flush_none, .poll = poll_one};
    struct nj_file_ops port = nj_file_client_init(&lane, &worker, &w.port, w.b.store);
    struct nj_file_job *home, job = {.op = NJ_FILE_READ,
                                     .object = w.object,
                                     .offset = NJ_OBJECT_IN_MEMORY_MAX,
                                     .n_bytes = PIECE,
                                     .owner = &job};

    atomic_store(&file()->is_settled, true);
    cr_assert(port.submit(port.ctx, &job));
    await_pending(1);
    for (uint32_t n = 0; port.poll(port.ctx, &home, 1) == 0; sched_yield())
        if (n_pending() > n)
            finish(n++, -ENOMEM);
    cr_expect_eq(home, &job);
    cr_expect_eq(memcmp(job.chunk->bytes, "mark", 4), 0, "of the file, not of this disk");
    take_home(&job);
    end_world();
}
