/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of routes on one shard: their exchanges, and the strategy that runs them. All calls
 * belong to the shard's lcore; other threads read the atomics only. */
#pragma once

#include <stdatomic.h>

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
/* At shutdown a handler in nj_call_on_worker() waits for its call: less than the server waits for
 * its lcores, so that the log names the route and not the lcore. */
#define NJ_HANDLERS_CALL_WAIT    NJ_SEC

struct nj_handlers {
    struct nj_exchanges *exchanges; /* NULL: no routes */
    struct nj_ewyk *ewyk;           /* NULL: another strategy */
    struct nj_task_class *classes;  /* by route */
    struct nj_worker_ops port;      /* the worker pool, as exchanges use it */
    uint64_t n_would_block;         /* refused waits already added to the counter */
    uint64_t n_awaits[NJ_N_AWAITS]; /* the same of waits for events and descriptors */
    nj_ns trim_at;
    uint32_t n_stuck; /* handlers that did not return at shutdown */

    /* Written by the lcore, read by telemetry. */
    _Atomic uint32_t n_fibers, n_fibers_high, n_waiting;
    _Atomic uint32_t n_awaiting[NJ_N_AWAITS]; /* handlers that await events, or descriptors */
    _Atomic bool reset;                       /* set by telemetry: reset the statistics of routes */
};

struct nj_conns;

bool nj__handlers_init(struct nj_conns *cs, nj_ns now);
/* Cancels handlers that wait. By the thread they wait on. */
void nj__handlers_cancel_waiting(struct nj_conns *cs);
/* Waits for handlers that run on workers. */
void nj__handlers_fini(struct nj_conns *cs);
/* Answers a request that was not offered with 503. */
void nj__handlers_reject(struct nj_exchange *x);
/* Gives the request to the strategy. Returns the time it took, for the round over connections. */
nj_ns nj__handlers_schedule_request(struct nj_conns *cs, struct nj_exchange *x);
/* Continues fibers, and takes back tasks that workers finished. Returns how many. */
uint32_t nj__handlers_run_due(struct nj_conns *cs, nj_ns now);
/* Passes responses of handlers to their streams. Returns how many. */
uint32_t nj__handlers_deliver_responses(struct nj_conns *cs, nj_ns now);
/* Called after the last submit of a step. */
void nj__handlers_wake_workers(struct nj_conns *cs);
/* Nothing is due before this time. */
nj_ns nj__handlers_next_at(const struct nj_conns *cs);
bool nj__handlers_busy(const struct nj_conns *cs);
void nj__handlers_publish(struct nj_conns *cs);
