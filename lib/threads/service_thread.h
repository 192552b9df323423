/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one OS thread that does jobs for the shards, one after the other. The access log has
 * one; what may get stuck goes to the pool (workers.h).
 *
 * Each shard has a pair of single-producer single-consumer rings with the worker: jobs in, jobs
 * out. The worker sleeps when there is nothing to do; a flush after a submit wakes it. It knows
 * nothing of what a job is: that is `run`'s.
 */
#ifndef NJ_THREADS_SERVICE_THREAD_H
#define NJ_THREADS_SERVICE_THREAD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct nj_worker_config {
    const char *name; /* of the thread, at most 15 bytes */
    uint32_t n_shards;
    uint32_t jobs_max;         /* of one shard, from submit to poll; beyond: submit refuses */
    const cpu_set_t *affinity; /* where the thread may run; NULL: where its creator may */
    bool eal;                  /* EAL is up: register the thread with it */
    uint32_t tidy_ms;          /* longest sleep without tidy(); 0: as long as it takes */

    /* All on the worker's thread; tidy (may be NULL) runs after each batch and before a sleep. */
    void (*run)(void *ctx, void *job);
    void (*tidy)(void *ctx);
    void *ctx;
};

struct nj_worker;

/* Start the thread. Returns 0, or a negative errno. */
int nj_worker_start(const struct nj_worker_config *config, struct nj_worker **out);

/*
 * A shard's end of its rings. Used by one lcore only; after nj_worker_join() any one thread may
 * still poll.
 */
struct nj_worker_port;
struct nj_worker_port *nj_worker_port(struct nj_worker *w, uint32_t shard);
/* False: jobs_max are out already, or the worker was stopped. */
bool nj_worker_submit(struct nj_worker_port *p, void *job);
/* Wake the worker if it sleeps and was given something since the last flush. */
void nj_worker_flush(struct nj_worker_port *p);
uint32_t nj_worker_poll(struct nj_worker_port *p, void **jobs, uint32_t n);
/* Submitted and not polled. */
uint32_t nj_worker_n_out(const struct nj_worker_port *p);

/* Run every job that was submitted, then end the thread. No submit may run at the same time; later
 * ones are refused. What was completed can still be polled. nj_worker_join() waits for the end, at
 * most `wait_ms`; false when `run` has not returned by then. */
void nj_worker_begin_stop(struct nj_worker *w);
bool nj_worker_join(struct nj_worker *w, uint32_t wait_ms);

/* After nj_worker_join(), when every job was polled. */
void nj_worker_free(struct nj_worker *w);

#endif
