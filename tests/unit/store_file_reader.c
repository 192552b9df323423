/* SPDX-License-Identifier: BSD-3-Clause */
/* Which chunks the reader reads, in which order, and with which results. */
#include "reader_rig.h"

TestSuite(store_file_reader, .init = start_world, .fini = scratch_remove, .timeout = 60);

Test(store_file_reader, all_who_want_a_piece_share_one_read)
{
    struct nj_file_job job[50];

    cache(1);
    for (int i = 0; i < 50; i++)
        ask_for(&job[i], 0, &job[i]);
    await_pending(2);
    read_cached(1);
    cr_expect_eq(n_pending(), 2);
    finish(1, ALL);
    for (int i = 0; i < 50; i++)
        await_one();
    for (int i = 0; i < 50; i++) /* now: a chunk just put by its last holder may be read again */
        take_home(&job[i]);
    cr_expect_eq(stats(&w.b)->reads, 2);
    cr_expect_eq(n_pending(), 2);
    end_world();
}

/* A READ of a cached chunk completes while the disk does not answer. One client with any number of
 * requests leaves reads to others. */
Test(store_file_reader, a_stuck_client_holds_up_nobody)
{
    static struct nj_file_job job[NJ_FILE_READS_CLIENT_MAX + 20], other;
    char greedy, honest;

    cache(100);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++)
        ask_for(&job[i], i, &greedy);
    await_pending(1 + NJ_FILE_READS_CLIENT_MAX);
    read_cached(100);
    cr_expect_eq(n_pending(), 1 + NJ_FILE_READS_CLIENT_MAX);
    ask_for(&other, 90, &honest);
    await_pending(2 + NJ_FILE_READS_CLIENT_MAX);
    cr_expect_eq(piece_of(1 + NJ_FILE_READS_CLIENT_MAX), 90);
    finish(1 + NJ_FILE_READS_CLIENT_MAX, ALL);
    cr_assert_eq(await_one(), &other);
    take_home(&other);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++) {
        uint32_t k = i < NJ_FILE_READS_CLIENT_MAX ? i + 1 : i + 2;
        await_pending(k + 1);
        finish(k, ALL);
        take_home(await_one());
    }
    end_world();
}

/* The reads of two clients with many requests alternate. */
Test(store_file_reader, clients_take_turns)
{
    static struct nj_file_job job[2][40];
    char client[2];
    uint32_t n_of[2] = {0, 0};

    for (int i = 0; i < 40; i++)
        ask_for(&job[0][i], (uint64_t)i, &client[0]);
    for (int i = 0; i < 40; i++)
        ask_for(&job[1][i], 64u + (uint64_t)i, &client[1]);
    await_pending(NJ_FILE_READS_MAX);
    cr_expect_eq(n_pending(), NJ_FILE_READS_MAX);
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++)
        n_of[piece_of(i) >= 64]++;
    cr_expect_eq(n_of[0], NJ_FILE_READS_CLIENT_MAX);
    cr_expect_eq(n_of[1], NJ_FILE_READS_CLIENT_MAX);
    for (uint32_t i = 0; i < 80; i++) {
        await_pending(i + 1);
        finish(i, ALL);
        take_home(await_one());
    }
    end_world();
}

/* A failed read fails the jobs that wait for it, and no others. */
Test(store_file_reader, errors)
{
    static const int32_t results[] = {-EIO, 0, 4096, -ENODATA};
    struct nj_file_job job[3];

    for (size_t i = 0; i < NJ_ARRAY_LEN(results); i++) {
        char name[8];
        uint32_t n = n_pending();
        snprintf(name, sizeof name, "g%zu", i);
        struct nj_file_object *kept = w.object, *broken = open_large(&w.b, name);
        w.object = broken;
        ask_for(&job[0], 3, &job[0]);
        ask_for(&job[1], 3, &job[1]);
        w.object = kept;
        ask_for(&job[2], 4 + i, &job[2]);
        await_pending(n + 2);
        uint32_t bad = piece_of(n) == 3 ? n : n + 1;
        finish(bad, results[i]);
        if (results[i] > 0) { /* the rest is requested, and the file ends there */
            await_pending(n + 3);
            finish(n + 2, 0);
        }
        for (int k = 0; k < 2; k++) {
            const struct nj_file_job *home = await_one();
            cr_expect(home == &job[0] || home == &job[1]);
            cr_expect_eq(home->result, NJ_FILE_BROKEN);
            cr_expect_null(home->chunk);
        }
        finish(bad == n ? n + 1 : n, ALL);
        cr_expect_eq(await_one(), &job[2]);
        take_home(&job[2]);
        nj_ref_put(&broken->ref);
    }
    cr_expect_eq(nj_file_reader_stats(w.reader)->n_failed, NJ_ARRAY_LEN(results));
    end_world();
}

/* The system read a part, or returned EAGAIN or EINTR, or cannot read past the page cache. */
Test(store_file_reader, goes_on)
{
    static const int32_t results[] = {8192, -EAGAIN, -EINTR, 100, 1};
    struct nj_file_job job;
    uint32_t n = 0;

    ask_for(&job, 0, NULL);
    await_pending(1);
    if (disk.all[0].read.is_direct) {
        finish(n++, -EINVAL);
        await_pending(n + 1);
        cr_expect_not(disk.all[n].read.is_direct);
    }
    for (size_t i = 0; i < NJ_ARRAY_LEN(results); i++) {
        finish(n++, results[i]);
        await_pending(n + 1);
    }
    cr_expect_eq(disk.all[n].read.offset, 8192 + 101);
    cr_expect_eq(disk.all[n].read.n_bytes, PIECE - 8192 - 101);
    finish(n, ALL);
    cr_expect_eq(await_one(), &job);
    cr_expect_eq(job.chunk->bytes[PIECE - 1], FILL);
    take_home(&job);
    end_world();
}

/* The reader reads the rest of a block through the page cache: O_DIRECT reads whole blocks alone.
 */
Test(store_file_reader, a_part_of_a_block)
{
    struct nj_file_job job;

    ask_for(&job, 0, NULL);
    await_pending(1);
    finish(0, 4096 + 100);
    await_pending(2);
    cr_expect_not(disk.all[1].read.is_direct);
    cr_expect_eq(disk.all[1].read.offset, 4096 + 100);
    finish(1, ALL);
    cr_expect_eq(await_one(), &job);
    take_home(&job);
    const struct nj__file *f = nj_container_of(w.object, struct nj__file, object);
    cr_expect_eq(fcntl(f->fd, F_GETFL) & O_DIRECT, 0);
    end_world();
}

/* The file was changed while it was read. */
Test(store_file_reader, changed_meanwhile)
{
    struct nj_file_job job;

    cache(1);
    ask_for(&job, 0, NULL);
    await_pending(2);
    cr_assert_eq(truncate(at(&w.b, "f"), PIECE), 0);
    finish(1, ALL);
    cr_expect_eq(await_one(), &job);
    cr_expect_eq(job.result, NJ_FILE_BROKEN);
    end_world();
}

/* The chunks that a body will need next are read together with the current one, once, and not past
 * the body's end. There is no read-ahead while other jobs wait. */
Test(store_file_reader, reads_ahead)
{
    static struct nj_file_job job, many[NJ_FILE_READS_MAX + 10];

    job.n_ahead = 0;
    ask_for(&job, 0, NULL);
    await_pending(1);
    finish(0, ALL);
    take_home(await_one());
    job = (struct nj_file_job){.op = NJ_FILE_READ,
                               .object = w.object,
                               .offset = PIECE,
                               .n_bytes = PIECE,
                               .n_ahead = 8,
                               .end = 5 * PIECE - 1,
                               .task = {.ops = &job_ops}};
    nj_list_init(&job.task.node);
    for (int i = 0; i < 2; i++) {
        cr_assert(w.port.submit(w.port.ctx, &job.task));
        w.port.flush(w.port.ctx);
        if (i == 0) {
            await_pending(5);
            for (uint32_t k = 1; k < 5; k++)
                finish(k, ALL);
        }
        cr_assert_eq(await_one(), &job);
        take_home(&job);
        cr_expect_eq(n_pending(), 5, "chunks 1 to 4, each once");
    }
    for (uint64_t k = 2; k < 5; k++)
        read_cached(k);
    cr_expect_eq(stats(&w.b)->ahead, 3);

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(many); i++)
        ask_for(&many[i], 10 + i, &many[i]);
    await_pending(5 + NJ_FILE_READS_MAX);
    job.offset = 4 * PIECE;
    job.end = w.object->size_bytes;
    cr_assert(w.port.submit(w.port.ctx, &job.task));
    w.port.flush(w.port.ctx);
    cr_assert_eq(await_one(), &job);
    take_home(&job);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(many); i++) {
        await_pending(5 + i + 1);
        finish(5 + i, ALL);
        take_home(await_one());
    }
    cr_expect_eq(stats(&w.b)->ahead, 3);
    end_world();
}

/* The reader stops without the jobs that it has not started, and rejects them. It does not stop
 * during a read, because that writes to the store's memory. */
Test(store_file_reader, stops)
{
    static struct nj_file_job job[NJ_FILE_READS_MAX + 10];
    struct nj_file_job *home;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++)
        ask_for(&job[i], i, &job[i]);
    await_pending(NJ_FILE_READS_MAX);
    cr_expect_gt(nj_file_reader_stop(w.reader, 10), 0);
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++)
        finish(i, ALL);
    cr_expect_eq(nj_file_reader_stop(w.reader, FOR_EVER), 0);
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++) {
        cr_assert_eq(poll_some(&home, 1), 1);
        take_home(home);
    }
    cr_expect_eq(poll_some(&home, 1), 0);
    cr_expect_eq(n_rejected, 10);
    end_world();
}

/* A withdrawn job is not read. */
Test(store_file_reader, withdrawn)
{
    static struct nj_file_job job[NJ_FILE_READS_MAX + 1];
    static const char client[2]; /* neighbours are never in one bucket of the queue */

    _Static_assert(NJ_FILE_READS_MAX <= 2 * NJ_FILE_READS_CLIENT_MAX, "all are read but the last");
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++)
        ask_for(&job[i], i, &client[i % 2]);
    await_pending(NJ_FILE_READS_MAX);
    struct nj_task *last = &job[NJ_FILE_READS_MAX].task;
    cr_expect_not(w.port.withdraw(w.port.ctx, last), "the reader has it");
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++)
        finish(i, ALL);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++) {
        struct nj_file_job *home = await_one();
        if (&home->task != last)
            take_home(home);
        else
            cr_expect_null(home->chunk);
    }
    cr_expect_eq(n_pending(), NJ_FILE_READS_MAX);
    end_world();
}

/* A worker reads the same chunk, and does not notify the reader: the job returns as busy, and the
 * shard has to retry it. */
Test(store_file_reader, what_a_worker_reads)
{
    struct nj_file_job job, worker = {.op = NJ_FILE_READ, .object = w.object, .n_bytes = PIECE};
    struct nj__chunks *c = nj__file_store_chunks(w.b.store);
    struct nj__file *f = nj_container_of(w.object, struct nj__file, object);
    struct nj__chunk_fill fill;

    cr_assert_eq(nj__chunks_lookup_or_begin_fill(c, f, &worker, &fill), NJ_FILE_OK);
    cr_assert(fill.chunk);
    ask_for_ahead(&job, 0, NULL, 4);
    cr_assert_eq(await_one(), &job);
    cr_expect_eq(job.result, NJ_FILE_BUSY);
    cr_expect_eq(n_pending(), 4, "the reader does not access a completed job");
    cr_expect_not(nj_file_store_may_retry_read(w.b.store, &job));
    cr_assert_eq(nj__chunks_end_fill(c, &fill, true, &worker), NJ_FILE_OK);
    cr_expect(nj_file_store_may_retry_read(w.b.store, &job));
    nj_ref_put(&worker.chunk->ref);
    for (uint32_t i = 0; i < 4; i++)
        finish(i, ALL);
    read_cached(0);
    end_world();
}

static bool submit_none(void *ctx, struct nj_task *task)
{
    (void)ctx, (void)task;
    return false;
}

static void flush_none(void *ctx)
{
    (void)ctx;
}

static uint32_t poll_none(void *ctx, struct nj_task **tasks, uint32_t n)
{
    (void)ctx, (void)tasks, (void)n;
    return 0;
}

/* ... also through the lane of a file client: a submitted job that has not started is not read. */
Test(store_file_reader, withdrawn_from_a_lane)
{
    enum { LATE = 20 };
    static struct nj_file_job job[NJ_FILE_READS_CLIENT_MAX + LATE];
    static struct nj_file_client lane;
    struct nj_worker_ops none = {.submit = submit_none, .flush = flush_none, .poll = poll_none};
    struct nj_file_ops port = nj_file_client_init(&lane, &none, &w.port, w.b.store);
    uint32_t n_done = 0;
    char client;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++) {
        job[i] = (struct nj_file_job){.op = NJ_FILE_READ,
                                      .object = w.object,
                                      .offset = (uint64_t)i * PIECE,
                                      .n_bytes = PIECE,
                                      .owner = &job[i],
                                      .client = &client};
        atomic_store(&nj_container_of(w.object, struct nj__file, object)->is_settled, true);
        cr_assert(port.submit(port.ctx, &job[i]));
    }
    await_pending(NJ_FILE_READS_CLIENT_MAX);
    for (uint32_t i = NJ_FILE_READS_CLIENT_MAX; i < NJ_ARRAY_LEN(job); i++) {
        job[i].owner = NULL;
        cr_expect_not(port.withdraw(port.ctx, &job[i]));
    }
    for (uint32_t i = 0; i < NJ_FILE_READS_CLIENT_MAX; i++)
        finish(i, ALL);
    while (n_done < NJ_ARRAY_LEN(job)) {
        struct nj_file_job *home[8];
        uint32_t n = port.poll(port.ctx, home, NJ_ARRAY_LEN(home));
        for (uint32_t i = 0; i < n; i++)
            if (home[i]->chunk)
                nj_ref_put(&home[i]->chunk->ref);
        n_done += n;
    }
    cr_expect_eq(n_pending(), NJ_FILE_READS_CLIENT_MAX);
    end_world();
}

/* The estimated duration of a worker's READ does not change with the READs of the reader, which
 * measures none. */
Test(store_file_reader, how_long_workers_take)
{
    static struct nj_file_client lane;
    struct nj_worker_ops none = {.submit = submit_none, .flush = flush_none, .poll = poll_none};
    struct nj_file_ops port = nj_file_client_init(&lane, &none, &w.port, w.b.store);
    struct nj_task_class *reads = &lane.by_op[NJ_FILE_READ];

    cache(0);
    reads->worker_max_ns = 100 * NJ_WORKER_SHORT_TASK_NS;
    atomic_store(&nj_container_of(w.object, struct nj__file, object)->is_settled, true);
    for (uint32_t i = 0; i < 500; i++) {
        struct nj_file_job *home,
            job = {.op = NJ_FILE_READ, .object = w.object, .n_bytes = PIECE, .owner = &job};
        cr_assert(port.submit(port.ctx, &job));
        while (port.poll(port.ctx, &home, 1) == 0)
            sched_yield();
        take_home(home);
    }
    cr_expect_eq(reads->worker_max_ns, 100 * NJ_WORKER_SHORT_TASK_NS);
    end_world();
}

/* Read-ahead and the requests of one client leave reads to others. */
Test(store_file_reader, reading_ahead_leaves_the_disk_to_others)
{
    enum { FIRST = 1 + NJ_FILE_READS_AHEAD_MAX, MORE = NJ_FILE_READS_CLIENT_MAX + 8 };
    static struct nj_file_job job, more[MORE], other;
    char greedy, honest;

    job = (struct nj_file_job){.op = NJ_FILE_READ,
                               .object = w.object,
                               .n_bytes = PIECE,
                               .n_ahead = NJ_FILE_READS_AHEAD_MAX + 8,
                               .end = w.object->size_bytes,
                               .task = {.ops = &job_ops, .client = &greedy}};
    nj_list_init(&job.task.node);
    cr_assert(w.port.submit(w.port.ctx, &job.task));
    w.port.flush(w.port.ctx);
    await_pending(FIRST);
    for (uint32_t i = 0; i < MORE; i++)
        ask_for(&more[i], 60 + i, &greedy);
    await_pending(FIRST + NJ_FILE_READS_CLIENT_MAX - 1);
    ask_for(&other, 120, &honest);
    await_pending(FIRST + NJ_FILE_READS_CLIENT_MAX);
    for (uint32_t n = 0, n_ended = 0; n < 2 + MORE;) {
        struct nj_file_job *home;
        while (n_ended < n_pending())
            finish(n_ended++, ALL);
        if (poll_some(&home, 1) == 1) {
            take_home(home);
            n++;
        }
    }
    end_world();
}
