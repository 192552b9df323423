/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the size of the file cache with MemAvailable of proc_meminfo(5) and memory.max of cgroup
 * v2. The advice suggests a --cache that fits. */
#include "store/memory_check.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define KIB         ((uint64_t)1024)
#define MIB         (1024 * KIB)
/* The advised size leaves this fraction (1/N) of the available memory to others. */
#define RESERVE_DIV 8u

static void read_meminfo(const char *root, struct nj_memory_info *m)
{
    char path[PATH_MAX], line[256];
    unsigned long long kib;

    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
            m->all = kib * KIB;
        else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            m->available = kib * KIB;
    }
    if (f)
        fclose(f);
}

/* False: it is in none of cgroup v2. */
static bool read_group(const char *root, char *group, int n_group)
{
    static const char v2[] = "0::/";
    char path[PATH_MAX], line[PATH_MAX];
    bool found = false;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        found = strncmp(line, v2, sizeof v2 - 1) == 0;
        line[strcspn(line, "\n")] = '\0';
    }
    if (f)
        fclose(f);
    if (found)
        snprintf(group, (size_t)n_group, "%s", line + sizeof v2 - 1);
    return found;
}

static void read_group_max(const char *root, struct nj_memory_info *m)
{
    char path[2 * PATH_MAX], group[PATH_MAX];
    unsigned long long n;

    if (!read_group(root, group, sizeof group))
        return;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s/memory.max", root, group);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &n) == 1) /* else it is "max" */
        m->group_max = n;
    if (f)
        fclose(f);
}

struct nj_memory_info nj_memory_info_read(const char *root)
{
    struct nj_memory_info m = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

    read_meminfo(root, &m);
    read_group_max(root, &m);
    return m;
}

/* In whole MiB, so that numbers are short. */
static const char *show(uint64_t n, char text[24])
{
    nj_format_bytes(n >= MIB ? n / MIB * MIB : n, text, 24);
    return text;
}

void nj_memory_check_warn_cache(const struct nj_memory_info *m, uint64_t cache_bytes, bool is_huge,
                                char *out, size_t n_out)
{
    bool is_group = m->group_max < m->available;
    uint64_t most = is_group ? m->group_max : m->available;
    char asked[24], all[24], there[24], advised[24];

    out[0] = '\0';
    if (cache_bytes <= most)
        return;
    int n = snprintf(out, n_out, "--cache %s: ", show(cache_bytes, asked));
    if (is_group)
        n += snprintf(out + n, n_out - (size_t)n,
                      "the control group of the server may have %s of memory",
                      show(m->group_max, all));
    else
        n += snprintf(out + n, n_out - (size_t)n, "the machine has %s of memory, %s are available",
                      show(m->all, all), show(m->available, there));
    snprintf(out + n, n_out - (size_t)n,
             ": when files%s fill it, the kernel may end the server; choose --cache %s or less",
             is_huge ? " up to 16MiB, which do not lie in hugepages," : "",
             show(most - most / RESERVE_DIV, advised));
}
