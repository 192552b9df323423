/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells a refusal by a file's mode from one by Landlock (landlock(7)). */
#include "base/open_error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *nj_open_error(const char *path, int error)
{
    if (error != EACCES)
        return strerror(error);
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
        return "Permission denied: it must be readable by the server's user";
    return "Permission denied, though its mode permits it: outside of the folders that the "
           "configuration named at the start, a file can be opened only after a restart (Landlock)";
}
