/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads and locks of the kernel, as thread_pool.c uses them. The explorer of the tests supplies
 * its own, and so it can run a pool in every order. */
#ifndef NJ_SCHED_OS_THREAD_H
#define NJ_SCHED_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct nj__lock {
    pthread_mutex_t os;
};

void nj__lock_init(struct nj__lock *l);
void nj__lock_fini(struct nj__lock *l);
void nj__lock_take(struct nj__lock *l);
/* Never waits. False: another thread has it. */
bool nj__lock_try(struct nj__lock *l);
void nj__lock_release(struct nj__lock *l);

/* False: the system has no thread for us. */
bool nj__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);
/* Waits until `fn` has returned. */
void nj__thread_join(pthread_t thread);

#endif
