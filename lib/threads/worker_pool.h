/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers: one pool of threads for what may block in the kernel, behind a struct nj_task_port
 * for each shard and kind of task. Handlers of OS_BLOCKING routes are one kind, operations on files
 * the other.
 *
 * The threads run the adaptive strategy (sched/strategy.h). One of them looks at the shards' rings;
 * it consumes the task that it finds, and another one takes over the looking, if there is something
 * to look for. So no task waits behind another one that is stuck while a thread is free.
 *
 * Of each kind at most n_max run at once, and there are as many threads as that is together: stuck
 * handlers leave the files their threads, and the other way round.
 *
 * A shard has a lane for each kind (server/lane.h), with NJ_WORKER_DEPTH short tasks for each that
 * may run.
 */
#ifndef NJ_THREADS_WORKER_POOL_H
#define NJ_THREADS_WORKER_POOL_H

#include <sched.h>

#include "base/limits.h"
#include "dpdk/wakeup.h"
#include "sched/task_port.h"
#include "sched/thread_strategy.h"

enum nj_workers_kind { NJ_WORKERS_HANDLERS, NJ_WORKERS_FILES, NJ_WORKERS_N_KINDS };

struct nj_workers_config {
    uint32_t n_shards; /* 1..NJ_SHARDS_MAX + 1: also others than lcores may have a port */
    struct {
        uint32_t n_max;        /* tasks that run at once, at most NJ_WORKERS_MAX; 0: none may */
        uint32_t tasks_max;    /* of one shard, from submit to poll; beyond: one is rejected */
        void (*prepare)(void); /* on the thread, before each task. May be NULL */
    } kind[NJ_WORKERS_N_KINDS];
    /* Where threads may run: the first n_affinity by one set each, the others by `rest`. Without
     * (NULL): where their creator may. */
    const cpu_set_t *affinity, *rest;
    uint32_t n_affinity;
    bool eal;                /* EAL is up: register the threads with it */
    struct nj_waker *wakers; /* one for each lcore's shard, woken for tasks that come home. NULL:
                              * nobody is */
    uint32_t n_wakers;
};

struct nj_workers;

/* Start the threads. Returns 0, -ENOMEM, or -EAGAIN: the system has no more threads for us. */
int nj_workers_start(const struct nj_workers_config *config, struct nj_workers **out);

/* For one thread; after nj_workers_stop() any one thread may poll. */
struct nj_task_port nj_workers_port(struct nj_workers *w, uint32_t shard,
                                    enum nj_workers_kind kind);

/*
 * No task is begun any more: those that were not are rejected by the next polls, those that run
 * come home. No submit or poll may run at the same time. Waits at most `wait_ms` in all for the
 * threads to end and returns how many have not: they are still in ops->run, and nothing of what
 * they may touch can be freed. May be called again to wait for them.
 */
uint32_t nj_workers_stop(struct nj_workers *w, uint32_t wait_ms);

/* After nj_workers_stop() returned 0, when nothing is left to poll. */
void nj_workers_free(struct nj_workers *w);

/* Tasks of a shard between submit and poll, and those of them that the ring had no room for. The
 * shard's thread. */
struct nj_workers_load {
    uint32_t n_out, n_waiting;
};
struct nj_workers_load nj_workers_load(const struct nj_workers *w, uint32_t shard,
                                       enum nj_workers_kind kind);

/* What goes on, for telemetry. Any thread. */
struct nj_workers_stats {
    uint32_t n_threads;
    struct {
        uint32_t n_max, n_running;
        uint32_t n_out, n_waiting; /* of all shards, see struct nj_workers_load */
        uint64_t n_done;           /* tasks that came home */
        uint64_t n_refused;        /* submits that found no room */
        uint64_t n_displaced;      /* tasks that gave their place to another client's */
        uint64_t n_held_back;      /* tasks that waited until fewer ran or lay ready */
    } kind[NJ_WORKERS_N_KINDS];
    struct nj_strategy_counters strategy;
};
struct nj_workers_stats nj_workers_stats(const struct nj_workers *w);

#endif
