/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: what a producer finds and a strategy has consumed.
 *
 * Types are those of Jetty's Invocable, and one more: OS_BLOCKING, for what would block the thread
 * and not only its own stack. Whoever does not say is BLOCKING.
 */
#ifndef NJ_SCHED_TASK_H
#define NJ_SCHED_TASK_H

#include <stdatomic.h>

#include <nightjar/handler.h>

#include "base/list.h"
#include "base/types.h"

/* How a task was consumed; the order of the counters, too. */
enum nj_mode {
    NJ_MODE_PC,         /* inline, on the context that produced it, which must not block */
    NJ_MODE_PIC,        /* the same for an EITHER task, as nobody could take over production */
    NJ_MODE_EPC_INLINE, /* on a stack of its own, and it never parked */
    NJ_MODE_EPC_PARKED, /* on a stack of its own; production went on when it parked */
    NJ_MODE_PEC_QUEUE,  /* it had to wait for a stack */
    NJ_MODE_PEC_WORKER, /* by a worker thread */
    NJ_MODE_REJECTED,   /* by nobody: no room in any queue */
    NJ_N_MODES
};

struct nj_strategy;
struct nj_task;

struct nj_task_ops {
    /* Consume it. On whatever context the mode says. The task may be freed in here. */
    void (*run)(struct nj_task *);
    /* It will not be run; called in its place, exactly once, in the producer's context. */
    void (*reject)(struct nj_task *);
};

struct nj_task {
    const struct nj_task_ops *ops;
    struct nj_list node; /* while it waits */
    /* Of the executor that has it: the task behind it, and whose task it is (struct
     * nj_executor_ops).
     */
    struct nj_task *next;
    const struct nj_strategy *of;
    struct nj_task_class *class_of;
    /* Whose request it is, as a key that is only compared: where tasks wait for workers, clients
     * take turns. NULL: all such tasks count as one client's. */
    const void *client;
    /* Written by a worker before the task comes home: CPU time, and time by the clock. Both 0: it
     * was cancelled, and did not run. */
    uint64_t run_ns, wall_ns;
    /* Set by the task's lcore, read by a worker before run(). Nothing else is published by it, so
     * it is relaxed: a worker that misses it runs a task whose memory stays until it is home. */
    _Atomic bool cancelled;
    bool queued;      /* it waited for a stack before it was offered: counted as PEC_QUEUE */
    bool no_stack;    /* EITHER: run inline also if a stack is free, which is for others */
    bool displaced;   /* it was to wait for a worker, and gave its place to another client's */
    bool as_declared; /* of its type count what its class declares, wherever that was moved */
};

/* The stricter of two: equal stays, EITHER gives way to the other, OS_BLOCKING wins: what blocks
 * the thread must not get onto the lcore by being joined to something. Anything else is BLOCKING.
 */
enum nj_task_type nj_task_combine(enum nj_task_type a, enum nj_task_type b);
/* UNTYPED becomes BLOCKING; values that are none, too. */
enum nj_task_type nj_task_type_of(enum nj_task_type declared);

#endif
