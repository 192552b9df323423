/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses CPUs for the workers around the lcores, and implements --print-placement. The algorithm
 * is in topo/place.c. */
#include "config/worker_placement.h"

#include <nightjar/server.h>

#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "base/set_error.h"
#include "config/config_abi_copy.h"
#include "config/eal_args.h"
#include "config/settings_validate.h"
#include "dpdk/eal.h"
#include "dpdk/eal_selection.h"
#include "log/log.h"
#include "topo/cpus.h"

static void read_machine(struct nj_topo *t, const cpu_set_t *usable, int nic_node)
{
    char why[256];

    if (nj_topo_discover_by_hwloc(t, usable, NULL, why, sizeof why) != 0) {
        nj_log(NJ_LEVEL_WARNING, "%s; workers run on any CPU without an lcore", why);
        nj_topo_flat(t, usable);
    }
    t->nic_node = nic_node;
}

void nj_placement_place_workers(const uint32_t *cpu, uint32_t n_lcores, uint32_t n_workers,
                                int nic_node, const cpu_set_t *usable, struct nj_placement *out)
{
    struct nj_topo t;

    read_machine(&t, usable, nic_node);
    nj_placement_plan_workers(&t, cpu, n_lcores, n_workers, out);
}

void nj_placement_format_advice(const struct nj_placement *p, int nic_node, const cpu_set_t *usable,
                                char *text, size_t n)
{
    struct nj_topo t;

    read_machine(&t, usable, nic_node);
    nj_placement_advice_text(&t, p, text, n);
}

int nj_print_placement(int eal_argc, char **eal_argv, const struct nj_server_config *config)
{
    char why[512], text[2048];
    struct nj_settings settings = {.n_ports = 0};
    struct nj_presets presets = {.argc = 0};
    struct nj_server_config copy;
    struct nj_eal_selection wish;
    struct nj_topo t;
    struct nj_placement p;
    cpu_set_t usable;

    sched_getaffinity(0, sizeof usable, &usable);
    int status = NJ_EXIT_USAGE;
    if (!config || (eal_argc > 0 && !eal_argv)) {
        nj_log(NJ_LEVEL_ERROR, "%s is NULL", config ? "eal_argv" : "config");
        return status;
    }
    int rc = config->policy_file ? nj_config_convert_version(&copy, config, why, sizeof why) : 0;
    if (rc == 0 && config->policy_file) {
        rc = nj_settings_from_partial_config(&settings, &copy, why, sizeof why);
        config = &settings.effective;
        if (settings.faults.text)
            fputs(settings.faults.text, stderr);
    }
    if (rc == 0)
        rc = nj_eal_args_expand(&presets, settings.policy, eal_argc, eal_argv, why, sizeof why);
    uint32_t workers = config->workers, mtu = config->mtu;
    nj_settings_free(&settings);
    if (rc == 0)
        rc = nj_eal_selection_parse(presets.argc, presets.argv, &wish, why, sizeof why);
    nj_presets_free(&presets);
    if (rc == 0) {
        status = NJ_EXIT_FAILED;
        rc = nj_topo_discover_by_hwloc(&t, &usable, wish.nic[0] ? wish.nic : NULL, why, sizeof why);
    }
    if (rc != 0) {
        nj_log(NJ_LEVEL_ERROR, "%s", why);
        return status;
    }
    if (wish.n_lcores > 0)
        nj_placement_plan_workers(&t, wish.cpu, wish.n_lcores, workers, &p);
    else
        nj_placement_plan(&t, 0, workers, &p);
    if (mtu > RTE_ETHER_MTU)
        p.lcore_mib = NJ_LCORE_EAL_JUMBO_MIB;
    nj_placement_draw(&t, &p, stdout);
    if (wish.nic[0] && !t.nic[0])
        nj_log(NJ_LEVEL_WARNING,
               "-a %s: no such PCI device (lspci -D lists them); NUMA distance is ignored",
               wish.nic);
    nj_placement_advice_text(&t, &p, text, sizeof text);
    fflush(stdout);
    fputs(text, stderr);
    return 0;
}
