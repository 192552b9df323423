/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits the process's descriptors (RLIMIT_NOFILE, getrlimit(2)) between large files and all other
 * uses. The limit is read on each call, since it may change. */
#include "store/fd_budget.h"

#include <sys/resource.h>

#include "store/file_root.h"

/* Descriptors that large files leave: for lookups of other files (a walk over links holds up to
 * NJ__ROOT_DEPTH_MAX folders), lists of folders, the policy, the log and telemetry. */
#define RESERVED_FDS            96u
/* For each further thread, which may block while it holds descriptors: a file, a folder, an entry
 * of the folder, and a duplicate. A walk over links adds its own. */
#define RESERVED_FDS_PER_THREAD 4u

uint32_t nj__fds_reserved(const struct nj_file_store_options *o)
{
    uint32_t n_walk = o->symlinks == NJ_SYMLINKS_OWNER ? NJ__ROOT_DEPTH_MAX : 0;
    uint32_t n_further = o->n_threads > 1 ? o->n_threads - 1 : 0;

    return RESERVED_FDS + n_further * (RESERVED_FDS_PER_THREAD + n_walk);
}

/* The descriptor number below which large files may have descriptors. */
static rlim_t n_for_files(uint32_t n_reserved)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return UINT32_MAX;
    return limit.rlim_cur - (limit.rlim_cur / 4 < n_reserved ? limit.rlim_cur / 4 : n_reserved);
}

/* open(2) returns the lowest free descriptor, so its number tells how many are in use. */
bool nj__fds_is_reserved(int fd, uint32_t n_reserved)
{
    return (rlim_t)fd >= n_for_files(n_reserved);
}

uint32_t nj__fds_cached_max(uint32_t n_reserved)
{
    rlim_t n = n_for_files(n_reserved);
    rlim_t kept = n - n / NJ__FDS_UNCACHED_DIV;

    return kept < UINT32_MAX ? (uint32_t)kept : UINT32_MAX;
}
