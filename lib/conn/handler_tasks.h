/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of routes on one shard: their exchanges, and the strategy that runs them. All calls
 * belong to the shard's lcore; other threads read the atomics only. */
#ifndef NJ_CONN_HANDLER_TASKS_H
#define NJ_CONN_HANDLER_TASKS_H

#include <stdatomic.h>

#include "conn/fiber_admission.h"
#include "http/handlers/exchange.h"
#include "sched/ewyk_fiber_scheduler.h"

/* Requests of one shard that may be queued for a fiber: those of 32 connections with 128 streams.
 * Further ones are answered with 503. */
#define NJ_HANDLERS_QUEUE_MAX    4096u
/* Default number of handlers that may wait at once: 16 MiB of stacks. */
#define NJ_FIBERS_DEFAULT        256u
/* Fibers resumed and tasks started in one step. */
#define NJ_HANDLERS_RUN_MAX      64u
/* Tasks taken back from workers in one step. */
#define NJ_HANDLERS_POLL_MAX     32u
/* While no handler waits, this many fibers keep their memory. The others release it, a few per
 * second, as each costs a system call. */
#define NJ_FIBERS_KEEP           32u
#define NJ_FIBERS_TRIM           16u
#define NJ_FIBERS_TRIM_EVERY     NJ_SEC
/* At shutdown each cancelled fiber is resumed this often before it is leaked: its first 64 calls
 * fail at once, later ones take a turn each. With the maximum of 16,384 fibers this is 4 million
 * switches. */
#define NJ_HANDLERS_CANCEL_TURNS 256u

struct nj_handlers {
    struct nj_exchanges *exchanges; /* NULL: no routes */
    struct nj_ewyk *ewyk;           /* NULL: another strategy */
    struct nj_task_class *classes;  /* by route */
    struct nj_worker_ops port;      /* the worker pool, as exchanges use it */
    uint64_t n_would_block;         /* refused waits already added to the counter */
    nj_ns trim_at;
    struct nj_admission stacks;
    uint32_t n_stuck; /* handlers that did not return at shutdown */

    /* Written by the lcore, read by telemetry. */
    _Atomic uint32_t n_fibers, n_fibers_high, n_waiting;
    _Atomic bool reset; /* set by telemetry: reset the statistics of routes */
};

#endif
