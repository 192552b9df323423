/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal.h"

#include <sched.h>
#include <stdio.h>

#include "base/compiler.h"
#include "dpdk/eal.h"

#define MEMORY_MIB "1024" /* four mbuf pools of 20 or 80 MiB per thread; the rest is unused */

bool eal_start(const char *program, uint32_t n_lcores)
{
    char lcores[64], why[192], name[32];
    cpu_set_t allowed;
    int cpu[EAL_LCORES_MAX] = {0};
    uint32_t n = 0;

    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int i = 0; i < CPU_SETSIZE && n < n_lcores; i++)
        if (CPU_ISSET(i, &allowed))
            cpu[n++] = i;
    if (n < n_lcores) {
        fprintf(stderr, "%s: this process may use fewer than %u CPUs\n", program, n_lcores);
        return false;
    }
    snprintf(lcores, sizeof lcores, n > 1 ? "0@%d,1@%d" : "0@%d", cpu[0], cpu[n - 1]);
    snprintf(name, sizeof name, "%s", program);
    char *args[] = {name,          "--lcores", lcores,           "--no-huge",     "-m", MEMORY_MIB,
                    "--no-shconf", "--no-pci", "--no-telemetry", "--file-prefix", name, NULL};
    if (nj_eal_init(NJ_ARRAY_LEN(args) - 1, args, why, sizeof why) == 0)
        return true;
    fprintf(stderr, "%s: EAL: %s\n", program, why);
    return false;
}
