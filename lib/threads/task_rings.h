/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane is one shard's way to the threads of a service and back, for tasks of one kind:
 *
 *     waiting (the shard's)  ->  ring  ->  the service runs it  ->  home  ->  poll (the shard's)
 *
 * The ring has one producer, the shard's thread, and one consumer at a time. A task is in a slot of
 * its lane from the ring until it is home: that is what the service sees of it.
 *
 * What the ring has no room for waits, where clients take turns (sched/task_queue.h). A ring is
 * given as many tasks as may run at once; and up to `depth` for each of these while the classes of
 * the tasks are known to be short (NJ_WORKER_AHEAD_NS). So the first task of a client waits for
 * those few, whatever other clients have queued. When as many wait as may, it takes the place of
 * one of the client with most, which is rejected.
 */
#ifndef NJ_THREADS_TASK_RINGS_H
#define NJ_THREADS_TASK_RINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "dpdk/wakeup.h"
#include "sched/task_port.h"
#include "sched/task_queue.h"

#define NJ__NOT_RUN UINT64_MAX /* as run_ns: it was cancelled, or the service stops */

struct nj__lane;

struct nj__slot {
    struct nj_task task; /* the service's */
    struct nj_task *job; /* the shard's */
    struct nj__lane *lane;
    struct nj__slot *next; /* while it is free, or on its way home; between, the service's */
    bool ahead;            /* the job's class was known to be short */
    bool queued;           /* the service's */
};

struct nj__lane_config {
    void *service;
    void (*ask)(struct nj__lane *); /* tasks were put into the ring: see to it. The shard's thread,
                                     * behind a full fence; must not wait */
    const struct nj_task_ops *slot_ops; /* of nj__slot.task */
    uint32_t n_max;                     /* tasks that may run at once */
    uint32_t depth;                     /* short ones that lie ready for each of them */
    uint32_t tasks_max;                 /* from submit to poll */
    struct nj_waker *waker;             /* the lane wakes it when a task comes home; NULL: nobody */
    int kind;                           /* the service's */
};

struct nj__lane {
    struct nj__lane_config config;
    /* The shard's thread alone: */
    struct nj_task_queue waiting;         /* for room in the ring */
    struct nj__slot *slots, *free, *done; /* done: at home, and not polled */
    uint32_t n_out;                       /* slots in use */
    uint32_t n_long;                      /* of these, not known to be short */
    bool unflushed;
    bool closed; /* the service takes no more; by the thread that polls last */
    bool ended;  /* and its threads have left */
    /* Written by it alone, read by any thread: */
    _Atomic uint64_t n_done, n_refused, n_displaced, n_held_back;
    _Atomic uint32_t seen_out, seen_waiting; /* n_out and waiting.n, together with it */
    struct rte_ring *ring;
    _Atomic(struct nj__slot *) home NJ_CACHE_ALIGNED; /* that have run, the last one first */
} NJ_CACHE_ALIGNED;

/* A ring of one producer and one consumer that holds n_max, for free(). NULL: no memory. */
struct rte_ring *nj__lane_new_ring(uint32_t n_max);

/* False: no memory. */
bool nj__lane_init(struct nj__lane *l, const struct nj__lane_config *config);
/* When nothing is out. Also after nj__lane_init() failed, or of zeroes. */
void nj__lane_fini(struct nj__lane *l);
/* For the shard's thread. */
struct nj_task_port nj__lane_port(struct nj__lane *l);

/* For the service. The consumer alone: */
bool nj__lane_is_empty(const struct nj__lane *l);
struct nj__slot *nj__lane_take(struct nj__lane *l); /* NULL: it is empty */
/* Any thread: its job has run, or run_ns is NJ__NOT_RUN. The slot may be in use again at once. */
void nj__lane_home(struct nj__slot *s);

#endif
