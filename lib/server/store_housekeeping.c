/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store_housekeeping.h"

#define PERIOD NJ_SEC

static void run(struct nj_task *task)
{
    struct nj_store_housekeeping *h = nj_container_of(task, struct nj_store_housekeeping, task);

    nj_file_store_run_housekeeping(h->store);
    nj__root_watch_tick(&h->root);
    if (atomic_load(h->is_yielding))
        return;
    nj_socket_file_watch(h->upgrade_socket);
    nj_mgmt_sockets_repair(h->management);
}

static void reject(struct nj_task *task)
{
    nj_container_of(task, struct nj_store_housekeeping, task)->is_submitted = false;
}

void nj__store_housekeeping_reap(struct nj_store_housekeeping *h)
{
    struct nj_task *home;

    if (h->is_submitted && h->workers.poll(h->workers.ctx, &home, 1) == 1)
        h->is_submitted = false;
}

void nj__store_housekeeping_tick(struct nj_store_housekeeping *h, nj_ns now)
{
    static const struct nj_task_ops ops = {run, reject};

    nj__store_housekeeping_reap(h);
    if (!h->store || h->is_submitted || now < h->due_at)
        return;
    h->due_at = now + PERIOD;
    h->task = (struct nj_task){.ops = &ops};
    nj_list_init(&h->task.node);
    h->is_submitted = h->workers.submit(h->workers.ctx, &h->task);
    h->workers.flush(h->workers.ctx);
}
