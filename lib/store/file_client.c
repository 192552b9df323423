/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Submits file jobs as tasks and retries parked READs. READs that wait for memory share one
 * condition, so only the first is retried. READs that wait for a fill have separate conditions, and
 * a fill may be stuck on a disk, so they are scanned in turn.
 */
#include "store/file_client.h"

#include "base/attr.h"
#include "store/file_reader.h"

/* Parked READs that one poll examines or resubmits. */
#define LOOKS 16u

static struct nj_file_job *job_of(struct nj_task *task)
{
    return nj_container_of(task, struct nj_file_job, task);
}

static void keep(struct nj__file_waiting *w, struct nj_file_job *job)
{
    job->next = NULL;
    *w->last = job;
    w->last = &job->next;
}

static struct nj_file_job *take(struct nj__file_waiting *w, struct nj_file_job **at)
{
    struct nj_file_job *job = *at;

    *at = job->next;
    if (w->last == &job->next)
        w->last = at;
    if (w->look == &job->next)
        w->look = at;
    return job;
}

static const struct nj_task_port *way_of(const struct nj_file_lane *lane,
                                         const struct nj_file_job *job)
{
    return job->by_reader ? &lane->reader : &lane->way;
}

static void run(struct nj_task *task)
{
    const struct nj_file_lane *lane = job_of(task)->lane;

    nj_file_store_run(lane->store, job_of(task));
    nj_file_store_bury(lane->store);
}

/* Called in submit or poll of the workers' port: the task was displaced, or the workers stop. */
static void reject(struct nj_task *task)
{
    struct nj_file_job *job = job_of(task);
    struct nj_file_lane *lane = job->lane;

    job->result = task->displaced ? NJ_FILE_NO_ROOM : NJ_FILE_NO_MEMORY;
    if (job->op == NJ_FILE_READ && task->displaced) {
        keep(&lane->displaced, job);
        return;
    }
    job->next = lane->failed;
    lane->failed = job;
}

static void join(void *ctx, struct nj_file_job *job, const void *client)
{
    const struct nj_file_lane *lane = ctx;

    if (lane->way.join && lane->way.join(lane->way.ctx, &job->task, client))
        job->client = client;
}

/* A parked READ is not in the port; poll() returns it, since it has no asker. */
static bool withdraw(void *ctx, struct nj_file_job *job)
{
    struct nj_file_lane *lane = ctx;
    const struct nj_task_port *way = way_of(lane, job);

    /* The reader also marks READs that have left its ring. */
    if (!way->withdraw || (!job->by_reader && !nj_list_linked(&job->task.node)) ||
        !way->withdraw(way->ctx, &job->task))
        return false;
    lane->has_left = true;
    return true;
}

static const struct nj_task_ops task_ops = {.run = run, .reject = reject};

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct nj_file_lane *lane = ctx;

    job->lane = lane;
    job->by_reader = job->op == NJ_FILE_READ && lane->reader.submit && nj_file_reader_may(job);
    /* Durations at the reader do not predict those of workers. */
    struct nj_task_class *class_of = job->by_reader ? NULL : &lane->by_op[job->op];
    job->task = (struct nj_task){.ops = &task_ops, .class_of = class_of, .client = job->client};
    nj_list_init(&job->task.node);
    if (job->op != NJ_FILE_READ)
        job->object = NULL;
    job->chunk = NULL;
    const struct nj_task_port *way = way_of(lane, job);
    if (!way->submit(way->ctx, &job->task)) {
        lane->has_left = false;
        return false;
    }
    way->flush(way->ctx);
    return true;
}

/* Returns false if the queue is full; the READ then moves to the end of its list. */
static bool ask_again(struct nj_file_lane *lane, struct nj__file_waiting *w,
                      struct nj_file_job **at)
{
    struct nj_file_job *job = take(w, at);
    bool ok = submit(lane, job);

    if (!ok)
        keep(w, job);
    return ok;
}

/* Examine one READ, and remove and return it if it has no asker; else return NULL. One per call:
 * the list may be long and is not in the CPU cache. */
static struct nj_file_job *give_back(struct nj__file_waiting *w)
{
    struct nj_file_job *job = *w->look;

    if (job && !job->asker)
        return take(w, w->look);
    w->look = job ? &job->next : &w->first;
    return NULL;
}

static void ask_for_memory(struct nj_file_lane *lane)
{
    struct nj__file_waiting *w = &lane->memory;

    for (uint32_t i = 0; w->first && i < LOOKS; i++) {
        if (!w->first->asker) {
            w->look = &w->first; /* the next poll gives it back */
            break;
        }
        if (!nj_file_store_has_news(lane->store, w->first) || !ask_again(lane, w, &w->first))
            break;
    }
}

static uint32_t look_at_busy(struct nj_file_lane *lane, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj__file_waiting *w = &lane->busy;
    uint32_t n = 0;

    for (uint32_t i = 0; w->first && n < n_max && i < LOOKS; i++) {
        const struct nj_file_job *job = *w->look;
        if (job && job->asker && nj_file_store_has_news(lane->store, job)) {
            if (!ask_again(lane, w, w->look))
                break;
        } else if ((jobs[n] = give_back(w))) {
            n++;
        } else if (!job) {
            break; /* end of the list */
        }
    }
    return n;
}

/* Displaced READs only wait for a free task slot. */
static uint32_t ask_for_displaced(struct nj_file_lane *lane, struct nj_file_job **jobs,
                                  uint32_t n_max)
{
    struct nj__file_waiting *w = &lane->displaced;
    uint32_t n = 0;

    for (uint32_t i = 0; w->first && n < n_max && i < LOOKS; i++) {
        if (!w->first->asker)
            jobs[n++] = take(w, &w->first);
        else if (!ask_again(lane, w, &w->first))
            break;
    }
    return n;
}

static struct nj__file_waiting *where_it_waits(struct nj_file_lane *lane,
                                               const struct nj_file_job *job)
{
    if (job->op != NJ_FILE_READ || !job->asker)
        return NULL;
    if (job->result == NJ_FILE_NO_MEMORY)
        return &lane->memory;
    return job->result == NJ_FILE_BUSY ? &lane->busy : NULL;
}

static uint32_t give_back_failed(struct nj_file_lane *lane, struct nj_file_job **jobs,
                                 uint32_t n_max)
{
    uint32_t n = 0;

    for (; n < n_max && lane->failed; n++) {
        jobs[n] = lane->failed;
        lane->failed = jobs[n]->next;
    }
    return n;
}

static uint32_t take_home(struct nj_file_lane *lane, const struct nj_task_port *way,
                          struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_task *home[NJ_BURST_MAX];
    uint32_t n_room = n_max < NJ_BURST_MAX ? n_max : NJ_BURST_MAX, n = 0;
    uint32_t n_home = n_room > 0 ? way->poll(way->ctx, home, n_room) : 0;

    lane->has_left |= n_home > 0;
    for (uint32_t i = 0; i < n_home; i++) {
        struct nj_file_job *job = job_of(home[i]);
        struct nj__file_waiting *w = where_it_waits(lane, job);
        if (w)
            keep(w, job);
        else
            jobs[n++] = job;
    }
    return n;
}

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_file_lane *lane = ctx;
    uint32_t n = ask_for_displaced(lane, jobs, n_max);

    if (lane->memory.first && n < n_max && (jobs[n] = give_back(&lane->memory)))
        n++;
    n += look_at_busy(lane, jobs + n, n_max - n);
    ask_for_memory(lane);
    n += take_home(lane, &lane->way, jobs + n, n_max - n);
    if (lane->reader.poll)
        n += take_home(lane, &lane->reader, jobs + n, n_max - n);
    return n + give_back_failed(lane, jobs + n, n_max - n);
}

static bool keeps(void *ctx)
{
    const struct nj_file_lane *lane = ctx;
    return lane->displaced.first || lane->memory.first || lane->busy.first || lane->failed;
}

static bool has_room(void *ctx)
{
    return ((const struct nj_file_lane *)ctx)->has_left;
}

static void init(struct nj__file_waiting *w)
{
    w->first = NULL;
    w->last = w->look = &w->first;
}

struct nj_file_port nj_file_lane_init(struct nj_file_lane *lane, const struct nj_task_port *way,
                                      const struct nj_task_port *reader,
                                      struct nj_file_store *store)
{
    static const char *const names[NJ_FILE_N_OPS] = {"open", "read", "list"};

    *lane = (struct nj_file_lane){.way = *way, .store = store};
    if (reader)
        lane->reader = *reader;
    for (int op = 0; op < NJ_FILE_N_OPS; op++)
        nj_task_class_init(&lane->by_op[op], names[op], NJ_OS_BLOCKING);
    init(&lane->displaced);
    init(&lane->memory);
    init(&lane->busy);
    return (struct nj_file_port){.ctx = lane,
                                 .submit = submit,
                                 .join = join,
                                 .withdraw = withdraw,
                                 .poll = poll,
                                 .keeps = keeps,
                                 .has_room = has_room};
}
