/* SPDX-License-Identifier: BSD-3-Clause */
/* Places lcores and workers on CPUs, by NUMA node, cache and core. Contract: place.h. */
#include "topo/place.h"

#include <string.h>

#define WORKERS_DEFAULT 4u
/* One core in this many per L3 gets no lcore: with 4 to 11 cores 1, with 12 to 19 cores 2. */
#define CORES_PER_SPARE 8u

static bool is_first_of_core(const struct nj_topo *t, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (t->cpu[k].usable && t->cpu[k].core == t->cpu[i].core)
            return false;
    return t->cpu[i].usable;
}

static bool has_sibling(const struct nj_topo *t, const struct nj_topo_cpu *c)
{
    for (uint32_t k = 0; k < t->n_cpus; k++)
        if (t->cpu[k].usable && t->cpu[k].id != c->id && t->cpu[k].core == c->core)
            return true;
    return false;
}

/* The first usable CPU of each core of a node, in the order of the machine. */
static uint32_t cores_of(const struct nj_topo *t, int node, const struct nj_topo_cpu **cores)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].node == node && is_first_of_core(t, i))
            cores[n++] = &t->cpu[i];
    return n;
}

/* Cores of the NIC's node, or if it is unknown or has no usable core, of the node with most
 * cores. */
static uint32_t cores_of_best_node(const struct nj_topo *t, const struct nj_topo_cpu **cores)
{
    const struct nj_topo_cpu *c[NJ_TOPO_CPUS_MAX];
    uint32_t most = 0;
    int best = t->nic_node;

    if (best >= 0 && cores_of(t, best, cores) > 0)
        return cores_of(t, best, cores);
    for (uint32_t i = 0; i < t->n_cpus; i++) {
        uint32_t n = cores_of(t, t->cpu[i].node, c);
        if (n > most) {
            most = n;
            best = t->cpu[i].node;
        }
    }
    return most > 0 ? cores_of(t, best, cores) : 0;
}

/* Reserves cores for workers and the kernel: the first ones of each L3, since the kernel mostly
 * uses the first CPUs. None if cores have a second thread. */
static uint32_t reserve_spare_cores(const struct nj_topo *t, const struct nj_topo_cpu **cores,
                                    uint32_t n)
{
    uint32_t n_left = 0, n_kept = 0;

    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && cores[end]->l3 == cores[i]->l3; end++)
            ;
        uint32_t n_spare = (end - i + CORES_PER_SPARE / 2) / CORES_PER_SPARE;
        if (n_spare == 0 && n_left == 0 && end == n && n > 1)
            n_spare = 1;
        if (has_sibling(t, cores[i]))
            n_spare = 0;
        n_left += n_spare;
        for (uint32_t k = i + n_spare; k < end; k++)
            cores[n_kept++] = cores[k];
    }
    return n_kept;
}

static void sort(uint32_t *v, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && v[k] < v[k - 1]; k--) {
            uint32_t x = v[k];
            v[k] = v[k - 1];
            v[k - 1] = x;
        }
}

void nj_placement_plan(const struct nj_topo *t, uint32_t n_lcores, uint32_t n_workers,
                       struct nj_placement *out)
{
    const struct nj_topo_cpu *cores[NJ_TOPO_CPUS_MAX];
    uint32_t lcore[NJ_SHARDS_MAX];
    uint32_t n = reserve_spare_cores(t, cores, cores_of_best_node(t, cores));

    if (n_lcores > 0 && n > n_lcores)
        n = n_lcores;
    if (n > NJ_SHARDS_MAX)
        n = NJ_SHARDS_MAX;
    for (uint32_t i = 0; i < n; i++)
        lcore[i] = cores[i]->id;
    sort(lcore, n); /* the EAL numbers queues in this order */
    nj_placement_plan_workers(t, lcore, n, n_workers, out);
}

/* --- the workers ------------------------------------------------------------------------------ */

static bool is_near(const struct nj_topo_cpu *a, const struct nj_topo_cpu *b,
                    enum nj_proximity near)
{
    switch (near) {
    case NJ_NEAR_CORE:
        return a->core == b->core;
    case NJ_NEAR_L2:
        return a->l2 == b->l2 && a->l2 != NJ_TOPO_NONE;
    case NJ_NEAR_L3:
        return a->l3 == b->l3 && a->l3 != NJ_TOPO_NONE;
    case NJ_NEAR_NODE:
        return a->node == b->node;
    case NJ_NEAR_REMOTE:
    case NJ_NEAR_SAME_CPU:
        return true;
    }
    return true;
}

/* Add the CPUs without an lcore that are near the CPU of an lcore. */
static void add_near(const struct nj_topo *t, const struct nj_placement *p, uint32_t cpu,
                     enum nj_proximity near, cpu_set_t *set)
{
    const struct nj_topo_cpu *c = nj_topo_cpu(t, cpu);

    for (uint32_t i = 0; c && i < t->n_cpus; i++)
        if (CPU_ISSET(t->cpu[i].id, &p->housekeeping) && is_near(&t->cpu[i], c, near))
            CPU_SET(t->cpu[i].id, set);
}

/* Is worker w the preferred worker of lcore i? */
static bool worker_serves(const struct nj_placement *p, uint32_t w, uint32_t i)
{
    return p->n_workers < p->n_lcores ? p->nearest_worker[i] == w : w % p->n_lcores == i;
}

/* Place a worker as near as possible to one of its lcores. */
static void place_worker(const struct nj_topo *t, struct nj_placement *p, uint32_t w)
{
    CPU_ZERO(&p->worker[w]);
    for (enum nj_proximity near = NJ_NEAR_CORE; !p->no_spare_cpu && near < NJ_NEAR_REMOTE; near++) {
        for (uint32_t i = 0; i < p->n_lcores; i++)
            if (worker_serves(p, w, i))
                add_near(t, p, p->lcore[i], near, &p->worker[w]);
        p->near[w] = near;
        if (CPU_COUNT(&p->worker[w]) > 0)
            return;
    }
    p->worker[w] = p->housekeeping;
    p->near[w] = p->no_spare_cpu ? NJ_NEAR_SAME_CPU : NJ_NEAR_REMOTE;
}

static void find_housekeeping(const struct nj_topo *t, struct nj_placement *p)
{
    cpu_set_t all;

    CPU_ZERO(&all);
    for (uint32_t i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].usable)
            CPU_SET(t->cpu[i].id, &all);
    p->housekeeping = all;
    for (uint32_t i = 0; i < p->n_lcores; i++)
        CPU_CLR(p->lcore[i], &p->housekeeping);
    p->no_spare_cpu = CPU_COUNT(&p->housekeeping) == 0;
    if (p->no_spare_cpu)
        p->housekeeping = all;
}

void nj_placement_plan_workers(const struct nj_topo *t, const uint32_t *lcore, uint32_t n_lcores,
                               uint32_t n_workers, struct nj_placement *out)
{
    memset(out, 0, sizeof *out);
    out->lcore_mib = NJ_LCORE_EAL_MIB;
    out->n_lcores = n_lcores < NJ_SHARDS_MAX ? n_lcores : NJ_SHARDS_MAX;
    memcpy(out->lcore, lcore, out->n_lcores * sizeof *lcore);
    find_housekeeping(t, out);
    if (n_workers == 0) {
        n_workers = out->no_spare_cpu ? 1 : (uint32_t)CPU_COUNT(&out->housekeeping);
        n_workers = n_workers < WORKERS_DEFAULT ? n_workers : WORKERS_DEFAULT;
    }
    out->n_workers = n_workers < NJ_WORKERS_MAX ? n_workers : NJ_WORKERS_MAX;
    for (uint32_t i = 0; i < out->n_lcores; i++)
        out->nearest_worker[i] =
            out->n_workers < out->n_lcores ? i * out->n_workers / out->n_lcores : i;
    for (uint32_t w = 0; w < out->n_workers; w++)
        place_worker(t, out, w);
}

/* --- problems --------------------------------------------------------------------------------- */

static bool pair_has_fault(const struct nj_topo *t, enum nj_placement_fault_kind kind,
                           const struct nj_topo_cpu *a, const struct nj_topo_cpu *b)
{
    switch (kind) {
    case NJ_FAULT_SAME_CPU:
        return a->id == b->id;
    case NJ_FAULT_SIBLINGS:
        return a->id != b->id && a->core == b->core;
    case NJ_FAULT_SPLIT_NODES:
        return t->nic_node < 0 && a->node != b->node;
    case NJ_FAULT_NIC_REMOTE:
    case NJ_FAULT_NO_SPARE_CPU:
        return false;
    }
    return false;
}

static uint32_t find_pair(const struct nj_topo *t, const struct nj_placement *p,
                          enum nj_placement_fault_kind kind, struct nj_placement_fault *f)
{
    for (uint32_t i = 1; i < p->n_lcores; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct nj_topo_cpu *a = nj_topo_cpu(t, p->lcore[k]);
            const struct nj_topo_cpu *b = nj_topo_cpu(t, p->lcore[i]);
            if (a && b && pair_has_fault(t, kind, a, b)) {
                *f = (struct nj_placement_fault){kind, a->id, b->id};
                return 1;
            }
        }
    return 0;
}

static uint32_t find_lcore_off_nic_node(const struct nj_topo *t, const struct nj_placement *p,
                                        struct nj_placement_fault *f)
{
    const struct nj_topo_cpu *cores[NJ_TOPO_CPUS_MAX];

    if (t->nic_node < 0 || cores_of(t, t->nic_node, cores) == 0)
        return 0; /* no closer core exists */
    for (uint32_t i = 0; i < p->n_lcores; i++) {
        const struct nj_topo_cpu *c = nj_topo_cpu(t, p->lcore[i]);
        if (c && c->node != t->nic_node) {
            *f = (struct nj_placement_fault){NJ_FAULT_NIC_REMOTE, c->id, c->id};
            return 1;
        }
    }
    return 0;
}

uint32_t nj_placement_find_faults(const struct nj_topo *t, const struct nj_placement *p,
                                  struct nj_placement_fault faults[NJ_PLACEMENT_FAULTS_MAX])
{
    uint32_t n = 0;

    n += find_pair(t, p, NJ_FAULT_SAME_CPU, &faults[n]);
    n += find_pair(t, p, NJ_FAULT_SIBLINGS, &faults[n]);
    n += find_lcore_off_nic_node(t, p, &faults[n]);
    n += find_pair(t, p, NJ_FAULT_SPLIT_NODES, &faults[n]);
    if (p->no_spare_cpu)
        faults[n++] = (struct nj_placement_fault){NJ_FAULT_NO_SPARE_CPU, p->lcore[0], p->lcore[0]};
    return n;
}
