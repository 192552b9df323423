/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement: which CPUs get lcores, where the workers run, and faults of a placement. Pure; input
 * is a description of the machine.
 *
 * Lcores go near the NIC, one per physical core. Workers go where they share most with the lcores
 * they work for without being one: the other hardware thread of the same core, else the same L2,
 * L3, node. Where a core has only one thread, some cores are left to the workers and the kernel.
 */
#ifndef NJ_TOPO_PLACE_H
#define NJ_TOPO_PLACE_H

#include <stdio.h>

#include "base/limits.h"
#include "topo/topo.h"

/* What a worker's CPUs share with those of its lcores. */
enum nj_near {
    NJ_NEAR_CORE, /* the core, with its L1 and L2 */
    NJ_NEAR_L2,
    NJ_NEAR_L3,
    NJ_NEAR_NODE,
    NJ_NEAR_NOT,
    NJ_NEAR_SAME, /* the CPU itself: there is no other */
};

struct nj_place {
    uint32_t n_lcores, n_workers;
    uint32_t lcore_mib; /* memory of EAL's for an lcore; the default, for the caller to change */
    uint32_t lcore[NJ_SHARDS_MAX]; /* CPU of lcore i, which polls queue i */
    cpu_set_t worker[NJ_WORKERS_MAX];
    enum nj_near near[NJ_WORKERS_MAX];
    uint32_t nearest[NJ_SHARDS_MAX]; /* the worker closest to lcore i */
    cpu_set_t rest;                  /* CPUs without an lcore, for all other threads; all
                                        usable CPUs if every CPU has an lcore */
    bool crowded;                    /* every usable CPU has an lcore; threads share them */
};

/* The best placement of at most `n_lcores` (0: as many as the machine has good places for) and of
 * `n_workers` (0: up to 4, as many as CPUs are left, at least 1). No lcores: nothing is usable. */
void nj_place_plan(const struct nj_topo *t, uint32_t n_lcores, uint32_t n_workers,
                   struct nj_place *out);
/* The best around lcores that are given. */
void nj_place_around(const struct nj_topo *t, const uint32_t *lcore, uint32_t n_lcores,
                     uint32_t n_workers, struct nj_place *out);

enum nj_fault_kind {
    NJ_FAULT_SAME_CPU, /* lcores `a` and `b` */
    NJ_FAULT_SIBLINGS, /* `a` and `b` are threads of one core */
    NJ_FAULT_FAR,      /* `a` is on another node than the NIC */
    NJ_FAULT_SPLIT,    /* no NIC is known, and `a` and `b` are on different nodes */
    NJ_FAULT_CROWDED,
};

struct nj_fault {
    enum nj_fault_kind kind;
    uint32_t a, b; /* CPUs */
};

/* What is wrong with it, the first of each kind. Returns how many. */
#define NJ_FAULTS_MAX 5u
uint32_t nj_place_faults(const struct nj_topo *t, const struct nj_place *p,
                         struct nj_fault faults[NJ_FAULTS_MAX]);
/* In words, without an end: "lcores on CPUs 0 and 4 share one core ...". */
void nj_fault_text(const struct nj_topo *t, const struct nj_fault *f, char *text, size_t n);

/* EAL's arguments for it: "-l 0-3,8", and where there are several nodes "--socket-mem". */
void nj_place_eal(const struct nj_topo *t, const struct nj_place *p, char *text, size_t n);
/* A picture: every node, core and CPU, and who runs there. */
void nj_place_draw(const struct nj_topo *t, const struct nj_place *p, FILE *out);

#endif
