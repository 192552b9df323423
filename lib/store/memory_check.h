/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the machine has the memory that files may take. */
#ifndef NJ_STORE_MEMORY_CHECK_H
#define NJ_STORE_MEMORY_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In bytes, without hugepages; UINT64_MAX: not known. */
struct nj_file_memory {
    uint64_t all, available;
    uint64_t group_max; /* what the process's control group may have (cgroup v2, memory.max) */
};

/* `root`: of the files of the kernel, "" for /proc and /sys. */
struct nj_file_memory nj_file_memory_read(const char *root);

/* A sentence in `out` for who asked for `cache_bytes` where that is more than there is; else "".
 * `is_huge`: pieces lie in hugepages. Pure. */
void nj_file_memory_advice(const struct nj_file_memory *m, uint64_t cache_bytes, bool is_huge,
                           char *out, size_t n_out);

#endif
