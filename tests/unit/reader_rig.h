/* SPDX-License-Identifier: BSD-3-Clause */
/* The file reader over a fake disk: the test decides when and with which result each read ends. For
 * tests of one file. */
#pragma once

#include <sched.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "store/chunk_cache.h"
#include "store/file_client.h"
#include "store/file_reader.h"
#include "store/io_uring.h"
#include "store_rig.h"

/* --- a disk, in place of io_uring.c ---------------------------------------------------------- */

#define PENDING_MAX 256u

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct disk_read {
        struct nj__uring_read read;
        void *user;
        int32_t result;
        bool is_done, is_taken;
    } all[PENDING_MAX];
    uint32_t n;
    bool is_woken;
};

static struct fake disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

#include "support/ring_double.h"

void nj__uring_read(struct nj__uring *r, const struct nj__uring_read *read, void *user)
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

uint32_t nj__uring_submit_and_reap(struct nj__uring *r, struct nj__uring_done *done, uint32_t n)
{
    uint32_t n_done = 0;

    (void)r;
    pthread_mutex_lock(&disk.lock);
    for (uint32_t i = 0; i < disk.n && n_done < n; i++) {
        if (!disk.all[i].is_done || disk.all[i].is_taken)
            continue;
        disk.all[i].is_taken = true;
        done[n_done++] = (struct nj__uring_done){disk.all[i].user, disk.all[i].result};
    }
    pthread_mutex_unlock(&disk.lock);
    return n_done;
}

void nj__uring_mark_asleep(struct nj__uring *r)
{
    (void)r;
}

void nj__uring_wait(struct nj__uring *r)
{
    (void)r;
    pthread_mutex_lock(&disk.lock);
    while (!disk.is_woken)
        pthread_cond_wait(&disk.news, &disk.lock);
    disk.is_woken = false;
    pthread_mutex_unlock(&disk.lock);
}

void nj__uring_wake(struct nj__uring *r)
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
    struct nj_worker_ops port;
    struct nj_file_object *object;
} w;

static inline void no_run(struct nj_task *task)
{
    (void)task;
    cr_assert(false, "the reader runs no task");
}

static struct nj_file_job *rejected[PENDING_MAX];
static uint32_t n_rejected;

static inline void on_reject(struct nj_task *task)
{
    rejected[n_rejected++] = nj_container_of(task, struct nj_file_job, task);
}

static const struct nj_task_ops job_ops = {no_run, on_reject};

static inline void start_world(void)
{
    disk.n = n_rejected = 0; /* of a test before, where all are one process */
    disk.is_woken = false;
    begin(&w.b, 64 * MIB);
    w.object = open_large(&w.b, "f");
    struct nj_file_reader_config c = {.store = w.b.store, .n_shards = 1, .tasks_max = 200};
    cr_assert_eq(nj_file_reader_start(&c, &w.reader), 0);
    w.port = nj_file_reader_ops_of_shard(w.reader, 0);
}

static inline void end_world(void)
{
    cr_expect_eq(nj_file_reader_stop(w.reader, FOR_EVER), 0);
    nj_file_reader_free(w.reader);
    nj_ref_put(&w.object->ref);
    nj_file_store_run_housekeeping(w.b.store);
    end(&w.b);
}

/* From here on the job is the port's. */
static inline void ask_for_ahead(struct nj_file_job *job, uint64_t chunk, const void *client,
                                 uint8_t n_ahead)
{
    *job = (struct nj_file_job){.op = NJ_FILE_READ,
                                .object = w.object,
                                .offset = chunk * PIECE,
                                .n_bytes = PIECE,
                                .owner = job,
                                .n_ahead = n_ahead,
                                .end = w.object->size_bytes,
                                .task = {.ops = &job_ops, .client = client}};
    nj_list_init(&job->task.node);
    cr_assert(w.port.submit(w.port.ctx, &job->task));
    w.port.flush(w.port.ctx);
}

static inline void ask_for(struct nj_file_job *job, uint64_t chunk, const void *client)
{
    ask_for_ahead(job, chunk, client, 0);
}

static inline uint32_t poll_some(struct nj_file_job **jobs, uint32_t n)
{
    struct nj_task *home[PENDING_MAX];

    n = w.port.poll(w.port.ctx, home, n);
    for (uint32_t i = 0; i < n; i++)
        jobs[i] = nj_container_of(home[i], struct nj_file_job, task);
    return n;
}

static inline struct nj_file_job *await_one(void)
{
    struct nj_file_job *job;

    while (poll_some(&job, 1) == 0)
        sched_yield();
    return job;
}

static inline uint32_t n_pending(void)
{
    pthread_mutex_lock(&disk.lock);
    uint32_t n = disk.n;
    pthread_mutex_unlock(&disk.lock);
    return n;
}

/* Wait until `n` reads have been started since the begin of the test. */
static inline void await_pending(uint32_t n)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.n < n)
        pthread_cond_wait(&disk.news, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

/* Read `i` ends; ALL of it, or with a result. */
#define ALL INT32_MAX
static inline void finish(uint32_t i, int32_t result)
{
    pthread_mutex_lock(&disk.lock);
    cr_assert(i < disk.n && !disk.all[i].is_done);
    struct nj__uring_read *r = &disk.all[i].read;
    disk.all[i].result = result == ALL ? (int32_t)r->n_bytes : result;
    if (disk.all[i].result > 0)
        memset(r->out, FILL, (size_t)disk.all[i].result);
    disk.all[i].is_done = true;
    pthread_mutex_unlock(&disk.lock);
    nj__uring_wake(NULL);
}

static inline uint64_t piece_of(uint32_t i)
{
    pthread_mutex_lock(&disk.lock);
    uint64_t chunk = disk.all[i].read.offset / PIECE;
    pthread_mutex_unlock(&disk.lock);
    return chunk;
}

/* Wait until the reader has processed all submitted jobs: a READ of a cached chunk completes behind
 * them. */
static inline void read_cached(uint64_t chunk)
{
    struct nj_file_job job;

    ask_for(&job, chunk, NULL);
    cr_assert_eq(await_one(), &job);
    cr_assert_eq(job.result, NJ_FILE_OK);
    nj_ref_put(&job.chunk->ref);
}

static inline void cache(uint64_t chunk)
{
    struct nj_file_job job;
    uint32_t n = n_pending();

    ask_for(&job, chunk, NULL);
    await_pending(n + 1);
    finish(n, ALL);
    cr_assert_eq(await_one(), &job);
    cr_assert_eq(job.result, NJ_FILE_OK);
    cr_expect_eq(job.chunk->offset, chunk * PIECE);
    cr_expect(job.chunk->bytes[0] == FILL && job.chunk->bytes[PIECE - 1] == FILL);
    nj_ref_put(&job.chunk->ref);
}

static inline void take_home(struct nj_file_job *job)
{
    cr_assert_eq(job->result, NJ_FILE_OK);
    nj_ref_put(&job->chunk->ref);
}
