/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors 0 to 2 that are closed become /dev/null; others stay as they are. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/standard_descriptors.h"

static bool is_null(int fd)
{
    struct stat st, null;

    return fstat(fd, &st) == 0 && stat("/dev/null", &null) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == null.st_rdev;
}

Test(base_standard_descriptors, each_set_of_closed_ones)
{
    int file = fcntl(fileno(tmpfile()), F_DUPFD_CLOEXEC, 10), saved[3], closed[8], became_null[8];

    for (int fd = 0; fd < 3; fd++)
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    for (int mask = 0; mask < 8; mask++) {
        for (int fd = 0; fd < 3; fd++) {
            dup2(file, fd);
            if (mask & 1 << fd)
                close(fd);
        }
        closed[mask] = nj_standard_descriptors_open();
        became_null[mask] = is_null(0) | is_null(1) << 1 | is_null(2) << 2;
    }
    for (int fd = 0; fd < 3; fd++)
        dup2(saved[fd], fd);
    for (int mask = 0; mask < 8; mask++) {
        cr_expect_eq(closed[mask], mask);
        cr_expect_eq(became_null[mask], mask);
    }
}
