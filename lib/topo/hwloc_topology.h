/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of a machine, with their cores, caches and NUMA nodes. The only user of hwloc. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NJ_TOPO_CPUS_MAX CPU_SETSIZE /* the limit of cpu_set_t */
#define NJ_TOPO_NONE     UINT16_MAX  /* no such cache */

struct nj_topo_cpu {
    uint16_t id;     /* number of the kernel, and of the EAL's -l */
    uint16_t core;   /* equal for SMT siblings */
    uint16_t l2, l3; /* equal for CPUs that share the cache */
    uint16_t node;   /* NUMA node number of the kernel */
    bool usable;     /* the process may run there */
};

struct nj_topo {
    uint32_t n_cpus;
    int nic_node; /* node of the NIC; -1: unknown, or the same for all */
    char nic[16]; /* PCI address of the NIC, "" if unknown */
    struct nj_topo_cpu cpu[NJ_TOPO_CPUS_MAX]; /* siblings are adjacent */
};

/*
 * Read this machine. `usable`: the allowed CPUs of the process; NULL: all. `nic`: PCI address of
 * the NIC, or NULL: the Ethernet devices, if all are on one node. hwloc's environment variables
 * (HWLOC_SYNTHETIC, HWLOC_XMLFILE) substitute another machine, on which every CPU is usable.
 * Returns 0, or -1 with the reason.
 */
int nj_topo_discover_by_hwloc(struct nj_topo *t, const cpu_set_t *usable, const char *nic,
                              char *why, size_t why_bytes);

/* Build a synthetic topology from a description of hwloc: "pack:2 [numa] l3:1 core:4 pu:2". */
int nj_topo_synthetic(struct nj_topo *t, const char *description, char *why, size_t why_bytes);

/* Build a topology of these CPUs that share neither core nor cache, for a machine that cannot be
 * read. */
void nj_topo_flat(struct nj_topo *t, const cpu_set_t *usable);

/* The CPU with that id, or NULL. */
const struct nj_topo_cpu *nj_topo_cpu(const struct nj_topo *t, uint32_t id);
