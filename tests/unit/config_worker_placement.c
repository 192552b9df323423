/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL's arguments for lcores, and the messages about their placement. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "config/worker_placement.h"
#include "dpdk/eal_selection.h"

/* `cpus` NULL: it can't be drawn. */
static const struct {
    const char *argv[5];
    const char *cpus, *nic;
} rows[] = {
    {{"nightjar"}, "", ""},
    {{"nightjar", "-l", "0"}, "0", ""},
    {{"nightjar", "-l0,2"}, "0 2", ""},
    {{"nightjar", "-l", "4-6,1"}, "1 4 5 6", ""},
    {{"nightjar", "--lcores", "0@5,2@7,1@6"}, "5 6 7", ""},
    {{"nightjar", "--lcores=3"}, "3", ""},
    {{"nightjar", "-l", "1", "-l", "2"}, "2", ""},
    {{"nightjar", "-l", "1", "-a", "0000:03:00.1"}, "1", "0000:03:00.1"},
    {{"nightjar", "--allow=03:00.0,rx=1", "-a", "04:00.0"}, "", "03:00.0"},
    {{"nightjar", "--log-level=8", "--legacy-mem"}, "", ""},
    {{"nightjar", "-l"}, "", ""}, /* the EAL's to complain about */
    {{"nightjar", "-l", ""}, NULL, ""},
    {{"nightjar", "-l", "0,"}, NULL, ""},
    {{"nightjar", "-l", "0-"}, NULL, ""},
    {{"nightjar", "-l", "a"}, NULL, ""},
    {{"nightjar", "-l", "0@"}, NULL, ""},
    {{"nightjar", "-l", "1024"}, NULL, ""},
    {{"nightjar", "-l", "99999999999999999999"}, NULL, ""},
    {{"nightjar", "-l", "0-64"}, NULL, ""},
    {{"nightjar", "--lcores", "(0,1)@2"}, NULL, ""},
    {{"nightjar", "--lcores", "0@(0,1)"}, NULL, ""},
};

Test(config_worker_placement, eal_arguments)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_eal_selection w;
        char why[256], cpus[128] = "";
        char *argv[NJ_ARRAY_LEN(rows[i].argv)];
        int argc = 0;

        while (argc < 5 && rows[i].argv[argc]) {
            argv[argc] = (char *)rows[i].argv[argc];
            argc++;
        }
        int rc = nj_eal_selection_parse(argc, argv, &w, why, sizeof why);
        cr_expect_eq(rc, rows[i].cpus ? 0 : -1, "row %zu", i);
        if (rc != 0)
            continue;
        for (uint32_t k = 0; k < w.n_lcores; k++) {
            size_t at = strlen(cpus);
            snprintf(cpus + at, sizeof cpus - at, k ? " %u" : "%u", w.cpu[k]);
        }
        cr_expect_str_eq(cpus, rows[i].cpus, "row %zu", i);
        cr_expect_str_eq(w.nic, rows[i].nic, "row %zu", i);
    }
}

static const char *advice(const char *machine, const uint32_t *cpu, uint32_t n, int nic_node)
{
    static char text[2048];
    static struct nj_placement p;
    cpu_set_t usable;

    setenv("HWLOC_SYNTHETIC", machine, 1);
    CPU_ZERO(&usable);
    nj_placement_place_workers(cpu, n, 0, nic_node, &usable, &p);
    nj_placement_format_advice(&p, nic_node, &usable, text, sizeof text);
    unsetenv("HWLOC_SYNTHETIC");
    return text;
}

Test(config_worker_placement, advice)
{
    cr_expect_str_eq(advice("core:4 pu:1", (uint32_t[]){1, 2}, 2, -1), "");
    cr_expect_str_eq(advice("core:1 pu:1", (uint32_t[]){0}, 1, 0), "", "no placement is better");
    cr_expect_str_eq(advice("core:2 pu:1", (uint32_t[]){0, 1}, 2, 0),
                     "nightjar: every CPU has an lcore: workers and all else share CPUs with them, "
                     "and polling stops while they run; better: -l 1\n");
    cr_expect_str_eq(advice("pack:2 [numa] core:2 pu:2", (uint32_t[]){0, 1, 2}, 3, 1),
                     "nightjar: lcores on CPUs 0 and 1 are two threads of one core: each takes "
                     "issue slots and cache from the other, and workers could be there\n"
                     "nightjar: the lcore on CPU 0 is on NUMA node 0, the NIC on node 1: every "
                     "packet crosses between them; better: -l 4,6 --socket-mem 0,400\n");
}

/* With a restricted CPU set, no thread is placed on another CPU. */
Test(config_worker_placement, stays_where_it_may)
{
    cpu_set_t usable;
    struct nj_placement p;

    sched_getaffinity(0, sizeof usable, &usable);
    nj_placement_place_workers((uint32_t[]){0}, 1, 0, -1, &usable, &p);
    for (unsigned i = 0; i < NJ_TOPO_CPUS_MAX; i++) {
        cr_expect(CPU_ISSET(i, &usable) || !CPU_ISSET(i, &p.housekeeping));
        for (uint32_t w = 0; w < p.n_workers; w++)
            cr_expect(CPU_ISSET(i, &p.housekeeping) || !CPU_ISSET(i, &p.worker[w]));
    }
}
