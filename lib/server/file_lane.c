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

static struct nj_file_job *take_first(struct nj_file_lane *lane)
{
    struct nj_file_job *job = lane->first;

    lane->first = job->next;
    if (!lane->first)
        lane->last = &lane->first;
    return job;
}

/* Ask again for those that may find memory now. Those nobody waits for any more go back as they
 * are. Returns how many of these there are in `jobs`. */
static uint32_t ask_again(struct nj_file_lane *lane, struct nj_file_job **jobs, uint32_t n_max)
{
    uint32_t n = 0;

    for (uint32_t i = 0; lane->first && i < RETRIES && n < n_max; i++) {
        struct nj_file_job *job = lane->first;
        if (!job->asker) {
            jobs[n++] = take_first(lane);
            continue;
        }
        if (!nj_file_store_has_room(lane->store, job->seen))
            break;
        (void)take_first(lane);
        if (submit(lane, job))
            continue;
        keep(lane, job);
        break;
    }
    return n;
}

static uint32_t poll(void *ctx, struct nj_file_job **jobs, uint32_t n_max)
{
    struct nj_file_lane *lane = ctx;
    uint32_t n = lane->first ? ask_again(lane, jobs, n_max) : 0;
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

struct nj_file_port nj_file_lane_init(struct nj_file_lane *lane, const struct nj_file_port *way,
                                      struct nj_file_store *store)
{
    *lane = (struct nj_file_lane){.way = *way, .store = store, .last = &lane->first};
    return (struct nj_file_port){.ctx = lane, .submit = submit, .poll = poll};
}
