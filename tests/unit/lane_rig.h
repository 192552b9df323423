/* SPDX-License-Identifier: BSD-3-Clause */
/* A shard's lane to a file store. A test runs its jobs one by one. */
#pragma once

#include "base/compiler.h"
#include "store/file_client.h"
#include "stuck_rig.h"

/* A lane over workers that run each task at once, on this thread, or when the test calls for it. */
struct direct {
    struct nj_task *in[8], *done[64];
    uint32_t n_in, n;
    bool is_full, by_hand, is_unflushed;
};

static inline void direct_run(struct direct *d, struct nj_task *task)
{
    task->ops->run(task);
    d->done[d->n++] = task;
}

static inline bool direct_submit(void *ctx, struct nj_task *task)
{
    struct direct *d = ctx;

    if (d->is_full || d->n == NJ_ARRAY_LEN(d->done))
        return false;
    d->is_unflushed = true;
    if (!d->by_hand) {
        direct_run(d, task);
        return true;
    }
    cr_assert_lt(d->n_in, NJ_ARRAY_LEN(d->in));
    d->in[d->n_in++] = task;
    return true;
}

static inline void direct_flush(void *ctx)
{
    struct direct *d = ctx;
    d->is_unflushed = false;
}

static inline uint32_t direct_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct direct *d = ctx;
    uint32_t i = 0;

    cr_assert_not(d->is_unflushed, "no completion would wake the shard");
    while (i < n && d->n > 0)
        tasks[i++] = d->done[--d->n];
    return i;
}

struct shard {
    struct direct direct;
    struct nj_file_client lane;
    struct nj_file_ops port;
};

static inline void begin_shard(struct shard *sh, struct bench *b)
{
    sh->direct = (struct direct){0};
    struct nj_worker_ops workers = {
        .ctx = &sh->direct, .submit = direct_submit, .flush = direct_flush, .poll = direct_poll};
    sh->port = nj_file_client_init(&sh->lane, &workers, NULL, b->store);
}

/* Run the oldest of the lane's tasks. */
static inline void direct_run_next(struct direct *d)
{
    struct nj_task *task = d->in[0];

    cr_assert_gt(d->n_in, 0);
    memmove(d->in, d->in + 1, --d->n_in * sizeof d->in[0]);
    direct_run(d, task);
}

/* Displace the newest of the tasks from the queue, as another client's task would. */
static inline void direct_displace(struct direct *d)
{
    cr_assert_gt(d->n_in, 0);
    struct nj_task *task = d->in[--d->n_in];
    task->displaced = true;
    task->ops->reject(task);
}
