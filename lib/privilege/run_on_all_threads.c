/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends a signal to each thread of /proc/self/task, which runs the function in the handler. glibc
 * does the same for setuid(2), but offers it to nobody else (nptl(7)). */
#include "privilege/run_on_all_threads.h"

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/set_error.h"

#define THREADS_MAX      2048u /* lcores, workers and threads of the EAL are fewer */
#define ANSWER_TIMEOUT_S 5
#define CHECK_NS         10000000l /* how often it is checked whether the thread has ended */

static struct {
    int (*fn)(void *ctx);
    void *ctx;
    _Atomic pid_t target; /* the thread that is to run `fn` now; 0: none */
    _Atomic int result;
    sem_t answered;
} call;

static void on_signal(int number)
{
    int saved_errno = errno;
    pid_t me = gettid();

    (void)number;
    /* Not twice, and not after the caller has given up. */
    if (atomic_compare_exchange_strong(&call.target, &me, 0)) {
        atomic_store(&call.result, call.fn(call.ctx));
        sem_post(&call.answered);
    }
    errno = saved_errno;
}

/* Drivers (net_tap) use the lowest real-time signals. */
static int find_unused_signal(void)
{
    struct sigaction now;

    for (int number = SIGRTMAX; number >= SIGRTMIN; number--)
        if (sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            return number;
    return -1;
}

static bool has_ended(pid_t thread)
{
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A thread at its end has all signals blocked (glibc), and gives no answer: false, as after
 * ANSWER_TIMEOUT_S. */
static bool wait_for_answer(pid_t thread)
{
    struct timespec check_at, until;

    clock_gettime(CLOCK_MONOTONIC, &check_at);
    until = check_at;
    until.tv_sec += ANSWER_TIMEOUT_S;
    while (sem_clockwait(&call.answered, CLOCK_MONOTONIC, &check_at) != 0) {
        if (errno == EINTR)
            continue;
        if (has_ended(thread) || is_later(&check_at, &until))
            return false;
        check_at.tv_nsec += CHECK_NS;
        if (check_at.tv_nsec >= 1000000000l)
            check_at.tv_sec++, check_at.tv_nsec -= 1000000000l;
    }
    return true;
}

static int run_on(pid_t thread, int number, char *why, size_t why_bytes)
{
    pid_t expected = thread;

    atomic_store(&call.target, thread);
    if (syscall(SYS_tgkill, getpid(), thread, number) != 0) {
        atomic_store(&call.target, 0);
        if (errno == ESRCH)
            return 0; /* it has ended */
        return nj_set_error(why, why_bytes, "thread %d: tgkill: %s", (int)thread, strerror(errno));
    }
    if (!wait_for_answer(thread)) {
        if (atomic_compare_exchange_strong(&call.target, &expected, 0))
            return has_ended(thread) ? 0
                                     : nj_set_error(why, why_bytes, "thread %d blocks signal %d",
                                                    (int)thread, number);
        while (sem_wait(&call.answered) != 0) {
        } /* it runs the function at this moment */
    }
    int err = atomic_load(&call.result);
    return err == 0 ? 0 : nj_set_error(why, why_bytes, "thread %d: %s", (int)thread, strerror(err));
}

struct threads {
    uint32_t n;
    pid_t id[THREADS_MAX];
};

static bool has_thread(const struct threads *t, pid_t id)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->id[i] == id)
            return true;
    return false;
}

/* Lists all threads once, and runs the function on those that are not in `done`. Returns how many
 * these were, or -1. */
static int run_on_new(struct threads *done, int number, char *why, size_t why_bytes)
{
    DIR *tasks = opendir("/proc/self/task");
    int n_new = 0;

    if (!tasks)
        return nj_set_error(why, why_bytes, "/proc/self/task: %s", strerror(errno));
    for (const struct dirent *e; n_new >= 0 && (e = readdir(tasks));) {
        pid_t id = (pid_t)atoi(e->d_name);
        if (id == 0 || id == gettid() || has_thread(done, id))
            continue;
        if (done->n == THREADS_MAX)
            n_new = nj_set_error(why, why_bytes, "more than %u threads", THREADS_MAX);
        else if (run_on(id, number, why, why_bytes) != 0)
            n_new = -1;
        else
            done->id[done->n++] = id, n_new++;
    }
    closedir(tasks);
    return n_new;
}

int nj_run_on_all_threads(int (*fn)(void *ctx), void *ctx, char *why, size_t why_bytes)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigaction before;
    int number = find_unused_signal(), n_new;
    struct threads *done = calloc(1, sizeof *done);

    if (number < 0 || !done) {
        free(done);
        return nj_set_error(why, why_bytes,
                            number < 0 ? "all real-time signals are in use" : "out of memory");
    }
    call.fn = fn;
    call.ctx = ctx;
    sem_init(&call.answered, 0, 0);
    sigaction(number, &act, &before);
    do
        n_new = run_on_new(done, number, why, why_bytes);
    while (n_new > 0);
    signal(number, SIG_IGN); /* discards what is pending at a thread that did not answer */
    sigaction(number, &before, NULL);
    free(done);
    if (n_new < 0)
        return -1;
    int err = fn(ctx);
    return err == 0 ? 0 : nj_set_error(why, why_bytes, "%s", strerror(err));
}
