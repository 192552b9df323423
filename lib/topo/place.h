/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement: the CPUs of lcores and workers, and problems of a placement. Pure; the input is a
 * topology.
 *
 * Lcores are placed near the NIC, one per physical core. Workers are placed on CPUs without an
 * lcore that share most with the lcores they serve: the other hardware thread of the core, else the
 * same L2, L3, node. If cores have only one thread, some cores are left to workers and the kernel.
 */
#pragma once

#include <stdio.h>

#include "base/limits.h"
#include "topo/hwloc_topology.h"

/* The closest resource that a worker's CPUs share with those of its lcores. */
enum nj_proximity {
    NJ_NEAR_CORE, /* the core, with its L1 and L2 */
    NJ_NEAR_L2,
    NJ_NEAR_L3,
    NJ_NEAR_NODE,
    NJ_NEAR_REMOTE,
    NJ_NEAR_SAME_CPU, /* the CPU itself, since no other is left */
};

struct nj_placement {
    uint32_t n_lcores, n_workers;
    uint32_t lcore_mib;            /* EAL memory per lcore; the caller may change the default */
    uint32_t lcore[NJ_SHARDS_MAX]; /* CPU of lcore i, which polls queue i */
    cpu_set_t worker[NJ_WORKERS_MAX];
    enum nj_proximity near[NJ_WORKERS_MAX];
    uint32_t nearest_worker[NJ_SHARDS_MAX]; /* the worker closest to lcore i */
    cpu_set_t housekeeping;                 /* CPUs without an lcore, for all other threads; all
                                       usable CPUs if every CPU has an lcore */
    bool no_spare_cpu;                      /* every usable CPU has an lcore; threads share them */
};

/* The best placement of at most `n_lcores` (0: as many as the machine suits) and of `n_workers` (0:
 * up to 4, as many as CPUs are left, at least 1). No lcores in the result: no CPU is usable. */
void nj_placement_plan(const struct nj_topo *t, uint32_t n_lcores, uint32_t n_workers,
                       struct nj_placement *out);
/* The best placement of workers around given lcores. */
void nj_placement_plan_workers(const struct nj_topo *t, const uint32_t *lcore, uint32_t n_lcores,
                               uint32_t n_workers, struct nj_placement *out);

enum nj_placement_fault_kind {
    NJ_FAULT_SAME_CPU,    /* lcores `a` and `b` */
    NJ_FAULT_SIBLINGS,    /* `a` and `b` are threads of one core */
    NJ_FAULT_NIC_REMOTE,  /* `a` is on another node than the NIC */
    NJ_FAULT_SPLIT_NODES, /* the NIC's node is unknown, and `a` and `b` are on different nodes */
    NJ_FAULT_NO_SPARE_CPU,
};

struct nj_placement_fault {
    enum nj_placement_fault_kind kind;
    uint32_t a, b; /* CPUs */
};

/* The problems of a placement, the first of each kind. Returns their number. */
#define NJ_PLACEMENT_FAULTS_MAX 5u
uint32_t nj_placement_find_faults(const struct nj_topo *t, const struct nj_placement *p,
                                  struct nj_placement_fault faults[NJ_PLACEMENT_FAULTS_MAX]);
/* A description without a final period: "lcores on CPUs 0 and 4 share one core ...". */
void nj_placement_fault_text(const struct nj_topo *t, const struct nj_placement_fault *f,
                             char *text, size_t n);

/* The EAL arguments: "-l 0-3,8", and with several nodes "--socket-mem". */
void nj_placement_eal_args(const struct nj_topo *t, const struct nj_placement *p, char *text,
                           size_t n);
/* Write the problems of a placement and better EAL arguments, of at most as many lcores, one per
 * line; "" if there are no better ones. */
void nj_placement_advice_text(const struct nj_topo *t, const struct nj_placement *p, char *text,
                              size_t n);
/* Draw every node, core and CPU, with the threads placed there. */
void nj_placement_draw(const struct nj_topo *t, const struct nj_placement *p, FILE *out);
