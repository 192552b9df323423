/* SPDX-License-Identifier: BSD-3-Clause */
/* Start a thread with a CPU affinity. */
#pragma once

#include <pthread.h>
#include <sched.h>

/* If `cpus` is NULL, the thread inherits the affinity of the caller. Returns 0 or an errno. */
static inline int nj_thread_start(pthread_t *thread, const cpu_set_t *cpus, void *(*fn)(void *arg),
                                  void *arg)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);

    if (rc != 0)
        return rc;
    if (cpus)
        rc = pthread_attr_setaffinity_np(&attr, sizeof *cpus, cpus);
    if (rc == 0)
        rc = pthread_create(thread, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return rc;
}
