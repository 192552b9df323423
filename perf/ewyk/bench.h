/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One cell of ./dev bench ewyk: producers, and the strategy that consumes their tasks.
 *
 * A producer writes a buffer for each task. At most `window` of its tasks are queued or running. A
 * consumer reads the buffer and computes for work_ns; every block_every-th task then waits for 1
 * ms. Waiting tasks do not count in the window. A producer whose window is full stops, and
 * continues when half of the window is free.
 *
 * In a closed loop a producer always has a next task. In an open loop tasks become due at
 * exponential intervals, independent of the producer. The delay of a task is the time from its due
 * time to the start of its consumption.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "base/types.h"
#include "reference/strategies.h"
#include "sched/ewyk_fiber_scheduler.h"

#define BUFFERS       2048u /* of a producer: 8 MiB, more than the caches of one core */
#define BUFFER_BYTES  4096u
#define WINDOW_MAX    512u
#define BLOCKED_MAX   (BUFFERS - WINDOW_MAX - 1) /* waiting tasks: one buffer is always free */
#define PRODUCERS_MAX 2u
#define BLOCK_NS      (1 * NJ_MS)
#define GAPS          4096u      /* quantiles of the interval between tasks of an open loop */
#define BY_DEFAULT    UINT32_MAX /* of the thread pool */
#define RATE_MIN      10u        /* an interval in ns has 32 bits */
#define BUCKETS       (64u * 8u)

struct options {
    const char *strategy;
    uint32_t n_bytes, work_ns, block_every; /* 0: never */
    uint32_t n_producers, window, ms, warm_up_ms;
    uint32_t n_threads;  /* that consume, for strategies with threads */
    uint32_t n_reserved; /* reserved threads among them, or BY_DEFAULT */
    uint32_t rate;       /* tasks of a producer that become due per second; 0: a closed loop */
    uint32_t seed;
};

struct producer;

struct bench_task {
    struct nj_task task;
    struct producer *producer;
    _Atomic bool busy;
    bool blocks;
    nj_ns due; /* 0: the delay is not measured */
    uint8_t *buffer;
};

struct producer {
    struct nj_producer port;
    union {
        struct nj_strategy strategy; /* unused by the lcore strategy */
        struct nj_dual dual;
    };
    const struct options *options;
    uint64_t n_spin; /* iterations of spin() that take work_ns */
    nj_ns due;       /* of the next task, in an open loop */
    struct nj_prng random;
    uint32_t *gaps; /* GAPS quantiles in ns; NULL: a closed loop */
    struct bench_task *tasks;
    uint32_t cursor;
    _Atomic uint64_t n_produced;
    _Atomic uint32_t n_under_way NJ_CACHE_ALIGNED;
    _Atomic uint32_t n_blocked;
    _Atomic bool waits;                      /* the producer stopped because its window was full */
    _Atomic uint32_t n_inside, n_violations; /* threads that produce; times that there were two */
    _Atomic uint64_t delays[BUCKETS] NJ_CACHE_ALIGNED;
};

extern _Atomic bool bench_over;  /* no further task is produced */
extern _Atomic nj_ns bench_from; /* delays are measured of tasks that are due from this time on */

nj_ns bench_now(void);
void bench_wait(nj_ns ns);
/* Iterations of spin() that take `ns`: the best of 20 tries, because other threads may use the
 * core. */
uint64_t bench_calibrate(uint32_t ns);
struct producer *bench_producer_new(const struct options *o, uint64_t n_spin, uint32_t index);
/* Produces the next task. NULL: no task is due (*none_is_due is true), or the producer must stop
 * or bench_over is set (*none_is_due is false). */
struct nj_task *bench_produce(struct producer *p, bool *none_is_due);
/* Reads the buffer of a task and computes. True: the caller waits for BLOCK_NS before
 * bench_done(). */
bool bench_work(struct bench_task *t);
/* Ends a task. */
void bench_done(struct bench_task *t);

/* Does the task begin production, for one of these producers? */
static inline bool bench_is_recruit(struct producer *const *p, uint32_t n,
                                    const struct nj_task *task)
{
    for (uint32_t i = 0; i < n; i++)
        if (task == &p[i]->strategy.queued_recruit)
            return true;
    return false;
}

struct bench_delays {
    uint64_t n;           /* tasks that became due */
    uint64_t n_unstarted; /* of them not started at the end; counted as if they had started then */
    uint64_t p50, p99, p999; /* ns */
};
/* Delays of an open loop that ended at `until`. To be called after all tasks have ended. 0 for a
 * closed loop. */
struct bench_delays bench_delays(struct producer *const *p, uint32_t n, nj_ns until);

/* crew.c: executors for PEC. */
struct crew;
struct crew *crew_new(bool steals, struct producer *const *producers, const struct options *o);
struct nj_executor *crew_executor(struct crew *c);
void crew_free(struct crew *c);

/* lcore.c: starts a thread for each producer, which consumes its tasks on fibers. */
void lcores_start(struct producer *const *producers, uint32_t n_producers);
/* Waits until bench_over is set and all tasks have ended. Adds the tasks of each mode to `counts`.
 */
void lcores_join(uint64_t counts[NJ_N_MODES]);
