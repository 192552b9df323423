/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/file_lane.h"

#include "base/attr.h"

/* READs that are asked for again in one step: others want their turn, too. */
#define RETRIES 16u

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct nj_file_lane *lane = ctx;

    return lane->way.submit(lane->way.ctx, job);
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

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_file_lane *lane = ctx;
    uint32_t n = lane->first && n_max > 0 ? give_back(lane, jobs) : 0;

    ask_again(lane);
    uint32_t n_back = n < n_max ? lane->way.poll(lane->way.ctx, jobs + n, n_max - n) : 0;
    struct nj_file_job **back = jobs + n;

    for (uint32_t i = 0; i < n_back; i++) {
        bool waits = back[i]->op == NJ_FILE_READ && back[i]->result == NJ_FILE_NO_MEMORY;
        if (waits && back[i]->asker)
            keep(lane, back[i]);
        else
            jobs[n++] = back[i];
    }
    return n;
}

static bool keeps(void *ctx)
{
    const struct nj_file_lane *lane = ctx;
    return lane->first != NULL;
}

struct nj_file_port nj_file_lane_init(struct nj_file_lane *lane, const struct nj_file_port *way,
                                      struct nj_file_store *store)
{
    *lane = (struct nj_file_lane){.way = *way, .store = store};
    lane->last = lane->look = &lane->first;
    return (struct nj_file_port){.ctx = lane, .submit = submit, .poll = poll, .keeps = keeps};
}
