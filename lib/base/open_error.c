/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells a refusal by a file's mode from one by Landlock (landlock(7)). */
#include "base/open_error.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The server has no rule for "/" itself (privilege/landlock_folders.c), which anybody may read. */
static bool is_in_landlock(void)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = errno;

    if (fd >= 0)
        close(fd);
    return fd < 0 && error == EACCES && faccessat(AT_FDCWD, "/", R_OK, AT_EACCESS) == 0;
}

static const char *refused_by_module(void)
{
    return is_in_landlock()
               ? "Permission denied, though its mode permits it: outside of the folders that the "
                 "configuration named at the start, a file can be opened only after a restart "
                 "(Landlock)"
               : "Permission denied, though its mode permits it: a security module refuses it, as "
                 "AppArmor and SELinux do";
}

const char *nj_open_error(const char *path, int error)
{
    if (error != EACCES)
        return strerror(error);
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
        return "Permission denied: it must be readable by the server's user";
    return refused_by_module();
}

/* By the modes of the file, or of its folder if there is no file. */
static bool may_write(const char *path)
{
    char copy[PATH_MAX];

    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
        return true;
    if (errno != ENOENT)
        return false;
    snprintf(copy, sizeof copy, "%s", path);
    return faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) == 0;
}

const char *nj_open_error_to_write(const char *path, int error)
{
    if (error != EACCES)
        return strerror(error);
    if (!may_write(path))
        return "Permission denied: the server's user must be able to write it, and to make it in "
               "its folder";
    return refused_by_module();
}
