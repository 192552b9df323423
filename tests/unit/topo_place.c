/* SPDX-License-Identifier: BSD-3-Clause */
/* Placements on machines that are only described. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "topo/place.h"

#define TWO_SOCKETS_SMT                                                                            \
    "pack:2 [numa] l3:1 core:4 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)"
#define CHIPLETS     "pack:1 [numa] l3:4 core:4 pu:1"
#define CHIPLETS_SMT "pack:1 [numa] l3:2 core:4 pu:2"

static struct nj_topo t;
static struct nj_placement p;
static char why[256];

static void machine(const char *description, int nic_node)
{
    cr_assert_eq(nj_topo_synthetic(&t, description, why, sizeof why), 0, "%s", why);
    t.nic_node = nic_node;
}

/* "0-3,8", as an EAL list. */
static const char *lcores(void)
{
    static char text[512];
    nj_placement_eal_args(&t, &p, text, sizeof text);
    text[strcspn(text + 3, " ") + 3] = '\0';
    return text + 3;
}

static const char *worker(uint32_t w)
{
    static char text[64];
    int n = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < t.n_cpus && n < 60; i++)
        if (CPU_ISSET(i, &p.worker[w]))
            n += snprintf(text + n, sizeof text - (size_t)n, n ? ",%u" : "%u", i);
    return text;
}

/* No worker and no other thread is on a CPU that an lcore polls on, unless there is no other CPU.
 * EWYK 5.54 */
static void check_apart(void)
{
    for (uint32_t i = 0; i < p.n_lcores; i++) {
        cr_expect(p.no_spare_cpu || !CPU_ISSET(p.lcore[i], &p.housekeeping));
        cr_expect_lt(p.nearest_worker[i], p.n_workers);
        for (uint32_t w = 0; w < p.n_workers; w++)
            cr_expect(p.no_spare_cpu || !CPU_ISSET(p.lcore[i], &p.worker[w]));
    }
    for (uint32_t w = 0; w < p.n_workers; w++)
        cr_expect_gt(CPU_COUNT(&p.worker[w]), 0);
}

static void plan(const char *description, int nic_node, uint32_t n_lcores, uint32_t n_workers)
{
    machine(description, nic_node);
    nj_placement_plan(&t, n_lcores, n_workers, &p);
    check_apart();
    struct nj_placement_fault f[NJ_PLACEMENT_FAULTS_MAX];
    if (!p.no_spare_cpu)
        cr_expect_eq(nj_placement_find_faults(&t, &p, f), 0, "our own plan has no fault");
}

static void around(const uint32_t *cpu, uint32_t n, uint32_t n_workers)
{
    nj_placement_plan_workers(&t, cpu, n, n_workers, &p);
    check_apart();
}

/* --- plans --------------------------------------------------------------------------------------
 */

Test(topo_place, two_sockets_smt)
{
    plan(TWO_SOCKETS_SMT, 0, 0, 0);
    cr_expect_str_eq(lcores(), "0-3");
    cr_expect_eq(p.n_workers, 4);
    for (uint32_t w = 0; w < 4; w++) {
        cr_expect_eq(p.near[w], NJ_NEAR_CORE);
        cr_expect_eq(p.nearest_worker[w], w);
    }
    cr_expect_str_eq(worker(0), "8");
    cr_expect_str_eq(worker(3), "11");
}

Test(topo_place, nic_on_the_far_socket)
{
    plan(TWO_SOCKETS_SMT, 1, 0, 2);
    cr_expect_str_eq(lcores(), "4-7");
    cr_expect_str_eq(worker(0), "12,13"); /* works for lcores 4 and 5 */
    cr_expect_str_eq(worker(1), "14,15");
    cr_expect_eq(p.nearest_worker[1], 0);
    cr_expect_eq(p.nearest_worker[2], 1);
}

Test(topo_place, more_workers_than_lcores)
{
    plan(TWO_SOCKETS_SMT, 0, 2, 5);
    cr_expect_str_eq(lcores(), "0-1");
    cr_expect_str_eq(worker(0), "8");
    cr_expect_str_eq(worker(1), "9");
    cr_expect_str_eq(worker(4), "8");
}

/* Without second threads each chiplet leaves its first core, and workers stay within their L3. */
Test(topo_place, chiplets)
{
    plan(CHIPLETS, -1, 0, 4);
    cr_expect_str_eq(lcores(), "1-3,5-7,9-11,13-15");
    cr_expect_str_eq(worker(0), "0");
    cr_expect_str_eq(worker(1), "4");
    cr_expect_str_eq(worker(3), "12");
    cr_expect_eq(p.near[3], NJ_NEAR_L3);
    cr_expect_eq(p.nearest_worker[3], 1);
}

Test(topo_place, chiplets_smt)
{
    plan(CHIPLETS_SMT, 0, 0, 0);
    cr_expect_str_eq(lcores(), "0,2,4,6,8,10,12,14");
    cr_expect_str_eq(worker(0), "1,3");
    cr_expect_str_eq(worker(3), "13,15");
}

Test(topo_place, one_node_without_caches)
{
    plan("core:6 pu:1", -1, 0, 0);
    cr_expect_str_eq(lcores(), "1-5");
    cr_expect_str_eq(worker(0), "0");
    cr_expect_eq(p.near[0], NJ_NEAR_NODE);
    cr_expect_eq(p.n_workers, 1);
}

Test(topo_place, shared_l2)
{
    plan("l3:1 l2:2 core:4 pu:1", -1, 2, 2); /* 0..3 and 4..7 share an L2 each */
    cr_expect_str_eq(lcores(), "1-2");
    cr_expect_eq(p.near[0], NJ_NEAR_L2);
    cr_expect_str_eq(worker(0), "0,3");
}

Test(topo_place, two_cores)
{
    plan("core:2 pu:1", -1, 0, 0);
    cr_expect_str_eq(lcores(), "1");
    cr_expect_str_eq(worker(0), "0");
    cr_expect_eq(p.n_workers, 1);
}

Test(topo_place, one_core)
{
    plan("core:1 pu:1", -1, 0, 0);
    cr_expect_str_eq(lcores(), "0");
    cr_expect(p.no_spare_cpu);
    cr_expect_eq(p.near[0], NJ_NEAR_SAME_CPU);
    plan("core:1 pu:2", -1, 0, 0);
    cr_expect_str_eq(lcores(), "0");
    cr_expect_str_eq(worker(0), "1");
}

/* No CPU of the NIC's node is usable: the other node is used, and that is no fault. */
Test(topo_place, nothing_usable_near_the_nic)
{
    machine(TWO_SOCKETS_SMT, 0);
    for (uint32_t i = 0; i < t.n_cpus; i++)
        t.cpu[i].usable = t.cpu[i].node == 1;
    nj_placement_plan(&t, 0, 0, &p);
    cr_expect_str_eq(lcores(), "4-7");
    struct nj_placement_fault f[NJ_PLACEMENT_FAULTS_MAX];
    cr_expect_eq(nj_placement_find_faults(&t, &p, f), 0);
    for (uint32_t i = 0; i < t.n_cpus; i++)
        t.cpu[i].usable = false;
    nj_placement_plan(&t, 0, 0, &p);
    cr_expect_eq(p.n_lcores, 0);
}

/* Random machines, of which random CPUs are usable: in each placement workers and lcores have
 * different CPUs. */
Test(topo_place, random_machines)
{
    const char *given = getenv("NJ_SEED");
    struct nj_prng prng;
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261121;

    printf("NJ_SEED=%lu\n", (unsigned long)seed);
    nj_prng_init(&prng, seed);
    for (int i = 0; i < 300; i++) {
        char text[128];
        snprintf(text, sizeof text, "pack:%u [numa] l3:%u l2:%u core:%u pu:%u",
                 1 + nj_prng_below(&prng, 3), 1 + nj_prng_below(&prng, 3),
                 1 + nj_prng_below(&prng, 3), 1 + nj_prng_below(&prng, 3),
                 1 + nj_prng_below(&prng, 2));
        machine(text, (int)nj_prng_below(&prng, 3) - 1);
        int node_max = 0;
        for (uint32_t k = 0; k < t.n_cpus; k++) {
            if (t.cpu[k].node > node_max)
                node_max = t.cpu[k].node;
            t.cpu[k].usable = nj_prng_below(&prng, 4) > 0;
        }
        if (t.nic_node > node_max)
            t.nic_node = -1;
        t.cpu[nj_prng_below(&prng, t.n_cpus)].usable = true;
        nj_placement_plan(&t, nj_prng_below(&prng, 9), nj_prng_below(&prng, 9), &p);
        check_apart();
        cr_expect_gt(p.n_lcores, 0);
        struct nj_placement_fault f[NJ_PLACEMENT_FAULTS_MAX];
        uint32_t n = nj_placement_find_faults(&t, &p, f);
        cr_expect(n == 0 || (n == 1 && f[0].kind == NJ_FAULT_NO_SPARE_CPU && p.n_lcores == 1), "%s",
                  text);
    }
}

/* --- faults ------------------------------------------------------------------------------------
 */

static const char *fault(uint32_t i)
{
    static char text[256];
    struct nj_placement_fault f[NJ_PLACEMENT_FAULTS_MAX];

    if (i >= nj_placement_find_faults(&t, &p, f))
        return "";
    nj_placement_fault_text(&t, &f[i], text, sizeof text);
    return text;
}

Test(topo_place, faults)
{
    machine(TWO_SOCKETS_SMT, 0);
    around((uint32_t[]){1, 9}, 2, 0);
    cr_expect_str_eq(fault(0), "lcores on CPUs 1 and 9 are two threads of one core: each takes "
                               "issue slots and cache from the other, and workers could be there");
    around((uint32_t[]){0, 1, 5}, 3, 0);
    cr_expect_str_eq(fault(0), "the lcore on CPU 5 is on NUMA node 1, the NIC on node 0: every "
                               "packet crosses between them");
    around((uint32_t[]){2, 2}, 2, 0);
    cr_expect_str_eq(fault(0), "two lcores poll on CPU 2: each waits while the other runs");
    t.nic_node = -1;
    around((uint32_t[]){0, 7}, 2, 0);
    cr_expect_str_eq(fault(0), "lcores on CPUs 0 and 7 are on NUMA nodes 0 and 1: for one of them "
                               "packets and memory are far");
    machine("core:2 pu:1", -1);
    around((uint32_t[]){0, 1}, 2, 0);
    cr_expect_str_eq(fault(0), "every CPU has an lcore: workers and all else share CPUs with them, "
                               "and polling stops while they run");
    cr_expect_str_eq(fault(1), "");
}

/* Several faults at once, each reported. */
Test(topo_place, all_that_is_wrong)
{
    machine("pack:2 [numa] core:2 pu:1", 1);
    around((uint32_t[]){0, 1, 2, 3, 3}, 5, 0);
    cr_expect_eq(p.n_workers, 1);
    struct nj_placement_fault f[NJ_PLACEMENT_FAULTS_MAX];
    cr_assert_eq(nj_placement_find_faults(&t, &p, f), 3);
    cr_expect_eq(f[0].kind, NJ_FAULT_SAME_CPU);
    cr_expect_eq(f[1].kind, NJ_FAULT_NIC_REMOTE);
    cr_expect_eq(f[2].kind, NJ_FAULT_NO_SPARE_CPU);
}

/* --- text --------------------------------------------------------------------------------------
 */

Test(topo_place, eal_arguments)
{
    char text[128];

    plan(TWO_SOCKETS_SMT, 1, 3, 0);
    nj_placement_eal_args(&t, &p, text, sizeof text);
    cr_expect_str_eq(text, "-l 4-6 --socket-mem 0,600");
    plan("core:4 pu:1", -1, 0, 0);
    nj_placement_eal_args(&t, &p, text, sizeof text);
    cr_expect_str_eq(text, "-l 1-3");
}

Test(topo_place, picture)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    plan("pack:2 [numa] l3:1 core:1 pu:2", 1, 0, 1);
    t.cpu[1].usable = false;
    nj_placement_plan(&t, 0, 1, &p);
    nj_placement_draw(&t, &p, f);
    fclose(f);
    cr_expect_str_eq(text, "NIC: not known (name it with -a before the --)\n"
                           "node 0\n"
                           " L3 0\n"
                           "  core 0\n"
                           "    cpu 0   files, all else\n"
                           "    cpu 1   not ours\n"
                           "node 1, with the NIC\n"
                           " L3 1\n"
                           "  core 1\n"
                           "    cpu 2   polls queue 0\n"
                           "    cpu 3   worker 0, files, all else\n"
                           "worker 0: CPU 3, the other thread of an lcore's core: L1 and L2 are "
                           "shared\n"
                           "EAL arguments: -l 2 --socket-mem 0,200\n");
    free(text);
}
