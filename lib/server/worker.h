/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one OS thread that does for the shards what may block in the kernel.
 *
 * Each shard has a pair of single-producer single-consumer rings with the worker: jobs in, jobs
 * out. The worker sleeps when there is nothing to do; a submit wakes it. It knows nothing of what a
 * job does: that is `run`.
 */
#ifndef NJ_SERVER_WORKER_H
#define NJ_SERVER_WORKER_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/file_port.h"

struct nj_worker_config {
    uint32_t n_shards;
    uint32_t jobs_max;         /* of one shard, from submit to poll; beyond: submit refuses */
    const cpu_set_t *affinity; /* where the thread may run; NULL: where its creator may */
    bool eal;                  /* EAL is up: register the thread with it */
    uint32_t tidy_ms;          /* longest sleep without tidy(); 0: as long as it takes */

    /* All on the worker's thread. tidy (may be NULL) runs after each batch and before a sleep. */
    void (*run)(void *ctx, struct nj_file_job *job);
    void (*tidy)(void *ctx);
    void *ctx;
};

struct nj_worker;

/* Start the thread. Returns 0, or a negative errno. */
int nj_worker_start(const struct nj_worker_config *config, struct nj_worker **out);

/* What shard `shard` gives to its site. Used by one lcore only; after nj_worker_stop() any one
 * thread may still poll. */
struct nj_file_port nj_worker_port(struct nj_worker *w, uint32_t shard);

/* Run every job that was submitted, then end the thread and wait for it. No submit may run at the
 * same time; later ones are refused. What was completed can still be polled. */
void nj_worker_stop(struct nj_worker *w);

/* After nj_worker_stop(), when every job was polled. */
void nj_worker_free(struct nj_worker *w);

#endif
