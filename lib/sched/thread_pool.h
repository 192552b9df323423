/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that run tasks: a queue, as many threads as it takes, and a few that are reserved for
 * try_execute(). An executor of strategies (sched/strategy.h).
 *
 * A thread is reserved only when another one may be there for the queue: reserved threads are
 * leased, as are those that components keep for themselves.
 */
#ifndef NJ_SCHED_THREAD_POOL_H
#define NJ_SCHED_THREAD_POOL_H

#include "sched/thread_strategy.h"

#define NJ_THREADS_MAX 1024u

struct nj_thread_pool_config {
    uint32_t n_min, n_max; /* threads; n_min are there from the start and stay */
    uint32_t queue_max;    /* tasks of strategies that wait; 0: any number */
    int n_reserved;        /* seats; -1: half as many as threads, at most NJ_RESERVED_MAX */
    nj_ns idle_ns;         /* beyond n_min a thread leaves that had nothing to do for so long */
    /* On each thread, by its number below n_max: before its first task and after its last one.
     * thread_end() must not call the pool, where somebody may wait for the thread's end. Either may
     * be NULL. */
    void (*thread_begin)(void *ctx, uint32_t thread);
    void (*thread_end)(void *ctx, uint32_t thread);
    void *ctx;
};

struct nj_thread_pool;

/* NULL, and in `why` the reason, as a sentence: no memory, no thread, more reserved than there can
 * be. `why` may be NULL. */
struct nj_thread_pool *nj_thread_pool_start(const struct nj_thread_pool_config *config, char *why,
                                            size_t n_why);
/* Refuse new tasks, and reject those in the queue. Once. */
void nj_thread_pool_begin_stop(struct nj_thread_pool *p);
/* After nj_thread_pool_begin_stop(), and not by a task. Waits until a thread has ended, at most
 * `wait_ns`, or shorter. Returns how many have not; when none is left, all of them are gone. */
uint32_t nj_thread_pool_await(struct nj_thread_pool *p, nj_ns wait_ns);
/* Both, until all threads have ended. */
void nj_thread_pool_stop(struct nj_thread_pool *p);
/* When the last thread has ended. Also of NULL. */
void nj_thread_pool_free(struct nj_thread_pool *p);

struct nj_executor *nj_thread_pool_executor(struct nj_thread_pool *p);

/* `who` keeps n threads busy for long, each in a task of its own. False, and in `why` a sentence,
 * if none would be left for the queue. */
bool nj_thread_pool_lease(struct nj_thread_pool *p, const char *who, uint32_t n, char *why,
                          size_t n_why);
void nj_thread_pool_unlease(struct nj_thread_pool *p, uint32_t n);

struct nj_thread_pool_counts {
    uint32_t n_threads;  /* there are */
    uint32_t n_idle;     /* of them, wait for the queue */
    uint32_t n_reserved; /* of them, wait on a seat */
    uint32_t n_wanted;   /* shall be reserved, too */
    uint32_t n_utilised; /* of them, run a task */
    uint32_t n_leased;   /* seats, and what nj_thread_pool_lease() took */
    uint32_t n_queued;   /* tasks */
};
struct nj_thread_pool_counts nj_thread_pool_count(struct nj_thread_pool *p);

#endif
