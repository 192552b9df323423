/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the errors of openat2(2) to results of jobs. */
#include "store/open_result.h"

#include <errno.h>

enum nj_file_result nj__open_result_of_errno(int err)
{
    switch (err) {
    case EACCES:
    case EPERM:
        return NJ_FILE_DENIED;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return NJ_FILE_NO_MEMORY;
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:  /* too many links, or a magic one */
    case EXDEV:  /* the name leaves the root */
    case ENXIO:  /* a socket */
    case ENODEV: /* a device without a driver */
    case EINVAL:
        return NJ_FILE_ABSENT;
    case EAGAIN: /* also when folders of its path are renamed again and again */
        return NJ_FILE_LEASED;
    default:
        return NJ_FILE_BROKEN;
    }
}
