/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of a machine, with their cores, caches and NUMA nodes. The only user of hwloc. */
#ifndef NJ_TOPO_TOPO_H
#define NJ_TOPO_TOPO_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NJ_TOPO_CPUS_MAX CPU_SETSIZE /* cpu_set_t knows no others */
#define NJ_TOPO_NONE     UINT16_MAX  /* there is no such cache */

struct nj_topo_cpu {
    uint16_t id;     /* as the kernel numbers them, and EAL's -l */
    uint16_t core;   /* SMT siblings have the same */
    uint16_t l2, l3; /* those with the same number share it */
    uint16_t node;   /* NUMA node as the kernel numbers them */
    bool usable;     /* we may run there */
};

struct nj_topo {
    uint32_t n_cpus, n_nodes;
    int nic_node; /* where the NIC is; -1: not known, or the same for all */
    char nic[16]; /* its PCI address, "" when there is none or not one node of several */
    struct nj_topo_cpu cpu[NJ_TOPO_CPUS_MAX]; /* neighbours stand together */
};

/*
 * Read this machine. `usable`: where the process may run; NULL: everywhere. `nic`: PCI address of
 * the NIC, or NULL: the Ethernet devices, if all are on one node. The library's own environment
 * variables (HWLOC_SYNTHETIC, HWLOC_XMLFILE) put another machine in its place, where everything is
 * usable. Returns 0, or -1 with the reason.
 */
int nj_topo_discover(struct nj_topo *t, const cpu_set_t *usable, const char *nic, char *why,
                     size_t why_bytes);

/* Build the topology of a synthetic machine from a description of hwloc: "pack:2 [numa] l3:1 core:4
 * pu:2". */
int nj_topo_synthetic(struct nj_topo *t, const char *description, char *why, size_t why_bytes);

/* The CPU of that id, or NULL. */
const struct nj_topo_cpu *nj_topo_cpu(const struct nj_topo *t, uint32_t id);

#endif
