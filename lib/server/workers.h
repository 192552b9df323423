/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers: threads that run OS_BLOCKING tasks, behind a struct nj_task_port for each shard.
 *
 * A task goes to the worker that has least to do. A worker is given up to NJ_WORKER_DEPTH tasks of
 * one lcore ahead while the classes of all of them are known to be short (NJ_WORKER_AHEAD_NS), else
 * one. What no worker has room for waits at its lcore, where clients take turns
 * (sched/task_queue.h), for whichever worker is free first. So the first task of a client waits
 * for one task that runs, whatever other clients have queued; when as many wait as may, it takes
 * the place of one of the client with most, which is rejected; and behind a task that never ends
 * nothing of its lcore is stuck but short tasks that were given to its worker before it was known
 * to be long. Files are not done here: they have a worker of their own.
 */
#ifndef NJ_SERVER_WORKERS_H
#define NJ_SERVER_WORKERS_H

#include <sched.h>

#include "base/limits.h"
#include "dpdk/wake.h"
#include "sched/task_port.h"

struct nj_workers_config {
    uint32_t n_workers, n_shards; /* 1..NJ_WORKERS_MAX, 1..NJ_SHARDS_MAX */
    uint32_t tasks_max;           /* of one shard, from submit to poll; beyond: one is rejected */
    const cpu_set_t *affinity;    /* one for each worker; NULL: where their creator may run */
    /* For each shard the worker next to its core, which is asked first; NULL: i modulo n_workers */
    const uint32_t *nearest;
    bool eal;                /* EAL is up: register the threads with it */
    struct nj_waker *wakers; /* see nj_worker_config */
};

struct nj_workers;

/* Start the threads. Returns 0, or a negative errno. */
int nj_workers_start(const struct nj_workers_config *config, struct nj_workers **out);

/* For one lcore; after nj_workers_stop() any one thread may poll. */
struct nj_task_port nj_workers_port(struct nj_workers *w, uint32_t shard);

/*
 * No task is begun any more: those that were not are rejected by the next polls, those that run
 * come home. No submit or poll may run at the same time. Waits at most `wait_ms` in all for the
 * threads to end and returns how many have not: they are still in ops->run, and nothing of what
 * they may touch can be freed. May be called again to wait for them.
 */
uint32_t nj_workers_stop(struct nj_workers *w, uint32_t wait_ms);

/* After nj_workers_stop() returned 0, when nothing is left to poll. */
void nj_workers_free(struct nj_workers *w);

/* Tasks of a shard between submit and poll, and those of them that no worker had room for. The
 * shard's lcore. */
struct nj_workers_load {
    uint32_t n_out, n_waiting;
};
struct nj_workers_load nj_workers_load(const struct nj_workers *w, uint32_t shard);

#endif
