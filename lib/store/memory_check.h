/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether the machine has enough memory for the file cache. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In bytes, without hugepages; UINT64_MAX: not known. */
struct nj_memory_info {
    uint64_t all, available;
    uint64_t group_max; /* memory limit of the process's control group (cgroup v2, memory.max) */
};

/* `root` is the prefix of /proc and /sys: "", or a folder in tests. */
struct nj_memory_info nj_memory_info_read(const char *root);

/* Write a warning for the operator into `out` if `cache_bytes` exceeds the available memory, else
 * "". `is_huge`: chunks lie in hugepages. Pure. */
void nj_memory_check_warn_cache(const struct nj_memory_info *m, uint64_t cache_bytes, bool is_huge,
                                char *out, size_t n_out);
