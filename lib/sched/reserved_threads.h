/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reserved threads: they wait, each on a seat of its own, so that a task can be given to one of
 * them in a bounded number of instructions.
 *
 * Nobody is reserved at first. A try_execute() that finds none writes down that one is wanted, and
 * fails; threads that have nothing to do ask nj_reserved_wants() and offer themselves.
 */
#ifndef NJ_SCHED_RESERVED_THREADS_H
#define NJ_SCHED_RESERVED_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "sched/task.h"

/* Seats: more threads than this do not wait for one process's selectors. */
#define NJ_RESERVED_MAX 256u

struct nj_reserved_config {
    uint32_t capacity; /* reserved and wanted, together at most; 0: no try_execute() succeeds */
    uint32_t n_min;    /* so many stay however long they wait */
    nj_ns idle_ns;     /* the others leave after so long; NJ_NEVER */
    void (*wanted)(void *ctx); /* nj_reserved_wants() has become true; must not block. Or NULL */
    /* Asked by each thread after it has begun to wait and before it sleeps: is it needed elsewhere?
     * Then it leaves. Must not block. Or NULL */
    bool (*is_needed)(void *ctx);
    void *ctx;
};

struct nj_reserved;

/* NULL when memory is refused, or for more than NJ_RESERVED_MAX. */
struct nj_reserved *nj_reserved_new(const struct nj_reserved_config *config);
/* After nj_reserved_stop(), when all threads have come back from nj_reserved_serve(). */
void nj_reserved_free(struct nj_reserved *r);

/* True: a waiting thread has it now, and will start it without waiting for anything else. False:
 * nobody will run it. Never blocks, queues, allocates or yields. Any thread. */
bool nj_reserved_try_execute(struct nj_reserved *r, struct nj_task *task);

bool nj_reserved_wants(const struct nj_reserved *r);
/* Be reserved, if one is wanted: wait, run what comes, wait again; comes back when there are enough
 * others, when idle for too long, when it is needed elsewhere, or when it is stopped. True: because
 * of a nj_reserved_rouse(). */
bool nj_reserved_serve(struct nj_reserved *r);

/* True: one waiting thread was told to come back from nj_reserved_serve(), and will. False: none
 * waits; a thread that begins to wait later asks is_needed() after that. Any thread. */
bool nj_reserved_rouse(struct nj_reserved *r);

/* No further try_execute() succeeds, those who wait leave; what was accepted runs. */
void nj_reserved_stop(struct nj_reserved *r);

/* Threads that are reserved (or just given a task), and those that are wanted. */
void nj_reserved_count(const struct nj_reserved *r, uint32_t *n_reserved, uint32_t *n_wanted);

#endif
