/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker pool: threads for tasks that may block in the kernel. Each shard has one struct
 * nj_worker_ops for each kind of task: handlers of OS_BLOCKING routes, and file operations.
 *
 * The threads run the adaptive strategy (strategy/thread_strategy.h). One thread polls the shards'
 * rings. It consumes the task that it finds, and another thread takes over polling if there are
 * more tasks. So no task waits behind a blocked one while a thread is free.
 *
 * At most n_max tasks of each kind run at once, and the pool has a thread for each of them. So
 * blocked handlers never take the threads of file operations, nor the reverse.
 *
 * A shard has rings for each kind (task_rings.h), with room for NJ_WORKER_DEPTH short tasks for
 * each task that may run.
 */
#pragma once

#include <sched.h>

#include "base/limits.h"
#include "dpdk/wakeup.h"
#include "sched/worker_ops.h"
#include "strategy/thread_strategy.h"

enum nj_worker_kind { NJ_WORKER_HANDLERS, NJ_WORKER_FILES, NJ_WORKER_TLS, NJ_WORKER_N_KINDS };

struct nj_worker_pool_config {
    uint32_t n_shards; /* 1..NJ_SHARDS_MAX + 1: one port may belong to a thread that is no lcore */
    struct {
        uint32_t n_max;        /* tasks that run at once, at most NJ_WORKERS_MAX; 0: none */
        uint32_t tasks_max;    /* of one shard between submit and poll; more are rejected */
        void (*prepare)(void); /* called on the thread before each task; or NULL */
    } kind[NJ_WORKER_N_KINDS];
    /* CPUs of the threads: one set for each of the first n_affinity threads, `housekeeping` for the
     * others. NULL: the CPUs of their creator. */
    const cpu_set_t *affinity, *housekeeping;
    uint32_t n_affinity;
    bool eal;                  /* register threads with the EAL, which must be initialised */
    struct nj_wakeup *wakeups; /* one per shard, signalled when a task completes; NULL: none */
    uint32_t n_wakeups;
};

struct nj_worker_pool;

/* Starts the threads. Returns 0, -ENOMEM, -EAGAIN: the system refused a thread, or -EMFILE: a
 * descriptor. */
int nj_worker_pool_start(const struct nj_worker_pool_config *config, struct nj_worker_pool **out);

/* The interface of one shard, for one thread; after nj_worker_pool_stop() any one thread may poll.
 */
struct nj_worker_ops nj_worker_pool_ops(struct nj_worker_pool *w, uint32_t shard,
                                        enum nj_worker_kind kind);

/*
 * Stops starting tasks. Tasks that have not started are rejected by the next polls; running tasks
 * complete. No submit or poll may run concurrently. Waits at most `wait_ms` for all threads and
 * returns the number that still run. These are in ops->run, so nothing that they use may be freed.
 * May be called again.
 */
uint32_t nj_worker_pool_stop(struct nj_worker_pool *w, uint32_t wait_ms);

/* After nj_worker_pool_stop() has returned 0 and all tasks were polled. */
void nj_worker_pool_free(struct nj_worker_pool *w);

/* State and counters for telemetry. Any thread. */
struct nj_worker_pool_stats {
    uint32_t n_threads;
    struct {
        uint32_t n_max, n_running;
        uint32_t n_out;       /* tasks of all shards between submit and poll */
        uint32_t n_waiting;   /* those of n_out that are not in the ring yet */
        uint64_t n_done;      /* completed tasks */
        uint64_t n_refused;   /* submits refused for lack of room */
        uint64_t n_displaced; /* tasks displaced by a task of another client */
        uint64_t n_held_back; /* tasks that waited for room in the ring */
    } kind[NJ_WORKER_N_KINDS];
    struct nj_strategy_counters strategy;
};
struct nj_worker_pool_stats nj_worker_pool_stats(const struct nj_worker_pool *w);
