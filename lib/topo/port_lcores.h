/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigns each lcore to one port. An lcore polls one port, so that it has one link, one set of
 * addresses, and memory near that device. Pure. */
#pragma once

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

struct nj_port_request {
    int id;           /* port id of DPDK */
    int node;         /* NUMA node of its device; -1: unknown */
    cpu_set_t lcores; /* ids of its lcores; empty: a share of the lcores that no port lists */
};

struct nj_lcore_node {
    unsigned id;
    int node; /* NUMA node of its CPU */
};

/*
 * Set port_of[i] to the index of the port that lcore[i] polls. Ports without `lcores` share the
 * remaining lcores evenly, in the order of `lcore`, with lcores of the port's node first. The sets
 * of two ports are disjoint. Returns 0, or -1 with the reason in `why`: an lcore without a port, a
 * port without an lcore, or an unknown lcore.
 */
int nj_port_lcores_assign(const struct nj_lcore_node *lcore, uint32_t n_lcores,
                          const struct nj_port_request *port, uint32_t n_ports,
                          uint8_t port_of[NJ_SHARDS_MAX], char *why, size_t why_bytes);
