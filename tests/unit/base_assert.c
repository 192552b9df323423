/* SPDX-License-Identifier: BSD-3-Clause */
/* The message of a failed assertion, and the end of the process. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"

/* A child fails an assertion, with the end of a pipe as standard error. Returns its status. */
static int fail_with(int error_fd)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(error_fd, STDERR_FILENO);
        nj__assert_failed("x > 0", "y.c", 7);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

Test(base_assert, message)
{
    static const char expected[] = "nightjar: y.c:7: assertion failed: x > 0\n";
    char text[256] = "";
    int ends[2];

    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    int status = fail_with(ends[1]);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %d", status);
    cr_expect_eq(read(ends[0], text, sizeof text - 1), (ssize_t)strlen(expected));
    cr_expect_str_eq(text, expected);
}

/* The process ends, though nobody reads the message. */
Test(base_assert, a_pipe_that_nobody_reads, .timeout = 60)
{
    char block[4096] = "";
    int ends[2];

    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    cr_assert_geq(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
    cr_assert_eq(write(ends[1], block, sizeof block), (ssize_t)sizeof block);
    int status = fail_with(ends[1]);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %d", status);
}
