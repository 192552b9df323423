/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that populates free blocks of the chunk arena (madvise(2), MADV_POPULATE_WRITE) before
 * they are used. Without it the first read into each block would take page faults on the reader
 * thread, which serves all shards.
 */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "store/chunk_cache.h"

struct nj__populator {
    struct nj__chunks *chunks;
    pthread_t thread;
    bool is_up;
    sem_t wakeup;
    _Atomic bool is_wake_pending, is_stopping;
    _Atomic bool has_failed; /* populating failed: no memory, or Linux before 5.14 */
};

/* Start the thread. `affinity` NULL: the creator's affinity. Returns 0 or a negative errno. */
int nj__populator_start(struct nj__populator *p, struct nj__chunks *c, const cpu_set_t *affinity);
/* Stop and join the thread. Does nothing if `p` is zeroed or the start failed. */
void nj__populator_stop(struct nj__populator *p);
/* Wake the thread if few populated blocks are left. Called by the reader thread; never blocks. */
void nj__populator_wake(struct nj__populator *p);
