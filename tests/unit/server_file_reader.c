/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader over a disk of the test's, which ends reads when and how the test says. */
#include <sched.h>

#include "base/attr.h"
#include "base/limits.h"
#include "server/file_chunks.h"
#include "server/file_lane.h"
#include "server/file_reader.h"
#include "server/file_ring.h"
#include "store_rig.h"

/* --- a disk, in place of file_ring.c
 * ----------------------------------------------------------------------------------- */

#define PENDING_MAX 256u

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct disk_read {
        struct nj__ring_read read;
        void *user;
        int32_t result;
        bool is_done, is_taken;
    } all[PENDING_MAX];
    uint32_t n;
    bool is_woken;
};

static struct fake disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

#include "support/ring_double.h"

void nj__ring_read(struct nj__ring *r, const struct nj__ring_read *read, void *user)
{
    (void)r;
    pthread_mutex_lock(&disk.lock);
    cr_assert_lt(disk.n, PENDING_MAX);
    /* All of it: where all tests are one process the place was another read's. */
    disk.all[disk.n] = (struct disk_read){.read = *read, .user = user};
    disk.n++;
    pthread_cond_broadcast(&disk.news);
    pthread_mutex_unlock(&disk.lock);
}

uint32_t nj__ring_reap(struct nj__ring *r, struct nj__ring_done *done, uint32_t n)
{
    uint32_t n_done = 0;

    (void)r;
    pthread_mutex_lock(&disk.lock);
    for (uint32_t i = 0; i < disk.n && n_done < n; i++) {
        if (!disk.all[i].is_done || disk.all[i].is_taken)
            continue;
        disk.all[i].is_taken = true;
        done[n_done++] = (struct nj__ring_done){disk.all[i].user, disk.all[i].result};
    }
    pthread_mutex_unlock(&disk.lock);
    return n_done;
}

void nj__ring_will_wait(struct nj__ring *r)
{
    (void)r;
}

void nj__ring_wait(struct nj__ring *r)
{
    (void)r;
    pthread_mutex_lock(&disk.lock);
    while (!disk.is_woken)
        pthread_cond_wait(&disk.news, &disk.lock);
    disk.is_woken = false;
    pthread_mutex_unlock(&disk.lock);
}

void nj__ring_wake(struct nj__ring *r)
{
    (void)r;
    pthread_mutex_lock(&disk.lock);
    disk.is_woken = true;
    pthread_cond_broadcast(&disk.news);
    pthread_mutex_unlock(&disk.lock);
}

/* --- the test's side -------------------------------------------------------------------------- */

#define PIECE    NJ_CHUNK_BYTES
#define FILL     0x5a
#define FOR_EVER 60000u

static struct world {
    struct bench b;
    struct nj_file_reader *reader;
    struct nj_task_port port;
    struct nj_object *object;
} w;

static void no_run(struct nj_task *task)
{
    (void)task;
    cr_assert(false, "the reader runs no task");
}

static struct nj_file_job *rejected[PENDING_MAX];
static uint32_t n_rejected;

static void on_reject(struct nj_task *task)
{
    rejected[n_rejected++] = nj_container_of(task, struct nj_file_job, task);
}

static const struct nj_task_ops job_ops = {no_run, on_reject};

static void start_world(void)
{
    disk.n = n_rejected = 0; /* of a test before, where all are one process */
    disk.is_woken = false;
    begin(&w.b, 64 * MIB);
    w.object = open_large(&w.b, "f");
    struct nj_file_reader_config c = {.store = w.b.store, .n_shards = 1, .tasks_max = 200};
    cr_assert_eq(nj_file_reader_start(&c, &w.reader), 0);
    w.port = nj_file_reader_port(w.reader, 0);
}

static void end_world(void)
{
    cr_expect_eq(nj_file_reader_stop(w.reader, FOR_EVER), 0);
    nj_file_reader_free(w.reader);
    nj_ref_put(&w.object->ref);
    nj_file_store_tidy(w.b.store);
    end(&w.b);
}

TestSuite(server_file_reader, .init = start_world, .fini = scratch_remove, .timeout = 60);

/* From here on the job is the port's. */
static void ask_for_ahead(struct nj_file_job *job, uint64_t piece, const void *client,
                          uint8_t n_ahead)
{
    *job = (struct nj_file_job){.op = NJ_FILE_READ,
                                .object = w.object,
                                .offset = piece * PIECE,
                                .n_bytes = PIECE,
                                .asker = job,
                                .n_ahead = n_ahead,
                                .end = w.object->size_bytes,
                                .task = {.ops = &job_ops, .client = client}};
    nj_list_init(&job->task.node);
    cr_assert(w.port.submit(w.port.ctx, &job->task));
    w.port.flush(w.port.ctx);
}

static void ask_for(struct nj_file_job *job, uint64_t piece, const void *client)
{
    ask_for_ahead(job, piece, client, 0);
}

static uint32_t poll_some(struct nj_file_job **jobs, uint32_t n)
{
    struct nj_task *home[PENDING_MAX];

    n = w.port.poll(w.port.ctx, home, n);
    for (uint32_t i = 0; i < n; i++)
        jobs[i] = nj_container_of(home[i], struct nj_file_job, task);
    return n;
}

static struct nj_file_job *await_one(void)
{
    struct nj_file_job *job;

    while (poll_some(&job, 1) == 0)
        sched_yield();
    return job;
}

static uint32_t n_pending(void)
{
    pthread_mutex_lock(&disk.lock);
    uint32_t n = disk.n;
    pthread_mutex_unlock(&disk.lock);
    return n;
}

/* So many reads have been begun, ever. */
static void await_pending(uint32_t n)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.n < n)
        pthread_cond_wait(&disk.news, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

/* Read `i` ends; ALL of it, or with a result. */
#define ALL INT32_MAX
static void finish(uint32_t i, int32_t result)
{
    pthread_mutex_lock(&disk.lock);
    cr_assert(i < disk.n && !disk.all[i].is_done);
    struct nj__ring_read *r = &disk.all[i].read;
    disk.all[i].result = result == ALL ? (int32_t)r->n_bytes : result;
    if (disk.all[i].result > 0)
        memset(r->out, FILL, (size_t)disk.all[i].result);
    disk.all[i].is_done = true;
    pthread_mutex_unlock(&disk.lock);
    nj__ring_wake(NULL);
}

static uint64_t piece_of(uint32_t i)
{
    pthread_mutex_lock(&disk.lock);
    uint64_t piece = disk.all[i].read.offset / PIECE;
    pthread_mutex_unlock(&disk.lock);
    return piece;
}

/* The reader has looked at all that was submitted: a READ of a piece that is here comes home. */
static void read_cached(uint64_t piece)
{
    struct nj_file_job job;

    ask_for(&job, piece, NULL);
    cr_assert_eq(await_one(), &job);
    cr_assert_eq(job.result, NJ_FILE_OK);
    nj_ref_put(&job.chunk->ref);
}

static void cache(uint64_t piece)
{
    struct nj_file_job job;
    uint32_t n = n_pending();

    ask_for(&job, piece, NULL);
    await_pending(n + 1);
    finish(n, ALL);
    cr_assert_eq(await_one(), &job);
    cr_assert_eq(job.result, NJ_FILE_OK);
    cr_expect_eq(job.chunk->offset, piece * PIECE);
    cr_expect(job.chunk->bytes[0] == FILL && job.chunk->bytes[PIECE - 1] == FILL);
    nj_ref_put(&job.chunk->ref);
}

static void take_home(struct nj_file_job *job)
{
    cr_assert_eq(job->result, NJ_FILE_OK);
    nj_ref_put(&job->chunk->ref);
}

/* --- tests ------------------------------------------------------------------------------------ */

Test(server_file_reader, all_who_want_a_piece_share_one_read)
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
    for (int i = 0; i < 50; i++) /* now: a piece just put by its last holder may be read again */
        take_home(&job[i]);
    cr_expect_eq(stats(&w.b)->reads, 2);
    cr_expect_eq(n_pending(), 2);
    end_world();
}

/* What is in memory goes home while the disk does not answer; and one client, however much it asks
 * for, leaves the disk to others. */
Test(server_file_reader, a_stuck_client_holds_up_nobody)
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

/* Between two clients that both want much the disk takes turns. */
Test(server_file_reader, clients_take_turns)
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

/* A read that fails is the end of those who wanted it, and of nobody else. */
Test(server_file_reader, errors)
{
    static const int32_t results[] = {-EIO, 0, 4096, -ENODATA};
    struct nj_file_job job[3];

    for (size_t i = 0; i < NJ_ARRAY_LEN(results); i++) {
        char name[8];
        uint32_t n = n_pending();
        snprintf(name, sizeof name, "g%zu", i);
        struct nj_object *kept = w.object, *broken = open_large(&w.b, name);
        w.object = broken;
        ask_for(&job[0], 3, &job[0]);
        ask_for(&job[1], 3, &job[1]);
        w.object = kept;
        ask_for(&job[2], 4 + i, &job[2]);
        await_pending(n + 2);
        uint32_t bad = piece_of(n) == 3 ? n : n + 1;
        finish(bad, results[i]);
        if (results[i] > 0) { /* the rest is asked for, and there is nothing */
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

/* The system did a part, or wants to be asked again; or cannot read past the page cache after all.
 */
Test(server_file_reader, goes_on)
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

/* What is left of a block is no read past the page cache. */
Test(server_file_reader, a_part_of_a_block)
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

/* A disk that never gets on is not asked for ever. */
Test(server_file_reader, gives_up)
{
    struct nj_file_job job;
    struct nj_file_job *home;

    ask_for(&job, 0, NULL);
    for (uint32_t n = 0; poll_some(&home, 1) == 0; sched_yield())
        if (n_pending() > n)
            finish(n++, -EAGAIN);
    cr_expect_eq(home, &job);
    cr_expect_eq(job.result, NJ_FILE_BROKEN);
    end_world();
}

/* The file was changed while it was read. */
Test(server_file_reader, changed_meanwhile)
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

/* What a body will want soon is read with what it wants now, once, and not past its end; and not
 * while others wait. */
Test(server_file_reader, reads_ahead)
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
        cr_expect_eq(n_pending(), 5, "pieces 1 to 4, each once");
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

/* It ends without those that were not begun, which are rejected, and not while a read is under way:
 * that writes to memory of the store. */
Test(server_file_reader, stops)
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

/* Nobody wants it any more: it is not read. */
Test(server_file_reader, withdrawn)
{
    static struct nj_file_job job[NJ_FILE_READS_MAX + 1];

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++)
        ask_for(&job[i], i, &job[i]);
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

/* A worker reads the same, which tells nobody when it has: the shard is told to look for that. */
Test(server_file_reader, what_a_worker_reads)
{
    struct nj_file_job job, worker = {.op = NJ_FILE_READ, .object = w.object, .n_bytes = PIECE};
    struct nj__chunks *c = nj__file_store_chunks(w.b.store);
    struct nj__file *f = nj_container_of(w.object, struct nj__file, object);
    struct nj__fill fill;

    cr_assert_eq(nj__chunks_begin(c, f, &worker, &fill), NJ_FILE_OK);
    cr_assert(fill.piece);
    ask_for_ahead(&job, 0, NULL, 4);
    cr_assert_eq(await_one(), &job);
    cr_expect_eq(job.result, NJ_FILE_BUSY);
    cr_expect_eq(n_pending(), 4, "the reader looks at no job that is home");
    cr_expect_not(nj_file_store_has_news(w.b.store, &job));
    cr_assert_eq(nj__chunks_end(c, &fill, true, &worker), NJ_FILE_OK);
    cr_expect(nj_file_store_has_news(w.b.store, &job));
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

/* ... also through a lane of files: what has left the shard and is not begun is not read. */
Test(server_file_reader, withdrawn_from_a_lane)
{
    enum { LATE = 20 };
    static struct nj_file_job job[NJ_FILE_READS_CLIENT_MAX + LATE];
    static struct nj_file_lane lane;
    struct nj_task_port none = {.submit = submit_none, .flush = flush_none, .poll = poll_none};
    struct nj_file_port port = nj_file_lane_init(&lane, &none, &w.port, w.b.store);
    uint32_t n_done = 0;
    char client;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(job); i++) {
        job[i] = (struct nj_file_job){.op = NJ_FILE_READ,
                                      .object = w.object,
                                      .offset = (uint64_t)i * PIECE,
                                      .n_bytes = PIECE,
                                      .asker = &job[i],
                                      .client = &client};
        atomic_store(&nj_container_of(w.object, struct nj__file, object)->is_settled, true);
        cr_assert(port.submit(port.ctx, &job[i]));
    }
    await_pending(NJ_FILE_READS_CLIENT_MAX);
    for (uint32_t i = NJ_FILE_READS_CLIENT_MAX; i < NJ_ARRAY_LEN(job); i++) {
        job[i].asker = NULL;
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

/* What is read ahead and what one client asked for leave the disk to others. */
Test(server_file_reader, reading_ahead_leaves_the_disk_to_others)
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
