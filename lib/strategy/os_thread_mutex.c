/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel threads and mutexes of pthreads(7), behind functions that the explorer of the tests
 * replaces.
 */
#include "strategy/os_thread_mutex.h"

void nj__lock_init(struct nj__lock *l)
{
    pthread_mutex_init(&l->os, NULL);
}

void nj__lock_fini(struct nj__lock *l)
{
    pthread_mutex_destroy(&l->os);
}

void nj__lock_take(struct nj__lock *l)
{
    pthread_mutex_lock(&l->os);
}

bool nj__lock_try(struct nj__lock *l)
{
    return pthread_mutex_trylock(&l->os) == 0;
}

void nj__lock_release(struct nj__lock *l)
{
    pthread_mutex_unlock(&l->os);
}

bool nj__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    return pthread_create(thread, NULL, fn, arg) == 0;
}

void nj__thread_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}
