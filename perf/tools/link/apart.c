/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-apart: the time of a cache line from one CPU to another and back.
 *
 * Prints the median of the round trips, in nanoseconds. CPUs that share a cache need about 60,
 * others several hundred. In a virtual machine this may change within a minute, because the host
 * moves the virtual CPUs.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cpu.h"

#define FIFO_PRIORITY 50
#define ROUNDS        50u /* measurements */
#define TRIPS         20u /* round trips per measurement */
#define WARM_ROUNDS   10u
#define LINE          64

static _Alignas(2 * LINE) _Atomic uint64_t line; /* odd: answer() writes next */
static _Alignas(2 * LINE) _Atomic int ready;

/* Real-time priority over other threads on this CPU. Returns 0 or an error number. */
static int set_priority(void)
{
    const struct sched_param p = {.sched_priority = FIFO_PRIORITY};
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
}

static void *answer(void *arg)
{
    uint64_t end = 2 * (uint64_t)TRIPS * (ROUNDS + WARM_ROUNDS);
    int error = cpu_take(*(const int *)arg);

    if (!error)
        error = set_priority();
    atomic_store(&ready, error ? -error : 1);
    for (uint64_t seen = 0; !error && seen < end;) {
        seen = atomic_load_explicit(&line, memory_order_acquire);
        if (seen % 2)
            atomic_store_explicit(&line, ++seen, memory_order_release);
    }
    return NULL;
}

static double round_trip(void)
{
    uint64_t from = cpu_ns();

    for (unsigned i = 0; i < TRIPS; i++) {
        uint64_t next = atomic_load_explicit(&line, memory_order_relaxed) + 1;
        atomic_store_explicit(&line, next, memory_order_release);
        while (atomic_load_explicit(&line, memory_order_acquire) == next)
            ;
    }
    return (double)(cpu_ns() - from) / TRIPS;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int fail(const char *what, int error)
{
    fprintf(stderr, "nj-apart: %s: %s\n", what, strerror(error));
    return 1;
}

int main(int argc, char **argv)
{
    double ns[ROUNDS];
    int cpu[2], error;
    pthread_t other;

    if (argc != 3 || !cpu_pair(argv + 1, cpu)) {
        fprintf(stderr, "usage: nj-apart CPU CPU, two different numbers\n");
        return 2;
    }
    if ((error = cpu_take(cpu[0])))
        return fail(argv[1], error);
    if ((error = pthread_create(&other, NULL, answer, &cpu[1])))
        return fail("cannot start a thread", error);
    while (!atomic_load(&ready))
        sched_yield();
    if (atomic_load(&ready) < 0)
        return fail(argv[2], -atomic_load(&ready));
    if ((error = set_priority()))
        return fail("SCHED_FIFO", error);
    for (unsigned i = 0; i < WARM_ROUNDS; i++)
        round_trip();
    for (unsigned i = 0; i < ROUNDS; i++)
        ns[i] = round_trip();
    pthread_join(other, NULL);
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    printf("%.0f\n", ns[ROUNDS / 2]);
    return 0;
}
