/* SPDX-License-Identifier: BSD-3-Clause */
/* Real time: the clock and the threads of the machine (delays.h). */
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "delays.h"
#include "threads/os_clock.h"

int time_run(int (*main)(void))
{
    return main();
}

nj_ns time_now(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

/* Excludes the time of threads that run in between. */
void time_burn(nj_ns ns)
{
    nj_ns end = nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

    while (nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 200; i++)
            __asm__ volatile("" : : : "memory");
}

void time_block(nj_ns ns)
{
    struct timespec ts = {(time_t)(ns / NJ_SEC), (long)(ns % NJ_SEC)};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

void time_step(void)
{
}

nj_ns time_cpu_of_others(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (nj_ns)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NJ_SEC +
           (nj_ns)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NJ_US -
           nj_os_clock_gettime_ns(CLOCK_THREAD_CPUTIME_ID);
}

void time_place(void)
{
    static cpu_set_t others;
    static int first = -1;
    cpu_set_t all, one;

    if (first < 0) {
        sched_getaffinity(0, sizeof all, &all);
        for (first = 0; !CPU_ISSET(first, &all); first++)
            ;
        others = all;
        if (CPU_COUNT(&all) > 1)
            CPU_CLR(first, &others);
        sched_setaffinity(0, sizeof others, &others);
        return;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
}
