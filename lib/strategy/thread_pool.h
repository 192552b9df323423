/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread pool: a queue, n_min to n_max threads, and reserved threads for try_execute(). It is the
 * executor of strategies (strategy/thread_strategy.h). Any thread may call it, unless stated
 * otherwise.
 *
 * Not all threads can be reserved: at least one stays available for the queue.
 */
#pragma once

#include "strategy/thread_strategy.h"

#define NJ_THREADS_MAX 1024u

struct nj_thread_pool_config {
    uint32_t n_min, n_max; /* threads; n_min are created at the start and stay */
    int n_reserved;        /* seats; -1: n_max / 2, at most NJ_RESERVED_MAX */
    nj_ns idle_ns;         /* threads above n_min end after this time without work */
    /* Called on each thread with its number below n_max, before its first task and after its last.
     * thread_end() must not call the pool, which may be joining the thread. Either may be NULL. */
    void (*thread_begin)(void *ctx, uint32_t thread);
    void (*thread_end)(void *ctx, uint32_t thread);
    void *ctx;
};

struct nj_thread_pool;

/* NULL with the reason in `why` (may be NULL): no memory, no thread, or too many reserved threads.
 */
struct nj_thread_pool *nj_thread_pool_start(const struct nj_thread_pool_config *config, char *why,
                                            size_t n_why);
/* Refuses new tasks and rejects queued ones. Once. */
void nj_thread_pool_begin_stop(struct nj_thread_pool *p);
/* Waits until a thread has ended, at most `wait_ns`; may return early. Returns the number of
 * threads left; 0: all are joined. After nj_thread_pool_begin_stop(), not from a task, one thread.
 */
uint32_t nj_thread_pool_timed_join(struct nj_thread_pool *p, nj_ns wait_ns);
/* Stops the pool and waits until all threads have ended. */
void nj_thread_pool_stop(struct nj_thread_pool *p);
/* After all threads have ended. `p` may be NULL. */
void nj_thread_pool_free(struct nj_thread_pool *p);

struct nj_executor *nj_thread_pool_executor(struct nj_thread_pool *p);

struct nj_thread_pool_counts {
    uint32_t n_threads;  /* all threads */
    uint32_t n_reserved; /* threads that wait on a seat */
    uint32_t n_wanted;   /* reserved threads that are still wanted */
    uint32_t n_utilised; /* threads that run a task */
    uint32_t n_queued;   /* tasks in the queue */
};
struct nj_thread_pool_counts nj_thread_pool_get_counts(struct nj_thread_pool *p);
