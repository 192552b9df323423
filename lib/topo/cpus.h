/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of CPUs as the kernel and the EAL write them: "0-3,8". Pure. */
#ifndef NJ_TOPO_CPUS_H
#define NJ_TOPO_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* What is in the set, "" when it is empty; as many ranges as fit in `n` bytes. */
void nj_cpus_format(const cpu_set_t *set, char *text, size_t n);

/* The number of a CPU, below NJ_TOPO_CPUS_MAX, that *text begins with; *text is behind it then. */
bool nj_cpu_parse(const char **text, unsigned *cpu);

/* The set that `text` names; "" is the empty one. False, with an empty set, when it is no such
 * list, or names a CPU from NJ_TOPO_CPUS_MAX on. */
bool nj_cpus_parse(const char *text, cpu_set_t *set);

#endif
