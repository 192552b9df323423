/* SPDX-License-Identifier: BSD-3-Clause */
/* A function runs once on each thread: threads that sleep and that poll. Its
 * error, and a thread that does not answer, are errors. Criterion has a thread that
 * blocks all signals, so each test forks: the child has one thread. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privilege/run_on_all_threads.h"

#define THREADS 8

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, why);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static char why[128];
static atomic_bool stops;
static sem_t never;
static _Atomic uint32_t n_run[THREADS + 2]; /* by number of the thread; [0]: the caller */
static _Thread_local uint32_t number;

static void *poll_or_sleep(void *arg)
{
    number = (uint32_t)(uintptr_t)arg;
    while (!atomic_load(&stops))
        if (number % 2)
            (void)sem_wait(&never); /* SA_RESTART: it goes on */
    return NULL;
}

static void start(pthread_t *thread, uint32_t n)
{
    MUST(pthread_create(thread, NULL, poll_or_sleep, (void *)(uintptr_t)n) == 0);
}

static void in_child(void (*test)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        sem_init(&never, 0, 0);
        test();
        exit(0);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

static int count(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&n_run[number], 1);
    return 0;
}

static void each_once(void)
{
    pthread_t threads[THREADS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < THREADS; i++)
        start(&threads[i], i + 1);
    MUST(nj_run_on_all_threads(count, NULL, why, sizeof why) == 0);
    for (uint32_t i = 0; i < THREADS + 1; i++)
        n += atomic_load(&n_run[i]);
    MUST(n == THREADS + 1); /* a thread that had no number yet counts as 0 */
    MUST(atomic_load(&n_run[0]) >= 1);
}

Test(run_on_all_threads, each_once)
{
    in_child(each_once);
}

static int fail_on_others(void *ctx)
{
    return pthread_equal(pthread_self(), *(pthread_t *)ctx) ? 0 : EXDEV;
}

static void an_error_of_one(void)
{
    pthread_t thread, me = pthread_self();

    start(&thread, 2);
    MUST(nj_run_on_all_threads(fail_on_others, &me, why, sizeof why) == -1);
    MUST(strstr(why, strerror(EXDEV)));
}

Test(run_on_all_threads, an_error_of_one)
{
    in_child(an_error_of_one);
}

/* A thread at its end: glibc has blocked all signals. */
static void *end_when_signalled(void *unused)
{
    sigset_t all;
    int got;

    sigfillset(&all);
    sigwait(&all, &got);
    return unused;
}

static void a_thread_that_ends(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    MUST(pthread_create(&thread, NULL, end_when_signalled, NULL) == 0);
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    MUST(nj_run_on_all_threads(count, NULL, why, sizeof why) == 0);
}

Test(run_on_all_threads, a_thread_that_ends)
{
    in_child(a_thread_that_ends);
}

static void a_thread_that_blocks_the_signal(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    start(&thread, 2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    MUST(nj_run_on_all_threads(count, NULL, why, sizeof why) == -1);
    MUST(strstr(why, "blocks signal"));
    MUST(atomic_load(&n_run[2]) == 0);
}

Test(run_on_all_threads, a_thread_that_blocks_the_signal)
{
    in_child(a_thread_that_blocks_the_signal);
}
