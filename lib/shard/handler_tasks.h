/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes of a shard: their exchanges, and the strategy that runs their handlers. */
#ifndef NJ_SHARD_HANDLER_TASKS_H
#define NJ_SHARD_HANDLER_TASKS_H

#include <stdatomic.h>

#include "conn/fiber_admission.h"
#include "http/handlers/exchange.h"
#include "sched/ewyk.h"

/* Requests that wait for a stack, of one shard: with 128 streams each, those of 32 connections.
 * Beyond: 503. */
#define NJ_HANDLERS_QUEUE_MAX   4096u
/* Handlers that may wait at once, unless told otherwise: 16 MiB of stacks. */
#define NJ_FIBERS_DEFAULT       256u
/* Fibers resumed, and tasks begun, in one step. */
#define NJ_HANDLERS_RUN_MAX     64u
/* Of one step, tasks that come home from workers. */
#define NJ_HANDLERS_POLL_MAX    32u
/* While no handler waits, so many stacks keep their memory, and the others give it back: a few each
 * second, as each costs a system call. */
#define NJ_FIBERS_KEEP          32u
#define NJ_FIBERS_TRIM          16u
#define NJ_FIBERS_TRIM_EVERY    NJ_SEC
/* At the end each fiber that is told so is resumed so often before its stack is left behind: after
 * 64 calls that tell it, each further one takes a turn. With the most fibers there can be, 16,384,
 * those are 4 million switches. */
#define NJ_HANDLERS_LEAVE_TURNS 256u

struct nj_handlers {
    struct nj_exchanges *exchanges; /* NULL: no routes */
    struct nj_ewyk *ewyk;           /* NULL: another strategy */
    struct nj_task_class *classes;  /* by route */
    struct nj_task_port port;       /* the workers', as exchanges see it */
    uint64_t n_would_block;         /* refused waits that the strategy counted and we told */
    nj_ns trim_at;
    struct nj_stacks stacks;
    uint32_t n_stuck; /* handlers that did not return at the end */

    /* Written by the lcore now and then, read by telemetry. */
    _Atomic uint32_t n_fibers, n_fibers_high, n_waiting;
    _Atomic bool reset; /* set by telemetry: zero what is counted */
};

#endif
