/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/file_lane.h"

#include "base/attr.h"

/* READs that are asked for again in one step: others want their turn, too. */
#define RETRIES 16u

/* Ask again when this is not the count of what came back to the store: at once. */
#define AT_ONCE UINT64_MAX

static struct nj_file_job *job_of(struct nj_task *task)
{
    return nj_container_of(task, struct nj_file_job, task);
}

static void keep(struct nj_file_lane *lane, struct nj_file_job *job)
{
    job->next = NULL;
    *lane->last = job;
    lane->last = &job->next;
}

static struct nj_file_job *take(struct nj_file_lane *lane, struct nj_file_job **at)
{
    struct nj_file_job *job = *at;

    *at = job->next;
    if (lane->last == &job->next)
        lane->last = at;
    if (lane->look == &job->next)
        lane->look = at;
    return job;
}

static void run(struct nj_task *task)
{
    const struct nj_file_lane *lane = job_of(task)->lane;

    nj_file_store_run(lane->store, job_of(task));
    nj_file_store_tidy(lane->store);
}

/* In a submit or poll of the workers' port: another client's took its place, or it is the end. */
static void reject(struct nj_task *task)
{
    struct nj_file_job *job = job_of(task);
    struct nj_file_lane *lane = job->lane;

    job->result = NJ_FILE_NO_MEMORY;
    job->seen = AT_ONCE;
    if (job->op == NJ_FILE_READ && task->displaced) {
        keep(lane, job);
        return;
    }
    job->next = lane->failed;
    lane->failed = job;
}

static const struct nj_task_ops task_ops = {.run = run, .reject = reject};

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct nj_file_lane *lane = ctx;

    job->lane = lane;
    job->task = (struct nj_task){
        .ops = &task_ops, .class_of = &lane->by_op[job->op], .client = job->client};
    nj_list_init(&job->task.node);
    if (job->op != NJ_FILE_READ)
        job->object = NULL;
    job->chunk = NULL;
    if (!lane->way.submit(lane->way.ctx, &job->task))
        return false;
    lane->way.flush(lane->way.ctx);
    return true;
}

/* Those nobody waits for any more go back as they are, wherever they stand: one place is looked at
 * in each poll, as the list may be long and is cold. */
static uint32_t give_back(struct nj_file_lane *lane, struct nj_file_job **jobs)
{
    struct nj_file_job *job = *lane->look;

    if (job && !job->asker) {
        jobs[0] = take(lane, lane->look);
        return 1;
    }
    lane->look = job ? &job->next : &lane->first;
    return 0;
}

/* Ask again for those that may find memory now. */
static void ask_again(struct nj_file_lane *lane)
{
    for (uint32_t i = 0; lane->first && i < RETRIES; i++) {
        struct nj_file_job *job = lane->first;
        if (!job->asker) {
            lane->look = &lane->first; /* the next poll gives it back */
            break;
        }
        if (!nj_file_store_has_room(lane->store, job->seen))
            break;
        (void)take(lane, &lane->first);
        if (submit(lane, job))
            continue;
        keep(lane, job);
        break;
    }
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

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_file_lane *lane = ctx;
    struct nj_task *home[NJ_BURST_MAX];
    uint32_t n = lane->first && n_max > 0 ? give_back(lane, jobs) : 0;

    ask_again(lane);
    uint32_t n_room = n_max - n < NJ_BURST_MAX ? n_max - n : NJ_BURST_MAX;
    uint32_t n_home = n_room > 0 ? lane->way.poll(lane->way.ctx, home, n_room) : 0;

    for (uint32_t i = 0; i < n_home; i++) {
        struct nj_file_job *job = job_of(home[i]);
        bool waits = job->op == NJ_FILE_READ && job->result == NJ_FILE_NO_MEMORY;
        if (waits && job->asker)
            keep(lane, job);
        else
            jobs[n++] = job;
    }
    return n + give_back_failed(lane, jobs + n, n_max - n);
}

static bool keeps(void *ctx)
{
    const struct nj_file_lane *lane = ctx;
    return lane->first != NULL || lane->failed != NULL;
}

struct nj_file_port nj_file_lane_init(struct nj_file_lane *lane, const struct nj_task_port *way,
                                      struct nj_file_store *store)
{
    static const char *const names[NJ_FILE_N_OPS] = {"open", "read", "list"};

    *lane = (struct nj_file_lane){.way = *way, .store = store};
    for (int op = 0; op < NJ_FILE_N_OPS; op++)
        nj_task_class_init(&lane->by_op[op], names[op], NJ_OS_BLOCKING);
    lane->last = lane->look = &lane->first;
    return (struct nj_file_port){.ctx = lane, .submit = submit, .poll = poll, .keeps = keeps};
}
