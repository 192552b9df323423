/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of CPUs as the kernel and the EAL write them: "0-3,8". Pure. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Format the set, "" if empty, with as many ranges as fit in `n` bytes. */
void nj_cpus_format(const cpu_set_t *set, char *text, size_t n);

/* Parse the number of a CPU below NJ_TOPO_CPUS_MAX, and advance *text past it. */
bool nj_cpu_parse(const char **text, unsigned *cpu);

/* Parse the list in `text`; "" is the empty set. False, with an empty set, for an invalid list or a
 * CPU number of NJ_TOPO_CPUS_MAX or more. */
bool nj_cpus_parse(const char *text, cpu_set_t *set);
