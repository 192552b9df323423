/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel threads and mutexes, as thread_pool.c uses them. The explorer of the tests replaces these
 * functions, so that it can run a pool in every interleaving. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct nj__lock {
    pthread_mutex_t os;
};

void nj__lock_init(struct nj__lock *l);
void nj__lock_fini(struct nj__lock *l);
void nj__lock_take(struct nj__lock *l);
/* Never blocks. False: another thread holds the lock. */
bool nj__lock_try(struct nj__lock *l);
void nj__lock_release(struct nj__lock *l);

/* False: the system refused a thread. */
bool nj__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);
/* Waits until `fn` has returned. */
void nj__thread_join(pthread_t thread);
