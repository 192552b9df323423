/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom the text about a file that cannot be opened names as the cause. */
#include "base/open_error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/landlock_enter.h"
#include "support/scratch.h"

static char path[64];

static void setup(void)
{
    scratch_make();
    snprintf(path, sizeof path, "%s/file", scratch);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
}

TestSuite(base_open_error, .init = setup, .fini = scratch_remove);

static void expect(const char *text, const char *part)
{
    cr_expect(strstr(text, part), "%s", text);
}

Test(base_open_error, another_error)
{
    expect(nj_open_error(path, ENOENT), "No such file or directory");
}

/* --check, a first start, and a program that keeps its privileges. */
Test(base_open_error, a_module_that_is_not_landlock)
{
    const char *text = nj_open_error(path, EACCES);

    expect(text, "though its mode permits it: a security module refuses it");
    cr_expect_null(strstr(text, "Landlock"), "%s", text);
}

Test(base_open_error, landlock)
{
    if (!landlock_enter(scratch))
        cr_skip("no Landlock");
    expect(nj_open_error(path, EACCES), "can be opened only after a restart (Landlock)");
    expect(nj_open_error_to_write(path, EACCES), "can be opened only after a restart (Landlock)");
    unlink(path);
    expect(nj_open_error_to_write(path, EACCES), "can be opened only after a restart (Landlock)");
}

Test(base_open_error, the_mode)
{
    if (geteuid() != 0)
        cr_skip("only root can become another user");
    cr_assert_eq(seteuid(65534), 0);
    expect(nj_open_error(path, EACCES), "it must be readable by the server's user");
    expect(nj_open_error_to_write(path, EACCES), "the server's user must be able to write it");
    expect(nj_open_error_to_write("/new", EACCES), "the server's user must be able to write it");
}
