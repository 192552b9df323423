/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Submits file jobs as tasks and retries parked READs. READs that wait for memory share one
 * condition, so only the first is retried. READs that wait for a fill have separate conditions, and
 * a fill may be stuck on a disk, so they are scanned in turn.
 */
#include "store/file_client.h"

#include "base/compiler.h"
#include "store/file_reader.h"

/* Parked READs that one poll examines or resubmits. */
#define RETRIES_MAX 16u

static struct nj_file_job *job_of(struct nj_task *task)
{
    return nj_container_of(task, struct nj_file_job, task);
}

static void append(struct nj__file_job_list *w, struct nj_file_job *job)
{
    job->next = NULL;
    *w->last = job;
    w->last = &job->next;
}

static struct nj_file_job *remove_at(struct nj__file_job_list *w, struct nj_file_job **at)
{
    struct nj_file_job *job = *at;

    *at = job->next;
    if (w->last == &job->next)
        w->last = at;
    if (w->look == &job->next)
        w->look = at;
    return job;
}

static const struct nj_worker_ops *port_of(const struct nj_file_client *fc,
                                           const struct nj_file_job *job)
{
    return job->read_by_reader ? &fc->reader : &fc->workers;
}

static void run(struct nj_task *task)
{
    const struct nj_file_client *fc = job_of(task)->file_client;

    nj_file_store_do_job(fc->store, job_of(task));
    nj_file_store_free_unreferenced(fc->store);
}

/* Called in submit or poll of the workers' port: the task was displaced, or the workers stop. */
static void reject(struct nj_task *task)
{
    struct nj_file_job *job = job_of(task);
    struct nj_file_client *fc = job->file_client;

    job->result = task->displaced ? NJ_FILE_DISPLACED : NJ_FILE_NO_MEMORY;
    if (job->op == NJ_FILE_READ && task->displaced) {
        append(&fc->displaced, job);
        return;
    }
    job->next = fc->failed;
    fc->failed = job;
}

static void join(void *ctx, struct nj_file_job *job, const void *client)
{
    const struct nj_file_client *fc = ctx;

    if (fc->workers.join && fc->workers.join(fc->workers.ctx, &job->task, client))
        job->client = client;
}

/* A parked READ is not in the port; poll() returns it, since it has no owner. */
static bool withdraw(void *ctx, struct nj_file_job *job)
{
    struct nj_file_client *fc = ctx;
    const struct nj_worker_ops *ops = port_of(fc, job);

    /* The reader also marks READs that have left its ring. */
    if (!ops->withdraw || (!job->read_by_reader && !nj_list_linked(&job->task.node)) ||
        !ops->withdraw(ops->ctx, &job->task))
        return false;
    fc->has_completed = true;
    return true;
}

static const struct nj_task_ops task_ops = {.run = run, .reject = reject};

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct nj_file_client *fc = ctx;

    job->file_client = fc;
    job->read_by_reader =
        job->op == NJ_FILE_READ && fc->reader.submit && nj_file_reader_job_cannot_block(job);
    /* Durations at the reader do not predict those of workers. */
    struct nj_task_class *class_of = job->read_by_reader ? NULL : &fc->by_op[job->op];
    job->task = (struct nj_task){.ops = &task_ops, .class_of = class_of, .client = job->client};
    nj_list_init(&job->task.node);
    if (job->op != NJ_FILE_READ)
        job->object = NULL;
    job->chunk = NULL;
    const struct nj_worker_ops *ops = port_of(fc, job);
    if (!ops->submit(ops->ctx, &job->task)) {
        fc->has_completed = false;
        return false;
    }
    ops->flush(ops->ctx);
    return true;
}

/* Returns false if the queue is full; the READ then moves to the end of its list. */
static bool resubmit(struct nj_file_client *fc, struct nj__file_job_list *w,
                     struct nj_file_job **at)
{
    struct nj_file_job *job = remove_at(w, at);
    bool ok = submit(fc, job);

    if (!ok)
        append(w, job);
    return ok;
}

/* Examine one READ, and remove and return it if it has no owner; else return NULL. One per call:
 * the list may be long and is not in the CPU cache. */
static struct nj_file_job *take_abandoned(struct nj__file_job_list *w)
{
    struct nj_file_job *job = *w->look;

    if (job && !job->owner)
        return remove_at(w, w->look);
    w->look = job ? &job->next : &w->first;
    return NULL;
}

static void retry_no_memory(struct nj_file_client *fc)
{
    struct nj__file_job_list *w = &fc->memory;

    for (uint32_t i = 0; w->first && i < RETRIES_MAX; i++) {
        if (!w->first->owner) {
            w->look = &w->first; /* the next poll gives it back */
            break;
        }
        if (!nj_file_store_may_retry_read(fc->store, w->first) || !resubmit(fc, w, &w->first))
            break;
    }
}

static uint32_t retry_busy(struct nj_file_client *fc, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj__file_job_list *w = &fc->busy;
    uint32_t n = 0;

    for (uint32_t i = 0; w->first && n < n_max && i < RETRIES_MAX; i++) {
        const struct nj_file_job *job = *w->look;
        if (job && job->owner && nj_file_store_may_retry_read(fc->store, job)) {
            if (!resubmit(fc, w, w->look))
                break;
        } else if ((jobs[n] = take_abandoned(w))) {
            n++;
        } else if (!job) {
            break; /* end of the list */
        }
    }
    return n;
}

/* Displaced READs only wait for a free task slot. */
static uint32_t retry_displaced(struct nj_file_client *fc, struct nj_file_job **jobs,
                                uint32_t n_max)
{
    struct nj__file_job_list *w = &fc->displaced;
    uint32_t n = 0;

    for (uint32_t i = 0; w->first && n < n_max && i < RETRIES_MAX; i++) {
        if (!w->first->owner)
            jobs[n++] = remove_at(w, &w->first);
        else if (!resubmit(fc, w, &w->first))
            break;
    }
    return n;
}

static struct nj__file_job_list *waiting_list_of(struct nj_file_client *fc,
                                                 const struct nj_file_job *job)
{
    if (job->op != NJ_FILE_READ || !job->owner)
        return NULL;
    if (job->result == NJ_FILE_NO_MEMORY)
        return &fc->memory;
    return job->result == NJ_FILE_BUSY ? &fc->busy : NULL;
}

static uint32_t return_failed(struct nj_file_client *fc, struct nj_file_job **jobs, uint32_t n_max)
{
    uint32_t n = 0;

    for (; n < n_max && fc->failed; n++) {
        jobs[n] = fc->failed;
        fc->failed = jobs[n]->next;
    }
    return n;
}

static uint32_t collect_done(struct nj_file_client *fc, const struct nj_worker_ops *ops,
                             struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_task *home[NJ_BURST_MAX];
    uint32_t n_room = n_max < NJ_BURST_MAX ? n_max : NJ_BURST_MAX, n = 0;
    uint32_t n_home = n_room > 0 ? ops->poll(ops->ctx, home, n_room) : 0;

    fc->has_completed |= n_home > 0;
    for (uint32_t i = 0; i < n_home; i++) {
        struct nj_file_job *job = job_of(home[i]);
        struct nj__file_job_list *w = waiting_list_of(fc, job);
        if (w)
            append(w, job);
        else
            jobs[n++] = job;
    }
    return n;
}

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_file_client *fc = ctx;
    uint32_t n = retry_displaced(fc, jobs, n_max);

    if (fc->memory.first && n < n_max && (jobs[n] = take_abandoned(&fc->memory)))
        n++;
    n += retry_busy(fc, jobs + n, n_max - n);
    retry_no_memory(fc);
    n += collect_done(fc, &fc->workers, jobs + n, n_max - n);
    if (fc->reader.poll)
        n += collect_done(fc, &fc->reader, jobs + n, n_max - n);
    return n + return_failed(fc, jobs + n, n_max - n);
}

static bool needs_polling(void *ctx)
{
    const struct nj_file_client *fc = ctx;
    return fc->displaced.first || fc->memory.first || fc->busy.first || fc->failed;
}

static bool has_room(void *ctx)
{
    return ((const struct nj_file_client *)ctx)->has_completed;
}

static void init(struct nj__file_job_list *w)
{
    w->first = NULL;
    w->last = w->look = &w->first;
}

struct nj_file_ops nj_file_client_init(struct nj_file_client *fc,
                                       const struct nj_worker_ops *workers,
                                       const struct nj_worker_ops *reader,
                                       struct nj_file_store *store)
{
    static const char *const names[NJ_FILE_N_OPS] = {"open", "read", "list"};

    *fc = (struct nj_file_client){.workers = *workers, .store = store};
    if (reader)
        fc->reader = *reader;
    for (int op = 0; op < NJ_FILE_N_OPS; op++)
        nj_task_class_init(&fc->by_op[op], names[op], NJ_OS_BLOCKING);
    init(&fc->displaced);
    init(&fc->memory);
    init(&fc->busy);
    return (struct nj_file_ops){.ctx = fc,
                                .submit = submit,
                                .join = join,
                                .withdraw = withdraw,
                                .poll = poll,
                                .needs_polling = needs_polling,
                                .has_room = has_room};
}
