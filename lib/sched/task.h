/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: units of work that a producer returns and a strategy consumes.
 *
 * The types are those of Jetty's Invocable, and OS_BLOCKING for tasks that block the thread and not
 * only their own stack. A task without a type is BLOCKING.
 */
#pragma once

#include <stdatomic.h>

#include <nightjar/handler.h>

#include "base/list.h"
#include "base/types.h"

/* How a task was consumed; also the index of its counter. PC: produce-consume, PIC: the same for
 * EITHER, EPC: execute-produce-consume, PEC: produce-execute-consume. */
enum nj_run_mode {
    NJ_MODE_PC,         /* inline in the producing context, which must not block */
    NJ_MODE_PIC,        /* the same for an EITHER task, when no thread or stack was free */
    NJ_MODE_EPC_INLINE, /* on its own stack; never parked */
    NJ_MODE_EPC_PARKED, /* on its own stack; production continued when it parked */
    NJ_MODE_PEC_QUEUE,  /* after waiting for a stack */
    NJ_MODE_PEC_WORKER, /* by a worker thread */
    NJ_MODE_REJECTED,   /* not consumed: the queues were full */
    NJ_N_MODES
};

struct nj_task;
struct nj_worker_wait;

struct nj_task_ops {
    /* Consumes the task, in the context of its mode. May free the task. */
    void (*run)(struct nj_task *);
    /* Called instead of run(), exactly once, in the producer's context. */
    void (*reject)(struct nj_task *);
};

struct nj_task {
    const struct nj_task_ops *ops;
    struct nj_list node;  /* while it waits */
    struct nj_task *next; /* in the executor's queue */
    struct nj_task_class *class_of;
    /* The client, as a key that is only compared: clients take turns where tasks wait for workers.
     * NULL: all such tasks count as one client. */
    const void *client;
    /* CPU time and elapsed time, written by the worker before the task is returned. Both 0: it was
     * cancelled and did not run. */
    uint64_t run_ns, wall_ns;
    /* Set by the task's lcore (nj_task_cancel()), read by a worker before run() and in its waits.
     * It publishes no other data. A worker that misses it runs the task, whose memory stays until
     * it is returned. */
    _Atomic bool cancelled;
    struct nj_worker_wait *_Atomic worker; /* which runs it now; NULL: none. See worker_wait.h */
    bool queued;      /* it waited for a stack before it was offered: counted as PEC_QUEUE */
    bool run_inline;  /* EITHER: run inline even if a stack is free */
    bool displaced;   /* removed from the workers' queue for a task of another client */
    bool as_declared; /* consumed by the declared type, even if its class was moved */
};

/* Replaces UNTYPED and invalid values by BLOCKING. */
enum nj_task_type nj_task_type_or_blocking(enum nj_task_type declared);
