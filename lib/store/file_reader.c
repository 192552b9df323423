/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader thread: takes READs from the shards' rings, queues them fairly per client, and reads
 * by io_uring(7). It sleeps in the io_uring when all rings are empty. */
#include "store/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_lcore.h>
#include <rte_pause.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/signal_stack.h"
#include "sched/fair_task_queue.h"
#include "store/arena_populate.h"
#include "store/chunk_cache.h"
#include "store/verified_read.h"
#include "store/io_uring.h"
#include "threads/os_clock.h"
#include "threads/task_rings.h"
#include "rights/syscall_filter.h"

#define BATCH        32u
/* Retries of a read without progress. */
#define TRIES_MAX    16u
/* Polls of empty rings before the thread sleeps: about 2 us. A disk takes longer than any number of
 * polls that costs less than a sleep and a wakeup. */
#define IDLE_SPINS   50u
/* Alignment of direct I/O. */
#define DIRECT_ALIGN 4096u

/* A read in progress, or a free slot for one. */
struct read_slot {
    struct nj__task_slot *slot; /* the READ that it serves; NULL: readahead */
    struct nj__file *file;      /* referenced by the job; of readahead, by this slot */
    struct nj__chunk_fill fill; /* fill.entry is NULL in a free slot */
    uint32_t n_got, n_tries;
    nj_ns since;
    bool is_direct, needs_worker;
    struct read_slot *next; /* in the free list */
};

struct nj_file_reader {
    struct nj_file_reader_config config;
    struct nj__chunks *chunks;
    struct nj__uring *ring;
    struct nj__populator populator;
    pthread_t thread;
    bool is_joined;
    sem_t started, ended;
    int rc; /* of the start */
    _Atomic bool stopping;
    struct nj_file_reader_stats stats;
    /* Owned by the reader thread: */
    struct nj_task_queue waiting; /* by nj__task_slot.task */
    struct nj__task_slot *busy;   /* READs that wait for a fill by another READ */
    struct read_slot read_slots[NJ_FILE_READS_MAX], *free;
    uint32_t n_pending, n_ahead;
    struct nj__task_rings rings[];
};

static bool is_stopping(const struct nj_file_reader *r)
{
    return atomic_load_explicit(&r->stopping, memory_order_acquire);
}

static struct nj_file_job *job_of(const struct nj__task_slot *s)
{
    return nj_container_of(s->job, struct nj_file_job, task);
}

static struct nj__file *file_of(const struct nj__task_slot *s)
{
    return nj_container_of(job_of(s)->object, struct nj__file, object);
}

static bool needs_worker(const struct nj__file *f)
{
    return nj_load_relaxed(&f->needs_worker);
}

bool nj_file_reader_job_cannot_block(const struct nj_file_job *job)
{
    const struct nj__file *f = nj_container_of(job->object, struct nj__file, object);
    return f->is_local && nj_load_relaxed(&f->is_settled) && !needs_worker(f);
}

/* --- completion ------------------------------------------------------------------------------- */

static void return_result(struct nj__task_slot *s, enum nj_file_result result)
{
    job_of(s)->result = result;
    s->job->run_ns = s->job->wall_ns = 0;
    nj__task_rings_return_to_shard(s);
}

static void return_not_run(struct nj__task_slot *s)
{
    s->job->run_ns = NJ__NOT_RUN;
    nj__task_rings_return_to_shard(s);
}

/* The shard resubmits it at once, to the workers. */
static void hand_to_workers(struct nj_file_reader *r, struct nj__task_slot *s)
{
    struct nj_file_job *job = job_of(s);

    job->place = 0;
    job->seen = nj__chunks_count_ended_fills(r->chunks, 0) -
                1; /* that is news: see nj_file_store_may_retry_read() */
    return_result(s, NJ_FILE_BUSY);
}

static bool is_cancelled(const struct nj_file_reader *r, const struct nj__task_slot *s)
{
    return is_stopping(r) || nj_load_relaxed(&s->job->cancelled);
}

static void add_busy(struct nj_file_reader *r, struct nj__task_slot *s)
{
    s->next = r->busy;
    r->busy = s;
}

/* Another read fills its chunk. If that is a read of this thread, the READ waits here. Workers do
 * not notify the reader, so a READ that waits for a worker returns to its shard, which polls. */
static void wait_for_fill(struct nj_file_reader *r, struct nj__task_slot *s)
{
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++)
        if (r->read_slots[i].fill.chunk && r->read_slots[i].fill.place == job_of(s)->place) {
            add_busy(r, s);
            return;
        }
    return_result(s, NJ_FILE_BUSY);
}

/* --- reads ------------------------------------------------------------------------------------ */

/* Direct I/O of the file is probed at its first read. */
static bool is_direct(const struct nj_file_reader *r, struct nj__file *f)
{
    struct statx st;

    if (f->direct != NJ__DIRECT_UNKNOWN || r->config.no_direct)
        return f->direct == NJ__DIRECT_YES;
    f->direct = NJ__DIRECT_NO;
    int flags = fcntl(f->fd, F_GETFL);
    if (flags < 0 || statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) < 0)
        return false;
    bool is_told = st.stx_mask & STATX_DIOALIGN; /* Linux 6.1 */
    if (is_told && (st.stx_dio_mem_align == 0 || st.stx_dio_mem_align > DIRECT_ALIGN ||
                    st.stx_dio_offset_align > DIRECT_ALIGN))
        return false;
    if (fcntl(f->fd, F_SETFL, flags | O_DIRECT) == 0)
        f->direct = NJ__DIRECT_YES;
    return f->direct == NJ__DIRECT_YES;
}

static void disable_direct(struct nj__file *f)
{
    int flags = fcntl(f->fd, F_GETFL);

    f->direct = NJ__DIRECT_NO;
    if (flags >= 0)
        fcntl(f->fd, F_SETFL, flags & ~O_DIRECT);
}

static void submit(struct nj_file_reader *r, struct read_slot *x)
{
    struct nj__chunk_fill *fill = &x->fill;

    x->is_direct = is_direct(r, x->file);
    struct nj__uring_read read = {
        .fd = x->file->fd,
        .is_direct = x->is_direct,
        .out = fill->out + x->n_got,
        .n_bytes = (x->is_direct ? fill->n_room : fill->n_bytes) - x->n_got,
        .offset = fill->offset + x->n_got,
    };
    nj__uring_read(r->ring, &read, x);
}

static void count_pending(struct nj_file_reader *r, int by)
{
    r->n_pending += (uint32_t)by;
    nj_store_relaxed(&r->stats.n_under_way, r->n_pending);
}

static struct read_slot *take_read_slot(struct nj_file_reader *r, struct nj__task_slot *s,
                                        struct nj__file *f, const struct nj__chunk_fill *fill)
{
    struct read_slot *x = r->free;

    r->free = x->next;
    *x = (struct read_slot){
        .slot = s, .file = f, .fill = *fill, .since = nj_os_clock_gettime_ns(CLOCK_MONOTONIC)};
    count_pending(r, 1);
    return x;
}

/* Start readahead of the next chunks of a body, with NJ_FILE_READS_AHEAD_MAX reads at most. The
 * other slots are reserved for READs that wait. */
static void read_ahead(struct nj_file_reader *r, struct nj__file *f, const struct nj_file_job *job)
{
    uint64_t offset = (job->offset / NJ_CHUNK_BYTES + 1) * NJ_CHUNK_BYTES;
    uint64_t end = offset + (uint64_t)job->n_ahead * NJ_CHUNK_BYTES;
    struct nj__chunk_fill fill;

    if (end > job->end)
        end = job->end;
    while (offset < end && !needs_worker(f) && r->n_ahead < NJ_FILE_READS_AHEAD_MAX && r->free &&
           nj__chunks_begin_readahead(r->chunks, f, offset, end, &fill)) {
        nj_ref_take(&f->object.ref);
        r->n_ahead++;
        submit(r, take_read_slot(r, NULL, f, &fill));
        offset = fill.offset + NJ_CHUNK_BYTES;
    }
}

/* --- READs: arrival and fair queue ------------------------------------------------------------ */

/* Process a READ that came from its ring, or whose awaited fill has ended. */
static void accept_job(struct nj_file_reader *r, struct nj__task_slot *s)
{
    if (is_cancelled(r, s)) {
        return_not_run(s);
    } else if (!nj__chunks_lookup(r->chunks, file_of(s), job_of(s))) {
        s->task.client = s->job->client;
        nj_list_init(&s->task.node);
        nj_task_queue_push(&r->waiting, &s->task);
        job_of(s)->was_read = true;
    } else {
        read_ahead(r, file_of(s), job_of(s)); /* before completion, which may free the job */
        if (job_of(s)->result == NJ_FILE_BUSY) {
            job_of(s)->was_read = true;
            wait_for_fill(r, s);
        } else {
            return_result(s, NJ_FILE_OK);
        }
    }
}

static bool take_jobs(struct nj_file_reader *r)
{
    bool any = false;

    for (uint32_t i = 0; i < r->config.n_shards; i++) {
        struct nj__task_slot *s;
        for (uint32_t n = 0; n < BATCH && (s = nj__task_rings_pop(&r->rings[i])); n++) {
            accept_job(r, s);
            any = true;
        }
    }
    return any;
}

static bool has_jobs(const struct nj_file_reader *r)
{
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        if (!nj__task_rings_is_empty(&r->rings[i]))
            return true;
    return false;
}

/* A fill has ended. READs whose fill counter changed proceed; the others stay in the list. */
static void recheck_busy(struct nj_file_reader *r)
{
    struct nj__task_slot *s = r->busy, *next;

    r->busy = NULL;
    for (; s; s = next) {
        const struct nj_file_job *job = job_of(s);
        next = s->next;
        if (nj__chunks_count_ended_fills(r->chunks, job->place) != job->seen || is_cancelled(r, s))
            accept_job(r, s);
        else
            add_busy(r, s);
    }
}

/* Start a READ that was taken from the queue. */
static void begin_read(struct nj_file_reader *r, struct nj__task_slot *s)
{
    struct nj_file_job *job = job_of(s);
    struct nj__file *f = file_of(s);
    struct nj__chunk_fill fill;
    enum nj_file_result result = nj__chunks_lookup_or_begin_fill(r->chunks, f, job, &fill);

    if (fill.chunk && !fill.from) {
        submit(r, take_read_slot(r, s, f, &fill));
        read_ahead(r, f, job);
        return;
    }
    if (fill.chunk) {
        nj__chunks_copy_fill(&fill);
        result = nj__chunks_end_fill(r->chunks, &fill, true, job);
    }
    nj_task_queue_done(&r->waiting, &s->task);
    if (result == NJ_FILE_BUSY)
        wait_for_fill(r, s);
    else
        return_result(s, result);
}

static bool begin_reads(struct nj_file_reader *r)
{
    bool any = false;

    while (r->free && r->waiting.n > 0) {
        struct nj_task *task =
            nj_task_queue_pop_client_capped(&r->waiting, NJ_FILE_READS_CLIENT_MAX);
        if (!task)
            break;
        struct nj__task_slot *s = nj_container_of(task, struct nj__task_slot, task);
        any = true;
        if (!is_cancelled(r, s) && !needs_worker(file_of(s))) {
            begin_read(r, s);
            continue;
        }
        nj_task_queue_done(&r->waiting, task);
        if (is_cancelled(r, s))
            return_not_run(s);
        else
            hand_to_workers(r, s);
    }
    nj_store_relaxed(&r->stats.n_waiting, r->waiting.n);
    return any;
}

static void end_read(struct nj_file_reader *r, struct read_slot *x, bool ok)
{
    struct nj__task_slot *s = x->slot;

    if (!ok && !x->needs_worker)
        nj__file_mark_changed(x->file);
    enum nj_file_result result = nj__chunks_end_fill(r->chunks, &x->fill, ok, s ? job_of(s) : NULL);
    nj_histogram_add(&r->stats.latency, nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - x->since);
    if (s) {
        nj_task_queue_done(&r->waiting, &s->task);
        if (x->needs_worker)
            hand_to_workers(r, s);
        else
            return_result(s, result);
    } else {
        r->n_ahead--;
        nj_ref_put(&x->file->object.ref);
    }
    x->fill.chunk = NULL;
    x->next = r->free;
    r->free = x;
    count_pending(r, -1);
}

static bool is_transient_error(int32_t result)
{
    return nj__file_is_enomem(-result) || result == -EINTR;
}

/* Continue after a short read, or retry. Returns false if the read has failed. */
static bool retry_read(struct nj_file_reader *r, struct read_slot *x, int32_t result)
{
    x->n_tries = result > 0 ? 0 : x->n_tries + 1;
    if (x->n_tries > TRIES_MAX)
        return false;
    if (x->is_direct && (result == -EINVAL || x->n_got % DIRECT_ALIGN != 0))
        disable_direct(x->file); /* direct I/O failed, or the rest is not aligned */
    else if (result <= 0 && !is_transient_error(result))
        return false;
    submit(r, x);
    return true;
}

static void on_read_done(struct nj_file_reader *r, struct read_slot *x, int32_t result)
{
    if (result > 0) {
        x->n_got += (uint32_t)result;
        if (x->is_direct)
            nj_add_relaxed(&r->stats.direct_bytes, (uint64_t)result);
    }
    bool is_whole = x->n_got >= x->fill.n_bytes;
    if (!is_whole && retry_read(r, x, result))
        return;
    x->needs_worker = !is_whole && is_transient_error(result);
    if (x->needs_worker)
        nj_store_relaxed(&x->file->needs_worker, true);
    if (!is_whole)
        nj_add_relaxed(x->needs_worker ? &r->stats.n_to_workers : &r->stats.n_failed, 1);
    end_read(r, x, is_whole && nj__file_is_unchanged(x->file));
}

static bool reap(struct nj_file_reader *r)
{
    struct nj__uring_done done[BATCH];
    uint32_t n = nj__uring_submit_and_reap(r->ring, done, BATCH);

    for (uint32_t i = 0; i < n; i++)
        on_read_done(r, done[i].user, done[i].result);
    if (n > 0)
        recheck_busy(r);
    return n > 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Return all queued READs without running them. */
static void cancel_waiting(struct nj_file_reader *r)
{
    struct nj_task *task;

    while ((task = nj_task_queue_first(&r->waiting))) {
        nj_task_queue_remove(&r->waiting, task);
        return_not_run(nj_container_of(task, struct nj__task_slot, task));
    }
    recheck_busy(r);
}

bool nj__file_reader_step(struct nj_file_reader *r)
{
    bool any = take_jobs(r);

    any |= begin_reads(r);
    any |= reap(r);
    if (any)
        nj__chunks_run_nonblocking_frees(r->chunks);
    return any;
}

static void reader_loop(struct nj_file_reader *r)
{
    for (uint32_t n_idle = 0;;) {
        if (nj__file_reader_step(r)) {
            nj__populator_wake(&r->populator);
            n_idle = 0;
            continue;
        }
        if (is_stopping(r)) {
            cancel_waiting(r);
            if (r->n_pending == 0)
                return;
        }
        if (n_idle++ < IDLE_SPINS) {
            rte_pause();
            continue;
        }
        nj__uring_mark_asleep(r->ring);
        if (!has_jobs(r) && (!is_stopping(r) || r->n_pending > 0))
            nj__uring_wait(r->ring);
    }
}

/* Called on the reader thread, which owns the io_uring. */
static int open_ring(struct nj_file_reader *r)
{
    struct nj__arena_memory memory = nj__arena_memory_range(r->chunks->arena);
    return nj__uring_open(&r->ring, NJ_FILE_READS_MAX, &memory);
}

static void *reader_main(void *arg)
{
    struct nj_file_reader *r = arg;
    const struct nj_file_reader_config *c = &r->config;

    pthread_setname_np(pthread_self(), "nj-reader");
    if (c->affinity)
        pthread_setaffinity_np(pthread_self(), sizeof *c->affinity, c->affinity);
    void *altstack = nj_altstack_install();
    bool is_registered = c->eal && rte_thread_register() == 0;
    nj_syscall_allow_list_load();
    r->rc = open_ring(r);
    bool is_up = r->rc == 0;
    sem_post(&r->started);
    if (is_up)
        reader_loop(r);
    if (is_registered)
        rte_thread_unregister();
    nj_altstack_remove(altstack);
    sem_post(&r->ended);
    return NULL;
}

static void wait_sem(sem_t *s)
{
    while (sem_wait(s) < 0)
        ;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void wake_reader(struct nj__task_rings *l)
{
    struct nj_file_reader *r = l->config.service;
    nj__uring_wake(r->ring);
}

static bool init_rings(struct nj_file_reader *r)
{
    for (uint32_t i = 0; i < r->config.n_shards; i++) {
        struct nj__task_rings_config c = {
            .service = r,
            .ask = wake_reader,
            .n_max = r->config.tasks_max,
            .depth = 1,
            .tasks_max = r->config.tasks_max,
            .waker = r->config.wakeups ? &r->config.wakeups[i] : NULL,
        };
        if (!nj__task_rings_init(&r->rings[i], &c))
            return false;
    }
    return true;
}

static int start_threads(struct nj_file_reader *r)
{
    int rc = nj__populator_start(&r->populator, r->chunks, r->config.affinity);
    return rc ? rc : -pthread_create(&r->thread, NULL, reader_main, r);
}

int nj_file_reader_start(const struct nj_file_reader_config *config, struct nj_file_reader **out)
{
    size_t n_bytes =
        sizeof(struct nj_file_reader) + config->n_shards * sizeof(struct nj__task_rings);
    struct nj_file_reader *r =
        aligned_alloc(NJ_CACHE_LINE, (n_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE);

    if (!r)
        return -ENOMEM;
    memset(r, 0, n_bytes);
    r->config = *config;
    r->chunks = nj__file_store_chunks(config->store);
    nj_task_queue_init(&r->waiting);
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++) {
        r->read_slots[i].next = r->free;
        r->free = &r->read_slots[i];
    }
    sem_init(&r->started, 0, 0);
    sem_init(&r->ended, 0, 0);
    r->is_joined = true;
    int rc = !init_rings(r) ? -ENOMEM : config->no_thread ? open_ring(r) : start_threads(r);
    if (rc == 0 && !config->no_thread) {
        wait_sem(&r->started);
        rc = r->rc;
        r->is_joined = false;
    }
    if (rc == 0) {
        *out = r;
        return 0;
    }
    if (!r->is_joined)
        pthread_join(r->thread, NULL);
    r->is_joined = true;
    nj_file_reader_free(r);
    return rc;
}

struct nj_worker_ops nj_file_reader_ops_of_shard(struct nj_file_reader *r, uint32_t shard)
{
    NJ_CHECK(shard < r->config.n_shards);
    return nj__task_rings_ops(&r->rings[shard]);
}

uint32_t nj_file_reader_stop(struct nj_file_reader *r, uint32_t wait_ms)
{
    if (r->is_joined)
        return 0;
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        r->rings[i].closed = true;
    atomic_store(&r->stopping, true);
    nj__uring_wake(r->ring);
    struct timespec until = nj_os_clock_deadline(wait_ms);
    while (sem_timedwait(&r->ended, &until) < 0)
        if (errno != EINTR)
            return nj_load_relaxed(&r->stats.n_under_way) + 1;
    pthread_join(r->thread, NULL);
    r->is_joined = true;
    nj__populator_stop(&r->populator);
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        r->rings[i].ended = true;
    return 0;
}

void nj_file_reader_free(struct nj_file_reader *r)
{
    if (!r)
        return;
    NJ_ASSERT(r->is_joined);
    nj__populator_stop(&r->populator);
    nj__uring_close(r->ring);
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        nj__task_rings_fini(&r->rings[i]);
    sem_destroy(&r->started);
    sem_destroy(&r->ended);
    free(r);
}

const struct nj_file_reader_stats *nj_file_reader_stats(const struct nj_file_reader *r)
{
    return &r->stats;
}

bool nj_file_reader_has_fixed_buffers(const struct nj_file_reader *r)
{
    return nj__uring_has_registered_buffers(r->ring);
}
