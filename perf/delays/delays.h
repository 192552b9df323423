/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock and the threads of ./dev bench ewyk --delays: real.c has the machine's, virtual.c has
 * simulated ones. Also the former pool of workers, for comparison.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "sched/worker_ops.h"

/* --- time ------------------------------------------------------------------------------------- */

/* Runs `main` as the first thread, the driver. Returns the result of `main`. */
int time_run(int (*main)(void));
nj_ns time_now(void);
/* The calling thread uses `ns` of CPU time. */
void time_burn(nj_ns ns);
/* The calling thread is blocked in the kernel for `ns`. */
void time_block(nj_ns ns);
/* Ends a step of a polling thread: advances virtual time by a step. In real time no effect. */
void time_step(void);
/* CPU time of all threads except the calling one. 0 in virtual time. */
nj_ns time_cpu_of_others(void);
/* The first call, before the workers start, pins the driver to all CPUs but the first, and the
 * workers inherit these. The second call pins the driver to the first CPU. In virtual time no
 * effect. */
void time_place(void);

/* --- the former pool -------------------------------------------------------------------------- */

/*
 * Each worker has a ring for each shard. The shard assigns a task to the worker with the lowest
 * load. If each worker has a task of the shard already, the shard assigns a further one ahead of
 * time, up to NJ_WORKER_DEPTH per worker, if it and all tasks of the worker are known to be short.
 * So a task may wait behind another one while another worker is idle.
 */
struct ahead;
/* Starts `n_workers` threads. Each shard may have `tasks_max` tasks in the pool. */
struct ahead *ahead_new(uint32_t n_workers, uint32_t n_shards, uint32_t tasks_max);
/* The functions of one shard; withdraw() and join() are NULL. */
struct nj_worker_ops ahead_port(struct ahead *a, uint32_t shard);
/* Ends the threads and frees the pool, which must have no tasks. */
void ahead_free(struct ahead *a);
