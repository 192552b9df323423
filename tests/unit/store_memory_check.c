/* SPDX-License-Identifier: BSD-3-Clause */
/* A cache that is larger than the available memory. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/memory_check.h"
#include "support/scratch.h"

#define GIB ((uint64_t)1024 * 1024 * 1024)

TestSuite(store_memory_check, .init = scratch_make, .fini = scratch_remove);

static void put(const char *name, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", scratch, name);
    for (char *p = path + strlen(scratch) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(path, 0755);
    }
    FILE *f = fopen(path, "w");
    cr_assert(f, "%s", path);
    fputs(text, f);
    fclose(f);
}

static const char meminfo[] = "MemTotal:       16777216 kB\n"
                              "MemFree:         1000000 kB\n"
                              "MemAvailable:    8388608 kB\n";

Test(store_memory_check, what_the_kernel_says)
{
    struct nj_memory_info m = nj_memory_info_read(scratch);
    cr_expect(m.all == UINT64_MAX && m.available == UINT64_MAX && m.group_max == UINT64_MAX);
    put("proc/meminfo", meminfo);
    put("proc/self/cgroup", "4:memory:/other\n0::/system.slice/nightjar.service\n");
    m = nj_memory_info_read(scratch);
    cr_expect(m.all == 16 * GIB && m.available == 8 * GIB && m.group_max == UINT64_MAX);
    put("sys/fs/cgroup/system.slice/nightjar.service/memory.max", "max\n");
    m = nj_memory_info_read(scratch);
    cr_expect_eq(m.group_max, UINT64_MAX);
    put("sys/fs/cgroup/system.slice/nightjar.service/memory.max", "4294967296\n");
    m = nj_memory_info_read(scratch);
    cr_expect_eq(m.group_max, 4 * GIB);
    put("proc/self/cgroup", "0::/\n"); /* in a container, or none */
    put("sys/fs/cgroup/memory.max", "2147483648\n");
    m = nj_memory_info_read(scratch);
    cr_expect_eq(m.group_max, 2 * GIB);
    cr_expect_neq(nj_memory_info_read("").all, UINT64_MAX, "of this machine");
}

static void expect(const struct nj_memory_info *m, uint64_t cache_bytes, bool is_huge,
                   const char *want)
{
    char text[512];

    nj_memory_check_warn_cache(m, cache_bytes, is_huge, text, sizeof text);
    cr_expect_str_eq(text, want);
}

Test(store_memory_check, advice)
{
    struct nj_memory_info m = {16 * GIB, 8 * GIB, UINT64_MAX};

    expect(&m, 8 * GIB, false, "");
    expect(&m, 8 * GIB, true, "");
    expect(&m, 20 * GIB, false,
           "--cache 20GiB: the machine has 16GiB of memory, 8GiB are available: when files fill "
           "it, the kernel may end the server; choose --cache 7GiB or less");
    expect(&m, 8 * GIB + 1, false,
           "--cache 8GiB: the machine has 16GiB of memory, 8GiB are available: when files fill "
           "it, the kernel may end the server; choose --cache 7GiB or less");
    expect(&m, 9 * GIB, true,
           "--cache 9GiB: the machine has 16GiB of memory, 8GiB are available: when files up to "
           "16MiB, which do not lie in hugepages, fill it, the kernel may end the server; choose "
           "--cache 7GiB or less");
    m.group_max = 4 * GIB;
    expect(&m, 4 * GIB, false, "");
    expect(&m, 5 * GIB, false,
           "--cache 5GiB: the control group of the server may have 4GiB of memory: when files fill "
           "it, the kernel may end the server; choose --cache 3584MiB or less");
    m = (struct nj_memory_info){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    expect(&m, 1000 * GIB, false, "");
}
