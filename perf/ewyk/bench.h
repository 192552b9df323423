/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One cell of ./dev bench ewyk: producers whose tasks are consumed by one strategy.
 *
 * A producer writes a buffer per task and has at most `window` of them queued or running; a
 * consumer reads the buffer, works for a while, and every so many tasks waits 1 ms. What waits is
 * not in the window, so that the window is never the limit. A producer whose window is full stops,
 * and is started again when half of it is free.
 */
#ifndef NJ_PERF_EWYK_BENCH_H
#define NJ_PERF_EWYK_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/types.h"
#include "sched/ewyk.h"
#include "sched/strategy.h"

#define BUFFERS       2048u /* of a producer: 8 MiB, more than the caches of one core */
#define BUFFER_BYTES  4096u
#define WINDOW_MAX    512u
#define BLOCKED_MAX   (BUFFERS - WINDOW_MAX - 1) /* that wait: a buffer is always free */
#define PRODUCERS_MAX 2u
#define BLOCK_NS      (1 * NJ_MS)
#define THREADS       64u /* that consume, for strategies of threads */
#define STAMP_EVERY   16u /* tasks: the delay until it starts is measured for one of them */
#define BUCKETS       (64u * 8u)

struct options {
    const char *strategy;
    uint32_t n_bytes, work_ns, block_every; /* 0: never */
    uint32_t n_producers, window, ms, warm_up_ms;
    int n_reserved;
};

struct producer;

struct bench_task {
    struct nj_task task;
    struct producer *of;
    _Atomic bool busy;
    bool blocks;
    nj_ns produced; /* 0: not measured */
    uint8_t *buffer;
};

struct producer {
    struct nj_producer port;
    struct nj_strategy strategy; /* not of the lcore */
    const struct options *options;
    uint64_t n_spin; /* of work(), for work_ns */
    struct bench_task *tasks;
    uint32_t cursor;
    _Atomic uint64_t n_produced;
    _Atomic uint32_t n_under_way NJ_CACHE_ALIGNED;
    _Atomic uint32_t n_blocked;
    _Atomic bool waits; /* for its window */
    _Atomic uint32_t n_inside, n_violations;
    _Atomic uint64_t delays[BUCKETS] NJ_CACHE_ALIGNED;
};

extern _Atomic bool bench_over; /* produce nothing more */

nj_ns bench_now(void);
/* The next task, or NULL. */
struct nj_task *bench_produce(struct producer *p);
/* The work of a task, from its start to the wait (true: it has to wait now), and its end. */
bool bench_work(struct bench_task *t);
void bench_done(struct bench_task *t);

/* Executors of the benchmark only; each has THREADS consumers. */
struct crew;
struct crew *crew_new(bool steals, struct producer *const *producers, uint32_t n_producers);
struct nj_executor *crew_executor(struct crew *c);
void crew_free(struct crew *c);

/* A thread per producer, with fibers. Returns when bench_over is set and all is done. */
void lcores_start(struct producer *const *producers, uint32_t n_producers);
void lcores_join(uint64_t counts[NJ_N_MODES]);

#endif
