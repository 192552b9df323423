/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a placement: its problems, the EAL arguments, and a diagram. */
#include <stdarg.h>
#include <string.h>

#include "base/compiler.h"
#include "topo/cpus.h"
#include "topo/place.h"

static NJ_PRINTF(3, 4) void append(char *text, size_t n, const char *fmt, ...)
{
    size_t at = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + at, n - at, fmt, ap);
    va_end(ap);
}

void nj_placement_fault_text(const struct nj_topo *t, const struct nj_placement_fault *f,
                             char *text, size_t n)
{
    text[0] = '\0';
    switch (f->kind) {
    case NJ_FAULT_SAME_CPU:
        append(text, n, "two lcores poll on CPU %u: each waits while the other runs", f->a);
        break;
    case NJ_FAULT_SIBLINGS:
        append(text, n,
               "lcores on CPUs %u and %u are two threads of one core: each takes issue "
               "slots and cache from the other, and workers could be there",
               f->a, f->b);
        break;
    case NJ_FAULT_NIC_REMOTE:
        append(text, n,
               "the lcore on CPU %u is on NUMA node %u, the NIC on node %d: every packet "
               "crosses between them",
               f->a, nj_topo_cpu(t, f->a)->node, t->nic_node);
        break;
    case NJ_FAULT_SPLIT_NODES:
        append(text, n,
               "lcores on CPUs %u and %u are on NUMA nodes %u and %u: for one of them "
               "packets and memory are far",
               f->a, f->b, nj_topo_cpu(t, f->a)->node, nj_topo_cpu(t, f->b)->node);
        break;
    case NJ_FAULT_NO_SPARE_CPU:
        append(text, n,
               "every CPU has an lcore: workers and all else share CPUs with them, and "
               "polling stops while they run");
        break;
    }
}

static uint32_t lcores_on(const struct nj_topo *t, const struct nj_placement *p, uint32_t node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_lcores; i++) {
        const struct nj_topo_cpu *c = nj_topo_cpu(t, p->lcore[i]);
        n += c && c->node == node;
    }
    return n;
}

void nj_placement_eal_args(const struct nj_topo *t, const struct nj_placement *p, char *text,
                           size_t n)
{
    uint32_t n_nodes = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    for (uint32_t i = 0; i < p->n_lcores; i++)
        CPU_SET(p->lcore[i], &set);
    snprintf(text, n, "-l ");
    nj_cpus_format(&set, text + strlen(text), n - strlen(text));
    for (uint32_t i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].node >= n_nodes)
            n_nodes = t->cpu[i].node + 1u;
    if (n_nodes < 2)
        return;
    for (uint32_t node = 0; node < n_nodes; node++)
        append(text, n, "%s%u", node == 0 ? " --socket-mem " : ",",
               lcores_on(t, p, node) * p->lcore_mib);
}

/* --- the diagram ------------------------------------------------------------------------------ */

static void draw_cpu(const struct nj_placement *p, const struct nj_topo_cpu *c, FILE *out)
{
    uint32_t n_said = 0;

    fprintf(out, "    cpu %-4u", c->id);
    for (uint32_t i = 0; i < p->n_lcores; i++)
        if (p->lcore[i] == c->id)
            fprintf(out, "%spolls queue %u", n_said++ ? ", " : "", i);
    for (uint32_t w = 0; w < p->n_workers; w++)
        if (CPU_ISSET(c->id, &p->worker[w]))
            fprintf(out, "%sworker %u", n_said++ ? ", " : "", w);
    if (!c->usable)
        fprintf(out, "not ours");
    else if (CPU_ISSET(c->id, &p->housekeeping))
        fprintf(out, "%sfiles, all else", n_said ? ", " : "");
    fputc('\n', out);
}

static void draw_headings(const struct nj_topo *t, uint32_t i, FILE *out)
{
    const struct nj_topo_cpu *c = &t->cpu[i], *before = i > 0 ? c - 1 : NULL;

    if (!before || before->node != c->node)
        fprintf(out, "node %u%s\n", c->node, t->nic_node == c->node ? ", with the NIC" : "");
    if (c->l3 != NJ_TOPO_NONE && (!before || before->l3 != c->l3))
        fprintf(out, " L3 %u\n", c->l3);
    if (!before || before->core != c->core)
        fprintf(out, "  core %u\n", c->core);
}

static void draw_workers(const struct nj_placement *p, FILE *out)
{
    static const char *const words[] = {
        [NJ_NEAR_CORE] = "the other thread of an lcore's core: L1 and L2 are shared",
        [NJ_NEAR_L2] = "shares an lcore's L2",
        [NJ_NEAR_L3] = "shares an lcore's L3",
        [NJ_NEAR_NODE] = "on an lcore's node",
        [NJ_NEAR_REMOTE] = "far from its lcores",
        [NJ_NEAR_SAME_CPU] = "on the lcores' own CPUs",
    };

    for (uint32_t w = 0; w < p->n_workers; w++) {
        char cpus[256] = "";
        nj_cpus_format(&p->worker[w], cpus, sizeof cpus);
        fprintf(out, "worker %u: CPU %s, %s\n", w, cpus, words[p->near[w]]);
    }
}

void nj_placement_draw(const struct nj_topo *t, const struct nj_placement *p, FILE *out)
{
    char eal[512];

    if (t->nic[0])
        fprintf(out, "NIC %s%s\n", t->nic, t->nic_node < 0 ? ", as near to all" : "");
    else
        fprintf(out, "NIC: not known (name it with -a before the --)\n");
    for (uint32_t i = 0; i < t->n_cpus; i++) {
        draw_headings(t, i, out);
        draw_cpu(p, &t->cpu[i], out);
    }
    draw_workers(p, out);
    nj_placement_eal_args(t, p, eal, sizeof eal);
    fprintf(out, "EAL arguments: %s\n", eal);
}

/* Find a placement with at most as many lcores and fewer problems. */
static bool find_better(const struct nj_topo *t, const struct nj_placement *p, uint32_t n_faults,
                        char *eal, size_t n)
{
    struct nj_placement_fault faults[NJ_PLACEMENT_FAULTS_MAX];
    struct nj_placement better;

    nj_placement_plan(t, p->n_lcores, p->n_workers, &better);
    better.lcore_mib = p->lcore_mib;
    if (better.n_lcores == 0 || nj_placement_find_faults(t, &better, faults) >= n_faults)
        return false;
    nj_placement_eal_args(t, &better, eal, n);
    return true;
}

void nj_placement_advice_text(const struct nj_topo *t, const struct nj_placement *p, char *text,
                              size_t n)
{
    struct nj_placement_fault faults[NJ_PLACEMENT_FAULTS_MAX];
    uint32_t n_faults = nj_placement_find_faults(t, p, faults);
    char eal[512], fault[256];

    text[0] = '\0';
    if (n_faults == 0 || !find_better(t, p, n_faults, eal, sizeof eal))
        return;
    for (uint32_t i = 0; i < n_faults; i++) {
        size_t at = strlen(text);
        nj_placement_fault_text(t, &faults[i], fault, sizeof fault);
        snprintf(text + at, n - at, "nightjar: %s%s%s\n", fault,
                 i + 1 == n_faults ? "; better: " : "", i + 1 == n_faults ? eal : "");
    }
}
