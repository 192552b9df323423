/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure of an assertion: print it and abort. Contract: assert.h. */
#include "base/assert.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES 512u /* less than PIPE_BUF: a pipe that poll() reports takes them at once */
#define WAIT_MS    2000 /* for the reader of standard error; without one the line is lost */

void nj__assert_failed(const char *what, const char *file, int line)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    char text[LINE_BYTES];
    int n =
        snprintf(text, sizeof text - 1, "nightjar: %s:%d: assertion failed: %s", file, line, what);
    size_t at = n < 0 ? 0 : (size_t)n < sizeof text - 1 ? (size_t)n : sizeof text - 2;

    text[at++] = '\n';
    if (poll(&p, 1, WAIT_MS) > 0)
        (void)!write(STDERR_FILENO, text, at);
    abort();
}
