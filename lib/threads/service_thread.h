/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service thread: one OS thread that runs jobs of all shards, one after the other. The access log
 * uses one. Jobs that may block for long belong to the worker pool (worker_pool.h).
 *
 * Each shard has two single-producer single-consumer rings with the thread: submitted jobs and
 * completed jobs. The thread sleeps when all rings are empty; a flush after a submit wakes it. A
 * job is an opaque pointer for `run`; it belongs to the thread from submit to poll.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct nj_service_config {
    const char *name; /* of the thread; at most 15 bytes are used */
    uint32_t n_shards;
    uint32_t jobs_max;         /* of one shard between submit and poll; more are refused */
    const cpu_set_t *affinity; /* CPUs of the thread; NULL: those of its creator */
    bool eal;                  /* register the thread with the EAL, which must be initialised */
    uint32_t tidy_ms;          /* longest sleep without tidy(); 0: unlimited */

    /* Called on the service thread. tidy() (may be NULL) runs after each batch and before a sleep.
     */
    void (*run)(void *ctx, void *job);
    void (*tidy)(void *ctx);
    void (*end)(void *ctx); /* the last call on the thread; may be NULL */
    void *ctx;
};

struct nj_service_thread;

/* Start the thread. Returns 0, or a negative errno. */
int nj_service_start(const struct nj_service_config *config, struct nj_service_thread **out);

/*
 * A shard's end of its rings. Used by one lcore only; after nj_service_join() any one thread may
 * still poll.
 */
struct nj_service_rings;
struct nj_service_rings *nj_service_shard_rings(struct nj_service_thread *w, uint32_t shard);
/* False: jobs_max jobs are not polled yet, or the worker was stopped. */
bool nj_service_submit(struct nj_service_rings *p, void *job);
/* Wakes the worker if jobs were submitted since the last flush and it sleeps. */
void nj_service_wake_if_submitted(struct nj_service_rings *p);
/* Takes up to `n` completed jobs and returns their number. */
uint32_t nj_service_poll(struct nj_service_rings *p, void **jobs, uint32_t n);
/* The number of jobs submitted and not polled. */
uint32_t nj_service_n_out(const struct nj_service_rings *p);

/* nj_service_begin_stop() lets the thread run all submitted jobs and then end. No submit may run
 * concurrently; later ones are refused. Completed jobs can still be polled. nj_service_join() waits
 * at most `wait_ms` for the end; false: `run` has not returned yet. */
void nj_service_begin_stop(struct nj_service_thread *w);
bool nj_service_join(struct nj_service_thread *w, uint32_t wait_ms);

/* After nj_service_join(), when every job was polled. */
void nj_service_free(struct nj_service_thread *w);
