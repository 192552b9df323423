/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines as hwloc describes them, and this one. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/hwloc_topology.h"

static struct nj_topo t;
static char why[256];

Test(topo_hwloc_topology, smt_and_caches)
{
    cr_assert_eq(nj_topo_synthetic(&t, "pack:2 l3:2 l2:2 core:2 pu:2", why, sizeof why), 0, "%s",
                 why);
    cr_expect_eq(t.n_cpus, 32);
    cr_expect_eq(t.nic_node, -1);
    for (uint32_t i = 0; i < t.n_cpus; i++) {
        cr_expect_eq(t.cpu[i].id, i);
        cr_expect_eq(t.cpu[i].core, i / 2);
        cr_expect_eq(t.cpu[i].l2, i / 4);
        cr_expect_eq(t.cpu[i].l3, i / 8);
        cr_expect_eq(t.cpu[i].node, 0);
        cr_expect(t.cpu[i].usable);
    }
    cr_expect_eq(nj_topo_cpu(&t, 31), &t.cpu[31]);
    cr_expect_null(nj_topo_cpu(&t, 32));
}

/* Numbers as kernels assign them: first one thread of each core, then the other. */
Test(topo_hwloc_topology, nodes_and_numbers)
{
    cr_assert_eq(nj_topo_synthetic(&t, "pack:2 [numa] core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", why,
                                   sizeof why),
                 0, "%s", why);
    cr_expect_eq(t.n_cpus, 8);
    cr_expect_eq(nj_topo_cpu(&t, 4)->core, nj_topo_cpu(&t, 0)->core);
    cr_expect_eq(nj_topo_cpu(&t, 4)->node, 0);
    cr_expect_eq(nj_topo_cpu(&t, 2)->node, 1);
    cr_expect_eq(nj_topo_cpu(&t, 0)->l3, NJ_TOPO_NONE);
}

Test(topo_hwloc_topology, nonsense)
{
    cr_expect_eq(nj_topo_synthetic(&t, "pack:2 pu:", why, sizeof why), -1);
    cr_expect_str_eq(why, "hwloc does not understand \"pack:2 pu:\"");
}

/* CPUs outside our affinity are not usable; the others are. */
Test(topo_hwloc_topology, this_machine)
{
    cpu_set_t ours;
    uint32_t n_usable = 0;

    unsetenv("HWLOC_SYNTHETIC");
    sched_getaffinity(0, sizeof ours, &ours);
    cr_assert_eq(nj_topo_discover_by_hwloc(&t, &ours, NULL, why, sizeof why), 0, "%s", why);
    for (uint32_t i = 0; i < t.n_cpus; i++)
        n_usable += t.cpu[i].usable;
    cr_expect_eq(n_usable, (uint32_t)CPU_COUNT(&ours));
    CPU_ZERO(&ours);
    cr_assert_eq(nj_topo_discover_by_hwloc(&t, &ours, NULL, why, sizeof why), 0, "%s", why);
    for (uint32_t i = 0; i < t.n_cpus; i++)
        cr_expect(!t.cpu[i].usable);
}

Test(topo_hwloc_topology, another_machine_in_its_place)
{
    cpu_set_t none;

    CPU_ZERO(&none);
    setenv("HWLOC_SYNTHETIC", "core:3 pu:2", 1);
    cr_assert_eq(nj_topo_discover_by_hwloc(&t, &none, NULL, why, sizeof why), 0, "%s", why);
    unsetenv("HWLOC_SYNTHETIC");
    cr_expect_eq(t.n_cpus, 6);
    cr_expect(t.cpu[5].usable);
    cr_expect_str_eq(t.nic, "");
}
