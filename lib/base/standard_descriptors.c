/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/standard_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int nj_standard_descriptors_open(void)
{
    int closed = 0;

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int got = open("/dev/null", O_RDWR); /* the lowest number that is free: this one */
        if (got < 0)
            return -1;
        if (got != fd) { /* another thread was faster */
            close(got);
            continue;
        }
        closed |= 1 << fd;
    }
    return closed;
}
