/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder in /tmp for one test. With scratch_remove() as the .fini of its suite it is removed,
 * also when an assertion fails: each test is a process of its own. */
#pragma once

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[32]; /* its name; empty while there is none */

static inline void scratch_make(void)
{
    cr_assert_eq(scratch[0], '\0', "one at a time");
    snprintf(scratch, sizeof scratch, "/tmp/nj-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
                                     struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void scratch_remove(void)
{
    if (geteuid() != getuid()) /* a test that acts as another user failed before its end */
        cr_assert_eq(seteuid(getuid()), 0);
    if (scratch[0])
        nftw(scratch, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    scratch[0] = '\0';
}
