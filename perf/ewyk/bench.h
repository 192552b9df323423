/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One cell of ./dev bench ewyk: producers whose tasks are consumed by one strategy.
 *
 * A producer writes a buffer per task and has at most `window` of them queued or running; a
 * consumer reads the buffer, works for a while, and every so many tasks waits 1 ms. What waits is
 * not in the window, so that the window is never the limit. A producer whose window is full stops,
 * and is started again when half of it is free.
 *
 * In a closed loop a producer always has a next task. In an open loop tasks become due at times
 * that were drawn before, whatever the producer does meanwhile, and the delay of a task counts from
 * when it was due until its consumption starts.
 */
#ifndef NJ_PERF_EWYK_BENCH_H
#define NJ_PERF_EWYK_BENCH_H

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
#define BLOCKED_MAX   (BUFFERS - WINDOW_MAX - 1) /* that wait: a buffer is always free */
#define PRODUCERS_MAX 2u
#define BLOCK_NS      (1 * NJ_MS)
#define GAPS          4096u /* between tasks of an open loop: as many quantiles of their times */
#define BY_DEFAULT    UINT32_MAX
#define RATE_MIN      10u /* a gap in ns has 32 bits */
#define BUCKETS       (64u * 8u)

struct options {
    const char *strategy;
    uint32_t n_bytes, work_ns, block_every; /* 0: never */
    uint32_t n_producers, window, ms, warm_up_ms;
    uint32_t n_threads;  /* that consume, for strategies of threads */
    uint32_t n_reserved; /* of them, or BY_DEFAULT */
    uint32_t rate;       /* tasks of a producer that become due per second; 0: a closed loop */
    uint32_t seed;
};

struct producer;

struct bench_task {
    struct nj_task task;
    struct producer *of;
    _Atomic bool busy;
    bool blocks;
    nj_ns due; /* 0: the delay is not measured */
    uint8_t *buffer;
};

struct producer {
    struct nj_producer port;
    struct nj_strategy strategy; /* not of the lcore */
    struct nj_dual_state dual;
    const struct options *options;
    uint64_t n_spin; /* of work(), for work_ns */
    nj_ns due;       /* the next task, in an open loop */
    struct nj_prng random;
    uint32_t *gaps; /* in ns */
    struct bench_task *tasks;
    uint32_t cursor;
    _Atomic uint64_t n_produced;
    _Atomic uint32_t n_under_way NJ_CACHE_ALIGNED;
    _Atomic uint32_t n_blocked;
    _Atomic bool waits; /* for its window */
    _Atomic uint32_t n_inside, n_violations;
    _Atomic uint64_t delays[BUCKETS] NJ_CACHE_ALIGNED;
};

extern _Atomic bool bench_over;  /* produce nothing more */
extern _Atomic nj_ns bench_from; /* the delay of tasks is measured that become due from then on */

nj_ns bench_now(void);
void bench_wait(nj_ns ns);
/* Turns of work() in that time: the best of some tries, as others may use the core. */
uint64_t bench_calibrate(uint32_t ns);
struct producer *bench_producer_new(const struct options *o, uint64_t n_spin, uint32_t index);
/* The next task; NULL: none is due (true), or none may be queued or running besides (false). */
struct nj_task *bench_produce(struct producer *p, bool *none_is_due);
/* The work of a task, from its start to the wait (true: it has to wait now), and its end. */
bool bench_work(struct bench_task *t);
void bench_done(struct bench_task *t);

struct bench_delays {
    uint64_t n;           /* tasks that became due */
    uint64_t n_unstarted; /* of them not begun by the end: they count as if they had begun then */
    uint64_t p50, p99, p999;
};
/* Of an open loop that ended at `until`, when nothing runs any more. */
struct bench_delays bench_delays(struct producer *const *p, uint32_t n, nj_ns until);

/* Executors of the benchmark only. */
struct crew;
struct crew *crew_new(bool steals, struct producer *const *producers, const struct options *o);
struct nj_executor *crew_executor(struct crew *c);
void crew_free(struct crew *c);

/* A thread per producer, with fibers. Returns when bench_over is set and all is done. */
void lcores_start(struct producer *const *producers, uint32_t n_producers);
void lcores_join(uint64_t counts[NJ_N_MODES]);

#endif
