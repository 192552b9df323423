/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path of one shard's tasks of one kind to the threads of a service and back:
 *
 *     waiting (shard)  ->  ring  ->  the service runs it  ->  home list  ->  poll (shard)
 *
 * The ring has one producer, the shard's thread, and one consumer at a time. A task occupies a slot
 * from the ring until it is polled. The service sees the slot only.
 *
 * Tasks without room in the ring wait in a queue that is fair between clients
 * (sched/fair_task_queue.h). The ring takes as many tasks as may run at once, and up to `depth` for
 * each of these while the classes of the tasks are known to be short (NJ_WORKER_SHORT_TASK_NS). So
 * the first task of a client waits for these few tasks only. While there are other clients, a
 * client with long tasks has at most all but one of the places, and slow tasks
 * (NJ_WORKER_SLOW_TASK_NS) of all shards together have at most all but one of the threads; the last
 * of these are for clients without a task at a worker. When the queue is full, a task of the client
 * with the most tasks is displaced and rejected.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/types.h"
#include "dpdk/wakeup.h"
#include "sched/worker_ops.h"
#include "sched/fair_task_queue.h"

/* A client is alone if no task of another one came within this time. */
#define NJ_WORKER_ALONE_NS (10 * NJ_SEC)

#define NJ__NOT_RUN UINT64_MAX /* value of run_ns: cancelled, or the service stops */

struct nj__task_rings;

struct nj__task_slot {
    struct nj_task task; /* as the service runs it */
    struct nj_task *job; /* as the shard submitted it */
    struct nj__task_rings *rings;
    struct nj__task_slot *next; /* in the free list or the home list; else of the service */
    bool ahead;                 /* the job's class was known to be short at submit */
    bool slow;                  /* counted in config.n_slow */
    bool queued;                /* of the service */
};

struct nj__task_rings_config {
    void *service;
    void (*ask)(struct nj__task_rings *); /* tasks were put into the ring. Called on the shard's
                                           * thread, after a full fence; must not block */
    const struct nj_task_ops *slot_ops;   /* of nj__task_slot.task */
    uint32_t n_max;                       /* tasks that may run at once */
    uint32_t depth;                       /* short tasks in the ring for each of them */
    uint32_t tasks_max;                   /* tasks between submit and poll */
    struct nj_wakeup *waker;              /* signalled when a task completes; NULL: none */
    int kind;                             /* of the service */
    struct nj__task_rings *next; /* rings of the next shard for the same threads, in a circle; NULL:
                                  * there are no others */
    _Atomic uint32_t *n_slow;    /* slow tasks between the waiting queues and their completion, of
                                  * all rings of the circle; NULL: slow tasks are not bounded */
    nj_ns (*clock)(void);        /* NULL: CLOCK_MONOTONIC_COARSE */
};

struct nj__task_rings {
    struct nj__task_rings_config config;
    /* The shard's thread only: */
    struct nj_task_queue waiting;              /* tasks without room in the ring */
    struct nj__task_slot *slots, *free, *done; /* done: completed, not polled */
    uint32_t n_out;                            /* slots in use */
    uint32_t n_long;                           /* slots whose class is not known to be short */
    const void *last_client;                   /* of the latest task */
    nj_ns last_client_at;                      /* when its latest task came, or was noticed */
    nj_ns other_client_at; /* ... and the latest task of another client; 0: never */
    nj_ns elsewhere_at;    /* ... and of other shards; 0: never */
    uint64_t n_noticed;    /* n_submitted at last_client_at */
    uint64_t n_elsewhere;  /* n_submitted of the other shards at elsewhere_at */
    uint32_t slow_max;     /* for the task that may_start() has accepted */
    bool unflushed;
    bool closed; /* no further submits; written by the thread that polls last */
    bool ended;  /* the threads of the service have ended */
    /* Written by the shard's thread, read by any: */
    _Atomic uint64_t n_submitted, n_done, n_refused, n_displaced, n_held_back;
    _Atomic uint32_t seen_out, seen_waiting; /* n_out + waiting.n, and waiting.n */
    struct rte_ring *ring;
    _Atomic(struct nj__task_slot *) home NJ_CACHE_ALIGNED; /* completed slots, newest first */
} NJ_CACHE_ALIGNED;

/* A ring for one producer and one consumer with room for n_max entries. The caller frees it with
 * free(). NULL: no memory. */
struct rte_ring *nj__task_ring_new(uint32_t n_max);

/* False: no memory. */
bool nj__task_rings_init(struct nj__task_rings *l, const struct nj__task_rings_config *config);
/* When no task is in it. Also after a failed nj__task_rings_init(), or for a zeroed object. */
void nj__task_rings_fini(struct nj__task_rings *l);
/* The shard's interface; one thread at a time. */
struct nj_worker_ops nj__task_rings_ops(struct nj__task_rings *l);

/* For the service; the consumer only: */
bool nj__task_rings_is_empty(const struct nj__task_rings *l);
struct nj__task_slot *nj__task_rings_pop(struct nj__task_rings *l); /* NULL: empty */
/* Completes the job: it has run, or run_ns is NJ__NOT_RUN. The slot may be reused at once. Any
 * thread. */
void nj__task_rings_return_to_shard(struct nj__task_slot *s);
