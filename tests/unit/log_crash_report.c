/* SPDX-License-Identifier: BSD-3-Clause */
/* A crash ends the process, also when its report cannot be written. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/crash_report.h"

static void *crash(void *arg)
{
    (void)arg;
    abort();
}

/* The stderr has no reader, and the threads block signals, as those of a server do. */
static void crash_with_a_full_stderr(const int pipe_of[2])
{
    char some[4096];
    pthread_t other;
    sigset_t all;

    memset(some, '.', sizeof some);
    fcntl(pipe_of[1], F_SETFL, O_NONBLOCK);
    while (write(pipe_of[1], some, sizeof some) > 0)
        ;
    fcntl(pipe_of[1], F_SETFL, 0);
    dup2(pipe_of[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL); /* Criterion has a handler */
    nj_crash_report_install(NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (pthread_create(&other, NULL, crash, NULL) == 0)
        crash(NULL);
}

Test(log_crash_report, a_report_that_nobody_reads, .timeout = 4 * NJ_CRASH_REPORT_S)
{
    int pipe_of[2], status = 0;

    cr_assert_eq(pipe(pipe_of), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* when this test fails, and is ended */
        crash_with_a_full_stderr(pipe_of);
        _exit(0);
    }
    cr_assert_gt(pid, 0);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%d", status);
}
