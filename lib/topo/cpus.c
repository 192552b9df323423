/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU lists of the kernel and the EAL, such as "0-3,8". Contract: cpus.h. */
#include "topo/cpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/hwloc_topology.h"

void nj_cpus_format(const cpu_set_t *set, char *text, size_t n)
{
    size_t at = 0;

    text[0] = '\0';
    for (unsigned i = 0, end; i < NJ_TOPO_CPUS_MAX; i = end + 1) {
        for (end = i; end < NJ_TOPO_CPUS_MAX && CPU_ISSET(end, set); end++)
            ;
        if (end == i)
            continue;
        const char *comma = at ? "," : "";
        int put = end == i + 1 ? snprintf(text + at, n - at, "%s%u", comma, i)
                               : snprintf(text + at, n - at, "%s%u-%u", comma, i, end - 1);
        if (put < 0 || (size_t)put >= n - at) {
            text[at] = '\0';
            return;
        }
        at += (size_t)put;
    }
}

bool nj_cpu_parse(const char **text, unsigned *cpu)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    unsigned long n = strtoul(*text, &end, 10);
    *text = end;
    *cpu = (unsigned)n;
    return n < NJ_TOPO_CPUS_MAX;
}

static bool read_list(const char *text, cpu_set_t *set)
{
    for (;; text++) {
        unsigned first, last;
        if (!nj_cpu_parse(&text, &first))
            return false;
        last = first;
        if (*text == '-' && (text++, !nj_cpu_parse(&text, &last)))
            return false;
        if (last < first)
            return false;
        for (unsigned cpu = first; cpu <= last; cpu++)
            CPU_SET(cpu, set);
        if (*text != ',')
            return *text == '\0';
    }
}

bool nj_cpus_parse(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    if (*text == '\0' || read_list(text, set))
        return true;
    CPU_ZERO(set);
    return false;
}
