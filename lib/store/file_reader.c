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
#include "base/atomics.h"
#include "base/attr.h"
#include "base/limits.h"
#include "base/signal_stack.h"
#include "sched/task_queue.h"
#include "store/arena_populate.h"
#include "store/chunk_cache.h"
#include "store/file_read.h"
#include "store/io_uring.h"
#include "threads/os_clock.h"
#include "threads/task_rings.h"

#define BATCH 32u
/* Retries of a read without progress. */
#define TRIES 16u
/* Polls of empty rings before the thread sleeps: about 2 us. A disk takes longer than any number of
 * polls that costs less than a sleep and a wakeup. */
#define LOOKS 50u
/* Alignment of direct I/O. */
#define BLOCK 4096u

/* A read in progress, or a free slot for one. */
struct flight {
    struct nj__slot *slot; /* the READ that it serves; NULL: readahead */
    struct nj__file *file; /* referenced by the job; of readahead, by this slot */
    struct nj__fill fill;  /* fill.piece is NULL in a free slot */
    uint32_t n_got, n_tries;
    nj_ns since;
    bool is_direct, is_put_off;
    struct flight *next; /* in the free list */
};

struct nj_file_reader {
    struct nj_file_reader_config config;
    struct nj__chunks *chunks;
    struct nj__ring *ring;
    struct nj__pages pages;
    pthread_t thread;
    bool is_joined;
    sem_t is_up, is_down;
    int rc; /* of the start */
    _Atomic bool stopping;
    struct nj_file_reader_stats stats;
    /* Owned by the reader thread: */
    struct nj_task_queue waiting; /* by nj__slot.task */
    struct nj__slot *busy;        /* READs that wait for a fill by another READ */
    struct flight flights[NJ_FILE_READS_MAX], *free;
    uint32_t n_flights, n_ahead;
    struct nj__lane lanes[];
};

static bool is_stopping(const struct nj_file_reader *r)
{
    return atomic_load_explicit(&r->stopping, memory_order_acquire);
}

static struct nj_file_job *job_of(const struct nj__slot *s)
{
    return nj_container_of(s->job, struct nj_file_job, task);
}

static struct nj__file *file_of(const struct nj__slot *s)
{
    return nj_container_of(job_of(s)->object, struct nj__file, object);
}

static bool is_put_off(const struct nj__file *f)
{
    return nj_load_relaxed(&f->is_put_off);
}

bool nj_file_reader_may(const struct nj_file_job *job)
{
    const struct nj__file *f = nj_container_of(job->object, struct nj__file, object);
    return f->is_local && nj_load_relaxed(&f->is_settled) && !is_put_off(f);
}

/* --- completion ------------------------------------------------------------------------------- */

static void go_home(struct nj__slot *s, enum nj_file_result result)
{
    job_of(s)->result = result;
    s->job->run_ns = s->job->wall_ns = 0;
    nj__lane_home(s);
}

static void go_home_undone(struct nj__slot *s)
{
    s->job->run_ns = NJ__NOT_RUN;
    nj__lane_home(s);
}

/* The shard resubmits it at once, to the workers. */
static void go_to_workers(struct nj_file_reader *r, struct nj__slot *s)
{
    struct nj_file_job *job = job_of(s);

    job->place = 0;
    job->seen = nj__chunks_fills(r->chunks, 0) - 1; /* that is news: see nj_file_store_has_news() */
    go_home(s, NJ_FILE_BUSY);
}

static bool is_unwanted(const struct nj_file_reader *r, const struct nj__slot *s)
{
    return is_stopping(r) || nj_load_relaxed(&s->job->cancelled);
}

static void keep(struct nj_file_reader *r, struct nj__slot *s)
{
    s->next = r->busy;
    r->busy = s;
}

/* Another read fills its chunk. If that is a read of this thread, the READ waits here. Workers do
 * not notify the reader, so a READ that waits for a worker returns to its shard, which polls. */
static void keep_busy(struct nj_file_reader *r, struct nj__slot *s)
{
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++)
        if (r->flights[i].fill.piece && r->flights[i].fill.place == job_of(s)->place) {
            keep(r, s);
            return;
        }
    go_home(s, NJ_FILE_BUSY);
}

/* --- reads ------------------------------------------------------------------------------------ */

/* Direct I/O of the file is probed at its first read. */
static bool is_direct(const struct nj_file_reader *r, struct nj__file *f)
{
    struct statx st;

    if (f->direct != NJ__DIRECT_UNKNOWN || r->config.no_direct)
        return f->direct == NJ__DIRECT;
    f->direct = NJ__NOT_DIRECT;
    int flags = fcntl(f->fd, F_GETFL);
    if (flags < 0 || statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) < 0)
        return false;
    bool is_told = st.stx_mask & STATX_DIOALIGN; /* Linux 6.1 */
    if (is_told && (st.stx_dio_mem_align == 0 || st.stx_dio_mem_align > BLOCK ||
                    st.stx_dio_offset_align > BLOCK))
        return false;
    if (fcntl(f->fd, F_SETFL, flags | O_DIRECT) == 0)
        f->direct = NJ__DIRECT;
    return f->direct == NJ__DIRECT;
}

static void leave_direct(struct nj__file *f)
{
    int flags = fcntl(f->fd, F_GETFL);

    f->direct = NJ__NOT_DIRECT;
    if (flags >= 0)
        fcntl(f->fd, F_SETFL, flags & ~O_DIRECT);
}

static void submit(struct nj_file_reader *r, struct flight *x)
{
    struct nj__fill *fill = &x->fill;

    x->is_direct = is_direct(r, x->file);
    struct nj__ring_read read = {
        .fd = x->file->fd,
        .is_direct = x->is_direct,
        .out = fill->out + x->n_got,
        .n_bytes = (x->is_direct ? fill->n_room : fill->n_bytes) - x->n_got,
        .offset = fill->offset + x->n_got,
    };
    nj__ring_read(r->ring, &read, x);
}

static void count_flights(struct nj_file_reader *r, int by)
{
    r->n_flights += (uint32_t)by;
    nj_store_relaxed(&r->stats.n_under_way, r->n_flights);
}

static struct flight *take_flight(struct nj_file_reader *r, struct nj__slot *s, struct nj__file *f,
                                  const struct nj__fill *fill)
{
    struct flight *x = r->free;

    r->free = x->next;
    *x =
        (struct flight){.slot = s, .file = f, .fill = *fill, .since = nj_clock_ns(CLOCK_MONOTONIC)};
    count_flights(r, 1);
    return x;
}

/* Start readahead of the next chunks of a body, with NJ_FILE_READS_AHEAD_MAX reads at most. The
 * other slots are reserved for READs that wait. */
static void read_ahead(struct nj_file_reader *r, struct nj__file *f, const struct nj_file_job *job)
{
    uint64_t offset = (job->offset / NJ_CHUNK_BYTES + 1) * NJ_CHUNK_BYTES;
    uint64_t end = offset + (uint64_t)job->n_ahead * NJ_CHUNK_BYTES;
    struct nj__fill fill;

    if (end > job->end)
        end = job->end;
    while (offset < end && !is_put_off(f) && r->n_ahead < NJ_FILE_READS_AHEAD_MAX && r->free &&
           nj__chunks_begin_ahead(r->chunks, f, offset, end, &fill)) {
        nj_ref_take(&f->object.ref);
        r->n_ahead++;
        submit(r, take_flight(r, NULL, f, &fill));
        offset = fill.offset + NJ_CHUNK_BYTES;
    }
}

/* --- READs: arrival and fair queue ------------------------------------------------------------ */

/* Process a READ that came from its ring, or whose awaited fill has ended. */
static void accept(struct nj_file_reader *r, struct nj__slot *s)
{
    if (is_unwanted(r, s)) {
        go_home_undone(s);
    } else if (!nj__chunks_lend(r->chunks, file_of(s), job_of(s))) {
        s->task.client = s->job->client;
        nj_list_init(&s->task.node);
        nj_task_queue_push(&r->waiting, &s->task);
        job_of(s)->was_read = true;
    } else {
        read_ahead(r, file_of(s), job_of(s)); /* before completion, which may free the job */
        if (job_of(s)->result == NJ_FILE_BUSY) {
            job_of(s)->was_read = true;
            keep_busy(r, s);
        } else {
            go_home(s, NJ_FILE_OK);
        }
    }
}

static bool take_jobs(struct nj_file_reader *r)
{
    bool any = false;

    for (uint32_t i = 0; i < r->config.n_shards; i++) {
        struct nj__slot *s;
        for (uint32_t n = 0; n < BATCH && (s = nj__lane_take(&r->lanes[i])); n++) {
            accept(r, s);
            any = true;
        }
    }
    return any;
}

static bool have_jobs(const struct nj_file_reader *r)
{
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        if (!nj__lane_is_empty(&r->lanes[i]))
            return true;
    return false;
}

/* A fill has ended. READs whose fill counter changed proceed; the others stay in the list. */
static void look_at_busy(struct nj_file_reader *r)
{
    struct nj__slot *s = r->busy, *next;

    r->busy = NULL;
    for (; s; s = next) {
        const struct nj_file_job *job = job_of(s);
        next = s->next;
        if (nj__chunks_fills(r->chunks, job->place) != job->seen || is_unwanted(r, s))
            accept(r, s);
        else
            keep(r, s);
    }
}

/* Start a READ that was taken from the queue. */
static void begin(struct nj_file_reader *r, struct nj__slot *s)
{
    struct nj_file_job *job = job_of(s);
    struct nj__file *f = file_of(s);
    struct nj__fill fill;
    enum nj_file_result result = nj__chunks_begin(r->chunks, f, job, &fill);

    if (fill.piece && !fill.from) {
        submit(r, take_flight(r, s, f, &fill));
        read_ahead(r, f, job);
        return;
    }
    if (fill.piece) {
        nj__chunks_copy(&fill);
        result = nj__chunks_end(r->chunks, &fill, true, job);
    }
    nj_task_queue_home(&r->waiting, &s->task);
    if (result == NJ_FILE_BUSY)
        keep_busy(r, s);
    else
        go_home(s, result);
}

static bool begin_reads(struct nj_file_reader *r)
{
    bool any = false;

    while (r->free && r->waiting.n > 0) {
        struct nj_task *task = nj_task_queue_pop_below(&r->waiting, NJ_FILE_READS_CLIENT_MAX);
        if (!task)
            break;
        struct nj__slot *s = nj_container_of(task, struct nj__slot, task);
        any = true;
        if (!is_unwanted(r, s) && !is_put_off(file_of(s))) {
            begin(r, s);
            continue;
        }
        nj_task_queue_home(&r->waiting, task);
        if (is_unwanted(r, s))
            go_home_undone(s);
        else
            go_to_workers(r, s);
    }
    nj_store_relaxed(&r->stats.n_waiting, r->waiting.n);
    return any;
}

static void end(struct nj_file_reader *r, struct flight *x, bool ok)
{
    struct nj__slot *s = x->slot;

    if (!ok && !x->is_put_off)
        nj__file_spoil(x->file);
    enum nj_file_result result = nj__chunks_end(r->chunks, &x->fill, ok, s ? job_of(s) : NULL);
    nj_histogram_add(&r->stats.took, nj_clock_ns(CLOCK_MONOTONIC) - x->since);
    if (s) {
        nj_task_queue_home(&r->waiting, &s->task);
        if (x->is_put_off)
            go_to_workers(r, s);
        else
            go_home(s, result);
    } else {
        r->n_ahead--;
        nj_ref_put(&x->file->object.ref);
    }
    x->fill.piece = NULL;
    x->next = r->free;
    r->free = x;
    count_flights(r, -1);
}

static bool is_of_system(int32_t result)
{
    return nj__file_lacks_memory(-result) || result == -EINTR;
}

/* Continue after a short read, or retry. Returns false if the read has failed. */
static bool goes_on(struct nj_file_reader *r, struct flight *x, int32_t result)
{
    x->n_tries = result > 0 ? 0 : x->n_tries + 1;
    if (x->n_tries > TRIES)
        return false;
    if (x->is_direct && (result == -EINVAL || x->n_got % BLOCK != 0))
        leave_direct(x->file); /* direct I/O failed, or the rest is not aligned */
    else if (result <= 0 && !is_of_system(result))
        return false;
    submit(r, x);
    return true;
}

static void landed(struct nj_file_reader *r, struct flight *x, int32_t result)
{
    if (result > 0) {
        x->n_got += (uint32_t)result;
        if (x->is_direct)
            nj_add_relaxed(&r->stats.direct_bytes, (uint64_t)result);
    }
    bool is_whole = x->n_got >= x->fill.n_bytes;
    if (!is_whole && goes_on(r, x, result))
        return;
    x->is_put_off = !is_whole && is_of_system(result);
    if (x->is_put_off)
        nj_store_relaxed(&x->file->is_put_off, true);
    if (!is_whole)
        nj_add_relaxed(x->is_put_off ? &r->stats.n_put_off : &r->stats.n_failed, 1);
    end(r, x, is_whole && nj__file_is_unchanged(x->file));
}

static bool reap(struct nj_file_reader *r)
{
    struct nj__ring_done done[BATCH];
    uint32_t n = nj__ring_reap(r->ring, done, BATCH);

    for (uint32_t i = 0; i < n; i++)
        landed(r, done[i].user, done[i].result);
    if (n > 0)
        look_at_busy(r);
    return n > 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Return all queued READs without running them. */
static void give_up_waiting(struct nj_file_reader *r)
{
    struct nj_task *task;

    while ((task = nj_task_queue_first(&r->waiting))) {
        nj_task_queue_remove(&r->waiting, task);
        go_home_undone(nj_container_of(task, struct nj__slot, task));
    }
    look_at_busy(r);
}

bool nj__file_reader_step(struct nj_file_reader *r)
{
    bool any = take_jobs(r);

    any |= begin_reads(r);
    any |= reap(r);
    if (any)
        nj__chunks_bury(r->chunks);
    return any;
}

static void work(struct nj_file_reader *r)
{
    for (uint32_t n_idle = 0;;) {
        if (nj__file_reader_step(r)) {
            nj__pages_ask(&r->pages);
            n_idle = 0;
            continue;
        }
        if (is_stopping(r)) {
            give_up_waiting(r);
            if (r->n_flights == 0)
                return;
        }
        if (n_idle++ < LOOKS) {
            rte_pause();
            continue;
        }
        nj__ring_will_wait(r->ring);
        if (!have_jobs(r) && (!is_stopping(r) || r->n_flights > 0))
            nj__ring_wait(r->ring);
    }
}

/* Called on the reader thread, which owns the io_uring. */
static int open_ring(struct nj_file_reader *r)
{
    struct nj__arena_memory memory = nj__arena_memory(r->chunks->arena);
    return nj__ring_open(&r->ring, NJ_FILE_READS_MAX, &memory);
}

static void *reader_main(void *arg)
{
    struct nj_file_reader *r = arg;
    const struct nj_file_reader_config *c = &r->config;

    pthread_setname_np(pthread_self(), "nj-reader");
    if (c->affinity)
        pthread_setaffinity_np(pthread_self(), sizeof *c->affinity, c->affinity);
    void *altstack = nj_altstack_begin();
    bool is_registered = c->eal && rte_thread_register() == 0;
    r->rc = open_ring(r);
    bool is_up = r->rc == 0;
    sem_post(&r->is_up);
    if (is_up)
        work(r);
    if (is_registered)
        rte_thread_unregister();
    nj_altstack_end(altstack);
    sem_post(&r->is_down);
    return NULL;
}

static void wait_for(sem_t *s)
{
    while (sem_wait(s) < 0)
        ;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void ask(struct nj__lane *l)
{
    struct nj_file_reader *r = l->config.service;
    nj__ring_wake(r->ring);
}

static bool init_lanes(struct nj_file_reader *r)
{
    for (uint32_t i = 0; i < r->config.n_shards; i++) {
        struct nj__lane_config c = {
            .service = r,
            .ask = ask,
            .n_max = r->config.tasks_max,
            .depth = 1,
            .tasks_max = r->config.tasks_max,
            .waker = r->config.wakers ? &r->config.wakers[i] : NULL,
        };
        if (!nj__lane_init(&r->lanes[i], &c))
            return false;
    }
    return true;
}

static int start_threads(struct nj_file_reader *r)
{
    int rc = nj__pages_start(&r->pages, r->chunks, r->config.affinity);
    return rc ? rc : -pthread_create(&r->thread, NULL, reader_main, r);
}

int nj_file_reader_start(const struct nj_file_reader_config *config, struct nj_file_reader **out)
{
    size_t n_bytes = sizeof(struct nj_file_reader) + config->n_shards * sizeof(struct nj__lane);
    struct nj_file_reader *r =
        aligned_alloc(NJ_CACHE_LINE, (n_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE);

    if (!r)
        return -ENOMEM;
    memset(r, 0, n_bytes);
    r->config = *config;
    r->chunks = nj__file_store_chunks(config->store);
    nj_task_queue_init(&r->waiting);
    for (uint32_t i = 0; i < NJ_FILE_READS_MAX; i++) {
        r->flights[i].next = r->free;
        r->free = &r->flights[i];
    }
    sem_init(&r->is_up, 0, 0);
    sem_init(&r->is_down, 0, 0);
    r->is_joined = true;
    int rc = !init_lanes(r) ? -ENOMEM : config->no_thread ? open_ring(r) : start_threads(r);
    if (rc == 0 && !config->no_thread) {
        wait_for(&r->is_up);
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

struct nj_task_port nj_file_reader_port(struct nj_file_reader *r, uint32_t shard)
{
    NJ_CHECK(shard < r->config.n_shards);
    return nj__lane_port(&r->lanes[shard]);
}

uint32_t nj_file_reader_stop(struct nj_file_reader *r, uint32_t wait_ms)
{
    if (r->is_joined)
        return 0;
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        r->lanes[i].closed = true;
    atomic_store(&r->stopping, true);
    nj__ring_wake(r->ring);
    struct timespec until = nj_clock_deadline(wait_ms);
    while (sem_timedwait(&r->is_down, &until) < 0)
        if (errno != EINTR)
            return nj_load_relaxed(&r->stats.n_under_way) + 1;
    pthread_join(r->thread, NULL);
    r->is_joined = true;
    nj__pages_stop(&r->pages);
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        r->lanes[i].ended = true;
    return 0;
}

void nj_file_reader_free(struct nj_file_reader *r)
{
    if (!r)
        return;
    NJ_ASSERT(r->is_joined);
    nj__pages_stop(&r->pages);
    nj__ring_close(r->ring);
    for (uint32_t i = 0; i < r->config.n_shards; i++)
        nj__lane_fini(&r->lanes[i]);
    sem_destroy(&r->is_up);
    sem_destroy(&r->is_down);
    free(r);
}

const struct nj_file_reader_stats *nj_file_reader_stats(const struct nj_file_reader *r)
{
    return &r->stats;
}

bool nj_file_reader_is_registered(const struct nj_file_reader *r)
{
    return nj__ring_is_registered(r->ring);
}
