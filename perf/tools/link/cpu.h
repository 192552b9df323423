/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs and clock of nj-apart and nj-stalls. */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* Parses the numbers of two CPUs. False: invalid, or the same CPU twice. */
static inline bool cpu_pair(char *const text[2], int cpu[2])
{
    for (int i = 0; i < 2; i++) {
        char *end;
        long n = strtol(text[i], &end, 10);
        if (end == text[i] || *end || n < 0 || n >= CPU_SETSIZE)
            return false;
        cpu[i] = (int)n;
    }
    return cpu[0] != cpu[1];
}

/* Pins this thread to `cpu`. Returns 0 or an error number. */
static inline int cpu_take(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static inline uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
