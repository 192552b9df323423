/* SPDX-License-Identifier: BSD-3-Clause */
/* Places the server's threads on CPUs, for the lcores that the EAL was given (topo/place.h). */
#pragma once

#include "topo/place.h"

/*
 * Place workers around `n_lcores` lcores on these CPUs. `usable`: the allowed CPUs of the process;
 * `n_workers` 0: the default; `nic_node` -1: not known. If the topology cannot be read, every
 * thread may run on any CPU. Main thread.
 */
void nj_placement_place_workers(const uint32_t *cpu, uint32_t n_lcores, uint32_t n_workers,
                                int nic_node, const cpu_set_t *usable, struct nj_placement *out);

/* Write the problems of a placement and better EAL arguments to `text`, one per line; "" if there
 * are no better ones. Reads the topology again. Main thread. */
void nj_placement_format_advice(const struct nj_placement *p, int nic_node, const cpu_set_t *usable,
                                char *text, size_t n);
