/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two times in which ./dev bench ewyk --delays runs: real.c is the machine's, virtual.c has threads
 * and a clock of its own. And the former pool of workers, to compare with.
 */
#ifndef NJ_PERF_DELAYS_H
#define NJ_PERF_DELAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "sched/worker_ops.h"

/* --- time ------------------------------------------------------------------------------------- */

/* Runs `main`, as a thread of this time. */
int time_run(int (*main)(void));
nj_ns time_now(void);
/* The calling thread computes for so long. */
void time_burn(nj_ns ns);
/* It waits in the kernel for so long. */
void time_block(nj_ns ns);
/* A step of a thread that polls: lets a little time pass, and does not sleep. */
void time_step(void);
/* CPU time of all threads but the calling one; 0 where nobody counts it. */
nj_ns time_cpu_of_others(void);
/* Pins the calling thread, the driver, to one CPU, and threads that it starts to the others. */
void time_place(void);

/* --- the former pool -------------------------------------------------------------------------- */

/*
 * Each worker had a ring for each shard, and the shard chose the worker when it handed a task over:
 * the one with least to do, and up to NJ_WORKER_DEPTH tasks ahead of time if all of them were known
 * to be short. So a task could wait behind another one while a worker was free.
 */
struct ahead;
struct ahead *ahead_new(uint32_t n_workers, uint32_t n_shards, uint32_t tasks_max);
struct nj_worker_ops ahead_port(struct ahead *a, uint32_t shard);
void ahead_free(struct ahead *a);

#endif
