/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that has the system put pages under memory for pieces a little before it is used. Else
 * the reader would do that, which reads for all shards: in its first read into each block the
 * kernel looks for memory and clears it.
 */
#ifndef NJ_STORE_ARENA_POPULATE_H
#define NJ_STORE_ARENA_POPULATE_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "store/chunk_cache.h"

struct nj__pages {
    struct nj__chunks *chunks;
    pthread_t thread;
    bool is_up;
    sem_t asked;
    _Atomic bool is_asked, is_stopping;
    _Atomic bool is_over; /* the system cannot (Linux before 5.14), or has no memory for it */
};

/* Also of zeroes. Returns 0, or a negative errno. `affinity`: NULL, where its creator may run. */
int nj__pages_start(struct nj__pages *p, struct nj__chunks *c, const cpu_set_t *affinity);
/* Of what was started or not. */
void nj__pages_stop(struct nj__pages *p);
/* Blocks were taken: see to others, if few are left. One thread; it does not wait. */
void nj__pages_ask(struct nj__pages *p);

#endif
